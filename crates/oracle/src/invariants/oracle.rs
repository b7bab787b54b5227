//! The state of the oracle: what it has observed of a core so far.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::request::RequestId;
use containerpilot_core::state::journal::Event;
use containerpilot_core::state::longest_stop::longest_hooks;
use containerpilot_core::{JobStatus, Phase, Time};

use super::answers::Answers;
use super::model::{JobModel, Seen};
use super::reloading::Reloading;
use crate::scenario::{CLOCK, Scenario, Version};

/// A rule that was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// How it was broken.
    pub what: String,
    /// When.
    pub at: Time,
}

/// What a check has found.
pub(super) type Check = Result<(), Violation>;

/// What an action must do in a part of a step.
#[derive(Clone, Debug)]
pub(super) enum Acted {
    /// The run is sent the signal.
    Signalled(RunId, Signal),
    /// The job starts, or will when it has stopped.
    Started(usize),
    /// The job stops.
    Stopped(usize),
    /// A reload is requested.
    Reloaded,
    /// The supervisor shuts down.
    ShutDown,
}

/// Checks every step of a core.
#[derive(Clone, Debug)]
pub struct Oracle<'a> {
    pub(super) versions: &'a [Version],
    /// The version in force.
    pub(super) version: usize,
    pub(super) plan: &'a Plan,
    /// How long the hooks of each version take at most (S15).
    pub(super) hook_times: Arc<[Duration]>,
    /// True if the core is called exactly at its deadlines.
    pub(super) exact: bool,
    pub(super) now: Time,
    /// The last reading of the system clock.
    pub(super) clock: (Time, Duration),
    /// The state before the step (`phase_before`, `before`), and before the current part of it (`phase`, `previous`).
    pub(super) phase_before: Phase,
    pub(super) before: Vec<JobStatus>,
    pub(super) phase: Phase,
    pub(super) previous: Vec<JobStatus>,
    pub(super) spare: Vec<JobStatus>,
    pub(super) maintenance_before: bool,
    /// How many effects of this step were seen already.
    pub(super) effects_seen: usize,
    /// The events of this step that were seen already.
    pub(super) events: Vec<Event>,
    /// The jobs that waited for requirements before this step and were started in it, in order.
    pub(super) released: Vec<usize>,
    pub(super) jobs: Vec<JobModel>,
    pub(super) seen: Vec<Seen>,
    /// How many new generations of jobs there were.
    pub(super) generations: u64,
    /// The same before the current part of the step.
    pub(super) generations_before: u64,
    pub(super) last_event: u64,
    pub(super) startup: Option<Time>,
    pub(super) shutdown: Option<(Time, u64)>,
    pub(super) expected_code: Option<u8>,
    pub(super) first_failure: Option<u8>,
    pub(super) first_hook_failure: Option<u8>,
    /// True if a job that does work was ever started.
    pub(super) has_worked: bool,
    /// The first signal that requested a shutdown.
    pub(super) stop_signal: Option<(Signal, Time)>,
    /// The signals that request a shutdown at the start of the step (S8).
    pub(super) stop_on: Vec<Signal>,
    /// When the time for hooks was over (S4).
    pub(super) terminating: Option<Time>,
    pub(super) killing: Option<Time>,
    pub(super) maintenance: bool,
    /// When maintenance mode last paused periodic jobs (C8).
    pub(super) paused_at: Option<Time>,
    pub(super) watches: Vec<Answers>,
    /// When what remains of each run must be killed.
    pub(super) orphans: BTreeMap<RunId, Time>,
    /// The requests without an answer.
    pub(super) open_requests: Vec<RequestId>,
    /// The last run that had not executed its program when its time was over. It is given up with that.
    pub(super) start_pending: Option<RunId>,
    /// The jobs that were started by hand before the startup.
    pub(super) early_starts: Vec<usize>,
    /// The rolling restarts without an answer, and their jobs (W20).
    pub(super) rolling: Vec<(RequestId, Vec<JobIx>)>,
    pub(super) reloading: Reloading,
    /// How many actions were performed.
    pub(super) performed: u64,
    /// What actions must do in this part of the step (W19).
    pub(super) acted: Vec<Acted>,
    /// The variables that actions have set (W19).
    pub(super) variables: BTreeMap<String, Option<String>>,
}

impl<'a> Oracle<'a> {
    /// An oracle for a scenario that has not started.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let plan = &scenario.versions[0].plan;
        Self {
            versions: &scenario.versions,
            version: 0,
            plan,
            hook_times: scenario.versions.iter().map(|version| longest_hooks(&version.plan)).collect(),
            exact: !scenario.late,
            now: Time::ZERO,
            clock: (Time::ZERO, CLOCK),
            phase_before: Phase::Starting,
            before: Vec::new(),
            phase: Phase::Starting,
            previous: Vec::new(),
            spare: Vec::new(),
            maintenance_before: false,
            effects_seen: 0,
            events: Vec::new(),
            released: Vec::new(),
            jobs: plan.jobs.iter().map(JobModel::new).collect(),
            seen: Vec::new(),
            generations: 0,
            generations_before: 0,
            last_event: 0,
            startup: None,
            shutdown: None,
            expected_code: None,
            first_failure: None,
            first_hook_failure: None,
            has_worked: false,
            stop_signal: None,
            stop_on: Vec::new(),
            terminating: None,
            killing: None,
            maintenance: false,
            paused_at: None,
            watches: vec![Answers::default(); plan.watches.len()],
            orphans: BTreeMap::new(),
            open_requests: Vec::new(),
            start_pending: None,
            early_starts: Vec::new(),
            rolling: Vec::new(),
            reloading: Reloading::default(),
            performed: 0,
            acted: Vec::new(),
            variables: BTreeMap::new(),
        }
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.last_event
    }

    /// How many actions there were that start, stop or restart jobs, or change the supervisor (W19).
    #[must_use]
    pub fn performed(&self) -> u64 {
        self.performed
    }

    /// The version of the plan in force.
    #[must_use]
    pub fn version(&self) -> usize {
        self.version
    }

    /// From now on the core is called after its deadlines.
    pub fn allow_lateness(&mut self) {
        self.exact = false;
    }

    /// A violation at the current time.
    #[must_use]
    pub fn violation(&self, rule: &'static str, what: impl Into<String>) -> Violation {
        Violation { rule, what: what.into(), at: self.now }
    }

    pub(super) fn name(&self, job: usize) -> String {
        format!("job {job} ({})", self.plan.jobs[job].name)
    }

    pub(super) fn job_violation(&self, rule: &'static str, job: usize, what: &str) -> Check {
        Err(self.violation(rule, format!("{}: {what}", self.name(job))))
    }
}
