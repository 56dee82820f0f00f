//! Nodes on a real folder, and on journals that wait, fail and panic.

use pinfold_core::catalog::{Command, PROTOCOL_VERSION, Register, Role};
use pinfold_core::engine::Query;
use pinfold_core::id::{Incarnation, OpId, OwnerId, StartId};
use pinfold_core::outcome::Outcome;
use pinfold_core::policy::{Limits, Policy};

use super::*;
use crate::journal::{AppendError, Journal};

fn genesis() -> Genesis {
    Genesis {
        namespace: "node".parse().unwrap(),
        epoch: Epoch::of_name("node test"),
        operator: OwnerId::of_name("operator"),
        policy: Policy::default(),
        limits: Limits::default(),
    }
}

fn register(name: &str) -> Request {
    Request::Register(Register {
        owner: OwnerId::of_name(name),
        role: Role::Worker,
        after: Incarnation(0),
        start: StartId::of_name(name),
        version: PROTOCOL_VERSION,
        expected_policy: None,
    })
}

/// What a client saw is there after the node is opened again, and answers the same.
#[test]
fn answers_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
    let client = node.client();
    let registered = client.call(register("w1")).unwrap();
    let incarnation = Incarnation(1);
    assert_eq!(registered, Reply::Command(Ok(Outcome::Registered { incarnation })));
    let op = OpId { owner: OwnerId::of_name("w1"), incarnation, sequence: 1 };
    let collect = || Request::Command(op, Command::Collect { limit: 5 });
    let first = client.call(collect()).unwrap();
    node.stop().unwrap();
    assert_eq!(client.call(collect()), Err(Gone));
    let (node, _effects, recovery) = Node::open(dir.path()).unwrap();
    assert_eq!(recovery.records, 3);
    let client = node.client();
    assert_eq!(client.call(register("w1")).unwrap(), registered);
    assert_eq!(client.call(collect()).unwrap(), first);
    assert_eq!(client.call(Request::Query(Query::Job)).unwrap(), Reply::Job(genesis()));
}

/// Who does not wait is told the same, once it is durable; and nothing where there is no reply.
#[test]
fn a_reply_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
    let (client, (told, replies)) = (node.client(), channel());
    let tell = |told: &std::sync::mpsc::Sender<Reply>| {
        let told = told.clone();
        move |reply| told.send(reply).unwrap()
    };
    client.send(register("w1"), tell(&told)).unwrap();
    let incarnation = Incarnation(1);
    assert_eq!(replies.recv(), Ok(Reply::Command(Ok(Outcome::Registered { incarnation }))));
    let stranger = client.believing(Epoch::of_name("another life"));
    stranger.send(Request::Query(Query::Job), tell(&told)).unwrap();
    assert_eq!(replies.recv(), Ok(Reply::WrongEpoch));
    node.stop().unwrap();
    let sent = client.send(register("w2"), tell(&told));
    assert!(matches!(sent, Err(Unsent::Gone)), "{sent:?}");
    drop(told);
    assert!(replies.recv().is_err(), "nobody is told anything more");
}

/// Many clients at once share syncs, and each gets its own answer.
#[test]
fn clients_share_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let client = node.client();
            scope.spawn(move || {
                let reply = client.call(register(&format!("w{number}"))).unwrap();
                assert!(matches!(reply, Reply::Command(Ok(Outcome::Registered { .. }))));
            });
        }
    });
    let client = node.client();
    let stats = client.inspect(|_, stats| stats).unwrap();
    assert_eq!(stats.requests, 8);
    assert!(stats.syncs <= 9);
}

/// A look that panics does so on the thread that asked; everybody else goes on.
#[test]
fn a_look_that_panics_harms_nobody_else() {
    let scene = scene();
    let client = scene.node.client();
    let looker = client.clone();
    let looked = thread::spawn(move || looker.inspect(|_, _| panic!("a look that fails")));
    let panic = looked.join().map(|_: Result<(), Gone>| ()).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a look that fails"));
    assert!(client.call(register("w1")).is_ok());
    scene.node.stop().unwrap();
}

/// Whoever waits for effects is told that the node ended, though a client is still there.
#[test]
fn effects_end_with_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let (node, effects) = Node::create(dir.path(), genesis()).unwrap();
    let client = node.client();
    node.stop().unwrap();
    let ended = effects.recv_timeout(Duration::from_secs(30));
    assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(client.call(register("w1")), Err(Gone));
}

/// What a test journal does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Keep,
    /// Waits until the test lets go.
    Wait,
    Fail,
    Panic,
}

/// A journal in memory with moods.
struct Moody {
    mood: Arc<Mutex<Mood>>,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Journal for Moody {
    fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        loop {
            let mood = *self.mood.lock().unwrap();
            match mood {
                Mood::Keep => break,
                Mood::Wait => thread::sleep(Duration::from_millis(1)),
                Mood::Fail => return Err(AppendError::Other("no room".into())),
                Mood::Panic => panic!("a journal that panics"),
            }
        }
        self.frames.lock().unwrap().push(frame.to_vec());
        Ok(())
    }
}

struct Scene {
    node: Node,
    effects: Effects,
    mood: Arc<Mutex<Mood>>,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

fn scene() -> Scene {
    let mood = Arc::new(Mutex::new(Mood::Keep));
    let frames = Arc::default();
    let journal = Moody { mood: Arc::clone(&mood), frames: Arc::clone(&frames) };
    let engine = Engine::create(Config::default(), genesis()).unwrap();
    let (node, effects) = Node::with_journal(engine, Box::new(journal)).unwrap();
    Scene { node, effects, mood, frames }
}

fn set(mood: &Arc<Mutex<Mood>>, to: Mood) {
    *mood.lock().unwrap() = to;
}

/// Protocol 7: whoever waits when an append fails is told that nothing is known, nothing leaves,
/// and the node says why it ended. A journal that panics is no different to a caller.
#[test]
fn a_failed_append_is_the_end() {
    for mood in [Mood::Fail, Mood::Panic] {
        let scene = scene();
        let client = scene.node.client();
        assert!(client.call(register("before")).is_ok());
        set(&scene.mood, Mood::Wait);
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..4)
                .map(|number| {
                    let client = client.clone();
                    scope.spawn(move || client.call(register(&format!("w{number}"))))
                })
                .collect();
            while client.shared.lock().callers() < 4 {
                thread::yield_now();
            }
            set(&scene.mood, mood);
            for waiting in waiting {
                assert_eq!(waiting.join().unwrap(), Err(Gone));
            }
        });
        assert_eq!(client.call(register("after")), Err(Gone));
        assert_eq!(client.inspect(|_, _| ()), Err(Gone));
        assert_eq!(scene.effects.try_iter().count(), 0);
        let ended = scene.node.stop();
        match mood {
            Mood::Fail => {
                let Err(NodeError::Append(error)) = ended else { panic!("{ended:?}") };
                assert!(error.to_string().contains("no room"));
            }
            Mood::Keep | Mood::Wait | Mood::Panic => {
                assert!(matches!(ended, Err(NodeError::Panicked)), "{ended:?}");
            }
        }
        // Genesis, and what was acknowledged.
        assert_eq!(scene.frames.lock().unwrap().len(), 2);
    }
}

/// A refusal reveals state that is not durable yet, so it waits for it; a question that depends on
/// nothing under way does not wait.
#[test]
fn answers_wait_for_what_they_depend_on() {
    let scene = scene();
    let client = scene.node.client();
    client.call(register("w1")).unwrap();
    assert!(client.call(Request::Query(Query::Job)).is_ok());
    set(&scene.mood, Mood::Wait);
    thread::scope(|scope| {
        let first = scope.spawn(|| client.call(register("w2")));
        while client.shared.lock().callers() < 1 {
            thread::yield_now();
        }
        let second = scope.spawn(|| client.call(Request::Query(Query::Gauges)));
        thread::sleep(Duration::from_millis(30));
        assert!(!first.is_finished() && !second.is_finished());
        set(&scene.mood, Mood::Keep);
        assert!(first.join().unwrap().is_ok());
        let Ok(Reply::Gauges(gauges)) = second.join().unwrap() else { panic!("no gauges") };
        assert_eq!(gauges.owners, 3);
    });
    scene.node.stop().unwrap();
}

/// Who looks at the engine is not kept waiting by those who call without a pause, and sees a state
/// that is durable as a whole.
#[test]
fn looking_is_not_starved() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _effects) = Node::create(dir.path(), genesis()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..6 {
            let (client, stop) = (node.client(), &stop);
            scope.spawn(move || {
                for round in 0.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    client.call(register(&format!("w{number}-{round}"))).unwrap();
                }
            });
        }
        let client = node.client();
        for _ in 0..20 {
            let (idle, position, owners) = client
                .inspect(|engine, _| {
                    let owners = engine.catalog().gauges().owners;
                    (engine.is_idle(), engine.position(), owners)
                })
                .unwrap();
            assert!(idle);
            assert_eq!(position, owners, "genesis brings one owner, each registration another");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    node.stop().unwrap();
}

/// Stopping answers what was sent before; what comes later is told that nobody is there.
#[test]
fn stopping_answers_what_was_sent() {
    let scene = scene();
    let client = scene.node.client();
    set(&scene.mood, Mood::Wait);
    thread::scope(|scope| {
        let sent = scope.spawn(|| client.call(register("w1")));
        while client.shared.lock().callers() < 1 {
            thread::yield_now();
        }
        let stopping = scope.spawn(|| scene.node.stop());
        thread::sleep(Duration::from_millis(20));
        assert_eq!(client.call(register("w2")), Err(Gone));
        assert!(!sent.is_finished() && !stopping.is_finished());
        set(&scene.mood, Mood::Keep);
        assert!(sent.join().unwrap().is_ok());
        stopping.join().unwrap().unwrap();
    });
}

/// An engine may poison itself, here at the last sequence number, while records wait in its frame:
/// its node ends as it does after a failed append.
#[test]
fn a_node_ends_with_an_engine_that_poisons_itself() {
    let catalog = pinfold_core::catalog::Catalog::new(genesis()).unwrap();
    let replay = pinfold_core::replay::Replay::from_snapshot(catalog, u64::MAX - 4);
    let engine = Engine::resume(Config::default(), replay).unwrap();
    let mood = Arc::new(Mutex::new(Mood::Keep));
    let journal = Moody { mood: Arc::clone(&mood), frames: Arc::default() };
    let (node, _effects) = Node::with_journal(engine, Box::new(journal)).unwrap();
    *mood.lock().unwrap() = Mood::Wait;
    let callers: Vec<_> = (0..6)
        .map(|number| {
            let client = node.client();
            let call = thread::spawn(move || client.call(register(&format!("w{number}"))));
            // One frame is under way, and the next one fills until its last record has no number.
            thread::sleep(Duration::from_millis(20));
            call
        })
        .collect();
    *mood.lock().unwrap() = Mood::Keep;
    for caller in callers {
        assert_eq!(caller.join().unwrap(), Err(Gone));
    }
    let client = node.client();
    let (told, ended) = channel();
    thread::spawn(move || told.send(node.stop()));
    let ended = ended.recv_timeout(Duration::from_secs(30)).expect("it ends");
    assert!(matches!(ended, Err(NodeError::Append(AppendError::Poisoned))), "{ended:?}");
    assert_eq!(client.inspect(|engine, _| engine.position()), Err(Gone));
}

/// Who looks at the engine and calls the same node would wait for itself: it is told at once.
#[test]
fn a_look_that_calls_its_own_node_is_refused() {
    let scene = scene();
    let client = scene.node.client();
    let inner = client.clone();
    let seen = client.inspect(move |_, _| (inner.call(register("w1")), inner.inspect(|_, _| ())));
    assert_eq!(seen, Ok((Err(Gone), Err(Gone))));
    assert!(client.call(register("w1")).is_ok());
    scene.node.stop().unwrap();
}

/// Waits until the committer does.
fn until_idle(client: &NodeClient) {
    while !client.shared.lock().idle {
        thread::yield_now();
    }
}

/// Stopping answers all that was sent, also what a lone caller's frame answered for another who
/// waits: here while somebody else who is told by it takes his time.
#[test]
fn stopping_answers_who_waits_for_a_lone_callers_frame() {
    let scene = scene();
    let client = scene.node.client();
    until_idle(&client);
    set(&scene.mood, Mood::Wait);
    let (let_go, held) = channel::<()>();
    let until = |callers| {
        while client.shared.lock().callers() != callers {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| client.call(register("w1")));
        until(1);
        // What these ask is decided already, and durable with the frame that is under way.
        client.send(Request::Query(Query::Job), move |_| _ = held.recv()).unwrap();
        let waiting = scope.spawn(|| client.call(Request::Query(Query::Job)));
        until(3);
        set(&scene.mood, Mood::Keep);
        until(0);
        scene.node.stop().unwrap();
        drop(let_go);
        assert_eq!(waiting.join().unwrap(), Ok(Reply::Job(genesis())));
    });
}

/// Who is only to be told does not wait for the disk.
#[test]
fn sending_does_not_wait_for_the_disk() {
    let scene = scene();
    let client = scene.node.client();
    until_idle(&client);
    set(&scene.mood, Mood::Wait);
    let (told, reply) = channel();
    client.send(register("w1"), move |reply| told.send(reply).unwrap()).unwrap();
    assert!(reply.try_recv().is_err(), "it is not durable yet");
    set(&scene.mood, Mood::Keep);
    assert!(matches!(reply.recv(), Ok(Reply::Command(Ok(_)))));
    scene.node.stop().unwrap();
}

/// An engine that poisons itself when nothing else is under way ends its node, too, and nobody has
/// to come and ask first.
#[test]
fn a_node_ends_with_an_idle_engine_that_poisons_itself() {
    let catalog = pinfold_core::catalog::Catalog::new(genesis()).unwrap();
    let replay = pinfold_core::replay::Replay::from_snapshot(catalog, u64::MAX - 1);
    let engine = Engine::resume(Config::default(), replay).unwrap();
    let journal = Moody { mood: Arc::new(Mutex::new(Mood::Keep)), frames: Arc::default() };
    let (node, effects) = Node::with_journal(engine, Box::new(journal)).unwrap();
    until_idle(&node.client());
    assert_eq!(node.client().call(register("w1")), Err(Gone));
    let ended = effects.recv_timeout(Duration::from_secs(30));
    assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    assert!(node.client().is_gone());
}

/// Those who look keep a caller waiting for one turn of theirs: who comes to look after that looks
/// after it, too; so those who look on and on starve nobody. Here somebody always waits to look.
#[test]
fn calling_is_not_starved_by_those_who_look() {
    let scene = scene();
    let engine = Engine::create(Config::default(), genesis()).unwrap();
    let journal = Moody { mood: Arc::clone(&scene.mood), frames: Arc::default() };
    let shared = Shared::new(engine, channel().0, Box::new(journal));
    committer::commit_all(&shared).unwrap();
    shared.look(Box::new(|_, _| ())).unwrap();
    thread::scope(|scope| {
        let calling = scope.spawn(|| shared.call(genesis().epoch, register("w1")));
        let began = Instant::now();
        while shared.lock().callers() == 0 && began.elapsed() < Duration::from_secs(20) {
            shared.lock().turns_to_look += 1;
            shared.made_room();
            thread::yield_now();
        }
        let callers = shared.lock().callers();
        committer::commit_all(&shared).unwrap();
        shared.end();
        assert_eq!(callers, 1, "it was decided");
        assert!(calling.join().unwrap().is_ok());
    });
    scene.node.stop().unwrap();
}
