//! Sizes in bytes.

use super::number::{parse_whole, whole};
use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// A number of bytes, or a number with a unit: `"10MB"` (L8). As for Docker and supervisord, a unit is a power of 1024, with or
/// without the `i` of `MiB`.
pub struct Size;

const UNITS: [(&str, u32); 5] = [("", 0), ("k", 10), ("m", 20), ("g", 30), ("t", 40)];

impl ValueType for Size {
    type Value = u64;
    const SHAPE: Shape = Shape::Size;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<u64> {
        let size = match &node.value {
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => parse_size(text),
            Value::Number(_) => whole(cx, node).and_then(|bytes| u64::try_from(bytes).ok()),
            _ => None,
        };
        if size.is_none() {
            let message = format!("`{key}` must be a size, not {}", found(node));
            cx.error(node.span, message, "for example: \"10MB\", \"512KB\" or a number of bytes");
        }
        size
    }
}

/// Parses a size.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit() && character != '_');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").filter(|unit| !unit.is_empty()).unwrap_or(&unit);
    let (_, power) = UNITS.iter().find(|(name, _)| *name == unit.strip_suffix('b').unwrap_or(unit))?;
    let number = u64::try_from(parse_whole(number)?).ok()?;
    number.checked_mul(1 << power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l8_sizes_are_read_as_by_docker_and_supervisord() {
        let sizes = ["0", "7", "7b", "4k", "4KB", "4KiB", "10MB", "10 m", "1g", "2TiB", "1_000"];
        let bytes = [0, 7, 7, 4096, 4096, 4096, 10 << 20, 10 << 20, 1 << 30, 2 << 40, 1000];
        assert_eq!(sizes.map(parse_size), bytes.map(Some));
        for wrong in ["", "MB", "ib", "7ib", "1.5MB", "-1", "10 M B", "1x", "10kk", "99999999999TB"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
