//! Lists in pages and views of a large job: complete, in order, and never at the cost of those who
//! ask for something else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::{ConversationId, ObjectId, ShardIndex, TurnId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_host::owner::Owner;
use serde_json::{Value, json};

use crate::scene::{Scene, end, preparation, prepare};

/// Checkpoints of as many conversations; each third is still pinned, and each of these in doubt
/// where it is even.
fn filled(scene: &Scene, owner: &Owner, checkpoints: u32) {
    for number in 1..=checkpoints {
        let (pin, _) = prepare(owner, number.into(), 2);
        let turn = TurnKey {
            conversation: ConversationId::from_u128(number.into()),
            turn: TurnId::from_u128(1),
        };
        if number % 3 != 0 {
            end(owner, pin, Evidence::QuiescedSuccess, Some(turn));
        } else if number % 2 == 0 {
            let evidence = Evidence::InDoubt;
            owner.ask(Command::Settle { pin, shard: None, evidence }).unwrap().unwrap();
        }
    }
    assert_eq!(scene.get("/v1/job").json()["totals"]["checkpoints"], checkpoints);
}

/// The whole of a list, page by page, and how many pages it had.
fn whole(scene: &Scene, list: &str, items: &str, total: u64) -> (Vec<Value>, u32) {
    let (mut all, mut pages, mut path) = (Vec::new(), 0, list.to_string());
    loop {
        let page = scene.get(&path).json();
        assert_eq!(page["total"], total, "{path}: {page}");
        all.extend(page[items].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = page["next"].as_str() else { return (all, pages) };
        path = format!("{list}&after={next}");
    }
}

#[test]
fn lists_are_complete_page_by_page() {
    let scene = Scene::new();
    let owner = scene.owner("w", Role::Worker);
    filled(&scene, &owner, 20);
    let (checkpoints, pages) = whole(&scene, "/v1/checkpoints?limit=3", "items", 20);
    let found: Vec<u64> = checkpoints.iter().map(|it| it["checkpoint"].as_u64().unwrap()).collect();
    assert_eq!((found, pages), ((1..=20).collect(), 7));
    assert_eq!(checkpoints[5]["blockers"], json!(["pinned", "in flight", "in doubt"]));
    let (conversations, pages) = whole(&scene, "/v1/conversations?limit=7", "items", 14);
    let ids: Vec<_> = conversations.iter().map(|it| it["conversation"].as_str().unwrap()).collect();
    let expected = (1..=20_u128).filter(|number| number % 3 != 0);
    let expected: Vec<_> =
        expected.map(|number| ConversationId::from_u128(number).to_string()).collect();
    assert_eq!((ids, pages), (expected.iter().map(String::as_str).collect(), 2));
    let (pins, _) = whole(&scene, "/v1/pins?by=id&limit=4", "pins", 6);
    let held: Vec<_> = pins.iter().map(|it| it["checkpoint"].as_u64().unwrap()).collect();
    assert_eq!(held, [3, 6, 9, 12, 15, 18]);
    let (owners, _) = whole(&scene, "/v1/owners?limit=1", "items", 2);
    assert_eq!(owners.iter().map(|it| it["bytes_pinned"].as_u64().unwrap()).sum::<u64>(), 6000);

    let oldest = scene.get("/v1/pins?limit=2").json();
    assert_eq!((&oldest["total"], &oldest["in_doubt"]["total"]), (&json!(6), &json!(3)));
    let told = [&oldest["pins"], &oldest["in_doubt"]["first"]];
    assert_eq!(told.map(|list| list.as_array().unwrap().len()), [2, 2]);
    let glance = scene.get("/v1/inspection?limit=2").json();
    assert_eq!(glance["stuck"]["total"], 3, "{glance}");
    assert_eq!(glance["stuck"]["first"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&glance["conversations"]["total"], &glance["quarantined"]["total"]),
        (&json!(14), &json!(0))
    );
    let retained =
        glance["blockers"].as_array().unwrap().iter().find(|it| it["name"] == "retained");
    assert_eq!(retained.unwrap()["checkpoints"], 14);

    for path in [
        "/v1/checkpoints?limit=0",
        "/v1/checkpoints?limit=10001",
        "/v1/checkpoints?after=x",
        "/v1/conversations?after=-1",
        "/v1/owners?after=1",
        "/v1/pins?by=size",
        "/v1/pins?after=1",
        "/v1/pins?by=id&after=1",
        "/v1/inspection?limit=1001",
        "/v1/inspection?page=1",
    ] {
        scene.get(path).is_problem(400, "malformed");
    }
}

/// A conversation's turns come in the order of their publication, whatever their names.
#[test]
fn a_ledger_is_in_its_order() {
    let scene = Scene::new();
    let owner = scene.owner("w", Role::Worker);
    let conversation = ConversationId::from_u128(1);
    for (number, turn) in [(1, 9_u128), (2, 3), (3, 7)] {
        let (pin, _) = prepare(&owner, number, 2);
        let turn = TurnKey { conversation, turn: TurnId::from_u128(turn) };
        end(&owner, pin, Evidence::QuiescedSuccess, Some(turn));
    }
    let ledger = scene.get(&format!("/v1/conversations/{conversation}")).json();
    let checkpoints: Vec<_> =
        ledger["turns"].as_array().unwrap().iter().map(|it| it["checkpoint"].as_u64()).collect();
    assert_eq!(checkpoints, [Some(1), Some(2), Some(3)], "{ledger}");
}

/// More rows than one look is for: what is seen in many looks is the same.
#[test]
fn a_large_job_is_seen_in_many_looks() {
    let scene = Scene::new();
    let owner = scene.owner("w", Role::Worker);
    const CHECKPOINTS: u32 = 5000;
    let commands = (1..=CHECKPOINTS).map(|number| preparation(number.into(), 1));
    for answer in owner.ask_all(commands.collect()).unwrap() {
        answer.unwrap().unwrap();
    }
    let glance = scene.get("/v1/inspection").json();
    assert_eq!(glance["totals"]["pins"], CHECKPOINTS);
    for (place, name) in ["pinned", "in flight"].into_iter().enumerate() {
        let count = &glance["blockers"][place];
        assert_eq!((&count["name"], &count["checkpoints"]), (&json!(name), &json!(CHECKPOINTS)));
    }
    let (checkpoints, pages) = whole(&scene, "/v1/checkpoints?limit=3000", "items", 5000);
    assert_eq!((checkpoints.len(), pages), (5000, 2));
    let why = scene.get("/v1/checkpoints/4999").json();
    assert_eq!(why["checkpoint"], 4999, "{why}");
}

/// What is there all the time is in a list that is read page by page, whatever goes meanwhile, and
/// though all of a page goes.
#[test]
fn a_page_from_which_something_goes_is_not_the_last() {
    const GOING: u128 = 200;
    let scene = Scene::new();
    let owner = scene.owner("w", Role::Worker);
    let going: Vec<_> = (1..=GOING).map(|number| prepare(&owner, number, 1)).collect();
    let (_, stays) = prepare(&owner, GOING + 1, 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for (pin, checkpoint) in going {
                end(&owner, pin, Evidence::QuiescedFailure, None);
                owner.ask(Command::Collect { limit: 1 }).unwrap().unwrap();
                let object = ObjectId { shard: ShardIndex(0), index: 0 };
                let outcomes = vec![(object, DeleteOutcome::Gone)];
                owner.ask(Command::Deleted { checkpoint, outcomes }).unwrap().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let (mut last, mut path) = (0, "/v1/checkpoints?limit=2".to_string());
            loop {
                let page = scene.get(&path).json();
                if let Some(item) = page["items"].as_array().unwrap().last() {
                    last = item["checkpoint"].as_u64().unwrap();
                }
                let Some(next) = page["next"].as_str() else { break };
                path = format!("/v1/checkpoints?limit=2&after={next}");
            }
            assert_eq!(last, stays.generation.0, "the list ends before what is there");
        }
    });
}
