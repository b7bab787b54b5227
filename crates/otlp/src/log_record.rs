//! Log records: entries of the supervisor, and lines of jobs.

use std::borrow::Cow;

use containerpilot_core::plan::Level;

use crate::ids::{SpanId, TraceId};
use crate::span::{AttributeValue, SAMPLED, write_attribute};
use crate::wire::{Message, varint, varint_len};

/// How much of a text is exported, in bytes.
pub const MAX_BODY: usize = 64 << 10;

/// An entry of the log, without its time and text.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord<'a> {
    /// The level.
    pub level: Level,
    /// What is known about it.
    pub attributes: &'a [(&'a str, AttributeValue)],
    /// The span that it belongs to.
    pub span: Option<(TraceId, SpanId)>,
}

/// Writes the lines of one process: only time and text differ.
#[derive(Debug)]
pub struct LineEncoder {
    /// The fields before the text, and those after it.
    level: Vec<u8>,
    rest: Vec<u8>,
}

/// The severity in OpenTelemetry's numbers, and the name of the level in the log.
const fn severity(level: Level) -> (u64, &'static str) {
    match level {
        Level::Debug => (5, "debug"),
        Level::Info => (9, "info"),
        Level::Warn => (13, "warning"),
        Level::Error => (17, "error"),
        Level::Fatal => (21, "fatal"),
        Level::Panic => (24, "panic"),
    }
}

impl LineEncoder {
    /// Prepares entries that have this in common.
    #[must_use]
    pub fn new(record: &LogRecord<'_>) -> Self {
        let (mut level, mut rest) = (Vec::new(), Vec::new());
        let mut fields = Message(&mut level);
        let (number, name) = severity(record.level);
        fields.int(2, number);
        fields.text(3, name);
        let mut fields = Message(&mut rest);
        for (key, value) in record.attributes {
            write_attribute(&mut fields, 6, key, value);
        }
        if let Some((trace, span)) = record.span {
            fields.fixed32(8, SAMPLED);
            fields.bytes(9, &trace.0);
            fields.bytes(10, &span.0);
        }
        Self { level, rest }
    }

    /// Writes one of them as an item of a request. The time is in nanoseconds since 1970. Bytes that are not UTF-8 are
    /// replaced, and a long text is cut.
    pub fn write(&self, out: &mut Vec<u8>, time: u64, text: &[u8]) {
        let mut cut = Vec::new();
        let shown = match text.get(..MAX_BODY) {
            Some(start) if text.len() > MAX_BODY => {
                let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
                write_attribute(
                    &mut Message(&mut cut),
                    6,
                    "containerpilot.length",
                    &AttributeValue::Int(length),
                );
                whole_characters(start)
            }
            _ => text,
        };
        let shown: Cow<'_, str> = String::from_utf8_lossy(shown);
        let value = 1 + varint_len(shown.len() as u64) + shown.len();
        let body = 1 + varint_len(value as u64) + value;
        // The two times have nine bytes each.
        let length = 18 + self.level.len() + body + self.rest.len() + cut.len();
        let begin = |out: &mut Vec<u8>, number: u8, length: usize| {
            out.push(number << 3 | 2);
            varint(out, length as u64);
        };
        out.reserve(length + 8);
        begin(out, 2, length);
        out.push(1 << 3 | 1);
        out.extend(time.to_le_bytes());
        out.extend_from_slice(&self.level);
        begin(out, 5, value);
        begin(out, 1, shown.len());
        out.extend_from_slice(shown.as_bytes());
        out.extend_from_slice(&self.rest);
        out.extend_from_slice(&cut);
        out.push(11 << 3 | 1);
        out.extend(time.to_le_bytes());
    }
}

/// The bytes without an incomplete character at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let is_start = |byte: &u8| byte & 0xc0 != 0x80;
    let last = bytes.iter().rev().take(4).position(is_start).unwrap_or(0);
    let from = bytes.len().saturating_sub(last + 1);
    match bytes.get(from..).map(std::str::from_utf8) {
        Some(Err(error)) if error.error_len().is_none() => bytes.get(..from).unwrap_or(bytes),
        _ => bytes,
    }
}
