//! The tasks that send: one per kind of data, on the network thread.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_otlp::{Batch, Delivery, DeliveryOutcome, ExportKind, Next, Resource, write_request};
use containerpilot_process::failpoints::{failpoint, guarded};
use containerpilot_views::snapshot::Snapshot;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::super::Metrics;
use super::client::CollectorClient;
use super::metrics;
use super::outbox::Outbox;
use crate::messages::query_handle::QueryHandle;

/// How long items wait for others, so that one request sends all of them.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long the event loop may take to tell its state. Normally it replies at once.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the supervisor runs.
#[derive(Clone, Debug)]
pub(super) enum ExportPhase {
    Running,
    /// Everything that waits is sent once; with the last state of the core, for metrics.
    Finishing(Option<Arc<Snapshot>>),
}

pub(super) struct Exporter {
    pub(super) client: CollectorClient,
    pub(super) kind: ExportKind,
    pub(super) resource: Arc<Resource>,
    pub(super) metrics: Metrics,
    pub(super) queries: QueryHandle,
    /// Closed if the export is replaced by another one, which is the same as `Finishing`.
    pub(super) phase: watch::Receiver<ExportPhase>,
    /// Dropped when the task ends.
    pub(super) _running: mpsc::Sender<()>,
}

/// How a batch has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was sent or refused.
    Done,
    /// The supervisor exits, and there is no time for another attempt.
    GivenUp,
}

impl Exporter {
    /// Sends the items of an outbox.
    pub(super) async fn send_items(mut self, outbox: Arc<Outbox>) {
        let mut delivery = self.delivery();
        let mut phase = self.phase.clone();
        loop {
            tokio::select! {
                () = outbox.filled() => {}
                () = finishing(&mut phase) => {}
            }
            tokio::select! {
                () = outbox.completed() => {}
                () = sleep(BATCH_DELAY) => {}
                () = finishing(&mut phase) => {}
            }
            while let Some(batch) = outbox.take() {
                // After a panic, which is logged, the batch is lost and the next one is sent.
                match guarded(self.deliver(&mut delivery, &batch, Some(&outbox), None)).await {
                    Ok(Ended::GivenUp) => return,
                    Ok(Ended::Done) => {}
                    Err(_) => self.metrics.count_exported(self.kind.name(), "dropped", batch.items),
                }
                outbox.done();
            }
            if is_finishing(&phase) {
                return;
            }
        }
    }

    /// Sends all metrics at an interval, and when the supervisor exits.
    pub(super) async fn send_metrics(mut self, interval: Duration) {
        let mut delivery = self.delivery();
        let mut phase = self.phase.clone();
        let mut next = Instant::now();
        loop {
            next = (next + interval).max(Instant::now());
            tokio::select! {
                () = sleep_until(next) => {}
                () = finishing(&mut phase) => {}
            }
            let last = match &*phase.borrow() {
                ExportPhase::Finishing(last) => last.clone(),
                ExportPhase::Running => None,
            };
            let snapshot = match last {
                Some(last) => Some(last),
                None => timeout(QUERY_TIMEOUT, self.queries.overview()).await.ok().flatten(),
            };
            if let Some(snapshot) = snapshot {
                let batch = metrics::batch(&self.metrics.page(&snapshot), &snapshot);
                // The next metrics replace these.
                let sent = guarded(self.deliver(&mut delivery, &batch, None, Some(next + interval))).await;
                // After a panic, which is logged, the next metrics are sent.
                drop(sent);
            }
            if is_finishing(&phase) {
                return;
            }
        }
    }

    fn delivery(&self) -> Delivery {
        for result in ["sent", "dropped", "rejected"] {
            self.metrics.count_exported(self.kind.name(), result, 0);
        }
        Delivery::new(self.kind, self.client.url())
    }

    /// Sends a batch, again and again if the collector does not take it, but not after `until`.
    async fn deliver(
        &mut self,
        delivery: &mut Delivery,
        batch: &Batch,
        outbox: Option<&Outbox>,
        until: Option<Instant>,
    ) -> Ended {
        let started = self.metrics.started;
        let count = |result, items| {
            if items > 0 {
                self.metrics.count_exported(self.kind.name(), result, items);
            }
        };
        let body = Bytes::from(write_request(&self.resource, &batch.bytes));
        let mut attempt = 0_u32;
        loop {
            attempt = attempt.wrapping_add(1);
            failpoint("export");
            let outcome = self.client.send(body.clone()).await;
            let rejected = match &outcome {
                DeliveryOutcome::Accepted { rejected, .. } => (*rejected).min(batch.items),
                DeliveryOutcome::Retry { .. } | DeliveryOutcome::Refused { .. } => 0,
            };
            let dropped = outbox.map_or(0, Outbox::take_dropped);
            count("dropped", dropped);
            delivery.dropped(dropped);
            let random = RandomState::new().hash_one(attempt);
            let (next, reports) = delivery.record(started.elapsed(), batch.items, outcome, random);
            for (level, message) in reports {
                self.queries.log(level, message);
            }
            match next {
                Next::Sent => {
                    count("sent", batch.items - rejected);
                    count("rejected", rejected);
                    return Ended::Done;
                }
                Next::Dropped => {
                    count("dropped", batch.items);
                    return Ended::Done;
                }
                Next::Again(delay) => {
                    let again = Instant::now() + delay;
                    if until.is_some_and(|until| until <= again) {
                        // The last value of every metric is sent again with the next ones: nothing is lost but a point.
                        if let Some(until) = until {
                            let mut phase = self.phase.clone();
                            tokio::select! {
                                () = sleep_until(until) => {}
                                () = finishing(&mut phase) => {}
                            }
                        }
                        count("dropped", batch.items);
                        return Ended::Done;
                    }
                    if is_finishing(&self.phase) {
                        return Ended::GivenUp;
                    }
                    tokio::select! {
                        () = sleep_until(again) => {}
                        // The last attempt.
                        () = finishing(&mut self.phase) => {}
                    }
                }
            }
        }
    }
}

fn is_finishing(phase: &watch::Receiver<ExportPhase>) -> bool {
    matches!(*phase.borrow(), ExportPhase::Finishing(_)) || phase.has_changed().is_err()
}

/// Waits until the export ends.
async fn finishing(phase: &mut watch::Receiver<ExportPhase>) {
    // An error means that the export was replaced.
    let _ = phase.wait_for(|phase| matches!(phase, ExportPhase::Finishing(_))).await;
}
