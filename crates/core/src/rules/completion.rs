//! When a job has ended (W9), and when the supervisor stops by itself (W10). `plan/work.rs` lists the jobs that count.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Job, Level, Role};
use crate::report::words::few;
use crate::state::job::{Activity, Outcome, State, StopReason, Transition};
use crate::state::journal::{Detail, Origin};
use crate::supervisor::Core;

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
        let left = match self.served_without_work() {
            left if left.is_empty() => String::new(),
            left => format!(" (this does not keep the container running: {})", few(left)),
        };
        let why = self.nothing_to_do();
        self.log(Level::Info, None, fields, format_args!("{why}, shutting down{left}"));
        self.shut_down();
        true
    }

    /// Why the supervisor stops by itself.
    pub(crate) fn nothing_to_do(&self) -> &'static str {
        if self.plan().jobs.is_empty() { "there are no jobs" } else { "all jobs that do work have ended" }
    }

    /// Logs what keeps the supervisor running if no job does work.
    pub(crate) fn explain_why_it_runs(&mut self) {
        let jobs = &self.plan().jobs;
        if jobs.is_empty() || jobs.iter().any(Job::does_work) {
            return;
        }
        let name =
            |job: &Job| if job.role == Role::Telemetry { "telemetry".into() } else { job.name.clone() };
        let names = few(jobs.iter().map(name).collect());
        let message = format_args!("no job does work; this keeps the container running: {names}");
        self.log(Level::Info, None, Code::Startup, message);
    }

    /// The names of what was asked for and is no work: telemetry, jobs that wait for something that may never come, and
    /// watches. Hooks are left out, because the shutdown runs them.
    fn served_without_work(&self) -> Vec<String> {
        let plan = self.plan();
        let waits = |job: &JobIx| {
            let planned = self.planned(*job);
            planned.role == Role::User && !planned.is_stop_hook() && !self.job(*job).has_ended()
        };
        let telemetry = plan.telemetry.iter().map(|_| String::from("telemetry"));
        let jobs = self.all_jobs().filter(waits).map(|job| self.planned(job).name.clone());
        let watches = plan.watches.iter().filter(|watch| !watch.is_internal());
        telemetry.chain(jobs).chain(watches.map(|watch| format!("watch.{}", watch.name))).collect()
    }
}
