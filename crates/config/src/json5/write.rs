//! Writes JSON5 that is also a template: no text in it starts a template action.

use std::fmt::Write;

/// A key, quoted if it must be.
#[must_use]
pub fn key(key: &str) -> String {
    let word = |c: char| c.is_ascii_alphabetic() || c == '_';
    let plain = key.starts_with(word) && key.chars().all(|c| word(c) || c.is_ascii_digit());
    if plain { key.to_owned() } else { quoted(key) }
}

/// A string in quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A string without its quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Two of them, also with what follows this text, would begin a template action.
            '{' if !matches!(chars.peek(), Some(next) if *next != '{') => out.push_str("\\u007b"),
            '\u{2028}' | '\u{2029}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// A text for a comment, in which the template would still find actions.
#[must_use]
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '{' | '}' if out.ends_with(c) => drop(write!(out, " {c}")),
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
