//! Small traces whose figures follow by hand from the rules: linking, retention, restoring.

use std::collections::BTreeSet;

use serde_json::Value;

use super::traces::{FIVE, assert_figures, figure};
use crate::scene::Scene;

/// The first turn finds nothing. The second restores the first's two blocks, and its publication
/// expires the first, which goes. The same prompt again restores all of its three blocks, and
/// nothing is written for it: its turn refers to what is there, and the second's expires.
#[test]
fn five_requests_that_keep_one_turn() {
    let scene = Scene::with(FIVE);
    let report = scene.replay("--turns 1 --data job");
    assert_figures(
        &report,
        &[
            ("requests", 5),
            ("conversations", 3),
            ("workers", 1),
            ("turns_kept", 1),
            ("turns", 4),
            ("too_short", 1),
            ("restores", 2),
            ("restore_misses", 2),
            ("restore_failures", 0),
            ("wrong_restores", 0),
            ("input_tokens", 1100 + 1600 + 1536 + 600),
            ("tokens_saved", 2 * 512 + 3 * 512),
            ("checkpoints_written", 3),
            ("already_published", 1),
            ("unsaved", 0),
            ("turns_expired", 2),
            ("checkpoints_collected", 1),
            ("objects_collected", 2),
            ("checkpoints_retained", 2),
        ],
    );
    assert_eq!(report["trace"], "trace.jsonl");
    assert_eq!(report["left"]["blockers"], serde_json::json!({"retained": 2}));
    assert_eq!(report["violation_texts"], Value::Array(Vec::new()));
    // What is retained is what the folder holds.
    let kept = scene.private("job");
    let bytes = kept.iter().map(|path| path.metadata().unwrap().len()).sum::<u64>();
    assert_eq!(figure(&report, "bytes_retained"), bytes);
    let checkpoints: BTreeSet<_> = kept.iter().map(|path| path.parent()).collect();
    assert_eq!((kept.len(), checkpoints.len()), (4, 2));
    // Pages 1, 2, 4 and 20: nothing is kept of a partial block.
    assert_eq!(scene.shared("job").len(), 4);
}

/// The same with room for every turn: nothing expires, and nothing is collected.
#[test]
fn five_requests_that_keep_all_turns() {
    let report = Scene::with(FIVE).replay("--turns 5");
    let expected = [
        ("turns_expired", 0),
        ("checkpoints_collected", 0),
        ("checkpoints_retained", 3),
        ("checkpoints_written", 3),
        ("tokens_saved", 5 * 512),
    ];
    assert_figures(&report, &expected);
    assert_eq!(report["bytes_retained"], report["bytes_written"]);
}

/// Half-way, the worker is thrown away while it saves the second turn. That save's record and
/// objects go once its incarnation is fenced, and the turn is served again.
#[test]
fn what_a_dead_worker_began_is_collected() {
    let scene = Scene::with(&[(1024, &[1, 2]), (1536, &[1, 2, 3])]);
    let report = scene.replay("--turns 5 --data job");
    let expected = [
        ("turns", 2),
        ("restores", 1),
        ("checkpoints_written", 2),
        ("checkpoints_collected", 1),
        ("checkpoints_retained", 2),
    ];
    assert_figures(&report, &expected);
    assert_eq!(scene.private("job").len(), 4);
}

/// A chain of six turns of which three stay: each publication from the fourth on expires one.
#[test]
fn a_chain_keeps_its_newest_turns() {
    let blocks: Vec<u64> = (1..=7).collect();
    let rows: Vec<_> = (2..=7).map(|count| (512 * count, &blocks[..count as usize])).collect();
    let report = Scene::with(&rows).replay("--turns 3");
    let expected = [
        ("conversations", 1),
        ("turns", 6),
        ("restores", 5),
        ("restore_misses", 1),
        ("tokens_saved", 512 * (2 + 3 + 4 + 5 + 6)),
        ("turns_expired", 3),
        // Three of expired turns, and the one that was under way half-way.
        ("checkpoints_collected", 4),
        ("checkpoints_retained", 3),
    ];
    assert_figures(&report, &expected);
}

/// Two continuations of one turn both restore it: one conversation with a branch.
#[test]
fn a_branch_restores_what_it_branches_from() {
    let rows: &[(u32, &[u64])] = &[(1024, &[1, 2]), (1536, &[1, 2, 3]), (1536, &[1, 2, 4])];
    let report = Scene::with(rows).replay("--turns 5");
    let expected = [
        ("conversations", 1),
        ("restores", 2),
        ("tokens_saved", 4 * 512),
        ("checkpoints_retained", 3),
    ];
    assert_figures(&report, &expected);
}

/// Strangers who share a first block are two conversations, but the block is restored for both.
#[test]
fn strangers_share_a_system_prompt() {
    let report = Scene::with(&[(512, &[1]), (1024, &[1, 2]), (1024, &[1, 3])]).replay("");
    let expected =
        [("conversations", 3), ("restores", 2), ("tokens_saved", 2 * 512), ("restore_misses", 1)];
    assert_figures(&report, &expected);
}

#[test]
fn requests_without_a_full_block_leave_nothing() {
    let scene = Scene::with(&[(100, &[1]), (0, &[]), (511, &[2])]);
    let report = scene.replay("--data job");
    let expected = [
        ("requests", 3),
        ("turns", 0),
        ("too_short", 3),
        ("restore_misses", 0),
        ("input_tokens", 0),
        ("bytes_written", 0),
        ("bytes_peak", 0),
        ("checkpoints_retained", 0),
    ];
    assert_figures(&report, &expected);
    assert_eq!(scene.tree("job/objects").values().map(Vec::len).sum::<usize>(), 0);
}

#[test]
fn one_request_is_a_trace() {
    let report = Scene::with(&[(1024, &[1, 2])]).replay("");
    assert_figures(&report, &[("requests", 1), ("turns", 1), ("checkpoints_retained", 1)]);
}

/// However workers share them out, every request is served once and every promise holds.
#[test]
fn several_workers_serve_every_request_once() {
    let blocks: Vec<u64> = (0..40).collect();
    let rows: Vec<_> = (0..8)
        .flat_map(|chain| (2..=5).map(move |count| (5 * chain, count)))
        .map(|(first, count)| (512 * count, &blocks[first..first + count as usize]))
        .collect();
    let scene = Scene::with(&rows);
    let ended = scene.run("replay trace.jsonl --workers 4 --turns 2 --json --data job");
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    // A turn is served after the one before it, so each but the first of a chain restores.
    let expected = [
        ("requests", 32),
        ("conversations", 8),
        ("turns", 32),
        ("restores", 24),
        ("restore_misses", 8),
        ("wrong_restores", 0),
        ("violations", 0),
        ("checkpoints_retained", 16),
        ("turns_expired", 16),
    ];
    assert_figures(&report, &expected);
    assert_eq!(scene.private("job").len(), 32);
}

/// Half-way, every worker has a save under way, each of another turn; all are collected later.
#[test]
fn every_worker_leaves_a_save_under_way() {
    let blocks: Vec<u64> = (0..16).collect();
    let rows: Vec<_> = blocks.chunks(2).map(|blocks| (1024, blocks)).collect();
    let ended = Scene::with(&rows).run("replay trace.jsonl --workers 4 --json");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_figures(&report, &[("checkpoints_written", 8), ("checkpoints_collected", 4)]);
}

/// A wrong restore is worded like every other violation, in the report and in the table.
#[test]
fn a_wrong_restore_is_worded() {
    let scene = Scene::with(&[(1024, &[1, 2])]);
    scene.replay("--data job");
    for page in scene.shared("job") {
        let mut bytes = std::fs::read(&page).unwrap();
        bytes[0] ^= 1;
        std::fs::write(page, bytes).unwrap();
    }
    let (_, report) = scene.judged("--data job --resume");
    let texts = report["violation_texts"].as_array().unwrap();
    assert_eq!(texts.len() as u64, figure(&report, "violations"), "{report}");
}

/// Half-way the worker is thrown away while it serves a prompt that was sent again. Its position is
/// kept already, so there is nothing to write; whatever it did before it vanished breaks nothing.
#[test]
fn a_repeated_prompt_half_way_breaks_nothing() {
    let scene = Scene::with(&[(1024, &[1, 2]), (1024, &[1, 2])]);
    assert_figures(&scene.replay("--turns 1"), &[("turns", 2), ("checkpoints_retained", 1)]);
    let rows: &[(u32, &[u64])] =
        &[(1024, &[1, 2]), (1536, &[1, 2, 3]), (1536, &[1, 2, 3]), (2048, &[1, 2, 3, 4])];
    for turns in 1..=4 {
        Scene::with(rows).replay(&format!("--turns {turns}"));
    }
}
