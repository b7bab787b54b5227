//! The oracle: it observes every input, effect and event, and checks the rules.
//!
//! It observes the core between the parts of a step, keeps its own model, built only from observations, and
//! compares the two after every step. What it checks:
//!
//! | rule   | check                                                                                               |
//! |--------|-----------------------------------------------------------------------------------------------------|
//! | P3     | every run has exactly one exit event, which tells success from failure; a start that takes too long |
//! |        | is given up in time, and no other start is, unless its run is killed                                |
//! | P4     | signals go only to running processes; what remains of a run is killed once, and in time             |
//! | P5     | a run or a check is killed at its timeout; nothing is killed without a reason                       |
//! | P6     | no job has two processes; one that SIGKILL does not end is abandoned, and no other                  |
//! | P7     | the environment of a process names exactly the running processes                                    |
//! | E2, E3 | events are numbered without a gap, causes come first; `stopping`, then `stopped`, then nothing      |
//! | E4     | `startup` comes once                                                                                |
//! | E5     | `healthy` only at a change; `unhealthy` at each failed check that counts                            |
//! | E6     | a watch sends exactly the events of what changed                                                    |
//! | W2     | the first event starts a `once` job at once, and no later one does                                  |
//! | W4     | ticks do not drift, never overlap, and are no more than allowed                                     |
//! | W5     | a job that has not started in time gives up at that time, and no other job does                     |
//! | W6     | no more restarts than allowed                                                                       |
//! | W7     | an event during a run leads to exactly one further run                                              |
//! | W8     | a restart happens exactly at the end of its back-off                                                |
//! | W9     | a complete job stays complete; a job that can never run again completes at once                     |
//! | W10    | no job waits for an event that cannot happen; the supervisor stops by itself when all work is done  |
//! | W19    | an action has no process, ends in its step, and its effect happens                                  |
//! | W21    | with `queue: "all"`, every event starts a run, in order                                            |
//! | W18    | a job starts by itself only when its requirements hold, and then at once, in the order of the       |
//! |        | configuration; a bound job stops when a source is gone                                              |
//! | W20    | an event of replicas is that of any of them, or comes when the last one has it                      |
//! | S1, S4 | a shutdown ends in time and as soon as it can; the second request kills at once                     |
//! | S2     | `stopping`, hooks, deregistration, drain, signal, exit, `stopped`: in this order, without delay     |
//! | S8     | the signals in `stopOn` shut down; a signal that jobs wait for is an event                          |
//! | S3     | jobs of the shutdown run in it, once; nothing else starts                                           |
//! | S5     | the exit code                                                                                       |
//! | S10    | a job gets its stop signal after the jobs that require it, and those in `stopAfter`, have ended     |
//! | H2–H4  | healthy if and only if all checks pass; checks run at their interval, never overlap, only while     |
//! |        | the job runs                                                                                        |
//! | H7, H8 | the exit of a process ends its health; an unhealthy job that is to be restarted gets a stop signal  |
//! | D4, D8 | the desired catalog status follows from health, maintenance and stopping, and is sent once          |
//! | C6     | coprocesses are stopped after all other jobs                                                        |
//! | D5, S6 | desired and registered status become equal; an exit deregisters everything (see `agents.rs`)        |
//! | R5     | a job that is changed without its process keeps it; the new checks, service and policies count      |
//! | R3, R4 | a reload stops and starts what has changed and keeps the rest; new jobs see conditions that already |
//! |        | hold; hooks get a new generation with their job; every request is answered, in time                 |
//! | X2     | every command is answered once; a manual start leads to a run, a manual stop to none until a start  |
//! | X7     | a job that never ran is skipped; otherwise its last run, or who stopped it, decides how it ended     |
//! | core   | no internal error is reported, timers do not pile up, a step has few effects                        |

mod actions;
mod adjust;
mod catalog;
mod commands;
mod events;
mod fingerprint;
mod health;
mod model;
mod observe;
mod queue;
mod readiness;
mod reload;
mod repetition;
mod replicas;
mod requires;
mod runs;
mod signals;
mod states;
mod stopping;
mod times;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{Input, Instance};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::request::RequestId;
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::state::stop_time::longest_hooks;
use containerpilot_core::{Core, JobStatus, Phase, State, Time};

use self::actions::Acted;
use self::model::{JobModel, Pending, RunModel, Seen};
use self::reload::Reloading;
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

type Check = Result<(), Violation>;

/// Checks every step of a core.
#[derive(Clone, Debug)]
pub struct Oracle<'a> {
    versions: &'a [Version],
    /// The version in force.
    version: usize,
    plan: &'a Plan,
    /// How long the hooks of each version take at most (S15).
    hook_times: Arc<[Duration]>,
    /// True if the core is called exactly at its deadlines.
    exact: bool,
    now: Time,
    /// The last reading of the system clock.
    clock: (Time, Duration),
    /// The state before the step (`phase_before`, `before`), and before the current part of it (`phase`, `previous`).
    phase_before: Phase,
    before: Vec<JobStatus>,
    phase: Phase,
    previous: Vec<JobStatus>,
    spare: Vec<JobStatus>,
    maintenance_before: bool,
    /// How many effects of this step were seen already.
    effects_seen: usize,
    /// The events of this step that were seen already.
    events: Vec<Event>,
    /// The jobs that waited for requirements before this step and were started in it, in order.
    released: Vec<usize>,
    jobs: Vec<JobModel>,
    seen: Vec<Seen>,
    /// How many new generations of jobs there were.
    generations: u64,
    /// The same before the current part of the step.
    generations_before: u64,
    last_event: u64,
    startup: Option<Time>,
    shutdown: Option<(Time, u64)>,
    expected_code: Option<u8>,
    first_failure: Option<u8>,
    first_hook_failure: Option<u8>,
    /// True if a job that does work was ever started.
    has_worked: bool,
    /// The first signal that requested a shutdown.
    stop_signal: Option<(Signal, Time)>,
    /// The signals that request a shutdown at the start of the step (S8).
    stop_on: Vec<Signal>,
    /// When the time for hooks was over (S4).
    terminating: Option<Time>,
    killing: Option<Time>,
    maintenance: bool,
    /// When maintenance mode last paused periodic jobs (C8).
    paused_at: Option<Time>,
    watches: Vec<Vec<Instance>>,
    /// Whether each watch has answered.
    answered: Vec<bool>,
    /// For each watch, the last answer in a maintenance mode that pauses it (C8).
    held_answers: Vec<Option<Vec<Instance>>>,
    /// The events that watches must send in this step.
    expected_watch_events: Vec<(usize, Code)>,
    /// When what remains of each run must be killed.
    orphans: BTreeMap<RunId, Time>,
    /// The requests without an answer.
    open_requests: Vec<RequestId>,
    /// The last run that had not executed its program when its time was over. It is given up with that.
    start_pending: Option<RunId>,
    /// The jobs that were started by hand before the startup.
    early_starts: Vec<usize>,
    /// The rolling restarts without an answer, and their jobs (W20).
    rolling: Vec<(RequestId, Vec<JobIx>)>,
    reloading: Reloading,
    /// How many actions were performed.
    performed: u64,
    /// What actions must do in this part of the step (W19).
    acted: Vec<Acted>,
    /// The variables that actions have set (W19).
    variables: BTreeMap<String, Option<String>>,
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
            watches: vec![Vec::new(); plan.watches.len()],
            answered: vec![false; plan.watches.len()],
            held_answers: vec![None; plan.watches.len()],
            expected_watch_events: Vec::new(),
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

    fn name(&self, job: usize) -> String {
        format!("job {job} ({})", self.plan.jobs[job].name)
    }

    fn job_violation(&self, rule: &'static str, job: usize, what: &str) -> Check {
        Err(self.violation(rule, format!("{}: {what}", self.name(job))))
    }

    /// One step of the core, with a check of each of its parts.
    ///
    /// # Errors
    /// The rule that was broken. The step is complete then, too.
    pub fn step(&mut self, core: &mut Core, now: Time, input: &Input, effects: &mut Vec<Effect>) -> Check {
        self.before(now, core);
        core.begin(now, input.clone(), effects);
        let mut checked = self.part(Some(input), effects, core);
        while core.advance(effects) {
            if checked.is_ok() {
                checked = self.part(None, effects, core);
            }
        }
        checked?;
        self.after(input, effects, core)
    }

    /// Observes the core before a step.
    fn before(&mut self, now: Time, core: &Core) {
        self.now = self.now.max(now);
        (self.phase_before, self.phase) = (core.phase(), core.phase());
        self.stop_on.clone_from(&self.plan.stop_on);
        self.maintenance_before = self.maintenance;
        self.see_pause();
        self.before.clear();
        self.before.extend(statuses(core));
        self.previous.clone_from(&self.before);
        (self.effects_seen, self.reloading.done, self.reloading.moved) = (0, None, None);
        self.events.clear();
        self.released.clear();
        self.expected_watch_events.clear();
        self.seen.clear();
        self.seen.extend(self.jobs.iter().map(|job| Seen { had_run: job.run.is_some(), ..Seen::default() }));
    }

    /// Checks a part of a step. The first part has the input.
    fn part(&mut self, input: Option<&Input>, effects: &[Effect], core: &Core) -> Check {
        self.reloading.changing = false;
        self.generations_before = self.generations;
        self.find_late_jobs();
        let new = effects.get(self.effects_seen..).unwrap_or_default();
        self.effects_seen = effects.len();
        let mut switched = false;
        if let Some(moves) = new.iter().find_map(|effect| match effect {
            Effect::PlanReplaced { moves, .. } => Some(moves),
            _ => None,
        }) {
            self.switch_plan(moves, core)?;
            for (_, jobs) in &mut self.rolling {
                *jobs = jobs.iter().filter_map(|job| moves.job(*job)).collect();
            }
            switched = true;
        }
        let mut after = std::mem::take(&mut self.spare);
        after.clear();
        after.extend(statuses(core));
        let quiet = input.is_none() && new.is_empty() && core.phase() == self.phase;
        if quiet && !self.has_new_events(core) && after == self.previous {
            self.spare = after;
            return Ok(());
        }
        self.check_unreachable(&after)?;
        for seen in &mut self.seen {
            (seen.ends_now, seen.ran_within_part, seen.leaves_catalog_now) = (false, false, false);
        }
        if let Some(input) = input {
            self.see_input(input);
        }
        if core.phase() != Phase::Starting {
            self.see_early_requests();
        }
        if core.phase() == Phase::Terminating && self.terminating.is_none() {
            self.terminating = Some(self.now);
        }
        if core.phase() == Phase::Killing && self.killing.is_none() {
            self.killing = Some(self.now);
        }
        for effect in new {
            match effect {
                Effect::Abandon { run } => self.see_abandon(*run)?,
                Effect::KillOrphans { run } if self.job_of(*run).is_some() => self.see_abandon(*run)?,
                Effect::CancelStart { run } => self.see_cancel_start(*run)?,
                _ => {}
            }
        }
        let known = self.events.len();
        self.take_events(core)?;
        for nth in known..self.events.len() {
            let event = self.events[nth];
            self.see_event(&event, input, &after)?;
        }
        if switched {
            self.see_smaller_groups(&after);
        }
        for (job, status) in after.iter().enumerate() {
            self.see_new_generation(job, status)?;
            if self.jobs[job].generation != status.generation {
                return self.job_violation("W9", job, "it has more generations than ends");
            }
        }
        self.end_epochs(&after);
        self.begin_epochs(input, &after);
        for (nth, effect) in new.iter().enumerate() {
            self.see_effect(effect, core.phase(), &after)?;
            if matches!(effect, Effect::Exit(_)) && nth + 1 != new.len() {
                return Err(self.violation("S4", "an effect follows the exit"));
            }
        }
        self.check_acted(new, &after)?;
        self.check_adjusted(&after)?;
        for job in 0..after.len() {
            self.check_leaving(job, &after, core.phase())?;
            self.check_hooks_of_new_generation(job, &after)?;
            let model = &mut self.jobs[job];
            model.is_spaced |= after[job].state == State::Delaying && model.runs == 0;
        }
        self.spare = std::mem::replace(&mut self.previous, after);
        (self.phase, self.maintenance_before) = (core.phase(), self.maintenance);
        self.see_pause();
        Ok(())
    }

    /// Checks a complete step.
    fn after(&mut self, input: &Input, effects: &[Effect], core: &Core) -> Check {
        let after = std::mem::take(&mut self.previous);
        let phase = core.phase();
        let most = 60 + 40 * self.plan.jobs.len().max(self.before.len());
        let orphans = effects.iter().filter(|effect| matches!(effect, Effect::KillOrphans { .. })).count();
        if effects.len() - orphans > most {
            return Err(self.violation("core", format!("{} effects in one step", effects.len())));
        }
        let deadlines = core.timer_count();
        if phase != Phase::Exited && deadlines > self.most_deadlines() + self.orphans.len() {
            return Err(self.violation("core", format!("{deadlines} deadlines")));
        }
        self.check_answers(input, effects, &after, phase)?;
        self.check_reloads(&after, phase)?;
        self.check_watch()?;
        self.check_shutdown(input, phase, &after)?;
        self.check_signal(input)?;
        let replaced = effects.iter().any(|effect| matches!(effect, Effect::PlanReplaced { .. }));
        for (nth, status) in after.iter().enumerate() {
            // After a reload the entries of this step may be about other indices. A job that triggers itself is delayed for
            // another run (W14), not for a restart.
            let restarts = status.state == State::Delaying && !replaced && !self.is_in_ring(nth);
            if self.seen[nth].failed_finally && restarts {
                return self.job_violation("L7", nth, "a run that is restarted is logged as the last one");
            }
            self.check_state(nth, status)?;
            self.check_runs(nth, &after, phase)?;
            self.check_requirements(nth, &after, phase)?;
            self.check_health(nth, status, phase)?;
            self.check_catalog(nth, status, phase)?;
            self.check_stop(nth, &after, phase)?;
        }
        self.check_rolling_restarts(phase)?;
        self.check_reachability(&after, phase)?;
        self.check_all_done(&after, phase)?;
        self.check_deadlock(core, &after)?;
        self.previous = after;
        Ok(())
    }

    /// S8: returns true if an input is a signal that requests a shutdown.
    fn is_stop_signal(&self, input: &Input) -> bool {
        matches!(input, Input::Signal(signal) if self.stop_on.contains(signal))
    }

    /// S8, W3: a signal that jobs may wait for is an event.
    fn check_signal(&self, input: &Input) -> Check {
        let Input::Signal(signal) = *input else { return Ok(()) };
        if self.phase_before != Phase::Running || self.reloading.done.is_some() {
            return Ok(());
        }
        let mut patterns = self.plan.jobs.iter().flat_map(|job| job.when.patterns());
        let is_awaited = patterns.any(|event| event.source == Source::Signal(signal));
        let toggles = signal == Signal::USR1 && self.plan.legacy_maintenance;
        let has_meaning = self.plan.pass_signals || self.is_stop_signal(input) || toggles;
        let expected = !has_meaning && (matches!(signal, Signal::HUP | Signal::USR2) || is_awaited);
        if self.events.iter().any(|event| event.origin == Origin::Signal(signal)) == expected {
            return Ok(());
        }
        Err(self.violation("S8", format!("{signal} is an event, and should not be, or the other way round")))
    }

    fn most_deadlines(&self) -> usize {
        let checks: usize = self.jobs.iter().map(|job| job.checks.len()).sum();
        5 * self.jobs.len() + 2 * checks + 3
    }
}

/// The status of every job.
fn statuses(core: &Core) -> impl Iterator<Item = JobStatus> + '_ {
    (0..core.plan().jobs.len()).map(|nth| core.status(JobIx::at(nth)))
}

/// How long a job may wait for its deregistration (S2), unless a quarter of the stop timeout is less.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a job waits for its process after SIGKILL (P6).
const ABANDON_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the supervisor may wait for killed processes (S4).
const KILL_TIMEOUT: Duration = Duration::from_millis(400);

/// How long everything after the last SIGKILL may take (S4).
const MARGIN: Duration = Duration::from_secs(1);
