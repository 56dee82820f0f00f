//! What a coordinator says of itself while it runs: lines on standard error, and traces for a
//! collector.
//!
//! It protects the service from its own words: what nobody asked for is not made, and whoever does
//! not read the lines, or take the spans, loses them and holds up no request. It never writes to
//! standard output.

use std::io::stderr;
use std::str::FromStr;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use pinfold_http::tls::ClientTls;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;
use url::Url;

use super::settings::Settings;
use crate::Failure;

/// How long a collector of traces may take with one request, and so with the last one.
const PATIENCE: Duration = Duration::from_secs(3);
/// Whose spans are exported.
const OURS: &str = "pinfold_http";

/// What is logged: a level, and others for parts of the program.
#[derive(Clone, Debug)]
pub(super) struct LogFilter(Targets);

impl Default for LogFilter {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::WARN))
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected off, error, warn, info, debug or trace, or a list like \
                        warn,pinfold_http=info";
        let mut targets = Targets::new();
        for part in text.split(',') {
            let (target, level) = match part.split_once('=') {
                Some((target, level)) => (Some(target), level),
                None => (None, part),
            };
            // An empty word is a level to who reads levels.
            let level = Some(level.trim()).filter(|level| !level.is_empty());
            let level = level.and_then(|level| level.parse::<LevelFilter>().ok());
            let level = level.ok_or_else(|| format!("\"{part}\" is no level: {expected}"))?;
            targets = match target.map(str::trim) {
                None => targets.with_default(level),
                Some("") => return Err(format!("\"{part}\" names no part: {expected}")),
                Some(target) => targets.with_target(target, level),
            };
        }
        Ok(Self(targets))
    }
}

/// Where a collector of traces takes them.
#[derive(Clone, Debug)]
pub(super) struct Collector(Url);

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a collector's URL like http://127.0.0.1:4318";
        let mut url = Url::parse(text).map_err(|error| format!("{error}: {expected}"))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(format!("{} is not spoken: {expected}", url.scheme()));
        }
        if !url.path().ends_with("/v1/traces") {
            let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        Ok(Self(url))
    }
}

/// As long as it is there, what happens is told; its end sends what a collector has not got yet.
pub(super) struct Logging {
    traces: Option<SdkTracerProvider>,
    /// Its end writes the last lines.
    _lines: WorkerGuard,
}

impl Logging {
    pub(super) fn begin(settings: &Settings) -> Result<Self, Failure> {
        let (writer, written) = tracing_appender::non_blocking(stderr());
        let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
        let lines = if settings.logs_json() { lines.json().boxed() } else { lines.boxed() };
        let LogFilter(filter) = settings.log.clone().unwrap_or_default();
        let traces = settings.otlp.as_ref().map(provider).transpose()?;
        let spans = traces.as_ref().map(|traces| {
            opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
            let ours = Targets::new().with_target(OURS, LevelFilter::INFO);
            tracing_opentelemetry::layer().with_tracer(traces.tracer("pinfold")).with_filter(ours)
        });
        registry()
            .with(lines.with_filter(filter))
            .with(spans)
            .try_init()
            .map_err(|error| Failure::Incomplete(format!("the log: {error}")))?;
        Ok(Self { traces, _lines: written })
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.traces.as_ref().map(SdkTracerProvider::shutdown) {
            tracing::warn!(%error, "the last spans may be lost");
        }
    }
}

fn provider(collector: &Collector) -> Result<SdkTracerProvider, Failure> {
    let Collector(url) = collector;
    let wrong = |what: String| Failure::Incomplete(format!("--otlp {url}: {what}"));
    let tls = match url.scheme() {
        "https" => ClientTls::new(None, None),
        _ => ClientTls::nobody(),
    };
    let tls = tls.map_err(|error| wrong(error.to_string()))?;
    let client = reqwest::blocking::Client::builder()
        .tls_backend_preconfigured(tls.config())
        .timeout(PATIENCE)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| wrong(error.to_string()))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(url.as_str())
        .with_timeout(PATIENCE)
        .build()
        .map_err(|error| wrong(error.to_string()))?;
    let resource = Resource::builder().with_service_name("pinfold");
    Ok(SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_batch_exporter(exporter)
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_levels() {
        for good in ["off", "warn", "INFO", "warn,pinfold_http=debug", "pinfold=trace, error"] {
            assert!(good.parse::<LogFilter>().is_ok(), "{good}");
        }
        for bad in ["", "loud", "pinfold_http", "=info", "pinfold_http=", "info,,warn"] {
            let refused = bad.parse::<LogFilter>().unwrap_err();
            assert!(refused.contains("expected off, error, warn"), "{bad}: {refused}");
        }
    }

    #[test]
    fn a_collector_takes_traces_at_their_path() {
        for (text, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://host/otel/", "https://host/otel/v1/traces"),
            ("http://host/v1/traces", "http://host/v1/traces"),
        ] {
            assert_eq!(text.parse::<Collector>().unwrap().0.as_str(), url);
        }
        for bad in ["", "127.0.0.1:4318", "grpc://host:4317"] {
            let refused = bad.parse::<Collector>().unwrap_err();
            assert!(refused.contains("like http://127.0.0.1:4318"), "{bad}: {refused}");
        }
    }
}
