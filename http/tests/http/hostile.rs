//! Clients that mean no good, or only begin: while they do what they do a worker is served, and
//! nothing of theirs is left behind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::Request;
use pinfold_core::id::{OpId, StartId};
use pinfold_core::outcome::{Evidence, Outcome};
use pinfold_host::dto::{Ask, Call};
use pinfold_host::owner::Owner;
use pinfold_http::client::{Client, ClientOptions};
use pinfold_http::encoding::Encoding;
use pinfold_http::service::ServiceOptions;

use crate::scene::{Scene, end, genesis, prepare};

/// How long a test waits for what ought to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// A service of these tests waits so long for a body, and for a word.
const SHORT: Duration = Duration::from_millis(400);

fn hasty() -> ServiceOptions {
    ServiceOptions { body_within: SHORT, silence: SHORT, ..ServiceOptions::default() }
}

fn address(scene: &Scene) -> SocketAddr {
    scene.service.as_ref().unwrap().address()
}

fn connect(scene: &Scene) -> TcpStream {
    let stream = TcpStream::connect(address(scene)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes, and nothing more; all that comes back until the other end closes.
fn raw(scene: &Scene, bytes: &[u8]) -> String {
    let mut stream = connect(scene);
    // It may be refused half-way, which ends the connection.
    let _ = stream.write_all(bytes);
    rest(&mut stream)
}

fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("it is neither answered nor closed: {error}"),
        }
    }
    String::from_utf8(answer).unwrap()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer:?}")).parse().unwrap()
}

/// The head of a call whose body has so many bytes.
fn head(length: usize) -> String {
    format!(
        "POST /v1/call HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

fn gauges() -> String {
    format!(r#"{{"epoch":"{}","ask":{{"query":"gauges"}}}}"#, genesis().epoch)
}

/// All that a job holds.
fn held(scene: &Scene) -> [String; 4] {
    let views = ["/v1/job", "/v1/checkpoints", "/v1/owners", "/v1/pins?by=id"];
    views.map(|path| without_ages(&scene.get(path).body))
}

/// A worker that does not wait for ever: whatever others do, it is served meanwhile.
fn worker(scene: &Scene) -> Owner {
    let options = ClientOptions { give_up_after: PATIENCE, ..ClientOptions::default() };
    let client = Client::connect(&scene.url(), options).unwrap();
    Owner::register(client, "w", Role::Worker, StartId::of_name("w")).unwrap()
}

/// Saves and lets go of so many positions.
fn serve(owner: &Owner, numbers: std::ops::Range<u128>) {
    for number in numbers {
        let (pin, _) = prepare(owner, 1 + number, 1);
        end(owner, pin, Evidence::QuiescedFailure, None);
    }
}

/// Bodies that come a byte at a time take up no place of a request, and are over in time.
#[test]
fn slow_bodies_hold_nobody_up() {
    let scene = Scene::with(ServiceOptions { requests: 2, ..hasty() });
    let worker = worker(&scene);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let slow: Vec<_> = (0..12)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = connect(&scene);
                    stream.write_all(head(1_000_000).as_bytes()).unwrap();
                    while !over.load(Ordering::Relaxed) && stream.write_all(b" ").is_ok() {
                        thread::sleep(Duration::from_millis(10));
                    }
                    rest(&mut stream)
                })
            })
            .collect();
        serve(&worker, 0..20);
        thread::sleep(2 * SHORT);
        over.store(true, Ordering::Relaxed);
        for slow in slow {
            let answer = slow.join().unwrap();
            // The answer may be lost with what was written after it.
            assert!(answer.is_empty() || status(&answer) == 504, "{answer}");
        }
    });
    let mut stream = connect(&scene);
    stream.write_all((head(100) + "{").as_bytes()).unwrap();
    let answer = rest(&mut stream);
    assert_eq!(status(&answer), 504, "{answer}");
    assert!(answer.contains("timed_out") && answer.contains("send it again"), "{answer}");
    serve(&worker, 20..30);
}

/// Half a head and half a body are no requests: an end does not wait for them, and it does for
/// whole ones.
#[test]
fn half_a_request_delays_no_end() {
    let drain_within = Duration::from_secs(600);
    let mut scene = Scene::with(ServiceOptions { drain_within, ..ServiceOptions::default() });
    let mut half_a_head = connect(&scene);
    half_a_head.write_all(b"POST /v1/call HTTP/1.1\r\nhost: loc").unwrap();
    let mut half_a_body = connect(&scene);
    half_a_body.write_all((head(100) + "{").as_bytes()).unwrap();
    let mut unread = connect(&scene);
    unread.write_all(&b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(4000)).ok();
    let worker = worker(&scene);
    serve(&worker, 0..3);
    let began = Instant::now();
    scene.service.take().unwrap().stop().unwrap();
    assert!(began.elapsed() < drain_within / 10, "{:?}", began.elapsed());
    assert_eq!(rest(&mut half_a_head), "");
    let answer = rest(&mut half_a_body);
    assert!(status(&answer) == 503 && answer.contains("draining"), "{answer}");
}

/// Who asks and never reads is let go, and its place is somebody else's.
#[test]
fn an_answer_that_nobody_reads_keeps_no_place() {
    let scene = Scene::with(ServiceOptions { connections: 1, ..hasty() });
    let mut deaf = connect(&scene);
    deaf.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let asks = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    // Until nothing more is taken: by then its answers fill every buffer.
    while deaf.write_all(&asks).is_ok() {}
    let worker = worker(&scene);
    serve(&worker, 0..3);
    drop(deaf);
}

/// More connections than there may be, none of which says a word: who is connected is served, and
/// who comes waits for no longer than they may be silent.
#[test]
fn a_crowd_that_only_connects_is_waited_out() {
    let scene = Scene::with(ServiceOptions { connections: 8, ..hasty() });
    let crowd = |count| (0..count).map(|_| connect(&scene)).collect::<Vec<_>>();
    let silent = crowd(20);
    let worker = worker(&scene);
    let hasty = thread::scope(|scope| {
        let hasty = scope.spawn(|| (0..15).for_each(|_| drop(crowd(20))));
        serve(&worker, 0..30);
        hasty.join()
    });
    hasty.unwrap();
    assert_eq!(scene.get("/healthz").status, 200);
    drop(silent);
}

/// Two requests in one packet are answered in order; the same operation twice has one answer.
#[test]
fn requests_on_top_of_each_other_are_answered_in_order() {
    let scene = Scene::new();
    let worker = scene.owner("w", Role::Worker);
    let (id, incarnation) = worker.identity();
    let command = r#"{"collect":{"limit":5}}"#;
    let command = format!(r#"{{"op":"{id}.{incarnation}.1","command":{command}}}"#);
    let collect = format!(r#"{{"epoch":"{}","ask":{{"command":{command}}}}}"#, genesis().epoch);
    let bodies = [gauges(), collect.clone(), collect, gauges()];
    let all: String = bodies.iter().map(|body| head(body.len()) + body).collect();
    let all = all + "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut stream = connect(&scene);
    stream.write_all(all.as_bytes()).unwrap();
    let answer = rest(&mut stream);
    let answers: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(answers.len(), 5, "{answer}");
    assert!(answers.iter().all(|it| it.starts_with("200")), "{answer}");
    for (answer, expected) in
        answers.iter().zip(["gauges", "collected", "collected", "gauges", "ok"])
    {
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
    assert_eq!(
        worker.ask(Command::Collect { limit: 5 }),
        Ok(Ok(Outcome::Collected { objects: 0, more: false }))
    );
}

/// A view without what time alone changes.
fn without_ages(body: &str) -> String {
    let parts = body.split("\"age_seconds\":");
    parts.map(|part| part.trim_start_matches(|it: char| it.is_ascii_digit())).collect()
}

/// What is no request, in many ways: each is refused or closed, none is a failure of the service,
/// and all that was there is there as before.
#[test]
fn whatever_is_no_request_changes_nothing() {
    let scene = Scene::with(ServiceOptions { body_bytes: 10_000, ..hasty() });
    let worker = worker(&scene);
    let (pin, _) = prepare(&worker, 1, 2);
    let before = held(&scene);
    let (epoch, whole) = (genesis().epoch, gauges());
    let ask = |ask: &str| format!(r#"{{"epoch":"{epoch}","ask":{ask}}}"#);
    let (id, incarnation) = worker.identity();
    let command = |command: &str| {
        ask(&format!(r#"{{"command":{{"op":"{id}.{incarnation}.9","command":{command}}}}}"#))
    };
    let release = format!(r#"{{"release":{{"pin":"{pin}"}}}}"#);
    let bodies = [
        whole[..whole.len() - 1].to_string(),
        ask(r#"{"query":NaN}"#),
        ask(r#"{"query":"gauges","query":"gauges"}"#),
        format!(r#"{{"epoch":"{epoch}","epoch":"{epoch}","ask":{{"query":"gauges"}}}}"#),
        format!(r#"{{"epoch":"{epoch}","ask":{{"query":"gauges"}},"more":1}}"#),
        ask(&("[".repeat(4000) + &"]".repeat(4000))),
        ask(&format!("{}1{}", r#"{"list":["#.repeat(800), "]}".repeat(800))),
        command(r#"{"collect":{"limit":-1}}"#),
        command(r#"{"collect":{"limit":1e3}}"#),
        command(r#"{"collect":{"limit":4294967296}}"#),
        command(r#"{"collect":{"limit":5,"limit":6}}"#),
        command(r#"{"release":{"pin":"x"}}"#),
        command(&release.replace("}}", r#","pin":""}}"#)),
        command(&release.to_uppercase()),
        command(r#"{"prepare":{"attempt":"","endpoint":"","digest":"","shape":[],"shards":[]}}"#),
        ask(r#"{"list":{}}"#),
        ask("null"),
        format!("{whole}{whole}"),
        "\u{feff}".to_string() + &whole,
    ];
    for body in &bodies {
        scene.call(body).is_problem(400, "malformed");
    }
    thread::scope(|scope| {
        for (bytes, expected) in requests(&whole) {
            let scene = &scene;
            scope.spawn(move || {
                let answer = raw(scene, &bytes);
                let said = if answer.is_empty() { 0 } else { status(&answer) };
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(150)]);
                assert!(expected.contains(&said), "{}: {answer:?}", shown.escape_debug());
            });
        }
    });
    assert_eq!(held(&scene), before, "nothing was done");
    end(&worker, pin, Evidence::QuiescedFailure, None);
}

/// The same in postcard: cut anywhere, with more behind it, or other bytes altogether.
#[test]
fn whatever_is_no_postcard_changes_nothing() {
    let scene = Scene::with(hasty());
    let worker = worker(&scene);
    let before = held(&scene);
    let (owner, incarnation) = worker.identity();
    let op = OpId { owner, incarnation, sequence: 1 };
    let ask = Ask::from(Request::Command(op, Command::Collect { limit: 5 }));
    let encoding = Encoding::Postcard;
    let whole = encoding.encode(&Call { epoch: genesis().epoch, ask }).unwrap();
    let huge = [&whole[..16], &[2], &[0xff; 9], &[1]].concat();
    let mut wrong: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    wrong.extend([[&whole[..], b"1"].concat(), huge, gauges().into_bytes(), vec![0xff; 4096]]);
    for body in wrong {
        let (kind, length) = (encoding.content_type(), body.len());
        let head = format!(
            "POST /v1/call HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        let answer = raw(&scene, &[head.as_bytes(), &body].concat());
        assert!(status(&answer) == 400 && answer.contains("malformed"), "{body:?}: {answer}");
    }
    assert_eq!(held(&scene), before, "nothing was done");
    serve(&worker, 0..3);
}

/// Bytes, and what may be answered to them: a status, or 0 for none.
fn requests(body: &str) -> Vec<(Vec<u8>, &'static [u16])> {
    let call = |lines: &str, body: &str| {
        let text = format!("POST /v1/call HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n\r\n{body}");
        text.into_bytes()
    };
    let json = "content-type: application/json\r\n";
    let chunked = format!("{json}transfer-encoding: chunked");
    let mut invalid = call(&format!("{json}content-length: {}", body.len() + 2), body);
    invalid.splice(invalid.len() - 1.., [0xc3, 0x28, b'}']);
    let endless = format!("400\r\n{}\r\n", "a".repeat(1024)).repeat(20);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes();
    let odd = |method: &str| {
        format!("{method} /v1/call HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
            .into_bytes()
    };
    vec![
        // The length is a lie: too long, too short, two of them, none, or nonsense.
        (call(&format!("{json}content-length: {}", body.len() + 9), body), &[504]),
        (call(&format!("{json}content-length: {}", body.len() - 9), body), &[400]),
        (call(&format!("{json}content-length: 5\r\ncontent-length: 6"), body), &[400]),
        (call(&format!("{json}content-length: -5"), body), &[400]),
        (call(&format!("{json}content-length: 99999999999999999999999"), body), &[400, 413, 431]),
        (call(&format!("{json}content-length: 18446744073709551615"), body), &[400, 413, 431]),
        (call(&format!("{json}content-length: 10001"), body), &[413]),
        (call(json.trim_end(), body), &[400]),
        // Chunks: endless, broken, and together with a length.
        (call(&chunked, &endless), &[413]),
        (call(&chunked, "zz\r\nabc\r\n0\r\n\r\n"), &[0, 400]),
        (call(&chunked, "ffffffffffffffff\r\nabc"), &[400, 413, 504]),
        (call(&chunked, "5\r\nabc"), &[504]),
        (call(&format!("{chunked}\r\ncontent-length: 5"), "0\r\n\r\n"), &[0, 400]),
        (invalid, &[400]),
        (
            call(&format!("content-type: text/plain\r\ncontent-length: {}", body.len()), body),
            &[415],
        ),
        (call(&format!("content-length: {}", body.len()), body), &[415]),
        // Other methods, paths and heads.
        (odd("PUT"), &[405]),
        (odd("DELETE"), &[405]),
        (odd("BREW"), &[405]),
        (odd("OPTIONS"), &[405]),
        (odd("CONNECT"), &[400, 404, 405]),
        (odd("post"), &[405]),
        (odd("P\u{1}ST"), &[0, 400]),
        (get("/v1/../v1/job/.."), &[404]),
        (get("/v1/checkpoints/%00"), &[400]),
        (get("/v1/checkpoints/%ff"), &[400]),
        (get("/v1/checkpoints/99999999999999999999"), &[400]),
        (get("/v1/work?after=-1"), &[400]),
        (get("/v1/work?wait_seconds=1e9"), &[400]),
        (get("/\u{0}"), &[0, 400]),
        (get(&format!("/{}", "a".repeat(100_000))), &[0, 400, 414, 431]),
        (call(&format!("x: {}", "a".repeat(1_000_000)), ""), &[0, 400, 431]),
        (call(&"x: y\r\n".repeat(5000), ""), &[0, 400, 431]),
        (b"GET /v1/job\r\n\r\n".to_vec(), &[0, 400]),
        (b"GET /v1/job HTTP/1.1\r\n\r\n".to_vec(), &[400, 401]),
        (b"GET /v1/job HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_vec(), &[401]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[0, 400, 505]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[0, 400]),
        (vec![0; 100_000], &[0, 400, 431]),
        (b"\r\n".repeat(50_000), &[0, 400, 431]),
        (Vec::new(), &[0]),
    ]
}
