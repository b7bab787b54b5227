//! The files of `envFile` (P10).

use super::object::Either;
use crate::decode::{DecodeContext, Section, Shape, Spanned, ValueType, found};
use crate::fields::EnvFileFields;
use crate::json5::{Node, Value};

/// A path, an object, or a list of them.
pub struct EnvFiles;

impl ValueType for EnvFiles {
    type Value = Vec<Spanned<Either<EnvFileFields>>>;
    const SHAPE: Shape = Shape::PathsOrObjects(&EnvFileFields::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let nodes = match &node.value {
            Value::List(items) => items.as_slice(),
            // A template that renders nothing.
            Value::String(text) if text.is_empty() => return None,
            _ => std::slice::from_ref(node),
        };
        nodes.iter().map(|node| file(cx, key, node)).collect()
    }
}

fn file(
    cx: &mut DecodeContext<'_>,
    key: &'static str,
    node: &Node,
) -> Option<Spanned<Either<EnvFileFields>>> {
    let value = match &node.value {
        Value::String(path) if !path.is_empty() => Either::Text(path.clone()),
        Value::Object(members) => Either::Object(EnvFileFields::from_members(cx, node.span, members)),
        _ => {
            let message = format!("`{key}` must be a path or an object, not {}", found(node));
            cx.error(
                node.span,
                message,
                format!("for example: {key}: {{ path: \"/etc/app.env\", optional: true }}"),
            );
            return None;
        }
    };
    let place = cx.at(node.span);
    Some(Spanned { value, place, key: place, written: true })
}
