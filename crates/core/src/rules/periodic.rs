//! Periodic jobs (W4).

use crate::ids::JobIx;
use crate::plan::Trigger;
use crate::state::job::State;
use crate::state::journal::Event;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::{JobTimer, TimerKind};

impl Core {
    /// A periodic job runs at startup and then at every tick.
    pub(crate) fn first_tick(&mut self, job: JobIx, event: Event) {
        if self.job(job).is_up() {
            self.begin_ticks(job);
            self.start(job, Some(event));
        }
    }

    /// Counts ticks from now on.
    pub(crate) fn begin_ticks(&mut self, job: JobIx) {
        let (now, newest_generation) = (self.now, self.last_ids.generation);
        let state = self.job_mut(job);
        state.ticks.due = now;
        state.triggered_at = Some(newest_generation);
        self.set_tick(job);
    }

    /// Sets the timer of the next tick, if the job may run again. Ticks do not drift, and missed ones are skipped.
    fn set_tick(&mut self, job: JobIx) {
        let Trigger::Interval(interval) = self.planned(job).when.trigger else { return };
        if !self.may_restart(job) {
            return;
        }
        let mut due = self.job(job).ticks.due + interval;
        if due <= self.now {
            // The supervisor was paused: the next tick is the next multiple of the interval.
            let missed = self.now.since(due).as_nanos() / interval.as_nanos().max(1);
            let ticks = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
            due = due + interval.saturating_mul(ticks);
        }
        let timer = self.timers.set(due, TimerKind::Job(job, JobTimer::Tick));
        let ticks = &mut self.job_mut(job).ticks;
        (ticks.due, ticks.timer) = (due, Some(timer));
    }

    /// A tick is due.
    pub(crate) fn tick(&mut self, job: JobIx) {
        self.job_mut(job).ticks.timer = None;
        if !self.job(job).is_up() || self.phase != Phase::Running {
            return;
        }
        let Trigger::Interval(interval) = self.planned(job).when.trigger else { return };
        match self.job(job).state() {
            State::Waiting => {
                self.count_restart(job);
                self.set_tick(job);
                self.start(job, None);
            }
            State::Starting | State::Running => {
                // A run whose timeout is not longer than the interval has reached its timeout, and this tick starts the
                // next run. A longer run continues, and the tick is skipped. A run that started after the tick was due,
                // because the supervisor was delayed, has reached nothing.
                let state = self.job(job);
                let timed_out = self.planned(job).timeout.is_some_and(|timeout| timeout <= interval)
                    && state.started_at.is_none_or(|started| started < state.ticks.due);
                // Of several ticks while the process is being killed, one is kept and counted (W7).
                if timed_out && !state.ticks.pending && state.state() == State::Running {
                    self.count_restart(job);
                    self.job_mut(job).ticks.pending = true;
                    self.run_timeout(job);
                }
                self.set_tick(job);
            }
            State::Delaying | State::Complete => {}
        }
    }
}
