//! What a seed is about: how large its World is, what may go wrong in it, and how often.
//!
//! Drawing every step from everything misses most bugs. So each seed first draws which faults exist
//! at all and how often, and how much there is of everything; many small differences between seeds
//! find what one large mixture does not.

use core::fmt;

use pinfold_core::policy::{Limits, Policy, Quarantine};

use crate::draws::{Draws, Stream};
use crate::world::setup::Setup;
use crate::world::{Group, Kind};

/// How often each kind of choice is taken.
///
/// A fault's number is in parts per million of the steps at which it could happen. What goes on has
/// weights, among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mix {
    weights: [u32; Kind::COUNT],
}

/// A knob that somebody turned by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knob {
    /// Of what.
    pub kind: Kind,
    /// A fault's parts per million, or a weight.
    pub value: u32,
}

/// Why a text is no knob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKnob {
    /// Not `NAME=VALUE`.
    #[error("{0:?} is no knob: write it like dup=2% or crash=off")]
    Form(String),
    /// No such kind.
    #[error("there is no fault or step named {0:?}")]
    Name(String),
    /// Not a share.
    #[error("{0:?} is no share: write off, or per cent like 2% or 0.5%; or a weight for a step")]
    Value(String),
}

impl Knob {
    /// Reads `dup=2%`, `crash=off`, or for what is no fault a weight like `save=40`.
    ///
    /// # Errors
    /// [`BadKnob`] says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, BadKnob> {
        let (name, value) = text.split_once('=').ok_or_else(|| BadKnob::Form(text.to_string()))?;
        let kind = Kind::all().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| BadKnob::Name(name.to_string()))?;
        let bad = || BadKnob::Value(value.to_string());
        let value = match value.strip_suffix('%') {
            _ if value == "off" => 0,
            Some(share) if kind.is_fault() => parts_per_million(share).ok_or_else(bad)?,
            Some(_) => return Err(bad()),
            None if kind.is_fault() => return Err(bad()),
            None => value.parse().ok().filter(|weight| *weight <= 1000).ok_or_else(bad)?,
        };
        Ok(Self { kind, value })
    }
}

/// As it is read.
impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, value } = self;
        let name = kind.name();
        match (value, kind.is_fault()) {
            (0, _) => write!(f, "{name}=off"),
            (weight, false) => write!(f, "{name}={weight}"),
            (parts, true) => {
                let part = format!(".{:04}", parts % 10_000);
                let part = part.trim_end_matches('0').trim_end_matches('.');
                write!(f, "{name}={}{part}%", parts / 10_000)
            }
        }
    }
}

/// `2` or `0.5` per cent.
fn parts_per_million(share: &str) -> Option<u32> {
    let (whole, part) = share.split_once('.').unwrap_or((share, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || part.len() > 4 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: u32 = format!("{part:0<4}").parse().ok()?;
    let parts = whole.parse::<u32>().ok()? * 10_000 + part;
    (parts <= 1_000_000).then_some(parts)
}

impl Mix {
    /// Every fault off; what goes on, by how often it is needed.
    #[must_use]
    pub fn calm() -> Self {
        let mut weights = [0; Kind::COUNT];
        for (kind, weight) in CALM {
            weights[kind.place()] = weight;
        }
        Self { weights }
    }

    /// A kind's number.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> u32 {
        self.weights[kind.place()]
    }

    /// Turns a knob.
    pub fn turn(&mut self, knob: Knob) {
        self.weights[knob.kind.place()] = knob.value;
    }

    fn draw(draws: &mut Draws) -> Self {
        let mut mix = Self::calm();
        for kind in Kind::all() {
            let weight = &mut mix.weights[kind.place()];
            if kind.is_fault() {
                // Half of the faults do not exist; the others are rare, common, or all over.
                let exists = draws.happens(500_000);
                let share = draws.pick(&[1_000, 3_000, 10_000, 30_000, 60_000]).unwrap_or(0);
                *weight = if exists { share } else { 0 };
            } else {
                let times = draws.pick(&[1, 2, 2, 3, 6]).unwrap_or(2);
                *weight = (*weight * times).div_ceil(2);
            }
        }
        // Some stores are so slow that much happens while bytes move.
        if draws.happens(150_000) {
            for kind in [Kind::PutOk, Kind::GetAnswered, Kind::CheckKnown] {
                mix.weights[kind.place()] = mix.weights[kind.place()].div_ceil(16);
            }
        }
        for kind in Kind::faults() {
            mix.weights[kind.place()] /= rarer(kind.group());
        }
        for (kind, least) in LEAST {
            let share = &mut mix.weights[kind.place()];
            *share = (*share).max(least);
        }
        mix
    }
}

/// By how much faults are rarer than was drawn. What could happen at every single step would let
/// nothing come to its end; of a transfer's many moves, each could fail the whole.
const fn rarer(group: Group) -> u32 {
    match group {
        Group::Always
        | Group::Up
        | Group::Jobs
        | Group::Pins
        | Group::Checkpoints
        | Group::Objects => 8,
        Group::Moves | Group::Checks => 2,
        Group::Down
        | Group::Dirty
        | Group::Written
        | Group::Requests
        | Group::Answers
        | Group::Asked
        | Group::Lingering
        | Group::Work
        | Group::LateDeletes
        | Group::Vanished
        | Group::Strays => 1,
    }
}

/// Faults that are in every seed, and how often at least: without them a rank would wait for ever
/// for another that never comes, and what is over would never begin anew.
const LEAST: [(Kind, u32); 3] = [(Kind::Crash, 200), (Kind::Die, 200), (Kind::GiveUp, 10_000)];

/// What goes on, and how often beside each other.
const CALM: [(Kind, u32); 34] = [
    (Kind::Register, 30),
    (Kind::Save, 60),
    (Kind::Load, 20),
    (Kind::Agree, 200),
    (Kind::Concur, 200),
    (Kind::Proceed, 20),
    (Kind::Publish, 6),
    (Kind::Deliver, 300),
    (Kind::Answer, 300),
    (Kind::Resend, 10),
    (Kind::Sync, 200),
    (Kind::Write, 40),
    (Kind::Commit, 200),
    (Kind::FollowUp, 10),
    (Kind::Restart, 200),
    (Kind::Compact, 2),
    (Kind::PutOk, 400),
    (Kind::GetAnswered, 300),
    (Kind::CheckKnown, 500),
    (Kind::Retire, 60),
    (Kind::Collect, 12),
    (Kind::DeleteGone, 200),
    (Kind::Report, 60),
    (Kind::Audit, 2),
    (Kind::Sweep, 30),
    (Kind::Look, 3),
    (Kind::Configure, 2),
    (Kind::Forget, 1),
    (Kind::Drop, 4),
    (Kind::ProvenSettle, 6),
    (Kind::ProvenFence, 10),
    (Kind::Release, 4),
    (Kind::Undoubt, 3),
    (Kind::RetireOwner, 1),
];

/// Draws what a seed is about.
#[must_use]
pub fn draw(seed: u64) -> (Setup, Mix) {
    let mut draws = Draws::new(seed, Stream::Swarm);
    (draw_setup(&mut draws), Mix::draw(&mut draws))
}

fn draw_setup(draws: &mut Draws) -> Setup {
    // Most Worlds are small, where everything meets everything; some have much of it at once.
    let is_large = draws.happens(200_000);
    let mut small = |from: u32, to: u32, most: u32| {
        u8::try_from(draws.between(from, if is_large { most } else { to })).unwrap_or(1)
    };
    let (workers, operators) = (small(1, 3, 6), small(1, 2, 2));
    let (endpoints, shards) = (small(1, 4, 8), small(1, 2, 2));
    let (conversations, turns, transfers) = (small(1, 3, 6), small(2, 6, 12), small(1, 2, 3));
    let policies = [(); 2].map(|()| draw_policy(draws));
    let limits = draw_limits(draws);
    let overrun = if draws.happens(250_000) { draws.between(1, 12) } else { 0 };
    Setup {
        workers,
        operators,
        endpoints,
        shards,
        conversations,
        turns,
        transfers,
        starts: u32::MAX,
        overrun,
        policies,
        limits,
        ..Setup::default()
    }
}

fn draw_policy(draws: &mut Draws) -> Policy {
    // A checkpoint has about one to three thousand bytes.
    let mut budget = |most: u32| {
        let bounded = draws.happens(300_000);
        let least = if draws.happens(150_000) { 500 } else { 3_000 };
        bounded.then(|| u64::from(draws.between(least, most)))
    };
    let (conversation_bytes, job_bytes) = (budget(8_000), budget(16_000));
    let quarantine =
        if draws.happens(300_000) { Quarantine::Endpoint } else { Quarantine::Generation };
    Policy { turns: draws.between(1, 3), conversation_bytes, job_bytes, quarantine }
}

/// Mostly far away; in some seeds one or two are so near that they are met.
fn draw_limits(draws: &mut Draws) -> Limits {
    let unanswered = draws.pick(&[2, 2, 3, 4, 8]).unwrap_or(8);
    let mut limits = Limits { unanswered, ..Limits::default() };
    let bytes = |draws: &mut Draws| u64::from(draws.between(2_000, 20_000));
    for _ in 0..draws.below(4) {
        match draws.below(17) {
            0 => limits.owners = draws.between(2, 4),
            1 => limits.pins_per_owner = draws.between(1, 3),
            2 => limits.pins = draws.between(1, 5),
            3 => limits.bytes_pinned = bytes(draws),
            4 => limits.bytes_unscoped = bytes(draws) / 2,
            5 => limits.bytes_in_doubt = none_or_few(draws),
            6 => limits.bytes_quarantined = none_or_few(draws),
            7 => draw_size_limit(draws, &mut limits),
            8 => limits.generations_per_endpoint = draws.between(1, 3),
            9 => limits.references_per_turn = draws.between(1, 2),
            10 => limits.candidates = draws.between(1, 2),
            11 => limits.answers = 1,
            12 => limits.conversations = draws.between(1, 2),
            13 => limits.expired_turns = draws.between(2, 6),
            14 => limits.commands_per_list = 1,
            15 => limits.turns = 3,
            // None.
            _ => {}
        }
    }
    limits
}

/// These refuse a whole geometry, or all of them, for the length of a run.
fn draw_size_limit(draws: &mut Draws, limits: &mut Limits) {
    match draws.below(3) {
        0 => limits.shards = 1,
        1 => limits.objects_per_shard = draws.between(1, 3),
        _ => limits.objects_per_checkpoint = draws.between(2, 6),
    }
}

fn none_or_few(draws: &mut Draws) -> u64 {
    draws.pick(&[0, 0, 500, 2_000]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_shown_as_they_are_read() {
        for text in ["dup=2%", "crash=off", "dup=0.5%", "lose=12.0025%", "die=100%", "save=40"] {
            assert_eq!(Knob::read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_knob_is_refused_in_words_that_name_it() {
        for (text, word) in [
            ("dup", "\"dup\" is no knob"),
            ("dupe=2%", "\"dupe\""),
            ("dup=101%", "\"101%\""),
            ("dup=2", "\"2\""),
            ("dup=.5%", "\".5%\""),
            ("dup=0.00001%", "\"0.00001%\""),
            ("save=2%", "\"2%\""),
            ("save=1001", "\"1001\""),
        ] {
            let error = Knob::read(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
