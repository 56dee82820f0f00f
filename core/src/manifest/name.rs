//! What objects are called: shared ones by content, private ones by place.

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::id::{ChainValue, Epoch, Namespace, ObjectId, RepresentationDigest, ShardIndex};
use crate::layout::{Group, GroupId, Scope};

/// The name of an object in its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectName {
    /// Named by content; many checkpoints may have it.
    Shared(SharedName),
    /// Named by its place in one checkpoint; the generation makes a key of it.
    Private(ObjectId),
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(name) => write!(f, "shared {name}"),
            Self::Private(id) => write!(f, "private {id}"),
        }
    }
}

/// What a shared object is: equal names mean equal meaning of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedName {
    /// Digest of everything that makes bytes interchangeable.
    pub representation: RepresentationDigest,
    /// The group.
    pub group: GroupId,
    /// Whose bytes they are.
    pub scope: SharedScope,
    /// The chain value of the last block that it covers.
    pub chain: ChainValue,
}

/// Whose bytes a shared object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedScope {
    /// Those of every shard that holds the group.
    Replicated,
    /// Those of this shard.
    Shard(ShardIndex),
}

impl SharedName {
    /// The key under which the object is stored:
    /// `{namespace}/{epoch}/shared/{representation}/g{group}/{scope}/{chain}`.
    ///
    /// Lower-case hexadecimal throughout, the group and a shard in four digits. It has one part
    /// more than a private [`Key`](crate::id::Key), so none is ever taken for the other.
    #[must_use]
    pub fn key(&self, namespace: &Namespace, epoch: &Epoch) -> String {
        format!("{namespace}/{epoch}/shared/{self}")
    }
}

impl fmt::Display for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { representation, group, scope, chain } = self;
        write!(f, "{representation}/g{:04x}/{scope}/{chain}", group.0)
    }
}

impl SharedScope {
    pub(super) const fn of(group: &Group, stored_by: ShardIndex) -> Self {
        match group.scope {
            Scope::PerShard => Self::Shard(stored_by),
            Scope::ReplicatedOnce { .. } => Self::Replicated,
        }
    }
}

impl fmt::Display for SharedScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated => f.write_str("replicated"),
            Self::Shard(shard) => write!(f, "{:04x}", shard.0),
        }
    }
}
