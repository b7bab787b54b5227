//! One task per watch: it waits in a blocking query for the next change (D7).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::catalog::watch_queries::{NextQuery, Query, QuerySlots, WatchQueries};
use containerpilot_core::ids::WatchIx;
use containerpilot_core::input::Answer;
use containerpilot_core::plan::{Watch, WatchKind};
use containerpilot_process::failpoints::{failpoint, guarded};
use hyper::Method;
use tokio::sync::Semaphore;

use super::api;
use super::connectivity_log::{Failure, FailureKind};
use super::{PANIC_PAUSE, Shared};
use crate::messages::LoopMessage;

/// Blocking queries at the same time. Each needs a connection of its own, and by default an agent accepts 200 from one
/// address. If there are more watches, they take turns.
pub(super) const CONCURRENT_QUERIES: u32 = 128;
/// How long a response may take beyond the wait of the query.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of a watch's task in the log.
pub(super) fn requester(watch: &str) -> String {
    format!("watch {watch}")
}

/// The task of a watch.
pub(super) struct WatchTask {
    pub(super) shared: Arc<Shared>,
    pub(super) watch: Arc<Watch>,
    pub(super) ix: WatchIx,
    pub(super) query_slots: Arc<Semaphore>,
    pub(super) slots: QuerySlots,
}

impl WatchTask {
    /// Follows the service or the keys until the task is aborted. Starts over after a panic.
    pub(super) async fn run(self) {
        while guarded(self.follow()).await.is_err() {
            tokio::time::sleep(PANIC_PAUSE).await;
        }
    }

    async fn follow(&self) {
        let mut follow = WatchQueries::new(self.watch.interval, self.shared.seed());
        let name = requester(&self.watch.name);
        let mut interruption = self.shared.connectivity.interruption();
        let mut known: Option<Answer> = None;
        loop {
            // The semaphore is never closed. The slot comes first: the query is sent when it is decided.
            let slot = self.query_slots.acquire().await;
            let query = match follow.next(self.shared.now(), self.slots) {
                NextQuery::Wait(until) => {
                    drop(slot);
                    let wait = until.since(self.shared.now());
                    if let Ok(Ok(())) = tokio::time::timeout(wait, interruption.changed()).await
                        && let Some(interruption) = *interruption.borrow_and_update()
                    {
                        follow.interrupted(interruption);
                    }
                    continue;
                }
                NextQuery::Send(query) => query,
            };
            failpoint("watch");
            let result = self.query(query).await;
            drop(slot);
            match result {
                Ok((index, answer)) => {
                    self.shared.connectivity.record(self.shared.now(), &name, None);
                    let Some(answer) = answer else {
                        follow.answered_with_index(self.shared.now(), index);
                        continue;
                    };
                    follow.answered(self.shared.now(), index);
                    if known.as_ref() != Some(&answer) {
                        known = Some(answer.clone());
                        self.shared.sender.send(LoopMessage::Watched(
                            Arc::clone(&self.watch),
                            self.ix,
                            Ok(answer),
                        ));
                    }
                }
                Err(failure) => {
                    follow.failed(self.shared.now());
                    self.shared.connectivity.record(self.shared.now(), &name, Some(&failure));
                }
            }
        }
    }

    /// The index, and the answer unless only the index was asked for.
    async fn query(&self, query: Query) -> Result<(u64, Option<Answer>), Failure> {
        let unavailable = |reason: String| Failure { kind: FailureKind::Unavailable, reason };
        let path = api::query_path(&self.watch, query);
        // Consul adds up to a sixteenth to the wait.
        let wait = if query.index.is_some() { query.wait + query.wait / 16 } else { Duration::ZERO };
        let within = wait.saturating_add(RESPONSE_TIMEOUT);
        let response = self.shared.client.send(Method::GET, &path, Bytes::new(), within).await;
        let response = response.map_err(|error| Failure::from(&error))?;
        // A key that does not exist.
        let is_absent = response.status == 404 && response.index.is_some();
        let is_key = matches!(self.watch.kind, WatchKind::Key { .. } | WatchKind::Prefix { .. });
        if response.status != 200 && !(is_absent && is_key) {
            return Err(self.shared.failure(&response));
        }
        let index =
            response.index.ok_or_else(|| unavailable("the response has no X-Consul-Index".to_owned()))?;
        if query.index_is_enough && !is_key {
            return Ok((index, None));
        }
        let answer = api::answer(&self.watch, response.status, &response.body).map_err(unavailable)?;
        Ok((index, Some(answer)))
    }
}
