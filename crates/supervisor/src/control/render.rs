//! Turns snapshots of the supervisor into the control socket's responses.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_api::responses;
use containerpilot_api::timestamps::rfc3339;
use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::files::FileOverview;
use containerpilot_core::ids::{EventId, JobIx, RunId};
use containerpilot_core::input::{Answer, ExitStatus, Instance};
use containerpilot_core::locks::LockOverview;
use containerpilot_core::plan::fmt_utc;
use containerpilot_core::report::explain::Reason;
use containerpilot_core::report::explain_file::FileExplanation;
use containerpilot_core::report::explain_lock::LockExplanation;
use containerpilot_core::report::explain_watch::WatchExplanation;
use containerpilot_core::report::health::ContainerHealth;
use containerpilot_core::report::status::{Awaited, Cause, CheckOverview, JobOverview, RequirementOverview};
use containerpilot_core::state::journal::{Detail, Event, Origin};
use containerpilot_core::time::Time;
use containerpilot_core::watches::WatchOverview;
use containerpilot_core::{Outcome, State};
use serde::Serialize;

use crate::messages::query::{
    CatalogReport, EventRecord, Explained, ExplainedJob, ExplainedSubject, Snapshot, StartRecord, WallClock,
    started_by,
};
use crate::messages::reload::ReloadSummary;
use crate::telemetry::job_usage::Usage;

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
/// `usage` has what the processes of runs use, if that was asked for.
pub(super) fn status(snapshot: &Snapshot, usage: Option<&BTreeMap<RunId, Usage>>) -> String {
    let overview = &snapshot.overview;
    let clock = Clock { now: overview.now, wall: snapshot.clock };
    let names = |job: JobIx| overview.jobs.get(job.index()).map_or("", |job| job.name.as_str());
    let source = |origin| match origin {
        Origin::Job(job) => names(job).to_owned(),
        Origin::Watch(watch) => {
            format!("watch.{}", overview.watches.get(watch.index()).map_or("", |watch| watch.name.as_str()))
        }
        Origin::File(file) => {
            format!("file.{}", overview.files.get(file.index()).map_or("", |file| file.name.as_str()))
        }
        Origin::Lock(lock) => {
            format!("lock.{}", overview.locks.get(lock.index()).map_or("", |lock| lock.name.as_str()))
        }
        Origin::Removed(place) => snapshot.removed.get(&place).cloned().unwrap_or_default(),
        Origin::Signal(signal) => signal.to_string(),
        Origin::Global => "global".to_owned(),
    };
    line(&responses::Status {
        version: crate::VERSION.to_owned(),
        pid: std::process::id(),
        started_at: clock.at(Time::ZERO),
        now: clock.at(clock.now),
        uptime_seconds: seconds(clock.now.since(Time::ZERO)),
        phase: overview.phase.name().to_owned(),
        maintenance: overview.maintenance,
        shutdown_deadline: overview.shutdown_deadline.map(|time| clock.at(time)),
        catalog: catalog_json(&snapshot.catalog, clock),
        jobs: overview
            .jobs
            .iter()
            .enumerate()
            .map(|(nth, job)| {
                let service = snapshot.catalog.services.get(nth).and_then(Option::as_ref);
                let used = job.status.run.and_then(|run| usage?.get(&run));
                responses::Job {
                    cpu_seconds: used.map(|used| used.cpu_seconds()),
                    memory_bytes: used.map(|used| used.resident_bytes()),
                    ..job_json(job, service, clock, &names, &source)
                }
            })
            .collect(),
        watches: overview.watches.iter().map(|watch| watch_json(watch, Some(clock))).collect(),
        locks: overview.locks.iter().map(|lock| lock_json(lock, clock)).collect(),
        files: overview.files.iter().map(|file| file_json(file, clock)).collect(),
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

/// `GET /v3/jobs/NAME/explain`, and the same for watches, locks and files.
///
/// `output` is the end of the output of the last run of a job, if that failed.
pub(super) fn explanation(explained: Explained, output: Vec<String>) -> String {
    let clock = Clock { now: explained.now, wall: explained.clock };
    match explained.subject {
        ExplainedSubject::Job(job) => line(&job_explanation(*job, clock, output)),
        ExplainedSubject::Watch(WatchExplanation { watch, sentences }) => {
            line(&responses::WatchExplanation { watch: watch_json(&watch, None), sentences })
        }
        ExplainedSubject::Lock(LockExplanation { lock, sentences }) => {
            line(&responses::LockExplanation { lock: lock_json(&lock, clock), sentences })
        }
        ExplainedSubject::File(FileExplanation { file, sentences }) => {
            line(&responses::FileExplanation { file: file_json(&file, clock), sentences })
        }
    }
}

fn job_explanation(explained: ExplainedJob, clock: Clock, output: Vec<String>) -> responses::Explanation {
    let explanation = explained.explanation;
    let names = |job: JobIx| explained.names.get(job.index()).map_or("", String::as_str);
    // The first cause is the event that the job itself has as its cause.
    let source = |_| explanation.causes.first().map(|cause| cause.source.clone()).unwrap_or_default();
    let causes = explanation.causes.iter();
    responses::Explanation {
        job: job_json(&explanation.job, explained.service.as_ref(), clock, &names, &source),
        waits: reasons_json(&explanation.waits),
        causes: causes.map(|cause| journaled_json(&cause.event, cause.source.clone(), clock)).collect(),
        sentences: sentences_with(explanation.sentences(), &output),
        summary: explanation.summary,
        output,
    }
}

/// The sentences of an explanation, and the last lines of output.
fn sentences_with(mut sentences: Vec<String>, output: &[String]) -> Vec<String> {
    if !output.is_empty() {
        sentences.push("last lines of its last run:".to_owned());
        sentences.extend(output.iter().map(|line| format!("  {line}")));
    }
    sentences
}

/// An event of `GET /v3/events`, without a line break.
pub(super) fn event(event: &EventRecord) -> String {
    serde_json::to_string(&event_json(event)).unwrap_or_default()
}

/// The start of a run in `GET /v3/events`, without a line break.
pub(super) fn start(start: &StartRecord) -> String {
    let started = responses::Start {
        run: start.run.0,
        time: rfc3339(start.time),
        source: start.source.clone(),
        pid: start.pid,
        started_by: start.trigger.map(|EventId(id)| id),
        tick: start.tick,
        cron: start.cron,
        restarts: start.restarts,
    };
    serde_json::to_string(&started).unwrap_or_default()
}

/// `GET /v3/health`: whether the container is healthy, and the response.
pub(super) fn health(snapshot: &Snapshot) -> (bool, String) {
    let ContainerHealth { healthy, reason, jobs } = snapshot.overview.health();
    let jobs = jobs.iter().map(|job| responses::JobHealth {
        name: job.name.clone(),
        state: job.status.word().to_owned(),
        health: job.health_word().to_owned(),
    });
    (healthy, line(&responses::Health { healthy, reason, jobs: jobs.collect() }))
}

fn catalog_json(catalog: &CatalogReport, clock: Clock) -> responses::Catalog {
    responses::Catalog {
        kind: catalog.kind().to_owned(),
        up: catalog.is_up(),
        error: catalog.trouble().map(|trouble| trouble.error.clone()),
        since: catalog.trouble().map(|trouble| clock.at(trouble.since)),
    }
}

fn job_json<'a>(
    job: &JobOverview,
    service: Option<&Known>,
    clock: Clock,
    names: &dyn Fn(JobIx) -> &'a str,
    source: &dyn Fn(Origin) -> String,
) -> responses::Job {
    let status = &job.status;
    let cause = job.cause.as_ref().and_then(Cause::event);
    let running_since = job.started_at.filter(|_| status.pid.is_some());
    let deadlines = job.deadlines.iter().map(|deadline| responses::Deadline {
        what: deadline.what.name().to_owned(),
        at: clock.at(deadline.at),
        in_seconds: seconds(deadline.at.since(clock.now)),
    });
    responses::Job {
        cpu_seconds: None,
        memory_bytes: None,
        name: job.name.clone(),
        replica_of: job.replica_of.clone(),
        role: job.role.name().to_owned(),
        state: status.word().to_owned(),
        health: job.health_word().to_owned(),
        outcome: job.outcome.map(|outcome| outcome.name().to_owned()),
        reason: job.skip_reason.clone(),
        work: job.holds_open,
        repeats: job.runs_repeatedly,
        ends_by_itself: job.ends_by_itself,
        pid: status.pid,
        started_at: job.started_at.map(|time| clock.at(time)),
        ended_at: job.ended_at.map(|time| clock.at(time)),
        ended_by: job.ended_by.map(|reason| reason.name().to_owned()),
        uptime_seconds: running_since.map(|since| seconds(clock.now.since(since))),
        runs: responses::Runs {
            success: job.runs.success,
            failure: job.runs.failure,
            timeout: job.runs.timeout,
            stopped: job.runs.stopped,
        },
        restarts: if job.periodic { 0 } else { status.restarts },
        restarts_left: job.restarts_left,
        last_exit: status.last_exit.map(exit_json),
        failed_runs: job.failed_runs,
        start_error: job.start_error.clone(),
        readiness: status.readiness.map(|readiness| readiness.name().to_owned()),
        queued: status.state == State::Queued,
        process_status: job.process_status.clone(),
        service: if job.service.is_none() { "none" } else { status.desired.name() }.to_owned(),
        catalog: service.map(|known| responses::CatalogEntry {
            wanted: status.desired.name().to_owned(),
            confirmed: known.confirmed.map_or("unknown", DesiredService::name).to_owned(),
            since: known.since.map(|time| clock.at(time)),
            error: known.error.clone(),
        }),
        schedule: job.cron.as_ref().map(|cron| responses::Schedule {
            cron: cron.text.clone(),
            timezone: cron.zone.clone(),
            next: cron.next.map(|next| fmt_utc(Duration::from_secs(next)).to_string()),
        }),
        manual: job.manual,
        deadlines: deadlines.collect(),
        checks: job.checks.iter().map(|check| check_json(check, clock)).collect(),
        waits_for: job.waits_for.iter().map(condition_json).collect(),
        needs_all: job.needs_all,
        requires: job.requires.iter().map(requirement_json).collect(),
        hooks: job.hooks.iter().map(|job| names(*job).to_owned()).collect(),
        stops_after: job.stops_after.iter().map(|job| names(*job).to_owned()).collect(),
        started_by: started_by(job).map(str::to_owned),
        cause: cause.map(|event| journaled_json(event, source(event.origin), clock)),
        action: job.action.clone(),
        groups: job.groups.clone(),
        pending_events: job.pending_events.try_into().unwrap_or(u64::MAX),
        dropped_events: job.dropped_events,
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
        failures_needed: check.failures_needed.into(),
        next_at: check.next.map(|time| clock.at(time)),
    }
}

fn condition_json(awaited: &Awaited) -> responses::Condition {
    responses::Condition {
        source: awaited.source.clone(),
        code: awaited.code.name().to_owned(),
        holds: awaited.holds,
        possible: awaited.possible,
        seen: awaited.seen,
        state: awaited.state.clone(),
    }
}

fn requirement_json(required: &RequirementOverview) -> responses::Requirement {
    responses::Requirement {
        source: required.source.clone(),
        bind: required.bind,
        holds: required.holds,
        possible: required.possible,
        state: required.state.clone(),
    }
}

fn lock_json(lock: &LockOverview, clock: Clock) -> responses::Lock {
    responses::Lock {
        name: lock.name.clone(),
        held: lock.fencing.is_some(),
        fencing: lock.fencing,
        since: lock.since.map(|since| clock.at(since)),
        key: lock.key.clone(),
        waiting: lock.waiting.clone(),
    }
}

fn file_json(file: &FileOverview, clock: Clock) -> responses::File {
    let (failed_at, error) = file.failure.clone().unzip();
    responses::File {
        name: file.name.clone(),
        to: file.to.clone(),
        state: file.status.name().to_owned(),
        waits_for: file.waits_for.clone(),
        rendered_at: file.rendered_at.map(|at| clock.at(at)),
        error,
        failed_at: failed_at.map(|at| clock.at(at)),
        renders: file.renders,
        failures: file.failures,
        changes: file.changes,
    }
}

fn watch_json(watch: &WatchOverview, clock: Option<Clock>) -> responses::Watch {
    let instance = |one: &Instance| responses::Instance {
        id: one.id.clone(),
        address: one.address.clone(),
        port: one.port,
    };
    let instances = watch.instances().map(|instances| instances.iter().map(instance).collect());
    let trouble = watch.trouble.as_ref();
    responses::Watch {
        name: watch.name.clone(),
        kind: watch.kind.to_owned(),
        healthy: watch.answer.as_ref().map(Answer::is_healthy),
        state: watch.answer.as_ref().map(Answer::words),
        instances,
        error: trouble.map(|trouble| trouble.error.clone()),
        since: trouble.zip(clock).map(|(trouble, clock)| clock.at(trouble.since)),
    }
}

fn reasons_json(reasons: &[Reason]) -> Vec<responses::Reason> {
    let reason = |Reason { sentence, because }: &Reason| responses::Reason {
        sentence: sentence.clone(),
        because: reasons_json(because),
    };
    reasons.iter().map(reason).collect()
}

fn event_json(event: &EventRecord) -> responses::Event {
    let (exit, ended_by, outcome) = match event.detail {
        Detail::None => (None, None, None),
        Detail::Exit { status, ended_by } => (Some(status), ended_by, None),
        Detail::Ended(outcome) => (None, None, Some(outcome)),
    };
    responses::Event {
        id: event.id.0,
        time: rfc3339(event.time),
        source: event.source.clone(),
        code: event.code.name().to_owned(),
        cause: event.cause.map(|EventId(id)| id),
        exit: exit.map(exit_json),
        outcome: outcome.map(|outcome| outcome.name().to_owned()),
        reason: match outcome {
            Some(Outcome::Skipped(reason)) => Some(reason.words().to_owned()),
            _ => None,
        },
        ended_by: ended_by.map(|reason| reason.name().to_owned()),
    }
}

fn journaled_json(event: &Event, source: String, clock: Clock) -> responses::Event {
    let Event { id, cause, at, origin: _, code, detail } = *event;
    event_json(&EventRecord { id, time: clock.wall.at(at), source, code, cause, detail })
}

fn exit_json(exit: ExitStatus) -> responses::Exit {
    let signal = match exit {
        ExitStatus::Code(_) => None,
        ExitStatus::Signal(signal) => Some(signal.to_string()),
    };
    responses::Exit { code: exit.code(), signal }
}
