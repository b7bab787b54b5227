//! A cgroup for each run, where cgroup v2 is delegated to the supervisor (P4).
//!
//! A process leaves its cgroup neither by a session of its own nor by another environment, but only by writing to the
//! cgroup file system, which jobs of other users may not. `cgroup.kill` ends all processes of a run at once.
//!
//! Nothing depends on it: if a call fails here, the processes of a run are found as without cgroups.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use containerpilot_core::ids::RunId;
use thiserror::Error;

use crate::error_text::describe;
use crate::proc::kernel_text;

/// The limits that language runtimes look for in the cgroup of their process. Runs have no controllers in theirs.
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "cpu.max"];

/// How many names are tried. A supervisor that was killed leaves its directory behind, and the pid may be that of
/// another PID namespace.
const MAX_NAMES: u32 = 100;

/// The time between two attempts to remove the last cgroups.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(1);

/// The cgroups of the runs. There are none by default.
#[derive(Debug, Default)]
pub struct Cgroups {
    parent: Option<Parent>,
    /// The ended runs whose cgroup could not be removed: it has a process.
    ended: BTreeSet<RunId>,
}

/// The cgroup of this supervisor that contains those of its runs, and no process.
#[derive(Debug)]
struct Parent {
    directory: PathBuf,
    /// Its path as in `/proc/PID/cgroup`.
    path: Arc<str>,
}

/// Why runs have no cgroups of their own.
#[derive(Debug, Error)]
pub enum CgroupError {
    /// Only version 1, or none.
    #[error("there is no cgroup v2")]
    NoVersion2,
    /// The cgroup of this process is outside of what is mounted.
    #[error("the own cgroup v2 is not mounted")]
    NotMounted,
    /// The root cgroup belongs to the host and is never delegated.
    #[error("{} is the root cgroup, or has no cgroup.kill (before Linux 5.14)", .0.display())]
    NoKill(PathBuf),
    /// Jobs look for the limits in their own cgroup.
    #[error("jobs would not find the {limit} of {} in theirs", own.display())]
    Limited {
        /// The file of the limit.
        limit: &'static str,
        /// The cgroup of this process.
        own: PathBuf,
    },
    /// The cgroup is not delegated, or the system fails.
    #[error("{}: {}", path.display(), describe(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The directory and the path of the cgroup of this process.
fn own_cgroup() -> Result<(PathBuf, String), CgroupError> {
    let read = |file| String::from_utf8_lossy(&kernel_text(file).unwrap_or_default()).into_owned();
    let own = read("/proc/self/cgroup");
    let path = path_of(&own).ok_or(CgroupError::NoVersion2)?;
    let directory = directory_of(path, &read("/proc/self/mountinfo")).ok_or(CgroupError::NotMounted)?;
    Ok((directory, path.to_owned()))
}

/// Why a supervisor that is started here would have no cgroups for its runs, as far as that is known before.
#[must_use]
pub fn why_none() -> Option<CgroupError> {
    own_cgroup().and_then(|(own, _)| require_usable(&own)).err()
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    |source| CgroupError::Io { path, source }
}

fn require_usable(own: &Path) -> Result<(), CgroupError> {
    if !own.join("cgroup.kill").exists() {
        return Err(CgroupError::NoKill(own.to_owned()));
    }
    for limit in LIMITS {
        let value = fs::read_to_string(own.join(limit)).unwrap_or_default();
        if value.split_whitespace().next().is_some_and(|value| value != "max") {
            return Err(CgroupError::Limited { limit, own: own.to_owned() });
        }
    }
    // Without this permission no process can be moved to a cgroup below.
    let procs = own.join("cgroup.procs");
    File::options().write(true).open(&procs).map_err(failed(&procs))?;
    Ok(())
}

impl Parent {
    /// Creates it below the cgroup of the supervisor.
    fn below(own: &Path, path: &str) -> Result<Self, CgroupError> {
        require_usable(own)?;
        let mut number = 0;
        loop {
            let name = format!("containerpilot-{}-{number}", std::process::id());
            let directory = own.join(&name);
            match create_directory(&directory) {
                Ok(()) => {
                    let path = format!("{}/{name}", path.trim_end_matches('/')).into();
                    return Ok(Self { directory, path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_NAMES => {
                    number += 1;
                }
                Err(error) => return Err(failed(&directory)(error)),
            }
        }
    }
}

impl Cgroups {
    /// Creates the cgroup for those of the runs if that is possible, and says so or why not.
    pub fn open() -> (Self, String) {
        match own_cgroup().and_then(|(own, path)| Parent::below(&own, &path)) {
            Ok(parent) => {
                let message = format!("each run has a cgroup of its own in {}", parent.directory.display());
                (Self { parent: Some(parent), ended: BTreeSet::new() }, message)
            }
            Err(reason) => (Self::default(), format!("runs have no cgroups of their own: {reason}")),
        }
    }

    /// The directory that contains the cgroups of the runs.
    pub fn directory(&self) -> Option<&Path> {
        self.parent.as_ref().map(|parent| parent.directory.as_path())
    }

    /// The path of that directory as in `/proc/PID/cgroup`.
    pub(super) fn path(&self) -> Option<Arc<str>> {
        self.parent.as_ref().map(|parent| Arc::clone(&parent.path))
    }

    fn directory_of(&self, run: RunId) -> Option<PathBuf> {
        Some(self.directory()?.join(run.0.to_string()))
    }

    /// Creates the cgroup of a run and opens its directory.
    pub fn create(&self, run: RunId) -> Option<OwnedFd> {
        let directory = self.directory_of(run)?;
        create_directory(&directory).ok()?;
        File::open(directory).ok().map(OwnedFd::from)
    }

    /// Kills every process in the cgroup of a run.
    pub(super) fn kill(&self, run: RunId) {
        if let Some(directory) = self.directory_of(run) {
            kill(&directory);
        }
    }

    /// Kills every process of every run.
    pub fn kill_all(&self) {
        if let Some(directory) = self.directory() {
            kill(directory);
        }
    }

    /// Removes the cgroup of a run that has ended, as soon as it has no process.
    pub fn ended(&mut self, run: RunId) {
        if self.directory_of(run).is_some_and(|directory| !remove(&directory)) {
            self.ended.insert(run);
        }
    }

    /// Removes those cgroups of ended runs that have no process any more.
    pub(super) fn remove_ended(&mut self) {
        for run in std::mem::take(&mut self.ended) {
            self.ended(run);
        }
    }

    /// Removes all cgroups, at the end of the supervisor. A killed process needs a moment to leave its cgroup.
    pub fn remove_all(&self, deadline: Instant) {
        while self.directory().is_some_and(|directory| !remove(directory)) && Instant::now() < deadline {
            std::thread::sleep(REMOVAL_INTERVAL);
        }
    }
}

/// The path of a process in cgroup v2, from the content of its `/proc/PID/cgroup`.
fn path_of(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The directory of a cgroup, from the content of `/proc/self/mountinfo`. `None` if no mount shows it: each shows the
/// cgroups below its root.
fn directory_of(path: &str, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        // A cgroup outside of the cgroup namespace begins with `..`.
        let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
        (is_below && file_system.starts_with("cgroup2 ")).then(|| Path::new(place).join(below))
    })
}

/// The run in whose cgroup a process is. `parent` is [`Cgroups::path`].
pub(super) fn run_of(pid: i32, parent: &str) -> Option<RunId> {
    run_in(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?, parent)
}

fn run_in(groups: &str, parent: &str) -> Option<RunId> {
    let below = path_of(groups)?.strip_prefix(parent)?.strip_prefix('/')?;
    // Processes of the run may have made further cgroups in it.
    below.split('/').next()?.parse().ok().map(RunId)
}

/// Creates a cgroup that other users may not change, with any umask.
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(directory)
}

fn kill(directory: &Path) {
    let _ = fs::write(directory.join("cgroup.kill"), "1");
}

/// Removes a cgroup, with those that its processes have made in it. Returns false if there is a process.
fn remove(directory: &Path) -> bool {
    let removed = || match fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if removed() {
        return true;
    }
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let inner: Vec<PathBuf> = entries.flatten().filter(is_directory).map(|entry| entry.path()).collect();
    !inner.is_empty() && inner.iter().all(|directory| remove(directory)) && removed()
}

#[cfg(test)]
mod tests;
