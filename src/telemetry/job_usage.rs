//! CPU time and memory of the jobs, from `/proc` (T4). A job's usage is that of the process group of its current run.

use std::collections::BTreeMap;

use containerpilot_core::ids::RunId;

use crate::messages::query::Snapshot;
use crate::process::sys;

/// `USER_HZ`, the unit of CPU times in `/proc`. It is part of Linux' interface to programs, and the same on all machines.
const TICKS_PER_SECOND: u64 = 100;

/// What the processes of a group use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// User and system time, with that of children that have exited and were waited for.
    cpu_ticks: u64,
    /// Resident memory. Memory that processes share counts for each of them.
    resident_pages: u64,
}

impl Usage {
    #[expect(clippy::cast_precision_loss, reason = "2^53 ticks are 2.8 million years")]
    pub(super) fn cpu_seconds(self) -> f64 {
        self.cpu_ticks as f64 / TICKS_PER_SECOND as f64
    }

    pub(super) fn resident_bytes(self) -> u64 {
        self.resident_pages.saturating_mul(sys::page_size() as u64)
    }
}

/// The usage of every current run. Reads `/proc/PID/stat` of all processes once; without `/proc`, nothing is known.
pub(super) fn read(snapshot: &Snapshot) -> BTreeMap<RunId, Usage> {
    let jobs = snapshot.overview.jobs.iter();
    // The process of a run leads a group of its own.
    let leaders: BTreeMap<i32, RunId> =
        jobs.filter_map(|job| Some((job.status.pid?, job.status.run?))).collect();
    let mut usage: BTreeMap<RunId, Usage> = BTreeMap::new();
    if leaders.is_empty() {
        return usage;
    }
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        let stat = is_process.then(|| std::fs::read(process.path().join("stat")).ok()).flatten();
        let Some((group, used)) = stat.as_deref().and_then(parse) else { continue };
        if let Some(run) = leaders.get(&group) {
            let total = usage.entry(*run).or_default();
            total.cpu_ticks = total.cpu_ticks.saturating_add(used.cpu_ticks);
            total.resident_pages = total.resident_pages.saturating_add(used.resident_pages);
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

/// The process group and the usage in a `/proc/PID/stat`. The name of the program, in parentheses, can contain anything.
fn parse(stat: &[u8]) -> Option<(i32, Usage)> {
    let after_name = stat.get(memchr::memrchr(b')', stat)? + 1..)?;
    let fields: Vec<&str> = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace().collect();
    // The first of them is field 3 in proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let times = [number(14)?, number(15)?, number(16)?, number(17)?];
    let group = fields.get(5 - 3)?.parse().ok()?;
    let cpu_ticks = times.into_iter().fold(0, u64::saturating_add);
    Some((group, Usage { cpu_ticks, resident_pages: number(24)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t4_usage_is_read_from_proc() {
        let line = b"7 (a) b) c) S 1 42 7 0 -1 4194304 100 0 0 0 10 5 3 2 20 0 1 0 999 5000 12 18446744073709551615 1 1 0";
        assert_eq!(parse(line), Some((42, Usage { cpu_ticks: 20, resident_pages: 12 })));
        for broken in [&b""[..], b"7 (a S 1", b"7 (a) S 1 x", b"7 (a) S 1 42 7 0 -1"] {
            assert_eq!(parse(broken), None);
        }
        let own = parse(&std::fs::read("/proc/self/stat").unwrap()).unwrap().1;
        assert!(own.resident_bytes() > 100_000, "{own:?}");
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
