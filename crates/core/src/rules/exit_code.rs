//! The exit code of the supervisor (S5, S7).
//!
//! A signal, or a job with `onFailure` or `onSuccess`, decides it. Otherwise it is the code of the first job that failed;
//! jobs that only react to events count only if no other job failed. Coprocesses and sensors never count (C6).

use crate::ids::JobIx;
use crate::plan::{Level, OnCompletion, Role};
use crate::state::supervisor::Core;

impl Core {
    /// S1: a shutdown by signal exits with 0.
    pub(crate) fn set_exit_code_zero(&mut self) {
        self.exit_codes.decided = Some(0);
    }

    /// Records how a job completed. Returns true if the container shuts down because of it.
    pub(crate) fn completed_and_stops_container(&mut self, job: JobIx) -> bool {
        let (failure, has_run) = (self.job(job).failure, self.job(job).has_run);
        self.record_failure(job, self.plan_state.graph.holds_open(job));
        let planned = self.planned(job);
        let (stops, message) = match failure {
            Some(_) => (planned.on_failure == OnCompletion::Shutdown, "failed, shutting down"),
            None => (has_run && planned.on_success == OnCompletion::Shutdown, "completed, shutting down"),
        };
        if stops {
            self.exit_codes.decided = Some(failure.unwrap_or(0));
            self.log(Level::Info, Some(job), format_args!("{message}"));
        }
        stops
    }

    /// Records how a job completed after the shutdown had started: a stop hook of work that has completed may still
    /// fail.
    pub(crate) fn completed_during_shutdown(&mut self, job: JobIx) {
        if self.exit_codes.decided.is_none() && !self.job(job).may_start_again() {
            self.record_failure(job, false);
        }
    }

    fn record_failure(&mut self, job: JobIx, is_work: bool) {
        let failure = self.job(job).failure;
        let first = match self.planned(job).role {
            Role::Coprocess | Role::Sensor(_) => return,
            _ if is_work => &mut self.exit_codes.first_failure,
            _ => &mut self.exit_codes.first_hook_failure,
        };
        *first = first.or(failure);
    }

    pub(crate) fn exit_code(&self) -> u8 {
        let codes = &self.exit_codes;
        codes.decided.or(codes.first_failure).or(codes.first_hook_failure).unwrap_or(0)
    }
}
