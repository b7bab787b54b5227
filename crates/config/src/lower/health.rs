//! Health checks: H1, H2, H5, H6, H8 and H9.

use std::time::Duration;

use containerpilot_core::plan::{Check, Health, OnUnhealthy, Probe};

use super::{Lower, defaults};
use crate::decode::{Section, Spanned};
use crate::diagnostics::Place;
use crate::fields::HealthFields;
use crate::limits::SHORTEST_TIME;
use crate::values::{Several, to_duration, value_of};

impl Lower<'_> {
    pub(super) fn health(&mut self, job: &str, given: &Spanned<Several<HealthFields>>) -> Option<Health> {
        let Several { items, listed } = &given.value;
        // A single check is located by its key, each of several by its first byte.
        let at = |fields: &HealthFields| if *listed { fields.place.first_byte() } else { given.key };
        let checks: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(nth, fields)| self.check(job, fields, at(fields), listed.then_some(nth + 1)))
            .collect();
        // Each check can have a `ttl`; the service has one, the longest of them.
        let mut ttl = None;
        for fields in items.iter().filter(|fields| fields.ttl.is_some()) {
            let time =
                self.positive(&HealthFields::INFO, fields.place, at(fields), fields.ttl.as_ref(), "ttl")?;
            ttl = ttl.max(Some(time));
        }
        let heartbeats: Vec<_> = items.iter().filter_map(|fields| fields.heartbeat.as_ref()).collect();
        if let Some(wrong) = heartbeats.iter().find(|heartbeat| heartbeat.value < SHORTEST_TIME) {
            self.error(wrong.place, "`heartbeat` must be at least 1ms", "");
            return None;
        }
        let checks: Vec<Check> = checks.into_iter().collect::<Option<_>>()?;
        let restart = items.iter().any(|fields| value_of(&fields.on_unhealthy) == Some(OnUnhealthy::Restart));
        Some(Health {
            ttl: ttl.unwrap_or_else(|| defaults::ttl(&checks)),
            checks,
            heartbeat: heartbeats.iter().map(|heartbeat| to_duration(heartbeat.value)).min(),
            on_unhealthy: if restart { OnUnhealthy::Restart } else { OnUnhealthy::Report },
        })
    }

    fn check(&mut self, job: &str, fields: &HealthFields, at: Place, nth: Option<usize>) -> Option<Check> {
        let interval =
            self.positive(&HealthFields::INFO, fields.place, at, fields.interval.as_ref(), "interval");
        let probe = self.probe(fields)?;
        let name = value_of(&fields.name).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| defaults::check_name(job, nth));
        let interval = interval?;
        let timeout = value_of(&fields.timeout).filter(|time| *time > 0);
        let timeout = timeout.map_or_else(|| defaults::check_timeout(interval), to_duration);
        let raw_output =
            fields.logging.as_ref().and_then(|given| value_of(&given.value.raw)).unwrap_or(false);
        let failures = value_of(&fields.failures).and_then(|count| u32::try_from(count).ok())?;
        let successes = value_of(&fields.successes).and_then(|count| u32::try_from(count).ok())?;
        let start_period = value_of(&fields.start_period).map_or(Duration::ZERO, to_duration);
        Some(Check { name, probe, interval, timeout, failures, successes, start_period, raw_output })
    }

    fn probe(&mut self, fields: &HealthFields) -> Option<Probe> {
        let written = [
            fields.exec.as_ref().map(|given| given.key),
            fields.http.as_ref().map(|given| given.key),
            fields.tcp.as_ref().map(|given| given.key),
        ];
        if let Some(place) = written.into_iter().flatten().nth(1) {
            let message = "a check can have only one of `exec`, `http` and `tcp`";
            self.error(place, message, "write a list of checks: health: [ { … }, { … } ]");
            return None;
        }
        if let Some(given) = &fields.http {
            return self.http(given).map(Probe::Http);
        }
        if let Some(given) = &fields.exec {
            return Some(Probe::Exec(given.value.clone()));
        }
        let tcp = value_of(&fields.tcp);
        Some(tcp.map_or(Probe::Running, |(host, port)| Probe::Tcp { host, port }))
    }
}
