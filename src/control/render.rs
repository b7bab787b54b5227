//! The JSON of the control socket's responses. `docs/openapi.json` documents it.

use std::time::Duration;

use containerpilot_core::Phase;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Role, Signal, Status};
use containerpilot_core::report::explain::Reason;
use containerpilot_core::report::status::{Awaited, CheckOverview, JobOverview, WatchOverview};
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::time::Time;
use serde::Serialize;

use crate::logs::rfc3339;
use crate::runtime::query::{EventRecord, Explained, Snapshot, WallClock};
use crate::runtime::reload::ReloadSummary;

/// One line of JSON.
pub(super) fn line(response: &impl Serialize) -> String {
    // Serializing these types to memory cannot fail: their keys are strings.
    let mut text = serde_json::to_string(response).unwrap_or_default();
    text.push('\n');
    text
}

/// A response that is a sentence.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) message: &'a str,
}

/// `POST /v3/jobs/NAME/start` and the like.
#[derive(Serialize)]
pub(super) struct JobMessage<'a> {
    pub(super) job: &'a str,
    pub(super) message: &'a str,
}

/// `POST /v3/maintenance/enable|disable`.
#[derive(Serialize)]
pub(super) struct Updated {
    pub(super) updated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusJson<'a> {
    version: &'static str,
    pid: u32,
    started_at: String,
    now: String,
    uptime_seconds: f64,
    phase: &'static str,
    maintenance: bool,
    #[serde(rename = "stopTime")]
    shutdown_deadline: Option<String>,
    jobs: Vec<JobJson<'a>>,
    watches: Vec<WatchJson<'a>>,
    events: Vec<EventCountJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReloadJson<'a> {
    dry_run: bool,
    kept: &'a [String],
    restarted: &'a [String],
    started: &'a [String],
    stopped: &'a [String],
    settings: &'a [&'static str],
    warnings: &'a str,
}

#[derive(Serialize)]
struct ExplanationJson<'a> {
    job: JobJson<'a>,
    summary: &'a str,
    waits: Vec<ReasonJson<'a>>,
    causes: Vec<EventJson>,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct HealthJson<'a> {
    healthy: bool,
    reason: &'a str,
    jobs: Vec<JobHealthJson<'a>>,
}

#[derive(Serialize)]
struct JobHealthJson<'a> {
    name: &'a str,
    state: &'static str,
    health: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobJson<'a> {
    name: &'a str,
    role: &'static str,
    state: &'static str,
    health: &'static str,
    pid: Option<i32>,
    started_at: Option<String>,
    ended_at: Option<String>,
    uptime_seconds: Option<f64>,
    restarts: u64,
    restarts_left: Option<u64>,
    last_exit: Option<ExitJson>,
    service: &'static str,
    deadlines: Vec<DeadlineJson>,
    checks: Vec<CheckJson<'a>>,
    waits_for: Vec<ConditionJson<'a>>,
    hooks: Vec<&'a str>,
    cause: Option<EventJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeadlineJson {
    what: &'static str,
    at: String,
    in_seconds: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckJson<'a> {
    name: &'a str,
    running: bool,
    passed: Option<bool>,
    message: Option<&'a str>,
    at: Option<String>,
    took_seconds: Option<f64>,
    failures: u32,
    next_at: Option<String>,
}

#[derive(Serialize)]
struct ConditionJson<'a> {
    source: &'a str,
    code: &'static str,
    holds: bool,
    possible: bool,
    state: &'a str,
}

#[derive(Serialize)]
struct WatchJson<'a> {
    name: &'a str,
    instances: Option<Vec<InstanceJson<'a>>>,
}

#[derive(Serialize)]
struct InstanceJson<'a> {
    id: &'a str,
    address: &'a str,
    port: u16,
}

#[derive(Serialize)]
struct EventCountJson<'a> {
    source: &'a str,
    code: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct ReasonJson<'a> {
    sentence: &'a str,
    because: Vec<ReasonJson<'a>>,
}

#[derive(Serialize)]
struct EventJson {
    id: u64,
    time: String,
    source: String,
    code: &'static str,
    cause: Option<u64>,
    exit: Option<ExitJson>,
}

#[derive(Serialize)]
struct ExitJson {
    code: u8,
    signal: Option<String>,
}

/// Converts the core's time to wall-clock time.
#[derive(Clone, Copy)]
struct Clock {
    now: Time,
    wall: WallClock,
}

impl Clock {
    fn at(self, moment: Time) -> String {
        rfc3339(self.wall.at(moment))
    }
}

/// Seconds with millisecond precision.
#[expect(clippy::cast_precision_loss, reason = "more than 2^53 ms are 285,000 years")]
fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// `GET /v3/status`.
pub(super) fn status(snapshot: &Snapshot) -> String {
    let overview = &snapshot.overview;
    let clock = Clock { now: overview.now, wall: snapshot.clock };
    let names = |job: JobIx| overview.jobs.get(job.index()).map_or("", |job| job.name.as_str());
    let source = |origin| match origin {
        Origin::Job(job) => names(job).to_owned(),
        Origin::Watch(watch) => {
            format!("watch.{}", overview.watches.get(watch.index()).map_or("", |watch| watch.name.as_str()))
        }
        Origin::Removed(place) => snapshot.removed.get(&place).cloned().unwrap_or_default(),
        Origin::Signal(number) => Signal(number).to_string(),
        Origin::Global => "global".to_owned(),
    };
    let advertised = snapshot.advertised.iter().copied().chain(std::iter::repeat(false));
    let jobs = overview.jobs.iter().zip(advertised);
    line(&StatusJson {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        started_at: clock.at(Time::ZERO),
        now: clock.at(clock.now),
        uptime_seconds: seconds(clock.now.since(Time::ZERO)),
        phase: phase(overview.phase),
        maintenance: overview.maintenance,
        shutdown_deadline: overview.shutdown_deadline.map(|time| clock.at(time)),
        jobs: jobs.map(|(job, advertised)| job_json(job, advertised, clock, &names, &source)).collect(),
        watches: overview.watches.iter().map(watch_json).collect(),
        events: overview
            .events
            .iter()
            .map(|event| EventCountJson {
                source: &event.source,
                code: event.code.name(),
                count: event.count,
            })
            .collect(),
    })
}

/// `POST /v3/reload`.
pub(super) fn reloaded(done: &ReloadSummary, dry_run: bool) -> String {
    let ReloadSummary { changes, settings, warnings } = done;
    line(&ReloadJson {
        dry_run,
        kept: &changes.kept,
        restarted: &changes.restarted,
        started: &changes.started,
        stopped: &changes.stopped,
        settings,
        warnings,
    })
}

/// `GET /v3/jobs/NAME/explain`.
pub(super) fn explanation(explained: &Explained) -> String {
    let explanation = &explained.explanation;
    let clock = Clock { now: explained.now, wall: explained.clock };
    let names = |job: JobIx| explained.names.get(job.index()).map_or("", String::as_str);
    // The first cause is the event that the job itself has as its cause.
    let source = |_| explanation.causes.first().map(|cause| cause.source.clone()).unwrap_or_default();
    let causes = explanation.causes.iter();
    line(&ExplanationJson {
        job: job_json(&explanation.job, explained.advertised, clock, &names, &source),
        summary: &explanation.summary,
        waits: reasons_json(&explanation.waits),
        causes: causes.map(|cause| journaled_json(&cause.event, cause.source.clone(), clock)).collect(),
        sentences: explanation.sentences(),
    })
}

/// An event of `GET /v3/events`, without a line break.
pub(super) fn event(event: &EventRecord) -> String {
    serde_json::to_string(&event_json(event)).unwrap_or_default()
}

/// Whether a job counts for `GET /v3/health`: it has checks, and should be running now or has failed for good.
fn counts(job: &JobOverview) -> bool {
    let due = matches!(job.status.word(), "starting" | "running" | "restarting" | "stopping" | "failed");
    !job.checks.is_empty() && due
}

/// `GET /v3/health`: whether the container is healthy, and the response.
pub(super) fn health(snapshot: &Snapshot) -> (bool, String) {
    let overview = &snapshot.overview;
    let counted: Vec<&JobOverview> = overview.jobs.iter().filter(|job| counts(job)).collect();
    let is_healthy = |job: &&&JobOverview| job.status.healthy == Some(true) && job.status.word() != "failed";
    let passing = counted.iter().filter(is_healthy).count();
    let (healthy, reason) = match overview.phase {
        Phase::Starting => (false, "the supervisor is starting".to_owned()),
        Phase::Stopping | Phase::Killing | Phase::Exited => (false, "the supervisor is stopping".to_owned()),
        Phase::Running if overview.maintenance => {
            (true, "in maintenance mode: checks are suspended".to_owned())
        }
        Phase::Running if counted.is_empty() => (true, "no job has to pass a check now".to_owned()),
        Phase::Running => {
            let all = counted.len();
            (passing == all, format!("{passing} of {all} jobs with checks are healthy"))
        }
    };
    let jobs = counted.iter().map(|job| JobHealthJson {
        name: &job.name,
        state: job.status.word(),
        health: health_word(job),
    });
    (healthy, line(&HealthJson { healthy, reason: &reason, jobs: jobs.collect() }))
}

fn job_json<'a>(
    job: &'a JobOverview,
    advertised: bool,
    clock: Clock,
    names: &dyn Fn(JobIx) -> &'a str,
    source: &dyn Fn(Origin) -> String,
) -> JobJson<'a> {
    let status = &job.status;
    let running_since = job.started_at.filter(|_| status.pid.is_some());
    let deadlines = job.deadlines.iter().map(|deadline| DeadlineJson {
        what: deadline.what.name(),
        at: clock.at(deadline.at),
        in_seconds: seconds(deadline.at.since(clock.now)),
    });
    JobJson {
        name: &job.name,
        role: match job.role {
            Role::User => "job",
            Role::Main => "main",
            Role::Coprocess => "coprocess",
            Role::Telemetry => "telemetry",
            Role::Sensor(_) => "sensor",
        },
        state: status.word(),
        health: health_word(job),
        pid: status.pid,
        started_at: job.started_at.map(|time| clock.at(time)),
        ended_at: job.ended_at.map(|time| clock.at(time)),
        uptime_seconds: running_since.map(|since| seconds(clock.now.since(since))),
        restarts: status.restarts,
        restarts_left: job.restarts_left,
        last_exit: status.last_exit.map(exit_json),
        service: match status.desired {
            _ if !advertised => "none",
            DesiredService::Absent => "absent",
            DesiredService::Present(Status::Passing) => "passing",
            DesiredService::Present(Status::Warning) => "warning",
            DesiredService::Present(Status::Critical) => "critical",
        },
        deadlines: deadlines.collect(),
        checks: job.checks.iter().map(|check| check_json(check, clock)).collect(),
        waits_for: job.waits_for.iter().map(condition_json).collect(),
        hooks: job.hooks.iter().map(|job| names(*job)).collect(),
        cause: job.cause.map(|event| journaled_json(&event, source(event.origin), clock)),
    }
}

/// The health of a job; a job without checks has none.
fn health_word(job: &JobOverview) -> &'static str {
    match job.status.healthy {
        _ if job.checks.is_empty() => "none",
        Some(true) => "healthy",
        Some(false) => "unhealthy",
        None => "unknown",
    }
}

fn check_json(check: &CheckOverview, clock: Clock) -> CheckJson<'_> {
    let last = check.last.as_ref();
    CheckJson {
        name: &check.name,
        running: check.running,
        passed: last.map(|last| last.result.is_ok()),
        message: last.and_then(|last| last.result.as_ref().err()).map(String::as_str),
        at: last.map(|last| clock.at(last.at)),
        took_seconds: last.map(|last| seconds(last.took)),
        failures: check.failures,
        next_at: check.next.map(|time| clock.at(time)),
    }
}

fn condition_json(awaited: &Awaited) -> ConditionJson<'_> {
    ConditionJson {
        source: &awaited.source,
        code: awaited.code.name(),
        holds: awaited.holds,
        possible: awaited.possible,
        state: &awaited.state,
    }
}

fn watch_json(watch: &WatchOverview) -> WatchJson<'_> {
    let instances = watch.instances.as_ref().map(|instances| {
        let instances = instances.iter();
        instances.map(|one| InstanceJson { id: &one.id, address: &one.address, port: one.port }).collect()
    });
    WatchJson { name: &watch.name, instances }
}

fn reasons_json(reasons: &[Reason]) -> Vec<ReasonJson<'_>> {
    reasons
        .iter()
        .map(|Reason { sentence, because }| ReasonJson { sentence, because: reasons_json(because) })
        .collect()
}

fn event_json(event: &EventRecord) -> EventJson {
    EventJson {
        id: event.id.0,
        time: rfc3339(event.time),
        source: event.source.clone(),
        code: event.code.name(),
        cause: event.cause.map(|EventId(id)| id),
        exit: event.exit.map(exit_json),
    }
}

fn journaled_json(event: &Event, source: String, clock: Clock) -> EventJson {
    let Event { id, cause, at, origin: _, code, exit } = *event;
    event_json(&EventRecord { id, time: clock.wall.at(at), source, code, cause, exit })
}

fn exit_json(exit: ExitStatus) -> ExitJson {
    let signal = match exit {
        ExitStatus::Code(_) => None,
        ExitStatus::Signal(signal) => Some(signal.to_string()),
    };
    ExitJson { code: exit.code(), signal }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "beginning",
        Phase::Running => "running",
        Phase::Stopping => "stopping",
        Phase::Killing => "killing",
        Phase::Exited => "left",
    }
}
