//! The health of jobs: when their checks run, what the results mean, and what follows from that (H1–H9, H12).
//!
//! Its inputs are the begin, the end and the results of checks ([`checks`]), the notices of the process that it is ready
//! or alive ([`watchdog`]), and timers. It decides whether the job is healthy. `rules/health.rs` decides what follows
//! for the service of the job and for other jobs.

pub(crate) mod checks;
pub(crate) mod state;
mod watchdog;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::SortedMap;
use crate::event::Code;
use crate::health::state::JobHealth;
use crate::ids::{CheckIx, CheckRunId, JobIx};
use crate::log_entry::Fields;
use crate::plan::{Check, Job, Level, Plan, Repeat};
use crate::state::dependency_graph::DependencyGraph;
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::Fingerprint;
use crate::state::journal::Origin;
use crate::state::last_ids::LastIds;
use crate::state::start_queue::StartQueue;
use crate::state::timers::{JobTimer, TimerId, TimerKind, Timers};
use crate::time::Time;

/// The health of all jobs of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Health {
    /// `None` for a job without checks.
    jobs: Vec<Option<JobHealth>>,
}

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

impl Health {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { jobs: plan.jobs.iter().map(|job| job.health.as_ref().map(JobHealth::new)).collect() }
    }

    /// What is known about a job; `None` if it has no checks.
    pub(crate) fn of(&self, job: JobIx) -> Option<&JobHealth> {
        self.jobs.get(job.index())?.as_ref()
    }

    pub(crate) fn of_mut(&mut self, job: JobIx) -> Option<&mut JobHealth> {
        self.jobs.get_mut(job.index())?.as_mut()
    }

    /// A reload continues a job: it is as healthy as it was.
    pub(crate) fn keep(&mut self, job: JobIx, old: &mut Self, from: JobIx) {
        core::mem::swap(&mut self.jobs[job.index()], &mut old.jobs[from.index()]);
    }

    /// A reload or a start creates the next generation of a job. `old` is that of the last one.
    pub(crate) fn begin_generation(&mut self, job: JobIx, planned: &Job, old: Option<JobHealth>) {
        let mut health = planned.health.as_ref().map(JobHealth::new);
        if let (Some(new), Some(old)) = (&mut health, old) {
            new.continue_from(old);
        }
        self.jobs[job.index()] = health;
    }

    pub(crate) fn take(&mut self, job: JobIx) -> Option<JobHealth> {
        self.jobs.get_mut(job.index())?.take()
    }

    /// R5: a reload has changed the checks of a job whose process continues. The job stays healthy, or unhealthy, until
    /// they say otherwise.
    pub(crate) fn replace_checks(&mut self, job: JobIx, planned: &Job) {
        let Some(planned) = &planned.health else { return };
        let mut health = JobHealth::new(planned);
        if let Some(old) = self.take(job) {
            (health.healthy, health.healthy_since) = (old.healthy, old.healthy_since);
            health.continue_from(old);
        }
        self.jobs[job.index()] = Some(health);
    }

    /// Hides the reasons of failed checks, for reports.
    pub(crate) fn redact(&mut self) {
        let checks = self.jobs.iter_mut().flatten().flat_map(|health| &mut health.checks);
        for last in checks.filter_map(|check| check.last.as_mut()) {
            last.result = last.result.as_ref().map_err(|_| String::new()).copied();
        }
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, plan: &Plan, print: &mut Fingerprint) {
        print.list(self.jobs.iter().zip(&plan.jobs), |print, (health, planned)| {
            print.option(health.as_ref(), |print, health| health.fingerprint(planned, print));
        });
    }
}

impl<'a> HealthContext<'a> {
    pub(crate) fn planned(&self) -> &'a Job {
        &self.plan.jobs[self.job.index()]
    }

    fn planned_check(&self, check: CheckIx) -> Option<&'a Check> {
        self.planned().health.as_ref()?.checks.get(check.index())
    }

    fn new_check_run(&mut self, check: CheckIx) -> CheckRunId {
        let run = self.ids.new_program();
        self.check_runs.insert(run, (self.job, check));
        run
    }

    fn set_timer(&mut self, at: Time, timer: JobTimer) -> TimerId {
        self.timers.set(at, TimerKind::Job(self.job, timer))
    }

    fn decide(&mut self, decision: HealthDecision) {
        self.decisions.push(decision);
    }

    fn log(&mut self, level: Level, fields: impl Into<Fields>, message: String) {
        self.decide(HealthDecision::Log(level, fields.into(), message));
    }

    fn send(&mut self, code: Code) {
        self.decide(HealthDecision::Send(code));
    }

    /// Returns true if a job runs at every event with this code of this job (E5).
    fn wants_repeats(&self, code: Code) -> bool {
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
    fn send_repeat(&mut self, code: Code) {
        if self.wants_repeats(code) {
            self.send(code);
        }
    }
}
