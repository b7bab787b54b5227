//! The sentences of the commands about the supervisor's responses.

use containerpilot_core::event::Code;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use containerpilot_core::report::status::DeadlineKind;
use containerpilot_core::report::words::{self, Waits};

use crate::SubjectKind;
use crate::job_names::{NamedJob, ambiguous_job, find_job, group_members, is_group, unknown_name_hint};
use crate::responses::{Catalog, CatalogEntry, Condition, Deadline, Event, Exit, Job, Schedule, Status};
use crate::timestamps::{self, short_duration};

/// A name that does not identify one job.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotOneJob(String);

impl Status {
    /// Returns the job called `name`. If several jobs share a name, `NAME:2` is the second of them.
    pub fn job(&self, name: &str) -> Result<&Job, NotOneJob> {
        let index = self.job_index(name)?;
        self.jobs.get(index).ok_or_else(|| self.no_job(name))
    }

    /// Returns the job called `name`, or all replicas of the job called `name` (W20).
    pub fn jobs_named(&self, name: &str) -> Result<Vec<&Job>, NotOneJob> {
        let replicas = self.jobs.iter().filter(|job| job.replica_of.as_deref() == Some(name));
        let replicas: Vec<&Job> = replicas.collect();
        if replicas.is_empty() { self.job(name).map(|job| vec![job]) } else { Ok(replicas) }
    }

    pub fn job_index(&self, name: &str) -> Result<usize, NotOneJob> {
        match find_job(name, &self.job_names()) {
            NamedJob::At(index) => Ok(index),
            NamedJob::Ambiguous(count) => Err(NotOneJob(ambiguous_job(name, count))),
            NamedJob::Unknown => Err(self.no_job(name)),
        }
    }

    /// The names, each group in place of its jobs (W22). Of several groups with the same job, the job is named once.
    pub fn expanded(&self, names: &[&str]) -> Result<Vec<String>, NotOneJob> {
        let mut jobs: Vec<String> = Vec::new();
        for name in names {
            if !is_group(name) {
                jobs.push((*name).to_owned());
                continue;
            }
            let known = self.jobs.iter().map(|job| (job.name.as_str(), job.groups.as_slice()));
            for member in group_members(name, known).map_err(NotOneJob)? {
                if !jobs.contains(&member) {
                    jobs.push(member);
                }
            }
        }
        Ok(jobs)
    }

    fn no_job(&self, name: &str) -> NotOneJob {
        let hint = unknown_name_hint(SubjectKind::Job, name, &self.job_names());
        NotOneJob(format!("there is no job `{name}`; {hint}"))
    }

    pub fn job_names(&self) -> Vec<&str> {
        self.jobs.iter().map(|job| job.name.as_str()).collect()
    }
}

impl Job {
    /// What a job waits for, in one sentence: its unmet conditions, its hooks, or a user.
    pub fn waiting(&self) -> Option<String> {
        let is_waiting = self.state == "waiting";
        let unmet = self.waits_for.iter().filter(|condition| !condition.holds);
        let missing = self.requires.iter().filter(|required| is_waiting && !required.holds);
        let hooks = self.hooks.iter().map(|hook| words::pending_hook(hook));
        words::waiting(Waits {
            manual: Some(self.name.as_str()).filter(|_| self.manual && is_waiting),
            queued: self.queued,
            unmet: unmet.map(|condition| (condition.unmet(), condition.possible)).collect(),
            needs_all: self.needs_all,
            has_conditions: !self.waits_for.is_empty(),
            missing: missing
                .map(|required| words::missing_requirement(&required.source, &required.state))
                .collect(),
            ends: hooks.chain(self.stops_after.iter().map(|job| words::must_end(job))).collect(),
        })
    }

    /// What one of its timers does next.
    pub fn deadline(&self, deadline: &Deadline, runs: bool) -> String {
        let text = deadline.text(runs);
        match &self.schedule {
            Some(Schedule { cron, timezone, next }) if deadline.what == DeadlineKind::Tick.name() => {
                text + &words::cron(next.as_deref(), cron, timezone)
            }
            _ => text,
        }
    }

    /// How and when the last run ended, seen from `now`.
    pub fn last_run(&self, now: &str) -> String {
        let Some(exit) = &self.last_exit else { return words::NOT_STARTED.to_owned() };
        let ended = self.ended_at.as_deref().unwrap_or_default();
        let ago = timestamps::seconds_between(ended, now);
        if let (Some(why), Some(_)) = (&self.start_error, &self.action) {
            return words::refused(short_duration(ago.unwrap_or_default()), why);
        }
        if let Some(why) = &self.start_error {
            return words::failed_start(short_duration(ago.unwrap_or_default()), why);
        }
        let ago = ago.map_or_else(String::new, |ago| format!(" {} ago", short_duration(ago)));
        format!("{}{ago}", words::run_exit(exit.status(), self.ended_by.as_deref()))
    }

    /// How the last run failed, and how often in a row; `None` if it has not.
    pub fn failed_runs(&self, now: &str) -> Option<String> {
        let last_run = || format!("last run {}", self.last_run(now));
        (self.failed_runs > 0).then(|| words::last_run(last_run(), self.failed_runs))
    }

    /// The first failing check, and why it fails.
    pub fn failing_check(&self) -> Option<String> {
        let check = self.checks.iter().find(|check| check.passed == Some(false))?;
        let message = check.message.as_deref().unwrap_or_default();
        Some(words::failing_check(&check.name, check.failures, check.failures_needed, message))
    }
}

impl Catalog {
    /// Why the catalog is not available, and since when, seen from `now`.
    pub fn trouble(&self, now: &str) -> Option<String> {
        let error = self.error.as_ref().filter(|_| self.up == Some(false))?;
        Some(format!(
            "{error}{}",
            ago(self.since.as_deref(), now).map_or_else(String::new, |time| format!(" (for {time})"))
        ))
    }
}

impl CatalogEntry {
    pub fn text(&self, now: &str) -> String {
        words::service(&self.wanted, &self.confirmed, ago(self.since.as_deref(), now), self.error.as_deref())
    }
}

/// How long ago a time was, seen from `now`.
fn ago(time: Option<&str>, now: &str) -> Option<String> {
    timestamps::seconds_between(time?, now).map(short_duration)
}

impl Exit {
    fn status(&self) -> ExitStatus {
        let signal = self.signal.as_deref().and_then(Signal::from_name);
        signal.map_or(ExitStatus::Code(self.code), ExitStatus::Signal)
    }

    /// `code 1`, or the name of the signal.
    pub fn short(&self) -> String {
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
        words::unmet(&condition, &self.state, self.possible, self.seen)
    }
}

impl Deadline {
    /// What happens then; `runs` is true if the job has a process.
    pub fn text(&self, runs: bool) -> String {
        let left = short_duration(self.in_seconds);
        match DeadlineKind::from_name(&self.what) {
            Some(kind) => words::deadline(kind, runs, left),
            None => format!("{} in {left}", self.what),
        }
    }
}

impl Event {
    pub fn name(&self) -> String {
        words::event(&self.source, &self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        let job = |name: &str, groups: &[&str]| Job {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Job::default()
        };
        let jobs = vec![job("a", &["web"]), job("b", &["web", "blue"]), job("c", &[]), job("a", &["web"])];
        Status { jobs, ..Status::default() }
    }

    #[test]
    fn w22_a_group_stands_for_its_jobs() {
        let jobs = |names: &[&str]| status().expanded(names).map_err(|error| error.to_string());
        assert_eq!(jobs(&["@web"]).unwrap(), ["a:1", "b", "a:2"]);
        assert_eq!(jobs(&["c", "@blue", "@web"]).unwrap(), ["c", "b", "a:1", "a:2"]);
        assert_eq!(jobs(&["c", "c"]).unwrap(), ["c", "c"]);
    }

    #[test]
    fn w22_an_unknown_group_names_the_groups() {
        let error = |name: &str| status().expanded(&[name]).unwrap_err().to_string();
        assert_eq!(error("@wob"), "there is no group `@wob`; did you mean `@web`?");
        assert_eq!(error("@other"), "there is no group `@other`; the groups are: @blue, @web");
        let none = Status::default().expanded(&["@web"]).unwrap_err().to_string();
        assert_eq!(none, "there is no group `@web`; no job has `groups`");
    }
}
