//! Defaults that depend on other keys, on the kind of a thing, or on the environment; and the section `defaults` (W22).
//! All others are in the table of fields; those of names that every stage needs are in `default_names.rs`.

use std::time::Duration;

use containerpilot_core::plan::{
    Check, DnsRecord, Health, OnUnhealthy, RequiredSource, Restarts, Trigger, WatchKind, When,
};

use super::action::KEYS_BESIDE_DO;
use crate::fields::ConfigFields;
use crate::host::Host;

/// H14: without a `ttl`, a service stays healthy for three intervals, but at least for this time.
const SHORTEST_TTL: Duration = Duration::from_secs(10);

/// The interval and the TTL of a job that is healthy while it is ready, and has no `health`.
const READY_INTERVAL: Duration = Duration::from_secs(10);
const READY_TTL: Duration = Duration::from_secs(30);

/// How often a file is read where inotify does not work.
const FILE_INTERVAL: Duration = Duration::from_secs(5);

/// The longest time between two queries for keys. Changes are seen at once.
pub(super) const KEY_INTERVAL: Duration = Duration::from_mins(1);

/// The record of a watch with `dns`.
pub(super) const DNS_RECORD: DnsRecord = DnsRecord::A;

/// The default of Consul's own clients, without `address` and `CONSUL_HTTP_ADDR`.
pub(super) const CONSUL_ADDRESS: &str = "127.0.0.1:8500";

/// The default of OpenTelemetry, without `endpoint` and its variable.
pub(super) const COLLECTOR: (&str, u16) = ("localhost", 4318);

/// Prometheus' default buckets.
pub(super) const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// W22: gives every job the defaults that it has no field of its own for.
pub(crate) fn apply_defaults(fields: &mut ConfigFields) {
    let Some(defaults) = &fields.defaults else { return };
    for job in fields.jobs.iter_mut().flat_map(|jobs| &mut jobs.value) {
        let acts = job.action.is_some();
        // An action refuses `restartBackoff: false`.
        let concerns = |key: &str| !acts || (KEYS_BESIDE_DO.contains(&key) && key != "restartBackoff");
        job.inherit(&defaults.value, concerns);
    }
}

/// `timeout` of a job: its `when.interval`.
pub(super) fn job_timeout(when: Option<&When>) -> Option<Duration> {
    match when?.trigger {
        Trigger::Interval { every, .. } => Some(every),
        _ => None,
    }
}

/// `restarts` of a job: without a limit for one that runs at the times of a schedule.
pub(super) fn restarts(when: Option<&When>) -> Restarts {
    if when.is_some_and(When::is_periodic) { Restarts::Unlimited } else { Restarts::Limited(0) }
}

/// `bind` of a requirement: true for a lock.
pub(super) fn bind(source: &RequiredSource) -> bool {
    matches!(source, RequiredSource::Lock(_))
}

/// `name` of a check; `nth` in a list of checks.
pub(super) fn check_name(job: &str, nth: Option<usize>) -> String {
    match nth {
        Some(nth) => format!("check.{job}.{nth}"),
        None => format!("check.{job}"),
    }
}

/// `timeout` of a check, and of the program that measures a metric: its `interval`.
pub(super) fn check_timeout(interval: Duration) -> Duration {
    interval
}

/// `ttl` of a service with these checks.
pub(super) fn ttl(checks: &[Check]) -> Duration {
    let longest = checks.iter().map(|check| check.interval).max().unwrap_or_default();
    SHORTEST_TTL.max(longest.saturating_mul(3))
}

/// `health` of a job with `ready`.
pub(super) fn health_of_ready() -> Health {
    Health { checks: Vec::new(), ttl: READY_TTL, heartbeat: None, on_unhealthy: OnUnhealthy::Report }
}

/// The interval of the check that passes while a process is ready, beside these checks.
pub(super) fn ready_interval(checks: &[Check]) -> Duration {
    checks.iter().map(|check| check.interval).min().unwrap_or(READY_INTERVAL)
}

/// `service.id`: the instance of a service that a job is on this host (D3).
pub(super) fn service_id(job: &str, host: &dyn Host) -> String {
    format!("{job}-{}", host.hostname())
}

/// `interval` of a watch; `None` if it is required.
pub(super) fn watch_interval(kind: &WatchKind) -> Option<Duration> {
    match kind {
        WatchKind::File { .. } => Some(FILE_INTERVAL),
        WatchKind::Key { .. } | WatchKind::Prefix { .. } => Some(KEY_INTERVAL),
        WatchKind::Service { .. } | WatchKind::Tcp { .. } | WatchKind::Http(_) | WatchKind::Dns { .. } => {
            None
        }
    }
}

/// `key` of a lock.
pub(super) fn lock_key(name: &str) -> String {
    format!("containerpilot/locks/{name}")
}
