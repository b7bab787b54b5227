//! Text and truth.

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// Text; numbers and booleans are taken as text (C3).
pub struct Text;

impl ValueType for Text {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node)
    }
}

/// Text of which an empty one is as good as nothing.
pub struct TextOrUnset;

impl ValueType for TextOrUnset {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node).filter(|text| !text.is_empty())
    }
}

/// True or false, also as `"true"`, `"1"` or a number (C3).
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
                // 3.8 reads an empty text as false; as nothing at all, every default stays the safe one.
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

/// Go's idea of a boolean in a text.
#[must_use]
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
