//! What a person sees: tables, colours, and times that can be read at a glance.

use std::fmt::Write;
use std::io::IsTerminal;

use crate::logs::is_hidden;
use crate::process::sys;

/// How something is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Waiting,
    Bad,
    Faint,
}

/// What standard output can show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Screen {
    pub(super) colour: bool,
    /// How many columns there are; nothing where no person looks.
    pub(super) width: Option<usize>,
}

impl Screen {
    /// Standard output as it is: only a terminal has colours and an edge.
    pub(super) fn of_stdout() -> Self {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Self::default();
        }
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colour, width: sys::terminal_width(&out) }
    }

    /// A text in a tone.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
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

/// A cell of a table.
pub(super) type Cell = (Tone, String);

/// A table below its heads: columns as wide as they must be, the last as long as it likes, or to the edge of the screen.
/// A column in which no row has anything is left out.
pub(super) fn table(screen: Screen, heads: &[&str], rows: &[Vec<Cell>]) -> String {
    let used = |nth: usize| rows.iter().any(|row| row.get(nth).is_some_and(|(_, text)| !text.is_empty()));
    let columns: Vec<usize> = (0..heads.len()).filter(|nth| *nth == 0 || used(*nth)).collect();
    let cell = |row: &[Cell], nth: usize| row.get(nth).cloned().unwrap_or((Tone::Plain, String::new()));
    let head: Vec<Cell> = heads.iter().map(|head| (Tone::Faint, (*head).to_owned())).collect();
    let widths: Vec<usize> = columns
        .iter()
        .map(|nth| std::iter::once(&head).chain(rows).map(|row| width(&cell(row, *nth).1)).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut left = screen.width.unwrap_or(usize::MAX);
        let last = columns.iter().rposition(|nth| !cell(row, *nth).1.is_empty()).unwrap_or(0);
        for (place, (nth, width)) in columns.iter().zip(&widths).enumerate().take(last + 1) {
            let (tone, text) = cell(row, *nth);
            let text = visible(&text);
            let text = cut(&text, left);
            left = left.saturating_sub(width + 2);
            let blanks = if place == last { 0 } else { (width + 2).saturating_sub(self::width(&text)) };
            let _ = write!(out, "{}{:blanks$}", screen.paint(tone, &text), "");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text in which nothing can move the cursor, change the colours or turn the direction of what stands beside it.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A time in its two largest parts, such as `3h12m`; below a minute with tenths, below a second in milliseconds.
pub(super) fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "0s".to_owned();
    }
    // Lossless enough: who counts the seconds of three hundred million years?
    let milliseconds =
        std::time::Duration::try_from_secs_f64(seconds).map_or(u128::MAX, |time| time.as_millis());
    let whole = milliseconds / 1000;
    match whole {
        0 => format!("{milliseconds}ms"),
        1..60 => {
            let tenths = milliseconds % 1000 / 100;
            if tenths == 0 || whole >= 10 { format!("{whole}s") } else { format!("{whole}.{tenths}s") }
        }
        60..3600 => format!("{}m{}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h{}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d{}h", whole / 86_400, whole % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_times_are_short() {
        for (seconds, text) in [
            (0.0, "0ms"),
            (0.0421, "42ms"),
            (1.0, "1s"),
            (9.96, "9.9s"),
            (59.9, "59s"),
            (61.0, "1m1s"),
            (11_520.0, "3h12m"),
            (200_000.0, "2d7h"),
            (-1.0, "0s"),
            (f64::INFINITY, "0s"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn x4_a_table_is_as_wide_as_it_must_be_and_ends_at_the_edge_of_a_terminal() {
        let row =
            |cells: &[&str]| cells.iter().map(|text| (Tone::Good, (*text).to_owned())).collect::<Vec<_>>();
        let rows = [row(&["a", "", "running", "waits for something"]), row(&["longer", "", "x", ""])];
        let heads = ["JOB", "EMPTY", "STATE", "NOTE"];
        let plain = table(Screen::default(), &heads, &rows);
        assert_eq!(plain, "JOB     STATE    NOTE\na       running  waits for something\nlonger  x\n");
        let narrow = table(Screen { colour: false, width: Some(24) }, &heads, &rows);
        assert_eq!(narrow, "JOB     STATE    NOTE\na       running  waits …\nlonger  x\n");
        let colour = table(Screen { colour: true, width: None }, &["A"], &[row(&["\x1b[0m\u{202e}x"])]);
        assert_eq!(colour, "\x1b[2mA\x1b[0m\n\x1b[32m\u{fffd}[0m\u{fffd}x\x1b[0m\n");
    }
}
