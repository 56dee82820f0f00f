//! A coordinator that speaks TLS, and the commands that ask it.

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, generate_simple_self_signed};

use super::Served;
use crate::scene::Scene;

/// Writes a self-signed certificate for this machine, and its key.
fn certificate(scene: &Scene, name: &str) {
    let names = ["localhost", "127.0.0.1"].map(String::from);
    let made = generate_simple_self_signed(names).unwrap();
    scene.write(&format!("{name}.pem"), &made.cert.pem());
    scene.write(&format!("{name}.key"), &made.signing_key.serialize_pem());
}

#[test]
fn commands_ask_over_tls() {
    let scene = Scene::in_memory();
    for name in ["job", "worker", "other"] {
        certificate(&scene, name);
    }
    let words = "--data job --listen 127.0.0.1:0 --tls-cert job.pem --tls-key job.key";
    let served = Served::start(&scene, &format!("{words} --host localhost --descriptor d.json"));
    assert!(served.url().starts_with("https://localhost:"), "{}", served.url());
    assert!(scene.prints("inspect --descriptor d.json").contains("Totals"));
    let at = format!("inspect --server {}", served.url());
    assert!(scene.prints(&format!("{at} --tls-ca job.pem")).contains("Totals"));
    scene.refuses(&format!("{at} --tls-ca other.pem"), 2, &["not of a CA that is trusted here"]);
    scene.refuses(&format!("{at} --tls-ca none.pem"), 2, &["--tls-ca none.pem: No such file"]);
    scene.refuses(&format!("{at} --tls-cert job.pem"), 2, &["--tls-key"]);
    let plain = at.replace("https", "http");
    scene.refuses(&format!("{plain} --tls-ca job.pem"), 2, &["asks by https"]);
    drop(served);

    let served = Served::start(&scene, &format!("{words} --client-ca worker.pem --log info"));
    let at = format!("--server {} --tls-ca job.pem", served.url());
    scene.refuses(&format!("inspect {at}"), 2, &["only clients that show a certificate"]);
    let shows = |name: &str| format!("{at} --tls-cert {name}.pem --tls-key {name}.key");
    scene.refuses(&format!("inspect {}", shows("other")), 2, &["does not take the certificate"]);
    assert!(scene.prints(&format!("inspect {}", shows("worker"))).contains("Totals"));
    let bench = format!("worker-bench --clients 1 --seconds 1 {}", shows("worker"));
    assert!(scene.json(&bench)["cycles"].as_u64() > Some(0));
    let ended = served.terminate();
    assert!(ended.err.contains("a connection is refused: TLS does not begin"), "{}", ended.err);
}

/// Clocks differ, so what is expired is warned of, and its clients refuse it.
#[test]
fn an_expired_certificate_is_warned_of() {
    let scene = Scene::in_memory();
    let mut params = CertificateParams::new(["127.0.0.1".to_string()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    scene.write("job.pem", &params.self_signed(&key).unwrap().pem());
    scene.write("job.key", &key.serialize_pem());
    let words = "--data job --listen 127.0.0.1:0 --tls-cert job.pem --tls-key job.key";
    let served = Served::start(&scene, &format!("{words} --descriptor d.json"));
    scene.refuses("inspect --descriptor d.json", 2, &["certificate expired"]);
    let ended = served.terminate();
    assert!(ended.err.contains("WARN") && ended.err.contains("job.pem"), "{}", ended.err);
}

/// A start that cannot speak TLS as it was told is refused before anything is made.
#[test]
fn a_start_with_files_that_cannot_work_makes_nothing() {
    let scene = Scene::in_memory();
    certificate(&scene, "job");
    certificate(&scene, "other");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    scene.write("ca.pem", &params.self_signed(&key).unwrap().pem());
    scene.write("ca.key", &key.serialize_pem());
    for (words, expected) in [
        ("--tls-cert job.pem", &["--tls-key"][..]),
        ("--tls-key job.key", &["--tls-cert"]),
        ("--client-ca job.pem", &["--tls-cert"]),
        ("--tls-cert none.pem --tls-key job.key", &["--tls-cert none.pem: No such file"]),
        ("--tls-cert job.pem --tls-key job.pem", &["job.pem: there is no private key"]),
        ("--tls-cert job.key --tls-key job.key", &["job.key: there is no certificate"]),
        ("--tls-cert job.pem --tls-key other.key", &["other.key: the key does not", "job.pem"]),
        ("--tls-cert ca.pem --tls-key ca.key", &["ca.pem: its first certificate is a CA's"]),
        (
            "--tls-cert job.pem --tls-key job.key --host job.example",
            &["--host job.example: the certificate of job.pem is not for this name"],
        ),
        ("--tls-cert job.pem --tls-key job.key --client-ca job.key", &["job.key: there is no"]),
        (
            "--tls-cert job.pem --tls-key job.key --listen 0.0.0.0:0",
            &["give it a token, take only clients with a certificate"],
        ),
    ] {
        scene.refuses(&format!("serve --data job {words}"), 2, expected);
        assert!(!scene.path("job").exists(), "{words}");
    }
}
