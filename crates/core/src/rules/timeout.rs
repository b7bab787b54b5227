//! How long a run may take (P5). The timeout of a check is in `health/checks.rs`, that of a trigger in `waiting.rs`.

use core::time::Duration;

use crate::effect::KillReason;
use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::log_entry::LogEvent;
use crate::plan::{Command, Level, Signal, Trigger};
use crate::state::job::State;
use crate::state::phase::Phase;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// How long the current run may take. A stop hook has a limit, also if it has no `timeout` (S15).
    fn longest_run(&self, job: JobIx) -> Option<Duration> {
        let (planned, cause) = (self.planned(job), self.job(job).cause_event());
        let is_hook = cause.is_some_and(|event| event.code.is_stop_event());
        planned.timeout.or_else(|| planned.hook_time().filter(|_| is_hook))
    }

    /// Counts the timeout of a run that has just started.
    pub(crate) fn set_run_timeout(&mut self, job: JobIx) {
        if let Some(timeout) = self.longest_run(job).filter(|_| self.phase != Phase::Killing) {
            let timer = self.set_timer(job, timeout, JobTimer::RunTimeout);
            if let Some(run) = self.job_mut(job).run_mut() {
                run.timeout = Some(timer);
            }
        }
    }

    /// A reload has made a job whose run has no limit a hook, which has one.
    pub(crate) fn adjust_run_timeout(&mut self, job: JobIx) {
        let state = self.job(job);
        let is_unlimited = state.state() == State::Running
            && state.run().is_some_and(|run| run.timeout.is_none() && !run.timed_out);
        if let Some(limit) = self.longest_run(job).filter(|_| is_unlimited) {
            let ran = self.now.since(state.started_at.unwrap_or(self.now));
            let timer = self.set_timer(job, limit.saturating_sub(ran), JobTimer::RunTimeout);
            if let Some(run) = self.job_mut(job).run_mut() {
                run.timeout = Some(timer);
            }
        }
    }

    /// A run has reached its timeout.
    pub(crate) fn run_timeout(&mut self, job: JobIx) {
        let (state, timers) = self.job_and_timers(job);
        if state.state() == State::Outlived {
            return;
        }
        let Some(run) = state.run_mut() else { return };
        timers.cancel(&mut run.timeout);
        let was_timed_out = run.timed_out;
        // R5: a reload may have made a hook a job without a limit.
        let Some(timeout) = self.longest_run(job).filter(|_| !was_timed_out) else { return };
        if let Some(run) = self.job_mut(job).run_mut() {
            run.timed_out = true;
        }
        let fields = LogEvent::Timeout.fields().pid(self.job(job).pid()).duration(timeout);
        // A periodic job without a `timeout` of its own has its interval as timeout.
        let at_tick = matches!(self.planned(job).when.trigger, Trigger::Interval { every: interval, .. } if interval == timeout);
        let at_tick = if at_tick { ", still running at its next tick" } else { "" };
        // Scripts look for the words of 3.8, with the name of the job. The format `default` has it only once.
        let name = self.planned(job).name.clone();
        let arguments = self.planned(job).exec.program().map(Command::arguments_in_log).unwrap_or_default();
        let timeout = fmt_duration(timeout);
        let repeats = self.repeats_sensor_failure(job, ExitStatus::Signal(Signal::KILL));
        let level = if repeats { Level::Debug } else { Level::Warn };
        self.log(
            level,
            Some(job),
            fields,
            format_args!("{name} timeout after {timeout}: {arguments}{at_tick}"),
        );
        self.send_signal(job, Signal::KILL, KillReason::Timeout);
    }
}
