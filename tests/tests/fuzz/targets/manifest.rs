//! The canonical bytes of a manifest, and the objects that follow from them.

use pinfold_core::id::ShardIndex;
use pinfold_core::manifest::Manifest;

pub(super) fn decode(input: &[u8]) -> bool {
    read(input)
}

/// What is accepted is canonical, and its objects add up to its shape.
fn read(bytes: &[u8]) -> bool {
    let Ok(manifest) = Manifest::decode(bytes) else { return false };
    assert_eq!(manifest.encode(), bytes);
    for (number, shape) in (0..).zip(manifest.shape()) {
        let shard = ShardIndex(number);
        assert!(manifest.shard(shard).is_ok());
        let objects = manifest.private_objects(shard);
        let (mut count, mut bytes) = (0, 0);
        for object in objects {
            assert_eq!((object.id.shard, object.id.index), (shard, count));
            count += 1;
            bytes += object.stored_bytes();
        }
        assert_eq!((count, bytes), (shape.objects, shape.bytes));
    }
    let shards = manifest.shape().len();
    assert!(manifest.shared_objects().all(|object| usize::from(object.stored_by.0) < shards));
    true
}
