//! Strings and booleans.

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// A string. Numbers and booleans are converted (C3).
pub struct Text;

impl ValueType for Text {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node)
    }
}

/// A string. The empty string counts as absent.
pub struct TextOrUnset;

impl ValueType for TextOrUnset {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node).filter(|text| !text.is_empty())
    }
}

/// A boolean, also as `"true"`, `"1"` or a number (C3).
pub struct Flag;

impl ValueType for Flag {
    type Value = bool;
    const SHAPE: Shape = Shape::Flag;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Bool(flag) => return Some(*flag),
            Value::Number(number) => return Some(number.value != 0.0),
            Value::String(text) => match parse_bool(text) {
                Some(flag) => return Some(flag),
                // 3.8 reads the empty string as false. Here it counts as absent, so that the safe default applies.
                None if text.is_empty() => return None,
                None => {}
            },
            _ => {}
        }
        let help = match &node.value {
            Value::String(text) if matches!(text.to_ascii_lowercase().as_str(), "yes" | "on") => "write true",
            Value::String(text) if matches!(text.to_ascii_lowercase().as_str(), "no" | "off") => {
                "write false"
            }
            _ => "",
        };
        cx.error(node.span, format!("`{key}` must be true or false, not {}", found(node)), help);
        None
    }
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
#[must_use]
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
