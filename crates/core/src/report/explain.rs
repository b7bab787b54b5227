//! Why a job is in its current state: the chain of unmet conditions, and the events that led to its last run (X5).
//! The wording of single facts is in [`crate::report::words`].

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::ids::JobIx;
use crate::plan::Trigger;
use crate::report::status::{Awaited, JobOverview};
use crate::report::words;
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::Event;
use crate::state::supervisor::{Core, Phase};
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
    /// Its unmet conditions, deadlines and failing checks.
    pub waits: Vec<Reason>,
    /// The events that led to its current or last run, latest first.
    pub causes: Vec<Cause>,
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
pub struct Cause {
    /// The event.
    pub event: Event,
    /// Its source, as written in a configuration.
    pub source: String,
}

impl Core {
    /// Explains the current state of `job`.
    #[must_use]
    pub fn explain(&self, job: JobIx) -> Explanation {
        Explanation {
            job: self.job_overview(job),
            summary: self.summary(job),
            waits: self.reasons(job, &mut Vec::new()),
            causes: self.causes(job),
        }
    }

    fn causes(&self, job: JobIx) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut next = self.job(job).cause_event().copied();
        while let Some(event) = next
            && causes.len() < MAX_CAUSES
        {
            causes.push(Cause { event, source: self.origin_name(event.origin) });
            next = event.cause.and_then(|cause| self.journal().event(cause)).copied();
        }
        causes
    }

    /// The name and the current state of a job, in one line.
    fn summary(&self, job: JobIx) -> String {
        let (planned, state) = (self.planned(job), self.job(job));
        let text = match (state.state(), state.stop_stage()) {
            _ if self.phase == Phase::Starting => "waiting for the supervisor to start".into(),
            (State::Complete, _) => self.completion(job),
            (State::Waiting, None) => match planned.when.trigger {
                Trigger::Interval(_) => "waiting for its next run".into(),
                _ => "waiting to start".into(),
            },
            (State::Starting, None) => "starting".into(),
            (State::Running, None) => self.current_run(job),
            (State::Delaying, None) => match &state.start_error {
                Some(why) => format!("failed to start ({why}), waiting to restart"),
                None => "exited, waiting to restart".into(),
            },
            (_, Some(StopStage::Hooks)) => "stopping: waiting for hooks".into(),
            (_, Some(StopStage::Deregister)) => "stopping: waiting for deregistration".into(),
            (_, Some(StopStage::Drain)) => "stopping: draining".into(),
            (_, Some(StopStage::Terminate)) => {
                format!("stopping: sent {}", planned.stop.signal)
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
        text += match (planned.health.is_some(), self.status(job).healthy) {
            (false, _) => "",
            (true, Some(true)) => ", healthy",
            (true, Some(false)) => ", unhealthy",
            (true, None) if self.maintenance => ", in maintenance mode: checks are suspended",
            (true, None) => ", health unknown",
        };
        text
    }

    fn completion(&self, job: JobIx) -> String {
        let state = self.job(job);
        let last_run = match (state.last_exit, &state.start_error) {
            (None, _) => "never ran".into(),
            (Some(exit), start_error) => {
                let ago = fmt_duration(self.now.since(exit.at));
                let memory = if exit.out_of_memory { " (out of memory)" } else { "" };
                match start_error {
                    Some(why) => words::failed_start(ago, why),
                    None => format!("last run {}{memory} {ago} ago", words::exit(exit.status)),
                }
            }
        };
        match state.stop_reason() {
            Some(StopReason::ByHand) => format!("stopped by hand, {last_run}"),
            Some(StopReason::Reload) => "stopped by a reload".into(),
            Some(StopReason::Unreachable) => "will never run (its condition can no longer be met)".into(),
            Some(StopReason::StartTimeout) => "gave up (not started within its `when.timeout`)".into(),
            Some(StopReason::NothingToRun) => "complete (it has neither `exec` nor checks)".into(),
            Some(StopReason::Shutdown) => format!("stopped by the shutdown, {last_run}"),
            Some(StopReason::Failed) if state.start_error.is_some() => last_run,
            Some(StopReason::Failed) => format!("failed, {last_run}"),
            Some(StopReason::Completed) | None => format!("complete, {last_run}"),
        }
    }

    /// Why a job is not running, or is about to stop. `visited` holds the jobs that are explained already, so that a
    /// cycle ends.
    fn reasons(&self, job: JobIx, visited: &mut Vec<JobIx>) -> Vec<Reason> {
        if visited.contains(&job) || visited.len() >= MAX_DEPTH {
            return Vec::new();
        }
        visited.push(job);
        let overview = self.job_overview(job);
        let mut reasons = Vec::new();
        for deadline in &overview.deadlines {
            let left = fmt_duration(deadline.at.since(self.now));
            reasons.push(Reason { sentence: words::deadline(deadline.what, left), because: Vec::new() });
        }
        for check in overview.checks.iter().filter(|check| check.failures > 0) {
            let message = match check.last.as_ref().map(|last| &last.result) {
                Some(Err(message)) => message.as_str(),
                _ => "",
            };
            let sentence = words::failing_check(&check.name, check.failures.into(), message);
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        for hook in &overview.hooks {
            let sentence =
                format!("{}; {}", words::pending_hook(&self.planned(*hook).name), self.summary(*hook));
            reasons.push(Reason { sentence, because: self.reasons(*hook, visited) });
        }
        reasons.extend(overview.waits_for.iter().map(|awaited| self.reason(awaited, visited)));
        reasons
    }

    fn reason(&self, awaited: &Awaited, visited: &mut Vec<JobIx>) -> Reason {
        let condition = words::condition(&awaited.source, awaited.code);
        if awaited.holds {
            return Reason { sentence: format!("condition met: {condition}"), because: Vec::new() };
        }
        // The summary of a job is more precise than its state in one word.
        let state = if awaited.jobs.is_empty() { awaited.state.as_str() } else { "" };
        let mut sentence = words::unmet(&condition, state, awaited.possible);
        let mut because = Vec::new();
        for job in &awaited.jobs {
            sentence += &format!("; {}", self.summary(*job));
            because.extend(self.reasons(*job, visited));
        }
        Reason { sentence, because }
    }
}

impl Explanation {
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
        if self.job.by_hand {
            return Some("started by hand".into());
        }
        let events: Vec<String> =
            self.causes.iter().map(|cause| words::event(&cause.source, cause.event.code.name())).collect();
        (!events.is_empty()).then(|| format!("triggered by {}", events.join(", caused by ")))
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
