//! The state of everything as the page shows it: one JSON text for each job, watch, lock and file, and for the rest.
//!
//! No text depends on the current time, so that two texts are equal exactly if nothing has changed.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use containerpilot_api::job_names::job_ids;
use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::EventId;
use containerpilot_core::input::{Answer, ExitStatus};
use containerpilot_core::plan::fmt_utc;
use containerpilot_core::report::dependencies::Dependency;
use containerpilot_core::report::status::JobOverview;
use containerpilot_core::report::words;
use containerpilot_core::state::journal::{Detail, EndReason, Origin};
use containerpilot_core::time::Time;
use serde::Serialize;

use crate::messages::query::{PublicSnapshot, Record, Snapshot, WallClock, started_by};

/// How many reasons why the container is not ready are listed.
const REASONS: usize = 20;

/// Milliseconds since 1970.
type Milliseconds = u64;

pub(super) fn milliseconds(time: SystemTime) -> Milliseconds {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    version: &'a str,
    started_at: Milliseconds,
    phase: &'a str,
    maintenance: bool,
    /// Why the container is not ready; none if it is.
    not_ready: Vec<String>,
    catalog: Catalog<'a>,
    arguments: bool,
    logs: bool,
}

#[derive(Serialize)]
struct Catalog<'a> {
    /// `consul`, or `embedded`.
    kind: &'a str,
    up: Option<bool>,
    error: Option<&'a str>,
    since: Option<Milliseconds>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job<'a> {
    name: &'a str,
    /// Identifies it in the path of its explanation.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_of: Option<&'a str>,
    role: &'a str,
    state: &'a str,
    health: &'a str,
    pid: Option<i32>,
    started_at: Option<Milliseconds>,
    ended_at: Option<Milliseconds>,
    exit: Option<String>,
    failed: bool,
    restarts: u64,
    failed_runs: u64,
    runs: [u64; 4],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    any: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<&'a str>,
    next: Option<Deadline>,
    service: Option<Service<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    manual: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
}

#[derive(Serialize)]
struct Deadline {
    what: &'static str,
    at: Milliseconds,
}

#[derive(Serialize)]
struct Service<'a> {
    address: String,
    port: u16,
    wanted: &'a str,
    /// What the catalog has confirmed; `None` without Consul.
    confirmed: Option<&'a str>,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct Check<'a> {
    name: &'a str,
    passed: Option<bool>,
    failures: u32,
    needed: u32,
}

#[derive(Serialize)]
struct Watch<'a> {
    name: &'a str,
    kind: &'a str,
    healthy: Option<bool>,
    state: Option<String>,
    error: Option<&'a str>,
    since: Option<Milliseconds>,
}

#[derive(Serialize)]
struct Lock<'a> {
    name: &'a str,
    held: bool,
    fencing: Option<u64>,
    since: Option<Milliseconds>,
    waiting: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    name: &'a str,
    to: &'a str,
    state: &'a str,
    waits_for: &'a [String],
    rendered_at: Option<Milliseconds>,
    failed_at: Option<Milliseconds>,
}

/// An arrow: from a source, as in a configuration, to the key of an item.
#[derive(Serialize)]
struct Edge<'a>(&'a str, String, &'a str);

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

fn json(value: &impl Serialize) -> String {
    // Serializing these types to memory cannot fail: their keys are strings.
    serde_json::to_string(value).unwrap_or_default()
}

/// The texts of a snapshot, by their keys: `head`, `edges`, `j0`, `w0`, `l0`, `f0` …
pub(super) fn items(public: &PublicSnapshot, arguments: bool, logs: bool) -> Vec<(String, String)> {
    let PublicSnapshot { snapshot, dependencies, .. } = public;
    let Snapshot { overview, catalog, clock, .. } = snapshot;
    let at = |time: Time| milliseconds(clock.at(time));
    let mut not_ready = overview.not_ready();
    not_ready.truncate(REASONS);
    let trouble = catalog.trouble();
    let head = Head {
        version: crate::VERSION,
        started_at: at(Time::ZERO),
        phase: overview.phase.name(),
        maintenance: overview.maintenance,
        not_ready,
        catalog: Catalog {
            kind: catalog.kind(),
            up: catalog.is_up(),
            error: trouble.map(|trouble| trouble.error.as_str()),
            since: trouble.map(|trouble| at(trouble.since)),
        },
        arguments,
        logs,
    };
    let edges: Vec<Edge<'_>> = dependencies.iter().filter_map(edge).collect();
    let mut items = vec![("head".to_owned(), json(&head)), ("edges".to_owned(), json(&edges))];
    let names: Vec<&str> = overview.jobs.iter().map(|job| job.name.as_str()).collect();
    for (nth, (job, id)) in overview.jobs.iter().zip(job_ids(&names)).enumerate() {
        let known = catalog.services.get(nth).and_then(Option::as_ref).filter(|_| catalog.consul.is_some());
        items.push((format!("j{nth}"), json(&job_item(job, id, known, *clock, logs))));
    }
    for (nth, watch) in overview.watches.iter().enumerate() {
        let trouble = watch.trouble.as_ref();
        let item = Watch {
            name: &watch.name,
            kind: watch.kind,
            healthy: watch.answer.as_ref().map(Answer::is_healthy),
            state: watch.answer.as_ref().map(Answer::words),
            error: trouble.map(|trouble| trouble.error.as_str()),
            since: trouble.map(|trouble| at(trouble.since)),
        };
        items.push((format!("w{nth}"), json(&item)));
    }
    for (nth, lock) in overview.locks.iter().enumerate() {
        let item = Lock {
            name: &lock.name,
            held: lock.fencing.is_some(),
            fencing: lock.fencing,
            since: lock.since.map(at),
            waiting: lock.waiting.as_deref(),
        };
        items.push((format!("l{nth}"), json(&item)));
    }
    for (nth, file) in overview.files.iter().enumerate() {
        let item = File {
            name: &file.name,
            to: &file.to,
            state: file.status.name(),
            waits_for: &file.waits_for,
            rendered_at: file.rendered_at.map(at),
            failed_at: file.failure.as_ref().map(|(time, _)| at(*time)),
        };
        items.push((format!("f{nth}"), json(&item)));
    }
    items
}

fn edge(dependency: &Dependency) -> Option<Edge<'_>> {
    let target = match dependency.target {
        Origin::Job(job) => format!("j{}", job.index()),
        Origin::Watch(watch) => format!("w{}", watch.index()),
        Origin::File(file) => format!("f{}", file.index()),
        Origin::Lock(_) | Origin::Global | Origin::Signal(_) | Origin::Removed(_) => return None,
    };
    Some(Edge(&dependency.source, target, &dependency.label))
}

fn job_item<'a>(
    job: &'a JobOverview,
    id: String,
    known: Option<&'a Known>,
    clock: WallClock,
    logs: bool,
) -> Job<'a> {
    let status = &job.status;
    let at = |time: Time| milliseconds(clock.at(time));
    let unmet = job.waits_for.iter().filter(|awaited| !awaited.holds);
    let missing = job.requires.iter().filter(|required| status.deferred && !required.holds);
    let waits = unmet.map(|awaited| words::condition(&awaited.source, awaited.code));
    let exit = status.last_exit.map(|exit| words::run_exit(exit, job.ended_by.map(EndReason::name)));
    Job {
        name: &job.name,
        id,
        replica_of: job.replica_of.as_deref(),
        role: job.role.name(),
        state: status.word(),
        health: job.health_word(),
        pid: status.pid,
        started_at: job.started_at.map(at),
        ended_at: job.ended_at.map(at),
        exit: match job.start_error {
            Some(_) => Some("failed to start".to_owned()),
            None => exit,
        },
        failed: job.failed_runs > 0,
        restarts: if job.periodic { 0 } else { job.restarts_total },
        failed_runs: job.failed_runs,
        runs: [job.runs.success, job.runs.failure, job.runs.timeout, job.runs.stopped],
        waits: waits.chain(missing.map(|required| format!("{} is there", required.source))).collect(),
        any: !job.needs_all && job.waits_for.len() > 1,
        started_by: started_by(job),
        next: job
            .deadlines
            .first()
            .map(|deadline| Deadline { what: deadline.what.name(), at: at(deadline.at) }),
        service: job.service.map(|(address, port)| Service {
            address: address.to_string(),
            port,
            wanted: status.desired.name(),
            confirmed: known.map(|known| known.confirmed.map_or("unknown", DesiredService::name)),
            error: known.and_then(|known| known.error.as_deref()),
        }),
        checks: job
            .checks
            .iter()
            .map(|check| Check {
                name: &check.name,
                passed: check.last.as_ref().map(|last| last.result.is_ok()),
                failures: check.failures,
                needed: check.failures_needed,
            })
            .collect(),
        says: job.process_status.as_deref().filter(|_| logs),
        action: job.action.as_deref(),
        schedule: job.cron.as_ref().map(|cron| {
            let next = cron.next.map(|next| fmt_utc(Duration::from_secs(next)).to_string());
            words::cron(next.as_deref(), &cron.text, &cron.zone).trim_start_matches(", ").to_owned()
        }),
        manual: job.manual,
        groups: &job.groups,
    }
}

/// The text of an event or a start. `renamed` has the names that are not shown.
pub(super) fn record(record: &Record, renamed: &BTreeMap<String, String>) -> String {
    fn name<'a>(source: &'a str, renamed: &'a BTreeMap<String, String>) -> &'a str {
        renamed.get(source).map_or(source, String::as_str)
    }
    match record {
        Record::Event(event) => {
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
        Record::Start(start) => json(&Happened {
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
