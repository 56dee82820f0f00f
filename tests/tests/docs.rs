//! The pages say what the code says: invariants by id and test, the README's example, links.

use std::fs;
use std::path::{Path, PathBuf};

use pinfold_core::catalog::Blocker;
use pinfold_core::id::{ConversationId, Incarnation, OpId, OwnerId, PinId, ShardIndex, TurnId};
use pinfold_core::invariant::Invariant;
use pinfold_core::outcome::TurnKey;

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
