//! The service over TLS: who trusts whom, and what becomes of those who do not begin with it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::StartId;
use pinfold_core::outcome::Outcome;
use pinfold_host::node::Node;
use pinfold_host::owner::Owner;
use pinfold_http::client::{Client, ClientError, ClientOptions};
use pinfold_http::service::{Service, ServiceOptions};
use pinfold_http::tls::{ClientTls, Identity, Pem, ServerTls, TlsError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::certificates::{Ca, Pair};
use crate::scene::{Scene, genesis, prepare};

/// So long that whoever waits for it to pass fails the test's own limit.
const AGES: Duration = Duration::from_secs(3600);

fn serving(tls: Option<ServerTls>) -> Scene {
    Scene::with(ServiceOptions { tls, ..ServiceOptions::default() })
}

fn connect(scene: &Scene, tls: Option<ClientTls>) -> Result<Client, ClientError> {
    let give_up_after = Duration::from_secs(20);
    Client::connect(&scene.url(), ClientOptions { tls, give_up_after, ..Default::default() })
}

/// Registers, and asks for something that is durable when it is answered.
fn works(client: Client) {
    let owner = Owner::register(client, "w", Role::Worker, StartId::of_name("w")).unwrap();
    prepare(&owner, 1, 2);
    let collected = owner.ask(Command::Collect { limit: 1 }).unwrap();
    assert_eq!(collected, Ok(Outcome::Collected { objects: 0, more: false }));
}

/// It is refused because of certificates, at once and for this reason.
fn refused(scene: &Scene, tls: Option<ClientTls>, reason: &str) {
    match connect(scene, tls) {
        Err(ClientError::Tls { url, what }) => {
            assert_eq!(url, scene.url());
            assert!(what.contains(reason), "no {reason:?} in {what}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_trusts_the_ca_that_it_was_told() {
    let (ca, other) = (Ca::new("ours"), Ca::new("another"));
    let scene = serving(ca.signs().shown());
    assert!(scene.url().starts_with("https://127.0.0.1:"));
    refused(&scene, other.trusted(), "not of a CA that is trusted here");
    works(connect(&scene, ca.trusted()).unwrap());
    // The system's CAs do not know it either, where it has any.
    let unknown = connect(&scene, None);
    assert!(matches!(unknown, Err(ClientError::Tls { .. } | ClientError::Url { .. })));
    // A CA is no use where nobody shows a certificate.
    let plain = serving(None);
    let overheard = connect(&plain, ca.trusted());
    assert!(matches!(overheard, Err(ClientError::Url { .. })), "{overheard:?}");
}

#[test]
fn a_self_signed_certificate_is_trusted_by_its_own_file() {
    let pair = Pair::self_signed();
    let tls = pair.shown().unwrap();
    assert!(tls.is_self_contained() && !tls.is_mutual());
    assert!(tls.is_for("localhost") && tls.is_for("127.0.0.1") && !tls.is_for("10.0.0.1"));
    let scene = serving(Some(tls));
    let trusts = Pem::named("cert.pem", &pair.certificate);
    works(connect(&scene, Some(ClientTls::new(Some(&trusts), None).unwrap())).unwrap());
    // A file with its root behind it vouches for itself, too; one without does not.
    let ca = Ca::new("ours");
    let Pair { certificate, key } = ca.signs();
    assert!(
        !Pair { certificate: certificate.clone(), key: key.clone() }
            .shown()
            .unwrap()
            .is_self_contained()
    );
    assert!(Pair { certificate: certificate + &ca.pem, key }.shown().unwrap().is_self_contained());
}

#[test]
fn only_clients_of_the_ca_are_taken() {
    let (ca, clients, other) = (Ca::new("ours"), Ca::new("workers"), Ca::new("another"));
    let scene = serving(ca.signs().shown_to(&clients));
    refused(&scene, ca.trusted(), "only clients that show a certificate");
    refused(&scene, ca.trusted_by(&other.signs()), "does not take the certificate");
    refused(&scene, ca.trusted_by(&clients.signs_expired()), "does not take the certificate");
    works(connect(&scene, ca.trusted_by(&clients.signs())).unwrap());
}

#[test]
fn an_expired_certificate_is_taken_by_nobody() {
    let ca = Ca::new("ours");
    let tls = ca.signs_expired().shown().unwrap();
    assert!(tls.is_out_of_date() && !tls.is_self_contained());
    let Pair { certificate, key } = ca.signs_expired();
    let whole = Pair { certificate: certificate + &ca.pem, key }.shown().unwrap();
    assert!(whole.is_out_of_date() && whole.is_self_contained());
    assert!(!ca.signs().shown().unwrap().is_out_of_date());
    let scene = serving(Some(tls));
    refused(&scene, ca.trusted(), "expired");
}

/// Who shows a certificate may ask by any name, and an address that others reach is served.
#[test]
fn a_certificate_stands_in_for_a_token() {
    let ca = Ca::new("ours");
    let listen = "0.0.0.0:0".parse().unwrap();
    let options = |tls| ServiceOptions { tls, listen, ..ServiceOptions::default() };
    let scene = Scene::with(options(ca.signs().shown_to(&ca)));
    let port = scene.service.as_ref().unwrap().address().port();
    let asks = |host: &str| {
        let request = format!("GET /v1/job HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        by_hand(port, &ca, &request)
    };
    assert!(asks("job.example").starts_with("HTTP/1.1 200"));
    // Without a client's certificate nobody would keep strangers out.
    let dir = tempfile::tempdir().unwrap();
    let (node, effects) = Node::create(dir.path(), genesis()).unwrap();
    let open = Service::start(node, effects, options(ca.signs().shown())).unwrap_err().to_string();
    assert!(open.contains("take only clients with a certificate"), "{open}");
}

/// Asks over TLS without our client; whoever offers HTTP/2, too, is answered in HTTP/1.1.
fn by_hand(port: u16, ca: &Ca, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap()).unwrap();
    let Pair { certificate, key } = ca.signs();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config =
        builder.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = "job.example".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    answer
}

/// Who does not begin with TLS is told nothing, holds nobody up, and does not stay.
#[test]
fn who_does_not_speak_tls_harms_nobody() {
    let ca = Ca::new("ours");
    let tls = ca.signs().shown();
    let options = ServiceOptions {
        tls,
        connections: 5,
        handshake_within: AGES,
        drain_within: AGES,
        ..ServiceOptions::default()
    };
    let mut scene = Scene::with(options);
    let address = scene.service.as_ref().unwrap().address();
    let mut silent: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    // The first bytes of a hello that never goes on.
    silent[0].write_all(&[22, 3, 1, 2]).unwrap();
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut told = Vec::new();
    // It may also be cut off.
    let _ = plain.read_to_end(&mut told);
    assert!(!String::from_utf8_lossy(&told).contains("ok"), "{told:?}");
    works(connect(&scene, ca.trusted()).unwrap());
    // An end does not wait for them.
    scene.service.take().unwrap().stop().unwrap();
    assert_eq!(silent[1].read(&mut [0; 9]).unwrap(), 0);

    let handshake_within = Duration::from_millis(50);
    let tls = ca.signs().shown();
    let scene = Scene::with(ServiceOptions { tls, handshake_within, ..ServiceOptions::default() });
    let address = scene.service.as_ref().unwrap().address();
    let mut silent = TcpStream::connect(address).unwrap();
    assert_eq!(silent.read(&mut [0; 9]).unwrap(), 0, "it is closed");
}

/// What cannot work is said before anything is served, with the file and what is wrong with it.
#[test]
fn files_that_cannot_work_are_named() {
    let (good, other, ca) = (Pair::self_signed(), Pair::self_signed(), Ca::new("ours"));
    let pem = |text: &str| Pem::named("a.pem", text);
    let key = |text: &str| Pem::named("a.key", text);
    let serves = |certificate: &str, text: &str, ca: Option<&str>| {
        let ca = ca.map(|ca| Pem::named("ca.pem", ca));
        let identity = Identity::new(&pem(certificate), &key(text))?;
        ServerTls::new(identity, ca.as_ref()).map(|_| ())
    };
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let as_server = Pair::self_signed_ca();
    for (found, file, what) in [
        (serves("", &good.key, None), "a.pem", "there is no certificate in it"),
        (serves(&good.key, &good.key, None), "a.pem", "there is no certificate in it"),
        (serves(broken, &good.key, None), "a.pem", "no readable PEM"),
        (serves(nonsense, &good.key, None), "a.pem", "certificate 1 cannot be read"),
        (serves(&good.certificate, "", None), "a.key", "there is no private key in it"),
        (serves(&good.certificate, &good.certificate, None), "a.key", "no private key"),
        (serves(&good.certificate, &other.key, None), "a.key", "does not belong to"),
        (serves(&as_server.certificate, &as_server.key, None), "a.pem", "CA:FALSE"),
        (serves(&good.certificate, &good.key, Some("")), "ca.pem", "there is no certificate"),
        (serves(&good.certificate, &good.key, Some(&ca.pem)), "", ""),
    ] {
        match found {
            Err(TlsError { file: named, what: said }) => {
                assert_eq!(named, file, "{said}");
                assert!(!file.is_empty() && said.contains(what), "no {what:?} in {said}");
            }
            Ok(()) => assert!(file.is_empty(), "{what} is not said"),
        }
    }
    let missing = Pem::read(std::path::Path::new("none.pem")).unwrap_err();
    assert_eq!(missing.file, "none.pem");
}
