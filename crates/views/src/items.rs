//! What clients see of jobs, watches, locks and files: the control socket sends these views, and the page those of a
//! redacted core.

use std::time::Duration;

use containerpilot_api::responses;
use containerpilot_api::timestamps::rfc3339;
use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::files::FileOverview;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::{Answer, ExitStatus, Instance};
use containerpilot_core::locks::LockOverview;
use containerpilot_core::plan::fmt_utc;
use containerpilot_core::report::status::{Awaited, Cause, CheckOverview, JobOverview, RequirementOverview};
use containerpilot_core::state::journal::{Detail, Event, Origin};
use containerpilot_core::watches::WatchOverview;
use containerpilot_core::{Outcome, State};

use crate::catalog::CatalogReport;
use crate::clock::{Clock, seconds};
use crate::journal::EventRecord;

pub fn catalog(catalog: &CatalogReport, clock: Clock) -> responses::Catalog {
    responses::Catalog {
        kind: catalog.kind().to_owned(),
        up: catalog.is_up(),
        error: catalog.trouble().map(|trouble| trouble.error.clone()),
        since: catalog.trouble().map(|trouble| clock.at(trouble.since)),
    }
}

pub fn job<'a>(
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
        in_seconds: clock.now.map_or(0.0, |now| seconds(deadline.at.since(now))),
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
        uptime_seconds: running_since.zip(clock.now).map(|(since, now)| seconds(now.since(since))),
        runs: responses::Runs {
            success: job.runs.success,
            failure: job.runs.failure,
            timeout: job.runs.timeout,
            stopped: job.runs.stopped,
        },
        restarts: if job.periodic { 0 } else { status.restarts },
        restarts_left: job.restarts_left,
        last_exit: status.last_exit.map(exit_view),
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
        checks: job.checks.iter().map(|check| check_view(check, clock)).collect(),
        waits_for: job.waits_for.iter().map(condition).collect(),
        needs_all: job.needs_all,
        requires: job.requires.iter().map(requirement).collect(),
        hooks: job.hooks.iter().map(|job| names(*job).to_owned()).collect(),
        stops_after: job.stops_after.iter().map(|job| names(*job).to_owned()).collect(),
        started_by: started_by(job).map(str::to_owned),
        cause: cause.map(|event| journaled(event, source(event.origin), clock)),
        action: job.action.clone(),
        groups: job.groups.clone(),
        pending_events: job.pending_events.try_into().unwrap_or(u64::MAX),
        dropped_events: job.dropped_events,
    }
}

/// What started the current or last run of a job, in one word for clients.
fn started_by(job: &JobOverview) -> Option<&'static str> {
    job.cause.map(|cause| match cause {
        Cause::Event(_) => "event",
        Cause::ByHand => "hand",
        Cause::Tick(_) if job.cron.is_some() => "cron",
        Cause::Action(_) => "action",
        Cause::Tick(_) => "interval",
    })
}

fn check_view(check: &CheckOverview, clock: Clock) -> responses::Check {
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

fn condition(awaited: &Awaited) -> responses::Condition {
    responses::Condition {
        source: awaited.source.clone(),
        code: awaited.code.name().to_owned(),
        holds: awaited.holds,
        possible: awaited.possible,
        seen: awaited.seen,
        state: awaited.state.clone(),
    }
}

fn requirement(required: &RequirementOverview) -> responses::Requirement {
    responses::Requirement {
        source: required.source.clone(),
        bind: required.bind,
        holds: required.holds,
        possible: required.possible,
        state: required.state.clone(),
    }
}

pub fn lock(lock: &LockOverview, clock: Clock) -> responses::Lock {
    responses::Lock {
        name: lock.name.clone(),
        held: lock.fencing.is_some(),
        fencing: lock.fencing,
        since: lock.since.map(|since| clock.at(since)),
        key: lock.key.clone(),
        waiting: lock.waiting.clone(),
    }
}

pub fn file(file: &FileOverview, clock: Clock) -> responses::File {
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

pub fn watch(watch: &WatchOverview, clock: Option<Clock>) -> responses::Watch {
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

pub fn event_view(event: &EventRecord) -> responses::Event {
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
        exit: exit.map(exit_view),
        outcome: outcome.map(|outcome| outcome.name().to_owned()),
        reason: match outcome {
            Some(Outcome::Skipped(reason)) => Some(reason.words().to_owned()),
            _ => None,
        },
        ended_by: ended_by.map(|reason| reason.name().to_owned()),
    }
}

pub fn journaled(event: &Event, source: String, clock: Clock) -> responses::Event {
    let Event { id, cause, at, origin: _, code, detail } = *event;
    event_view(&EventRecord { id, time: clock.wall.at(at), source, code, cause, detail })
}

fn exit_view(exit: ExitStatus) -> responses::Exit {
    let signal = match exit {
        ExitStatus::Code(_) => None,
        ExitStatus::Signal(signal) => Some(signal.to_string()),
    };
    responses::Exit { code: exit.code(), signal }
}
