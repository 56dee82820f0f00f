//! Workload
