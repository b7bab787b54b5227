//! What the end of a run means, and whether the job runs again.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::{Backoff, Level, OnCompletion, Restarts, Role, StartLimit};
use crate::state::job::{StopReason, StopStage};
use crate::state::journal::EndReason;
use crate::state::phase::Phase;
use crate::supervisor::Core;
use crate::time::fmt_duration;

/// The shortest delay between two performances of an action.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);

impl Core {
    /// The level of a failed exit. Without a configuration file, the program's exit code is that of the supervisor
    /// (S7): the caller gets it anyway.
    pub(crate) fn exit_failure_level(&self, job: JobIx, status: ExitStatus, out_of_memory: bool) -> Level {
        match self.failure_level(job, status) {
            Level::Error if self.plan().pass_signals && !out_of_memory => Level::Info,
            level => level,
        }
    }

    /// L7: the level of a failure: error if the job does not run again.
    pub(crate) fn failure_level(&self, job: JobIx, status: ExitStatus) -> Level {
        if self.repeats_sensor_failure(job, status) {
            Level::Debug
        } else if self.runs_again_after_failure(job) {
            Level::Warn
        } else {
            Level::Error
        }
    }

    /// Returns true if a sensor fails as it did before: a broken one fails every few seconds.
    pub(crate) fn repeats_sensor_failure(&self, job: JobIx, status: ExitStatus) -> bool {
        let repeats = self.job(job).last_exit.is_some_and(|last| last.status == status);
        repeats && matches!(self.planned(job).role, Role::Sensor(_))
    }

    /// X10: why the supervisor ended the current run; `None` if it exited by itself.
    pub(crate) fn end_reason(&self, job: JobIx, timed_out: bool) -> Option<EndReason> {
        let state = self.job(job);
        if timed_out {
            return Some(EndReason::Timeout);
        }
        if state.stop_stage() != Some(StopStage::Terminate) {
            let replaced =
                state.run().is_some_and(|run| run.replaced && (run.killed || run.kill_timer.is_some()));
            return replaced.then_some(EndReason::Unhealthy);
        }
        Some(match state.stop_reason() {
            Some(StopReason::ByHand) => EndReason::ByHand,
            Some(StopReason::ByAction) => EndReason::ByAction,
            Some(StopReason::Reload) => EndReason::Reload,
            Some(StopReason::Shutdown) => EndReason::Shutdown,
            Some(StopReason::SourceGone) => EndReason::SourceGone,
            _ => EndReason::Stop,
        })
    }

    /// W17: a job that only a user starts waits for the next start, unless the end of its run ends the container.
    pub(crate) fn ends_container(&self, job: JobIx) -> bool {
        let planned = self.planned(job);
        let on_end = if self.job(job).failure.is_some() { planned.on_failure } else { planned.on_success };
        planned.when.is_manual() && on_end == OnCompletion::Shutdown
    }

    /// Returns true if a job whose run fails now runs again by itself: at once, after a delay, or at its next tick.
    pub(crate) fn runs_again_after_failure(&self, job: JobIx) -> bool {
        let state = self.job(job);
        match state.stop() {
            Some(stop) => stop.then_start,
            None if !state.pending.is_empty() => true,
            None if self.phase != Phase::Running => false,
            None if self.planned(job).when.is_periodic() => {
                state.ticks.pending || state.ticks.timer.is_some()
            }
            None => self.may_restart(job, true),
        }
    }

    /// Returns true if a job is restarted after a run with this result (W13) and has restarts left (W6).
    pub(crate) fn may_restart(&self, job: JobIx, failed: bool) -> bool {
        self.planned(job).restart_on.includes(failed) && self.has_restarts_left(job)
    }

    pub(crate) fn has_restarts_left(&self, job: JobIx) -> bool {
        match self.planned(job).restarts {
            Restarts::Unlimited => true,
            Restarts::Limited(limit) => self.job(job).restarts < limit,
        }
    }

    /// W14: returns true if the action of a job can lead to a start of the job.
    pub(crate) fn starts_itself(&self, job: JobIx) -> bool {
        self.planned(job).exec.action().is_some() && self.plan_state.graph.is_in_ring(job)
    }

    /// The back-off of a job. An action always has one: it takes no time, and would repeat endlessly in one step.
    pub(crate) fn backoff(&self, job: JobIx) -> Option<Backoff> {
        let planned = self.planned(job);
        if planned.exec.action().is_none() {
            return planned.backoff;
        }
        let Backoff { initial, max, reset } = planned.backoff.unwrap_or(Backoff::DEFAULT);
        Some(Backoff { initial: initial.max(SHORTEST_DELAY), max: max.max(SHORTEST_DELAY), reset })
    }

    /// Why a job that has reached its start limit has failed: `5 starts within 1m`.
    pub(crate) fn start_limit_in_words(&self, job: JobIx) -> Option<String> {
        let reached = self.job(job).stop_reason() == Some(StopReason::CrashLoop);
        self.planned(job).start_limit.filter(|_| reached).map(limit_in_words)
    }
}

/// `5 starts within 1m`
pub(crate) fn limit_in_words(StartLimit { count, within, .. }: StartLimit) -> String {
    let starts = if count == 1 { "start" } else { "starts" };
    format!("{count} {starts} within {}", fmt_duration(within))
}
