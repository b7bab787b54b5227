//! W9, X7: the state of a job, and how it ended.

use containerpilot_core::{JobStatus, Outcome, State, StopReason, StopStage};

use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn check_state(&self, job: usize, status: &JobStatus) -> Check {
        let before = &self.before[job];
        let same = before.generation == status.generation;
        let back =
            before.state.has_ended() && !status.state.has_ended() || status.stop_stage < before.stop_stage;
        if same && back {
            return self.job_violation("W9", job, "a complete or stopping job is resumed");
        }
        let complete = status.state.has_ended();
        if complete != self.jobs[job].stopped.is_some() {
            return self.job_violation("W9", job, "it is complete without `stopped`, or the other way round");
        }
        if (status.stop_stage > Some(StopStage::Requirers)) != self.jobs[job].stopping.is_some() {
            return self.job_violation("S2", job, "it stops without `stopping`");
        }
        if status.run != self.jobs[job].run.as_ref().map(|run| run.run) {
            return self.job_violation("P6", job, "its run is not the one that was started");
        }
        if self.seen[job].exit_events != self.seen[job].ends {
            return self.job_violation("P3", job, "a run ended without an exit event");
        }
        if complete && status.healthy.is_some() {
            return self.job_violation("H7", job, "it is complete, and its health is not reset");
        }
        if status.stop_stage.is_some() && status.health().is_some() {
            return self.job_violation("X7", job, "it stops, and its health is known");
        }
        self.check_outcome(job, status)
    }

    /// X7: the runs of a job, and who stopped it, decide how it ended.
    fn check_outcome(&self, job: usize, status: &JobStatus) -> Check {
        let State::Ended(outcome) = status.state else { return Ok(()) };
        let model = &self.jobs[job];
        let ran = model.runs > 0 || model.has_begun;
        let failed = model.last_failure.is_some() && !model.was_terminated;
        // Nothing shows whether a job without a program and without checks has started.
        let planned = &self.plan.jobs[job];
        let empty = planned.exec.is_none() && planned.health.is_none();
        // A job without a process may start and stop within a step.
        let periodic = planned.when.is_periodic();
        let is_started = periodic || model.fires > 0 || self.is_started_by_action(job);
        let may_have_run = planned.exec.is_none() && is_started;
        let was_stopped = self.shutdown.is_some() && (ran || may_have_run) && !failed;
        let fits = match outcome {
            Outcome::Stopped => {
                let by_action = status.stop_reason == Some(StopReason::ByAction);
                Self::will_start_again(status) || by_action || was_stopped
            }
            // The starts before a source was gone count for the start limit, too (W14, W18).
            Outcome::Skipped(_) => !ran && !model.crash_looped || empty,
            Outcome::Failed => (ran || model.crash_looped) && failed,
            Outcome::Complete => (ran || empty) && !failed && !model.was_terminated,
        };
        if fits { Ok(()) } else { self.job_violation("X7", job, &format!("its outcome is {outcome:?}")) }
    }
}
