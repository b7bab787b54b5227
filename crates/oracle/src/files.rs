//! D15: once everything is calm, each rendered file has the text of its inputs.
//!
//! [`run_seed`] tries many schedules: answers of watches, reloads, slow and failing renderings, tests that fail, hang or
//! cannot be run, a system that refuses to write, and a shutdown. At last everything works, so what the system has
//! refused must
//! be written then. The judge has its own model: what the watches have found, what is on disk, and what is in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::answer::{Answer, Instance};
use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::files::FileStatus;
use containerpilot_core::ids::{CheckRunId, RenderId, RunId, WatchIx};
use containerpilot_core::input::{CheckError, Remains, RenderError, RenderedText};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{
    Command, EventPattern, FileData, FileTest, Plan, RenderedFile, Repeat, RequiredSource, Requirement,
    Restarts, Signal, Trigger, Watch, WatchKind,
};
use containerpilot_core::rng::Rng;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, Input, Phase, Request, RequestId, Time};
use containerpilot_simulation::world::queue::Queue;

use crate::random::{plain_job, plain_plan};

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

impl RenderFate {
    /// False if the supervisor has no descriptor for the test: it has failed at once (H3).
    fn test_runs(&self) -> bool {
        self.test != (Some(0), false)
    }
}

/// Why the system refuses a file.
const FULL: &str = "full";
const NO_PIPE: &str = "no pipe";

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

fn watch(nth: usize) -> Watch {
    let kind = WatchKind::Service { tag: None, dc: None };
    Watch { name: format!("w{nth}"), interval: Duration::from_secs(1), kind }
}

fn file(rng: &mut Rng, nth: usize) -> RenderedFile {
    let test = FileTest {
        command: Command { program: "test".into(), arguments: Vec::new() },
        timeout: Duration::from_millis(500),
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

/// The text of a file: its template, and what its watches had found.
type Text = (Option<Arc<[u8]>>, FileData);

struct Rendering {
    file: RenderedFile,
    text: Text,
    fate: RenderFate,
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

enum Item {
    Incident(Incident),
    Rendered(RenderId),
    Installed(RenderId),
    Tested(CheckRunId),
    Started(RunId),
    Exited(RunId),
}

struct Judge<'a> {
    schedule: &'a FileSchedule,
    core: Core,
    /// The plan that the indices of effects refer to.
    plan: Arc<Plan>,
    now: Time,
    queue: Queue<Item>,
    answers: Vec<Option<Answer>>,
    disk: BTreeMap<String, Text>,
    renderings: BTreeMap<RenderId, Rendering>,
    tests: BTreeMap<CheckRunId, RenderId>,
    /// The names of files with a rendering, a test or an installation in progress.
    busy: BTreeSet<String>,
    /// What each file in the plan was last rendered with, and whether that succeeded.
    last: BTreeMap<String, (Text, bool)>,
    /// The files whose last renderings the system has refused, the reason, and when it did last, unless there was an
    /// answer or a reload since the rendering began. Only the first of several refusals for a reason is reported.
    refused: BTreeMap<String, (&'static str, Option<Time>)>,
    /// The files without an answer since their last rendering began.
    calm: BTreeSet<String>,
    /// The files that were rendered successfully since they are in the plan as they are.
    succeeded: BTreeSet<String>,
    seen: u64,
    renders: usize,
}

impl<'a> Judge<'a> {
    fn run(schedule: &'a FileSchedule) -> Result<usize, String> {
        let mut judge = Self {
            core: Core::new(schedule.plans[0].clone()),
            plan: Arc::new(schedule.plans[0].clone()),
            now: Time::ZERO,
            queue: Queue::new(None),
            answers: vec![None; WATCHES],
            disk: BTreeMap::new(),
            renderings: BTreeMap::new(),
            tests: BTreeMap::new(),
            busy: BTreeSet::new(),
            last: BTreeMap::new(),
            refused: BTreeMap::new(),
            calm: BTreeSet::new(),
            succeeded: BTreeSet::new(),
            seen: 0,
            renders: 0,
            schedule,
        };
        for (at, incident) in &schedule.incidents {
            judge.add(*at, Item::Incident(*incident));
        }
        judge.step(Input::Ready, &[])?;
        judge.go_on()?;
        judge.check_end()?;
        Ok(judge.renders)
    }

    fn add(&mut self, after: u64, item: Item) {
        self.queue.add(self.now + Duration::from_millis(after), item);
    }

    fn go_on(&mut self) -> Result<(), String> {
        let end = Time::ZERO + Duration::from_secs(3600);
        loop {
            let queued = self.queue.next();
            let deadline = self.core.next_deadline();
            let Some(next) = queued.into_iter().chain(deadline).min().filter(|at| *at < end) else {
                return Ok(());
            };
            self.now = self.now.max(next);
            match self.queue.pop_due(next) {
                Some(item) => self.take(item)?,
                None => self.step(Input::Tick, &[])?,
            }
        }
    }

    fn take(&mut self, item: Item) -> Result<(), String> {
        match item {
            Item::Incident(Incident::Stop) => self.step(Input::Signal(Signal::TERM), &[]),
            Item::Incident(Incident::Reload(nth)) => {
                // What has failed is tried again at once.
                self.calm.clear();
                self.refused.values_mut().for_each(|(_, at)| *at = None);
                let request = Request::Reload(Box::new(self.schedule.plans[nth].clone()));
                self.step(Input::Request { id: RequestId(1), request }, &[])
            }
            Item::Incident(Incident::Answer(nth, number)) => {
                let instance = Instance { id: "i".into(), port: number / 2, ..Instance::default() };
                // Some answers differ in metadata only, which is not an event of the watch.
                let meta = [("odd".to_owned(), (number % 2).to_string())].into();
                let answer = Answer::Instances(vec![Instance { meta, ..instance }]);
                if self.core.phase() == Phase::Running {
                    self.answers[nth] = Some(answer.clone());
                    self.calm.clear();
                    self.refused.values_mut().for_each(|(_, at)| *at = None);
                }
                self.step(Input::Watched { watch: WatchIx::at(nth), answer: Ok(answer) }, &[])
            }
            Item::Rendered(render) => self.rendered(render),
            Item::Installed(render) => self.installed(render),
            Item::Tested(check) => {
                let Some(render) = self.tests.remove(&check) else { return Ok(()) };
                let rendering = self.renderings.get(&render);
                let (name, passes) = match rendering {
                    Some(rendering) => (rendering.file.name.clone(), rendering.fate.test.1),
                    None => (String::new(), false),
                };
                let mut failed = rendering.is_some_and(|rendering| !rendering.replaced && !passes);
                let runs = rendering.is_none_or(|rendering| rendering.fate.test_runs());
                if failed && !runs {
                    failed = self.refuses(&name, NO_PIPE);
                }
                let expected = if failed { vec![(name, Code::Failed)] } else { Vec::new() };
                let result = match (passes, runs) {
                    (true, _) => Ok(()),
                    (false, true) => Err(CheckError::Failed("refused".to_owned())),
                    (false, false) => Err(CheckError::NotRun(NO_PIPE.to_owned())),
                };
                self.step(Input::CheckDone { check, result }, &expected)
            }
            Item::Started(run) => self.step(Input::Started { run, pid: 1 }, &[]),
            Item::Exited(run) => {
                let status = containerpilot_core::input::ExitStatus::Code(0);
                self.step(Input::Exited { run, status, remains: Remains::Nothing }, &[])
            }
        }
    }

    fn rendered(&mut self, render: RenderId) -> Result<(), String> {
        let Some(rendering) = self.renderings.get(&render) else { return Ok(()) };
        let same = self.disk.get(&rendering.file.to) == Some(&rendering.text);
        let name = rendering.file.name.clone();
        let (fate, replaced) = (rendering.fate, rendering.replaced);
        let result = match (fate.renders, fate.writes, same) {
            (false, ..) => Err(RenderError::Text("an error".to_owned())),
            (true, false, _) => Err(RenderError::System(FULL.to_owned())),
            (true, true, true) => Ok(RenderedText::Same),
            (true, true, false) => Ok(RenderedText::New),
        };
        if result != Ok(RenderedText::New) {
            self.renderings.remove(&render);
            if !replaced {
                self.finished(
                    &name,
                    match &result {
                        Ok(_) => End::Succeeded,
                        Err(RenderError::Text(_)) => End::Failed,
                        Err(RenderError::System(_)) => End::Refused,
                    },
                );
            }
        }
        let tells = !replaced && self.core.phase() == Phase::Running;
        let failed = match &result {
            Ok(_) => false,
            Err(RenderError::Text(_)) => tells,
            Err(RenderError::System(_)) => tells && self.refuses(&name, FULL),
        };
        let expected = if failed { vec![(name, Code::Failed)] } else { Vec::new() };
        self.step(Input::FileRendered { render, result }, &expected)
    }

    fn installed(&mut self, render: RenderId) -> Result<(), String> {
        let Some(rendering) = self.renderings.remove(&render) else { return Ok(()) };
        let Rendering { file, text, fate, replaced } = rendering;
        if fate.installs {
            self.disk.insert(file.to, text);
        }
        if !replaced {
            self.finished(&file.name, if fate.installs { End::Succeeded } else { End::Refused });
        }
        let code = if fate.installs { Code::Changed } else { Code::Failed };
        let tells = !replaced && self.core.phase() == Phase::Running;
        let tells = tells && (fate.installs || self.refuses(&file.name, FULL));
        let expected = if tells { vec![(file.name, code)] } else { Vec::new() };
        let result = if fate.installs { Ok(()) } else { Err(FULL.to_owned()) };
        self.step(Input::FileInstalled { render, result }, &expected)
    }

    /// The system refuses a file. Returns true if that is reported.
    fn refuses(&mut self, name: &str, why: &'static str) -> bool {
        let at = self.calm.contains(name).then_some(self.now);
        self.refused.insert(name.to_owned(), (why, at)).is_none_or(|(last, _)| last != why)
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

    /// Steps the core. `expected` are the events of files that this input causes; a test's timeout is found in the effects.
    fn step(&mut self, input: Input, expected: &[(String, Code)]) -> Result<(), String> {
        let mut effects = Vec::new();
        self.core.step(self.now, input, &mut effects);
        let mut expected = expected.to_vec();
        // What a reload gives up comes before the new plan.
        for effect in &effects {
            if let Effect::PlanReplaced { plan, moves } = effect {
                self.mark_replaced(plan, moves);
            }
        }
        for effect in effects {
            self.carry_out(effect, &mut expected)?;
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

    fn carry_out(&mut self, effect: Effect, expected: &mut Vec<(String, Code)>) -> Result<(), String> {
        match effect {
            Effect::RenderFile { file, render, data, .. } => {
                let file = self.plan.files[file.index()].clone();
                self.check_data(&file, &data)?;
                if !self.busy.insert(file.name.clone()) {
                    return Err(format!("{} is rendered twice at a time", file.name));
                }
                let fates = &self.schedule.fates;
                let fate = *fates.get(self.renders).or(fates.last()).ok_or("no fate")?;
                self.renders += 1;
                let text = (file.template.clone(), data);
                let is_same = self.last.get(&file.name).is_some_and(|(last, _)| *last == text);
                let since = self.refused.get(&file.name).and_then(|(_, at)| Some(self.now.since((*at)?)));
                if is_same && since.is_some_and(|since| since < Duration::from_secs(1)) {
                    return Err(format!("{} is tried again {since:?} after it was refused", file.name));
                }
                self.last.insert(file.name.clone(), (text.clone(), false));
                self.calm.insert(file.name.clone());
                self.renderings.insert(render, Rendering { file, text, fate, replaced: false });
                self.add(fate.takes, Item::Rendered(render));
            }
            Effect::TestFile { render, run, .. } => {
                let rendering = self.renderings.get(&render).ok_or("a test of nothing")?;
                let takes = rendering.fate.test.0;
                self.tests.insert(run, render);
                if let Some(takes) = takes {
                    self.add(takes, Item::Tested(run));
                }
            }
            Effect::CancelCheck { run } => {
                let render = self.tests.remove(&run).ok_or("a test is cancelled that does not run")?;
                let rendering = self.renderings.get(&render).ok_or("a test of nothing")?;
                // Only a timeout is a failure; a reload or a shutdown is not.
                if !rendering.replaced && self.core.phase() == Phase::Running {
                    if rendering.fate.test.0.is_some_and(|takes| takes < 500) {
                        return Err("a test is cancelled before its timeout".into());
                    }
                    expected.push((rendering.file.name.clone(), Code::Failed));
                }
            }
            Effect::InstallFile { render } => {
                let rendering = self.renderings.get(&render).ok_or("nothing to install")?;
                let same = self.disk.get(&rendering.file.to) == Some(&rendering.text);
                // A reload may have let another rendering write the same path meanwhile.
                if same && self.schedule.plans.len() == 1 {
                    return Err(format!("{} is written without need", rendering.file.name));
                }
                if rendering.file.test.is_some() && !rendering.fate.test.1 {
                    return Err(format!("{} is written although its test failed", rendering.file.name));
                }
                let takes = rendering.fate.takes;
                self.add(takes, Item::Installed(render));
            }
            Effect::DiscardFile { render } => {
                if let Some(rendering) = self.renderings.remove(&render)
                    && !rendering.replaced
                {
                    let is_refused =
                        self.refused.get(&rendering.file.name).is_some_and(|(why, _)| *why == NO_PIPE);
                    let end =
                        if is_refused && !rendering.fate.test_runs() { End::Refused } else { End::Failed };
                    self.finished(&rendering.file.name, end);
                }
            }
            Effect::PlanReplaced { plan, moves } => {
                self.mark_replaced(&plan, &moves);
                let is_kept = |name: &str| is_kept(&plan, &moves, name);
                self.busy.retain(|name| is_kept(name));
                self.last.retain(|name, _| is_kept(name));
                self.succeeded.retain(|name| is_kept(name));
                self.refused.retain(|name, _| is_kept(name));
                self.plan = plan;
            }
            Effect::Spawn { job, run, .. } => {
                let job = &self.plan.jobs[job.index()];
                if let Some(file) = job.name.strip_prefix("requires-")
                    && !self.succeeded.contains(file)
                {
                    return Err(format!("{} starts before its file is rendered", job.name));
                }
                let exits = job.name.starts_with("at-");
                self.add(0, Item::Started(run));
                if exits {
                    self.add(5, Item::Exited(run));
                }
            }
            Effect::Kill { run, .. } => self.add(1, Item::Exited(run)),
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
        if !self.renderings.is_empty() {
            return Err(format!("{} temporary files are left", self.renderings.len()));
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
            if *succeeded && self.schedule.plans.len() == 1 && self.disk.get(&file.to) != Some(&newest) {
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
