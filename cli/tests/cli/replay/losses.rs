//! What the store lost or changed behind the job's back: found before it is adopted where the
//! protocol can find it, and counted as a broken promise where it was adopted.

use std::fs;
use std::path::{Path, PathBuf};

use super::traces::{Rows, assert_figures, figure};
use crate::scene::Scene;

/// One conversation of two turns.
const TWO: Rows<'static> = &[(1024, &[1, 2]), (1536, &[1, 2, 4])];

/// A job with both turns kept, and the private objects of the second one's checkpoint.
fn two_turns() -> (Scene, Vec<PathBuf>) {
    let scene = Scene::with(TWO);
    let report = scene.replay("--data job");
    assert_figures(&report, &[("checkpoints_retained", 2), ("checkpoints_collected", 1)]);
    // The checkpoint in the making half-way had generation 2, so the last one has 3.
    let objects = scene.private("job");
    let of_second = |path: &PathBuf| path.to_string_lossy().contains("/0000000000000003/");
    let objects: Vec<_> = objects.into_iter().filter(of_second).collect();
    assert_eq!(objects.len(), 2);
    (scene, objects)
}

/// Serves the trace again: the second turn's checkpoint is found lost, is never adopted, and is
/// replaced; no promise is broken by it. After that the folder is whole again.
fn is_found_and_replaced(scene: &Scene, what: &str) {
    let report = scene.replay("--data job --resume");
    let expected = [
        ("restore_failures", 1),
        ("restores", 1),
        ("wrong_restores", 0),
        ("checkpoints_written", 1),
        ("already_published", 1),
        ("checkpoints_retained", 2),
    ];
    assert_figures(&report, &expected);
    assert_eq!(report["left"]["blockers"], serde_json::json!({"retained": 2}), "{what}");
    assert!(report["restore_failure_text"].is_string(), "{what}: {report}");
    let report = scene.replay("--data job --resume");
    let expected = [("restore_failures", 0), ("restores", 2), ("checkpoints_written", 0)];
    assert_figures(&report, &expected);
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// The first byte of the payload, some in it, the last one of the trailer.
#[test]
fn a_wrong_private_byte_is_found_by_the_trailer() {
    for quarter in 0..=4 {
        let (scene, objects) = two_turns();
        let last = usize::try_from(objects[1].metadata().unwrap().len()).unwrap() - 1;
        flip(&objects[1], last * quarter / 4);
        is_found_and_replaced(&scene, &format!("quarter {quarter}"));
    }
}

/// A load plans for itself and takes nothing from the stored manifest, which only has to be there:
/// wrong bytes in it are adopted by nobody.
#[test]
fn a_wrong_byte_of_a_manifest_reaches_nobody() {
    let (scene, objects) = two_turns();
    flip(&objects[0], 20);
    let report = scene.replay("--data job --resume");
    assert_figures(&report, &[("restores", 2), ("restore_failures", 0), ("wrong_restores", 0)]);
}

#[test]
fn a_missing_private_object_is_found() {
    for object in 0..2 {
        let (scene, objects) = two_turns();
        fs::remove_file(&objects[object]).unwrap();
        is_found_and_replaced(&scene, &format!("object {object}"));
    }
}

#[test]
fn a_private_object_of_another_size_is_found() {
    for object in 0..2 {
        let (scene, objects) = two_turns();
        let bytes = fs::read(&objects[object]).unwrap();
        fs::write(&objects[object], &bytes[1..]).unwrap();
        is_found_and_replaced(&scene, &format!("object {object}, shorter"));
        let (scene, objects) = two_turns();
        fs::write(&objects[object], [&bytes[..], &[0]].concat()).unwrap();
        is_found_and_replaced(&scene, &format!("object {object}, longer"));
    }
}

/// The trailer names its own key: a whole object of another checkpoint is not taken for this one.
#[test]
fn an_object_of_another_checkpoint_is_found() {
    let (scene, objects) = two_turns();
    let first = scene.private("job").into_iter().find(|path| {
        path.to_string_lossy().contains("/0000000000000001/") && path.ends_with("00000001")
    });
    fs::copy(first.unwrap(), &objects[1]).unwrap();
    is_found_and_replaced(&scene, "the first checkpoint's state");
}

/// The page of block 4, which only the second turn needs.
fn last_page(scene: &Scene) -> PathBuf {
    let pages = scene.shared("job");
    assert_eq!(pages.len(), 3);
    pages.into_iter().find(|path| path.to_string_lossy().ends_with("04")).unwrap()
}

#[test]
fn a_missing_shared_page_is_found() {
    let (scene, _) = two_turns();
    fs::remove_file(last_page(&scene)).unwrap();
    is_found_and_replaced(&scene, "page");
}

/// A page that both turns need: neither restores, and what is served again is whole.
#[test]
fn a_missing_page_of_a_shared_prefix_is_found_by_all() {
    let (scene, _) = two_turns();
    let page = last_page(&scene).with_file_name(format!("{:032x}", 1));
    fs::remove_file(page).unwrap();
    let report = scene.replay("--data job --resume");
    assert!(figure(&report, "restore_failures") >= 1, "{report}");
    let report = scene.replay("--data job --resume");
    assert_figures(&report, &[("restore_failures", 0), ("restores", 2)]);
}

/// A shared page bears no checksum, so a wrong byte in it is adopted: the comparison with what the
/// model computes must see it, and the program must not end as if all went well.
#[test]
fn an_adopted_wrong_byte_breaks_a_promise() {
    let (scene, _) = two_turns();
    flip(&last_page(&scene), 100);
    let (code, report) = scene.judged("--data job --resume");
    assert_eq!(code, 1, "{report}");
    assert_figures(&report, &[("wrong_restores", 1), ("violations", 1), ("restores", 2)]);
    let ended =
        scene.run("replay trace.jsonl --workers 1 --bytes-per-checkpoint 256 --data job --resume");
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    let last = ended.out.lines().find(|line| line.contains("invariant violations")).unwrap();
    assert!(last.ends_with(" 1"), "{last}");
}

/// A private object that no record counts is a broken promise (L1 and I17), by its key.
#[test]
fn a_stray_object_breaks_a_promise() {
    let (scene, objects) = two_turns();
    // Generation 2 was collected half-way.
    let gone = objects[0].to_string_lossy().replace("/0000000000000003/", "/0000000000000002/");
    fs::create_dir_all(Path::new(&gone).parent().unwrap()).unwrap();
    fs::write(&gone, b"left").unwrap();
    let (code, report) = scene.judged("--data job --resume");
    assert_eq!(code, 1, "{report}");
    let texts = report["violation_texts"].to_string();
    assert_eq!(figure(&report, "violations"), 2, "{texts}");
    assert!(texts.contains("L1: nothing holds checkpoint"), "{texts}");
    assert!(texts.contains("I17: replay/") && texts.contains("is Stray"), "{texts}");
    fs::remove_file(&gone).unwrap();
    scene.replay("--data job --resume");
}

/// Objects of others in the same store are none of the job's business.
#[test]
fn foreign_objects_are_left_alone() {
    let (scene, objects) = two_turns();
    let foreign = scene.path("job/objects/somebody/else");
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, b"theirs").unwrap();
    let other = objects[0].to_string_lossy().replace("/objects/replay/", "/objects/replay-2/");
    fs::create_dir_all(Path::new(&other).parent().unwrap()).unwrap();
    fs::write(&other, b"theirs").unwrap();
    scene.replay("--data job --resume");
    assert_eq!(fs::read(&foreign).unwrap(), b"theirs");
    assert_eq!(fs::read(&other).unwrap(), b"theirs");
}
