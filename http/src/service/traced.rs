//! Requests as spans, for whoever listens: a log on standard error, or a collector of traces.
//!
//! It costs nothing where nobody does: a span that is disabled is not made, and nothing is read for
//! it. It shows who asked what, how it ended and how long it took; never a token, and never what a
//! body says beyond its operation. A trace that the client began goes on here (W3C `traceparent`).

use std::future::Future;
use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use opentelemetry::global::get_text_map_propagator;
use opentelemetry::propagation::Extractor;
use pinfold_host::dto::Ask;
use tracing::field::Empty;
use tracing::{Instrument, Span, info, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The header that carries a trace.
const TRACE: &str = "traceparent";

/// The span of a request; disabled where nobody listens.
pub(super) fn span(request: &Request) -> Span {
    let (method, path) = (request.method(), request.uri().path());
    let span = info_span!(
        "request",
        otel.name = format!("{method} {}", route(path)),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = %method,
        url.path = path,
        http.response.status_code = Empty,
        owner = Empty,
        op = Empty,
        commands = Empty,
    );
    if !span.is_disabled() && request.headers().contains_key(TRACE) {
        let parent = get_text_map_propagator(|it| it.extract(&Headers(request.headers())));
        // It fails only where nobody collects traces.
        let _ = span.set_parent(parent);
    }
    span
}

/// A path without what it names: the same for all of its kind.
fn route(path: &str) -> &str {
    path.match_indices('/').nth(2).map_or(path, |(end, _)| &path[..end])
}

/// Who asks what, once that has been read.
pub(super) fn asked(ask: &Ask) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    let (owner, op, commands) = match ask {
        Ask::Register(register) => (Some(register.owner), None, 0),
        Ask::Command(one) => (Some(one.op.owner), Some(one.op), 1),
        Ask::List(list) => {
            let first = list.first().map(|one| one.op);
            (first.map(|op| op.owner), first, list.len())
        }
        Ask::Query(_) => (None, None, 0),
    };
    if let Some(owner) = owner {
        span.record("owner", tracing::field::display(owner));
    }
    if let Some(op) = op {
        span.record("op", tracing::field::display(op));
        span.record("commands", commands);
    }
}

/// Answers inside of a span, and says how that ended.
pub(super) async fn answered(span: Span, answer: impl Future<Output = Response>) -> Response {
    let began = Instant::now();
    let response = answer.instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    span.in_scope(|| info!(status = status.as_u16(), micros, "answered"));
    response
}

/// The headers, as a propagator reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_names_nobody() {
        for (path, named) in [
            ("/v1/call", "/v1/call"),
            ("/metrics", "/metrics"),
            ("/v1/checkpoints/7", "/v1/checkpoints"),
            ("/v1/conversations/99/more", "/v1/conversations"),
            ("/", "/"),
        ] {
            assert_eq!(route(path), named);
        }
    }
}
