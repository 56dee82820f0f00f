//! The hard caps of the house style, over every Rust file of the repository.
//!
//! Rules read *code*: the text with comments and the insides of literals blanked out, so that prose
//! may say what code may not. Each rule is a function from a file to its faults, and each has a
//! test on a bad sample, so that no rule can quietly stop seeing anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_FILE_LINES: usize = 800;
const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_PARAMETERS: usize = 5;

/// One Rust file, as the rules see it.
struct Source {
    /// Relative to the repository root, with `/` between parts.
    path: String,
    text: String,
    /// The text with comments and literals blanked: same lines, same columns.
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_string(), text: text.to_string(), code: blank(text) }
    }

    /// A fault at a 0-based line.
    fn fault(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

type Rule = fn(&Source) -> Vec<String>;

const RULES: [Rule; 9] = [
    file_length,
    line_width,
    function_length,
    parameter_count,
    function_names,
    type_names,
    module_names,
    unfinished_work,
    core_purity,
];

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    collect_rust_files(&root, &mut paths);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let name = path.strip_prefix(&root).expect("below the root").to_string_lossy();
        let name = name.replace('\\', "/");
        let source = Source::new(&name, &fs::read_to_string(&path).expect("a readable file"));
        faults.extend(RULES.iter().flat_map(|rule| rule(&source)));
        seen.insert(name);
    }
    let manifest = fs::read_to_string(root.join("core/Cargo.toml")).expect("core's manifest");
    faults.extend(no_features("core/Cargo.toml", &manifest));
    for known in ["core/src/lib.rs", "cli/src/main.rs", "tests/tests/tidy.rs"] {
        assert!(seen.contains(known), "the walk missed {known}");
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Every `*.rs` below a folder, without build outputs and hidden folders other than `.ci`.
fn collect_rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().expect("a name").to_string_lossy();
        let hidden = name.starts_with('.') && name != ".ci";
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            let built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !hidden && !built {
                collect_rust_files(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

// Rules.

fn file_length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= MAX_FILE_LINES {
        return Vec::new();
    }
    vec![source.fault(0, &format!("{lines} lines, more than {MAX_FILE_LINES}"))]
}

fn line_width(source: &Source) -> Vec<String> {
    let widths = source.text.lines().map(|line| line.chars().count()).enumerate();
    let wide = widths.filter(|(_, columns)| *columns > MAX_COLUMNS);
    let what = |columns| format!("{columns} columns, more than {MAX_COLUMNS}");
    wide.map(|(line, columns)| source.fault(line, &what(columns))).collect()
}

fn function_length(source: &Source) -> Vec<String> {
    let long = functions(&source.code).into_iter().filter(|f| f.lines > MAX_FUNCTION_LINES);
    let what = |f: &Function<'_>| {
        format!("fn {} has {} lines, more than {MAX_FUNCTION_LINES}", f.name, f.lines)
    };
    long.map(|f| source.fault(f.line, &what(&f))).collect()
}

fn parameter_count(source: &Source) -> Vec<String> {
    let wide = functions(&source.code).into_iter().filter(|f| f.parameters > MAX_PARAMETERS);
    let what = |f: &Function<'_>| {
        format!("fn {} has {} parameters, more than {MAX_PARAMETERS}", f.name, f.parameters)
    };
    wide.map(|f| source.fault(f.line, &what(&f))).collect()
}

fn function_names(source: &Source) -> Vec<String> {
    let named = functions(&source.code).into_iter().filter(|f| f.name.starts_with("get_"));
    named.map(|f| source.fault(f.line, &format!("fn {}: no get_", f.name))).collect()
}

fn type_names(source: &Source) -> Vec<String> {
    const BANNED: [&str; 8] =
        ["Manager", "Managers", "Helper", "Helpers", "Util", "Utils", "Impl", "Impls"];
    let mut faults = Vec::new();
    for keyword in ["struct", "enum", "trait", "union", "type"] {
        for (line, name) in declared(&source.code, keyword) {
            if camel_words(name).iter().any(|word| BANNED.contains(word)) {
                faults.push(source.fault(line, &format!("{keyword} {name}: an empty word")));
            }
        }
    }
    faults
}

fn module_names(source: &Source) -> Vec<String> {
    const BANNED: [&str; 4] = ["utils", "common", "types", "helpers"];
    let inside = declared(&source.code, "mod");
    let by_path = source.path.split('/').map(|part| (0, part.trim_end_matches(".rs")));
    let banned = inside.into_iter().chain(by_path).filter(|(_, name)| BANNED.contains(name));
    banned.map(|(line, name)| source.fault(line, &format!("module {name}: says nothing"))).collect()
}

fn unfinished_work(source: &Source) -> Vec<String> {
    // Split, so that this file does not find itself.
    let markers = [concat!("FIX", "ME"), concat!("XX", "X")];
    let mut faults = Vec::new();
    for (line, text) in source.text.lines().enumerate() {
        for marker in markers.into_iter().filter(|marker| has_word(text, marker)) {
            faults.push(source.fault(line, marker));
        }
    }
    for (line, code) in source.code.lines().enumerate() {
        for call in ["todo!", "unimplemented!"] {
            if has_word(code, call) {
                faults.push(source.fault(line, call));
            }
        }
    }
    faults
}

/// What must not stand in core's product code; and what must stand at its head.
fn core_purity(source: &Source) -> Vec<String> {
    const BANNED: [&str; 5] = ["HashMap", "HashSet", "f32", "f64", "std::"];
    const REQUIRED: [&str; 2] = ["#![no_std]", "#![forbid(unsafe_code)]"];
    if !source.path.starts_with("core/src/") {
        return Vec::new();
    }
    let mut faults = Vec::new();
    if source.path == "core/src/lib.rs" {
        let head: BTreeSet<&str> = source.code.lines().collect();
        let missing = REQUIRED.iter().filter(|attribute| !head.contains(*attribute));
        faults.extend(missing.map(|attribute| source.fault(0, &format!("needs {attribute}"))));
    }
    for (line, code) in without_tests(&source.path, &source.code).lines().enumerate() {
        for word in BANNED.into_iter().filter(|word| has_word(code, word)) {
            faults.push(source.fault(line, &format!("{word} in core")));
        }
        if has_float(code) {
            faults.push(source.fault(line, "a floating-point number in core"));
        }
    }
    faults
}

fn no_features(path: &str, manifest: &str) -> Vec<String> {
    let tables = manifest.lines().map(str::trim).enumerate();
    let found = tables.filter(|(_, line)| line.starts_with("[features") || *line == "[ features ]");
    found.map(|(line, _)| format!("{path}:{}: core has no features", line + 1)).collect()
}

// Reading code.

/// The text with comments and the insides of string and character literals replaced by spaces.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        let hide = |c: &char| if *c == '\n' { '\n' } else { ' ' };
        if end > at {
            out.extend(chars[at..end].iter().map(hide));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none begins there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    let after_word = at > 0 && is_word(chars[at - 1]);
    match chars[at] {
        '/' if next(1) == '/' => find(chars, at, |c, _| c == '\n').unwrap_or(chars.len()),
        '/' if next(1) == '*' => block_comment_end(chars, at),
        '"' => quoted_end(chars, at + 1, '"'),
        'r' if !after_word || chars[at - 1] == 'b' => raw_string_end(chars, at),
        '\'' if next(1) == '\\' => quoted_end(chars, at + 1, '\''),
        '\'' if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn find(chars: &[char], from: usize, stop: impl Fn(char, usize) -> bool) -> Option<usize> {
    (from..chars.len()).find(|at| stop(chars[*at], *at))
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') if depth == 1 => return at + 2,
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of `r"…"` or `r#"…"#` at `start`; `start` when it is only a name or a raw identifier.
fn raw_string_end(chars: &[char], start: usize) -> usize {
    let Some(quote) = find(chars, start + 1, |c, _| c != '#') else { return start };
    if chars[quote] != '"' {
        return start;
    }
    let hashes = quote - start - 1;
    let closes =
        |c: char, at: usize| c == '"' && (1..=hashes).all(|n| chars.get(at + n) == Some(&'#'));
    find(chars, quote + 1, closes).map_or(chars.len(), |at| at + 1 + hashes)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True where `word` stands in `line` and is not part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let open = word.ends_with(is_word) && line[at + word.len()..].starts_with(is_word);
        !line[..at].ends_with(is_word) && !open
    })
}

/// True for `1.5`; not for `1..5`, nor for the fields `pair.0.1`.
fn has_float(line: &str) -> bool {
    line.match_indices('.').any(|(at, _)| {
        let number = line[..at].rsplit(|c| !is_word(c)).next().unwrap_or("");
        let field = line[..at - number.len()].ends_with('.');
        let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        !field && digits(number) && digits(&line[at + 1..])
    })
}

/// The names that follow a keyword, with their 0-based lines.
fn declared<'a>(code: &'a str, keyword: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let mut words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if word == keyword {
                found.extend(words.clone().next().map(|name| (line, name)));
            }
        }
    }
    found
}

/// `HTTPPutHelper` as `H`, `T`, `T`, `P`…: each capital begins a word.
fn camel_words(name: &str) -> Vec<&str> {
    let mut starts: Vec<usize> =
        name.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect();
    starts.push(name.len());
    starts.windows(2).map(|pair| &name[pair[0]..pair[1]]).collect()
}

/// Core's code with its test modules blanked; nothing is left of a file that is one.
fn without_tests(path: &str, code: &str) -> String {
    if path.ends_with("/tests.rs") || path.contains("/tests/") {
        return String::new();
    }
    let mut out = String::new();
    let mut until: Option<String> = None;
    let mut marked = false;
    for line in code.lines() {
        if let Some(end) = &until {
            if line == end {
                until = None;
            }
        } else if marked && line.trim_end().ends_with('{') {
            let indent = line.len() - line.trim_start().len();
            until = Some(format!("{}}}", " ".repeat(indent)));
        } else {
            out.push_str(line);
        }
        out.push('\n');
        marked = line.trim() == "#[cfg(test)]";
    }
    out
}

// Functions.

struct Function<'a> {
    name: &'a str,
    /// 0-based.
    line: usize,
    /// From `fn` to the closing brace.
    lines: usize,
    /// Without `self`.
    parameters: usize,
}

/// Every function with a name, nested ones and those without a body too.
fn functions(code: &str) -> Vec<Function<'_>> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    starts.filter_map(|(at, _)| function(code, at)).collect()
}

fn function(code: &str, start: usize) -> Option<Function<'_>> {
    let rest = &code[start + 3..];
    let name = &rest[..rest.find(|c| !is_word(c))?];
    if name.is_empty() {
        return None;
    }
    let open = parameters_open(rest)?;
    let (parameters, close) = parameters(&rest[open..]);
    let body = &rest[open + close..];
    let lines = code[start..start + 3 + open + close + body_end(body)].lines().count();
    let line = code[..start].matches('\n').count();
    Some(Function { name, line, lines, parameters })
}

/// Where the parenthesis of the parameters opens: the first one outside of `<…>`.
fn parameters_open(signature: &str) -> Option<usize> {
    let mut angles = 0_i32;
    let mut before = ' ';
    for (at, c) in signature.char_indices() {
        match c {
            '(' if angles == 0 => return Some(at),
            '<' => angles += 1,
            '>' if before != '-' => angles -= 1,
            _ => {}
        }
        before = c;
    }
    None
}

/// How many parameters but `self` a list has, and where its parenthesis closes.
fn parameters(list: &str) -> (usize, usize) {
    let mut depth = 0_i32;
    let mut before = ' ';
    let mut parts = vec![String::new()];
    let mut close = list.len();
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            close = at + 1;
            break;
        }
        match (c, depth, parts.last_mut()) {
            (',', 1, _) => parts.push(String::new()),
            ('(', 1, _) | (_, _, None) => {}
            (_, _, Some(part)) => part.push(c),
        }
        before = c;
    }
    let counts = |part: &&String| {
        let name = part.split(':').next().unwrap_or("");
        !name.trim().is_empty() && !has_word(name, "self")
    };
    (parts.iter().filter(counts).count(), close)
}

/// The length from after the parameters to the brace that closes the body, or to the `;`.
fn body_end(rest: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in rest.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth -= 1;
                if depth == 0 && c == '}' {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

/// Each rule on a sample that breaks it and on one that does not.
mod samples {
    use super::*;

    fn faults(rule: Rule, text: &str) -> Vec<String> {
        rule(&Source::new("core/src/sample.rs", text))
    }

    #[test]
    fn files_are_at_most_800_lines() {
        assert_eq!(faults(file_length, &"\n".repeat(801)).len(), 1);
        assert!(faults(file_length, &"\n".repeat(800)).is_empty());
    }

    #[test]
    fn lines_are_at_most_100_columns_also_in_comments() {
        let long = format!("// {}", "é".repeat(98));
        assert_eq!(faults(line_width, &long), ["core/src/sample.rs:1: 101 columns, more than 100"]);
        assert!(faults(line_width, &format!("// {}", "é".repeat(97))).is_empty());
    }

    #[test]
    fn functions_are_at_most_70_lines() {
        let sized = |lines: usize| {
            let body = "        a(\"}\"); // }\n".repeat(lines - 2);
            format!("impl A {{\n    fn long() -> [u8; 4] {{\n{body}    }}\n}}\n")
        };
        let fault = "core/src/sample.rs:2: fn long has 71 lines, more than 70";
        assert_eq!(faults(function_length, &sized(71)), [fault]);
        assert!(faults(function_length, &sized(70)).is_empty());
    }

    #[test]
    fn functions_have_at_most_5_parameters_without_self() {
        let six =
            "fn f<F: Fn(u8, u8) -> u8>(a: A, b: [u8; 2], c: (u8, u8), d: M<K, V>, e: E, g: F);";
        assert_eq!(faults(parameter_count, six).len(), 1);
        let six_in_a_trait = "trait T {\n    fn f(&self, a: A, b: A, c: A, d: A, e: A, f: A);\n}";
        assert_eq!(faults(parameter_count, six_in_a_trait).len(), 1);
        for fine in [
            "fn f(&mut self, a: A, b: A, c: A, d: M<K, V>, e: fn(A, B) -> C,) {}",
            "fn f(a: &dyn Fn(A, B, C, D, E, F) -> G) -> M<A, B, C, D, E, F> { g(a, b, c, d, e) }",
        ] {
            assert!(faults(parameter_count, fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn functions_do_not_begin_with_get() {
        assert_eq!(faults(function_names, "pub(crate) const fn get_x() {}").len(), 1);
        assert!(faults(function_names, "fn target() { map.get_mut(1); } // fn get_x()").is_empty());
    }

    #[test]
    fn type_names_have_no_empty_words() {
        for bad in ["struct PinManager;", "pub enum HelperKind {}", "trait FooUtil {}"] {
            assert_eq!(faults(type_names, bad).len(), 1, "{bad}");
        }
        assert_eq!(faults(type_names, "type Utils = u8;\nstruct CatalogImpl;").len(), 2);
        for fine in ["struct Simple;", "enum Implied {}", "struct Utilization;", "// struct Impl"] {
            assert!(faults(type_names, fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn module_names_say_something() {
        assert_eq!(faults(module_names, "pub mod utils;\nmod common {\n}").len(), 2);
        assert_eq!(module_names(&Source::new("host/src/types.rs", "")).len(), 1);
        assert_eq!(module_names(&Source::new("tests/tests/helpers/mod.rs", "")).len(), 1);
        assert!(faults(module_names, "mod pin; use host::types_of_it;").is_empty());
    }

    #[test]
    fn nothing_is_left_unfinished() {
        assert_eq!(faults(unfinished_work, "fn f() { todo!() }").len(), 1);
        assert_eq!(faults(unfinished_work, "fn f() { unimplemented!(\"a\") }").len(), 1);
        assert_eq!(faults(unfinished_work, concat!("// FIX", "ME: later")).len(), 1);
        assert_eq!(faults(unfinished_work, concat!("/* XX", "X */")).len(), 1);
        assert!(faults(unfinished_work, "// no todo! here\nlet s = \"todo!\";").is_empty());
    }

    #[test]
    fn core_is_pure_outside_of_its_tests() {
        for bad in ["use std::fmt;", "let x: f32;", "fn f(x: f64) {}", "m: HashMap<K, V>,"] {
            assert_eq!(faults(core_purity, bad).len(), 1, "{bad}");
        }
        assert_eq!(faults(core_purity, "use alloc::HashSet;").len(), 1);
        assert_eq!(faults(core_purity, "let half = 0.5;").len(), 1);
        assert!(faults(core_purity, "for i in 0..5 { pair.0.1 + list[1].0 }").is_empty());
        assert!(
            faults(core_purity, "//! std::io\nlet a = \"f32\"; let f32x = my_std::A;").is_empty()
        );
        assert!(core_purity(&Source::new("host/src/lib.rs", "use std::fs;")).is_empty());
    }

    #[test]
    fn tests_in_core_may_use_std_and_what_follows_them_may_not() {
        let tests = "#[cfg(test)]\nmod tests {\n    use std::fmt;\n    fn f() {\n    }\n}\n";
        assert!(faults(core_purity, tests).is_empty());
        let after = format!("{tests}use std::fmt;\n");
        assert_eq!(faults(core_purity, &after), ["core/src/sample.rs:7: std:: in core"]);
        assert!(core_purity(&Source::new("core/src/a/tests.rs", "use std::fmt;")).is_empty());
    }

    #[test]
    fn core_declares_no_std_and_no_unsafe() {
        let lib = |text| core_purity(&Source::new("core/src/lib.rs", text));
        assert!(lib("#![no_std]\n#![forbid(unsafe_code)]\n").is_empty());
        assert_eq!(lib("#![no_std]\n").len(), 1);
        assert_eq!(lib("// #![no_std]\n#![forbid(unsafe_code)]\n").len(), 1);
        assert_eq!(lib("#![cfg_attr(not(test), no_std)]\n").len(), 2);
    }

    #[test]
    fn core_has_no_features() {
        assert_eq!(no_features("core/Cargo.toml", "[package]\n[features]\n").len(), 1);
        assert!(no_features("core/Cargo.toml", "[dependencies]\nx = { features = [] }").is_empty());
    }

    #[test]
    fn blanking_keeps_lines_and_columns_and_hides_literals() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"{", '{', '\'')"#, "f(      ,    ,     )"),
            ("r#\"a\"}\"# + br\"}\"", "         + b    "),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("let r#type = for r in x", "let r#type = for r in x"),
            ("\"a\n}\" b", "  \n   b"),
        ] {
            assert_eq!(blank(text), code, "{text}");
        }
    }
}
