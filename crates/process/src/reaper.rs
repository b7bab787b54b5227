//! Collects exit statuses; nothing else does (P1, P4).
//!
//! An exited child is first found with `WNOWAIT` and only then reaped. In between its pid cannot be reused, so its
//! process group can be signalled without hitting another process.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use containerpilot_core::SortedMap;
use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::input::{ExitStatus, Input, Remains, StartError};
use containerpilot_core::plan::{Signal, StopScope};
use containerpilot_core::report::words;
use nix::errno::Errno;

use crate::cgroups::Cgroups;
use crate::orphans::{OrphanedGroup, Orphans};
use crate::proc;
use crate::sys::{self, WaitState};

/// How many exited processes are collected before the loop handles its other sources.
const MAX_PER_PASS: usize = 4096;

/// Every `waitid` scans the children from the oldest one on. With thousands of running orphans a scan is too
/// expensive: after `MANY_ORPHANS`, a scan that takes longer than `SLOW_SCAN` is the last one of a pass.
const MANY_ORPHANS: usize = 16;
const SLOW_SCAN: Duration = Duration::from_micros(20);
/// After `MANY_ORPHANS`, or a pass with orphans that takes this long, more orphans are expected soon. The next pass is
/// delayed then.
const SLOW_PASS: Duration = Duration::from_micros(100);
/// The bounds of that delay. It is four times the time of the last pass, so that passes take a fifth of the time at
/// most.
const DELAY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(20)];

/// What a process was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Run(RunId),
    Check(CheckRunId),
}

impl Owner {
    /// The input for the core when the process could not be started.
    pub fn start_failed(self, why: StartError) -> Input {
        match self {
            Self::Run(run) => Input::StartFailed { run, why },
            Self::Check(check) => Input::CheckDone { check, result: Err(why.into()) },
        }
    }
}

/// A process of the supervisor that has exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    pub owner: Owner,
    pub pid: i32,
    pub status: ExitStatus,
    /// What is left of its run.
    pub remains: Remains,
    /// False if it was killed before it had executed its program.
    pub executed: bool,
}

impl Exited {
    /// The input for the core.
    pub fn input(&self) -> Input {
        match self.owner {
            Owner::Run(run) => Input::Exited { run, status: self.status, remains: self.remains.clone() },
            Owner::Check(check) => {
                let passed = self.status.is_success();
                let result = if passed { Ok(()) } else { Err(words::exit(self.status).into()) };
                Input::CheckDone { check, result }
            }
        }
    }
}

/// The result of one pass of [`Reaper::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pass {
    /// How many reaped processes were not started by the supervisor.
    orphans: usize,
    /// Whether there may be more to collect now.
    more: bool,
    /// Whether exited orphans were left for later, because scans became slow.
    slow: bool,
    /// Whether a system call failed. No signal will announce the remaining children again.
    failed: bool,
}

impl Pass {
    /// When the next pass is due without a signal, if it took this long.
    fn next(self, took: Duration) -> Option<Duration> {
        let [shortest, longest] = DELAY;
        if self.more {
            return Some(Duration::ZERO);
        }
        if self.failed || self.slow {
            return Some(longest);
        }
        let delayed = self.orphans >= MANY_ORPHANS || self.orphans > 0 && took > SLOW_PASS;
        delayed.then(|| (took * 4).clamp(shortest, longest))
    }
}

/// The processes that the supervisor has started and not reaped, and those that it has adopted.
#[derive(Default)]
pub struct Reaper {
    pub(super) owners: SortedMap<i32, Owner>,
    pub(super) pids: SortedMap<Owner, i32>,
    /// Those of `pids` that may not have executed their program.
    starting: BTreeSet<Owner>,
    /// The runs that were sent a signal that ends them, and whether it went to the process group.
    ending: SortedMap<RunId, StopScope>,
    /// The process groups of exited runs that still had members.
    pub(super) orphaned_groups: SortedMap<RunId, OrphanedGroup>,
    pub(super) orphans: Orphans,
    pub cgroups: Cgroups,
}

impl Reaper {
    pub fn new(orphans: Orphans) -> Self {
        Self { orphans, ..Self::default() }
    }

    /// Registers a process that was started.
    pub fn started(&mut self, pid: i32, owner: Owner) {
        self.owners.insert(pid, owner);
        self.pids.insert(owner, pid);
        self.starting.insert(owner);
    }

    /// A process has executed its program.
    pub fn executed(&mut self, owner: Owner) {
        self.starting.remove(&owner);
    }

    /// Collects every exited process, except orphans that can wait while there are very many. Returns a delay if the
    /// next call is due after it, with or without a SIGCHLD, and not earlier.
    pub fn collect(&mut self, exited: &mut Vec<Exited>) -> Option<Duration> {
        let started = Instant::now();
        self.collect_until(exited, SLOW_SCAN).next(started.elapsed())
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
            self.orphans.reaped(pid, |run| self.pids.contains_key(&Owner::Run(run)));
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
        let was_starting = self.starting.remove(&owner);
        // The zombie still holds the pid, so the signal reaches only members of its own group. The result of a check is
        // known; its remaining processes are killed, or each check could leave another one running. A group that was
        // sent the stop signal does not get another one (S14).
        let (signal, ending) = match owner {
            Owner::Run(run) => match self.ending.remove(&run) {
                ending @ Some(StopScope::Group) => (None, ending),
                ending => (Some(Signal::TERM), ending),
            },
            Owner::Check(_) => (Some(Signal::KILL), None),
        };
        if let Some(signal) = signal {
            let _ = sys::kill_group(pid, signal);
        }
        // Only the zombie tells. Without a signal it has executed its program, or has reported why not.
        let is_unknown = was_starting && matches!(status, ExitStatus::Signal(_));
        let executed = !is_unknown || proc::has_executed(pid) != Some(false);
        let reaped = sys::reap(pid);
        let mut remains = Remains::Nothing;
        if let Owner::Run(run) = owner {
            self.orphans.request();
            self.cgroups.ended(run);
            remains = self.remains(run, pid, ending.is_some());
        }
        exited.push(Exited { owner, pid, status, remains, executed });
        reaped.is_ok()
    }

    /// What is left of a run whose process was reaped just now. It is reported when it is gone.
    fn remains(&mut self, run: RunId, group: i32, was_ended: bool) -> Remains {
        let remains = if sys::group_exists(group) {
            self.orphaned_groups.insert(run, OrphanedGroup { group, reaped: proc::ticks() });
            Remains::Group(proc::names_in_group(group))
        } else if was_ended && self.may_have_daemons() {
            Remains::Unknown
        } else {
            return Remains::Nothing;
        };
        self.orphans.expect_end(run);
        remains
    }

    /// Sends a signal to a process that is not reaped and, unless it is for the process alone (S9), to its process
    /// group. Does nothing if it is reaped. SIGKILL also goes to processes of the run that have left the group.
    ///
    /// What is left of a run whose process is reaped gets it, too. With `ends`, the run is to end by it.
    pub fn kill(&mut self, owner: Owner, signal: Signal, scope: StopScope, ends: bool) -> Result<(), Errno> {
        let Some(pid) = self.pids.get(&owner) else {
            if let Owner::Run(run) = owner
                && self.orphans.is_ending(run)
            {
                self.signal_rest(run, signal);
            }
            return Ok(());
        };
        let sent = match scope {
            StopScope::Group => kill_with_group(*pid, signal),
            StopScope::Process => sys::kill_process(*pid, signal),
        };
        if let Owner::Run(run) = owner {
            if ends || signal == Signal::KILL {
                self.ending.insert(run, scope);
            }
            if signal == Signal::KILL {
                self.orphans.kill(run);
                self.cgroups.kill(run);
            }
        }
        sent
    }

    /// Sends a signal to what is left of a run whose process is reaped.
    fn signal_rest(&mut self, run: RunId, signal: Signal) {
        if signal == Signal::KILL {
            return self.kill_rest(run);
        }
        if let Some(orphaned) = self.orphaned_groups.get(&run).filter(|orphaned| orphaned.exists())
            && sys::has_child_in_group(orphaned.group)
        {
            let _ = sys::kill_group(orphaned.group, signal);
        }
        self.signal_daemons(run, signal);
    }

    /// Kills every process of the supervisor, with its process group.
    pub fn kill_all(&self) {
        for pid in self.owners.keys() {
            let _ = kill_with_group(*pid, Signal::KILL);
        }
        self.cgroups.kill_all();
    }

    /// Kills what remains of a run that has ended.
    ///
    /// While a group has a member, its number is not given to a new process. So if a process with that pid exists, the
    /// group is gone. If none exists, but a child of the supervisor (an orphan of that run) is in the group, it is the
    /// old group until that child is reaped, which does not happen in between. Without such a child, the members must
    /// be found first.
    fn kill_rest(&mut self, run: RunId) {
        self.orphans.kill(run);
        self.cgroups.kill(run);
        let orphaned = self.orphaned_groups.get(&run).copied();
        let Some(orphaned) = orphaned.filter(|orphaned| orphaned.exists()) else { return };
        if sys::has_child_in_group(orphaned.group) {
            let _ = sys::kill_group(orphaned.group, Signal::KILL);
        } else {
            self.orphans.kill_group(orphaned);
        }
    }

    /// Kills what remains of a run that has ended, and forgets it.
    pub fn kill_orphans(&mut self, run: RunId) {
        self.kill_rest(run);
        self.orphaned_groups.remove(&run);
        self.orphans.forget_end(run);
    }

    /// Whether a process is ready to run: it waits for a processor, and for nothing else.
    pub fn is_runnable(&self, owner: Owner) -> bool {
        self.pids.get(&owner).is_some_and(|pid| proc::is_runnable(*pid))
    }

    /// The run of a process that is not reaped.
    pub fn run_of(&self, pid: i32) -> Option<RunId> {
        match self.owners.get(&pid) {
            Some(Owner::Run(run)) => Some(*run),
            _ => None,
        }
    }

    /// Kills a process and forgets it (P3, P6): it may be in a state in which not even SIGKILL ends it. When it exits
    /// after all, it is reaped like an orphan. Returns its pid.
    pub fn abandon(&mut self, owner: Owner) -> Option<i32> {
        let pid = self.pids.remove(&owner)?;
        self.starting.remove(&owner);
        self.owners.remove(&pid);
        self.orphans.abandon(pid);
        let _ = kill_with_group(pid, Signal::KILL);
        if let Owner::Run(run) = owner {
            self.ending.remove(&run);
            self.cgroups.kill(run);
            self.cgroups.ended(run);
        }
        Some(pid)
    }
}

/// Sends a signal to a process that is not reaped, and to the process group that it led. The process gets it once, also
/// if it has left the group.
fn kill_with_group(pid: i32, signal: Signal) -> Result<(), Errno> {
    // Asked first, because the process may leave the group as soon as it gets the signal.
    let has_left = sys::group_of(pid).is_some_and(|group| group != pid);
    let group = sys::kill_group(pid, signal);
    if has_left || signal == Signal::KILL { sys::kill_process(pid, signal) } else { group }
}

#[cfg(test)]
mod tests;
