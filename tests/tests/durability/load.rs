//! A client that asks for random things, remembers every answer, and knows what each must mean.
//!
//! It lives outside the node and outlives it. Protects what was acknowledged: it keeps plain lists
//! of its conversations' turns, which nobody else publishes into, and shares no code with the
//! machine that it watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pinfold_core::catalog::Role;
use pinfold_core::id::{
    CheckpointId, ConversationId, Incarnation, ObjectId, OpId, OwnerId, PinId, StartId, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, LostObject, Outcome, Rejection, TurnKey};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::job::{self, TURNS, W, endpoint};
use crate::wire::{Answer, Ask, Verb};

const ENDPOINTS: u32 = 10;
const CONVERSATIONS: u32 = 4;

/// Random numbers of one seed.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.next_u32() % bound.max(1)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let bound = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        choices.get(self.below(bound) as usize).cloned()
    }
}

/// What a conversation's turns must be.
#[derive(Clone, Debug, Default)]
struct Ledger {
    /// In order of first publication.
    live: Vec<TurnId>,
    expired: BTreeSet<TurnId>,
    forgotten: bool,
}

/// How far a save has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Moves,
    Settled,
    Published,
}

/// See the [module](self).
pub(crate) struct Client {
    pub(crate) number: u8,
    pub(crate) id: OwnerId,
    role: Role,
    draws: Draws,
    incarnation: Incarnation,
    starts: u64,
    sequence: u64,
    /// Sent and not answered.
    pub(crate) under_way: Option<Ask>,
    /// The last answered commands of this incarnation, the newest last: one more than receipts.
    answered: VecDeque<(Ask, Answer)>,
    saves: Vec<(PinId, Stage)>,
    loads: Vec<PinId>,
    checkpoints: Vec<CheckpointId>,
    ledgers: BTreeMap<ConversationId, Ledger>,
}

/// What all clients share: what was handed out to whoever comes first.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) work: Vec<(CheckpointId, Vec<ObjectId>)>,
    /// Incarnations that somebody follows, for the operator to fence.
    former: Vec<(OwnerId, Incarnation)>,
}

impl Client {
    /// The first client is the operator.
    pub(crate) fn new(number: u8, seed: u64) -> Self {
        let (role, name) = match number {
            0 => (Role::Operator, "operator".to_owned()),
            _ => (Role::Worker, format!("worker {number}")),
        };
        Self {
            number,
            id: OwnerId::of_name(&name),
            role,
            draws: Draws::new(seed ^ (u64::from(number) + 1) << 32),
            incarnation: Incarnation(0),
            starts: 0,
            sequence: 0,
            under_way: None,
            answered: VecDeque::new(),
            saves: Vec::new(),
            loads: Vec::new(),
            checkpoints: Vec::new(),
            ledgers: BTreeMap::new(),
        }
    }

    /// What it asks next. It waits for the answer then.
    pub(crate) fn next(&mut self, shared: &mut Shared) -> Ask {
        let ask = if self.incarnation == Incarnation(0) || self.draws.below(300) == 0 {
            self.starts += 1;
            let start = StartId::from_u128(u128::from(self.number) << 64 | u128::from(self.starts));
            Ask::Register { owner: self.id, role: self.role, after: self.incarnation, start }
        } else {
            let verb = self.verb(shared);
            self.sequence += 1;
            let (incarnation, sequence) = (self.incarnation, self.sequence);
            Ask::Command(OpId { owner: self.id, incarnation, sequence }, verb)
        };
        self.under_way = Some(ask.clone());
        ask
    }

    fn verb(&mut self, shared: &mut Shared) -> Verb {
        let choice = self.draws.below(100);
        if self.role == Role::Operator
            && let Some((owner, incarnation)) = shared.former.pop()
        {
            return Verb::Fence { owner, incarnation };
        }
        let started = match choice {
            0..60 => self.go_on_with_a_save(),
            60..66 => self.loads.pop().map(|pin| {
                let evidence = Evidence::QuiescedSuccess;
                Verb::Settle { pin, evidence }
            }),
            66..72 => {
                shared.work.pop().map(|(checkpoint, objects)| self.deleted(checkpoint, objects))
            }
            72..76 => Some(Verb::Collect { limit: 1 + self.draws.below(20) }),
            76..80 => self.pin(),
            80..82 => self
                .draws
                .one_of(&self.checkpoints)
                .map(|checkpoint| Verb::Lost { checkpoint, object: LostObject::Shared(0) }),
            82..84 => self.saves.last().map(|(pin, _)| Verb::Doubt {
                pin: *pin,
                doubtful: self.sequence.is_multiple_of(2),
            }),
            84..86 if self.role == Role::Operator => self.end_something(),
            _ => None,
        };
        started.unwrap_or_else(|| self.prepare())
    }

    fn prepare(&mut self) -> Verb {
        let number = u64::from(self.number) * 1_000 + u64::from(self.draws.below(ENDPOINTS));
        let attempt = u128::from(self.number) << 64 | u128::from(self.sequence);
        job::prepare(endpoint(number), attempt | u128::from(self.incarnation.0) << 80)
    }

    fn go_on_with_a_save(&mut self) -> Option<Verb> {
        let (pin, stage) = self.saves.first().copied()?;
        Some(match stage {
            Stage::Moves if self.draws.below(12) == 0 => {
                Verb::Settle { pin, evidence: Evidence::QuiescedFailure }
            }
            Stage::Moves => Verb::Settle { pin, evidence: Evidence::QuiescedSuccess },
            Stage::Settled if self.draws.below(20) == 0 => Verb::Publish { pin, turn: None },
            Stage::Settled => Verb::Publish { pin, turn: Some(self.turn()) },
            Stage::Published => Verb::Release { pin },
        })
    }

    /// Most are new, some are old, and some of those are expired.
    fn turn(&mut self) -> TurnKey {
        let conversation =
            u64::from(self.number) * 1_000 + u64::from(self.draws.below(CONVERSATIONS));
        let old = self.draws.below(4) == 0;
        let turn = if old { self.sequence.saturating_sub(20) } else { self.sequence };
        // A conversation is over some day, and another one begins.
        job::turn(conversation + self.sequence / 500 * 10, turn / 3)
    }

    fn pin(&mut self) -> Option<Verb> {
        let first = u64::from(self.number) * 1_000;
        let candidates = (first..first + 4).map(endpoint).collect();
        Some(Verb::Pin { candidates, limit: 1 + self.draws.below(3) })
    }

    fn deleted(&mut self, checkpoint: CheckpointId, objects: Vec<ObjectId>) -> Verb {
        let outcome = match self.draws.below(8) {
            0 => DeleteOutcome::Unknown,
            1 => DeleteOutcome::Refused,
            _ => DeleteOutcome::Gone,
        };
        let outcomes = objects.into_iter().map(|object| (object, outcome)).collect();
        Verb::Deleted { checkpoint, outcomes }
    }

    fn end_something(&mut self) -> Option<Verb> {
        if self.draws.below(2) == 0 {
            let conversations: Vec<_> = self.ledgers.keys().copied().collect();
            let conversation = self.draws.one_of(&conversations)?;
            return Some(Verb::Forget { conversation });
        }
        self.draws.one_of(&self.checkpoints).map(|checkpoint| Verb::Drop { checkpoint })
    }

    /// Hears the answer to what is under way, and judges it.
    pub(crate) fn heard(&mut self, answer: Answer, shared: &mut Shared) -> Result<(), String> {
        let ask = self.under_way.take().ok_or("an answer to nothing")?;
        let judged = match &ask {
            Ask::Register { after, .. } => self.registered(*after, &answer, shared),
            Ask::Command(op, verb) => {
                let judged = self.learned(*op, verb, &answer);
                self.answered.push_back((ask.clone(), answer));
                if self.answered.len() > W as usize + 1 {
                    self.answered.pop_front();
                }
                judged
            }
        };
        judged.map_err(|why| format!("{why}: {ask:?} was answered {answer:?}"))
    }

    fn registered(
        &mut self,
        after: Incarnation,
        answer: &Answer,
        shared: &mut Shared,
    ) -> Result<(), String> {
        let Ok(Outcome::Registered { incarnation }) = answer else {
            return Err("not registered".into());
        };
        if after != Incarnation(0) {
            shared.former.push((self.id, after));
        }
        self.incarnation = *incarnation;
        self.sequence = 0;
        self.answered.clear();
        self.saves.clear();
        self.loads.clear();
        Ok(())
    }

    fn learned(&mut self, op: OpId, verb: &Verb, answer: &Answer) -> Result<(), String> {
        match (verb, answer) {
            (Verb::Publish { turn: Some(turn), .. }, answer) => {
                self.advance(verb);
                self.published(*turn, answer)
            }
            (Verb::Forget { conversation }, Ok(_)) => {
                let ledger = self.ledgers.entry(*conversation).or_default();
                ledger.expired.extend(ledger.live.drain(..));
                ledger.forgotten = true;
                Ok(())
            }
            (_, Ok(Outcome::Prepared { pin, checkpoint })) => {
                self.saves.push((*pin, Stage::Moves));
                self.know(*checkpoint);
                require(*pin == PinId { op, place: 0 }, "a pin's id is not its operation's")
            }
            (_, Ok(Outcome::AlreadyPublished { pin, checkpoint })) => {
                self.loads.push(*pin);
                self.know(*checkpoint);
                Ok(())
            }
            (_, Ok(Outcome::Pinned(answers))) => {
                self.loads.extend((0..).zip(answers).map(|(place, _)| PinId { op, place }));
                Ok(())
            }
            (Verb::Release { pin }, Ok(_)) => {
                self.saves.retain(|(save, _)| save != pin);
                Ok(())
            }
            (Verb::Settle { .. } | Verb::Publish { .. }, _) => {
                self.advance(verb);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn know(&mut self, checkpoint: CheckpointId) {
        self.checkpoints.push(checkpoint);
        if self.checkpoints.len() > 30 {
            self.checkpoints.remove(0);
        }
    }

    /// A save goes on whatever was answered; what failed is released.
    fn advance(&mut self, verb: &Verb) {
        let (Verb::Settle { pin, .. } | Verb::Publish { pin, .. }) = verb else { return };
        for (save, stage) in &mut self.saves {
            if save == pin {
                *stage = match stage {
                    Stage::Moves => Stage::Settled,
                    Stage::Settled | Stage::Published => Stage::Published,
                };
            }
        }
    }

    fn published(&mut self, key: TurnKey, answer: &Answer) -> Result<(), String> {
        let ledger = self.ledgers.entry(key.conversation).or_default();
        let over = ledger.forgotten || ledger.expired.contains(&key.turn);
        match answer {
            Err(Rejection::TurnExpired) => require(over, "I6: a turn is expired that may stay"),
            Err(_) => Ok(()),
            Ok(Outcome::Published { expired, .. }) => {
                require(!over, "I7: an expired turn returned")?;
                if !ledger.live.contains(&key.turn) {
                    ledger.live.push(key.turn);
                }
                let due = (ledger.live.len() > TURNS).then(|| ledger.live.remove(0));
                ledger.expired.extend(due);
                require(expired.map(|key| key.turn) == due, "I6: another turn expired")
            }
            Ok(_) => Err("not an answer of a publication".into()),
        }
    }

    /// What may be asked once more, and the answer that must come: the first one while its receipt
    /// is kept, and then a refusal.
    pub(crate) fn repetitions(&self) -> Vec<(Ask, Answer)> {
        let mut repetitions: Vec<_> = self.answered.iter().cloned().collect();
        let forgotten = repetitions.len().checked_sub(W as usize);
        if forgotten == Some(1) {
            repetitions[0].1 = Err(Rejection::ReceiptForgotten);
        }
        match (&self.under_way, forgotten) {
            (None, _) | (Some(Ask::Command(..)), None) => {}
            // Nobody knows whether what is under way has taken the place of the oldest receipt.
            (Some(Ask::Command(..)), Some(oldest)) => drop(repetitions.remove(oldest)),
            // Nor whether there is another incarnation.
            (Some(Ask::Register { .. }), _) => repetitions.clear(),
        }
        repetitions
    }

    /// The turns that must be retained, and no others of its conversations.
    pub(crate) fn live_turns(&self) -> impl Iterator<Item = TurnKey> {
        self.ledgers.iter().flat_map(|(conversation, ledger)| {
            ledger.live.iter().map(|turn| TurnKey { conversation: *conversation, turn: *turn })
        })
    }
}

fn require(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_string()) }
}
