//! Sees what the world does from the steps of a core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, EventId, JobIx, RenderId, RunId};
use containerpilot_core::input::{CheckError, Input, Remains, RenderedText};
use containerpilot_core::plan::{Plan, Ready, Signal, Target, Trigger};
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, Notice, Outcome, Phase, Request, State, Time};

use super::{Observe, RecordedCheck, RecordedFile, RecordedRun, RecordedWorld};
use crate::scenario::{Action, CheckAnswer, JobAction};

/// A clock that differs by more than this was set.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(1500);

/// Sees what the world does.
#[derive(Debug, Default)]
pub struct Observer {
    world: RecordedWorld,
    has_seen: bool,
    /// True if what happens at one instant is told apart by nanoseconds.
    is_distinct: bool,
    /// The time of the last input, and by how much what it causes is later.
    last: (Time, Duration),
    /// The plan that effects refer to.
    plan: Option<Arc<Plan>>,
    /// The job of each run, and its index there.
    runs: BTreeMap<RunId, (String, usize)>,
    checks: BTreeMap<CheckRunId, CheckPlace>,
    renderings: BTreeMap<RenderId, (String, Time)>,
    /// The check that this step is about.
    done: Option<CheckPlace>,
    last_event: Option<EventId>,
    /// The last reading of the system clock, and when.
    clock: Option<(Time, Duration)>,
    /// How many reloads of actions are under way (W19).
    own_reloads: usize,
}

/// Where a check is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CheckPlace {
    /// Of a job without a program.
    Job(String, usize),
    Run(String, usize, usize),
    Drain(String, usize),
    File(String, usize),
}

impl Observer {
    /// Keeps the order of what happens at one instant: each is a nanosecond later than the one before. A simulation has
    /// an order of its own otherwise, which is usually the same.
    #[must_use]
    pub fn distinct() -> Self {
        Self { is_distinct: true, ..Self::default() }
    }

    /// The time of what happens in this step.
    fn time(&mut self, at: Time, input: &Input) -> Time {
        let (last, later) = &mut self.last;
        match input {
            _ if *last != at => (*last, *later) = (at, Duration::ZERO),
            Input::Tick => {}
            _ => *later += Duration::from_nanos(u64::from(self.is_distinct)),
        }
        at + *later
    }

    /// When the supervisor was ready, so far.
    #[must_use]
    pub const fn beginning(&self) -> Time {
        self.world.begin
    }

    /// What it has seen.
    #[must_use]
    pub fn world(mut self) -> RecordedWorld {
        self.world.left_out.sort();
        self.world.left_out.dedup();
        self.world
    }

    fn left_out(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.world.left_out.contains(&what) {
            self.world.left_out.push(what);
        }
    }

    fn run(&mut self, run: RunId) -> Option<&mut RecordedRun> {
        let (job, nth) = self.runs.get(&run)?;
        self.world.jobs.get_mut(job)?.runs.get_mut(*nth)
    }

    fn check(&mut self, place: &CheckPlace) -> Option<&mut RecordedCheck> {
        match place {
            CheckPlace::Job(job, nth) => self.world.jobs.get_mut(job)?.checks.get_mut(*nth),
            CheckPlace::Run(job, run, nth) => {
                self.world.jobs.get_mut(job)?.runs.get_mut(*run)?.checks.get_mut(*nth)
            }
            CheckPlace::Drain(job, run) => self.world.jobs.get_mut(job)?.runs.get_mut(*run)?.drain.as_mut(),
            CheckPlace::File(file, nth) => self.world.files.get_mut(file)?.tests.get_mut(*nth),
        }
    }

    /// The first step.
    fn begin(&mut self, core: &Core, at: Time) {
        self.has_seen = true;
        self.world.begin = at;
        self.world.has_begin = core.phase() == Phase::Starting;
        self.plan = Some(core.shared_plan());
        self.last_event = last_event(core);
        self.list_names(core);
        if self.world.has_begin {
            return;
        }
        self.clock = Some((at, core.unix_now()));
        self.world.clock = Some(core.unix_now()).filter(|unix| !unix.is_zero());
        if core.maintenance() {
            self.world.actions.push((at, Action::Maintenance(true)));
        }
        for (nth, job) in core.plan().jobs.iter().enumerate() {
            let status = core.status(JobIx::at(nth));
            let seen = self.world.jobs.entry(job.name.clone()).or_default();
            seen.before = Some(status.word());
            let has_run = match status.state {
                State::Running | State::Starting => true,
                State::Ended(_) => status.last_exit.is_some(),
                _ => false,
            };
            if job.exec.is_none() || !has_run {
                continue;
            }
            let is_over = matches!(status.state, State::Ended(_));
            if status.state == State::Ended(Outcome::Stopped) {
                self.world.actions.push((at, Action::Job(JobAction::Stop, job.name.clone())));
                // The start that is stopped at once is a run, too.
                let starts =
                    matches!(&job.when.trigger, Trigger::Event { event, .. } if event.code == Code::Startup);
                if starts && job.requires.is_empty() && job.exec.is_some() {
                    let run = RecordedRun { started: Some(at), ..new_run(core.plan(), JobIx::at(nth), at) };
                    seen.runs.push(run);
                }
                continue;
            }
            let mut run = new_run(core.plan(), JobIx::at(nth), at);
            run.started = Some(at).filter(|_| status.state != State::Starting);
            run.ready = Some(at).filter(|_| run.says_ready);
            run.exited = status.last_exit.filter(|_| is_over).map(|exit| (at, exit));
            seen.runs.push(run);
            if let Some(run) = status.run {
                self.runs.insert(run, (job.name.clone(), 0));
            }
        }
        let overview = core.overview();
        for watch in overview.watches {
            if let Some(answer) = watch.answer {
                self.world.watches.insert(watch.name, vec![(at, answer)]);
            }
        }
        for lock in overview.locks {
            if lock.fencing.is_some()
                && let Some(changes) = self.world.locks.get_mut(&lock.name)
            {
                changes.push((at, true));
            }
        }
    }

    fn list_names(&mut self, core: &Core) {
        for watch in &core.plan().watches {
            self.world.watches.entry(watch.name.clone()).or_default();
        }
        if core.plan().has_shared_locks() {
            for lock in &core.plan().locks {
                self.world.locks.entry(lock.name.clone()).or_default();
            }
        }
    }

    fn request(&mut self, core: &Core, at: Time, request: &Request) {
        let name = |job: &JobIx| core.plan().jobs.get(job.index()).map(|job| job.name.clone());
        let one = |action: JobAction, job: &JobIx| name(job).map(|name| Action::Job(action, name));
        let action = match request {
            Request::Maintenance(on) => Some(Action::Maintenance(*on)),
            Request::Start(job) => one(JobAction::Start, job),
            Request::Stop(job) => one(JobAction::Stop, job),
            Request::Restart(job) => one(JobAction::Restart, job),
            Request::Signal(job, signal) => one(JobAction::Send(*signal), job),
            Request::RollingRestart(jobs) => {
                group(core.plan(), jobs).map(|name| Action::Job(JobAction::RollingRestart, name))
            }
            Request::Scale(job, count) => Some(Action::Scale(job.clone(), *count)),
            Request::Several(all) => {
                all.iter().for_each(|request| self.request(core, at, request));
                return;
            }
            Request::SetVariables(variables) => {
                let each =
                    variables.iter().map(|(name, value)| Action::PutVariable(name.clone(), value.clone()));
                self.world.actions.extend(each.map(|action| (at, action)));
                return;
            }
            Request::Reload(plan) => {
                let is_own = self.own_reloads > 0;
                self.own_reloads = self.own_reloads.saturating_sub(1);
                let is_same = *as_configured(core.plan()) == **plan;
                match (is_same, is_own, reloads_at(core.plan(), Signal::HUP)) {
                    // The simulation does that by itself.
                    (true, true, _) => return,
                    (true, false, true) => Some(Action::Signal(Signal::HUP)),
                    _ => Some(Action::Reload(String::new(), plan.clone())),
                }
            }
        };
        match action {
            Some(action) => self.world.actions.push((at, action)),
            None => self.left_out("a request for jobs that the configuration did not have"),
        }
    }

    fn notified(&mut self, at: Time, run: RunId, notice: &Notice) {
        let Some((job, _)) = self.runs.get(&run).cloned() else { return };
        let Some(run) = self.run(run) else { return };
        match notice {
            Notice::Ready => {
                run.ready.get_or_insert(at);
                run.alive = Some(at);
            }
            Notice::Watchdog => run.alive = Some(at),
            Notice::Stopping | Notice::Reloading => {
                self.left_out(format!("{job} has said that it reloads, or that it stops"));
            }
            Notice::Status(_) => {}
        }
    }

    fn exited(&mut self, at: Time, input: &Input) {
        let Input::Exited { run, status, remains } = input else { return };
        let Some(seen) = self.run(*run) else { return };
        seen.exited = Some((at, *status));
        seen.has_rest = matches!(remains, Remains::Group(_));
    }

    fn clock(&mut self, at: Time, unix: Duration) {
        let expected = self.clock.map(|(then, unix)| unix + at.since(then));
        self.clock = Some((at, unix));
        if expected.is_some_and(|expected| expected.abs_diff(unix) > CLOCK_TOLERANCE) {
            self.world.actions.push((at, Action::Clock(unix)));
        }
    }

    fn spawned(&mut self, at: Time, plan: &Plan, job: JobIx, run: RunId) {
        let Some(planned) = plan.jobs.get(job.index()) else { return };
        let runs = &mut self.world.jobs.entry(planned.name.clone()).or_default().runs;
        self.runs.insert(run, (planned.name.clone(), runs.len()));
        runs.push(new_run(plan, job, at));
    }

    fn check_begins(
        &mut self,
        at: Time,
        place: impl Fn(&mut RecordedWorld, RecordedCheck) -> Option<CheckPlace>,
        name: &str,
        run: CheckRunId,
    ) {
        let check = RecordedCheck {
            name: name.to_owned(),
            started: at,
            done: None,
            answer: CheckAnswer::Pass,
            matters: false,
            is_canceled: false,
        };
        if let Some(place) = place(&mut self.world, check) {
            self.checks.insert(run, place);
        }
    }

    fn effect(&mut self, core: &Core, at: Time, effect: &Effect) {
        let Some(plan) = self.plan.clone() else { return };
        match effect {
            Effect::Spawn { job, run, .. } => self.spawned(at, &plan, *job, *run),
            Effect::CancelStart { run } => {
                if let Some(seen) = self.run(*run) {
                    seen.canceled = true;
                }
            }
            Effect::Abandon { run } => {
                if let Some((job, _)) = self.runs.remove(run) {
                    self.left_out(format!("SIGKILL did not end a process of {job}"));
                }
            }
            Effect::Kill { run, signal, reason, .. } => {
                if let Some(seen) = self.run(*run).filter(|seen| seen.exited.is_none()) {
                    seen.signals.push((at, *signal, reason.ends_run() || *signal == Signal::KILL));
                }
            }
            Effect::RunCheck { job, check, run, .. } => {
                let Some(planned) = plan.jobs.get(job.index()) else { return };
                let Some(check) = planned.health.as_ref().and_then(|health| health.checks.get(check.index()))
                else {
                    return;
                };
                if check.probe.is_passive() {
                    return;
                }
                let name = &planned.name;
                let has_program = planned.exec.is_some();
                let place = |world: &mut RecordedWorld, seen: RecordedCheck| {
                    let job = world.jobs.entry(name.clone()).or_default();
                    if !has_program {
                        job.checks.push(seen);
                        return Some(CheckPlace::Job(name.clone(), job.checks.len() - 1));
                    }
                    let nth = job.runs.len().checked_sub(1)?;
                    let checks = &mut job.runs.get_mut(nth)?.checks;
                    checks.push(seen);
                    Some(CheckPlace::Run(name.clone(), nth, checks.len() - 1))
                };
                self.check_begins(at, place, &check.name, *run);
            }
            Effect::RunDrain { job, run, .. } => {
                let Some(planned) = plan.jobs.get(job.index()) else { return };
                let name = &planned.name;
                let place = |world: &mut RecordedWorld, seen: RecordedCheck| {
                    let runs = &mut world.jobs.get_mut(name)?.runs;
                    let nth = runs.len().checked_sub(1)?;
                    runs.get_mut(nth)?.drain = Some(seen);
                    Some(CheckPlace::Drain(name.clone(), nth))
                };
                self.check_begins(at, place, "", *run);
            }
            Effect::TestFile { file, run, .. } => {
                let Some(file) = plan.files.get(file.index()) else { return };
                let name = &file.name;
                let place = |world: &mut RecordedWorld, seen: RecordedCheck| {
                    let tests = &mut world.files.get_mut(name)?.tests;
                    tests.push(seen);
                    Some(CheckPlace::File(name.clone(), tests.len() - 1))
                };
                self.check_begins(at, place, "", *run);
            }
            Effect::CancelCheck { run } => {
                let Some(place) = self.checks.remove(run) else { return };
                let is_over = self.has_timed_out(core, &place);
                if let Some(check) = self.check(&place) {
                    // One that is not needed any more has no result.
                    check.done = Some(at);
                    check.is_canceled = !is_over;
                    check.answer = CheckAnswer::Hang;
                    self.done = Some(place);
                }
            }
            Effect::RenderFile { file, render, .. } => {
                if let Some(file) = plan.files.get(file.index()) {
                    self.renderings.insert(*render, (file.name.clone(), at));
                    self.world.files.entry(file.name.clone()).or_default();
                }
            }
            Effect::InstallFile { render } => {
                if let Some((_, began)) = self.renderings.get_mut(render) {
                    *began = at;
                }
            }
            Effect::PlanReplaced { plan, .. } => {
                self.plan = Some(Arc::clone(plan));
                self.list_names(core);
            }
            Effect::Reload => self.own_reloads += 1,
            Effect::Exit(_) => self.world.has_exited = true,
            _ => {}
        }
    }

    /// Returns true if a check was canceled because its time was over, not because its program has exited. A test and a
    /// drain program are canceled only then, or in a shutdown.
    fn has_timed_out(&self, core: &Core, place: &CheckPlace) -> bool {
        match place {
            CheckPlace::Run(job, run, _)
                if (self.world.jobs.get(job).and_then(|job| job.runs.get(*run)))
                    .is_some_and(|run| run.exited.is_some()) =>
            {
                false
            }
            CheckPlace::Job(job, _) | CheckPlace::Run(job, ..) => {
                let status = core.job_named(job).map(|job| core.status(job));
                status.is_some_and(|status| status.stop_stage.is_none()) && !core.maintenance()
            }
            CheckPlace::Drain(..) | CheckPlace::File(..) => true,
        }
    }

    fn file(&mut self, render: RenderId, at: Time) -> Option<(&mut RecordedFile, Time)> {
        let (name, began) = self.renderings.get(&render)?;
        let file = self.world.files.get_mut(name)?;
        file.spans.push((*began, at));
        Some((file, *began))
    }

    /// What the events of this step say.
    fn events(&mut self, core: &Core, at: Time) {
        let last = self.last_event;
        let mut is_new = false;
        for event in core.journal().events().rev().take_while(|event| Some(event.id) > last) {
            is_new = true;
            if let (Origin::Lock(_), Code::Acquired | Code::Lost) = (event.origin, event.code) {
                let name = core.origin_name(event.origin);
                let name = name.strip_prefix("lock.").unwrap_or(&name).to_owned();
                if let Some(changes) = self.world.locks.get_mut(&name) {
                    changes.push((at, event.code == Code::Acquired));
                }
            }
        }
        self.last_event = last_event(core);
        let done = self.done.take();
        if let Some(check) = done.filter(|_| is_new).and_then(|place| self.check(&place)) {
            check.matters = true;
        }
    }
}

impl Observe for Observer {
    fn before_step(&mut self, core: &Core, at: Time, input: &Input) {
        let at = self.time(at, input);
        if !self.has_seen {
            self.begin(core, at);
        }
        self.world.end = at;
        match input {
            Input::Ready => {
                self.world.begin = at;
                self.world.clock = self.clock.map(|(then, unix)| unix + at.since(then));
            }
            Input::Started { run, .. } => {
                if let Some(run) = self.run(*run) {
                    run.started = Some(at);
                }
            }
            Input::StartFailed { run, why } => {
                if let Some(run) = self.run(*run) {
                    run.failed = Some((at, why.kind));
                }
            }
            Input::StartDelayed { run } => {
                if let Some((job, _)) = self.runs.get(run).cloned() {
                    self.left_out(format!("{job} had no processor to start"));
                }
            }
            Input::Exited { .. } => self.exited(at, input),
            Input::OrphansFound { run } => {
                if let Some((job, _)) = self.runs.get(run).cloned() {
                    self.left_out(format!(
                        "a run of {job} left processes behind that had left its process group"
                    ));
                }
            }
            Input::OrphansGone { run } => {
                if let Some(run) = self.run(*run) {
                    run.gone = Some(at);
                }
            }
            Input::CheckDone { check, result } => {
                let Some(place) = self.checks.remove(check) else { return };
                if let Some(check) = self.check(&place) {
                    check.done = Some(at);
                    match result {
                        Ok(()) => check.answer = CheckAnswer::Pass,
                        Err(CheckError::Failed(_)) => check.answer = CheckAnswer::Fail,
                        Err(CheckError::NotRun(_)) => {
                            check.is_canceled = true;
                            self.left_out("checks that could not be run for lack of descriptors");
                        }
                    }
                }
                self.done = Some(place);
            }
            Input::Notified { run, notice } => self.notified(at, *run, notice),
            Input::Watched { watch, answer: Ok(answer) } => {
                if let Some(watch) = core.plan().watches.get(watch.index()) {
                    let seen = self.world.watches.entry(watch.name.clone()).or_default();
                    if seen.last().is_none_or(|(_, last)| last != answer) {
                        seen.push((at, answer.clone()));
                    }
                }
            }
            Input::Watched { answer: Err(_), .. } => self.left_out("watches that were not answered"),
            Input::FileRendered { render, result } => {
                if let Some((file, began)) = self.file(*render, at) {
                    file.renderings.push((began, result.is_ok()));
                }
                if *result != Ok(RenderedText::New) {
                    self.renderings.remove(render);
                }
            }
            Input::FileInstalled { render, result } => {
                let _ = self.file(*render, at);
                if let (Some((file, _)), Err(_)) = (self.renderings.remove(render), result) {
                    self.left_out(format!("file {file} could not be replaced"));
                }
            }
            Input::Signal(signal) if reloads_at(core.plan(), *signal) => {}
            Input::Signal(signal) => self.world.actions.push((at, Action::Signal(*signal))),
            Input::Request { request, .. } => self.request(core, at, request),
            Input::TelemetryListens(Err(_)) => self.left_out("the telemetry server could not listen"),
            Input::Clock { unix, .. } => self.clock(at, *unix),
            Input::StartPending { .. }
            | Input::OutOfMemory { .. }
            | Input::CheckStarted { .. }
            | Input::Lock { .. }
            | Input::Deregistered { .. }
            | Input::TelemetryListens(Ok(()))
            | Input::Tick => {}
        }
    }

    fn after_step(&mut self, core: &Core, at: Time, effects: &[Effect]) {
        let at = at + self.last.1;
        for effect in effects {
            self.effect(core, at, effect);
        }
        self.events(core, at);
    }
}

fn new_run(plan: &Plan, job: JobIx, at: Time) -> RecordedRun {
    let ready = plan.jobs.get(job.index()).and_then(|job| job.ready.as_ref());
    RecordedRun {
        spawned: at,
        says_ready: ready.is_some(),
        watchdog: ready.and_then(Ready::watchdog),
        ..RecordedRun::default()
    }
}

fn last_event(core: &Core) -> Option<EventId> {
    core.journal().events().next_back().map(|event| event.id)
}

/// The job with `replicas` whose replicas these are.
fn group(plan: &Plan, jobs: &[JobIx]) -> Option<String> {
    let first = plan.jobs.get(jobs.first()?.index())?;
    let mut names = std::iter::once(&first.name).chain(first.replica.as_ref().map(|replica| &replica.group));
    let includes = |name: &&String| {
        let target = Target::named(name);
        let all = plan.jobs.iter().enumerate().filter(|(_, job)| target.includes(job));
        all.map(|(nth, _)| JobIx::at(nth)).eq(jobs.iter().copied())
    };
    names.rfind(includes).cloned()
}

/// The plan with as many replicas as its configuration has (W20).
fn as_configured(plan: &Plan) -> Box<Plan> {
    let scaled = plan
        .replicas
        .iter()
        .try_fold(plan.clone(), |plan, group| plan.scaled(&group.template.name, group.configured).ok());
    Box::new(scaled.unwrap_or_else(|| plan.clone()))
}
