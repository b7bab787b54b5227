//! The player: the real core in a made-up world, and what is written down of it.

use std::sync::Arc;

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, EventId, JobIx, RunId};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Level, Plan, Signal, Trigger};
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::{Core, Phase as Running, Reply, Time};
use std::collections::{BTreeMap, BTreeSet};

use crate::expect;
use crate::scenario::Scenario;
use crate::timeline::{Course, Cut, Entry, Phase, View, What, ended};
use crate::world::{Note, World};

/// How often something may happen at one moment before the rehearsal is given up.
const AT_ONCE: u32 = 200_000;
/// How many events of a job are remembered: more than it can send at one moment.
const EVENTS_OF_A_JOB: usize = 16;
/// How much is written down at most.
const ENTRIES: usize = 1_000_000;
/// How often the core is called at most.
const STEPS: u64 = 100_000_000;

/// Plays a scenario to its end.
#[must_use]
pub fn play(plan: &Plan, scenario: &Scenario) -> Course {
    let mut plan = plan.clone();
    // What the log of the configuration leaves out belongs to the story all the same.
    plan.logging.level = Level::Warn;
    let mut core = Core::new(plan);
    core.set_journal_capacity(EVENTS_OF_A_JOB * core.plan().jobs.len());
    let world = World::new(scenario, core.shared_plan(), expect::glances(scenario).map(|(at, _)| at));
    let mut player = Player {
        plan: core.shared_plan(),
        wanted: expect::glances(scenario).collect(),
        events: EventId(0),
        places: Vec::new(),
        jobs: BTreeMap::new(),
        checks: BTreeMap::new(),
        failing: BTreeSet::new(),
        starts: BTreeMap::new(),
        sources: BTreeMap::new(),
        course: Course::default(),
        core,
        world,
    };
    player.list_jobs();
    player.play(Time::ZERO + scenario.end());
    player.course
}

struct Player<'a> {
    core: Core,
    /// The plan that effects speak of.
    plan: Arc<Plan>,
    world: World<'a>,
    course: Course,
    /// Which jobs are looked at, and when.
    wanted: Vec<(std::time::Duration, String)>,
    /// The last event that was written down.
    events: EventId,
    /// For each event, by its number, the place of its entry.
    places: Vec<usize>,
    /// The job of each run, by name.
    jobs: BTreeMap<RunId, (Arc<str>, Option<usize>)>,
    /// The job of each check that is being made, and the jobs whose last check failed.
    checks: BTreeMap<CheckRunId, Arc<str>>,
    failing: BTreeSet<Arc<str>>,
    /// The last start of each job.
    starts: BTreeMap<String, usize>,
    sources: BTreeMap<String, Arc<str>>,
}

impl Player<'_> {
    fn play(&mut self, end: Time) {
        let (mut moment, mut at_once) = (Time::ZERO, 0);
        let mut asked = 0;
        while self.core.phase() != Running::Exited && self.course.cut.is_none() {
            let deadline = self.core.next_deadline().map(|at| at.max(self.world.now()));
            let next = match (self.world.next(), deadline) {
                (Some(coming), Some(deadline)) => Some(coming.min(deadline)),
                (coming, deadline) => coming.or(deadline),
            };
            match next {
                Some(at) if asked > 0 || at < end => {
                    if self.world.next().is_some_and(|coming| coming <= at) {
                        let turn = self.world.take();
                        self.take_notes(turn.notes);
                        if let Some(input) = turn.input {
                            self.step(input);
                        }
                    } else {
                        self.world.wait(at);
                        self.step(Input::Tick);
                    }
                }
                _ if asked == 0 => {
                    // What is due at the very end is not seen any more.
                    self.world.wait(Time::from_nanos(end.as_nanos().saturating_sub(1)));
                    self.step(Input::Tick);
                    self.look_at_all(end);
                    asked = 1;
                    self.world.wait(end);
                    self.course.asked_to_stop = Some(end);
                    let note = "SIGTERM to the supervisor: the rehearsal ends".to_owned();
                    self.write("", What::Asked, None, note);
                    self.step(Input::Signal(Signal::TERM));
                }
                // Only a plan that passes every signal on can come here, or a defect.
                _ => self.course.cut = Some(Cut::Stuck),
            }
            if self.world.now() > moment {
                (moment, at_once) = (self.world.now(), 0);
            }
            at_once += 1;
            if at_once > AT_ONCE {
                self.course.cut = Some(Cut::NoTime);
            }
            if self.course.entries.len() > ENTRIES || self.course.steps > STEPS {
                self.course.cut = Some(Cut::TooMuch);
            }
        }
        if asked == 0 {
            self.look_at_all(self.world.now());
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        let at = self.world.now();
        let routine = matches!(input, Input::CheckDone { result: Ok(()), .. } | Input::Tick);
        let glance = matches!(input, Input::Tick);
        let before = self.course.entries.len();
        if let Input::CheckDone { check, result } = &input {
            self.checked(*check, result);
        }
        // What the world did at this moment is the cause of what has no other.
        let asked = self.course.entries.last().filter(|entry| entry.at == at && entry.what == What::Asked);
        let origin = if self.course.entries.len() > before || asked.is_some() {
            self.course.entries.len().checked_sub(1)
        } else {
            None
        };
        let started = match &input {
            Input::Started { run, .. } => Some(*run),
            _ => None,
        };
        self.course.steps += 1;
        self.core.step(at, input, &mut effects);
        if let Some(run) = started {
            self.started(run);
        }
        let nothing = |effect: &Effect| matches!(effect, Effect::RunCheck { .. } | Effect::Heartbeat { .. });
        let news = self.new_events();
        let quiet = routine && news.is_empty() && effects.iter().all(nothing);
        self.write_events(&news, origin);
        for effect in &effects {
            self.write_effect(effect);
            self.world.carry_out(effect);
            let notes = self.world.take_notes();
            self.take_notes(notes);
        }
        if effects.iter().any(|effect| matches!(effect, Effect::PlanReplaced { .. })) {
            self.list_jobs();
        }
        if !quiet {
            self.note_phases();
        }
        if glance {
            self.glance();
        }
    }

    fn source(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.sources.get(name) {
            return Arc::clone(known);
        }
        let source: Arc<str> = name.into();
        self.sources.insert(name.to_owned(), Arc::clone(&source));
        source
    }

    fn write(&mut self, source: &str, what: What, cause: Option<usize>, note: String) -> usize {
        let source = self.source(source);
        let entry = Entry { at: self.world.now(), source, what, cause, note };
        self.course.entries.push(entry);
        self.course.entries.len() - 1
    }

    fn take_notes(&mut self, notes: Vec<Note>) {
        for Note { source, what, note } in notes {
            self.write(&source, what, None, note);
        }
    }

    fn new_events(&mut self) -> Vec<Event> {
        let last = self.events;
        let news = self.core.journal().events().rev().take_while(|event| event.id > last);
        let mut news: Vec<Event> = news.copied().collect();
        news.reverse();
        news
    }

    /// The place of an event's entry.
    fn place(&self, event: EventId) -> Option<usize> {
        let nth = usize::try_from(event.0).ok()?.checked_sub(1)?;
        self.places.get(nth).copied().filter(|place| *place != usize::MAX)
    }

    /// Writes events down.
    fn write_events(&mut self, news: &[Event], mut origin: Option<usize>) {
        for event in news {
            let name = match event.origin {
                Origin::Global => String::new(),
                origin => self.core.origin_name(origin),
            };
            let cause = match event.cause {
                // What a process does, it does because it was started.
                _ if is_own(event.code) && origin.is_none() => self.starts.get(&*name).copied(),
                Some(cause) => self.place(cause),
                None => origin,
            };
            let note = event.exit.map(ended).unwrap_or_default();
            let place = self.write(&name, What::Event(event.code), cause, note);
            if event.code == Code::Shutdown {
                // What is stopped in the same moment is stopped for that.
                origin = Some(place);
            }
            // Numbers of events have no gaps, but a journal forgets.
            let nth = usize::try_from(event.id.0).unwrap_or(usize::MAX).saturating_sub(1);
            while self.places.len() < nth {
                self.places.push(usize::MAX);
            }
            self.places.push(place);
            self.events = event.id;
        }
    }

    /// A process is wanted: what led to that is known now.
    fn spawned(&mut self, job: JobIx, run: RunId) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return };
        let name = planned.name.clone();
        let overview = self.core.job_named(&name).map(|job| self.core.job_overview(job));
        let cause = overview.filter(|overview| overview.status.restarts == 0 && !overview.by_hand);
        let cause = cause.and_then(|overview| overview.cause).and_then(|event| self.place(event.id));
        let name = self.source(&name);
        self.jobs.insert(run, (name, cause));
    }

    fn started(&mut self, run: RunId) {
        let Some((name, cause)) = self.jobs.get(&run).cloned() else { return };
        let job = self.core.job_named(&name);
        let restarts = job.map_or(0, |job| self.core.status(job).restarts);
        let by_hand = job.is_some_and(|job| self.core.job_overview(job).by_hand);
        let planned = job.and_then(|job| self.core.plan().jobs.get(job.index()));
        let periodic = planned.is_some_and(|job| matches!(job.when.trigger, Trigger::Interval(_)));
        let lane = self.course.lanes.entry(name.to_string()).or_default();
        lane.runs += 1;
        let nth = lane.runs;
        let note = match (by_hand, restarts, cause) {
            (_, restarts @ 1.., _) if periodic => format!("turn {}", restarts + 1),
            (_, restarts @ 1.., _) => format!("restart {restarts}"),
            (true, _, _) => "by hand".to_owned(),
            (_, _, None) if nth > 1 => format!("run {nth}"),
            _ => String::new(),
        };
        let place = self.write(&name, What::Starts, cause, note);
        self.starts.insert(name.to_string(), place);
    }

    /// The first of several failed checks of a job is worth a line.
    fn checked(&mut self, check: CheckRunId, result: &Result<(), String>) {
        let Some(name) = self.checks.remove(&check) else { return };
        match result {
            Ok(()) => {
                self.failing.remove(&name);
            }
            Err(why) => {
                if self.failing.insert(Arc::clone(&name)) {
                    self.write(&name, What::ChecksFail, None, why.clone());
                }
            }
        }
    }

    fn write_effect(&mut self, effect: &Effect) {
        let plan = Arc::clone(&self.plan);
        match effect {
            Effect::PlanReplaced { plan, .. } => self.plan = Arc::clone(plan),
            Effect::Spawn { job, run, .. } => self.spawned(*job, *run),
            Effect::RunCheck { job, run, .. } => {
                if let Some(job) = plan.jobs.get(job.index()) {
                    let name = self.source(&job.name);
                    self.checks.insert(*run, name);
                }
            }
            Effect::CancelCheck { run } => {
                // One that has used up its time has failed; one that is not wanted any more has not.
                let job = self.checks.get(run).and_then(|name| self.core.job_named(name));
                let wanted =
                    job.map(|job| self.core.status(job)).is_some_and(|status| status.stop_stage.is_none());
                if !wanted || self.core.maintenance() {
                    self.checks.remove(run);
                }
            }
            Effect::Kill { run, signal, reason } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                if *reason == KillReason::KillAll {
                    self.course.killed.push((self.world.now(), name.to_string()));
                }
                let what = if *signal == Signal::KILL { What::Killed } else { What::Sent(signal.0) };
                self.write(&name, what, None, purpose_of(*reason).to_owned());
            }
            Effect::Log(entry) if entry.level >= Level::Warn => {
                let name = entry.job.and_then(|job| plan.jobs.get(job.index())).map_or("", |job| &job.name);
                self.write(name, What::Warning, None, entry.message.clone());
            }
            Effect::Reply { reply: answer, .. } => {
                let told = match answer {
                    Reply::Updated(true) => return,
                    Reply::Updated(false) => "it is so already".to_owned(),
                    Reply::Done(words) => words.clone(),
                    Reply::Refused(why) => format!("refused: {why}"),
                    Reply::Reloaded(changes) => {
                        let parts = [
                            ("kept", &changes.kept),
                            ("restarted", &changes.restarted),
                            ("started", &changes.started),
                            ("stopped", &changes.stopped),
                        ];
                        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
                        let parts: Vec<String> =
                            parts.map(|(word, names)| format!("{word} {}", names.join(", "))).collect();
                        self.write("", What::Reloaded, None, parts.join("; "));
                        return;
                    }
                };
                // It stands beside what was asked, in the same moment.
                let now = self.world.now();
                let asked = self.course.entries.iter_mut().rev().take_while(|entry| entry.at == now);
                if let Some(asked) = asked.into_iter().find(|entry| entry.what == What::Asked) {
                    asked.note = format!("{}: {told}", asked.note);
                }
            }
            Effect::Exit { code } => {
                self.course.exit = Some((self.world.now(), *code));
                self.write("", What::Exit(*code), None, format!("code {code}"));
            }
            _ => {}
        }
    }

    fn list_jobs(&mut self) {
        let plan = self.core.shared_plan();
        for job in &plan.jobs {
            if !self.course.lanes.contains_key(&job.name) {
                self.course.jobs.push(job.name.clone());
                self.course.lanes.insert(job.name.clone(), crate::timeline::Lane::default());
            }
        }
    }

    fn note_phases(&mut self) {
        let (at, plan) = (self.world.now(), self.core.shared_plan());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let phase = Phase::of(&self.core.status(JobIx::at(nth)), job.health.is_some());
            if let Some(lane) = self.course.lanes.get_mut(&job.name)
                && lane.now() != Some(phase)
            {
                lane.note(at, phase);
            }
        }
    }

    fn view(&self, job: JobIx) -> View {
        let status = self.core.status(job);
        let sentences = self.core.explain(job).sentences();
        View { word: status.word(), healthy: status.healthy, stop_reason: status.stop_reason, sentences }
    }

    /// Looks at the jobs that somebody wants to see at this moment.
    fn glance(&mut self) {
        let now = self.world.now();
        for (at, name) in &self.wanted {
            if Time::ZERO + *at == now
                && let Some(job) = self.core.job_named(name)
            {
                let view = self.view(job);
                self.course.views.insert((now, name.clone()), view);
            }
        }
    }

    fn look_at_all(&mut self, at: Time) {
        self.course.end = at;
        self.course.counted = self.course.entries.len();
        let plan = self.core.shared_plan();
        for (nth, job) in plan.jobs.iter().enumerate() {
            let view = self.view(JobIx::at(nth));
            if let Some(lane) = self.course.lanes.get_mut(&job.name) {
                lane.runs_at_end = lane.runs;
            }
            self.course.last.insert(job.name.clone(), view);
        }
    }
}

/// Whether an event is the doing of a job's own process.
fn is_own(code: Code) -> bool {
    matches!(code, Code::ExitSuccess | Code::ExitFailed | Code::Healthy | Code::Unhealthy)
}

fn purpose_of(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Stop => "it is to stop",
        KillReason::Unhealthy => "it is unhealthy, and is replaced",
        KillReason::Timeout => "its time is over",
        KillReason::StopTimeout => "it has not ended",
        KillReason::KillAll => "everything is killed",
        KillReason::ByHand => "by hand",
        KillReason::Forwarded => "it is passed on",
    }
}
