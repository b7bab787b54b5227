//! Identifiers of the trace and its spans.
//!
//! The id of a span follows from the trace and from what the span is about. So the event loop, the log thread and the
//! environment of a process agree about it without a table of spans.

use std::fmt::{self, Write};

use containerpilot_core::ids::{CheckRunId, EventId, RenderId, RunId};

/// The id of a trace: random, and never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span: never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub [u8; 8]);

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKey {
    /// The supervisor, from its start to its exit.
    Root,
    /// A run of a job.
    Run(RunId),
    /// The start of a run, until the job is healthy.
    Start(RunId),
    /// The stop of a run.
    Stop(RunId),
    /// A check, the test of a file or a drain program.
    Check(CheckRunId),
    /// The rendering of a file.
    Render(RenderId),
    /// An event.
    Event(EventId),
    /// A reload, by the number of its request.
    Reload(u64),
    /// The shutdown.
    Shutdown,
}

impl SpanKey {
    const fn number(self) -> (u64, u64) {
        match self {
            Self::Root => (0, 0),
            Self::Run(RunId(number)) => (1, number),
            Self::Start(RunId(number)) => (2, number),
            Self::Stop(RunId(number)) => (3, number),
            Self::Check(CheckRunId(number)) => (4, number),
            Self::Render(RenderId(number)) => (5, number),
            Self::Event(EventId(number)) => (6, number),
            Self::Reload(number) => (7, number),
            Self::Shutdown => (8, 0),
        }
    }
}

/// The ids of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    trace: TraceId,
    seed: u64,
}

impl Ids {
    /// The ids that follow from 128 random bits.
    #[must_use]
    pub fn new(random: [u64; 2]) -> Self {
        let [high, low] = random;
        let mut trace = [0; 16];
        // An id of zeros is not valid.
        trace.iter_mut().zip(high.to_be_bytes().into_iter().chain(low.max(1).to_be_bytes())).for_each(
            |(to, from)| {
                *to = from;
            },
        );
        Self { trace: TraceId(trace), seed: mixed(high ^ low.rotate_left(32)) }
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> TraceId {
        self.trace
    }

    /// The span about something.
    #[must_use]
    pub fn span(&self, key: SpanKey) -> SpanId {
        let (kind, number) = key.number();
        SpanId(mixed(self.seed ^ mixed(number << 4 | kind)).max(1).to_be_bytes())
    }

    /// The value of `TRACEPARENT` for a process whose own spans belong below a span (W3C Trace Context).
    #[must_use]
    pub fn traceparent(&self, key: SpanKey) -> String {
        format!("00-{}-{}-01", self.trace, self.span(key))
    }
}

/// A permutation of all numbers in which similar numbers become different ones (the end of splitmix64).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl fmt::Display for TraceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(out, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(out, &self.0)
    }
}

fn hex(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| {
        [byte >> 4, byte & 15]
            .into_iter()
            .try_for_each(|digit| out.write_char(char::from_digit(digit.into(), 16).unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn t6_ids_differ_by_what_the_span_is_about_and_are_never_zero() {
        let ids = Ids::new([1, 2]);
        let mut seen = BTreeSet::new();
        for number in 0..10_000 {
            let run = RunId(number);
            let keys = [
                SpanKey::Run(run),
                SpanKey::Start(run),
                SpanKey::Stop(run),
                SpanKey::Check(CheckRunId(number)),
                SpanKey::Render(RenderId(number)),
                SpanKey::Event(EventId(number)),
                SpanKey::Reload(number),
            ];
            for key in keys {
                assert!(seen.insert(ids.span(key).0), "{key:?}");
            }
        }
        assert!(seen.insert(ids.span(SpanKey::Root).0) && seen.insert(ids.span(SpanKey::Shutdown).0));
        assert!(!seen.contains([0; 8].as_slice()));
        assert_ne!(Ids::new([0, 0]).trace(), TraceId([0; 16]));
        assert_ne!(ids.span(SpanKey::Root), Ids::new([1, 3]).span(SpanKey::Root));
    }

    #[test]
    fn t6_traceparent_has_the_form_of_the_w3c() {
        let text = Ids::new([0xabcd, u64::MAX]).traceparent(SpanKey::Root);
        assert_eq!(text.get(..36), Some("00-000000000000abcdffffffffffffffff-"));
        assert!(text.len() == 55 && text.ends_with("-01"), "{text}");
    }
}
