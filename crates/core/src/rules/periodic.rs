//! Periodic jobs: at an interval (W4) or at certain times (W15).

use core::time::Duration;

use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::{Level, Trigger, fmt_utc};
use crate::state::job::{CronTimes, State, Ticks};
use crate::state::journal::Event;
use crate::state::phase::Phase;
use crate::state::run::Cause;
use crate::state::timers::{JobTimer, TimerKind};
use crate::supervisor::{Clock, Core};
use crate::time::Time;

impl Core {
    /// The schedule of a periodic job starts. It runs now, unless it is paused or its first run is at a later tick.
    pub(crate) fn first_tick(&mut self, job: JobIx, event: Event) {
        if !self.job(job).is_up() {
            return;
        }
        if self.is_paused() || !self.planned(job).when.runs_at_once() {
            let is_cron = self.planned(job).when.cron().is_some();
            self.job_mut(job).ticks.due = self.now;
            if is_cron {
                // W16: the event has come in time.
                self.end_start_timeout(job);
                self.job_mut(job).cause = Some(Cause::Tick(Some(event)));
            }
            return self.set_next_tick(job);
        }
        self.begin_ticks(job);
        self.start_for(job, event);
    }

    /// W14: a new generation that has run just before, in the last one, runs first one tick later.
    pub(crate) fn await_first_tick(&mut self, job: JobIx) {
        let (now, newest_generation) = (self.now, self.last_ids.generation);
        let state = self.job_mut(job);
        if state.has_run || state.ticks.timer.is_some() || !state.is_up() {
            return;
        }
        (state.ticks.due, state.triggered_at) = (now, Some(newest_generation));
        self.set_next_tick(job);
    }

    /// R5: sets the timer of the next tick again.
    pub(crate) fn resume_ticks(&mut self, job: JobIx) {
        let ticks = &self.job(job).ticks;
        match (ticks.cron, ticks.due > self.now) {
            // The next tick was cancelled before it was due.
            (None, true) => self.set_tick_timer(job, ticks.due),
            (Some(times), true) => self.set_time_after(job, times.since, times.next - 1),
            (_, false) => self.set_next_tick(job),
        }
    }

    /// Counts ticks from now on.
    pub(crate) fn begin_ticks(&mut self, job: JobIx) {
        let (now, newest_generation) = (self.now, self.last_ids.generation);
        let unix = self.unix_now().as_secs();
        // Also without a further tick: a reload may add times (R5), and the schedule has started all the same.
        let cron = self.planned(job).when.cron().map(|_| CronTimes { since: unix, next: unix });
        let (state, timers) = self.job_and_timers(job);
        timers.cancel(&mut state.ticks.timer);
        state.ticks = Ticks { due: now, cron, ..Ticks::default() };
        state.triggered_at = Some(newest_generation);
        self.set_tick(job);
    }

    /// Sets the timer of the next tick, if the job may run again.
    fn set_tick(&mut self, job: JobIx) {
        if self.has_restarts_left(job) {
            self.set_next_tick(job);
        }
    }

    /// Sets the timer of the next tick. Ticks do not drift, and missed ones are skipped.
    fn set_next_tick(&mut self, job: JobIx) {
        match self.planned(job).when.trigger {
            Trigger::Interval { every, .. } => self.set_next_interval(job, every),
            Trigger::Cron { .. } => self.set_next_time(job),
            _ => {}
        }
    }

    fn set_next_interval(&mut self, job: JobIx, interval: Duration) {
        let mut due = self.job(job).ticks.due + interval;
        if due <= self.now {
            // The supervisor was paused: the next tick is the next multiple of the interval.
            let missed = self.now.since(due).as_nanos() / interval.as_nanos().max(1);
            let ticks = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
            due = due + interval.saturating_mul(ticks);
        }
        self.set_tick_timer(job, due);
    }

    /// W15: the next time after now, and after the last one that has come.
    fn set_next_time(&mut self, job: JobIx) {
        let now = self.unix_now().as_secs();
        let last = self.job(job).ticks.cron;
        let since = last.map_or(now, |times| times.since);
        self.set_time_after(job, since, last.map_or(now, |times| times.next.max(now)));
    }

    fn set_time_after(&mut self, job: JobIx, since: u64, after: u64) {
        let next = self.planned(job).when.cron().and_then(|cron| cron.next_after(after));
        let Some(next) = next else { return };
        self.job_mut(job).ticks.cron = Some(CronTimes { since, next });
        let due = self.now + Duration::from_secs(next).saturating_sub(self.unix_now());
        self.set_tick_timer(job, due);
    }

    pub(crate) fn set_tick_timer(&mut self, job: JobIx, due: Time) {
        let timer = self.timers.set(due, TimerKind::Job(job, JobTimer::Tick));
        let ticks = &mut self.job_mut(job).ticks;
        (ticks.due, ticks.timer) = (due, Some(timer));
    }

    /// W15: the system clock was read, because it was set or the machine was asleep. A scheduled time that was
    /// missed is run once. A clock that was set back runs no time twice, unless it is set to before the schedule
    /// started: then the schedule starts again, because it may have started with a clock that was years ahead.
    pub(crate) fn set_clock(&mut self, unix: Duration) {
        let (before, now) = (self.unix_now().as_secs(), unix.as_secs());
        self.clock = Clock { at: self.now, unix };
        for job in self.all_jobs() {
            let (state, timers) = self.job_and_timers(job);
            let Some(times) = &mut state.ticks.cron else { continue };
            if state.ticks.timer.is_none() {
                // A reload may add times to a schedule that has had all of them (R5).
                *times = if now < times.since {
                    CronTimes { since: now, next: now }
                } else {
                    CronTimes { next: times.next.max(before), ..*times }
                };
                continue;
            }
            let times = *times;
            timers.cancel(&mut state.ticks.timer);
            if now < times.since {
                self.set_time_after(job, now, now);
            } else {
                self.set_time_after(job, times.since, times.next - 1);
            }
        }
    }

    /// Starts a run at a tick after the first.
    pub(crate) fn start_at_tick(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.cause = Some(Cause::Tick(state.first_event().copied()));
        state.ticks.off_schedule = false;
        self.start(job, None);
    }

    /// Starts the run of a tick that was deferred (W18).
    pub(crate) fn start_skipped_tick(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.restarts += u64::from(state.has_run);
        if !self.has_restarts_left(job) {
            let (state, timers) = self.job_and_timers(job);
            timers.cancel(&mut state.ticks.timer);
        }
        self.start_at_tick(job);
        self.job_mut(job).ticks.off_schedule = true;
    }

    /// A tick is due.
    pub(crate) fn tick(&mut self, job: JobIx) {
        self.job_mut(job).ticks.timer = None;
        if !self.job(job).is_up() || self.phase != Phase::Running {
            return;
        }
        let interval = match self.planned(job).when.trigger {
            Trigger::Interval { every, .. } => Some(every),
            _ => None,
        };
        let (paused, newest_generation) = (self.is_paused(), self.last_ids.generation);
        match self.job(job).state() {
            // R5: a reload has lowered the number of ticks.
            State::Waiting if self.job(job).has_run && !self.has_restarts_left(job) => {
                self.begin_stop_by_itself(job);
            }
            // C8: a skipped tick is not counted.
            State::Waiting if paused => self.set_next_tick(job),
            // W18: the first of the missed ticks runs later, and counts then.
            State::Waiting if !self.requirements_hold(job) => {
                self.job_mut(job).triggered_at.get_or_insert(newest_generation);
                self.set_next_tick(job);
                self.defer_tick(job);
            }
            State::Waiting => {
                // `restarts` limits the ticks after the first run, but a tick is not a restart (T4).
                let state = self.job_mut(job);
                state.restarts += u64::from(state.has_run);
                state.triggered_at.get_or_insert(newest_generation);
                self.set_tick(job);
                self.start_at_tick(job);
            }
            State::Queued | State::Starting | State::Running | State::Outlived => {
                // A run whose timeout is not longer than the interval has reached its timeout, and this tick starts the
                // next run. A longer run continues, and the tick is skipped. A run that started between two ticks, or
                // after this one was due, because the supervisor was delayed, has its whole timeout.
                let state = self.job(job);
                let is_killed = state.run().is_some_and(|run| run.timed_out);
                let timed_out =
                    self.planned(job).timeout.zip(interval).is_some_and(|(run, tick)| run <= tick)
                        && state.started_at.is_none_or(|started| started < state.ticks.due)
                        && (is_killed || !state.ticks.off_schedule);
                // Of several ticks while the process is being killed, one is kept and counted (W7).
                let has_run = matches!(state.state(), State::Running | State::Outlived);
                if timed_out && !state.ticks.pending && has_run {
                    if !paused {
                        let state = self.job_mut(job);
                        (state.restarts, state.ticks.pending) = (state.restarts + 1, true);
                    }
                    self.run_timeout(job);
                }
                if let Some(times) = self.job(job).ticks.cron {
                    let time = fmt_utc(Duration::from_secs(times.next));
                    let queued = self.job(job).queued_run().is_some();
                    let still = if queued { "waiting for its turn" } else { "running" };
                    let message = format_args!("still {still} at {time}, skipped this run");
                    self.log(Level::Warn, Some(job), LogEvent::TickSkipped, message);
                }
                self.set_tick(job);
            }
            State::Delaying | State::Ended(_) => {}
        }
    }
}
