//! The witness: it sees every input, every effect and every event, and knows the rules.
//!
//! It looks on between the parts of a step, keeps a model of its own, made from what can be seen from outside, and compares
//! after every step. What it holds:
//!
//! | rule   | in words                                                                                            |
//! |--------|-----------------------------------------------------------------------------------------------------|
//! | P3     | every run that began has exactly one exit event, which tells success from failure                   |
//! | P4     | signals go only to processes that are there; what is left of a group is killed once, and in time    |
//! | P5     | a run or a check that exceeds its time is killed at that moment; nobody is killed without a reason  |
//! | P6     | no job has two processes                                                                            |
//! | P7     | a process is told of exactly the processes that run                                                 |
//! | E2, E3 | events are numbered without a gap, causes come before; `stopping`, then `stopped`, then nothing     |
//! | E4     | `startup` comes once                                                                                |
//! | E5     | `healthy` only at a change; `unhealthy` at each failed check that counts                            |
//! | E6     | a watch tells exactly what changed                                                                  |
//! | W2     | the first event runs a `once` job at once, and no later one does                                    |
//! | W4     | turns come without drift, never two, and no more than allowed                                       |
//! | W5     | who has not started in time gives up at that moment, and nobody else does                           |
//! | W6     | no more restarts than allowed                                                                       |
//! | W7     | an event during a run leads to exactly one further run                                              |
//! | W8     | a restart comes at the moment the back-off says, and does come                                      |
//! | W9     | complete is for ever, and comes as soon as a job can never run again                                |
//! | W10    | nobody waits for what cannot come; the supervisor leaves by itself                                  |
//! | S1, S4 | a shutdown ends in time and as soon as it can; the second request kills at once                     |
//! | S2     | `stopping`, hooks, catalog, drain, signal, exit, `stopped`: in this order, and without delay        |
//! | S3     | what belongs to the shutdown runs in it, once; nothing else starts                                  |
//! | S5     | the exit code                                                                                       |
//! | H2–H4  | healthy if and only if all checks pass; checks come at their pace, never two, only while it runs    |
//! | H7, H8 | the end of a process ends its health; who is to be restarted when unhealthy is asked to end         |
//! | D4, D8 | what is desired in the catalog follows from health, maintenance and stopping, and is told once       |
//! | C6     | coprocesses are stopped when the others are done                                                    |
//! | D5, S6 | what is desired and what the catalog has become equal; who leaves is out (with `catalog/agency.rs`)  |
//! | R3, R4 | a reload stops and begins what is not the same, and touches nobody else; who begins is told what    |
//! |        | holds; hooks live again with whom they belong to; all who asked are answered, in time               |
//! | X2     | every command is answered once; a start by hand leads to a run, a stop to none until the next start    |
//! | core   | no defect is reported, deadlines do not pile up, a step has few effects                             |

mod catalog;
mod commands;
mod events;
mod health;
mod model;
mod reload;
mod runs;
mod stopping;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::event::Code;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, Instance};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::request::{Request, RequestId};
use containerpilot_core::state::journal::Event;
use containerpilot_core::{Core, JobStatus, Phase, State, StopStage, Time};

use self::model::{JobModel, Pending, RunModel, Seen};
use self::reload::Reloading;
use crate::scenario::{Scenario, Version};

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

type Check = Result<(), Violation>;

/// Sees everything and knows the rules.
pub struct Witness<'a> {
    versions: &'a [Version],
    /// Which of them is in force.
    version: usize,
    plan: &'a Plan,
    /// Whether the core is called when it wants to be, to the nanosecond.
    exact: bool,
    now: Time,
    /// How everything was before the step, and before the part of it that is being looked at.
    phase_before: Phase,
    before: Vec<JobStatus>,
    phase: Phase,
    between: Vec<JobStatus>,
    spare: Vec<JobStatus>,
    maintained: bool,
    /// The effects and the events of this step that were seen already.
    effects_seen: usize,
    events: Vec<Event>,
    jobs: Vec<JobModel>,
    seen: Vec<Seen>,
    /// How many new lives there were.
    births: u64,
    last_event: u64,
    startup: Option<Time>,
    shutdown: Option<(Time, u64)>,
    expected_code: Option<u8>,
    first_failure: Option<u8>,
    first_hook_failure: Option<u8>,
    /// The first signal that asked for a stop.
    asked: Option<(Signal, Time)>,
    killing: Option<Time>,
    maintenance: bool,
    watches: Vec<Vec<Instance>>,
    /// What the watches have to say in this step.
    expected_news: Vec<Code>,
    remains: BTreeMap<RunId, Time>,
    /// The requests that have no answer yet.
    open: Vec<RequestId>,
    /// The jobs that were to be started by hand before the startup.
    early: Vec<usize>,
    reloading: Reloading,
}

impl<'a> Witness<'a> {
    /// A witness of a scenario that has not begun.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let plan = &scenario.versions[0].plan;
        Self {
            versions: &scenario.versions,
            version: 0,
            plan,
            exact: !scenario.late,
            now: Time::ZERO,
            phase_before: Phase::Starting,
            before: Vec::new(),
            phase: Phase::Starting,
            between: Vec::new(),
            spare: Vec::new(),
            maintained: false,
            effects_seen: 0,
            events: Vec::new(),
            jobs: plan.jobs.iter().map(JobModel::new).collect(),
            seen: Vec::new(),
            births: 0,
            last_event: 0,
            startup: None,
            shutdown: None,
            expected_code: None,
            first_failure: None,
            first_hook_failure: None,
            asked: None,
            killing: None,
            maintenance: false,
            watches: vec![Vec::new(); plan.watches.len()],
            expected_news: Vec::new(),
            remains: BTreeMap::new(),
            open: Vec::new(),
            early: Vec::new(),
            reloading: Reloading::default(),
        }
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.last_event
    }

    /// Which version of the plan is in force.
    #[must_use]
    pub fn version(&self) -> usize {
        self.version
    }

    /// From now on nothing comes at the moment it was due.
    pub fn is_late_from_now_on(&mut self) {
        self.exact = false;
    }

    /// A rule was broken.
    #[must_use]
    pub fn says(&self, rule: &'static str, what: impl Into<String>) -> Violation {
        Violation { rule, what: what.into(), at: self.now }
    }

    fn name(&self, job: usize) -> String {
        format!("job {job} ({})", self.plan.jobs[job].name)
    }

    fn broken(&self, rule: &'static str, job: usize, what: &str) -> Check {
        Err(self.says(rule, format!("{}: {what}", self.name(job))))
    }

    /// Looks at the core before a step.
    pub fn before(&mut self, now: Time, core: &Core) {
        self.now = self.now.max(now);
        (self.phase_before, self.phase) = (core.phase(), core.phase());
        self.maintained = self.maintenance;
        self.before.clear();
        self.before.extend(statuses(core));
        self.between.clone_from(&self.before);
        (self.effects_seen, self.reloading.done, self.reloading.moved) = (0, None, None);
        self.events.clear();
        self.expected_news.clear();
        self.seen.clear();
        self.seen.extend(self.jobs.iter().map(|job| Seen { had_run: job.run.is_some(), ..Seen::default() }));
    }

    /// Looks at a part of a step: the first one has the input.
    pub fn part(&mut self, input: Option<&Input>, effects: &[Effect], core: &Core) -> Check {
        self.reloading.changing = false;
        self.find_who_is_late();
        let new = effects.get(self.effects_seen..).unwrap_or_default();
        self.effects_seen = effects.len();
        if let Some(moves) = new.iter().find_map(|effect| match effect {
            Effect::PlanReplaced { moves, .. } => Some(moves),
            _ => None,
        }) {
            self.change_places(moves, core)?;
        }
        let mut after = std::mem::take(&mut self.spare);
        after.clear();
        after.extend(statuses(core));
        let quiet = input.is_none() && new.is_empty() && core.phase() == self.phase;
        if quiet && !self.is_there_news(core) && after == self.between {
            self.spare = after;
            return Ok(());
        }
        self.check_given_up(&after)?;
        for seen in &mut self.seen {
            (seen.ends_now, seen.blurred) = (false, false);
        }
        if let Some(input) = input {
            self.see_input(input);
        }
        if core.phase() != Phase::Starting {
            self.see_what_was_early();
        }
        if core.phase() == Phase::Killing && self.killing.is_none() {
            self.killing = Some(self.now);
        }
        let known = self.events.len();
        self.take_events(core)?;
        for nth in known..self.events.len() {
            let event = self.events[nth];
            self.see_event(&event, input, &after)?;
        }
        for (job, status) in after.iter().enumerate() {
            self.see_birth(job, status)?;
            if self.jobs[job].generation != status.generation {
                return self.broken("W9", job, "it has more lives than ends");
            }
        }
        self.end_epochs(&after);
        self.begin_epochs(input, &after);
        for (nth, effect) in new.iter().enumerate() {
            self.see_effect(effect, core.phase())?;
            if matches!(effect, Effect::Exit { .. }) && nth + 1 != new.len() {
                return Err(self.says("S4", "something comes after the exit"));
            }
        }
        for job in 0..after.len() {
            self.check_leaving(job, &after, core.phase())?;
            self.check_hooks_of_the_newborn(job, &after)?;
        }
        self.spare = std::mem::replace(&mut self.between, after);
        (self.phase, self.maintained) = (core.phase(), self.maintenance);
        Ok(())
    }

    /// Looks at a step that was made.
    pub fn after(&mut self, input: &Input, effects: &[Effect], core: &Core) -> Check {
        let after = std::mem::take(&mut self.between);
        let phase = core.phase();
        let most = 60 + 40 * self.plan.jobs.len().max(self.before.len());
        let remains = effects.iter().filter(|effect| matches!(effect, Effect::KillOrphans { .. })).count();
        if effects.len() - remains > most {
            return Err(self.says("core", format!("{} effects in one step", effects.len())));
        }
        let deadlines = core.timer_count();
        if phase != Phase::Exited && deadlines > self.most_deadlines() + self.remains.len() {
            return Err(self.says("core", format!("{deadlines} deadlines")));
        }
        self.check_answers(input, effects, &after, phase)?;
        self.check_reloads(&after, phase)?;
        self.check_watch(input)?;
        self.check_shutdown(input, phase, &after)?;
        for (nth, status) in after.iter().enumerate() {
            self.check_state(nth, status)?;
            self.check_runs(nth, &after, phase)?;
            self.check_health(nth, status, phase)?;
            self.check_catalog(nth, status, phase)?;
            self.check_stop(nth, &after, phase)?;
        }
        self.check_hope(&after, phase)?;
        self.check_whole(&after, phase)?;
        self.between = after;
        Ok(())
    }

    fn most_deadlines(&self) -> usize {
        let checks: usize = self.jobs.iter().map(|job| job.checks.len()).sum();
        4 * self.jobs.len() + 2 * checks + 3
    }

    fn see_input(&mut self, input: &Input) {
        if let Input::Request { id, request: command } = input {
            match command {
                Request::Reload(plan) => self.see_reload(*id, plan),
                _ => self.open.push(*id),
            }
            if let Request::Start(job) | Request::Restart(job) = command {
                self.early.extend(Some(job.index()).filter(|job| *job < self.jobs.len()));
            }
        }
        match input {
            Input::Started { run, .. } => {
                let now = self.now;
                if let Some(job) = self.job_of(*run) {
                    self.jobs[job].begun = now;
                    if let Some(run) = &mut self.jobs[job].run {
                        run.started = Some(now);
                    }
                }
            }
            Input::StartFailed { run, why } => {
                self.see_end(*run, ExitStatus::Code(why.kind.code()), false, false);
            }
            Input::Exited { run, status, orphans } => self.see_end(*run, *status, *orphans, true),
            Input::CheckDone { check, result } => self.see_check_done(*check, result.is_ok()),
            Input::Request { request: Request::Maintenance(on), .. }
                if self.phase_before == Phase::Starting =>
            {
                self.maintenance = *on;
            }
            Input::Signal(Signal::USR1)
                if self.phase_before == Phase::Starting
                    && self.plan.toggle_maintenance
                    && !self.plan.pass_signals =>
            {
                self.maintenance = !self.maintenance;
            }
            Input::Instances { watch, instances } => self.see_instances(watch.index(), instances),
            Input::Deregistered { job } => self.see_withdrawn(job.index()),
            Input::Request { .. }
            | Input::Ready
            | Input::OutOfMemory { .. }
            | Input::Signal(_)
            | Input::Tick => {}
        }
    }

    /// What was asked for before the startup is done with it.
    fn see_what_was_early(&mut self) {
        for job in std::mem::take(&mut self.early) {
            self.seen[job].by_hand = true;
        }
        self.begin_reload();
    }

    fn job_of(&self, run: RunId) -> Option<usize> {
        self.jobs.iter().position(|job| job.run.as_ref().is_some_and(|model| model.run == run))
    }

    fn see_end(&mut self, run: RunId, status: ExitStatus, orphans: bool, started: bool) {
        if orphans {
            self.remains.insert(run, self.now + self.plan.stop_timeout);
        }
        let Some(job) = self.job_of(run) else { return };
        let now = self.now;
        let model = &mut self.jobs[job];
        let ended = model.run.take();
        let timed_out = ended.as_ref().is_some_and(|run| run.timed_out);
        let failed = !status.is_success() || timed_out;
        model.last_failure = if failed { Some(status.code().max(1)) } else { None };
        model.ended_at = Some(now);
        model.was_asked = self.between[job].stop_stage == Some(StopStage::Terminate) && started;
        let began = ended.and_then(|run| run.started).filter(|_| started).unwrap_or(now);
        let seen = &mut self.seen[job];
        (seen.ended, seen.ends_now) = (true, true);
        seen.ended_started = Some(began);
    }

    fn see_effect(&mut self, effect: &Effect, phase: Phase) -> Check {
        match effect {
            Effect::Spawn { job, run, environment } => self.see_spawn(job.index(), *run, environment),
            Effect::Kill { run, signal, reason } => self.see_signal(*run, *signal, *reason, phase),
            Effect::KillOrphans { run } => self.see_kill_remains(*run, phase),
            Effect::RunCheck { job, check, run, .. } => self.see_check(job.index(), check.index(), *run),
            Effect::CancelCheck { run } => self.see_cancel(*run),
            Effect::Advertise { job, desired } => self.see_advertise(job.index(), *desired),
            Effect::Heartbeat { job } => self.see_heartbeat(job.index()),
            Effect::Reply { id, reply: answer } if self.is_reload(*id) => {
                self.see_reload_answer(*id, answer, phase)
            }
            Effect::Reply { id, .. } => match self.open.iter().position(|open| open == id) {
                Some(place) => {
                    self.open.remove(place);
                    Ok(())
                }
                None => Err(self.says("X1", "an answer to nobody")),
            },
            Effect::Log(entry) => {
                if entry.message.contains("bug:") {
                    return Err(self.says("core", entry.message.clone()));
                }
                Ok(())
            }
            Effect::PlanReplaced { .. } => Ok(()),
            Effect::Exit { code } => self.see_exit(*code),
        }
    }

    fn check_state(&self, job: usize, status: &JobStatus) -> Check {
        let before = &self.before[job];
        let same = before.generation == status.generation;
        let back = before.state == State::Complete && status.state != State::Complete
            || status.stop_stage < before.stop_stage;
        if same && back {
            return self.broken("W9", job, "it is brought back");
        }
        let complete = status.state == State::Complete;
        if complete != self.jobs[job].stopped.is_some() {
            return self.broken("W9", job, "complete and stopped are not the same");
        }
        if status.stop_stage.is_some() != self.jobs[job].stopping.is_some() {
            return self.broken("S2", job, "stopping was not said");
        }
        if status.run != self.jobs[job].run.as_ref().map(|run| run.run) {
            return self.broken("P6", job, "its run is another one");
        }
        if self.seen[job].ended && self.seen[job].exit_events != 1 {
            return self.broken("P3", job, "a run ended without an event");
        }
        if complete && status.healthy.is_some() {
            return self.broken("H7", job, "it is complete, and yet something is known of its health");
        }
        Ok(())
    }
}

/// What every job is doing.
fn statuses(core: &Core) -> impl Iterator<Item = JobStatus> + '_ {
    (0..core.plan().jobs.len()).map(|nth| core.status(JobIx::at(nth)))
}

/// How long a job may wait for the catalog (S2), unless a quarter of the stop time is less.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// How long the supervisor may wait for what it has killed.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Whether a signal asks the supervisor to stop.
fn asks_to_stop(input: &Input) -> bool {
    matches!(input, Input::Signal(Signal(2 | 15)))
}
