//! Names of events.

use containerpilot_core::event::Code;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// The code of an event, or a name that 3.8 knows but that never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// A code that can come.
    Code(Code),
    /// 3.8 takes this word too, but no job ever sees such an event.
    NeverSent(&'static str),
}

/// What `once` and `each` hold: an event's name, or whether each one counts (W12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrFlag {
    /// An event.
    Event(EventName),
    /// True or false, beside `all` or `any`.
    Flag(bool),
}

/// The names that a configuration can write for an event.
pub const EVENT_NAMES: [&str; 12] = {
    let mut names = [""; 12];
    let mut at = 0;
    while at < names.len() {
        names[at] = Code::NAMED[at].name();
        at += 1;
    }
    names
};

/// What people call the events.
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

/// An event's name.
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
            "no event tells that a job has started; \"healthy\" tells that its health check has passed"
                .to_owned()
        }
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the events are {}", EVENT_NAMES.join(", ")),
    };
    cx.error(node.span, format!("`{key}` must be the name of an event, not {}", found(node)), help);
    None
}

/// An event's name, or true or false.
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
