//! Characters and line ends in bytes.

/// The character at an offset and its length in bytes; `None` at the end and for invalid UTF-8.
pub(super) fn char_at(text: &[u8], at: usize) -> Option<(char, usize)> {
    let first = *text.get(at)?;
    let length = match first {
        0..0x80 => return Some((char::from(first), 1)),
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let char = str::from_utf8(text.get(at..at + length)?).ok()?.chars().next()?;
    Some((char, length))
}

/// The length of the line end at an offset, or 0.
pub(super) fn line_end_length(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'\n') => 1,
        Some(b'\r') => 1 + usize::from(text.get(at + 1) == Some(&b'\n')),
        // U+2028 and U+2029
        Some(0xe2) if matches!(text.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => 3,
        _ => 0,
    }
}
