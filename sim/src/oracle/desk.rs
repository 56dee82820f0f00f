//! The desk: which requests wait for an answer, and which operations have their receipt.
//!
//! It knows what was asked. It keeps the receipts that an owner can still ask for, and never more,
//! so that a long run does not grow it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinfold_core::catalog::{Command, Register};
use pinfold_core::engine::{Input, Query, Request, Ticket};
use pinfold_core::id::{CheckpointId, Epoch, Generation, Incarnation, OpId, OwnerId, StartId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Outcome, Rejection};

use super::facts::{Facts, Hold};
use super::{Judged, demand};
use crate::shared::Shared;
use crate::store::StoreKey;

/// An answer to a command.
pub(super) type Answer = Result<Outcome, Rejection>;

/// A request that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) epoch: Epoch,
    pub(super) what: What,
    /// Its coordinator is gone; only its record may still show up.
    pub(super) dead: bool,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Register {
        register: Register,
        /// What durable records granted to this start since.
        granted: Vec<Incarnation>,
    },
    Command(Piece),
    List(Vec<Piece>),
    Job,
    Gauges {
        /// Live turns and live pins, at each record since.
        since: Vec<(u64, u64)>,
    },
    Blockers {
        checkpoint: CheckpointId,
        /// What held it when it was asked about.
        at_first: Vec<Hold>,
        /// Everything that held it since.
        since: Vec<Hold>,
    },
    Audit {
        /// The last generation that was surely minted when it was asked.
        minted: Generation,
    },
}

impl What {
    fn pieces(&self) -> &[Piece] {
        match self {
            Self::Command(piece) => std::slice::from_ref(piece),
            Self::List(pieces) => pieces,
            Self::Register { .. }
            | Self::Job
            | Self::Gauges { .. }
            | Self::Blockers { .. }
            | Self::Audit { .. } => &[],
        }
    }
}

/// One command of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) op: OpId,
    pub(super) command: Arc<Command>,
    /// Checkpoints that were proven whole only after it was asked; kept for a `Publish`.
    pub(super) whole_too_late: Vec<CheckpointId>,
}

impl Piece {
    fn new(op: OpId, command: &Command) -> Self {
        Self { op, command: Arc::new(command.clone()), whole_too_late: Vec::new() }
    }
}

/// What was decided about an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receipt {
    /// Its content, where that is known.
    pub(super) content: Option<Arc<Command>>,
    /// The answer, as far as the record says it.
    pub(super) answer: Answer,
    /// The first answer that left.
    pub(super) first: Option<Answer>,
}

/// Requests and receipts. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Desk {
    pub(super) epoch: Epoch,
    window: u64,
    pub(super) open: BTreeMap<Ticket, Asked>,
    pub(super) receipts: BTreeMap<OpId, Shared<Receipt>>,
    pub(super) listed: BTreeMap<Ticket, Vec<StoreKey>>,
}

impl Desk {
    pub(super) fn new(epoch: Epoch, window: u32) -> Self {
        Self {
            epoch,
            window: u64::from(window),
            open: BTreeMap::new(),
            receipts: BTreeMap::new(),
            listed: BTreeMap::new(),
        }
    }

    pub(super) fn submitted(&mut self, ticket: Ticket, input: &Input, facts: &Facts) {
        let what = match &input.request {
            Request::Register(register) => {
                let current = facts.owners.get(&register.owner);
                let same = current.filter(|owner| owner.start == register.start);
                let granted = same.map(|owner| owner.current).into_iter().collect();
                What::Register { register: *register, granted }
            }
            Request::Command(op, command) => What::Command(Piece::new(*op, command)),
            Request::List(commands) => {
                What::List(commands.iter().map(|(op, command)| Piece::new(*op, command)).collect())
            }
            Request::Query(Query::Job) => What::Job,
            Request::Query(Query::Gauges) => What::Gauges { since: vec![counts(facts)] },
            Request::Query(Query::Blockers(checkpoint)) => {
                let at_first: Vec<Hold> = facts.holds_of(*checkpoint).collect();
                let since = at_first.clone();
                What::Blockers { checkpoint: *checkpoint, at_first, since }
            }
            Request::Query(Query::Audit(_)) => What::Audit { minted: facts.minted },
        };
        self.open.insert(ticket, Asked { epoch: input.epoch, what, dead: false });
    }

    pub(super) fn list(&mut self, ticket: Ticket, keys: &[StoreKey]) {
        self.listed.insert(ticket, keys.to_vec());
    }

    /// The coordinator is gone: nobody is answered any more.
    pub(super) fn crash(&mut self) {
        for asked in self.open.values_mut() {
            asked.dead = true;
        }
        self.listed.clear();
    }

    /// What a life before left undecided was never decided.
    pub(super) fn bury(&mut self) {
        self.open.retain(|_, asked| !asked.dead);
    }

    pub(super) fn unanswered(&self) -> Option<Ticket> {
        self.open.iter().find(|(_, asked)| !asked.dead).map(|(ticket, _)| *ticket)
    }

    /// Every command that waits, and the epoch that its sender believes in.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (Epoch, &Piece)> {
        self.open
            .values()
            .flat_map(|asked| asked.what.pieces().iter().map(|piece| (asked.epoch, piece)))
    }

    /// A checkpoint has become whole: publications that were asked before that came too early.
    pub(super) fn became_whole(&mut self, checkpoint: CheckpointId) {
        let note = |piece: &mut Piece| {
            if matches!(*piece.command, Command::Publish { .. }) {
                piece.whole_too_late.push(checkpoint);
            }
        };
        for asked in self.open.values_mut() {
            match &mut asked.what {
                What::Command(piece) => note(piece),
                What::List(pieces) => pieces.iter_mut().for_each(note),
                What::Register { .. }
                | What::Job
                | What::Gauges { .. }
                | What::Blockers { .. }
                | What::Audit { .. } => {}
            }
        }
    }

    /// Whether a publication waits.
    pub(super) fn awaits_publication(&self) -> bool {
        self.pieces().any(|(_, piece)| matches!(*piece.command, Command::Publish { .. }))
    }

    /// A registration is durable.
    pub(super) fn registered(
        &mut self,
        owner: OwnerId,
        start: StartId,
        incarnation: Incarnation,
    ) -> Judged {
        let (mut asked_at_all, mut asked_here) = (false, false);
        for asked in self.open.values_mut() {
            if let What::Register { register, granted } = &mut asked.what
                && (register.owner, register.start) == (owner, start)
            {
                asked_at_all = true;
                asked_here |= asked.epoch == self.epoch;
                granted.push(incarnation);
            }
        }
        demand(asked_here || !asked_at_all, Invariant::I12, || {
            format!("owner {owner} was registered by a message of another epoch")
        })
    }

    /// Whether an operation's receipt need not be kept any more.
    pub(super) fn is_forgotten(&self, op: OpId, facts: &Facts) -> bool {
        facts.owners.get(&op.owner).is_some_and(|owner| {
            op.incarnation < owner.current
                || op.incarnation == owner.current
                    && op.sequence <= owner.highest.saturating_sub(self.window)
        })
    }

    /// Drops the receipts of an owner that nobody can ask for and nobody waits for.
    pub(super) fn forget_receipts(&mut self, of: OpId, facts: &Facts) {
        let first = OpId { incarnation: Incarnation(0), sequence: 0, ..of };
        let old = self.receipts.range(first..of).map(|(op, _)| *op);
        let old: Vec<OpId> = old.take_while(|op| self.is_forgotten(*op, facts)).collect();
        for op in old {
            if !self.pieces().any(|(_, piece)| piece.op == op) {
                self.receipts.remove(&op);
            }
        }
    }

    /// Lets those who look on see what is durable now.
    pub(super) fn look(&mut self, facts: &Facts) {
        for asked in self.open.values_mut() {
            match &mut asked.what {
                What::Blockers { checkpoint, since, .. } => {
                    for hold in facts.holds_of(*checkpoint) {
                        if !since.contains(&hold) {
                            since.push(hold);
                        }
                    }
                }
                What::Gauges { since } => {
                    let now = counts(facts);
                    if !since.contains(&now) {
                        since.push(now);
                    }
                }
                What::Register { .. }
                | What::Command(_)
                | What::List(_)
                | What::Job
                | What::Audit { .. } => {}
            }
        }
    }
}

/// Live turns and live pins.
fn counts(facts: &Facts) -> (u64, u64) {
    (facts.ledger.live_turns(), facts.pins.len() as u64)
}
