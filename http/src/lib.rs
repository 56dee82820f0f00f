//! A job's coordinator over HTTP: the [service] that many workers on many machines share, and the
//! [client] through which a worker's owner and transfers reach it; a [worker] is client, owner and
//! transfers in one.
//!
//! It carries requests and answers of `pinfold-host`, in the same forms as a log, and decides
//! nothing. What is acknowledged is durable; what nobody heard is asked again under the same
//! operation, and answered as the first time.
//!
//! ```
//! use pinfold_core::catalog::{Command, Role};
//! use pinfold_core::id::{Epoch, OwnerId, StartId};
//! use pinfold_core::policy::{Genesis, Limits, Policy};
//! use pinfold_host::node::Node;
//! use pinfold_host::owner::Owner;
//! use pinfold_http::client::{Client, ClientOptions};
//! use pinfold_http::service::{Service, ServiceOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let genesis = Genesis {
//!     namespace: "shared".parse()?,
//!     epoch: Epoch::of_name("128 random bits in earnest"),
//!     operator: OwnerId::of_name("operator"),
//!     policy: Policy::default(),
//!     limits: Limits::default(),
//! };
//! let (node, effects) = Node::create(dir, genesis)?;
//! let service = Service::start(node, effects, ServiceOptions::default())?;
//!
//! // On another machine, in another process:
//! let url = format!("http://{}", service.address());
//! let client = Client::connect(&url, ClientOptions::default())?;
//! let worker = Owner::register(client, "w1", Role::Worker, StartId::of_name("this start"))?;
//! worker.ask(Command::Collect { limit: 256 })??;
//! # service.stop()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod descriptor;
pub mod encoding;
pub mod load;
pub mod problem;
pub mod service;
pub mod tls;
pub mod worker;
