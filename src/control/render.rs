//! The answers of the control log_thread as JSON. What they look like is written down in `docs/openapi.json`.

use std::time::Duration;

use containerpilot_config::kinds::signal_name;
use containerpilot_core::Phase;
use containerpilot_core::effect::Wanted;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Role, Status};
use containerpilot_core::report::explain::Reason;
use containerpilot_core::report::status::{Awaited, CheckOverview, JobOverview, WatchOverview};
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::time::Time;

use crate::json::{self, Writer};
use crate::logs::rfc3339;
use crate::runtime::query::{EventRecord, Explained, Snapshot, WallClock};
use crate::runtime::reload::ReloadSummary;

/// A moment, and how to speak of others from there.
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

/// Seconds, to the millisecond.
fn seconds(duration: Duration) -> String {
    format!("{}.{:03}", duration.as_secs(), duration.subsec_millis())
}

/// `GET /v3/status`.
pub(super) fn status(snapshot: &Snapshot) -> String {
    let overview = &snapshot.overview;
    let clock = Clock { now: overview.now, wall: snapshot.clock };
    let name = |job: JobIx| overview.jobs.get(job.index()).map_or("", |job| job.name.as_str());
    let origin = |origin| match origin {
        Origin::Job(job) => name(job).to_owned(),
        Origin::Watch(watch) => {
            format!("watch.{}", overview.watches.get(watch.index()).map_or("", |watch| watch.name.as_str()))
        }
        Origin::Former(place) => snapshot.removed.get(&place).cloned().unwrap_or_default(),
        other => origin_name(other),
    };
    json::object(|out| {
        out.text("version", env!("CARGO_PKG_VERSION"));
        out.plain("pid", std::process::id());
        out.text("startedAt", &clock.at(Time::ZERO));
        out.text("now", &clock.at(clock.now));
        out.plain("uptimeSeconds", seconds(clock.now.since(Time::ZERO)));
        out.text("phase", phase(overview.phase));
        out.plain("maintenance", overview.maintenance);
        out.text_or_null("stopTime", overview.stop_time.map(|time| clock.at(time)).as_deref());
        let advertised = snapshot.advertised.iter().copied().chain(std::iter::repeat(false));
        out.objects("jobs", overview.jobs.iter().zip(advertised), |(job, advertised), out| {
            write_job(out, job, advertised, clock, &name, &origin);
        });
        out.objects("watches", &overview.watches, |watch, out| write_watch(out, watch));
        out.objects("events", &overview.events, |event, out| {
            out.text("source", &event.source).text("code", event.code.name()).plain("count", event.count);
        });
    })
}

/// `POST /v3/reload`.
pub(super) fn reloaded(done: &ReloadSummary, dry: bool) -> String {
    let ReloadSummary { changes, settings, warnings } = done;
    json::object(|out| {
        out.plain("dryRun", dry);
        out.texts("kept", &changes.kept).texts("restarted", &changes.restarted);
        out.texts("started", &changes.started).texts("stopped", &changes.stopped);
        out.texts("settings", settings).text("warnings", warnings);
    })
}

/// `GET /v3/jobs/NAME/explain`.
pub(super) fn explanation(explained: &Explained) -> String {
    let explanation = &explained.explanation;
    let clock = Clock { now: explained.now, wall: explained.clock };
    let name = |job: JobIx| explained.names.get(job.index()).map_or("", String::as_str);
    // The chain of causes begins with the job's own.
    let origin = |_| explanation.causes.first().map(|cause| cause.source.clone()).unwrap_or_default();
    json::object(|out| {
        out.object("job", |out| {
            write_job(out, &explanation.job, explained.advertised, clock, &name, &origin);
        });
        out.text("summary", &explanation.summary);
        write_reasons(out, "waits", &explanation.waits);
        out.objects("causes", &explanation.causes, |cause, out| {
            write_event(out, &told(&cause.event, cause.source.clone(), clock));
        });
        out.texts("sentences", explanation.sentences());
    })
}

/// An event of `GET /v3/events`.
pub(super) fn event(told: &EventRecord) -> String {
    json::object(|out| write_event(out, told))
}

/// What counts for `GET /v3/health`: a job with checks that is to run now, or that has failed for good.
fn counts(job: &JobOverview) -> bool {
    let to_run = matches!(job.status.word(), "starting" | "running" | "restarting" | "stopping" | "failed");
    !job.checks.is_empty() && to_run
}

/// `GET /v3/health`: whether the container is healthy, and the answer.
pub(super) fn health(snapshot: &Snapshot) -> (bool, String) {
    let overview = &snapshot.overview;
    let counting: Vec<&JobOverview> = overview.jobs.iter().filter(|job| counts(job)).collect();
    let healthy = |job: &&&JobOverview| job.status.healthy == Some(true) && job.status.word() != "failed";
    let well = counting.iter().filter(healthy).count();
    let (good, reason) = match overview.phase {
        Phase::Beginning => (false, "the supervisor is not ready yet".to_owned()),
        Phase::Stopping | Phase::Killing | Phase::Left => (false, "the supervisor is stopping".to_owned()),
        Phase::Running if overview.maintenance => {
            (true, "there is maintenance, and no checks are made".to_owned())
        }
        Phase::Running if counting.is_empty() => (true, "no job has to pass a check now".to_owned()),
        Phase::Running => {
            let all = counting.len();
            (well == all, format!("{well} of {all} jobs with checks are healthy"))
        }
    };
    let text = json::object(|out| {
        out.plain("healthy", good).text("reason", &reason);
        out.objects("jobs", &counting, |job, out| {
            out.text("name", &job.name).text("state", job.status.word()).text("health", health_word(job));
        });
    });
    (good, text)
}

fn write_job<'n>(
    out: &mut Writer<'_>,
    job: &JobOverview,
    advertised: bool,
    clock: Clock,
    name: &dyn Fn(JobIx) -> &'n str,
    origin: &dyn Fn(Origin) -> String,
) {
    let status = &job.status;
    out.text("name", &job.name);
    out.text(
        "role",
        match job.role {
            Role::User => "job",
            Role::Main => "main",
            Role::Coprocess => "coprocess",
            Role::Telemetry => "telemetry",
            Role::Sensor(_) => "sensor",
        },
    );
    out.text("state", status.word());
    out.text("health", health_word(job));
    out.plain_or_null("pid", status.pid);
    out.text_or_null("startedAt", job.started_at.map(|time| clock.at(time)).as_deref());
    out.text_or_null("endedAt", job.ended_at.map(|time| clock.at(time)).as_deref());
    let since = job.started_at.filter(|_| status.pid.is_some());
    out.plain_or_null("uptimeSeconds", since.map(|since| seconds(clock.now.since(since))));
    out.plain("restarts", status.restarts);
    out.plain_or_null("restartsLeft", job.restarts_left);
    out.object_or_null("lastExit", status.last_exit, write_exit);
    out.text(
        "service",
        match status.wanted {
            _ if !advertised => "none",
            Wanted::Absent => "absent",
            Wanted::Present(Status::Passing) => "passing",
            Wanted::Present(Status::Warning) => "warning",
            Wanted::Present(Status::Critical) => "critical",
        },
    );
    out.objects("deadlines", &job.deadlines, |deadline, out| {
        out.text("what", deadline.what.name()).text("at", &clock.at(deadline.at));
        out.plain("inSeconds", seconds(deadline.at.since(clock.now)));
    });
    out.objects("checks", &job.checks, |check, out| write_check(out, check, clock));
    out.objects("waitsFor", &job.waits_for, |awaited, out| write_awaited(out, awaited));
    out.texts("hooks", job.hooks.iter().map(|job| name(*job)));
    out.object_or_null("cause", job.cause, |event, out| {
        write_event(out, &told(&event, origin(event.origin), clock));
    });
}

/// Healthy or not; a job without checks is neither.
fn health_word(job: &JobOverview) -> &'static str {
    match job.status.healthy {
        _ if job.checks.is_empty() => "none",
        Some(true) => "healthy",
        Some(false) => "unhealthy",
        None => "unknown",
    }
}

fn write_check(out: &mut Writer<'_>, check: &CheckOverview, clock: Clock) {
    let last = check.last.as_ref();
    out.text("name", &check.name).plain("running", check.running);
    out.plain_or_null("passed", last.map(|last| last.result.is_ok()));
    out.text_or_null("message", last.and_then(|last| last.result.as_ref().err()).map(String::as_str));
    out.text_or_null("at", last.map(|last| clock.at(last.at)).as_deref());
    out.plain_or_null("tookSeconds", last.map(|last| seconds(last.took)));
    out.plain("failures", check.failures);
    out.text_or_null("nextAt", check.next.map(|time| clock.at(time)).as_deref());
}

fn write_awaited(out: &mut Writer<'_>, awaited: &Awaited) {
    out.text("source", &awaited.source).text("code", awaited.code.name());
    out.plain("holds", awaited.holds).plain("possible", awaited.possible).text("state", &awaited.state);
}

fn write_watch(out: &mut Writer<'_>, watch: &WatchOverview) {
    out.text("name", &watch.name);
    match &watch.instances {
        None => out.plain("instances", "null"),
        Some(instances) => out.objects("instances", instances, |instance, out| {
            out.text("id", &instance.id).text("address", &instance.address.to_string());
            out.plain("port", instance.port);
        }),
    };
}

fn write_reasons(out: &mut Writer<'_>, key: &str, reasons: &[Reason]) {
    out.objects(key, reasons, |reason, out| {
        out.text("sentence", &reason.sentence);
        write_reasons(out, "because", &reason.because);
    });
}

fn write_event(out: &mut Writer<'_>, told: &EventRecord) {
    out.plain("id", told.id.0).text("time", &rfc3339(told.time));
    out.text("source", &told.source).text("code", told.code.name());
    out.plain_or_null("cause", told.cause.map(|EventId(id)| id));
    out.object_or_null("exit", told.exit, write_exit);
}

fn write_exit(exit: ExitStatus, out: &mut Writer<'_>) {
    out.plain("code", exit.code());
    let signal = match exit {
        ExitStatus::Code(_) => None,
        ExitStatus::Signal(signal) => Some(signal_name(signal)),
    };
    out.text_or_null("signal", signal.as_deref());
}

fn told(event: &Event, source: String, clock: Clock) -> EventRecord {
    let Event { id, cause, at, origin: _, code, exit } = *event;
    EventRecord { id, time: clock.wall.at(at), source, code, cause, exit }
}

/// The source of an event that is neither a job's nor a watch's.
fn origin_name(origin: Origin) -> String {
    match origin {
        Origin::Signal(number) => signal_name(containerpilot_core::plan::Signal(number)),
        Origin::Global | Origin::Job(_) | Origin::Watch(_) | Origin::Former(_) => "global".to_owned(),
    }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Beginning => "beginning",
        Phase::Running => "running",
        Phase::Stopping => "stopping",
        Phase::Killing => "killing",
        Phase::Left => "left",
    }
}
