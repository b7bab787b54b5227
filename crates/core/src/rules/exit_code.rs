//! The exit code of the supervisor (S5, S7) and its reason (S12).
//!
//! A signal, or a job with `onFailure` or `onSuccess`, decides it. Otherwise it is the code of the first job that
//! failed; jobs that only react to events count only if no other job failed. Coprocesses and sensors never count (C6).

use alloc::format;
use alloc::string::ToString;

use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::Fields;
use crate::outcome::Outcome;
use crate::plan::{Level, OnCompletion, OnStartLimit, Role, Signal};
use crate::state::exit_codes::ExitReason;
use crate::state::job::StopReason;
use crate::supervisor::Core;

/// The cause of a shutdown and of an exit because no job has work left.
pub(crate) const ALL_ENDED: &str = "complete";

impl Core {
    /// S1: a shutdown by signal exits with 0.
    pub(crate) fn exit_by_signal(&mut self, signal: Signal) {
        let words = format!("received {signal}");
        self.exit_codes.decided = Some(ExitReason { code: 0, words, cause: signal.to_string() });
    }

    /// Records how a job completed. Returns true if the container shuts down because of it.
    pub(crate) fn completed_and_stops_container(&mut self, job: JobIx) -> bool {
        let (failure, has_run) = (self.job(job).failure, self.job(job).has_run);
        self.record_failure(job, self.plan_state.graph.holds_open(job));
        let planned = self.planned(job);
        let (stops, message) = match failure {
            Some(_) => {
                let by_limit = self.job(job).stop_reason() == Some(StopReason::CrashLoop)
                    && planned.start_limit.is_some_and(|limit| limit.then == OnStartLimit::Shutdown);
                (by_limit || planned.on_failure == OnCompletion::Shutdown, "failed, shutting down")
            }
            None => (has_run && planned.on_success == OnCompletion::Shutdown, "completed, shutting down"),
        };
        if stops {
            let reason = self.completion_reason(job, failure);
            let fields = Fields::from(Code::Shutdown).cause(reason.cause.as_str());
            self.exit_codes.decided = Some(reason);
            self.log(Level::Info, Some(job), fields, format_args!("{message}"));
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
        let Some(code) = self.job(job).failure else { return };
        let reason = self.completion_reason(job, Some(code));
        let first = match self.planned(job).role {
            Role::Coprocess | Role::Sensor(_) => return,
            // W17: a user's run, which is no part of the container's work.
            _ if self.planned(job).when.is_manual() => return,
            _ if is_work => &mut self.exit_codes.first_failure,
            _ => &mut self.exit_codes.first_hook_failure,
        };
        first.get_or_insert(reason);
    }

    /// The code of a job that is complete, and how its last run ended.
    fn completion_reason(&self, job: JobIx, failure: Option<u8>) -> ExitReason {
        let (state, name) = (self.job(job), &self.planned(job).name);
        let Some(code) = failure else {
            let cause = format!("{name} {}", Code::ExitSuccess);
            return ExitReason { code: 0, words: format!("{name} completed"), cause };
        };
        if let Some(limit) = self.start_limit_in_words(job) {
            let words = format!("{name} is in a crash loop ({limit})");
            return ExitReason { code, words, cause: format!("{name} {}", Code::CrashLoop) };
        }
        let words = match state.last_exit {
            _ if self.planned(job).exec.action().is_some() => format!("the action of {name} was refused"),
            _ if state.start_error.is_some() => format!("{name} failed to start"),
            Some(exit) if exit.timed_out => format!("{name} timed out"),
            Some(exit) => format!("{name} exited {}", exit.status),
            None => format!("{name} failed"),
        };
        ExitReason { code, words, cause: format!("{name} {}", Code::ExitFailed) }
    }

    pub(crate) fn exit_reason(&self) -> ExitReason {
        let codes = &self.exit_codes;
        let decided =
            codes.decided.as_ref().or(codes.first_failure.as_ref()).or(codes.first_hook_failure.as_ref());
        decided.cloned().or_else(|| self.no_work_ran()).unwrap_or_else(|| ExitReason {
            code: 0,
            words: self.nothing_to_do().into(),
            cause: ALL_ENDED.into(),
        })
    }

    /// S5: a container whose work was skipped altogether has failed.
    fn no_work_ran(&self) -> Option<ExitReason> {
        let skipped = |job: JobIx| match self.job(job).outcome() {
            Some(Outcome::Skipped(why)) => Some((job, why)),
            _ => None,
        };
        let mut work = self.all_jobs().filter(|job| self.is_work(*job));
        let (job, why) = work.find_map(skipped).filter(|_| !self.exit_codes.has_worked)?;
        let name = &self.planned(job).name;
        let words = format!("no job has run: {name} was skipped: {}", why.words());
        Some(ExitReason { code: 1, words, cause: format!("{name} skipped") })
    }

    /// The level of the last entry. Without a configuration file, the caller gets the exit code of the program (S7).
    pub(crate) fn exit_level(&self, code: u8) -> Level {
        if code == 0 || self.plan().pass_signals { Level::Info } else { Level::Error }
    }

    /// Why the supervisor stops by itself.
    pub(crate) fn nothing_to_do(&self) -> &'static str {
        if self.plan().jobs.is_empty() { "there are no jobs" } else { "all jobs that do work have ended" }
    }
}
