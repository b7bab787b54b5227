//! The only place that collects exit statuses (P1, P4).
//!
//! An ended child is first looked at and only then reaped. In between its number is still taken, so what is left
//! of its process group can be signalled without ever hitting somebody else.

use std::time::{Duration, Instant};

use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use nix::errno::Errno;
use std::collections::BTreeMap;

use crate::process::sys::{self, Look};

/// How many ended processes are collected in one turn; then other news gets its chance.
const MOST_AT_ONCE: usize = 4096;

/// The kernel begins every look at its oldest child and walks over the living. With thousands of orphans of whom some have
/// ended, a look soon costs more than what it finds is worth: after so many orphans, one that takes so long is the last.
const MANY: usize = 16;
const FAR: Duration = Duration::from_micros(20);

/// Whose process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A run of a job.
    Run(RunId),
    /// A run of a check.
    Check(CheckRunId),
}

/// A child that we started and that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whose it was.
    pub(crate) owner: Owner,
    /// Its number.
    pub(crate) pid: i32,
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Whether anybody is left in its process group.
    pub(crate) orphans: bool,
}

/// What a round of collecting has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// How many processes were collected that nobody here had started.
    pub(crate) orphans: usize,
    /// Whether there may be more to collect at once.
    pub(crate) more: bool,
    /// Whether the orphans were left to gather, because looks had become long.
    pub(crate) far: bool,
    /// Whether the system has failed us: nobody tells again of those that are still there.
    pub(crate) failed: bool,
}

/// Knows the processes that we started.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    living: BTreeMap<i32, Owner>,
    pids: BTreeMap<Owner, i32>,
    /// The groups of ended runs in which somebody was left.
    remains: BTreeMap<RunId, i32>,
}

impl Reaper {
    /// Takes note of a process that was started.
    pub(crate) fn started(&mut self, pid: i32, owner: Owner) {
        self.living.insert(pid, owner);
        self.pids.insert(owner, pid);
    }

    /// Collects every process that has ended; but for orphans who can wait, while there are very many.
    pub(crate) fn collect(&mut self, ended: &mut Vec<Ended>) -> Round {
        self.collect_until(ended, FAR)
    }

    fn collect_until(&mut self, ended: &mut Vec<Ended>, far: Duration) -> Round {
        let mut round = Round::default();
        for _ in 0..MOST_AT_ONCE {
            let began = Instant::now();
            let (pid, status) = match sys::look() {
                Ok(Look::Ended(pid, status)) => (pid, status),
                Ok(Look::Alive | Look::Childless) => return round,
                Err(_) => return Round { failed: true, ..round },
            };
            let took = began.elapsed();
            if let Some(owner) = self.living.remove(&pid) {
                if !self.bury(owner, pid, status, ended) {
                    return Round { failed: true, ..round };
                }
                continue;
            }
            round.orphans += 1;
            if sys::reap(pid).is_err() {
                return Round { failed: true, ..round };
            }
            if round.orphans >= MANY && took > far {
                let failed = !self.collect_own(ended);
                return Round { far: true, failed, ..round };
            }
        }
        Round { more: true, ..round }
    }

    /// Collects those that we started ourselves, one by one; whether the system let us.
    fn collect_own(&mut self, ended: &mut Vec<Ended>) -> bool {
        let mut all = true;
        let ours: Vec<(i32, Owner)> = self.living.iter().map(|(pid, owner)| (*pid, *owner)).collect();
        for (pid, owner) in ours {
            match sys::look_at(pid) {
                Ok(Look::Ended(_, status)) => {
                    self.living.remove(&pid);
                    all &= self.bury(owner, pid, status, ended);
                }
                Ok(Look::Alive | Look::Childless) => {}
                Err(_) => all = false,
            }
        }
        all
    }

    /// Reaps a process that we started, and sees to what it leaves behind; whether the system let us.
    fn bury(&mut self, owner: Owner, pid: i32, status: ExitStatus, ended: &mut Vec<Ended>) -> bool {
        self.pids.remove(&owner);
        // Its own process is a zombie that holds the number; whoever else is there is what is left.
        // A check's answer is there, and nobody looks after what it leaves behind: it is not asked, or each check
        // could leave one more.
        let signal = match owner {
            Owner::Run(_) => Signal::TERM,
            Owner::Check(_) => Signal::KILL,
        };
        let _ = sys::kill_group(pid, signal);
        let reaped = sys::reap(pid);
        let orphans = match owner {
            Owner::Run(_) => sys::group_exists(pid),
            // They were killed.
            Owner::Check(_) => false,
        };
        if let (Owner::Run(run), true) = (owner, orphans) {
            self.remains.insert(run, pid);
        }
        ended.push(Ended { owner, pid, status, orphans });
        reaped.is_ok()
    }

    /// Sends a signal to the process group of a process that has not been reaped. One that has been needs none.
    pub(crate) fn kill(&self, owner: Owner, signal: Signal) -> Result<(), Errno> {
        self.pids.get(&owner).map_or(Ok(()), |pid| sys::kill_group(*pid, signal))
    }

    /// Kills everything that was started and has not been reaped.
    pub(crate) fn kill_all(&self) {
        for pid in self.living.keys() {
            let _ = sys::kill_group(*pid, Signal::KILL);
        }
    }

    /// Kills what is left of the process group of a run that has ended.
    ///
    /// While anybody of the group lives, its number is given to no new process. So if there is a process of that
    /// number, the group is gone; and if there is none, but a child of ours (an orphan of that run) is in the group,
    /// it is the old group, and stays so until we reap that child, which we do not do in between.
    pub(crate) fn kill_remains(&mut self, run: RunId) {
        let Some(group) = self.remains.remove(&run) else { return };
        if !sys::process_exists(group) && sys::has_child_in_group(group) {
            let _ = sys::kill_group(group, Signal::KILL);
        }
    }
}

/// Reaps a process that never became a program; its start has already been reported as failed.
pub(crate) fn discard(pid: i32) {
    let _ = sys::reap(pid);
}

#[cfg(test)]
mod tests;
