//! What the health of a job sees, and what it can decide.

use alloc::string::String;
use alloc::vec::Vec;

use crate::SortedMap;
use crate::event::Code;
use crate::ids::{CheckIx, CheckRunId, JobIx};
use crate::log_entry::Fields;
use crate::plan::{Check, Job, Level, Plan, Repeat};
use crate::state::dependency_graph::DependencyGraph;
use crate::state::journal::Origin;
use crate::state::last_ids::LastIds;
use crate::state::start_queue::StartQueue;
use crate::state::timers::{JobTimer, TimerId, TimerKind, Timers};
use crate::time::Time;

/// What the health of a job has to know about its process.
pub(crate) struct ProcessState {
    /// When the current or last run started.
    pub(crate) started_at: Time,
    /// True if it has reported that it is ready, and not that it stops (H11).
    pub(crate) is_ready: bool,
    /// Why the telemetry server does not listen, of its job (T1).
    pub(crate) telemetry_error: Option<String>,
}

/// What the health of one job may use beside its own state.
pub(crate) struct HealthContext<'a> {
    pub(crate) now: Time,
    pub(crate) job: JobIx,
    pub(crate) process: ProcessState,
    pub(crate) plan: &'a Plan,
    pub(crate) graph: &'a DependencyGraph,
    pub(crate) timers: &'a mut Timers,
    pub(crate) ids: &'a mut LastIds,
    /// The processes that wait for their turn (P14).
    pub(crate) starts: &'a mut StartQueue,
    /// The checks in progress.
    pub(crate) check_runs: &'a mut SortedMap<CheckRunId, (JobIx, CheckIx)>,
    pub(crate) decisions: Vec<HealthDecision>,
}

/// What the health of a job has decided.
pub(crate) enum HealthDecision {
    Log(Level, Fields, String),
    Send(Code),
    /// It is the turn of a check.
    RunCheck(CheckIx, CheckRunId),
    CancelCheck(CheckRunId),
    BecameHealthy,
    /// The job is healthy still, which is a heartbeat of its service (H6).
    Heartbeat,
    /// The job has become unhealthy, or its health is unknown and it was healthy.
    NoLongerHealthy,
    /// The service of the job is critical, if it is registered (H6).
    MarkCritical,
    /// The run of the job is replaced (H8).
    ReplaceRun,
}

impl<'a> HealthContext<'a> {
    pub(crate) fn planned(&self) -> &'a Job {
        &self.plan.jobs[self.job.index()]
    }

    pub(super) fn planned_check(&self, check: CheckIx) -> Option<&'a Check> {
        self.planned().health.as_ref()?.checks.get(check.index())
    }

    pub(super) fn new_check_run(&mut self, check: CheckIx) -> CheckRunId {
        let run = self.ids.new_program();
        self.check_runs.insert(run, (self.job, check));
        run
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: JobTimer) -> TimerId {
        self.timers.set(at, TimerKind::Job(self.job, timer))
    }

    pub(super) fn decide(&mut self, decision: HealthDecision) {
        self.decisions.push(decision);
    }

    pub(super) fn log(&mut self, level: Level, fields: impl Into<Fields>, message: String) {
        self.decide(HealthDecision::Log(level, fields.into(), message));
    }

    pub(super) fn send(&mut self, code: Code) {
        self.decide(HealthDecision::Send(code));
    }

    /// Returns true if a job runs at every event with this code of this job (E5).
    pub(super) fn wants_repeats(&self, code: Code) -> bool {
        let runs_each_time = |job: JobIx| {
            let when = &self.plan.jobs[job.index()].when;
            when.repeat() == Repeat::Each && !when.needs_all()
        };
        let (graph, origin) = (self.graph, Origin::Job(self.job));
        let mut subscribers =
            graph.subscribers(origin, code).iter().chain(graph.group_subscribers(origin, code));
        subscribers.any(|other| runs_each_time(other.job))
    }

    /// E5: repeats `healthy` or `unhealthy`, if a job runs each time. Otherwise the repeats would fill the journal.
    pub(super) fn send_repeat(&mut self, code: Code) {
        if self.wants_repeats(code) {
            self.send(code);
        }
    }
}
