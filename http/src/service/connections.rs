//! Connections: so many at once, each for as long as somebody speaks.
//!
//! Protects the journal from whoever only connects: a process has so many files, and one that has
//! none left cannot write. A connection on which nobody begins a request for a while is closed, and
//! so is one whose answer nobody reads, or on which TLS does not begin; each begins by itself, so
//! that nobody waits for another. An end waits for whole requests alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Shared;
use super::patient::Patient;

/// The pause after a connection that could not be taken, as where there are too many files.
const REFUSED: Duration = Duration::from_millis(100);
/// How long an end lets a connection go on on which no request is answered: its last answer is
/// written meanwhile, and half a request may still become one.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Serves connections until the service is drained, and then those that are under way, for as long
/// as that may take.
pub(super) async fn serve(listener: TcpListener, app: Router, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(shared.options.connections));
    let graceful = GracefulShutdown::new();
    let acceptor = shared.options.tls.as_ref();
    let acceptor = acceptor.map(|tls| TlsAcceptor::from(Arc::clone(&tls.config)));
    let drained = shared.drained.notified();
    tokio::pin!(drained);
    loop {
        let came = tokio::select! {
            () = &mut drained => break,
            came = accept(&listener, &room) => came,
        };
        let Some((stream, permit)) = came else { continue };
        let (app, watcher) = (app.clone(), graceful.watcher());
        let acceptor = acceptor.clone();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            match acceptor {
                None => speak(stream, app, watcher, &shared).await,
                Some(acceptor) => {
                    if let Some(stream) = begun(stream, &acceptor, &shared).await {
                        speak(stream, app, watcher, &shared).await;
                    }
                }
            }
            drop(permit);
        });
    }
    drop(listener);
    // Whoever is still under way then hears nothing, and asks the next coordinator again.
    let _ = tokio::time::timeout(shared.options.drain_within, graceful.shutdown()).await;
}

/// Answers the requests of one connection.
async fn speak<S>(stream: S, app: Router, watcher: Watcher, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let silence = shared.options.silence;
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(silence);
    let asked = Arc::new(AtomicUsize::new(0));
    let app = TowerToHyperService::new(app);
    let counts = Arc::clone(&asked);
    let service = service_fn(move |request| {
        let (under_way, answer) = (UnderWay::begin(&counts), app.call(request));
        async move {
            let answer = answer.await;
            drop(under_way);
            answer
        }
    });
    let stream = TokioIo::new(Patient::new(stream, silence));
    tokio::select! {
        // How it ended is its client's to know.
        _ = watcher.watch(builder.serve_connection(stream, service)) => {}
        () = nobody_asks(shared, &asked) => {}
    }
}

/// The connection once TLS has begun on it; none where it does not in time, or the service ends.
async fn begun(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    shared: &Shared,
) -> Option<TlsStream<TcpStream>> {
    let peer = stream.peer_addr().ok();
    let drained = shared.drained.notified();
    if shared.is_draining() {
        return None;
    }
    let begins = tokio::time::timeout(shared.options.handshake_within, acceptor.accept(stream));
    let why = tokio::select! {
        () = drained => return None,
        begun = begins => match begun {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_string(),
        },
    };
    tracing::info!(?peer, why, "a connection is refused: TLS does not begin");
    None
}

/// The next connection, once there is room for it; none where it could not be taken.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // One whose answers wait for each other is slower, and no worse.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection cannot be taken");
            tokio::time::sleep(REFUSED).await;
            None
        }
    }
}

/// A request that is being answered.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until the service is drained, and no request was answered on this connection for a while.
async fn nobody_asks(shared: &Shared, asked: &AtomicUsize) {
    let drained = shared.drained.notified();
    if !shared.is_draining() {
        drained.await;
    }
    let mut before = 1;
    loop {
        let now = asked.load(Ordering::Relaxed);
        if before == 0 && now == 0 {
            return;
        }
        before = now;
        tokio::time::sleep(LAST_WORDS).await;
    }
}
