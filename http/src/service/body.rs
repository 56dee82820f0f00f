//! Bodies: read whole before anything is done for a request, within a time and a budget.
//!
//! Protects those who ask from those who only begin to: half a body takes up neither one of the
//! places for requests nor more memory than all bodies together may, and it is over in time. What
//! is refused here was not looked at, so nothing was done.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Shared;
use crate::problem::{Code, Problem};

/// All bodies together may be so many times as large as one.
const LARGEST_AT_ONCE: usize = 32;

/// How many bytes all bodies together may have.
pub(super) fn budget(body_bytes: usize) -> Semaphore {
    Semaphore::new(body_bytes.saturating_mul(LARGEST_AT_ONCE).min(Semaphore::MAX_PERMITS))
}

/// A request whose body is here, and the room that it takes.
pub(super) async fn whole(
    shared: &Shared,
    request: Request,
) -> Result<(Request, SemaphorePermit<'_>), Problem> {
    let (parts, body) = request.into_parts();
    let most = shared.options.body_within;
    let drained = shared.drained.notified();
    if shared.is_draining() {
        return Err(ends());
    }
    let read = tokio::select! {
        read = tokio::time::timeout(most, read(shared, body)) => read,
        () = drained => return Err(ends()),
    };
    let (bytes, room) = read.map_err(|_| {
        let detail =
            format!("the body was not here within {} s: send it again", most.as_secs_f64());
        Problem::new(Code::TimedOut, detail)
    })??;
    Ok((Request::from_parts(parts, Body::from(bytes)), room))
}

fn ends() -> Problem {
    Problem::new(Code::Draining, "it ends, and the body was not here yet: ask again")
}

async fn read(shared: &Shared, mut body: Body) -> Result<(Vec<u8>, SemaphorePermit<'_>), Problem> {
    let most = shared.options.body_bytes;
    let too_large = || {
        let detail = format!("a body has at most {most} bytes: send fewer commands");
        Problem::new(Code::TooLarge, detail)
    };
    let said = body.size_hint().lower();
    if usize::try_from(said).map_or(true, |said| said > most) {
        return Err(too_large());
    }
    let full = |_| Problem::new(Code::Busy, "too many bodies are under way: come again");
    let mut bytes = Vec::new();
    let mut room = shared.bodies.try_acquire_many(0).map_err(full)?;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            Problem::new(Code::Malformed, format!("the body cannot be read: {error}"))
        })?;
        // What follows a body says nothing that is asked for.
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > most - bytes.len() {
            return Err(too_large());
        }
        let more = u32::try_from(data.len()).map_err(|_| too_large())?;
        room.merge(shared.bodies.try_acquire_many(more).map_err(full)?);
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, room))
}
