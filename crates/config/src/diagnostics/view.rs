//! A line as it fits on a screen, with nothing in it that could play tricks.

use crate::span::Span;
use unicode_width::UnicodeWidthChar;

/// Control characters as pictures, so that no text can play tricks on a terminal or forge lines of a log.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(picture).collect()
}

/// The same for advice, which may have several lines.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { picture(c) }).collect()
}

fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        0x80..0xa0 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff => '\u{fffd}',
        _ => c,
    }
}

/// A line of the source as it fits on a screen, and where the caret goes.
pub(super) struct LineView {
    pub(super) text: String,
    pub(super) before: usize,
    pub(super) width: usize,
}

const VIEW: usize = 100;
const LEAD: usize = 60;
/// How many bytes around a place are looked at: enough for a line of the widest characters.
const NEAR: usize = 1000;

impl LineView {
    pub(super) fn new(source: &[u8], span: Span) -> Self {
        let Span { start, end } = span;
        let (start, end) = (start as usize, end as usize);
        let head = source.get(..start).unwrap_or_default();
        let line_start = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = source.get(start..).unwrap_or_default();
        let line_end = tail.iter().position(|byte| *byte == b'\n').map_or(source.len(), |at| start + at);
        let piece = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(source.get(range).unwrap_or_default()).into_owned()
        };
        // Of a line of a megabyte only what is near can be shown, and only that is worth looking at.
        let marked_end = end.clamp(start, line_end);
        let before = expand(&piece(line_start.max(start.saturating_sub(NEAR))..start));
        let marked = expand(piece(start..marked_end.min(start + NEAR)).trim_end_matches('\r'));
        let after = expand(piece(marked_end..line_end.min(marked_end + NEAR)).trim_end_matches('\r'));

        // A line that fits is shown as it is; of a longer one, what is around the place.
        let fits = columns(&before) + columns(&marked) + columns(&after) <= VIEW;
        let (lead, cut) = last_columns(&before, if fits { VIEW } else { LEAD });
        let mut text = String::new();
        if cut {
            text.push('…');
        }
        text.push_str(lead);
        let column = columns(&text);
        let room = VIEW.saturating_sub(column).max(20);
        let (shown, cut) = first_columns(&marked, room);
        let width = columns(shown).max(1);
        text.push_str(shown);
        if cut {
            text.push('…');
        } else {
            let (rest, cut) = first_columns(&after, room.saturating_sub(width));
            text.push_str(rest);
            if cut {
                text.push('…');
            }
        }
        Self { text: text.trim_end().to_owned(), before: column, width }
    }
}

/// A line of help, in pieces that fit on a screen.
pub(super) fn wrapped(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let room = pieces.last().is_none_or(|piece| columns(piece) + columns(word.trim_end()) <= VIEW);
        match pieces.last_mut().filter(|_| room) {
            Some(piece) => piece.push_str(word),
            None => pieces.push(word.to_owned()),
        }
    }
    pieces.into_iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Tabs as four spaces, control characters as pictures.
fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            _ => out.push(picture(c)),
        }
    }
    out
}

fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn first_columns(text: &str, most: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += width(c);
        if used > most {
            return (text.get(..at).unwrap_or_default(), true);
        }
    }
    (text, false)
}

fn last_columns(text: &str, most: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += width(c);
        if used > most {
            return (text.get(at + c.len_utf8()..).unwrap_or_default(), true);
        }
    }
    (text, false)
}

/// The columns of a character on a terminal.
fn width(c: char) -> usize {
    c.width().unwrap_or(1)
}
