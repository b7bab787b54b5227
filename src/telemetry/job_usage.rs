//! CPU time and memory of the jobs, from `/proc` (T4). A job's usage is that of the process group of its current run.

use std::collections::BTreeMap;

use containerpilot_core::ids::RunId;

use crate::messages::query::Snapshot;
use crate::process::proc::{self, TICKS_PER_SECOND};
use crate::process::sys;

/// What the processes of a group use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User and system time, with that of children that have exited and were waited for.
    cpu_ticks: u64,
    /// Resident memory. Memory that processes share counts for each of them.
    resident_pages: u64,
}

impl Usage {
    #[expect(clippy::cast_precision_loss, reason = "2^53 ticks are 2.8 million years")]
    pub(crate) fn cpu_seconds(self) -> f64 {
        self.cpu_ticks as f64 / TICKS_PER_SECOND as f64
    }

    pub(crate) fn resident_bytes(self) -> u64 {
        self.resident_pages.saturating_mul(sys::page_size() as u64)
    }
}

/// The usage of every current run. Reads `/proc/PID/stat` of all processes once; without `/proc`, nothing is known.
pub(crate) fn read(snapshot: &Snapshot) -> BTreeMap<RunId, Usage> {
    let jobs = snapshot.overview.jobs.iter();
    // The process of a run leads a group of its own.
    let leaders: BTreeMap<i32, RunId> =
        jobs.filter_map(|job| Some((job.status.pid?, job.status.run?))).collect();
    let mut usage: BTreeMap<RunId, Usage> = BTreeMap::new();
    if leaders.is_empty() {
        return usage;
    }
    for (_, stat) in proc::processes().into_iter().flatten() {
        if let Some(run) = leaders.get(&stat.group) {
            let total = usage.entry(*run).or_default();
            total.cpu_ticks = total.cpu_ticks.saturating_add(stat.cpu_ticks);
            total.resident_pages = total.resident_pages.saturating_add(stat.resident_pages);
        }
    }
    usage
}

/// Replaces CPU times that are lower than before, so that a process that leaves a group does not look like a restarted counter
/// to Prometheus.
pub(super) fn keep_highest(before: &mut BTreeMap<RunId, Usage>, usage: &mut BTreeMap<RunId, Usage>) {
    for (run, used) in usage.iter_mut() {
        used.cpu_ticks = before.get(run).map_or(0, |before| before.cpu_ticks).max(used.cpu_ticks);
    }
    before.clone_from(usage);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t4_memory_is_in_bytes() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (_, stat) = proc::processes().unwrap().find(|(pid, _)| *pid == own).unwrap();
        let usage = Usage { cpu_ticks: 150, resident_pages: stat.resident_pages };
        assert!(usage.resident_bytes() > 100_000, "{usage:?}");
        assert!((usage.cpu_seconds() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn t4_cpu_time_of_a_run_never_goes_down() {
        let usage = |cpu_ticks| BTreeMap::from([(RunId(1), Usage { cpu_ticks, resident_pages: 3 })]);
        let mut before = BTreeMap::new();
        for (read, shown) in [(50, 50), (40, 50), (60, 60)] {
            let mut now = usage(read);
            keep_highest(&mut before, &mut now);
            assert_eq!(now, usage(shown));
        }
        // Another run starts at zero.
        let mut next = BTreeMap::from([(RunId(2), Usage::default())]);
        keep_highest(&mut before, &mut next);
        assert_eq!(next.get(&RunId(2)), Some(&Usage::default()));
        assert_eq!(before.len(), 1);
    }
}
