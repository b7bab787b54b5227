//! Triggers: whether an event starts a job (W2, W5, W7, W12, S3).

use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::Fields;
use crate::plan::Level;
use crate::state::dependency_graph::Subscription;
use crate::state::job::{State, StopReason};
use crate::state::journal::{Event, Origin};
use crate::state::phase::Phase;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// Handles an event that a job waits for.
    pub(crate) fn matched(&mut self, subscription: Subscription, event: Event) {
        let Subscription { job, condition, clears } = subscription;
        let state = self.job(job);
        // A job that was skipped keeps the conditions that it gave up with. What was sent before a generation is not
        // for it.
        if !state.is_up() || event.id <= state.generation.created_after {
            return;
        }
        if self.planned(job).when.needs_all() {
            let conditions = &mut self.job_mut(job).conditions;
            let did_hold = conditions.iter().all(|holds| *holds);
            if let Some(holds) = conditions.get_mut(condition) {
                *holds = !clears;
            }
            if did_hold || !conditions.iter().all(|holds| *holds) {
                return;
            }
        }
        self.trigger(job, event);
    }

    fn trigger(&mut self, job: JobIx, event: Event) {
        // A shutdown that is due begins when this event has reached all its jobs (E3). Those after the one that ends the
        // container get it as in the shutdown: no other event of this kind follows.
        let shutting_down =
            matches!(self.phase, Phase::Stopping | Phase::Terminating) || self.shutdown_due.is_some();
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
