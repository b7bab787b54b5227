//! Which job stops after which (S10).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::ids::JobIx;
use crate::inserted;
use crate::state::job::StopStage;
use crate::supervisor::Core;

impl Core {
    /// Returns true if a job that is to stop must wait for another one to end: in a shutdown for every job that
    /// requires it or is in its `stopAfter`, otherwise for those of them that stop, too.
    pub(crate) fn waits_for_requirers(&self, job: JobIx) -> bool {
        self.job(job).is_active() && self.outstanding_requirers(job).next().is_some()
    }

    /// The jobs that must end before a job stops.
    pub(crate) fn outstanding_requirers(&self, job: JobIx) -> impl Iterator<Item = JobIx> {
        let before = self.plan_state.graph.stops_before(job).iter().copied();
        before.filter(move |other| self.must_end_before(*other, job))
    }

    fn must_end_before(&self, other: JobIx, job: JobIx) -> bool {
        let state = self.job(other);
        let is_stopping = || !state.is_up() || self.gone_binding(other).is_some();
        let counts = !self.is_before_shutdown() || (state.is_active() && is_stopping());
        other != job && !state.has_ended() && counts && !self.waits_for_end_of(other, job)
    }

    /// Returns true if `from` waits, directly or through others, for `target` to stop. Waiting for it would deadlock.
    fn waits_for_end_of(&self, from: JobIx, target: JobIx) -> bool {
        let graph = &self.plan_state.graph;
        let mut seen = alloc::vec![false; self.plan_state.jobs.len()];
        let mut open = alloc::vec![from];
        while let Some(job) = open.pop() {
            if job == target {
                return true;
            }
            match seen.get_mut(job.index()) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let state = self.job(job);
            match state.stop_stage() {
                _ if state.has_ended() => {}
                Some(StopStage::Requirers) => open.extend(graph.stops_before(job)),
                Some(StopStage::Hooks) => open.extend(graph.hooks(job)),
                // A stop hook that has not been triggered.
                None if !state.is_active() && !self.is_before_shutdown() => {
                    open.extend(self.stop_event_sources(job).flat_map(|id| graph.jobs_named(id)));
                }
                _ => {}
            }
        }
        false
    }

    /// The jobs in the order in which they begin to stop: requirers first.
    pub(crate) fn in_stop_order(&self, jobs: Vec<JobIx>) -> Vec<JobIx> {
        let graph = &self.plan_state.graph;
        if jobs.iter().all(|job| graph.stops_before(*job).is_empty()) {
            return jobs;
        }
        let mut ordered = Vec::with_capacity(jobs.len());
        let mut seen = alloc::vec![false; self.plan_state.jobs.len()];
        for job in &jobs {
            // Each entry is a job and whether those before it have been added.
            let mut open = alloc::vec![(*job, false)];
            while let Some((job, added)) = open.pop() {
                if added {
                    ordered.push(job);
                } else if let Some(seen @ false) = seen.get_mut(job.index()) {
                    *seen = true;
                    open.push((job, true));
                    open.extend(graph.stops_before(job).iter().map(|other| (*other, false)));
                }
            }
        }
        let wanted: BTreeSet<JobIx> = inserted(jobs);
        ordered.retain(|job| wanted.contains(job));
        ordered
    }
}
