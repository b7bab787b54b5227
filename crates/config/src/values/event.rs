//! Names of events.

use containerpilot_core::event::Code;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// An event, or a name that 3.8 accepts although no such event exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// An event that exists.
    Code(Code),
    /// 3.8 accepts this word too, but never sends such an event to a job.
    NeverSent(&'static str),
}

/// The value of `once` and `each`: the name of an event, or a boolean (W12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrFlag {
    /// An event.
    Event(EventName),
    /// A boolean, beside `all` or `any`.
    Flag(bool),
}

/// The names of events in a configuration.
pub const EVENT_NAMES: [&str; Code::NAMED.len()] = {
    let mut names = [""; Code::NAMED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Code::NAMED[at].name();
        at += 1;
    }
    names
};

/// Other words for the events, for suggestions.
const OTHER_EVENTS: [(&str, &str); 18] = [
    ("exit", "exitSuccess"),
    ("exited", "exitSuccess"),
    ("done", "exitSuccess"),
    ("finished", "exitSuccess"),
    ("complete", "exitSuccess"),
    ("completed", "exitSuccess"),
    ("success", "exitSuccess"),
    ("succeeded", "exitSuccess"),
    ("fail", "exitFailed"),
    ("failed", "exitFailed"),
    ("failure", "exitFailed"),
    ("crashed", "exitFailed"),
    ("start", "startup"),
    ("stop", "stopping"),
    ("end", "stopped"),
    ("ready", "healthy"),
    ("up", "healthy"),
    ("down", "unhealthy"),
];

/// The name of an event.
pub struct Event;

impl ValueType for Event {
    type Value = EventName;
    const SHAPE: Shape = Shape::OneOf(&EVENT_NAMES);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<EventName> {
        let text = cx.text(key, node)?;
        event_named(cx, key, node, &text)
    }
}

fn event_named(cx: &mut DecodeContext<'_>, key: &str, node: &Node, text: &str) -> Option<EventName> {
    if text.is_empty() {
        return None;
    }
    if let Some(code) = Code::from_name(text) {
        return Some(EventName::Code(code));
    }
    if let Some(word) = ["SIGHUP", "SIGUSR2", "quit", "error"].into_iter().find(|word| *word == text) {
        return Some(EventName::NeverSent(word));
    }
    let lower = text.to_ascii_lowercase();
    let help = match crate::suggest::best_match(text, &EVENT_NAMES, &OTHER_EVENTS) {
        _ if matches!(lower.as_str(), "started" | "running") => {
            "there is no event for the start of a job; use \"healthy\", which is sent when its health check passes"
                .to_owned()
        }
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the events are {}", EVENT_NAMES.join(", ")),
    };
    cx.error(node.span, format!("`{key}` must be the name of an event, not {}", found(node)), help);
    None
}

/// The name of an event, or a boolean.
pub struct EventOrBool;

impl ValueType for EventOrBool {
    type Value = EventOrFlag;
    const SHAPE: Shape = Shape::EventOrFlag(&EVENT_NAMES);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<EventOrFlag> {
        match &node.value {
            Value::Bool(flag) => Some(EventOrFlag::Flag(*flag)),
            _ => {
                let text = cx.text(key, node)?;
                event_named(cx, key, node, &text).map(EventOrFlag::Event)
            }
        }
    }
}
