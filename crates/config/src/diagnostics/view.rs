//! Lines of the source and of help, cut to the width of a screen and without control characters.

use crate::columns::{self, width};
use crate::span::Span;
use containerpilot_core::secrets::without_passwords;

/// Replaces control characters, so that no text can control a terminal or forge lines of a log.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// The same for help, which may have several lines.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { visible(c) }).collect()
}

fn visible(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        0x80..0xa0 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff => '\u{fffd}',
        _ => c,
    }
}

/// A line of the source, cut to the width of a screen, and the position of the caret.
pub(super) struct LineView {
    pub(super) text: String,
    pub(super) before: usize,
    pub(super) width: usize,
}

/// The width of a line, in columns.
const MAX_WIDTH: usize = 100;
/// The columns before the caret in a line that is cut.
const MAX_BEFORE: usize = 60;
/// The bytes around a place that are examined.
const MAX_BYTES: usize = 1000;

impl LineView {
    pub(super) fn new(source: &[u8], span: Span) -> Self {
        let Span { start, end } = span;
        let (start, end) = (start as usize, end as usize);
        let head = source.get(..start).unwrap_or_default();
        let line_start = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = source.get(start..).unwrap_or_default();
        let line_end = tail.iter().position(|byte| *byte == b'\n').map_or(source.len(), |at| start + at);
        let line = without_passwords(source.get(line_start..line_end).unwrap_or_default());
        let piece = |range: std::ops::Range<usize>| {
            let range = range.start - line_start..range.end.saturating_sub(line_start);
            String::from_utf8_lossy(line.get(range).unwrap_or_default()).into_owned()
        };
        let marked_end = end.clamp(start, line_end);
        let before = expand(&piece(line_start.max(start.saturating_sub(MAX_BYTES))..start));
        let marked = expand(piece(start..marked_end.min(start + MAX_BYTES)).trim_end_matches('\r'));
        let after = expand(piece(marked_end..line_end.min(marked_end + MAX_BYTES)).trim_end_matches('\r'));

        // A long line is cut around the place.
        let fits = width(&before) + width(&marked) + width(&after) <= MAX_WIDTH;
        let lead = columns::last(&before, if fits { MAX_WIDTH } else { MAX_BEFORE });
        let mut text = String::new();
        if lead != before {
            text.push('…');
        }
        text.push_str(lead);
        let column = width(&text);
        let rest_width = MAX_WIDTH.saturating_sub(column).max(20);
        let shown = columns::first(&marked, rest_width);
        let width = width(shown).max(1);
        text.push_str(shown);
        let is_whole = shown == marked && {
            let rest = columns::first(&after, rest_width.saturating_sub(width));
            text.push_str(rest);
            rest == after
        };
        if !is_whole {
            text.push('…');
        }
        Self { text: text.trim_end().to_owned(), before: column, width }
    }
}

/// Wraps a line of help.
pub(super) fn wrapped(line: &str) -> Vec<String> {
    columns::wrap(line.split(' '), MAX_WIDTH)
}

/// Replaces tabs by four spaces, and control characters.
fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            _ => out.push(visible(c)),
        }
    }
    out
}
