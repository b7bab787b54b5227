//! The export to an OpenTelemetry collector (T6): OTLP over HTTP.
//!
//! The event loop turns its steps into spans (`crates/otlp`) and the log thread its entries into records. Both put
//! them, encoded, into a bounded [`Outbox`] and never wait. One task per kind of data on the network thread sends them.
//! Metrics are read from the core at an interval. Without the key `otlp` none of this exists.

mod client;
mod exporter;
mod log_tap;
mod metrics;
mod outbox;
mod resource;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::ids::RunId;
use containerpilot_core::plan;
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_otlp::{CoreStep, ExportKind, Ids, SpanKey, TraceSpan, Tracer};
use containerpilot_views::clock::WallClock;
use containerpilot_views::snapshot::Snapshot;
use tokio::sync::watch;

use self::client::CollectorClient;
use self::exporter::{ExportPhase, Exporter};
use self::log_tap::LogTap;
use self::outbox::Outbox;
use super::Metrics;
use crate::logs::Tap;
use crate::messages::query_handle::QueryHandle;
use crate::net::Net;

/// How many bytes of encoded log records, and of spans, wait at most.
const LOG_BYTES: usize = 8 << 20;
const SPAN_BYTES: usize = 2 << 20;

/// The event loop's handle of the export. Dropping it sends what waits, once, and stops.
#[derive(Debug)]
pub(crate) struct Export {
    wanted: plan::Otlp,
    ids: Ids,
    clock: WallClock,
    tracer: Option<Tracer>,
    spans: Option<Arc<Outbox>>,
    logs: Option<Arc<Outbox>>,
    /// Spans of the current step.
    ended: Vec<TraceSpan>,
    phase: watch::Sender<ExportPhase>,
    /// Disconnected when every task has ended.
    stopped: mpsc::Receiver<()>,
}

/// What the export needs of the supervisor.
pub(crate) struct Handles<'a> {
    pub(crate) net: &'a Net,
    pub(crate) metrics: Metrics,
    pub(crate) queries: QueryHandle,
    pub(crate) core: Option<&'a Core>,
    pub(crate) ids: Ids,
    pub(crate) now: Time,
}

/// The ids of the trace of this supervisor.
pub(crate) fn random_ids() -> Ids {
    // Each has keys from the operating system.
    Ids::new([(); 2].map(|()| RandomState::new().build_hasher().finish()))
}

/// A time in nanoseconds since 1970.
fn unix_nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Export {
    /// R3: applies a plan. An unchanged export continues; spans that are open stay open in any case.
    pub(crate) fn follow(
        current: Option<Self>,
        wanted: Option<&plan::Otlp>,
        handles: Handles<'_>,
    ) -> Option<Self> {
        let wanted = wanted?;
        if current.as_ref().is_some_and(|current| current.wanted == *wanted) {
            return current;
        }
        let Handles { net, metrics, queries, core, ids, now } = handles;
        let tracer = current.and_then(|current| current.tracer);
        let tracer = wanted.traces.then(|| tracer.or_else(|| core.map(Tracer::new))).flatten();
        let since_start = Duration::from_nanos(now.as_nanos());
        let clock = WallClock(SystemTime::now().checked_sub(since_start).unwrap_or(SystemTime::UNIX_EPOCH));
        let (phase, phase_changes) = watch::channel(ExportPhase::Running);
        let (running, stopped) = mpsc::channel();
        let resource = Arc::new(resource::of(wanted, &ids));
        let exporter = |kind: ExportKind| Exporter {
            client: CollectorClient::new(wanted, kind),
            kind,
            resource: Arc::clone(&resource),
            metrics: metrics.clone(),
            queries: queries.clone(),
            phase: phase_changes.clone(),
            _running: running.clone(),
        };
        let spans = tracer.is_some().then(|| Arc::new(Outbox::new(SPAN_BYTES)));
        if let Some(outbox) = &spans {
            net.spawn(exporter(ExportKind::Traces).send_items(Arc::clone(outbox)));
        }
        let logs = wanted.logs.then(|| Arc::new(Outbox::new(LOG_BYTES)));
        if let Some(outbox) = &logs {
            net.spawn(exporter(ExportKind::Logs).send_items(Arc::clone(outbox)));
        }
        if wanted.metrics {
            net.spawn(exporter(ExportKind::Metrics).send_metrics(wanted.interval));
        }
        let wanted = wanted.clone();
        Some(Self { wanted, ids, clock, tracer, spans, logs, ended: Vec::new(), phase, stopped })
    }

    /// What gets a copy of the log.
    pub(crate) fn log_tap(&self) -> Option<Arc<dyn Tap>> {
        let outbox = Arc::clone(self.logs.as_ref()?);
        let ids = self.wanted.traces.then_some(self.ids);
        Some(Arc::new(LogTap { outbox, ids }))
    }

    /// Whether [`Export::step`] must be called.
    pub(crate) fn has_traces(&self) -> bool {
        self.tracer.is_some()
    }

    /// Exports the spans that a step of the core has ended.
    pub(crate) fn step(&mut self, now: Time, input: &Input, effects: &[Effect], core: &Core) {
        if let Some(tracer) = &mut self.tracer {
            tracer.step(&CoreStep { now, input, effects, core }, &mut self.ended);
            self.send_spans(now);
        }
    }

    /// The supervisor exits: ends every span.
    pub(crate) fn end_spans(&mut self, now: Time, code: u8) {
        if let Some(mut tracer) = self.tracer.take() {
            tracer.finish(now, code, &mut self.ended);
            self.send_spans(now);
        }
    }

    fn send_spans(&mut self, now: Time) {
        let Some(outbox) = self.spans.as_ref().filter(|_| !self.ended.is_empty()) else { return };
        self.clock.follow(now, SystemTime::now());
        let (clock, ids) = (self.clock, self.ids);
        outbox.push(|buffer| {
            for span in self.ended.drain(..) {
                buffer.push(|out| span.write(out, &ids, |time| unix_nanos(clock.at(time))));
            }
        });
    }

    /// Sends what waits, and the last metrics, until the deadline. Returns how much of it was not sent.
    pub(crate) fn finish(self, last: Option<Arc<Snapshot>>, deadline: Instant) -> u64 {
        self.phase.send_replace(ExportPhase::Finishing(last));
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // It ends with an error when all tasks have ended.
        let _ = self.stopped.recv_timeout(left);
        [&self.spans, &self.logs].into_iter().flatten().map(|outbox| outbox.unsent()).sum()
    }
}

/// The value of `TRACEPARENT` for the process of a run.
pub(crate) fn traceparent(ids: &Ids, run: RunId) -> String {
    ids.traceparent(SpanKey::Run(run))
}
