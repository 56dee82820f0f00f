//! The service: a node's requests and views over HTTP.
//!
//! Protects the node from who asks: a body is read whole and refused whole, as many requests are
//! under way as may be, none takes longer than it may, and nobody asks without the token. It
//! decides nothing and keeps nothing: whatever it acknowledges is in the node's journal, and a
//! request whose client is gone is answered nevertheless.

mod answers;
mod audit;
mod body;
mod connections;
mod guard;
mod lists;
mod look;
mod metrics;
mod page;
mod patient;
mod routes;
mod seen;
mod survey;
mod traced;
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pinfold_core::engine::Effect;
use pinfold_core::id::OwnerId;
use pinfold_host::node::{Effects, Node, NodeClient, NodeError};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};

pub use guard::{Open, Token, TokenError};

use crate::tls::ServerTls;
use audit::AuditLog;
use seen::{Seen, Watcher};
use survey::Surveys;
use work::Work;

/// How long an end waits for those who look at the engine.
const LAST_LOOKS: Duration = Duration::from_secs(1);

/// How a service is run.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Who has it may ask.
    pub token: Option<Token>,
    /// How it speaks TLS, if it does.
    pub tls: Option<ServerTls>,
    /// How long a client may take to begin with TLS.
    pub handshake_within: Duration,
    /// The longest body, in bytes.
    pub body_bytes: usize,
    /// How long a body may be on its way.
    pub body_within: Duration,
    /// How long a request may take; the wait for delete work comes on top.
    pub answer_within: Duration,
    /// How many connections there are at most; the next one waits until another ends.
    pub connections: usize,
    /// How long a connection may be without a request, half a head on its way, or an answer not
    /// read on; then it is closed.
    pub silence: Duration,
    /// How many requests are under way at most; the next one is told to come again.
    pub requests: usize,
    /// How long a stop waits for requests that are under way.
    pub drain_within: Duration,
    /// The file to which every operator's command is appended, with its answer.
    pub audit: Option<PathBuf>,
    /// An owner in this process that collects: its delete work goes to
    /// [`own_effects`](Service::own_effects), and to nobody else.
    pub collector: Option<OwnerId>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            tls: None,
            handshake_within: Duration::from_secs(10),
            body_bytes: 8 << 20,
            body_within: Duration::from_secs(10),
            answer_within: Duration::from_secs(30),
            connections: 4096,
            silence: Duration::from_secs(30),
            requests: 4096,
            drain_within: Duration::from_secs(10),
            audit: None,
            collector: None,
        }
    }
}

impl ServiceOptions {
    /// Whether nobody asks without a secret of his own.
    fn knows_who_asks(&self) -> bool {
        self.token.is_some() || self.tls.as_ref().is_some_and(ServerTls::is_mutual)
    }
}

/// Why a service does not start, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Others could reach it, and nothing keeps them out.
    #[error(transparent)]
    Open(#[from] Open),
    /// The address is taken, or not of this machine.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The audit log cannot be written.
    #[error("the audit log {path}: {error}", path = .path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Threads cannot be started.
    #[error("the service's threads cannot be started: {0}")]
    Threads(std::io::Error),
    /// Something was asked of the node before, so not all of it would be seen.
    #[error(transparent)]
    Late(#[from] pinfold_host::node::Late),
    /// How the node ended.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A service that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    shared: Arc<Shared>,
    node: Option<Node>,
    server: Option<JoinHandle<()>>,
    own_effects: Mutex<Option<Effects>>,
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    node: NodeClient,
    seen: Arc<Seen>,
    surveys: Surveys,
    work: Arc<Work>,
    options: ServiceOptions,
    room: Semaphore,
    /// Bytes that bodies may have.
    bodies: Semaphore,
    draining: AtomicBool,
    /// Rung once: those who wait for delete work go, and the server takes nothing new.
    drained: Notify,
}

impl Shared {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

impl Service {
    /// Serves a node that nobody has asked anything yet.
    ///
    /// # Errors
    /// [`ServiceError`] when the address cannot be listened on, or could be reached by others and
    /// nothing keeps them out.
    pub fn start(
        node: Node,
        effects: Effects,
        options: ServiceOptions,
    ) -> Result<Self, ServiceError> {
        let listener = listen(&options)?;
        Self::start_on(listener, node, effects, options)
    }

    /// The same on an address that is [listened](listen) on already.
    ///
    /// # Errors
    /// [`ServiceError`] when something else cannot be opened.
    pub fn start_on(
        listener: std::net::TcpListener,
        node: Node,
        effects: Effects,
        options: ServiceOptions,
    ) -> Result<Self, ServiceError> {
        let work = Arc::new(Work::new(node.job().clone()));
        let audit = options.audit.as_deref().map(|path| {
            let failed = |error| ServiceError::Audit { path: path.to_path_buf(), error };
            AuditLog::open(path).map_err(failed)
        });
        let seen = Arc::new(Seen::new(Arc::clone(&work), audit.transpose()?));
        // Delete work is taken by who looks on, so that it is there before the answer is.
        drop(effects);
        let (own, own_effects) = options.collector.map(own_work).unzip();
        node.watch(Box::new(Watcher { seen: Arc::clone(&seen), own }))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("pinfold-serve")
            .build()
            .map_err(ServiceError::Threads)?;
        let listened = |error| ServiceError::Listen { address: options.listen, error };
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener).map_err(listened)?
        };
        let address = listener.local_addr().map_err(listened)?;
        let room = Semaphore::new(options.requests.min(Semaphore::MAX_PERMITS));
        let bodies = body::budget(options.body_bytes);
        let (surveys, draining, drained) = Default::default();
        let node_client = node.client();
        let shared = Arc::new(Shared {
            node: node_client,
            seen,
            surveys,
            work,
            options,
            room,
            bodies,
            draining,
            drained,
        });
        let served = Arc::clone(&shared);
        let server = thread::Builder::new()
            .name("pinfold-server".into())
            .spawn(move || {
                let app = routes::router(&served);
                runtime.block_on(connections::serve(listener, app, served));
                // Whoever still looks at the engine then is waited for no longer.
                runtime.shutdown_timeout(LAST_LOOKS);
            })
            .map_err(ServiceError::Threads)?;
        let job = node.job();
        tracing::info!(%address, namespace = %job.namespace, epoch = %job.epoch, "serving");
        let own_effects = Mutex::new(own_effects);
        let (node, server) = (Some(node), Some(server));
        Ok(Self { address, shared, node, server, own_effects })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of that address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.address)
    }

    /// The URL by a name of this machine.
    #[must_use]
    pub fn url_by(&self, host: &str) -> String {
        format!("{}://{host}:{}", self.scheme(), self.address.port())
    }

    fn scheme(&self) -> &'static str {
        if self.shared.options.tls.is_some() { "https" } else { "http" }
    }

    /// A way to ask the node in this process.
    #[must_use]
    pub fn node(&self) -> NodeClient {
        self.shared.node.clone()
    }

    /// The delete work of the collector in this process, once; none where there is none.
    #[must_use]
    pub fn own_effects(&self) -> Option<Effects> {
        self.own_effects.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes nothing new, answers what is under way, and ends the node.
    ///
    /// # Errors
    /// [`NodeError`] says how the node ended, where it did not end well.
    pub fn stop(mut self) -> Result<(), NodeError> {
        self.close();
        let ended = self.node.take().map_or(Ok(()), Node::stop);
        self.shared.seen.end();
        match &ended {
            Ok(()) => tracing::info!("ended"),
            Err(error) => tracing::error!(%error, "ended, and not well"),
        }
        ended
    }

    /// Takes nothing new from now on; what is under way is answered, and [`stop`](Self::stop) ends
    /// it.
    pub fn drain(&self) {
        if !self.shared.draining.swap(true, Ordering::Relaxed) {
            tracing::info!("draining: nothing new is taken");
            self.shared.drained.notify_waiters();
            self.shared.drained.notify_one();
        }
    }

    fn close(&mut self) {
        self.drain();
        if let Some(server) = self.server.take() {
            // It ends by returning; there is nothing to learn from how.
            let _ = server.join();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.close();
    }
}

/// Listens where a service is to be, before anything else is done for it.
///
/// # Errors
/// [`ServiceError`] when the address cannot be listened on, or could be reached by others and
/// nothing keeps them out.
pub fn listen(options: &ServiceOptions) -> Result<std::net::TcpListener, ServiceError> {
    let address = options.listen;
    guard::check(address, options)?;
    let bound = std::net::TcpListener::bind(address);
    let bound = bound.and_then(|it| it.set_nonblocking(true).map(|()| it));
    bound.map_err(|error| ServiceError::Listen { address, error })
}

/// The way of a collector's delete work to it.
fn own_work(owner: OwnerId) -> ((OwnerId, Sender<Effect>), Effects) {
    let (own, effects) = channel();
    ((owner, own), effects)
}
