//! Values in words, for messages.

use crate::json5::{Node, Value};

/// Joins words as alternatives: `a, b or c`.
#[must_use]
pub fn alternatives(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// A value as a string, with the weak typing of 3.8: numbers in decimal, booleans as 1 and 0, null as the empty string.
#[must_use]
pub fn weak_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(flag) => Some(if *flag { "1" } else { "0" }.to_owned()),
        Value::Number(number) => Some(number.to_text()),
        Value::String(text) => Some(text.clone()),
        Value::List(_) | Value::Object(_) => None,
    }
}

/// Describes a value, for messages.
#[must_use]
pub fn found(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {}", number.text),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => format!("the string \"{}\"", shortened(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The first 40 characters of a text, for messages.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
