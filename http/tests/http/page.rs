//! The operator's page: as it is served, and as a browser shows it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::{ConversationId, ObjectId, ShardIndex, TurnId};
use pinfold_core::outcome::{DeleteOutcome, Evidence, TurnKey};
use pinfold_http::service::{ServiceOptions, Token};

use crate::scene::{Response, Scene, end, prepare};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn conversation() -> ConversationId {
    ConversationId::of_name("c")
}

fn guarded() -> Scene {
    let token = Some(Token::new(SECRET).unwrap());
    Scene::with(ServiceOptions { token, ..ServiceOptions::default() })
}

/// What [`filled`] leaves behind.
struct Content {
    /// A pin on checkpoint 2, in doubt.
    doubtful: String,
    /// A pin on checkpoint 3.
    held: String,
}

/// Checkpoint 1 is retained, 2 in doubt, 3 in flight, 4 quarantined; an object each
/// of 4 and 5 is handed out.
fn filled(scene: &Scene) -> Content {
    let worker = scene.owner("w", Role::Worker);
    let (pin, _) = prepare(&worker, 1, 2);
    let turn = TurnKey { conversation: conversation(), turn: TurnId::from_u128(1) };
    end(&worker, pin, Evidence::QuiescedSuccess, Some(turn));
    let (doubtful, _) = prepare(&worker, 2, 2);
    worker.ask(Command::Doubt { pin: doubtful, doubtful: true }).unwrap().unwrap();
    let (held, _) = prepare(&worker, 3, 2);
    let (pin, quarantined) = prepare(&worker, 4, 1);
    end(&worker, pin, Evidence::QuiescedFailure, None);
    worker.ask(Command::Collect { limit: 9 }).unwrap().unwrap();
    let outcomes = vec![(ObjectId { shard: ShardIndex(0), index: 0 }, DeleteOutcome::Unknown)];
    worker.ask(Command::Deleted { checkpoint: quarantined, outcomes }).unwrap().unwrap();
    let (pin, _) = prepare(&worker, 5, 1);
    end(&worker, pin, Evidence::QuiescedFailure, None);
    worker.ask(Command::Collect { limit: 9 }).unwrap().unwrap();
    Content { doubtful: doubtful.to_string(), held: held.to_string() }
}

/// Runs a browser on a page until it has seen so many milliseconds, and gives what it prints.
fn browse(url: &str, milliseconds: u32, more: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let ran = Process::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
        .arg("--disable-component-update")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--virtual-time-budget={milliseconds}"))
        .args(more)
        .arg(url)
        .output();
    let output = ran.unwrap_or_else(|error| {
        panic!(
            "chromium does not start ({error}); install it: \
             apt-get install -y --no-install-recommends chromium"
        )
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The page's elements after it ran.
fn elements(url: &str) -> String {
    browse(url, 8000, &["--dump-dom"])
}

/// What stands in the element of this id, tags and all.
fn inside<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let end = ["</section>", "</p>", "</form>", "</header>"];
    let end = end.iter().filter_map(|tag| rest.find(tag)).min().unwrap_or(rest.len());
    &rest[..end]
}

/// An element says all of this.
fn says(page: &str, id: &str, expected: &[&str]) {
    let part = inside(page, id);
    for text in expected {
        assert!(part.contains(text), "{id} does not say {text}: {part}");
    }
}

/// A server between a browser and a service, which may answer in its place.
struct Between<'a> {
    answers: &'a (dyn Fn(&str, &str) -> Response + Sync),
}

impl Between<'_> {
    /// Serves while something runs that is told the address.
    fn serve<T>(&self, run: impl FnOnce(SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok((stream, _)) = listener.accept() {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    scope.spawn(|| self.answer(stream));
                }
            });
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(address)));
            over.store(true, Ordering::Relaxed);
            drop(TcpStream::connect(address).unwrap());
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Answers one request. A browser also opens connections on which it asks nothing.
    fn answer(&self, mut stream: TcpStream) {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if !matches!(stream.read(&mut byte), Ok(1)) {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        let response = (self.answers)(path, &head);
        let kind = if path == "/" || path.ends_with(".html") {
            "text/html; charset=utf-8"
        } else {
            "application/json"
        };
        let (status, length) = (response.status, response.body.len());
        let text = format!(
            "HTTP/1.1 {status} so\r\ncontent-type: {kind}\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{}",
            response.body
        );
        // The browser may be gone.
        let _ = stream.write_all(text.as_bytes());
    }
}

/// The service's answer to a request of a browser, whose token is passed on.
fn passed(scene: &Scene, path: &str, head: &str) -> Response {
    let mut request = format!("GET {path} HTTP/1.1");
    for line in head.lines() {
        if line.to_ascii_lowercase().starts_with("authorization:") {
            request = format!("{request}\r\n{line}");
        }
    }
    scene.send(&request, "")
}

/// As [`passed`], with a script at the end of the page that does what a person does.
fn with_script(scene: &Scene, path: &str, head: &str, script: &str) -> Response {
    let mut response = passed(scene, path, head);
    if path == "/" {
        let script = format!("<script>setTimeout(() => {{ {script} }}, 2000)</script></body>");
        response.body = response.body.replace("</body>", &script);
    }
    response
}

#[test]
fn the_page_needs_no_token_and_nothing_from_elsewhere() {
    let page = guarded().get("/");
    assert_eq!(page.status, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; connect-src 'self';",
        "x-content-type-options: nosniff",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    for text in ["http://", "https://", "\"//", "'//", "`//", "(//", " src=", "@import", "url("] {
        assert!(!page.body.contains(text), "{text} leads elsewhere");
    }
    for text in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "Storage", "eval("] {
        assert!(!page.body.contains(text), "{text}: text alone, and nothing stays");
    }
    for text in ["/* page.css */", "/* page.js */", "served"] {
        assert!(!page.body.contains(text), "{text}");
    }
}

#[test]
fn a_browser_shows_the_job() {
    let scene = Scene::new();
    let content = filled(&scene);
    let page = elements(&scene.url());
    says(&page, "title", &["served"]);
    says(&page, "status", &["up to date"]);
    says(&page, "job", &["served", &scene.get("/v1/job").json()["epoch"].to_string()[1..9]]);
    says(&page, "totals", &["bytes retained", ">4.8 KiB<", "1,048,576", "<meter"]);
    says(&page, "blockers", &["retained", "in doubt", "quarantined", "in flight"]);
    says(&page, "stuck-note", &["3 checkpoints"]);
    says(&page, "stuck", &["#q=2", "in doubt", "#q=4", "quarantined"]);
    says(&page, "quarantine", &["#q=4"]);
    says(&page, "doubtful", &[&content.doubtful]);
    assert!(!inside(&page, "doubtful").contains(&content.held));
    says(&page, "oldest", &[&content.doubtful, &content.held, "save"]);
    says(&page, "work-note", &["2 objects handed out"]);
    says(&page, "work", &["#q=4", "#q=5"]);
    says(&page, "retained", &[&conversation().to_string()]);
    says(&page, "curve-all-note", &["4.8 KiB now"]);
    says(&page, "curve-expired", &["points=\"0.0,"]);
    assert!(inside(&page, "answer").starts_with(" aria-labelledby=\"answer-title\" hidden"));
}

/// A pin that is older than the process has at least the process's age.
#[test]
fn a_browser_shows_ages_that_are_not_known() {
    let mut scene = Scene::new();
    filled(&scene);
    scene.restart();
    says(&elements(&scene.url()), "oldest", &["≥ "]);
}

#[test]
fn a_browser_says_why_something_is_still_here() {
    let scene = Scene::new();
    let content = filled(&scene);
    let asked = |query: &str| elements(&format!("{}#q={query}", scene.url()));
    let retained = asked("1");
    says(&retained, "answer-parts", &["Checkpoint 1", "published", "retained", "refers to it"]);
    says(&retained, "answer-parts", &["policy, operator", "publish newer turns"]);
    says(&asked("2"), "answer-parts", &["in doubt", &content.doubtful, "owner, operator"]);
    let endpoint = format!("{:032x}", 3);
    says(&asked(&endpoint), "answer-parts", &["Checkpoint 3", "in flight", &content.held]);
    let conversation = conversation().to_string();
    says(&asked(&conversation), "answer-parts", &["Conversation", &conversation, "#q=1"]);
    says(&asked("99"), "answer-note", &["checkpoint 99 was never minted"]);
    says(&asked("x"), "answer-note", &["32 hexadecimal digits"]);
    says(&asked(&format!("{:032x}", 77)), "answer-note", &["No checkpoint of this endpoint"]);
}

/// The token is asked for, a wrong one is told, and the right one opens the views.
#[test]
fn a_browser_asks_for_the_token() {
    let scene = guarded();
    let page = elements(&scene.url());
    says(&page, "status", &["the token is missing or wrong"]);
    assert!(inside(&page, "token-form").starts_with('>'), "it is asked for");
    for (token, expected) in [(SECRET, "up to date"), ("another", "the token is wrong")] {
        let gives = format!(
            "document.getElementById('token').value = '{token}';
             document.getElementById('token-form').requestSubmit()"
        );
        let answers = |path: &str, head: &str| with_script(&scene, path, head, &gives);
        let page = Between { answers: &answers }.serve(|at| elements(&format!("http://{at}/")));
        says(&page, "status", &[expected]);
        assert_eq!(inside(&page, "title").contains("served"), token == SECRET);
        assert!(!page.replace(&gives, "").contains(token), "it is shown nowhere");
    }
}

/// What was shown stays, marked as stale, and the problem's detail says what is the matter.
#[test]
fn a_browser_keeps_what_it_has_when_the_coordinator_drains() {
    let scene = Scene::new();
    let content = filled(&scene);
    let is_second = AtomicBool::new(false);
    let answers = |path: &str, head: &str| {
        if path == "/v1/job" && is_second.swap(true, Ordering::Relaxed) {
            let body =
                r#"{"title":"the coordinator is shutting down","detail":"ask <b>later</b>"}"#;
            return Response { status: 503, head: String::new(), body: body.into() };
        }
        passed(&scene, path, head)
    };
    let page = Between { answers: &answers }.serve(|at| elements(&format!("http://{at}/")));
    says(&page, "status", &["shutting down: ask &lt;b&gt;later&lt;/b&gt;"]);
    says(&page, "oldest", &[&content.held]);
    assert!(inside(&page, "stale").starts_with(">, stale"), "it is marked");
    assert!(page.contains("<main id=\"main\" class=\"stale\">"));
}

#[test]
fn a_browser_works_by_keyboard_and_in_a_small_window() {
    let scene = Scene::new();
    filled(&scene);
    let looks = "document.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
        const root = document.documentElement;
        const fits = root.scrollWidth <= root.clientWidth;
        parent.postMessage([document.activeElement.id, innerWidth, fits], '*')";
    let frame =
        "<body><script>onmessage = ({ data }) => { document.title = data.join(' ') }</script>
        <iframe src='/#q=1' style='border: 0; width: 320px; height: 640px'></iframe></body>";
    let answers = |path: &str, head: &str| match path {
        "/frame.html" => Response { status: 200, head: String::new(), body: frame.into() },
        _ => with_script(&scene, path, head, looks),
    };
    let between = Between { answers: &answers };
    let page = between.serve(|at| elements(&format!("http://{at}/frame.html")));
    assert!(page.contains("<title>search 320 true</title>"), "{page}");
}
