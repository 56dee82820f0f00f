//! A service on a folder of its own, and what can be sent to it by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pinfold_core::catalog::{Command, Prepare, Role, Shape, ShardShape};
use pinfold_core::id::{
    AttemptId, CheckpointId, EndpointId, Epoch, ManifestDigest, OwnerId, PinId, ShardIndex, StartId,
};
use pinfold_core::outcome::{Evidence, Outcome, TurnKey};
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_host::node::{Effects, Node};
use pinfold_host::owner::Owner;
use pinfold_http::client::{Client, ClientOptions};
use pinfold_http::service::{Service, ServiceOptions};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Scene {
    pub(crate) dir: TempDir,
    pub(crate) service: Option<Service>,
    /// Where it was, while it is stopped.
    listen: Option<SocketAddr>,
    /// The folders of other lives of the job.
    others: Vec<TempDir>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It is a problem of this code.
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        assert!(self.head.contains("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!((self.status, &problem["code"]), (status, &Value::from(code)), "{self:?}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
}

pub(crate) fn genesis() -> Genesis {
    Genesis {
        namespace: "served".parse().unwrap(),
        epoch: Epoch::of_name("service test"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(ServiceOptions::default())
    }

    pub(crate) fn with(options: ServiceOptions) -> Self {
        Self::of(genesis(), options)
    }

    fn of(genesis: Genesis, options: ServiceOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (node, effects) = Node::create(dir.path(), genesis).unwrap();
        let service = Some(Service::start(node, effects, options).unwrap());
        Self { dir, service, listen: None, others: Vec::new() }
    }

    /// A service whose node is not in a folder.
    pub(crate) fn around(service: Service) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, service: Some(service), listen: None, others: Vec::new() }
    }

    /// A job with this policy.
    pub(crate) fn with_policy(policy: Policy) -> Self {
        Self::of(Genesis { policy, ..genesis() }, ServiceOptions::default())
    }

    /// Ends the service.
    pub(crate) fn stop(&mut self) {
        let service = self.service.take().unwrap();
        self.listen = Some(service.address());
        service.stop().unwrap();
    }

    /// Serves the same data at the same address again.
    pub(crate) fn start(&mut self) {
        let (node, effects, _) = Node::open(self.dir.path()).unwrap();
        self.serve(node, effects);
    }

    /// Another life of the job is served at the same address instead.
    pub(crate) fn start_another_life(&mut self) {
        let dir = tempfile::tempdir().unwrap();
        let job = Genesis { epoch: Epoch::of_name("the next life"), ..genesis() };
        let (node, effects) = Node::create(dir.path(), job).unwrap();
        self.others.push(dir);
        self.serve(node, effects);
    }

    fn serve(&mut self, node: Node, effects: Effects) {
        let listen = self.listen.take().unwrap();
        let options = ServiceOptions { listen, ..ServiceOptions::default() };
        self.service = Some(Service::start(node, effects, options).unwrap());
    }

    pub(crate) fn restart(&mut self) {
        self.stop();
        self.start();
    }

    pub(crate) fn url(&self) -> String {
        self.service.as_ref().unwrap().url()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.url(), ClientOptions::default()).unwrap()
    }

    pub(crate) fn owner(&self, name: &str, role: Role) -> Owner {
        Owner::register(self.client(), name, role, StartId::of_name(name)).unwrap()
    }

    /// Sends a request by hand, its head without the length of the body.
    pub(crate) fn send(&self, head: &str, body: &str) -> Response {
        self.send_as("localhost", head, body)
    }

    /// The same to a service that is called so.
    pub(crate) fn send_as(&self, host: &str, head: &str, body: &str) -> Response {
        let mut stream = TcpStream::connect(self.service.as_ref().unwrap().address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        let text = format!(
            "{head}\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_ascii_lowercase(), body: body.to_string() }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1"), "")
    }

    pub(crate) fn call(&self, body: &str) -> Response {
        self.send("POST /v1/call HTTP/1.1\r\ncontent-type: application/json", body)
    }
}

/// What prepares a checkpoint of one shard.
pub(crate) fn preparation(number: u128, objects: u32) -> Command {
    Command::Prepare(Prepare {
        attempt: AttemptId::from_u128(number),
        endpoint: EndpointId::from_u128(number),
        digest: ManifestDigest::from_bytes([1; 32]),
        shape: Shape::new(&[ShardShape { objects, bytes: 1000 }]).unwrap(),
        shards: vec![ShardIndex(0)],
    })
}

/// Prepares a checkpoint of one shard.
pub(crate) fn prepare(owner: &Owner, number: u128, objects: u32) -> (PinId, CheckpointId) {
    match owner.ask(preparation(number, objects)).unwrap().unwrap() {
        Outcome::Prepared { pin, checkpoint } => (pin, checkpoint),
        other => panic!("{other:?}"),
    }
}

/// Ends a save: settled so, published for a turn where there is one, and released.
pub(crate) fn end(owner: &Owner, pin: PinId, evidence: Evidence, turn: Option<TurnKey>) {
    owner.ask(Command::Settle { pin, shard: None, evidence }).unwrap().unwrap();
    if turn.is_some() {
        owner.ask(Command::Publish { pin, turn }).unwrap().unwrap();
    }
    owner.ask(Command::Release { pin }).unwrap().unwrap();
}
