//! Escapes: Go's quoted strings, and the functions `html`, `js` and `urlquery`.

use crate::unicode::is_print;
use crate::utf8::{self, decode, is_invalid};

/// Appends `text` in double quotes with Go's escapes. With `ascii`, other characters than ASCII are escaped too.
pub(crate) fn quote(out: &mut Vec<u8>, text: &[u8], ascii: bool) {
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

/// Appends one character in single quotes.
pub(crate) fn quote_rune(out: &mut Vec<u8>, rune: char, ascii: bool) {
    out.push(b'\'');
    escape(out, rune, '\'', ascii);
    out.push(b'\'');
}

fn escape(out: &mut Vec<u8>, rune: char, quote: char, ascii: bool) {
    if rune == quote || rune == '\\' {
        out.push(b'\\');
        utf8::push(out, rune);
        return;
    }
    if is_print(rune) && (rune.is_ascii() || !ascii) {
        utf8::push(out, rune);
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

/// Returns true if the text can be written in backquotes.
pub(crate) fn can_backquote(text: &[u8]) -> bool {
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

/// Escapes `text` for HTML.
pub(crate) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0 => utf8::push(&mut out, utf8::REPLACEMENT),
            _ => out.push(byte),
        }
    }
    out
}

/// Escapes `text` for a JavaScript string.
pub(crate) fn js(text: &[u8]) -> Vec<u8> {
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

/// Escapes `text` for the query of a URL.
pub(crate) fn query(text: &[u8]) -> Vec<u8> {
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
