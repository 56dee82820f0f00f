//! Command lines as a shell takes them, so that what is shown can be run again.

/// The command line of this very program.
pub(crate) fn typed() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    let command: Vec<String> = std::iter::once("pinfold".to_string()).chain(words).collect();
    command.join(" ")
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
