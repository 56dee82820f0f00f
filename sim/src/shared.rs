//! A value that clones share until one of them changes it.
//!
//! Who looks ahead, as a model checker does, clones a World for every step and changes little of
//! it. To read costs nothing; the first change through one clone copies the value.

use core::ops::{Deref, DerefMut};
use std::sync::Arc;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// A value that nobody shares yet.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// True while neither of the two was changed since one was cloned from the other.
    #[must_use]
    pub fn is_unchanged(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
