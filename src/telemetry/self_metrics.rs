//! The supervisor's own metrics (T3).
//!
//! No label is unbounded: names of jobs, checks and watches come from the plan, codes of events from a list, routes of
//! the control socket from its table. Where a file has several jobs of one name they share a line.

use std::time::SystemTime;

use containerpilot_core::plan::Role;
use containerpilot_core::{State, Time};
use std::collections::BTreeMap;

use super::Shared;
use super::exposition::{Kind, Page, counted};
use super::process::Process;
use crate::runtime::query::Snapshot;

/// Puts everything of our own on a page.
pub(super) fn show(page: &mut Page, snapshot: &Snapshot, shared: &Shared, version: &str, process: &Process) {
    events(page, snapshot);
    requests(page, shared);
    watches(page, snapshot);
    jobs(page, snapshot);
    checks(page, snapshot);
    page.family("containerpilot_build_info", "which version this is; always 1", Kind::Gauge, |lines| {
        lines.add("", &[("version", version)], 1.0);
    });
    process.show(page, seconds(snapshot, Time::ZERO));
}

fn events(page: &mut Page, snapshot: &Snapshot) {
    let events = snapshot.overview.events.iter();
    let events = containerpilot_core::grouped(
        events.map(|event| ((event.code.old_name(), &*event.source), event.count)),
    );
    let help = "how many events there were, by code and source";
    page.family("containerpilot_events", help, Kind::Untyped, |lines| {
        for ((code, source), counts) in events {
            lines.add("", &[("code", code), ("source", source)], counted(counts.into_iter().sum()));
        }
    });
}

fn requests(page: &mut Page, shared: &Shared) {
    let help = "how many requests there were to the control socket, by code of the answer and path";
    page.family("containerpilot_control_http_requests", help, Kind::Untyped, |lines| {
        for ((code, path), count) in &shared.requests {
            lines.add("", &[("code", &code.to_string()), ("path", path)], counted(*count));
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
    let help = "how many healthy instances a watched service has";
    page.family("containerpilot_watch_instances", help, Kind::Gauge, |lines| {
        for (service, count) in counts {
            lines.add("", &[("service", service)], counted(count as u64));
        }
    });
}

/// What is told of all jobs of one name.
#[derive(Default)]
struct EventRecord {
    up: bool,
    restarts: u64,
    last_exit: Option<u8>,
    started: Option<f64>,
}

fn jobs(page: &mut Page, snapshot: &Snapshot) {
    // A sensor is shown by what it measures.
    let jobs = || snapshot.jobs().filter(|(job, _)| !matches!(job.role, Role::Sensor(_)));
    let mut by_name: BTreeMap<&str, EventRecord> =
        jobs().map(|(job, _)| (&*job.name, EventRecord::default())).collect();
    for (job, _) in jobs() {
        let told = by_name.entry(&job.name).or_default();
        told.up |= job.status.state == State::Running;
        told.restarts += job.status.restarts;
        // A failure is not to be hidden by a namesake's success.
        told.last_exit = told.last_exit.max(job.status.last_exit.map(|exit| exit.code()));
        let started = job.started_at.map(|moment| seconds(snapshot, moment));
        told.started = [told.started, started].into_iter().flatten().reduce(f64::max);
    }
    let mut family = |name: &str, help: &str, kind: Kind, value: fn(&EventRecord) -> Option<f64>| {
        page.family(name, help, kind, |lines| {
            for (job, told) in &by_name {
                value(told).into_iter().for_each(|value| lines.add("", &[("name", job)], value));
            }
        });
    };
    let up = "whether the job runs: 1 if it does, 0 if not";
    family("containerpilot_job_up", up, Kind::Gauge, |told| Some(f64::from(u8::from(told.up))));
    let restarts = "how often the job was started again after a run of it had ended";
    family("containerpilot_job_restarts_total", restarts, Kind::Counter, |told| Some(counted(told.restarts)));
    let last_exit = "the exit code of the job's last run; 128 and the number of the signal if one ended it";
    family("containerpilot_job_last_exit_code", last_exit, Kind::Gauge, |told| told.last_exit.map(f64::from));
    let started = "when the job's present or last run began, in seconds since 1970";
    family("containerpilot_job_start_time_seconds", started, Kind::Gauge, |told| told.started);
}

fn checks(page: &mut Page, snapshot: &Snapshot) {
    let mut told = Vec::new();
    for (job, _) in snapshot.jobs() {
        for check in &job.checks {
            let Some(last) = &check.last else { continue };
            let passes = last.result.is_ok() && job.status.state == State::Running;
            told.push(((&*job.name, &*check.name), (passes, last.took.as_secs_f64())));
        }
    }
    let by_name = containerpilot_core::grouped(told);
    let mut family = |name: &str, help: &str, value: fn(&[(bool, f64)]) -> f64| {
        page.family(name, help, Kind::Gauge, |lines| {
            for ((job, check), told) in &by_name {
                lines.add("", &[("name", job), ("check", check)], value(told));
            }
        });
    };
    let up = "whether the check of a running job passed when it was last made: 1 if it did, 0 if not";
    family("containerpilot_check_up", up, |told| f64::from(u8::from(told.iter().all(|(up, _)| *up))));
    let took = "how long the check took when it was last made";
    family("containerpilot_check_duration_seconds", took, |told| {
        told.iter().fold(0.0, |most, (_, took)| most.max(*took))
    });
}

/// A moment of the core's clock, in seconds since 1970.
fn seconds(snapshot: &Snapshot, moment: Time) -> f64 {
    snapshot.clock.at(moment).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests;
