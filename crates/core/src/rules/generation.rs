//! Generations: a complete job that is started again gets a fresh state.

use alloc::vec::Vec;

use crate::ids::{EventId, JobIx};
use crate::state::job::StopReason;
use crate::state::journal::Origin;
use crate::supervisor::Core;

impl Core {
    /// Creates the next generation of a complete job, and of its stop hooks.
    pub(crate) fn begin_generation(&mut self, job: JobIx) {
        let was_counted = self.job(job).may_start_again();
        let after = EventId(self.last_ids.event);
        let serial = self.next_generation_serial();
        let state = &mut self.plan_state;
        let planned = &state.plan.jobs[job.index()];
        let next = state.jobs[job.index()].next_generation(planned, serial, after);
        state.jobs[job.index()] = next;
        let health = &mut state.health;
        let old = health.take(job);
        health.begin_generation(job, planned, old);
        state.note_waiting(job);
        state.incomplete += 1;
        state.holding_open += usize::from(state.graph.holds_open(job) && !was_counted);
        state.reachability_dirty = true;
        self.advertise_initial_status(job);
        self.renew_hooks(job);
    }

    pub(crate) fn next_generation_serial(&mut self) -> u64 {
        self.last_ids.generation += 1;
        self.last_ids.generation
    }

    /// Creates the next generation of the stop hooks of a job, so that they run again at its next stop.
    pub(crate) fn renew_hooks(&mut self, job: JobIx) {
        let graph = &self.plan_state.graph;
        let names = [Some(graph.name(job)), graph.group_of(Origin::Job(job))];
        let dependents = graph.dependents(job);
        let hooks: Vec<JobIx> = dependents
            .filter(|hook| self.stop_event_sources(*hook).any(|id| names.contains(&Some(id))))
            .collect();
        for hook in hooks {
            let state = self.job(hook);
            let reason = state.stop_reason();
            let by_itself =
                matches!(reason, Some(StopReason::Completed | StopReason::Failed | StopReason::Unreachable));
            if state.has_ended() && by_itself && self.planned(hook).only_reacts() {
                self.begin_generation(hook);
                self.set_start_timeout(hook);
            }
        }
    }
}
