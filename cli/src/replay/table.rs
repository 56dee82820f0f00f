//! The table of a replay, in at most 79 columns.

use std::io::{self, Write};

use pinfold_workload::report::Report;
use pinfold_workload::summary::summary;

/// The width of a note's text.
const NOTE: usize = 72;

pub(crate) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for section in summary(report) {
        writeln!(out, "{}", section.title)?;
        for row in section.rows {
            let line = format!("  {:<38} {:>16}", row.name, row.value);
            writeln!(out, "{}", line.trim_end())?;
            for line in wrapped(&row.note) {
                writeln!(out, "    {line}")?;
            }
        }
    }
    for text in report.violation_lines() {
        writeln!(out, "  ! {text}")?;
    }
    Ok(())
}

/// Lines of whole words.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= NOTE => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_string()),
        }
    }
    lines
}
