//! One task for each watch: it waits in a blocking query for the next change (D7).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::catalog::contact::Fared;
use containerpilot_core::catalog::follow::{Crowd, Follow, Query, Step};
use containerpilot_core::ids::WatchIx;
use containerpilot_core::input::Instance;
use containerpilot_core::plan::Watch;
use tokio::sync::Semaphore;

use super::client::Trouble;
use super::connectivity_log::Failure;
use super::wire;
use super::{RECOVERY, Shared};
use crate::runtime::channel::LoopMessage;
use crate::runtime::failpoints::{failpoint, guarded};

/// How many blocking queries wait at the same time. Each needs a connection of its own, and an agent takes 200 from
/// one address if it is not told otherwise. If there are more watches, they take turns.
pub(super) const PLACES: u32 = 128;
/// How long an answer may take beyond the time it was asked to wait.
const GRACE: Duration = Duration::from_secs(5);

/// A watch's task.
pub(super) struct Watcher {
    pub(super) shared: Arc<Shared>,
    pub(super) watch: Arc<Watch>,
    pub(super) ix: WatchIx,
    pub(super) places: Arc<Semaphore>,
    pub(super) crowd: Crowd,
}

impl Watcher {
    /// Follows the service for ever; whoever has begun the task ends it. After a fault it looks anew.
    pub(super) async fn work(self) {
        while guarded(self.follow()).await.is_err() {
            tokio::time::sleep(RECOVERY).await;
        }
    }

    async fn follow(&self) {
        let mut machine = Follow::new(self.watch.interval, self.shared.seed());
        let name = format!("watch {}", self.watch.name);
        let mut known: Option<Vec<Instance>> = None;
        loop {
            let query = match machine.next(self.shared.now(), self.crowd) {
                Step::Wait(until) => {
                    tokio::time::sleep(until.since(self.shared.now())).await;
                    continue;
                }
                Step::Ask(query) => query,
            };
            // An error would mean that there are no places any more, and then nobody works here.
            let place = self.places.acquire().await;
            failpoint("watch");
            let answer = self.look(query).await;
            drop(place);
            match answer {
                Ok((index, instances)) => {
                    machine.answered(self.shared.now(), index);
                    self.shared.voice.heard(&name, None);
                    if known.as_ref() != Some(&instances) {
                        known = Some(instances.clone());
                        self.shared.sender.send(LoopMessage::WatchResult(
                            Arc::clone(&self.watch),
                            self.ix,
                            instances,
                        ));
                    }
                }
                Err(failure) => {
                    machine.failed(self.shared.now());
                    self.shared.voice.heard(&name, Some(&failure));
                }
            }
        }
    }

    async fn look(&self, query: Query) -> Result<(u64, Vec<Instance>), Failure> {
        let away = |why: String| Failure { fared: Fared::Away, why };
        let path = wire::query_path(&self.watch, query);
        let wait = if query.index.is_some() { query.wait + query.wait / 16 } else { Duration::ZERO };
        let within = wait.saturating_add(GRACE);
        let answer = match self.shared.client.ask("GET", &path, Bytes::new(), within).await {
            Ok(answer) => answer,
            Err(Trouble::NotAsked(why) | Trouble::NoAnswer(why)) => return Err(away(why)),
        };
        if answer.status != 200 {
            return Err(self.shared.failure(&answer));
        }
        let instances = wire::instances(&answer.body).map_err(away)?;
        let index = answer.index.ok_or_else(|| away("its answer has no index".to_owned()))?;
        Ok((index, instances))
    }
}
