//! Turns snapshots of the supervisor into the control socket's responses.

use std::time::Duration;

use containerpilot_core::Phase;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::{ExitStatus, Instance};
use containerpilot_core::plan::{Role, Status};
use containerpilot_core::report::explain::Reason;
use containerpilot_core::report::health::ContainerHealth;
use containerpilot_core::report::status::{Awaited, CheckOverview, JobOverview, WatchOverview};
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::time::Time;
use serde::Serialize;

use super::responses;
use crate::logs::rfc3339;
use crate::messages::query::{EventRecord, Explained, Snapshot, WallClock};
use crate::messages::reload::ReloadSummary;

/// One line of JSON.
pub(super) fn line(response: &impl Serialize) -> String {
    // Serializing these types to memory cannot fail: their keys are strings.
    let mut text = serde_json::to_string(response).unwrap_or_default();
    text.push('\n');
    text
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
        Origin::Signal(signal) => signal.name().to_owned(),
        Origin::Global => "global".to_owned(),
    };
    line(&responses::Status {
        version: crate::VERSION.to_owned(),
        pid: std::process::id(),
        started_at: clock.at(Time::ZERO),
        now: clock.at(clock.now),
        uptime_seconds: seconds(clock.now.since(Time::ZERO)),
        phase: phase(overview.phase).to_owned(),
        maintenance: overview.maintenance,
        shutdown_deadline: overview.shutdown_deadline.map(|time| clock.at(time)),
        jobs: overview.jobs.iter().map(|job| job_json(job, clock, &names, &source)).collect(),
        watches: overview.watches.iter().map(watch_json).collect(),
        events: overview
            .events
            .iter()
            .map(|event| responses::EventCount {
                source: event.source.clone(),
                code: event.code.name().to_owned(),
                count: event.count,
            })
            .collect(),
    })
}

/// `POST /v3/reload`.
pub(super) fn reloaded(done: &ReloadSummary, dry_run: bool) -> String {
    let ReloadSummary { changes, settings, warnings } = done;
    line(&responses::Reload {
        dry_run,
        kept: Some(changes.kept.clone()),
        restarted: changes.restarted.clone(),
        started: changes.started.clone(),
        stopped: changes.stopped.clone(),
        settings: settings.iter().map(|name| (*name).to_owned()).collect(),
        warnings: warnings.clone(),
        message: String::new(),
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
    line(&responses::Explanation {
        job: job_json(&explanation.job, clock, &names, &source),
        summary: explanation.summary.clone(),
        waits: reasons_json(&explanation.waits),
        causes: causes.map(|cause| journaled_json(&cause.event, cause.source.clone(), clock)).collect(),
        sentences: explanation.sentences(),
    })
}

/// An event of `GET /v3/events`, without a line break.
pub(super) fn event(event: &EventRecord) -> String {
    serde_json::to_string(&event_json(event)).unwrap_or_default()
}

/// `GET /v3/health`: whether the container is healthy, and the response.
pub(super) fn health(snapshot: &Snapshot) -> (bool, String) {
    let ContainerHealth { healthy, reason, jobs } = snapshot.overview.health();
    let jobs = jobs.iter().map(|job| responses::JobHealth {
        name: job.name.clone(),
        state: job.status.word().to_owned(),
        health: health_word(job).to_owned(),
    });
    (healthy, line(&responses::Health { healthy, reason, jobs: jobs.collect() }))
}

fn job_json<'a>(
    job: &JobOverview,
    clock: Clock,
    names: &dyn Fn(JobIx) -> &'a str,
    source: &dyn Fn(Origin) -> String,
) -> responses::Job {
    let status = &job.status;
    let running_since = job.started_at.filter(|_| status.pid.is_some());
    let deadlines = job.deadlines.iter().map(|deadline| responses::Deadline {
        what: deadline.what.name().to_owned(),
        at: clock.at(deadline.at),
        in_seconds: seconds(deadline.at.since(clock.now)),
    });
    responses::Job {
        name: job.name.clone(),
        role: match job.role {
            Role::User => "job",
            Role::Main => "main",
            Role::Coprocess => "coprocess",
            Role::Telemetry => "telemetry",
            Role::Sensor(_) => "sensor",
        }
        .to_owned(),
        state: status.word().to_owned(),
        health: health_word(job).to_owned(),
        pid: status.pid,
        started_at: job.started_at.map(|time| clock.at(time)),
        ended_at: job.ended_at.map(|time| clock.at(time)),
        uptime_seconds: running_since.map(|since| seconds(clock.now.since(since))),
        restarts: status.restarts,
        restarts_left: job.restarts_left,
        last_exit: status.last_exit.map(exit_json),
        start_error: job.start_error.clone(),
        service: match status.desired {
            _ if job.service.is_none() => "none",
            DesiredService::Absent => "absent",
            DesiredService::Present(Status::Passing) => "passing",
            DesiredService::Present(Status::Warning) => "warning",
            DesiredService::Present(Status::Critical) => "critical",
        }
        .to_owned(),
        deadlines: deadlines.collect(),
        checks: job.checks.iter().map(|check| check_json(check, clock)).collect(),
        waits_for: job.waits_for.iter().map(condition_json).collect(),
        hooks: job.hooks.iter().map(|job| names(*job).to_owned()).collect(),
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

fn check_json(check: &CheckOverview, clock: Clock) -> responses::Check {
    let last = check.last.as_ref();
    responses::Check {
        name: check.name.clone(),
        running: check.running,
        passed: last.map(|last| last.result.is_ok()),
        message: last.and_then(|last| last.result.as_ref().err()).cloned(),
        at: last.map(|last| clock.at(last.at)),
        took_seconds: last.map(|last| seconds(last.took)),
        failures: check.failures.into(),
        next_at: check.next.map(|time| clock.at(time)),
    }
}

fn condition_json(awaited: &Awaited) -> responses::Condition {
    responses::Condition {
        source: awaited.source.clone(),
        code: awaited.code.name().to_owned(),
        holds: awaited.holds,
        possible: awaited.possible,
        state: awaited.state.clone(),
    }
}

fn watch_json(watch: &WatchOverview) -> responses::Watch {
    let instance = |one: &Instance| responses::Instance {
        id: one.id.clone(),
        address: one.address.clone(),
        port: one.port,
    };
    let instances = watch.instances.as_ref().map(|instances| instances.iter().map(instance).collect());
    responses::Watch { name: watch.name.clone(), instances }
}

fn reasons_json(reasons: &[Reason]) -> Vec<responses::Reason> {
    let reason = |Reason { sentence, because }: &Reason| responses::Reason {
        sentence: sentence.clone(),
        because: reasons_json(because),
    };
    reasons.iter().map(reason).collect()
}

fn event_json(event: &EventRecord) -> responses::Event {
    responses::Event {
        id: event.id.0,
        time: rfc3339(event.time),
        source: event.source.clone(),
        code: event.code.name().to_owned(),
        cause: event.cause.map(|EventId(id)| id),
        exit: event.exit.map(exit_json),
    }
}

fn journaled_json(event: &Event, source: String, clock: Clock) -> responses::Event {
    let Event { id, cause, at, origin: _, code, exit } = *event;
    event_json(&EventRecord { id, time: clock.wall.at(at), source, code, cause, exit })
}

fn exit_json(exit: ExitStatus) -> responses::Exit {
    let signal = match exit {
        ExitStatus::Code(_) => None,
        ExitStatus::Signal(signal) => Some(signal.to_string()),
    };
    responses::Exit { code: exit.code(), signal }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Running => "running",
        Phase::Stopping | Phase::Terminating => "stopping",
        Phase::Killing => "killing",
        Phase::Exited => "exited",
    }
}
