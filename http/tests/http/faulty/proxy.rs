//! A network between clients and a coordinator that does what networks do: it sends a request
//! twice, and again much later; lets another one overtake it; loses answers; cuts requests and
//! answers short; is slow; and falls silent without closing anything.
//!
//! What it does follows from a seed and the number of the request. It judges, too: a request that
//! comes again is answered as the first time, or not at all any more.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pinfold_core::outcome::Rejection;
use pinfold_host::dto::{Answer, Ask, Call, ListAnswer};
use pinfold_http::encoding::Encoding;
use serde::de::DeserializeOwned;

use super::worker::Draws;

/// How long the coordinator may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a request is held so that others overtake it, at most.
const HELD: Duration = Duration::from_millis(15);
/// The farthest that a copy is behind its request, in requests.
const FARTHEST: u64 = 120;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It arrives, and so does its answer.
    None,
    /// It goes out twice at once; the client gets one of the answers.
    Twice,
    /// It goes out again when newer ones were answered.
    Again,
    /// Others overtake it.
    Overtaken,
    /// Its answer is lost with the connection.
    AnswerLost,
    /// Its answer ends in the middle.
    AnswerCut,
    /// It ends in the middle, and so does the connection to the coordinator.
    RequestCut,
    /// It ends in the middle, and nobody closes anything.
    RequestHalf,
    /// Its answer never comes, and nobody closes anything.
    Silent,
    /// Its answer comes when nobody waits for it any more.
    Late,
}

impl Fault {
    /// All that go wrong.
    pub(crate) const ALL: [Self; 9] = [
        Self::Twice,
        Self::Again,
        Self::Overtaken,
        Self::AnswerLost,
        Self::AnswerCut,
        Self::RequestCut,
        Self::RequestHalf,
        Self::Silent,
        Self::Late,
    ];
}

/// A network that runs. Dropping it closes everything.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A request that went out, to go out again.
struct Sent {
    request: Vec<u8>,
    /// The first answer; none where that was never seen.
    answer: Option<Vec<u8>>,
    /// When so many requests have passed.
    at: u64,
}

struct Shared {
    to: SocketAddr,
    /// How long a client waits for an answer.
    deadline: Duration,
    draws: Mutex<Draws>,
    passed: AtomicU64,
    copies: Mutex<Vec<Sent>>,
    happened: Mutex<BTreeMap<Fault, u64>>,
    /// What a copy was answered that it should not have been.
    wrong: Mutex<Vec<String>>,
    /// How many answers to one request were compared.
    compared: AtomicU64,
    /// Connections that nobody closes.
    open: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

impl Proxy {
    /// A network to a coordinator, for clients that wait so long for an answer.
    pub(crate) fn start(to: SocketAddr, deadline: Duration, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (draws, passed) = (Mutex::new(Draws::new(seed)), AtomicU64::new(0));
        let (copies, happened, wrong, compared, open, over) = Default::default();
        let shared =
            Shared { to, deadline, draws, passed, copies, happened, wrong, compared, open, over };
        let shared = Arc::new(shared);
        let carries = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if carries.over.load(Ordering::Relaxed) {
                    return;
                }
                let (stream, carries) = (stream.unwrap(), Arc::clone(&carries));
                thread::spawn(move || carries.carry(stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends every copy that is left, long after the last request.
    pub(crate) fn flush(&self) {
        self.shared.send_copies(u64::MAX);
    }

    /// How often each fault happened.
    pub(crate) fn happened(&self) -> BTreeMap<Fault, u64> {
        self.shared.happened.lock().unwrap().clone()
    }

    /// How many answers to one request were compared.
    pub(crate) fn compared(&self) -> u64 {
        self.shared.compared.load(Ordering::Relaxed)
    }

    /// Copies that were answered otherwise than their originals.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.shared.wrong.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Nobody may be there to be woken.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Carries a client's requests, one after another.
    fn carry(&self, mut client: TcpStream) {
        client.set_nodelay(true).unwrap();
        while let Some(request) = message(&mut client) {
            let passed = self.passed.fetch_add(1, Ordering::Relaxed);
            self.send_copies(passed);
            let (fault, far) = {
                let mut draws = self.draws.lock().unwrap();
                // Two of three requests arrive.
                let fault = match draws.below(3) {
                    0 => Fault::ALL[usize::try_from(draws.below(9)).unwrap()],
                    _ => Fault::None,
                };
                (fault, draws.below(FARTHEST))
            };
            *self.happened.lock().unwrap().entry(fault).or_default() += 1;
            if !self.suffer(fault, request, passed + far, &mut client) {
                return;
            }
        }
    }

    /// Lets a request suffer this; whether its connection goes on.
    fn suffer(&self, fault: Fault, request: Vec<u8>, again: u64, client: &mut TcpStream) -> bool {
        let answers = |client: &mut TcpStream, answer: &Option<Vec<u8>>| match answer {
            Some(answer) => client.write_all(answer).is_ok(),
            None => false,
        };
        match fault {
            Fault::None => answers(client, &self.ask(&request)),
            Fault::Twice => {
                let [one, other] = thread::scope(|scope| {
                    let other = scope.spawn(|| self.ask(&request));
                    [self.ask(&request), other.join().unwrap()]
                });
                self.compare(&request, one.as_deref(), other.as_deref());
                answers(client, &one)
            }
            Fault::Again => {
                let answer = self.ask(&request);
                let copy = Sent { request, answer: answer.clone(), at: again };
                self.copies.lock().unwrap().push(copy);
                answers(client, &answer)
            }
            Fault::Overtaken => {
                let (began, before) = (Instant::now(), self.passed.load(Ordering::Relaxed));
                let others = || self.passed.load(Ordering::Relaxed) - before;
                while others() < 4 && began.elapsed() < HELD {
                    thread::sleep(Duration::from_millis(1));
                }
                answers(client, &self.ask(&request))
            }
            Fault::AnswerLost => {
                self.ask(&request);
                false
            }
            Fault::AnswerCut => {
                if let Some(answer) = self.ask(&request) {
                    // The client may be gone.
                    let _ = client.write_all(&answer[..answer.len() * 2 / 3]);
                }
                false
            }
            Fault::RequestCut => {
                if let Some(stream) = self.begin(&request[..request.len() * 2 / 3]) {
                    // It may have ended by itself.
                    let _ = stream.shutdown(Shutdown::Both);
                }
                false
            }
            Fault::RequestHalf => {
                let began = self.begin(&request[..request.len() * 4 / 5]);
                let both = began.into_iter().chain(client.try_clone());
                self.open.lock().unwrap().extend(both);
                false
            }
            Fault::Silent => {
                self.ask(&request);
                self.open.lock().unwrap().push(client.try_clone().unwrap());
                false
            }
            Fault::Late => {
                let answer = self.ask(&request);
                thread::sleep(self.deadline + Duration::from_millis(20));
                answers(client, &answer);
                false
            }
        }
    }

    /// Sends the copies whose time has come.
    fn send_copies(&self, passed: u64) {
        let due: Vec<Sent> = {
            let mut copies = self.copies.lock().unwrap();
            let (due, left) =
                std::mem::take(&mut *copies).into_iter().partition(|it| it.at <= passed);
            *copies = left;
            due
        };
        for Sent { request, answer, .. } in due {
            let again = self.ask(&request);
            self.compare(&request, answer.as_deref(), again.as_deref());
        }
    }

    /// Asks the coordinator on a connection of its own.
    fn ask(&self, request: &[u8]) -> Option<Vec<u8>> {
        message(&mut self.begin(request)?)
    }

    /// A connection on which this was written; none where the coordinator is gone.
    fn begin(&self, bytes: &[u8]) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(self.to).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(bytes).ok()?;
        Some(stream)
    }

    /// Two answers to the same request are one, as far as neither says that it is forgotten.
    fn compare(&self, request: &[u8], one: Option<&[u8]>, other: Option<&[u8]>) {
        let answer = |it: Option<&[u8]>| decoded::<Answer>(it?);
        let (Some(call), Some(one), Some(other)) =
            (decoded::<Call>(request), answer(one), answer(other))
        else {
            return;
        };
        let changes = matches!(call.ask, Ask::Command(_) | Ask::List(_));
        let mut both = each(&one).zip(each(&other));
        let differs = both.find(|both| both.0 != both.1);
        if changes
            && differs.is_some_and(|(one, other)| !is_forgotten(&one) && !is_forgotten(&other))
        {
            let wrong = format!("{call:?} was answered {one:?} and {other:?}");
            self.wrong.lock().unwrap().push(wrong);
        }
        self.compared.fetch_add(u64::from(changes), Ordering::Relaxed);
    }
}

/// What each command was answered.
fn each(answer: &Answer) -> impl Iterator<Item = ListAnswer> + use<> {
    match answer {
        Answer::List(answers) => answers.clone().into_iter(),
        Answer::Ok(outcome) => vec![ListAnswer::Ok(*outcome)].into_iter(),
        Answer::Refused(rejection) => vec![ListAnswer::Refused(*rejection)].into_iter(),
        _ => Vec::new().into_iter(),
    }
}

/// Whether its receipt is gone: by the window, or by the next life of its owner.
const fn is_forgotten(answer: &ListAnswer) -> bool {
    matches!(
        answer,
        ListAnswer::Refused(Rejection::ReceiptForgotten | Rejection::StaleIncarnation { .. })
    )
}

/// The next request or answer on a connection, head and body, as it came.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        if let Some(body) = body(&bytes) {
            let head = String::from_utf8_lossy(&bytes[..body]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= body + length {
                return Some(bytes);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Where the body begins, once the head is whole.
fn body(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|it| it == b"\r\n\r\n").map(|at| at + 4)
}

/// A body, by the encoding that its head names.
fn decoded<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    let (head, body) = message.split_at(body(message)?);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let names = |it: &Encoding| head.contains(&format!("content-type: {}", it.content_type()));
    Encoding::ALL.into_iter().find(names)?.decode(body).ok()
}
