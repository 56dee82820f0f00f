//! The service and its clients over real sockets.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod certificates;
mod client;
mod faulty;
mod hostile;
mod lists;
mod page;
#[path = "../../examples/save_and_load.rs"]
#[allow(dead_code, reason = "a test has its own end")]
mod save_and_load;
mod scene;
mod service;
mod stalled;
mod tls;
mod worker;
