//! Values without quotes: their end, their probable meaning, and the message.

use super::chars::line_end_length;
use super::lexer::Lexer;
use super::{Value, number, string};

/// The message about an unquoted value, and its probable value.
pub(super) struct Guess {
    pub(super) message: String,
    pub(super) help: String,
    pub(super) value: Value,
}

/// The maximum length of brackets inside an unquoted value (`eth0[1]`, `${HOME}`), so that the search stays linear.
const MAX_PAIR: usize = 64;

/// The end of the unquoted value at `start`: the end of the line, a comma, a bracket that is not part of the value, or a
/// comment.
pub(super) fn end(lexer: &mut Lexer<'_>, start: usize) -> usize {
    let text = lexer.text;
    let mut at = start;
    let mut unpaired_quote = [false; 2];
    let mut previous = b' ';
    while let Some(&byte) = text.get(at) {
        if line_end_length(text, at) > 0 {
            break;
        }
        let rest = text.get(at..).unwrap_or_default();
        let blank_before = matches!(previous, b' ' | b'\t');
        let step = match byte {
            b',' | b'}' | b']' => break,
            b'{' => match lexer.template(at) {
                Some(end) => end - at,
                None if previous == b'$' => match pair(rest, b'}') {
                    Some(length) => length,
                    None => break,
                },
                None => break,
            },
            b'[' => match pair(rest, b']').filter(|_| !blank_before) {
                Some(length) => length,
                None => break,
            },
            b'/' if rest.starts_with(b"/*") => break,
            b'/' if rest.starts_with(b"//") && previous != b':' => break,
            b'#' if blank_before => break,
            b'"' | b'\'' => {
                let unpaired = &mut unpaired_quote[usize::from(byte == b'"')];
                let partner = if *unpaired { None } else { quote_pair(rest) };
                *unpaired = partner.is_none();
                partner.unwrap_or(1)
            }
            _ => 1,
        };
        previous = text.get(at + step - 1).copied().unwrap_or(byte);
        at += step;
    }
    let taken = text.get(start..at).unwrap_or_default();
    start + taken.trim_ascii_end().len()
}

/// The length from the bracket at the start to its closing bracket, inclusive.
fn pair(rest: &[u8], close: u8) -> Option<usize> {
    let near = rest.iter().take(MAX_PAIR).skip(1);
    let length =
        near.take_while(|byte| !matches!(byte, b'\n' | b'\r' | b',')).position(|&byte| byte == close)?;
    Some(length + 2)
}

/// The length from the quote at the start to the next one on the same line, inclusive.
fn quote_pair(rest: &[u8]) -> Option<usize> {
    let (quote, rest) = rest.split_first()?;
    let line = rest.iter().take_while(|byte| !matches!(byte, b'\n' | b'\r'));
    Some(line.enumerate().find(|(_, byte)| *byte == quote)?.0 + 2)
}

/// The probable meaning of an unquoted value.
pub(super) fn guess(bytes: &[u8]) -> Guess {
    let mut text = String::new();
    string::push_lossy(&mut text, bytes);
    let literal = |literal: &str, value: Value| Guess {
        message: format!("unknown literal `{text}`"),
        help: format!("write `{literal}`, or {} for a string", quoted(&text)),
        value,
    };
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => return literal("true", Value::Bool(true)),
        "false" | "no" | "off" => return literal("false", Value::Bool(false)),
        "none" | "nil" | "null" | "undefined" => return literal("null", Value::Null),
        _ => {}
    }
    if !text.chars().any(char::is_alphanumeric) {
        return Guess {
            message: format!("expected a value, found `{}`", shortened(&text)),
            help:
                "a value is a string in quotes, a number, true, false, null, a list `[…]` or an object `{…}`"
                    .to_owned(),
            value: Value::Null,
        };
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let plain = text.trim_start_matches('0');
        let plain = if plain.is_empty() { "0" } else { plain };
        return Guess {
            message: "a number cannot start with a zero".to_owned(),
            help: format!("write {}, or {} for a string", shortened(plain), quoted(&text)),
            value: number::parse(plain).map_or(Value::Null, Value::Number),
        };
    }
    if let Some(rest) = only_closed(&text) {
        return Guess {
            message: "missing quotation mark at the start of this string".to_owned(),
            help: format!("write {}", quoted(rest)),
            value: Value::String(rest.to_owned()),
        };
    }
    let number_like =
        text.trim_start_matches(['+', '-', '.']).starts_with(|char: char| char.is_ascii_digit());
    let message = if number_like && !text.contains(' ') {
        "this is not a number; a string needs quotes"
    } else {
        "a string needs quotes"
    };
    Guess {
        message: message.to_owned(),
        help: format!("write {}", quoted(&text)),
        value: Value::String(text),
    }
}

/// The text without its closing quotation mark, if that is the only one.
fn only_closed(text: &str) -> Option<&str> {
    let quote = text.chars().last().filter(|last| matches!(last, '"' | '\''))?;
    text.strip_suffix(quote).filter(|rest| !rest.contains(['"', '\'']))
}

/// The text as a string literal, shortened.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn shortened(text: &str) -> String {
    const MAX_LENGTH: usize = 60;
    if text.chars().nth(MAX_LENGTH).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_LENGTH).chain(['…']).collect()
}
