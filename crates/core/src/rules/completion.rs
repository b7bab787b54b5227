//! When a job is complete (W9), and when the supervisor stops by itself (W10). `plan/work.rs` lists the jobs that count.

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::JobIx;
use crate::plan::Level;
use crate::state::job::{Activity, Transition};
use crate::state::journal::Origin;
use crate::state::supervisor::Core;

impl Core {
    /// The job is complete.
    pub(crate) fn finish(&mut self, job: JobIx) {
        self.end_checks(job);
        self.change(job, Transition::To(Activity::Complete));
        self.advertise(job, DesiredService::Absent);
        self.send(Origin::Job(job), Code::Stopped, None);
        self.count_complete(job);
        self.enqueue_dependents(job);
        if !self.is_before_shutdown() {
            return self.completed_during_shutdown(job);
        }
        let may_start_again = self.job(job).may_start_again();
        let message = if may_start_again { "stopped" } else { "complete" };
        self.log(Level::Info, Some(job), format_args!("{message}"));
        if self.job(job).stop().is_some_and(|stop| stop.then_start) {
            self.plan_state.start_again.push_back(job);
        } else if !may_start_again && self.completed_and_stops_container(job) {
            self.shut_down();
        }
    }

    fn count_complete(&mut self, job: JobIx) {
        // A job stopped by hand keeps the supervisor running, so that it can be started again.
        let holds_open = self.plan_state.graph.holds_open(job) && !self.job(job).may_start_again();
        let state = &mut self.plan_state;
        state.incomplete = state.incomplete.saturating_sub(1);
        state.holding_open = state.holding_open.saturating_sub(usize::from(holds_open));
    }

    /// Returns true if every job that does work is complete (W10).
    pub(crate) fn is_work_complete(&self) -> bool {
        self.plan_state.holding_open == 0
    }

    /// Shuts down because there is no work left. Returns true, because events follow.
    pub(crate) fn shut_down_by_itself(&mut self) -> bool {
        self.log(Level::Info, None, format_args!("all jobs are complete, shutting down"));
        self.shut_down();
        true
    }
}
