//! The pages say what the code says: invariants by id and test, the README's example, links.

use std::fs;
use std::path::{Path, PathBuf};

use pinfold_core::catalog::Blocker;
use pinfold_core::id::{ConversationId, Incarnation, OpId, OwnerId, PinId, ShardIndex, TurnId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::TurnKey;
use pinfold_sim::coverage::effect;
use pinfold_sim::judges::Bench;
use pinfold_sim::script::Script;
use pinfold_sim::script::world::{read as read_choice, replay, setup_of};
use pinfold_sim::swarm::Mix;
use pinfold_sim::violation::Judge;
use pinfold_sim::world::Kind;
use pinfold_sim::world::choice::Choice;
use pinfold_sim::world::setup::Setup;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a folder with one of these endings; build folders are left out.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut folders = vec![root()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != ".git" {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Every promise has one row, in the enum's order, and names tests that exist.
#[test]
fn invariants_page_fits_the_enum_and_the_tests() {
    let page = read("docs/invariants.md");
    let sources: Vec<String> =
        files(&[".rs"]).iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let mut ids = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| I") || line.starts_with("| L")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        ids.push(cells[0].trim_start_matches("| ").to_string());
        let tests: Vec<&str> = quoted(cells.last().expect("a last cell")).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            let exists = if test.contains('/') {
                root().join(test).exists()
            } else {
                sources.iter().any(|source| source.contains(&format!("fn {test}(")))
            };
            assert!(exists, "{}: there is no test {test}", cells[0]);
        }
    }
    let all: Vec<String> = Invariant::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(ids, all);
}

/// The protocol's own table has the same ids.
#[test]
fn protocol_page_has_every_invariant() {
    let page = read("docs/protocol.md");
    for invariant in Invariant::ALL {
        assert!(page.contains(&format!("| {invariant} |")), "{invariant}");
    }
}

/// The README's host is the one that compiles as a documentation test, line by line.
#[test]
fn readme_example_is_the_documentation_test() {
    let readme = read("README.md");
    let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let host = read("core/src/host.rs");
    let compiled: Vec<&str> =
        host.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim).collect();
    for line in example.expect("an example").lines().filter(|line| !line.trim().is_empty()) {
        assert!(compiled.contains(&line.trim()), "not compiled: {line}");
    }
}

/// Links between pages lead somewhere.
#[test]
fn links_between_pages_lead_somewhere() {
    for page in files(&[".md"]) {
        let text = fs::read_to_string(&page).expect("a readable page");
        let above = page.parent().expect("a folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let local = !target.is_empty() && !target.contains("://");
            assert!(!local || above.join(target).exists(), "{}: {link}", page.display());
        }
    }
}

/// One blocker of each kind, in the order of an answer.
fn blockers() -> Vec<Blocker> {
    let op = OpId { owner: OwnerId::default(), incarnation: Incarnation(1), sequence: 1 };
    let pin = PinId { op, place: 0 };
    let turn = TurnKey { conversation: ConversationId::default(), turn: TurnId::default() };
    let all = vec![
        Blocker::Retained { turn },
        Blocker::Unscoped,
        Blocker::Pinned { pin, save: true },
        Blocker::WaitingForShard { shard: ShardIndex(0) },
        Blocker::InFlight { pin, shard: None },
        Blocker::InDoubt { pin },
        Blocker::Collectable,
        Blocker::Collecting { left: 1, refused: Vec::new() },
        Blocker::Quarantined { objects: Vec::new() },
        Blocker::Lost,
    ];
    assert!(all.is_sorted(), "the order of an answer");
    let names: Vec<_> = all.iter().map(Blocker::name).collect();
    assert_eq!(names, Blocker::NAMES);
    all
}

/// `docs/verbs.md` says of each blocker how it is lifted, and by whom.
#[test]
fn the_table_of_blockers_is_true() {
    let mut table = String::from("| blocker | how it is lifted | who may |\n|---|---|---|\n");
    for blocker in blockers() {
        let (name, lift) = (blocker.name(), blocker.lift());
        table += &format!("| {name} | {lift} | {} |\n", lifters(&blocker));
    }
    agrees("docs/verbs.md", "blockers", &table);
}

/// `docs/operating.md` says the same to an operator, and what each blocker means.
#[test]
fn the_table_for_operators_is_true() {
    let page = read("docs/operating.md");
    let meaning = |name: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} | ")));
        let cells: Vec<&str> = row.unwrap_or_default().split(" | ").collect();
        assert_eq!(cells.len(), 4, "a row for {name} with what it means, who may lift it, and how");
        cells[1]
    };
    let mut table = String::from("| blocker | what it means | who | how |\n|---|---|---|---|\n");
    for blocker in blockers() {
        let (name, lift) = (blocker.name(), blocker.lift());
        let who = lifters(&blocker);
        let who = if who.is_empty() { "nobody" } else { &who };
        table += &format!("| {name} | {} | {who} | {lift} |\n", meaning(name));
    }
    agrees("docs/operating.md", "blockers", &table);
}

fn lifters(blocker: &Blocker) -> String {
    let names: Vec<_> = blocker.lifters().iter().map(|lifter| lifter.name()).collect();
    names.join(", ")
}

/// The cell of a page's table that a person writes: the one behind this row's first cell.
fn written(page: &str, first: &str, place: usize) -> String {
    let row = page.lines().find(|line| line.starts_with(&format!("| {first} | ")));
    let row = row.unwrap_or_else(|| panic!("no row begins with | {first} |"));
    row.split(" | ").nth(place).unwrap_or_default().trim_end_matches(" |").to_string()
}

/// The choice that a line of a script names, in a World that has two of everything.
fn choice(line: &str) -> Choice {
    let script = format!("# {line}\nworld operators=2 shards=2 endpoints=4\n\n{line}\n");
    let script = Script::read(&script).unwrap_or_else(|fault| panic!("{line}: {fault}"));
    let setup = setup_of(&script.header).expect("a header");
    let command = &script.blocks[0].commands[0];
    read_choice(&setup, command).unwrap_or_else(|fault| panic!("{line}: {fault}"))
}

/// Whether a proof is true, no line says: both kinds of it are written alike. Who pretends sends
/// what an operator sends.
fn is_written_as(kind: Kind, line: &str) -> bool {
    if kind == Kind::Pretend {
        return matches!(choice(line), Choice::Tell(0, act) if Kind::is_for_operators(act));
    }
    let alike = match kind {
        Kind::FalseSettle => Kind::ProvenSettle,
        Kind::FalseFence => Kind::ProvenFence,
        kind => kind,
    };
    Kind::of(choice(line)) == alike
}

/// `docs/simulation.md` has every kind of choice, in the simulator's own words; the lines of a
/// script beside it are of that kind.
#[test]
fn the_tables_of_kinds_are_true() {
    let page = read("docs/simulation.md");
    let row = |kind: Kind| {
        let name = format!("`{}`", kind.name());
        let lines = written(&page, &name, 2);
        assert!(quoted(&lines).next().is_some(), "no line of a script for {name}");
        for line in quoted(&lines) {
            assert!(is_written_as(kind, line), "{name}: {line} is {:?}", Kind::of(choice(line)));
        }
        format!("| {name} | {} | {lines} | {} |", kind.about(), effect::words(kind))
    };
    let head = "| knob | what happens | as a line of a script | it made a difference when |";
    let calm = Mix::calm();
    let mut steps = format!("{head} usual weight |\n|---|---|---|---|---|\n");
    for kind in Kind::ordinary() {
        steps += &format!("{} {} |\n", row(kind), calm.of(kind));
    }
    agrees("docs/simulation.md", "steps", &steps);
    let mut faults = format!("{head}\n|---|---|---|---|\n");
    for kind in Kind::faults() {
        faults += &format!("{}\n", row(kind));
    }
    agrees("docs/simulation.md", "faults", &faults);
}

/// The header's table has the usual values and the bounds that a header is read with.
#[test]
fn the_table_of_sizes_is_true() {
    let page = read("docs/simulation.md");
    let table = between(&page, "sizes");
    let setup = |option: &str, value: &str| {
        let text = format!("# {option}\nworld {option}={value}\n\nsync\n");
        Script::read(&text).and_then(|script| setup_of(&script.header))
    };
    let mut seen = 0;
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, option, from, to, usual, ..] = cells[..] else { panic!("{row}") };
        let option = option.trim_matches('`');
        assert_eq!(setup(option, usual), Ok(Setup::default()), "{row}");
        for bound in [from, to].into_iter().filter(|bound| !bound.is_empty()) {
            assert!(setup(option, bound).is_ok(), "{row}: {bound}");
        }
        for (bound, beyond) in [(from, -1_i64), (to, 1)] {
            let outside = bound.parse::<i64>().map(|bound| bound + beyond);
            assert!(!outside.is_ok_and(|it| setup(option, &it.to_string()).is_ok()), "{row}");
        }
        seen += 1;
    }
    assert!(seen > 9, "{table}");
}

/// Each script of a World on the page goes as it says.
#[test]
fn the_scripts_on_the_page_hold() {
    let page = read("docs/simulation.md");
    let blocks = page.split("```\n").skip(1).step_by(2);
    let scripts: Vec<&str> = blocks.filter(|text| text.contains("\nworld ")).collect();
    assert!(!scripts.is_empty(), "the page shows a script");
    for text in scripts {
        let script = Script::read(text).unwrap_or_else(|fault| panic!("{fault}:\n{text}"));
        let replayed = replay(&script, Bench::ALL, &mut ()).expect("a script of a World");
        assert_eq!((&replayed.found, replayed.is_as_expected()), (&None, true), "{replayed:?}");
    }
}

/// A deliberate bug as its source says it: its words, its name, and the promise that it breaks.
struct Bug {
    about: String,
    name: String,
    promise: String,
}

/// The deliberate bugs, from the source: this build has none of them.
fn bugs() -> Vec<Bug> {
    let source = read("core/src/mutant.rs");
    let (_, variants) = source.split_once("pub enum Mutant {\n").expect("the enum");
    let (variants, rest) = variants.split_once("\n}\n").expect("its end");
    let (mut abouts, mut about) = (Vec::new(), Vec::new());
    for line in variants.lines().map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(words) => about.push(words),
            None => abouts.push((line.trim_end_matches(','), std::mem::take(&mut about))),
        }
    }
    let rows = rest.lines().filter_map(|line| line.trim().strip_prefix("(Mutant::"));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), abouts.len(), "a row for each variant");
    let bug = |(row, (variant, about)): (&str, (&str, Vec<&str>))| {
        let parts: Vec<&str> = row.split(", ").collect();
        assert_eq!(parts[0], variant, "the rows are in the enum's order");
        let promise = parts[2].trim_start_matches("Invariant::").trim_end_matches("),");
        let name = parts[1].trim_matches('"').to_string();
        Bug { about: about.join(" "), name, promise: promise.to_string() }
    };
    rows.into_iter().zip(abouts).map(bug).collect()
}

/// `docs/invariants.md` has every deliberate bug behind the promise that it breaks, and names the
/// judges that see it.
#[test]
fn the_table_of_mutants_is_true() {
    let page = read("docs/invariants.md");
    let head = "| mutant | promise | what is wrong | seen by |";
    let mut table = format!("{head}\n|---|---|---|---|\n");
    let mut unbroken = Invariant::ALL.map(|invariant| invariant.to_string()).to_vec();
    for Bug { about, name, promise } in bugs() {
        let judges = written(&page, &format!("`{name}`"), 3);
        for judge in judges.split(", ") {
            let known = Judge::ALL.iter().any(|it| it.name() == judge);
            assert!(known, "{name}: {judge:?} is no judge");
        }
        unbroken.retain(|invariant| *invariant != promise);
        table += &format!("| `{name}` | {promise} | {about} | {judges} |\n");
    }
    assert!(unbroken.is_empty(), "no mutant breaks {unbroken:?}");
    agrees("docs/invariants.md", "mutants", &table);
}

/// The table of configurations has every one, with its pinned size.
#[test]
fn the_table_of_configurations_is_true() {
    let mut table =
        "| name | set | states | transitions | depth | what it is about |\n".to_string();
    table += "|---|---|---:|---:|---:|---|\n";
    for it in pinfold_model_check::named::all() {
        let size = it.pinned.map_or("| | |".to_string(), |size| {
            let [states, transitions] = [size.states, size.transitions].map(grouped);
            format!("{states} | {transitions} | {} |", size.depth)
        });
        let set = it.tier.name();
        table += &format!("| `{}` | {set} | {size} {} |\n", it.name, it.about);
    }
    agrees("docs/results/model-check.md", "configurations", &table);
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// What stands between a page's marks.
fn between<'a>(page: &'a str, mark: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<!-- {mark} -->\n")).expect("the mark");
    rest.split_once(&format!("<!-- end of {mark} -->")).expect("the end").0
}

/// The table between a page's marks is this one; `UPDATE_EXPECT=1` makes it so.
fn agrees(path: &str, mark: &str, table: &str) {
    let page = read(path);
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let (before, rest) = page.split_once(&begin).expect("the mark of the table");
    let (found, after) = rest.split_once(&end).expect("the table's end");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let page = format!("{before}{begin}{table}{end}{after}");
        fs::write(root().join(path), page).expect("a writable page");
        return;
    }
    assert_eq!(found, table, "UPDATE_EXPECT=1 rewrites it");
}
