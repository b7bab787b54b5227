//! Triggers: whether an event starts a job (W2, W5, W7, W12, S3).

use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Level, Repeat};
use crate::state::dependency_graph::{NameId, SourceKey, Subscription};
use crate::state::job::{State, StopReason};
use crate::state::journal::{Event, Origin};
use crate::state::pending::MAX_PENDING;
use crate::state::phase::Phase;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// Handles an event that a job waits for.
    pub(crate) fn matched(&mut self, subscription: Subscription, event: Event) {
        let Subscription { job, condition, clears } = subscription;
        let state = self.job(job);
        // A job that was skipped keeps the conditions that it gave up with. What was sent before a generation is not for it.
        if !state.is_up() || event.id <= state.generation.created_after {
            return;
        }
        if self.planned(job).when.needs_all() {
            let conditions = &mut self.job_mut(job).conditions;
            let held = conditions.iter().all(|holds| *holds);
            if let Some(holds) = conditions.get_mut(condition) {
                *holds = !clears;
            }
            if held || !conditions.iter().all(|holds| *holds) {
                return;
            }
        }
        self.trigger(job, event);
    }

    fn trigger(&mut self, job: JobIx, event: Event) {
        let shutting_down = matches!(self.phase, Phase::Stopping | Phase::Terminating);
        let periodic = self.planned(job).when.is_periodic();
        // An event from before the present generation of its job does not count for that.
        let newest_generation = match event.origin {
            Origin::Job(source) if event.id <= self.job(source).generation.created_after => {
                self.job(source).generation.serial.saturating_sub(1)
            }
            _ => self.last_ids.generation,
        };
        // S4: when everything is killed, nothing starts.
        let starts = self.is_before_shutdown() || shutting_down;
        if !starts || !self.job(job).is_up() || self.was_triggered_once(job) {
            return;
        }
        let state = self.job_mut(job);
        // S3: during a shutdown, only stop events start a job, and only once.
        if shutting_down && (!event.code.is_stop_event() || state.ran_at_shutdown) {
            return;
        }
        state.triggered_at = Some(newest_generation);
        state.ran_at_shutdown |= shutting_down;
        match state.state() {
            State::Waiting if periodic => self.first_tick(job, event),
            // W21: the events before it have not had their runs.
            State::Waiting | State::Delaying if state.pending.is_queue() && !state.pending.is_empty() => {
                self.add_pending(job, event);
            }
            // An event of another job during the restart delay starts the job at once and uses no restart.
            State::Waiting | State::Delaying => self.start_for(job, event),
            State::Queued | State::Starting | State::Running | State::Outlived => {
                self.add_pending(job, event);
            }
            State::Ended(_) => {}
        }
    }

    /// W14: returns true if an event that starts a job follows from the job's own events, directly or through other jobs
    /// that run at every event. A job sends stop events only once.
    pub(crate) fn triggers_itself(&self, job: JobIx, event: &Event) -> bool {
        let each = self.planned(job).when.repeat() == Repeat::Each && !event.code.is_stop_event();
        // An action can start what it waits for again, also for a job that waits once.
        if !each && self.planned(job).exec.action().is_none() {
            return false;
        }
        let graph = &self.plan_state.graph;
        match (event.origin, event.code) {
            (Origin::Job(source), _) => graph.leads_to(job, source),
            (Origin::Global, Code::EnterMaintenance | Code::ExitMaintenance) => {
                let mut sources = graph.maintainers(event.code == Code::EnterMaintenance).iter();
                sources.any(|source| graph.leads_to(job, *source))
            }
            _ => false,
        }
    }

    /// W7, W21: keeps an event for a run after this one.
    pub(crate) fn add_pending(&mut self, job: JobIx, event: Event) {
        if self.job_mut(job).pending.push(event) {
            let message = format_args!("more than {MAX_PENDING} events are pending, dropping the oldest");
            self.log(Level::Warn, Some(job), LogEvent::EventsDropped, message);
        }
    }

    /// Returns true if a job with `once` has been triggered. A stop hook is triggered once per generation of the job it
    /// waits for, so that it runs again after that job was restarted by hand.
    pub(crate) fn was_triggered_once(&self, job: JobIx) -> bool {
        let Some(triggered_at) = self.job(job).triggered_at else { return false };
        if self.planned(job).when.repeat() != Repeat::Once {
            return false;
        }
        let mut sources = self.stop_event_sources(job).flat_map(|id| self.plan_state.graph.jobs_named(id));
        !sources
            .any(|source| self.job(*source).generation.serial > triggered_at || self.may_start_again(*source))
    }

    /// The names whose stop events a job waits for.
    pub(crate) fn stop_event_sources(&self, job: JobIx) -> impl Iterator<Item = NameId> + '_ {
        let patterns = self.planned(job).when.patterns().iter().zip(self.plan_state.graph.keys(job));
        patterns.filter_map(|(event, key)| match key {
            SourceKey::Name(id) if event.code.is_stop_event() => Some(*id),
            _ => None,
        })
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

    /// W5: the job was not started within `when.timeout`.
    pub(crate) fn start_timeout(&mut self, job: JobIx) {
        self.job_mut(job).start_timeout = None;
        if self.job(job).has_run || !self.job(job).is_up() {
            return;
        }
        let timeout = self.planned(job).when.timeout.unwrap_or_default();
        let fields = Fields::from(Code::TimerExpired).duration(timeout);
        let timeout = fmt_duration(timeout);
        self.log(Level::Warn, Some(job), fields, format_args!("not started within {timeout}, giving up"));
        self.send(Origin::Job(job), Code::TimerExpired);
        self.begin_stop(job, StopReason::StartTimeout);
    }
}
