//! Stores of objects, as a host sees them.
