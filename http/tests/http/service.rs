//! What the service answers, refuses and lets nobody do.

use std::collections::BTreeSet;
use std::time::Duration;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{ConversationId, OpId, TurnId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Outcome, TurnKey};
use pinfold_http::problem::Code;
use pinfold_http::service::{Service, ServiceError, ServiceOptions, Token};

use crate::scene::{Scene, end, genesis, prepare};

fn turn(number: u128) -> TurnKey {
    let conversation = ConversationId::of_name("c");
    TurnKey { conversation, turn: TurnId::from_u128(number) }
}

#[test]
fn the_job_is_told_before_anything_is_asked() {
    let scene = Scene::new();
    let job = scene.get("/v1/job").json();
    assert_eq!(job["namespace"], "served");
    assert_eq!(job["epoch"], genesis().epoch.to_string());
    assert_eq!(job["policy"]["turns"], genesis().policy.turns);
    assert_eq!(scene.get("/healthz").body, "ok\n");
    assert_eq!(scene.get("/readyz").body, "ready\n");
}

/// The body of a call is what a log has of it.
#[test]
fn a_call_is_answered_as_data() {
    let scene = Scene::new();
    let (epoch, id) = (genesis().epoch, "0".repeat(31) + "a");
    let register = format!(
        r#"{{"epoch":"{epoch}","ask":{{"register":{{"owner":"{id}","role":"worker","after":0,
            "start":"{id}","version":1}}}}}}"#
    );
    let answer = scene.call(&register);
    assert_eq!((answer.status, &*answer.body), (200, r#"{"ok":{"registered":{"incarnation":1}}}"#));
    let collect = r#"{"collect":{"limit":5}}"#;
    let command = |op: &str| {
        format!(r#"{{"epoch":"{epoch}","ask":{{"command":{{"op":"{op}","command":{collect}}}}}}}"#)
    };
    let collected = r#"{"ok":{"collected":{"objects":0,"more":false}}}"#;
    for _ in 0..2 {
        assert_eq!(scene.call(&command(&format!("{id}.1.1"))).body, collected);
    }
    let refused = scene.call(&command(&format!("{id}.9.1")));
    assert_eq!((refused.status, &*refused.body), (200, r#"{"refused":"unknown_incarnation"}"#));
    let other = r#"{"epoch":"0000000000000000000000000000000e","ask":{"query":"job"}}"#;
    assert_eq!(scene.call(other).body, r#""wrong_epoch""#);
}

/// Who collects is told what to delete with the answer, also when it asks again; until it reports.
#[test]
fn delete_work_comes_along_with_an_answer() {
    let scene = Scene::new();
    let worker = scene.owner("w", Role::Worker);
    let (pin, checkpoint) = prepare(&worker, 1, 2);
    end(&worker, pin, Evidence::QuiescedFailure, None);
    let (owner, incarnation) = worker.identity();
    let op = OpId { owner, incarnation, sequence: 9 };
    let collect = Request::Command(op, Command::Collect { limit: 9 });
    let collected = Reply::Command(Ok(Outcome::Collected { objects: 2, more: false }));
    let client = scene.client();
    for _ in 0..2 {
        let (reply, work) = client.ask_with_work(&collect).unwrap();
        assert_eq!(reply, collected);
        let [item] = &work[..] else { panic!("{work:?}") };
        assert_eq!((item.by, item.checkpoint, item.objects.len()), (op, checkpoint, 2));
    }
    let report = client.ask_with_work(&collect).unwrap().1[0].report(|_| DeleteOutcome::Gone);
    let op = OpId { sequence: 10, ..op };
    let (reply, work) = client.ask_with_work(&Request::Command(op, report)).unwrap();
    assert_eq!(reply, Reply::Command(Ok(Outcome::Deleted { left: 0 })));
    assert_eq!(work, []);
    assert_eq!(client.ask_with_work(&collect).unwrap(), (collected, Vec::new()));
    // The same by hand.
    let query = format!(r#"{{"epoch":"{}","ask":{{"query":"gauges"}}}}"#, genesis().epoch);
    let head = "POST /v1/call?work=true HTTP/1.1\r\ncontent-type: application/json";
    let answer = scene.send(head, &query).json();
    assert_eq!(answer["work"], serde_json::json!([]));
    assert_eq!(answer["answer"]["gauges"]["checkpoints"], 0);
    let head = "POST /v1/call?works=true HTTP/1.1\r\ncontent-type: application/json";
    scene.send(head, &query).is_problem(400, "malformed");
}

#[test]
fn what_cannot_be_read_is_refused_whole_and_says_where() {
    let scene = Scene::with(ServiceOptions { body_bytes: 1000, ..ServiceOptions::default() });
    let bad = scene.call(r#"{"epoch":"x","ask":{"query":"job"}}"#);
    bad.is_problem(400, "malformed");
    assert!(bad.json()["detail"].as_str().unwrap().starts_with("epoch: "), "{bad:?}");
    for body in ["", "{", "[]", "\u{0}", r#"{"epoch":"0000000000000000000000000000000e","ask":{}}"#]
    {
        scene.call(body).is_problem(400, "malformed");
    }
    let behind = format!(r#"{{"epoch":"{}","ask":{{"query":"job"}}}} more"#, genesis().epoch);
    scene.call(&behind).is_problem(400, "malformed");
    scene.call(&" ".repeat(1001)).is_problem(413, "too_large");
    let plain = scene.send("POST /v1/call HTTP/1.1\r\ncontent-type: text/plain", "{}");
    plain.is_problem(415, "wrong_content_type");
    scene.get("/v1/call").is_problem(405, "wrong_method");
    scene.get("/v2").is_problem(404, "not_found");
    scene.get("/v1/checkpoints/x").is_problem(400, "malformed");
    scene.get("/v1/checkpoints/7").is_problem(404, "not_found");
    scene.get("/v1/endpoints/x").is_problem(400, "malformed");
    scene.get("/v1/work?owner=00").is_problem(400, "malformed");
    scene.get("/v1/work?who=me").is_problem(400, "malformed");
    let unknown = format!("/v1/conversations/{}", ConversationId::of_name("none"));
    scene.get(&unknown).is_problem(404, "not_found");
    assert_eq!(scene.get("/readyz").status, 200, "it is none the worse for all that");
}

#[test]
fn nobody_asks_without_the_token() {
    let secret = "0123456789abcdef0123456789abcdef";
    let token = Some(Token::new(secret).unwrap());
    let scene = Scene::with(ServiceOptions { token, ..ServiceOptions::default() });
    for path in ["/v1/job", "/v1/inspection", "/v1/pins", "/v1/owners", "/v1/work", "/metrics"] {
        scene.get(path).is_problem(401, "unauthorized");
        let wrong = format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {}", "0".repeat(32));
        scene.send(&wrong, "").is_problem(401, "unauthorized");
        let right = format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {secret}");
        assert_eq!(scene.send(&right, "").status, 200, "{path}");
    }
    assert_eq!(scene.get("/healthz").status, 200, "who looks after it needs no secret");
    // Without a token, a page of a stranger cannot ask by its own name.
    let open = Scene::new();
    let url = open.url();
    let led = format!("GET {url}/v1/job HTTP/1.1\r\nx: y");
    assert_eq!(open.send(&led, "").status, 200);
    open.send_as("evil.example", "GET /v1/job HTTP/1.1", "").is_problem(401, "unauthorized");
    let dir = tempfile::tempdir().unwrap();
    let (node, effects) = pinfold_host::node::Node::create(dir.path(), genesis()).unwrap();
    let listen = "0.0.0.0:0".parse().unwrap();
    let open = Service::start(node, effects, ServiceOptions { listen, ..Default::default() });
    assert!(matches!(open, Err(ServiceError::Open(_))), "{open:?}");
}

#[test]
fn views_show_what_the_job_holds() {
    let scene = Scene::new();
    let worker = scene.owner("w", Role::Worker);
    let (pin, first) = prepare(&worker, 1, 2);
    end(&worker, pin, Evidence::QuiescedSuccess, Some(turn(1)));
    let (held, second) = prepare(&worker, 2, 2);
    let pins = scene.get("/v1/pins").json();
    assert_eq!(pins["pins"].as_array().unwrap().len(), 1, "{pins}");
    assert_eq!(pins["pins"][0]["pin"], held.to_string());
    assert_eq!(
        (&pins["pins"][0]["purpose"], &pins["pins"][0]["at_least"]),
        (&"save".into(), &false.into())
    );
    let why = scene.get(&format!("/v1/checkpoints/{}", first.generation)).json();
    assert_eq!(
        (&why["state"], &why["blockers"][0]["name"]),
        (&"published".into(), &"retained".into())
    );
    let endpoint = scene.get(&format!("/v1/endpoints/{}", second.endpoint)).json();
    assert_eq!(endpoint["checkpoints"][0]["checkpoint"], 2, "{endpoint}");
    let ledger = scene.get(&format!("/v1/conversations/{}", ConversationId::of_name("c"))).json();
    assert_eq!(ledger["turns"][0]["checkpoint"], 1, "{ledger}");
    let all = scene.get("/v1/checkpoints").json();
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let metrics = scene.get("/metrics").body;
    for expected in [
        "pinfold_checkpoints 2",
        "pinfold_turns 1",
        "pinfold_stored_bytes 2000",
        r#"pinfold_commands_total{verb="prepare",result="ok"} 2"#,
        r#"pinfold_limit{kind="pins"}"#,
        r#"pinfold_answer_seconds_bucket{le="+Inf"} 6"#,
        "pinfold_answer_seconds_count 6",
        r#"pinfold_blocked{kind="retained"} 1"#,
        "# EOF",
    ] {
        assert!(metrics.contains(expected), "{expected}: {metrics}");
    }
}

/// Delete work goes to who asked for it, is outstanding until it is reported, and is waited for.
#[test]
fn delete_work_is_handed_to_its_collector() {
    let scene = Scene::new();
    let (worker, collector) = (scene.owner("w", Role::Worker), scene.owner("c", Role::Worker));
    let (id, incarnation) = collector.identity();
    let path = |more: &str| format!("/v1/work?owner={id}&incarnation={incarnation}{more}");
    assert_eq!(scene.get(&path("")).body, r#"{"work":[]}"#);
    let (pin, checkpoint) = prepare(&worker, 1, 2);
    end(&worker, pin, Evidence::QuiescedFailure, None);
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| scene.get(&path("&wait_seconds=20")).json());
        std::thread::sleep(Duration::from_millis(100));
        let collected = collector.ask(Command::Collect { limit: 9 }).unwrap();
        assert_eq!(collected, Ok(Outcome::Collected { objects: 2, more: false }));
        waits.join().unwrap()
    });
    let item = &waited["work"][0];
    assert_eq!(item["checkpoint"], checkpoint.to_string());
    assert_eq!(item["objects"][1]["object"], "0/1");
    assert!(item["objects"][1]["key"].as_str().unwrap().starts_with("served/"), "{item}");
    assert_eq!(scene.get("/v1/work").json()["work"][0]["owner"], id.to_string());
    assert_eq!(scene.get(&path(&format!("&after={}", item["number"]))).body, r#"{"work":[]}"#);
    let object =
        |index| pinfold_core::id::ObjectId { shard: pinfold_core::id::ShardIndex(0), index };
    let outcomes = vec![(object(0), DeleteOutcome::Gone)];
    collector.ask(Command::Deleted { checkpoint, outcomes }).unwrap().unwrap();
    assert_eq!(scene.get("/v1/work").json()["work"][0]["objects"][0]["object"], "0/1");
    let operator = scene.owner("operator", Role::Operator);
    operator.ask(Command::Fence { owner: id, incarnation }).unwrap().unwrap();
    assert_eq!(scene.get("/v1/work").body, r#"{"work":[]}"#);
    // Another one gets what is left.
    let next = scene.owner("n", Role::Worker);
    let collected = next.ask(Command::Collect { limit: 9 }).unwrap();
    assert_eq!(collected, Ok(Outcome::Collected { objects: 1, more: false }));
}

#[test]
fn a_stop_answers_what_is_under_way_and_wakes_who_waits() {
    let mut scene = Scene::new();
    std::thread::scope(|scope| {
        let client = scene.client();
        let waits = scope.spawn(move || client.view("/v1/work?wait_seconds=60").unwrap());
        // By then it waits, also on a slow machine.
        std::thread::sleep(Duration::from_secs(1));
        scene.service.take().unwrap().stop().unwrap();
        assert_eq!(waits.join().unwrap()["work"], serde_json::json!([]));
    });
}

/// Every path that is served is described, every path that is described is served, and the codes
/// are those of the problems.
#[test]
fn the_description_is_of_what_is_served() {
    let scene = Scene::new();
    let described = scene.get("/openapi.json").json();
    assert_eq!(described["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths: BTreeSet<&str> =
        described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let routes = include_str!("../../src/service/routes.rs");
    let served: BTreeSet<&str> = routes
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next())
        .collect();
    assert_eq!(paths, served);
    let id = "0".repeat(32);
    for path in paths {
        let path = path.replace("{generation}", "1").replace("{endpoint}", &id);
        let asked = path.replace("{conversation}", &id);
        let answer = scene.get(&asked);
        let is_served = answer.status == 200 || !answer.body.contains("no path");
        assert!(is_served && answer.status < 500, "{path}: {answer:?}");
    }
    let codes = &described["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let documented: Vec<Code> = serde_json::from_value(codes.clone()).unwrap();
    assert_eq!(documented, Code::ALL);
}

/// Who only connects keeps nobody out for long, and no more than so many connect at once.
#[test]
fn silent_connections_are_bounded() {
    let scene = Scene::with(ServiceOptions { connections: 3, ..ServiceOptions::default() });
    let address = scene.service.as_ref().unwrap().address();
    let silent: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| scene.get("/healthz").status);
        std::thread::sleep(Duration::from_millis(200));
        assert!(!asks.is_finished(), "it waits for one to end");
        drop(silent);
        assert_eq!(asks.join().unwrap(), 200);
    });
}
