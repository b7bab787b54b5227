//! CPU time and memory of the jobs, read when they are asked for (T4).
//!
//! The processes of a run are the members of its process group, their descendants, and daemons that the supervisor has
//! attributed to it. Where each run has a cgroup of its own, the processes in it count, and the CPU time is that of the
//! cgroup: it has that of processes that have exited, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use containerpilot_core::ids::RunId;
use containerpilot_core::{SortedMap, inserted};
use containerpilot_process::proc::{self, Stat, TICKS_PER_SECOND};
use containerpilot_process::sys;
use containerpilot_views::snapshot::Snapshot;

/// Microseconds per tick.
const TICK: u64 = 1_000_000 / TICKS_PER_SECOND;

/// What the processes of a run use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobUsage {
    /// User and system time in microseconds, with that of children that have exited and were waited for.
    cpu_micros: u64,
    /// Resident memory. Memory that processes share counts for each of them.
    resident_pages: u64,
}

impl JobUsage {
    pub(crate) fn cpu_seconds(self) -> f64 {
        seconds(self.cpu_micros)
    }

    pub(crate) fn resident_bytes(self) -> u64 {
        self.resident_pages.saturating_mul(sys::page_size() as u64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// The usage of every current run. Reads `/proc/PID/stat` of all processes once; without `/proc`, nothing is known.
pub(crate) fn read(snapshot: &Snapshot) -> BTreeMap<RunId, JobUsage> {
    let jobs = snapshot.overview.jobs.iter();
    // The process of a run leads a group of its own.
    let leaders: BTreeMap<i32, RunId> =
        inserted(jobs.filter_map(|job| Some((job.status.pid?, job.status.run?))));
    if leaders.is_empty() {
        return BTreeMap::new();
    }
    let mut roots = snapshot.processes.daemons.clone();
    let cgroup = |run: &RunId| Some(snapshot.processes.cgroups.as_ref()?.join(run.0.to_string()));
    for run in leaders.values() {
        roots.extend(cgroup(run).into_iter().flat_map(|cgroup| members(&cgroup)).map(|pid| (pid, *run)));
    }
    let processes: SortedMap<i32, Stat> = inserted(proc::processes().into_iter().flatten());
    let mut usage = sum(&processes, &leaders, &roots);
    for (run, used) in &mut usage {
        // A process that has left the cgroup is not in its time.
        let time = cgroup(run).and_then(|cgroup| cpu_time(&cgroup));
        used.cpu_micros = time.unwrap_or(0).max(used.cpu_micros);
    }
    let current: BTreeSet<RunId> = inserted(leaders.into_values());
    usage.retain(|run, _| current.contains(run));
    usage
}

/// The processes in a cgroup, without those in cgroups below.
fn members(cgroup: &Path) -> Vec<i32> {
    let list = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// The CPU time of all processes that are or were in a cgroup, in microseconds.
fn cpu_time(cgroup: &Path) -> Option<u64> {
    let stat = fs::read_to_string(cgroup.join("cpu.stat")).ok()?;
    stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.parse().ok()
}

/// The usage of each run: of its process group and its other known processes, with their descendants.
fn sum(
    processes: &SortedMap<i32, Stat>,
    leaders: &BTreeMap<i32, RunId>,
    roots: &BTreeMap<i32, RunId>,
) -> BTreeMap<RunId, JobUsage> {
    let mut runs: BTreeMap<i32, Option<RunId>> = BTreeMap::new();
    let mut usage: BTreeMap<RunId, JobUsage> = BTreeMap::new();
    for (pid, stat) in processes.iter() {
        // Up to the first process whose run is known.
        let (mut unknown, mut at, mut run) = (Vec::new(), *pid, None);
        while let Some(stat) = processes.get(&at) {
            if let Some(known) = runs.get(&at) {
                run = *known;
                break;
            }
            run = roots.get(&at).or_else(|| leaders.get(&stat.group)).copied();
            runs.insert(at, run);
            unknown.push(at);
            if run.is_some() {
                break;
            }
            at = stat.parent;
        }
        runs.extend(unknown.into_iter().map(|pid| (pid, run)));
        if let Some(run) = run {
            let total = usage.entry(run).or_default();
            total.cpu_micros = total.cpu_micros.saturating_add(stat.cpu_ticks.saturating_mul(TICK));
            total.resident_pages = total.resident_pages.saturating_add(stat.resident_pages);
        }
    }
    usage
}

/// The CPU time of jobs over all their runs, as far as these were seen: a counter that never goes down.
#[derive(Debug, Default)]
pub(super) struct CpuTotals(BTreeMap<String, Total>);

#[derive(Debug, Default)]
struct Total {
    /// That of runs that have ended.
    ended: u64,
    /// The highest that was read of each current run.
    current: BTreeMap<RunId, u64>,
}

impl CpuTotals {
    /// Adds what was read.
    pub(super) fn update(&mut self, snapshot: &Snapshot, usage: &BTreeMap<RunId, JobUsage>) {
        let jobs = &snapshot.overview.jobs;
        let names: BTreeSet<&str> = inserted(jobs.iter().map(|job| &*job.name));
        self.0.retain(|name, _| names.contains(&**name));
        let runs: BTreeSet<RunId> = inserted(jobs.iter().filter_map(|job| job.status.run));
        for total in self.0.values_mut() {
            let Total { ended, current } = total;
            current.retain(|run, micros| {
                let lasts = runs.contains(run);
                *ended = ended.saturating_add(if lasts { 0 } else { *micros });
                lasts
            });
        }
        for job in jobs {
            let Some((run, used)) = job.status.run.and_then(|run| Some((run, usage.get(&run)?))) else {
                continue;
            };
            let highest = self.0.entry(job.name.to_string()).or_default().current.entry(run).or_default();
            *highest = used.cpu_micros.max(*highest);
        }
    }

    /// The jobs with their CPU time in seconds.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let sum =
            |total: &Total| total.current.values().fold(total.ended, |sum, run| sum.saturating_add(*run));
        self.0.iter().map(move |(name, total)| (name.as_str(), seconds(sum(total))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestCore;
    use super::*;

    #[test]
    fn t4_memory_is_in_bytes() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (_, stat) = proc::processes().unwrap().find(|(pid, _)| *pid == own).unwrap();
        let usage = JobUsage { cpu_micros: 1_500_000, resident_pages: stat.resident_pages };
        assert!(usage.resident_bytes() > 100_000, "{usage:?}");
        assert!((usage.cpu_seconds() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn t4_processes_of_a_run_are_its_group_its_descendants_and_its_daemons() {
        let stat = |parent, group, cpu_ticks| Stat {
            parent,
            group,
            cpu_ticks,
            resident_pages: 1,
            ..Stat::default()
        };
        let processes = inserted([
            (1, stat(0, 1, 1_000_000)),
            // A leader, a member of its group, a child in another group, and its child.
            (10, stat(1, 10, 1)),
            (11, stat(10, 10, 2)),
            (12, stat(10, 12, 4)),
            (5, stat(12, 5, 8)),
            // A daemon with a child, an orphan in the group, and a process of another job.
            (20, stat(1, 20, 16)),
            (21, stat(20, 21, 32)),
            (22, stat(1, 10, 64)),
            (30, stat(1, 30, 128)),
            // Of no run, and a loop that cannot be.
            (40, stat(1, 40, 256)),
            (50, stat(51, 50, 512)),
            (51, stat(50, 51, 1024)),
        ]);
        let leaders = BTreeMap::from([(10, RunId(1)), (30, RunId(2))]);
        let usage = sum(&processes, &leaders, &BTreeMap::from([(20, RunId(1))]));
        let of = |run| usage.get(&RunId(run)).map(|used| (used.cpu_micros / TICK, used.resident_pages));
        assert_eq!((usage.len(), of(1), of(2)), (2, Some((127, 7)), Some((128, 1))));
    }

    #[test]
    fn t4_cpu_time_of_a_job_never_goes_down_also_from_run_to_run() {
        let mut core =
            TestCore::new("{ jobs: [{ name: 'a', exec: 'a', restarts: 5, restartBackoff: false }] }");
        core.start();
        let mut totals = CpuTotals::default();
        let mut shown = Vec::new();
        for (exits, read) in [(false, 50), (false, 40), (false, 60), (true, 5), (false, 7), (true, 0)] {
            if exits {
                core.exit("a", 0);
            }
            let snapshot = core.snapshot();
            let run = snapshot.overview.jobs[0].status.run;
            let usage = JobUsage { cpu_micros: read, resident_pages: 3 };
            totals.update(&snapshot, &run.map(|run| (run, usage)).into_iter().collect());
            shown.extend(totals.iter().map(|(_, seconds)| (seconds * 1e6).round()));
        }
        assert_eq!(shown, [50.0, 50.0, 60.0, 65.0, 67.0, 67.0]);
        let other = TestCore::new("{ jobs: [{ name: 'b', exec: 'b' }] }");
        totals.update(&other.snapshot(), &BTreeMap::new());
        assert_eq!(totals.iter().count(), 0, "a removed job is forgotten");
    }
}
