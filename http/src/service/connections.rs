//! Connections: so many at once, each for as long as somebody speaks.
//!
//! Protects the journal from whoever only connects: a process has so many files, and one that has
//! none left cannot write. A connection on which nobody begins a request for a while is closed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Shared;

/// How long a connection may be without a request, or a request's head under way.
const SILENCE: Duration = Duration::from_secs(30);
/// The pause after a connection that could not be taken, as where there are too many files.
const REFUSED: Duration = Duration::from_millis(100);

/// Serves connections until the service is drained, and then those that are under way, for as long
/// as that may take.
pub(super) async fn serve(listener: TcpListener, app: Router, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(shared.options.connections));
    let graceful = GracefulShutdown::new();
    let drained = shared.drained.notified();
    tokio::pin!(drained);
    loop {
        let came = tokio::select! {
            () = &mut drained => break,
            came = accept(&listener, &room) => came,
        };
        let Some((stream, permit)) = came else { continue };
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(SILENCE);
        let service = TowerToHyperService::new(app.clone());
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // How it ended is its client's to know.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    // Whoever is still under way then hears nothing, and asks the next coordinator again.
    let _ = tokio::time::timeout(shared.options.drain_within, graceful.shutdown()).await;
}

/// The next connection, once there is room for it; none where it could not be taken.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // One whose answers wait for each other is slower, and no worse.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(_) => {
            tokio::time::sleep(REFUSED).await;
            None
        }
    }
}
