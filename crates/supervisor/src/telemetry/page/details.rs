//! The explanation of one job, watch, lock or file, with the usage and the last lines of a job.
//!
//! Explanations are requested one after the other and at most [`PER_SECOND`] times a second from the event loop, for
//! all viewers together. At most [`WAITING`] requests wait for that: the others are refused, so that the connections of
//! the server are not all used up by them. The usage of processes is read when a viewer requests it, at most once a
//! second.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use containerpilot_core::ids::RunId;
use containerpilot_core::plan;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_views::clock::milliseconds;
use containerpilot_views::explanation::{self, ExplainedSubject};
use containerpilot_views::lookup::{LookupError, Subject};
use serde::Serialize;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::super::job_usage::{self, JobUsage};
use super::shown;
use crate::logs::Tails;
use crate::messages::query_handle::QueryHandle;
use crate::net::server::ServerLimits;

const PER_SECOND: u32 = 25;
/// As many as there are viewers with a stream.
const WAITING: usize = ServerLimits::TELEMETRY.streams;
/// How long the usage of processes is reused.
const USAGE_LIFETIME: Duration = Duration::from_secs(1);
/// How many lines of output are shown, and how long each of them is at most.
const LINES: usize = 50;
const LINE_CHARACTERS: usize = 500;

/// Explains one thing at a time.
pub(super) struct Details {
    queries: QueryHandle,
    tails: Option<Tails>,
    /// One permit for each request that waits.
    waiting: Semaphore,
    /// When the next explanation may be requested.
    next: Mutex<Instant>,
    usage: Mutex<Option<Reading>>,
}

/// The usage of all runs.
struct Reading {
    read: Instant,
    /// In milliseconds since 1970.
    at: u64,
    runs: BTreeMap<RunId, JobUsage>,
}

/// `GET /page/jobs/NAME`, `/page/watches/NAME`, `/page/locks/NAME` and `/page/files/NAME`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    sentences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The last lines of output, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageNow>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageNow {
    /// The number of the run: a new one starts again at zero.
    run: u64,
    /// When it was read, in milliseconds since 1970.
    at: u64,
    cpu_seconds: f64,
    memory_bytes: u64,
}

/// Why there is no explanation.
#[derive(Debug)]
pub(super) enum ExplainError {
    /// Too many requests wait.
    Busy,
    Lookup(LookupError),
}

impl From<LookupError> for ExplainError {
    fn from(error: LookupError) -> Self {
        Self::Lookup(error)
    }
}

impl Details {
    pub(super) fn new(queries: QueryHandle, tails: Option<Tails>) -> Self {
        let (waiting, next) = (Semaphore::new(WAITING), Mutex::new(Instant::now()));
        Self { queries, tails, waiting, next, usage: Mutex::new(None) }
    }

    pub(super) async fn explain(
        &self,
        settings: &plan::Page,
        subject: Subject,
    ) -> Result<String, ExplainError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| ExplainError::Busy)?;
        let (sentences, job) = match self.query(shown(settings), subject).await?.subject {
            ExplainedSubject::Job(job) => (job.explanation.sentences(), Some(job)),
            ExplainedSubject::Watch(explained) => (explained.sentences, None),
            ExplainedSubject::Lock(explained) => (explained.sentences, None),
            ExplainedSubject::File(explained) => (explained.sentences, None),
        };
        let usage = match job.as_ref().and_then(|job| job.explanation.job.status.run) {
            Some(run) => self.usage(run).await,
            None => None,
        };
        let tails = self.tails.as_ref().filter(|_| settings.logs);
        let lines = job.as_ref().zip(tails).map(|(job, tails)| last_lines(tails, &job.logged_as));
        let command = job.and_then(|job| job.command);
        let explained = Explained { sentences, command, lines, usage };
        Ok(serde_json::to_string(&explained).unwrap_or_default())
    }

    async fn query(
        &self,
        shown: Disclosure,
        subject: Subject,
    ) -> Result<explanation::Explained, LookupError> {
        let mut next = self.next.lock().await;
        sleep_until(*next).await;
        let explained = self.queries.explain(subject, Some(shown)).await;
        *next = Instant::now() + Duration::from_secs(1) / PER_SECOND;
        explained
    }

    /// What the processes of a run use.
    async fn usage(&self, run: RunId) -> Option<UsageNow> {
        let mut latest = self.usage.lock().await;
        if latest.as_ref().is_none_or(|latest| latest.read.elapsed() >= USAGE_LIFETIME) {
            let snapshot = self.queries.overview().await?;
            let at = milliseconds(SystemTime::now());
            *latest = Some(Reading { read: Instant::now(), at, runs: job_usage::read(&snapshot) });
        }
        let Reading { at, runs, .. } = latest.as_ref()?;
        let used = runs.get(&run)?;
        Some(UsageNow {
            run: run.0,
            at: *at,
            cpu_seconds: used.cpu_seconds(),
            memory_bytes: used.resident_bytes(),
        })
    }
}

fn last_lines(tails: &Tails, job: &str) -> Vec<String> {
    let all = tails.last_lines(job);
    let last = all.get(all.len().saturating_sub(LINES)..).unwrap_or_default();
    last.iter().map(|line| line.text.chars().take(LINE_CHARACTERS).collect()).collect()
}
