//! Everything that is logged, as records for the collector.

use std::sync::Arc;

use containerpilot_core::ids::RunId;
use containerpilot_core::log_entry::Fields;
use containerpilot_core::plan::Level;
use containerpilot_otlp::{AttributeValue, Ids, LineEncoder, LogRecord, SpanKey};

use super::outbox::Outbox;
use super::unix_nanos;
use crate::logs::{StreamName, Tap, TapEntry, TapOrigin};

/// Puts records into an outbox.
#[derive(Debug)]
pub(super) struct LogTap {
    pub(super) outbox: Arc<Outbox>,
    /// With traces, records belong to spans.
    pub(super) ids: Option<Ids>,
}

impl LogTap {
    fn encoder(
        &self,
        level: Level,
        run: Option<RunId>,
        attributes: &[(&str, AttributeValue)],
    ) -> LineEncoder {
        let key = run.map_or(SpanKey::Root, SpanKey::Run);
        let span = self.ids.as_ref().map(|ids| (ids.trace(), ids.span(key)));
        LineEncoder::new(&LogRecord { level, attributes, span })
    }
}

impl Tap for LogTap {
    fn output(&self, origin: &TapOrigin<'_>, text: &[u8], several: bool) {
        let source = origin.source;
        let stream = match origin.stream {
            StreamName::Stdout => "stdout",
            StreamName::Stderr => "stderr",
        };
        let mut attributes = vec![
            ("containerpilot.job", AttributeValue::from(&*source.job)),
            ("process.pid", AttributeValue::Int(source.pid.into())),
            ("log.iostream", stream.into()),
        ];
        attributes.extend(source.check.as_deref().map(|check| ("containerpilot.check", check.into())));
        let encoder = self.encoder(origin.level, source.run, &attributes);
        let time = unix_nanos(origin.time);
        self.outbox.push(|buffer| {
            let mut rest = text;
            while several && let Some(end) = memchr::memchr(b'\n', rest) {
                let (line, others) = rest.split_at(end);
                buffer.push(|out| encoder.write(out, time, line));
                rest = others.get(1..).unwrap_or_default();
            }
            if !several {
                buffer.push(|out| encoder.write(out, time, text));
            }
        });
    }

    fn entry(&self, entry: &TapEntry<'_>) {
        let mut attributes: Vec<(&str, AttributeValue)> = Vec::new();
        attributes.extend(entry.job.map(|job| ("containerpilot.job", job.into())));
        if let Some(fields) = entry.fields {
            add_fields(&mut attributes, fields);
        }
        let encoder = self.encoder(entry.level, entry.run, &attributes);
        let time = unix_nanos(entry.time);
        self.outbox.push(|buffer| {
            buffer.push(|out| encoder.write(out, time, entry.message.as_bytes()));
        });
    }
}

/// The fields of an entry (L7).
fn add_fields(attributes: &mut Vec<(&str, AttributeValue)>, fields: &Fields) {
    let Fields { event, pid, check, code, signal, duration, cause } = fields;
    attributes.push(("containerpilot.event", event.name().into()));
    attributes.extend(pid.map(|pid| ("process.pid", AttributeValue::Int(pid.into()))));
    attributes.extend(check.as_deref().map(|check| ("containerpilot.check", check.into())));
    attributes.extend(code.map(|code| ("process.exit.code", AttributeValue::Int(code.into()))));
    attributes
        .extend(signal.map(|signal| ("containerpilot.signal", AttributeValue::Text(signal.to_string()))));
    attributes
        .extend(duration.map(|time| ("containerpilot.duration", AttributeValue::Double(time.as_secs_f64()))));
    attributes.extend(cause.as_deref().map(|cause| ("containerpilot.cause", cause.into())));
}
