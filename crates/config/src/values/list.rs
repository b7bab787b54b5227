//! Lists and maps of single values.

use std::collections::BTreeMap;

use crate::decode::{DecodeContext, Shape, Spanned, ValueType, found, shortened};
use crate::json5::{Node, Value};

/// A list of strings.
pub struct Words;

impl ValueType for Words {
    type Value = Vec<String>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<String>> {
        items(cx, key, node)?.iter().map(|item| cx.text(key, item)).collect()
    }
}

/// A list of strings, each with its place.
pub struct SpannedWords;

impl ValueType for SpannedWords {
    type Value = Vec<Spanned<String>>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<Spanned<String>>> {
        let mut words = Vec::new();
        for item in items(cx, key, node)? {
            let place = cx.at(item.span);
            words.push(Spanned { value: cx.text(key, item)?, place, key: place, written: true });
        }
        Some(words)
    }
}

/// The elements of a list. An empty object counts as an empty list, as in 3.8.
pub(super) fn items<'n>(cx: &mut DecodeContext<'_>, key: &str, node: &'n Node) -> Option<&'n [Node]> {
    match &node.value {
        Value::List(items) => Some(items),
        Value::Object(members) if members.is_empty() => Some(&[]),
        other => {
            let message = format!("`{key}` must be a list, not {}", found(node));
            let help = match other {
                Value::String(text) => format!("write {key}: [\"{}\"]", shortened(text)),
                _ => format!("write {key}: [ … ]"),
            };
            cx.error(node.span, message, help);
            None
        }
    }
}

/// A list of numbers.
pub struct Numbers;

impl ValueType for Numbers {
    type Value = Vec<f64>;
    const SHAPE: Shape = Shape::Numbers;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<f64>> {
        let mut numbers = Vec::new();
        for item in items(cx, key, node)? {
            let number = match &item.value {
                Value::Number(number) => Some(number.value),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            match number.filter(|number| !number.is_nan()) {
                Some(number) => numbers.push(number),
                None => {
                    cx.error(item.span, format!("`{key}` must contain numbers, not {}", found(item)), "");
                    return None;
                }
            }
        }
        Some(numbers)
    }
}

/// The interfaces whose address is advertised (D6): one entry or a list. They are parsed later, and only for an advertised
/// job.
pub struct Interfaces;

impl ValueType for Interfaces {
    type Value = Vec<Spanned<String>>;
    const SHAPE: Shape = Shape::WordOrWords;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<Spanned<String>>> {
        let items = match &node.value {
            Value::String(_) => std::slice::from_ref(node),
            Value::List(items) => items,
            _ => {
                let message = format!("`{key}` must be a string or a list of strings, not {}", found(node));
                cx.error(node.span, message, format!("for example: {key}: [\"eth0\", \"inet\"]"));
                return None;
            }
        };
        let mut specs = Vec::new();
        for item in items {
            let place = cx.at(item.span);
            specs.push(Spanned { value: cx.text(key, item)?, place, key: place, written: true });
        }
        Some(specs)
    }
}

/// An object of strings.
pub struct TextMap;

impl ValueType for TextMap {
    type Value = BTreeMap<String, String>;
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        pairs(cx, key, node, |cx, name, value| cx.text(name, value))
    }
}

/// Environment variables to set; null and the empty string unset one (P7).
pub struct Variables;

impl ValueType for Variables {
    type Value = BTreeMap<String, Option<String>>;
    const SHAPE: Shape = Shape::Variables;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let read = |cx: &mut DecodeContext<'_>, name: &str, value: &Node| match &value.value {
            Value::Null => Some(None),
            _ => Some(Some(cx.text(name, value)?).filter(|text| !text.is_empty())),
        };
        let variables = pairs(cx, key, node, read)?;
        if variables.is_empty() && !cx.has_errors() {
            cx.error(
                node.span,
                format!("`{key}` is empty"),
                format!("for example: {key}: {{ NAME: \"value\" }}"),
            );
        }
        Some(variables)
    }
}

/// The members of an object, each read by `read`.
fn pairs<T>(
    cx: &mut DecodeContext<'_>,
    key: &str,
    node: &Node,
    read: impl Fn(&mut DecodeContext<'_>, &str, &Node) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    let mut pairs = BTreeMap::new();
    let mut keys = BTreeMap::new();
    for member in cx.members(key, node, "{ NAME: \"value\" }")? {
        if let Some(earlier) = keys.insert(&member.key, member.key_span) {
            cx.replaced(&member.key, earlier, member.key_span);
        }
        if let Some(message) = variable_name_error(key, &member.key) {
            cx.error(member.key_span, message, "");
            continue;
        }
        pairs.insert(member.key.clone(), read(cx, &member.key, &member.value)?);
    }
    Some(pairs)
}

/// Why a name cannot be used in a map. A shell cannot use a variable with whitespace in its name, so `putenv` refuses it, too.
pub(super) fn variable_name_error(key: &str, name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some(format!("a name in `{key}` must not be empty or contain `=`"));
    }
    let unusable = |letter: char| letter.is_whitespace() || letter.is_control();
    (key != "meta" && name.contains(unusable))
        .then(|| format!("a name in `{key}` must not contain whitespace or a control character"))
}
