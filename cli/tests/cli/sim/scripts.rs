//! Scripts of a World, replayed.

use crate::scene::Scene;

const GOOD: &str = "\
# a worker registers
world workers=1 operators=1

w1 register
deliver w1/1
sync
----
w1 -> registered as 1

recover
----
held
";

#[test]
fn a_script_that_goes_as_it_says_holds() {
    let scene = Scene::new();
    scene.write("a.txt", GOOD);
    let out = scene.prints("sim --script a.txt");
    let head = format!("pinfold {}, script a.txt\n", env!("CARGO_PKG_VERSION"));
    let head = head + "again: pinfold sim --script a.txt\n";
    assert!(out.starts_with(&head) && out.ends_with(&head), "{out}");
    assert!(out.contains("\na worker registers\n"), "{out}");
    let report = scene.json("sim --script a.txt");
    assert_eq!((&report["verdict"], &report["steps"]), (&"held".into(), &3.into()));
    let out = scene.prints("sim --script a.txt --trace");
    assert!(out.contains("\n         w1 -> registered as 1\n"), "{out}");
}

#[test]
fn a_script_has_a_picture() {
    let scene = Scene::new();
    scene.write("a.txt", GOOD);
    scene.prints("sim --script a.txt --report a.html");
    let page = std::fs::read_to_string(scene.path("a.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("a worker registers"), "{page}");
    scene.refuses("sim --script a.txt --report a.txt", 2, &["is the script itself"]);
}

/// The step is named at which it goes another way, and what was expected and not seen.
#[test]
fn a_script_that_goes_another_way_says_where() {
    let scene = Scene::new();
    scene.write("a.txt", &GOOD.replace("deliver w1/1\n", "deliver w1/1 see=00000000\n"));
    let ended = scene.run("sim --script a.txt");
    assert_eq!((ended.code, ended.err.as_str()), (Some(4), ""), "{}", ended.out);
    assert!(ended.out.contains("from step 2 on, line 5: the step was 00000000"), "{}", ended.out);
    scene.write("a.txt", &GOOD.replace("registered as 1", "registered as 2"));
    let ended = scene.run("sim --script a.txt --json");
    assert_eq!((ended.code, ended.err.as_str()), (Some(4), ""), "{}", ended.out);
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["missing"][0]["line"], 8);
    assert_eq!(report["missing"][0]["text"], "w1 -> registered as 2");
    assert_eq!((&report["verdict"], &report["what"]), (&"another way".into(), &().into()));
    let ended = scene.run("sim --script a.txt --report a.html");
    assert_eq!((ended.code, ended.err.as_str()), (Some(4), ""), "{}", ended.out);
    assert!(ended.out.contains(" another way\n"), "{}", ended.out);
    let page = std::fs::read_to_string(scene.path("a.html")).unwrap();
    assert!(page.contains("another way") && !page.contains("Every promise held."), "{page}");
    assert!(page.contains("<li>not seen, line 8: w1 -&gt; registered as 2</li>"), "{page}");
}

/// What cannot happen is named by the trace, by the table, on the page and in the JSON.
#[test]
fn what_is_skipped_is_named() {
    let scene = Scene::new();
    scene.write("a.txt", &GOOD.replace("deliver w1/1\n", "deliver w1/7\ndeliver w1/1\n"));
    let ended = scene.run("sim --script a.txt --trace --report a.html");
    assert_eq!((ended.code, ended.err.as_str()), (Some(4), ""), "{}", ended.out);
    let said = "\n       deliver w1/7: cannot happen here: skipped\n    2  deliver w1/1\n";
    assert!(ended.out.contains(said), "{}", ended.out);
    assert!(ended.out.contains("  skipped, line 5  "), "{}", ended.out);
    let page = std::fs::read_to_string(scene.path("a.html")).unwrap();
    assert!(page.contains("<li>skipped, line 5: deliver w1/7</li>"), "{page}");
    let ended = scene.run("sim --script a.txt --json");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&report["verdict"], &report["steps"]), (&"another way".into(), &3.into()));
    assert_eq!(report["skipped"][0]["line"], 5);
    assert_eq!(report["skipped"][0]["text"], "deliver w1/7");
}

#[test]
fn a_script_that_is_too_long_is_refused() {
    let scene = Scene::new();
    let file = std::fs::File::create(scene.path("a.txt")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    scene.refuses("sim --script a.txt", 2, &["a.txt: longer than 16 MiB"]);
    scene.write("a.txt", "# a worker registers\nw1 register\n");
    scene.refuses("sim --script a.txt", 2, &["a.txt: line 2: ", "begin it with world ..."]);
}

#[test]
fn what_is_no_script_of_a_world_is_refused() {
    let scene = Scene::new();
    scene.refuses("sim --script a.txt", 2, &["a.txt: "]);
    scene.write("a.txt", "no comment\n");
    scene.refuses("sim --script a.txt", 2, &["a.txt: line 1: "]);
    scene.write("a.txt", &GOOD.replace("w1 register", "w1 regster"));
    let ended = scene.run("sim --script a.txt");
    assert_eq!(ended.code, Some(2), "{}", ended.out);
    assert!(
        ended.err.contains("a.txt: line 4: ") && ended.err.contains("regster"),
        "{}",
        ended.err
    );
    scene.write("a.txt", &GOOD.replace("workers=1", "workers=0"));
    assert_eq!(scene.run("sim --script a.txt --trace").code, Some(2));
}
