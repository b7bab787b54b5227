//! The supervisor's own metrics (T3, T4).
//!
//! No label is unbounded: names of jobs, checks and watches are those of the plan, event codes those of a fixed list,
//! routes those of the control socket's table. Jobs with the same name share a sample.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::RunId;
use containerpilot_core::inserted;
use containerpilot_core::plan::Role;
use containerpilot_core::report::status::{JobOverview, JobStatus};
use containerpilot_core::{State, Time};
use containerpilot_views::snapshot::Snapshot;

use super::Shared;
use super::exposition::{ExpositionKind, MetricsPage, count_to_f64};
use super::job_usage::JobUsage;
use super::process::ProcessUsage;
use crate::logs::LineCounts;

/// What is read when the page is requested.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) process: ProcessUsage,
    pub(super) usage: BTreeMap<RunId, JobUsage>,
    pub(super) lines: BTreeMap<Box<str>, LineCounts>,
    /// How many lines of the log were lost.
    pub(super) lost_lines: u64,
}

/// Adds the supervisor's metrics to a page.
pub(super) fn add_to(
    page: &mut MetricsPage,
    snapshot: &Snapshot,
    shared: &Shared,
    version: &str,
    measured: &Measured,
) {
    events(page, snapshot);
    requests(page, shared);
    watches(page, snapshot);
    locks(page, snapshot);
    files(page, snapshot);
    catalog(page, snapshot);
    jobs(page, snapshot);
    job_states(page, snapshot);
    job_runs(page, snapshot);
    dropped_events(page, snapshot);
    job_usage(page, snapshot, shared, &measured.usage);
    log_lines(page, snapshot, &measured.lines);
    let lost = "Number of lines of the log and of the log files of jobs that were lost.";
    let lost_lines = Some(count_to_f64(measured.lost_lines));
    page.single("containerpilot_log_lost_lines_total", lost, ExpositionKind::Counter, lost_lines);
    ready(page, snapshot);
    checks(page, snapshot);
    exports(page, shared);
    page.family(
        "containerpilot_build_info",
        "Version of containerpilot; always 1.",
        ExpositionKind::Gauge,
        |samples| {
            samples.add("", &[("version", version)], 1.0);
        },
    );
    measured.process.add_to(page, seconds(snapshot, Time::ZERO));
}

fn events(page: &mut MetricsPage, snapshot: &Snapshot) {
    let events = snapshot.overview.events.iter();
    let events = containerpilot_core::grouped(
        events.map(|event| ((event.code.legacy_name(), &*event.source), event.count)),
    );
    let help = "Number of events by code and source.";
    page.family("containerpilot_events", help, ExpositionKind::Untyped, |samples| {
        for ((code, source), counts) in events {
            samples.add("", &[("code", code), ("source", source)], count_to_f64(counts.into_iter().sum()));
        }
    });
}

fn requests(page: &mut MetricsPage, shared: &Shared) {
    let help = "Number of requests to the control socket by status code and path.";
    page.family("containerpilot_control_http_requests", help, ExpositionKind::Untyped, |samples| {
        for ((code, path), count) in &shared.requests {
            samples.add("", &[("code", &code.to_string()), ("path", path)], count_to_f64(*count));
        }
    });
}

/// T6: what was sent to a collector, and what was not.
fn exports(page: &mut MetricsPage, shared: &Shared) {
    let help = "Number of log entries, metrics and spans for the OpenTelemetry collector, by result.";
    page.family("containerpilot_otlp_items_total", help, ExpositionKind::Counter, |samples| {
        for ((kind, result), count) in &shared.exported {
            samples.add("", &[("kind", kind), ("result", result)], count_to_f64(*count));
        }
    });
}

fn watches(page: &mut MetricsPage, snapshot: &Snapshot) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let has_consul = snapshot.catalog.consul.is_some();
    for watch in &snapshot.overview.watches {
        // Without an answer of Consul the number is not known. The embedded catalog is empty at first.
        let is_empty = !has_consul && watch.kind == "service";
        let Some(count) = watch.instances().map(<[_]>::len).or(is_empty.then_some(0)) else {
            continue;
        };
        let most = counts.entry(&watch.name).or_default();
        *most = count.max(*most);
    }
    let help = "Whether what a watch follows is there (1) or not (0), by kind.";
    page.family("containerpilot_watch_up", help, ExpositionKind::Gauge, |samples| {
        let answered =
            snapshot.overview.watches.iter().filter_map(|watch| Some((watch, watch.answer.as_ref()?)));
        // Two watches may have the same name.
        let up: BTreeMap<_, _> =
            inserted(answered.map(|(watch, answer)| ((&*watch.name, watch.kind), answer.is_healthy())));
        for ((name, kind), up) in up {
            samples.add("", &[("name", name), ("kind", kind)], if up { 1.0 } else { 0.0 });
        }
    });
    let help = "Number of healthy instances of a watched service.";
    page.family("containerpilot_watch_instances", help, ExpositionKind::Gauge, |samples| {
        for (service, count) in counts {
            samples.add("", &[("service", service)], count_to_f64(count as u64));
        }
    });
}

fn locks(page: &mut MetricsPage, snapshot: &Snapshot) {
    let help = "Whether this supervisor has the lock (1) or not (0).";
    page.family("containerpilot_lock_held", help, ExpositionKind::Gauge, |samples| {
        for lock in &snapshot.overview.locks {
            let held = f64::from(u8::from(lock.fencing.is_some()));
            samples.add("", &[("name", &lock.name)], held);
        }
    });
}

/// D15: rendered files.
fn files(page: &mut MetricsPage, snapshot: &Snapshot) {
    let files = &snapshot.overview.files;
    if files.is_empty() {
        return;
    }
    let help = "Number of renderings of a file, by their result.";
    page.family("containerpilot_file_renders_total", help, ExpositionKind::Counter, |samples| {
        for file in files {
            let name = file.name.as_str();
            let in_progress = u64::from(file.status.is_in_progress());
            let succeeded = file.renders.saturating_sub(file.failures + in_progress);
            samples.add("", &[("name", name), ("result", "failed")], count_to_f64(file.failures));
            samples.add("", &[("name", name), ("result", "succeeded")], count_to_f64(succeeded));
        }
    });
    let help = "Number of times that a new text was written to a file.";
    page.family("containerpilot_file_writes_total", help, ExpositionKind::Counter, |samples| {
        for file in files {
            samples.add("", &[("name", file.name.as_str())], count_to_f64(file.changes));
        }
    });
    let help = "When a file was last known to have the text of its inputs, in seconds since 1970.";
    page.family(
        "containerpilot_file_last_success_timestamp_seconds",
        help,
        ExpositionKind::Gauge,
        |samples| {
            for file in files {
                let since = |at| snapshot.clock.at(at).duration_since(SystemTime::UNIX_EPOCH).ok();
                if let Some(since) = file.rendered_at.and_then(since) {
                    samples.add("", &[("name", file.name.as_str())], since.as_secs_f64());
                }
            }
        },
    );
    let help = "Whether the last rendering of a file succeeded (1) or not (0).";
    page.family("containerpilot_file_up", help, ExpositionKind::Gauge, |samples| {
        for file in files {
            let is_up = file.rendered_at.is_some() && file.failure.is_none();
            samples.add("", &[("name", file.name.as_str())], count_to_f64(u64::from(is_up)));
        }
    });
}

/// D11: what Consul has confirmed, not what is wanted.
fn catalog(page: &mut MetricsPage, snapshot: &Snapshot) {
    let up = snapshot.catalog.consul.as_ref().and_then(|consul| consul.up);
    let help =
        "Whether Consul answered and accepted the last request of each service and watch (1) or not (0).";
    page.single(
        "containerpilot_catalog_up",
        help,
        ExpositionKind::Gauge,
        up.map(|up| f64::from(u8::from(up))),
    );
    let services = snapshot.overview.jobs.iter().zip(&snapshot.catalog.services);
    let registered = |known: &Known| matches!(known.confirmed, Some(DesiredService::Present(_)));
    let by_name = containerpilot_core::grouped(
        services.filter_map(|(job, service)| Some((&*job.name, registered(service.as_ref()?)))),
    );
    let help = "Whether the catalog has confirmed that the job's service is registered (1) or not (0).";
    page.family("containerpilot_service_registered", help, ExpositionKind::Gauge, |samples| {
        for (name, registered) in by_name {
            let all = registered.into_iter().all(|registered| registered);
            samples.add("", &[("name", name)], f64::from(u8::from(all)));
        }
    });
    let services = snapshot.overview.jobs.iter().zip(&snapshot.catalog.services);
    let by_name = containerpilot_core::grouped(
        services.filter_map(|(job, service)| Some((&*job.name, service.as_ref()?.is_held))),
    );
    let help = "Whether another supervisor has registered the id of the job's service (1) or not (0).";
    page.family("containerpilot_service_conflict", help, ExpositionKind::Gauge, |samples| {
        for (name, held) in by_name {
            let any = held.into_iter().any(|held| held);
            samples.add("", &[("name", name)], f64::from(u8::from(any)));
        }
    });
}

/// The values of all jobs with the same name.
#[derive(Default)]
struct JobValues {
    up: bool,
    restarts: u64,
    last_exit: Option<u8>,
    started: Option<f64>,
}

fn jobs(page: &mut MetricsPage, snapshot: &Snapshot) {
    let mut by_name: BTreeMap<&str, JobValues> = BTreeMap::new();
    for job in shown_jobs(snapshot) {
        let values = by_name.entry(&job.name).or_default();
        values.up |= job.status.state == State::Running;
        values.restarts += job.restarts_total;
        // A failure must not be hidden by the success of another job with the same name.
        values.last_exit = values.last_exit.max(job.status.last_exit.map(|exit| exit.code()));
        let started = job.started_at.map(|moment| seconds(snapshot, moment));
        values.started = [values.started, started].into_iter().flatten().reduce(f64::max);
    }
    let mut family = |name: &str, help: &str, kind: ExpositionKind, value: fn(&JobValues) -> Option<f64>| {
        page.family(name, help, kind, |samples| {
            for (job, values) in &by_name {
                value(values).into_iter().for_each(|value| samples.add("", &[("name", job)], value));
            }
        });
    };
    let up = "Whether the job is running (1) or not (0).";
    family("containerpilot_job_up", up, ExpositionKind::Gauge, |job| Some(f64::from(u8::from(job.up))));
    let restarts = "Number of times the restart policy of the job has restarted it.";
    family("containerpilot_job_restarts_total", restarts, ExpositionKind::Counter, |job| {
        Some(count_to_f64(job.restarts))
    });
    let last_exit = "Exit code of the job's last run; 128 + N if signal N killed it.";
    family("containerpilot_job_last_exit_code", last_exit, ExpositionKind::Gauge, |job| {
        job.last_exit.map(f64::from)
    });
    let started = "Start time of the job's current or last run since unix epoch in seconds.";
    family("containerpilot_job_start_time_seconds", started, ExpositionKind::Gauge, |job| job.started);
}

/// The jobs without sensors, each of which has a metric of its own.
fn shown_jobs(snapshot: &Snapshot) -> impl Iterator<Item = &JobOverview> {
    snapshot.overview.jobs.iter().filter(|job| !matches!(job.role, Role::Sensor(_)))
}

fn job_states(page: &mut MetricsPage, snapshot: &Snapshot) {
    let by_name =
        containerpilot_core::grouped(shown_jobs(snapshot).map(|job| (&*job.name, job.status.word())));
    let help = "Whether the job is in this state (1) or not (0).";
    page.family("containerpilot_job_state", help, ExpositionKind::Gauge, |samples| {
        for (name, states) in by_name {
            for state in JobStatus::WORDS {
                let value = f64::from(u8::from(states.contains(&state)));
                samples.add("", &[("name", name), ("state", state)], value);
            }
        }
    });
}

fn job_runs(page: &mut MetricsPage, snapshot: &Snapshot) {
    let mut by_name: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for job in shown_jobs(snapshot) {
        for (result, count) in job.runs.by_result() {
            *by_name.entry((&job.name, result)).or_default() += count;
        }
    }
    let help = "Number of runs that have ended, by result.";
    page.family("containerpilot_job_runs_total", help, ExpositionKind::Counter, |samples| {
        for ((name, result), count) in by_name {
            samples.add("", &[("name", name), ("result", result)], count_to_f64(count));
        }
    });
}

/// W21: events that were dropped because too many were pending.
fn dropped_events(page: &mut MetricsPage, snapshot: &Snapshot) {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (job, dropped) in shown_jobs(snapshot).filter_map(|job| Some((job, job.dropped_events?))) {
        *by_name.entry(&job.name).or_default() += dropped;
    }
    let help = "Number of events that were dropped because too many were pending.";
    page.family("containerpilot_job_events_dropped_total", help, ExpositionKind::Counter, |samples| {
        for (name, count) in by_name {
            samples.add("", &[("name", name)], count_to_f64(count));
        }
    });
}

fn job_usage(
    page: &mut MetricsPage,
    snapshot: &Snapshot,
    shared: &Shared,
    usage: &BTreeMap<RunId, JobUsage>,
) {
    let names: BTreeSet<&str> = inserted(shown_jobs(snapshot).map(|job| &*job.name));
    let help = "CPU time of the processes of the job's runs in seconds.";
    page.family("containerpilot_job_cpu_seconds_total", help, ExpositionKind::Counter, |samples| {
        for (name, seconds) in shared.cpu.iter().filter(|(name, _)| names.contains(name)) {
            samples.add("", &[("name", name)], seconds);
        }
    });
    let used = shown_jobs(snapshot).filter_map(|job| Some((&*job.name, *usage.get(&job.status.run?)?)));
    let help = "Resident memory of the processes of the job's current run in bytes.";
    page.family("containerpilot_job_memory_bytes", help, ExpositionKind::Gauge, |samples| {
        for (name, usage) in containerpilot_core::grouped(used) {
            let bytes = usage.into_iter().map(JobUsage::resident_bytes).sum();
            samples.add("", &[("name", name)], count_to_f64(bytes));
        }
    });
}

fn log_lines(page: &mut MetricsPage, snapshot: &Snapshot, lines: &BTreeMap<Box<str>, LineCounts>) {
    let names: BTreeSet<&str> = inserted(shown_jobs(snapshot).map(|job| &*job.name));
    let help = "Number of lines that the job has written, by stream.";
    page.family("containerpilot_log_lines_total", help, ExpositionKind::Counter, |samples| {
        for (name, LineCounts { stdout, stderr }) in lines.iter().filter(|(name, _)| names.contains(&***name))
        {
            for (stream, count) in [("stderr", *stderr), ("stdout", *stdout)] {
                samples.add("", &[("name", name), ("stream", stream)], count_to_f64(count));
            }
        }
    });
}

/// The result of `/readyz`. It has no value in maintenance mode: the container is not ready on purpose.
fn ready(page: &mut MetricsPage, snapshot: &Snapshot) {
    let overview = &snapshot.overview;
    let ready = (!overview.maintenance).then(|| f64::from(u8::from(overview.not_ready().is_empty())));
    let help = "Whether all jobs with checks are healthy (1) or not (0), as `/readyz` says.";
    page.single("containerpilot_ready", help, ExpositionKind::Gauge, ready);
}

fn checks(page: &mut MetricsPage, snapshot: &Snapshot) {
    let mut results = Vec::new();
    // In maintenance mode checks are suspended (D8): their last results are not those of now.
    for job in snapshot.overview.jobs.iter().filter(|_| !snapshot.overview.maintenance) {
        for check in &job.checks {
            let Some(last) = &check.last else { continue };
            let passes = last.result.is_ok() && job.status.state == State::Running;
            results.push(((&*job.name, &*check.name), (passes, last.took.as_secs_f64())));
        }
    }
    let by_name = containerpilot_core::grouped(results);
    let mut family = |name: &str, help: &str, value: fn(&[(bool, f64)]) -> f64| {
        page.family(name, help, ExpositionKind::Gauge, |samples| {
            for ((job, check), results) in &by_name {
                samples.add("", &[("name", job), ("check", check)], value(results));
            }
        });
    };
    let up = "Whether the last check of a running job passed (1) or not (0).";
    family("containerpilot_check_up", up, |results| f64::from(u8::from(results.iter().all(|(up, _)| *up))));
    let took = "Duration of the last check in seconds.";
    family("containerpilot_check_duration_seconds", took, |results| {
        results.iter().fold(0.0, |most, (_, took)| most.max(*took))
    });
}

/// A moment of the core's clock, in seconds since the unix epoch.
fn seconds(snapshot: &Snapshot, moment: Time) -> f64 {
    snapshot.clock.at(moment).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests;
