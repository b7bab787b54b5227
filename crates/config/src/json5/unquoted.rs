//! Text without quotes where a value should stand: how far it goes, what was meant, and what to tell.

use super::chars::line_end_length;
use super::lexer::Lexer;
use super::{Value, number, string};

/// What to say about an unquoted text, and the value to go on with.
pub(super) struct Guess {
    pub(super) message: String,
    pub(super) help: String,
    pub(super) value: Value,
}

/// How far a bracket inside an unquoted text (`eth0[1]`, `${HOME}`) may be from its partner, so that looking
/// for it again and again stays linear.
const PAIR_REACH: usize = 64;

/// The end of the unquoted text that begins at `start`: the end of the line, a comma, a bracket that belongs
/// to the surroundings, or a comment.
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

/// The length up to and with the closing partner of the bracket at the beginning.
fn pair(rest: &[u8], close: u8) -> Option<usize> {
    let near = rest.iter().take(PAIR_REACH).skip(1);
    let length =
        near.take_while(|byte| !matches!(byte, b'\n' | b'\r' | b',')).position(|&byte| byte == close)?;
    Some(length + 2)
}

/// The length up to and with the partner of the quote at the beginning, on the same line.
fn quote_pair(rest: &[u8]) -> Option<usize> {
    let (quote, rest) = rest.split_first()?;
    let line = rest.iter().take_while(|byte| !matches!(byte, b'\n' | b'\r'));
    Some(line.enumerate().find(|(_, byte)| *byte == quote)?.0 + 2)
}

/// What an unquoted text was meant to be.
pub(super) fn guess(bytes: &[u8]) -> Guess {
    let mut text = String::new();
    string::push_lossy(&mut text, bytes);
    let literal = |literal: &str, value: Value| Guess {
        message: format!("`{text}` has no meaning here"),
        help: format!("write `{literal}`, or {} if text is meant", quoted(&text)),
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
            help: "a value is text in quotes, a number, true, false, null, a list `[…]` or an object `{…}`"
                .to_owned(),
            value: Value::Null,
        };
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let plain = text.trim_start_matches('0');
        let plain = if plain.is_empty() { "0" } else { plain };
        return Guess {
            message: "a number cannot begin with a zero".to_owned(),
            help: format!("write {}, or {} if text is meant", shortened(plain), quoted(&text)),
            value: number::parse(plain).map_or(Value::Null, Value::Number),
        };
    }
    if let Some(rest) = only_closed(&text) {
        return Guess {
            message: "this text has no quotation mark at its beginning".to_owned(),
            help: format!("write {}", quoted(rest)),
            value: Value::String(rest.to_owned()),
        };
    }
    let number_like =
        text.trim_start_matches(['+', '-', '.']).starts_with(|char: char| char.is_ascii_digit());
    let message = if number_like && !text.contains(' ') {
        "this is not a number; text must stand in quotes"
    } else {
        "text must stand in quotes"
    };
    Guess {
        message: message.to_owned(),
        help: format!("write {}", quoted(&text)),
        value: Value::String(text),
    }
}

/// The text without the quotation mark at its end, if that is its only one.
fn only_closed(text: &str) -> Option<&str> {
    let quote = text.chars().last().filter(|last| matches!(last, '"' | '\''))?;
    text.strip_suffix(quote).filter(|rest| !rest.contains(['"', '\'']))
}

/// The text as it would have to be written.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().nth(LONGEST).is_none() {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}
