//! The page of a replay: well-formed, in need of nothing else, and true.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use pinfold_core::id::Epoch;
use pinfold_workload::generate::{GeneratorConfig, generate};
use pinfold_workload::page::Page;
use pinfold_workload::replay::{ReplayConfig, replay};
use pinfold_workload::report::Report;

/// Elements without an end.
const VOID: [&str; 1] = ["meta"];

fn report(change: impl FnOnce(&mut ReplayConfig)) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let mut config = ReplayConfig {
        dir: dir.path().to_path_buf(),
        resume: false,
        turns: 2,
        conversation_bytes: None,
        job_bytes: Some(20_000),
        crash_every: Some(30),
        workers: 1,
        bytes_per_checkpoint: 256,
        sync_objects: false,
        namespace: "replay".parse().unwrap(),
        epoch: Epoch::of_name("page test"),
        trace_name: "small".to_string(),
        log: None,
    };
    change(&mut config);
    let generator = GeneratorConfig { conversations: 30, ..GeneratorConfig::default() };
    replay(&config, &generate(&generator).unwrap(), &|_| {}).unwrap()
}

fn page(report: &Report) -> String {
    Page { command: "pinfold replay", version: "1.2.3", report }.html()
}

/// Every tag is closed in order, every attribute quoted, every `&` the start of an entity, and
/// every id there once. The texts between tags come back.
fn well_formed(page: &str) -> String {
    let page = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let (mut open, mut text, mut ids) = (Vec::new(), String::new(), Vec::new());
    for piece in page.split('<').skip(1) {
        let (tag, after) = piece.split_once('>').unwrap_or_else(|| panic!("open tag: {piece}"));
        let raw = open.last() == Some(&"style") && tag != "/style";
        assert!(!raw, "a tag in the style: {tag}");
        text.push_str(after);
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{piece}");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{piece}");
        let quotes = attributes.split('"').collect::<Vec<_>>();
        assert!(quotes.len() % 2 == 1 && quotes.last() == Some(&""), "{tag}");
        for pair in quotes.chunks_exact(2) {
            let name = pair[0].trim();
            assert!(name.ends_with('=') && !name.starts_with("on"), "{tag}");
            if name == "id=" {
                ids.push(pair[1]);
            }
        }
        if !closed && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for piece in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|entity| piece.starts_with(entity)), "&{piece:.20}");
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), count > 0), (count, true), "an id stands twice");
    text
}

/// Nothing is fetched or run, and the only address is the name of SVG.
fn needs_nothing_else(page: &str) {
    let without_svg = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in
        ["http", "//", "<script", "<link", "<iframe", "<img", "src=", "href=", "@import", "url("]
    {
        assert!(!without_svg.contains(word), "{word}");
    }
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    let report = report(|_| {});
    let page = page(&report);
    let text = well_formed(&page);
    needs_nothing_else(&page);
    assert_eq!(page.matches("<svg ").count(), 4);
    assert_eq!(page.matches("</title>").count(), 1 + 4);
    for word in [
        "pinfold replay: small",
        "Every promise held.",
        "Run with pinfold 1.2.3:",
        "budget of the job",
        "private bytes",
        "place of the turn in its conversation",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(text.contains(word), "no {word}");
    }
    let recoveries = format!("{} recoveries took ", report.crashes);
    assert!(report.crashes > 2 && text.contains(&recoveries), "no {recoveries}");
    let collected = report.tally.checkpoints_collected;
    assert!(text.contains(&format!("{collected} checkpoints were collected, ")));
    // A mark for each in both charts over time, and in their legends; two at once are one.
    let marks = page.matches("class=\"mark\"").count();
    assert!((4..=2 * (report.crashes as usize + 1)).contains(&marks), "{marks}");
    assert!(!page.contains("NaN") && !page.contains("inf,"));
}

/// Without a crash there is no chart of recoveries, and without a budget no line for it; a budget
/// that is far above is only said.
#[test]
fn what_was_not_is_not_drawn() {
    let mut report = report(|config| {
        (config.crash_every, config.job_bytes) = (Some(100_000), None);
    });
    let bare = page(&report);
    let text = well_formed(&bare);
    assert_eq!(bare.matches("<svg ").count(), 3);
    assert!(text.contains("The job has no budget of bytes."));
    assert!(!bare.contains("class=\"level\"") && !bare.contains("class=\"mark\""));
    report.job_bytes = Some(1 << 40);
    let far = page(&report);
    assert!(far.contains("The job&#39;s budget, 1.0 TiB, is far above."));
    assert!(!far.contains("class=\"level\""));
}

/// Texts from outside stay texts.
#[test]
fn nothing_from_outside_is_markup() {
    let bad = "</title></code><script>alert('\"')</script><img src=x onerror=alert(1)>&";
    let mut report = report(|config| config.trace_name = bad.to_string());
    report.violations = 1;
    report.violation_texts = vec![bad.to_string()];
    let page = Page { command: bad, version: bad, report: &report }.html();
    let text = well_formed(&page);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert_eq!(text.matches("&lt;script&gt;").count(), 6);
    assert!(text.contains("Broken promises: 1."));
}

/// However many recoveries there were, the page stays small, and says what it left out.
#[test]
fn many_recoveries_are_thinned() {
    let mut report = report(|_| {});
    let count = 5_000;
    report.recovered_at = (0..count).collect();
    report.time.recovery_us = (0..count).map(|number| 1000 + u64::from(number)).collect();
    report.time.recovered_ms = (0..count).map(u64::from).collect();
    let page = page(&report);
    well_formed(&page);
    assert!(page.len() < 400_000, "{}", page.len());
    assert!(page.matches("<circle ").count() <= 200);
    assert!(page.contains("Of each 25 in a row the slowest is shown."));
    assert!(page.contains("5000 recoveries took 1.000 ms to 5.999 ms"));
}
