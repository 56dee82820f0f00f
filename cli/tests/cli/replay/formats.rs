//! Every format of traces through the whole program, without a word about which one it is.

use std::fs;
use std::path::Path;

use super::traces::assert_figures;
use crate::scene::Scene;

/// A session's second prompt shares nothing with its first, and is still a turn of it; a prompt
/// that two sessions share is a turn of each. The sessions are interleaved by delays alone.
const SESSIONS: &str = "\
{\"session_id\": \"a\", \"delay\": 9, \"input_length\": 1100, \"output_length\": 5, \
 \"hash_ids\": [1, 2, 3]}
{\"session_id\": \"a\", \"delay\": 900, \"input_length\": 1024, \"output_length\": 5, \
 \"hash_ids\": [7, 8]}
{\"session_id\": 2, \"timestamp\": 3, \"input_length\": 1024, \"output_length\": 5, \
 \"hash_ids\": [1, 2]}
{\"session_id\": 2, \"delay\": 1, \"input_length\": 1536, \"output_length\": 5, \
 \"hash_ids\": [1, 2, 4]}
";

/// The ids are of contents: 9 stands behind 1 and behind 9. Chat 20 is before the window.
const CHATS: &str = "\
{\"chat_id\": 5, \"parent_chat_id\": -1, \"timestamp\": 0.5, \"input_length\": 40, \
 \"output_length\": 5, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [1, 9, 9]}
{\"chat_id\": 21, \"parent_chat_id\": 20, \"timestamp\": 0.75, \"input_length\": 16, \
 \"output_length\": 5, \"type\": \"text\", \"turn\": 2, \"hash_ids\": [9]}
{\"chat_id\": 6, \"parent_chat_id\": 5, \"timestamp\": 61, \"input_length\": 64, \
 \"output_length\": 5, \"type\": \"text\", \"turn\": 2, \"hash_ids\": [1, 9, 9, 9]}
{\"chat_id\": 22, \"parent_chat_id\": 21, \"timestamp\": 62, \"input_length\": 15, \
 \"output_length\": 5, \"type\": \"text\", \"turn\": 3, \"hash_ids\": [4]}
";

#[test]
fn sessions_are_conversations() {
    let scene = Scene::new();
    scene.write("trace.jsonl", SESSIONS);
    let expected = [
        ("requests", 4),
        ("conversations", 2),
        ("turns", 4),
        ("restores", 2),
        ("restore_misses", 2),
        ("tokens_saved", 2 * 512 + 2 * 512),
        ("checkpoints_written", 3),
        ("already_published", 1),
        ("checkpoints_retained", 3),
        ("turns_expired", 0),
    ];
    assert_figures(&scene.replay("--turns 2"), &expected);
    // One turn of each session stays, whatever the prompts share.
    let expected = [("turns_expired", 2), ("checkpoints_retained", 2)];
    assert_figures(&scene.replay("--turns 1"), &expected);
}

#[test]
fn chats_are_conversations_of_blocks_of_16_tokens() {
    let scene = Scene::new();
    scene.write("trace.jsonl", CHATS);
    let expected = [
        ("requests", 4),
        ("conversations", 2),
        ("turns", 3),
        ("too_short", 1),
        ("restores", 1),
        ("restore_misses", 2),
        ("input_tokens", 40 + 16 + 64),
        ("tokens_saved", 2 * 16),
        ("checkpoints_retained", 3),
    ];
    assert_figures(&scene.replay("--data job"), &expected);
    // The pages of 1, 1 9, 1 9 9, 1 9 9 9 and 9 alone.
    assert_eq!(scene.shared("job").len(), 5);
}

#[test]
fn a_row_of_another_format_is_refused_before_anything_is_written() {
    let scene = Scene::new();
    let mooncake = super::traces::mooncake(&[(600, &[50, 51])]);
    let named = [
        (SESSIONS, "expected a row with session_id, as the first one is, found"),
        (CHATS, "expected a row with chat_id, as the first one is, found"),
    ];
    for (good, expected) in named {
        scene.write("bad.jsonl", &format!("{good}{mooncake}"));
        let words = ["bad.jsonl: line 5: ", expected, "neither session_id nor chat_id"];
        scene.refuses("replay bad.jsonl --data job", 2, &words);
        scene.write("bad.jsonl", &format!("{mooncake}{good}"));
        let words = ["line 2: expected a row with neither session_id nor chat_id, as the first"];
        scene.refuses("replay bad.jsonl --data job", 2, &words);
    }
    let twice = CHATS.replace("\"chat_id\": 6", "\"chat_id\": 5");
    scene.write("bad.jsonl", &twice);
    let words = ["line 3: expected a chat_id of its own, found chat 5 of line 1 again"];
    scene.refuses("replay bad.jsonl --data job", 2, &words);
    assert!(!scene.path("job").exists());
}

/// The example rows of the page, and that of `--help`, are traces.
#[test]
fn the_examples_are_traces() {
    let scene = Scene::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/traces.md");
    let page = fs::read_to_string(page).unwrap();
    let examples = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for example in examples {
        scene.write("trace.jsonl", example);
        scene.replay("");
        count += 1;
    }
    assert_eq!(count, 3);
    let help = scene.run("replay --help").out;
    let row = help.lines().find(|line| line.trim_start().starts_with('{')).unwrap();
    scene.write("trace.jsonl", row.trim_start());
    scene.replay("");
}
