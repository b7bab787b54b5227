//! How long a shutdown takes at most, and which jobs take the time (S4, S15).
//!
//! The bound assumes that no process reacts to its stop signal, that no hook ends before its `timeout`, and that the
//! catalog does not answer. A process exits on SIGKILL: one that the kernel does not let exit is not counted.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::{Code, Source};
use crate::ids::JobIx;
use crate::plan::{Job, Plan, Role, Signal};
use crate::state::dependency_graph::DependencyGraph;

/// What follows the last exit: the log, the catalog, connections (S4).
const EXIT: Duration = Duration::from_secs(1);

/// Jobs that wait for each other in a longer chain count with the whole budget.
const MAX_DEPTH: usize = 64;

/// How long a shutdown takes at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestStop {
    /// From the stop signal of the supervisor to its exit.
    pub time: Duration,
    /// The jobs that stop one after the other in that case, in their order.
    pub steps: Vec<StopStep>,
}

/// One job of a shutdown. The times count from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopStep {
    /// The job.
    pub job: JobIx,
    /// True if it runs because of the shutdown: a stop hook.
    pub is_hook: bool,
    /// When it gets its stop signal; when a hook starts.
    pub from: Duration,
    /// When it has ended: by SIGKILL, or because a hook has reached its timeout.
    pub to: Duration,
}

/// How long the longest chain of hooks of a plan takes.
#[must_use]
pub fn longest_hooks(plan: &Plan) -> Duration {
    hook_time(plan, &DependencyGraph::new(plan))
}

/// How long the longest chain of hooks takes that run one after the other in a shutdown.
pub(crate) fn hook_time(plan: &Plan, graph: &DependencyGraph) -> Duration {
    let all: Duration = plan.jobs.iter().filter_map(Job::hook_time).sum();
    if all.is_zero() {
        return all;
    }
    let mut search = Search::new(plan, graph, [all; 2], Counted::Hooks);
    (0..plan.jobs.len()).map(|job| search.end(JobIx::at(job))).max().unwrap_or_default()
}

/// How long a shutdown of this plan takes at most.
#[must_use]
pub fn longest_stop(plan: &Plan) -> LongestStop {
    let graph = DependencyGraph::new(plan);
    let deadlines = plan.shutdown_timeouts(hook_time(plan, &graph));
    let mut search = Search::new(plan, &graph, deadlines, Counted::All);
    let jobs = (0..plan.jobs.len()).map(JobIx::at);
    let last = jobs.map(|job| (search.end(job), job)).max_by_key(|(end, _)| *end);
    let mut steps = Vec::new();
    let mut next = last.map(|(_, job)| job);
    while let Some(job) = next {
        let Some(Found::Ended(step, before, _)) = search.found.get(job.index()).copied() else { break };
        if step.to > step.from {
            steps.push(step);
        }
        next = before.filter(|_| steps.len() < MAX_DEPTH);
    }
    steps.reverse();
    LongestStop { time: last.map(|(end, _)| end).unwrap_or_default() + EXIT, steps }
}

/// The computed stop step of a job, with the job that it has waited for.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    /// It is being computed: a job that needs it now waits for itself.
    Open,
    /// Its run. A hook may still wait for hooks of its own.
    Run(StopStep, Option<JobIx>),
    /// Its run, while that wait is being computed.
    Closing(StopStep),
    /// Its run, and when it has ended.
    Ended(StopStep, Option<JobIx>, Duration),
}

/// What takes time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    All,
    Hooks,
}

struct Search<'a> {
    plan: &'a Plan,
    graph: &'a DependencyGraph,
    signal_by: Duration,
    kill_by: Duration,
    counted: Counted,
    found: Vec<Found>,
    depth: usize,
}

impl<'a> Search<'a> {
    fn new(plan: &'a Plan, graph: &'a DependencyGraph, deadlines: [Duration; 2], counted: Counted) -> Self {
        let [signal_by, kill_by] = deadlines;
        let found = vec![Found::Nothing; plan.jobs.len()];
        Self { plan, graph, signal_by, kill_by, counted, found, depth: 0 }
    }

    /// When a job has ended: after its run, and for a hook after its own hooks.
    fn end(&mut self, job: JobIx) -> Duration {
        if let Some(Found::Ended(.., end)) = self.found.get(job.index()) {
            return *end;
        }
        self.run(job);
        let Some(Found::Run(step, before)) = self.found.get(job.index()).copied() else {
            return self.signal_by;
        };
        self.set(job, Found::Closing(step));
        let mut end = step.to;
        if step.is_hook {
            let hooks: Vec<JobIx> = self.graph.hooks(job).filter(|hook| *hook != job).collect();
            let ends = hooks.into_iter().map(|hook| self.end(hook)).max().unwrap_or_default();
            let limit = self.plan.jobs.get(job.index()).and_then(|job| job.stop.hook_timeout);
            let ends = limit.map_or(ends, |limit| ends.min(step.to + limit));
            end = end.max(ends).min(self.kill_by.max(end));
        }
        self.set(job, Found::Ended(step, before, end));
        end
    }

    /// The time at which the run of a job ends.
    fn run(&mut self, job: JobIx) -> Duration {
        match self.found.get(job.index()) {
            Some(Found::Run(step, _) | Found::Closing(step) | Found::Ended(step, ..)) => return step.to,
            Some(Found::Nothing) if self.depth < MAX_DEPTH => {}
            _ => return self.signal_by,
        }
        self.set(job, Found::Open);
        self.depth += 1;
        let (step, before) = if self.is_hook(job) { self.hook(job) } else { self.process(job) };
        self.depth -= 1;
        self.set(job, Found::Run(step, before));
        step.to
    }

    fn set(&mut self, job: JobIx, found: Found) {
        if let Some(place) = self.found.get_mut(job.index()) {
            *place = found;
        }
    }

    fn is_hook(&self, job: JobIx) -> bool {
        self.plan.jobs.get(job.index()).is_some_and(Job::is_stop_hook)
    }

    /// S3, S15: a hook starts at its event, and is killed at its timeout.
    fn hook(&mut self, job: JobIx) -> (StopStep, Option<JobIx>) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return (self.none(job), None) };
        let (mut from, mut before) = (Duration::ZERO, None);
        for (nth, event) in planned.when.patterns().iter().enumerate() {
            let sources = self.graph.jobs_of_pattern(job, nth).to_vec();
            match event.code {
                Code::Stopping => {
                    for source in sources {
                        later(&mut from, &mut before, self.stopping(source));
                    }
                }
                Code::Stopped => {
                    for source in sources {
                        later(&mut from, &mut before, (self.end(source), Some(source)));
                    }
                }
                _ if event.source == Source::Global => {}
                // It may come at any time before the shutdown. Then the job is no hook.
                _ => {}
            }
        }
        let from = from.min(self.kill_by);
        let to = from.saturating_add(planned.hook_time().unwrap_or_default()).min(self.kill_by);
        (StopStep { job, is_hook: true, from, to }, before)
    }

    /// S2: a job waits for others, for its hooks, for the catalog and its drain; then it gets its stop signal, and then
    /// SIGKILL.
    fn process(&mut self, job: JobIx) -> (StopStep, Option<JobIx>) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return (self.none(job), None) };
        let (begin, first) = self.stopping(job);
        let (mut hooks, mut before) = (begin, first);
        let own: Vec<JobIx> = self.graph.hooks(job).filter(|hook| *hook != job).collect();
        for hook in own {
            later(&mut hooks, &mut before, (self.end(hook), Some(hook)));
        }
        let ready = planned.stop.hook_timeout.map_or(hooks, |longest| hooks.min(begin + longest));
        if planned.exec.program().is_none() || self.counted == Counted::Hooks {
            let at = ready.min(self.signal_by);
            return (StopStep { job, is_hook: false, from: at, to: at }, before);
        }
        let deregister = planned.service.as_ref().map_or(Duration::ZERO, |_| self.plan.deregister_timeout());
        let drain = planned.stop.drain.longest(self.plan.stop_timeout);
        let from = (ready + deregister + drain).min(self.signal_by);
        let kill = match planned.stop.signal {
            Signal::KILL => Duration::ZERO,
            _ => planned.stop.kill_timeout(self.plan.stop_timeout),
        };
        let to = (from + kill).min(self.kill_by);
        (StopStep { job, is_hook: false, from, to }, before)
    }

    /// When a job sends `stopping`, and the job that it has waited for until then (C6, S10).
    fn stopping(&mut self, job: JobIx) -> (Duration, Option<JobIx>) {
        if self.is_hook(job) {
            return (self.run(job), Some(job));
        }
        let is_coprocess = |job: &Job| job.role == Role::Coprocess;
        let jobs = self.plan.jobs.iter().enumerate();
        let others = jobs.filter(|(_, other)| !is_coprocess(other)).map(|(nth, _)| JobIx::at(nth));
        let waits_for: Vec<JobIx> = match self.plan.jobs.get(job.index()) {
            Some(planned) if is_coprocess(planned) => others.collect(),
            _ => self.graph.stops_before(job).to_vec(),
        };
        let (mut time, mut before) = (Duration::ZERO, None);
        for other in waits_for {
            later(&mut time, &mut before, (self.end(other), Some(other)));
        }
        (time, before)
    }

    fn none(&self, job: JobIx) -> StopStep {
        StopStep { job, is_hook: false, from: Duration::ZERO, to: Duration::ZERO }
    }
}

fn later(time: &mut Duration, before: &mut Option<JobIx>, (other, job): (Duration, Option<JobIx>)) {
    if other > *time {
        (*time, *before) = (other, job);
    }
}
