//! The core: one queue of events, one way in, one way out.
//!
//! What happens in a step and in which order is in `turn.rs`, how events find those who wait for them in `dispatch.rs`,
//! and who waits for whom in `graph.rs`.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::effect::{Effect, Entry, Wanted};
use crate::event::Code;
use crate::ids::{CheckIx, CheckRun, EventId, JobIx, RunId};
use crate::input::Input;
use crate::plan::{Job, Level, Plan, Role, Signal};
use crate::rules::environment::JobVariables;
use crate::rules::reload::Pending;
use crate::rules::watch::WatchState;
use crate::state::dependency_graph::{DependencyGraph, Key};
use crate::state::job::{JobState, State};
use crate::state::journal::{Event, Journal, Origin};
use crate::state::timers::{TimerId, TimerKind, Timers};
use crate::time::Time;
use alloc::collections::BTreeMap;

/// One request to stop may come as two signals: `timeout` signals its child and then its whole process group, and so do
/// terminals and scripts that kill a group and a process of it. A person who means it a second time takes longer.
const ONE_REQUEST: Duration = Duration::from_millis(100);

/// How far the supervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not ready yet: `startup` has not been sent.
    Beginning,
    /// The ordinary course.
    Running,
    /// Everything is being stopped.
    Stopping,
    /// Everything was killed.
    Killing,
    /// It has left.
    Left,
}

/// The core of a supervisor: a plan, and what has become of it.
#[derive(Debug)]
pub struct Core {
    pub(crate) plan: Arc<Plan>,
    pub(crate) now: Time,
    pub(crate) phase: Phase,
    pub(crate) maintenance: bool,
    pub(crate) jobs: Vec<JobState>,
    /// What every process is told of all jobs (P7).
    pub(crate) variables: Arc<JobVariables>,
    pub(crate) watches: Vec<WatchState>,
    pub(crate) timers: Timers,
    pub(crate) stop_time: Option<TimerId>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) runs: BTreeMap<RunId, JobIx>,
    /// The runs that are over and have left something of their process group behind (P4).
    pub(crate) orphaned_groups: BTreeMap<RunId, TimerId>,
    /// How many processes the kernel has ended for want of memory that no end of a run has been put down to. Nothing as
    /// long as nobody counts.
    pub(crate) out_of_memory: Option<u64>,
    pub(crate) check_runs: BTreeMap<CheckRun, (JobIx, CheckIx)>,
    /// The code to leave with, where a job has said so.
    pub(crate) exit_code: Option<u8>,
    /// The code of the first job that ended in failure for good (S5).
    pub(crate) first_failure: Option<u8>,
    /// The same of those that only react to an end, a signal or maintenance: it counts where all work went well.
    pub(crate) first_hook_failure: Option<u8>,
    /// The signal that asked for the shutdown, and when (S1).
    pub(crate) asked: Option<(Signal, Time)>,
    /// What came before the startup, and counts after it (E7).
    pub(crate) early: VecDeque<Input>,
    pub(crate) journal: Journal,
    /// How many events there were of each kind; no more kinds than there are sources.
    pub(crate) counts: BTreeMap<(Origin, Code), u64>,
    pub(crate) queue: VecDeque<Event>,
    /// The event that is being handled, which causes whatever follows.
    pub(crate) handling: Option<EventId>,
    pub(crate) graph: DependencyGraph,
    /// Whether somebody may have come to wait in vain since that was last looked at (W10).
    pub(crate) reachability_dirty: bool,
    /// The jobs that begin a new life when the queue is empty, and how many have.
    pub(crate) pending_restarts: VecDeque<JobIx>,
    pub(crate) generations: u64,
    /// The jobs to look at again when the queue is empty.
    pub(crate) recheck: Vec<JobIx>,
    /// How many jobs hold the supervisor open (W10), and how many are not complete.
    pub(crate) holding: usize,
    pub(crate) incomplete: usize,
    pub(crate) next_run: u64,
    pub(crate) next_check: u64,
    /// The number of the last event.
    pub(crate) next_event: u64,
    /// The reload that is under way.
    pub(crate) pending: Option<Pending>,
    /// Who alone sees the next `startup` (R3).
    pub(crate) audience: Option<Vec<JobIx>>,
    /// The names of sources that are no more, of which the journal still speaks.
    pub(crate) former: Vec<String>,
}

impl Core {
    /// A supervisor that has not begun.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let graph = DependencyGraph::new(&plan);
        Self {
            now: Time::ZERO,
            phase: Phase::Beginning,
            maintenance: false,
            jobs: plan.jobs.iter().map(JobState::new).collect(),
            variables: Arc::new(JobVariables::new(&plan.jobs)),
            watches: plan.watches.iter().map(|_| WatchState::default()).collect(),
            timers: Timers::default(),
            stop_time: None,
            effects: Vec::new(),
            runs: BTreeMap::new(),
            orphaned_groups: BTreeMap::new(),
            out_of_memory: None,
            check_runs: BTreeMap::new(),
            exit_code: None,
            first_failure: None,
            first_hook_failure: None,
            asked: None,
            early: VecDeque::new(),
            journal: Journal::default(),
            counts: BTreeMap::new(),
            queue: VecDeque::new(),
            handling: None,
            reachability_dirty: true,
            pending_restarts: VecDeque::new(),
            generations: 0,
            recheck: Vec::new(),
            holding: graph.holders.iter().filter(|holds| **holds).count(),
            graph,
            incomplete: plan.jobs.len(),
            next_run: 0,
            next_check: 0,
            next_event: 0,
            pending: None,
            audience: None,
            former: Vec::new(),
            plan: Arc::new(plan),
        }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan, for whoever wants to keep it.
    #[must_use]
    pub fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// How far the supervisor is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The record of what happened.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Lets the record go farther back than it usually does, for whoever reads it after every step and must not miss
    /// anything of a step in which much happens.
    pub fn remember(&mut self, events: usize) {
        self.journal.keep(events);
    }

    /// How many deadlines are ahead.
    #[must_use]
    pub fn deadlines(&self) -> usize {
        self.timers.len()
    }

    /// When the core must be called again even if nothing happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.phase == Phase::Left { None } else { self.timers.next() }
    }

    /// E4: `startup`, once.
    #[inline(never)]
    pub(crate) fn ready(&mut self) {
        if self.phase != Phase::Beginning {
            return;
        }
        self.phase = Phase::Running;
        for job in self.all_jobs() {
            self.set_give_up(job);
            self.enqueue_recheck(job);
        }
        self.send(Origin::Global, Code::Startup, None);
        if self.maintenance {
            self.send(Origin::Global, Code::EnterMaintenance, None);
        }
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.plan.pass_signals {
            return self.pass_on(signal);
        }
        match signal.0 {
            10 if self.plan.toggle_maintenance => {
                self.set_maintenance(!self.maintenance);
            }
            1 | 12 if self.phase == Phase::Running => {
                self.send(Origin::Signal(signal.0), Code::Signal, None);
            }
            2 | 15 => match self.phase {
                Phase::Beginning | Phase::Running => {
                    // Nothing is put together: somebody waits for what comes next.
                    match signal.0 {
                        2 => self.log(Level::Info, None, format_args!("SIGINT: everything is stopped")),
                        _ => self.log(Level::Info, None, format_args!("SIGTERM: everything is stopped")),
                    }
                    self.exit_code = Some(0);
                    self.asked = Some((signal, self.now));
                    self.shut_down();
                }
                Phase::Stopping => self.asked_again(signal),
                Phase::Killing | Phase::Left => {}
            },
            _ => {}
        }
    }

    /// S1: the second request cuts the wait short. What is the first one, because the supervisor was stopping by
    /// itself, or the same one twice, is not the second.
    fn asked_again(&mut self, signal: Signal) {
        match self.asked {
            None => {
                self.log(Level::Info, None, format_args!("everything is being stopped already"));
                self.asked = Some((signal, self.now));
            }
            Some((first, at)) if first == signal && self.now.since(at) < ONE_REQUEST => {
                self.log(Level::Debug, None, format_args!("the signal came twice at once, and counts once"));
            }
            Some(_) => self.kill_everything("it was asked a second time"),
        }
    }

    /// A job is looked at again, when the queue is empty.
    pub(crate) fn enqueue_recheck(&mut self, job: JobIx) {
        self.recheck.push(job);
    }

    /// Whoever waits for a job is looked at again.
    pub(crate) fn enqueue_dependents(&mut self, job: JobIx) {
        self.recheck.extend_from_slice(self.graph.dependents(job));
        self.look_at_hooked(job);
    }

    /// A job may be a hook that others wait for (S2); they are looked at again.
    fn look_at_hooked(&mut self, job: JobIx) {
        let patterns = self.planned(job).when.patterns().iter().map(|event| event.code);
        let sources = patterns.zip(self.graph.keys(job)).map(|(code, key)| match key {
            Key::Name(id) if code == Code::Stopping => self.graph.jobs_named(*id),
            _ => &[],
        });
        let waiting: Vec<JobIx> = sources.flatten().copied().collect();
        self.recheck.extend(waiting);
    }

    /// A job has become complete.
    pub(crate) fn count_complete(&mut self, job: JobIx) {
        self.incomplete = self.incomplete.saturating_sub(1);
        // Whoever has stopped it by hand may want to start it again, and must find somebody to ask.
        if self.graph.holds_open(job) && !self.job(job).comes_again() {
            self.holding = self.holding.saturating_sub(1);
        }
    }

    /// W5: from now on it has its time to be started.
    pub(crate) fn set_give_up(&mut self, job: JobIx) {
        if let Some(timeout) = self.planned(job).when.timeout {
            let timer = self.timers.set(self.now + timeout, TimerKind::GiveUp(job));
            self.job_mut(job).give_up = Some(timer);
        }
    }

    /// Leaves.
    #[inline(never)]
    pub(crate) fn leave(&mut self) {
        self.kill_all_orphans();
        let code = self.exit_code.or(self.first_failure).or(self.first_hook_failure).unwrap_or(0);
        self.phase = Phase::Left;
        self.effects.push(Effect::Exit { code });
    }

    /// The definition of a job. A `JobIx` is only ever made from the plan's own list.
    pub(crate) fn planned(&self, job: JobIx) -> &Job {
        &self.plan.jobs[job.index()]
    }

    /// The state of a job; see [`Core::planned`].
    pub(crate) fn job(&self, job: JobIx) -> &JobState {
        &self.jobs[job.index()]
    }

    /// The state of a job; see [`Core::planned`].
    pub(crate) fn job_mut(&mut self, job: JobIx) -> &mut JobState {
        &mut self.jobs[job.index()]
    }

    pub(crate) fn all_jobs(&self) -> impl Iterator<Item = JobIx> + use<> {
        (0..self.plan.jobs.len()).map(JobIx::at)
    }

    pub(crate) fn new_run(&mut self, job: JobIx) -> RunId {
        self.next_run += 1;
        let run = RunId(self.next_run);
        self.runs.insert(run, job);
        run
    }

    pub(crate) fn new_check_run(&mut self, job: JobIx, check: CheckIx) -> CheckRun {
        self.next_check += 1;
        let run = CheckRun(self.next_check);
        self.check_runs.insert(run, (job, check));
        run
    }

    /// Changes what a job is doing; what the table does not know is a defect, and is said.
    pub(crate) fn change(&mut self, job: JobIx, state: State, aim: crate::state::job::Aim) {
        if state == State::Waiting {
            // A hook has done its work.
            self.look_at_hooked(job);
        }
        self.reachability_dirty |=
            matches!(state, State::Waiting | State::Complete) || aim != self.job(job).aim();
        if !self.job_mut(job).transition(state, aim) {
            let from = (self.job(job).state(), self.job(job).aim());
            let to = (state, aim);
            self.log(
                Level::Error,
                Some(job),
                format_args!("defect: a job cannot go from {from:?} to {to:?}; please report it"),
            );
        }
    }

    /// Tells the catalog what is wanted of a job's service, if that is something else than before.
    pub(crate) fn advertise(&mut self, job: JobIx, wanted: Wanted) {
        let wanted = if self.maintenance { Wanted::Absent } else { wanted };
        if self.planned(job).service.is_some() && self.job(job).wanted != wanted {
            self.job_mut(job).wanted = wanted;
            self.effects.push(Effect::Advertise { job, wanted });
        }
    }

    /// Logs something. It is put into words only if somebody reads them.
    pub(crate) fn log(&mut self, level: Level, job: Option<JobIx>, message: fmt::Arguments<'_>) {
        // A sensor runs every few seconds, and nobody wants to read that it has.
        let is_sensor = |job| matches!(self.planned(job).role, Role::Sensor(_));
        let level = if level == Level::Info && job.is_some_and(is_sensor) { Level::Debug } else { level };
        self.log_entry(level, job, message, false);
    }

    /// The same, with the last lines of the job's output if that explains it (L6).
    pub(crate) fn log_entry(
        &mut self,
        level: Level,
        job: Option<JobIx>,
        message: fmt::Arguments<'_>,
        with_output: bool,
    ) {
        if level >= self.plan.logging.level {
            let message = alloc::fmt::format(message);
            self.effects.push(Effect::Log(Entry { level, job, message, with_output }));
        }
    }

    /// The name of an event's source, as a configuration writes it.
    #[must_use]
    pub fn origin_name(&self, origin: Origin) -> String {
        match origin {
            Origin::Global => "global".into(),
            Origin::Job(job) => self.planned(job).name.clone(),
            Origin::Watch(watch) => {
                let name = self.plan.watches.get(watch.index()).map_or("", |watch| &watch.name);
                format!("watch.{name}")
            }
            Origin::Signal(1) => "SIGHUP".into(),
            Origin::Signal(12) => "SIGUSR2".into(),
            Origin::Signal(number) => format!("signal {number}"),
            Origin::Former(place) => self.former.get(place as usize).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Catalog, Control, Format, Logging, Output};

    fn empty() -> Plan {
        Plan {
            jobs: Vec::new(),
            watches: Vec::new(),
            catalog: Catalog::Embedded,
            control: Control { socket: String::new(), required: false, mode: 0o600, group: None },
            logging: Logging { level: Level::Info, format: Format::Default, output: Output::Stdout },
            telemetry: None,
            stop_timeout: Duration::ZERO,
            pass_signals: false,
            toggle_maintenance: false,
        }
    }

    #[test]
    fn p1_what_was_decided_before_a_fault_comes_with_the_next_step() {
        let mut core = Core::new(empty());
        core.effects.push(Effect::Exit { code: 7 });
        let mut effects = Vec::new();
        core.step(Time::ZERO, Input::Tick, &mut effects);
        assert_eq!(effects, [Effect::Exit { code: 7 }]);
    }
}
