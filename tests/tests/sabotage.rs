//! What each deliberate bug changes in the golden scripts.
#![cfg(pinfold_mutants)]
#![allow(dead_code, clippy::unwrap_used)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pinfold_core::mutant::{Mutant, arm};

mod script;

use script::executor::run;
use script::reader::Script;

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scripts(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

#[test]
fn mutants_in_scripts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut paths = Vec::new();
    scripts(&root, &mut paths);
    let all: Vec<(String, Script)> = paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            (name, Script::read(&text).unwrap())
        })
        .collect();
    std::panic::set_hook(Box::new(|info| {
        PANICS.lock().unwrap().push(info.to_string().replace('\n', " "));
    }));
    let only = std::env::var("ONLY").ok();
    for mutant in [None].into_iter().chain(Mutant::ALL.map(Some)) {
        let name = mutant.map_or("none", Mutant::name);
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        arm(mutant);
        let (mut differ, mut faults, mut panics) = (vec![], vec![], vec![]);
        for (script_name, script) in &all {
            match catch_unwind(AssertUnwindSafe(|| run(script))) {
                Err(_) => {
                    let what = PANICS.lock().unwrap().pop().unwrap_or_default();
                    panics.push(format!("{script_name}: {what}"));
                }
                Ok(Err(fault)) => {
                    faults.push(format!("{script_name}:{}: {}", fault.line, fault.what))
                }
                Ok(Ok(observed)) => {
                    let expected: Vec<_> =
                        script.blocks.iter().map(|b| b.expected.clone()).collect();
                    if expected != observed.blocks {
                        differ.push(script_name.clone());
                    }
                }
            }
        }
        let i = mutant.map_or(String::new(), |m| m.invariant().to_string());
        println!(
            "{i} {name}: differ {} faults {} panics {}",
            differ.len(),
            faults.len(),
            panics.len()
        );
        for line in differ.iter().take(2).chain(faults.iter().take(3)) {
            println!("    {line}");
        }
        for line in panics {
            println!("    PANIC {line}");
        }
    }
    arm(None);
}
