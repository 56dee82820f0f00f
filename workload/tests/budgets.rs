//! Byte budgets and crashes, judged by what the folder holds in the end.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pinfold_core::id::{Epoch, Generation, Key};
use pinfold_workload::generate::{GeneratorConfig, generate};
use pinfold_workload::replay::{Difference, Progress, ReplayConfig, ReplayError, replay};
use pinfold_workload::report::Report;
use pinfold_workload::trace::{Request, Trace};

/// A chain of six turns.
const CHAIN: &[&[u64]] = &[
    &[1, 2],
    &[1, 2, 3],
    &[1, 2, 3, 4],
    &[1, 2, 3, 4, 5],
    &[1, 2, 3, 4, 5, 6],
    &[1, 2, 3, 4, 5, 6, 7],
];
/// Two conversations of three turns each, in turn, and a prompt that is too short to keep.
const TWO: &[&[u64]] =
    &[&[1, 2], &[7, 8], &[], &[1, 2, 3], &[7, 8, 9], &[1, 2, 3, 4], &[7, 8, 9, 10]];

fn trace(chains: &[&[u64]]) -> Trace {
    let request = |blocks: &&[u64]| Request {
        input_tokens: 512 * u32::try_from(blocks.len()).unwrap(),
        blocks: blocks.to_vec(),
        ..Request::default()
    };
    let trace = Trace { block_tokens: 512, requests: chains.iter().map(request).collect() };
    trace.check().unwrap();
    trace
}

fn config(dir: &Path) -> ReplayConfig {
    ReplayConfig {
        dir: dir.to_path_buf(),
        resume: false,
        turns: 10,
        conversation_bytes: None,
        job_bytes: None,
        crash_every: None,
        workers: 1,
        bytes_per_checkpoint: 4096,
        sync_objects: false,
        namespace: "replay".parse().unwrap(),
        epoch: Epoch::of_name("budgets test"),
        trace_name: "small".to_string(),
        log: None,
    }
}

/// Replays, and demands that every promise held.
fn held(config: &ReplayConfig, chains: &[&[u64]]) -> Report {
    let report = replay(config, &trace(chains), &|_| {}).unwrap();
    assert_eq!(report.violations, 0, "{report:?}");
    report
}

/// The private bytes of each checkpoint that a data folder holds, by generation.
fn stored(dir: &Path) -> BTreeMap<Generation, u64> {
    let objects = dir.join("objects");
    let mut found = BTreeMap::new();
    let mut folders = vec![objects.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(key) = path.strip_prefix(&objects).unwrap().to_str().unwrap().parse() {
                let key: Key = key;
                *found.entry(key.checkpoint.generation).or_default() +=
                    path.metadata().unwrap().len();
            }
        }
    }
    found
}

/// What each turn's checkpoint takes when nothing has to go.
fn sizes(chains: &[&[u64]]) -> Vec<u64> {
    let dir = tempfile::tempdir().unwrap();
    let report = held(&config(dir.path()), chains);
    let sizes: Vec<u64> = stored(dir.path()).into_values().collect();
    assert_eq!(report.bytes_retained, sizes.iter().sum::<u64>());
    sizes
}

/// Protocol 4: a conversation keeps its newest turns that fit, and every other one goes.
#[test]
fn a_conversation_budget_is_kept() {
    let sizes = sizes(CHAIN);
    assert_eq!(sizes.len(), 6);
    for fit in 1..=6 {
        let newest: u64 = sizes[6 - fit..].iter().sum();
        for (budget, kept) in [(newest, fit), (newest - 1, fit - 1)] {
            let dir = tempfile::tempdir().unwrap();
            let mut config = config(dir.path());
            config.conversation_bytes = Some(budget);
            let report = held(&config, CHAIN);
            // Only the last turn can be too large for a budget that is smaller than it.
            assert_eq!(report.tally.over_budget, u32::from(kept == 0), "{budget}");
            let there: Vec<u64> = stored(dir.path()).into_values().collect();
            let (from, to) = if kept == 0 { (4, 5) } else { (6 - kept, 6) };
            assert_eq!(there, sizes[from..to], "{budget}");
            assert_eq!(report.turns_expired, (to - there.len()) as u64, "{budget}");
            assert_eq!(report.bytes_retained, there.iter().sum::<u64>());
            let gone = report.tally.bytes_written - report.bytes_retained;
            // The save that was thrown away half-way put one object more than was confirmed.
            assert!(report.tally.bytes_collected > gone, "{report:?}");
        }
    }
}

/// Protocol 4: the job keeps the newest turns of all conversations that fit.
#[test]
fn a_job_budget_is_kept() {
    let sizes = sizes(TWO);
    assert_eq!(sizes.len(), 6);
    for fit in 1..=6 {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.job_bytes = Some(sizes[6 - fit..].iter().sum());
        let report = held(&config, TWO);
        let there: Vec<u64> = stored(dir.path()).into_values().collect();
        assert_eq!(there, sizes[6 - fit..]);
        assert_eq!((report.turns_expired, report.tally.over_budget), ((6 - fit) as u64, 0));
    }
}

/// What is larger than a budget is not written, is counted apart, and is no error.
#[test]
fn a_checkpoint_larger_than_a_budget_goes_unsaved() {
    let least = sizes(CHAIN)[0];
    for (conversation_bytes, job_bytes) in [(Some(least - 1), None), (None, Some(least - 1))] {
        let dir = tempfile::tempdir().unwrap();
        let config = ReplayConfig { conversation_bytes, job_bytes, ..config(dir.path()) };
        let report = held(&config, CHAIN);
        assert_eq!((report.tally.over_budget, report.tally.unsaved), (6, 0));
        assert_eq!((report.tally.checkpoints_written, report.tally.bytes_written), (0, 0));
        assert!(stored(dir.path()).is_empty());
    }
}

/// Several workers, both budgets, few turns and many crashes at once: what is left fits.
#[test]
fn budgets_hold_with_workers_and_crashes() {
    let generator = GeneratorConfig { conversations: 60, ..GeneratorConfig::default() };
    let trace = generate(&generator).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.bytes_per_checkpoint = 256;
    (config.turns, config.workers, config.crash_every) = (3, 4, Some(25));
    (config.conversation_bytes, config.job_bytes) = (Some(1500), Some(30_000));
    let report = replay(&config, &trace, &|_| {}).unwrap();
    assert_eq!((report.violations, &report.violation_texts[..]), (0, &[][..]));
    assert_eq!(report.crashes, (report.requests - 1) / 25);
    assert!(report.crashes > 3 && report.turns_expired > 50, "{report:?}");
    let bytes: u64 = stored(dir.path()).values().sum();
    assert_eq!(report.bytes_retained, bytes);
    assert!(bytes <= 30_000 && bytes > 28_000, "{bytes}");
}

/// Crashes come after every N requests, each with a save under way, and never after the last.
#[test]
fn crashes_come_again_and_again() {
    for (every, expected) in [(1, vec![1, 2, 3, 4, 5]), (2, vec![2, 4]), (4, vec![4]), (6, vec![])]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.crash_every = Some(every);
        let told = std::sync::Mutex::new(Vec::new());
        let report = replay(&config, &trace(CHAIN), &|now| told.lock().unwrap().push(now)).unwrap();
        assert_eq!((report.violations, &report.recovered_at), (0, &expected), "{report:?}");
        let crashes = u32::try_from(expected.len()).unwrap();
        assert_eq!((report.crashes, report.tally.thrown_away), (crashes, crashes.into()));
        assert_eq!(report.time.recovery_us.len(), expected.len());
        assert_eq!(report.time.recovered_ms.len(), expected.len());
        // Each save under way was begun, died, and was collected; then its turn was served.
        assert_eq!(report.tally.checkpoints_collected, u64::from(crashes));
        assert_eq!((report.tally.restores, report.checkpoints_retained), (5, 6));
        let so_far = |done| expected.iter().filter(|at| **at < done).count();
        let expected = (1..=6).map(|done| (done, u32::try_from(so_far(done)).unwrap()));
        let told = told.into_inner().unwrap();
        let told: Vec<_> =
            told.iter().map(|Progress { done, crashes }| (*done, *crashes)).collect();
        assert_eq!(told, expected.collect::<Vec<_>>());
    }
}

/// A request without a full block saves nothing: the next one that does is thrown away.
#[test]
fn a_crash_has_a_save_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.crash_every = Some(2);
    let report = held(&config, TWO);
    assert_eq!((report.recovered_at, report.tally.thrown_away), (vec![2, 4, 6], 3));
}

/// The timeline begins with nothing, ends with what is left, and never counts backwards.
#[test]
fn the_timeline_shows_what_was_held() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.turns = 2;
    let report = held(&config, CHAIN);
    let points = &report.timeline;
    let requests: Vec<u32> = points.iter().map(|point| point.requests).collect();
    assert_eq!(requests, [0, 1, 2, 3, 4, 5, 6, 6]);
    assert_eq!((points[0].bytes, points[0].checkpoints), (0, 0));
    assert_eq!(points[7].bytes_retained, report.bytes_retained);
    assert_eq!(points[7].checkpoints, 2);
    assert_eq!(points[7].checkpoints_collected, report.tally.checkpoints_collected);
    assert_eq!(points[7].bytes_collected, report.tally.bytes_collected);
    assert!(report.time.timeline_ms.is_sorted());
    assert_eq!(report.time.timeline_ms.len(), points.len());
    let depths: Vec<_> = report.depths.iter().map(|d| (d.depth, d.turns, d.restores)).collect();
    let expected = [(1, 1, 0), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1), (6, 1, 1)];
    assert_eq!(depths, expected);
}

/// A job goes on only under its own policy; each difference is named with the flag that fits.
#[test]
fn another_budget_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.conversation_bytes = Some(100_000);
    held(&config, CHAIN);
    let journal = fs::read(dir.path().join("journal/00000000000000000000.log")).unwrap();
    config.resume = true;
    (config.turns, config.conversation_bytes, config.job_bytes) = (3, None, Some(5));
    let error = replay(&config, &trace(CHAIN), &|_| {}).unwrap_err();
    let ReplayError::Policy { differences } = &error else { panic!("{error}") };
    let expected = [
        Difference::Turns { expected: 3, found: 10 },
        Difference::ConversationBytes { expected: None, found: Some(100_000) },
        Difference::JobBytes { expected: Some(5), found: None },
    ];
    assert_eq!(differences, &expected);
    let words = "the job keeps 10 turns per conversation, not 3: use --turns 10; \
                 the job has a budget of 100000 bytes for each conversation, not without one: \
                 use --conversation-bytes 100000; \
                 the job has no budget of bytes for all of it, not 5 bytes: leave out --job-bytes";
    assert_eq!(error.to_string(), words);
    assert!(fs::read(dir.path().join("journal/00000000000000000000.log")).unwrap() == journal);
    (config.turns, config.conversation_bytes, config.job_bytes) = (10, Some(100_000), None);
    held(&config, CHAIN);
}

/// Settings that say nothing are damage: refused by name, with a way out, and nothing is changed.
#[test]
fn damaged_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    held(&config, CHAIN);
    config.resume = true;
    let settings = dir.path().join("replay.json");
    let whole = fs::read(&settings).unwrap();
    for damage in [&b""[..], b"{", b"[]", b"{\"bytes_per_checkpoint\": -1}", b"\xff\xfe"] {
        fs::write(&settings, damage).unwrap();
        let error = replay(&config, &trace(CHAIN), &|_| {}).unwrap_err();
        assert!(matches!(error, ReplayError::DamagedSettings { .. }), "{error}");
        assert!(
            error.to_string().contains("replay.json is damaged: write {\"bytes_per"),
            "{error}"
        );
        assert_eq!(fs::read(&settings).unwrap(), damage);
    }
    fs::write(&settings, whole).unwrap();
    held(&config, CHAIN);
}

/// Zero is refused before the folder is touched, with the flag that it came from.
#[test]
fn zeros_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("job");
    let refuses = |flag: &str, change: &dyn Fn(&mut ReplayConfig)| {
        let mut config = config(&below);
        change(&mut config);
        let error = replay(&config, &trace(CHAIN), &|_| {}).unwrap_err();
        assert!(matches!(error, ReplayError::Zero { what } if what == flag), "{error}");
        assert!(!below.exists());
    };
    refuses("--conversation-bytes", &|config| config.conversation_bytes = Some(0));
    refuses("--job-bytes", &|config| config.job_bytes = Some(0));
    refuses("--crash-every", &|config| config.crash_every = Some(0));
}
