//! What the service saw of its node: which verbs came and how they ended, and since when each pin
//! is there.
//!
//! It looks on at the node, so it hears of everything in order, whoever asked and however the
//! answer was lost. It is volatile: of a pin that is older than the service only that is known.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pinfold_core::catalog::Command;
use pinfold_core::engine::{Effect, Input, Output, Reply, Request, Ticket};
use pinfold_core::id::{CheckpointId, Incarnation, ObjectId, OpId, OwnerId, PinId};
use pinfold_core::outcome::{Evidence, Outcome, Rejection};
use pinfold_host::dto::ListedCommand;
use pinfold_host::node::Watch;
use prometheus_client::metrics::histogram::Histogram;

use super::audit::{AuditLog, is_audited};
use super::work::{Whose, Work};

/// How long requests take, in seconds: upper ends of the buckets.
const BUCKETS: [f64; 12] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// How one verb fared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verb {
    pub(super) succeeded: u64,
    pub(super) refused: u64,
    /// Of lists: behind a refusal.
    pub(super) not_tried: u64,
}

/// What was seen. See the [module](self).
#[derive(Debug)]
pub(super) struct Seen {
    work: Arc<Work>,
    audit: Option<AuditLog>,
    state: Mutex<State>,
    /// What is older is of unknown age.
    pub(super) began: Instant,
}

#[derive(Debug)]
pub(super) struct State {
    asked: BTreeMap<Ticket, (Instant, Vec<Asked>)>,
    /// By verb.
    pub(super) verbs: BTreeMap<&'static str, Verb>,
    /// How many seconds each request took until its answer was durable.
    pub(super) seconds: Histogram,
    /// Since when each pin is there. One that a fence ended stays until somebody looks.
    pub(super) pins: BTreeMap<PinId, Since>,
}

/// Since when a pin is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) instant: Instant,
    /// A load pin ends when it is settled.
    loads: bool,
}

/// What has to be known of a command when it is answered.
#[derive(Debug)]
struct Asked {
    verb: &'static str,
    matters: Matters,
    /// An operator's command, as it is written down.
    audited: Option<ListedCommand>,
}

#[derive(Debug)]
enum Matters {
    Nothing,
    Reports(OpId, CheckpointId, Vec<ObjectId>),
    Retires(OwnerId),
    Fences(OwnerId, Incarnation),
    Releases(PinId),
    Settles(PinId),
    Pins(OpId),
}

impl Asked {
    fn of(op: OpId, command: &Command) -> Self {
        let verb = verb(command);
        let matters = match command {
            Command::Deleted { checkpoint, outcomes } => {
                Matters::Reports(op, *checkpoint, outcomes.iter().map(|it| it.0).collect())
            }
            Command::Fence { owner, incarnation } => Matters::Fences(*owner, *incarnation),
            Command::Release { pin } => Matters::Releases(*pin),
            Command::Settle { pin, .. } => Matters::Settles(*pin),
            Command::Pin { .. } => Matters::Pins(op),
            Command::Retire { owner } => Matters::Retires(*owner),
            Command::Prepare(_)
            | Command::Publish { .. }
            | Command::Lost { .. }
            | Command::Doubt { .. }
            | Command::Collect { .. }
            | Command::Configure { .. }
            | Command::Forget { .. }
            | Command::Drop { .. } => Matters::Nothing,
        };
        let audited = is_audited(op, command);
        let audited = audited.then(|| ListedCommand { op, command: command.clone() });
        Self { verb, matters, audited }
    }
}

/// A command's verb, as requests name it.
const fn verb(command: &Command) -> &'static str {
    match command {
        Command::Prepare(_) => "prepare",
        Command::Settle { .. } => "settle",
        Command::Publish { .. } => "publish",
        Command::Release { .. } => "release",
        Command::Pin { .. } => "pin",
        Command::Lost { .. } => "lost",
        Command::Doubt { .. } => "doubt",
        Command::Collect { .. } => "collect",
        Command::Deleted { .. } => "deleted",
        Command::Configure { .. } => "configure",
        Command::Forget { .. } => "forget",
        Command::Drop { .. } => "drop",
        Command::Fence { .. } => "fence",
        Command::Retire { .. } => "retire",
    }
}

impl Seen {
    pub(super) fn new(work: Arc<Work>, audit: Option<AuditLog>) -> Self {
        let (asked, verbs, pins) = Default::default();
        let state = State { asked, verbs, seconds: Histogram::new(BUCKETS), pins };
        Self { work, audit, state: Mutex::new(state), began: Instant::now() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything was seen: what is to be written down is.
    pub(super) fn end(&self) {
        if let Some(audit) = &self.audit {
            audit.end();
        }
    }

    /// Lines of the audit log that could not be written.
    pub(super) fn audit_lost(&self) -> u64 {
        self.audit.as_ref().map_or(0, |audit| audit.lost.load(Ordering::Relaxed))
    }

    fn answered(&self, ticket: Ticket, reply: &Reply) {
        let mut state = self.state();
        let Some((since, asked)) = state.asked.remove(&ticket) else { return };
        state.seconds.observe(since.elapsed().as_secs_f64());
        match reply {
            Reply::Command(answer) => {
                // A list that is refused as a whole is refused at its first command.
                for (place, asked) in asked.into_iter().enumerate() {
                    let answer = Some(*answer).filter(|_| place == 0);
                    self.judged(&mut state, asked, answer);
                }
            }
            Reply::List(answers) => {
                for (asked, answer) in asked.into_iter().zip(answers) {
                    self.judged(&mut state, asked, *answer);
                }
            }
            _ => {}
        }
    }

    fn judged(&self, state: &mut State, asked: Asked, answer: Option<Result<Outcome, Rejection>>) {
        if let (Some(audit), Some(command)) = (&self.audit, asked.audited) {
            audit.write(command, answer.into());
        }
        let verb = state.verbs.entry(asked.verb).or_default();
        let outcome = match answer {
            None => return verb.not_tried += 1,
            Some(Err(_)) => return verb.refused += 1,
            Some(Ok(outcome)) => outcome,
        };
        verb.succeeded += 1;
        match asked.matters {
            Matters::Nothing => {}
            Matters::Pins(op) => {
                if let Outcome::Pinned(pinned) = outcome {
                    for (place, _) in (0..).zip(pinned.iter()) {
                        state.pinned(PinId { op, place }, true);
                    }
                }
            }
            Matters::Reports(op, checkpoint, objects) => {
                self.work.reported(op, checkpoint, &objects);
            }
            Matters::Retires(owner) => self.work.retired(owner),
            Matters::Fences(owner, incarnation) => {
                self.work.fenced(Whose { owner, incarnation });
            }
            Matters::Releases(pin) => drop(state.pins.remove(&pin)),
            Matters::Settles(pin) => {
                let ended = outcome != Outcome::Settled { evidence: Evidence::InDoubt };
                if ended && state.pins.get(&pin).is_some_and(|it| it.loads) {
                    state.pins.remove(&pin);
                }
            }
        }
        match outcome {
            Outcome::Prepared { pin, .. } => state.pinned(pin, false),
            Outcome::AlreadyPublished { pin, .. } => state.pinned(pin, true),
            _ => {}
        }
    }
}

impl State {
    /// Forgets the pins that were not there any more when somebody looked, who had asked at this
    /// instant; what came since is not known to who looked.
    pub(super) fn prune(&mut self, asked: Instant, is_live: impl Fn(PinId) -> bool) {
        self.pins.retain(|pin, since| since.instant >= asked || is_live(*pin));
    }

    fn pinned(&mut self, pin: PinId, loads: bool) {
        self.pins.entry(pin).or_insert_with(|| Since { instant: Instant::now(), loads });
    }
}

/// The watcher that a node is given.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) seen: Arc<Seen>,
    /// The collector in this process, and where its delete work goes.
    pub(super) own: Option<(OwnerId, Sender<Effect>)>,
}

impl Watch for Watcher {
    fn took(&mut self, input: &Input) {
        let asked = match &input.request {
            Request::Command(op, command) => vec![Asked::of(*op, command)],
            Request::List(commands) => commands.iter().map(|it| Asked::of(it.0, &it.1)).collect(),
            Request::Register(_) => {
                vec![Asked { verb: "register", matters: Matters::Nothing, audited: None }]
            }
            Request::Query(_) => return,
        };
        self.seen.state().asked.insert(input.ticket, (Instant::now(), asked));
    }

    fn idled(&mut self) {}

    fn let_out(&mut self, output: &Output) {
        match output {
            Output::Reply(ticket, reply) => self.seen.answered(*ticket, reply),
            Output::Effect(effect) => {
                let Effect::Delete { by, .. } = effect;
                match &self.own {
                    // Without its collector it is handed out again later.
                    Some((owner, effects)) if by.owner == *owner => {
                        let _ = effects.send(effect.clone());
                    }
                    _ => self.seen.work.handed_out(effect),
                }
            }
        }
    }
}
