//! "Why is this still here?": what keeps one checkpoint, in words.

use pinfold_core::catalog::{Blocker, Catalog, CheckpointFacts, Fate};
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Generation, Incarnation, ObjectId, OwnerId, PinId,
    ShardIndex, TurnId,
};
use pinfold_core::outcome::TurnKey;
use serde::{Deserialize, Serialize};

use super::{Word, counted, objects_in_words};
use crate::dto::text;

/// What keeps a checkpoint, or that nothing is left of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhyView {
    /// Its generation.
    pub checkpoint: Generation,
    /// How far it has come; `collected` when it has no record any more.
    pub state: Word,
    /// The position that it keeps; none without a record.
    #[serde(with = "text::optional")]
    pub endpoint: Option<EndpointId>,
    /// Its bytes, over all shards; 0 without a record.
    pub bytes: u64,
    /// Its private objects, over all shards; 0 without a record.
    pub objects: u32,
    /// Everything that keeps it, in the protocol's order.
    pub blockers: Vec<BlockerView>,
}

/// One reason why a checkpoint is still here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockerView {
    /// The blocker's name.
    pub name: Word,
    /// What it is, for a person.
    pub what: String,
    /// Who may lift it, the usual one first.
    pub who: Vec<Word>,
    /// How it is lifted.
    pub how: Word,
    /// Which things it names.
    #[serde(flatten)]
    pub names: Names,
}

/// What a blocker names: each kind of blocker has its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Names {
    /// A turn.
    Turn {
        /// Its conversation.
        #[serde(with = "text")]
        conversation: ConversationId,
        /// The turn in it.
        #[serde(with = "text")]
        turn: TurnId,
    },
    /// A pin.
    Pin {
        /// The pin.
        #[serde(with = "text")]
        pin: PinId,
        /// Whose it is.
        #[serde(with = "text")]
        owner: OwnerId,
        /// Of which registration.
        incarnation: Incarnation,
        /// The shard that has not been settled, where it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        shard: Option<ShardIndex>,
    },
    /// A shard.
    Shard {
        /// The shard.
        shard: ShardIndex,
    },
    /// Objects, as shard/index.
    Objects {
        /// How many objects of the checkpoint are not gone.
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<u32>,
        /// Those whose last delete was refused, or whose deletion has an unknown outcome.
        #[serde(with = "text::list")]
        objects: Vec<ObjectId>,
    },
    /// Nothing beside the checkpoint. The last one, for it can be read from anything.
    Nothing {},
}

/// No checkpoint has this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "checkpoint {generation} was never minted: generations count from 1, and the last one so far \
     is {last}"
)]
pub struct NeverMinted {
    /// What was asked for.
    pub generation: Generation,
    /// The last one that was minted; 0 before the first.
    pub last: Generation,
}

impl WhyView {
    /// What keeps the checkpoint of a generation.
    ///
    /// # Errors
    /// [`NeverMinted`], which is another answer than that it has no record any more.
    pub fn of(catalog: &Catalog, generation: Generation) -> Result<Self, NeverMinted> {
        let id = match catalog.fate(generation) {
            Fate::NeverMinted => {
                return Err(NeverMinted { generation, last: catalog.last_generation() });
            }
            Fate::Collected => None,
            Fate::Counted(id) => Some(id),
        };
        Ok(Self::of_known(catalog, generation, id))
    }

    /// The same of a generation that was minted, whose checkpoint is this one if it has a record:
    /// looking for it takes a look at every record.
    #[must_use]
    pub fn of_known(catalog: &Catalog, generation: Generation, id: Option<CheckpointId>) -> Self {
        let facts = id.and_then(|id| Some((catalog.checkpoint(id)?, catalog.blockers(id)?)));
        match facts {
            None => Self {
                checkpoint: generation,
                state: "collected".into(),
                endpoint: None,
                bytes: 0,
                objects: 0,
                blockers: Vec::new(),
            },
            Some((facts, all)) => Self {
                checkpoint: generation,
                state: facts.state.name().into(),
                endpoint: Some(facts.id.endpoint),
                bytes: facts.bytes,
                objects: facts.objects,
                blockers: all.blockers.iter().map(|one| BlockerView::of(one, &facts)).collect(),
            },
        }
    }
}

impl BlockerView {
    fn of(blocker: &Blocker, facts: &CheckpointFacts) -> Self {
        Self {
            name: blocker.name().into(),
            what: what(blocker, facts),
            who: blocker.lifters().iter().map(|it| it.name().into()).collect(),
            how: blocker.lift().into(),
            names: Names::of(blocker),
        }
    }
}

impl Names {
    fn of(blocker: &Blocker) -> Self {
        let pin = |pin: PinId, shard| Self::Pin {
            pin,
            owner: pin.op.owner,
            incarnation: pin.op.incarnation,
            shard,
        };
        match blocker {
            Blocker::Retained { turn: TurnKey { conversation, turn } } => {
                Self::Turn { conversation: *conversation, turn: *turn }
            }
            Blocker::Pinned { pin: id, .. } | Blocker::InDoubt { pin: id } => pin(*id, None),
            Blocker::InFlight { pin: id, shard } => pin(*id, *shard),
            Blocker::WaitingForShard { shard } => Self::Shard { shard: *shard },
            Blocker::Collecting { left, refused } => {
                Self::Objects { left: Some(*left), objects: refused.clone() }
            }
            Blocker::Quarantined { objects } => {
                Self::Objects { left: None, objects: objects.clone() }
            }
            Blocker::Unscoped | Blocker::Collectable | Blocker::Lost => Self::Nothing {},
        }
    }
}

/// A blocker in words.
fn what(blocker: &Blocker, facts: &CheckpointFacts) -> String {
    match blocker {
        Blocker::Retained { turn: TurnKey { conversation, turn } } => {
            format!("turn {turn} of conversation {conversation} refers to it")
        }
        Blocker::Unscoped => "it was published without a conversation".into(),
        Blocker::Pinned { pin, save } => {
            let purpose = if *save { "save" } else { "load" };
            let (owner, incarnation) = (pin.op.owner, pin.op.incarnation);
            format!("a {purpose} of owner {owner}, incarnation {incarnation}, holds it: pin {pin}")
        }
        Blocker::WaitingForShard { shard } => format!("no rank has claimed shard {shard} yet"),
        Blocker::InFlight { pin, shard: Some(shard) } => {
            format!("the save of shard {shard} has not been settled: pin {pin}")
        }
        Blocker::InFlight { pin, shard: None } => {
            format!("the load has not been settled: pin {pin}")
        }
        Blocker::InDoubt { pin } => format!("the memory may still be touched: pin {pin}"),
        Blocker::Collectable => "nothing holds it: Collect takes it in its turn".into(),
        Blocker::Collecting { left, refused } => {
            let left = format!("{left} of {} not gone yet", counted(facts.objects, "object"));
            match refused.as_slice() {
                [] => left,
                refused => format!("{left}; refused: {}", objects_in_words(refused)),
            }
        }
        Blocker::Quarantined { objects } => {
            let number = counted(objects.len() as u64, "object");
            format!("the deletion of {number} may still happen: {}", objects_in_words(objects))
        }
        Blocker::Lost => "an object is gone or wrong, so it is never served again".into(),
    }
}
