//! The JSON of the control socket's responses: `render` writes it, the commands read it. `docs/openapi.json` documents
//! it.
//!
//! For a reader, a missing member has its default and an unknown one is ignored, so that the commands also work with an
//! older or newer supervisor.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use containerpilot_config::values::RESOURCES;
use containerpilot_core::inserted;
use containerpilot_core::plan::{Capabilities, Limit, Process};
use containerpilot_process::spawn::Execution;
use serde::{Deserialize, Serialize};

/// `GET /v3/status`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub version: String,
    /// `None` from a recording, which does not have it.
    pub pid: Option<u32>,
    pub started_at: String,
    pub now: String,
    pub uptime_seconds: f64,
    pub phase: String,
    pub maintenance: bool,
    pub shutdown_deadline: Option<String>,
    pub catalog: Catalog,
    pub jobs: Vec<Job>,
    pub watches: Vec<Watch>,
    pub locks: Vec<Lock>,
    pub files: Vec<File>,
    pub events: Vec<EventCount>,
}

/// The catalog in which services are registered and watched.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Catalog {
    /// `consul` or `embedded`.
    pub kind: String,
    /// Whether the last request of each service and watch was answered and accepted; `None` before the first result.
    pub up: Option<bool>,
    /// The error of the last failed request, and since when requests fail.
    pub error: Option<String>,
    pub since: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Job {
    pub name: String,
    /// The job with `replicas` that it is a replica of.
    pub replica_of: Option<String>,
    pub role: String,
    pub state: String,
    pub health: String,
    /// How it ended, or will end although it still stops; `None` if that is not certain.
    pub outcome: Option<String>,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// The supervisor keeps running until it has ended.
    #[serde(default = "yes")]
    pub work: bool,
    /// It runs at every event or tick.
    pub repeats: bool,
    /// It can end without being stopped.
    #[serde(default = "yes")]
    pub ends_by_itself: bool,
    pub pid: Option<i32>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// Why the supervisor ended the last run; `None` if that exited by itself.
    pub ended_by: Option<String>,
    pub uptime_seconds: Option<f64>,
    /// The processor time and the resident memory of its run's processes, if they were asked for and are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The runs that have ended.
    pub runs: Runs,
    /// Without the ticks of a periodic job.
    pub restarts: u64,
    /// `None` means without limit.
    #[serde(default = "no_restarts_left")]
    pub restarts_left: Option<u64>,
    pub last_exit: Option<Exit>,
    /// Failed runs in a row, up to the last one.
    pub failed_runs: u64,
    /// Why the last start failed.
    pub start_error: Option<String>,
    /// Whether its process is ready, as it says itself; `None` without `ready` or without a process.
    pub readiness: Option<String>,
    /// Its start waits for its turn, because many processes are being started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// What its process says that it does.
    pub process_status: Option<String>,
    /// The desired state of its service.
    pub service: String,
    /// What is known about its service in the catalog; `None` without a service.
    pub catalog: Option<CatalogEntry>,
    /// The times of day at which it runs.
    pub schedule: Option<Schedule>,
    /// Only a user starts it.
    pub manual: bool,
    pub deadlines: Vec<Deadline>,
    pub checks: Vec<Check>,
    pub waits_for: Vec<Condition>,
    /// True if it needs all of these conditions, not any of them.
    pub needs_all: bool,
    /// What it requires.
    pub requires: Vec<Requirement>,
    pub hooks: Vec<String>,
    /// The jobs that must end before it stops.
    pub stops_after: Vec<String>,
    /// What started the current or last run: `event`, `hand`, `action`, `interval` or `cron`.
    pub started_by: Option<String>,
    pub cause: Option<Event>,
    /// What it does in place of a program.
    pub action: Option<String>,
    pub groups: Vec<String>,
    /// Events that wait for the end of its run.
    pub pending_events: u64,
    /// Events that were dropped because too many were pending; `None` without a queue.
    pub dropped_events: Option<u64>,
}

/// `GET /v3/jobs/NAME/execution`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobExecution {
    pub job: String,
    /// The variables without those of secrets, each with a NUL at its end, in base64: they may have any bytes.
    pub environment: String,
    /// The files of secrets by the names of their variables.
    pub secrets: BTreeMap<String, String>,
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
    pub cwd: Option<String>,
    pub umask: Option<u16>,
    /// Soft and hard limits by the name of the resource; `None` means unlimited.
    pub limits: BTreeMap<String, [Option<u64>; 2]>,
    pub no_new_privileges: bool,
    pub nice: Option<i8>,
    pub oom_score_adj: Option<i16>,
    /// The names of the only capabilities that are kept.
    pub capabilities: Option<Vec<String>>,
}

/// Why the process of a job cannot be reproduced: the supervisor has sent what this version does not know.
#[derive(Debug, thiserror::Error)]
pub enum UnknownExecution {
    #[error("unknown resource `{0}`")]
    Resource(String),
    #[error("unknown capability `{0}`")]
    Capability(String),
    #[error("the environment is not base64: {0}")]
    Environment(base64::DecodeError),
}

impl JobExecution {
    pub fn new(job: String, execution: &Execution) -> Self {
        let Execution { environment, user, group, groups, process } = execution;
        let limits = process.limits.iter().filter_map(|limit| {
            let (name, _) = RESOURCES.iter().find(|(_, resource)| *resource == limit.resource)?;
            Some(((*name).to_owned(), [limit.soft, limit.hard]))
        });
        let kept = process.capabilities.map(|kept| {
            let names = Capabilities::NAMES.iter().enumerate().filter(|(number, _)| kept.contains(*number));
            names.map(|(_, name)| (*name).to_owned()).collect()
        });
        Self {
            job,
            environment: BASE64_STANDARD.encode(environment),
            secrets: process.secrets.clone(),
            user: *user,
            group: *group,
            groups: groups.clone(),
            cwd: process.cwd.clone(),
            umask: process.umask,
            limits: inserted(limits),
            no_new_privileges: process.no_new_privileges,
            nice: process.nice,
            oom_score_adj: process.oom_score_adj,
            capabilities: kept,
        }
    }

    /// The opposite of `new`.
    pub fn read(self) -> Result<Execution, UnknownExecution> {
        let limit = |(name, [soft, hard]): (String, [Option<u64>; 2])| {
            let known = RESOURCES.iter().find(|(resource, _)| *resource == name);
            let (_, resource) = known.ok_or_else(|| UnknownExecution::Resource(name.clone()))?;
            Ok(Limit { resource: *resource, soft, hard })
        };
        let kept = |names: Vec<String>| {
            let mut kept = Capabilities::default();
            for name in names {
                let number = Capabilities::NAMES.iter().position(|known| *known == name);
                kept.insert(number.ok_or(UnknownExecution::Capability(name))?);
            }
            Ok::<_, UnknownExecution>(kept)
        };
        let environment = BASE64_STANDARD.decode(&self.environment);
        Ok(Execution {
            environment: environment.map_err(UnknownExecution::Environment)?,
            user: self.user,
            group: self.group,
            groups: self.groups,
            process: Process {
                cwd: self.cwd,
                secrets: self.secrets,
                umask: self.umask,
                limits: self.limits.into_iter().map(limit).collect::<Result<_, UnknownExecution>>()?,
                no_new_privileges: self.no_new_privileges,
                nice: self.nice,
                oom_score_adj: self.oom_score_adj,
                capabilities: self.capabilities.map(kept).transpose()?,
                ..Process::default()
            },
        })
    }
}

const fn yes() -> bool {
    true
}

fn no_restarts_left() -> Option<u64> {
    Some(0)
}

/// The schedule of a job that runs at times of day.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    /// As written.
    pub cron: String,
    pub timezone: String,
    /// The next time, in UTC.
    pub next: Option<String>,
}

/// How many runs have ended, by their result.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Runs {
    pub success: u64,
    pub failure: u64,
    pub timeout: u64,
    pub stopped: u64,
}

/// What is known about a service in the catalog.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogEntry {
    pub wanted: String,
    /// The state that the catalog has confirmed; `unknown` if it has not.
    pub confirmed: String,
    pub since: Option<String>,
    pub error: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    pub code: u8,
    pub signal: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Deadline {
    pub what: String,
    pub at: String,
    pub in_seconds: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Check {
    pub name: String,
    pub running: bool,
    pub passed: Option<bool>,
    pub message: Option<String>,
    pub at: Option<String>,
    pub took_seconds: Option<f64>,
    pub failures: u64,
    /// How many in a row make the job unhealthy.
    pub failures_needed: u64,
    pub next_at: Option<String>,
}

/// Something that a job requires.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub source: String,
    pub bind: bool,
    pub holds: bool,
    pub possible: bool,
    /// What its source is doing, as a clause after "which".
    pub state: String,
}

/// A condition that a job waits for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    pub source: String,
    pub code: String,
    pub holds: bool,
    pub possible: bool,
    /// True if its event has come before.
    pub seen: bool,
    pub state: String,
}

impl Default for Condition {
    fn default() -> Self {
        let empty = String::new;
        Self { source: empty(), code: empty(), holds: false, possible: true, seen: false, state: empty() }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    pub name: String,
    /// What it watches: `service`, `tcp`, `http`, `dns`, `file`, `key` or `prefix`.
    pub kind: String,
    /// `None` before the first answer.
    pub healthy: Option<bool>,
    /// The current answer, in words.
    pub state: Option<String>,
    /// `None` before the first answer, and if it watches something that has no instances.
    pub instances: Option<Vec<Instance>>,
    /// Why it cannot be answered. What is known is the last answer.
    pub error: Option<String>,
    /// Since when it cannot be answered.
    pub since: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    pub id: String,
    pub address: String,
    pub port: u16,
}

/// A lock (D14).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Lock {
    pub name: String,
    pub held: bool,
    /// While it is held.
    pub fencing: Option<u64>,
    /// When it was acquired or lost; `None` if neither has happened.
    pub since: Option<String>,
    /// `None` for a local lock.
    pub key: Option<String>,
    /// Why it is not held.
    pub waiting: Option<String>,
}

/// `GET /v3/locks/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LockExplanation {
    pub lock: Lock,
    pub sentences: Vec<String>,
}

/// How often an event has happened.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCount {
    pub source: String,
    pub code: String,
    pub count: u64,
}

/// The start of a run in `GET /v3/events`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Start {
    pub run: u64,
    pub time: String,
    pub source: String,
    pub pid: i32,
    /// The id of the event that started the run; `None` if it was started by hand or by a tick.
    pub started_by: Option<u64>,
    /// True if a tick after the first started it.
    pub tick: bool,
    /// True if its job runs at times of day.
    pub cron: bool,
    pub restarts: u64,
}

/// A rendered file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct File {
    pub name: String,
    /// The path that is written.
    pub to: String,
    pub state: String,
    /// The watches that have not answered.
    pub waits_for: Vec<String>,
    /// When it was last known to have the text of its inputs.
    pub rendered_at: Option<String>,
    /// Why the last rendering failed, and when.
    pub error: Option<String>,
    pub failed_at: Option<String>,
    /// How often it was rendered, how often that failed, and how often it was written.
    pub renders: u64,
    pub failures: u64,
    pub changes: u64,
}

/// `GET /v3/files/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileExplanation {
    pub file: File,
    pub sentences: Vec<String>,
}

/// `GET /v3/watches/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchExplanation {
    pub watch: Watch,
    pub sentences: Vec<String>,
}

/// An event of `GET /v3/events`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    pub id: u64,
    pub time: String,
    pub source: String,
    pub code: String,
    pub cause: Option<u64>,
    pub exit: Option<Exit>,
    /// How the job ended, for `stopped`.
    pub outcome: Option<String>,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// Why the supervisor ended the run, for an exit.
    pub ended_by: Option<String>,
}

/// `GET /v3/health`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    pub healthy: bool,
    pub reason: String,
    pub jobs: Vec<JobHealth>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobHealth {
    pub name: String,
    pub state: String,
    pub health: String,
}

/// `GET /v3/jobs/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    pub job: Job,
    pub summary: String,
    /// The commands use only the sentences. A long chain of reasons is nested deeper than serde_json reads.
    #[serde(skip_deserializing)]
    pub waits: Vec<Reason>,
    pub causes: Vec<Event>,
    pub sentences: Vec<String>,
    /// The last lines of the last run, if that failed.
    pub output: Vec<String>,
}

/// Why a job waits, and why that is so.
#[derive(Debug, Serialize)]
pub struct Reason {
    pub sentence: String,
    pub because: Vec<Reason>,
}

/// `POST /v3/jobs/NAME/start`, `stop`, `restart`, `scale` and `signal`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobMessage {
    pub job: String,
    pub message: String,
    /// With status 202: false if it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// What each job of a group answers (W22).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
}

/// What one job of a group answers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobResult {
    pub job: String,
    pub message: String,
    /// False if it refuses.
    pub done: bool,
}

/// `POST /v3/maintenance/enable` and `disable`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintenance {
    /// `None` from 3.8, which does not report it.
    pub updated: Option<bool>,
}

/// `POST /v3/reload`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Reload {
    pub dry_run: bool,
    /// `None` from 3.8, which does not report its changes.
    pub kept: Option<Vec<String>>,
    /// Changed jobs that keep running.
    pub adjusted: Vec<String>,
    pub restarted: Vec<String>,
    /// Changed jobs that wait for their condition.
    pub waiting: Vec<String>,
    pub started: Vec<String>,
    pub stopped: Vec<String>,
    pub settings: Vec<String>,
    pub warnings: String,
    /// Read from [`ReloadFailed`], which has only this member.
    #[serde(skip_serializing)]
    pub message: String,
}

/// `POST /v3/reload` with status 202: why a long reload failed.
#[derive(Debug, Serialize)]
pub struct ReloadFailed {
    pub message: String,
}
