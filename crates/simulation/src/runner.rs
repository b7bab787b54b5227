//! Runs the real core in the virtual world of a scenario, and writes down what happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use containerpilot_config::kinds::signal_name;
use containerpilot_core::effect::{Effect, Purpose};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRun, EventId, JobIx, RunId};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Level, Plan, Signal, Trigger};
use containerpilot_core::report::plan_diff::reloads_at;
use containerpilot_core::state::journal::{Event as JournalEvent, Origin};
use containerpilot_core::{Aim, Answer, Command, Core, Phase as CorePhase, RequestId, Time};

use crate::behavior::{Behavior, Event};
use crate::expect;
use crate::scenario::{Action, JobAction, Scenario};
use crate::timeline::{Abort, Entry, JobHistory, Phase, SimulationRun, View, What, exit_note};
use crate::world::{CatalogChange, Item, World};

/// How many items may happen at one instant before the simulation is aborted.
const AT_ONCE: u32 = 200_000;
/// How many events of a job the journal keeps: more than a job can send at one instant.
const EVENTS_OF_A_JOB: usize = 16;
/// The most entries of a timeline.
const ENTRIES: usize = 1_000_000;
/// The most steps of the core.
const STEPS: u64 = 100_000_000;

/// Runs a scenario to its end.
#[must_use]
pub fn simulate(plan: &Plan, scenario: &Scenario) -> SimulationRun {
    let mut plan = plan.clone();
    // The timeline shows warnings even if the log does not.
    plan.logging.level = Level::Warn;
    let mut core = Core::new(plan);
    core.remember(EVENTS_OF_A_JOB * core.plan().jobs.len());
    let mut runner = Runner {
        plan: core.shared_plan(),
        world: World::new(Behavior::new(scenario), core.shared_plan(), None),
        probes: expect::probes(scenario).collect(),
        requests: 0,
        last_event: EventId(0),
        places: Vec::new(),
        jobs: BTreeMap::new(),
        checks: BTreeMap::new(),
        failing: BTreeSet::new(),
        starts: BTreeMap::new(),
        sources: BTreeMap::new(),
        run: SimulationRun::default(),
        core,
    };
    runner.list_jobs();
    runner.schedule();
    runner.run(Time::ZERO + scenario.end());
    runner.run
}

struct Runner<'a> {
    core: Core,
    /// The plan that effects refer to.
    plan: Arc<Plan>,
    world: World<Behavior<'a>>,
    run: SimulationRun,
    /// The jobs whose state expectations must see, and when.
    probes: Vec<(Duration, String)>,
    requests: u64,
    /// The last event that was written down.
    last_event: EventId,
    /// The index of each event's entry, by the number of the event.
    places: Vec<usize>,
    /// The job of each run, and the index of the entry that caused it.
    jobs: BTreeMap<RunId, (Arc<str>, Option<usize>)>,
    /// The job of each running check.
    checks: BTreeMap<CheckRun, Arc<str>>,
    /// The jobs whose last check failed.
    failing: BTreeSet<Arc<str>>,
    /// The entry of each job's last start.
    starts: BTreeMap<String, usize>,
    sources: BTreeMap<String, Arc<str>>,
}

impl Runner<'_> {
    fn schedule(&mut self) {
        let scenario = self.world.script.scenario;
        for outage in &scenario.away {
            self.world.schedule_event(outage.from, Event::Outage(true));
            if let Some(to) = outage.to {
                self.world.schedule_event(to, Event::Outage(false));
            }
        }
        self.world.schedule_input(Duration::ZERO, Input::Ready);
        for watch in &self.core.shared_plan().watches {
            for observation in self.world.script.observations(self.core.plan(), watch).iter().flatten() {
                self.world.schedule_watch(observation.at, watch.name.clone());
            }
        }
        for (nth, (at, _)) in scenario.actions.iter().enumerate() {
            self.world.schedule_event(*at, Event::Action(nth));
        }
        for (nth, (at, _)) in scenario.forgets.iter().enumerate() {
            self.world.schedule_event(*at, Event::Forget(nth));
        }
        for (at, _) in &self.probes {
            self.world.schedule_event(*at, Event::Probe);
        }
    }

    fn run(&mut self, end: Time) {
        let (mut moment, mut at_once) = (Time::ZERO, 0);
        let mut asked = false;
        while self.core.phase() != CorePhase::Left && self.run.abort.is_none() {
            let agent = self.world.next_agent();
            let deadline = self.core.next_deadline();
            let times = [self.world.next(), deadline, agent.map(|(at, _)| at)];
            let next = times.into_iter().flatten().min().map(|at| at.max(self.world.now()));
            match next {
                Some(at) if asked || at < end => {
                    if let Some((_, agent)) = agent.filter(|(due, _)| *due <= at) {
                        self.world.wait(at);
                        self.world.step_agent(agent, at);
                        self.write_changes();
                    } else if self.world.next().is_some_and(|next| next <= at) {
                        self.take();
                    } else {
                        self.world.wait(at);
                        self.step(Input::Tick);
                    }
                }
                _ if !asked => {
                    // Items that are due at the very end do not happen any more.
                    self.world.wait(Time::from_nanos(end.as_nanos().saturating_sub(1)));
                    self.step(Input::Tick);
                    self.view_all(end);
                    asked = true;
                    self.world.wait(end);
                    self.run.asked_to_stop = Some(end);
                    let note = "SIGTERM to the supervisor: the simulation ends".to_owned();
                    self.write("", What::Asked, None, note);
                    self.step(Input::Signal(Signal::TERM));
                }
                // Only a plan that passes every signal on can get here, or a defect.
                _ => self.run.abort = Some(Abort::Stuck),
            }
            if self.world.now() > moment {
                (moment, at_once) = (self.world.now(), 0);
            }
            at_once += 1;
            if at_once > AT_ONCE {
                self.run.abort = Some(Abort::NoTimePasses);
            }
            if self.run.entries.len() > ENTRIES || self.run.steps > STEPS {
                self.run.abort = Some(Abort::TooMuch);
            }
        }
        if !asked {
            self.view_all(self.world.now());
        }
    }

    fn take(&mut self) {
        let scenario = self.world.script.scenario;
        match self.world.take() {
            Item::Nothing => {}
            Item::Input(input) => self.step(input),
            Item::Script(Event::Probe) => self.step(Input::Tick),
            Item::Script(Event::Action(nth)) => {
                if let Some((_, action)) = scenario.actions.get(nth) {
                    let input = self.act(action);
                    self.step(input);
                }
            }
            Item::Script(Event::Forget(nth)) => {
                let Some((_, name)) = scenario.forgets.get(nth) else { return };
                if self.core.job_named(name).is_some_and(|job| self.world.forget_service(job)) {
                    self.write(name, What::Forgotten, None, "the catalog has lost its service".to_owned());
                }
            }
            Item::Script(Event::Outage(begins)) => {
                // An outage that ends during another one is not the end of both.
                if begins || scenario.outage_at(self.world.now().since(Time::ZERO)).is_none() {
                    self.write("catalog", What::CatalogAway(begins), None, String::new());
                }
            }
        }
    }

    /// Does to the supervisor what the scenario says.
    fn act(&mut self, action: &Action) -> Input {
        self.requests += 1;
        let id = RequestId(self.requests);
        let (note, command) = match action {
            // R1
            Action::Signal(signal) if reloads_at(&self.plan, *signal) => {
                let command = Command::Reload(Box::new((*self.plan).clone()));
                ("SIGHUP: reloading the configuration".to_owned(), command)
            }
            Action::Signal(signal) => {
                self.write("", What::Asked, None, format!("{} to the supervisor", signal_name(*signal)));
                return Input::Signal(*signal);
            }
            Action::Maintenance(on) => {
                let word = if *on { "enable" } else { "disable" };
                (format!("maintenance {word}"), Command::Maintenance(*on))
            }
            Action::Reload(path, plan) => (format!("reload, with {path}"), Command::Reload(plan.clone())),
            Action::Job(action, name) => {
                let job = self.core.job_named(name).unwrap_or(JobIx(u32::MAX));
                match action {
                    JobAction::Start => (format!("start {name}"), Command::Start(job)),
                    JobAction::Stop => (format!("stop {name}"), Command::Stop(job)),
                    JobAction::Restart => (format!("restart {name}"), Command::Restart(job)),
                    JobAction::Send(signal) => {
                        let note = format!("send {} to {name}", signal_name(*signal));
                        (note, Command::Signal(job, *signal))
                    }
                }
            }
        };
        self.write("", What::Asked, None, note);
        Input::Command { id, command }
    }

    /// Carries out an effect, and what the agents of the catalog do about it at once.
    fn carry_out(&mut self, effect: &Effect) {
        self.world.carry_out(effect);
        self.write_changes();
        let now = self.world.now();
        while let Some((at, agent)) = self.world.next_agent().filter(|(at, _)| *at <= now) {
            self.world.step_agent(agent, at);
            self.write_changes();
        }
    }

    fn write_changes(&mut self) {
        for CatalogChange { job, status } in self.world.take_changes() {
            let plan = Arc::clone(self.world.plan());
            let Some(job) = plan.jobs.get(job.index()) else { continue };
            let kind = status.map_or(What::Withdrawn, |status| What::InCatalog(status.into()));
            self.write(&job.name, kind, None, String::new());
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        let at = self.world.now();
        let routine = matches!(input, Input::CheckDone { result: Ok(()), .. } | Input::Tick);
        let is_tick = matches!(input, Input::Tick);
        let before = self.run.entries.len();
        if let Input::CheckDone { check, result } = &input {
            self.checked(*check, result);
        }
        // A request at this instant is the cause of everything that has no other cause.
        let asked = self.run.entries.last().filter(|entry| entry.at == at && entry.what == What::Asked);
        let origin = if self.run.entries.len() > before || asked.is_some() {
            self.run.entries.len().checked_sub(1)
        } else {
            None
        };
        let started = match &input {
            Input::Started { run, .. } => Some(*run),
            _ => None,
        };
        self.run.steps += 1;
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
            self.carry_out(effect);
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Replanned { .. })) {
            self.list_jobs();
        }
        if !quiet {
            self.note_phases();
        }
        if is_tick {
            self.probe();
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
        self.run.entries.push(entry);
        self.run.entries.len() - 1
    }

    fn new_events(&mut self) -> Vec<JournalEvent> {
        let last = self.last_event;
        let news = self.core.journal().events().rev().take_while(|event| event.id > last);
        let mut news: Vec<JournalEvent> = news.copied().collect();
        news.reverse();
        news
    }

    /// The index of an event's entry.
    fn place(&self, event: EventId) -> Option<usize> {
        let nth = usize::try_from(event.0).ok()?.checked_sub(1)?;
        self.places.get(nth).copied().filter(|place| *place != usize::MAX)
    }

    fn write_events(&mut self, news: &[JournalEvent], mut origin: Option<usize>) {
        for event in news {
            let name = match event.origin {
                Origin::Global => String::new(),
                origin => self.core.origin_name(origin),
            };
            let cause = match event.cause {
                // A process exits or becomes healthy because it was started.
                _ if is_own(event.code) && origin.is_none() => self.starts.get(&*name).copied(),
                Some(cause) => self.place(cause),
                None => origin,
            };
            let note = event.exit.map(exit_note).unwrap_or_default();
            let place = self.write(&name, What::Event(event.code), cause, note);
            if event.code == Code::Shutdown {
                // What stops at the same instant stops because of the shutdown.
                origin = Some(place);
            }
            // The numbers of events have no gaps, but the journal drops old events.
            let nth = usize::try_from(event.id.0).unwrap_or(usize::MAX).saturating_sub(1);
            while self.places.len() < nth {
                self.places.push(usize::MAX);
            }
            self.places.push(place);
            self.last_event = event.id;
        }
    }

    /// Remembers the cause of a run.
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
        let history = self.run.histories.entry(name.to_string()).or_default();
        history.runs += 1;
        let nth = history.runs;
        let note = match (by_hand, restarts, cause) {
            (_, restarts @ 1.., _) if periodic => format!("tick {}", restarts + 1),
            (_, restarts @ 1.., _) => format!("restart {restarts}"),
            (true, _, _) => "by hand".to_owned(),
            (_, _, None) if nth > 1 => format!("run {nth}"),
            _ => String::new(),
        };
        let place = self.write(&name, What::Starts, cause, note);
        self.starts.insert(name.to_string(), place);
    }

    /// Writes the first of several failed checks of a job.
    fn checked(&mut self, check: CheckRun, result: &Result<(), String>) {
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
            Effect::Replanned { plan, .. } => self.plan = Arc::clone(plan),
            Effect::Spawn { job, run, .. } => self.spawned(*job, *run),
            Effect::RunCheck { job, run, .. } => {
                if let Some(job) = plan.jobs.get(job.index()) {
                    let name = self.source(&job.name);
                    self.checks.insert(*run, name);
                }
            }
            Effect::CancelCheck { run } => {
                // A check that timed out has failed; one that is not needed any more has not.
                let job = self.checks.get(run).and_then(|name| self.core.job_named(name));
                let wanted = job.map(|job| self.core.status(job)).is_some_and(|status| status.aim == Aim::Up);
                if !wanted || self.core.maintenance() {
                    self.checks.remove(run);
                }
            }
            Effect::Kill { run, signal, purpose } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                if *purpose == Purpose::Everything {
                    self.run.killed.push((self.world.now(), name.to_string()));
                }
                let what = if *signal == Signal::KILL { What::Killed } else { What::Sent(signal.0) };
                self.write(&name, what, None, purpose_of(*purpose).to_owned());
            }
            Effect::Log(entry) if entry.level >= Level::Warn => {
                let name = entry.job.and_then(|job| plan.jobs.get(job.index())).map_or("", |job| &job.name);
                self.write(name, What::Warning, None, entry.message.clone());
            }
            Effect::Reply { answer, .. } => {
                let told = match answer {
                    Answer::Updated(true) => return,
                    Answer::Updated(false) => "no change".to_owned(),
                    Answer::Done(words) => words.clone(),
                    Answer::Refused(why) => format!("refused: {why}"),
                    Answer::Reloaded(changes) => {
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
                // The answer is shown with the request of the same instant.
                let now = self.world.now();
                let asked = self.run.entries.iter_mut().rev().take_while(|entry| entry.at == now);
                if let Some(asked) = asked.into_iter().find(|entry| entry.what == What::Asked) {
                    asked.note = format!("{}: {told}", asked.note);
                }
            }
            Effect::Exit { code } => {
                self.run.exit = Some((self.world.now(), *code));
                self.write("", What::Exit(*code), None, format!("code {code}"));
            }
            _ => {}
        }
    }

    fn list_jobs(&mut self) {
        let plan = self.core.shared_plan();
        for job in &plan.jobs {
            if !self.run.histories.contains_key(&job.name) {
                self.run.jobs.push(job.name.clone());
                self.run.histories.insert(job.name.clone(), JobHistory::default());
            }
        }
    }

    fn note_phases(&mut self) {
        let (at, plan) = (self.world.now(), self.core.shared_plan());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let phase = Phase::of(&self.core.status(JobIx::at(nth)), job.health.is_some());
            if let Some(history) = self.run.histories.get_mut(&job.name)
                && history.now() != Some(phase)
            {
                history.note(at, phase);
            }
        }
    }

    fn view(&self, job: JobIx) -> View {
        let status = self.core.status(job);
        let sentences = self.core.explain(job).sentences();
        View { word: status.word(), healthy: status.healthy, ending: status.ending, sentences }
    }

    /// Records the state of jobs that expectations must see at this instant.
    fn probe(&mut self) {
        let now = self.world.now();
        for (at, name) in &self.probes {
            if Time::ZERO + *at == now
                && let Some(job) = self.core.job_named(name)
            {
                let view = self.view(job);
                self.run.views.insert((now, name.clone()), view);
            }
        }
    }

    fn view_all(&mut self, at: Time) {
        self.run.end = at;
        self.run.counted = self.run.entries.len();
        let plan = self.core.shared_plan();
        for (nth, job) in plan.jobs.iter().enumerate() {
            let view = self.view(JobIx::at(nth));
            if let Some(history) = self.run.histories.get_mut(&job.name) {
                history.runs_at_end = history.runs;
            }
            self.run.last.insert(job.name.clone(), view);
        }
    }
}

/// Whether an event is caused by the job's own process.
fn is_own(code: Code) -> bool {
    matches!(code, Code::ExitSuccess | Code::ExitFailed | Code::Healthy | Code::Unhealthy)
}

fn purpose_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Stop => "stopping",
        Purpose::Replace => "unhealthy, restarting",
        Purpose::Timeout => "timed out",
        Purpose::KillAfterTimeout => "did not exit in time",
        Purpose::Everything => "killing all jobs",
        Purpose::ByHand => "by hand",
        Purpose::PassedOn => "passed on",
    }
}
