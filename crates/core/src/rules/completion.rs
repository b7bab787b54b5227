//! The end of a job (W9), and whether it ends the container (S5).

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::outcome::Outcome;
use crate::plan::Level;
use crate::state::job::{Activity, StopReason, Transition};
use crate::state::journal::{Detail, Origin};
use crate::supervisor::Core;

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
        if outcome == Outcome::Failed {
            self.name_recording(Some(job));
        }
        let is_stopped =
            self.job(job).may_start_again() || self.job(job).stop_reason() == Some(StopReason::ByAction);
        if self.job(job).stop().is_some_and(|stop| stop.then_start) {
            self.plan_state.start_again.push_back(job);
        } else if !is_stopped && self.completed_and_stops_container(job) {
            self.shutdown_due = Some(self.current_event);
        }
    }

    fn count_ended(&mut self, job: JobIx) {
        // A job stopped by hand keeps the supervisor running, so that it can be started again.
        let holds_open = self.plan_state.graph.holds_open(job) && !self.job(job).may_start_again();
        let state = &mut self.plan_state;
        state.incomplete = state.incomplete.saturating_sub(1);
        state.holding_open = state.holding_open.saturating_sub(usize::from(holds_open));
    }
}
