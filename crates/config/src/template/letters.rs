//! Characters: how bytes become runes in Go, and which runes are letters, digits or printable.

use crate::unicode::{self, Class};
use std::sync::LazyLock;

/// What an invalid byte counts as.
pub(super) const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The first rune of `bytes` and its width. An invalid byte is U+FFFD of width 1; the empty text has width 0.
pub(super) fn decode(bytes: &[u8]) -> (char, usize) {
    match bytes.first() {
        None => return (REPLACEMENT, 0),
        Some(&byte) if byte < 0x80 => return (char::from(byte), 1),
        Some(_) => {}
    }
    for width in 2..=4 {
        let Some(head) = bytes.get(..width) else { break };
        if let Ok(text) = std::str::from_utf8(head)
            && let Some(rune) = text.chars().next()
        {
            return (rune, width);
        }
    }
    (REPLACEMENT, 1)
}

/// Whether the rune that [`decode`] gave stands for a byte that is no UTF-8.
pub(super) fn is_invalid(rune: char, width: usize) -> bool {
    rune == REPLACEMENT && width == 1
}

/// The number of runes, invalid bytes counting one each.
pub(super) fn count(mut bytes: &[u8]) -> usize {
    let mut runes = 0;
    while !bytes.is_empty() {
        let (_, width) = decode(bytes);
        bytes = bytes.get(width..).unwrap_or_default();
        runes += 1;
    }
    runes
}

/// Appends a rune as UTF-8.
pub(super) fn push(out: &mut Vec<u8>, rune: char) {
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The text without Unicode white space at either end.
pub(super) fn trimmed(bytes: &[u8]) -> (usize, usize) {
    let mut start = 0;
    loop {
        let (rune, width) = decode(bytes.get(start..).unwrap_or_default());
        if width == 0 || !rune.is_whitespace() {
            break;
        }
        start += width;
    }
    let mut end = bytes.len();
    'shrink: while end > start {
        for width in 1..=4 {
            let Some(tail) = end.checked_sub(width).and_then(|from| bytes.get(from..end)) else { break };
            let (rune, taken) = decode(tail);
            if taken == width && !is_invalid(rune, taken) {
                if rune.is_whitespace() {
                    end -= width;
                    continue 'shrink;
                }
                break 'shrink;
            }
        }
        break;
    }
    (start, end)
}

/// Whether a name may contain it: a letter, a decimal digit or `_`.
pub(super) fn is_name(rune: char) -> bool {
    static CLASS: LazyLock<Class> = LazyLock::new(|| unicode::categories(&["L", "Nd"]));
    if rune.is_ascii() { rune.is_ascii_alphanumeric() || rune == '_' } else { CLASS.holds(rune) }
}

/// Whether Go prints it as it is: letters, marks, numbers, punctuation, symbols, and the plain space.
pub(super) fn is_print(rune: char) -> bool {
    static CLASS: LazyLock<Class> = LazyLock::new(|| unicode::categories(&["L", "M", "N", "P", "S"]));
    if rune.is_ascii() { (' '..='~').contains(&rune) } else { CLASS.holds(rune) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_bytes_become_runes_as_in_go() {
        assert_eq!(decode("é".as_bytes()), ('é', 2));
        assert_eq!(decode(b"\xe2\x82"), (REPLACEMENT, 1));
        assert_eq!(count(b"a\xff\xe2\x82\xacb"), 4);
        assert_eq!(trimmed("\u{a0} x\u{2003}\u{3000}".as_bytes()), (3, 4));
        assert_eq!(trimmed(b" \xff "), (1, 2));
        assert!(is_name('é') && is_name('日') && is_name('٣') && !is_name('Ⅷ') && !is_name('-'));
        assert!(is_print('\u{301}') && !is_print('\u{200b}') && !is_print('\u{a0}'));
    }
}
