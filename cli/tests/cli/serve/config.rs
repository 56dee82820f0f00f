//! A coordinator whose settings are in a file, and stores that are named by a URL.

use super::{Served, eventually, fail, prepare};
use crate::scene::Scene;

/// The file of the documentation works, and holds every setting of the command line.
#[test]
fn the_documented_file_is_read_and_has_every_setting() {
    let scene = Scene::in_memory();
    let page = include_str!("../../../../docs/coordinator.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (documented, _) = rest.split_once("```").unwrap();
    let help = scene.prints("serve --help");
    let flags = help.lines().filter_map(|line| line.trim().strip_prefix("--"));
    let flags = flags.map(|line| line.split([' ', '[', '=']).next().unwrap());
    let is_set = |flag: &&str| !["config", "json"].contains(flag);
    let mut flags: Vec<&str> = flags.filter(is_set).collect();
    let known = documented.lines().filter_map(|line| line.split_once(" = "));
    let mut known: Vec<&str> = known.map(|(name, _)| name.trim_start_matches("# ")).collect();
    flags.sort_unstable();
    known.sort_unstable();
    assert_eq!(flags, known, "what the file may hold is what the command line takes");
    scene.write("job.toml", documented);
    // The files that it names are not there, which is what it is refused for.
    scene.refuses("serve --config job.toml", 2, &["workers.pem: No such file"]);
}

#[test]
fn settings_of_a_file_hold_and_the_command_line_wins() {
    let scene = Scene::in_memory();
    std::fs::create_dir(scene.path("etc")).unwrap();
    scene.write(
        "etc/job.toml",
        "data = \"../job\"\nlisten = \"127.0.0.1:0\"\nnamespace = \"of-the-file\"\nturns = 3\n\
         conversation-bytes = \"2TiB\"\njob-bytes = 4096\nquarantine = \"generation\"\n\
         store = \"objects\"\ncreate-store = true\ncollect = \"auto\"\ndescriptor = \"d.json\"\n",
    );
    let served = Served::start(&scene, "--config etc/job.toml --namespace mine");
    assert_eq!(served.said["namespace"], "mine");
    let job = scene.json("inspect --descriptor etc/d.json")["policy"].clone();
    assert_eq!(job["turns"], 3, "{job}");
    assert_eq!(job["conversation_bytes"], 2_u64 << 40, "{job}");
    assert_eq!(job["job_bytes"], 4096, "{job}");
    assert!(scene.path("job/audit.jsonl").exists());
    assert!(scene.path("etc/objects").is_dir(), "paths are seen from the file's folder");
    assert_eq!(served.terminate().code, Some(0));
    let other = "serve --config etc/job.toml --turns 4 --listen 127.0.0.1:0";
    scene.refuses(other, 2, &["--turns 4, and it has 3", "--namespace of-the-file"]);
}

#[test]
fn a_file_that_says_what_cannot_be_makes_nothing() {
    let scene = Scene::in_memory();
    for (text, expected) in [
        ("turn = 5", &["line 2, column 1", "unknown field `turn`, expected", "`turns`"][..]),
        ("turns = \"five\"", &["line 2, column 9", "string \"five\", expected a whole number"]),
        ("turns = 0", &["line 2, column 9", "expected a whole number from 1 to 1024"]),
        ("turns = 2.5", &["line 2", "floating point `2.5`, expected a whole number"]),
        ("conversation-bytes = \"2 XB\"", &["line 2", "expected a whole number of bytes such as"]),
        ("job-bytes = true", &["line 2", "boolean `true`, expected a number of bytes, or a text"]),
        ("listen = \"here\"", &["line 2, column 10", "invalid socket address"]),
        ("listen = 7311", &["line 2", "integer `7311`, expected text in quotes"]),
        ("namespace = \"My Job\"", &["line 2", "namespace"]),
        ("quarantine = \"all\"", &["line 2", "`all`, expected `endpoint` or `generation`"]),
        ("collect = 1\nstore = \"s\"", &["line 2"]),
        ("create-store = \"yes\"", &["line 2", "string \"yes\", expected a boolean"]),
        ("store = \"s3://bucket\"", &["line 2", "s3 is no store that is known", "file:///"]),
        ("token-file = 5", &["line 2", "expected path string"]),
        ("turns = 5\nturns = 6", &["line 3", "duplicate key"]),
        ("turns 5", &["line 2"]),
        ("create-store = true", &["--create-store needs --store"]),
        ("tls-cert = \"a.pem\"", &["--tls-cert needs --tls-key"]),
        ("client-ca = \"a.pem\"", &["--client-ca needs --tls-cert"]),
    ] {
        scene.write("job.toml", &format!("data = \"job\"\n{text}\n"));
        scene.refuses("serve --config job.toml", 2, expected);
        let named = ["--config job.toml", "--config file"];
        let ended = scene.run("serve --config job.toml");
        assert!(named.iter().any(|it| ended.err.contains(it)), "{text}: {}", ended.err);
        assert!(!scene.path("job").exists(), "{text}");
    }
    scene.write("job.toml", "turns = 5");
    scene.refuses("serve --config job.toml", 2, &["which job?", "--data DIR"]);
    scene.refuses("serve --config none.toml", 2, &["--config none.toml: No such file"]);
}

/// A store that is named by its URL is the one of that folder, for every command.
#[test]
fn a_store_may_be_named_by_its_url() {
    let scene = Scene::in_memory();
    let url = format!("file://{}", scene.path("objects").display());
    let served = Served::start(&scene, &format!("--data job --listen 127.0.0.1:0 --store {url}"));
    assert!(scene.path("objects").is_dir());
    let worker = served.owner("w");
    let (pin, checkpoint) = prepare(&worker, 1);
    fail(&worker, pin);
    let why = format!("why --server {} {}", served.url(), checkpoint.generation);
    eventually(|| scene.prints(&why).contains("it was collected"));
    let at = format!("--server {} --store", served.url());
    assert_eq!(scene.json(&format!("audit {at} {url}"))["objects"], 0);
    assert_eq!(scene.json(&format!("collect {at} {url}"))["left"], 0);
    for verb in ["serve --data job2", &format!("audit {at}"), &format!("collect {at}")] {
        let verb = verb.replace(" --store", "");
        scene.refuses(&format!("{verb} --store s3://b"), 2, &["s3 is no store that is known"]);
    }
    assert!(!scene.path("job2").exists());
}
