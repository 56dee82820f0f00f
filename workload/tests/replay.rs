//! A replay that somebody works against: while it runs, objects vanish, change or appear in its
//! folder, and its judge must see what the job's own state cannot show.
#![allow(clippy::unwrap_used, reason = "a test's own steps")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pinfold_core::catalog::{Command, Role};
use pinfold_core::id::{Epoch, Key, StartId};
use pinfold_core::manifest::Manifest;
use pinfold_core::object::verify;
use pinfold_core::outcome::Outcome;
use pinfold_host::node::Node;
use pinfold_host::owner::Owner;
use pinfold_workload::replay::{Progress, ReplayConfig, ReplayError, replay};
use pinfold_workload::report::Report;
use pinfold_workload::trace::{Request, Trace};

/// Two conversations of three turns each, in turn; after the first, each restores the one before.
const SIX: &[&[u64]] = &[&[1, 2], &[7, 8], &[1, 2, 3], &[7, 8, 9], &[1, 2, 3, 4], &[7, 8, 9, 10]];

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
        turns: 2,
        conversation_bytes: None,
        job_bytes: None,
        crash_every: None,
        workers: 1,
        bytes_per_checkpoint: 256,
        sync_objects: false,
        namespace: "replay".parse().unwrap(),
        epoch: Epoch::of_name("replay test"),
        trace_name: "six".to_string(),
        log: None,
    }
}

/// Replays the six turns, and does something to the folder once so many are done.
fn sabotaged(after: u32, act: impl Fn(&Path) + Sync) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let acted = Mutex::new(false);
    let report = replay(&config(dir.path()), &trace(SIX), &|Progress { done, .. }| {
        if done == after {
            act(dir.path());
            *acted.lock().unwrap() = true;
        }
    });
    assert!(*acted.lock().unwrap(), "nobody was told that {after} were done");
    report.unwrap()
}

/// The private objects below a data folder, oldest generation first.
fn private(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.join("objects/replay")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("shared") {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    let generation = |path: &PathBuf| {
        let place = path.ancestors().nth(2).unwrap().file_name().unwrap().to_owned();
        (place, path.file_name().unwrap().to_owned())
    };
    found.sort_by_key(generation);
    found
}

/// The state of the newest checkpoint, which every later judgement retains.
fn newest(dir: &Path) -> PathBuf {
    private(dir).pop().unwrap()
}

/// The violations that begin with an invariant's name.
fn broken<'a>(report: &'a Report, invariant: &str) -> Vec<&'a str> {
    let texts = report.violation_texts.iter().map(String::as_str);
    texts.filter(|text| text.split(':').next() == Some(invariant)).collect()
}

/// Without a saboteur the same six turns break nothing, and progress counts every request.
#[test]
fn six_turns_break_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let told = Mutex::new(Vec::new());
    let report = replay(&config(dir.path()), &trace(SIX), &|now| told.lock().unwrap().push(now));
    let report = report.unwrap();
    assert_eq!((report.violations, report.violation_texts.len()), (0, 0), "{report:?}");
    let told: Vec<_> = told.into_inner().unwrap().iter().map(|p| (p.done, p.crashes)).collect();
    assert_eq!(told, [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)]);
    assert_eq!((report.tally.restores, report.turns_expired), (4, 2));
    assert_eq!(report.checkpoints_retained, 4);
    assert_eq!(private(dir.path()).len(), 8);
}

/// I5: what lies in the store under a checkpoint's keys is sealed for them, and object 0 is the
/// manifest whose digest the job acknowledges, with every object that it names beside it.
#[test]
fn object_0_is_the_acknowledged_manifest() {
    let dir = tempfile::tempdir().unwrap();
    replay(&config(dir.path()), &trace(SIX), &|_| {}).unwrap();
    let (node, _effects, _) = Node::open(dir.path()).unwrap();
    let owner =
        Owner::register(node.client(), "reader", Role::Worker, StartId::from_u128(9)).unwrap();
    let stored = private(dir.path());
    assert_eq!(stored.len(), 8);
    for path in &stored {
        let key = path.strip_prefix(dir.path().join("objects")).unwrap().to_str().unwrap();
        let key: Key = key.parse().unwrap();
        let object = fs::read(path).unwrap();
        let payload = verify(&key, &object).unwrap();
        if key.object.index > 0 {
            continue;
        }
        let manifest = Manifest::decode(payload).unwrap();
        let candidates = vec![manifest.endpoint().id()];
        let answer = owner.ask(Command::Pin { candidates, limit: 1 }).unwrap();
        let Ok(Outcome::Pinned(pinned)) = answer else { panic!("{key}: {answer:?}") };
        let acknowledged: Vec<_> = pinned.iter().map(|one| (one.checkpoint, one.digest)).collect();
        assert_eq!(acknowledged, [(key.checkpoint, manifest.digest())]);
        for named in manifest.private_objects(key.object.shard) {
            let beside = path.with_file_name(format!("{:08x}", named.id.index));
            assert_eq!(fs::metadata(beside).unwrap().len(), named.stored_bytes(), "{key}");
        }
    }
    node.stop().unwrap();
}

/// I1: an object of a retained turn was deleted: seen at the end.
#[test]
fn a_vanished_object_is_a_violation() {
    let report = sabotaged(6, |dir| fs::remove_file(newest(dir)).unwrap());
    assert_eq!(report.violations, 1, "{report:?}");
    assert!(report.violation_texts[0].starts_with("I1: turn "), "{report:?}");
    assert!(report.violation_texts[0].ends_with(" is not whole"), "{report:?}");
}

/// I1: the same before the process state is thrown away: seen there too, as the turn still stands.
#[test]
fn a_vanished_object_is_seen_half_way() {
    let report = sabotaged(3, |dir| fs::remove_file(newest(dir)).unwrap());
    // The turn of its conversation that comes next finds it missing, and restores nothing.
    assert_eq!((report.tally.restore_failures, report.tally.wrong_restores), (1, 0));
    let seen = broken(&report, "I1");
    assert_eq!(seen.len(), 2, "{report:?}");
    assert_eq!(seen[0], seen[1]);
    assert_eq!(report.violations, 2);
}

#[test]
fn a_cut_object_is_a_violation() {
    let report = sabotaged(6, |dir| {
        let path = newest(dir);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    });
    assert_eq!((report.violations, broken(&report, "I1").len()), (1, 1), "{report:?}");
}

/// L1 and I17: an object of a generation that was collected, or of one that never was.
#[test]
fn a_stray_object_is_a_violation() {
    for (generation, verdict) in [("0000000000000001", "Stray"), ("00000000000000ff", "NotOurs")] {
        let report = sabotaged(6, |dir| {
            let path = newest(dir);
            let checkpoint = path.ancestors().nth(2).unwrap();
            let stray = checkpoint.with_file_name(generation).join("0000/00000001");
            fs::create_dir_all(stray.parent().unwrap()).unwrap();
            fs::write(stray, b"left").unwrap();
        });
        assert_eq!(report.violations, 2, "{report:?}");
        assert_eq!(broken(&report, "L1").len(), 1, "{report:?}");
        let strays = broken(&report, "I17");
        assert!(strays[0].contains(generation) && strays[0].ends_with(verdict), "{strays:?}");
    }
}

/// A retained checkpoint with an object more than was written is not what was written.
#[test]
fn an_object_too_many_is_a_violation() {
    let report = sabotaged(6, |dir| {
        fs::write(newest(dir).with_file_name("00000007"), b"more").unwrap();
    });
    assert_eq!(broken(&report, "I1").len(), 1, "{report:?}");
    assert_eq!(broken(&report, "I17").len(), 1, "{report:?}");
}

/// A wrong byte in a private object is found by its trailer: nothing wrong is adopted, and no
/// promise is broken.
#[test]
fn a_wrong_private_byte_is_a_failed_restore() {
    let report = sabotaged(4, |dir| {
        let path = newest(dir);
        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 0x40;
        fs::write(&path, bytes).unwrap();
    });
    assert_eq!(report.tally.restore_failures, 1, "{report:?}");
    assert_eq!((report.tally.wrong_restores, report.violations), (0, 0), "{report:?}");
}

/// A wrong byte in a shared page has nothing to be found by; that it was adopted is counted.
#[test]
fn an_adopted_wrong_byte_is_a_violation() {
    let report = sabotaged(4, |dir| {
        let epoch = config(dir).epoch.to_string();
        let shared = dir.join("objects/replay").join(epoch).join("shared");
        let page = format!("{:032x}", 9);
        let mut folders = vec![shared];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with(&page) {
                    let mut bytes = fs::read(&path).unwrap();
                    bytes[255] ^= 1;
                    fs::write(&path, bytes).unwrap();
                }
            }
        }
    });
    assert_eq!((report.tally.wrong_restores, report.violations), (1, 1), "{report:?}");
}

/// More violations than fit are counted, and the first are worded.
#[test]
fn many_violations_are_counted() {
    let chains: Vec<Vec<u64>> = (0..30).map(|n| vec![2 * n, 2 * n + 1]).collect();
    let chains: Vec<&[u64]> = chains.iter().map(Vec::as_slice).collect();
    let dir = tempfile::tempdir().unwrap();
    let report = replay(&config(dir.path()), &trace(&chains), &|Progress { done, .. }| {
        if done == 30 {
            private(dir.path()).into_iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    });
    let report = report.unwrap();
    assert_eq!((report.violations, report.violation_texts.len()), (30, 20));
    let lines = report.violation_lines();
    assert_eq!((lines.len(), lines[20].as_str()), (21, "and 10 more"));
    // A turn is written as everywhere: conversation/turn.
    let turn = lines[0].split(' ').nth(2).unwrap();
    assert!(turn.split('/').all(|id| id.len() == 32) && turn.contains('/'), "{turn}");
}

/// A store that is not there any more is an error, and never a verdict.
#[test]
fn an_unmounted_store_is_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let ended = replay(&config(dir.path()), &trace(SIX), &|Progress { done, .. }| {
        if done == 6 {
            fs::remove_file(dir.path().join("objects/.pinfold-objects")).unwrap();
        }
    });
    assert!(matches!(ended, Err(ReplayError::List(_))), "{ended:?}");
}

/// Usage that cannot be served is refused before the folder is touched.
#[test]
fn nothing_is_written_for_what_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("job");
    let refused = |change: &dyn Fn(&mut ReplayConfig)| {
        let mut config = config(&below);
        change(&mut config);
        let error = replay(&config, &trace(SIX), &|_| {}).unwrap_err();
        assert!(!below.exists(), "{error}");
        error
    };
    let zero = refused(&|config| config.workers = 0);
    assert!(matches!(zero, ReplayError::OutOfRange { what: "--workers", .. }));
    let zero = refused(&|config| config.turns = 0);
    assert!(matches!(zero, ReplayError::OutOfRange { what: "--turns", .. }));
    let small = refused(&|config| config.bytes_per_checkpoint = 127);
    assert!(matches!(small, ReplayError::Model(_)));
    let missing = refused(&|config| config.resume = true);
    assert!(matches!(missing, ReplayError::Missing { .. }));
}

mod crash {
    //! A job whose process was killed under a save, gone on with.
    use std::sync::Arc;

    use pinfold_core::catalog::Role;
    use pinfold_core::id::{OwnerId, StartId};
    use pinfold_core::policy::{Genesis, Limits, Policy};
    use pinfold_host::file_store::{FileStore, FileStoreOptions};
    use pinfold_host::node::Node;
    use pinfold_host::owner::Owner;
    use pinfold_workload::link::{TraceTag, chain_values};
    use pinfold_workload::model::Model;
    use pinfold_workload::serve::{Turn, Worker};

    use super::*;

    /// One worker of a job like a replay's begins a save, and the process ends.
    fn killed(config: &ReplayConfig) {
        let genesis = Genesis {
            namespace: config.namespace.clone(),
            epoch: config.epoch,
            operator: OwnerId::of_name("operator"),
            policy: Policy { turns: config.turns, ..Policy::default() },
            limits: Limits::default(),
        };
        let store = FileStore::create(&config.dir, FileStoreOptions::default()).unwrap();
        let (node, _effects) = Node::create(&config.dir, genesis.clone()).unwrap();
        let client = node.client();
        let start = StartId::from_u128(1);
        let owner = Owner::register(client, "worker-0", Role::Worker, start).unwrap();
        let model = Model::new(512, config.bytes_per_checkpoint).unwrap();
        let mut worker = Worker::new(owner, Arc::new(model), Arc::new(store), genesis).unwrap();
        let trace = trace(SIX);
        let chain = chain_values(TraceTag::default(), &trace.requests[0], 512);
        worker.begin_and_vanish(&Turn::new(TraceTag::default(), 0, 0, 0, chain)).unwrap();
        assert!(!private(&config.dir).is_empty());
        node.stop().unwrap();
    }

    /// L1 is about what has neither reference nor pin: what a dead incarnation still pins may stay
    /// until it is fenced, and breaks no promise. Going on with the job ends it, or leaves it be.
    #[test]
    fn what_a_killed_process_began_is_no_violation() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        killed(&config);
        config.resume = true;
        let report = replay(&config, &trace(SIX), &|_| {}).unwrap();
        assert_eq!(report.violations, 0, "{report:?}");
        assert_eq!(report.left.blockers.keys().copied().collect::<Vec<_>>(), ["retained"]);
    }
}
