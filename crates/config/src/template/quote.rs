//! Quoted texts: Go's escapes read and written.

use super::letters::{self, decode, is_invalid, is_print};

/// The bytes that a quoted constant, quotes included, stands for; `None` when an escape in it is malformed.
pub(super) fn unquote(quoted: &[u8]) -> Option<Vec<u8>> {
    let (quote, rest) = quoted.split_first()?;
    let (last, inner) = rest.split_last()?;
    if quote != last {
        return None;
    }
    if *quote == b'`' {
        return Some(inner.iter().copied().filter(|&byte| byte != b'\r').collect());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, width) = unquote_unit(rest, *quote)?;
        match unit {
            Unit::Rune(rune) => letters::push(&mut out, rune),
            Unit::Byte(byte) => out.push(byte),
        }
        rest = rest.get(width..)?;
    }
    Some(out)
}

/// The number of a character constant such as `'a'`.
pub(super) enum Character {
    Code(i64),
    /// More (or less) than one character between the quotes.
    NotOne,
    BadEscape,
}

/// Reads a single-quoted constant, quotes included.
pub(super) fn character(quoted: &[u8]) -> Character {
    let inner = quoted.get(1..).unwrap_or_default();
    if inner == b"'" {
        return Character::NotOne;
    }
    let Some((unit, width)) = unquote_unit(inner, b'\'') else { return Character::BadEscape };
    if inner.get(width..) != Some(b"'") {
        return Character::NotOne;
    }
    Character::Code(match unit {
        Unit::Rune(rune) => i64::from(u32::from(rune)),
        Unit::Byte(byte) => i64::from(byte),
    })
}

enum Unit {
    Rune(char),
    Byte(u8),
}

fn unquote_unit(text: &[u8], quote: u8) -> Option<(Unit, usize)> {
    let first = *text.first()?;
    if first == quote || first == b'\n' {
        return None;
    }
    if first != b'\\' {
        let (rune, width) = decode(text);
        return Some((Unit::Rune(rune), width));
    }
    let code = *text.get(1)?;
    let simple = match code {
        b'a' => Some('\x07'),
        b'b' => Some('\x08'),
        b'f' => Some('\x0c'),
        b'n' => Some('\n'),
        b'r' => Some('\r'),
        b't' => Some('\t'),
        b'v' => Some('\x0b'),
        b'\\' => Some('\\'),
        b'\'' | b'"' if code == quote => Some(char::from(code)),
        _ => None,
    };
    if let Some(rune) = simple {
        return Some((Unit::Rune(rune), 2));
    }
    let number = |from: usize, digits: usize, base: u32| {
        let digits = text.get(from..from + digits)?;
        digits.iter().try_fold(0u32, |sum, &digit| Some(sum * base + char::from(digit).to_digit(base)?))
    };
    match code {
        b'x' => Some((Unit::Byte(u8::try_from(number(2, 2, 16)?).ok()?), 4)),
        b'u' => Some((Unit::Rune(char::from_u32(number(2, 4, 16)?)?), 6)),
        b'U' => Some((Unit::Rune(char::from_u32(number(2, 8, 16)?)?), 10)),
        b'0'..=b'7' => Some((Unit::Byte(u8::try_from(number(1, 3, 8)?).ok()?), 4)),
        _ => None,
    }
}

/// Appends `text` between `"` quotes with Go's escapes; `ascii` escapes everything beyond ASCII too.
pub(super) fn quote(out: &mut Vec<u8>, text: &[u8], ascii: bool) {
    out.push(b'"');
    let mut rest = text;
    while !rest.is_empty() {
        let (rune, width) = decode(rest);
        if is_invalid(rune, width) {
            out.extend(format!("\\x{:02x}", rest.first().copied().unwrap_or_default()).bytes());
        } else {
            escape(out, rune, '"', ascii);
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    out.push(b'"');
}

/// Appends one rune between `'` quotes.
pub(super) fn quote_rune(out: &mut Vec<u8>, rune: char, ascii: bool) {
    out.push(b'\'');
    escape(out, rune, '\'', ascii);
    out.push(b'\'');
}

fn escape(out: &mut Vec<u8>, rune: char, quote: char, ascii: bool) {
    if rune == quote || rune == '\\' {
        out.push(b'\\');
        letters::push(out, rune);
        return;
    }
    if is_print(rune) && (rune.is_ascii() || !ascii) {
        letters::push(out, rune);
        return;
    }
    let code = u32::from(rune);
    let escaped = match rune {
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\x0b' => "\\v".to_owned(),
        _ if code < 0x20 || code == 0x7f => format!("\\x{code:02x}"),
        _ if code < 0x10000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    };
    out.extend(escaped.bytes());
}

/// Whether the text can stand between backquotes.
pub(super) fn can_backquote(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let (rune, width) = decode(rest);
        let control = u32::from(rune) < 0x20 && rune != '\t';
        if is_invalid(rune, width) || control || matches!(rune, '`' | '\x7f' | '\u{feff}') {
            return false;
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    true
}

/// `text` with the characters escaped that mean something in HTML.
pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0 => letters::push(&mut out, letters::REPLACEMENT),
            _ => out.push(byte),
        }
    }
    out
}

/// `text` escaped for a JavaScript string.
pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let mut width = 1;
        match byte {
            b'\\' | b'\'' | b'"' => out.extend([b'\\', byte]),
            b'<' | b'>' | b'&' | b'=' | 0..0x20 => out.extend(format!("\\u{byte:04X}").bytes()),
            0x80.. => {
                let (rune, taken) = decode(rest);
                width = taken;
                if is_print(rune) {
                    out.extend_from_slice(rest.get(..taken).unwrap_or_default());
                } else {
                    out.extend(format!("\\u{:04X}", u32::from(rune)).bytes());
                }
            }
            _ => out.push(byte),
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    out
}

/// `text` escaped for a place in a URL's query.
pub(super) fn query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => out.extend(format!("%{byte:02X}").bytes()),
        }
    }
    out
}
