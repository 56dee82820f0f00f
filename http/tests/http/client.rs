//! Clients whose coordinator goes away, comes back, or is another one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::StartId;
use pinfold_core::outcome::{Evidence, Outcome, Rejection};
use pinfold_core::policy::Policy;
use pinfold_host::owner::{Owner, OwnerError};
use pinfold_http::client::{Client, ClientError, ClientOptions};
use pinfold_http::encoding::Encoding;
use pinfold_http::problem::Code;
use pinfold_http::service::{ServiceOptions, Token};

use crate::scene::{Scene, end, genesis, prepare};

fn impatient() -> ClientOptions {
    let give_up_after = Duration::from_millis(300);
    ClientOptions { give_up_after, ..ClientOptions::default() }
}

#[test]
fn an_owner_asks_over_http_as_it_asks_a_node() {
    let scene = Scene::new();
    let worker = scene.owner("w", Role::Worker);
    let (pin, _) = prepare(&worker, 1, 2);
    let answers = worker
        .ask_all(vec![
            Command::Settle { pin, shard: None, evidence: Evidence::QuiescedSuccess },
            Command::Publish { pin, turn: None },
            Command::Release { pin },
            Command::Release { pin },
            Command::Collect { limit: 1 },
        ])
        .unwrap();
    assert!(answers[..3].iter().all(|it| matches!(it, Some(Ok(_)))), "{answers:?}");
    assert!(matches!(answers[3..], [Some(Err(_)), None]), "{answers:?}");
}

/// The coordinator is restarted below a client that never hears of it.
#[test]
fn a_restart_is_waited_for() {
    let mut scene = Scene::new();
    let worker = scene.owner("w", Role::Worker);
    let (pin, _) = prepare(&worker, 1, 2);
    scene.restart();
    end(&worker, pin, Evidence::QuiescedFailure, None);
    let collected = worker.ask(Command::Collect { limit: 9 }).unwrap();
    assert_eq!(collected, Ok(Outcome::Collected { objects: 2, more: false }));
}

/// While nobody answers, a command keeps its operation, and is answered once through another
/// client.
#[test]
fn what_was_not_answered_is_asked_again_under_its_operation() {
    let mut scene = Scene::new();
    let client = Client::connect(&scene.url(), impatient()).unwrap();
    let start = StartId::of_name("w");
    let worker = Owner::register(client.clone(), "w", Role::Worker, start).unwrap();
    assert_eq!(client.trouble(), None);
    let url = scene.url();
    scene.stop();
    let gone = worker.ask(Command::Collect { limit: 9 });
    assert!(matches!(gone, Err(OwnerError::Gone(_))), "{gone:?}");
    let trouble = client.trouble().unwrap();
    assert!(trouble.starts_with(&format!("no answer from {url}")), "{trouble}");
    let [(op, _)] = worker.unanswered()[..] else { panic!() };
    scene.start();
    worker.reconnect(scene.client()).unwrap();
    let collected = Ok(Outcome::Collected { objects: 0, more: false });
    assert_eq!(worker.send(op), Ok(collected));
}

/// A proxy that lets a request through and loses its answer: the retry has the first answer.
#[test]
fn a_lost_answer_is_asked_for_again() {
    Encoding::ALL.into_iter().for_each(asked_again);
}

fn asked_again(encoding: Encoding) {
    let scene = Scene::new();
    let to = scene.service.as_ref().unwrap().address();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            // The third connection's answer is lost: after the job and the registration.
            relay(stream.unwrap(), to, number % 3 != 2);
        }
    });
    let options = ClientOptions { encoding, ..ClientOptions::default() };
    let client = Client::connect(&url, options).unwrap();
    let worker = Owner::register(client, "w", Role::Worker, StartId::of_name("w")).unwrap();
    let pins: Vec<_> = (1..=6).map(|number| prepare(&worker, number, 1)).collect();
    let mut generations: Vec<_> = pins.iter().map(|it| it.1.generation.0).collect();
    generations.dedup();
    assert_eq!(generations, [1, 2, 3, 4, 5, 6], "each was decided once");
    let commands = scene.get("/metrics").body;
    assert!(!commands.contains(r#"verb="prepare",result="ok"} 6"#), "some came twice: {commands}");
}

/// Carries one request, and its answer where it is not to be lost.
fn relay(mut from: TcpStream, to: std::net::SocketAddr, answers: bool) {
    let mut buffer = vec![0; 1 << 16];
    let mut request = Vec::new();
    let mut to = TcpStream::connect(to).unwrap();
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        request.extend_from_slice(&buffer[..read]);
        if read == 0 || is_whole(&request) {
            break;
        }
    }
    to.write_all(&request).unwrap();
    let read = to.read(&mut buffer).unwrap_or(0);
    if answers {
        // Only one request goes over each connection.
        let answer = &buffer[..read];
        let line = answer.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for part in [&answer[..line], b"connection: close\r\n", &answer[line..]] {
            from.write_all(part).unwrap();
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|it| it == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| request.len() - end - 4 >= length.trim().parse().unwrap_or(0))
}

#[test]
fn a_client_says_why_it_is_not_answered() {
    let token = Some(Token::new(&"k".repeat(32)).unwrap());
    let scene = Scene::with(ServiceOptions { token, ..ServiceOptions::default() });
    match Client::connect(&scene.url(), impatient()) {
        Err(ClientError::Problem(problem)) => assert_eq!(problem.code, Code::Unauthorized),
        other => panic!("{other:?}"),
    }
    for url in ["", "here", "ftp://localhost"] {
        let refused = Client::connect(url, impatient());
        assert!(matches!(refused, Err(ClientError::Url { .. })), "{url}: {refused:?}");
    }
    let nobody = Client::connect("http://127.0.0.1:1", impatient()).unwrap_err().to_string();
    assert!(nobody.contains("127.0.0.1:1") && nobody.contains("refused"), "{nobody}");
}

/// A worker that means another job, or counts on another policy, is refused before it has done
/// anything; one that runs goes on under a new policy (protocol 3).
#[test]
fn another_namespace_or_policy_is_refused() {
    let scene = Scene::new();
    let meaning = |name: &str| {
        let namespace = Some(name.parse().unwrap());
        Client::connect(&scene.url(), ClientOptions { namespace, ..ClientOptions::default() })
    };
    let other = meaning("another").unwrap_err();
    let said = other.to_string();
    assert!(said.contains("serves the job served, and another is meant"), "{said}");
    match other {
        ClientError::OtherNamespace { expected, found, .. } => {
            assert_eq!((expected, found), ("another".parse().unwrap(), genesis().namespace));
        }
        other => panic!("{other:?}"),
    }
    let expecting = |name: &str, policy: Policy| {
        let start = StartId::of_name(name);
        let client = meaning("served").unwrap();
        Owner::register_expecting(client, name, Role::Worker, start, policy)
    };
    let policy = genesis().policy;
    let first = expecting("w1", policy).unwrap();
    let turns = policy.turns + 1;
    let mismatch = OwnerError::Refused(Rejection::PolicyMismatch);
    assert_eq!(expecting("w2", Policy { turns, ..policy }).unwrap_err(), mismatch);
    // The operator of the genesis counts, too.
    let owners = || scene.get("/v1/job").json()["totals"]["owners"].clone();
    assert_eq!(owners(), 2, "who is refused leaves nothing behind");

    let operator = scene.owner("operator", Role::Operator);
    let policy = Policy { turns, ..policy };
    operator.ask(Command::Configure { policy, limits: genesis().limits }).unwrap().unwrap();
    prepare(&first, 1, 1);
    assert_eq!(expecting("w2", genesis().policy).unwrap_err(), mismatch);
    prepare(&expecting("w2", policy).unwrap(), 2, 1);
    assert_eq!(owners(), 3);
}

/// Whoever answers at an address, but as no coordinator does, is not believed.
#[test]
fn an_answer_that_cannot_be_read_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    let refused = Client::connect(&url, impatient()).unwrap_err().to_string();
    assert!(refused.contains("cannot be read"), "{refused}");
}

#[test]
fn another_life_of_the_job_is_told_from_this_one() {
    let mut scene = Scene::new();
    let client = scene.client();
    let worker = scene.owner("w", Role::Worker);
    scene.stop();
    scene.start_another_life();
    assert_eq!(client.ask(&Request::Query(Query::Job)).unwrap(), Reply::WrongEpoch);
    let gone = worker.ask_all(vec![Command::Collect { limit: 1 }; 2]);
    assert!(matches!(gone, Err(OwnerError::Gone(_))), "it decides nothing here: {gone:?}");
    assert_eq!(worker.reconnect(scene.client()), Err(OwnerError::OtherJob));
    let [(op, _), (next, _)] = worker.unanswered()[..] else { panic!("they are kept") };
    scene.restart();
    worker.reconnect(scene.client()).unwrap();
    for op in [op, next] {
        assert_eq!(worker.send(op), Ok(Ok(Outcome::Collected { objects: 0, more: false })));
    }
}
