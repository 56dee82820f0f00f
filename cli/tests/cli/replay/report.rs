//! The page of `--report`: written whole in the end, judged before anything is served.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::traces::FIVE;
use crate::scene::Scene;

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_page_is_written_beside_the_table_and_json() {
    let scene = Scene::with(FIVE);
    let ended = scene.run("replay trace.jsonl --turns 1 --report page.html");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), "report: page.html\n"));
    assert!(ended.out.starts_with("Trace: trace.jsonl\n"));
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>\n"));
    let command = "<code>pinfold replay trace.jsonl --turns 1 --report page.html</code>";
    let version = format!("Run with pinfold {}:", env!("CARGO_PKG_VERSION"));
    for word in [command, &version, "Every promise held.", "<svg ", "trace.jsonl"] {
        assert!(page.contains(word), "no {word}");
    }
    // The table's figures are on the page.
    for line in ended.out.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "))
    {
        let (name, value) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        let value = value.trim();
        if value.is_empty() || name.contains("time") || name.contains("second") {
            continue;
        }
        assert!(page.contains(&format!("<th scope=\"row\">{name}</th><td>{value}</td>")), "{line}");
    }
    let json = scene.run("replay trace.jsonl --json --report page.html");
    assert_eq!((json.code, json.err.as_str()), (Some(0), ""));
    assert!(serde_json::from_str::<Value>(&json.out).is_ok());
    assert_eq!(names(&scene.path("")), ["page.html", "tmp", "trace.jsonl"]);
}

/// Where no page can be written, nothing is served: exit 2, the place by name, no data folder.
#[test]
fn a_bad_place_is_refused_before_anything_is_served() {
    let scene = Scene::with(FIVE);
    fs::create_dir(scene.path("folder")).unwrap();
    let before = scene.tree("");
    for (place, expected) in [
        ("folder", "is there, and is no file"),
        ("folder/", "is there, and is no file"),
        ("none/", "is no name of a file"),
        ("none/page.html", "there is no folder none: make it"),
        ("trace.jsonl/page.html", "there is no folder trace.jsonl: make it"),
        ("..", "is there, and is no file"),
        ("trace.jsonl", "is the trace itself"),
        ("./folder/../trace.jsonl", "is the trace itself"),
    ] {
        let words = format!("replay trace.jsonl --data job --report {place}");
        scene.refuses(&words, 2, &[&format!("--report {place}: "), expected]);
        assert!(scene.tree("") == before, "{place}");
    }
    scene.refuses("replay trace.jsonl --data job --report", 2, &["--report"]);
    assert!(scene.tree("") == before);
}

/// Devices are not replaced, nor is a folder written that only the system writes.
#[cfg(target_os = "linux")]
#[test]
fn what_is_the_systems_is_left_alone() {
    let scene = Scene::with(FIVE);
    let before = scene.tree("");
    for place in ["/dev/null", "/dev/stdout", "/proc/page.html", "/proc/self/page.html"] {
        scene.refuses(&format!("replay trace.jsonl --data job --report {place}"), 2, &[place]);
    }
    assert!(scene.tree("") == before);
}

/// A link is followed, a broken one refused, and what was there is replaced.
#[cfg(unix)]
#[test]
fn a_link_is_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scene = Scene::with(FIVE);
    scene.write("old.html", "an older page");
    symlink("old.html", scene.path("link.html")).unwrap();
    symlink("nowhere.html", scene.path("broken.html")).unwrap();
    assert_eq!(scene.run("replay trace.jsonl --report link.html").code, Some(0));
    assert!(fs::symlink_metadata(scene.path("link.html")).unwrap().is_symlink());
    assert!(fs::read_to_string(scene.path("old.html")).unwrap().starts_with("<!DOCTYPE html>"));
    // Others may read it as they may read any file of this person's.
    scene.write("plain", "");
    let mode = |name: &str| scene.path(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode("old.html"), mode("plain"));
    scene.refuses("replay trace.jsonl --report broken.html", 2, &["broken.html"]);
}

/// A replay that cannot go on writes no page, and leaves an older one as it was.
#[test]
fn an_older_page_stays_when_there_is_no_new_one() {
    let scene = Scene::with(FIVE);
    scene.write("page.html", "an older page");
    scene.refuses("replay trace.jsonl --turns 0 --report page.html", 2, &["turns"]);
    scene.write("file", "not a folder");
    scene.refuses("replay trace.jsonl --data file/below --report page.html", 3, &["file"]);
    assert_eq!(fs::read_to_string(scene.path("page.html")).unwrap(), "an older page");
    assert_eq!(names(&scene.path("")), ["file", "page.html", "tmp", "trace.jsonl"]);
}

/// A broken promise is on the page, and the exit code is what it is without one.
#[test]
fn a_broken_promise_is_on_the_page() {
    let scene = Scene::with(&[(1024, &[1, 2])]);
    scene.replay("--data job");
    for page in scene.shared("job") {
        let mut bytes = fs::read(&page).unwrap();
        bytes[0] ^= 1;
        fs::write(page, bytes).unwrap();
    }
    let (code, report) = scene.judged("--data job --resume --report page.html");
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    assert_eq!(code, 1);
    assert!(page.contains(&format!("Broken promises: {}.", report["violations"])));
    assert!(page.contains("<li>I15: the restore of turn "), "{page}");
}

/// A trace's name and a command's words are texts, whatever is in them.
#[cfg(unix)]
#[test]
fn a_name_is_no_markup() {
    let scene = Scene::with(FIVE);
    let name = "<img src=x onerror='alert(1)'>&.jsonl";
    fs::rename(scene.path("trace.jsonl"), scene.path(name)).unwrap();
    let mut command = scene.command("replay --report page.html");
    let output = command.arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let page = fs::read_to_string(scene.path("page.html")).unwrap();
    assert!(!page.contains("<img"), "{page}");
    let shown = "&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;.jsonl";
    assert!(page.contains(&format!("<h1>pinfold replay: {shown}</h1>")), "{page}");
    let quoted =
        "&#39;&lt;img src=x onerror=&#39;\\&#39;&#39;alert(1)&#39;\\&#39;&#39;&gt;&amp;.jsonl&#39;";
    assert!(page.contains(quoted), "{page}");
}
