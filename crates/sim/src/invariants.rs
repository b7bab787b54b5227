//! The witness: it sees every input, every effect and every event, and knows the rules.
//!
//! It keeps a model of its own, made from what can be seen from outside, and compares after every step. What it holds:
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
//! | D4, D8 | what is wanted in the catalog follows from health, maintenance and stopping, and is told once       |
//! | C6     | coprocesses are stopped when the others are done                                                    |
//! | R3, R4 | a reload to the same plan begins coprocesses anew and touches nobody else; it is answered in time   |
//! | X2     | every command is answered once; a start by hand leads to a run, a stop to none until the next start    |
//! | core   | no defect is reported, deadlines do not pile up, a step has few effects                             |

mod catalog;
mod commands;
mod health;
mod reload;
mod runs;
mod stopping;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::command::{Command, RequestId};
use containerpilot_core::effect::{Effect, Wanted};
use containerpilot_core::event::{Code, Source, UserSignal};
use containerpilot_core::ids::{CheckRun, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, Instance};
use containerpilot_core::journal::{Event, Origin};
use containerpilot_core::plan::{EventPattern, Plan, Signal, Trigger};
use containerpilot_core::{Aim, Core, JobStatus, Phase, State, Time};

use crate::scenario::Scenario;

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

/// Whether an event waits for the end of a run (W7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    No,
    Yes,
    /// It cannot be seen from outside.
    Perhaps,
}

#[derive(Clone, Debug)]
struct RunModel {
    run: RunId,
    started: Option<Time>,
    /// When it was asked to make way for another (H8).
    replaced: Option<Time>,
    /// When it was asked to end because the job stops (S2).
    stopped: Option<Time>,
    /// When it was last sent SIGKILL, for whatever reason.
    killed: Option<Time>,
    /// Whether it was killed for its time (P5).
    timed_out: bool,
    /// Whether it is killed as soon as it is there, because a reload has waited long enough.
    doomed: bool,
}

#[derive(Clone, Debug)]
struct CheckModel {
    running: Option<CheckRun>,
    /// The run that goes on counts no more.
    cut_short: bool,
    began: Time,
    passed: bool,
    fails: u32,
    early_fails: u32,
    due: Option<Time>,
}

#[derive(Clone, Debug)]
struct JobModel {
    /// Which life of the job this is, and since when.
    incarnation: u64,
    born: Time,
    /// Since when its turns are counted (W4).
    turns_from: Option<Time>,
    /// How often it was started by hand, and how many of those runs were beside its turns.
    by_hand: u64,
    beside: u64,
    /// How many runs there were since it was last started by hand.
    fresh_runs: u64,
    run: Option<RunModel>,
    runs: u64,
    runs_at_shutdown: u64,
    /// Whether it was told at its beginning what holds already, which cannot be seen.
    told: bool,
    fires: u64,
    first_fire: Option<u64>,
    pending: Pending,
    holds: Vec<bool>,
    stopping: Option<(Time, u64)>,
    stopped: Option<u64>,
    left_at: Option<Time>,
    /// Since when the catalog does not hold it, or was not waited for any longer.
    free_at: Option<Time>,
    ended_at: Option<Time>,
    last_failure: Option<u8>,
    /// Whether its last run was asked to end because the job stops, so that its end is no failure.
    was_asked: bool,
    early: u32,
    restart_due: Option<Time>,
    begun: Time,
    /// Whether it has begun without a process (W11).
    has_begun: bool,
    active: bool,
    verdict: Option<bool>,
    wanted: Wanted,
    beat: Time,
    checks: Vec<CheckModel>,
}

/// What was seen of one job in one step.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Somebody has started it by hand, or it was to start again and does.
    by_hand: bool,
    /// It has begun a new life.
    born: bool,
    had_run: bool,
    ended: bool,
    ended_started: Option<Time>,
    spawned: u32,
    fired: u32,
    exit_events: u32,
    healthy: u32,
    unhealthy: u32,
    expected_healthy: u32,
    expected_unhealthy: u32,
    news: bool,
    /// It begins with a reload.
    reloaded: bool,
    /// Two things came together, and which was first cannot be seen.
    blurred: bool,
}

/// Sees everything and knows the rules.
pub struct Witness<'a> {
    plan: &'a Plan,
    exact: bool,
    now: Time,
    phase_before: Phase,
    before: Vec<JobStatus>,
    jobs: Vec<JobModel>,
    seen: Vec<Seen>,
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
    remains: BTreeMap<RunId, Time>,
    most_deadlines: usize,
    /// The requests that have no answer yet.
    open: Vec<RequestId>,
    /// The jobs that were to be started by hand before the startup.
    early: Vec<usize>,
    /// The reloads that have no answer yet, whether one has been asked for just now, and whether one was done in this
    /// step.
    reloads: Vec<RequestId>,
    reload_asked: bool,
    reloaded: bool,
    /// When whatever holds up a reload is killed, and whether it was.
    reload_due: Option<Time>,
    reload_late: bool,
}

impl<'a> Witness<'a> {
    /// A witness of a scenario that has not begun.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let plan = &scenario.plan;
        let checks: usize = plan.jobs.iter().flat_map(|job| &job.health).map(|h| h.checks.len()).sum();
        Self {
            plan,
            exact: !scenario.late,
            now: Time::ZERO,
            phase_before: Phase::Beginning,
            before: Vec::new(),
            jobs: plan.jobs.iter().map(JobModel::new).collect(),
            seen: Vec::new(),
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
            remains: BTreeMap::new(),
            open: Vec::new(),
            early: Vec::new(),
            reloads: Vec::new(),
            reload_asked: false,
            reloaded: false,
            reload_due: None,
            reload_late: false,
            most_deadlines: 4 * plan.jobs.len() + 2 * checks + 3,
        }
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.last_event
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
    pub fn before(&mut self, now: Time, _input: &Input, core: &Core) {
        self.now = now;
        self.phase_before = core.phase();
        self.before.clear();
        self.before.extend((0..self.plan.jobs.len()).map(|nth| core.status(JobIx::at(nth))));
        self.reloaded = false;
        self.seen.clear();
        self.seen.extend(self.jobs.iter().map(|job| Seen { had_run: job.run.is_some(), ..Seen::default() }));
    }

    /// Looks at a step that was made.
    pub fn after(&mut self, _now: Time, input: &Input, effects: &[Effect], core: &Core) -> Check {
        self.see_input(input, core)?;
        let events: Vec<Event> = self.new_events(core)?;
        let after: Vec<JobStatus> =
            (0..self.plan.jobs.len()).map(|nth| core.status(JobIx::at(nth))).collect();
        for event in &events {
            self.see_event(event, input, &after)?;
        }
        for (job, status) in after.iter().enumerate() {
            self.see_birth(job, status)?;
            if self.jobs[job].incarnation != status.incarnation {
                return self.broken("W9", job, "it has more lives than ends");
            }
        }
        self.end_epochs(&after);
        self.begin_epochs(input, &after);
        for (nth, effect) in effects.iter().enumerate() {
            self.see_effect(effect, core.phase())?;
            if matches!(effect, Effect::Exit { .. }) && nth + 1 != effects.len() {
                return Err(self.says("S4", "something comes after the exit"));
            }
        }
        let most = 60 + 40 * self.plan.jobs.len();
        let remains = effects.iter().filter(|effect| matches!(effect, Effect::KillRemains { .. })).count();
        if effects.len() - remains > most {
            return Err(self.says("core", format!("{} effects in one step", effects.len())));
        }
        let deadlines = core.deadlines();
        if core.phase() != Phase::Left && deadlines > self.most_deadlines + self.remains.len() {
            return Err(self.says("core", format!("{deadlines} deadlines")));
        }
        self.check_answers(input, effects, &after, core.phase())?;
        self.check_reloads(effects, &after, core.phase())?;
        self.check_watch(input, &events)?;
        self.check_shutdown(input, core.phase(), &after)?;
        for (nth, status) in after.iter().enumerate() {
            self.check_state(nth, status)?;
            self.check_runs(nth, &after, core.phase())?;
            self.check_health(nth, status, core.phase())?;
            self.check_catalog(nth, status, core.phase())?;
            self.check_stop(nth, &after, core.phase())?;
        }
        self.check_hope(&after, core.phase())?;
        self.check_whole(&after, core.phase())
    }

    fn new_events(&mut self, core: &Core) -> Result<Vec<Event>, Violation> {
        let last = self.last_event;
        let mut events: Vec<Event> =
            core.journal().events().rev().take_while(|event| event.id.0 > last).copied().collect();
        events.reverse();
        for event in &events {
            if event.id.0 != self.last_event + 1 {
                return Err(self.says("E2", format!("event {} follows {}", event.id.0, self.last_event)));
            }
            if event.cause.is_some_and(|cause| cause >= event.id) || event.at != self.now {
                return Err(self.says("E2", format!("event {} comes before its cause", event.id.0)));
            }
            self.last_event = event.id.0;
        }
        Ok(events)
    }

    fn see_input(&mut self, input: &Input, core: &Core) -> Check {
        self.see_reload(input, core.phase());
        if let Input::Command { id, command } = input {
            if !matches!(command, Command::Reload(_)) {
                self.open.push(*id);
            }
            if let Command::Start(job) | Command::Restart(job) = command {
                self.early.extend(Some(job.index()).filter(|job| *job < self.jobs.len()));
            }
        }
        if core.phase() != Phase::Beginning {
            for job in std::mem::take(&mut self.early) {
                self.seen[job].by_hand = true;
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
            Input::Exited { run, status, leftovers } => self.see_end(*run, *status, *leftovers, true),
            Input::CheckDone { check, result } => self.see_check_done(*check, result.is_ok()),
            Input::Command { command: Command::Maintenance(on), .. }
                if self.phase_before == Phase::Beginning =>
            {
                self.maintenance = *on;
            }
            Input::Withdrawn { job } => self.see_withdrawn(job.index()),
            Input::Command { .. }
            | Input::OutOfMemory { .. }
            | Input::Ready
            | Input::Instances { .. }
            | Input::Signal(_)
            | Input::Tick => {}
        }
        if core.phase() == Phase::Killing && self.killing.is_none() {
            self.killing = Some(self.now);
        }
        Ok(())
    }

    fn job_of(&self, run: RunId) -> Option<usize> {
        self.jobs.iter().position(|job| job.run.as_ref().is_some_and(|model| model.run == run))
    }

    fn see_end(&mut self, run: RunId, status: ExitStatus, leftovers: bool, started: bool) {
        if leftovers {
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
        model.was_asked = self.before[job].aim == Aim::Term && started;
        let began = ended.and_then(|run| run.started).filter(|_| started).unwrap_or(now);
        self.seen[job].ended = true;
        self.seen[job].ended_started = Some(began);
    }

    fn see_event(&mut self, event: &Event, input: &Input, after: &[JobStatus]) -> Check {
        for (job, status) in after.iter().enumerate() {
            let last = self.jobs[job].incarnation + 1 == status.incarnation;
            if last && event.id > status.born_after {
                self.see_birth(job, status)?;
            }
        }
        match (event.origin, event.code) {
            (Origin::Global, Code::Startup) if self.startup.is_some() => {
                self.see_startup_again(event.id, after)?
            }
            (Origin::Global, Code::Startup) => self.startup = Some(self.now),
            (Origin::Global, Code::Shutdown) => {
                if self.shutdown.replace((self.now, event.id.0)).is_some() {
                    return Err(self.says("S1", "a second shutdown"));
                }
                self.see_shutdown(input);
            }
            (Origin::Global, code) => {
                let on = code == Code::EnterMaintenance;
                // Before the startup it begins without a word.
                if self.maintenance == on && self.phase_before != Phase::Beginning {
                    return Err(self.says("D8", "maintenance begins or ends twice"));
                }
                self.maintenance = on;
            }
            (Origin::Job(job), code) => {
                // What comes after the end of one life belongs to the next.
                if self.jobs[job.index()].stopped.is_some() {
                    self.see_birth(job.index(), &after[job.index()])?;
                }
                self.see_job_event(job.index(), code, event, &after[job.index()])?;
            }
            (Origin::Watch(_) | Origin::Signal(_) | Origin::Former(_), _) => {}
        }
        let again = self.reloaded && event.code == Code::Startup;
        for job in 0..self.jobs.len() {
            // R3: who goes on does not see another startup.
            if again && !self.seen[job].reloaded {
                continue;
            }
            if self.fires(job, event) {
                self.jobs[job].fires += 1;
                self.jobs[job].first_fire = self.jobs[job].first_fire.or(Some(event.id.0));
                self.seen[job].fired += 1;
            }
        }
        Ok(())
    }

    fn see_job_event(&mut self, job: usize, code: Code, event: &Event, status: &JobStatus) -> Check {
        if self.jobs[job].stopped.is_some() {
            return self.broken("E3", job, &format!("{code} comes after stopped"));
        }
        match code {
            Code::Stopping => {
                if self.jobs[job].stopping.replace((self.now, event.id.0)).is_some() {
                    return self.broken("E3", job, "stopping comes twice");
                }
            }
            Code::Stopped => {
                if self.jobs[job].stopping.is_none() {
                    return self.broken("E3", job, "stopped comes before stopping");
                }
                self.jobs[job].stopped = Some(event.id.0);
                self.see_complete(job, status);
            }
            Code::ExitSuccess | Code::ExitFailed => {
                let seen = &mut self.seen[job];
                seen.exit_events += 1;
                if !seen.ended || seen.exit_events > 1 {
                    return self.broken("E3", job, "an exit event without an exit");
                }
                let failed = self.jobs[job].last_failure.is_some();
                if failed != (code == Code::ExitFailed) {
                    return self.broken("P3", job, &format!("{code} is not how it ended"));
                }
            }
            Code::TimerExpired => {
                let since = self.startup.map(|startup| startup.max(self.jobs[job].born));
                let due = since.zip(self.plan.jobs[job].when.timeout).map(|(at, t)| at + t);
                let early = due.is_none_or(|due| due > self.now || (self.exact && due != self.now));
                if self.jobs[job].runs > 0 || early {
                    return self.broken("W5", job, "it gives up without need");
                }
            }
            Code::Healthy => self.seen[job].healthy += 1,
            Code::Unhealthy => self.seen[job].unhealthy += 1,
            other => return self.broken("E1", job, &format!("no job sends {other}")),
        }
        Ok(())
    }

    /// Whether an event is what a job's trigger waits for.
    fn fires(&mut self, job: usize, event: &Event) -> bool {
        let plan = self.plan;
        match &plan.jobs[job].when.trigger {
            Trigger::Event { event: pattern, .. } => matches(plan, pattern, event.origin, event.code),
            Trigger::Any { conditions, .. } => {
                conditions.iter().any(|pattern| matches(plan, pattern, event.origin, event.code))
            }
            Trigger::All { conditions, .. } => {
                let holds = &mut self.jobs[job].holds;
                let held = holds.iter().all(|holds| *holds);
                for (pattern, holds) in conditions.iter().zip(holds.iter_mut()) {
                    if matches(plan, pattern, event.origin, event.code) {
                        *holds = true;
                    } else if pattern.code == Code::Healthy && event.code == Code::Unhealthy {
                        let contrary = EventPattern { source: pattern.source.clone(), code: Code::Unhealthy };
                        *holds &= !matches(plan, &contrary, event.origin, event.code);
                    }
                }
                !held && holds.iter().all(|holds| *holds)
            }
            Trigger::Interval(_) | Trigger::Never => false,
        }
    }

    fn see_effect(&mut self, effect: &Effect, phase: Phase) -> Check {
        match effect {
            Effect::Spawn { job, run, environment } => self.see_spawn(job.index(), *run, environment),
            Effect::Kill { run, signal, purpose } => self.see_signal(*run, *signal, *purpose, phase),
            Effect::KillRemains { run } => self.see_kill_remains(*run, phase),
            Effect::RunCheck { job, check, run, .. } => self.see_check(job.index(), check.index(), *run),
            Effect::CancelCheck { run } => self.see_cancel(*run),
            Effect::Advertise { job, wanted } => self.see_advertise(job.index(), *wanted),
            Effect::Heartbeat { job } => self.see_heartbeat(job.index()),
            Effect::Reply { id, .. } if self.reloads.contains(id) => Ok(()),
            Effect::Reply { id, .. } => match self.open.iter().position(|open| open == id) {
                Some(place) => {
                    self.open.remove(place);
                    Ok(())
                }
                None => Err(self.says("X1", "an answer to nobody")),
            },
            Effect::Log(entry) => {
                if entry.message.contains("defect") {
                    return Err(self.says("core", entry.message.clone()));
                }
                Ok(())
            }
            Effect::Replanned { moves, .. } => self.see_replanned(moves),
            Effect::Exit { code } => self.see_exit(*code),
        }
    }

    fn check_state(&self, job: usize, status: &JobStatus) -> Check {
        let before = &self.before[job];
        let same = before.incarnation == status.incarnation;
        let back =
            before.state == State::Complete && status.state != State::Complete || status.aim < before.aim;
        if same && back {
            return self.broken("W9", job, "it is brought back");
        }
        let complete = status.state == State::Complete;
        if complete != self.jobs[job].stopped.is_some() {
            return self.broken("W9", job, "complete and stopped are not the same");
        }
        if (status.aim > Aim::Up) != self.jobs[job].stopping.is_some() {
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

    fn check_watch(&mut self, input: &Input, events: &[Event]) -> Check {
        let Input::Instances { watch, instances } = input else { return Ok(()) };
        let mut instances = instances.clone();
        instances.sort();
        instances.dedup();
        if self.phase_before == Phase::Beginning {
            // It counts after the startup.
            self.watches[watch.index()] = instances;
            return Ok(());
        }
        if self.phase_before != Phase::Running {
            return Ok(());
        }
        let known = &mut self.watches[watch.index()];
        let mut expected = Vec::new();
        if *known != instances {
            expected.push(Code::Changed);
        }
        match (known.is_empty(), instances.is_empty()) {
            (true, false) => expected.push(Code::Healthy),
            (false, true) => expected.push(Code::Unhealthy),
            _ => {}
        }
        *known = instances;
        let told: Vec<Code> = events
            .iter()
            .filter(|event| event.origin == Origin::Watch(*watch))
            .map(|event| event.code)
            .collect();
        if told != expected && self.exact {
            return Err(self.says("E6", format!("{told:?} instead of {expected:?}")));
        }
        Ok(())
    }
}

impl JobModel {
    fn new(job: &containerpilot_core::plan::Job) -> Self {
        let conditions = match &job.when.trigger {
            Trigger::All { conditions, .. } => conditions.len(),
            _ => 0,
        };
        let check = CheckModel {
            running: None,
            cut_short: false,
            began: Time::ZERO,
            passed: false,
            fails: 0,
            early_fails: 0,
            due: None,
        };
        Self {
            incarnation: 0,
            born: Time::ZERO,
            turns_from: None,
            by_hand: 0,
            beside: 0,
            fresh_runs: 0,
            run: None,
            runs: 0,
            runs_at_shutdown: 0,
            told: false,
            fires: 0,
            first_fire: None,
            pending: Pending::No,
            holds: vec![false; conditions],
            stopping: None,
            stopped: None,
            left_at: None,
            free_at: None,
            ended_at: None,
            last_failure: None,
            was_asked: false,
            early: 0,
            restart_due: None,
            begun: Time::ZERO,
            has_begun: false,
            active: false,
            verdict: None,
            wanted: Wanted::Absent,
            beat: Time::ZERO,
            checks: job.health.iter().flat_map(|health| &health.checks).map(|_| check.clone()).collect(),
        }
    }
}

/// Whether an event is the one that a pattern names.
fn matches(plan: &Plan, pattern: &EventPattern, origin: Origin, code: Code) -> bool {
    if pattern.code != code {
        return false;
    }
    match (&pattern.source, origin) {
        (Source::Global, Origin::Global) => true,
        (Source::Job(name), Origin::Job(job)) => plan.jobs[job.index()].name == *name,
        (Source::Watch(name), Origin::Watch(watch)) => plan.watches[watch.index()].name == *name,
        (Source::Signal(UserSignal::Hup), Origin::Signal(1))
        | (Source::Signal(UserSignal::Usr2), Origin::Signal(12)) => true,
        _ => false,
    }
}

/// How long a job may wait for the catalog (S2), unless a quarter of the stop time is less.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// How long the supervisor may wait for what it has killed.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Whether a signal asks the supervisor to stop.
fn asks_to_stop(input: &Input) -> bool {
    matches!(input, Input::Signal(Signal(2 | 15)))
}
