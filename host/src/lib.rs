//! Workers
