//! Signals and exit statuses, by name or by number.

use std::time::Duration;

use containerpilot_core::exit_status::ExitStatus;
use containerpilot_core::plan::{Escalation, Signal};

use super::list::items;
use super::number::parse_whole;
use super::time::{DurationText, to_duration};
use crate::decode::{DecodeContext, Shape, ValueType, found, weak_text};
use crate::json5::{Node, Value};
use crate::limits::SHORTEST_TIME;
use crate::suggest;

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl ValueType for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        signal(cx, key, node)
    }
}

fn signal(cx: &mut DecodeContext<'_>, key: &str, node: &Node) -> Option<Signal> {
    let text = cx.text(key, node)?;
    let signal = Signal::from_name(&text);
    if signal.is_none() {
        let help = match nearest_signal(&text) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "for example: \"SIGINT\"".to_owned(),
        };
        cx.error(node.span, format!("`{key}` must be a signal, not {}", found(node)), help);
    }
    signal
}

/// A list of signals that a process can receive (S8).
pub struct SignalNames;

impl ValueType for SignalNames {
    type Value = Vec<Signal>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<Signal>> {
        let items = items(cx, key, node)?;
        if items.is_empty() {
            let message = format!("`{key}` must have at least one signal");
            cx.error(node.span, message, "write the `STOPSIGNAL` of the image, for example: [\"SIGTERM\"]");
            return None;
        }
        let mut signals = Vec::new();
        for item in items {
            let signal = signal(cx, key, item)?;
            if !signal.can_be_received() {
                let why = match signal {
                    Signal::KILL | Signal::STOP => "a process cannot catch it",
                    Signal::CHLD => "the kernel sends it at each exit of a child",
                    _ => "the C library uses it",
                };
                cx.error(item.span, format!("`{key}` cannot contain {signal}: {why}"), "remove it");
                return None;
            }
            if !signals.contains(&signal) {
                signals.push(signal);
            }
        }
        Some(signals)
    }
}

/// `stopSignal`: a signal, and those that follow it (S9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopEscalation {
    /// The stop signal.
    pub signal: Signal,
    /// The signals that follow, without SIGKILL.
    pub then: Vec<Escalation>,
    /// How long after the stop signal SIGKILL follows, if the list ends with it.
    pub kill_after: Option<Duration>,
}

/// A signal, or a list of signals with durations between them (S9).
pub struct StopSignals;

impl ValueType for StopSignals {
    type Value = StopEscalation;
    const SHAPE: Shape = Shape::WordOrWords;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<StopEscalation> {
        const EXAMPLE: &str = "for example: [\"QUIT\", \"10s\", \"TERM\", \"5s\", \"KILL\"]";
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let Some((first, rest)) = items.split_first() else {
            cx.error(node.span, format!("`{key}` is an empty list"), EXAMPLE);
            return None;
        };
        let mut stop = StopEscalation { signal: signal(cx, key, first)?, then: Vec::new(), kill_after: None };
        let mut total = Duration::ZERO;
        if stop.signal == Signal::KILL && !rest.is_empty() {
            cx.error(first.span, format!("nothing can follow SIGKILL in `{key}`"), EXAMPLE);
            return None;
        }
        let mut steps = rest.chunks(2).peekable();
        while let Some(step) = steps.next() {
            let [time, next] = step else {
                let message = format!("`{key}` must end with a signal, not a duration");
                cx.error(step.first().map_or(node.span, |last| last.span), message, EXAMPLE);
                return None;
            };
            if weak_text(&time.value).is_some_and(|text| is_signal_name(&text)) {
                let message = format!("`{key}` needs a duration between two signals");
                cx.error(time.span, message, EXAMPLE);
                return None;
            }
            let after = DurationText::read(cx, key, time)?;
            if after < SHORTEST_TIME {
                cx.error(time.span, format!("a duration in `{key}` must be at least 1ms"), EXAMPLE);
                return None;
            }
            let (after, next_signal) = (to_duration(after), signal(cx, key, next)?);
            total = total.saturating_add(after);
            if next_signal != Signal::KILL {
                stop.then.push(Escalation { after, signal: next_signal });
            } else if steps.peek().is_some() {
                cx.error(next.span, format!("nothing can follow SIGKILL in `{key}`"), EXAMPLE);
                return None;
            } else {
                stop.kill_after = Some(total);
            }
        }
        Some(stop)
    }
}

/// Returns true for the name of a signal. A number may also be a duration.
fn is_signal_name(text: &str) -> bool {
    parse_whole(text).is_none() && Signal::from_name(text).is_some()
}

/// Exit codes and signals that are a success (W13).
pub struct ExitStatuses;

impl ValueType for ExitStatuses {
    type Value = Vec<ExitStatus>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<ExitStatus>> {
        let items = items(cx, key, node)?;
        if items.is_empty() {
            let message = format!("`{key}` is empty, so that no run could succeed");
            cx.error(node.span, message, "remove it, or add the exit codes: [0]");
            return None;
        }
        let mut statuses = Vec::new();
        for item in items {
            let status = exit_status(cx, key, item)?;
            if !statuses.contains(&status) {
                statuses.push(status);
            }
        }
        Some(statuses)
    }
}

fn exit_status(cx: &mut DecodeContext<'_>, key: &str, node: &Node) -> Option<ExitStatus> {
    let text = weak_text(&node.value).unwrap_or_default();
    if let Some(number) = parse_whole(&text) {
        if let Ok(code) = u8::try_from(number) {
            return Some(ExitStatus::Code(code));
        }
        cx.error(node.span, format!("an exit code in `{key}` must be from 0 to 255, not {number}"), "");
        return None;
    }
    if let Some(signal) = Signal::from_name(&text) {
        return Some(ExitStatus::Signal(signal));
    }
    let message = format!("`{key}` must contain exit codes and signals, not {}", found(node));
    let help = match nearest_signal(&text) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "for example: [0, 143, \"SIGTERM\"]".to_owned(),
    };
    cx.error(node.span, message, help);
    None
}

/// The signal that a misspelled name probably means.
#[must_use]
pub fn nearest_signal(text: &str) -> Option<Signal> {
    // Without the prefix, which would make every short name similar to every other.
    let short = |name: String| name.strip_prefix("SIG").map(str::to_owned).unwrap_or(name);
    let names: Vec<String> = (1..=31).map(|number| short(Signal(number).to_string())).collect();
    let name = short(text.to_ascii_uppercase());
    Signal::from_name(suggest::nearest(&name, names.iter().map(String::as_str))?)
}
