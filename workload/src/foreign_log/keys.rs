//! Key texts as what they name.

use std::collections::BTreeMap;

use pinfold_core::id::{ChainValue, Key, ShardIndex};
use pinfold_core::layout::GroupId;
use pinfold_core::manifest::{SharedName, SharedScope};
use pinfold_core::policy::Genesis;
use pinfold_sim::store::StoreKey;

/// The keys of one job. A key that is not the job's gets a number; those behind the first 255 of
/// them share the last.
pub(super) struct Keys {
    job: Genesis,
    foreign: BTreeMap<String, u8>,
}

impl Keys {
    pub(super) fn new(job: Genesis) -> Self {
        Self { job, foreign: BTreeMap::new() }
    }

    /// What a key names.
    pub(super) fn named(&mut self, text: &str) -> StoreKey {
        let Genesis { namespace, epoch, .. } = &self.job;
        if let Ok(key) = text.parse::<Key>()
            && (&key.namespace, &key.epoch) == (namespace, epoch)
        {
            return StoreKey::Private(key.checkpoint, key.object);
        }
        let shared = text.strip_prefix(&format!("{namespace}/{epoch}/shared/"));
        if let Some(name) = shared.and_then(shared_name) {
            return StoreKey::Shared(name);
        }
        let next = u8::try_from(self.foreign.len()).unwrap_or(u8::MAX);
        StoreKey::Foreign(*self.foreign.entry(text.to_string()).or_insert(next))
    }
}

fn shared_name(text: &str) -> Option<SharedName> {
    let mut parts = text.split('/');
    let representation = parts.next()?.parse().ok()?;
    let group = GroupId(four_digits(parts.next()?.strip_prefix('g')?)?);
    let scope = match parts.next()? {
        "replicated" => SharedScope::Replicated,
        shard => SharedScope::Shard(ShardIndex(four_digits(shard)?)),
    };
    let chain = ChainValue::new(&bytes(parts.next()?)?).ok()?;
    let name = SharedName { representation, group, scope, chain };
    // Only the one text of a name is its key.
    (parts.next().is_none() && name.to_string() == text).then_some(name)
}

fn four_digits(text: &str) -> Option<u16> {
    (text.len() == 4).then(|| u16::from_str_radix(text, 16).ok())?
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use pinfold_core::id::{CheckpointId, Epoch, ObjectId, OwnerId, RepresentationDigest};
    use pinfold_core::policy::{Limits, Policy};

    use super::*;

    #[test]
    fn each_key_is_what_it_names() {
        let job = Genesis {
            namespace: "keys".parse().unwrap(),
            epoch: Epoch::from_u128(7),
            operator: OwnerId::from_u128(1),
            policy: Policy::default(),
            limits: Limits::default(),
        };
        let (namespace, epoch) = (job.namespace.clone(), job.epoch);
        let mut keys = Keys::new(job);
        let (checkpoint, object) = (CheckpointId::default(), ObjectId::default());
        let own = Key { namespace: namespace.clone(), epoch, checkpoint, object };
        assert_eq!(keys.named(&own.to_string()), StoreKey::Private(checkpoint, object));
        let other = Key { epoch: Epoch::from_u128(8), ..own };
        assert_eq!(keys.named(&other.to_string()), StoreKey::Foreign(0));
        let name = SharedName {
            representation: RepresentationDigest::from_u128(9),
            group: GroupId(3),
            scope: SharedScope::Replicated,
            chain: ChainValue::new(&[1, 255]).unwrap(),
        };
        let shared = name.key(&namespace, &epoch);
        assert_eq!(keys.named(&shared), StoreKey::Shared(name));
        assert_eq!(keys.named(&shared.to_uppercase()), StoreKey::Foreign(1));
        assert_eq!(keys.named(&format!("{shared}é")), StoreKey::Foreign(2));
        assert_eq!(keys.named(&other.to_string()), StoreKey::Foreign(0));
    }
}
