//! Spans and attributes.

use containerpilot_core::Time;

use crate::ids::{Ids, SpanKey};
use crate::wire::Message;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// True or false.
    Flag(bool),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Something that happened, from its start to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// What it is about.
    pub key: SpanKey,
    /// The span that it belongs to; `None` for the root.
    pub parent: Option<SpanKey>,
    /// Its name.
    pub name: String,
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// What is known about it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// What happened meanwhile.
    pub events: Vec<SpanEvent>,
    /// How many events were left out, because there were too many.
    pub dropped_events: u32,
    /// Spans that caused it and had ended before.
    pub links: Vec<SpanKey>,
    /// Why it failed; `None` if it did not.
    pub failure: Option<String>,
}

/// A moment of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// When it happened.
    pub at: Time,
    /// Its name.
    pub name: &'static str,
    /// What is known about it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// `SPAN_KIND_INTERNAL`, `STATUS_CODE_ERROR`, and the flag of a sampled trace.
const INTERNAL: u64 = 1;
const ERROR: u64 = 2;
pub(crate) const SAMPLED: u32 = 1;

impl TraceSpan {
    /// Writes it as an item of a request. `unix` converts the core's time to nanoseconds since 1970.
    pub fn write(&self, out: &mut Vec<u8>, ids: &Ids, unix: impl Fn(Time) -> u64) {
        let id = |key: SpanKey| ids.span(key).0;
        Message(out).message(2, |span| {
            span.bytes(1, &ids.trace().0);
            span.bytes(2, &id(self.key));
            if let Some(parent) = self.parent {
                span.bytes(4, &id(parent));
            }
            span.text(5, &self.name);
            span.int(6, INTERNAL);
            span.fixed64(7, unix(self.start));
            span.fixed64(8, unix(self.end));
            for (key, value) in &self.attributes {
                write_attribute(span, 9, key, value);
            }
            for event in &self.events {
                span.message(11, |fields| {
                    fields.fixed64(1, unix(event.at));
                    fields.text(2, event.name);
                    for (key, value) in &event.attributes {
                        write_attribute(fields, 3, key, value);
                    }
                });
            }
            span.int(12, self.dropped_events.into());
            for link in &self.links {
                span.message(13, |fields| {
                    fields.bytes(1, &ids.trace().0);
                    fields.bytes(2, &id(*link));
                    fields.fixed32(6, SAMPLED);
                });
            }
            if let Some(failure) = &self.failure {
                span.message(15, |status| {
                    status.text(2, failure);
                    status.int(3, ERROR);
                });
            }
            span.fixed32(16, SAMPLED);
        });
    }
}

/// Writes an attribute.
pub(crate) fn write_attribute(to: &mut Message<'_>, field: u32, key: &str, value: &AttributeValue) {
    to.message(field, |pair| {
        pair.text(1, key);
        pair.message(2, |any| match value {
            AttributeValue::Text(text) => any.choice_bytes(1, text.as_bytes()),
            AttributeValue::Flag(flag) => any.choice_int(2, u64::from(*flag)),
            AttributeValue::Int(number) => any.choice_int(3, number.cast_unsigned()),
            AttributeValue::Double(number) => any.double(4, *number),
        });
    });
}
