//! The JSON of the control socket's responses: `render` writes it, the commands read it. `docs/openapi.json` documents it.
//!
//! For a reader, a missing member has its default and an unknown one is ignored, so that the commands also work with an older or newer
//! supervisor.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use containerpilot_config::values::RESOURCES;
use containerpilot_core::plan::{Capabilities, Limit, Process};
use serde::{Deserialize, Serialize};

use crate::process::spawn::Execution;

/// `GET /v3/status`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) started_at: String,
    pub(crate) now: String,
    pub(crate) uptime_seconds: f64,
    pub(crate) phase: String,
    pub(crate) maintenance: bool,
    pub(crate) shutdown_deadline: Option<String>,
    pub(crate) catalog: Catalog,
    pub(crate) jobs: Vec<Job>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) files: Vec<File>,
    pub(crate) events: Vec<EventCount>,
}

/// The catalog in which services are registered and watched.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Catalog {
    /// `consul` or `embedded`.
    pub(crate) kind: String,
    /// Whether the last request of each service and watch was answered and accepted; `None` before the first result.
    pub(crate) up: Option<bool>,
    /// The error of the last failed request, and since when requests fail.
    pub(crate) error: Option<String>,
    pub(crate) since: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) name: String,
    /// The job with `replicas` that it is a replica of.
    pub(crate) replica_of: Option<String>,
    pub(crate) role: String,
    pub(crate) state: String,
    pub(crate) health: String,
    /// How it ended, or will end although it still stops; `None` if that is not certain.
    pub(crate) outcome: Option<String>,
    /// Why it was skipped.
    pub(crate) reason: Option<String>,
    /// The supervisor keeps running until it has ended.
    #[serde(default = "yes")]
    pub(crate) work: bool,
    /// It runs at every event or tick.
    pub(crate) repeats: bool,
    /// It can end without being stopped.
    #[serde(default = "yes")]
    pub(crate) ends_by_itself: bool,
    pub(crate) pid: Option<i32>,
    pub(crate) started_at: Option<String>,
    pub(crate) ended_at: Option<String>,
    /// Why the supervisor ended the last run; `None` if that exited by itself.
    pub(crate) ended_by: Option<String>,
    pub(crate) uptime_seconds: Option<f64>,
    /// The processor time and the resident memory of its run's processes, if they were asked for and are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_bytes: Option<u64>,
    /// The runs that have ended.
    pub(crate) runs: Runs,
    /// Without the ticks of a periodic job.
    pub(crate) restarts: u64,
    /// `None` means without limit.
    #[serde(default = "no_restarts_left")]
    pub(crate) restarts_left: Option<u64>,
    pub(crate) last_exit: Option<Exit>,
    /// Failed runs in a row, up to the last one.
    pub(crate) failed_runs: u64,
    /// Why the last start failed.
    pub(crate) start_error: Option<String>,
    /// Whether its process is ready, as it says itself; `None` without `ready` or without a process.
    pub(crate) readiness: Option<String>,
    /// Its start waits for its turn, because many processes are being started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) queued: bool,
    /// What its process says that it does.
    pub(crate) process_status: Option<String>,
    /// The desired state of its service.
    pub(crate) service: String,
    /// What is known about its service in the catalog; `None` without a service.
    pub(crate) catalog: Option<CatalogEntry>,
    /// The times of day at which it runs.
    pub(crate) schedule: Option<Schedule>,
    /// Only a user starts it.
    pub(crate) manual: bool,
    pub(crate) deadlines: Vec<Deadline>,
    pub(crate) checks: Vec<Check>,
    pub(crate) waits_for: Vec<Condition>,
    /// True if it needs all of these conditions, not any of them.
    pub(crate) needs_all: bool,
    /// What it requires.
    pub(crate) requires: Vec<Requirement>,
    pub(crate) hooks: Vec<String>,
    /// The jobs that must end before it stops.
    pub(crate) stops_after: Vec<String>,
    /// What started the current or last run: `event`, `hand`, `action`, `interval` or `cron`.
    pub(crate) started_by: Option<String>,
    pub(crate) cause: Option<Event>,
    /// What it does in place of a program.
    pub(crate) action: Option<String>,
    pub(crate) groups: Vec<String>,
    /// Events that wait for the end of its run.
    pub(crate) pending_events: u64,
    /// Events that were dropped because too many were pending; `None` without a queue.
    pub(crate) dropped_events: Option<u64>,
}

/// `GET /v3/jobs/NAME/execution`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobExecution {
    pub(crate) job: String,
    /// The variables without those of secrets, each with a NUL at its end, in base64: they may have any bytes.
    pub(crate) environment: String,
    /// The files of secrets by the names of their variables.
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) cwd: Option<String>,
    pub(crate) umask: Option<u16>,
    /// Soft and hard limits by the name of the resource; `None` means unlimited.
    pub(crate) limits: BTreeMap<String, [Option<u64>; 2]>,
    pub(crate) no_new_privileges: bool,
    pub(crate) nice: Option<i8>,
    pub(crate) oom_score_adj: Option<i16>,
    /// The names of the only capabilities that are kept.
    pub(crate) capabilities: Option<Vec<String>>,
}

impl JobExecution {
    pub(crate) fn new(job: String, execution: &Execution) -> Self {
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
            limits: limits.collect(),
            no_new_privileges: process.no_new_privileges,
            nice: process.nice,
            oom_score_adj: process.oom_score_adj,
            capabilities: kept,
        }
    }

    /// The opposite of `new`. An error names what this version does not know.
    pub(crate) fn read(self) -> Result<Execution, String> {
        let limit = |(name, [soft, hard]): (String, [Option<u64>; 2])| {
            let known = RESOURCES.iter().find(|(resource, _)| *resource == name);
            let (_, resource) = known.ok_or_else(|| format!("unknown resource `{name}`"))?;
            Ok(Limit { resource: *resource, soft, hard })
        };
        let kept = |names: Vec<String>| {
            let mut kept = Capabilities::default();
            for name in names {
                let number = Capabilities::NAMES.iter().position(|known| *known == name);
                kept.insert(number.ok_or_else(|| format!("unknown capability `{name}`"))?);
            }
            Ok::<_, String>(kept)
        };
        let environment = BASE64_STANDARD.decode(&self.environment);
        Ok(Execution {
            environment: environment.map_err(|error| format!("the environment is not base64: {error}"))?,
            user: self.user,
            group: self.group,
            groups: self.groups,
            process: Process {
                cwd: self.cwd,
                secrets: self.secrets,
                umask: self.umask,
                limits: self.limits.into_iter().map(limit).collect::<Result<_, String>>()?,
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
pub(crate) struct Schedule {
    /// As written.
    pub(crate) cron: String,
    pub(crate) timezone: String,
    /// The next time, in UTC.
    pub(crate) next: Option<String>,
}

/// How many runs have ended, by their result.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Runs {
    pub(crate) success: u64,
    pub(crate) failure: u64,
    pub(crate) timeout: u64,
    pub(crate) stopped: u64,
}

/// What is known about a service in the catalog.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogEntry {
    pub(crate) wanted: String,
    /// The state that the catalog has confirmed; `unknown` if it has not.
    pub(crate) confirmed: String,
    pub(crate) since: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Exit {
    pub(crate) code: u8,
    pub(crate) signal: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Deadline {
    pub(crate) what: String,
    pub(crate) at: String,
    pub(crate) in_seconds: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) running: bool,
    pub(crate) passed: Option<bool>,
    pub(crate) message: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) took_seconds: Option<f64>,
    pub(crate) failures: u64,
    /// How many in a row make the job unhealthy.
    pub(crate) failures_needed: u64,
    pub(crate) next_at: Option<String>,
}

/// Something that a job requires.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Requirement {
    pub(crate) source: String,
    pub(crate) bind: bool,
    pub(crate) holds: bool,
    pub(crate) possible: bool,
    /// What its source is doing, as a clause after "which".
    pub(crate) state: String,
}

/// A condition that a job waits for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) holds: bool,
    pub(crate) possible: bool,
    /// True if its event has come before.
    pub(crate) seen: bool,
    pub(crate) state: String,
}

impl Default for Condition {
    fn default() -> Self {
        let empty = String::new;
        Self { source: empty(), code: empty(), holds: false, possible: true, seen: false, state: empty() }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Watch {
    pub(crate) name: String,
    /// What it watches: `service`, `tcp`, `http`, `dns`, `file`, `key` or `prefix`.
    pub(crate) kind: String,
    /// `None` before the first answer.
    pub(crate) healthy: Option<bool>,
    /// What is there, in words.
    pub(crate) state: Option<String>,
    /// `None` before the first answer, and if it watches something that has no instances.
    pub(crate) instances: Option<Vec<Instance>>,
    /// Why it cannot be answered. What is known is the last answer.
    pub(crate) error: Option<String>,
    /// Since when it cannot be answered.
    pub(crate) since: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) address: String,
    pub(crate) port: u16,
}

/// A lock (D14).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) held: bool,
    /// While it is held.
    pub(crate) fencing: Option<u64>,
    /// When it was acquired or lost; `None` if neither has happened.
    pub(crate) since: Option<String>,
    /// `None` for a local lock.
    pub(crate) key: Option<String>,
    /// Why it is not held.
    pub(crate) waiting: Option<String>,
}

/// `GET /v3/locks/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LockExplanation {
    pub(crate) lock: Lock,
    pub(crate) sentences: Vec<String>,
}

/// How often an event has happened.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EventCount {
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) count: u64,
}

/// The start of a run in `GET /v3/events`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Start {
    pub(crate) run: u64,
    pub(crate) time: String,
    pub(crate) source: String,
    pub(crate) pid: i32,
    /// The id of the event that started the run; `None` if it was started by hand or by a tick.
    pub(crate) started_by: Option<u64>,
    /// True if a tick after the first started it.
    pub(crate) tick: bool,
    /// True if its job runs at times of day.
    pub(crate) cron: bool,
    pub(crate) restarts: u64,
}

/// A rendered file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct File {
    pub(crate) name: String,
    /// The path that is written.
    pub(crate) to: String,
    pub(crate) state: String,
    /// The watches that have not answered.
    pub(crate) waits_for: Vec<String>,
    /// When it was last known to have the text of its inputs.
    pub(crate) rendered_at: Option<String>,
    /// Why the last rendering failed, and when.
    pub(crate) error: Option<String>,
    pub(crate) failed_at: Option<String>,
    /// How often it was rendered, how often that failed, and how often it was written.
    pub(crate) renders: u64,
    pub(crate) failures: u64,
    pub(crate) changes: u64,
}

/// `GET /v3/files/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FileExplanation {
    pub(crate) file: File,
    pub(crate) sentences: Vec<String>,
}

/// `GET /v3/watches/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WatchExplanation {
    pub(crate) watch: Watch,
    pub(crate) sentences: Vec<String>,
}

/// An event of `GET /v3/events`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) time: String,
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) cause: Option<u64>,
    pub(crate) exit: Option<Exit>,
    /// How the job ended, for `stopped`.
    pub(crate) outcome: Option<String>,
    /// Why it was skipped.
    pub(crate) reason: Option<String>,
    /// Why the supervisor ended the run, for an exit.
    pub(crate) ended_by: Option<String>,
}

/// `GET /v3/health`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Health {
    pub(crate) healthy: bool,
    pub(crate) reason: String,
    pub(crate) jobs: Vec<JobHealth>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct JobHealth {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) health: String,
}

/// `GET /v3/jobs/NAME/explain`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Explanation {
    pub(crate) job: Job,
    pub(crate) summary: String,
    /// The commands use only the sentences. A long chain of reasons is nested deeper than serde_json reads.
    #[serde(skip_deserializing)]
    pub(crate) waits: Vec<Reason>,
    pub(crate) causes: Vec<Event>,
    pub(crate) sentences: Vec<String>,
    /// The last lines of the last run, if that failed.
    pub(crate) output: Vec<String>,
}

/// Why a job waits, and why that is so.
#[derive(Debug, Serialize)]
pub(crate) struct Reason {
    pub(crate) sentence: String,
    pub(crate) because: Vec<Reason>,
}

/// `POST /v3/jobs/NAME/start`, `stop`, `restart`, `scale` and `signal`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct JobMessage {
    pub(crate) job: String,
    pub(crate) message: String,
    /// With status 202: false if it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<bool>,
}

/// `POST /v3/maintenance/enable` and `disable`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Maintenance {
    /// `None` from 3.8, which does not report it.
    pub(crate) updated: Option<bool>,
}

/// `POST /v3/reload`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Reload {
    pub(crate) dry_run: bool,
    /// `None` from 3.8, which does not report its changes.
    pub(crate) kept: Option<Vec<String>>,
    /// Changed jobs that keep running.
    pub(crate) adjusted: Vec<String>,
    pub(crate) restarted: Vec<String>,
    /// Changed jobs that wait for their condition.
    pub(crate) waiting: Vec<String>,
    pub(crate) started: Vec<String>,
    pub(crate) stopped: Vec<String>,
    pub(crate) settings: Vec<String>,
    pub(crate) warnings: String,
    /// Read from [`ReloadFailed`], which has only this member.
    #[serde(skip_serializing)]
    pub(crate) message: String,
}

/// `POST /v3/reload` with status 202: why a long reload failed.
#[derive(Debug, Serialize)]
pub(crate) struct ReloadFailed {
    pub(crate) message: String,
}
