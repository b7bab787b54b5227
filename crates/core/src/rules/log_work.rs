//! What the log says about work: why the supervisor keeps running, and what does not keep it running (W10).
//! `plan/work.rs` decides which jobs do work.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::few;
use crate::plan::{Job, Level, Role};
use crate::supervisor::Core;

impl Core {
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
    pub(crate) fn served_without_work(&self) -> Vec<String> {
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
