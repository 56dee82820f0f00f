//! Tests of the coverage.
