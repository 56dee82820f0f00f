//! Who may depend on whom, kept over the manifests as cargo reads them.
//!
//! Each rule is a function from the metadata to its faults, with a test on a bad sample.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// What a crate may use of the workspace; a row may stand here before its crate does.
const ARROWS: [(&str, &[&str]); 9] = [
    ("pinfold-core", &[]),
    ("pinfold-host", &["pinfold-core"]),
    ("pinfold-http", &["pinfold-core", "pinfold-host"]),
    ("pinfold-sim", &["pinfold-core"]),
    ("pinfold-model-check", &["pinfold-core", "pinfold-sim"]),
    ("pinfold-cusim", &[]),
    ("pinfold-gpu", &["pinfold-core"]),
    ("pinfold-workload", &["pinfold-core", "pinfold-host", "pinfold-sim", "pinfold-gpu"]),
    ("pinfold-python", &["pinfold-core", "pinfold-host", "pinfold-http"]),
];

/// What a crate's own tests may use beside that.
const ARROWS_OF_TESTS: [(&str, &str); 2] =
    [("pinfold-core", "pinfold-sim"), ("pinfold-gpu", "pinfold-cusim")];

/// The crates that may use every other: the product's binary and the whole-system tests.
const FREE: [&str; 2] = ["pinfold", "pinfold-tests"];

const CORE_USES: [&str; 5] = ["blake3", "crc", "postcard", "serde", "thiserror"];

#[test]
fn the_arrows_hold() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() >= 5, "cargo lists every member");
    let mut faults = arrows(&metadata);
    faults.extend(core_dependencies(&metadata));
    faults.extend(default_members(&metadata));
    for package in packages {
        let path = package["manifest_path"].as_str().expect("a path");
        faults.extend(from_the_table(path, &fs::read_to_string(path).expect("a manifest")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// (package, dependency, kind); the kind is `normal`, `dev` or `build`.
fn dependencies(metadata: &Value) -> BTreeSet<(&str, &str, &str)> {
    let mut found = BTreeSet::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let kind = dependency["kind"].as_str().unwrap_or("normal");
            found.insert((name, dependency["name"].as_str().expect("a name"), kind));
        }
    }
    found
}

/// Every dependency on a member, of whatever kind, must be an arrow.
fn arrows(metadata: &Value) -> Vec<String> {
    let allowed = BTreeMap::from(ARROWS);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let members: BTreeSet<&str> = packages.filter_map(|package| package["name"].as_str()).collect();
    let known = |name: &&str| allowed.contains_key(*name) || FREE.contains(name);
    let unknown = members.iter().filter(|name| !known(name));
    let mut faults: Vec<String> = unknown.map(|name| format!("{name} has no row")).collect();
    for (from, to, kind) in dependencies(metadata) {
        let of_tests = kind == "dev" && ARROWS_OF_TESTS.contains(&(from, to));
        let arrow = of_tests || allowed.get(from).is_some_and(|may| may.contains(&to));
        if members.contains(to) && !arrow && !FREE.contains(&from) {
            faults.push(format!("{from} -> {to} ({kind}) is no arrow"));
        }
    }
    faults
}

/// The core's dependencies are exactly the five, without their default features, and always on.
fn core_dependencies(metadata: &Value) -> Vec<String> {
    let all = dependencies(metadata);
    let core = all.iter().filter(|(from, _, kind)| *from == "pinfold-core" && *kind != "dev");
    let used: Vec<&str> = core.map(|(_, to, _)| *to).collect();
    let mut faults = Vec::new();
    if used != CORE_USES {
        faults.push(format!("pinfold-core uses {used:?}, not {CORE_USES:?}"));
    }
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages.filter(|package| package["name"] == "pinfold-core") {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let plain = dependency["optional"] == false && dependency["target"].is_null();
            let bare = dependency["uses_default_features"] == false;
            if dependency["kind"].is_null() && !(plain && bare) {
                faults.push(format!("pinfold-core uses {} in a special way", dependency["name"]));
            }
        }
    }
    faults
}

/// `cargo run` at the root runs the product.
fn default_members(metadata: &Value) -> Vec<String> {
    let ids: Vec<&Value> =
        metadata["workspace_default_members"].as_array().into_iter().flatten().collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let defaults = packages.filter(|package| ids.contains(&&package["id"]));
    let names: Vec<&str> = defaults.filter_map(|package| package["name"].as_str()).collect();
    if names == ["pinfold"] {
        return Vec::new();
    }
    vec![format!("the default members are {names:?}, not the product alone")]
}

/// Every dependency takes its version from the workspace's table.
fn from_the_table(path: &str, manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut inside = false;
    for (line, text) in manifest.lines().map(str::trim).enumerate() {
        let fault = || format!("{path}:{}: not from the workspace's table: {text}", line + 1);
        if text.starts_with('[') {
            let header = text.trim_matches(['[', ']']);
            inside = header.ends_with("dependencies");
            if header.contains("dependencies.") {
                faults.push(fault());
            }
        } else if inside && !text.is_empty() && !text.starts_with('#') {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let short = name.trim().ends_with(".workspace") && value.trim() == "true";
            let long = value.trim().starts_with("{ workspace = true");
            if !short && !long {
                faults.push(fault());
            }
        }
    }
    faults
}

/// The two lines that may name the deliberate bugs: the lint's, and the one of the alias.
const MUTANT_LINES: [(&str, &str); 2] = [
    ("Cargo.toml", r#"unexpected_cfgs = { level = "warn", check-cfg = ["cfg(pinfold_mutants)"] }"#),
    (
        ".cargo/config.toml",
        r#""--config", "target.'cfg(all())'.rustflags=['--cfg','pinfold_mutants']","#,
    ),
];

#[test]
fn only_the_alias_builds_with_mutants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    collect_build_files(&root, &mut paths);
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).expect("below the root").to_string_lossy();
        let name = name.replace('\\', "/");
        faults.extend(mutants(&name, &fs::read_to_string(&path).expect("a readable file")));
        seen.insert(name);
    }
    for known in ["Cargo.toml", "core/Cargo.toml", ".cargo/config.toml", "ci.sh", ".ci/run"] {
        assert!(seen.contains(known), "the walk missed {known}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Everything below a folder that says how something is built, without what was built.
fn collect_build_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let hidden = name.starts_with('.') && ![".ci", ".cargo"].contains(&&*name);
        let built = name == "target" || path.join("CACHEDIR.TAG").exists();
        if path.is_dir() && !path.is_symlink() && !hidden && !built {
            collect_build_files(&path, found);
        } else if ["Cargo.toml", "config.toml", "config", "build.rs", "ci.sh", "run"]
            .contains(&&*name)
            && path.is_file()
        {
            found.push(path);
        }
    }
}

/// No build but that of the alias `sabotage` has the deliberate bugs: cargo's configuration holds
/// aliases alone, and nothing else that a build reads names them.
fn mutants(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).enumerate();
    let fault = |(line, text): (usize, &str)| format!("{path}:{}: mutants: {text}", line + 1);
    let is_bad = |text: &str| {
        let table = path.starts_with(".cargo/") && text.starts_with('[') && text != "[alias]";
        table || text.contains("pinfold_mutants") && !MUTANT_LINES.contains(&(path, text))
    };
    lines.filter(|(_, text)| is_bad(text)).map(fault).collect()
}

/// A build without them says so and fails, rather than to report that nothing was found.
#[cfg(not(pinfold_mutants))]
#[test]
fn sabotage_needs_its_alias() {
    let output = Command::new(env!("CARGO_BIN_EXE_sabotage")).arg("--list").output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cargo sabotage"));
    assert!(output.stdout.is_empty());
}

/// Each rule on a sample that breaks it and on one that does not.
mod samples {
    use super::*;

    fn package(name: &str, uses: &[(&str, Value)]) -> Value {
        let dependency = |(name, kind): &(&str, Value)| {
            json!({
                "name": name, "kind": kind, "optional": false, "target": null,
                "uses_default_features": false,
            })
        };
        let uses: Vec<Value> = uses.iter().map(dependency).collect();
        json!({ "name": name, "id": format!("id of {name}"), "dependencies": uses })
    }

    fn house(packages: &[Value]) -> Value {
        json!({ "packages": packages, "workspace_default_members": ["id of pinfold"] })
    }

    fn core() -> Value {
        package("pinfold-core", &CORE_USES.map(|name| (name, Value::Null)))
    }

    #[test]
    fn an_arrow_against_the_stream_is_seen_also_for_tests() {
        for kind in [Value::Null, json!("dev"), json!("build")] {
            let host = package("pinfold-host", &[]);
            let bad = house(&[package("pinfold-core", &[("pinfold-host", kind)]), host]);
            assert_eq!(arrows(&bad).len(), 1);
        }
        let sim = package("pinfold-sim", &[("pinfold-host", Value::Null)]);
        assert_eq!(arrows(&house(&[sim, package("pinfold-host", &[])])).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_seen() {
        assert_eq!(arrows(&house(&[package("pinfold-extra", &[])])), ["pinfold-extra has no row"]);
    }

    #[test]
    fn the_stand_in_driver_is_linked_by_tests_only() {
        let gpu = |kind| package("pinfold-gpu", &[("pinfold-cusim", kind)]);
        let cusim = package("pinfold-cusim", &[]);
        assert_eq!(arrows(&house(&[gpu(Value::Null), cusim.clone()])).len(), 1);
        assert!(arrows(&house(&[gpu(json!("dev")), cusim])).is_empty());
    }

    #[test]
    fn the_judges_are_linked_by_the_tests_of_core_only() {
        let core = |kind| package("pinfold-core", &[("pinfold-sim", kind)]);
        let sim = package("pinfold-sim", &[("pinfold-core", Value::Null)]);
        assert!(arrows(&house(&[core(json!("dev")), sim.clone()])).is_empty());
        for kind in [Value::Null, json!("build")] {
            assert_eq!(arrows(&house(&[core(kind), sim.clone()])).len(), 1);
        }
    }

    #[test]
    fn the_right_arrows_pass() {
        let host = package("pinfold-host", &[("pinfold-core", Value::Null)]);
        let cli = package("pinfold", &[("pinfold-core", Value::Null), ("clap", Value::Null)]);
        assert!(arrows(&house(&[core(), host, cli])).is_empty());
    }

    #[test]
    fn core_uses_exactly_five() {
        assert!(core_dependencies(&house(&[core()])).is_empty());
        let with = |name, kind| {
            let mut uses = CORE_USES.map(|name| (name, Value::Null)).to_vec();
            uses.push((name, kind));
            house(&[package("pinfold-core", &uses)])
        };
        assert_eq!(core_dependencies(&with("rand", Value::Null)).len(), 1);
        assert_eq!(core_dependencies(&with("cc", json!("build"))).len(), 1);
        assert!(core_dependencies(&with("proptest", json!("dev"))).is_empty());
        assert_eq!(core_dependencies(&house(&[package("pinfold-core", &[])])).len(), 1);
    }

    #[test]
    fn core_uses_them_plainly() {
        for (field, value) in [
            ("optional", json!(true)),
            ("target", json!("cfg(unix)")),
            ("uses_default_features", json!(true)),
        ] {
            let mut core = core();
            core["dependencies"][0][field] = value;
            assert_eq!(core_dependencies(&house(&[core])).len(), 1, "{field}");
        }
    }

    #[test]
    fn the_product_is_the_only_default_member() {
        let cli = package("pinfold", &[]);
        assert!(default_members(&house(&[core(), cli.clone()])).is_empty());
        let mut all = house(&[core(), cli]);
        all["workspace_default_members"] = json!(["id of pinfold", "id of pinfold-core"]);
        assert_eq!(default_members(&all).len(), 1);
    }

    #[test]
    fn mutants_anywhere_else_are_seen() {
        for (path, line) in MUTANT_LINES {
            assert!(mutants(path, &format!("    {line}\n")).is_empty());
            assert_eq!(mutants("core/Cargo.toml", line).len(), 1);
        }
        let flags = "RUSTFLAGS='--cfg pinfold_mutants' cargo test";
        assert_eq!(mutants("ci.sh", flags).len(), 1);
        assert_eq!(
            mutants("core/build.rs", "println!(\"cargo::rustc-cfg=pinfold_mutants\");").len(),
            1
        );
        assert!(mutants(".cargo/config.toml", "[alias]\nx = \"check\"\n").is_empty());
        assert_eq!(mutants(".cargo/config.toml", "[build]\nrustflags = []\n").len(), 1);
    }

    #[test]
    fn versions_stand_in_the_table_only() {
        let fine = "[package]\nversion = \"1\"\n\n[dependencies]\nserde.workspace = true\n\
                    crc = { workspace = true, features = [\"a\"] }\n# a note\n\n[lints]\na = 1\n";
        assert!(from_the_table("a", fine).is_empty());
        for bad in [
            "[dependencies]\nserde = \"1\"",
            "[dev-dependencies]\nserde = { version = \"1\" }",
            "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"",
            "[build-dependencies]\ncc = { path = \"../cc\" }",
            "[dependencies.serde]\nversion = \"1\"",
        ] {
            assert_eq!(from_the_table("a", bad).len(), 1, "{bad}");
        }
    }
}
