//! TTLs that expire before the next heartbeat (C7).

use crate::diagnostics::Severity;
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports a TTL that expires before the next heartbeat.
    pub(super) fn ttls(&mut self) {
        for (fields, _) in self.pairs.clone() {
            for check in fields.health.iter().flat_map(|given| &given.value.items) {
                let (Some(ttl), Some(interval)) = (&check.ttl, &check.interval) else { continue };
                let problem = match &check.heartbeat {
                    Some(heartbeat) => ttl_too_short(ttl.value, heartbeat.value, "heartbeat", "heartbeats"),
                    None => ttl_too_short(ttl.value, interval.value, "interval", "heartbeats"),
                };
                if let Some((message, help)) = problem {
                    self.report(Severity::Warning, ttl.place, message, help);
                }
            }
        }
    }
}

/// The message and the help for a TTL that is not longer than the time between two `beats`, which is the value of `key`.
/// Values that are not positive are reported elsewhere.
pub(crate) fn ttl_too_short(ttl: i64, period: i64, key: &str, beats: &str) -> Option<(String, String)> {
    (0 < ttl && ttl <= period).then(|| {
        let help = format!(
            "otherwise the service turns critical between two {beats}; two or three times as long is usual"
        );
        (format!("`ttl` must be longer than `{key}`"), help)
    })
}
