//! Replicas: the events of a group (W20).
//!
//! A job that waits for an event of a group waits for that event of its replicas. For most events, that of any replica
//! counts. Some count only when they hold for all of them: then the event of the last replica is the one that counts.

use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::{EventId, JobIx};
use crate::sort_by;
use crate::state::dependency_graph::{NameId, SourceKey, Subscription};
use crate::state::journal::{Detail, Event};
use crate::supervisor::Core;

impl Core {
    /// Returns true if this event of a source counts only when it holds for all replicas.
    pub(crate) fn needs_all_replicas(&self, source: NameId, code: Code) -> bool {
        code.needs_all_replicas() && self.plan_state.graph.is_group(source)
    }

    /// Returns true if a job's nth pattern is an event that counts only when it holds for all replicas.
    pub(crate) fn waits_for_all_replicas(&self, job: JobIx, nth: usize, code: Code) -> bool {
        let key = self.plan_state.graph.keys(job).get(nth);
        matches!(key, Some(SourceKey::Name(id)) if self.needs_all_replicas(*id, code))
    }

    /// The jobs that an event concerns. What it clears comes before what it sets.
    pub(crate) fn subscribers(&self, event: &Event) -> Vec<Subscription> {
        let graph = &self.plan_state.graph;
        let mut all = graph.subscribers(event.origin, event.code).to_vec();
        let of_group = graph.group_subscribers(event.origin, event.code);
        if of_group.is_empty() {
            return all;
        }
        let holds = !event.code.needs_all_replicas()
            || graph.group_of(event.origin).is_some_and(|group| {
                // Of several replicas with the same event in the queue, the last one counts.
                let is_last = !self.queue.iter().any(|other| {
                    other.code == event.code
                        && other.origin != event.origin
                        && graph.group_of(other.origin) == Some(group)
                });
                is_last && graph.jobs_named(group).iter().all(|job| self.event_holds(*job, event.code, true))
            });
        let own = all.len();
        for one in of_group {
            // A job that waits for any event of a replica and of its group runs once for it.
            let is_counted = || all.iter().take(own).any(|other| other.job == one.job && !other.clears);
            if one.clears || (holds && (self.planned(one.job).when.needs_all() || !is_counted())) {
                all.push(*one);
            }
        }
        sort_by(&mut all, |one, other| other.clears.cmp(&one.clears));
        all
    }

    /// After a reload: an event of a group may hold now, because a replica for which it did not is gone.
    pub(crate) fn send_group_events_that_hold(&mut self, starting: &[JobIx]) {
        for job in self.all_jobs().filter(|job| !starting.contains(job)) {
            let when = &self.planned(job).when;
            let codes: Vec<(usize, Code)> =
                when.patterns().iter().map(|event| event.code).enumerate().collect();
            for (condition, code) in codes {
                let held = self.job(job).conditions.get(condition) == Some(&true)
                    || self.job(job).triggered_at.is_some();
                // An event of a replica that is queued decides it.
                let is_queued = self.queue.iter().any(|event| {
                    let mut of_group =
                        self.plan_state.graph.group_subscribers(event.origin, event.code).iter();
                    event.code == code && of_group.any(|one| (one.job, one.condition) == (job, condition))
                });
                if held || is_queued || !self.waits_for_all_replicas(job, condition, code) {
                    continue;
                }
                if let Some(origin) = self.source_that_holds(job, condition, code, true) {
                    let id = EventId(self.last_ids.event);
                    let event = Event { id, cause: None, at: self.now, origin, code, detail: Detail::None };
                    self.matched(Subscription { job, condition, clears: false }, event);
                }
            }
        }
    }
}
