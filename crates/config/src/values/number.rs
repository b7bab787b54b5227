//! Integers.

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// An integer from `MIN` to `MAX`.
pub struct Whole<const MIN: i64, const MAX: i64>;

/// A port; 0 means none.
pub type Port = Whole<0, 65535>;

impl<const MIN: i64, const MAX: i64> ValueType for Whole<MIN, MAX> {
    type Value = i64;
    const SHAPE: Shape = Shape::Whole { min: MIN, max: MAX };
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<i64> {
        within(cx, key, node, MIN, MAX)
    }
}

/// Decodes an integer within bounds.
fn within(cx: &mut DecodeContext<'_>, key: &str, node: &Node, min: i64, max: i64) -> Option<i64> {
    let number = whole(cx, node).filter(|number| (min..=max).contains(number));
    if number.is_none() {
        let help = match &node.value {
            Value::List(_) if key == "port" => "write one number; add another job for another port",
            Value::String(_) if key == "port" => "write the number of the port, for example port: 8000",
            _ => "",
        };
        let message = format!("`{key}` must be an integer from {min} to {max}, not {}", found(node));
        cx.error(node.span, message, help);
    }
    number
}

/// Decodes an integer as 3.8 does: fractions are cut off, booleans are 1 and 0, a string may have a prefix.
pub(super) fn whole(cx: &mut DecodeContext<'_>, node: &Node) -> Option<i64> {
    match &node.value {
        Value::Number(number) => {
            let cut = number.value.trunc();
            if number.value.fract() != 0.0 {
                cx.warn(node.span, format!("the fraction is ignored: {} is read as {cut}", number.text), "");
            }
            // The bound is a power of two, so the comparison is exact. NaN fails it.
            const BOUND: f64 = (1_u64 << 63) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the guard ensures that it fits into 64 bits"
            )]
            (-BOUND..BOUND).contains(&cut).then_some(cut as i64)
        }
        Value::Bool(flag) => {
            let number = i64::from(*flag);
            cx.warn(node.span, format!("{flag} is read as {number}"), "write the number");
            Some(number)
        }
        Value::String(text) => parse_whole(text),
        _ => None,
    }
}

/// Parses an integer: decimal even with a leading zero (3.8 reads `010` as 8), with the prefix `0x`, `0b` or `0o`, and with
/// `_` between digits.
#[must_use]
pub fn parse_whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits, prefixed) = [("0x", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((radix, lower.strip_prefix(prefix)?, true)))
        .unwrap_or((10, lower.as_str(), false));
    let well_formed = |digits: &str| {
        !digits.is_empty()
            && !digits.ends_with('_')
            && !digits.contains("__")
            && (prefixed || !digits.starts_with('_'))
    };
    if !well_formed(digits) || digits.starts_with(['+', '-']) {
        return None;
    }
    let plain = digits.replace('_', "");
    let number = i128::from_str_radix(&plain, radix).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}
