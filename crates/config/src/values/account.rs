//! Users and groups (P9).

use containerpilot_core::plan::Principal;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::Node;

/// A user or a group (P9).
pub struct Account;

impl ValueType for Account {
    type Value = Principal;
    const SHAPE: Shape = Shape::Principal;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Principal> {
        let text = cx.text(key, node)?;
        if text.is_empty() || text.contains(['\0', ':', '/']) || text.starts_with('-') {
            let message = format!("`{key}` must be a name or an id of 0 or more, not {}", found(node));
            let help = if key == "user" && text.contains(':') { "use `group` for the group" } else { "" };
            cx.error(node.span, message, help);
            return None;
        }
        match text.parse() {
            // To the kernel, the largest number means no change.
            Ok(id) if id < u32::MAX => Some(Principal::Id(id)),
            Err(_) if !text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Principal::Name(text)),
            _ => {
                cx.error(node.span, format!("`{key}` is too large: {text}"), "the largest id is 4294967294");
                None
            }
        }
    }
}
