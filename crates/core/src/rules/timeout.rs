//! How long a run may take (P5). The timeout of a check is in `health.rs`, that of a trigger in `trigger.rs`.

use crate::effect::KillReason;
use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::log_entry::LogEvent;
use crate::plan::{Level, Signal, Trigger};
use crate::state::job::State;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::JobTimer;
use crate::time::fmt_duration;

impl Core {
    /// Counts the timeout of a run that has just started.
    pub(crate) fn set_run_timeout(&mut self, job: JobIx) {
        if let Some(timeout) = self.planned(job).timeout.filter(|_| self.phase != Phase::Killing) {
            let timer = self.set_timer(job, timeout, JobTimer::RunTimeout);
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
        if core::mem::replace(&mut run.timed_out, true) {
            return;
        }
        let timeout = self.planned(job).timeout.unwrap_or_default();
        let fields = LogEvent::Timeout.fields().pid(self.job(job).pid()).duration(timeout);
        // A periodic job without a `timeout` of its own has its interval as timeout.
        let at_tick = matches!(self.planned(job).when.trigger, Trigger::Interval { every: interval, .. } if interval == timeout);
        let at_tick = if at_tick { ", still running at its next tick" } else { "" };
        // 3.8 has the name in the message, and scripts look for it.
        let (name, timeout) = (self.planned(job).name.clone(), fmt_duration(timeout));
        let repeats = self.repeats_sensor_failure(job, ExitStatus::Signal(Signal::KILL));
        let level = if repeats { Level::Debug } else { Level::Warn };
        self.log(level, Some(job), fields, format_args!("{name} timeout after {timeout}{at_tick}"));
        self.send_signal(job, Signal::KILL, KillReason::Timeout);
    }
}
