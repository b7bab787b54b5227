//! The thread that reads what a hostile process can delay, or what takes long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use containerpilot_core::ids::RunId;
use nix::errno::Errno;

use super::OrphanedGroup;
use super::mark::{MARK, run_of};
use crate::{cgroups, proc};

/// What the thread is to do.
#[derive(Debug)]
pub(super) struct OrphanRequest {
    /// Whether it lists the children of the supervisor.
    pub(super) list: bool,
    /// The processes to attribute.
    pub(super) pids: Vec<i32>,
    /// The process groups to look for.
    pub(super) groups: Vec<OrphanedGroup>,
    /// The cgroup that contains those of the runs.
    pub(super) cgroup: Option<Arc<str>>,
}

/// What the cgroup or the environment of a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Run(RunId),
    /// No run of this supervisor.
    Foreign,
    /// It is empty or must not be read. It may be different after `execve`.
    Unreadable,
    /// No descriptor or memory was free.
    NoResources,
}

/// What the thread has found.
#[derive(Debug, Default)]
pub struct OrphanReport {
    pub(super) children: Vec<i32>,
    pub(super) marks: Vec<(i32, Mark)>,
    /// The process groups that are still those of their run.
    pub(super) groups: Vec<i32>,
}

/// Starts the thread. Returns the pid that it reads just now, or the process groups if that fails.
pub(super) fn start(
    request: OrphanRequest,
    report: Arc<dyn Fn(OrphanReport) + Send + Sync>,
) -> Result<Arc<AtomicI32>, Vec<OrphanedGroup>> {
    let (groups, current) = (request.groups.clone(), Arc::new(AtomicI32::new(0)));
    let thread = std::thread::Builder::new().name("orphans".to_owned()).stack_size(128 * 1024);
    let started = thread.spawn({
        let current = Arc::clone(&current);
        move || {
            // The hook has logged a panic. Without a report there would never be another thread.
            report(catch_unwind(AssertUnwindSafe(|| read(&request, &current))).unwrap_or_default());
        }
    });
    started.map(|_| current).map_err(|_| groups)
}

fn read(request: &OrphanRequest, current: &AtomicI32) -> OrphanReport {
    let is_old = |orphaned: &&OrphanedGroup| {
        orphaned.reaped.is_some_and(|reaped| proc::has_member_since(orphaned.group, reaped))
    };
    OrphanReport {
        children: if request.list { proc::children_by_parent().unwrap_or_default() } else { Vec::new() },
        groups: request.groups.iter().filter(is_old).map(|old| old.group).collect(),
        marks: request.pids.iter().map(|pid| (*pid, mark_of(*pid, request, current))).collect(),
    }
}

fn mark_of(pid: i32, request: &OrphanRequest, current: &AtomicI32) -> Mark {
    if let Some(run) = request.cgroup.as_ref().and_then(|parent| cgroups::run_of(pid, parent)) {
        return Mark::Run(run);
    }
    current.store(pid, Ordering::Relaxed);
    match proc::environment_variable(pid, MARK.as_bytes()) {
        Ok(mark) => mark.as_deref().and_then(run_of).map_or(Mark::Foreign, Mark::Run),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM) => Mark::NoResources,
            _ => Mark::Unreadable,
        },
    }
}
