//! Collects exit statuses; nothing else does (P1, P4).
//!
//! An exited child is first found with `WNOWAIT` and only then reaped. In between its pid cannot be reused, so its process
//! group can be signalled without hitting another process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use nix::errno::Errno;

use crate::process::sys::{self, WaitState};

/// How many exited processes are collected before the loop handles its other sources.
const MAX_PER_PASS: usize = 4096;

/// Every `waitid` scans the children from the oldest one on. With thousands of running orphans a scan is too
/// expensive: after `MANY_ORPHANS`, a scan that takes longer than `SLOW_SCAN` is the last one of a pass.
const MANY_ORPHANS: usize = 16;
const SLOW_SCAN: Duration = Duration::from_micros(20);

/// What a process was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Run(RunId),
    Check(CheckRunId),
}

/// A process of the supervisor that has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exited {
    pub(crate) owner: Owner,
    pub(crate) pid: i32,
    pub(crate) status: ExitStatus,
    /// Whether its process group still has members.
    pub(crate) orphans: bool,
}

/// The result of one pass of [`Reaper::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// How many reaped processes were not started by the supervisor.
    pub(crate) orphans: usize,
    /// Whether there may be more to collect now.
    pub(crate) more: bool,
    /// Whether exited orphans were left for later, because scans became slow.
    pub(crate) slow: bool,
    /// Whether a system call failed. No signal will announce the remaining children again.
    pub(crate) failed: bool,
}

/// The processes that the supervisor has started and not reaped.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    owners: BTreeMap<i32, Owner>,
    pids: BTreeMap<Owner, i32>,
    /// The process groups of exited runs that still had members.
    orphaned_groups: BTreeMap<RunId, i32>,
}

impl Reaper {
    /// Registers a process that was started.
    pub(crate) fn started(&mut self, pid: i32, owner: Owner) {
        self.owners.insert(pid, owner);
        self.pids.insert(owner, pid);
    }

    /// Collects every exited process, except orphans that can wait while there are very many.
    pub(crate) fn collect(&mut self, exited: &mut Vec<Exited>) -> Pass {
        self.collect_until(exited, SLOW_SCAN)
    }

    fn collect_until(&mut self, exited: &mut Vec<Exited>, slow_scan: Duration) -> Pass {
        let mut pass = Pass::default();
        for _ in 0..MAX_PER_PASS {
            let started = Instant::now();
            let (pid, status) = match sys::wait_nowait() {
                Ok(WaitState::Exited(pid, status)) => (pid, status),
                Ok(WaitState::Running | WaitState::NoChild) => return pass,
                Err(_) => return Pass { failed: true, ..pass },
            };
            let scan_time = started.elapsed();
            if let Some(owner) = self.owners.remove(&pid) {
                if !self.reap(owner, pid, status, exited) {
                    return Pass { failed: true, ..pass };
                }
                continue;
            }
            pass.orphans += 1;
            if sys::reap(pid).is_err() {
                return Pass { failed: true, ..pass };
            }
            if pass.orphans >= MANY_ORPHANS && scan_time > slow_scan {
                let failed = !self.collect_own(exited);
                return Pass { slow: true, failed, ..pass };
            }
        }
        Pass { more: true, ..pass }
    }

    /// Collects the processes of the supervisor by pid. Returns false if a system call failed.
    fn collect_own(&mut self, exited: &mut Vec<Exited>) -> bool {
        let mut succeeded = true;
        let own: Vec<(i32, Owner)> = self.owners.iter().map(|(pid, owner)| (*pid, *owner)).collect();
        for (pid, owner) in own {
            match sys::wait_pid_nowait(pid) {
                Ok(WaitState::Exited(_, status)) => {
                    self.owners.remove(&pid);
                    succeeded &= self.reap(owner, pid, status, exited);
                }
                Ok(WaitState::Running | WaitState::NoChild) => {}
                Err(_) => succeeded = false,
            }
        }
        succeeded
    }

    /// Signals the process group of an exited process, then reaps it. Returns false if the system call failed.
    fn reap(&mut self, owner: Owner, pid: i32, status: ExitStatus, exited: &mut Vec<Exited>) -> bool {
        self.pids.remove(&owner);
        // The zombie still holds the pid, so the signal reaches only members of its own group. The result of a check is
        // known; its remaining processes are killed, or each check could leave another one running.
        let signal = match owner {
            Owner::Run(_) => Signal::TERM,
            Owner::Check(_) => Signal::KILL,
        };
        let _ = sys::kill_group(pid, signal);
        let reaped = sys::reap(pid);
        let orphans = match owner {
            Owner::Run(_) => sys::group_exists(pid),
            Owner::Check(_) => false,
        };
        if let (Owner::Run(run), true) = (owner, orphans) {
            self.orphaned_groups.insert(run, pid);
        }
        exited.push(Exited { owner, pid, status, orphans });
        reaped.is_ok()
    }

    /// Sends a signal to the process group of a process that is not reaped. Does nothing if it is.
    pub(crate) fn kill(&self, owner: Owner, signal: Signal) -> Result<(), Errno> {
        self.pids.get(&owner).map_or(Ok(()), |pid| sys::kill_group(*pid, signal))
    }

    /// Kills every process group of the supervisor's processes.
    pub(crate) fn kill_all(&self) {
        for pid in self.owners.keys() {
            let _ = sys::kill_group(*pid, Signal::KILL);
        }
    }

    /// Kills the orphaned process group of a run that has exited.
    ///
    /// While a group has a member, its number is not given to a new process. So if a process with that pid exists, the
    /// group is gone. If none exists, but a child of the supervisor (an orphan of that run) is in the group, it is the
    /// old group until that child is reaped, which does not happen in between.
    pub(crate) fn kill_orphaned_group(&mut self, run: RunId) {
        let Some(group) = self.orphaned_groups.remove(&run) else { return };
        if !sys::process_exists(group) && sys::has_child_in_group(group) {
            let _ = sys::kill_group(group, Signal::KILL);
        }
    }
}

/// Reaps a child that failed before it executed its program; the failed start is reported by its caller.
pub(crate) fn discard(pid: i32) {
    let _ = sys::reap(pid);
}

#[cfg(test)]
mod tests;
