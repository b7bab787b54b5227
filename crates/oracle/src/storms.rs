//! P14: more starts are decided than processes may be created at a time.
//!
//! [`run_seed`] tries many schedules in which the bound is small: jobs that run once, again, at intervals and as hooks,
//! with check and drain programs; starts that are slow, fail or hang; requests, reloads and a shutdown. The judge has
//! no model of the rules. It counts the processes that were created and have reported nothing, and looks at the order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{CheckIx, CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::log_entry::LogEvent;
use containerpilot_core::plan::{
    Check, Command, Drain, EventPattern, FirstTick, Health, Job, OnUnhealthy, Plan, Probe, Repeat, Restarts,
    Signal, Trigger,
};
use containerpilot_core::rng::Rng;
use containerpilot_core::{Core, Input, Phase, Request, RequestId, State, Time};
use containerpilot_simulation::world::script::{CheckEnd, CheckScript, ProgramScript, Reaction, Script};
use containerpilot_simulation::world::{Item, World};

use crate::random::{plain_job, plain_plan};
use crate::twin::Pair;

/// A start that takes this long no longer counts.
const HUNG_AFTER: Duration = Duration::from_secs(1);
/// How long a process may take to execute its program.
const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

/// What happens to one process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessFate {
    /// After how many milliseconds its program is executed; `None` if it hangs.
    pub executes: Option<u64>,
    /// False if its program cannot be executed.
    pub starts: bool,
    /// How many milliseconds it runs; `None` if until a signal.
    pub runs: Option<u64>,
    /// Whether it succeeds.
    pub succeeds: bool,
}

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
pub enum Incident {
    /// A request about a job.
    Start(usize),
    /// A request about a job.
    Stop(usize),
    /// A request about a job.
    Restart(usize),
    /// SIGHUP, at which some jobs run.
    Signal,
    /// The plan with this index is loaded.
    Reload(usize),
    /// The supervisor is stopped; a second time, all jobs are killed.
    Shutdown,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct StormSchedule {
    /// How many processes may be started at a time.
    pub most: usize,
    /// The plans; the first one is that of the start.
    pub plans: Vec<Plan>,
    /// What happens to processes, in their order; the last one is repeated.
    pub fates: Vec<ProcessFate>,
    /// What happens, by milliseconds; in order.
    pub incidents: Vec<(u64, Incident)>,
}

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct StormTotals {
    /// The processes that were created.
    pub created: u64,
    /// The steps after which a start was waiting.
    pub waiting: u64,
    /// The starts that were dropped while they waited.
    pub dropped: u64,
}

fn command(program: &str) -> Command {
    Command { program: program.into(), arguments: Vec::new() }
}

fn job(rng: &mut Rng, nth: usize) -> Job {
    let mut job = plain_job(&format!("j{nth}"));
    match rng.below(8) {
        0 => job.restarts = Restarts::Unlimited,
        1 => job.restarts = Restarts::Limited(2),
        2 => {
            let event = EventPattern { source: Source::Signal(Signal::HUP), code: Code::Signal };
            job.when.trigger = Trigger::Event { event, repeat: Repeat::Each };
        }
        3 => {
            let every = Duration::from_millis(rng.pick(&[100, 700]));
            job.when.trigger = Trigger::Interval { every, first: FirstTick::AtStartup };
            job.restarts = Restarts::Unlimited;
        }
        4 if nth > 0 => {
            let source = Source::Job(format!("j{}", rng.index(nth)));
            let code = rng.pick(&[Code::Stopping, Code::ExitSuccess]);
            job.when.trigger = Trigger::Event { event: EventPattern { source, code }, repeat: Repeat::Once };
        }
        _ => {}
    }
    if rng.percent(30) {
        let check = Check {
            name: format!("check.j{nth}"),
            probe: Probe::Exec(command("check")),
            interval: Duration::from_millis(rng.pick(&[300, 2_000])),
            timeout: Duration::from_millis(rng.pick(&[200, 2_000])),
            failures: 1,
            successes: 1,
            start_period: Duration::ZERO,
            raw_output: false,
        };
        let ttl = Duration::from_secs(10);
        let on_unhealthy = if rng.percent(30) { OnUnhealthy::Restart } else { OnUnhealthy::Report };
        job.health = Some(Health { checks: vec![check], ttl, heartbeat: None, on_unhealthy });
    }
    if rng.percent(20) {
        let timeout = Some(Duration::from_millis(rng.pick(&[50, 1_500])));
        job.stop.drain = Drain::Until { program: command("drain"), timeout };
    }
    job
}

fn plan(rng: &mut Rng) -> Plan {
    let jobs = (0..4 + rng.index(9)).map(|nth| job(rng, nth)).collect();
    plain_plan(jobs)
}

/// The schedule of a seed.
#[must_use]
pub fn schedule(seed: u64) -> StormSchedule {
    let mut rng = Rng::from_seed(seed);
    let most = 1 + rng.index(4);
    let first = plan(&mut rng);
    let mut plans = vec![first];
    for _ in 0..rng.below(3) {
        // Some jobs are changed, moved or removed, and others are new.
        let mut next = plans[0].clone();
        next.jobs.rotate_left(rng.index(3));
        next.jobs.retain(|_| !rng.percent(15));
        for job in &mut next.jobs {
            if rng.percent(20) {
                job.timeout = Some(Duration::from_secs(30));
            }
        }
        plans.push(next);
    }
    let fate = |rng: &mut Rng| ProcessFate {
        executes: (!rng.percent(10)).then(|| rng.pick(&[0, 0, 5, 40, 300, 900, 1_500])),
        starts: !rng.percent(10),
        runs: (!rng.percent(20)).then(|| rng.pick(&[0, 10, 100, 900, 3_000])),
        succeeds: !rng.percent(20),
    };
    let fates = (0..=rng.below(30)).map(|_| fate(&mut rng)).collect();
    let (mut now, jobs) = (0, plans[0].jobs.len());
    let mut incidents = Vec::new();
    for _ in 0..rng.below(30) {
        now += rng.pick(&[0, 0, 1, 20, 200, 1_000]);
        let incident = match rng.below(20) {
            0..4 => Incident::Start(rng.index(jobs)),
            4..8 => Incident::Stop(rng.index(jobs)),
            8..11 => Incident::Restart(rng.index(jobs)),
            11..16 => Incident::Signal,
            16..19 => Incident::Reload(rng.index(plans.len())),
            _ => Incident::Shutdown,
        };
        incidents.push((now, incident));
    }
    incidents.push((now + rng.pick(&[0, 500, 20_000]), Incident::Shutdown));
    StormSchedule { most, plans, fates, incidents }
}

/// Runs the schedule of a seed.
///
/// # Errors
/// How P14 was broken, and the smallest schedule that was found to do it.
pub fn run_seed(seed: u64) -> Result<StormTotals, Box<(StormSchedule, String)>> {
    let mut schedule = schedule(seed);
    let mut broken = match Judge::run(&schedule) {
        Ok(totals) => return Ok(totals),
        Err(what) => what,
    };
    loop {
        let without = |nth: usize| {
            let mut smaller = schedule.clone();
            smaller.incidents.remove(nth);
            smaller
        };
        // The last one is the shutdown that ends the schedule.
        let mut smaller = (0..schedule.incidents.len() - 1).map(without);
        match smaller.find_map(|one| Judge::run(&one).err().map(|what| (one, what))) {
            Some(found) => (schedule, broken) = found,
            None => return Err(Box::new((schedule, broken))),
        }
    }
}

/// A process that was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Job(RunId),
    Program(CheckRunId),
}

/// What the script schedules.
enum Event {
    Incident(Incident),
    /// A check or drain program was executed.
    Executed(CheckRunId),
}

/// What the fates of processes make of the world.
struct Fates<'a> {
    fates: &'a [ProcessFate],
    created: usize,
    /// When the check or drain program that was created last is executed, if it is.
    executes: Option<Duration>,
}

/// How long a process takes to exit on a signal.
const EXITS_AFTER: Duration = Duration::from_millis(1);

impl Fates<'_> {
    fn fate(&mut self) -> ProcessFate {
        self.created += 1;
        self.fates[(self.created - 1).min(self.fates.len() - 1)]
    }

    fn any_check(&mut self) -> CheckScript {
        let fate = self.fate();
        let executes = fate.executes.map(Duration::from_millis);
        let runs = if fate.starts { fate.runs } else { Some(0) };
        self.executes = executes.filter(|_| fate.starts);
        CheckScript {
            takes: executes.and_then(|executes| Some(executes + Duration::from_millis(runs?))),
            end: CheckEnd::passes(fate.starts && fate.succeeds),
            cancel_takes: EXITS_AFTER,
        }
    }
}

impl Script for Fates<'_> {
    type Event = Event;

    fn program(&mut self, _plan: &Plan, _job: JobIx, _now: Time) -> ProgramScript {
        let fate = self.fate();
        ProgramScript {
            starts_in: fate.executes.map(Duration::from_millis),
            start_error: (!fate.starts).then_some(StartErrorKind::NotFound),
            exits_after: fate.runs.map(Duration::from_millis),
            status: ExitStatus::Code(u8::from(!fate.succeeds)),
            on_signal: Reaction::Exits(EXITS_AFTER, None),
            dies_after: Some(EXITS_AFTER),
            ..ProgramScript::default()
        }
    }

    fn check(&mut self, _plan: &Plan, _job: JobIx, _check: CheckIx, _now: Time) -> CheckScript {
        self.any_check()
    }

    fn drain(&mut self, _plan: &Plan, _job: JobIx) -> CheckScript {
        self.any_check()
    }
}

struct Judge<'a> {
    schedule: &'a StormSchedule,
    core: Pair,
    world: World<Fates<'a>>,
    requests: u64,
    /// The check and drain programs that have not ended.
    programs: BTreeSet<CheckRunId>,
    /// The processes that have reported nothing since they were created, as far as the core was told.
    silent: BTreeMap<Process, Time>,
    /// The programs that were executed without the core being told.
    untold: BTreeSet<CheckRunId>,
    /// The jobs whose start waits, by name and generation, and the step since which it does.
    waiting: BTreeMap<(String, u64), u64>,
    last_run: Option<RunId>,
    last_program: Option<CheckRunId>,
    steps: u64,
    totals: StormTotals,
}

impl<'a> Judge<'a> {
    fn run(schedule: &'a StormSchedule) -> Result<StormTotals, String> {
        let mut core = Core::new(schedule.plans[0].clone());
        core.set_most_starts(schedule.most);
        let fates = Fates { fates: &schedule.fates, created: 0, executes: None };
        let mut judge = Self {
            world: World::new(fates, core.shared_plan(), None),
            core: Pair::new(core, (schedule.incidents.len() + schedule.fates.len()) as u64),
            requests: 0,
            programs: BTreeSet::new(),
            silent: BTreeMap::new(),
            untold: BTreeSet::new(),
            waiting: BTreeMap::new(),
            last_run: None,
            last_program: None,
            steps: 0,
            totals: StormTotals::default(),
            schedule,
        };
        for (at, incident) in &schedule.incidents {
            judge.world.schedule_event(Duration::from_millis(*at), Event::Incident(*incident));
        }
        judge.step(Input::Ready)?;
        judge.go_on()?;
        Ok(judge.totals)
    }

    /// Goes on until the supervisor exits, which it must: the last incident is a shutdown.
    fn go_on(&mut self) -> Result<(), String> {
        while self.core.phase() != Phase::Exited {
            let next = self.world.advance(self.core.next_deadline()).filter(|_| self.steps < 100_000);
            let input = match next {
                None => return Err(format!("the supervisor does not exit: {:?}", self.core.phase())),
                Some(Item::Input(input)) => input,
                Some(Item::Script(Event::Incident(incident))) => self.incident(incident),
                // As in the runtime, its end is early enough, unless a start waits.
                Some(Item::Script(Event::Executed(check))) => {
                    if self.programs.contains(&check) {
                        self.untold.insert(check);
                        self.tell();
                    }
                    continue;
                }
                Some(Item::Nothing) => Input::Tick,
            };
            self.step(input)?;
        }
        Ok(())
    }

    fn incident(&mut self, incident: Incident) -> Input {
        let jobs = self.core.plan().jobs.len();
        let place = |nth: usize| JobIx::at(nth.checked_rem(jobs).unwrap_or(0));
        let request = match incident {
            Incident::Signal => return Input::Signal(Signal::HUP),
            Incident::Shutdown => return Input::Signal(Signal::TERM),
            Incident::Start(nth) => Request::Start(place(nth)),
            Incident::Stop(nth) => Request::Stop(place(nth)),
            Incident::Restart(nth) => Request::Restart(place(nth)),
            Incident::Reload(nth) => Request::Reload(Box::new(self.schedule.plans[nth].clone())),
        };
        self.requests += 1;
        Input::Request { id: RequestId(self.requests), request }
    }

    /// While a start waits, the core is told which programs were executed.
    fn tell(&mut self) {
        if self.core.starts_wait() {
            for check in std::mem::take(&mut self.untold) {
                self.world.schedule_input(Duration::ZERO, Input::CheckStarted { check });
            }
        }
    }

    /// A process has reported something.
    fn heard(&mut self, input: &Input) {
        match input {
            Input::Started { run, .. } | Input::StartFailed { run, .. } => {
                self.silent.remove(&Process::Job(*run));
            }
            Input::CheckStarted { check } => {
                self.silent.remove(&Process::Program(*check));
            }
            Input::CheckDone { check, .. } => {
                self.silent.remove(&Process::Program(*check));
                self.untold.remove(check);
                self.programs.remove(check);
            }
            _ => {}
        }
    }

    fn step(&mut self, input: Input) -> Result<(), String> {
        self.steps += 1;
        self.heard(&input);
        let phase = self.core.phase();
        let mut effects = Vec::new();
        self.core.step(self.world.now(), input, &mut effects)?;
        let mut created = BTreeSet::new();
        for effect in &effects {
            self.carry_out(effect, &mut created)?;
        }
        self.tell();
        self.check_waiting(&created, self.core.phase() != phase)
    }

    fn carry_out(&mut self, effect: &Effect, created: &mut BTreeSet<String>) -> Result<(), String> {
        match effect {
            Effect::Kill { run, .. } | Effect::CancelStart { run } | Effect::Abandon { run }
                if !self.world.has_process(*run) =>
            {
                return Err(format!("{run:?} is signalled or given up, and has no process"));
            }
            Effect::CancelCheck { run } if !self.programs.contains(run) => {
                return Err(format!("{run:?} is cancelled, and has no process"));
            }
            Effect::InspectStart { run } => {
                let created = self.silent.get(&Process::Job(*run));
                if created.is_none_or(|at| self.world.now().since(*at) < EXEC_TIMEOUT) {
                    return Err(format!("{run:?} is inspected before its time is over"));
                }
            }
            Effect::Log(entry) if entry.fields.event == LogEvent::Bug => return Err(entry.message.clone()),
            _ => {}
        }
        self.world.carry_out(effect);
        match effect {
            Effect::Spawn { job, run, .. } => {
                if self.last_run.replace(*run) >= Some(*run) {
                    return Err(format!("{run:?} is created after {:?}", self.last_run));
                }
                created.insert(self.world.plan().jobs[job.index()].name.clone());
                self.created(Process::Job(*run))
            }
            Effect::RunCheck { run, .. } | Effect::RunDrain { run, .. } => {
                if self.last_program.replace(*run) >= Some(*run) {
                    return Err(format!("{run:?} is created after a later one"));
                }
                self.programs.insert(*run);
                if let Some(after) = self.world.script.executes {
                    self.world.schedule_event(after, Event::Executed(*run));
                }
                self.created(Process::Program(*run))
            }
            Effect::CancelStart { run } | Effect::Abandon { run } => {
                self.silent.remove(&Process::Job(*run));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn created(&mut self, process: Process) -> Result<(), String> {
        self.totals.created += 1;
        self.silent.insert(process, self.world.now());
        let most = self.schedule.most;
        match self.in_progress() {
            count if count > most => Err(format!("{count} starts are in progress, at most {most} may be")),
            _ => Ok(()),
        }
    }

    /// The starts that keep others waiting.
    fn in_progress(&self) -> usize {
        self.silent.values().filter(|at| self.world.now().since(**at) < HUNG_AFTER).count()
    }

    /// No turn is left unused, nobody is overtaken, and no job that stops waits for a turn.
    fn check_waiting(&mut self, created: &BTreeSet<String>, phase_changed: bool) -> Result<(), String> {
        let core = &self.core;
        let name = |job: JobIx| core.plan().jobs[job.index()].name.clone();
        let jobs = (0..core.plan().jobs.len()).map(JobIx::at);
        let queued = jobs.filter(|job| core.status(*job).state == State::Queued);
        let mut waiting = BTreeMap::new();
        for job in queued {
            let status = core.status(job);
            if status.stop_stage.is_some() || status.pid.is_some() || status.run.is_some() {
                return Err(format!("{} stops or has a process, and waits for its turn", name(job)));
            }
            let key = (name(job), status.generation);
            // A hook gives up its place when the shutdown starts, for that of its stop event.
            let since = self.waiting.get(&key).filter(|_| !phase_changed).copied().unwrap_or(self.steps);
            waiting.insert(key, since);
        }
        let before = std::mem::replace(&mut self.waiting, waiting);
        for job in created {
            let since =
                before.iter().find(|((name, _), _)| name == job).map_or(self.steps, |(_, since)| *since);
            let overtaken = self.waiting.iter().find(|(_, other)| **other < since);
            if let Some(((other, _), _)) = overtaken {
                return Err(format!("{job} is started before {other}, which has waited longer"));
            }
        }
        let still = |name: &String| self.waiting.keys().any(|(other, _)| other == name);
        let dropped = before.keys().filter(|(name, _)| !still(name) && !created.contains(name)).count();
        self.totals.dropped += dropped as u64;
        if self.core.starts_wait() {
            self.totals.waiting += 1;
            let most = self.schedule.most;
            if self.in_progress() < most {
                return Err(format!(
                    "a start waits, and only {} of {most} are in progress",
                    self.in_progress()
                ));
            }
            let oldest = self.silent.values().filter(|at| self.world.now().since(**at) < HUNG_AFTER).min();
            if self.core.next_deadline() > oldest.map(|at| *at + HUNG_AFTER) {
                return Err("a start would wait longer than a second for one that hangs".to_owned());
            }
        } else if !self.waiting.is_empty() {
            return Err("a job waits for its turn, and nothing does".to_owned());
        }
        Ok(())
    }
}
