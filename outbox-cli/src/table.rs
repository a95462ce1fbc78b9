//! Plain text for people: columns that line up, and times.

use chrono::{DateTime, Utc};
use std::time::Duration;

/// Lines of cells; every column is as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn of(header: &[&str]) -> Self {
        Self { lines: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(crate) fn add(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.len() < 2
    }

    /// The table without a line end.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.lines[0].len()).map(width).collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A cell: control characters would move the cursor of a terminal, or worse.
pub(crate) fn cell(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The same, not longer than so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = cell(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Nothing is a dash.
pub(crate) fn maybe(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), cell)
}

pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

pub(crate) fn maybe_time(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "-".to_owned(), time)
}

/// `12 s`, `3 min`, `4 h`, `5 d`.
pub(crate) fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_control_characters_do_nothing() {
        let mut table = Table::of(&["ID", "NAME"]);
        table.add(vec!["1000".into(), cell("a\u{1b}[2Jb")]);
        assert_eq!(table.text(), "ID    NAME\n1000  a [2Jb");
        assert_eq!((short("abcdef", 4), short("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
    }
}
