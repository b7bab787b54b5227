//! The virtual world around a core: it carries out effects as a [`Script`] decides, and returns the inputs that follow.
//!
//! Time is virtual. A caller reads the time of the next item, takes the item, steps the core with the input and
//! has the world carry out the effects. Agents of the catalog have queues of their own; a caller steps the agents that are
//! due before it takes the next item.

pub mod agent;
mod catalog;
mod files;
mod programs;
pub mod queue;
pub mod script;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{CheckRunId, JobIx, RenderId, RunId};
use containerpilot_core::input::Input;
use containerpilot_core::plan::Plan;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::{Notice, Request, RequestId, Time};

use self::agent::earliest;
pub use self::catalog::CatalogChange;
use self::catalog::CatalogSlot;
pub use self::files::RenderedContent;
use self::files::Rendering;
pub(crate) use self::programs::HARMLESS;
pub use self::programs::pid_of;
use self::programs::{Program, RestOfRun, RunningCheck};
use self::queue::{Queue, Slot};
use self::script::Script;

/// The request of a reload by an action (W19).
const RELOAD: RequestId = RequestId(u64::MAX);

enum Scheduled<E> {
    Input(Input),
    Start(RunId),
    Exit(RunId),
    /// Nothing is left of a run.
    Gone(RunId),
    Check(CheckRunId),
    Render(RenderId),
    Install(RenderId),
    /// A process says something about itself.
    Notice(RunId, Notice),
    /// Watches of this name are answered.
    Watch(String),
    Script(E),
}

/// The next item.
#[derive(Debug)]
pub enum Item<E> {
    /// An input for the core.
    Input(Input),
    /// Something the script has scheduled.
    Script(E),
    /// Nothing: its only consequence is another item.
    Nothing,
}

/// A virtual world.
pub struct World<S: Script> {
    /// What decides how everything behaves.
    pub script: S,
    plan: Arc<Plan>,
    now: Time,
    queue: Queue<Scheduled<S::Event>>,
    programs: BTreeMap<RunId, Program>,
    /// What is left of runs whose program has exited.
    rests: BTreeMap<RunId, RestOfRun>,
    checks: BTreeMap<CheckRunId, RunningCheck>,
    renderings: BTreeMap<RenderId, Rendering>,
    /// The rendered files, by path.
    written: BTreeMap<String, RenderedContent>,
    /// The services, by job.
    slots: Vec<CatalogSlot>,
    /// The services of removed jobs.
    retired: Vec<CatalogSlot>,
    /// `None` if it must be made again.
    agenda: Option<catalog::Agenda>,
    /// How often agents were called.
    calls: u64,
    /// Confirmed deregistrations that have not reached the core.
    pending_confirmations: BTreeMap<JobIx, Slot>,
    changes: Vec<CatalogChange>,
}

impl<S: Script> World<S> {
    /// A world at its start. With a seed, items of the same instant happen in a random order; otherwise in the order in
    /// which they were caused, as in the supervisor's loop.
    #[must_use]
    pub fn new(script: S, plan: Arc<Plan>, shuffle: Option<u64>) -> Self {
        Self {
            now: Time::ZERO,
            queue: Queue::new(shuffle),
            programs: BTreeMap::new(),
            rests: BTreeMap::new(),
            checks: BTreeMap::new(),
            renderings: BTreeMap::new(),
            written: BTreeMap::new(),
            slots: catalog::slots(&plan, &script),
            retired: Vec::new(),
            agenda: None,
            calls: 0,
            pending_confirmations: BTreeMap::new(),
            changes: Vec::new(),
            script,
            plan,
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The plan in force.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// When the next item is due, not counting the steps of agents.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.queue.next()
    }

    /// Time passes, and nothing happens.
    pub fn wait(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    /// The machine is paused: everything that is due meanwhile comes late.
    pub fn pause(&mut self, time: Duration) {
        self.now = self.now + time;
        let now = self.now;
        self.agents().for_each(|agent| agent.pause(now));
    }

    fn schedule(&mut self, after: Duration, item: Scheduled<S::Event>) -> Slot {
        self.queue.add(self.now + after, item)
    }

    /// Schedules an input, counted from now.
    pub fn schedule_input(&mut self, after: Duration, input: Input) {
        self.schedule(after, Scheduled::Input(input));
    }

    /// Schedules an event of the script, counted from now.
    pub fn schedule_event(&mut self, after: Duration, event: S::Event) {
        self.schedule(after, Scheduled::Script(event));
    }

    /// Schedules an answer to the watches of a name, counted from now.
    pub fn schedule_watch(&mut self, after: Duration, name: String) {
        self.schedule(after, Scheduled::Watch(name));
    }

    /// Takes the next item.
    pub fn take(&mut self) -> Item<S::Event> {
        let Some((at, item)) = self.queue.pop() else { return Item::Nothing };
        self.now = self.now.max(at);
        Item::Input(match item {
            Scheduled::Input(input) => input,
            Scheduled::Start(run) => self.start(run),
            Scheduled::Exit(run) => self.exit(run),
            Scheduled::Gone(run) => self.gone(run),
            Scheduled::Check(run) => self.check_done(run),
            Scheduled::Render(render) => self.render_done(render),
            Scheduled::Install(render) => self.install_done(render),
            Scheduled::Notice(run, notice) => match self.notice(run, notice) {
                Some(input) => input,
                None => return Item::Nothing,
            },
            Scheduled::Script(event) => return Item::Script(event),
            Scheduled::Watch(name) => {
                self.answer_watches(&name, self.now);
                return Item::Nothing;
            }
        })
    }

    /// Takes the next item, unless a deadline of the core is before it: then time passes up to that. Returns `None` if
    /// there is neither.
    pub fn advance(&mut self, deadline: Option<Time>) -> Option<Item<S::Event>> {
        let next = earliest(self.next(), deadline)?;
        self.wait(next);
        Some(if self.next() == Some(next) { self.take() } else { Item::Input(Input::Tick) })
    }

    /// Carries out an effect.
    pub fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Spawn { job, run, .. } => self.spawn(*job, *run),
            Effect::InspectStart { run } => {
                let input = self.inspected(*run);
                self.schedule_input(Duration::ZERO, input);
            }
            Effect::CancelStart { run } => self.cancel_start(*run),
            Effect::Kill { run, signal, reason, .. } => self.signal(*run, *signal, reason.ends_run()),
            Effect::RunCheck { job, check, run, .. } => self.run_check(*job, *check, *run),
            Effect::RunDrain { job, run, .. } => self.run_drain(*job, *run),
            Effect::CancelCheck { run } => self.cancel_check(*run),
            Effect::RenderFile { file, render, data, .. } => self.render_file(*file, *render, data),
            Effect::TestFile { file, run, .. } => self.test_file(*file, *run),
            Effect::InstallFile { render } => self.install_file(*render),
            Effect::DiscardFile { render } => drop(self.renderings.remove(render)),
            Effect::Advertise { job, desired } => self.advertise(*job, *desired),
            Effect::Heartbeat { job } => self.heartbeat(*job),
            Effect::PlanReplaced { plan, moves } => self.replanned(plan, moves),
            Effect::Abandon { run } => self.abandon(*run),
            // R1: the file has not changed. The number of replicas in it is not the one that `scale` has set (W20).
            Effect::Reload => {
                let mut plan = (*self.plan).clone();
                for group in &self.plan.replicas {
                    plan = plan.scaled(&group.template.name, group.configured).unwrap_or(plan);
                }
                let request = Request::Reload(Box::new(plan));
                self.schedule_input(Duration::ZERO, Input::Request { id: RELOAD, request });
            }
            Effect::KillOrphans { run } => self.forget_rest(*run),
            Effect::ReleaseLock { .. }
            | Effect::NotifyManager(_)
            | Effect::Reply { .. }
            | Effect::Log(_)
            | Effect::Exit(_) => {}
        }
    }

    fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        let before = std::mem::replace(&mut self.plan, Arc::clone(plan));
        self.script.replanned(plan, moves);
        let moved = |(job, slot): (JobIx, Slot)| Some((moves.job(job)?, slot));
        self.pending_confirmations =
            std::mem::take(&mut self.pending_confirmations).into_iter().filter_map(moved).collect();
        self.queue.change(|item| match item {
            Scheduled::Input(input) => moves.input(input).map(Scheduled::Input),
            other => Some(other),
        });
        self.move_slots(&before, moves);
        if plan.telemetry != before.telemetry {
            self.schedule_input(Duration::ZERO, Input::TelemetryListens(Ok(())));
        }
    }
}
