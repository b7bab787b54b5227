//! Pages as text for a terminal.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use crate::markdown::{self, Block, Item, Link, inline};

/// Columns with longer texts are not narrower than this.
const MIN_COLUMN: usize = 12;
const GAP: usize = 2;

/// How a page is shown.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// The number of columns that lines of text may have. Lines of code are not broken.
    pub width: usize,
    /// Headings are bold. Otherwise they are underlined.
    pub bold: bool,
    /// What follows the text of a link.
    pub reference: &'a dyn Fn(&Link) -> String,
}

/// The text of a page.
#[must_use]
pub fn render(text: &str, style: Style<'_>) -> String {
    let mut out = String::new();
    blocks(&mut out, &markdown::blocks(text), style, 0);
    out
}

fn blocks(out: &mut String, blocks: &[Block], style: Style<'_>, indentation: usize) {
    for block in blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Heading(level, text) => heading(out, *level, &inline(text, style.reference), style),
            Block::Paragraph(text) => lines(out, &inline(text, style.reference), style, indentation),
            Block::Code(code) => {
                for line in code {
                    let blanks = if line.is_empty() { 0 } else { indentation + 4 };
                    let _ = writeln!(out, "{:blanks$}{line}", "");
                }
            }
            Block::List(items) => items.iter().for_each(|item| self::item(out, item, style, indentation)),
            Block::Table(rows) => {
                let cells =
                    |row: &Vec<String>| row.iter().map(|cell| inline(cell, style.reference)).collect();
                table(out, &rows.iter().map(cells).collect::<Vec<_>>(), style.width);
            }
        }
    }
}

fn heading(out: &mut String, level: usize, text: &str, style: Style<'_>) {
    if style.bold {
        let _ = writeln!(out, "\x1b[1m{text}\x1b[0m");
        return;
    }
    let _ = writeln!(out, "{text}");
    let line = match level {
        1 => "=",
        2 => "-",
        _ => "~",
    };
    let _ = writeln!(out, "{}", line.repeat(text.width()));
}

fn lines(out: &mut String, text: &str, style: Style<'_>, indentation: usize) {
    for line in wrapped(text, style.width.saturating_sub(indentation)) {
        let _ = writeln!(out, "{:indentation$}{line}", "");
    }
}

fn item(out: &mut String, item: &Item, style: Style<'_>, indentation: usize) {
    let inner = indentation + item.marker.len() + 1;
    let mut text = String::new();
    lines(&mut text, &inline(&item.text, style.reference), style, inner);
    let _ = write!(out, "{:indentation$}{} {}", "", item.marker, text.trim_start());
    blocks(out, &item.rest, style, inner);
}

/// A table that is as wide as its text, and at most `width`.
fn table(out: &mut String, rows: &[Vec<String>], width: usize) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |nth: usize| rows.iter().filter_map(move |row| row.get(nth)).map(String::as_str);
    let widest = |nth: usize| cells(nth).map(UnicodeWidthStr::width).max().unwrap_or_default();
    let longest = |nth: usize| cells(nth).flat_map(str::split_whitespace).map(UnicodeWidthStr::width).max();
    let natural: Vec<usize> = (0..columns).map(widest).collect();
    let words: Vec<usize> = (0..columns).map(|nth| longest(nth).unwrap_or_default()).collect();
    let Some(widths) = column_widths(&natural, &words, width) else { return records(out, rows, width) };
    let (head, body) = rows.split_at(1.min(rows.len()));
    let body: Vec<Vec<String>> = body.iter().map(|cells| row(cells, &widths)).collect();
    for line in head.iter().flat_map(|head| row(head, &widths)).filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{line}");
    }
    if head.iter().flatten().any(|cell| !cell.is_empty()) {
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let _ = writeln!(out, "{}", rules.join(&" ".repeat(GAP)));
    }
    // A blank line shows where a row begins.
    let apart = body.iter().any(|lines| lines.len() > 2);
    for (nth, lines) in body.iter().enumerate() {
        if apart && nth > 0 {
            out.push('\n');
        }
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
    }
}

/// The widths of the columns: each has room for its longest word, and the rest goes to those with the longest texts. `None` if
/// the words do not fit.
fn column_widths(natural: &[usize], words: &[usize], width: usize) -> Option<Vec<usize>> {
    let least = natural.iter().zip(words).map(|(natural, word)| (*word).max(MIN_COLUMN).min(*natural));
    let mut widths: Vec<usize> = least.collect();
    let used = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    for _ in 0..width.checked_sub(used)? {
        let narrow = widths.iter_mut().zip(natural).filter(|(width, natural)| **width < **natural);
        let Some((tallest, _)) = narrow.max_by_key(|(width, natural)| *natural * 100 / **width) else {
            break;
        };
        *tallest += 1;
    }
    Some(widths)
}

/// The lines of a row.
fn row(cells: &[String], widths: &[usize]) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |nth: usize| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let text = cell.get(nth).map_or("", String::as_str);
            let blanks = width.saturating_sub(text.width()) + GAP;
            let _ = write!(line, "{text}{:blanks$}", "");
        }
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// A table for a narrow terminal: the first cell of each row, and below it the others with their heads.
fn records(out: &mut String, rows: &[Vec<String>], width: usize) {
    let Some((head, rows)) = rows.split_first() else { return };
    for (nth, row) in rows.iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        for (column, (head, cell)) in
            head.iter().zip(row).enumerate().filter(|(_, (_, cell))| !cell.is_empty())
        {
            // The head of a second column says little.
            let text = if column == 0 || row.len() == 2 || head.is_empty() {
                cell.clone()
            } else {
                format!("{head}: {cell}")
            };
            let indentation = if column == 0 { 0 } else { 2 };
            for line in wrapped(&text, width.saturating_sub(indentation)) {
                let _ = writeln!(out, "{:indentation$}{line}", "");
            }
        }
    }
}

/// The lines of a text, broken between words. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
