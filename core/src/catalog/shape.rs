//! Private geometry, interned: one row for all checkpoints of equal shape.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::index::{Index, hash_words};
use super::slab::{Slab, Slot};
use crate::bounds::{MAX_CHECKPOINT_BYTES, MAX_OBJECTS, MAX_SHARDS};
use crate::id::{ObjectId, ShardIndex};
use crate::outcome::{Field, Malformed, Problem};

/// What one shard of a checkpoint stores privately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardShape {
    /// How many private objects, the manifest at index 0 included.
    pub objects: u32,
    /// How many bytes they hold together, trailers included.
    pub bytes: u64,
}

/// The private geometry of a checkpoint: the expected set of shards, in order. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(Arc<[ShardShape]>);

impl Shape {
    /// A shape of these shards.
    ///
    /// # Errors
    /// No shard, a shard without an object, or more shards, objects or bytes than the
    /// [bounds](crate::bounds) allow.
    pub fn new(shards: &[ShardShape]) -> Result<Self, Malformed> {
        let refuse = |problem| Malformed { field: Field::Shape, problem };
        if shards.is_empty() {
            return Err(refuse(Problem::Empty));
        }
        if shards.len() > MAX_SHARDS as usize {
            return Err(refuse(Problem::TooLarge));
        }
        if shards.iter().any(|shard| shard.objects == 0) {
            return Err(refuse(Problem::Zero));
        }
        let mut totals = Some((0_u32, 0_u64));
        for shard in shards {
            totals = totals.and_then(|(objects, bytes)| {
                Some((objects.checked_add(shard.objects)?, bytes.checked_add(shard.bytes)?))
            });
        }
        let fits = |(objects, bytes): &(u32, u64)| {
            *objects <= MAX_OBJECTS && *bytes <= MAX_CHECKPOINT_BYTES
        };
        let fits = totals.as_ref().is_some_and(fits);
        if fits { Ok(Self(shards.into())) } else { Err(refuse(Problem::TooLarge)) }
    }

    /// The shards, in order.
    #[must_use]
    pub fn shards(&self) -> &[ShardShape] {
        &self.0
    }

    /// Private objects over all shards.
    #[must_use]
    pub fn objects(&self) -> u32 {
        self.0.iter().map(|shard| shard.objects).sum()
    }

    /// Bytes over all shards.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|shard| shard.bytes).sum()
    }

    /// The bytes of one shard; 0 for a shard that it has not.
    #[must_use]
    pub fn shard_bytes(&self, shard: ShardIndex) -> u64 {
        self.0.get(usize::from(shard.0)).map_or(0, |shard| shard.bytes)
    }

    /// The object at a place in the order of all objects: shard by shard, by index.
    #[must_use]
    pub fn object_at(&self, place: u32) -> Option<ObjectId> {
        let mut index = place;
        for (shard, number) in self.0.iter().zip(0_u16..) {
            if index < shard.objects {
                return Some(ObjectId { shard: ShardIndex(number), index });
            }
            index -= shard.objects;
        }
        None
    }

    /// The objects from a place on, in order.
    pub fn objects_from(&self, place: u32) -> impl Iterator<Item = ObjectId> + use<'_> {
        let first = self.object_at(place);
        let shards = first.map_or(0..0, |first| usize::from(first.shard.0)..self.0.len());
        shards.flat_map(move |shard| {
            let from =
                first.map_or(
                    0,
                    |first| {
                        if usize::from(first.shard.0) == shard { first.index } else { 0 }
                    },
                );
            let number = ShardIndex(u16::try_from(shard).unwrap_or(u16::MAX));
            (from..self.0[shard].objects).map(move |index| ObjectId { shard: number, index })
        })
    }

    /// An object's place in the order of all objects.
    #[must_use]
    pub fn place_of(&self, object: ObjectId) -> Option<u32> {
        self.places([object]).next()?
    }

    /// The places of objects that ascend, each none when there is no such object.
    pub fn places(
        &self,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> impl Iterator<Item = Option<u32>> {
        let (mut shard, mut before) = (0, 0);
        objects.into_iter().map(move |object| {
            let wanted = usize::from(object.shard.0);
            while shard < wanted {
                before += self.0.get(shard)?.objects;
                shard += 1;
            }
            self.0.get(shard).filter(|row| shard == wanted && object.index < row.objects)?;
            Some(before + object.index)
        })
    }

    fn hash(&self) -> u64 {
        let step =
            |hash, shard: &ShardShape| hash_words(hash ^ u64::from(shard.objects), shard.bytes);
        self.0.iter().fold(self.0.len() as u64, step)
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shards = Vec::<ShardShape>::deserialize(deserializer)?;
        Self::new(&shards).map_err(serde::de::Error::custom)
    }
}

/// The interned shapes.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    rows: Slab<Row>,
    index: Index,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    shape: Shape,
    bytes: u64,
    users: u32,
}

impl Shapes {
    pub(crate) const fn new() -> Self {
        Self { rows: Slab::new(), index: Index::new() }
    }

    /// Whether every shape is the same and in the same place.
    pub(crate) fn has_same_places(&self, other: &Self) -> bool {
        let Self { rows, index: _ } = self;
        *rows == other.rows
    }

    /// Adds a user of a shape and says where the shape is.
    pub(crate) fn hold(&mut self, shape: &Shape) -> Slot {
        let hash = shape.hash();
        let found = self.index.find(hash, |slot| self.rows[slot].shape == *shape);
        let slot = found.unwrap_or_else(|| {
            let row = Row { shape: shape.clone(), bytes: shape.bytes(), users: 0 };
            let slot = self.rows.insert(row);
            self.index.insert(hash, slot, |slot| self.rows[slot].shape.hash());
            slot
        });
        self.rows[slot].users += 1;
        slot
    }

    /// Takes a user away; a shape without users is forgotten.
    pub(crate) fn release(&mut self, slot: Slot) {
        let row = &mut self.rows[slot];
        row.users -= 1;
        if row.users == 0 {
            let hash = row.shape.hash();
            let rows = &self.rows;
            self.index.remove(hash, slot, |slot| rows[slot].shape.hash());
            self.rows.remove(slot);
        }
    }

    pub(crate) fn shape(&self, slot: Slot) -> &Shape {
        &self.rows[slot].shape
    }

    pub(crate) fn bytes(&self, slot: Slot) -> u64 {
        self.rows[slot].bytes
    }

    /// How many checkpoints use a shape.
    pub(crate) fn users(&self, slot: Slot) -> u32 {
        self.rows[slot].users
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<'_> {
        self.rows.slots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(shards: &[(u32, u64)]) -> Result<Shape, Malformed> {
        let shards: Vec<_> =
            shards.iter().map(|&(objects, bytes)| ShardShape { objects, bytes }).collect();
        Shape::new(&shards)
    }

    #[test]
    fn objects_have_places_in_order() {
        let shape = shape(&[(2, 10), (3, 20)]).unwrap();
        for place in 0..5 {
            let object = shape.object_at(place).unwrap();
            assert_eq!(shape.place_of(object), Some(place));
        }
        assert_eq!(shape.object_at(5), None);
        for from in 0..6 {
            let walked: Vec<_> = shape.objects_from(from).collect();
            let one_by_one: Vec<_> = (from..5).filter_map(|place| shape.object_at(place)).collect();
            assert_eq!(walked, one_by_one);
        }
        let all: Vec<_> = shape.places(shape.objects_from(0)).collect();
        assert_eq!(all, (0..5).map(Some).collect::<Vec<_>>());
        assert_eq!(shape.place_of(ObjectId { shard: ShardIndex(0), index: 2 }), None);
        assert_eq!((shape.objects(), shape.bytes()), (5, 30));
    }

    /// Protocol 8: zero objects, and sums that cannot be counted, are refused.
    #[test]
    fn bad_shapes_are_refused() {
        let problem = |shards: &[(u32, u64)]| shape(shards).unwrap_err().problem;
        assert_eq!(problem(&[]), Problem::Empty);
        assert_eq!(problem(&[(1, 1), (0, 1)]), Problem::Zero);
        assert_eq!(problem(&[(1, u64::MAX), (1, 1)]), Problem::TooLarge);
        assert_eq!(problem(&[(u32::MAX, 1), (1, 1)]), Problem::TooLarge);
        assert_eq!(problem(&[(MAX_OBJECTS, 1), (1, 1)]), Problem::TooLarge);
        assert_eq!(problem(&[(1, MAX_CHECKPOINT_BYTES), (1, 1)]), Problem::TooLarge);
        assert_eq!(problem(&alloc::vec![(1, 1); MAX_SHARDS as usize + 1]), Problem::TooLarge);
        assert!(shape(&alloc::vec![(1, 1); MAX_SHARDS as usize]).is_ok());
    }

    #[test]
    fn equal_shapes_share_a_row_until_the_last_user_goes() {
        let mut shapes = Shapes::new();
        let slot = shapes.hold(&shape(&[(2, 10)]).unwrap());
        assert_eq!(shapes.hold(&shape(&[(2, 10)]).unwrap()), slot);
        assert_ne!(shapes.hold(&shape(&[(2, 11)]).unwrap()), slot);
        shapes.release(slot);
        assert_eq!(shapes.users(slot), 1);
        shapes.release(slot);
        assert_eq!(shapes.slots().count(), 1);
    }
}
