//! What a coordinator says of itself while it runs, and the traces that it exports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::{Served, prepare};
use crate::scene::Scene;

/// A collector that takes whatever comes; its URL, and each request's first line and body.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length, mut first) = (String::new(), 0, String::new());
            while stream.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                first = if first.is_empty() { line.clone() } else { first };
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
            if tell.send((first, body)).is_err() {
                return;
            }
        }
    });
    (url, told)
}

/// Asks for the job as part of a trace that somebody else began.
fn ask_in_a_trace(url: &str, trace: &str) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let request = format!(
        "GET /v1/job HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         traceparent: {trace}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn holds(body: &[u8], what: &[u8]) -> bool {
    body.windows(what.len()).any(|part| part == what)
}

/// Spans reach a collector at the end at the latest, with the trace that the client began.
#[test]
fn spans_of_requests_are_exported() {
    let scene = Scene::in_memory();
    let (url, told) = collector();
    let words = format!("--data job --listen 127.0.0.1:0 --otlp {url}");
    let served = Served::start(&scene, &words);
    let worker = served.owner("w");
    prepare(&worker, 1);
    ask_in_a_trace(served.url(), "00-0123456789abcdef0123456789abcdef-a1b2c3d4e5f60718-01");
    let ended = served.terminate();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let mut all = Vec::new();
    for (first, body) in told.try_iter() {
        assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
        all.extend(body);
    }
    let trace = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].repeat(2);
    let owner = worker.identity().0.to_string();
    for what in [
        &b"POST /v1/call"[..],
        b"GET /v1/job",
        b"service.name",
        owner.as_bytes(),
        &trace,
        &[0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07, 0x18],
    ] {
        assert!(holds(&all, what), "no {}", String::from_utf8_lossy(what));
    }
}

/// A collector that is not there holds nobody up; what was lost is said.
#[test]
fn a_collector_that_is_not_there_harms_nobody() {
    let scene = Scene::in_memory();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let words = format!("--data job --listen 127.0.0.1:0 --otlp {url}");
    let served = Served::start(&scene, &words);
    prepare(&served.owner("w"), 1);
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0));
    assert!(ended.err.contains("ERROR") || ended.err.contains("WARN"), "{}", ended.err);
}

/// What nobody else would notice is said without being asked for.
#[cfg(target_os = "linux")]
#[test]
fn a_lost_line_of_the_audit_log_is_said() {
    let scene = Scene::in_memory();
    let start = "--data job --listen 127.0.0.1:0";
    Served::start(&scene, start).terminate();
    std::fs::remove_file(scene.path("job/audit.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/full", scene.path("job/audit.jsonl")).unwrap();
    let served = Served::start(&scene, start);
    scene.prints(&format!("configure --turns 2 --yes --server {}", served.url()));
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0));
    assert!(ended.err.contains("ERROR"), "{}", ended.err);
    assert!(ended.err.contains("a line of the audit log is lost"), "{}", ended.err);
    assert!(ended.err.contains("job/audit.jsonl"), "{}", ended.err);
}

/// Lines that nobody reads are lost at some time, and hold nobody up.
#[test]
fn a_log_that_nobody_reads_harms_nobody() {
    let scene = Scene::in_memory();
    let served = Served::start(&scene, "--data job --listen 127.0.0.1:0 --log info --log-json");
    let worker = served.owner("w");
    // Many more lines than a pipe holds.
    for _ in 0..1000 {
        worker.ask(pinfold_core::catalog::Command::Collect { limit: 1 }).unwrap().unwrap();
    }
    let ended = served.terminate();
    assert_eq!(ended.code, Some(0));
    assert!(ended.err.len() > 60_000, "{}", ended.err.len());
}

#[test]
fn requests_are_logged_where_that_is_asked_for() {
    let scene = Scene::in_memory();
    let start = "--data job --listen 127.0.0.1:0";
    let served = Served::start(&scene, &format!("{start} --log info --log-json"));
    let worker = served.owner("w");
    prepare(&worker, 1);
    let ended = served.terminate();
    let lines: Vec<Value> =
        ended.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |what: &str| lines.iter().find(|it| it["fields"]["message"] == what);
    for what in ["serving", "draining: nothing new is taken", "ended"] {
        assert!(said(what).is_some(), "no {what:?} in {}", ended.err);
    }
    let call = lines.iter().rfind(|it| it["span"]["url.path"] == "/v1/call").unwrap();
    assert_eq!(call["fields"]["message"], "answered", "{call}");
    assert_eq!(call["fields"]["status"], 200, "{call}");
    assert!(call["fields"]["micros"].as_u64() > Some(0), "{call}");
    assert_eq!(call["span"]["owner"], worker.identity().0.to_string(), "{call}");

    let served = Served::start(&scene, &format!("{start} --log warn,pinfold_http=info"));
    served.owner("w2");
    let ended = served.terminate();
    assert!(ended.err.contains("INFO request{"), "{}", ended.err);
    assert!(ended.err.contains("answered status=200"), "{}", ended.err);
    // Unless it is asked for, nothing is said where nothing is wrong.
    let served = Served::start(&scene, start);
    served.owner("w3");
    assert_eq!(served.terminate().err, "");

    scene.refuses("serve --data j2 --log loud", 2, &["\"loud\" is no level", "warn,pinfold_http"]);
    scene.refuses("serve --data j2 --otlp grpc://host", 2, &["grpc is not spoken", "4318"]);
    assert!(!scene.path("j2").exists());
}
