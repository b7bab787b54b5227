//! Telemetry: what the outside may know (T1–T3).
//!
//! [`Metrics`] holds what is counted outside the core: the values that jobs send, and the requests to the control
//! socket. It is shared by everybody on the network's thread; nobody waits with it in hand. From that and
//! from what the loop knows at one moment the server makes its pages.

mod exposition;
pub(crate) mod fuzz;
mod process;
mod quantile;
mod readiness;
mod self_metrics;
mod sensors;
mod server;
mod status;
mod store;
mod summary;
#[cfg(test)]
mod testing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use containerpilot_core::plan::{Metric, Plan};
use std::collections::BTreeMap;

pub(crate) use sensors::{Complaint, Sensors};
pub(crate) use server::Telemetry;
pub(crate) use store::Refusal;
use store::Store;

/// The metrics that a plan defines; without telemetry there are none.
pub(crate) fn definitions(plan: &Plan) -> &[Metric] {
    plan.telemetry.as_ref().map(|telemetry| telemetry.metrics.as_slice()).unwrap_or_default()
}

/// What is counted outside the core. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    shared: Arc<Mutex<Shared>>,
    began: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    store: Store,
    /// Requests to the control socket, by answer and route.
    requests: BTreeMap<(u16, &'static str), u64>,
}

impl Metrics {
    /// For the metrics of a plan; without telemetry there are none, and every value is refused.
    pub(crate) fn new(definitions: &[Metric]) -> Self {
        let began = Instant::now();
        let store = Store::new(definitions, began.elapsed());
        Self { shared: Arc::new(Mutex::new(Shared { store, ..Shared::default() })), began }
    }

    /// Takes values, each by the name of its metric or by 3.8's name for it: all of them, or, if there is something
    /// wrong with any, none. A JSON number is given as it is written.
    pub(crate) fn put_all(&self, values: &[(&str, &str)]) -> Result<(), Vec<Refusal>> {
        self.shared().store.put_all(values, self.began.elapsed())
    }

    /// Counts a request to the control socket: the answer's code, and its route as it is written in the table of
    /// routes, never the path that was sent, of which there may be any number.
    pub(crate) fn control_request(&self, code: u16, route: &'static str) {
        *self.shared().requests.entry((code, route)).or_default() += 1;
    }

    /// Takes other definitions; what is defined as before keeps its value (R3).
    pub(crate) fn replace(&self, definitions: &[Metric]) {
        self.shared().store.replace(definitions, self.began.elapsed());
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // After a panic the numbers are still numbers.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
