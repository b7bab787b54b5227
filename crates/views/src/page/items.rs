//! The state of everything as the page shows it: one JSON text for each job, watch, lock and file, and for the rest.
//!
//! No text depends on the current time, so that two texts are equal exactly if nothing has changed.

use std::collections::BTreeMap;

use containerpilot_api::job_names::job_ids;
use containerpilot_api::responses;
use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::report::status::JobOverview;
use containerpilot_core::report::words;
use containerpilot_core::state::journal::{Detail, EndReason};
use containerpilot_core::time::Time;
use serde::Serialize;

use super::picture::Picture;
use crate::answers::json;
use crate::clock::{Clock, milliseconds};
use crate::items;
use crate::journal::JournalRecord;
use crate::snapshot::{PublicSnapshot, Snapshot};

/// How many reasons why the container is not ready are listed.
const REASONS: usize = 20;

/// Milliseconds since 1970.
type Milliseconds = u64;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    version: &'a str,
    started_at: Milliseconds,
    phase: &'a str,
    maintenance: bool,
    /// Why the container is not ready; none if it is.
    not_ready: Vec<String>,
    catalog: responses::Catalog,
    arguments: bool,
    logs: bool,
}

/// What the page says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub version: &'a str,
    /// Whether it shows command lines, and the output of jobs.
    pub arguments: bool,
    pub logs: bool,
}

/// A job: what the control socket sends about it, and what the page adds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    job: responses::Job,
    /// Identifies it in the path of its explanation.
    id: String,
    /// What it waits for, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
    /// How its last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_run: Option<String>,
    /// All of them, also those before an event started it again.
    restarts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

/// An event or a start of the journal.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Happened<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
    at: Milliseconds,
    source: &'a str,
    /// The code of an event, or `start`.
    code: &'a str,
    what: String,
    /// The event that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<u64>,
    /// What caused it, if it was no event.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    bad: bool,
}

/// The texts of a snapshot, by their keys: `head`, `graph`, `j0`, `w0`, `l0`, `f0` …
pub(super) fn items(
    public: &PublicSnapshot,
    picture: &mut Picture,
    shown: &Shown<'_>,
) -> Vec<(String, String)> {
    let PublicSnapshot { snapshot, graph, .. } = public;
    let Snapshot { overview, catalog, clock, .. } = snapshot;
    let wall = *clock;
    let clock = Clock { now: None, wall };
    let mut not_ready = overview.not_ready();
    not_ready.truncate(REASONS);
    let head = Head {
        version: shown.version,
        started_at: milliseconds(wall.at(Time::ZERO)),
        phase: overview.phase.name(),
        maintenance: overview.maintenance,
        not_ready,
        catalog: items::catalog(catalog, clock),
        arguments: shown.arguments,
        logs: shown.logs,
    };
    let mut items = vec![("head".to_owned(), json(&head)), ("graph".to_owned(), picture.text(graph))];
    let names: Vec<&str> = overview.jobs.iter().map(|job| job.name.as_str()).collect();
    for (nth, (job, id)) in overview.jobs.iter().zip(job_ids(&names)).enumerate() {
        let known = catalog.services.get(nth).and_then(Option::as_ref);
        items.push((format!("j{nth}"), json(&job_item(job, id, known, clock, &names))));
    }
    for (nth, watch) in overview.watches.iter().enumerate() {
        let item = responses::Watch { instances: None, ..items::watch(watch, Some(clock)) };
        items.push((format!("w{nth}"), json(&item)));
    }
    for (nth, lock) in overview.locks.iter().enumerate() {
        let item = responses::Lock { key: None, ..items::lock(lock, clock) };
        items.push((format!("l{nth}"), json(&item)));
    }
    for (nth, file) in overview.files.iter().enumerate() {
        items.push((format!("f{nth}"), json(&items::file(file, clock))));
    }
    items
}

/// A job without what depends on the present or changes with each check, and without its cause, whose source may be a
/// removed job: its name is not redacted.
fn job_item(job: &JobOverview, id: String, known: Option<&Known>, clock: Clock, names: &[&str]) -> Job {
    let names = |job: JobIx| names.get(job.index()).copied().unwrap_or_default();
    let mut view = items::job(job, known, clock, &names, &|_| String::new());
    view.cause = None;
    for check in &mut view.checks {
        *check = responses::Check {
            name: std::mem::take(&mut check.name),
            passed: check.passed,
            failures: check.failures,
            failures_needed: check.failures_needed,
            ..responses::Check::default()
        };
    }
    Job {
        id,
        waiting: view.waiting(),
        last_run: job.last_run(),
        restarts: if job.periodic { 0 } else { job.restarts_total },
        address: job.service.map(|(address, port)| format!("{address}:{port}")),
        job: view,
    }
}

/// The text of an event or a start. `renamed` has the names that are not shown.
pub fn record(record: &JournalRecord, renamed: &BTreeMap<String, String>) -> String {
    fn name<'a>(source: &'a str, renamed: &'a BTreeMap<String, String>) -> &'a str {
        renamed.get(source).map_or(source, String::as_str)
    }
    match record {
        JournalRecord::Event(event) => {
            let (what, by, bad) = match event.detail {
                Detail::None => (event.code.name().to_owned(), None, event.code.name().contains("nhealthy")),
                Detail::Exit { status, ended_by } => {
                    let by = ended_by.map(EndReason::name);
                    let is_failure = !matches!(status, ExitStatus::Code(0)) && by.is_none();
                    (words::run_exit(status, by), by, is_failure)
                }
                Detail::Ended(outcome) => (outcome.name().to_owned(), None, outcome.name() == "failed"),
            };
            json(&Happened {
                id: Some(event.id.0),
                run: None,
                at: milliseconds(event.time),
                source: name(&event.source, renamed),
                code: event.code.name(),
                what,
                cause: event.cause.map(|EventId(id)| id),
                by,
                bad: bad || ["crashLoop", "failed", "lost"].contains(&event.code.name()),
            })
        }
        JournalRecord::Start(start) => json(&Happened {
            id: None,
            run: Some(start.run.0),
            at: milliseconds(start.time),
            source: name(&start.source, renamed),
            code: "start",
            what: format!("started (pid {})", start.pid),
            cause: start.trigger.map(|EventId(id)| id),
            by: match start.trigger {
                _ if start.restarts > 0 && !start.tick => Some("restart"),
                Some(_) => None,
                None if start.tick && start.cron => Some("schedule"),
                None if start.tick => Some("interval"),
                None => Some("hand"),
            },
            bad: false,
        }),
    }
}
