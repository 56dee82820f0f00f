//! Names for identities: a script writes names, the engine sees digests of them, and what the
//! engine answers is shown with the names again.
//!
//! An identity is the one of its name, so that a name may be registered before anything is asked.
//! It never makes a name up: an identity that nobody named is shown in its own digits.

mod text;

use std::collections::BTreeMap;

use pinfold_core::catalog::{Change, Event};
use pinfold_core::id::{
    AttemptId, CheckpointId, ConversationId, EndpointId, Epoch, Generation, Id, Incarnation, Key,
    Kind, ManifestDigest, ObjectId, OpId, OwnerId, PinId, ShardIndex, StartId, TurnId,
};
use pinfold_core::outcome::TurnKey;
use pinfold_core::policy::Genesis;

/// What has been named so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    owners: BTreeMap<OwnerId, String>,
    conversations: BTreeMap<ConversationId, String>,
    turns: BTreeMap<TurnId, String>,
    endpoints: BTreeMap<EndpointId, String>,
    attempts: BTreeMap<AttemptId, String>,
    starts: BTreeMap<StartId, String>,
    digests: BTreeMap<ManifestDigest, String>,
    keys: BTreeMap<String, String>,
    pins: BTreeMap<String, PinId>,
    pin_names: BTreeMap<PinId, String>,
    /// The endpoint of each generation that was seen: `c3` is the checkpoint of generation 3.
    checkpoints: BTreeMap<Generation, EndpointId>,
    /// The incarnation that goes without saying: `w1#5` is of it.
    incarnations: BTreeMap<OwnerId, Incarnation>,
}

// From names.

impl Names {
    /// The owner of a name.
    pub fn owner(&mut self, name: &str) -> OwnerId {
        named(&mut self.owners, name)
    }

    /// The endpoint of a name.
    pub fn endpoint(&mut self, name: &str) -> EndpointId {
        named(&mut self.endpoints, name)
    }

    /// The conversation of a name.
    pub fn conversation(&mut self, name: &str) -> ConversationId {
        named(&mut self.conversations, name)
    }

    /// The turn of `C1/T1`; none when the text is not of this form.
    pub fn turn(&mut self, text: &str) -> Option<TurnKey> {
        let (conversation, turn) = text.split_once('/')?;
        let conversation = self.conversation(conversation);
        Some(TurnKey { conversation, turn: named(&mut self.turns, turn) })
    }

    /// The attempt of a name.
    pub fn attempt(&mut self, name: &str) -> AttemptId {
        named(&mut self.attempts, name)
    }

    /// The start of a name.
    pub fn start(&mut self, name: &str) -> StartId {
        named(&mut self.starts, name)
    }

    /// The manifest digest of a name: both halves of it are from the name.
    pub fn digest(&mut self, name: &str) -> ManifestDigest {
        let digest = digest(name);
        self.digests.insert(digest, name.to_string());
        digest
    }

    /// The epoch of a name.
    #[must_use]
    pub fn epoch(name: &str) -> Epoch {
        id(name)
    }

    /// The checkpoint of `c3`, by its generation, or of `E1@3` where it was never seen.
    pub fn checkpoint(&mut self, text: &str) -> Option<CheckpointId> {
        if let Some((endpoint, generation)) = text.split_once('@') {
            let generation = Generation(generation.parse().ok()?);
            return Some(CheckpointId { endpoint: self.endpoint(endpoint), generation });
        }
        let generation = Generation(text.strip_prefix('c')?.parse().ok()?);
        let endpoint = *self.checkpoints.get(&generation)?;
        Some(CheckpointId { endpoint, generation })
    }

    /// The operation of `w1:2#5`, or of `w1#5` where the incarnation goes without saying.
    pub fn op(&mut self, text: &str) -> Option<OpId> {
        let (sender, sequence) = text.split_once('#')?;
        let (name, incarnation) = match sender.split_once(':') {
            Some((name, incarnation)) => (name, Some(Incarnation(incarnation.parse().ok()?))),
            None => (sender, None),
        };
        let owner = self.owner(name);
        let incarnation = incarnation.or_else(|| self.incarnations.get(&owner).copied())?;
        Some(OpId { owner, incarnation, sequence: sequence.parse().ok()? })
    }

    /// The pin of a bound name, or of its operation: `w1:2#5`, and `w1:2#5.1` for its second one.
    pub fn pin(&mut self, text: &str) -> Option<PinId> {
        if let Some(pin) = self.pins.get(text) {
            return Some(*pin);
        }
        let (op, place) = match text.rsplit_once('#') {
            Some((_, numbers)) => match numbers.split_once('.') {
                Some((_, place)) => (text.strip_suffix(place)?.strip_suffix('.')?, place),
                None => (text, "0"),
            },
            None => return None,
        };
        Some(PinId { op: self.op(op)?, place: place.parse().ok()? })
    }

    /// The object of `0/2`: object 2 of shard 0.
    #[must_use]
    pub fn object(text: &str) -> Option<ObjectId> {
        let (shard, index) = text.split_once('/')?;
        Some(ObjectId { shard: ShardIndex(shard.parse().ok()?), index: index.parse().ok()? })
    }

    /// The key of the object `c1/0/2`; of one in another epoch or namespace with `epoch:` or
    /// `namespace:` before it; and behind `text:` any text at all.
    pub fn key(&mut self, job: &Genesis, text: &str) -> Option<String> {
        let key = self.key_of(job, text)?;
        self.keys.insert(key.clone(), text.to_string());
        Some(key)
    }

    fn key_of(&mut self, job: &Genesis, text: &str) -> Option<String> {
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
}

// What was seen.

impl Names {
    /// Notes which endpoint a generation belongs to: from now on it is `c3`.
    pub fn see_checkpoint(&mut self, checkpoint: CheckpointId) {
        self.checkpoints.insert(checkpoint.generation, checkpoint.endpoint);
    }

    /// Notes an owner's current incarnation: from now on it goes without saying, in `w1#5`.
    pub fn see_incarnation(&mut self, owner: OwnerId, incarnation: Incarnation) {
        self.incarnations.insert(owner, incarnation);
    }

    /// Notes a key of the job that is told about: from now on it is `c1/0/2`.
    pub fn see_key(&mut self, key: &Key) {
        let name = format!("{}/{}", self.show_checkpoint(key.checkpoint), key.object);
        self.keys.insert(key.to_string(), name);
    }

    /// Notes what an event minted: a checkpoint, or an incarnation.
    pub fn learn(&mut self, event: &Event) {
        match event {
            Event::Registered { owner, incarnation, .. } => {
                self.see_incarnation(*owner, *incarnation);
            }
            Event::Decided { change: Change::Prepared { prepare, generation }, .. } => {
                let endpoint = prepare.endpoint;
                self.see_checkpoint(CheckpointId { endpoint, generation: *generation });
            }
            Event::Genesis(_) | Event::Recovered | Event::Decided { .. } | Event::FollowedUp(_) => {
            }
        }
    }

    /// Gives a pin a name of its own.
    pub fn bind_pin(&mut self, name: &str, pin: PinId) {
        self.pins.insert(name.to_string(), pin);
        self.pin_names.insert(pin, name.to_string());
    }

    /// Gives an endpoint that is no name's a name.
    pub fn bind_endpoint(&mut self, name: &str, endpoint: EndpointId) {
        self.endpoints.insert(endpoint, name.to_string());
    }

    /// Gives a manifest digest that is no name's a name.
    pub fn bind_digest(&mut self, name: &str, digest: ManifestDigest) {
        self.digests.insert(digest, name.to_string());
    }
}

// To names.

impl Names {
    /// `w1`.
    #[must_use]
    pub fn show_owner(&self, owner: OwnerId) -> String {
        shown(&self.owners, owner)
    }

    /// `E1`.
    #[must_use]
    pub fn show_endpoint(&self, endpoint: EndpointId) -> String {
        shown(&self.endpoints, endpoint)
    }

    /// `C1`.
    #[must_use]
    pub fn show_conversation(&self, conversation: ConversationId) -> String {
        shown(&self.conversations, conversation)
    }

    /// `C1/T1`.
    #[must_use]
    pub fn show_turn(&self, key: TurnKey) -> String {
        format!("{}/{}", self.show_conversation(key.conversation), shown(&self.turns, key.turn))
    }

    /// `A1`.
    #[must_use]
    pub fn show_attempt(&self, attempt: AttemptId) -> String {
        shown(&self.attempts, attempt)
    }

    /// A start's name.
    #[must_use]
    pub fn show_start(&self, start: StartId) -> String {
        shown(&self.starts, start)
    }

    /// A manifest digest's name.
    #[must_use]
    pub fn show_digest(&self, digest: ManifestDigest) -> String {
        self.digests.get(&digest).cloned().unwrap_or_else(|| digest.to_string())
    }

    /// `c3`, or `E1@3` where it was never seen.
    #[must_use]
    pub fn show_checkpoint(&self, id: CheckpointId) -> String {
        if self.checkpoints.get(&id.generation) == Some(&id.endpoint) {
            return format!("c{}", id.generation);
        }
        format!("{}@{}", self.show_endpoint(id.endpoint), id.generation)
    }

    /// `w1#5`, or `w1:2#5` where the incarnation does not go without saying.
    #[must_use]
    pub fn show_op(&self, op: OpId) -> String {
        let OpId { owner, incarnation, sequence } = op;
        let name = self.show_owner(owner);
        if self.incarnations.get(&owner) == Some(&incarnation) {
            return format!("{name}#{sequence}");
        }
        format!("{name}:{incarnation}#{sequence}")
    }

    /// A pin's own name, or its operation's and its place: `w1:2#5`, `w1:2#5.1`.
    #[must_use]
    pub fn show_pin(&self, pin: PinId) -> String {
        if let Some(name) = self.pin_names.get(&pin) {
            return name.clone();
        }
        let place = if pin.place == 0 { String::new() } else { format!(".{}", pin.place) };
        self.show_op(pin.op) + &place
    }

    /// A key as it was written or seen: `c1/0/2`; else the whole text.
    #[must_use]
    pub fn show_key(&self, key: &str) -> String {
        self.keys.get(key).cloned().unwrap_or_else(|| key.to_string())
    }
}

/// The identity of a name; `empty` is the empty one, and 32 digits are the identity itself.
fn id<K: Kind>(name: &str) -> Id<K> {
    if name == "empty" {
        return Id::default();
    }
    name.parse().unwrap_or_else(|_| Id::of_name(name))
}

fn named<K: Kind>(names: &mut BTreeMap<Id<K>, String>, name: &str) -> Id<K> {
    let id = id(name);
    names.insert(id, name.to_string());
    id
}

fn shown<K: Kind>(names: &BTreeMap<Id<K>, String>, id: Id<K>) -> String {
    match names.get(&id) {
        Some(name) => name.clone(),
        None if id.is_empty() => "empty".to_string(),
        None => id.to_string(),
    }
}

/// The digest of a name; 64 digits are the digest itself.
fn digest(name: &str) -> ManifestDigest {
    let halves: Option<(EndpointId, EndpointId)> = name
        .split_at_checked(32)
        .and_then(|(front, back)| Some((front.parse().ok()?, back.parse().ok()?)));
    let (front, back) = halves.unwrap_or_else(|| (id(name), id(name)));
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(front.as_bytes());
    bytes[16..].copy_from_slice(back.as_bytes());
    ManifestDigest::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_where_its_identity_is() {
        let mut names = Names::default();
        let owner = OwnerId::of_name("w1");
        assert_eq!(names.show_owner(owner), owner.to_string());
        assert_eq!(names.owner("w1"), owner);
        assert_eq!(names.show_owner(owner), "w1");
        assert_eq!(names.show_owner(OwnerId::default()), "empty");
        let turn = names.turn("C1/T1").unwrap();
        assert_eq!(names.show_turn(turn), "C1/T1");
        assert_eq!(names.turn("T1"), None);
    }

    #[test]
    fn digits_are_the_identity_itself() {
        let (mut names, unnamed) = (Names::default(), Names::default());
        let endpoint = names.endpoint("E1");
        assert_eq!(names.endpoint(&unnamed.show_endpoint(endpoint)), endpoint);
        let digest =
            ManifestDigest::from_bytes([[0x0a; 16], [0xb1; 16]].concat().try_into().unwrap());
        assert_eq!(names.digest(&unnamed.show_digest(digest)), digest);
        names.bind_digest("D7", digest);
        assert_eq!(names.show_digest(digest), "D7");
    }

    #[test]
    fn a_seen_checkpoint_is_known_by_its_generation() {
        let mut names = Names::default();
        let id = CheckpointId { endpoint: names.endpoint("E1"), generation: Generation(3) };
        assert_eq!(names.checkpoint("c3"), None);
        assert_eq!(names.show_checkpoint(id), "E1@3");
        assert_eq!(names.checkpoint("E1@3"), Some(id));
        names.see_checkpoint(id);
        assert_eq!(names.show_checkpoint(id), "c3");
        assert_eq!(names.checkpoint("c3"), Some(id));
    }

    #[test]
    fn pins_are_read_as_they_are_shown() {
        let mut names = Names::default();
        let owner = names.owner("w1");
        let op = OpId { owner, incarnation: Incarnation(2), sequence: 5 };
        let (first, second) = (PinId { op, place: 0 }, PinId { op, place: 1 });
        assert_eq!(names.show_pin(first), "w1:2#5");
        assert_eq!(names.pin("w1#5"), None);
        assert_eq!(names.pin("w1:2#5.1"), Some(second));
        names.see_incarnation(owner, Incarnation(2));
        assert_eq!(names.show_pin(second), "w1#5.1");
        assert_eq!(names.pin("w1#5.1"), Some(second));
        names.see_incarnation(owner, Incarnation(4));
        assert_eq!(names.show_pin(first), "w1:2#5");
        names.bind_pin("p1", first);
        assert_eq!(names.show_pin(first), "p1");
        assert_eq!(names.pin("p1"), Some(first));
    }

    #[test]
    fn keys_are_shown_as_they_were_written_or_seen() {
        let mut names = Names::default();
        let job = Genesis {
            namespace: "scripts".parse().unwrap(),
            epoch: Names::epoch("e1"),
            operator: names.owner("op"),
            policy: pinfold_core::policy::Policy::default(),
            limits: pinfold_core::policy::Limits::default(),
        };
        let key = names.key(&job, "E1@3/0/2").unwrap();
        assert_eq!(names.show_key(&key), "E1@3/0/2");
        assert_ne!(names.key(&job, "epoch:E1@3/0/2").unwrap(), key);
        let key: Key = key.parse().unwrap();
        names.see_checkpoint(key.checkpoint);
        names.see_key(&key);
        assert_eq!(names.show_key(&key.to_string()), "c3/0/2");
        assert_eq!(names.show_key("hello"), "hello");
    }
}
