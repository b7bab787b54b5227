//! Strings: escapes, line continuations and invalid UTF-8.

use super::SyntaxError;
use super::chars::{char_at, line_end_length};
use crate::limits;
use crate::span::Span;

/// A parsed string.
pub(super) struct Quoted {
    pub(super) text: String,
    /// The offset after the closing quote, or after the probable end of an unterminated string.
    pub(super) end: usize,
    /// True if the closing quote is missing.
    pub(super) broken: bool,
}

/// Reads the string with its opening quote at `start`.
pub(super) fn read(text: &[u8], start: usize, errors: &mut Vec<SyntaxError>) -> Quoted {
    let quote = text.get(start).copied().unwrap_or(b'"');
    let mut out = String::new();
    let mut at = start + 1;
    loop {
        let run = text.get(at..).unwrap_or_default();
        let length = run
            .iter()
            .position(|&byte| byte == quote || byte == b'\\' || byte == b'\n' || byte == b'\r')
            .unwrap_or(run.len());
        push_lossy(&mut out, run.get(..length).unwrap_or_default());
        at += length;
        match text.get(at) {
            Some(&byte) if byte == quote => return Quoted { text: out, end: at + 1, broken: false },
            Some(b'\\') => at = escape(text, at, &mut out, errors),
            _ => return unclosed(text, start, at, errors),
        }
    }
}

/// Appends bytes. Each invalid byte becomes U+FFFD.
pub(super) fn push_lossy(out: &mut String, bytes: &[u8]) {
    if let Ok(valid) = str::from_utf8(bytes) {
        out.push_str(valid);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

/// The length of the part of a line that probably belongs to an unterminated string: commas and closing brackets at its end
/// probably do not.
pub(super) fn probable_length(line: &[u8]) -> usize {
    line.iter().rposition(|byte| !b" \t,}]".contains(byte)).map_or(0, |last| last + 1)
}

/// Reports a string at `start` that is not closed before the line or the file ends at `end`.
fn unclosed(text: &[u8], start: usize, end: usize, errors: &mut Vec<SyntaxError>) -> Quoted {
    let line = text.get(start + 1..end).unwrap_or_default();
    let kept = probable_length(line);
    let quote = char::from(text.get(start).copied().unwrap_or(b'"'));
    if errors.len() < limits::ERRORS {
        let help = format!("add {quote} at its end; write \\n for a line break inside a string");
        let message = "unterminated string";
        let error = SyntaxError::new(Span::new(start, start + 1), message, Some(help));
        errors.push(SyntaxError { cut: Some(Span::at(end)), ..error });
    }
    let mut out = String::new();
    push_lossy(&mut out, line.get(..kept).unwrap_or_default());
    Quoted { text: out, end: start + 1 + kept, broken: true }
}

/// Resolves the escape with its backslash at `at`. Returns the offset after it.
fn escape(text: &[u8], at: usize, out: &mut String, errors: &mut Vec<SyntaxError>) -> usize {
    let Some(&kind) = text.get(at + 1) else { return at + 1 };
    let simple = match kind {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'v' => '\u{b}',
        b'0'..=b'9' => {
            let followed = text.get(at + 2).is_some_and(u8::is_ascii_digit);
            if kind != b'0' || followed {
                error(
                    errors,
                    Span::new(at, at + 2),
                    "invalid escape: a digit after the backslash",
                    "write \\\\ for a backslash, or \\x and two hexadecimal digits for a character"
                        .to_owned(),
                );
            }
            '\0'
        }
        b'x' => return hexadecimal(text, at, 2, out, errors),
        b'u' => return hexadecimal(text, at, 4, out, errors),
        _ => {
            let continued = line_end_length(text, at + 1);
            if continued > 0 {
                return at + 1 + continued;
            }
            let (char, length) = char_at(text, at + 1).unwrap_or((char::REPLACEMENT_CHARACTER, 1));
            out.push(char);
            return at + 1 + length;
        }
    };
    out.push(simple);
    at + 2
}

/// Resolves `\xHH` or `\uHHHH`, which may be the first half of a surrogate pair.
fn hexadecimal(
    text: &[u8],
    at: usize,
    digits: usize,
    out: &mut String,
    errors: &mut Vec<SyntaxError>,
) -> usize {
    let Some(code) = code(text, at + 2, digits) else {
        let good = text.iter().skip(at + 2).take(digits).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let letter = if digits == 2 { 'x' } else { 'u' };
        error(
            errors,
            Span::new(at, at + 2 + good),
            format!("\\{letter} must be followed by {digits} hexadecimal digits"),
            "write \\\\ for a backslash".to_owned(),
        );
        return at + 2 + good;
    };
    let end = at + 2 + digits;
    if (0xD800..0xDC00).contains(&code)
        && text.get(end..end + 2) == Some(b"\\u")
        && let Some(low) = self::code(text, end + 2, 4).filter(|low| (0xDC00..0xE000).contains(low))
    {
        let pair = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        out.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
        return end + 6;
    }
    // A single surrogate is not a character.
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    end
}

/// The value of exactly `count` hexadecimal digits at `at`.
pub(super) fn code(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text.get(at..at + count)?;
    digits.iter().try_fold(0, |code, &byte| Some(code << 4 | char::from(byte).to_digit(16)?))
}

fn error(errors: &mut Vec<SyntaxError>, span: Span, message: impl Into<String>, help: String) {
    if errors.len() < limits::ERRORS {
        errors.push(SyntaxError::new(span, message, Some(help)));
    }
}
