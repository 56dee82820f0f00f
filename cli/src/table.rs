//! What verbs print: tables for a person, one JSON object for a program.

use std::io::{BufWriter, ErrorKind, Write};

use serde::Serialize;

use crate::Failure;

/// Writes to standard output. Whoever closes it has read enough: that is no failure.
pub(crate) fn print(
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Incomplete(format!("the output cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// One JSON object in one line.
pub(crate) fn json(out: &mut dyn Write, view: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, view)?;
    writeln!(out)
}

/// A text without line ends or several blanks, as one cell or one comment line takes it.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rows under a title, and in columns that are as wide as they need to be.
pub(crate) struct Table {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// How many rows are left out.
    more: usize,
}

struct Column {
    name: &'static str,
    is_number: bool,
}

impl Table {
    /// A table of these columns; the name of one that holds numbers begins with `#`.
    pub(crate) fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        let column = |name: &&'static str| match name.strip_prefix('#') {
            Some(name) => Column { name, is_number: true },
            None => Column { name, is_number: false },
        };
        let columns = columns.iter().map(column).collect();
        Self { title: title.into(), columns, rows: Vec::new(), more: 0 }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The rows of a list that is cut to its first few.
    pub(crate) fn rows<T, const N: usize>(
        &mut self,
        all: &[T],
        top: usize,
        cells: impl Fn(&T) -> [String; N],
    ) {
        self.rows.extend(all.iter().take(top).map(|one| cells(one).into()));
        self.more += all.len().saturating_sub(top);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if self.rows.is_empty() && self.more == 0 {
            return writeln!(out, "{}: none", self.title);
        }
        writeln!(out, "{}", self.title)?;
        let named = self.columns.iter().any(|column| !column.name.is_empty());
        let head: Vec<String> = self.columns.iter().map(|column| column.name.into()).collect();
        let lines = named.then_some(&head).into_iter().chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|place| lines.clone().map(|line| line[place].chars().count()).max().unwrap_or(0))
            .collect();
        for line in lines {
            let mut text = String::new();
            for ((cell, width), column) in line.iter().zip(&widths).zip(&self.columns) {
                text += "  ";
                text += &match column.is_number {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(out, "  and {more} more; --top {} shows all", self.rows.len() + more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let mut table = Table::new("Things", &["name", "#bytes"]);
        assert_eq!(written(&table), "Things: none\n");
        table.rows(&[("a", 7), ("long", 1000), ("cut", 1)], 2, |(name, size)| {
            [(*name).into(), size.to_string()]
        });
        let text = "Things\n  name  bytes\n  a         7\n  long   1000\n  \
                    and 1 more; --top 3 shows all\n";
        assert_eq!(written(&table), text);
    }
}
