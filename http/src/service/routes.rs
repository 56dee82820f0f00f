//! The paths, and what each answers.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pinfold_core::catalog::Command;
use pinfold_core::engine::Reply;
use pinfold_core::id::{
    CheckpointId, ConversationId, EndpointId, Generation, Incarnation, OpId, OwnerId, TurnId,
};
use pinfold_host::dto::{Answer, AnswerAndWork, Ask, Call, WorkList};
use pinfold_host::node::{Gone, Unsent};
use pinfold_host::view::{NeverMinted, PolicyView, WhyView};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::answers::{EndpointAnswer, JobAnswer, LedgerAnswer, TurnAnswer};
use super::look::{blocking, gone, look};
use super::metrics::Figures;
use super::page::page;
use super::survey::checkpoint_of;
use super::work::Whose;
use super::{Shared, body, guard, lists, traced};
use crate::encoding::Encoding;
use crate::problem::{Code, Problem};

/// The longest that somebody may wait for delete work.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) type Answered<T> = Result<Json<T>, Problem>;
pub(super) type Kept = State<Arc<Shared>>;

/// Every path.
pub(super) fn router(shared: &Arc<Shared>) -> Router {
    let guarded = Router::new()
        .route("/v1/call", post(call))
        .route("/v1/job", get(job))
        .route("/v1/inspection", get(lists::inspection))
        .route("/v1/checkpoints", get(lists::checkpoints))
        .route("/v1/conversations", get(lists::conversations))
        .route("/v1/owners", get(lists::owners))
        .route("/v1/checkpoints/{generation}", get(checkpoint))
        .route("/v1/endpoints/{endpoint}", get(endpoint))
        .route("/v1/conversations/{conversation}", get(conversation))
        .route("/v1/pins", get(lists::pins))
        .route("/v1/work", get(work))
        .route("/metrics", get(metrics))
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), admit));
    Router::new()
        .merge(guarded)
        .route("/", get(page))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        // `body` keeps the limit, while it reads.
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(shared))
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.code;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(code, Code::Busy | Code::Draining | Code::Gone) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Lets in who may ask, and traces that where somebody listens.
async fn admit(State(shared): Kept, request: Request, next: Next) -> Response {
    let span = traced::span(&request);
    let admitted = async { admitted(shared, request, next).await.into_response() };
    if span.is_disabled() { admitted.await } else { traced::answered(span, admitted).await }
}

/// Lets in who may ask, while there is room, for as long as a request may take.
async fn admitted(shared: Arc<Shared>, request: Request, next: Next) -> Result<Response, Problem> {
    if let Some(token) = &shared.options.token {
        let sent = request.headers().get(AUTHORIZATION);
        if !sent.is_some_and(|sent| token.is_in(sent.as_bytes())) {
            let detail = "send `Authorization: Bearer TOKEN` with the coordinator's token";
            return Err(Problem::new(Code::Unauthorized, detail));
        }
    } else if !shared.options.knows_who_asks()
        && !request.headers().get(HOST).is_some_and(|host| guard::is_here(host.as_bytes()))
    {
        let detail = "without a token it is asked by a name of this machine, like localhost or \
                      127.0.0.1: start it with --token-file or --client-ca to be asked by another";
        return Err(Problem::new(Code::Unauthorized, detail));
    }
    if shared.is_draining() {
        let detail = "it answers what is under way and ends: ask again when it is back";
        return Err(Problem::new(Code::Draining, detail));
    }
    let (request, _bytes) = body::whole(&shared, request).await?;
    let Ok(_room) = shared.room.try_acquire() else {
        let detail = format!("{} requests are under way: come again", shared.options.requests);
        return Err(Problem::new(Code::Busy, detail));
    };
    // Who waits for delete work has asked for how long.
    let waits = if request.uri().path() == "/v1/work" { LONGEST_WAIT } else { Duration::ZERO };
    let most = shared.options.answer_within;
    tokio::time::timeout(most + waits, next.run(request)).await.map_err(|_| {
        let detail = format!(
            "no answer within {} s: nobody knows what became of it; ask again under the same \
             operation",
            most.as_secs_f64()
        );
        Problem::new(Code::TimedOut, detail)
    })
}

/// What a program needs to know of the paths. The version is the program's, as in the workspace.
async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
}

async fn nothing(request: Request) -> Problem {
    let path = request.uri().path().to_string();
    Problem::new(Code::NotFound, format!("no path {path}: there are /v1/call, /v1/job and others"))
}

async fn wrong_method(request: Request) -> Problem {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    Problem::new(Code::WrongMethod, format!("{path} does not know {method}"))
}

async fn ready(State(shared): Kept) -> Result<&'static str, Problem> {
    if shared.is_draining() {
        return Err(Problem::new(Code::Draining, "it ends as soon as all is answered"));
    }
    if shared.node.is_gone() {
        return Err(gone(Gone));
    }
    Ok("ready\n")
}

/// What a call's answer is to bring along.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Along {
    /// The delete work that it hands out.
    #[serde(default)]
    work: bool,
}

/// A request of the protocol; it is answered in the encoding in which it came.
async fn call(
    State(shared): Kept,
    along: Result<Query<Along>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let Query(Along { work }) = along.map_err(|error| malformed(&error.body_text()))?;
    let Some(encoding) = headers.get(CONTENT_TYPE).and_then(Encoding::of) else {
        let known = Encoding::ALL.map(Encoding::content_type).join("` or `");
        let detail = format!("send `Content-Type: {known}`");
        return Err(Problem::new(Code::WrongContentType, detail));
    };
    let body = body.map_err(|error| malformed(&error.body_text()))?;
    let call: Call = encoding.decode(&body).map_err(|what| malformed(&what))?;
    traced::asked(&call.ask);
    let collects = if work { collects(&call.ask) } else { Vec::new() };
    let answer = Answer::from(ask(&shared, call).await?);
    let written = if work {
        let work = collects.into_iter().flat_map(|op| shared.work.of_op(op)).collect();
        encoding.encode(&AnswerAndWork { answer, work })
    } else {
        encoding.encode(&answer)
    };
    let written = written.map_err(|what| Problem::new(Code::Gone, what))?;
    Ok(([(CONTENT_TYPE, encoding.content_type())], written).into_response())
}

/// The operations that ask for delete work.
fn collects(ask: &Ask) -> Vec<OpId> {
    let listed = match ask {
        Ask::Command(command) => std::slice::from_ref(command),
        Ask::List(commands) => commands,
        Ask::Register(_) | Ask::Query(_) => &[],
    };
    let collects = listed.iter().filter(|it| matches!(it.command, Command::Collect { .. }));
    collects.map(|it| it.op).collect()
}

async fn ask(shared: &Arc<Shared>, call: Call) -> Result<Reply, Problem> {
    let node = shared.node.believing(call.epoch);
    let (tell, told) = oneshot::channel();
    // When nobody waits for the answer any more, it is in the receipts.
    let sent = node.send(call.ask.into(), |reply| drop(tell.send(reply)));
    let reply = match sent {
        Ok(()) => told.await.map_err(|_| Gone),
        Err(Unsent::Gone) => Err(Gone),
        Err(Unsent::Busy(request)) => blocking(move || node.call(*request)).await,
    };
    reply.map_err(gone)
}

async fn job(State(shared): Kept) -> Answered<JobAnswer> {
    let answer = look(&shared, |engine, _| {
        let job = engine.catalog().job();
        JobAnswer {
            version: env!("CARGO_PKG_VERSION"),
            namespace: job.namespace.clone(),
            epoch: job.epoch.to_string(),
            operator: job.operator.to_string(),
            policy: PolicyView::of(&job.policy),
            limits: job.limits,
            totals: engine.catalog().gauges(),
        }
    });
    Ok(Json(answer.await?))
}

async fn checkpoint(
    State(shared): Kept,
    path: Result<Path<u64>, PathRejection>,
) -> Answered<WhyView> {
    let Path(generation) = path.map_err(|error| malformed(&error.body_text()))?;
    let generation = Generation(generation);
    let last = look(&shared, |engine, _| engine.catalog().last_generation()).await?;
    if generation == Generation(0) || generation > last {
        let never = NeverMinted { generation, last };
        return Err(Problem::new(Code::NotFound, never.to_string()));
    }
    let id = checkpoint_of(&shared, generation).await?;
    let why = look(&shared, move |engine, _| WhyView::of_known(engine.catalog(), generation, id));
    Ok(Json(why.await?))
}

async fn endpoint(
    State(shared): Kept,
    path: Result<Path<String>, PathRejection>,
) -> Answered<EndpointAnswer> {
    let Path(text) = path.map_err(|error| malformed(&error.body_text()))?;
    let endpoint: EndpointId = parsed(&text, "an endpoint")?;
    let why = look(&shared, move |engine, _| {
        let catalog = engine.catalog();
        let ids = catalog.checkpoints_of(endpoint).into_iter();
        ids.map(|id| WhyView::of_known(catalog, id.generation, Some(id))).collect::<Vec<_>>()
    });
    Ok(Json(EndpointAnswer { checkpoints: why.await? }))
}

async fn conversation(
    State(shared): Kept,
    path: Result<Path<String>, PathRejection>,
) -> Answered<LedgerAnswer> {
    let Path(text) = path.map_err(|error| malformed(&error.body_text()))?;
    let conversation: ConversationId = parsed(&text, "a conversation")?;
    let ledger = look(&shared, move |engine, _| {
        let (facts, turns) = engine.catalog().ledger(conversation)?;
        let turn = |(turn, checkpoint): (TurnId, CheckpointId)| TurnAnswer {
            turn: turn.to_string(),
            checkpoint: checkpoint.generation.0,
        };
        Some(LedgerAnswer {
            conversation: conversation.to_string(),
            turns: turns.into_iter().map(turn).collect(),
            expired_turns: facts.expired_turns,
            forgotten: facts.forgotten,
            bytes: facts.bytes,
        })
    });
    let never =
        || Problem::new(Code::NotFound, format!("no turn of {conversation} was ever published"));
    Ok(Json(ledger.await?.ok_or_else(never)?))
}

/// Whose delete work, and for how long to wait for some.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    owner: Option<String>,
    incarnation: Option<u64>,
    /// Behind the piece of this number.
    #[serde(default)]
    after: u64,
    #[serde(default)]
    wait_seconds: u64,
}

async fn work(
    State(shared): Kept,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Answered<WorkList> {
    let Query(asked) = asked.map_err(|error| malformed(&error.body_text()))?;
    let whose = match (&asked.owner, asked.incarnation) {
        (None, None) => None,
        (Some(owner), Some(incarnation)) => Some(Whose {
            owner: parsed::<OwnerId>(owner, "an owner")?,
            incarnation: Incarnation(incarnation),
        }),
        _ => return Err(malformed("`owner` and `incarnation` belong together")),
    };
    let until = Instant::now() + Duration::from_secs(asked.wait_seconds).min(LONGEST_WAIT);
    loop {
        let (came, drained) = (shared.work.came.notified(), shared.drained.notified());
        let work = shared.work.behind(asked.after, whose);
        let left = until.saturating_duration_since(Instant::now());
        if !work.is_empty() || left.is_zero() || shared.is_draining() {
            return Ok(Json(WorkList { work }));
        }
        first_of(came, drained, tokio::time::sleep(left)).await;
    }
}

/// Waits for the first of three.
async fn first_of(
    one: impl Future<Output = ()>,
    two: impl Future<Output = ()>,
    three: impl Future<Output = ()>,
) {
    tokio::select! {
        () = one => {}
        () = two => {}
        () = three => {}
    }
}

async fn metrics(State(shared): Kept) -> Result<Response, Problem> {
    let survey = shared.surveys.get(&shared).await?;
    let read = look(&shared, |engine, stats| {
        let catalog = engine.catalog();
        (catalog.gauges(), catalog.job().limits, stats)
    });
    let (gauges, limits, stats) = read.await?;
    let seen = shared.seen.state();
    let oldest = seen.pins.values().map(|it| it.instant.elapsed().as_secs()).max().unwrap_or(0);
    let figures = Figures {
        gauges,
        limits,
        stats,
        seen: &seen,
        work: shared.work.totals(),
        blockers: survey.blockers.clone(),
        oldest_pin_seconds: oldest,
        audit_lost: shared.seen.audit_lost(),
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], figures.page()).into_response())
}

pub(super) fn parsed<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, Problem>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error| malformed(&format!("\"{}\" is not {what}: {error}", text.escape_debug())))
}

pub(super) fn malformed(detail: &str) -> Problem {
    Problem::new(Code::Malformed, detail)
}
