//! Durations.

use std::time::Duration;

use super::number::{parse_whole, whole};
use crate::decode::{DecodeContext, Shape, ValueType, found, weak_text};
use crate::duration::{self, DurationError};
use crate::json5::{Node, Value};

/// A number of seconds, or a duration, for keys that are in seconds in 3.8 (H1, S4, D7).
pub struct Seconds;

impl ValueType for Seconds {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<i64> {
        if let Value::String(text) = &node.value
            && parse_whole(text).is_none()
            && !text.is_empty()
        {
            return duration_of(cx, key, node, text, duration::parse_go);
        }
        let seconds = whole(cx, node);
        let nanoseconds = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
        if nanoseconds.is_none() {
            match seconds {
                Some(_) => {
                    cx.error(node.span, format!("`{key}` is too long"), DurationError::TooLarge.help());
                }
                None => {
                    let message =
                        format!("`{key}` must be a number of seconds or a duration, not {}", found(node));
                    cx.error(node.span, message, "for example: 5, \"5s\" or \"1m30s\"");
                }
            }
        }
        nanoseconds
    }
}

/// Seconds or a duration. 0 counts as absent, as in the global `stopTimeout` of 3.8.
pub struct SecondsOrUnset;

impl ValueType for SecondsOrUnset {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<i64> {
        Seconds::read(cx, key, node).filter(|time| *time != 0)
    }
}

/// A duration. A number or digits are seconds; the empty string counts as absent (C3).
pub struct DurationText;

impl ValueType for DurationText {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<i64> {
        let text = duration_text(cx, key, node)?;
        duration_of(cx, key, node, &text, duration::parse)
    }
}

fn duration_text(cx: &mut DecodeContext<'_>, key: &str, node: &Node) -> Option<String> {
    let Some(text) = weak_text(&node.value) else {
        let message = format!("`{key}` must be a duration, not {}", found(node));
        cx.error(node.span, message, "for example: 5, \"5s\" or \"1m30s\"");
        return None;
    };
    (!text.is_empty()).then_some(text)
}

fn duration_of(
    cx: &mut DecodeContext<'_>,
    key: &str,
    node: &Node,
    text: &str,
    parse: fn(&str) -> Result<i64, DurationError>,
) -> Option<i64> {
    match parse(text) {
        Ok(nanoseconds) => Some(nanoseconds),
        Err(error) => {
            let message = match &error {
                DurationError::NotADuration => {
                    format!("`{key}` must be a number of seconds or a duration, not {}", found(node))
                }
                DurationError::TooLarge => format!("`{key}` is too long"),
                _ => format!("`{key}` is not a duration: {error}"),
            };
            let help = match &error {
                DurationError::NotADuration => "for example: 5, \"5s\" or \"1m30s\"".to_owned(),
                // The missing unit is the next smaller one: `1h30` means `1h30m`.
                DurationError::MissingUnit { number } if text.ends_with(number.as_str()) => {
                    let unit = if text.contains('h') { "m" } else { "s" };
                    format!("write \"{text}{unit}\"")
                }
                _ => error.help(),
            };
            cx.error(node.span, message, help);
            None
        }
    }
}

/// A duration with a unit. It is parsed later, and only for an advertised job.
pub struct DurationWithUnit;

impl ValueType for DurationWithUnit {
    type Value = String;
    const SHAPE: Shape = Shape::DurationWithUnit;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node)
    }
}

/// The time limit of a run (P5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// A limit in nanoseconds.
    After(i64),
    /// No limit.
    Never,
}

/// A duration, or `"never"`.
pub struct DurationOrNever;

impl ValueType for DurationOrNever {
    type Value = TimeLimit;
    const SHAPE: Shape = Shape::DurationOrNever;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<TimeLimit> {
        let text = duration_text(cx, key, node)?;
        if text == "never" {
            return Some(TimeLimit::Never);
        }
        duration_of(cx, key, node, &text, duration::parse).map(TimeLimit::After)
    }
}

/// Converts nanoseconds. A negative duration is zero.
#[must_use]
pub fn to_duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// A date and time with an offset, such as `2026-03-29T00:00:00Z`: the time since 1970.
pub struct Timestamp;

impl ValueType for Timestamp {
    type Value = Duration;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Duration> {
        let text = cx.text(key, node)?;
        let time =
            text.parse::<jiff::Timestamp>().ok().and_then(|time| Duration::try_from(time.as_duration()).ok());
        if time.is_none() {
            let message =
                format!("`{key}` must be a date and time since 1970 with an offset, not {}", found(node));
            cx.error(node.span, message, format!("for example: {key}: \"2026-03-29T00:00:00Z\""));
        }
        time
    }
}
