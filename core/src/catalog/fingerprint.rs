//! The digest of a command's content, which tells an honest retry from a sequence used twice.
//!
//! It is part of the journal: every receipt carries it, and a retry after a restart is compared
//! with what was written before. So all of this stays as it is: the number of each verb, what a
//! command feeds, in which order and width, and how a word is mixed in. It shares nothing with the
//! hash of the indexes, which may change.

use super::{Command, Prepare};
use crate::id::{CheckpointId, PinId};
use crate::outcome::LostObject;
use crate::policy::{Limits, Policy};

/// What the digest of a verb starts from.
const START: u64 = 0x7069_6e66_6f6c_6421;
/// An odd multiplier without pattern: from the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A 64-bit digest, fed word by word.
///
/// Each step can be undone, so no word makes what came before it count for nothing, and commands
/// of one length that differ in one word never agree. Others agree by chance once in 2⁶⁴; it is
/// no defence against an owner that wants to confuse itself.
#[derive(Clone, Copy, Debug)]
struct Fingerprint(u64);

impl Fingerprint {
    /// Starts with the verb.
    const fn of(verb: u64) -> Self {
        Self(START).word(verb)
    }

    const fn word(self, word: u64) -> Self {
        let state = self.0 ^ word;
        let state = (state ^ (state >> 32)).wrapping_mul(FACTOR);
        Self(state ^ (state >> 29))
    }

    /// Two words, the low half first.
    fn bytes_16(self, bytes: &[u8; 16]) -> Self {
        let (halves, _) = bytes.as_chunks::<8>();
        halves.iter().fold(self, |print, half| print.word(u64::from_le_bytes(*half)))
    }

    const fn finish(self) -> u64 {
        self.0
    }
}

/// The digest of a command's content.
pub(super) fn fingerprint(command: &Command) -> u64 {
    let pin_words = |fingerprint: Fingerprint, pin: &PinId| {
        fingerprint
            .bytes_16(pin.op.owner.as_bytes())
            .word(pin.op.incarnation.0)
            .word(pin.op.sequence)
            .word(u64::from(pin.place))
    };
    let checkpoint_words = |fingerprint: Fingerprint, id: &CheckpointId| {
        fingerprint.bytes_16(id.endpoint.as_bytes()).word(id.generation.0)
    };
    match command {
        Command::Prepare(prepare) => prepare_words(prepare),
        Command::Settle { pin, shard, evidence } => {
            let shard = shard.map_or(u64::MAX, |shard| u64::from(shard.0));
            pin_words(Fingerprint::of(2), pin).word(shard).word(*evidence as u64)
        }
        Command::Publish { pin, turn } => {
            let print = pin_words(Fingerprint::of(3), pin);
            turn.map_or(print, |key| {
                print.bytes_16(key.conversation.as_bytes()).bytes_16(key.turn.as_bytes())
            })
        }
        Command::Release { pin } => pin_words(Fingerprint::of(4), pin),
        Command::Pin { candidates, limit } => {
            let print = Fingerprint::of(5).word(u64::from(*limit));
            candidates.iter().fold(print, |print, id| print.bytes_16(id.as_bytes()))
        }
        Command::Lost { checkpoint, object, why } => {
            let print = checkpoint_words(Fingerprint::of(6), checkpoint).word(*why as u64);
            match object {
                LostObject::Private(object) => {
                    print.word(u64::from(object.shard.0)).word(u64::from(object.index))
                }
                LostObject::Shared(place) => print.word(u64::MAX).word(u64::from(*place)),
            }
        }
        Command::Doubt { pin, doubtful } => {
            pin_words(Fingerprint::of(7), pin).word(u64::from(*doubtful))
        }
        Command::Collect { limit } => Fingerprint::of(8).word(u64::from(*limit)),
        Command::Deleted { checkpoint, outcomes } => {
            let print = checkpoint_words(Fingerprint::of(9), checkpoint);
            outcomes.iter().fold(print, |print, (object, outcome)| {
                let object = u64::from(object.shard.0) << 32 | u64::from(object.index);
                print.word(object).word(*outcome as u64)
            })
        }
        Command::Configure { policy, limits } => configure_words(policy, limits),
        Command::Forget { conversation } => Fingerprint::of(11).bytes_16(conversation.as_bytes()),
        Command::Drop { checkpoint } => checkpoint_words(Fingerprint::of(12), checkpoint),
        Command::Fence { owner, incarnation } => {
            Fingerprint::of(13).bytes_16(owner.as_bytes()).word(incarnation.0)
        }
        Command::Retire { owner } => Fingerprint::of(14).bytes_16(owner.as_bytes()),
    }
    .finish()
}

fn configure_words(policy: &Policy, limits: &Limits) -> Fingerprint {
    let budget = |budget: Option<u64>| budget.map_or([0, 0], |bytes| [1, bytes]);
    let head = [u64::from(policy.turns), policy.quarantine as u64];
    let budgets = [budget(policy.conversation_bytes), budget(policy.job_bytes)];
    let bytes = [
        limits.bytes_pinned,
        limits.bytes_unscoped,
        limits.bytes_in_doubt,
        limits.bytes_quarantined,
    ];
    let counts = [
        limits.owners,
        limits.pins_per_owner,
        limits.pins,
        limits.shards,
        limits.objects_per_shard,
        limits.objects_per_checkpoint,
        limits.generations_per_endpoint,
        limits.references_per_turn,
        limits.candidates,
        limits.answers,
        limits.turns,
        limits.conversations,
        limits.expired_turns,
        limits.commands_per_list,
        limits.unanswered,
    ];
    let words = head.into_iter().chain(budgets.into_iter().flatten()).chain(bytes);
    words.chain(counts.map(u64::from)).fold(Fingerprint::of(10), Fingerprint::word)
}

fn prepare_words(prepare: &Prepare) -> Fingerprint {
    let Prepare { attempt, endpoint, digest, shape, shards } = prepare;
    let halves = digest.as_bytes().as_chunks::<16>().0;
    let print = Fingerprint::of(1).bytes_16(attempt.as_bytes()).bytes_16(endpoint.as_bytes());
    let print = halves.iter().fold(print, Fingerprint::bytes_16);
    let shape_words = shape.shards().iter().flat_map(|row| [u64::from(row.objects), row.bytes]);
    let shard_words = shards.iter().map(|shard| u64::from(shard.0));
    let words = [shape.shards().len() as u64].into_iter().chain(shape_words);
    words.chain(shard_words).fold(print, Fingerprint::word)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::catalog::{Shape, ShardShape};
    use crate::id::{
        AttemptId, ConversationId, EndpointId, Generation, Incarnation, ManifestDigest, ObjectId,
        OpId, OwnerId, ShardIndex, TurnId,
    };
    use crate::outcome::{DeleteOutcome, Evidence, Loss, TurnKey};

    const OWNER: OwnerId = OwnerId::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);

    fn pin() -> PinId {
        PinId { op: OpId { owner: OWNER, incarnation: Incarnation(3), sequence: 4 }, place: 5 }
    }

    fn checkpoint() -> CheckpointId {
        CheckpointId { endpoint: EndpointId::from_u128(6), generation: Generation(7) }
    }

    fn prepare() -> Command {
        let shards = [(2, 10), (3, 20)].map(|(objects, bytes)| ShardShape { objects, bytes });
        Command::Prepare(Prepare {
            attempt: AttemptId::from_u128(8),
            endpoint: EndpointId::from_u128(9),
            digest: ManifestDigest::from_bytes([10; 32]),
            shape: Shape::new(&shards).unwrap(),
            shards: vec![ShardIndex(0), ShardIndex(1)],
        })
    }

    /// One command of each verb, and its digest.
    fn commands() -> Vec<(Command, u64)> {
        let (pin, checkpoint, owner) = (pin(), checkpoint(), OWNER);
        let conversation = ConversationId::from_u128(11);
        let turn = Some(TurnKey { conversation, turn: TurnId::from_u128(12) });
        let object = ObjectId { shard: ShardIndex(1), index: 2 };
        let (shard, evidence) = (Some(ShardIndex(1)), Evidence::QuiescedSuccess);
        let private = LostObject::Private(object);
        let candidates = vec![EndpointId::from_u128(13), EndpointId::from_u128(14)];
        let outcomes = vec![(object, DeleteOutcome::Gone)];
        let (policy, limits) = (Policy::default(), Limits::default());
        vec![
            (prepare(), 0x2b1d_1252_b4fb_e073),
            (Command::Settle { pin, shard, evidence }, 0x401e_c84a_fe34_b0ff),
            (Command::Publish { pin, turn }, 0xef1d_9502_7304_84f2),
            (Command::Release { pin }, 0x4386_9b13_0c5d_ad27),
            (Command::Pin { candidates, limit: 2 }, 0x2877_debe_5b4a_999a),
            (
                Command::Lost { checkpoint, object: private, why: Loss::Absent },
                0x9b86_d52c_4004_de3d,
            ),
            (Command::Doubt { pin, doubtful: true }, 0xf170_a239_7b51_93bb),
            (Command::Collect { limit: 15 }, 0xe778_08d8_c43f_779f),
            (Command::Deleted { checkpoint, outcomes }, 0x7627_14e8_5e22_3f42),
            (Command::Configure { policy, limits }, 0x68ba_95b3_e4fe_7ff0),
            (Command::Forget { conversation }, 0x98d9_bc76_3360_461b),
            (Command::Drop { checkpoint }, 0x2498_5f77_620c_3c01),
            (Command::Fence { owner, incarnation: Incarnation(16) }, 0x5ece_b473_c32f_40a1),
            (Command::Retire { owner }, 0xfa06_fc63_fbdc_b409),
        ]
    }

    /// Journal format 1: receipts written by any version answer retries to any other.
    #[test]
    fn each_verb_has_this_digest() {
        let found: Vec<u64> = commands().iter().map(|(command, _)| fingerprint(command)).collect();
        let expected: Vec<u64> = commands().into_iter().map(|(_, digest)| digest).collect();
        assert_eq!(found, expected, "{found:#018x?}");
    }

    /// Whatever word follows, what came before it still counts; and so does the order.
    #[test]
    fn no_word_absorbs_what_came_before() {
        let states = [0, 1, START, FACTOR, u64::MAX].map(Fingerprint);
        let words = [
            0,
            START,
            FACTOR,
            u64::MAX,
            0x6a09_e667_f3bc_c909,
            0xbb67_ae85_84ca_a73b,
            0x3c6e_f372_fe94_f82b,
        ];
        for word in words {
            let mut after: Vec<u64> = states.iter().map(|state| state.word(word).0).collect();
            after.sort_unstable();
            after.dedup();
            assert_eq!(after.len(), states.len(), "{word:#x}");
        }
        for state in states {
            assert_ne!(state.word(1).word(2).0, state.word(2).word(1).0);
        }
    }

    /// Commands whose last word is a constant that once made all others count for nothing.
    #[test]
    fn commands_that_end_alike_differ() {
        let end = |first: u64| {
            let end = 0x3c6e_f372_fe94_f82b_u64;
            (u128::from(end) << 64 | u128::from(first)).to_le_bytes()
        };
        let (last, turn) = (EndpointId::from_bytes(end(6)), TurnId::from_bytes(end(5)));
        let key = TurnKey { conversation: ConversationId::from_u128(1), turn };
        let pins = |candidates, limit| fingerprint(&Command::Pin { candidates, limit });
        let digests = [
            pins(vec![last], 1),
            pins(vec![EndpointId::from_u128(3), last], 8),
            pins(vec![EndpointId::from_u128(4), last], 8),
            fingerprint(&Command::Publish { pin: pin(), turn: Some(key) }),
        ];
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest), "{place}: {digests:x?}");
        }
    }
}
