//! Jobs that can never start are completed, and a deadlock is reported (W10). `facts/reachability.rs` finds them.

use alloc::vec::Vec;

use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::outcome::{Outcome, SkipReason};
use crate::plan::Level;
use crate::state::job::StopReason;
use crate::state::phase::Phase;
use crate::supervisor::Core;

impl Core {
    /// Completes a job that can never be started (again). Warns if it has never been triggered.
    pub(crate) fn complete_unreachable(&mut self, job: JobIx) {
        let has_run = self.job(job).has_run;
        if (self.is_deferred(job) || !has_run) && !self.requirements_hold(job) {
            if self.phase == Phase::Running {
                return self.complete_without_requirement(job);
            }
            if !has_run {
                return self.begin_stop(job, StopReason::Shutdown);
            }
        }
        // A start that a shutdown has overtaken was no run.
        if self.job(job).triggered_at.is_some() && (has_run || self.phase == Phase::Running) {
            return self.begin_stop_by_itself(job);
        }
        if self.phase != Phase::Running {
            return self.begin_stop(job, StopReason::Shutdown);
        }
        let why = self.why_unreachable(job);
        let outcome = Outcome::Skipped(SkipReason::Unreachable);
        let fields = LogEvent::Ended(outcome).fields().cause(why.as_str());
        self.log(Level::Warn, Some(job), fields, format_args!("will never run: {why}"));
        self.begin_stop(job, StopReason::Unreachable);
    }

    /// W18: completes a job that has something to run, but not what it requires.
    fn complete_without_requirement(&mut self, job: JobIx) {
        let why = self.why_unreachable(job);
        if self.job(job).has_run {
            let fields = LogEvent::MissingRequirement.fields().cause(why.as_str());
            self.log(Level::Warn, Some(job), fields, format_args!("will not run again: {why}"));
            return self.begin_stop_by_itself(job);
        }
        let fields = LogEvent::Ended(Outcome::Skipped(SkipReason::Unreachable)).fields().cause(why.as_str());
        self.log(Level::Warn, Some(job), fields, format_args!("will never run: {why}"));
        self.begin_stop(job, StopReason::Unreachable);
    }

    /// Completes the jobs that wait only for each other. Returns true if there were any.
    pub(crate) fn complete_unreachable_cycles(&mut self) -> bool {
        let unreachable = self.jobs_that_wait_for_each_other();
        let lacking: Vec<bool> = unreachable.iter().map(|job| !self.requirements_hold(*job)).collect();
        for (job, lacks) in unreachable.iter().zip(lacking) {
            if lacks && self.requirements_hold(*job) {
                // W18: one of the others has ended with success, so this one starts, or waits for its time.
                self.plan_state.reachability_dirty = true;
                self.enqueue_recheck(*job);
            } else {
                self.complete_unreachable(*job);
            }
        }
        !unreachable.is_empty()
    }

    /// Logs once that nothing can happen any more.
    pub(crate) fn report_deadlock(&mut self) {
        let deadlock = self.deadlock();
        let was_reported = core::mem::replace(&mut self.plan_state.deadlock_reported, deadlock.is_some());
        if let Some(why) = deadlock.filter(|_| !was_reported) {
            self.log(
                Level::Warn,
                None,
                LogEvent::Deadlock,
                format_args!("{why}; change `when` of one of them"),
            );
        }
    }
}
