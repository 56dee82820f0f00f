//! Seeds: what is printed of them, and that they repeat.

use crate::scene::Scene;

/// Who asked what stands first and last, with the command; nothing is written.
#[test]
fn a_good_sweep_begins_and_ends_with_what_was_asked() {
    let scene = Scene::new();
    let out = scene.prints("sim --seeds 3..9 --steps 40 --faults lose=off,dup=2%");
    let lines: Vec<&str> = out.lines().collect();
    let (head, tail) = (&lines[..2], &lines[lines.len() - 2..]);
    assert_eq!(head, tail);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("pinfold {version}, seeds 3..9, 40 steps, configuration ");
    assert!(head[0].starts_with(&expected), "{out}");
    let command = "pinfold sim --seeds 3..9 --steps 40 --faults lose=off,dup=2%";
    assert_eq!(head[1], format!("again: {command}"));
    assert!(out.contains("\n  verdict ") && out.contains(" held\n"), "{out}");
    assert!(out.contains("\nFindings: none\n"), "{out}");
    assert!(scene.files(".").is_empty());
    // What it says of itself is what it takes.
    let again = scene.prints(command.strip_prefix("pinfold ").unwrap());
    assert!(again.starts_with(&head.join("\n")), "{again}");
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let scene = Scene::new();
    let report = |words: &str| {
        let mut report = scene.json(&format!("sim {words} --steps 60"));
        assert!(report.as_object_mut().unwrap().remove("time").is_some());
        report
    };
    let [one, again, other] = ["--seed 7", "--seed 7 --jobs 2", "--seed 8"].map(report);
    assert_eq!(one, again);
    assert_eq!((&one["verdict"], &one["seeds"]), (&"held".into(), &1.into()));
    assert_eq!(one["command"], "pinfold sim --seed 7 --steps 60");
    assert_ne!(one["digest"], other["digest"]);
    assert_eq!(one["configuration"], other["configuration"]);
    let knob = report("--seed 7 --faults dup=5%");
    assert_ne!(one["configuration"], knob["configuration"]);
}

#[test]
fn jobs_and_a_second_run_change_nothing() {
    let scene = Scene::new();
    let sweep = |words: &str| scene.json(&format!("sim --seeds 0..20 --steps 40 {words}"));
    let (one, three, meta) = (sweep("--jobs 1"), sweep("--jobs 3"), sweep("--meta"));
    for other in [&three, &meta] {
        for name in ["digest", "steps", "recovery_steps", "longest_recovery", "findings"] {
            assert_eq!(one[name], other[name], "{name}");
        }
    }
    assert_eq!((&one["twice"], &one["jobs_agree"]), (&2.into(), &().into()));
    assert_eq!((&meta["twice"], &meta["jobs_agree"]), (&20.into(), &true.into()));
}

/// What happens in a seed is printed between who asked what and what came of it.
#[test]
fn a_trace_has_the_steps() {
    let scene = Scene::new();
    let out = scene.prints("sim --seed 7 --steps 30 --trace");
    let traced = out.lines().skip(3).take_while(|line| !line.is_empty());
    let traced: Vec<&str> = traced.collect();
    assert!(traced[0].starts_with("    1  ") && traced.len() > 30, "{out}");
    assert_eq!(traced.last(), Some(&"held"));
    assert_eq!(traced.iter().filter(|line| **line == "recovery").count(), 1, "{out}");
    let untraced = scene.prints("sim --seed 7 --steps 30");
    let digest = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("  digest "));
        line.unwrap().to_string()
    };
    assert_eq!(digest(&out), digest(&untraced));
}

/// The page is a file that needs nothing else, and is the same each time.
#[test]
fn a_report_is_a_page_of_one_run() {
    let scene = Scene::new();
    let page = |words: &str| {
        scene.prints(&format!("sim {words} --steps 40 --report a.html"));
        std::fs::read_to_string(scene.path("a.html")).unwrap()
    };
    let one = page("--seed 7");
    assert!(one.contains("<svg") && one.contains("pinfold sim --seed 7 --steps 40"), "{one}");
    assert_eq!(page("--seeds 7..9"), one);
    scene.refuses("sim --seed 7 --report none/a.html", 2, &["there is no folder none"]);
}

/// A few seeds cannot do everything: what never happened is named, and is a code of its own.
#[test]
fn what_never_happened_is_named_where_it_is_required() {
    let scene = Scene::new();
    let words = "sim --seeds 0..2 --steps 40 --faults crash=off";
    let ended = scene.run(&format!("{words} --require-coverage"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(5), ""), "{}", ended.out);
    let (_, never) = ended.out.split_once("\nNever happened\n").unwrap();
    assert!(never.lines().any(|line| line.contains("crash")), "{}", ended.out);
    assert!(ended.out.contains(" held, not covered\n"), "{}", ended.out);
    let report = scene.json(words);
    assert_eq!(report["coverage"]["kinds"]["crash"]["injections"], 0);
    assert!(report["coverage"]["kinds"]["deliver"]["injections"].as_u64().unwrap() > 0);
    assert!(!report["coverage"]["holes"].as_array().unwrap().is_empty());
}
