//! Starts that wait for what a job requires, and stops because a bound source is gone (W18).
//!
//! A start that waits is kept as the event, tick or restart that caused it. When the state of a source changes, the
//! jobs that require it are rechecked; nothing polls.

use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::Level;
use crate::state::job::{Activity, Deferred, State, StopReason, Transition};
use crate::state::journal::Event;
use crate::state::phase::Phase;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// Keeps the event that starts a job until its requirements hold. During a shutdown they never will.
    pub(crate) fn defer_event(&mut self, job: JobIx, event: Event) {
        if !self.is_before_shutdown() {
            let why = self.missing_words(job);
            let fields = LogEvent::MissingRequirement.fields().cause(why.as_str());
            self.log(Level::Warn, Some(job), fields, format_args!("not started: {why}"));
            return self.begin_stop(job, StopReason::Shutdown);
        }
        let was_deferred = self.is_deferred(job);
        self.job_mut(job).pending.put_back(event);
        self.defer(job, was_deferred);
    }

    /// Keeps a tick until the requirements of a job hold. Further ticks until then are skipped.
    pub(crate) fn defer_tick(&mut self, job: JobIx) {
        let was_deferred = self.is_deferred(job);
        let state = self.job_mut(job);
        state.ticks.pending = state.pending.is_empty();
        self.defer(job, was_deferred);
    }

    /// Keeps a restart until the requirements of a job hold.
    pub(crate) fn defer_restart(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        if state.pending.is_empty() {
            state.deferred.get_or_insert(Deferred::Restart);
        }
        self.defer(job, false);
    }

    pub(crate) fn defer(&mut self, job: JobIx, was_deferred: bool) {
        if self.job(job).state() != State::Waiting {
            self.change(job, Transition::To(Activity::Waiting));
        }
        if !was_deferred {
            let why = self.missing_words(job);
            let fields = LogEvent::MissingRequirement.fields().cause(why.as_str());
            self.log(Level::Info, Some(job), fields, format_args!("waiting: {why}"));
        }
        self.plan_state.reachability_dirty = true;
        self.enqueue_recheck(job);
    }

    /// The state of a source of a job has changed: starts the job if its requirements hold now, or stops it if a bound
    /// source is gone.
    pub(crate) fn recheck_requirements(&mut self, job: JobIx) {
        if self.planned(job).requires.is_empty() || self.phase != Phase::Running || !self.job(job).is_up() {
            return;
        }
        match self.job(job).state() {
            State::Waiting if self.job(job).is_deferred() && self.requirements_hold(job) => {
                self.start_deferred(job);
            }
            State::Queued | State::Starting | State::Running => {
                let Some(requirement) = self.gone_binding(job) else { return };
                let why = self.requirement_words(requirement, self.key_of_requirement(job, requirement));
                let fields = LogEvent::MissingRequirement.fields().cause(why.as_str());
                self.log(Level::Warn, Some(job), fields, format_args!("stopping: {why}"));
                self.begin_stop_then(job, StopReason::SourceGone, true);
            }
            _ => {}
        }
    }

    /// Starts what was deferred.
    fn start_deferred(&mut self, job: JobIx) {
        let paused = self.is_paused();
        let state = self.job_mut(job);
        if let Some(event) = state.pending.pop() {
            state.ticks.off_schedule = true;
            return self.start_for(job, event);
        }
        if core::mem::take(&mut state.ticks.pending) {
            if !paused {
                self.start_skipped_tick(job);
            }
            return;
        }
        match state.deferred.take() {
            Some(Deferred::Restart) if self.count_start(job) => {
                self.count_restart(job);
                self.start(job, None);
            }
            Some(Deferred::Resume) => self.resume(job),
            Some(Deferred::Restart) | None => {}
        }
    }

    /// A job that stopped because a source was gone starts again. Back-off applies, as for a restart (W8).
    pub(crate) fn resume(&mut self, job: JobIx) {
        let delay = self.next_restart_delay(job);
        if delay.is_zero() {
            if self.count_start(job) {
                self.start_resumed(job);
            }
            return;
        }
        let in_time = fmt_duration(delay);
        let fields = LogEvent::Restarting.fields().duration(delay);
        self.log(Level::Info, Some(job), fields, format_args!("starting again in {in_time}"));
        self.job_mut(job).deferred = Some(Deferred::Resume);
        let timer = self.set_timer(job, delay, JobTimer::Restart);
        self.change(job, Transition::To(Activity::Delaying(timer)));
    }

    /// Starts the first run of a generation that follows a lost source.
    pub(crate) fn start_resumed(&mut self, job: JobIx) {
        if self.planned(job).when.is_periodic() {
            self.begin_ticks(job);
        }
        self.start(job, None);
    }

    /// Creates the next generation of a job that stopped because a source was gone. It starts when its requirements
    /// hold, as if its trigger had just come.
    pub(crate) fn begin_resumed_generation(&mut self, job: JobIx) {
        let state = self.job(job);
        let (cause, early_exits, started_at) = (state.cause, state.early_exits, state.started_at);
        let starts = core::mem::take(&mut self.job_mut(job).starts);
        self.begin_generation(job);
        let newest_generation = self.last_ids.generation;
        let state = self.job_mut(job);
        (state.cause, state.early_exits, state.started_at) = (cause, early_exits, started_at);
        (state.triggered_at, state.deferred, state.starts) =
            (Some(newest_generation), Some(Deferred::Resume), starts);
        // The source may be back already.
        let holds = self.requirements_hold(job);
        self.defer(job, holds);
    }
}
