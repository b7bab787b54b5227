//! Telemetry: `/metrics`, `/status`, `/livez` and `/readyz` (T1–T3), the live page at `/` (T5), and the export
//! to an OpenTelemetry collector (T6).
//!
//! [`Metrics`] holds the numbers that are counted outside the core: values that jobs send, and requests to the control
//! socket. The server renders its pages from that and from a snapshot of the core.

mod exposition;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
pub(crate) mod job_usage;
mod otlp;
mod page;
mod process;
mod quantile;
mod self_metrics;
mod sensors;
mod server;
mod status;
mod store;
mod summary;
#[cfg(test)]
mod testing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use containerpilot_core::plan::{Metric, Plan};
use containerpilot_views::snapshot::Snapshot;
use exposition::MetricsPage;
use job_usage::CpuTotals;
pub(crate) use otlp::{Export, Handles as ExportHandles, random_ids, traceparent};
use process::ProcessUsage;
use self_metrics::Measured;
pub(crate) use sensors::{InvalidOutput, SensorOutputs};
pub(crate) use server::{ListenError, TelemetryServer};
use store::Store;
pub(crate) use store::ValueError;

use crate::VERSION;
use crate::logs::Tails;

/// The metrics that a plan defines; none without telemetry.
pub(crate) fn definitions(plan: &Plan) -> &[Metric] {
    plan.telemetry.as_ref().map(|telemetry| telemetry.metrics.as_slice()).unwrap_or_default()
}

/// The numbers that are counted outside the core. Clones share their content.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    shared: Arc<Mutex<Shared>>,
    /// Counts the lines of jobs.
    tails: Option<Tails>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    store: Store,
    /// Requests to the control socket, by status code and route.
    requests: BTreeMap<(u16, &'static str), u64>,
    /// The CPU time of each job when it was last read.
    cpu: CpuTotals,
    /// What was exported, by kind and result (T6). Empty without a collector.
    exported: BTreeMap<(&'static str, &'static str), u64>,
}

impl Metrics {
    pub(crate) fn new(definitions: &[Metric]) -> Self {
        let started = Instant::now();
        let store = Store::new(definitions, started.elapsed());
        Self { shared: Arc::new(Mutex::new(Shared { store, ..Shared::default() })), tails: None, started }
    }

    /// Also shows how many lines jobs have written.
    pub(crate) fn with_tails(self, tails: Tails) -> Self {
        Self { tails: Some(tails), ..self }
    }

    /// Records values by the names of their metrics, or by 3.8's names for them. If one value is invalid, none is
    /// recorded.
    pub(crate) fn put_all(&self, values: &[(&str, &str)]) -> Result<(), Vec<ValueError>> {
        self.shared().store.put_all(values, self.started.elapsed())
    }

    /// Counts a request to the control socket. `route` is a path of the table of routes, not of the request, so that
    /// the number of labels is bounded.
    pub(crate) fn count_control_request(&self, code: u16, route: &'static str) {
        *self.shared().requests.entry((code, route)).or_default() += 1;
    }

    /// Counts what was exported, or was not (T6).
    fn count_exported(&self, kind: &'static str, result: &'static str, items: u64) {
        *self.shared().exported.entry((kind, result)).or_default() += items;
    }

    /// Everything that is known now.
    fn page(&self, snapshot: &Snapshot) -> MetricsPage {
        let measured = Measured {
            process: ProcessUsage::read(),
            usage: job_usage::read(snapshot),
            lines: self.tails.as_ref().map(Tails::line_counts).unwrap_or_default(),
            lost_lines: self.tails.as_ref().map_or(0, Tails::lost_lines),
        };
        let mut page = MetricsPage::default();
        let now = self.started.elapsed();
        let mut shared = self.shared();
        // First, so that a configured metric cannot replace one of the supervisor's own.
        shared.cpu.update(snapshot, &measured.usage);
        self_metrics::add_to(&mut page, snapshot, &shared, VERSION, &measured);
        shared.store.add_to(&mut page, now);
        page
    }

    /// Replaces the definitions. A metric of the same name and type keeps its value (R3).
    pub(crate) fn replace(&self, definitions: &[Metric]) {
        self.shared().store.replace(definitions, self.started.elapsed());
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // After a panic the numbers are still consistent.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
