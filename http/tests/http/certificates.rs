//! Certificates for one test: CAs of its own, and whom they vouch for.

use pinfold_http::tls::{ClientTls, Identity, Pem, ServerTls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A CA.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for this machine.
    pub(crate) fn signs(&self) -> Pair {
        self.signs_params(&here())
    }

    /// One that was good until a day long ago.
    pub(crate) fn signs_expired(&self) -> Pair {
        let mut params = here();
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.signs_params(&params)
    }

    fn signs_params(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// A client that trusts it.
    pub(crate) fn trusted(&self) -> Option<ClientTls> {
        Some(ClientTls::new(Some(&self.as_pem()), None).unwrap())
    }

    /// A client that trusts it and shows a certificate.
    pub(crate) fn trusted_by(&self, pair: &Pair) -> Option<ClientTls> {
        Some(ClientTls::new(Some(&self.as_pem()), Some(pair.identity())).unwrap())
    }

    pub(crate) fn as_pem(&self) -> Pem {
        Pem::named("ca.pem", &self.pem)
    }
}

impl Pair {
    /// One that vouches for itself.
    pub(crate) fn self_signed() -> Self {
        Self::of(&here())
    }

    /// A CA's, which nobody should show for a server's.
    pub(crate) fn self_signed_ca() -> Self {
        let mut params = here();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::of(&params)
    }

    fn of(params: &CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, key: key.serialize_pem() }
    }

    pub(crate) fn identity(&self) -> Identity {
        let certificate = Pem::named("cert.pem", &self.certificate);
        Identity::new(&certificate, &Pem::named("key.pem", &self.key)).unwrap()
    }

    /// A service that shows it.
    pub(crate) fn shown(&self) -> Option<ServerTls> {
        Some(ServerTls::new(self.identity(), None).unwrap())
    }

    /// A service that shows it, and takes only clients of a CA.
    pub(crate) fn shown_to(&self, clients: &Ca) -> Option<ServerTls> {
        Some(ServerTls::new(self.identity(), Some(&clients.as_pem())).unwrap())
    }
}

fn here() -> CertificateParams {
    let names = ["localhost", "127.0.0.1", "job.example"].map(String::from);
    CertificateParams::new(names).unwrap()
}
