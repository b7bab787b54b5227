//! Sections, alone and in lists.

use std::marker::PhantomData;

use super::list::items;
use super::time::DurationText;
use crate::decode::{DecodeContext, Section, SectionInfo, Shape, Spanned, ValueType, found};
use crate::json5::{Member, Node, Value};
use crate::span::Span;

/// A section.
pub struct Object<S>(PhantomData<S>);

impl<S: Section> ValueType for Object<S> {
    type Value = S;
    const SHAPE: Shape = Shape::Object(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<S> {
        let members = cx.members(key, node, example(&S::INFO))?;
        Some(S::from_members(cx, node.span, members))
    }
}

/// An example of a section, for messages.
fn example(info: &SectionInfo) -> &'static str {
    match info.name {
        "a job" => "{ name: \"server\", exec: \"/bin/server\" }",
        "a watch" => "{ name: \"database\", interval: 5 }",
        "a metric" => "{ name: \"requests\", help: \"…\", type: \"counter\" }",
        "a coprocess" => "{ command: \"/bin/helper\" }",
        "a requirement" => "{ source: \"db\", bind: true }",
        "a condition" => "{ source: \"setup\", event: \"exitSuccess\" }",
        "`when`" => "{ source: \"setup\", once: \"exitSuccess\" }",
        "`do`" => "{ signal: \"HUP\", to: \"nginx\" }",
        "`health`" => "{ exec: \"curl --fail http://localhost:8000/\", interval: 10, ttl: 30 }",
        "`ready`" => "{ fd: 3 }",
        "`drain`" => "{ exec: \"/bin/drain\", timeout: \"10s\" }",
        "`http`" => "{ url: \"https://127.0.0.1:8443/health\", status: [200] }",
        "`logging`" => "{ level: \"debug\" }",
        "`logging` of a job" => "{ file: \"/var/log/app.log\" }",
        "`logging` of a check" => "{ raw: true }",
        "`service`" => "{ name: \"web\", address: \"198.51.100.7\" }",
        "`consul` of a job" => "{ enableTagOverride: true }",
        "`control`" => "{ socket: \"/var/run/containerpilot.socket\" }",
        "`telemetry`" => "{ port: 9090 }",
        "`tls`" => "{ cafile: \"/etc/consul/ca.pem\" }",
        _ => "{ … }",
    }
}

/// A list of sections. A null in it is ignored, as in 3.8.
pub struct ListOf<S>(PhantomData<S>);

impl<S: Section> ValueType for ListOf<S> {
    type Value = Vec<S>;
    const SHAPE: Shape = Shape::List(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<S>> {
        let mut sections = Vec::new();
        each(cx, key, node, &S::INFO, &mut |cx, span, members| {
            sections.push(S::from_members(cx, span, members));
        })?;
        Some(sections)
    }
}

/// Decodes each object of a list.
fn each(
    cx: &mut DecodeContext<'_>,
    key: &str,
    node: &Node,
    info: &SectionInfo,
    read: &mut dyn FnMut(&mut DecodeContext<'_>, Span, &[Member]),
) -> Option<()> {
    let accepted = match &node.value {
        Value::List(_) => true,
        Value::Object(members) => members.is_empty() && !matches!(key, "jobs" | "watches" | "coprocesses"),
        _ => false,
    };
    if !accepted {
        let message = format!("`{key}` must be a list, not {}", found(node));
        cx.error(node.span, message, format!("put it in brackets: {key}: [ {{ … }} ]"));
        return None;
    }
    for item in items(cx, key, node)? {
        match &item.value {
            Value::Null => {
                cx.warn(item.span, format!("a null in `{key}` is ignored"), "remove it");
            }
            Value::Object(members) => read(cx, item.span, members),
            _ => {
                let message = format!("each element of `{key}` must be an object, not {}", found(item));
                cx.error(item.span, message, format!("for example: {}", example(info)));
            }
        }
    }
    Some(())
}

/// A section, or a list of sections.
pub struct OneOrMany<S>(PhantomData<S>);

/// The value of a key that accepts one section or a list.
#[derive(Clone, Debug)]
pub struct Several<S> {
    /// The sections.
    pub items: Vec<S>,
    /// True if they are written as a list.
    pub listed: bool,
}

impl<S: Section> ValueType for OneOrMany<S> {
    type Value = Several<S>;
    const SHAPE: Shape = Shape::OneOrMany(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Several<S>> {
        match &node.value {
            Value::List(items) if items.is_empty() => {
                empty_list(cx, key, node);
                None
            }
            Value::List(_) => Some(Several { items: ListOf::<S>::read(cx, key, node)?, listed: true }),
            _ => Some(Several { items: vec![Object::<S>::read(cx, key, node)?], listed: false }),
        }
    }
}

fn empty_list(cx: &mut DecodeContext<'_>, key: &str, node: &Node) {
    cx.error(node.span, format!("`{key}` is an empty list"), "remove it, or add an element");
}

/// A section, `true` for its defaults, or `false` to disable it.
pub struct ObjectOrBool<S>(PhantomData<S>);

impl<S: Section> ValueType for ObjectOrBool<S> {
    type Value = Option<S>;
    const SHAPE: Shape = Shape::ObjectOrBool(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Option<S>> {
        match &node.value {
            Value::Bool(false) => Some(None),
            Value::Bool(true) => Some(Some(S::from_members(cx, node.span, &[]))),
            Value::Object(members) => Some(Some(S::from_members(cx, node.span, members))),
            _ => {
                let message = format!("`{key}` must be an object, true or false, not {}", found(node));
                cx.error(node.span, message, "write `true` for the defaults, or `false` to switch it off");
                None
            }
        }
    }
}

/// A list whose elements are sections, or strings that stand for one of their fields.
pub struct TextsOrObjects<S>(PhantomData<S>);

impl<S: Section> ValueType for TextsOrObjects<S> {
    type Value = Vec<Spanned<Either<S>>>;
    const SHAPE: Shape = Shape::TextsOrObjects(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let mut elements = Vec::new();
        for item in items(cx, key, node)? {
            let value = match &item.value {
                Value::Object(members) => Either::Object(S::from_members(cx, item.span, members)),
                Value::String(text) => Either::Text(text.clone()),
                _ => {
                    let message =
                        format!("each element of `{key}` must be a string or an object, not {}", found(item));
                    cx.error(item.span, message, format!("for example: {key}: [\"db\"]"));
                    return None;
                }
            };
            let place = cx.at(item.span);
            elements.push(Spanned { value, place, key: place, written: true });
        }
        Some(elements)
    }
}

/// A section, or a string that stands for one of its fields.
pub struct ObjectOrText<S>(PhantomData<S>);

/// The value of a key that accepts a section or a string.
#[derive(Clone, Debug)]
pub enum Either<S> {
    /// A string.
    Text(String),
    /// A section.
    Object(S),
}

impl<S> Either<S> {
    /// The section, if it is one.
    pub const fn object(&self) -> Option<&S> {
        match self {
            Self::Text(_) => None,
            Self::Object(section) => Some(section),
        }
    }
}

impl<S: Section> ValueType for ObjectOrText<S> {
    type Value = Either<S>;
    const SHAPE: Shape = Shape::ObjectOrText(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Either<S>> {
        match &node.value {
            Value::String(text) => Some(Either::Text(text.clone())),
            Value::Object(members) => Some(Either::Object(S::from_members(cx, node.span, members))),
            _ => {
                let message = format!("`{key}` must be a string or an object, not {}", found(node));
                cx.error(node.span, message, format!("for example: {key}: \"localhost:8500\""));
                None
            }
        }
    }
}

/// A duration, or a section.
pub struct DurationOrObject<S>(PhantomData<S>);

/// The value of a key that accepts a duration or a section.
#[derive(Clone, Debug)]
pub enum TimeOr<S> {
    /// A duration in nanoseconds.
    Time(i64),
    /// A section.
    Object(S),
}

impl<S: Section> ValueType for DurationOrObject<S> {
    type Value = TimeOr<S>;
    const SHAPE: Shape = Shape::DurationOrObject(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<TimeOr<S>> {
        match &node.value {
            Value::Object(members) => Some(TimeOr::Object(S::from_members(cx, node.span, members))),
            _ => DurationText::read(cx, key, node).map(TimeOr::Time),
        }
    }
}

/// A section, or `"manual"` (W17).
pub struct ObjectOrManual<S>(PhantomData<S>);

/// The word in place of `when`.
const MANUAL: &str = "manual";

impl<S: Section> ValueType for ObjectOrManual<S> {
    type Value = Either<S>;
    const SHAPE: Shape = Shape::ObjectOrWord(&S::INFO, MANUAL);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Either<S>> {
        match &node.value {
            Value::String(text) if text == MANUAL => Some(Either::Text(text.clone())),
            Value::Object(members) => Some(Either::Object(S::from_members(cx, node.span, members))),
            _ => {
                let message = format!("`{key}` must be an object or \"{MANUAL}\", not {}", found(node));
                let help = match &node.value {
                    Value::String(text) if text.eq_ignore_ascii_case(MANUAL) => {
                        format!("did you mean \"{MANUAL}\"?")
                    }
                    Value::String(text) if text.starts_with('@') || text.split_whitespace().count() == 5 => {
                        format!("write {key}: {{ cron: \"{text}\" }}")
                    }
                    _ => format!("for example: {key}: {}", example(&S::INFO)),
                };
                cx.error(node.span, message, help);
                None
            }
        }
    }
}
