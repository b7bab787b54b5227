//! The parts of the supervisor's JSON that the commands read. A missing member has its default and an unknown one is
//! ignored, so that the commands also work with an older or newer supervisor.

use containerpilot_config::suggest;
use containerpilot_core::event::Code;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use containerpilot_core::report::status::DeadlineKind;
use containerpilot_core::report::words;
use serde::Deserialize;

use super::Failure;
use super::terminal::short_duration;
use super::timestamps;

/// `GET /v3/status`
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) now: String,
    pub(super) uptime_seconds: f64,
    pub(super) phase: String,
    pub(super) maintenance: bool,
    pub(super) jobs: Vec<Job>,
    pub(super) watches: Vec<Watch>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) state: String,
    pub(super) health: String,
    pub(super) pid: Option<u32>,
    pub(super) started_at: Option<String>,
    pub(super) ended_at: Option<String>,
    pub(super) uptime_seconds: Option<f64>,
    pub(super) restarts: u64,
    /// `None` means without limit.
    #[serde(default = "no_restarts_left")]
    pub(super) restarts_left: Option<u64>,
    pub(super) last_exit: Option<Exit>,
    pub(super) service: String,
    pub(super) deadlines: Vec<Deadline>,
    pub(super) checks: Vec<Check>,
    pub(super) waits_for: Vec<Condition>,
    pub(super) hooks: Vec<String>,
    pub(super) cause: Option<Event>,
}

fn no_restarts_left() -> Option<u64> {
    Some(0)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Exit {
    pub(super) code: u8,
    pub(super) signal: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Deadline {
    what: String,
    in_seconds: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) running: bool,
    pub(super) passed: Option<bool>,
    pub(super) message: Option<String>,
    pub(super) at: Option<String>,
    pub(super) took_seconds: Option<f64>,
    pub(super) failures: u64,
    pub(super) next_at: Option<String>,
}

/// A condition that a job waits for.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    source: String,
    code: String,
    pub(super) holds: bool,
    possible: bool,
    state: String,
}

impl Default for Condition {
    fn default() -> Self {
        let empty = String::new;
        Self { source: empty(), code: empty(), holds: false, possible: true, state: empty() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Watch {
    pub(super) name: String,
    /// `None` before the first response of the catalog.
    pub(super) instances: Option<Vec<Instance>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) address: String,
    pub(super) port: u16,
}

/// An event of `GET /v3/events`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) time: String,
    pub(super) source: String,
    pub(super) code: String,
    pub(super) cause: Option<u64>,
    pub(super) exit: Option<Exit>,
}

/// `GET /v3/health`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    pub(super) healthy: bool,
    pub(super) reason: String,
    pub(super) jobs: Vec<Job>,
}

/// `GET /v3/jobs/NAME/explain`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Explanation {
    pub(super) sentences: Vec<String>,
}

/// `POST /v3/jobs/NAME/start`, `stop`, `restart` and `signal`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Done {
    pub(super) message: String,
}

/// `POST /v3/maintenance/enable` and `disable`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Maintenance {
    /// `None` from 3.8, which does not report it.
    pub(super) updated: Option<bool>,
}

/// `POST /v3/reload`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reload {
    /// Set instead of the lists while a long reload is still running.
    pub(super) message: String,
    pub(super) warnings: String,
    /// `None` from 3.8, which does not report its changes.
    pub(super) kept: Option<Vec<String>>,
    pub(super) restarted: Vec<String>,
    pub(super) started: Vec<String>,
    pub(super) stopped: Vec<String>,
    pub(super) settings: Vec<String>,
}

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
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        let hint = match suggest::nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.len() > 20 => "`containerpilot status` lists all jobs".to_owned(),
            None => format!("the jobs are: {}", names.join(", ")),
        };
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
