//! The end of a job: whatever happened in it, everything can go.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Command, Role};
use pinfold_core::engine::{Query, Reply, Request};
use pinfold_core::id::{Incarnation, OwnerId, StartId};
use pinfold_host::collector::Collector;
use pinfold_host::file_store::FileStore;
use pinfold_host::store::ObjectStore;

use super::worker::Place;

/// Fences every owner that is known, forgets every conversation, and collects until nothing is
/// left: no record, no pin, no object.
pub(crate) fn drain(place: &Place<'_>, store: &Arc<FileStore>) {
    let operator = place.owner("operator", Role::Operator, StartId::of_name("the end"));
    let client = place.client();
    let all = |list: &str| {
        let page = client.view(&format!("/v1/{list}?limit=10000")).unwrap();
        assert!(page["next"].is_null(), "one page has all");
        page
    };
    let owners = all("owners");
    for owner in owners["items"].as_array().unwrap() {
        let id: OwnerId = owner["owner"].as_str().unwrap().parse().unwrap();
        let incarnation = owner["incarnation"].as_u64().unwrap();
        if id != operator.identity().0 {
            let incarnation = Incarnation(incarnation);
            operator.ask(Command::Fence { owner: id, incarnation }).unwrap().unwrap();
        }
    }
    let conversations = all("conversations");
    for conversation in conversations["items"].as_array().unwrap() {
        let conversation = conversation["conversation"].as_str().unwrap().parse().unwrap();
        operator.ask(Command::Forget { conversation }).unwrap().unwrap();
    }
    let owner = place.owner("the last collector", Role::Worker, StartId::of_name("the end"));
    let effects = client.effects(&owner).unwrap();
    let mut collector = Collector::new(
        owner,
        effects,
        Arc::clone(store) as Arc<dyn ObjectStore>,
        place.job.clone(),
    );
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let round = collector.round().unwrap();
        let gauges = client.ask(&Request::Query(Query::Gauges));
        let Ok(Reply::Gauges(gauges)) = gauges else { panic!("{gauges:?}") };
        if (gauges.checkpoints, gauges.pins, gauges.turns) == (0, 0, 0) {
            break;
        }
        assert!(Instant::now() < until, "something stays: {round:?}, {gauges:?}");
        // Follow-ups are being done, and somebody else may have some of the work.
        thread::sleep(Duration::from_millis(2));
    }
    let mut left = Vec::new();
    store.list(&mut |key, _| left.push(key.to_owned())).unwrap();
    assert_eq!(left, [""; 0], "nobody counts these");
}
