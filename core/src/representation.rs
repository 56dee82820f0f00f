//! What makes bytes interchangeable, as plain named data, and its digest.
//!
//! A [`Representation`] protects against the quietest failure of a shared store: two workers that
//! derive one key for bytes that mean different things (other weights, another state type, another
//! axis order). Every ingredient is a name and a value in an open vocabulary; the names in
//! [`Representation::REQUIRED`] must be there, because an ingredient that nobody wrote down is one
//! that two workers may silently disagree about. What does not apply is said (`"none"`, an empty
//! list) and never left out.
//!
//! It never interprets a value, knows no model, and names no rank: the parallel *shape* is an
//! ingredient, a place in it is not, so every rank of a job computes the same digest.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{RepresentationDigest, first_16};

/// The version byte that canonical bytes begin with.
const VERSION: u8 = 1;

/// The value of one ingredient.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ingredient {
    /// One whole number.
    Integer(i64),
    /// One text.
    Text(String),
    /// Whole numbers, in order.
    Integers(Vec<i64>),
    /// Texts, in order.
    Texts(Vec<String>),
}

impl From<i64> for Ingredient {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Ingredient {
    fn from(value: &str) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<&[i64]> for Ingredient {
    fn from(values: &[i64]) -> Self {
        Self::Integers(values.to_vec())
    }
}

impl From<&[&str]> for Ingredient {
    fn from(values: &[&str]) -> Self {
        Self::Texts(values.iter().map(ToString::to_string).collect())
    }
}

impl fmt::Display for Ingredient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Integers(values) => write!(f, "{values:?}"),
            Self::Texts(values) => write!(f, "{values:?}"),
        }
    }
}

/// One field in which two descriptions differ, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Where: a path of names, outermost first.
    pub field: String,
    /// What the description that was asked says; none when it lacks the field.
    pub ours: Option<String>,
    /// What the other one says; none when it lacks the field.
    pub theirs: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.ours.as_deref().unwrap_or("absent");
        let theirs = self.theirs.as_deref().unwrap_or("absent");
        write!(f, "{}: ours is {ours}, theirs is {theirs}", self.field)
    }
}

/// Everything that must agree before one worker may adopt another's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Representation {
    ingredients: BTreeMap<String, Ingredient>,
    bytes: Vec<u8>,
}

impl Representation {
    /// The ingredients that none may leave out.
    pub const REQUIRED: [&'static str; 15] = [
        "adapters",
        "attention_axis_order",
        "block_scale_geometry",
        "convolution_form",
        "element_types",
        "hash_chain",
        "head_geometry",
        "kernel_abi",
        "layout",
        "parallel_shape",
        "position_scaling",
        "state_axis_order",
        "state_rounding",
        "tokens_per_block",
        "weights",
    ];

    /// The longest name of an ingredient in bytes.
    pub const MAX_NAME_BYTES: u32 = 128;

    /// The longest canonical form in bytes.
    pub const MAX_BYTES: u32 = 1 << 20;

    /// A representation of these ingredients, in whatever order they come.
    ///
    /// # Errors
    /// When a name is malformed, repeated or missing, or everything together is too long.
    pub fn new<I>(ingredients: I) -> Result<Self, RepresentationError>
    where
        I: IntoIterator<Item = (String, Ingredient)>,
    {
        let mut sorted = BTreeMap::new();
        for (name, value) in ingredients {
            if sorted.insert(name.clone(), value).is_some() {
                return Err(RepresentationError::Repeated { name });
            }
        }
        Self::checked(sorted)
    }

    /// The ingredients by name.
    pub fn ingredients(&self) -> impl Iterator<Item = (&str, &Ingredient)> {
        self.ingredients.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The canonical bytes: a version byte, then the ingredients in the order of their names.
    #[must_use]
    pub fn encode(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads canonical bytes back.
    ///
    /// # Errors
    /// When the version is unknown, or the bytes are not exactly what [`Self::encode`] gives.
    pub fn decode(bytes: &[u8]) -> Result<Self, RepresentationError> {
        let (&version, body) = bytes.split_first().ok_or(RepresentationError::Malformed)?;
        if version != VERSION {
            return Err(RepresentationError::UnknownVersion { version });
        }
        check_length(bytes)?;
        let ingredients = postcard::from_bytes(body).map_err(|_| RepresentationError::Malformed)?;
        let read = Self::checked(ingredients)?;
        if read.bytes == bytes { Ok(read) } else { Err(RepresentationError::Malformed) }
    }

    /// The digest by which endpoints, shared keys and layouts name this representation.
    #[must_use]
    pub fn digest(&self) -> RepresentationDigest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"pinfold representation v1\0").update(&self.bytes);
        RepresentationDigest::from_bytes(first_16(&hasher.finalize()))
    }

    /// Every ingredient in which the two differ, in the order of the names.
    #[must_use]
    pub fn explain(&self, other: &Self) -> Vec<Difference> {
        let text = |ingredients: &BTreeMap<String, Ingredient>| {
            ingredients.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
        };
        differences(&text(&self.ingredients), &text(&other.ingredients))
    }

    fn checked(ingredients: BTreeMap<String, Ingredient>) -> Result<Self, RepresentationError> {
        for name in ingredients.keys() {
            let fits = (1..=Self::MAX_NAME_BYTES as usize).contains(&name.len());
            if !fits || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(RepresentationError::Name { name: name.clone() });
            }
        }
        for name in Self::REQUIRED {
            if !ingredients.contains_key(name) {
                return Err(RepresentationError::Missing { name });
            }
        }
        let body = postcard::to_allocvec(&ingredients);
        let mut bytes = body.map_err(|_| RepresentationError::Malformed)?;
        bytes.insert(0, VERSION);
        check_length(&bytes)?;
        Ok(Self { ingredients, bytes })
    }
}

impl fmt::Debug for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.ingredients()).finish()
    }
}

/// Why ingredients or bytes are no representation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepresentationError {
    /// A required ingredient was left out.
    #[error("ingredient {name} is missing: state it, as \"none\" where it does not apply")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// An ingredient was given twice.
    #[error("ingredient {name} was given twice: state it once")]
    Repeated {
        /// Its name.
        name: String,
    },
    /// A name is empty, too long, or not made of visible ASCII characters.
    #[error("ingredient name {name:?} is malformed: use 1 to 128 visible ASCII characters")]
    Name {
        /// The name.
        name: String,
    },
    /// The canonical form is longer than a representation may be.
    #[error("the representation has {bytes} bytes: at most 1048576 fit, hash long ingredients")]
    TooLong {
        /// How many bytes it had.
        bytes: u64,
    },
    /// The bytes begin with a version that this build does not know.
    #[error("representation version {version} is unknown: read it with a newer build")]
    UnknownVersion {
        /// The version found.
        version: u8,
    },
    /// The bytes are no canonical representation.
    #[error("the bytes are no canonical representation: ask their writer to encode them again")]
    Malformed,
}

impl RepresentationError {
    /// The refusal's stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing_ingredient",
            Self::Repeated { .. } => "repeated_ingredient",
            Self::Name { .. } => "malformed_name",
            Self::TooLong { .. } => "representation_too_long",
            Self::UnknownVersion { .. } => "unknown_version",
            Self::Malformed => "malformed_representation",
        }
    }

    /// The stable name of the field that was wrong.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Repeated { .. } | Self::Name { .. } => "ingredients",
            Self::TooLong { .. } | Self::UnknownVersion { .. } | Self::Malformed => {
                "representation"
            }
        }
    }
}

/// The fields in which two flat descriptions differ, in the order of their names.
pub(crate) fn differences(
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let added = theirs.keys().filter(|field| !ours.contains_key(*field));
    let mut fields: Vec<&String> = ours.keys().chain(added).collect();
    fields.sort_unstable();
    let pairs = fields.into_iter().map(|field| Difference {
        field: field.clone(),
        ours: ours.get(field).cloned(),
        theirs: theirs.get(field).cloned(),
    });
    pairs.filter(|difference| difference.ours != difference.theirs).collect()
}

fn check_length(bytes: &[u8]) -> Result<(), RepresentationError> {
    if bytes.len() > Representation::MAX_BYTES as usize {
        return Err(RepresentationError::TooLong { bytes: bytes.len() as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn plain() -> Vec<(String, Ingredient)> {
        let none = |name: &&str| ((*name).to_string(), Ingredient::from("none"));
        Representation::REQUIRED.iter().map(none).collect()
    }

    fn with(name: &str, value: Ingredient) -> Representation {
        let mut ingredients = plain();
        ingredients.retain(|(known, _)| known != name);
        ingredients.push((name.to_string(), value));
        Representation::new(ingredients).unwrap()
    }

    #[test]
    fn digest_is_golden_and_order_is_irrelevant() {
        let ours = with("weights", "sha256:1f".into());
        let backwards = ours.ingredients().map(|(name, value)| (name.to_string(), value.clone()));
        let mut backwards: Vec<_> = backwards.collect();
        backwards.reverse();
        assert_eq!(Representation::new(backwards).unwrap().digest(), ours.digest());
        assert_eq!(ours.digest().to_string(), "b66dcdab0d36f1f618ddd866db6247f4");
    }

    /// A representation separates element types, weights and adapters.
    #[test]
    fn every_ingredient_changes_the_digest() {
        let base = Representation::new(plain()).unwrap();
        for name in Representation::REQUIRED {
            assert_ne!(with(name, "some".into()).digest(), base.digest(), "{name}");
        }
        assert_ne!(with("extra", 1.into()).digest(), base.digest());
        assert_ne!(with("extra", 1.into()).digest(), with("extra", "1".into()).digest());
        let split = with("extra", Ingredient::from(&["a", "b"][..]));
        assert_ne!(split.digest(), with("extra", Ingredient::from(&["ab"][..])).digest());
    }

    #[test]
    fn explain_names_the_differing_ingredients() {
        let ours = with("weights", "v1".into());
        let theirs = with("draft", Ingredient::from(&[1_i64, 2][..]));
        let lines: Vec<_> = ours.explain(&theirs).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "draft: ours is absent, theirs is [1, 2]",
                "weights: ours is \"v1\", theirs is \"none\"",
            ]
        );
        assert_eq!(ours.explain(&ours), vec![]);
    }

    #[test]
    fn refusals_name_the_ingredient() {
        let mut missing = plain();
        missing.retain(|(name, _)| name != "state_rounding");
        let error = Representation::new(missing).unwrap_err();
        assert_eq!(error, RepresentationError::Missing { name: "state_rounding" });
        assert_eq!((error.code(), error.field()), ("missing_ingredient", "ingredients"));

        let repeated = plain().into_iter().chain(plain());
        let error = Representation::new(repeated).unwrap_err();
        assert_eq!(error, RepresentationError::Repeated { name: "adapters".to_string() });

        for bad in ["", "a b", &"a".repeat(129)] {
            let named = plain().into_iter().chain([(bad.to_string(), 1.into())]);
            let error = Representation::new(named).unwrap_err();
            assert_eq!(error, RepresentationError::Name { name: bad.to_string() });
        }

        let long = Ingredient::Text("x".repeat(1 << 20));
        let named = plain().into_iter().chain([("long".to_string(), long)]);
        let error = Representation::new(named).unwrap_err();
        assert_eq!(error.code(), "representation_too_long");
    }

    #[test]
    fn decode_takes_only_what_encode_gives() {
        let ours = with("heads", Ingredient::from(&[96_i64, 128][..]));
        let bytes = ours.encode().to_vec();
        assert_eq!(Representation::decode(&bytes), Ok(ours));
        let mut newer = bytes.clone();
        newer[0] = 2;
        let unknown = RepresentationError::UnknownVersion { version: 2 };
        assert_eq!(Representation::decode(&newer), Err(unknown));
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Representation::decode(&longer), Err(RepresentationError::Malformed));
        for end in 0..bytes.len() {
            assert!(Representation::decode(&bytes[..end]).is_err());
        }
    }

    proptest! {
        #[test]
        fn decode_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(read) = Representation::decode(&bytes) {
                prop_assert_eq!(read.encode(), &bytes[..]);
            }
        }
    }
}
