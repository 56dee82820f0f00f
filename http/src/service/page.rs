//! The operator's page: one HTML document that reads the views and shows them.
//!
//! It holds no data of the job, so it needs no token; what it shows comes from the views, under the
//! rules of every request. It only reads, asks nobody but this service, and never shows what it
//! was answered as anything but text.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;

/// The document with its style and its script in it.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    include_str!("page.html")
        .replace("/* page.css */\n", include_str!("page.css"))
        .replace("/* page.js */\n", include_str!("page.js"))
});

/// What a browser lets the page do: its own style and script, and requests to this service.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(super) async fn page() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE.as_str())
}
