//! Journal encodings.

pub mod record;
