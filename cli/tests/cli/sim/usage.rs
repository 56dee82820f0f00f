//! How bad usage is refused, and what the help says.

use crate::scene::Scene;

#[test]
fn bad_words_are_refused_with_what_is_wrong() {
    let scene = Scene::new();
    for (words, expected) in [
        ("--faults dupe=2%", "there is no fault or step named \"dupe\""),
        ("--faults dup=2%,crash", "\"crash\" is no knob"),
        ("--faults dup=200%", "dup is a fault: write off, or from 0.0001% to 100%"),
        ("--faults dup=3", "dup is a fault: write off, or from 0.0001% to 100%"),
        ("--faults save=2%", "save is a step: write a weight from 0 to 1000"),
        ("--faults save=1001", "save is a step: write a weight from 0 to 1000"),
        ("--faults dup=2%,dup=off", "--faults turns dup twice"),
        ("--seeds 5", "two whole numbers like 0..1000"),
        ("--seeds 5..5", "the second one larger"),
        ("--seeds 1..2 --seed 3", "cannot be used with"),
        ("--seed -1", "from 0 to 18446744073709551615"),
        ("--steps 0", "from 1 to 20000"),
        ("--jobs 0", "from 1 to 256"),
        ("--jobs 2 --meta", "cannot be used with"),
        ("--trace", "--trace shows one seed"),
        ("--seed 1 --trace --json", "cannot be used with"),
        ("--script a.txt --seed 1", "cannot be used with"),
    ] {
        scene.refuses(&format!("sim {words}"), 2, &[expected]);
    }
}

#[test]
fn the_help_has_examples_and_every_fault() {
    let scene = Scene::new();
    let short = scene.prints("sim -h");
    for text in ["Examples:\n", "pinfold sim --seed 7 --trace", "Exit codes:\n"] {
        assert!(short.contains(text), "{short}");
    }
    let long = scene.prints("sim --help");
    assert!(long.contains("Examples:\n"), "{long}");
    for name in ["dup ", "crash ", "put-lies ", "false-fence ", "save "] {
        assert!(long.contains(&format!("\n  {name}")), "{name}: {long}");
    }
}
