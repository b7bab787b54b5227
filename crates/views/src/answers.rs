//! The control socket's responses, from the state of the core.

use containerpilot_api::responses;
use containerpilot_api::timestamps::rfc3339;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::report::container_health::ContainerHealth;
use containerpilot_core::report::explain::Reason;
use containerpilot_core::report::explain_file::FileExplanation;
use containerpilot_core::report::explain_lock::LockExplanation;
use containerpilot_core::report::explain_watch::WatchExplanation;
use containerpilot_core::report::status::EventCount;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::time::Time;
use serde::Serialize;

use crate::clock::{Clock, seconds};
use crate::explanation::{Explained, ExplainedJob, ExplainedSubject};
use crate::items;
use crate::journal::StartRecord;
use crate::snapshot::Snapshot;

/// A response as JSON, without a line break.
pub fn json(response: &impl Serialize) -> String {
    // Serializing these types to memory cannot fail: their keys are strings.
    serde_json::to_string(response).unwrap_or_default()
}

/// One line of JSON.
pub fn line(response: &impl Serialize) -> String {
    json(response) + "\n"
}

/// `GET /v3/status` without what only a running supervisor knows: its pid, and what the processes of jobs use.
pub fn status(snapshot: &Snapshot, version: &str) -> responses::Status {
    let overview = &snapshot.overview;
    let clock = Clock { now: Some(overview.now), wall: snapshot.clock };
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
    let job = |(nth, job)| {
        let service = snapshot.catalog.services.get(nth).and_then(Option::as_ref);
        items::job(job, service, clock, &names, &source)
    };
    let count = |event: &EventCount| responses::EventCount {
        source: event.source.clone(),
        code: event.code.name().to_owned(),
        count: event.count,
    };
    responses::Status {
        version: version.to_owned(),
        pid: None,
        started_at: clock.at(Time::ZERO),
        now: clock.at(overview.now),
        uptime_seconds: seconds(overview.now.since(Time::ZERO)),
        phase: overview.phase.name().to_owned(),
        maintenance: overview.maintenance,
        shutdown_deadline: overview.shutdown_deadline.map(|time| clock.at(time)),
        catalog: items::catalog(&snapshot.catalog, clock),
        jobs: overview.jobs.iter().enumerate().map(job).collect(),
        watches: overview.watches.iter().map(|watch| items::watch(watch, Some(clock))).collect(),
        locks: overview.locks.iter().map(|lock| items::lock(lock, clock)).collect(),
        files: overview.files.iter().map(|file| items::file(file, clock)).collect(),
        events: overview.events.iter().map(count).collect(),
    }
}

/// `GET /v3/jobs/NAME/explain`, and the same for watches, locks and files.
///
/// `output` is the end of the output of the last run of a job, if that failed.
pub fn explanation(explained: Explained, output: Vec<String>) -> String {
    let clock = Clock { now: Some(explained.now), wall: explained.clock };
    match explained.subject {
        ExplainedSubject::Job(job) => line(&job_explanation(*job, clock, output)),
        ExplainedSubject::Watch(WatchExplanation { watch, sentences }) => {
            line(&responses::WatchExplanation { watch: items::watch(&watch, None), sentences })
        }
        ExplainedSubject::Lock(LockExplanation { lock, sentences }) => {
            line(&responses::LockExplanation { lock: items::lock(&lock, clock), sentences })
        }
        ExplainedSubject::File(FileExplanation { file, sentences }) => {
            line(&responses::FileExplanation { file: items::file(&file, clock), sentences })
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
        job: items::job(&explanation.job, explained.service.as_ref(), clock, &names, &source),
        waits: reasons_json(&explanation.waits),
        causes: causes.map(|cause| items::journaled(&cause.event, cause.source.clone(), clock)).collect(),
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

/// The start of a run in `GET /v3/events`.
pub fn start(start: &StartRecord) -> responses::Start {
    responses::Start {
        run: start.run.0,
        time: rfc3339(start.time),
        source: start.source.clone(),
        pid: start.pid,
        started_by: start.trigger.map(|EventId(id)| id),
        tick: start.tick,
        cron: start.cron,
        restarts: start.restarts,
    }
}

/// `GET /v3/health`
pub fn health(snapshot: &Snapshot) -> responses::Health {
    let ContainerHealth { healthy, reason, jobs } = snapshot.overview.health();
    let jobs = jobs.iter().map(|job| responses::JobHealth {
        name: job.name.clone(),
        state: job.status.word().to_owned(),
        health: job.health_word().to_owned(),
    });
    responses::Health { healthy, reason, jobs: jobs.collect() }
}

fn reasons_json(reasons: &[Reason]) -> Vec<responses::Reason> {
    let reason = |Reason { sentence, because }: &Reason| responses::Reason {
        sentence: sentence.clone(),
        because: reasons_json(because),
    };
    reasons.iter().map(reason).collect()
}
