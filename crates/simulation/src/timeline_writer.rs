//! Writes the timeline of a core, whether its world is simulated or was recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, EventId, JobIx, RunId};
use containerpilot_core::input::{CheckError, Input};
use containerpilot_core::plan::{Job, Level, Plan, Signal, fmt_utc};
use containerpilot_core::report::status::Cause;
use containerpilot_core::request::JobReply;
use containerpilot_core::state::journal::{Event as JournalEvent, Origin};
use containerpilot_core::{Core, Notice, Phase as CorePhase, Reply, Request, Time};

use crate::timeline::{Entry, JobHistory, JobPhase, SimulationRun, View, What, exit_note};

/// Writes a timeline.
#[derive(Debug)]
pub struct TimelineWriter {
    /// What was written.
    pub run: SimulationRun,
    /// When what is written next happens.
    pub now: Time,
    /// The plan that effects refer to.
    pub(crate) plan: Arc<Plan>,
    /// Whether a job may be in another phase since they were recorded.
    has_new_phases: bool,
    /// The last event that was recorded.
    last_event: EventId,
    /// The index of each event's entry, by the number of the event.
    places: Vec<usize>,
    /// The job of each run, and the index of the entry that caused it.
    jobs: BTreeMap<RunId, (Arc<str>, Option<usize>)>,
    /// The job of each running check.
    checks: BTreeMap<CheckRunId, Arc<str>>,
    /// The jobs whose last check failed.
    failing: BTreeSet<Arc<str>>,
    /// The entry of each job's last start.
    starts: BTreeMap<String, usize>,
    sources: BTreeMap<String, Arc<str>>,
    /// The first job of each name in a plan.
    names: (Arc<Plan>, BTreeMap<String, JobIx>),
}

/// What is known before a step, and needed after it.
#[derive(Debug)]
pub(crate) struct BeforeStep {
    routine: bool,
    origin: Option<usize>,
    started: Option<RunId>,
}

impl TimelineWriter {
    /// For a core. What its journal has is not written again.
    #[must_use]
    pub fn new(core: &Core) -> Self {
        let mut this = Self {
            run: SimulationRun::default(),
            now: Time::ZERO,
            plan: core.shared_plan(),
            has_new_phases: false,
            last_event: core.journal().events().next_back().map_or(EventId(0), |event| event.id),
            places: Vec::new(),
            jobs: BTreeMap::new(),
            checks: BTreeMap::new(),
            failing: BTreeSet::new(),
            starts: BTreeMap::new(),
            sources: BTreeMap::new(),
            names: (core.shared_plan(), BTreeMap::new()),
        };
        this.list_jobs(core);
        for (nth, job) in core.plan().jobs.iter().enumerate() {
            if let Some(run) = core.status(JobIx::at(nth)).run {
                let name = this.source(&job.name);
                this.jobs.insert(run, (name, None));
            }
        }
        this
    }

    /// The phases at the beginning of a timeline that does not begin with the supervisor.
    pub fn begin(&mut self, core: &Core, at: Time) {
        self.now = at;
        self.has_new_phases = true;
        self.note_phases(core);
    }

    /// Makes a step that was recorded, and writes what happens.
    pub fn replay(&mut self, core: &mut Core, at: Time, input: Input, effects: &mut Vec<Effect>) {
        if at > self.now {
            self.note_phases(core);
        }
        self.now = at;
        if let Some(note) = request_words(core, &input) {
            self.write("", What::Request, None, note);
        }
        let before = self.before_step(core, &input);
        core.step(at, input, effects);
        self.after_step(core, &before, effects);
        for effect in &*effects {
            self.write_effect(core, effect);
        }
    }

    /// The end of a timeline that was recorded.
    pub fn end(&mut self, core: &Core) {
        self.note_phases(core);
        self.view_all(core, self.now);
    }

    pub(crate) fn before_step(&mut self, core: &Core, input: &Input) -> BeforeStep {
        let routine = matches!(
            input,
            Input::CheckDone { result: Ok(()), .. }
                | Input::Notified { notice: Notice::Watchdog, .. }
                | Input::Tick
        );
        let before = self.run.entries.len();
        if let Input::CheckDone { check, result } = input {
            self.checked(*check, result);
        }
        // A request at this instant is the cause of everything that has no other cause.
        let at = self.now;
        let request = self.run.entries.last().filter(|entry| entry.at == at && entry.what == What::Request);
        let origin = if self.run.entries.len() > before || request.is_some() {
            self.run.entries.len().checked_sub(1)
        } else {
            None
        };
        let started = match input {
            Input::Started { run, .. } => Some(*run),
            _ => None,
        };
        self.run.steps += 1;
        // A job that is removed at the same instant has no phase after it.
        if matches!(input, Input::Request { .. }) || core.is_reloading() {
            self.note_phases(core);
        }
        BeforeStep { routine, origin, started }
    }

    pub(crate) fn after_step(&mut self, core: &Core, before: &BeforeStep, effects: &[Effect]) {
        if let Some(run) = before.started {
            self.started(core, run);
        }
        let nothing = |effect: &Effect| matches!(effect, Effect::RunCheck { .. } | Effect::Heartbeat { .. });
        let new_events = self.new_events(core);
        let quiet = before.routine && new_events.is_empty() && effects.iter().all(nothing);
        self.write_events(core, &new_events, before.origin);
        self.has_new_phases |= !quiet;
    }

    /// The job with this name in the plan of the core; of several, the first.
    pub(crate) fn job_named(&mut self, core: &Core, name: &str) -> Option<JobIx> {
        let plan = core.shared_plan();
        let (known, names) = &mut self.names;
        if names.is_empty() || !Arc::ptr_eq(known, &plan) {
            names.clear();
            for (nth, job) in plan.jobs.iter().enumerate() {
                names.entry(job.name.clone()).or_insert(JobIx::at(nth));
            }
            *known = plan;
        }
        names.get(name).copied()
    }

    pub(crate) fn source(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.sources.get(name) {
            return Arc::clone(known);
        }
        let source: Arc<str> = name.into();
        self.sources.insert(name.to_owned(), Arc::clone(&source));
        source
    }

    pub(crate) fn write(&mut self, source: &str, what: What, cause: Option<usize>, note: String) -> usize {
        let source = self.source(source);
        let entry = Entry { at: self.now, source, what, cause, note };
        self.run.entries.push(entry);
        self.run.entries.len() - 1
    }

    pub(crate) fn new_events(&mut self, core: &Core) -> Vec<JournalEvent> {
        let last = self.last_event;
        let new_events = core.journal().events().rev().take_while(|event| event.id > last);
        let mut new_events: Vec<JournalEvent> = new_events.copied().collect();
        new_events.reverse();
        new_events
    }

    /// The index of an event's entry.
    pub(crate) fn place(&self, event: EventId) -> Option<usize> {
        let nth = usize::try_from(event.0).ok()?.checked_sub(1)?;
        self.places.get(nth).copied().filter(|place| *place != usize::MAX)
    }

    pub(crate) fn write_events(
        &mut self,
        core: &Core,
        new_events: &[JournalEvent],
        mut origin: Option<usize>,
    ) {
        for event in new_events {
            let name = match event.origin {
                Origin::Global => String::new(),
                origin => core.origin_name(origin),
            };
            let cause = match event.cause {
                // A process exits or becomes healthy because it was started.
                _ if event.code.needs_a_run() && origin.is_none() => self.starts.get(&*name).copied(),
                Some(cause) => self.place(cause),
                None => origin,
            };
            let note = event.exit().map(exit_note).unwrap_or_default();
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
    pub(crate) fn spawned(&mut self, core: &Core, job: JobIx, run: RunId) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return };
        let name = planned.name.clone();
        let overview = self.job_named(core, &name).map(|job| core.job_overview(job));
        let cause =
            overview.filter(|overview| overview.status.restarts == 0).and_then(|overview| overview.cause);
        let cause = cause.as_ref().and_then(Cause::event).and_then(|event| self.place(event.id));
        let name = self.source(&name);
        self.jobs.insert(run, (name, cause));
    }

    pub(crate) fn started(&mut self, core: &Core, run: RunId) {
        let Some((name, cause)) = self.jobs.get(&run).cloned() else { return };
        let job = self.job_named(core, &name);
        let restarts = job.map_or(0, |job| core.status(job).restarts);
        let by_hand = job.is_some_and(|job| core.job_overview(job).cause == Some(Cause::ByHand));
        let planned = job.and_then(|job| core.plan().jobs.get(job.index()));
        let periodic = planned.is_some_and(|job| job.when.is_periodic());
        let history = self.run.histories.entry(name.to_string()).or_default();
        history.runs += 1;
        let nth = history.runs;
        let note = match (by_hand, restarts, cause) {
            (false, restarts @ 1.., _) if periodic => format!("tick {}", restarts + 1),
            (true, _, _) if periodic => "by hand".to_owned(),
            (_, restarts @ 1.., _) => format!("restart {restarts}"),
            (true, _, _) => "by hand".to_owned(),
            (_, _, None) if nth > 1 => format!("run {nth}"),
            _ => String::new(),
        };
        let place = self.write(&name, What::Starts, cause, note);
        self.starts.insert(name.to_string(), place);
    }

    /// Writes the first of several failed checks of a job.
    pub(crate) fn checked(&mut self, check: CheckRunId, result: &Result<(), CheckError>) {
        let Some(name) = self.checks.remove(&check) else { return };
        match result {
            Ok(()) => {
                self.failing.remove(&name);
            }
            Err(error) => {
                if self.failing.insert(Arc::clone(&name)) {
                    self.write(&name, What::ChecksFail, None, error.why().to_owned());
                }
            }
        }
    }

    pub(crate) fn write_effect(&mut self, core: &Core, effect: &Effect) {
        let plan = Arc::clone(&self.plan);
        match effect {
            Effect::PlanReplaced { plan, .. } => {
                self.plan = Arc::clone(plan);
                self.list_jobs(core);
            }
            Effect::Spawn { job, run, .. } => self.spawned(core, *job, *run),
            Effect::RunCheck { job, run, .. } => {
                if let Some(job) = plan.jobs.get(job.index()) {
                    let name = self.source(&job.name);
                    self.checks.insert(*run, name);
                }
            }
            Effect::CancelCheck { run } => {
                // A check that timed out has failed; one that is not needed any more has not.
                let name = self.checks.get(run).cloned();
                let job = name.and_then(|name| self.job_named(core, &name));
                let desired =
                    job.map(|job| core.status(job)).is_some_and(|status| status.stop_stage.is_none());
                if !desired || core.maintenance() {
                    self.checks.remove(run);
                }
            }
            Effect::CancelStart { run } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                if matches!(core.phase(), CorePhase::Killing | CorePhase::Exited) {
                    self.run.killed.push((self.now, name.to_string()));
                }
                self.write(&name, What::Killed, None, "its program was not executed".to_owned());
            }
            Effect::Kill { run, signal, reason, .. } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                let entry = (self.now, name.to_string());
                match (reason, core.phase()) {
                    (KillReason::KillAll, _) => self.run.killed.push(entry),
                    (KillReason::StopTimeout, phase) if phase != CorePhase::Running => {
                        self.run.killed.push(entry)
                    }
                    // The own timeout of a stop hook is its time in the stop (S15).
                    (KillReason::Timeout, phase) if phase != CorePhase::Running => {
                        let is_hook = |job: &Job| job.name == *name && job.is_stop_hook();
                        if plan.jobs.iter().any(is_hook) {
                            self.run.killed.push(entry);
                        }
                    }
                    (KillReason::Stop, CorePhase::Terminating) => self.run.stopped_early.push(entry),
                    _ => {}
                }
                let what = if *signal == Signal::KILL { What::Killed } else { What::Sent(signal.0) };
                self.write(&name, what, None, reason_words(*reason).to_owned());
            }
            // A failed exit has an entry of its own.
            Effect::Log(entry) if entry.level >= Level::Warn && !entry.with_output => {
                let name = entry.job.and_then(|job| plan.jobs.get(job.index())).map_or("", |job| &job.name);
                self.write(name, What::Warning, None, entry.message.clone());
            }
            Effect::Reply { reply, .. } => {
                let answer = match reply {
                    Reply::Updated(true) => return,
                    Reply::Updated(false) => "no change".to_owned(),
                    Reply::Done(words) => words.clone(),
                    Reply::Refused(why) => format!("refused: {why}"),
                    Reply::Jobs(replies) => match JobReply::combined(replies) {
                        Ok(words) => words,
                        Err(why) => format!("refused: {why}"),
                    },
                    Reply::Reloaded(changes) => {
                        let parts = [
                            ("kept", &changes.kept),
                            ("restarted", &changes.restarted),
                            ("changed, waiting:", &changes.waiting),
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
                let now = self.now;
                let request = self.run.entries.iter_mut().rev().take_while(|entry| entry.at == now);
                if let Some(request) = request.into_iter().find(|entry| entry.what == What::Request) {
                    request.note = format!("{}: {answer}", request.note);
                }
            }
            Effect::Exit(exit) => {
                let code = exit.code;
                self.run.exit = Some((self.now, code));
                self.write("", What::Exit(code), None, format!("code {code}"));
            }
            _ => {}
        }
    }

    pub(crate) fn list_jobs(&mut self, core: &Core) {
        let plan = core.shared_plan();
        for job in &plan.jobs {
            if !self.run.histories.contains_key(&job.name) {
                self.run.jobs.push(job.name.clone());
                self.run.histories.insert(job.name.clone(), JobHistory::default());
            }
        }
    }

    /// Records the phases of all jobs at the end of an instant: those that lasted no time are not shown.
    pub(crate) fn note_phases(&mut self, core: &Core) {
        if !std::mem::take(&mut self.has_new_phases) {
            return;
        }
        let (at, plan) = (self.now, core.shared_plan());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let phase = JobPhase::of(&core.status(JobIx::at(nth)), job.health.is_some());
            if let Some(history) = self.run.histories.get_mut(&job.name)
                && history.now() != Some(phase)
            {
                history.note(at, phase);
            }
        }
    }

    /// Keeps the state of a job at a time.
    pub fn probe(&mut self, core: &Core, at: Time, name: &str) {
        if let Some(job) = core.job_named(name) {
            self.run.views.insert((at, name.to_owned()), Self::view(core, job));
        }
    }

    pub(crate) fn view(core: &Core, job: JobIx) -> View {
        let status = core.status(job);
        let sentences = core.explain(job, None).sentences();
        View { word: status.word(), healthy: status.health(), stop_reason: status.stop_reason, sentences }
    }

    pub(crate) fn view_all(&mut self, core: &Core, at: Time) {
        self.run.end = at;
        self.run.counted = self.run.entries.len();
        let plan = core.shared_plan();
        for (nth, job) in plan.jobs.iter().enumerate() {
            let view = Self::view(core, JobIx::at(nth));
            if let Some(history) = self.run.histories.get_mut(&job.name) {
                history.runs_at_end = history.runs;
            }
            self.run.last.insert(job.name.clone(), view);
        }
    }
}

fn reason_words(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Stop => "stopping",
        KillReason::Unhealthy => "unhealthy, restarting",
        KillReason::Timeout => "timed out",
        KillReason::Escalation | KillReason::StopTimeout => "did not exit in time",
        KillReason::LockLost => "another supervisor may get its lock",
        KillReason::KillAll => "killing all jobs",
        KillReason::ByHand => "by hand",
        KillReason::Forwarded => "forwarded",
    }
}

/// A request, a signal or a reading of the clock, in words.
fn request_words(core: &Core, input: &Input) -> Option<String> {
    Some(match input {
        Input::Signal(signal) => format!("{signal} to the supervisor"),
        Input::Clock { unix, .. } => format!("the system clock is {}", fmt_utc(*unix)),
        Input::Request { request, .. } => words_of(core, request),
        _ => return None,
    })
}

fn words_of(core: &Core, request: &Request) -> String {
    let name = |job: &JobIx| core.plan().jobs.get(job.index()).map_or("an unknown job", |job| &job.name);
    match request {
        Request::Maintenance(true) => "maintenance enable".to_owned(),
        Request::Maintenance(false) => "maintenance disable".to_owned(),
        Request::Start(job) => format!("start {}", name(job)),
        Request::Stop(job) => format!("stop {}", name(job)),
        Request::Restart(job) => format!("restart {}", name(job)),
        Request::RollingRestart(jobs) => {
            format!("rolling restart of {}", jobs.iter().map(name).collect::<Vec<_>>().join(", "))
        }
        Request::Scale(job, count) => format!("scale {job}={count}"),
        Request::Several(all) => all.iter().map(|one| words_of(core, one)).collect::<Vec<_>>().join(", "),
        Request::Signal(job, signal) => format!("send {signal} to {}", name(job)),
        Request::Reload(_) => "reload".to_owned(),
        Request::SetVariables(variables) => {
            let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            format!("putenv {}", names.join(", "))
        }
    }
}
