//! The width of text on a terminal, in columns: most characters take one, East Asian ones and emoji two, combining ones none.

use unicode_width::UnicodeWidthChar;

/// The columns of a text.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(of).sum()
}

/// The longest start of a text that has at most this many columns.
#[must_use]
pub fn first(text: &str, most: usize) -> &str {
    let mut used = 0;
    let too_wide = text.char_indices().find(|(_, c)| {
        used += of(*c);
        used > most
    });
    too_wide.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// The longest end of a text that has at most this many columns.
#[must_use]
pub fn last(text: &str, most: usize) -> &str {
    let mut used = 0;
    let too_wide = text.char_indices().rev().find(|(_, c)| {
        used += of(*c);
        used > most
    });
    too_wide.and_then(|(at, c)| text.get(at + c.len_utf8()..)).unwrap_or(text)
}

/// Splits a text into pieces of at most this many columns, each of at least one character. An empty text is one piece.
pub fn split(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let one = text.chars().next().map_or(0, char::len_utf8);
        let (piece, after) = text.split_at_checked(first(text, most).len().max(one))?;
        rest = Some(after).filter(|after| !after.is_empty());
        Some(piece)
    })
}

/// Puts words on lines of at most this many columns. A longer word has a line of its own.
pub fn wrap<'a>(words: impl Iterator<Item = &'a str>, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A control character counts as the one that is shown in its place.
fn of(c: char) -> usize {
    c.width().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c5_texts_are_cut_and_split_by_their_columns() {
        assert_eq!(["", "abc", "漢字", "e\u{301}", "\u{1b}"].map(width), [0, 3, 4, 1, 1]);
        assert_eq!(
            [0, 1, 2, 3, 9].map(|most| first("a漢e\u{301}b", most)),
            ["", "a", "a", "a漢", "a漢e\u{301}b"]
        );
        assert_eq!([0, 1, 2, 3, 9].map(|most| last("a漢b", most)), ["", "b", "b", "漢b", "a漢b"]);
        let pieces = |text: &'static str, most| split(text, most).collect::<Vec<_>>();
        assert_eq!(pieces("", 3), [""]);
        assert_eq!(pieces("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(pieces("漢字ab", 3), ["漢", "字a", "b"]);
        assert_eq!(pieces("漢字", 1), ["漢", "字"]);
        assert_eq!(pieces("ab", 0), ["a", "b"]);
        let lines = wrap("  漢字 a 漢字漢字 b  c".split(' '), 6);
        assert_eq!(lines, ["  漢字", "a", "漢字漢字", "b  c"]);
    }
}
