//! What the commands print about the supervisor's responses.

use containerpilot_core::event::Code;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use containerpilot_core::report::status::DeadlineKind;
use containerpilot_core::report::words;

use super::Failure;
use super::terminal::short_duration;
use super::timestamps;
pub(super) use crate::control::responses::*;
use crate::messages::query::unknown_job_hint;

impl Status {
    /// Returns the job called `name`. If several jobs share a name, `NAME:2` is the second of them.
    pub(super) fn job(&self, name: &str) -> Result<&Job, Failure> {
        let index = self.job_index(name)?;
        self.jobs.get(index).ok_or_else(|| self.no_job(name))
    }

    pub(super) fn job_index(&self, name: &str) -> Result<usize, Failure> {
        let nth = |name: &str, nth: usize| {
            let mut same_name = self.jobs.iter().enumerate().filter(|(_, job)| job.name == name);
            same_name.nth(nth).map(|(index, _)| index)
        };
        let numbered = || {
            let (name, number) = name.rsplit_once(':')?;
            nth(name, number.parse::<usize>().ok()?.checked_sub(1)?)
        };
        nth(name, 0).or_else(numbered).ok_or_else(|| self.no_job(name))
    }

    fn no_job(&self, name: &str) -> Failure {
        let hint = unknown_job_hint(name, self.jobs.iter().map(|job| job.name.as_str()));
        Failure::Failed(format!("there is no job `{name}`; {hint}"))
    }
}

impl Job {
    /// The unmet conditions and the pending hooks, one line each.
    pub(super) fn unmet(&self) -> Vec<String> {
        let conditions = self.waits_for.iter().filter(|condition| !condition.holds).map(Condition::unmet);
        conditions.chain(self.hooks.iter().map(|hook| words::pending_hook(hook))).collect()
    }

    /// How and when the last run ended, seen from `now`.
    pub(super) fn last_run(&self, now: &str) -> String {
        let Some(exit) = &self.last_exit else { return "could not be started".to_owned() };
        let ended = self.ended_at.as_deref().unwrap_or_default();
        let ago = timestamps::seconds_between(ended, now);
        if let Some(why) = &self.start_error {
            return words::failed_start(short_duration(ago.unwrap_or_default()), why);
        }
        let ago = ago.map_or_else(String::new, |ago| format!(" {} ago", short_duration(ago)));
        format!("{}{ago}", words::exit(exit.status()))
    }

    /// The first failing check, and why it fails.
    pub(super) fn failing_check(&self) -> Option<String> {
        let check = self.checks.iter().find(|check| check.passed == Some(false))?;
        let message = check.message.as_deref().unwrap_or_default();
        Some(words::failing_check(&check.name, check.failures, message))
    }
}

impl Exit {
    fn status(&self) -> ExitStatus {
        let signal = self.signal.as_deref().and_then(Signal::from_name);
        signal.map_or(ExitStatus::Code(self.code), ExitStatus::Signal)
    }

    /// `code 1`, or the name of the signal.
    pub(super) fn short(&self) -> String {
        self.signal.clone().unwrap_or_else(|| format!("code {}", self.code))
    }
}

impl Condition {
    fn unmet(&self) -> String {
        let condition = match (Code::from_name(&self.code), self.code.as_str()) {
            (Some(code), _) => words::condition(&self.source, code),
            (None, "signal") => words::condition(&self.source, Code::Signal),
            (None, code) => words::event(&self.source, code),
        };
        words::unmet(&condition, &self.state, self.possible)
    }
}

impl Deadline {
    pub(super) fn text(&self) -> String {
        let left = short_duration(self.in_seconds);
        match DeadlineKind::from_name(&self.what) {
            Some(kind) => words::deadline(kind, left),
            None => format!("{} in {left}", self.what),
        }
    }
}

impl Event {
    pub(super) fn name(&self) -> String {
        words::event(&self.source, &self.code)
    }
}
