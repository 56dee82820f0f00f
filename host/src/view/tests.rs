//! Every kind of record in words, and as data.

use pinfold_core::catalog::{Change, DeleteWork, Event, FollowUp, Prepare, Shape, ShardShape};
use pinfold_core::few::Few;
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Generation, Incarnation, ManifestDigest,
    ObjectId, OpId, OwnerId, PinId, ShardIndex, TurnId,
};
use pinfold_core::outcome::{DeleteOutcome, Evidence, Limit, Loss, LostObject, Rejection, TurnKey};
use pinfold_core::policy::{Limits, Policy, Quarantine};

use super::{Identities, RecordView, objects_in_words};

const OWNER: OwnerId = OwnerId::from_u128(0xAAAA_AAAA << 96);
const CONVERSATION: ConversationId = ConversationId::from_u128(0xCCCC_CCCC << 96);

fn op(sequence: u64) -> OpId {
    OpId { owner: OWNER, incarnation: Incarnation(3), sequence }
}

fn pin(place: u8) -> PinId {
    PinId { op: op(7), place }
}

fn checkpoint(number: u64) -> CheckpointId {
    CheckpointId { endpoint: EndpointId::from_u128(1), generation: Generation(number) }
}

fn turn(number: u128) -> TurnKey {
    TurnKey { conversation: CONVERSATION, turn: TurnId::from_u128(number << 96) }
}

fn few<T: Copy + Default, const N: usize>(values: &[T]) -> Few<T, N> {
    let mut few = Few::new();
    assert!(values.iter().all(|value| few.push(*value)));
    few
}

fn prepared() -> Change {
    let shard = ShardShape { objects: 2, bytes: 50 };
    let prepare = Prepare {
        attempt: AttemptId::from_u128(0xDDDD_DDDD << 96),
        endpoint: EndpointId::from_u128(0xEEEE_EEEE << 96),
        digest: ManifestDigest::default(),
        shape: Shape::new(&[shard, shard]).unwrap(),
        shards: vec![ShardIndex(0), ShardIndex(1)],
    };
    Change::Prepared { prepare, generation: Generation(4) }
}

/// A change, its kind, and what is said of it behind the operation.
type Said = (Change, &'static str, &'static str);

/// What happens to a checkpoint up to its publication.
fn early() -> Vec<Said> {
    let shards = vec![ShardIndex(1)];
    let exceeded = Rejection::LimitExceeded { limit: Limit::Pins, bound: 1, needed: 2 };
    vec![
        (Change::Refused(exceeded), "refused", "refused: limit pins exceeded: 2 needed, 1 allowed"),
        (
            prepared(),
            "prepared",
            "prepared checkpoint 4 for shards 0, 1: 2 shards, 4 objects, 100 bytes, endpoint \
             eeeeeeee, attempt dddddddd",
        ),
        (
            Change::Joined { checkpoint: checkpoint(4), shards },
            "joined",
            "joined checkpoint 4 for shard 1",
        ),
        (
            Change::AlreadyPublished { checkpoint: checkpoint(4) },
            "already published",
            "found the position kept, and pinned checkpoint 4",
        ),
        (Change::Pinned { checkpoints: few(&[]) }, "pinned", "pinned nothing"),
        (
            Change::Pinned { checkpoints: few(&[checkpoint(4), checkpoint(2)]) },
            "pinned",
            "pinned checkpoint 4, checkpoint 2",
        ),
        (
            Change::Settled { pin: pin(0), shard: None, evidence: Evidence::QuiescedFailure },
            "settled",
            "settled pin aaaaaaaa.3.7.0: failure",
        ),
        (Change::Released { pin: pin(0) }, "released", "released pin aaaaaaaa.3.7.0"),
        (
            Change::Published {
                checkpoint: checkpoint(4),
                turn: Some(turn(2)),
                expired: Some(turn(1)),
            },
            "published",
            "published checkpoint 4 for turn cccccccc/00000002; turn cccccccc/00000001 expired",
        ),
        (
            Change::Published { checkpoint: checkpoint(4), turn: None, expired: None },
            "published",
            "published checkpoint 4 without a conversation",
        ),
    ]
}

/// What happens to it then, and to owners and the job.
fn late() -> Vec<Said> {
    let limits = Limits::default();
    let object = |index| ObjectId { shard: ShardIndex(1), index };
    let policy = Policy {
        turns: 1,
        conversation_bytes: Some(9),
        job_bytes: Some(10),
        quarantine: Quarantine::Endpoint,
    };
    let work = |number, first, count| DeleteWork { checkpoint: checkpoint(number), first, count };
    vec![
        (
            Change::Lost {
                checkpoint: checkpoint(4),
                object: LostObject::Shared(6),
                why: Loss::Absent,
            },
            "lost",
            "marked checkpoint 4 lost: shared object 6 is absent",
        ),
        (Change::Doubted { pin: pin(2), doubtful: true }, "doubted", "doubted pin aaaaaaaa.3.7.2"),
        (
            Change::Doubted { pin: pin(2), doubtful: false },
            "doubted",
            "undoubted pin aaaaaaaa.3.7.2",
        ),
        (Change::Collected { work: few(&[]), more: false }, "collected", "collected nothing"),
        (
            Change::Collected { work: few(&[work(4, 0, 2), work(2, 1, 1)]), more: true },
            "collected",
            "handed out for deletion: objects 0 to 1 of checkpoint 4, object 1 of checkpoint 2; \
             more is left",
        ),
        (
            Change::Deleted {
                checkpoint: checkpoint(4),
                outcomes: vec![
                    (object(0), DeleteOutcome::Gone),
                    (object(1), DeleteOutcome::Unknown),
                ],
            },
            "deleted",
            "deleted of checkpoint 4: 1 gone, 1 unknown",
        ),
        (
            Change::Configured { policy, limits, trim: true },
            "configured",
            "configured: 1 turn per conversation, 9 bytes per conversation, 10 bytes per job, \
             quarantine by endpoint; what is beyond it expires",
        ),
        (
            Change::Forgotten { conversation: CONVERSATION },
            "forgotten",
            "forgot conversation cccccccc",
        ),
        (
            Change::Dropped { checkpoint: checkpoint(4) },
            "dropped",
            "dropped the unscoped mark of checkpoint 4",
        ),
        (
            Change::Fenced { owner: OWNER, incarnation: Incarnation(3) },
            "fenced",
            "fenced aaaaaaaa, incarnation 3",
        ),
        (Change::Retired { owner: OWNER }, "retired", "retired aaaaaaaa"),
    ]
}

#[test]
fn every_change_has_words_and_a_kind() {
    for (change, kind, words) in early().into_iter().chain(late()) {
        let event = Event::Decided { op: op(9), fingerprint: 0, change };
        let record = RecordView::of(52, &event, Identities::Short);
        assert_eq!(record.text, format!("aaaaaaaa.3.9 {words}"));
        assert_eq!((record.record, record.kind), (52, kind));
        assert_eq!((record.owner, record.operation), (Some(OWNER), Some(9)));
        let whole = RecordView::of(52, &event, Identities::Whole);
        assert!(whole.text.starts_with(&format!("{OWNER}.3.9 ")));
        let named: Vec<_> = whole.checkpoints.iter().map(|number| number.0).collect();
        let said = [4, 2].into_iter().filter(|n| words.contains(&format!("checkpoint {n}")));
        assert_eq!(named, said.collect::<Vec<_>>(), "{words}");
    }
}

/// A pin and an operation are written as everywhere else, only shorter.
#[test]
fn identities_are_written_as_everywhere() {
    let released = Change::Released { pin: pin(2) };
    let event = Event::Decided { op: op(9), fingerprint: 0, change: released };
    let whole = RecordView::of(52, &event, Identities::Whole);
    assert_eq!(whole.text, format!("{} released pin {}", op(9), pin(2)));
}

#[test]
fn every_follow_up_has_words() {
    for (follow_up, words) in [
        (FollowUp::EndPin { pin: pin(0) }, "ended pin aaaaaaaa.3.7.0, which was fenced"),
        (FollowUp::Expire { turn: turn(1) }, "turn cccccccc/00000001 expired"),
        (
            FollowUp::Purge { conversation: CONVERSATION, turns: 2 },
            "dropped 2 expired turns of forgotten conversation cccccccc",
        ),
        (
            FollowUp::Settle { conversation: CONVERSATION },
            "nothing more is due in conversation cccccccc",
        ),
        (FollowUp::Trim { next: None }, "looked at every conversation"),
        (FollowUp::Trim { next: Some(1) }, "looked at the first 1 conversation"),
    ] {
        let record = RecordView::of(0, &Event::FollowedUp(follow_up), Identities::Short);
        assert_eq!(record.text, format!("follow-up: {words}"));
        assert_eq!((record.kind, record.owner), ("followed up", None));
    }
    let record = RecordView::of(1, &Event::Recovered, Identities::Short);
    assert_eq!(record.text, "recovered: a host took the journal over");
}

#[test]
fn long_lists_of_objects_are_cut() {
    let objects: Vec<_> = (0..10).map(|index| ObjectId { shard: ShardIndex(0), index }).collect();
    assert_eq!(objects_in_words(&objects[..2]), "0/0 0/1");
    assert_eq!(objects_in_words(&objects), "0/0 0/1 0/2 0/3 0/4 0/5 0/6 0/7 and 2 more");
}
