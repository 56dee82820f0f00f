//! A node, an owner, a small model and a store with moods, for the tests of the runtime.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::catalog::{Blocker, Role};
use pinfold_core::engine::Engine;
use pinfold_core::id::{
    AttemptId, ChainValue, CheckpointId, ConversationId, EndpointId, Epoch, OwnerId,
    RepresentationDigest, ShardIndex, StartId, TurnId,
};
use pinfold_core::layout::{
    Coordinates, Coverage, Group, GroupId, Layout, Member, Necessity, RoleRow, Scope, Sharing,
};
use pinfold_core::manifest::{Manifest, ObjectName};
use pinfold_core::outcome::TurnKey;
use pinfold_core::plan::plan;
use pinfold_core::policy::{Genesis, Limits, Policy};
use pinfold_core::transfer::{Candidate, Ended, LoadRequest, Publication, SaveRequest, Transfer};

use crate::node::{Node, NodeClient};
use crate::owner::Owner;
use crate::runtime::{Freight, Handle, Placed, Runtime, RuntimeOptions};
use crate::store::{DeleteOutcome, GetOutcome, ListError, ObjectStore, Presence, PutOutcome, Why};

/// Long enough that a thread which can go on has gone on.
pub(super) const A_WHILE: Duration = Duration::from_millis(60);

const A_LONG_TIME: Duration = Duration::from_secs(20);
const BLOCK: u32 = 4;
const PAGE_BYTES: u64 = 64;
const STATE_BYTES: u64 = 1000;

/// One job and one worker of it.
pub(super) struct Rig {
    dir: tempfile::TempDir,
    node: Option<Node>,
    pub(super) owner: Arc<Owner>,
    pub(super) store: Arc<Shelf>,
    job: Genesis,
}

impl Rig {
    /// With this W.
    pub(super) fn new(unanswered: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let job = Genesis {
            namespace: "runtime".parse().unwrap(),
            epoch: Epoch::of_name("runtime test"),
            operator: OwnerId::of_name("operator"),
            policy: Policy::default(),
            limits: Limits { unanswered, ..Limits::default() },
        };
        let (node, _effects) = Node::create(dir.path(), job.clone()).unwrap();
        let start = StartId::from_u128(1);
        let owner = Owner::register(node.client(), "worker", Role::Worker, start);
        let (owner, store) = (Arc::new(owner.unwrap()), Arc::default());
        Self { dir, node: Some(node), owner, store, job }
    }

    pub(super) fn runtime(&self, threads: u32, transfers: u32) -> Runtime {
        let options = RuntimeOptions { threads, transfers };
        let (owner, store) = (Arc::clone(&self.owner), Arc::clone(&self.store));
        Runtime::new(owner, store, self.job.clone(), options).unwrap()
    }

    pub(super) fn stop_node(&mut self) {
        self.node.take().unwrap().stop().unwrap();
    }

    pub(super) fn open_node(&mut self) -> NodeClient {
        let (node, _effects, _) = Node::open(self.dir.path()).unwrap();
        let client = node.client();
        self.node = Some(node);
        client
    }

    pub(super) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> T {
        let client = self.node.as_ref().unwrap().client();
        client.inspect(|engine, _| look(engine)).unwrap()
    }

    /// How many records the journal has.
    pub(super) fn records(&self) -> u64 {
        self.look(Engine::position)
    }

    pub(super) fn pins(&self) -> u64 {
        self.look(|engine| engine.catalog().gauges().pins)
    }

    /// What keeps a checkpoint, by name.
    pub(super) fn blockers(&self, checkpoint: CheckpointId) -> Vec<&'static str> {
        let blockers = self.look(move |engine| engine.catalog().blockers(checkpoint));
        let blockers = blockers.map(|found| found.blockers).unwrap_or_default();
        blockers.iter().map(Blocker::name).collect()
    }

    /// Every count of the catalog is its recount.
    pub(super) fn check(&self) {
        self.look(|engine| engine.check()).unwrap();
    }
}

/// How a transfer ended, which must be told before long.
pub(super) fn end_of(handle: &Handle) -> Ended {
    let began = Instant::now();
    loop {
        if let Some(told) = handle.try_wait() {
            return told.unwrap().ended;
        }
        assert!(began.elapsed() < A_LONG_TIME, "no end is told");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The chain of a conversation.
fn chain(conversation: u8, blocks: u8) -> Vec<ChainValue> {
    (1..=blocks).map(|block| ChainValue::new(&[conversation, block]).unwrap()).collect()
}

/// Attention and a state, on so many shards.
fn layout(shards: u16, state_bytes: u64) -> Layout {
    let member = |layer, role: &str, bytes_per_page| Member {
        layer,
        role: role.into(),
        element: "u8".into(),
        bytes_per_page,
        scale_of: None,
    };
    let group = |id, coverage, sharing, members| Group {
        id: GroupId(id),
        shards: (0..shards).map(ShardIndex).collect(),
        coverage,
        sharing,
        scope: Scope::PerShard,
        necessity: Necessity::Required,
        tokens_per_page: BLOCK,
        window_tokens: None,
        members,
    };
    let (attention, state) = (member(0, "kv", PAGE_BYTES), member(1, "state", state_bytes));
    let role =
        |layer, role: &str| RoleRow { layer, role: role.into(), stage: 0, replicated: false };
    let coordinates = |tensor| Coordinates { tensor, ..Coordinates::default() };
    Layout {
        representation: RepresentationDigest::of_name("runtime test"),
        hash_chain: "test-v1".into(),
        tokens_per_block: BLOCK,
        shards: (0..shards).map(coordinates).collect(),
        roles: vec![role(0, "kv"), role(1, "state")],
        groups: vec![
            group(0, Coverage::EveryBlock, Sharing::SharedContent, vec![attention]),
            group(1, Coverage::EndpointOnly, Sharing::EndpointPrivate, vec![state]),
        ],
    }
}

fn planned(layout: &Layout, conversation: u8, blocks: u8) -> Arc<Manifest> {
    let tokens = u64::from(BLOCK) * u64::from(blocks);
    Arc::new(plan(layout, &chain(conversation, blocks), tokens, &[]).unwrap())
}

/// The position of a conversation after so many blocks, on one shard.
pub(super) fn manifest(conversation: u8, blocks: u8) -> Arc<Manifest> {
    planned(&layout(1, STATE_BYTES), conversation, blocks)
}

/// The same for two ranks.
pub(super) fn two_shards(conversation: u8, blocks: u8) -> Arc<Manifest> {
    planned(&layout(2, STATE_BYTES), conversation, blocks)
}

/// The same position with a state of another size.
pub(super) fn other_geometry(conversation: u8, blocks: u8) -> Arc<Manifest> {
    planned(&layout(1, STATE_BYTES + 8), conversation, blocks)
}

pub(super) fn turn(number: u8) -> TurnKey {
    let conversation = ConversationId::from_u128(u128::from(number) + 1);
    TurnKey { conversation, turn: TurnId::from_u128(u128::from(number) + 1) }
}

pub(super) fn save_request(manifest: &Arc<Manifest>, number: u8) -> SaveRequest {
    SaveRequest {
        attempt: AttemptId::from_u128(u128::from(number) + 1),
        manifest: Arc::clone(manifest),
        shards: vec![ShardIndex(0)],
        publication: Publication::Turn(turn(number)),
        has_peers: false,
    }
}

pub(super) fn save(manifest: &Arc<Manifest>, number: u8) -> Transfer {
    Transfer::save(save_request(manifest, number)).unwrap()
}

pub(super) fn load_request(candidate: Candidate) -> LoadRequest {
    LoadRequest {
        candidates: vec![candidate],
        limit: 1,
        shards: vec![ShardIndex(0)],
        has_peers: false,
        explains: false,
    }
}

pub(super) fn load(manifest: &Arc<Manifest>) -> Transfer {
    Transfer::load(load_request(Candidate::planned(Arc::clone(manifest)))).unwrap()
}

/// The payloads that a position has on shard 0: a function of the objects' names, and for private
/// ones of the position.
fn contents(manifest: &Manifest) -> BTreeMap<ObjectName, Vec<u8>> {
    let private = (0..2).flat_map(|shard| manifest.private_objects(ShardIndex(shard)));
    let private = private.map(|object| {
        let name = ObjectName::Private(object.id);
        let seed = format!("{name} {}", manifest.digest());
        let bytes = object.stored_bytes() - u64::from(pinfold_core::object::TRAILER_BYTES);
        let manifest = (object.id.index == 0).then(|| manifest.encode().to_vec());
        (name, manifest.unwrap_or_else(|| stream(&seed, bytes)))
    });
    let shared = manifest.shared_objects().map(|object| {
        let name = ObjectName::Shared(object.name);
        (name, stream(&name.to_string(), object.payload_bytes))
    });
    private.chain(shared).collect()
}

fn stream(seed: &str, bytes: u64) -> Vec<u8> {
    let digest = pinfold_core::object::Digest::of(seed.as_bytes());
    let mut word = digest.sum | 1;
    let next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(usize::try_from(bytes).unwrap()).collect()
}

/// A worker's memory: what it gives and what it got.
pub(super) struct Hold {
    manifest: Arc<Manifest>,
    contents: BTreeMap<ObjectName, Vec<u8>>,
    got: Mutex<BTreeMap<ObjectName, Vec<u8>>>,
    adopted: Mutex<Vec<CheckpointId>>,
    /// What becomes of each payload.
    placing: fn(ObjectName) -> Placed,
    describing: fn(&Arc<Manifest>) -> Option<Arc<Manifest>>,
}

impl Hold {
    pub(super) fn new(manifest: &Arc<Manifest>) -> Self {
        Self {
            manifest: Arc::clone(manifest),
            contents: contents(manifest),
            got: Mutex::default(),
            adopted: Mutex::default(),
            placing: |_| Placed::Whole,
            describing: |manifest| Some(Arc::clone(manifest)),
        }
    }

    pub(super) fn placing(self, placing: fn(ObjectName) -> Placed) -> Self {
        Self { placing, ..self }
    }

    pub(super) fn describing(
        self,
        describing: fn(&Arc<Manifest>) -> Option<Arc<Manifest>>,
    ) -> Self {
        Self { describing, ..self }
    }

    pub(super) fn shared(manifest: &Arc<Manifest>) -> Arc<Self> {
        Arc::new(Self::new(manifest))
    }

    /// Everything that a load moves arrived as it was saved, and was adopted once.
    pub(super) fn is_restored(&self) -> bool {
        let mut expected = self.contents.clone();
        expected.retain(|name, _| match name {
            ObjectName::Private(id) => id.index > 0,
            ObjectName::Shared(_) => true,
        });
        *self.got.lock().unwrap() == expected && self.adopted.lock().unwrap().len() == 1
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.adopted.lock().unwrap().is_empty()
    }
}

impl Freight for Hold {
    fn parts(&self, object: ObjectName) -> Option<Vec<Cow<'_, [u8]>>> {
        // In two parts, one of them staged.
        let (left, right) = self.contents.get(&object)?.split_at(5);
        Some(vec![Cow::Borrowed(left), Cow::Owned(right.to_vec())])
    }

    fn place(&self, object: ObjectName, payload: &[u8]) -> Placed {
        assert!(self.adopted.lock().unwrap().is_empty(), "placed after the adoption");
        let placed = (self.placing)(object);
        let before = self.got.lock().unwrap().insert(object, payload.to_vec());
        assert_eq!(before, None, "each object comes once");
        placed
    }

    fn adopt(&self, checkpoint: CheckpointId) {
        self.adopted.lock().unwrap().push(checkpoint);
    }

    fn describe(&self, endpoint: EndpointId) -> Option<Arc<Manifest>> {
        assert_eq!(endpoint, self.manifest.endpoint().id());
        (self.describing)(&self.manifest)
    }
}

/// What a store does with a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Fine,
    Unknown,
    Panic,
    /// Waits for the gate, then does as it is told.
    Block,
}

type Rule = Box<dyn Fn(&str, &str) -> Mood + Send>;

/// A store in memory that keeps a list of the calls, and has moods.
#[derive(Default)]
pub(super) struct Shelf {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    calls: Mutex<Vec<String>>,
    rule: Mutex<Option<Rule>>,
    /// Calls that wait, and whether the gate is open.
    gate: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Shelf {
    /// From now on, by verb and key.
    pub(super) fn rule(&self, rule: impl Fn(&str, &str) -> Mood + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
        self.gate.lock().unwrap().1 = false;
    }

    /// Waits until so many calls wait at the gate, and a while for one more, which must not come.
    pub(super) fn await_blocked(&self, count: u32) {
        let gate = self.gate.lock().unwrap();
        let gate = self.changed.wait_while(gate, |(blocked, _)| *blocked < count).unwrap();
        let more = |(blocked, _): &mut (u32, bool)| *blocked == count;
        let (gate, _) = self.changed.wait_timeout_while(gate, A_WHILE, more).unwrap();
        assert_eq!(gate.0, count);
    }

    pub(super) fn open_gate(&self) {
        self.gate.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    /// Calls of a verb on keys with this ending.
    pub(super) fn calls(&self, verb: &str, ending: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.starts_with(verb) && call.ends_with(ending)).count()
    }

    /// Each private key was put at most once.
    pub(super) fn check_puts(&self) {
        let mut puts = self.calls.lock().unwrap().clone();
        puts.retain(|call| call.starts_with("put "));
        puts.sort();
        let count = puts.len();
        puts.dedup();
        assert_eq!(puts.len(), count);
    }

    /// Loses or spoils what has such a key.
    pub(super) fn spoil(&self, ending: &str, spoil: impl Fn(&mut Vec<u8>) -> bool) {
        let mut objects = self.objects.lock().unwrap();
        objects.retain(|key, object| !key.ends_with(ending) || spoil(object));
    }

    /// The reason of an answer that is not known.
    fn enter(&self, verb: &str, key: &str) -> Result<(), Why> {
        self.calls.lock().unwrap().push(format!("{verb} {key}"));
        let mood = self.rule.lock().unwrap().as_ref().map_or(Mood::Fine, |rule| rule(verb, key));
        match mood {
            Mood::Fine => Ok(()),
            Mood::Unknown => Err(Why::new("timed out")),
            Mood::Panic => panic!("a store's bug"),
            Mood::Block => {
                let mut gate = self.gate.lock().unwrap();
                gate.0 += 1;
                self.changed.notify_all();
                // A test that has failed opens no gate, and is to end nevertheless.
                let waited = self.changed.wait_timeout_while(gate, A_LONG_TIME, |it| !it.1);
                waited.unwrap().0.0 -= 1;
                Ok(())
            }
        }
    }

    fn insert(&self, key: &str, parts: &[&[u8]], is_shared: bool) -> PutOutcome {
        let mut objects = self.objects.lock().unwrap();
        let object = parts.concat();
        match objects.get(key) {
            Some(there) if is_shared && there.len() == object.len() => PutOutcome::Stored,
            Some(_) => PutOutcome::Failed(Why::new("the key is taken")),
            None => {
                objects.insert(key.to_string(), object);
                PutOutcome::Stored
            }
        }
    }
}

impl ObjectStore for Shelf {
    fn put(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        let entered = self.enter("put", key);
        entered.map_or_else(PutOutcome::Unknown, |()| self.insert(key, parts, false))
    }

    fn put_shared(&self, key: &str, parts: &[&[u8]]) -> PutOutcome {
        let entered = self.enter("share", key);
        entered.map_or_else(PutOutcome::Unknown, |()| self.insert(key, parts, true))
    }

    fn size(&self, key: &str) -> Presence {
        if let Err(why) = self.enter("size", key) {
            return Presence::Unknown(why);
        }
        match self.objects.lock().unwrap().get(key) {
            Some(object) => Presence::Present { bytes: object.len() as u64 },
            None => Presence::Absent,
        }
    }

    fn get(&self, key: &str, into: &mut [u8]) -> GetOutcome {
        if let Err(why) = self.enter("get", key) {
            return GetOutcome::Unknown(why);
        }
        let objects = self.objects.lock().unwrap();
        let Some(object) = objects.get(key) else { return GetOutcome::Absent };
        if object.len() != into.len() {
            return GetOutcome::WrongSize { bytes: object.len() as u64 };
        }
        into.copy_from_slice(object);
        GetOutcome::Read
    }

    fn delete(&self, key: &str) -> DeleteOutcome {
        self.objects.lock().unwrap().remove(key);
        DeleteOutcome::Gone
    }

    fn list(&self, visit: &mut dyn FnMut(&str, u64)) -> Result<(), ListError> {
        let objects = self.objects.lock().unwrap();
        objects.iter().for_each(|(key, object)| visit(key, object.len() as u64));
        Ok(())
    }
}

/// The shelf is a store like any other.
#[test]
fn a_shelf_keeps_the_contract() {
    crate::store::contract::contract(&Shelf::default());
}
