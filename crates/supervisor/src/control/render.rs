//! Turns snapshots of the supervisor into the control socket's responses.

use std::collections::BTreeMap;

use containerpilot_api::responses;
use containerpilot_core::ids::RunId;
use containerpilot_views::answers::{self, json, line};
use containerpilot_views::items;
use containerpilot_views::journal::{EventRecord, StartRecord};
use containerpilot_views::snapshot::Snapshot;

use crate::messages::reload::ReloadSummary;
use crate::telemetry::job_usage::JobUsage;

/// `GET /v3/status`.
/// `usage` has what the processes of runs use, if that was asked for.
pub(super) fn status(snapshot: &Snapshot, usage: Option<&BTreeMap<RunId, JobUsage>>) -> String {
    let mut status = answers::status(snapshot, crate::VERSION);
    status.pid = Some(std::process::id());
    for (job, overview) in status.jobs.iter_mut().zip(&snapshot.overview.jobs) {
        let used = overview.status.run.and_then(|run| usage?.get(&run));
        job.cpu_seconds = used.map(|used| used.cpu_seconds());
        job.memory_bytes = used.map(|used| used.resident_bytes());
    }
    line(&status)
}

/// `POST /v3/reload`.
pub(super) fn reloaded(done: &ReloadSummary, dry_run: bool) -> String {
    let ReloadSummary { changes, settings, warnings } = done;
    line(&responses::Reload {
        dry_run,
        kept: Some(changes.kept.clone()),
        adjusted: changes.adjusted.clone(),
        restarted: changes.restarted.clone(),
        waiting: changes.waiting.clone(),
        started: changes.started.clone(),
        stopped: changes.stopped.clone(),
        settings: settings.iter().map(|name| (*name).to_owned()).collect(),
        warnings: warnings.clone(),
        message: String::new(),
    })
}

/// An event of `GET /v3/events`, without a line break.
pub(super) fn event(event: &EventRecord) -> String {
    json(&items::event_view(event))
}

/// The start of a run in `GET /v3/events`, without a line break.
pub(super) fn start(start: &StartRecord) -> String {
    json(&answers::start(start))
}

/// `GET /v3/health`: whether the container is healthy, and the response.
pub(super) fn health(snapshot: &Snapshot) -> (bool, String) {
    let health = answers::health(snapshot);
    (health.healthy, line(&health))
}
