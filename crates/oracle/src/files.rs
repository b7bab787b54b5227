//! D15: once everything is calm, each rendered file has the text of its inputs.
//!
//! [`run_seed`] tries many schedules: answers of watches, reloads, slow and failing renderings, tests that fail, hang or
//! cannot be run, a system that refuses to write, and a shutdown. At last everything works, so what the system has
//! refused must be written then. The judge knows what the watches have found, and follows inputs and effects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use containerpilot_core::answer::{Answer, Instance};
use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::files::FileStatus;
use containerpilot_core::ids::{CheckRunId, FileIx, JobIx, RenderId, WatchIx};
use containerpilot_core::input::{CheckError, RenderError, RenderedText};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{
    Command, EventPattern, FileData, FileTest, Plan, RenderedFile, Repeat, RequiredSource, Requirement,
    Restarts, Signal, Trigger, Watch, WatchKind,
};
use containerpilot_core::rng::Rng;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, Input, Phase, Request, RequestId, Time};
use containerpilot_simulation::world::script::{
    CheckEnd, CheckScript, ProgramScript, Reaction, RenderEnd, RenderScript, Script,
};
use containerpilot_simulation::world::{Item, RenderedContent, World};

use crate::random::{plain_job, plain_plan};
use crate::twin::Pair;

/// What happens to one rendering.
#[derive(Clone, Copy, Debug)]
pub struct RenderFate {
    /// How long each step takes, in milliseconds.
    pub takes: u64,
    /// False if the template has an error.
    pub renders: bool,
    /// False if the system refuses to write the temporary file.
    pub writes: bool,
    /// The exit of the test: how long it takes, unless it hangs, and whether it passes.
    pub test: (Option<u64>, bool),
    /// False if the file cannot be replaced.
    pub installs: bool,
}

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
pub enum Incident {
    /// A watch has this answer.
    Answer(usize, u16),
    /// The plan with this index is loaded.
    Reload(usize),
    /// The supervisor is stopped.
    Stop,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct FileSchedule {
    /// The plans; the first one is that of the start.
    pub plans: Vec<Plan>,
    /// The fates of renderings, in their order; the last one is repeated.
    pub fates: Vec<RenderFate>,
    /// What happens, by milliseconds; in order.
    pub incidents: Vec<(u64, Incident)>,
}

const WATCHES: usize = 2;
/// The timeout of tests.
const TEST_TIMEOUT: Duration = Duration::from_millis(500);

fn watch(nth: usize) -> Watch {
    let kind = WatchKind::Service { tag: None, dc: None };
    Watch { name: format!("w{nth}"), interval: Duration::from_secs(1), kind }
}

fn file(rng: &mut Rng, nth: usize) -> RenderedFile {
    let test = FileTest {
        command: Command { program: "test".into(), arguments: Vec::new() },
        timeout: TEST_TIMEOUT,
    };
    let used = (0..WATCHES).filter(|_| rng.percent(60)).map(|nth| format!("w{nth}")).collect();
    RenderedFile {
        name: format!("f{nth}"),
        template: Some([b't', u8::try_from(rng.below(3)).unwrap_or(0)].as_slice().into()),
        template_name: "template".into(),
        to: format!("/f{nth}"),
        mode: 0o644,
        user: None,
        group: None,
        test: rng.percent(50).then_some(test),
        debounce: Duration::from_millis(rng.pick(&[0, 0, 50, 400])),
        watches: used,
        secrets: BTreeMap::new(),
    }
}

/// A plan in which `requires-N` requires a file and `at-N` runs at each of its events.
fn plan(rng: &mut Rng) -> Plan {
    let numbers: Vec<usize> = (0..3).filter(|_| rng.percent(70)).collect();
    let files: Vec<RenderedFile> = numbers.into_iter().map(|nth| file(rng, nth)).collect();
    let mut jobs = vec![plain_job("main")];
    jobs[0].restarts = Restarts::Unlimited;
    for file in &files {
        let mut job = plain_job(&format!("requires-{}", file.name));
        job.restarts = Restarts::Unlimited;
        job.requires =
            vec![Requirement { source: RequiredSource::File(file.name.clone()), bind: rng.percent(50) }];
        jobs.push(job);
        let mut job = plain_job(&format!("at-{}", file.name));
        let event = EventPattern {
            source: Source::File(file.name.clone()),
            code: rng.pick(&[Code::Changed, Code::Failed]),
        };
        job.when.trigger = Trigger::Event { event, repeat: Repeat::Each };
        jobs.push(job);
    }
    let watches = (0..WATCHES).map(watch).collect();
    Plan { watches, files, catalog: crate::random::consul(), ..plain_plan(jobs) }
}

/// The schedule of a seed.
#[must_use]
pub fn schedule(seed: u64) -> FileSchedule {
    let mut rng = Rng::from_seed(seed);
    let plans: Vec<Plan> = (0..=rng.below(3)).map(|_| plan(&mut rng)).collect();
    let fate = |rng: &mut Rng| RenderFate {
        takes: rng.pick(&[0, 0, 1, 30, 700]),
        renders: rng.percent(80),
        writes: rng.percent(85),
        test: (rng.percent(90).then(|| rng.pick(&[0, 10, 300])), rng.percent(75)),
        installs: rng.percent(90),
    };
    let good = RenderFate { takes: 1, renders: true, writes: true, test: (Some(0), true), installs: true };
    let fates = (0..=rng.below(20)).map(|_| fate(&mut rng)).chain([good]).collect();
    let mut now = 0;
    let mut incidents = Vec::new();
    for _ in 0..=rng.below(30) {
        now += rng.pick(&[0, 0, 1, 20, 200, 1_000]);
        incidents.push((
            now,
            match rng.below(20) {
                0 => Incident::Stop,
                1..4 => Incident::Reload(rng.index(plans.len())),
                _ => Incident::Answer(rng.index(WATCHES), u16::try_from(rng.below(4)).unwrap_or(0)),
            },
        ));
    }
    FileSchedule { plans, fates, incidents }
}

/// Runs the schedule of a seed. Returns how many renderings there were.
///
/// # Errors
/// How D15 was broken, and the smallest schedule that was found to do it.
pub fn run_seed(seed: u64) -> Result<usize, Box<(FileSchedule, String)>> {
    let mut schedule = schedule(seed);
    let mut broken = match Judge::run(&schedule) {
        Ok(renders) => return Ok(renders),
        Err(what) => what,
    };
    loop {
        let without = |nth: usize| {
            let mut smaller = schedule.clone();
            smaller.incidents.remove(nth);
            smaller
        };
        let mut smaller = (0..schedule.incidents.len()).map(without);
        match smaller.find_map(|one| Judge::run(&one).err().map(|what| (one, what))) {
            Some(found) => (schedule, broken) = found,
            None => return Err(Box::new((schedule, broken))),
        }
    }
}

/// What the fates of renderings make of the world.
struct Fates<'a> {
    schedule: &'a FileSchedule,
    /// How many renderings there were.
    renders: usize,
    /// The last one of each file.
    last: BTreeMap<String, RenderFate>,
}

impl Script for Fates<'_> {
    type Event = Incident;

    /// `at-N` exits by itself, the other jobs run until a signal.
    fn program(&mut self, plan: &Plan, job: JobIx, _now: Time) -> ProgramScript {
        let exits = plan.jobs[job.index()].name.starts_with("at-");
        ProgramScript {
            exits_after: exits.then_some(Duration::from_millis(5)),
            on_signal: Reaction::Exits(Duration::from_millis(1), None),
            dies_after: Some(Duration::from_millis(1)),
            ..ProgramScript::default()
        }
    }

    fn render(&mut self, plan: &Plan, file: FileIx, _now: Time) -> RenderScript {
        let fates = &self.schedule.fates;
        let fate = fates[self.renders.min(fates.len() - 1)];
        self.renders += 1;
        self.last.insert(plan.files[file.index()].name.clone(), fate);
        let end = match fate {
            RenderFate { renders: false, .. } => RenderEnd::Fails,
            RenderFate { writes: false, .. } => RenderEnd::Refused,
            _ => RenderEnd::Renders,
        };
        RenderScript { takes: Duration::from_millis(fate.takes), end, installs: fate.installs }
    }

    fn test(&mut self, plan: &Plan, file: FileIx, _now: Time) -> CheckScript {
        let (takes, passes) = self.last[&plan.files[file.index()].name].test;
        let end = match (takes, passes) {
            (_, true) => CheckEnd::Passes,
            // The supervisor has no descriptor for it (H3).
            (Some(0), false) => CheckEnd::NotRun,
            (_, false) => CheckEnd::Fails,
        };
        CheckScript { takes: takes.map(Duration::from_millis), end, ..CheckScript::default() }
    }
}

/// What the system refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Write,
    Test,
}

struct Rendering {
    file: RenderedFile,
    text: RenderedContent,
    /// When the test began.
    tested: Time,
    test: Option<Result<(), CheckError>>,
    /// True if a reload has replaced the file since.
    replaced: bool,
}

/// Returns true if a file of the old plan is in the new one, as it was.
fn is_kept(plan: &Plan, moves: &Moves, name: &str) -> bool {
    let place = plan.files.iter().position(|file| file.name == name);
    place.is_some_and(|place| moves.files.iter().flatten().any(|to| to.index() == place))
}

/// How a rendering has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    /// By the system.
    Refused,
}

struct Judge<'a> {
    schedule: &'a FileSchedule,
    core: Pair,
    world: World<Fates<'a>>,
    answers: Vec<Option<Answer>>,
    renderings: BTreeMap<RenderId, Rendering>,
    tests: BTreeMap<CheckRunId, RenderId>,
    /// The names of files with a rendering, a test or an installation in progress.
    busy: BTreeSet<String>,
    /// What each file in the plan was last rendered with, and whether that succeeded.
    last: BTreeMap<String, (RenderedContent, bool)>,
    /// The files whose last renderings the system has refused, what it refused, and when it did last, unless there was
    /// an answer or a reload since the rendering began. Only the first of several refusals of the same is reported.
    refused: BTreeMap<String, (Refused, Option<Time>)>,
    /// The files without an answer since their last rendering began.
    calm: BTreeSet<String>,
    /// The files that were rendered successfully since they are in the plan as they are.
    succeeded: BTreeSet<String>,
    seen: u64,
}

impl<'a> Judge<'a> {
    fn run(schedule: &'a FileSchedule) -> Result<usize, String> {
        let core = Core::new(schedule.plans[0].clone());
        let fates = Fates { schedule, renders: 0, last: BTreeMap::new() };
        let mut judge = Self {
            world: World::new(fates, core.shared_plan(), None),
            core: Pair::new(core, (schedule.incidents.len() + schedule.fates.len()) as u64),
            answers: vec![None; WATCHES],
            renderings: BTreeMap::new(),
            tests: BTreeMap::new(),
            busy: BTreeSet::new(),
            last: BTreeMap::new(),
            refused: BTreeMap::new(),
            calm: BTreeSet::new(),
            succeeded: BTreeSet::new(),
            seen: 0,
            schedule,
        };
        for (at, incident) in &schedule.incidents {
            judge.world.schedule_event(Duration::from_millis(*at), *incident);
        }
        judge.step(Input::Ready)?;
        let end = Time::ZERO + Duration::from_secs(3600);
        while let Some(item) = judge.world.advance(judge.core.next_deadline())
            && judge.world.now() < end
        {
            let input = match item {
                Item::Input(input) => input,
                Item::Script(incident) => judge.incident(incident),
                Item::Nothing => Input::Tick,
            };
            judge.step(input)?;
        }
        judge.check_end()?;
        Ok(judge.world.script.renders)
    }

    fn incident(&mut self, incident: Incident) -> Input {
        match incident {
            Incident::Stop => Input::Signal(Signal::TERM),
            Incident::Reload(nth) => {
                self.disturb();
                let request = Request::Reload(Box::new(self.schedule.plans[nth].clone()));
                Input::Request { id: RequestId(1), request }
            }
            Incident::Answer(nth, number) => {
                let instance = Instance { id: "i".into(), port: number / 2, ..Instance::default() };
                // Some answers differ in metadata only, which is not an event of the watch.
                let meta = [("odd".to_owned(), (number % 2).to_string())].into();
                let answer = Answer::Instances(vec![Instance { meta, ..instance }]);
                if self.core.phase() == Phase::Running {
                    self.answers[nth] = Some(answer.clone());
                    self.disturb();
                }
                Input::Watched { watch: WatchIx::at(nth), answer: Ok(answer) }
            }
        }
    }

    /// What has failed is tried again at once.
    fn disturb(&mut self) {
        self.calm.clear();
        self.refused.values_mut().for_each(|(_, at)| *at = None);
    }

    /// The event of a file that an input causes; a test's timeout is found in the effects.
    fn expect(&mut self, input: &Input) -> Option<(String, Code)> {
        let is_running = self.core.phase() == Phase::Running;
        match input {
            Input::FileRendered { render, result } => {
                let (name, replaced) = self.rendering(*render)?;
                let end = match result {
                    Ok(RenderedText::New) => return None,
                    Ok(RenderedText::Same) => End::Succeeded,
                    Err(RenderError::Text(_)) => End::Failed,
                    Err(RenderError::System(_)) => End::Refused,
                };
                self.renderings.remove(render);
                if !replaced {
                    self.finished(&name, end);
                }
                let fails = !replaced
                    && is_running
                    && match end {
                        End::Succeeded => false,
                        End::Failed => true,
                        End::Refused => self.refuses(&name, Refused::Write),
                    };
                fails.then_some((name, Code::Failed))
            }
            Input::FileInstalled { render, result } => {
                let (name, replaced) = self.rendering(*render)?;
                self.renderings.remove(render);
                if !replaced {
                    self.finished(&name, if result.is_ok() { End::Succeeded } else { End::Refused });
                }
                let code = if result.is_ok() { Code::Changed } else { Code::Failed };
                let tells = !replaced && is_running;
                let tells = tells && (result.is_ok() || self.refuses(&name, Refused::Write));
                tells.then_some((name, code))
            }
            Input::CheckDone { check, result } => {
                let render = self.tests.remove(check)?;
                let (name, replaced) = self.rendering(render)?;
                let fails = !replaced
                    && match result {
                        Ok(()) => false,
                        Err(CheckError::Failed(_)) => true,
                        Err(CheckError::NotRun(_)) => self.refuses(&name, Refused::Test),
                    };
                self.renderings.get_mut(&render)?.test = Some(result.clone());
                fails.then_some((name, Code::Failed))
            }
            _ => None,
        }
    }

    /// The file of a rendering, and whether a reload has replaced it.
    fn rendering(&self, render: RenderId) -> Option<(String, bool)> {
        self.renderings.get(&render).map(|rendering| (rendering.file.name.clone(), rendering.replaced))
    }

    /// The system refuses something. Returns true if that is reported.
    fn refuses(&mut self, name: &str, what: Refused) -> bool {
        let at = self.calm.contains(name).then_some(self.world.now());
        self.refused.insert(name.to_owned(), (what, at)).is_none_or(|(last, _)| last != what)
    }

    /// What was in progress for a file has come to its end.
    fn finished(&mut self, name: &str, end: End) {
        self.busy.remove(name);
        if let Some(last) = self.last.get_mut(name) {
            last.1 = end == End::Succeeded;
        }
        if end == End::Succeeded {
            self.succeeded.insert(name.to_owned());
        }
        if end != End::Refused {
            self.refused.remove(name);
        }
    }

    fn step(&mut self, input: Input) -> Result<(), String> {
        let mut effects = Vec::new();
        let mut expected: Vec<_> = self.expect(&input).into_iter().collect();
        self.core.step(self.world.now(), input, &mut effects)?;
        // What a reload gives up comes before the new plan.
        for effect in &effects {
            if let Effect::PlanReplaced { plan, moves } = effect {
                self.mark_replaced(plan, moves);
            }
        }
        for effect in &effects {
            self.judge(effect, &mut expected)?;
            self.world.carry_out(effect);
        }
        let events = self.core.journal().events().filter(|event| event.id.0 > self.seen);
        let events: Vec<_> = events.map(|event| (event.id.0, event.origin, event.code)).collect();
        self.seen = events.last().map_or(self.seen, |(id, ..)| *id);
        let files = events.into_iter().filter_map(|(_, origin, code)| match origin {
            Origin::File(_) | Origin::Removed(_) => Some((self.core.origin_name(origin), code)),
            _ => None,
        });
        let mut sent: Vec<(String, Code)> =
            files.filter_map(|(name, code)| Some((name.strip_prefix("file.")?.to_owned(), code))).collect();
        sent.sort();
        expected.sort();
        if sent != expected {
            return Err(format!("the events {sent:?} were sent, not {expected:?}"));
        }
        Ok(())
    }

    fn judge(&mut self, effect: &Effect, expected: &mut Vec<(String, Code)>) -> Result<(), String> {
        let now = self.world.now();
        match effect {
            Effect::RenderFile { file, render, data, .. } => {
                let file = self.world.plan().files[file.index()].clone();
                self.check_data(&file, data)?;
                if !self.busy.insert(file.name.clone()) {
                    return Err(format!("{} is rendered twice at a time", file.name));
                }
                let text = (file.template.clone(), data.clone());
                let is_same = self.last.get(&file.name).is_some_and(|(last, _)| *last == text);
                let since = self.refused.get(&file.name).and_then(|(_, at)| Some(now.since((*at)?)));
                if is_same && since.is_some_and(|since| since < Duration::from_secs(1)) {
                    return Err(format!("{} is tried again {since:?} after it was refused", file.name));
                }
                self.last.insert(file.name.clone(), (text.clone(), false));
                self.calm.insert(file.name.clone());
                let rendering = Rendering { file, text, tested: now, test: None, replaced: false };
                self.renderings.insert(*render, rendering);
            }
            Effect::TestFile { render, run, .. } => {
                self.renderings.get_mut(render).ok_or("a test of nothing")?.tested = now;
                self.tests.insert(*run, *render);
            }
            Effect::CancelCheck { run } => {
                let render = self.tests.remove(run).ok_or("a test is cancelled that does not run")?;
                let rendering = self.renderings.get(&render).ok_or("a test of nothing")?;
                // Only a timeout is a failure; a reload or a shutdown is not.
                if !rendering.replaced && self.core.phase() == Phase::Running {
                    if now.since(rendering.tested) < TEST_TIMEOUT {
                        return Err("a test is cancelled before its timeout".into());
                    }
                    expected.push((rendering.file.name.clone(), Code::Failed));
                }
            }
            Effect::InstallFile { render } => {
                let rendering = self.renderings.get(render).ok_or("nothing to install")?;
                let same = self.world.text_of(&rendering.file.to) == Some(&rendering.text);
                // A reload may have let another rendering write the same path meanwhile.
                if same && self.schedule.plans.len() == 1 {
                    return Err(format!("{} is written without need", rendering.file.name));
                }
                if rendering.file.test.is_some() && rendering.test != Some(Ok(())) {
                    return Err(format!("{} is written although its test did not pass", rendering.file.name));
                }
            }
            Effect::DiscardFile { render } => {
                if let Some(rendering) = self.renderings.remove(render)
                    && !rendering.replaced
                {
                    let is_refused = matches!(rendering.test, Some(Err(CheckError::NotRun(_))));
                    self.finished(&rendering.file.name, if is_refused { End::Refused } else { End::Failed });
                }
            }
            Effect::PlanReplaced { plan, moves } => {
                self.mark_replaced(plan, moves);
                let is_kept = |name: &str| is_kept(plan, moves, name);
                self.busy.retain(|name| is_kept(name));
                self.last.retain(|name, _| is_kept(name));
                self.succeeded.retain(|name| is_kept(name));
                self.refused.retain(|name, _| is_kept(name));
            }
            Effect::Spawn { job, .. } => {
                let job = &self.world.plan().jobs[job.index()];
                if let Some(file) = job.name.strip_prefix("requires-")
                    && !self.succeeded.contains(file)
                {
                    return Err(format!("{} starts before its file is rendered", job.name));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn mark_replaced(&mut self, plan: &Plan, moves: &Moves) {
        for rendering in self.renderings.values_mut() {
            rendering.replaced |= !is_kept(plan, moves, &rendering.file.name);
        }
    }

    fn check_data(&self, file: &RenderedFile, data: &FileData) -> Result<(), String> {
        let newest = self.newest(file).ok_or_else(|| format!("{} is rendered too early", file.name))?;
        if newest == *data {
            return Ok(());
        }
        Err(format!("{} is rendered with {data:?}, not {newest:?}", file.name))
    }

    fn newest(&self, file: &RenderedFile) -> Option<FileData> {
        let number = |name: &str| name.strip_prefix('w')?.parse::<usize>().ok();
        file.watches.iter().map(|name| Some((name.clone(), self.answers[number(name)?].clone()?))).collect()
    }

    /// Everything is calm.
    fn check_end(&self) -> Result<(), String> {
        if self.core.phase() != Phase::Running {
            return Ok(());
        }
        if self.world.temporary_files() > 0 {
            return Err(format!("{} temporary files are left", self.world.temporary_files()));
        }
        for (file, overview) in self.core.plan().files.iter().zip(self.core.overview().files) {
            let name = &file.name;
            let Some(newest) = self.newest(file) else {
                if overview.status != FileStatus::Waiting && overview.status != FileStatus::Failed {
                    return Err(format!("{name} does not wait for its watch: {:?}", overview.status));
                }
                continue;
            };
            let newest = (file.template.clone(), newest);
            let (text, succeeded) =
                self.last.get(name).ok_or_else(|| format!("{name} was never rendered"))?;
            if *text != newest {
                return Err(format!("{name} was last rendered with {text:?}, not {newest:?}"));
            }
            let status = if *succeeded { FileStatus::Rendered } else { FileStatus::Failed };
            if overview.status != status {
                return Err(format!("{name} is shown as {:?}, not {status:?}", overview.status));
            }
            if *succeeded && self.schedule.plans.len() == 1 && self.world.text_of(&file.to) != Some(&newest) {
                return Err(format!("{name} does not have the text of its inputs"));
            }
            let requirer = format!("requires-{name}");
            let overview = self.core.overview();
            let job = overview.jobs.iter().find(|job| job.name == requirer);
            let runs = job.is_some_and(|job| job.status.state == containerpilot_core::State::Running);
            // A job that runs goes on when a reload changes the file that it requires.
            let rendered = self.succeeded.contains(name);
            if (rendered && !runs) || (runs && !rendered && self.schedule.plans.len() == 1) {
                return Err(format!("{requirer} runs: {runs}; {name} rendered: {rendered}"));
            }
        }
        Ok(())
    }
}
