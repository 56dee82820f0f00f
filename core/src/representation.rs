//! representation
