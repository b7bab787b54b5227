//! The JSON of the control socket's responses: `render` writes it, the commands read it. `docs/openapi.json` documents it.
//!
//! For a reader, a missing member has its default and an unknown one is ignored, so that the commands also work with an older or newer
//! supervisor.

use serde::{Deserialize, Serialize};

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
    pub(crate) jobs: Vec<Job>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) events: Vec<EventCount>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) state: String,
    pub(crate) health: String,
    pub(crate) pid: Option<i32>,
    pub(crate) started_at: Option<String>,
    pub(crate) ended_at: Option<String>,
    pub(crate) uptime_seconds: Option<f64>,
    pub(crate) restarts: u64,
    /// `None` means without limit.
    #[serde(default = "no_restarts_left")]
    pub(crate) restarts_left: Option<u64>,
    pub(crate) last_exit: Option<Exit>,
    /// Why the last start failed.
    pub(crate) start_error: Option<String>,
    pub(crate) service: String,
    pub(crate) deadlines: Vec<Deadline>,
    pub(crate) checks: Vec<Check>,
    pub(crate) waits_for: Vec<Condition>,
    pub(crate) hooks: Vec<String>,
    pub(crate) cause: Option<Event>,
}

fn no_restarts_left() -> Option<u64> {
    Some(0)
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
    pub(crate) next_at: Option<String>,
}

/// A condition that a job waits for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) holds: bool,
    pub(crate) possible: bool,
    pub(crate) state: String,
}

impl Default for Condition {
    fn default() -> Self {
        let empty = String::new;
        Self { source: empty(), code: empty(), holds: false, possible: true, state: empty() }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Watch {
    pub(crate) name: String,
    /// `None` before the first response of the catalog.
    pub(crate) instances: Option<Vec<Instance>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) address: String,
    pub(crate) port: u16,
}

/// How often an event has happened.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EventCount {
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) count: u64,
}

/// An event of `GET /v3/events`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) time: String,
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) cause: Option<u64>,
    pub(crate) exit: Option<Exit>,
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
}

/// Why a job waits, and why that is so.
#[derive(Debug, Serialize)]
pub(crate) struct Reason {
    pub(crate) sentence: String,
    pub(crate) because: Vec<Reason>,
}

/// `POST /v3/jobs/NAME/start`, `stop`, `restart` and `signal`
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct JobMessage {
    pub(crate) job: String,
    pub(crate) message: String,
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
    pub(crate) restarted: Vec<String>,
    pub(crate) started: Vec<String>,
    pub(crate) stopped: Vec<String>,
    pub(crate) settings: Vec<String>,
    pub(crate) warnings: String,
    /// Read from [`ReloadInProgress`], which has only this member.
    #[serde(skip_serializing)]
    pub(crate) message: String,
}

/// `POST /v3/reload` while a long reload is still running.
#[derive(Debug, Serialize)]
pub(crate) struct ReloadInProgress {
    pub(crate) message: &'static str,
}
