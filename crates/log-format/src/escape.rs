//! Escaping any bytes for JSON, logfmt and plain lines.

/// Returns true for invisible characters outside of ASCII: line ends for some readers, terminal control characters (U+009B
/// works like an escape), and characters that change the text direction.
pub const fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{a0}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// Appends text as the content of a JSON string. Invalid UTF-8 becomes U+FFFD.
///
/// Written by hand: every line of every job passes here, and this is several times as fast as a general JSON writer.
pub(super) fn json(text: &[u8], out: &mut Vec<u8>) {
    if is_clean(text) {
        out.extend_from_slice(text);
        return;
    }
    for chunk in text.utf8_chunks() {
        json_valid(chunk.valid(), out);
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Appends UTF-8 as the content of a JSON string. JSON allows most hidden characters, but logs are also shown on terminals and
/// split by readers that know more line ends than `\n`.
fn json_valid(text: &str, out: &mut Vec<u8>) {
    // The last four are the first bytes of characters that may be hidden.
    let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef);
    let mut rest = text;
    while let Some(at) = rest.bytes().position(special) {
        // Each of them starts a character, so the text can be split there.
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut characters = from.chars();
        match characters.next() {
            None => return,
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some(other) if other < ' ' || other == '\u{7f}' || is_hidden(other) => {
                unicode(u32::from(other), out)
            }
            Some(other) => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Returns true if the text needs no escapes: printable ASCII without quotes and backslashes.
///
/// Eight bytes at a time, so that the speed does not depend on the compiler's vectorization.
fn is_clean(text: &[u8]) -> bool {
    let (words, _) = text.as_chunks::<8>();
    match text.last_chunk::<8>() {
        // The last word may overlap the previous one.
        Some(last) => !words.iter().chain([last]).fold(false, |found, word| found | has_special(*word)),
        None => !text.iter().any(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\')),
    }
}

/// Returns true if one of eight bytes needs an escape.
const fn has_special(bytes: [u8; 8]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_ne_bytes(bytes);
    // The highest bit of a byte is set if it was set before, or if the subtraction has underflowed. A borrow may affect the next
    // byte, but then the result is true already.
    let below = word.wrapping_sub(each(b' '));
    let quote = (word ^ each(b'"')).wrapping_sub(each(1));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    let delete = (word ^ each(0x7f)).wrapping_sub(each(1));
    (word | below | quote | backslash | delete) & each(0x80) != 0
}

/// Returns true if logrus would write the value without quotes.
pub(super) fn is_bare(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|&byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/' | b'@' | b'^' | b'+')
        })
}

/// Appends text as the content of a Go string: invisible characters are escaped, invalid UTF-8 becomes `\xNN`.
pub(super) fn quoted(text: &[u8], out: &mut Vec<u8>) {
    if is_clean(text) {
        out.extend_from_slice(text);
        return;
    }
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                _ => visible(character, out),
            }
        }
        for &byte in chunk.invalid() {
            hexadecimal(byte, out);
        }
    }
}

/// Appends text of the supervisor to a plain line, without line ends and hidden characters.
pub(super) fn plain(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            visible(character, out);
        }
        for &byte in chunk.invalid() {
            hexadecimal(byte, out);
        }
    }
}

/// Appends a character, escaped as in Go if it is invisible or changes the text direction.
fn visible(character: char, out: &mut Vec<u8>) {
    match character {
        ' '..='~' => out.push(character as u8),
        '\u{7}' => out.extend_from_slice(b"\\a"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{b}' => out.extend_from_slice(b"\\v"),
        '\0'..='\u{1f}' | '\u{7f}' => hexadecimal(character as u8, out),
        hidden if is_hidden(hidden) => unicode(u32::from(hidden), out),
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// `\xNN`
fn hexadecimal(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'x', digit(u32::from(byte) >> 4), digit(u32::from(byte))]);
}

/// `\uNNNN`
fn unicode(code: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'u', digit(code >> 12), digit(code >> 8), digit(code >> 4), digit(code)]);
}

/// The hexadecimal digit of the last four bits.
fn digit(bits: u32) -> u8 {
    match (bits & 15) as u8 {
        small @ 0..=9 => b'0' + small,
        large => b'a' + large - 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(write: fn(&[u8], &mut Vec<u8>), text: &[u8]) -> String {
        let mut out = Vec::new();
        write(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn l3_json_holds_any_bytes() {
        let mut every: Vec<u8> = (0..=255).collect();
        every.extend("åß∂ \u{2028} 🦀".bytes());
        let text = format!("\"{}\"", with(json, &every));
        let read: String = serde_json::from_str(&text).unwrap();
        assert_eq!(read, String::from_utf8_lossy(&every));
    }

    #[test]
    fn l3_json_escapes_every_invisible_character() {
        let every: String = ('\0'..='\u{ffff}').collect();
        let text = with(json, every.as_bytes());
        assert!(!text.contains(|character: char| character.is_control() || is_hidden(character)));
        let read: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        assert_eq!(read, every);
    }

    #[test]
    fn l3_json_escapes_special_bytes_at_every_position() {
        for length in 0..100 {
            for at in 0..length {
                for byte in *b"\"\\\n\0\xff" {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    let read: String = serde_json::from_str(&format!("\"{}\"", with(json, &text))).unwrap();
                    assert_eq!(read, String::from_utf8_lossy(&text));
                }
            }
        }
    }

    #[test]
    fn l3_special_bytes_are_found_at_every_position_among_any_others() {
        for byte in 0..=255 {
            let special = !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\');
            for length in 1..40 {
                for at in 0..length {
                    for other in *b" a~!#[]" {
                        let mut text = vec![other; length];
                        text[at] = byte;
                        assert_eq!(is_clean(&text), !special, "{byte} among {other}, {at} of {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn l1_logfmt_quotes_as_go_does() {
        assert_eq!(with(quoted, b"a \"b\" \\ \n\r\t\0\x1b\x7f"), r#"a \"b\" \\ \n\r\t\x00\x1b\x7f"#);
        assert_eq!(with(quoted, b"\xff\xc3\xa9\xc3"), "\\xff\u{e9}\\xc3");
        assert_eq!(with(quoted, "\u{85}\u{202e}".as_bytes()), r"\u0085\u202e");
        assert!(is_bare(b"main-1.2_x/@^+"));
        assert!(!is_bare(b"") && !is_bare(b"a b") && !is_bare(b"a=b") && !is_bare(b"\xc3\xa9"));
    }

    #[test]
    fn l3_plain_text_is_one_line() {
        assert_eq!(with(plain, b"a\nb\x1b[31m"), r"a\nb\x1b[31m");
        assert_eq!(with(plain, "naïve 🦀".as_bytes()), "naïve 🦀");
    }
}
