//! Writes what happens to the timeline.

use std::sync::Arc;

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, EventId, JobIx, RunId};
use containerpilot_core::input::CheckError;
use containerpilot_core::plan::{Job, Level, Signal};
use containerpilot_core::report::status::Cause;
use containerpilot_core::request::JobReply;
use containerpilot_core::state::journal::{Event as JournalEvent, Origin};
use containerpilot_core::{Phase as CorePhase, Reply, Time};

use super::Runner;
use crate::timeline::{Entry, JobHistory, JobPhase, View, What, exit_note};
use crate::world::CatalogChange;

impl Runner<'_> {
    pub(super) fn write_changes(&mut self) {
        for CatalogChange { job, status } in self.world.take_changes() {
            let plan = Arc::clone(self.world.plan());
            let Some(job) = plan.jobs.get(job.index()) else { continue };
            let kind = status.map_or(What::Deregistered, What::InCatalog);
            self.write(&job.name, kind, None, String::new());
        }
    }

    /// The job with this name in the plan of the core; of several, the first.
    pub(super) fn job_named(&mut self, name: &str) -> Option<JobIx> {
        let plan = self.core.shared_plan();
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

    pub(super) fn source(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.sources.get(name) {
            return Arc::clone(known);
        }
        let source: Arc<str> = name.into();
        self.sources.insert(name.to_owned(), Arc::clone(&source));
        source
    }

    pub(super) fn write(&mut self, source: &str, what: What, cause: Option<usize>, note: String) -> usize {
        let source = self.source(source);
        let entry = Entry { at: self.world.now(), source, what, cause, note };
        self.run.entries.push(entry);
        self.run.entries.len() - 1
    }

    pub(super) fn new_events(&mut self) -> Vec<JournalEvent> {
        let last = self.last_event;
        let new_events = self.core.journal().events().rev().take_while(|event| event.id > last);
        let mut new_events: Vec<JournalEvent> = new_events.copied().collect();
        new_events.reverse();
        new_events
    }

    /// The index of an event's entry.
    pub(super) fn place(&self, event: EventId) -> Option<usize> {
        let nth = usize::try_from(event.0).ok()?.checked_sub(1)?;
        self.places.get(nth).copied().filter(|place| *place != usize::MAX)
    }

    pub(super) fn write_events(&mut self, new_events: &[JournalEvent], mut origin: Option<usize>) {
        for event in new_events {
            let name = match event.origin {
                Origin::Global => String::new(),
                origin => self.core.origin_name(origin),
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
    pub(super) fn spawned(&mut self, job: JobIx, run: RunId) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return };
        let name = planned.name.clone();
        let overview = self.job_named(&name).map(|job| self.core.job_overview(job));
        let cause =
            overview.filter(|overview| overview.status.restarts == 0).and_then(|overview| overview.cause);
        let cause = cause.as_ref().and_then(Cause::event).and_then(|event| self.place(event.id));
        let name = self.source(&name);
        self.jobs.insert(run, (name, cause));
    }

    pub(super) fn started(&mut self, run: RunId) {
        let Some((name, cause)) = self.jobs.get(&run).cloned() else { return };
        let job = self.job_named(&name);
        let restarts = job.map_or(0, |job| self.core.status(job).restarts);
        let by_hand = job.is_some_and(|job| self.core.job_overview(job).cause == Some(Cause::ByHand));
        let planned = job.and_then(|job| self.core.plan().jobs.get(job.index()));
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
    pub(super) fn checked(&mut self, check: CheckRunId, result: &Result<(), CheckError>) {
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

    pub(super) fn write_effect(&mut self, effect: &Effect) {
        let plan = Arc::clone(&self.plan);
        match effect {
            Effect::PlanReplaced { plan, .. } => {
                self.world.script.set_plan(plan);
                self.plan = Arc::clone(plan);
            }
            Effect::Spawn { job, run, .. } => self.spawned(*job, *run),
            Effect::RunCheck { job, run, .. } => {
                if let Some(job) = plan.jobs.get(job.index()) {
                    let name = self.source(&job.name);
                    self.checks.insert(*run, name);
                }
            }
            Effect::CancelCheck { run } => {
                // A check that timed out has failed; one that is not needed any more has not.
                let name = self.checks.get(run).cloned();
                let job = name.and_then(|name| self.job_named(&name));
                let desired =
                    job.map(|job| self.core.status(job)).is_some_and(|status| status.stop_stage.is_none());
                if !desired || self.core.maintenance() {
                    self.checks.remove(run);
                }
            }
            Effect::CancelStart { run } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                if matches!(self.core.phase(), CorePhase::Killing | CorePhase::Exited) {
                    self.run.killed.push((self.world.now(), name.to_string()));
                }
                self.write(&name, What::Killed, None, "its program was not executed".to_owned());
            }
            Effect::Kill { run, signal, reason, .. } => {
                let Some((name, _)) = self.jobs.get(run).cloned() else { return };
                let entry = (self.world.now(), name.to_string());
                match (reason, self.core.phase()) {
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
                let now = self.world.now();
                let request = self.run.entries.iter_mut().rev().take_while(|entry| entry.at == now);
                if let Some(request) = request.into_iter().find(|entry| entry.what == What::Request) {
                    request.note = format!("{}: {answer}", request.note);
                }
            }
            Effect::Exit(exit) => {
                let code = exit.code;
                self.run.exit = Some((self.world.now(), code));
                self.write("", What::Exit(code), None, format!("code {code}"));
            }
            _ => {}
        }
    }

    pub(super) fn list_jobs(&mut self) {
        let plan = self.core.shared_plan();
        for job in &plan.jobs {
            if !self.run.histories.contains_key(&job.name) {
                self.run.jobs.push(job.name.clone());
                self.run.histories.insert(job.name.clone(), JobHistory::default());
            }
        }
    }

    /// Records the phases of all jobs at the end of an instant: those that lasted no time are not shown.
    pub(super) fn note_phases(&mut self) {
        if !std::mem::take(&mut self.has_new_phases) {
            return;
        }
        let (at, plan) = (self.world.now(), self.core.shared_plan());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let phase = JobPhase::of(&self.core.status(JobIx::at(nth)), job.health.is_some());
            if let Some(history) = self.run.histories.get_mut(&job.name)
                && history.now() != Some(phase)
            {
                history.note(at, phase);
            }
        }
    }

    pub(super) fn view(&self, job: JobIx) -> View {
        let status = self.core.status(job);
        let sentences = self.core.explain(job, None).sentences();
        View { word: status.word(), healthy: status.health(), stop_reason: status.stop_reason, sentences }
    }

    /// Records the state of jobs that expectations must see at this instant.
    pub(super) fn probe(&mut self) {
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

    pub(super) fn view_all(&mut self, at: Time) {
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
