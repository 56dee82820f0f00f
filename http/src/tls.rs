//! TLS: what a service shows and asks for, and whom a client trusts.
//!
//! Protects whoever starts one: files that cannot work are refused before anything listens or
//! connects, by name. Both sides speak TLS 1.2 and 1.3 through rustls, and HTTP/1.1 alone. It keeps
//! no files open and never reads one again: a renewed certificate is that of the next start.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, OtherError, RootCertStore, ServerConfig};

/// PEM text and where it is from.
#[derive(Clone)]
pub struct Pem {
    name: String,
    bytes: Vec<u8>,
}

/// A file that cannot serve what it was named for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct TlsError {
    /// The file, or what the text was called.
    pub file: String,
    /// What is wrong with it, and what was expected.
    pub what: String,
}

/// A certificate with those that vouch for it, and its private key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    certificate_name: String,
    key_name: String,
}

/// What there is to say of a certificate that clients may take.
struct Judged {
    /// The file vouches for it: it is self-signed, or its root is behind it.
    is_self_contained: bool,
    /// It is of another time than this.
    is_out_of_date: bool,
}

/// How a service speaks TLS.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    is_mutual: bool,
    is_self_contained: bool,
    is_out_of_date: bool,
    leaf: CertificateDer<'static>,
}

/// Whom a client trusts, and what it shows of itself.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl Pem {
    /// The text of a file.
    ///
    /// # Errors
    /// [`TlsError`] when it cannot be read.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        let name = file.display().to_string();
        match std::fs::read(file) {
            Ok(bytes) => Ok(Self { name, bytes }),
            Err(error) => Err(TlsError { file: name, what: error.to_string() }),
        }
    }

    /// Text of another origin, by the name that errors give it.
    #[must_use]
    pub fn named(name: &str, text: &str) -> Self {
        Self { name: name.to_string(), bytes: text.as_bytes().to_vec() }
    }

    fn wrong(&self, what: impl fmt::Display) -> TlsError {
        TlsError { file: self.name.clone(), what: what.to_string() }
    }

    /// Every certificate in it; at least one.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, pem::Error> =
            CertificateDer::pem_slice_iter(&self.bytes).collect();
        let found = found.map_err(|error| self.wrong(format!("no readable PEM: {error}")))?;
        if found.is_empty() {
            return Err(
                self.wrong("there is no certificate in it: expected PEM with a CERTIFICATE")
            );
        }
        for (number, certificate) in (1..).zip(&found) {
            ParsedCertificate::try_from(certificate).map_err(|error| {
                self.wrong(format!("its certificate {number} cannot be read: {error}"))
            })?;
        }
        Ok(found)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            pem::Error::NoItemsFound => self.wrong(
                "there is no private key in it: expected PEM with a PRIVATE KEY that no password \
                 protects",
            ),
            error => self.wrong(format!("no readable PEM: {error}")),
        })
    }

    /// Its certificates as those that may vouch for others.
    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in (1..).zip(self.certificates()?) {
            roots.add(certificate).map_err(|error| {
                self.wrong(format!("its certificate {number} can vouch for nobody: {error}"))
            })?;
        }
        Ok(roots)
    }
}

impl Identity {
    /// A certificate, with those behind it that vouch for it, and its key.
    ///
    /// # Errors
    /// [`TlsError`] when one of them cannot be read.
    pub fn new(certificate: &Pem, key: &Pem) -> Result<Self, TlsError> {
        Ok(Self {
            chain: certificate.certificates()?,
            key: key.key()?,
            certificate_name: certificate.name.clone(),
            key_name: key.name.clone(),
        })
    }

    /// Which of the two files is to blame.
    fn wrong(names: [String; 2], error: &rustls::Error) -> TlsError {
        let [file, key] = names;
        match error {
            rustls::Error::InconsistentKeys(_) => {
                let what = format!("the key does not belong to the certificate of {file}");
                TlsError { file: key, what }
            }
            rustls::Error::InvalidCertificate(_) => TlsError { file, what: error.to_string() },
            error => TlsError { file: key, what: format!("the key cannot be used: {error}") },
        }
    }

    /// Judges the certificate as a server's.
    ///
    /// # Errors
    /// [`TlsError`] when no client would take it for a server's at any time.
    fn judged(&self) -> Result<Judged, TlsError> {
        let now = UnixTime::now();
        // Clocks differ, so another time is no reason to refuse it; what it is beside that shows at
        // a time of its own.
        let its_own = match self.vouches(now) {
            Err(CertificateError::ExpiredContext { not_after, .. }) => Some(not_after),
            Err(CertificateError::NotValidYetContext { not_before, .. }) => Some(not_before),
            Ok(()) | Err(_) => None,
        };
        let is_out_of_date = its_own.is_some();
        let wrong = |what: String| TlsError { file: self.certificate_name.clone(), what };
        match self.vouches(its_own.unwrap_or(now)) {
            Ok(()) => Ok(Judged { is_self_contained: true, is_out_of_date }),
            Err(CertificateError::UnknownIssuer) => {
                Ok(Judged { is_self_contained: false, is_out_of_date })
            }
            // rustls has no name for it: it stands in an error of the library below alone.
            Err(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => Err(wrong(
                "its first certificate is a CA's, which no client takes for a server's: make it \
                 with basicConstraints=CA:FALSE, or put the server's own first"
                    .into(),
            )),
            Err(other) => Err(wrong(format!("no client takes its first certificate: {other}"))),
        }
    }

    /// Judges the certificate as a client does that trusts all of its file.
    fn vouches(&self, at: UnixTime) -> Result<(), CertificateError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.chain.iter().cloned());
        let algorithms = provider().signature_verification_algorithms.all;
        let judged = ParsedCertificate::try_from(&self.chain[0]).and_then(|leaf| {
            let rest = &self.chain[1..];
            verify_server_cert_signed_by_trust_anchor(&leaf, &roots, rest, at, algorithms)
        });
        judged.map_err(|error| match error {
            rustls::Error::InvalidCertificate(error) => error,
            error => CertificateError::Other(OtherError(Arc::new(error))),
        })
    }
}

/// The cryptography of both sides, whatever else the process has chosen.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl ServerTls {
    /// A service that shows this certificate; with a CA it takes only clients that show one which
    /// that CA vouches for.
    ///
    /// # Errors
    /// [`TlsError`] names the file that cannot work.
    pub fn new(identity: Identity, client_ca: Option<&Pem>) -> Result<Self, TlsError> {
        let Judged { is_self_contained, is_out_of_date } = identity.judged()?;
        let names = [identity.certificate_name, identity.key_name];
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Identity::wrong(names.clone(), &error))?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = Arc::new(ca.roots()?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                builder.with_client_cert_verifier(verifier.build().map_err(|it| ca.wrong(it))?)
            }
        };
        let leaf = identity.chain[0].clone();
        let mut config = builder
            .with_single_cert(identity.chain, identity.key)
            .map_err(|error| Identity::wrong(names, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let is_mutual = client_ca.is_some();
        let config = Arc::new(config);
        Ok(Self { config, is_mutual, is_self_contained, is_out_of_date, leaf })
    }

    /// Whether every client shows a certificate.
    #[must_use]
    pub const fn is_mutual(&self) -> bool {
        self.is_mutual
    }

    /// Whether a client can trust the certificate's own file: it is self-signed, or its root is
    /// behind it.
    #[must_use]
    pub const fn is_self_contained(&self) -> bool {
        self.is_self_contained
    }

    /// Whether the certificate was of another time than this when it was read: then a client takes
    /// it only if its clock differs.
    #[must_use]
    pub const fn is_out_of_date(&self) -> bool {
        self.is_out_of_date
    }

    /// Whether the certificate is for a host of this name or address.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let Ok(name) = ServerName::try_from(host.trim_matches(['[', ']'])) else { return false };
        ParsedCertificate::try_from(&self.leaf)
            .is_ok_and(|leaf| rustls::client::verify_server_name(&leaf, &name).is_ok())
    }
}

impl ClientTls {
    /// A client that trusts whom a CA vouches for, or whom the system's CAs do where there is none,
    /// and shows its own certificate to a service that asks for one.
    ///
    /// # Errors
    /// [`TlsError`] names the file that cannot work.
    pub fn new(ca: Option<&Pem>, identity: Option<Identity>) -> Result<Self, TlsError> {
        let system = |error: &dyn fmt::Display| TlsError {
            file: "the system's CAs".into(),
            what: format!("{error}: name the CA to trust"),
        };
        let verifier: Arc<dyn ServerCertVerifier> = match ca {
            Some(ca) => {
                let roots = Arc::new(ca.roots()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
                verifier.build().map_err(|error| ca.wrong(error))?
            }
            None => Arc::new(
                rustls_platform_verifier::Verifier::new(provider())
                    .map_err(|error| system(&error))?,
            ),
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| system(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { chain, key, certificate_name, key_name }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| Identity::wrong([certificate_name, key_name], &error))?,
        };
        Ok(Self { config: Arc::new(config) })
    }

    /// A client that trusts nobody: what one has that speaks no TLS.
    ///
    /// # Errors
    /// [`TlsError`] when the cryptography cannot be used.
    pub fn nobody() -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError { file: "no TLS".into(), what: error.to_string() })?;
        let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// The same as rustls, and what is built on it, takes it.
    #[must_use]
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.name).finish()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("is_mutual", &self.is_mutual).finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

/// What a TLS failure is that stays the same however often one tries: whom this side does not
/// trust, or what the other side says of this one.
pub(crate) fn final_failure(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        // An error inside an error of the system is none of its sources.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let inner = inner.map(|it| it as &(dyn std::error::Error + 'static));
        for error in [Some(error), inner].into_iter().flatten() {
            if let Some(error) = error.downcast_ref::<rustls::Error>() {
                return in_words(error);
            }
        }
        next = inner.filter(|it| it.is::<std::io::Error>()).or_else(|| error.source());
    }
    None
}

fn in_words(error: &rustls::Error) -> Option<String> {
    use rustls::AlertDescription as Alert;
    match error {
        // The second is of a CA with the same name and another key.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => Some(
            "its certificate is not of a CA that is trusted here: name its CA, or its own \
             certificate where it is self-signed"
                .into(),
        ),
        rustls::Error::InvalidCertificate(_) => Some(error.to_string()),
        rustls::Error::AlertReceived(Alert::CertificateRequired) => {
            Some("it takes only clients that show a certificate".into())
        }
        rustls::Error::AlertReceived(
            alert @ (Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::DecryptError
            | Alert::AccessDenied),
        ) => Some(format!("it does not take the certificate shown to it: {alert:?}")),
        rustls::Error::InvalidMessage(_) => Some("it does not speak TLS".into()),
        _ => None,
    }
}
