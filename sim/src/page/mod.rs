//! The space-time picture of a run, on a page of its own: who took part, what went between them,
//! what broke, and what was seen of every step.
//!
//! It looks on while a run goes and decides nothing. The page needs nothing else: no script, no
//! font, no picture from elsewhere; and every text on it is escaped. The same run gives the same
//! page, byte by byte.

mod arrow;
mod draw;
mod html;
mod lane;
mod messages;
mod moves;
mod part;

use std::collections::VecDeque;

use pinfold_core::id::OwnerId;

pub use self::html::escape;

use self::arrow::Arrow;
use self::lane::{Lane, Sign, State, signs};
use self::messages::Messages;
use self::moves::Moves;
use crate::run::{Found, Watch};
use crate::script::show_gauges;
use crate::script::world::say;
use crate::seen::{MoveId, Seen};
use crate::trace::Trace;
use crate::world::choice::{Choice, parts_of};
use crate::world::setup::Setup;
use crate::world::{Kind, World};

/// How many steps a picture shows: the last ones, where what was found is.
pub const MOST_STEPS: usize = 3000;

/// What stands above a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Which run it is: a seed, or a script's name.
    pub title: &'a str,
    /// The command that was run, as one would type it.
    pub command: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// After so many steps the recovery begins; none when there was no recovery.
    pub recovers_after: Option<u32>,
    /// Where a script's run went another way than the script says, a line each.
    pub differences: &'a [String],
}

/// A picture of a run. See the [module](self).
#[derive(Clone, Debug)]
pub struct Picture {
    setup: Setup,
    trace: Trace,
    messages: Messages,
    moves: Moves,
    /// How many steps there were, shown or not.
    count: u32,
    /// The choice that is under way cannot happen.
    skips: bool,
    steps: VecDeque<Step>,
    /// What is under way after the last step.
    open: Vec<Arrow>,
}

/// What the page shows of a step.
#[derive(Clone, Debug)]
struct Step {
    number: u32,
    /// The choice, in the words of a script.
    choice: String,
    kind: Kind,
    /// What was seen, in the trace's words.
    seen: Vec<String>,
    /// The coordinator after it, in a line.
    gauges: String,
    /// How each lane is after it.
    states: Vec<State>,
    signs: Vec<(Lane, Sign)>,
    /// The arrows that end here.
    arrows: Vec<Arrow>,
}

/// One step, as those see it who draw its arrows and signs.
#[derive(Clone, Copy, Debug)]
struct Now<'a> {
    /// Its number, from 1.
    number: u32,
    /// The World after it.
    world: &'a World,
    choice: Choice,
    seen: &'a [Seen],
}

impl Picture {
    /// A picture of a World of this size.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self {
            setup: setup.clone(),
            trace: Trace::new(setup),
            messages: Messages::default(),
            moves: Moves::default(),
            count: 0,
            skips: false,
            steps: VecDeque::new(),
            open: Vec::new(),
        }
    }

    /// The page, with what the judges found.
    #[must_use]
    pub fn page(&self, head: &Head<'_>, found: Option<&Found>) -> String {
        html::page(self, head, found)
    }
}

impl Watch for Picture {
    fn before(&mut self, world: &World, kind: Kind, choice: Choice) {
        self.skips = !world.allows(choice);
        self.trace.before(world, kind, choice);
    }

    fn step(&mut self, world: &World, kind: Kind, choice: Choice, seen: &[Seen]) {
        if core::mem::take(&mut self.skips) {
            return;
        }
        self.count += 1;
        let now = Now { number: self.count, world, choice, seen };
        let mut arrows = self.messages.step(&now);
        arrows.extend(self.moves.step(&now));
        self.open = self.messages.open(&now);
        self.open.extend(self.moves.open(&now));
        self.steps.push_back(Step {
            number: now.number,
            choice: say(&self.setup, choice),
            kind,
            seen: self.trace.say_seen(choice, seen),
            gauges: gauges(world),
            states: State::of(world),
            signs: signs(&now),
            arrows,
        });
        if self.steps.len() > MOST_STEPS {
            self.steps.pop_front();
            self.messages.forget(self.steps[0].number);
        }
    }
}

impl Now<'_> {
    /// The lane of an owner's process.
    fn lane_of(&self, owner: OwnerId) -> Option<Lane> {
        let mut processes = self.world.processes.iter().zip(0..);
        processes.find(|(it, _)| it.owner == owner).map(|(_, process)| Lane::Process(process))
    }

    /// The lane of the process that began a move.
    fn lane_of_move(id: MoveId) -> Lane {
        Lane::Process(parts_of(id).0.process)
    }
}

/// The coordinator in a line: what is on disk, and what is not yet.
fn gauges(world: &World) -> String {
    let it = &world.coordinator;
    let stands = match &it.engine {
        None => "it is gone",
        Some(engine) if engine.is_poisoned() => "it is over",
        Some(_) if it.batch.is_some() => "more is written",
        Some(_) if it.is_dirty() => "more is decided",
        Some(_) => "all is on disk",
    };
    let sums = show_gauges(&[], &it.disk.catalog.gauges());
    format!("{} records on disk, {stands}; {sums}", it.disk.position)
}
