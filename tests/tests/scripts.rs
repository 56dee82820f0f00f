//! Runs every golden script below `scripts/`, and asks that together they observe every answer.
//!
//! `UPDATE_EXPECT=1` writes what was observed into the scripts: read the difference before you
//! commit it. The table of `docs/verbs.md` is what they observe, verb by verb.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pinfold_core::outcome::{Limit, Outcome, Rejection};
use pinfold_sim::script::Script;
use pinfold_sim::script::bench::run;

#[path = "scripts/corpus.rs"]
mod corpus;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// Every script, with its path below the root.
fn scripts() -> Vec<(String, String)> {
    let mut folders = vec![root()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                let name = path
                    .strip_prefix(root())
                    .expect("below the root")
                    .to_string_lossy()
                    .replace('\\', "/");
                found.push((name, fs::read_to_string(&path).expect("a readable script")));
            }
        }
    }
    found.sort();
    found
}

/// What is wrong with one script, if anything is.
fn judge(name: &str, text: &str, update: bool) -> Result<(), String> {
    let at = |line: usize, what: &str| format!("tests/scripts/{name}:{line}: {what}");
    let script = Script::read(text).map_err(|fault| at(fault.line, &fault.what))?;
    let outputs = run(&script).map_err(|fault| at(fault.line, &fault.what))?.blocks;
    if let Some(place) = outputs.iter().position(Vec::is_empty) {
        return Err(at(script.blocks[place].expected_at, "this block observes nothing"));
    }
    if update {
        let path = root().join(name);
        let beside = path.with_extension("new");
        fs::write(&beside, script.with_outputs(&outputs)).expect("a writable folder");
        fs::rename(beside, path).expect("a writable folder");
        return Ok(());
    }
    let mut differences = Vec::new();
    for (block, observed) in script.blocks.iter().zip(&outputs) {
        if block.expected != *observed {
            let mut text = at(block.expected_at, "observed something else");
            let lines = |sign: char, lines: &[String]| {
                lines.iter().map(|line| format!("\n  {sign} {line}")).collect::<String>()
            };
            text += &lines('-', &block.expected);
            text += &lines('+', observed);
            differences.push(text);
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

#[test]
fn every_script_observes_what_it_expects() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let scripts = scripts();
    assert!(!scripts.is_empty(), "no scripts");
    let faults: Vec<_> =
        scripts.iter().filter_map(|(name, text)| judge(name, text, update).err()).collect();
    assert!(faults.is_empty(), "{} scripts failed:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_script_says_something_of_its_own() {
    let mut seen = BTreeSet::new();
    for (name, text) in scripts() {
        let about = Script::read(&text).unwrap().about;
        assert!(seen.insert(about), "{name}: its first line is another script's too");
    }
}

/// The names of an enum's variants, from its own refusal of a name that it has not.
fn variants<T: core::fmt::Debug>(refusal: serde_json::Result<T>) -> Vec<String> {
    let error = refusal.expect_err("no variant is named so").to_string();
    let (_, names) = error.split_once("expected").expect("a list of variants");
    let names: Vec<_> = names.split('`').skip(1).step_by(2).map(str::to_string).collect();
    assert!(names.len() > 10, "{error}");
    names
}

/// What all scripts expect.
fn observed() -> String {
    let expected = scripts().into_iter().flat_map(|(_, text)| {
        Script::read(&text)
            .expect("a good script")
            .blocks
            .into_iter()
            .flat_map(|block| block.expected)
    });
    expected.map(|line| line + "\n").collect()
}

#[test]
fn every_rejection_is_observed() {
    let observed = observed();
    let seen = |name: &String| {
        let text = format!("refused: {name}");
        observed.contains(&format!("{text}\n")) || observed.contains(&format!("{text},"))
    };
    let missing: Vec<_> = variants::<Rejection>(serde_json::from_str("\"?\""))
        .into_iter()
        .filter(|name| !seen(name))
        .collect();
    assert!(missing.is_empty(), "no script observes {missing:?}");
}

#[test]
fn every_limit_is_observed() {
    let observed = observed();
    let seen = |name: &String| {
        let limit: Limit = serde_json::from_value(name.as_str().into()).unwrap();
        // These two bound a policy and the receipts, not a command.
        let by_form = matches!(limit, Limit::Turns | Limit::Unanswered);
        by_form || observed.contains(&format!("LimitExceeded, {limit}: "))
    };
    let missing: Vec<_> = variants::<Limit>(serde_json::from_str("\"?\""))
        .into_iter()
        .filter(|name| !seen(name))
        .collect();
    assert!(missing.is_empty(), "no script observes {missing:?}");
}

#[test]
fn every_outcome_is_observed() {
    let observed = observed().to_lowercase();
    let shown = |name: &String| match name.as_str() {
        "AlreadyPublished" => "already published".to_string(),
        name => name.to_lowercase(),
    };
    let seen = |name: &String| observed.contains(&format!("-> {}", shown(name)));
    let missing: Vec<_> = variants::<Outcome>(serde_json::from_str("\"?\""))
        .into_iter()
        .filter(|name| !seen(name))
        .collect();
    assert!(missing.is_empty(), "no script observes {missing:?}");
}

/// Refusals that any command may meet: the checks that come before its own.
const ANY: [&str; 8] = [
    "Malformed",
    "WrongEpoch",
    "UnknownOwner",
    "OpConflict",
    "ReceiptForgotten",
    "Fenced",
    "StaleIncarnation",
    "UnknownIncarnation",
];

/// The table of verbs, from what the scripts observe.
fn verbs() -> String {
    let mut rows: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    let mut any = BTreeSet::new();
    for (name, text) in scripts() {
        let script = Script::read(&text).expect("a good script");
        let observed = run(&script).unwrap_or_else(|fault| panic!("{name}: {}", fault.what));
        for (verb, answer, is_refusal) in observed.answers {
            let (answers, refusals) = rows.entry(verb.clone()).or_default();
            // The operator's verbs about owners name others than the sender.
            let own = ["Register", "Fence", "Retire"].contains(&verb.as_str());
            if !is_refusal {
                answers.insert(answer);
            } else if ANY.contains(&answer.as_str()) && !own {
                any.insert(answer);
            } else {
                refusals.insert(answer);
            }
        }
    }
    let words = |names: &BTreeSet<String>| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(" ")
    };
    let mut table = String::from("| verb | answers | refusals |\n|---|---|---|\n");
    for (verb, (answers, refusals)) in &rows {
        table += &format!("| `{verb}` | {} | {} |\n", words(answers), words(refusals));
    }
    table + &format!("| any command | | {} |\n", words(&any))
}

/// `docs/verbs.md` says what the scripts observe: no more, no less.
#[test]
fn the_table_of_verbs_is_true() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/verbs.md");
    let text = fs::read_to_string(&page).expect("docs/verbs.md");
    let (before, rest) = text.split_once("<!-- verbs -->\n").expect("the mark of the table");
    let (table, after) = rest.split_once("<!-- end of verbs -->").expect("the table's end");
    let verbs = verbs();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = format!("{before}<!-- verbs -->\n{verbs}<!-- end of verbs -->{after}");
        fs::write(page, text).expect("a writable page");
        return;
    }
    assert_eq!(table, verbs, "UPDATE_EXPECT=1 rewrites it");
}
