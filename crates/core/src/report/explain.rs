//! Why a job is in its current state: the chain of unmet conditions, and the events that led to its last run (X5).
//! The wording of single facts is in [`crate::report::words`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::catalog::connectivity::{Known, Trouble};
use crate::effect::DesiredService;
use crate::ids::JobIx;
use crate::outcome::{Outcome, SkipReason};
use crate::plan::{Status, Trigger, fmt_utc};
use crate::report::status::{Awaited, Cause, DeadlineKind, JobOverview};
use crate::report::words::{self, WAITING_UNTIL};
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::{EndReason, Event};
use crate::state::phase::Phase;
use crate::state::run::Readiness;
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

/// How many jobs a chain of unmet conditions is followed through.
const MAX_DEPTH: usize = 8;
/// How many events of a chain of causes are listed.
const MAX_CAUSES: usize = 16;

/// Why a job is in its current state.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The full status of the job.
    pub job: JobOverview,
    /// Its name and current state, in one line.
    pub summary: String,
    /// Its unmet conditions, deadlines and failing checks, and its service.
    pub waits: Vec<Reason>,
    /// The events that led to its current or last run, latest first.
    pub causes: Vec<ExplainedCause>,
    /// The job whose action started its current or last run (W19).
    pub actor: Option<String>,
}

/// One fact that explains the state of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The fact, in one line.
    pub sentence: String,
    /// The facts that explain this one.
    pub because: Vec<Reason>,
}

/// An event in a chain of causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedCause {
    /// The event.
    pub event: Event,
    /// Its source, as written in a configuration.
    pub source: String,
}

impl Core {
    /// Explains the current state of `job`, with what is known about its service in the catalog.
    #[must_use]
    pub fn explain(&self, job: JobIx, service: Option<&Known>) -> Explanation {
        let mut waits = self.reasons(job, &mut Vec::new());
        let service = service.and_then(|known| self.service(job, known));
        let file = self.plan().jobs.get(job.index()).and_then(|job| job.output.file());
        let file = file.map(|file| format!("its output is in {}", file.path));
        let facts = [self.last_failure(job), service, file].into_iter().flatten();
        waits.extend(facts.map(|sentence| Reason { sentence, because: Vec::new() }));
        Explanation {
            job: self.job_overview(job),
            summary: self.summary(job),
            waits,
            causes: self.causes(job),
            actor: match self.job(job).cause {
                Some(Cause::Action(actor)) => Some(self.origin_name(actor)),
                _ => None,
            },
        }
    }

    /// X9: how the last run of a job failed, and how many failed in a row.
    fn last_failure(&self, job: JobIx) -> Option<String> {
        let state = self.job(job);
        let is_in_summary = state.state() == State::Delaying && state.start_error.is_some();
        if state.has_ended() || is_in_summary {
            // The summary describes the last run.
            return words::failures_in_a_row(state.failed_runs);
        }
        // X10: failed checks end a run that may exit successfully, and the job runs again.
        let failed = state.failed_runs > 0
            || state.last_exit.is_some_and(|exit| exit.ended_by == Some(EndReason::Unhealthy));
        let last_run = self.last_run(job).filter(|_| failed)?;
        Some(words::last_run(last_run, state.failed_runs))
    }

    /// How and when the last run of a job ended.
    fn last_run(&self, job: JobIx) -> Option<String> {
        let state = self.job(job);
        let exit = state.last_exit?;
        let ago = fmt_duration(self.now.since(exit.at));
        let why = if exit.out_of_memory { " (out of memory)" } else { "" };
        let which = if state.has_process() { "previous" } else { "last" };
        let how = words::run_exit(exit.status, exit.ended_by.map(EndReason::name));
        Some(match &state.start_error {
            Some(error) if self.planned(job).exec.action().is_some() => {
                format!("last run {}", words::refused(ago, error))
            }
            Some(error) => words::failed_start(ago, error),
            None => format!("{which} run {how}{why} {ago} ago{}", exit.suspicion()),
        })
    }

    /// The service of a job: what is known about it in the catalog (D11), or why it is not registered.
    fn service(&self, job: JobIx, known: &Known) -> Option<String> {
        let desired = self.job(job).desired;
        let is_present = |service| matches!(service, DesiredService::Present(_));
        if !is_present(desired) && !known.confirmed.is_some_and(is_present) && known.error.is_none() {
            return self.service_state(job);
        }
        let confirmed = known.confirmed.map_or("unknown", DesiredService::name);
        let since = known.since.map(|since| fmt_duration(self.now.since(since)));
        let state = words::service(desired.name(), confirmed, since, known.error.as_deref());
        Some(format!("{}: {state}", self.service_name(job)?))
    }

    /// The service of a job in the embedded catalog, and why it is not registered.
    pub(super) fn service_state(&self, job: JobIx) -> Option<String> {
        let state = match self.job(job).desired {
            DesiredService::Present(Status::Passing) => "advertised as passing",
            DesiredService::Present(Status::Warning) => "advertised as warning",
            DesiredService::Present(Status::Critical) => "advertised as critical",
            DesiredService::Absent if self.maintenance => "not registered: in maintenance mode",
            DesiredService::Absent if self.job(job).state() != State::Running => {
                "not registered: its job is not running"
            }
            DesiredService::Absent if !self.job(job).is_up() => "deregistered: its job is stopping",
            DesiredService::Absent => "not registered until its job is healthy",
        };
        Some(format!("{}: {state}", self.service_name(job)?))
    }

    fn service_name(&self, job: JobIx) -> Option<String> {
        let service = self.planned(job).service.as_ref()?;
        Some(format!("service {} ({}:{})", service.name, service.address, service.port))
    }

    fn causes(&self, job: JobIx) -> Vec<ExplainedCause> {
        let mut causes = Vec::new();
        let mut next = self.job(job).cause_event().copied();
        while let Some(event) = next
            && causes.len() < MAX_CAUSES
            // A ring of jobs (W14) is listed once.
            && !causes.iter().any(|cause: &ExplainedCause| {
                (cause.event.origin, cause.event.code) == (event.origin, event.code)
            })
        {
            causes.push(ExplainedCause { event, source: self.origin_name(event.origin) });
            next = event.cause.and_then(|cause| self.journal().event(cause)).copied();
        }
        causes
    }

    /// The name and the current state of a job, in one line.
    pub(super) fn summary(&self, job: JobIx) -> String {
        let (planned, state) = (self.planned(job), self.job(job));
        let text = match (state.state(), state.stop_stage()) {
            _ if self.phase == Phase::Starting => "waiting for the supervisor to start".into(),
            (State::Ended(outcome), _) => self.ending(job, outcome),
            (State::Waiting, None) => match planned.when.trigger {
                Trigger::Manual => words::manual(&planned.name),
                _ if !self.has_ticks(job) => "waiting to start".into(),
                Trigger::Interval { .. } if self.is_paused() => {
                    "waiting for the end of maintenance mode".into()
                }
                Trigger::Interval { .. } | Trigger::Cron { .. } => "waiting for its next run".into(),
                _ => "waiting to start".into(),
            },
            (State::Queued, None) => words::QUEUED.into(),
            (State::Starting, None) => "starting".into(),
            (State::Running, None) => self.current_run(job),
            (State::Outlived, None | Some(StopStage::Terminate)) => {
                "stopping: its process has exited, waiting for the other processes of its run".into()
            }
            (State::Delaying, None) => match (&state.start_error, state.last_exit) {
                (Some(why), _) if planned.exec.action().is_some() => {
                    format!("refused ({why}), waiting to restart")
                }
                (Some(why), _) => format!("failed to start ({why}), waiting to restart"),
                (None, Some(exit)) => {
                    let how = words::run_exit(exit.status, exit.ended_by.map(EndReason::name));
                    format!("{how}, waiting to restart")
                }
                (None, None) => "waiting to restart".into(),
            },
            (_, Some(StopStage::Requirers)) => "stopping: waiting for other jobs to end".into(),
            (_, Some(StopStage::Hooks)) => "stopping: waiting for hooks".into(),
            (_, Some(StopStage::Deregister)) => "stopping: waiting for deregistration".into(),
            (_, Some(StopStage::Drain)) if self.job(job).drain_run().is_some() => {
                "stopping: running its drain program".into()
            }
            (_, Some(StopStage::Drain)) => "stopping: draining".into(),
            (_, Some(StopStage::Terminate)) => {
                let escalated = state.run().map_or(0, |run| run.escalated);
                let last = escalated.checked_sub(1).and_then(|nth| planned.stop.escalation.get(nth));
                format!("stopping: sent {}", last.map_or(planned.stop.signal, |last| last.signal))
            }
        };
        format!("{}: {text}", planned.name)
    }

    fn current_run(&self, job: JobIx) -> String {
        let (planned, state) = (self.planned(job), self.job(job));
        let since = fmt_duration(self.now.since(state.started_at.unwrap_or(Time::ZERO)));
        let mut text = match state.pid() {
            Some(pid) => format!("running for {since} (pid {pid})"),
            None => format!("checked for {since}"),
        };
        text += match (planned.health.is_some(), self.status(job).health()) {
            (false, _) => "",
            (true, Some(true)) => ", healthy",
            (true, Some(false)) => ", unhealthy",
            (true, None) if self.maintenance => ", in maintenance mode: checks are suspended",
            (true, None) => ", health unknown",
        };
        text
    }

    fn ending(&self, job: JobIx, outcome: Outcome) -> String {
        let state = self.job(job);
        let last_run = self.last_run(job).unwrap_or_else(|| "never ran".into());
        match (outcome, state.stop_reason()) {
            (Outcome::Stopped, Some(StopReason::Reload)) => "stopped by a reload".into(),
            (Outcome::Stopped, Some(StopReason::Shutdown)) => format!("stopped by the shutdown, {last_run}"),
            (Outcome::Stopped, Some(StopReason::SourceGone)) => {
                format!("stopped because a requirement is gone, {last_run}")
            }
            (Outcome::Stopped, Some(StopReason::ByAction)) => {
                let actor = state.stop().and_then(|stop| stop.by).map(|by| self.origin_name(by));
                format!("stopped by an action of {}, {last_run}", actor.unwrap_or_default())
            }
            (Outcome::Stopped, _) => format!("stopped by hand, {last_run}"),
            (Outcome::Skipped(reason), _) => {
                format!("skipped: {}", self.skip_reason(job).unwrap_or_else(|| reason.words().into()))
            }
            (Outcome::Failed, Some(StopReason::CrashLoop)) => {
                let limit = self.start_limit_in_words(job).map(|limit| format!(" ({limit})"));
                format!("failed: crash loop{}, {last_run}", limit.unwrap_or_default())
            }
            (Outcome::Failed, _) if state.start_error.is_some() => last_run,
            (Outcome::Failed, _) => format!("failed, {last_run}"),
            (Outcome::Complete, Some(StopReason::NothingToRun)) => {
                "complete (it has neither `exec` nor checks)".into()
            }
            (Outcome::Complete, _) => format!("complete, {last_run}"),
        }
    }

    /// Why a job is not running, or is about to stop. `visited` holds the jobs that are explained already, so that a
    /// cycle ends.
    pub(super) fn reasons(&self, job: JobIx, visited: &mut Vec<JobIx>) -> Vec<Reason> {
        if visited.contains(&job) || visited.len() >= MAX_DEPTH {
            return Vec::new();
        }
        visited.push(job);
        let overview = self.job_overview(job);
        let mut reasons = Vec::new();
        for deadline in &overview.deadlines {
            let left = fmt_duration(deadline.at.since(self.now));
            let mut sentence = words::deadline(deadline.what, overview.status.run.is_some(), left);
            if let (DeadlineKind::Tick, Some(cron)) = (deadline.what, &overview.cron) {
                let next = cron.next.map(|next| fmt_utc(Duration::from_secs(next)).to_string());
                sentence += &words::cron(next.as_deref(), &cron.text, &cron.zone);
            }
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        if let Some(run) = self.job(job).queued_run() {
            let sentence = words::turn(self.starts.in_progress(), self.starts.before(run));
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        reasons.extend(self.unready(job).map(|sentence| Reason { sentence, because: Vec::new() }));
        for check in &overview.checks {
            let Some(Err(message)) = check.last.as_ref().map(|last| &last.result) else { continue };
            let sentence = words::failing_check(
                &check.name,
                check.failures.into(),
                check.failures_needed.into(),
                message,
            );
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        for hook in &overview.hooks {
            let sentence = format!(
                "{WAITING_UNTIL}{}; {}",
                words::pending_hook(&self.planned(*hook).name),
                self.summary(*hook)
            );
            reasons.push(Reason { sentence, because: self.reasons(*hook, visited) });
        }
        for other in &overview.stops_after {
            let name = &self.planned(*other).name;
            let sentence = format!("{WAITING_UNTIL}{}; {}", words::must_end(name), self.summary(*other));
            reasons.push(Reason { sentence, because: self.reasons(*other, visited) });
        }
        reasons.extend(self.unmet_conditions(&overview, visited));
        let waits = overview.status.state == State::Waiting && overview.status.stop_stage.is_none();
        for required in overview.requires.iter().filter(|required| waits && !required.holds) {
            let sentence = words::missing_requirement(&required.source, &required.state);
            let because = match self.are_replicas_of(&required.jobs, &required.source) {
                true => self.replica_reasons(&required.jobs, |job| self.job_is_there(job), visited),
                false => required.jobs.iter().flat_map(|job| self.reasons(*job, visited)).collect(),
            };
            reasons.push(Reason { sentence, because });
        }
        if overview.outcome == Some(Outcome::Skipped(SkipReason::Unreachable)) {
            // The jobs whose events it waited for.
            let required = overview.requires.iter().filter(|required| !required.holds);
            for source in required.flat_map(|required| &required.jobs) {
                let because = self.reasons(*source, visited);
                reasons.push(Reason { sentence: self.summary(*source), because });
            }
            for awaited in self.awaited(job).iter().filter(|awaited| !awaited.holds) {
                for source in &awaited.jobs {
                    let because = self.reasons(*source, visited);
                    reasons.push(Reason { sentence: self.summary(*source), because });
                }
            }
        }
        reasons
    }

    /// H11: the readiness of the process and its status; `None` if it is ready and has no status.
    fn unready(&self, job: JobIx) -> Option<String> {
        let ready = self.planned(job).ready.as_ref()?;
        let status = self.job_overview(job).process_status.map(|text| format!("; it says: {text}"));
        let text = match self.readiness(job)? {
            Readiness::Starting => format!("{}: ready when it {}", words::NOT_READY, ready.words()),
            Readiness::Reloading => "ready, reloading its configuration".into(),
            Readiness::Stopping => "says that it stops by itself".into(),
            Readiness::Ready if status.is_none() => return None,
            Readiness::Ready => "ready".into(),
        };
        Some(format!("{text}{}", status.unwrap_or_default()))
    }

    /// The conditions of a waiting job.
    fn unmet_conditions(&self, overview: &JobOverview, visited: &mut Vec<JobIx>) -> Vec<Reason> {
        let (met, unmet): (Vec<_>, Vec<_>) = overview.waits_for.iter().partition(|awaited| awaited.holds);
        let met = met
            .into_iter()
            .map(|awaited| format!("condition met: {}", words::condition(&awaited.source, awaited.code)));
        let all_met = (unmet.is_empty() && !overview.waits_for.is_empty()).then(|| words::ALL_MET.into());
        let met = met.chain(all_met).map(|sentence| Reason { sentence, because: Vec::new() });
        let mut reasons: Vec<Reason> = met.collect();
        let any_possible = unmet.iter().any(|awaited| awaited.possible);
        let matters = |awaited: &&Awaited| words::matters(awaited.possible, overview.needs_all, any_possible);
        let unmet = unmet.into_iter().filter(matters);
        for (nth, awaited) in unmet.enumerate() {
            let mut reason = self.unmet_condition(awaited, visited);
            let word = match nth {
                0 => WAITING_UNTIL.into(),
                _ => format!("{} until ", words::conjunction(overview.needs_all)),
            };
            reason.sentence.insert_str(0, &word);
            reasons.push(reason);
        }
        reasons
    }

    fn unmet_condition(&self, awaited: &Awaited, visited: &mut Vec<JobIx>) -> Reason {
        let condition = words::condition(&awaited.source, awaited.code);
        if self.are_replicas_of(&awaited.jobs, &awaited.source) {
            let sentence = words::unmet(&condition, &awaited.state, awaited.possible, awaited.seen);
            let holds = |job| self.event_holds(job, awaited.code, true);
            return Reason { sentence, because: self.replica_reasons(&awaited.jobs, holds, visited) };
        }
        // The summary of a job is more precise than its state in one word.
        let state = if awaited.jobs.is_empty() { awaited.state.as_str() } else { "" };
        let mut sentence = words::unmet(&condition, state, awaited.possible, awaited.seen);
        let mut because = Vec::new();
        for job in &awaited.jobs {
            sentence += &format!("; {}", self.summary(*job));
            because.extend(self.reasons(*job, visited));
        }
        Reason { sentence, because }
    }
}

impl Explanation {
    /// Adds why the catalog does not answer the watches for which the job waits. `trouble` is asked for the name of
    /// each.
    pub fn add_troubles(&mut self, trouble: impl Fn(&str) -> Option<Trouble>) {
        let unmet = self.job.waits_for.iter().filter(|awaited| !awaited.holds);
        let troubles = unmet.filter_map(|awaited| trouble(awaited.source.strip_prefix("watch.")?));
        let reason = |trouble: Trouble| Reason { sentence: trouble.error, because: Vec::new() };
        let mut reasons: Vec<Reason> = troubles.map(reason).collect();
        reasons.dedup();
        self.waits.extend(reasons);
    }

    /// The explanation line by line. A fact that explains another one follows it, indented.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        fn add(lines: &mut Vec<String>, reasons: &[Reason], depth: usize) {
            for reason in reasons {
                lines.push(format!("{}{}", "  ".repeat(depth), reason.sentence));
                add(lines, &reason.because, depth + 1);
            }
        }
        let mut lines = alloc::vec![self.summary.clone()];
        add(&mut lines, &self.waits, 1);
        lines.extend(self.chain());
        lines
    }

    /// The chain of causes in one line; `None` if no event ever started the job.
    #[must_use]
    pub fn chain(&self) -> Option<String> {
        // X10: what started a run must not be read as the cause of its end.
        let started = if self.job.status.run.is_some() { "started by" } else { "last run started by" };
        match self.job.cause {
            Some(Cause::ByHand) => return Some(format!("{started} hand")),
            Some(Cause::Action(_)) => {
                let job = self.actor.as_deref().unwrap_or("another job");
                return Some(format!("{started} an action of {job}"));
            }
            // It is the cause from the start of the schedule on.
            Some(Cause::Tick(_)) if self.job.status.run.is_none() && self.job.started_at.is_none() => {
                return None;
            }
            Some(Cause::Tick(_)) => {
                let schedule = if self.job.cron.is_some() { "schedule" } else { "interval" };
                return Some(format!("{started} its {schedule}"));
            }
            Some(Cause::Event(_)) | None => {}
        }
        let events: Vec<String> =
            self.causes.iter().map(|cause| words::event(&cause.source, cause.event.code.name())).collect();
        (!events.is_empty()).then(|| format!("{started} {}", events.join(", caused by ")))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, line) in self.sentences().iter().enumerate() {
            if nth > 0 {
                out.write_str("\n")?;
            }
            out.write_str(line)?;
        }
        Ok(())
    }
}
