//! How runs have ended: who ended them, and what is said about it. Whether the job runs again is in `rules/restart.rs`.

use alloc::format;
use alloc::string::String;

use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::{Role, StartLimit};
use crate::state::job::{StopReason, StopStage};
use crate::state::journal::EndReason;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
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
