//! Periodic jobs (W4).

use crate::ids::JobIx;
use crate::plan::Trigger;
use crate::state::job::State;
use crate::state::journal::Event;
use crate::state::run::Cause;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::{JobTimer, TimerKind};

impl Core {
    /// A periodic job runs at startup and then at every tick. If it is paused, or counts its ticks from an event, its first
    /// run is at a later tick.
    pub(crate) fn first_tick(&mut self, job: JobIx, event: Event) {
        if !self.job(job).is_up() {
            return;
        }
        if self.is_paused() || !self.planned(job).when.ticks_at_startup() {
            self.job_mut(job).ticks.due = self.now;
            return self.set_next_tick(job);
        }
        self.begin_ticks(job);
        self.start_for(job, event);
    }

    /// Counts ticks from now on.
    pub(crate) fn begin_ticks(&mut self, job: JobIx) {
        let (now, newest_generation) = (self.now, self.last_ids.generation);
        let (state, timers) = self.job_and_timers(job);
        timers.cancel(&mut state.ticks.timer);
        state.ticks.due = now;
        state.triggered_at = Some(newest_generation);
        self.set_tick(job);
    }

    /// Sets the timer of the next tick, if the job may run again.
    fn set_tick(&mut self, job: JobIx) {
        if self.may_restart(job) {
            self.set_next_tick(job);
        }
    }

    /// Sets the timer of the next tick. Ticks do not drift, and missed ones are skipped.
    fn set_next_tick(&mut self, job: JobIx) {
        let Trigger::Interval { every: interval, .. } = self.planned(job).when.trigger else { return };
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

    /// Starts a run at a tick after the first.
    pub(crate) fn start_at_tick(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.cause = Some(Cause::Tick(state.first_event().copied()));
        self.start(job, None);
    }

    /// Starts the run of a tick that was held (W18).
    pub(crate) fn start_skipped_tick(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.restarts += u64::from(state.has_run);
        if !self.may_restart(job) {
            let (state, timers) = self.job_and_timers(job);
            timers.cancel(&mut state.ticks.timer);
        }
        self.start_at_tick(job);
    }

    /// A tick is due.
    pub(crate) fn tick(&mut self, job: JobIx) {
        self.job_mut(job).ticks.timer = None;
        if !self.job(job).is_up() || self.phase != Phase::Running {
            return;
        }
        let Trigger::Interval { every: interval, .. } = self.planned(job).when.trigger else { return };
        let (paused, newest_generation) = (self.is_paused(), self.last_ids.generation);
        match self.job(job).state() {
            // C8: a skipped tick is not counted.
            State::Waiting if paused => self.set_next_tick(job),
            // W18: the first of the skipped ticks is made up, and counted then.
            State::Waiting if !self.requirements_hold(job) => {
                self.job_mut(job).triggered_at.get_or_insert(newest_generation);
                self.set_next_tick(job);
                self.hold_tick(job);
            }
            State::Waiting => {
                // `restarts` limits the ticks after the first run, but a tick is not a restart (T4).
                let state = self.job_mut(job);
                state.restarts += u64::from(state.has_run);
                state.triggered_at.get_or_insert(newest_generation);
                self.set_tick(job);
                self.start_at_tick(job);
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
                    if !paused {
                        let state = self.job_mut(job);
                        (state.restarts, state.ticks.pending) = (state.restarts + 1, true);
                    }
                    self.run_timeout(job);
                }
                self.set_tick(job);
            }
            State::Delaying | State::Ended(_) => {}
        }
    }
}
