//! Why a job runs, or does not: what it waits for, how that stands, and the chain of events that led here (X5).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::event::Code;
use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::{Signal, Trigger};
use crate::report::status::{DeadlineKind, JobOverview};
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::{Event, Origin};
use crate::state::supervisor::{Core, Phase};
use crate::time::{Time, fmt_duration};

/// How far the reasons of reasons are followed.
const DEEPEST: usize = 8;
/// How many events of a chain of causes are told.
const LONGEST: usize = 16;

/// Why a job runs, or does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Everything that is known of it.
    pub job: JobOverview,
    /// What it is doing, in a sentence.
    pub summary: String,
    /// What it waits for, and how that stands.
    pub waits: Vec<Reason>,
    /// The events that led to its present or last run, the nearest first.
    pub causes: Vec<Cause>,
}

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// What is waited for, and how it stands with that, in a sentence.
    pub sentence: String,
    /// Why that has not come.
    pub because: Vec<Reason>,
}

/// An event in a chain of causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The event.
    pub event: Event,
    /// Where it came from, as a configuration writes it.
    pub source: String,
}

impl Core {
    /// Why a job runs, or does not.
    #[must_use]
    pub fn explain(&self, job: JobIx) -> Explanation {
        Explanation {
            job: self.job_overview(job),
            summary: self.summary(job),
            waits: self.reasons(job, &mut Vec::new()),
            causes: self.causes(job),
        }
    }

    /// The chain of events that led to the present or last run.
    fn causes(&self, job: JobIx) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut next = self.job(job).cause_event().copied();
        while let Some(event) = next
            && causes.len() < LONGEST
        {
            causes.push(Cause { event, source: self.origin_name(event.origin) });
            next = event.cause.and_then(|cause| self.journal().event(cause)).copied();
        }
        causes
    }

    /// What a job is doing, in a sentence.
    fn summary(&self, job: JobIx) -> String {
        let (planned, state) = (self.planned(job), self.job(job));
        let name = &planned.name;
        match (state.state(), state.stop_stage()) {
            _ if self.phase == Phase::Starting => {
                format!("{name} has not begun: the supervisor is not ready")
            }
            (State::Complete, _) => format!("{name} {}", self.how_it_ended(job)),
            (State::Waiting, None) => match planned.when.trigger {
                Trigger::Interval(_) => format!("{name} waits for its next turn"),
                _ => format!("{name} waits to be started"),
            },
            (State::Starting, None) => format!("{name} is being started"),
            (State::Running, None) => self.how_it_runs(job),
            (State::Delaying, None) => format!("{name} has ended and will be restarted"),
            (_, Some(StopStage::Hooks)) => {
                format!("{name} is stopping, and waits for what runs before that")
            }
            (_, Some(StopStage::Deregister)) => {
                format!("{name} is stopping, and waits for the catalog to let its service go")
            }
            (_, Some(StopStage::Drain)) => format!("{name} is stopping, and drains"),
            (_, Some(StopStage::Terminate)) => {
                format!("{name} is stopping: it was sent signal {}", planned.stop.signal.0)
            }
        }
    }

    fn how_it_runs(&self, job: JobIx) -> String {
        let (planned, state) = (self.planned(job), self.job(job));
        let since = fmt_duration(self.now.since(state.started_at.unwrap_or(Time::ZERO)));
        let mut text = match state.pid() {
            Some(pid) => format!("{} runs as pid {pid} for {since}", planned.name),
            None => format!("{} is checked for {since}", planned.name),
        };
        text += match (planned.health.is_some(), self.status(job).healthy) {
            (false, _) => "",
            (true, Some(true)) => " and is healthy",
            (true, Some(false)) => " and is unhealthy",
            (true, None) if self.maintenance => " and is not checked during maintenance",
            (true, None) => ", and it is not known yet whether it is healthy",
        };
        text
    }

    fn how_it_ended(&self, job: JobIx) -> String {
        let state = self.job(job);
        let how = match state.last_exit.map(|exit| exit.status) {
            Some(ExitStatus::Code(code)) => format!("exited with code {code}"),
            Some(ExitStatus::Signal(Signal(number))) => format!("was ended by signal {number}"),
            None => "was never run".to_string(),
        };
        let how = if state.last_exit.is_some_and(|exit| exit.out_of_memory) {
            format!("{how} when memory ran out")
        } else {
            how
        };
        let when = state
            .last_exit
            .map_or_else(String::new, |exit| format!(" {} ago", fmt_duration(self.now.since(exit.at))));
        match state.stop_reason() {
            Some(StopReason::ByHand) => format!("was stopped by hand; its last run {how}{when}"),
            Some(StopReason::Reload) => "was stopped by a reload".into(),
            Some(StopReason::Unreachable) => "will never run: what it waits for cannot come any more".into(),
            Some(StopReason::StartTimeout) => "has given up: it was not started in time".into(),
            Some(StopReason::NothingToRun) => "has nothing to run and nothing to check".into(),
            Some(StopReason::Shutdown) => {
                format!("was stopped with everything else; its last run {how}{when}")
            }
            Some(StopReason::Failed) => format!("has failed for good: its last run {how}{when}"),
            Some(StopReason::Completed) | None => format!("is complete: its last run {how}{when}"),
        }
    }

    /// What a job waits for, and why that has not come. Each job is explained once, so a ring comes to an end.
    fn reasons(&self, job: JobIx, told: &mut Vec<JobIx>) -> Vec<Reason> {
        if told.contains(&job) || told.len() >= DEEPEST {
            return Vec::new();
        }
        told.push(job);
        let mut reasons = Vec::new();
        let overview = self.job_overview(job);
        for deadline in &overview.deadlines {
            let left = fmt_duration(deadline.at.since(self.now));
            let sentence = match deadline.what {
                DeadlineKind::GiveUp => format!("it gives up in {left} if it was not started by then"),
                DeadlineKind::Turn => format!("its next turn is in {left}"),
                DeadlineKind::Restart => format!("it is restarted in {left}"),
                DeadlineKind::Timeout => format!("its run is killed in {left} if it has not ended by then"),
                DeadlineKind::Hooks => format!("it waits {left} more for what runs before it stops"),
                DeadlineKind::Withdrawal => format!("it waits {left} more for the catalog"),
                DeadlineKind::Drained => format!("it has drained in {left}"),
                DeadlineKind::Kill => format!("it is killed in {left} if it has not ended by then"),
            };
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        for check in overview.checks.iter().filter(|check| check.failures > 0) {
            let why = match check.last.as_ref().map(|last| &last.result) {
                Some(Err(why)) => why.as_str(),
                _ => "",
            };
            let times = if check.failures == 1 { "once".into() } else { format!("{} times", check.failures) };
            let sentence = format!("its check {} has failed {times} in a row: {why}", check.name);
            reasons.push(Reason { sentence, because: Vec::new() });
        }
        for hook in &overview.hooks {
            let sentence =
                format!("it waits for {} to be complete; {}", self.planned(*hook).name, self.summary(*hook));
            reasons.push(Reason { sentence, because: self.reasons(*hook, told) });
        }
        for awaited in &overview.waits_for {
            reasons.push(self.reason(awaited, told));
        }
        reasons
    }

    fn reason(&self, awaited: &crate::report::status::Awaited, told: &mut Vec<JobIx>) -> Reason {
        let what = format!("{} {}", awaited.source, awaited.code);
        let mut because = Vec::new();
        if awaited.holds {
            return Reason { sentence: format!("{what} has come"), because };
        }
        let mut states: Vec<String> = Vec::new();
        for job in &awaited.jobs {
            states.push(self.summary(*job));
            because.extend(self.reasons(*job, told));
        }
        if awaited.jobs.is_empty() && !awaited.state.is_empty() {
            states.push(awaited.state.clone());
        }
        let end = if awaited.possible { "" } else { "; it cannot come any more" };
        let states = if states.is_empty() { String::new() } else { format!("; {}", states.join("; ")) };
        Reason { sentence: format!("it waits for {what}{states}{end}"), because }
    }
}

impl Explanation {
    /// The whole in sentences, one a line; what explains another stands below it, farther in.
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
        if let Some(chain) = self.chain() {
            lines.push(chain);
        }
        lines
    }

    /// The chain of causes in one sentence, if it ever ran for an event.
    #[must_use]
    pub fn chain(&self) -> Option<String> {
        if self.job.by_hand {
            return Some("it was started by hand".into());
        }
        let (first, others) = self.causes.split_first()?;
        let told = |cause: &Cause| match (cause.event.origin, cause.event.code) {
            (Origin::Signal(_), Code::Signal) => cause.source.clone(),
            (_, code) => format!("{} {code}", cause.source),
        };
        let mut text = format!("it was started by {}", told(first));
        for (nth, cause) in others.iter().enumerate() {
            text += if nth == 0 { ", which came from " } else { ", from " };
            text += &told(cause);
        }
        Some(text)
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
