//! What runs on the network thread for the event loop: the control socket, telemetry, Consul and other watches.
//!
//! The thread is started on first use. That fails while no thread or descriptor is free. Then the loop tries again,
//! with a growing delay, until everything that the plan has is served. The log has one entry when it fails and one when
//! it works again.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use containerpilot_core::plan::Level;
use containerpilot_process::error_text::describe;
use containerpilot_process::failpoints::failpoint;

use super::{Decider, Runtime};
use crate::control::ControlHandles;
use crate::discovery::Discovery;
use crate::messages::query_handle::QueryHandle;
use crate::telemetry::{self, Export, ExportHandles, TelemetryServer};
use crate::watches::LocalWatches;

/// The bounds of the delay before the next attempt; it doubles in between.
const RETRY_DELAY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

const CONTROL: &str = "serve the control socket";
const TELEMETRY: &str = "serve telemetry";
const CONSUL: &str = "contact Consul";
const WATCHES: &str = "follow watches";
const EXPORT: &str = "export telemetry";

/// What could not be started on the network thread, and when the next attempt is due.
#[derive(Debug, Default)]
pub(super) struct NetworkUse {
    failed: BTreeSet<&'static str>,
    attempts: u32,
    retry_at: Option<Instant>,
}

impl NetworkUse {
    /// Whether nothing is started before [`NetworkUse::retry_at`].
    pub(super) fn is_paused(&self) -> bool {
        self.retry_at.is_some()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Records an attempt. Returns a log entry if the state has changed.
    fn record(
        &mut self,
        now: Instant,
        what: &'static str,
        result: io::Result<()>,
    ) -> Option<(Level, String)> {
        match result {
            Ok(()) => {
                self.attempts = 0;
                let recovered = self.failed.remove(what);
                recovered.then(|| (Level::Info, format!("can {what} again")))
            }
            Err(error) => {
                if self.retry_at.is_none() {
                    let [shortest, longest] = RETRY_DELAY;
                    let delay = shortest.saturating_mul(1 << self.attempts.min(8)).min(longest);
                    self.retry_at = Some(now + delay);
                    self.attempts = self.attempts.saturating_add(1);
                }
                let is_new = self.failed.insert(what);
                is_new.then(|| (Level::Error, format!("cannot {what}: {}; retrying", describe(&error))))
            }
        }
    }
}

impl<D: Decider> Runtime<D> {
    /// Starts serving the control socket, at its first connection.
    pub(super) fn serve_control(&mut self) {
        failpoint("network");
        let Some(control) = &mut self.control else { return };
        let handles = ControlHandles {
            queries: QueryHandle::new(self.receiver.sender()),
            metrics: self.metrics.clone(),
            tails: self.executor.logs.tails(),
        };
        let served = self.executor.net.get().and_then(|net| control.serve(net, handles));
        self.record_network_use(CONTROL, served);
    }

    /// Follows the services and watches of the plan in its catalog.
    pub(super) fn follow_catalog(&mut self) {
        let mut runtime = None;
        if Discovery::needs_network(&self.plan) {
            let started = self.executor.net.get().map(|net| runtime = Some(net.handle().clone()));
            self.record_network_use(CONSUL, started);
        }
        let known = self.executor.catalog.adopt(&self.plan, runtime.as_ref(), &self.receiver.sender());
        self.results.extend(known);
    }

    /// Follows the watches of the plan that need no catalog.
    pub(super) fn follow_watches(&mut self) {
        let (sender, executor) = (self.receiver.sender(), &mut self.executor);
        let mut runtime = Ok(None);
        if LocalWatches::needs_network(&self.plan) {
            runtime = executor.net.get().map(|net| Some(net.handle().clone()));
        }
        let handle = runtime.as_ref().ok().and_then(Option::as_ref);
        let followed = executor.watches.follow(&self.plan, handle, &sender);
        self.record_network_use(WATCHES, runtime.and(followed));
    }

    /// Starts, changes or stops the telemetry server as the plan requires.
    pub(super) fn follow_telemetry(&mut self) {
        let wanted = self.plan.telemetry.clone();
        if self.telemetry.is_none() && wanted.is_none() {
            return;
        }
        let (metrics, queries) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        let current = self.telemetry.take();
        let followed = self.executor.net.get().map(|net| {
            self.telemetry = TelemetryServer::follow(current, wanted.as_ref(), net, metrics, queries);
        });
        self.record_network_use(TELEMETRY, followed);
    }

    /// Starts, changes or stops the export as the plan requires (T6).
    pub(super) fn follow_export(&mut self) {
        let wanted = self.plan.otlp.clone();
        if self.export.is_none() && wanted.is_none() {
            return;
        }
        let ids = *self.trace_ids.get_or_insert_with(telemetry::random_ids);
        let (metrics, queries) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        let (current, now) = (self.export.take(), self.now());
        let followed = self.executor.net.get().map(|net| {
            let core = self.core.core();
            let handles = ExportHandles { net, metrics, queries, core, ids, now };
            self.export = Export::follow(current, wanted.as_ref(), handles);
        });
        self.executor.trace = self.export.as_ref().filter(|export| export.has_traces()).map(|_| ids);
        self.executor.logs.set_tap(self.export.as_ref().and_then(Export::log_tap));
        self.record_network_use(EXPORT, followed);
    }

    /// Tries again to start what has failed, if that is due. The control socket follows when it becomes
    /// readable.
    pub(super) fn retry_network(&mut self) {
        if self.network.retry_at.take_if(|at| *at <= Instant::now()).is_none() {
            return;
        }
        if !self.executor.catalog.follows(&self.plan) {
            self.follow_catalog();
        }
        if !self.executor.watches.is_current() {
            self.follow_watches();
        }
        if self.telemetry.is_none() {
            self.follow_telemetry();
        }
        if self.export.is_none() {
            self.follow_export();
        }
    }

    fn record_network_use(&mut self, what: &'static str, result: io::Result<()>) {
        if let Some((level, message)) = self.network.record(Instant::now(), what, result) {
            self.log(level, &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_a_failed_start_of_the_network_thread_is_logged_once_and_retried_with_a_growing_delay() {
        let mut network = NetworkUse::default();
        let failed = || Err(io::Error::other("no descriptor"));
        assert!(!network.is_paused(), "without a failure there is no deadline");
        let now = Instant::now();
        let mut delays = Vec::new();
        let mut entries = Vec::new();
        for _ in 0..7 {
            entries.extend(network.record(now, CONTROL, failed()));
            // A second user of the thread does not change the deadline.
            entries.extend(network.record(now, CONSUL, failed()));
            delays.push(network.retry_at.take().unwrap().duration_since(now).as_millis());
        }
        assert_eq!(delays, [100, 200, 400, 800, 1600, 2000, 2000]);
        entries.extend(network.record(now, CONTROL, Ok(())));
        entries.extend(network.record(now, CONTROL, Ok(())));
        let messages: Vec<&str> = entries.iter().map(|(_, message)| message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "cannot serve the control socket: no descriptor; retrying",
                "cannot contact Consul: no descriptor; retrying",
                "can serve the control socket again",
            ]
        );
        assert!(!network.is_paused());
    }
}
