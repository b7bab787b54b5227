//! The world: it carries out effects by the script, and turns them into inputs.
//!
//! Time is virtual. The next thing to happen is the nearest input or the core's own deadline; among inputs of one
//! instant rng decides. A world that is late calls the core some time after its deadlines, and one that stands still
//! does not call it at all for a while. When nothing is left to happen, or its patience is at an end, the world asks the
//! supervisor to stop, and that must come to an end.

mod programs;
mod shelf;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{CheckRunId, JobIx, RunId, WatchIx};
use containerpilot_core::input::Input;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Catalog, Signal};
use containerpilot_core::request::{Request, RequestId};
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::{Core, Phase, Time};

use self::programs::{Probe, Program};
use self::shelf::Shelf;
use crate::invariants::{Violation, Witness};
use crate::rng::mix;
use crate::scenario::{Happening, Scenario, Version};

/// What came of a scenario that broke no rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// How often the core was called.
    pub steps: u32,
    /// How many programs were started.
    pub runs: u64,
    /// How many events were sent.
    pub events: u64,
    /// How often another plan was put in force.
    pub reloads: u64,
}

/// The longest way to an end once the world has asked for it.
const STEPS_TO_THE_END: u32 = 3_000;

/// When something happens, and its place among what happens then.
type Place = (Time, u64, u64);

/// Something that is going to happen.
enum Coming {
    Input(Input),
    Start(RunId),
    Exit(RunId),
    Check(CheckRunId),
    /// Something from outside, by its place in the script.
    Happening(usize),
}

struct World<'a> {
    scenario: &'a Scenario,
    /// The version that is in force.
    version: usize,
    now: Time,
    coming: BTreeMap<Place, Coming>,
    serial: u64,
    programs: BTreeMap<RunId, Program>,
    probes: BTreeMap<CheckRunId, Probe>,
    withdrawals: BTreeMap<JobIx, Place>,
    runs_of: Vec<usize>,
    checks_of: Vec<Vec<usize>>,
    shelves: Vec<Shelf>,
    /// The shelves of jobs that are no more.
    retired: Vec<Shelf>,
    requests: u64,
    course: Course,
}

/// Plays a scenario to its end, with the witness looking on. What happens is written down if somebody wants it.
pub fn run(scenario: &Scenario, mut timeline: Option<&mut String>) -> Result<Course, Violation> {
    let mut world = World::new(scenario);
    let mut core = Core::new(scenario.versions[0].plan.clone());
    let mut witness = Witness::new(scenario);
    let mut effects = Vec::new();
    let mut asked = 0;
    let mut last_asked = 0;
    while core.phase() != Phase::Exited {
        let mut next = world.next(core.next_deadline());
        while let Some(until) = next.as_ref().map(Next::at)
            && world.let_agents_work(until, &witness)?
        {
            next = world.next(core.next_deadline());
        }
        let tired = if asked == 0 { scenario.patience } else { last_asked + STEPS_TO_THE_END };
        let input = match next {
            Some(next) if world.course.steps < tired => world.take(next, &core, &mut witness),
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
                    3 if scenario.versions[0].plan.pass_signals => {
                        world.end_all_programs();
                        Input::Tick
                    }
                    _ => return Err(witness.says("S4", "it does not leave though it was asked to")),
                }
            }
        };
        world.course.steps += 1;
        effects.clear();
        let told = timeline.is_some().then(|| format!("{input:?}"));
        let judged = step(&mut core, world.told(), &input, &mut effects, &mut witness);
        if let (Some(timeline), Some(told)) = (timeline.as_deref_mut(), told) {
            write_down(timeline, world.now, &told, &effects, &core);
        }
        judged?;
        world.follow_up(&input);
        for effect in &effects {
            world.carry_out(effect, &witness)?;
        }
    }
    witness.at_the_end(&core)?;
    world.agents_leave(&witness)?;
    world.course.events = witness.events();
    Ok(world.course)
}

/// One step of the core, in its parts.
fn step(
    core: &mut Core,
    now: Time,
    input: &Input,
    effects: &mut Vec<Effect>,
    witness: &mut Witness,
) -> Result<(), Violation> {
    witness.before(now, core);
    core.begin(now, input.clone(), effects);
    let mut judged = witness.part(Some(input), effects, core);
    while core.advance(effects) {
        if judged.is_ok() {
            judged = witness.part(None, effects, core);
        }
    }
    judged?;
    witness.after(input, effects, core)
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
            status.stop_stage,
            status.run.map(|run| run.0),
            status.healthy,
            status.restarts,
            status.desired
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

impl Next {
    const fn at(&self) -> Time {
        match self {
            Self::Coming((at, ..)) | Self::Deadline(at) => *at,
        }
    }
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let Version { plan, scripts } = &scenario.versions[0];
        let embedded = plan.catalog == Catalog::Embedded;
        let mut world = Self {
            scenario,
            version: 0,
            now: Time::ZERO,
            coming: BTreeMap::new(),
            serial: 0,
            programs: BTreeMap::new(),
            probes: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            runs_of: vec![0; plan.jobs.len()],
            checks_of: scripts.iter().map(|script| vec![0; script.checks.len()]).collect(),
            shelves: plan.jobs.iter().zip(scripts).map(|(job, it)| Shelf::new(embedded, job, it)).collect(),
            retired: Vec::new(),
            requests: 0,
            course: Course::default(),
        };
        world.add(scenario.ready_at, Coming::Input(Input::Ready));
        for (nth, (at, _)) in scenario.happenings.iter().enumerate() {
            world.add(*at, Coming::Happening(nth));
        }
        world
    }

    /// The version that is in force.
    fn version(&self) -> &'a Version {
        &self.scenario.versions[self.version]
    }

    /// What the core is told the time is. A clock that was read a moment too early must do no harm.
    fn told(&self) -> Time {
        let rng = mix(self.scenario.order ^ u64::from(self.course.steps));
        if self.scenario.late && rng.is_multiple_of(16) {
            return Time::from_nanos(self.now.as_nanos().saturating_sub(rng % 50_000_000));
        }
        self.now
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
                // Up to 20 ms, and by rng nothing.
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

    fn take(&mut self, next: Next, core: &Core, witness: &mut Witness) -> Input {
        self.now = self.now.max(next.at());
        match next {
            Next::Deadline(_) => Input::Tick,
            Next::Coming(place) => match self.coming.remove(&place) {
                Some(Coming::Input(input)) => input,
                Some(Coming::Start(run)) => self.start(run),
                Some(Coming::Exit(run)) => self.exit(run),
                Some(Coming::Check(check)) => self.check(check),
                Some(Coming::Happening(nth)) => self.happen(nth, core, witness),
                None => Input::Tick,
            },
        }
    }

    /// Something comes from outside.
    fn happen(&mut self, nth: usize, core: &Core, witness: &mut Witness) -> Input {
        match &self.scenario.happenings[nth].1 {
            // R1: it asks for a reload, unless a job waits for it.
            Happening::Signal(signal) if reloads_at(core.plan(), *signal) => self.reload(nth),
            Happening::Signal(signal) => Input::Signal(*signal),
            Happening::Request(command) => {
                self.requests += 1;
                Input::Request { id: RequestId(self.requests), request: command.clone() }
            }
            Happening::Reload(version) => self.reload(*version),
            Happening::Instances(watch, instances) => {
                let watches = self.version().plan.watches.len();
                match watch.checked_rem(watches) {
                    Some(watch) => {
                        Input::Instances { watch: WatchIx::at(watch), instances: instances.clone() }
                    }
                    None => Input::Tick,
                }
            }
            Happening::Nothing => Input::Tick,
            Happening::Standstill(time) => {
                self.now = self.now + *time;
                witness.is_late_from_now_on();
                self.agents_stand_still();
                Input::Tick
            }
        }
    }

    fn reload(&mut self, version: usize) -> Input {
        self.requests += 1;
        let version = &self.scenario.versions[version % self.scenario.versions.len()];
        let command = Request::Reload(Box::new(version.plan.clone()));
        Input::Request { id: RequestId(self.requests), request: command }
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
            Effect::Advertise { job, desired } => self.advertise(*job, *desired),
            Effect::Heartbeat { job } => self.heartbeat(*job),
            Effect::PlanReplaced { moves, .. } => self.replan(moves, witness),
            Effect::KillOrphans { .. } | Effect::Reply { .. } | Effect::Log(_) | Effect::Exit { .. } => {}
        }
        Ok(())
    }

    /// Another plan is in force: whatever is kept by place moves, and so does what is under way.
    fn replan(&mut self, moves: &Moves, witness: &Witness) {
        self.course.reloads += 1;
        self.version = witness.version();
        let Version { plan, scripts } = self.version();
        let mut runs_of = vec![0; plan.jobs.len()];
        let mut checks_of: Vec<Vec<usize>> = scripts.iter().map(|it| vec![0; it.checks.len()]).collect();
        for (old, to) in moves.jobs.iter().enumerate() {
            let Some(to) = to.map(JobIx::index) else { continue };
            runs_of[to] = self.runs_of[old];
            for (new, old) in checks_of[to].iter_mut().zip(&self.checks_of[old]) {
                *new = *old;
            }
        }
        (self.runs_of, self.checks_of) = (runs_of, checks_of);
        let kept = |(job, place): (JobIx, Place)| Some((moves.job(job)?, place));
        self.withdrawals = std::mem::take(&mut self.withdrawals).into_iter().filter_map(kept).collect();
        let moved = |(place, coming): (Place, Coming)| match coming {
            Coming::Input(input) => Some((place, Coming::Input(moves.input(input)?))),
            other => Some((place, other)),
        };
        self.coming = std::mem::take(&mut self.coming).into_iter().filter_map(moved).collect();
        self.move_shelves(moves);
    }
}

/// The process of a run.
#[must_use]
pub fn pid_of(run: RunId) -> i32 {
    1_000 + i32::try_from(run.0).unwrap_or(i32::MAX - 1_000)
}
