//! How many processes of this container the kernel's OOM killer has killed.
//!
//! The kernel counts them in the control group: `memory.events` in cgroup v2, `memory.oom_control` in cgroup v1. It
//! counts before it kills, so the count is up to date when the exit is seen. Without a mounted cgroup file system the
//! count is unknown and OOM kills are not reported.

use std::path::{Path, PathBuf};

use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use containerpilot_process::proc::kernel_text;
use containerpilot_process::reaper::{Exited, Owner};

/// The file with the count, and its last value.
#[derive(Debug, Default)]
pub(crate) struct OomCounter {
    last: Option<(PathBuf, u64)>,
}

impl OomCounter {
    /// Finds the counter of this process's control group.
    pub(crate) fn open() -> Self {
        let groups = kernel_text("/proc/self/cgroup").unwrap_or_default();
        let groups = String::from_utf8_lossy(&groups);
        let last = candidates(&groups).into_iter().find_map(|file| count(&file).map(|count| (file, count)));
        Self { last }
    }

    /// The number of OOM kills since the last call, if they could explain the exit of a run: it was killed by SIGKILL.
    pub(crate) fn kills_that_explain(&mut self, exited: &Exited) -> Option<u64> {
        let killed = ExitStatus::Signal(Signal::KILL);
        // A shell exits with this code if its child was killed.
        let by_sigkill = exited.status == killed || exited.status == ExitStatus::Code(killed.code());
        if !by_sigkill || !matches!(exited.owner, Owner::Run(_)) {
            return None;
        }
        let (file, last) = self.last.as_mut()?;
        let now = count(file)?;
        Some(now.saturating_sub(std::mem::replace(last, now)))
    }
}

/// The files that may contain the count, from the content of `/proc/self/cgroup`. In a container the own group may be
/// the root of the mounted hierarchy, although it has a name outside.
fn candidates(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.events")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.oom_control")
        } else {
            continue;
        };
        files.push(Path::new(root).join(group.trim_start_matches('/')).join(file));
        files.push(Path::new(root).join(file));
    }
    files
}

fn count(file: &Path) -> Option<u64> {
    let text = String::from_utf8(kernel_text(file).ok()?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use containerpilot_core::ids::{CheckRunId, RunId};

    use std::fs;

    use super::*;
    use containerpilot_test_support as test_support;

    #[test]
    fn p3_own_cgroup_is_tried_before_the_root_of_the_hierarchy() {
        let files = |text| candidates(text).iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
        assert_eq!(
            files("0::/docker/abc\n"),
            ["/sys/fs/cgroup/docker/abc/memory.events", "/sys/fs/cgroup/memory.events"]
        );
        let v1 = "4:pids:/x\n3:cpu,memory:/docker/abc\n1:name=systemd:/\nnonsense\n";
        let file = "memory.oom_control";
        assert_eq!(
            files(v1),
            [format!("/sys/fs/cgroup/memory/docker/abc/{file}"), format!("/sys/fs/cgroup/memory/{file}")]
        );
    }

    #[test]
    fn p3_only_new_oom_kills_explain_a_run_killed_by_sigkill() {
        let folder = test_support::folder();
        let file = folder.join("memory.events");
        let write =
            |count| fs::write(&file, format!("low 0\noom 9\noom_kill {count}\noom_group_kill 0\n")).unwrap();
        write(3);
        let mut counter = OomCounter { last: Some((file.clone(), count(&file).unwrap())) };
        let run = |status| Exited {
            owner: Owner::Run(RunId(1)),
            pid: 7,
            status,
            remains: containerpilot_core::input::Remains::Nothing,
            executed: true,
        };
        let killed = ExitStatus::Signal(Signal::KILL);
        assert_eq!(counter.kills_that_explain(&run(killed)), Some(0));
        write(5);
        assert_eq!(counter.kills_that_explain(&run(ExitStatus::Code(1))), None);
        assert_eq!(counter.kills_that_explain(&run(ExitStatus::Signal(Signal::TERM))), None);
        assert_eq!(
            counter.kills_that_explain(&Exited { owner: Owner::Check(CheckRunId(1)), ..run(killed) }),
            None
        );
        assert_eq!(counter.kills_that_explain(&run(ExitStatus::Code(137))), Some(2));
        assert_eq!(counter.kills_that_explain(&run(killed)), Some(0));
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(counter.kills_that_explain(&run(killed)), None);
        assert_eq!(OomCounter::default().kills_that_explain(&run(killed)), None);
    }
}
