//! The world: it carries out effects by the script, and turns them into inputs.
//!
//! Time is virtual. The next thing to happen is the nearest input or the core's own deadline; among inputs of one
//! instant chance decides. A world that is late calls the core some time after its deadlines. When nothing is left to
//! happen, or its patience is at an end, the world asks the supervisor to stop, and that must come to an end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use containerpilot_core::command::{Command, RequestId};
use containerpilot_core::effect::{Effect, Wanted};
use containerpilot_core::ids::{CheckRun, JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Input, Instance, StartError};
use containerpilot_core::plan::{Catalog, Signal, Status};
use containerpilot_core::{Core, Phase, Time};

use crate::chance::mix;
use crate::invariants::{Violation, Witness};
use crate::scenario::{CheckScript, Happening, Reaction, RunScript, Scenario};

/// What came of a scenario that broke no rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// How often the core was called.
    pub steps: u32,
    /// How many programs were started.
    pub runs: u64,
    /// How many events were sent.
    pub events: u64,
}

/// The longest way to an end once the world has asked for it.
const STEPS_TO_THE_END: u32 = 3_000;

/// When something happens, and its place among what happens then.
type Place = (Time, u64, u64);

struct Program {
    script: RunScript,
    started: bool,
    exit: Option<Place>,
    status: ExitStatus,
}

struct Probe {
    script: CheckScript,
    done: Option<Place>,
    passes: bool,
}

/// Something that is going to happen.
enum Coming {
    Input(Input),
    Start(RunId),
    Exit(RunId),
    Check(CheckRun),
}

struct World<'a> {
    scenario: &'a Scenario,
    now: Time,
    coming: BTreeMap<Place, Coming>,
    serial: u64,
    programs: BTreeMap<RunId, Program>,
    probes: BTreeMap<CheckRun, Probe>,
    withdrawals: BTreeMap<JobIx, Place>,
    runs_of: Vec<usize>,
    checks_of: Vec<Vec<usize>>,
    /// For each job, whether the embedded catalog holds its service as passing.
    passing: Vec<bool>,
    requests: u64,
    course: Course,
}

/// Plays a scenario to its end, with the witness looking on. What happens is written down if somebody wants it.
pub fn run(scenario: &Scenario, mut timeline: Option<&mut String>) -> Result<Course, Violation> {
    let mut world = World::new(scenario);
    let mut core = Core::new(scenario.plan.clone());
    let mut witness = Witness::new(scenario);
    let mut effects = Vec::new();
    let mut asked = 0;
    let mut last_asked = 0;
    while core.phase() != Phase::Left {
        let next = world.next(core.next_deadline());
        let tired = if asked == 0 { scenario.patience } else { last_asked + STEPS_TO_THE_END };
        let input = match next {
            Some(next) if world.course.steps < tired => world.take(next),
            next => {
                if next.is_none() {
                    witness.quiet(&core)?;
                }
                asked += 1;
                last_asked = world.course.steps;
                match asked {
                    1 => Input::Signal(Signal::TERM),
                    // The same one at once would count as one (S1).
                    2 => Input::Signal(Signal(2)),
                    // A program that may keep the signal to itself is the world's own affair (S7).
                    3 if scenario.plan.pass_signals => {
                        world.end_all_programs();
                        Input::Tick
                    }
                    _ => return Err(witness.says("S4", "it does not leave though it was asked to")),
                }
            }
        };
        world.course.steps += 1;
        effects.clear();
        witness.before(world.now, &input, &core);
        let told = timeline.is_some().then(|| format!("{input:?}"));
        core.step(world.now, input.clone(), &mut effects);
        if let (Some(timeline), Some(told)) = (timeline.as_deref_mut(), told) {
            write_down(timeline, world.now, &told, &effects, &core);
        }
        witness.after(world.now, &input, &effects, &core)?;
        world.follow_up(&input);
        for effect in &effects {
            world.carry_out(effect, &witness)?;
        }
    }
    witness.at_the_end(&core)?;
    world.course.events = witness.events();
    Ok(world.course)
}

fn write_down(timeline: &mut String, now: Time, input: &str, effects: &[Effect], core: &Core) {
    let seconds = now.as_nanos() as f64 / 1e9;
    // Nobody minds a line that could not be written to a string.
    let _ = writeln!(timeline, "{seconds:>12.6}  {input}");
    let events: Vec<_> = core.journal().events().rev().take_while(|event| event.at == now).collect();
    for event in events.into_iter().rev() {
        let name = core.origin_name(event.origin);
        let _ = writeln!(timeline, "{:14}  · event {} {} {}", "", event.id.0, name, event.code);
    }
    for effect in effects {
        let told = match effect {
            Effect::Spawn { job, run, .. } => format!("Spawn job {} run {}", job.0, run.0),
            Effect::RunCheck { job, check, run, .. } => {
                format!("RunCheck job {} check {} run {}", job.0, check.0, run.0)
            }
            Effect::Log(entry) => {
                format!("Log {:?} job {:?}: {}", entry.level, entry.job.map(|job| job.0), entry.message)
            }
            other => format!("{other:?}"),
        };
        let _ = writeln!(timeline, "{:14}  → {told}", "");
    }
    for nth in 0..core.plan().jobs.len() {
        let status = core.status(JobIx::at(nth));
        let _ = writeln!(
            timeline,
            "{:14}    job {nth}: {:?}/{:?} run {:?} healthy {:?} restarts {} {:?}",
            "",
            status.state,
            status.aim,
            status.run.map(|run| run.0),
            status.healthy,
            status.restarts,
            status.wanted
        );
    }
}

/// What happens next.
enum Next {
    /// Something of the world's.
    Coming(Place),
    /// Nothing but a deadline of the core's, at this time.
    Deadline(Time),
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut world = Self {
            scenario,
            now: Time::ZERO,
            coming: BTreeMap::new(),
            serial: 0,
            programs: BTreeMap::new(),
            probes: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            runs_of: vec![0; scenario.plan.jobs.len()],
            checks_of: scenario.scripts.iter().map(|script| vec![0; script.checks.len()]).collect(),
            passing: vec![false; scenario.plan.jobs.len()],
            requests: 0,
            course: Course::default(),
        };
        world.add(scenario.ready_at, Coming::Input(Input::Ready));
        for (at, happening) in &scenario.happenings {
            let input = match happening {
                Happening::Signal(signal) => Input::Signal(*signal),
                Happening::Command(command) => {
                    world.requests += 1;
                    Input::Command { id: RequestId(world.requests), command: command.clone() }
                }
                Happening::Reload => {
                    world.requests += 1;
                    let command = Command::Reload(Box::new(scenario.plan.clone()));
                    Input::Command { id: RequestId(world.requests), command }
                }
                Happening::Instances(watch, instances) => {
                    Input::Instances { watch: WatchIx::at(*watch), instances: instances.clone() }
                }
                Happening::Nothing => Input::Tick,
            };
            world.add(*at, Coming::Input(input));
        }
        world
    }

    fn add(&mut self, after: Duration, coming: Coming) -> Place {
        self.serial += 1;
        let place = (self.now + after, mix(self.scenario.order ^ self.serial), self.serial);
        self.coming.insert(place, coming);
        place
    }

    fn next(&self, deadline: Option<Time>) -> Option<Next> {
        let coming = self.coming.keys().next().copied();
        let deadline = deadline.map(|deadline| {
            let late = if self.scenario.late {
                // Up to 20 ms, and by chance nothing.
                let slip = mix(self.scenario.order ^ deadline.as_nanos()) % 40_000;
                Duration::from_micros(slip.saturating_sub(20_000))
            } else {
                Duration::ZERO
            };
            (deadline + late).max(self.now)
        });
        match (coming, deadline) {
            (Some(place), Some(deadline))
                if place.0 < deadline || (self.scenario.late && place.0 == deadline) =>
            {
                Some(Next::Coming(place))
            }
            (_, Some(deadline)) => Some(Next::Deadline(deadline)),
            (Some(place), None) => Some(Next::Coming(place)),
            (None, None) => None,
        }
    }

    fn take(&mut self, next: Next) -> Input {
        match next {
            Next::Deadline(at) => {
                self.now = at;
                Input::Tick
            }
            Next::Coming(place) => {
                self.now = place.0;
                match self.coming.remove(&place) {
                    Some(Coming::Input(input)) => input,
                    Some(Coming::Start(run)) => self.start(run),
                    Some(Coming::Exit(run)) => self.exit(run),
                    Some(Coming::Check(check)) => self.check(check),
                    None => Input::Tick,
                }
            }
        }
    }

    fn start(&mut self, run: RunId) -> Input {
        let fails = self.programs.get(&run).and_then(|program| program.script.fails);
        if let Some(kind) = fails {
            self.programs.remove(&run);
            let why = StartError { kind, message: "/bin/program: the system's own words".into() };
            return Input::StartFailed { run, why };
        }
        if let Some(program) = self.programs.get_mut(&run) {
            program.started = true;
        }
        Input::Started { run, pid: pid_of(run) }
    }

    /// A program that has started ends some time later, so that its start is known first.
    fn follow_up(&mut self, input: &Input) {
        let Input::Started { run, .. } = input else { return };
        let Some(ends_after) = self.programs.get(run).and_then(|program| program.script.ends_after) else {
            return;
        };
        let place = self.add(ends_after, Coming::Exit(*run));
        if let Some(program) = self.programs.get_mut(run) {
            program.exit = Some(place);
        }
    }

    fn exit(&mut self, run: RunId) -> Input {
        let (status, leftovers) = self
            .programs
            .remove(&run)
            .map_or((ExitStatus::Code(0), false), |program| (program.status, program.script.leftovers));
        Input::Exited { run, status, leftovers }
    }

    fn check(&mut self, check: CheckRun) -> Input {
        let passes = self.probes.remove(&check).is_some_and(|probe| probe.passes);
        Input::CheckDone { check, result: if passes { Ok(()) } else { Err("it did not pass".into()) } }
    }

    fn carry_out(&mut self, effect: &Effect, witness: &Witness) -> Result<(), Violation> {
        match effect {
            Effect::Spawn { job, run, .. } => self.spawn(job.index(), *run),
            Effect::Kill { run, signal, .. } => {
                if !self.programs.get(run).is_some_and(|program| program.started) {
                    return Err(witness.says("P4", "a signal goes to a process that is not there"));
                }
                self.signal(*run, *signal);
            }
            Effect::RunCheck { job, check, run, .. } => self.probe(job.index(), check.index(), *run),
            Effect::CancelCheck { run } => self.cancel(*run),
            Effect::Advertise { job, wanted: Wanted::Absent } => {
                self.catalog(job.index(), false);
                if let Some(after) = self.scenario.scripts[job.index()].withdrawal {
                    let place = self.add(after, Coming::Input(Input::Withdrawn { job: *job }));
                    self.withdrawals.insert(*job, place);
                }
            }
            Effect::Advertise { job, wanted: Wanted::Present(status) } => {
                self.catalog(job.index(), *status == Status::Passing);
                // What is not wanted any more is not told.
                if let Some(place) = self.withdrawals.remove(job) {
                    self.coming.remove(&place);
                }
            }
            Effect::KillRemains { .. }
            | Effect::Reply { .. }
            | Effect::Replanned { .. }
            | Effect::Heartbeat { .. }
            | Effect::Log(_)
            | Effect::Exit { .. } => {}
        }
        Ok(())
    }

    /// The embedded catalog answers every watch that sees the service (D2).
    fn catalog(&mut self, job: usize, passing: bool) {
        let plan = &self.scenario.plan;
        if plan.catalog != Catalog::Embedded {
            return;
        }
        self.passing[job] = passing;
        let Some(name) = plan.jobs[job].service.as_ref().map(|service| &service.name) else { return };
        for (nth, watch) in plan.watches.iter().enumerate().filter(|(_, watch)| watch.name == *name) {
            let services = plan.jobs.iter().zip(&self.passing).filter(|(_, passing)| **passing);
            let services = services.filter_map(|(job, _)| job.service.as_ref());
            let instances: Vec<Instance> = services
                .filter(|service| service.name == watch.name)
                .map(|service| Instance {
                    id: service.id.clone(),
                    address: service.address.to_string(),
                    port: service.port,
                })
                .collect();
            let input = Input::Instances { watch: WatchIx::at(nth), instances };
            self.serial += 1;
            // In the order in which they were caused.
            self.coming.insert((self.now, 0, self.serial), Coming::Input(input));
        }
    }

    fn spawn(&mut self, job: usize, run: RunId) {
        self.course.runs += 1;
        let scripts = &self.scenario.scripts[job].runs;
        let script = scripts[self.runs_of[job] % scripts.len()];
        self.runs_of[job] += 1;
        self.programs.insert(run, Program { script, started: false, exit: None, status: script.status });
        self.add(script.latency, Coming::Start(run));
    }

    fn signal(&mut self, run: RunId, signal: Signal) {
        let Some(program) = self.programs.get(&run) else { return };
        let ends = if signal == Signal::KILL {
            program.script.dies_after.map(|after| (after, ExitStatus::Signal(signal)))
        } else {
            match program.script.asked {
                Reaction::Ignores => None,
                Reaction::Ends(after, code) => {
                    Some((after, code.map_or(ExitStatus::Signal(signal), ExitStatus::Code)))
                }
            }
        };
        let Some((after, status)) = ends else { return };
        let sooner = program.exit.is_none_or(|(at, _, _)| self.now + after < at);
        if !sooner {
            return;
        }
        if let Some(place) = program.exit {
            self.coming.remove(&place);
        }
        let place = self.add(after, Coming::Exit(run));
        if let Some(program) = self.programs.get_mut(&run) {
            (program.exit, program.status) = (Some(place), status);
        }
    }

    fn end_all_programs(&mut self) {
        let runs: Vec<RunId> = self.programs.keys().copied().collect();
        for run in runs {
            if let Some(program) = self.programs.get_mut(&run) {
                program.script.dies_after = Some(Duration::ZERO);
            }
            self.signal(run, Signal::KILL);
        }
    }

    fn probe(&mut self, job: usize, check: usize, run: CheckRun) {
        let scripts = &self.scenario.scripts[job].checks[check];
        let nth = &mut self.checks_of[job][check];
        let script = scripts[*nth % scripts.len()];
        *nth += 1;
        let done = script.takes.map(|takes| self.add(takes, Coming::Check(run)));
        self.probes.insert(run, Probe { script, done, passes: script.passes });
    }

    fn cancel(&mut self, run: CheckRun) {
        let Some(probe) = self.probes.get(&run) else { return };
        let after = probe.script.cancel;
        if probe.done.is_some_and(|(at, _, _)| at <= self.now + after) {
            return;
        }
        if let Some(place) = probe.done {
            self.coming.remove(&place);
        }
        let place = self.add(after, Coming::Check(run));
        if let Some(probe) = self.probes.get_mut(&run) {
            (probe.done, probe.passes) = (Some(place), false);
        }
    }
}

/// The process of a run.
#[must_use]
pub fn pid_of(run: RunId) -> i32 {
    1_000 + i32::try_from(run.0).unwrap_or(i32::MAX - 1_000)
}
