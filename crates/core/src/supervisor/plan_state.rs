//! Everything whose indices belong to one plan. A reload replaces it as a whole.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::files::Files;
use crate::health::Health;
use crate::ids::{CheckIx, CheckRunId, FileIx, JobIx, RunId, WatchIx};
use crate::locks::Locks;
use crate::plan::Plan;
use crate::plan::diff::Moves;
use crate::state::dependency_graph::DependencyGraph;
use crate::state::job::JobState;
use crate::variables::JobVariables;
use crate::watches::Watches;
use crate::{SortedMap, inserted};

/// The watches, files and locks of a plan. Each has a state of its own; [`crate::context`] is its interface to the
/// rest of the core.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Parts {
    pub(crate) watches: Watches,
    pub(crate) files: Files,
    pub(crate) locks: Locks,
}

impl Parts {
    fn new(plan: &Plan) -> Self {
        Self { watches: Watches::new(plan), files: Files::new(plan), locks: Locks::new(plan) }
    }

    /// A reload has replaced the plan. Returns the files that are new or changed.
    pub(crate) fn continue_from(
        &mut self,
        old: Self,
        moves: &Moves,
        context: &mut Context<'_>,
    ) -> BTreeSet<FileIx> {
        self.watches.continue_from(old.watches, moves);
        self.locks.continue_from(old.locks, moves);
        self.files.continue_from(old.files, moves, context)
    }
}

/// A plan and the state of everything in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub(crate) struct PlanState {
    pub(crate) plan: Arc<Plan>,
    #[serde(skip)]
    pub(crate) graph: Arc<DependencyGraph>,
    pub(crate) jobs: Vec<JobState>,
    pub(crate) parts: Parts,
    pub(crate) health: Health,
    /// The variables that all processes have in common (P7).
    #[serde(skip)]
    pub(crate) variables: Arc<JobVariables>,
    pub(crate) runs: SortedMap<RunId, JobIx>,
    pub(crate) check_runs: SortedMap<CheckRunId, (JobIx, CheckIx)>,
    /// Jobs to check again when the event queue is empty, in the order of the configuration (W18): a requirement may
    /// hold now or have become impossible, or their hooks may be done.
    pub(crate) recheck: BTreeSet<JobIx>,
    /// Complete jobs that start a new generation when the event queue is empty.
    pub(crate) start_again: VecDeque<JobIx>,
    /// Jobs that have become unhealthy and are restarted for it (H8), before the next event is dispatched.
    pub(crate) unhealthy: VecDeque<JobIx>,
    /// Jobs whose action is performed before the next event is dispatched (W19).
    pub(crate) actions: VecDeque<JobIx>,
    /// The jobs that wait for their trigger and do not stop. Only these can be unreachable (W10): with this list, the
    /// exit of a job costs the same however many others there are (P14).
    pub(crate) waiting: BTreeSet<JobIx>,
    /// True if a job may have become unreachable since reachability was last computed (W10).
    pub(crate) reachability_dirty: bool,
    /// True while a deadlock that was logged lasts.
    pub(crate) deadlock_reported: bool,
    /// The number of jobs that keep the supervisor running (W10).
    pub(crate) holding_open: usize,
    /// The number of jobs that are not part of the container's own work.
    pub(crate) secondary: usize,
    /// The number of jobs that are not complete.
    pub(crate) incomplete: usize,
    /// The only jobs that see the next `startup`, after a reload (R3).
    pub(crate) startup_only_for: Option<Vec<JobIx>>,
}

impl PlanState {
    pub(crate) fn new(plan: Plan) -> Self {
        let graph = Arc::new(DependencyGraph::new(&plan));
        let mut new = Self {
            jobs: plan.jobs.iter().map(JobState::new).collect(),
            parts: Parts::new(&plan),
            health: Health::new(&plan),
            variables: Arc::new(JobVariables::new(&plan)),
            runs: SortedMap::new(),
            check_runs: SortedMap::new(),
            recheck: BTreeSet::new(),
            start_again: VecDeque::new(),
            unhealthy: VecDeque::new(),
            actions: VecDeque::new(),
            waiting: BTreeSet::new(),
            reachability_dirty: true,
            deadlock_reported: false,
            holding_open: 0,
            incomplete: 0,
            secondary: plan.jobs.iter().filter(|job| job.role.is_secondary()).count(),
            startup_only_for: None,
            plan: Arc::new(plan),
            graph,
        };
        new.count_jobs();
        new
    }

    /// Records whether a job waits, after a change of its state.
    pub(crate) fn note_waiting(&mut self, job: JobIx) {
        if self.jobs.get(job.index()).is_some_and(JobState::waits) {
            self.waiting.insert(job);
        } else {
            self.waiting.remove(&job);
        }
    }

    /// Counts the jobs that wait, those that are not complete, and those that keep the supervisor running.
    fn count_jobs(&mut self) {
        let open = |(index, job): &(usize, &JobState)| {
            self.graph.holds_open(JobIx::at(*index)) && (!job.has_ended() || job.may_start_again())
        };
        let waiting = self.jobs.iter().enumerate().filter(|(_, job)| job.waits());
        self.waiting = inserted(waiting.map(|(index, _)| JobIx::at(index)));
        self.holding_open = self.jobs.iter().enumerate().filter(open).count();
        self.incomplete = self.jobs.iter().filter(|job| !job.has_ended()).count();
    }

    /// Takes runs and variables from the state of the previous plan, after its jobs have been moved.
    pub(crate) fn continue_from(&mut self, old: &Self, moves: &Moves) {
        let runs = old.runs.iter();
        self.runs = inserted(runs.filter_map(|(run, job)| Some((*run, moves.job(*job)?))));
        let checks = old.check_runs.iter();
        self.check_runs =
            inserted(checks.filter_map(|(run, (job, check))| Some((*run, (moves.job(*job)?, *check)))));
        let variables = Arc::make_mut(&mut self.variables);
        variables.continue_from(&old.variables);
        for (index, job) in self.jobs.iter().enumerate() {
            variables.set_pid(JobIx::at(index), job.pid());
        }
        self.jobs.iter_mut().for_each(JobState::forget_queued_variables);
        let Parts { watches, locks, .. } = &self.parts;
        for watch in (0..self.plan.watches.len()).map(WatchIx::at) {
            variables.set_watch(watch, watches.variable(watch));
        }
        for lock in locks.all() {
            variables.set_lock(lock, locks.fencing(lock));
        }
        self.count_jobs();
    }
}
