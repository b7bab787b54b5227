//! The restart policy: whether, when and why a job runs again after a run has ended (W4, W6–W9, W13, W14, S3), and the
//! log level of a failed run, which follows from that (L7).

use core::time::Duration;

use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::log_entry::LogEvent;
use crate::plan::{Backoff, Level, OnCompletion, Restarts};
use crate::state::job::{Activity, Deferred, State, StopReason, Transition};
use crate::state::journal::Event;
use crate::state::phase::Phase;
use crate::state::timers::{JobTimer, TimerKind};
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

/// The shortest delay between two performances of an action.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);

impl Core {
    /// Decides what a job does after a run has ended. Must agree with
    /// [`Core::runs_again_after_failure`].
    pub(crate) fn run_again(&mut self, job: JobIx) {
        if let Some(event) = self.job_mut(job).pending.pop() {
            self.change(job, Transition::To(Activity::Waiting));
            return self.start_for(job, event);
        }
        if self.planned(job).when.is_periodic() {
            self.change(job, Transition::To(Activity::Waiting));
            let paused = self.is_paused();
            let state = self.job_mut(job);
            if core::mem::take(&mut state.ticks.pending) && !paused {
                if !self.requirements_hold(job) {
                    // A missed tick counts once it has run.
                    let state = self.job_mut(job);
                    state.restarts = state.restarts.saturating_sub(1);
                    return self.defer_tick(job);
                }
                return self.start_at_tick(job);
            }
            if state.ticks.timer.is_none() {
                self.begin_stop_by_itself(job);
            }
            return;
        }
        if self.may_restart(job, self.job(job).failed_runs > 0) {
            return self.restart(job);
        }
        self.change(job, Transition::To(Activity::Waiting));
        if self.ends_container(job) {
            return self.begin_stop_by_itself(job);
        }
        self.enqueue_recheck(job);
    }

    /// W17: a job that only a user starts waits for the next start, unless the end of its run ends the container.
    fn ends_container(&self, job: JobIx) -> bool {
        let planned = self.planned(job);
        let on_end = if self.job(job).failure.is_some() { planned.on_failure } else { planned.on_success };
        planned.when.is_manual() && on_end == OnCompletion::Shutdown
    }

    /// Returns true if a job whose run fails now runs again by itself: at once, after a delay, or at its next tick.
    fn runs_again_after_failure(&self, job: JobIx) -> bool {
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

    /// S3: during a shutdown a job runs once for its stop event, also if the event came while it was running (W7), and
    /// if several are queued (W21).
    pub(crate) fn run_again_during_shutdown(&mut self, job: JobIx) {
        self.change(job, Transition::To(Activity::Waiting));
        let state = self.job_mut(job);
        match state.pending.pop() {
            Some(event) => {
                state.pending.clear();
                state.ran_at_shutdown = true;
                self.start_for(job, event);
            }
            None if state.ran_at_shutdown => self.begin_stop_by_itself(job),
            None => self.enqueue_recheck(job),
        }
    }

    /// Stops a job that has done its work: its last run decides whether it is complete or has failed.
    pub(crate) fn begin_stop_by_itself(&mut self, job: JobIx) {
        let failed = self.job(job).failure.is_some();
        self.begin_stop(job, if failed { StopReason::Failed } else { StopReason::Completed });
    }

    fn restart(&mut self, job: JobIx) {
        let delay = self.next_restart_delay(job);
        let attempt = self.job(job).restarts + 1;
        let fields = LogEvent::Restarting.fields().duration(delay);
        if delay.is_zero() && !self.requirements_hold(job) {
            return self.defer_restart(job);
        }
        if delay.is_zero() {
            if self.count_start(job) {
                self.log(Level::Info, Some(job), fields, format_args!("restarting (attempt {attempt})"));
                self.count_restart(job);
                self.start(job, None);
            }
            return;
        }
        let in_time = fmt_duration(delay);
        self.log(Level::Info, Some(job), fields, format_args!("restarting in {in_time} (attempt {attempt})"));
        let timer = self.set_timer(job, delay, JobTimer::Restart);
        self.change(job, Transition::To(Activity::Delaying(timer)));
    }

    /// Starts a job for an event, as soon as its requirements hold (W18). A job that triggers itself is delayed like a
    /// restart (W14).
    pub(crate) fn start_for(&mut self, job: JobIx, event: Event) {
        if !self.requirements_hold(job) {
            return self.defer_event(job, event);
        }
        let is_first = !self.job(job).has_run && self.job(job).started_at.is_none();
        // During a shutdown a job runs at most once (S3).
        let starts_now = is_first || !self.is_before_shutdown() || !self.triggers_itself(job, &event);
        if !starts_now && self.job(job).state() == State::Delaying {
            return self.add_pending(job, event);
        }
        let delay = if starts_now { Duration::ZERO } else { self.next_restart_delay(job) };
        if delay.is_zero() {
            if self.count_start(job) {
                self.start(job, Some(event));
            }
            return;
        }
        self.end_start_timeout(job);
        self.job_mut(job).pending.put_back(event);
        let in_time = fmt_duration(delay);
        let fields = LogEvent::Restarting.fields().duration(delay);
        let message = format_args!("triggered by its own events, starting in {in_time}");
        self.log(Level::Info, Some(job), fields, message);
        let timer = self.set_timer(job, delay, JobTimer::Restart);
        self.change(job, Transition::To(Activity::Delaying(timer)));
    }

    /// W14: starts a job for a user or an action, with the delay of a restart.
    pub(crate) fn start_spaced(&mut self, job: JobIx) {
        self.end_start_timeout(job);
        if let Some(timer) = self.job(job).restart_timer() {
            // It takes the place of a restart, at its time.
            return self.timers.replace(timer, TimerKind::Job(job, JobTimer::SpacedStart));
        }
        let is_first = self.job(job).started_at.is_none();
        let delay = if is_first { Duration::ZERO } else { self.next_restart_delay(job) };
        if delay.is_zero() {
            if self.count_start(job) {
                self.start(job, None);
            }
            return;
        }
        let in_time = fmt_duration(delay);
        let fields = LogEvent::Restarting.fields().duration(delay);
        self.log(
            Level::Info,
            Some(job),
            fields,
            format_args!("its action starts it again, starting in {in_time}"),
        );
        let timer = self.set_timer(job, delay, JobTimer::SpacedStart);
        self.change(job, Transition::To(Activity::Delaying(timer)));
    }

    /// W14: the delay of a start by a user or an action has passed. As without a delay, only bound sources must be
    /// there (W18).
    pub(crate) fn start_after_delay(&mut self, job: JobIx) {
        if self.job(job).state() != State::Delaying {
            return;
        }
        if self.missing_bound_words(job).is_some() {
            return self.defer_restart(job);
        }
        if self.count_start(job) {
            let event = self.job_mut(job).pending.pop();
            self.start(job, event);
        }
    }

    /// The back-off of a job. An action always has one: it takes no time, and would repeat endlessly in one step.
    fn backoff(&self, job: JobIx) -> Option<Backoff> {
        let planned = self.planned(job);
        if planned.exec.action().is_none() {
            return planned.backoff;
        }
        let Backoff { initial, max, reset } = planned.backoff.unwrap_or(Backoff::DEFAULT);
        Some(Backoff { initial: initial.max(SHORTEST_DELAY), max: max.max(SHORTEST_DELAY), reset })
    }

    /// W8: the first restart has no delay; while runs keep ending early, the delay doubles.
    pub(crate) fn next_restart_delay(&mut self, job: JobIx) -> Duration {
        let Some(backoff) = self.backoff(job) else { return Duration::ZERO };
        let now = self.now;
        let state = self.job_mut(job);
        if now.since(state.started_at.unwrap_or(Time::ZERO)) > backoff.reset {
            state.early_exits = 0;
        }
        let delay = match state.early_exits.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                backoff.initial.saturating_mul(factor).min(backoff.max)
            }
        };
        state.early_exits = state.early_exits.saturating_add(1);
        delay
    }

    /// The restart delay has passed.
    pub(crate) fn restart_now(&mut self, job: JobIx) {
        if self.job(job).state() != State::Delaying {
            return;
        }
        if !self.requirements_hold(job) {
            return self.defer_restart(job);
        }
        if !self.count_start(job) {
            return;
        }
        let state = self.job_mut(job);
        let (event, deferred) = (state.pending.pop(), state.deferred.take());
        if event.is_none() && deferred == Some(Deferred::Resume) {
            return self.start_resumed(job);
        }
        if event.is_none() {
            self.count_restart(job);
        }
        self.start(job, event);
    }

    pub(crate) fn count_restart(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.restarts += 1;
        state.restarts_total += 1;
    }
}
