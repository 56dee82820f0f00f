//! The service and its clients over real sockets.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

mod certificates;
mod client;
mod faulty;
mod hostile;
mod page;
mod scene;
mod service;
mod tls;
