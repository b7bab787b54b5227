//! How often the kernel has ended a process of this container because memory ran out.
//!
//! It counts that itself, in the control group: `memory.events` in the second version of control groups, and
//! `memory.oom_control` in the first. It counts before it kills, so whoever has seen the end sees the count. Where the
//! files are not mounted nobody can tell, and nobody does.

use std::fs;
use std::path::{Path, PathBuf};

use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;

use crate::process::reaper::{Ended, Owner};

/// The count, as it was last seen.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    seen: Option<(PathBuf, u64)>,
}

impl Memory {
    /// Looks for the count of this process's own group.
    pub(crate) fn look() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let seen = places(&groups).into_iter().find_map(|place| count(&place).map(|count| (place, count)));
        Self { seen }
    }

    /// How many more it has become since the last time, if that could explain the end of a run.
    pub(crate) fn explains(&mut self, ended: &Ended) -> Option<u64> {
        let killed = ExitStatus::Signal(Signal::KILL);
        // The second is what a shell makes of it that was not killed itself.
        let by_kill = ended.status == killed || ended.status == ExitStatus::Code(killed.code());
        if !by_kill || !matches!(ended.owner, Owner::Run(_)) {
            return None;
        }
        let (place, seen) = self.seen.as_mut()?;
        let now = count(place)?;
        Some(now.saturating_sub(std::mem::replace(seen, now)))
    }
}

/// Where the count may be, as the kernel names our groups. In a container the own group may be the root of what is mounted,
/// whatever it is called outside.
fn places(groups: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(kinds), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = if kinds.is_empty() {
            ("/sys/fs/cgroup", "memory.events")
        } else if kinds.split(',').any(|kind| kind == "memory") {
            ("/sys/fs/cgroup/memory", "memory.oom_control")
        } else {
            continue;
        };
        places.push(Path::new(root).join(group.trim_start_matches('/')).join(file));
        places.push(Path::new(root).join(file));
    }
    places
}

fn count(place: &Path) -> Option<u64> {
    let text = fs::read_to_string(place).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use containerpilot_core::ids::{CheckRunId, RunId};

    use super::*;
    use crate::test_support;

    #[test]
    fn p3_the_own_group_is_looked_for_before_the_root_of_what_is_mounted() {
        let places = |text| places(text).iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
        assert_eq!(
            places("0::/docker/abc\n"),
            ["/sys/fs/cgroup/docker/abc/memory.events", "/sys/fs/cgroup/memory.events"]
        );
        let first = "4:pids:/x\n3:cpu,memory:/docker/abc\n1:name=systemd:/\nnonsense\n";
        let file = "memory.oom_control";
        assert_eq!(
            places(first),
            [format!("/sys/fs/cgroup/memory/docker/abc/{file}"), format!("/sys/fs/cgroup/memory/{file}")]
        );
    }

    #[test]
    fn p3_only_the_end_of_a_run_by_sigkill_is_explained_and_only_by_what_is_new() {
        let folder = test_support::folder();
        let place = folder.join("memory.events");
        let write =
            |count| fs::write(&place, format!("low 0\noom 9\noom_kill {count}\noom_group_kill 0\n")).unwrap();
        write(3);
        let mut memory = Memory { seen: Some((place.clone(), count(&place).unwrap())) };
        let run = |status| Ended { owner: Owner::Run(RunId(1)), pid: 7, status, orphans: false };
        let killed = ExitStatus::Signal(Signal::KILL);
        assert_eq!(memory.explains(&run(killed)), Some(0));
        write(5);
        assert_eq!(memory.explains(&run(ExitStatus::Code(1))), None);
        assert_eq!(memory.explains(&run(ExitStatus::Signal(Signal::TERM))), None);
        assert_eq!(memory.explains(&Ended { owner: Owner::Check(CheckRunId(1)), ..run(killed) }), None);
        assert_eq!(memory.explains(&run(ExitStatus::Code(137))), Some(2));
        assert_eq!(memory.explains(&run(killed)), Some(0));
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(memory.explains(&run(killed)), None);
        assert_eq!(Memory::default().explains(&run(killed)), None);
    }
}
