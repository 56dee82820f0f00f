//! The naive spec: the protocol's catalog a second time, as short lists that are looked through and
//! counted again for every question.
//!
//! It protects the engine's answers from the engine's own cleverness: it shares core's data with it
//! and none of its logic, keeps no sum, index or link, and must still say the same. It takes what
//! it is given in the order of the journal, so it never has to take anything back. It never
//! guesses: where the protocol leaves a choice, it reads what was chosen and says whether that is
//! allowed.

mod apply;
mod collect;
mod follow_up;
mod form;
mod lists;
mod lockstep;
mod look;
mod prepare;
mod publish;
mod register;
mod ruling;

pub use lists::Spec;
pub use lockstep::Lockstep;

use pinfold_core::catalog::{Change, Command, Event};
use pinfold_core::engine::{Effect, Input, Reply, Request};
use pinfold_core::id::{Epoch, OpId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::{Field, Limit, Malformed, Outcome, Problem, Rejection};

use crate::blame;
use crate::violation::{Judge, Violation};

/// What a command was answered, or must be.
type Answer = Result<Outcome, Rejection>;

/// What must become of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// What the reply must be; none when a record of the input is not the next one, and so
    /// nothing of it may have left.
    pub reply: Option<Reply>,
    /// How many records the journal has of it: one for each command that was decided, or for a
    /// new incarnation.
    pub records: usize,
    /// The delete work that leaves before the reply.
    pub effects: Vec<Effect>,
}

/// Why an input was not taken to its end.
enum Stop {
    /// A record says something that must not be.
    Broken(Violation),
    /// The next record is not there, or is another input's.
    Missing,
}

/// The records behind an input, and what was read of them.
struct Records<'a> {
    journal: &'a [Event],
    read: usize,
    effects: Vec<Effect>,
}

impl<'a> Records<'a> {
    /// The next record, if it is the one that is looked for.
    fn next(&mut self, is_it: impl Fn(&Event) -> bool) -> Result<&'a Event, Stop> {
        let record = self.journal.get(self.read).filter(|record| is_it(record));
        let record = record.ok_or(Stop::Missing)?;
        self.read += 1;
        Ok(record)
    }

    /// What a command changed, by its record.
    fn change_of(&mut self, operation: OpId) -> Result<&'a Change, Stop> {
        let is_its = |event: &Event| matches!(event, Event::Decided { op, .. } if *op == operation);
        match self.next(is_its)? {
            Event::Decided { change, .. } => Ok(change),
            Event::Genesis(_)
            | Event::Recovered
            | Event::Registered { .. }
            | Event::FollowedUp(_) => Err(Stop::Missing),
        }
    }
}

/// The violation that this judge reports.
fn broken(invariant: Invariant, what: String) -> Violation {
    Violation { invariant, judge: Judge::Spec, what }
}

/// An answer that names the bound and what would exceed it, if it would.
fn within(limit: Limit, bound: u64, needed: u64) -> Result<(), Rejection> {
    if needed > bound { Err(Rejection::LimitExceeded { limit, bound, needed }) } else { Ok(()) }
}

impl Spec {
    /// Takes an input whose records, if it makes any, are the next ones of the journal.
    ///
    /// # Errors
    /// A record that differs from what the protocol demands.
    pub fn submit(&mut self, input: &Input, journal: &[Event]) -> Result<Expected, Violation> {
        let mut records = Records { journal, read: 0, effects: Vec::new() };
        let reply = match self.answer(input, &mut records) {
            Ok(reply) => Some(reply),
            Err(Stop::Missing) => None,
            Err(Stop::Broken(violation)) => return Err(violation),
        };
        Ok(Expected { reply, records: records.read, effects: records.effects })
    }

    fn answer(&mut self, input: &Input, records: &mut Records<'_>) -> Result<Reply, Stop> {
        let epoch = input.epoch;
        Ok(match &input.request {
            Request::Register(register) => {
                Reply::Command(self.registration(epoch, register, records)?)
            }
            Request::Command(op, command) => {
                Reply::Command(self.command(epoch, *op, command, records)?)
            }
            Request::List(commands) => self.list(epoch, commands, records)?,
            Request::Query(query) if epoch == self.job.epoch => self.look(query),
            Request::Query(_) => Reply::WrongEpoch,
        })
    }

    /// A list is only a way to send: each command by itself, up to the first refusal.
    fn list(
        &mut self,
        epoch: Epoch,
        commands: &[(OpId, Command)],
        records: &mut Records<'_>,
    ) -> Result<Reply, Stop> {
        if commands.is_empty() {
            let malformed = Malformed { field: Field::Commands, problem: Problem::Empty };
            return Ok(Reply::Command(Err(Rejection::Malformed(malformed))));
        }
        let bound = u64::from(self.job.limits.commands_per_list);
        if let Err(refusal) = within(Limit::CommandsPerList, bound, commands.len() as u64) {
            return Ok(Reply::Command(Err(refusal)));
        }
        let mut answers = vec![None; commands.len()];
        for ((op, command), place) in commands.iter().zip(&mut answers) {
            let answer = self.command(epoch, *op, command, records)?;
            *place = Some(answer);
            if answer.is_err() {
                break;
            }
        }
        Ok(Reply::List(answers))
    }

    /// One command: answered at once, or decided as its record says.
    fn command(
        &mut self,
        epoch: Epoch,
        op: OpId,
        command: &Command,
        records: &mut Records<'_>,
    ) -> Result<Answer, Stop> {
        match self.admit(epoch, op, command) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
        }
        let change = records.change_of(op)?;
        let expected = self.rule(op, command, change).unwrap_or_else(Change::Refused);
        if expected != *change {
            let invariant = blame::change(command, &expected, change);
            let what = format!("{op} {command:?}: expected {expected:?}, recorded {change:?}");
            return Err(Stop::Broken(broken(invariant, what)));
        }
        let answer = self.apply(op, change);
        self.keep_receipt(op, command, answer);
        if let Change::Collected { work, .. } = change {
            records.effects.extend(work.iter().map(|piece| self.delete(op, piece)));
        }
        Ok(answer)
    }
}
