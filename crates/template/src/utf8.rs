//! Decodes bytes into characters as Go does: an invalid byte is one U+FFFD.

/// The character that an invalid byte decodes to.
pub(crate) const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The first character of `bytes` and its width. An invalid byte has width 1; an empty slice has width 0.
pub(crate) fn decode(bytes: &[u8]) -> (char, usize) {
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

/// Returns true if [`decode`] returned this for an invalid byte.
pub(crate) fn is_invalid(rune: char, width: usize) -> bool {
    rune == REPLACEMENT && width == 1
}

/// The number of characters; each invalid byte counts as one.
pub(crate) fn count(mut bytes: &[u8]) -> usize {
    let mut runes = 0;
    while !bytes.is_empty() {
        let (_, width) = decode(bytes);
        bytes = bytes.get(width..).unwrap_or_default();
        runes += 1;
    }
    runes
}

/// Appends a character as UTF-8.
pub(crate) fn push(out: &mut Vec<u8>, rune: char) {
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The range of the text without Unicode white space at both ends.
pub(crate) fn trimmed(bytes: &[u8]) -> (usize, usize) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_bytes_decode_as_in_go() {
        assert_eq!(decode("é".as_bytes()), ('é', 2));
        assert_eq!(decode(b"\xe2\x82"), (REPLACEMENT, 1));
        assert_eq!(count(b"a\xff\xe2\x82\xacb"), 4);
        assert_eq!(trimmed("\u{a0} x\u{2003}\u{3000}".as_bytes()), (3, 4));
        assert_eq!(trimmed(b" \xff "), (1, 2));
    }
}
