//! Names for identities: a script writes names, the engine sees digests of them, and what the
//! engine answers is shown with the names again.

use std::collections::BTreeMap;

use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Id, Incarnation, Key,
    Kind, ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::TurnKey;
use pinfold_core::policy::Genesis;

/// What a script has named so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    owners: BTreeMap<OwnerId, String>,
    conversations: BTreeMap<ConversationId, String>,
    turns: BTreeMap<TurnId, String>,
    endpoints: BTreeMap<EndpointId, String>,
    pins: BTreeMap<String, PinId>,
    pin_names: BTreeMap<PinId, String>,
    /// The endpoint of each generation that was seen: `c3` is the checkpoint of generation 3.
    checkpoints: BTreeMap<Generation, EndpointId>,
}

/// The identity of a name; `empty` is the empty one.
fn id<K: Kind>(name: &str) -> Id<K> {
    if name == "empty" { Id::default() } else { Id::of_name(name) }
}

fn shown<K: Kind>(names: &BTreeMap<Id<K>, String>, id: Id<K>) -> String {
    names.get(&id).cloned().unwrap_or_else(|| id.to_string())
}

impl Names {
    pub(crate) fn owner(&mut self, name: &str) -> OwnerId {
        let owner = id(name);
        self.owners.insert(owner, name.to_string());
        owner
    }

    pub(crate) fn endpoint(&mut self, name: &str) -> EndpointId {
        let endpoint = id(name);
        self.endpoints.insert(endpoint, name.to_string());
        endpoint
    }

    pub(crate) fn conversation(&mut self, name: &str) -> ConversationId {
        let conversation = id(name);
        self.conversations.insert(conversation, name.to_string());
        conversation
    }

    /// `C1/T1`.
    pub(crate) fn turn(&mut self, text: &str) -> Option<TurnKey> {
        let (conversation, turn) = text.split_once('/')?;
        let key = TurnKey { conversation: self.conversation(conversation), turn: id(turn) };
        self.turns.insert(key.turn, turn.to_string());
        Some(key)
    }

    pub(crate) fn attempt(name: &str) -> AttemptId {
        id(name)
    }

    pub(crate) fn start(name: &str) -> StartId {
        id(name)
    }

    pub(crate) fn epoch(name: &str) -> Epoch {
        id(name)
    }

    /// A manifest digest: both halves of it from the name.
    pub(crate) fn digest(name: &str) -> ManifestDigest {
        let half: EndpointId = id(name);
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(half.as_bytes());
        bytes[16..].copy_from_slice(half.as_bytes());
        ManifestDigest::from_bytes(bytes)
    }

    /// Notes which endpoint a generation belongs to.
    pub(crate) fn see(&mut self, checkpoint: CheckpointId) {
        self.checkpoints.insert(checkpoint.generation, checkpoint.endpoint);
    }

    pub(crate) fn bind_pin(&mut self, name: &str, pin: PinId) {
        self.pins.insert(name.to_string(), pin);
        self.pin_names.insert(pin, name.to_string());
    }

    /// `c3`, the checkpoint of generation 3; or `E1@3` for one that was never seen.
    pub(crate) fn checkpoint(&mut self, text: &str) -> Option<CheckpointId> {
        if let Some((endpoint, generation)) = text.split_once('@') {
            let generation = Generation(generation.parse().ok()?);
            return Some(CheckpointId { endpoint: self.endpoint(endpoint), generation });
        }
        let generation = Generation(text.strip_prefix('c')?.parse().ok()?);
        let endpoint = *self.checkpoints.get(&generation)?;
        Some(CheckpointId { endpoint, generation })
    }

    /// A bound name, or `w1:1#3` and `w1:1#3.1` for the pin of an operation by its numbers.
    pub(crate) fn pin(&mut self, text: &str) -> Option<PinId> {
        if let Some(pin) = self.pins.get(text) {
            return Some(*pin);
        }
        let (owner, rest) = text.split_once(':')?;
        let (incarnation, rest) = rest.split_once('#')?;
        let (sequence, place) = rest.split_once('.').unwrap_or((rest, "0"));
        let op = OpId {
            owner: self.owner(owner),
            incarnation: Incarnation(incarnation.parse().ok()?),
            sequence: sequence.parse().ok()?,
        };
        Some(PinId { op, place: place.parse().ok()? })
    }

    /// `0/2`: object 2 of shard 0.
    pub(crate) fn object(text: &str) -> Option<ObjectId> {
        let (shard, index) = text.split_once('/')?;
        Some(ObjectId { shard: ShardIndex(shard.parse().ok()?), index: index.parse().ok()? })
    }

    /// `c1/0/2`: the key of an object; `text:...` is any text; `epoch:...` one of another epoch,
    /// `namespace:...` one of another namespace.
    pub(crate) fn key(&mut self, job: &Genesis, text: &str) -> Option<String> {
        if let Some(text) = text.strip_prefix("text:") {
            return Some(text.to_string());
        }
        let (epoch, text) = match text.strip_prefix("epoch:") {
            Some(rest) => (Self::epoch("another"), rest),
            None => (job.epoch, text),
        };
        let (namespace, text) = match text.strip_prefix("namespace:") {
            Some(rest) => ("another".parse().ok()?, rest),
            None => (job.namespace.clone(), text),
        };
        let (checkpoint, object) = text.split_once('/')?;
        let (checkpoint, object) = (self.checkpoint(checkpoint)?, Self::object(object)?);
        Some(Key { namespace, epoch, checkpoint, object }.to_string())
    }

    pub(crate) fn show_owner(&self, owner: OwnerId) -> String {
        shown(&self.owners, owner)
    }

    pub(crate) fn show_conversation(&self, conversation: ConversationId) -> String {
        shown(&self.conversations, conversation)
    }

    pub(crate) fn show_turn(&self, key: TurnKey) -> String {
        format!("{}/{}", self.show_conversation(key.conversation), shown(&self.turns, key.turn))
    }

    pub(crate) fn show_checkpoint(&self, id: CheckpointId) -> String {
        if self.checkpoints.get(&id.generation) == Some(&id.endpoint) {
            return format!("c{}", id.generation);
        }
        format!("{}@{}", shown(&self.endpoints, id.endpoint), id.generation)
    }

    pub(crate) fn show_pin(&self, pin: PinId) -> String {
        if let Some(name) = self.pin_names.get(&pin) {
            return name.clone();
        }
        let OpId { owner, incarnation, sequence } = pin.op;
        let place = if pin.place == 0 { String::new() } else { format!(".{}", pin.place) };
        format!("{}:{incarnation}#{sequence}{place}", self.show_owner(owner))
    }
}
