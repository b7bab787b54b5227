//! What a scenario says about locks in Consul (D14).

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::lock_report::{LockReport, LockWait};
use containerpilot_core::plan::Lock;

use crate::defaults;
use crate::scenario::Scenario;

/// What the supervisor learns about a lock, and when. While Consul answers, the lock is renewed without end.
pub(crate) fn reports(scenario: &Scenario, lock: &Lock) -> Vec<(Duration, LockReport)> {
    let by_default = defaults::lock_changes();
    let changes = scenario.locks.get(&lock.name).unwrap_or(&by_default);
    let outages = scenario.outages.iter();
    let mut times: Vec<Duration> = changes.iter().map(|(at, _)| *at).collect();
    times.extend(outages.flat_map(|outage| [Some(outage.from), outage.to]).flatten());
    times.sort_unstable();
    times.dedup();
    let mut reports = Vec::new();
    let (mut fencing, mut has_lock) = (100, false);
    for at in times {
        let wanted = changes.iter().rev().find(|(since, _)| *since <= at).is_some_and(|(_, held)| *held);
        let away = scenario.outage_at(at).is_some();
        if away {
            if has_lock && scenario.outages.iter().any(|outage| outage.from == at) {
                reports.push((at, LockReport::Held { fencing, until: Time::ZERO + at + lock.ttl }));
            }
            continue;
        }
        if wanted {
            fencing += u64::from(!has_lock);
            reports.push((at, LockReport::Held { fencing, until: Time::from_nanos(u64::MAX) }));
        } else if has_lock {
            reports.push((at, LockReport::NotHeld(LockWait::SessionInvalidated)));
        }
        has_lock = wanted;
    }
    reports
}
