//! The number of restarts of a job (W6).

use containerpilot_core::plan::Restarts;

use super::number::whole;
use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// The number of restarts of a job (W6).
pub struct RestartLimit;

impl ValueType for RestartLimit {
    type Value = Restarts;
    const SHAPE: Shape = Shape::Restarts;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Restarts> {
        let count = match &node.value {
            Value::String(text) if text == "never" => Some(0),
            Value::String(text) if text == "unlimited" => return Some(Restarts::Unlimited),
            Value::String(text) => text.parse::<i64>().ok(),
            Value::Number(number) if number.value >= 0.0 => whole(cx, node),
            _ => None,
        };
        let limit = count.and_then(|count| u64::try_from(count).ok()).map(Restarts::Limited);
        if limit.is_none() {
            let message =
                format!("`{key}` must be an integer, \"never\" or \"unlimited\", not {}", found(node));
            let others = [
                ("always", "unlimited"),
                ("forever", "unlimited"),
                ("infinite", "unlimited"),
                ("infinity", "unlimited"),
                ("unless-stopped", "unlimited"),
                ("on-failure", "unlimited"),
                ("yes", "unlimited"),
                ("no", "never"),
                ("none", "never"),
            ];
            let near = match &node.value {
                Value::String(text) => crate::suggest::best_match(text, &["never", "unlimited"], &others),
                Value::Bool(true) => Some("unlimited"),
                Value::Bool(false) => Some("never"),
                Value::Number(number) if number.value < 0.0 => Some("unlimited"),
                _ => None,
            };
            let help = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "a number is the number of runs after the first one".to_owned(),
            };
            cx.error(node.span, message, help);
        }
        limit
    }
}
