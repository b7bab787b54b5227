//! Which processes may be created now (P14).
//!
//! A new process needs processor time, memory and descriptors until it has executed its program. If thousands of them
//! compete, none gets there in time. So only some are created at a time, and the others wait.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{CheckRunId, RunId};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::{Fingerprint, Name};
use crate::time::Time;

/// How many processes may be between their creation and the execution of their program.
const MOST_STARTS: usize = 64;

/// A start that takes this long hangs, and no longer keeps others waiting: its file system may never answer.
const HUNG_AFTER: Duration = Duration::from_secs(1);

/// A process to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NewProcess {
    /// That of a job.
    Job(RunId),
    /// That of a check, a drain program or the test of a file.
    Program(CheckRunId),
}

/// The starts that wait for their turn, and those in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartQueue {
    most: usize,
    /// Checks, drain programs and tests of files that wait. Running jobs depend on them, so they come before the jobs.
    programs: BTreeSet<CheckRunId>,
    /// Jobs that wait. A run is numbered when its start is decided, so the order of the numbers is that of the
    /// decisions.
    jobs: BTreeSet<RunId>,
    /// The processes that were created and have not reported, oldest first. At most `most`.
    in_progress: Vec<(NewProcess, Time)>,
}

impl Default for StartQueue {
    fn default() -> Self {
        Self { most: MOST_STARTS, programs: BTreeSet::new(), jobs: BTreeSet::new(), in_progress: Vec::new() }
    }
}

impl StartQueue {
    /// Sets how many processes may be in progress.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most.max(1);
    }

    /// How many processes may be in progress.
    #[cfg(feature = "fingerprint")]
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// The start of a process was decided. Returns true if it is its turn now; otherwise the process waits.
    pub(crate) fn request(&mut self, process: NewProcess, now: Time) -> bool {
        let must_wait = match process {
            NewProcess::Job(_) => !self.is_empty(),
            NewProcess::Program(_) => !self.programs.is_empty(),
        };
        if !must_wait && self.has_room(now) {
            self.in_progress.push((process, now));
            return true;
        }
        match process {
            NewProcess::Job(run) => self.jobs.insert(run),
            NewProcess::Program(run) => self.programs.insert(run),
        };
        false
    }

    /// The waiting process whose turn it is now. It is in progress from now on.
    pub(crate) fn next(&mut self, now: Time) -> Option<NewProcess> {
        if self.is_empty() || !self.has_room(now) {
            return None;
        }
        let program = self.programs.pop_first().map(NewProcess::Program);
        let process = program.or_else(|| self.jobs.pop_first().map(NewProcess::Job))?;
        self.in_progress.push((process, now));
        Some(process)
    }

    /// A start is no longer wanted. Returns true if it was waiting.
    pub(crate) fn withdraw(&mut self, process: NewProcess) -> bool {
        match process {
            NewProcess::Job(run) => self.jobs.remove(&run),
            NewProcess::Program(run) => self.programs.remove(&run),
        }
    }

    /// Ends a start: the process has executed its program, or cannot.
    pub(crate) fn end(&mut self, process: NewProcess) {
        self.in_progress.retain(|(other, _)| *other != process);
    }

    /// When the next start has its turn even if no process reports anything.
    pub(crate) fn next_turn(&self) -> Option<Time> {
        let (_, oldest) = self.in_progress.first().filter(|_| !self.is_empty())?;
        Some(*oldest + HUNG_AFTER)
    }

    /// Returns true if no start waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.programs.is_empty()
    }

    /// The number of starts in progress that keep others waiting.
    pub(crate) fn in_progress(&self) -> usize {
        self.in_progress.len()
    }

    /// How many starts have their turn before that of a job.
    pub(crate) fn before(&self, run: RunId) -> usize {
        self.programs.len() + self.jobs.range(..run).count()
    }

    fn has_room(&mut self, now: Time) -> bool {
        let hung = self.in_progress.iter().take_while(|(_, since)| has_hung(*since, now)).count();
        self.in_progress.drain(..hung);
        self.in_progress.len() < self.most
    }

    /// Adds what decides which process is created next.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, now: Time, print: &mut Fingerprint) {
        let Self { most, programs, jobs, in_progress } = self;
        print.add(most);
        print.list(programs, |print, run| print.name(Name::Check, run.0));
        print.list(jobs, |print, run| print.name(Name::Run, run.0));
        let counted = in_progress.iter().filter(|(_, since)| !has_hung(*since, now));
        print.list(counted, |print, (process, since)| {
            match process {
                NewProcess::Job(run) => print.name(Name::Run, run.0),
                NewProcess::Program(run) => print.name(Name::Check, run.0),
            }
            print.age(*since, HUNG_AFTER);
        });
    }
}

fn has_hung(since: Time, now: Time) -> bool {
    now.since(since) >= HUNG_AFTER
}
