//! Characters: how bytes become runes in Go, and which runes are letters, digits or printable.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};
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

/// The class of a pattern such as `[\p{L}]`; empty if there is no such class.
pub(super) fn class(pattern: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(pattern).ok()?.into_kind() {
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => Some(class),
        // A class of one member is simplified to a literal.
        HirKind::Literal(literal) => {
            let rune = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(members([rune]))
        }
        _ => None,
    }
}

/// The characters that Unicode 13 has, which is the one Go 1.19 knows; all later ones are nothing to it.
fn assigned() -> &'static ClassUnicode {
    static ASSIGNED: LazyLock<ClassUnicode> =
        LazyLock::new(|| class(r"[\p{age:13.0}]").unwrap_or_else(ClassUnicode::empty));
    &ASSIGNED
}

/// The class of a pattern, as it was in Unicode 13.
pub(super) fn known_class(pattern: &str) -> Option<ClassUnicode> {
    let mut class = class(pattern)?;
    class.intersect(assigned());
    Some(class)
}

/// Adds to a class what differs only in case, as it was in Unicode 13.
pub(super) fn fold(class: &mut ClassUnicode) {
    static FOLDING: LazyLock<ClassUnicode> = LazyLock::new(|| {
        // These became pairs of one another in Unicode 15.1.
        let alone = ['\u{390}', '\u{3b0}', '\u{1fd3}', '\u{1fe3}', '\u{fb05}', '\u{fb06}'];
        let mut folding = assigned().clone();
        folding.difference(&members(alone));
        folding
    });
    if let [range] = class.ranges()
        && range.start() == range.end()
    {
        // One letter, the most frequent case, need not be compared with all others.
        if contains(&FOLDING, range.start()) {
            // The tables are compiled in, so this does not fail.
            let _ = class.try_case_fold_simple();
            let same = class.iter().flat_map(|range| range.start()..=range.end());
            *class = members(same.filter(|&rune| contains(&FOLDING, rune)));
        }
        return;
    }
    let mut folded = class.clone();
    folded.intersect(&FOLDING);
    let _ = folded.try_case_fold_simple();
    folded.intersect(&FOLDING);
    class.union(&folded);
}

/// The class of these characters.
pub(super) fn members(runes: impl IntoIterator<Item = char>) -> ClassUnicode {
    ClassUnicode::new(runes.into_iter().map(|rune| ClassUnicodeRange::new(rune, rune)))
}

fn contains(class: &ClassUnicode, rune: char) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|range| range.start() <= rune);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|range| rune <= range.end())
}

fn ranges(pattern: &str) -> Vec<(char, char)> {
    known_class(pattern)
        .map(|class| class.iter().map(|range| (range.start(), range.end())).collect())
        .unwrap_or_default()
}

fn holds(table: &[(char, char)], rune: char) -> bool {
    let after = table.partition_point(|&(start, _)| start <= rune);
    after.checked_sub(1).and_then(|index| table.get(index)).is_some_and(|&(_, end)| rune <= end)
}

/// Whether a name may contain it: a letter, a decimal digit or `_`.
pub(super) fn is_name(rune: char) -> bool {
    static TABLE: LazyLock<Vec<(char, char)>> = LazyLock::new(|| ranges(r"[\p{L}\p{Nd}]"));
    if rune.is_ascii() { rune.is_ascii_alphanumeric() || rune == '_' } else { holds(&TABLE, rune) }
}

/// Whether Go prints it as it is: letters, marks, numbers, punctuation, symbols, and the plain space.
pub(super) fn is_print(rune: char) -> bool {
    static TABLE: LazyLock<Vec<(char, char)>> = LazyLock::new(|| ranges(r"[\p{L}\p{M}\p{N}\p{P}\p{S}]"));
    if rune.is_ascii() { (' '..='~').contains(&rune) } else { holds(&TABLE, rune) }
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
