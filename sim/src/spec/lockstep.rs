//! The judge that walks beside an engine: the spec takes what became durable, in order, and its
//! answers must be the engine's.
//!
//! An input waits until its reply leaves: by then its records are durable, so the spec runs only
//! over what stays and takes nothing back. The engine does one follow-up beside each input, and
//! one when it is idle, while any waits; which one is its own choice.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use pinfold_core::catalog::Event;
use pinfold_core::engine::{Effect, Input, Reply, Ticket};
use pinfold_core::invariant::Invariant;
use pinfold_core::policy::Genesis;

use super::{Expected, Spec, broken};
use crate::blame;
use crate::seen::Seen;
use crate::violation::Violation;

/// What the coordinator did, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Took(Input),
    Idled,
}

/// Whether the coordinator lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Up,
    /// Gone: what it did counts as far as the disk has it.
    Gone,
}

/// The naive spec in lock-step with an engine.
///
/// Tell it everything that is seen, in order; what survives a crash, before the crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockstep {
    spec: Spec,
    life: Life,
    /// What was done and not taken yet.
    pending: VecDeque<Action>,
    /// What became durable and was not taken yet.
    records: VecDeque<Event>,
    /// Delete work that left and was not taken yet.
    handed_out: VecDeque<Effect>,
    /// A follow-up waits beside the last action that was taken, and its record is still to come.
    owes_follow_up: bool,
}

impl Hash for Lockstep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.spec.hash(state);
        self.life.hash(state);
        for action in &self.pending {
            match action {
                Action::Took(input) => input.ticket.hash(state),
                Action::Idled => 0_u8.hash(state),
            }
        }
        (self.records.len(), self.handed_out.len(), self.owes_follow_up).hash(state);
    }
}

impl Lockstep {
    /// Beside the engine of a new job.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        Self {
            spec: Spec::new(genesis),
            life: Life::Up,
            pending: VecDeque::new(),
            records: VecDeque::new(),
            handed_out: VecDeque::new(),
            owes_follow_up: false,
        }
    }

    /// The state as far as replies have left.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Sees what happened next.
    ///
    /// # Errors
    /// The first thing that the protocol does not allow.
    pub fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        match seen {
            Seen::Submitted { ticket, input } => {
                let input = Input { ticket: *ticket, ..input.clone() };
                self.pending.push_back(Action::Took(input));
                Ok(())
            }
            Seen::Idled => {
                // One that has nothing to do leaves no trace.
                let is_settled = self.pending.is_empty() && !self.owes_follow_up;
                if !is_settled || self.spec.due() {
                    self.pending.push_back(Action::Idled);
                }
                Ok(())
            }
            Seen::Synced { events } => self.synced(events),
            Seen::Replied { ticket, reply } => self.replied(*ticket, reply),
            Seen::HandedOut { effect } => {
                if self.life == Life::Up {
                    self.handed_out.push_back(effect.clone());
                }
                Ok(())
            }
            Seen::Crashed => self.crashed(),
            Seen::Recovered => {
                self.life = Life::Up;
                Ok(())
            }
            Seen::OwnerDied { .. }
            | Seen::Compares { .. }
            | Seen::Compared { .. }
            | Seen::Missed { .. }
            | Seen::MoveBegan { .. }
            | Seen::Landed { .. }
            | Seen::PutSucceeded { .. }
            | Seen::Confirmed { .. }
            | Seen::Retired { .. }
            | Seen::Deleted { .. }
            | Seen::StoreLost { .. }
            | Seen::SourceReused { .. }
            | Seen::DestinationReused { .. }
            | Seen::Adopted { .. }
            | Seen::FalseProof { .. }
            | Seen::Returned { .. }
            | Seen::SyncFailed
            | Seen::Listed { .. } => Ok(()),
        }
    }

    /// Judges an engine that has answered everything, persisted everything and says that no
    /// follow-up waits.
    ///
    /// # Errors
    /// Something is still due, unanswered, or recorded for nothing.
    pub fn at_rest(&self) -> Result<(), Violation> {
        if let Some(record) = self.records.front() {
            return Err(broken(Invariant::I14, format!("nothing asked for {record:?}")));
        }
        if let Some(effect) = self.handed_out.front() {
            return Err(broken(Invariant::I3, format!("nothing asked for {effect:?}")));
        }
        let is_input = |action: &&Action| matches!(action, Action::Took(_));
        if let Some(action) = self.pending.iter().find(is_input) {
            return Err(broken(Invariant::L2, format!("no answer left to {action:?}")));
        }
        if self.spec.due() {
            let what = "the engine is idle, and a follow-up is due".to_string();
            return Err(broken(Invariant::I6, what));
        }
        Ok(())
    }

    fn synced(&mut self, events: &[Event]) -> Result<(), Violation> {
        let is_done = |event: &&Event| match event {
            Event::Genesis(_) | Event::Recovered => false,
            Event::Registered { .. } | Event::Decided { .. } | Event::FollowedUp(_) => true,
        };
        self.records.extend(events.iter().filter(is_done).cloned());
        if self.owes_follow_up && !self.records.is_empty() {
            self.take_owed()?;
        }
        self.take_idles()
    }

    /// Nobody waits for an idle step: it is taken as soon as its record is there, or cannot be.
    fn take_idles(&mut self) -> Result<(), Violation> {
        while self.pending.front() == Some(&Action::Idled) {
            let may_come = self.owes_follow_up || self.spec.due();
            if may_come && self.records.is_empty() {
                break;
            }
            self.pending.pop_front();
            self.follow_up()?;
        }
        Ok(())
    }

    fn replied(&mut self, ticket: Ticket, reply: &Reply) -> Result<(), Violation> {
        // What is poisoned says nothing, and who is gone cannot speak.
        if *reply == Reply::Poisoned || self.life == Life::Gone {
            return Ok(());
        }
        let is_asked = |action: &Action| match action {
            Action::Took(input) => input.ticket == ticket,
            Action::Idled => false,
        };
        if !self.pending.iter().any(is_asked) {
            let what = format!("{reply:?} answers {ticket:?}, which nothing waits for");
            return Err(broken(Invariant::I14, what));
        }
        while let Some(action) = self.pending.pop_front() {
            let is_last = is_asked(&action);
            match action {
                Action::Idled => {
                    self.take_owed()?;
                    self.follow_up()?;
                }
                Action::Took(input) => {
                    let expected = self.take(&input)?;
                    let came = is_last.then_some(reply);
                    self.compare(&input, &expected, came)?;
                    self.follow_up()?;
                }
            }
            if is_last {
                break;
            }
        }
        self.take_idles()
    }

    /// Takes an input whose records are durable.
    fn take(&mut self, input: &Input) -> Result<Expected, Violation> {
        self.take_owed()?;
        let expected = self.spec.submit(input, self.records.make_contiguous())?;
        self.records.drain(..expected.records);
        for effect in &expected.effects {
            match self.handed_out.pop_front() {
                Some(handed) if handed != *effect => {
                    let what = format!("{:?}: expected {effect:?}, came {handed:?}", input.request);
                    return Err(broken(Invariant::I3, what));
                }
                Some(_) => {}
                // A reply that left would have let it out first.
                None if self.life == Life::Gone => break,
                None => {
                    let what = format!("{:?}: {effect:?} was not handed out", input.request);
                    return Err(broken(Invariant::L1, what));
                }
            }
        }
        Ok(expected)
    }

    /// An answer that left against the spec's; of an input before it, only that it has records.
    fn compare(
        &self,
        input: &Input,
        expected: &Expected,
        came: Option<&Reply>,
    ) -> Result<(), Violation> {
        let request = &input.request;
        if let Some(effect) = self.handed_out.front() {
            let what = format!("{request:?}: nothing asked for {effect:?}");
            return Err(broken(Invariant::I3, what));
        }
        let Some(reply) = &expected.reply else {
            let next = self.records.front();
            let invariant = blame::undecided(request, came, next);
            let what = format!("{request:?}: expected its record, came {came:?} and {next:?}");
            return Err(broken(invariant, what));
        };
        match came {
            Some(came) if came != reply => {
                let invariant = blame::reply(request, reply, came, expected.records > 0);
                Err(broken(invariant, format!("{request:?}: expected {reply:?}, came {came:?}")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The follow-up beside an action: done if any waits, and no other way.
    fn follow_up(&mut self) -> Result<(), Violation> {
        match self.records.front() {
            Some(Event::FollowedUp(_)) => {
                self.owes_follow_up = true;
                self.take_owed()
            }
            Some(record) if self.spec.due() => {
                let what = format!("a follow-up is due, and {record:?} comes first");
                Err(broken(Invariant::I11, what))
            }
            Some(_) => Ok(()),
            None => {
                self.owes_follow_up = self.spec.due();
                Ok(())
            }
        }
    }

    /// Takes the follow-up whose record was still to come.
    fn take_owed(&mut self) -> Result<(), Violation> {
        if !self.owes_follow_up {
            return Ok(());
        }
        self.owes_follow_up = false;
        match self.records.pop_front() {
            Some(Event::FollowedUp(follow_up)) => self.spec.followed_up(&follow_up),
            other => {
                let what = format!("a follow-up is due, and {other:?} comes first");
                Err(broken(Invariant::I11, what))
            }
        }
    }

    /// What the disk has did happen, in order, although nobody may have heard; the rest never was.
    fn crashed(&mut self) -> Result<(), Violation> {
        self.life = Life::Gone;
        while !self.records.is_empty() {
            self.take_owed()?;
            match self.pending.pop_front() {
                None => return self.forget_what_never_was(),
                Some(Action::Idled) => self.follow_up()?,
                Some(Action::Took(input)) => {
                    if self.take(&input)?.reply.is_none() {
                        // The last list may be there in part, and nothing stands behind it.
                        return self.forget_what_never_was();
                    }
                    self.follow_up()?;
                }
            }
        }
        self.forget_what_never_was()
    }

    fn forget_what_never_was(&mut self) -> Result<(), Violation> {
        if let Some(record) = self.records.front() {
            return Err(broken(Invariant::I14, format!("nothing asked for {record:?}")));
        }
        if let Some(effect) = self.handed_out.front() {
            let what = format!("{effect:?} left before its record was durable");
            return Err(broken(Invariant::I10, what));
        }
        self.pending.clear();
        self.owes_follow_up = false;
        Ok(())
    }
}
