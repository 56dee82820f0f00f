//! A short list that lives in place: at most `N` values, no allocation.

use core::fmt;
use core::ops::Deref;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Up to `N` values in place. Answers and events use it, so that a verb never allocates.
#[derive(Clone, Copy)]
pub struct Few<T, const N: usize> {
    length: u8,
    values: [T; N],
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self { length: 0, values: [T::default(); N] }
    }

    /// Appends a value; false, and nothing changed, when the list is full.
    #[must_use]
    pub fn push(&mut self, value: T) -> bool {
        match self.values.get_mut(usize::from(self.length)) {
            Some(place) if self.length < u8::MAX => {
                *place = value;
                self.length += 1;
                true
            }
            _ => false,
        }
    }

    /// True when nothing more fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        usize::from(self.length) == N
    }
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[..usize::from(self.length)]
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a Few<T, N> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Few<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Few<T, N> {}

impl<T: core::hash::Hash, const N: usize> core::hash::Hash for Few<T, N> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize, const N: usize> Serialize for Few<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T, const N: usize> Deserialize<'de> for Few<T, N>
where
    T: Copy + Default + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T, const N: usize>(Few<T, N>);
        impl<'de, T, const N: usize> Visitor<'de> for Values<T, N>
        where
            T: Copy + Default + Deserialize<'de>,
        {
            type Value = Few<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {N} values")
            }

            fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Few<T, N>, A::Error> {
                while let Some(value) = seq.next_element()? {
                    if !self.0.push(value) {
                        return Err(A::Error::custom("the list is too long"));
                    }
                }
                Ok(self.0)
            }
        }
        deserializer.deserialize_seq(Values(Self::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_up_to_its_bound_and_says_when_full() {
        let mut few = Few::<u32, 2>::new();
        assert!(few.push(1) && few.push(2) && few.is_full());
        assert!(!few.push(3));
        assert_eq!(*few, [1, 2]);
    }

    #[test]
    fn a_longer_list_is_refused_when_read() {
        let bytes = postcard::to_allocvec(&[1_u32, 2, 3].as_slice()).unwrap();
        assert!(postcard::from_bytes::<Few<u32, 2>>(&bytes).is_err());
        let few = postcard::from_bytes::<Few<u32, 3>>(&bytes).unwrap();
        assert_eq!(*few, [1, 2, 3]);
    }
}
