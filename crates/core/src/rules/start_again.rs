//! Starts that no event causes: by hand, by an action, and of the next generation of a job.

use crate::ids::JobIx;
use crate::state::job::StopReason;
use crate::state::phase::Phase;
use crate::state::run::Cause;
use crate::supervisor::Core;

impl Core {
    /// Starts a complete job that was to start again.
    pub(crate) fn start_again(&mut self, job: JobIx) {
        if self.is_replaced_by_reload(job) {
            // The reload creates its next generation; starting it now would only stop it again.
            if let Some(stop) = self.job_mut(job).stop_mut() {
                stop.reason = StopReason::Reload;
            }
            return;
        }
        if self.phase != Phase::Running || !self.job(job).has_ended() {
            return;
        }
        // W18: without a source that it is bound to, it waits, also after a restart by hand.
        let by_hand = self.job(job).stop_reason() != Some(StopReason::SourceGone);
        if by_hand && self.missing_bound_words(job).is_none() {
            let by = self.job(job).stop().and_then(|stop| stop.by);
            self.begin_generation(job);
            self.start_by(job, by.map_or(Cause::ByHand, Cause::Action));
        } else {
            self.begin_resumed_generation(job);
        }
    }

    /// Starts a job, not because of an event.
    pub(crate) fn start_by(&mut self, job: JobIx, cause: Cause) {
        let newest_generation = self.last_ids.generation;
        let periodic = self.planned(job).when.is_periodic();
        // W14: in a ring of actions, a periodic one runs once at a time, and then at its ticks.
        let is_again = self.acting.is_some() && self.job(job).started_at == Some(self.now);
        if periodic && is_again && self.starts_itself(job) {
            return self.await_first_tick(job);
        }
        let state = self.job_mut(job);
        state.ticks.off_schedule = true;
        // W14: a user may start it however often it was started before.
        state.starts.clear();
        let is_first = !state.has_run;
        state.triggered_at = Some(newest_generation);
        state.cause = Some(cause);
        if !periodic {
            state.restarts = 0;
            if self.starts_itself(job) {
                return self.start_spaced(job);
            }
            self.job_mut(job).early_exits = 0;
        } else if is_first {
            // The first run starts the ticks; a run between two ticks is not counted.
            self.begin_ticks(job);
        }
        self.count_start(job);
        self.start(job, None);
    }
}
