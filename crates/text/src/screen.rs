//! Tables and colours for people.

use containerpilot_config::columns;
use containerpilot_log_format::is_hidden;

/// The meaning of a text, shown by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Waiting,
    Bad,
    Faint,
}

/// What the output device can show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen {
    pub colour: bool,
    /// The number of columns; `None` if the output is not a terminal.
    pub width: Option<usize>,
}

impl Screen {
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let number = match tone {
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Good => 32,
            Tone::Waiting => 33,
            Tone::Bad => 31,
            Tone::Faint => 2,
        };
        format!("\x1b[{number}m{text}\x1b[0m")
    }
}

pub type Cell = (Tone, String);

/// The last column is at least this wide, or its texts follow below their rows.
const MIN_LAST: usize = 24;
const INDENT: usize = 4;

/// A table with a header line. A column that is empty in all rows is left out. If the screen is too narrow, the texts
/// of the last column are continued on further lines, and others are cut.
pub fn table(screen: Screen, heads: &[&str], rows: &[Vec<Cell>]) -> String {
    let used = |nth: usize| rows.iter().any(|row| row.get(nth).is_some_and(|(_, text)| !text.is_empty()));
    let columns: Vec<usize> = (0..heads.len()).filter(|nth| *nth == 0 || used(*nth)).collect();
    let cell = |row: &[Cell], nth: usize| {
        row.get(nth).map_or((Tone::Plain, String::new()), |(tone, text)| (*tone, sanitized(text)))
    };
    let head: Vec<Cell> = heads.iter().map(|head| (Tone::Faint, (*head).to_owned())).collect();
    let widths: Vec<usize> = columns
        .iter()
        .map(|nth| {
            std::iter::once(&head)
                .chain(rows)
                .map(|row| columns::width(&cell(row, *nth).1))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for (line, row) in std::iter::once(&head).chain(rows).enumerate() {
        let mut left = screen.width.unwrap_or(usize::MAX);
        let last = columns.iter().rposition(|nth| !cell(row, *nth).1.is_empty()).unwrap_or(0);
        for (place, (nth, width)) in columns.iter().zip(&widths).enumerate().take(last + 1) {
            let (tone, text) = cell(row, *nth);
            if line > 0 && *nth + 1 == heads.len() && columns::width(&text) > left {
                last_cell(&mut out, screen, left, tone, &text);
                break;
            }
            if left == 0 {
                continue;
            }
            let text = truncated(&text, left);
            left = left.saturating_sub(width + 2);
            let blanks = if place == last { 0 } else { (width + 2).saturating_sub(columns::width(&text)) };
            // Not by a width of the format: that has 16 bits.
            out.push_str(&screen.paint(tone, &text));
            out.push_str(&" ".repeat(blanks));
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// Writes a text that is wider than what is `left` of a line.
fn last_cell(out: &mut String, screen: Screen, left: usize, tone: Tone, text: &str) {
    let total = screen.width.unwrap_or(usize::MAX);
    let beside = left >= MIN_LAST;
    let indent = if beside { total - left } else { INDENT.min(total / 2) };
    for (nth, part) in wrapped(text, total.saturating_sub(indent)).iter().enumerate() {
        if nth > 0 || !beside {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&screen.paint(tone, part));
    }
}

/// Splits a text into lines of at most `max` columns, between words where possible.
fn wrapped(text: &str, max: usize) -> Vec<String> {
    columns::wrap(text.split(' ').flat_map(|word| columns::split(word, max)), max)
}

/// Replaces the characters that could move the cursor, change colours or reverse the writing direction.
pub fn sanitized(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Cuts a text to `max` columns, the last one being an ellipsis.
pub fn truncated(text: &str, max: usize) -> String {
    if columns::width(text) <= max {
        return text.to_owned();
    }
    let ellipsis = if max > 0 { "…" } else { "" };
    columns::first(text, max.saturating_sub(1)).to_owned() + ellipsis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_a_cell_of_any_length_is_shown() {
        let row = |name: String| vec![(Tone::Good, name), (Tone::Good, "z".to_owned())];
        let rows = ["x".repeat(70_000), "y".to_owned()].map(row);
        let shown = table(Screen::default(), &["NAME", "STATE"], &rows);
        assert!(shown.lines().all(|line| line.len() > 70_000), "{}", shown.len());
    }

    #[test]
    fn x4_a_table_fits_the_width_of_the_terminal_and_loses_no_note() {
        let row =
            |cells: &[&str]| cells.iter().map(|text| (Tone::Good, (*text).to_owned())).collect::<Vec<_>>();
        let rows = [row(&["a", "", "running", "waits for something"]), row(&["longer", "", "x", ""])];
        let heads = ["JOB", "EMPTY", "STATE", "NOTE"];
        let plain = table(Screen::default(), &heads, &rows);
        assert_eq!(plain, "JOB     STATE    NOTE\na       running  waits for something\nlonger  x\n");
        let narrow = table(Screen { colour: false, width: Some(24) }, &heads, &rows);
        assert_eq!(narrow, "JOB     STATE    NOTE\na       running\n    waits for something\nlonger  x\n");
        let long =
            [row(&["a", "", "running", "waiting until watch.database is healthy (no healthy instances)"])];
        let text = "JOB  STATE    NOTE\na    running  waiting until watch.database\n              is healthy (no healthy\n              instances)\n";
        assert_eq!(table(Screen { colour: false, width: Some(44) }, &heads, &long), text);
        let text = "JOB  STA…\na    run…\n    waiti\n    ng\n";
        assert!(table(Screen { colour: false, width: Some(9) }, &heads, &long).starts_with(text));
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a 漢字漢字 b", 5), ["a", "漢字", "漢字", "b"]);
        let wide = table(Screen::default(), &["A", "B"], &[row(&["漢字", "x"]), row(&["e\u{301}", "y"])]);
        assert_eq!(wide, "A     B\n漢字  x\ne\u{301}     y\n");
        assert_eq!(["漢字", "漢字", "ab"].map(|text| truncated(text, 3)), ["漢…", "漢…", "ab"]);
        let colour = table(Screen { colour: true, width: None }, &["A"], &[row(&["\x1b[0m\u{202e}x"])]);
        assert_eq!(colour, "\x1b[2mA\x1b[0m\n\x1b[32m\u{fffd}[0m\u{fffd}x\x1b[0m\n");
    }
}
