//! Names of things: every identity of the protocol, and the keys derived from them.
//!
//! An identity is a value and never a place: no slot, address or URL is one. Opaque identities are
//! 128 bits wide and minted by the host, which hashes its own strings; an all-zero one counts as
//! empty and is refused. Numbers (generation, incarnation) are minted by the catalog alone.

use alloc::string::{String, ToString};
use core::fmt::{self, Write};
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// What an [`Id`] names; one marker type a kind, so that two kinds never mix.
pub trait Kind: Copy + Eq + Ord + 'static {
    /// The kind's name in messages.
    const NAME: &'static str;
}

/// A 128-bit identity of one [`Kind`].
///
/// Shown and read as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Id<K: Kind>([u8; 16], #[serde(skip)] PhantomData<K>);

impl<K: Kind> Id<K> {
    /// Sixteen bytes in the order in which they are shown.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes, PhantomData)
    }

    /// A number as an identity, most significant byte first.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self::from_bytes(number.to_be_bytes())
    }

    /// The identity of a host's own name: the first 16 bytes of BLAKE3 over a tag, the kind and it.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"pinfold id v1\0").update(K::NAME.as_bytes()).update(b"\0");
        Self::from_bytes(first_16(&hasher.update(name.as_bytes()).finalize()))
    }

    /// The bytes, in the order in which they are shown.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// True for the all-zero identity, which every verb refuses as empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl<K: Kind> Default for Id<K> {
    /// The empty identity.
    fn default() -> Self {
        Self::from_u128(0)
    }
}

impl<K: Kind> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_be_bytes(self.0));
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", K::NAME)
    }
}

impl<K: Kind> FromStr for Id<K> {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = parse_hex(text, 32).ok_or(IdError::Hex { digits: 32 })?;
        Ok(Self::from_u128(number))
    }
}

/// Why a text is no identity, namespace or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not the fixed number of lower-case hexadecimal digits.
    #[error("expected {digits} lower-case hexadecimal digits")]
    Hex {
        /// How many digits were expected.
        digits: u8,
    },
    /// Not a namespace.
    #[error("a namespace has 1 to 64 characters of a-z, 0-9 and '-'")]
    Namespace,
    /// Longer than a chain value may be.
    #[error("a chain value has 1 to 32 bytes, not {bytes}")]
    Chain {
        /// How many bytes it had.
        bytes: u32,
    },
    /// Not `namespace/epoch/endpoint/generation/shard/index` in the fixed widths.
    #[error("not a private key: expected namespace/epoch/endpoint/generation/shard/index")]
    Key,
}

/// Marker of [`Epoch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EpochKind {}
/// Marker of [`OwnerId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerKind {}
/// Marker of [`StartId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartKind {}
/// Marker of [`ConversationId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConversationKind {}
/// Marker of [`TurnId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TurnKind {}
/// Marker of [`AttemptId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptKind {}
/// Marker of [`EndpointId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {}
/// Marker of [`RepresentationDigest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepresentationKind {}

impl Kind for EpochKind {
    const NAME: &'static str = "epoch";
}
impl Kind for OwnerKind {
    const NAME: &'static str = "owner";
}
impl Kind for StartKind {
    const NAME: &'static str = "start";
}
impl Kind for ConversationKind {
    const NAME: &'static str = "conversation";
}
impl Kind for TurnKind {
    const NAME: &'static str = "turn";
}
impl Kind for AttemptKind {
    const NAME: &'static str = "attempt";
}
impl Kind for EndpointKind {
    const NAME: &'static str = "endpoint";
}
impl Kind for RepresentationKind {
    const NAME: &'static str = "representation";
}

/// One life of a job: random, handed in at genesis, part of every key, carried by every message.
pub type Epoch = Id<EpochKind>;
/// A process that moves bytes, or an operator.
pub type OwnerId = Id<OwnerKind>;
/// The random value by which a process marks one start of itself when it registers.
pub type StartId = Id<StartKind>;
/// A conversation, as the host knows it.
pub type ConversationId = Id<ConversationKind>;
/// One request and its answer inside a conversation.
pub type TurnId = Id<TurnKind>;
/// The host's id of one try to save; the ranks of one engine instance share it.
pub type AttemptId = Id<AttemptKind>;
/// Digest of (representation, chain value, token count): an exact position.
pub type EndpointId = Id<EndpointKind>;
/// Digest of everything that makes bytes interchangeable.
pub type RepresentationDigest = Id<RepresentationKind>;

/// Digest of a manifest: 32 bytes of BLAKE3 over a domain tag and its canonical bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ManifestDigest([u8; 32]);

impl ManifestDigest {
    /// Thirty-two bytes in the order in which they are shown.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, in the order in which they are shown.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ManifestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for ManifestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manifest:{self}")
    }
}

/// The namespace of a job: 1 to 64 characters of `a-z0-9-`; the first part of every key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(String);

impl Namespace {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Namespace {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=64).contains(&text.len());
        let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if fits && text.bytes().all(allowed) {
            Ok(Self(text.to_string()))
        } else {
            Err(IdError::Namespace)
        }
    }
}

impl TryFrom<String> for Namespace {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Namespace> for String {
    fn from(namespace: Namespace) -> Self {
        namespace.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A block-hash chain value of the host: opaque, 1 to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "alloc::vec::Vec<u8>", into = "alloc::vec::Vec<u8>")]
pub struct ChainValue {
    length: u8,
    bytes: [u8; 32],
}

impl ChainValue {
    /// A chain value of these bytes.
    ///
    /// # Errors
    /// [`IdError::Chain`] when there are none or more than 32.
    pub fn new(value: &[u8]) -> Result<Self, IdError> {
        let bytes_given = u32::try_from(value.len()).unwrap_or(u32::MAX);
        let mut bytes = [0; 32];
        match (u8::try_from(value.len()), bytes.get_mut(..value.len())) {
            (Ok(length @ 1..), Some(room)) => {
                room.copy_from_slice(value);
                Ok(Self { length, bytes })
            }
            _ => Err(IdError::Chain { bytes: bytes_given }),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl TryFrom<alloc::vec::Vec<u8>> for ChainValue {
    type Error = IdError;

    fn try_from(value: alloc::vec::Vec<u8>) -> Result<Self, IdError> {
        Self::new(&value)
    }
}

impl From<ChainValue> for alloc::vec::Vec<u8> {
    fn from(value: ChainValue) -> Self {
        value.as_bytes().to_vec()
    }
}

impl fmt::Display for ChainValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.as_bytes())
    }
}

impl fmt::Debug for ChainValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain:{self}")
    }
}

/// An exact position: which representation, after which blocks, at how many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Digest of everything that makes bytes interchangeable.
    pub representation: RepresentationDigest,
    /// The chain value of the last full block.
    pub chain: ChainValue,
    /// The position: how many tokens precede it; a positive multiple of the block size.
    pub tokens: u64,
}

impl Endpoint {
    /// The digest by which catalog, keys and messages name this position.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"pinfold endpoint v1\0");
        hasher.update(self.representation.as_bytes());
        hasher.update(&self.tokens.to_le_bytes());
        hasher.update(&[self.chain.length]).update(self.chain.as_bytes());
        EndpointId::from_bytes(first_16(&hasher.finalize()))
    }
}

/// What a number that only grows stands for.
///
/// Every identity hashes as one 128-bit word, and nothing else does. So whoever compares situations
/// in which other numbers were minted, as a model checker does, tells by the word what to rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Minted {
    /// A [`Generation`].
    Generation,
    /// An [`Incarnation`].
    Incarnation,
    /// The sequence of an operation, of the incarnation whose word came before it.
    Sequence,
    /// A [`Ticket`](crate::engine::Ticket).
    Ticket,
}

impl Minted {
    const fn mark(self) -> u64 {
        u64::from_be_bytes(match self {
            Self::Generation => *b"generati",
            Self::Incarnation => *b"incarnat",
            Self::Sequence => *b"sequence",
            Self::Ticket => *b"a ticket",
        })
    }

    /// The word as which a number hashes.
    #[must_use]
    pub const fn word(self, number: u64) -> u128 {
        (self.mark() as u128) << 64 | number as u128
    }

    /// What a word stands for, and the number; none for an [`Id`].
    #[must_use]
    pub fn read(word: u128) -> Option<(Self, u64)> {
        let (mark, number) = (u64::try_from(word >> 64).ok()?, word & u128::from(u64::MAX));
        let minted = match mark {
            _ if mark == Self::Generation.mark() => Self::Generation,
            _ if mark == Self::Incarnation.mark() => Self::Incarnation,
            _ if mark == Self::Sequence.mark() => Self::Sequence,
            _ if mark == Self::Ticket.mark() => Self::Ticket,
            _ => return None,
        };
        Some((minted, u64::try_from(number).ok()?))
    }
}

/// The number of one attempt to keep a position: one counter per job, from 1, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Hash for Generation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(Minted::Generation.word(self.0));
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of one registration of an owner: one counter per job, from 1; 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl Hash for Incarnation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(Minted::Incarnation.word(self.0));
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// (endpoint, generation): one attempt to keep one position.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CheckpointId {
    /// The position.
    pub endpoint: EndpointId,
    /// Which attempt.
    pub generation: Generation,
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.endpoint, self.generation)
    }
}

/// The part of a checkpoint that one rank holds: its place in the expected set.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ShardIndex(pub u16);

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A private object of a checkpoint: shard and place in it; 0 is the shard's manifest.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ObjectId {
    /// The shard it belongs to.
    pub shard: ShardIndex,
    /// Its place in the shard.
    pub index: u32,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard, self.index)
    }
}

/// Identity of one operation: who sent it, in which life, and its number in it, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpId {
    /// The sender.
    pub owner: OwnerId,
    /// The sender's registration.
    pub incarnation: Incarnation,
    /// The operation's number within that incarnation, from 1.
    pub sequence: u64,
}

impl Hash for OpId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { owner, incarnation, sequence } = self;
        (owner, incarnation).hash(state);
        state.write_u128(Minted::Sequence.word(*sequence));
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.owner, self.incarnation, self.sequence)
    }
}

/// Identity of a pin: the operation that took it, and its place among that operation's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PinId {
    /// The operation that took the pin.
    pub op: OpId,
    /// Its place among the answers of a `Pin`; 0 for a `Prepare`.
    pub place: u8,
}

impl fmt::Display for PinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.op, self.place)
    }
}

/// The key of a private object, derived from what it belongs to and never chosen.
///
/// Text form: `{namespace}/{epoch}/{endpoint}/{generation}/{shard}/{index}`, lower-case hexadecimal
/// of the widths 32, 32, 16, 4 and 8; at most 161 bytes. No other text is a key of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The job's namespace.
    pub namespace: Namespace,
    /// The job's epoch.
    pub epoch: Epoch,
    /// The checkpoint it belongs to.
    pub checkpoint: CheckpointId,
    /// Which object of it.
    pub object: ObjectId,
}

impl Key {
    /// The longest key text in bytes.
    pub const MAX_BYTES: u32 = 64 + 5 + 32 + 32 + 16 + 4 + 8;
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckpointId { endpoint, generation } = self.checkpoint;
        let ObjectId { shard, index } = self.object;
        write!(
            f,
            "{}/{}/{endpoint}/{:016x}/{:04x}/{index:08x}",
            self.namespace, self.epoch, generation.0, shard.0
        )
    }
}

impl FromStr for Key {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or(IdError::Key);
        let namespace = next()?.parse().map_err(|_| IdError::Key)?;
        let epoch = next()?.parse().map_err(|_| IdError::Key)?;
        let endpoint = next()?.parse().map_err(|_| IdError::Key)?;
        let mut number = |width| parse_hex(next()?, width).ok_or(IdError::Key);
        let generation = u64::try_from(number(16)?).map_err(|_| IdError::Key)?;
        let shard = u16::try_from(number(4)?).map_err(|_| IdError::Key)?;
        let index = u32::try_from(number(8)?).map_err(|_| IdError::Key)?;
        if parts.next().is_some() {
            return Err(IdError::Key);
        }
        let checkpoint = CheckpointId { endpoint, generation: Generation(generation) };
        let object = ObjectId { shard: ShardIndex(shard), index };
        Ok(Self { namespace, epoch, checkpoint, object })
    }
}

/// The first half of a BLAKE3 digest, which is how our 16-byte digests are cut.
pub(crate) fn first_16(hash: &blake3::Hash) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            f.write_char(char::from_digit(u32::from(nibble), 16).unwrap_or('?'))?;
        }
    }
    Ok(())
}

/// Exactly `width` lower-case hexadecimal digits (at most 32).
fn parse_hex(text: &str, width: usize) -> Option<u128> {
    let lower = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != width || !text.bytes().all(lower) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key {
            namespace: "prod-7".parse().unwrap(),
            epoch: Epoch::from_u128(0xE0),
            checkpoint: CheckpointId {
                endpoint: EndpointId::from_u128(0xabc),
                generation: Generation(258),
            },
            object: ObjectId { shard: ShardIndex(3), index: 17 },
        }
    }

    /// Protocol 3: the text of a key is fixed.
    #[test]
    fn key_text_is_golden() {
        let text = "prod-7/000000000000000000000000000000e0/00000000000000000000000000000abc/\
                    0000000000000102/0003/00000011";
        assert_eq!(key().to_string(), text);
        assert_eq!(text.parse(), Ok(key()));
    }

    /// Protocol 3: at most 161 bytes.
    #[test]
    fn longest_key_has_161_bytes() {
        let namespace = "a".repeat(64).parse().unwrap();
        assert_eq!(Key { namespace, ..key() }.to_string().len(), 161);
        assert_eq!(Key::MAX_BYTES, 161);
    }

    /// Protocol 3: no other text is a key of ours.
    #[test]
    fn any_other_text_is_no_key() {
        let good = key().to_string();
        for bad in [
            good.to_uppercase(),
            good.replace("0003", "3"),
            good.replace("0003", "+003"),
            alloc::format!("{good}/"),
            alloc::format!("/{good}"),
            good.replacen("prod-7", "Prod_7", 1),
            good[..good.len() - 1].to_string(),
            String::new(),
        ] {
            assert_eq!(bad.parse::<Key>(), Err(IdError::Key), "{bad}");
        }
    }

    #[test]
    fn namespaces_are_bounded() {
        assert!("a".parse::<Namespace>().is_ok());
        for bad in ["", "A", "a/b", "a.b", &"a".repeat(65)] {
            assert_eq!(bad.parse::<Namespace>(), Err(IdError::Namespace), "{bad}");
        }
    }

    #[test]
    fn chain_values_have_1_to_32_bytes() {
        assert!(ChainValue::new(&[7; 32]).is_ok());
        assert_eq!(ChainValue::new(&[]), Err(IdError::Chain { bytes: 0 }));
        assert_eq!(ChainValue::new(&[7; 33]), Err(IdError::Chain { bytes: 33 }));
    }

    /// The endpoint digest separates its three ingredients.
    #[test]
    fn endpoint_id_depends_on_every_part() {
        let chain = |bytes: &[u8]| ChainValue::new(bytes).unwrap();
        let base = Endpoint {
            representation: RepresentationDigest::from_u128(1),
            chain: chain(&[1, 2]),
            tokens: 512,
        };
        let other = [
            Endpoint { representation: RepresentationDigest::from_u128(2), ..base },
            Endpoint { chain: chain(&[1, 2, 0]), ..base },
            Endpoint { tokens: 1024, ..base },
        ];
        for endpoint in other {
            assert_ne!(endpoint.id(), base.id());
        }
        assert_eq!(base.id().to_string(), "65e49185ed34831f1b7b25fd83543b96");
    }
}
