//! When a job has ended (W9), and when the supervisor stops by itself (W10). `plan/work.rs` lists the jobs that count.

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::{Fields, LogEvent};
use crate::plan::Level;
use crate::state::job::{Activity, Outcome, State, StopReason, Transition};
use crate::state::journal::{Detail, Origin};
use crate::state::supervisor::Core;

/// The cause of a shutdown and of an exit because no job has work left.
pub(crate) const ALL_ENDED: &str = "complete";

impl Core {
    /// A job that stops has ended.
    pub(crate) fn finish(&mut self, job: JobIx) {
        self.end_checks(job);
        let outcome = self.job(job).outcome().unwrap_or(Outcome::Stopped);
        self.change(job, Transition::To(Activity::Ended(outcome)));
        self.advertise(job, DesiredService::Absent);
        self.send_with(Origin::Job(job), Code::Stopped, Detail::Ended(outcome));
        self.count_ended(job);
        self.enqueue_dependents(job);
        if !self.is_before_shutdown() {
            return self.completed_during_shutdown(job);
        }
        self.log(Level::Info, Some(job), LogEvent::Ended(outcome), format_args!("{}", outcome.name()));
        let is_stopped =
            self.job(job).may_start_again() || self.job(job).stop_reason() == Some(StopReason::ByAction);
        if self.job(job).stop().is_some_and(|stop| stop.then_start) {
            self.plan_state.start_again.push_back(job);
        } else if !is_stopped && self.completed_and_stops_container(job) {
            self.shut_down_after_action = self.acting.is_some();
            if self.acting.is_none() {
                self.shut_down();
            }
        }
    }

    fn count_ended(&mut self, job: JobIx) {
        // A job stopped by hand keeps the supervisor running, so that it can be started again.
        let holds_open = self.plan_state.graph.holds_open(job) && !self.job(job).may_start_again();
        let state = &mut self.plan_state;
        state.incomplete = state.incomplete.saturating_sub(1);
        state.holding_open = state.holding_open.saturating_sub(usize::from(holds_open));
    }

    /// Returns true if every job that does work has ended (W10), and no user's run is in progress (W17).
    pub(crate) fn is_work_complete(&self) -> bool {
        let is_started = |job| self.planned(job).when.is_manual() && self.is_started(job);
        self.plan_state.holding_open == 0 && !self.all_jobs().any(is_started)
    }

    /// Returns true if a job runs, or will be restarted.
    fn is_started(&self, job: JobIx) -> bool {
        self.job(job).is_active() || self.job(job).state() == State::Delaying
    }

    /// Shuts down because there is no work left. Returns true, because events follow.
    pub(crate) fn shut_down_by_itself(&mut self) -> bool {
        let fields = Fields::from(Code::Shutdown).cause(ALL_ENDED);
        self.log(Level::Info, None, fields, format_args!("all jobs that do work have ended, shutting down"));
        self.shut_down();
        true
    }
}
