//! What a job keeps while it waits: events for later runs (W7, W21), and the time in which it must be started (W5).

use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::Level;
use crate::state::journal::Event;
use crate::state::pending::MAX_PENDING;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;

impl Core {
    /// W7, W21: keeps an event for a run after this one.
    pub(crate) fn add_pending(&mut self, job: JobIx, event: Event) {
        if self.job_mut(job).pending.push(event) {
            let message = format_args!("more than {MAX_PENDING} events are pending, dropping the oldest");
            self.log(Level::Warn, Some(job), LogEvent::EventsDropped, message);
        }
    }

    /// W5: starts the timer of `when.timeout`.
    pub(crate) fn set_start_timeout(&mut self, job: JobIx) {
        if let Some(timeout) = self.planned(job).when.timeout {
            let timer = self.set_timer(job, timeout, JobTimer::StartTimeout);
            self.job_mut(job).start_timeout = Some(timer);
        }
    }

    /// W5: what the job waits for has come in time. Jobs that wait for its `timerExpired` may have become unreachable.
    pub(crate) fn end_start_timeout(&mut self, job: JobIx) {
        let (state, timers) = self.job_and_timers(job);
        let had_timeout = state.start_timeout.is_some();
        timers.cancel(&mut state.start_timeout);
        self.plan_state.reachability_dirty |= had_timeout;
    }
}
