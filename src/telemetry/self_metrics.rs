//! The supervisor's own metrics (T3).
//!
//! No label is unbounded: names of jobs, checks and watches are those of the plan, event codes those of a fixed list, routes those of
//! the control socket's table. Jobs with the same name share a sample.

use std::collections::BTreeMap;
use std::time::SystemTime;

use containerpilot_core::plan::Role;
use containerpilot_core::{State, Time};

use super::Shared;
use super::exposition::{Kind, Page, count_to_f64};
use super::process::Process;
use crate::messages::query::Snapshot;

/// Adds the supervisor's metrics to a page.
pub(super) fn add_to(
    page: &mut Page,
    snapshot: &Snapshot,
    shared: &Shared,
    version: &str,
    process: &Process,
) {
    events(page, snapshot);
    requests(page, shared);
    watches(page, snapshot);
    jobs(page, snapshot);
    checks(page, snapshot);
    page.family(
        "containerpilot_build_info",
        "Version of containerpilot; always 1.",
        Kind::Gauge,
        |samples| {
            samples.add("", &[("version", version)], 1.0);
        },
    );
    process.add_to(page, seconds(snapshot, Time::ZERO));
}

fn events(page: &mut Page, snapshot: &Snapshot) {
    let events = snapshot.overview.events.iter();
    let events = containerpilot_core::grouped(
        events.map(|event| ((event.code.legacy_name(), &*event.source), event.count)),
    );
    let help = "Number of events by code and source.";
    page.family("containerpilot_events", help, Kind::Untyped, |samples| {
        for ((code, source), counts) in events {
            samples.add("", &[("code", code), ("source", source)], count_to_f64(counts.into_iter().sum()));
        }
    });
}

fn requests(page: &mut Page, shared: &Shared) {
    let help = "Number of requests to the control socket by status code and path.";
    page.family("containerpilot_control_http_requests", help, Kind::Untyped, |samples| {
        for ((code, path), count) in &shared.requests {
            samples.add("", &[("code", &code.to_string()), ("path", path)], count_to_f64(*count));
        }
    });
}

fn watches(page: &mut Page, snapshot: &Snapshot) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for watch in &snapshot.overview.watches {
        let count = watch.instances.as_ref().map_or(0, Vec::len);
        let most = counts.entry(&watch.name).or_default();
        *most = count.max(*most);
    }
    let help = "Number of healthy instances of a watched service.";
    page.family("containerpilot_watch_instances", help, Kind::Gauge, |samples| {
        for (service, count) in counts {
            samples.add("", &[("service", service)], count_to_f64(count as u64));
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

fn jobs(page: &mut Page, snapshot: &Snapshot) {
    // A sensor has a metric of its own.
    let mut by_name: BTreeMap<&str, JobValues> = BTreeMap::new();
    for job in snapshot.overview.jobs.iter().filter(|job| !matches!(job.role, Role::Sensor(_))) {
        let values = by_name.entry(&job.name).or_default();
        values.up |= job.status.state == State::Running;
        values.restarts += job.restarts_total;
        // A failure must not be hidden by the success of another job with the same name.
        values.last_exit = values.last_exit.max(job.status.last_exit.map(|exit| exit.code()));
        let started = job.started_at.map(|moment| seconds(snapshot, moment));
        values.started = [values.started, started].into_iter().flatten().reduce(f64::max);
    }
    let mut family = |name: &str, help: &str, kind: Kind, value: fn(&JobValues) -> Option<f64>| {
        page.family(name, help, kind, |samples| {
            for (job, values) in &by_name {
                value(values).into_iter().for_each(|value| samples.add("", &[("name", job)], value));
            }
        });
    };
    let up = "Whether the job is running (1) or not (0).";
    family("containerpilot_job_up", up, Kind::Gauge, |job| Some(f64::from(u8::from(job.up))));
    let restarts = "Number of times the job was restarted.";
    family("containerpilot_job_restarts_total", restarts, Kind::Counter, |job| {
        Some(count_to_f64(job.restarts))
    });
    let last_exit = "Exit code of the job's last run; 128 + N if signal N killed it.";
    family("containerpilot_job_last_exit_code", last_exit, Kind::Gauge, |job| job.last_exit.map(f64::from));
    let started = "Start time of the job's current or last run since unix epoch in seconds.";
    family("containerpilot_job_start_time_seconds", started, Kind::Gauge, |job| job.started);
}

fn checks(page: &mut Page, snapshot: &Snapshot) {
    let mut results = Vec::new();
    for job in &snapshot.overview.jobs {
        for check in &job.checks {
            let Some(last) = &check.last else { continue };
            let passes = last.result.is_ok() && job.status.state == State::Running;
            results.push(((&*job.name, &*check.name), (passes, last.took.as_secs_f64())));
        }
    }
    let by_name = containerpilot_core::grouped(results);
    let mut family = |name: &str, help: &str, value: fn(&[(bool, f64)]) -> f64| {
        page.family(name, help, Kind::Gauge, |samples| {
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
