//! The network: messages that were sent and may arrive late, twice, in any order, or never.

use pinfold_core::catalog::{Command, Register};
use pinfold_core::id::OpId;
use pinfold_core::outcome::{Outcome, Rejection};

use super::choice::About;

/// How many copies of one message may be under way.
const MOST_COPIES: u8 = 3;

/// A message and how many copies of it are under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent<T> {
    /// What it is about.
    pub about: About,
    /// What it says.
    pub content: T,
    /// How many copies will still arrive, unless they are lost.
    pub copies: u8,
}

/// What a process asks of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Asks {
    /// To be registered.
    Register(Register),
    /// A command.
    Command(OpId, Command),
    /// Two commands.
    List([(OpId, Command); 2]),
}

/// An answer to one command, or none when it was not tried.
pub type Answer = Option<Result<Outcome, Rejection>>;

/// What the coordinator answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Says {
    /// To a registration, a command, or a list that is refused as a whole.
    One(Result<Outcome, Rejection>),
    /// To a list.
    Each([Answer; 2]),
    /// Nothing is known.
    Poisoned,
}

/// Messages under way in one direction, in the order in which they were sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane<T> {
    /// The messages.
    pub sent: Vec<Sent<T>>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { sent: Vec::new() }
    }
}

impl<T: Clone> Lane<T> {
    /// Sends a message; one that is under way already gets one copy more.
    pub fn send(&mut self, about: About, content: T) {
        match self.sent.iter_mut().find(|it| it.about == about) {
            Some(it) => {
                it.copies = (it.copies + 1).min(MOST_COPIES);
                it.content = content;
            }
            None => self.sent.push(Sent { about, content, copies: 1 }),
        }
    }

    /// True while a copy is under way.
    #[must_use]
    pub fn has(&self, about: About) -> bool {
        self.sent.iter().any(|it| it.about == about)
    }

    /// One copy arrives.
    pub fn take(&mut self, about: About) -> Option<T> {
        let place = self.sent.iter().position(|it| it.about == about)?;
        let it = &mut self.sent[place];
        it.copies -= 1;
        if it.copies > 0 { Some(it.content.clone()) } else { Some(self.sent.remove(place).content) }
    }

    /// One copy arrives, and another one of it is under way.
    pub fn peek(&mut self, about: About) -> Option<T> {
        Some(self.sent.iter().find(|it| it.about == about)?.content.clone())
    }
}
