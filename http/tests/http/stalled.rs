//! A disk that hangs: who waits for it is told in time, and nobody else waits for it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pinfold_core::engine::{Config, Engine};
use pinfold_host::journal::{AppendError, Journal};
use pinfold_host::node::Node;
use pinfold_http::service::{Service, ServiceOptions};
use serde_json::json;

use crate::scene::{Scene, genesis};

/// Whether the disk hangs.
#[derive(Default)]
struct Hangs(Mutex<bool>, Condvar);

impl Hangs {
    fn set(&self, hangs: bool) {
        *self.0.lock().unwrap() = hangs;
        self.1.notify_all();
    }
}

/// A journal in memory whose syncs hang while its disk does.
struct Hanging(Arc<Hangs>);

impl Journal for Hanging {
    fn append(&mut self, _: &[u8]) -> Result<(), AppendError> {
        let hangs = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(hangs, |hangs| *hangs).unwrap());
        Ok(())
    }
}

fn register(name: &str) -> String {
    let id = pinfold_core::id::OwnerId::of_name(name).to_string();
    let ask = json!({"register": {
        "owner": id, "role": "worker", "after": 0, "start": id, "version": 1,
    }});
    json!({"epoch": genesis().epoch.to_string(), "ask": ask}).to_string()
}

/// A lone request whose sync hangs is answered in time that nobody knows what became of it, the
/// coordinator says meanwhile that it runs, and goes on with its disk.
#[test]
fn a_disk_that_hangs_is_said_in_time() {
    let hangs = Arc::new(Hangs::default());
    let engine = Engine::create(Config::default(), genesis()).unwrap();
    let journal = Box::new(Hanging(Arc::clone(&hangs)));
    let (node, effects) = Node::with_journal(engine, journal).unwrap();
    let answer_within = Duration::from_millis(300);
    let options = ServiceOptions { answer_within, ..ServiceOptions::default() };
    let service = Service::start(node, effects, options).unwrap();
    let scene = Scene::around(service);
    assert_eq!(scene.call(&register("w1")).status, 200);
    hangs.set(true);
    std::thread::scope(|scope| {
        let lone = scope.spawn(|| scene.call(&register("w2")));
        let runs = scope.spawn(|| scene.get("/healthz"));
        let lone = lone.join();
        let runs = runs.join();
        hangs.set(false);
        lone.unwrap().is_problem(504, "timed_out");
        assert_eq!(runs.unwrap().status, 200);
    });
    assert_eq!(scene.call(&register("w2")).status, 200);
}
