//! The client: a coordinator elsewhere, as an [`Owner`] and its transfers ask it.
//!
//! It protects the promise that a request is asked under one operation: what was not answered is
//! sent again as it was, after a pause that grows, until it is answered or its time is over; then
//! nobody knows what became of it, and the owner keeps it to be sent through another client. An
//! answer that cannot be read counts as none.

use std::fmt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::engine::{Reply, Request};
use pinfold_core::id::{Epoch, Namespace};
use pinfold_core::outcome::Rejection;
use pinfold_host::coordinator::Coordinator;
use pinfold_host::dto::{Answer, AnswerAndWork, Ask, Call, WorkItem, WorkList};
use pinfold_host::node::{Effects, Gone};
use pinfold_host::owner::Owner;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use crate::encoding::Encoding;
use crate::problem::{Code, Problem};
use crate::service::Token;
use crate::tls::{ClientTls, final_failure};

/// The first pause before a request is sent again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// How long a connection is kept that nobody uses: less than the service keeps it.
const IDLE: Duration = Duration::from_secs(20);

/// How a client asks.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What the coordinator asks for.
    pub token: Option<Token>,
    /// In which bytes it asks, and is answered.
    pub encoding: Encoding,
    /// Whom it trusts and what it shows where it speaks TLS; without it, whom the system's CAs
    /// vouch for.
    pub tls: Option<ClientTls>,
    /// The job that it means: a coordinator of another one is refused before anything is asked.
    pub namespace: Option<Namespace>,
    /// How long one try may take.
    pub try_within: Duration,
    /// How long a request is tried again, from its first try on.
    pub give_up_after: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            token: None,
            encoding: Encoding::default(),
            tls: None,
            namespace: None,
            try_within: Duration::from_secs(35),
            give_up_after: Duration::from_secs(120),
        }
    }
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be used.
    #[error("\"{url}\": {what}: expected a URL like http://127.0.0.1:7311, or https:// with TLS")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        what: String,
    },
    /// TLS will not do with this coordinator: one side does not take the other's certificate.
    #[error("{url}: {what}")]
    Tls {
        /// Who was asked.
        url: String,
        /// Who does not take what.
        what: String,
    },
    /// The coordinator has another job than the client means.
    #[error(
        "{url} serves the job {found}, and {expected} is meant: ask the coordinator of that one"
    )]
    OtherNamespace {
        /// Who was asked.
        url: String,
        /// The job that is meant.
        expected: Namespace,
        /// The job that it has.
        found: Namespace,
    },
    /// The coordinator will not have it, now or later.
    #[error("{0}")]
    Problem(#[from] Problem),
    /// Nobody answered in time: nobody knows what became of the request.
    #[error("no answer from {url} within {} s: {what}", .waited.as_secs_f64())]
    Unanswered {
        /// Who was asked.
        url: String,
        /// For how long.
        waited: Duration,
        /// What the last try came to.
        what: String,
    },
    /// A thread or what it waits with cannot be had.
    #[error("the client cannot be started: {0}")]
    Thread(std::io::Error),
}

/// A client that blocks its caller. Clones share its connections; any thread may ask, but for those
/// of an asynchronous runtime, which use the [`AsyncClient`].
#[derive(Clone)]
pub struct Client {
    client: AsyncClient,
    runtime: Arc<Runtime>,
    trouble: Arc<Mutex<Option<String>>>,
}

/// A client for asynchronous callers. See the [module](self).
#[derive(Clone)]
pub struct AsyncClient {
    http: reqwest::Client,
    url: Arc<str>,
    authorization: Option<Arc<str>>,
    options: ClientOptions,
    /// The epoch that it believes in.
    epoch: Epoch,
    namespace: Namespace,
}

/// What the coordinator says of its job.
#[derive(Deserialize)]
struct JobSeen {
    epoch: String,
    namespace: String,
}

impl Client {
    /// A client of the coordinator at a URL, once that has answered. It believes in the epoch that
    /// the coordinator has now.
    ///
    /// # Errors
    /// [`ClientError`] when the URL cannot be used, the coordinator will not have this client, or
    /// nobody answers.
    pub fn connect(url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        // Whoever asks drives it: a lone caller waits for no other thread.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClientError::Thread)?;
        let client = runtime.block_on(AsyncClient::connect(url, options))?;
        Ok(Self { client, runtime: Arc::new(runtime), trouble: Arc::default() })
    }

    /// The epoch that it believes in.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.client.epoch
    }

    /// The job's namespace.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.client.namespace
    }

    /// The same client with another patience.
    pub(crate) fn patient(mut self, give_up_after: Duration) -> Self {
        self.client.options.give_up_after = give_up_after;
        self
    }

    /// Why an owner that asks through this client had no answer the last time that it asked: nobody
    /// was there, or the coordinator will not have what is asked, as without its token.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks, again and again until it is answered or the time is over.
    ///
    /// # Errors
    /// [`ClientError`] says why there is no answer.
    pub fn ask(&self, request: &Request) -> Result<Reply, ClientError> {
        self.runtime.block_on(self.client.ask(request))
    }

    /// The same, and the delete work that each `Collect` of the request handed out: who deletes
    /// needs no round trip to fetch it. None of it comes after a restart; a later `Collect` hands
    /// it out again.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub fn ask_with_work(&self, request: &Request) -> Result<(Reply, Vec<WorkItem>), ClientError> {
        self.runtime.block_on(self.client.ask_with_work(request))
    }

    /// Reads one of the coordinator's views, as JSON.
    ///
    /// # Errors
    /// [`ClientError`] says why there is no answer.
    pub fn view(&self, path: &str) -> Result<serde_json::Value, ClientError> {
        self.runtime.block_on(self.client.view(path))
    }

    /// The delete work that is handed out to an owner from now on, in order, for its
    /// [`Collector`](pinfold_host::collector::Collector). It ends when nobody takes the next of it,
    /// or nobody answers.
    ///
    /// # Errors
    /// [`ClientError::Thread`] when nothing can wait for it.
    pub fn effects(&self, owner: &Owner) -> Result<Effects, ClientError> {
        let (id, incarnation) = owner.identity();
        // A wait is one try, too.
        let most = (self.client.options.try_within / 2).as_secs().min(20);
        let whose = format!("/v1/work?owner={id}&incarnation={incarnation}");
        let (tell, effects) = channel();
        let client = self.clone();
        let wait = move || {
            let mut last = 0;
            loop {
                let path = format!("{whose}&after={last}&wait_seconds={most}");
                let Ok(value) = client.view(&path) else { return };
                let Ok(WorkList { work }) = serde_json::from_value(value) else { return };
                if work.is_empty() && most == 0 {
                    // A try is too short to wait there, so it waits here.
                    thread::sleep(PAUSES[0]);
                }
                for item in work {
                    last = item.number;
                    if tell.send(item.effect()).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("pinfold-work".into()).spawn(wait);
        thread.map(|_| effects).map_err(ClientError::Thread)
    }
}

impl AsyncClient {
    /// The same as [`Client::connect`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect(url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let bad = |what: String| ClientError::Url { url: url.to_string(), what };
        if !url.contains("://") {
            return Err(bad("it does not begin with http:// or https://".into()));
        }
        let parsed = reqwest::Url::parse(url).map_err(|error| bad(error.to_string()))?;
        let tls = match (parsed.scheme(), options.tls.clone()) {
            ("http", None) => ClientTls::nobody(),
            // Whoever names a CA does not mean to be overheard.
            ("http", Some(_)) => {
                return Err(bad("whoever names a CA or shows a certificate asks by https".into()));
            }
            ("https", tls) => tls.map_or_else(|| ClientTls::new(None, None), Ok),
            (scheme, _) => return Err(bad(format!("{scheme} is not spoken"))),
        };
        let tls = tls.map_err(|error| bad(error.to_string()))?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.config())
            .timeout(options.try_within)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .no_proxy()
            .redirect(Policy::none())
            .build()
            .map_err(|error| bad(error.to_string()))?;
        let mut client = Self {
            http,
            url: url.trim_end_matches('/').into(),
            authorization: options.token.as_ref().map(|token| token.header().into()),
            options,
            epoch: Epoch::from_u128(0),
            namespace: "unknown".parse().map_err(|_| bad("no namespace".into()))?,
        };
        let seen: JobSeen = client.until_answered(Encoding::Json, || client.get("/v1/job")).await?;
        let unreadable = |what: &str| bad(format!("its {what} cannot be read"));
        client.epoch = seen.epoch.parse().map_err(|_| unreadable("epoch"))?;
        client.namespace = seen.namespace.parse().map_err(|_| unreadable("namespace"))?;
        match client.options.namespace.clone() {
            Some(expected) if expected != client.namespace => {
                let (url, found) = (url.to_string(), client.namespace);
                Err(ClientError::OtherNamespace { url, expected, found })
            }
            _ => Ok(client),
        }
    }

    /// The same as [`Client::ask`].
    ///
    /// # Errors
    /// As there.
    pub async fn ask(&self, request: &Request) -> Result<Reply, ClientError> {
        let answer = self.call("/v1/call", request).await?;
        self.known(answer)
    }

    /// The same as [`Client::ask_with_work`].
    ///
    /// # Errors
    /// As there.
    pub async fn ask_with_work(
        &self,
        request: &Request,
    ) -> Result<(Reply, Vec<WorkItem>), ClientError> {
        let AnswerAndWork { answer, work } = self.call("/v1/call?work=true", request).await?;
        Ok((self.known(answer)?, work))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        request: &Request,
    ) -> Result<T, ClientError> {
        let call = Call { epoch: self.epoch, ask: Ask::from(request.clone()) };
        let url = format!("{}{path}", self.url);
        let encoding = self.options.encoding;
        let body = encoding.encode(&call).map_err(|what| Problem::new(Code::Malformed, what))?;
        let send = || {
            let sent = self.http.post(&url).header(CONTENT_TYPE, encoding.content_type());
            self.authorized(sent).body(body.clone())
        };
        self.until_answered(encoding, send).await
    }

    fn known(&self, answer: Answer) -> Result<Reply, ClientError> {
        answer.into_reply().ok_or_else(|| self.unanswered("nobody knows the answer".into()))
    }

    /// The same as [`Client::view`].
    ///
    /// # Errors
    /// As there.
    pub async fn view(&self, path: &str) -> Result<serde_json::Value, ClientError> {
        self.until_answered(Encoding::Json, || self.get(path)).await
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.authorized(self.http.get(format!("{}{path}", self.url)))
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.authorization {
            Some(header) => request.header(AUTHORIZATION, &**header),
            None => request,
        }
    }
}

/// What one try came to, where it was no answer.
enum Tried {
    /// Trying again may help: what it was.
    Again(String),
    /// It will not.
    Never(Problem),
    /// One side does not trust the other.
    Untrusted(String),
}

impl AsyncClient {
    /// Sends a request until it is answered, it cannot be, or the time is over.
    async fn until_answered<T: DeserializeOwned>(
        &self,
        encoding: Encoding,
        send: impl Fn() -> reqwest::RequestBuilder,
    ) -> Result<T, ClientError> {
        let [mut pause, longest] = PAUSES;
        let until = Instant::now().checked_add(self.options.give_up_after);
        loop {
            let what = match tried(encoding, send()).await {
                Ok(answer) => return Ok(answer),
                Err(Tried::Never(problem)) => return Err(problem.into()),
                Err(Tried::Untrusted(what)) => {
                    return Err(ClientError::Tls { url: self.url.to_string(), what });
                }
                Err(Tried::Again(what)) => what,
            };
            if until.is_some_and(|until| Instant::now() + pause > until) {
                return Err(self.unanswered(what));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    fn unanswered(&self, what: String) -> ClientError {
        let (url, waited) = (self.url.to_string(), self.options.give_up_after);
        ClientError::Unanswered { url, waited, what }
    }
}

async fn tried<T: DeserializeOwned>(
    encoding: Encoding,
    request: reqwest::RequestBuilder,
) -> Result<T, Tried> {
    let again = |error: reqwest::Error| match final_failure(&error) {
        Some(what) => Tried::Untrusted(what),
        None => Tried::Again(in_full(&error)),
    };
    let response = request.send().await.map_err(again)?;
    let status = response.status();
    let body = response.bytes().await.map_err(again)?;
    if status == StatusCode::OK {
        let read = encoding.decode(&body);
        return read.map_err(|what| Tried::Again(format!("an answer cannot be read: {what}")));
    }
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) if is_passing(problem.code) => Err(Tried::Again(problem.to_string())),
        Ok(problem) => Err(Tried::Never(problem)),
        Err(_) => Err(Tried::Again(format!("it answers with {status}, and not as a coordinator"))),
    }
}

/// Whether the same request may be answered another time.
const fn is_passing(code: Code) -> bool {
    match code {
        Code::Busy | Code::TimedOut | Code::Draining | Code::Gone => true,
        Code::Malformed
        | Code::Unauthorized
        | Code::NotFound
        | Code::WrongMethod
        | Code::TooLarge
        | Code::WrongContentType => false,
    }
}

/// An error with what it is because of.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut because = error.source();
    while let Some(error) = because {
        text += &format!(": {error}");
        because = error.source();
    }
    text
}

/// Another life of the job knows nothing of what this one has decided.
fn is_of_another_life(reply: &Reply) -> bool {
    let wrong = Err(Rejection::WrongEpoch);
    match reply {
        Reply::WrongEpoch => true,
        Reply::Command(answer) => *answer == wrong,
        Reply::List(answers) => answers.contains(&Some(wrong)),
        Reply::Job(_)
        | Reply::Gauges(_)
        | Reply::Blockers(_)
        | Reply::Audit(_)
        | Reply::Poisoned => false,
    }
}

impl Coordinator for Client {
    fn call(&self, request: Request) -> Result<Reply, Gone> {
        let (reply, trouble) = match self.ask(&request) {
            Ok(reply) if !is_of_another_life(&reply) => (Ok(reply), None),
            Ok(_) => (Err(Gone), Some("another life of the job answers".to_string())),
            Err(error) => (Err(Gone), Some(error.to_string())),
        };
        if let Some(what) = &trouble {
            tracing::warn!(%what, "a request has no answer");
        }
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        reply
    }
}

impl fmt::Debug for AsyncClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AsyncClient");
        shown.field("url", &self.url).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
