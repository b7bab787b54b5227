//! Permission bits: the mode of the control socket, and the umask of a job.

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// Permission bits in octal: `"0600"`, `"0022"`.
pub struct Mode;

impl ValueType for Mode {
    type Value = u16;
    const SHAPE: Shape = Shape::Mode;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<u16> {
        let bits = match &node.value {
            Value::String(text) => {
                let digits = text.strip_prefix("0o").unwrap_or(text);
                let octal = !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
                octal.then(|| u16::from_str_radix(digits, 8).ok()).flatten()
            }
            // JSON5 has no octal numbers, so that a number can only be a mistake: 644 is not 0o644.
            _ => None,
        };
        let bits = bits.filter(|bits| *bits <= 0o777);
        if bits.is_none() {
            let message = format!("`{key}` must be octal digits in quotes, not {}", found(node));
            let example = if key == "umask" { "0022" } else { "0660" };
            cx.error(node.span, message, format!("for example: {key}: \"{example}\""));
        }
        bits
    }
}
