//! Finds processes that outlive their run outside of its process group, such as daemons (P4).
//!
//! An orphan becomes a child of the supervisor. The loop lists its children when a run has ended, and after the exit of
//! an orphan while a process of an ended run may be left. Each child that it has not started is attributed to a run by
//! its cgroup, or by a variable in its environment. Reading that can block without a limit, because the process controls
//! its own memory; so a thread does it, and the loop only waits for its report. There is at most one such thread, and
//! none while there are no orphans.
//!
//! The loop is the only one that reaps. A pid in `adopted` is removed when it is reaped, so it always means the same
//! process, and signals never hit another one.

mod mark;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use containerpilot_core::ids::RunId;
use containerpilot_core::plan::Signal;
use containerpilot_core::{SortedMap, inserted};

pub use self::mark::{MARK, mark};
pub use self::reader::OrphanReport;
use self::reader::{Mark, OrphanRequest};
use crate::proc;
use crate::reaper::{Owner, Reaper};
use crate::sys::{self, WaitState};

/// How long after the exit of an orphan the children are listed. While thousands exit, the kernel starts again from the
/// first child for each one that it lists.
const SETTLE: Duration = Duration::from_millis(100);

/// Listing the children takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// The shortest time between two starts of the thread.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// When an operation is tried again for which no descriptor, memory or thread was free.
const NO_RESOURCES_RETRY: Duration = Duration::from_secs(1);

/// An environment that could not be read is read again after this time, and at most so often.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
const MAX_ATTEMPTS: u8 = 3;

/// A thread that needs longer is reported.
const SLOW_READ: Duration = Duration::from_secs(1);

/// How long the end of a run waits for a look at all orphans, of which other jobs may have very many.
const ATTRIBUTION: Duration = Duration::from_secs(1);

/// The shortest time between two looks at a process group without an exit. It grows with the time that the group lasts.
const GROUP_INTERVAL: Duration = Duration::from_millis(100);

/// A child that the supervisor has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adopted {
    /// Its environment has not been read, or could not be read so many times.
    Unread(u8),
    /// No run has started it, or it hides that.
    Unmarked,
    /// It belongs to a run, and was sent this signal.
    Of(RunId, Option<Signal>),
}

/// A process group that may be that of an ended run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrphanedGroup {
    /// Its number, which was the pid of its leader.
    pub(super) group: i32,
    /// When the leader was reaped, in ticks since the boot. A process that has its pid started later.
    pub(super) reaped: Option<u64>,
}

impl OrphanedGroup {
    /// Whether it has members. While it has, no new process gets its number.
    pub(super) fn exists(self) -> bool {
        !sys::process_exists(self.group) && sys::group_exists(self.group)
    }
}

/// An ended run of which something was left.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// When its own process exited.
    exited: Instant,
    /// When its process group was found to be gone.
    group_gone: Option<Instant>,
}

/// A thread that reads environments.
#[derive(Debug)]
struct Reading {
    /// The processes that it reads and that were not reaped meanwhile.
    pids: BTreeSet<i32>,
    /// The one that it reads just now.
    current: Arc<AtomicI32>,
    since: Instant,
    is_reported: bool,
}

/// What a look at the children has led to.
#[derive(Debug, Default)]
pub struct OrphanLook {
    /// The ended runs of which processes were found and sent SIGTERM.
    pub found: BTreeSet<RunId>,
    /// The runs of which nothing is left any more (S14).
    pub gone: Vec<RunId>,
    pub warning: Option<String>,
}

/// Where the processes of runs are, besides the process groups of their leaders (T4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProcesses {
    /// The daemons that the supervisor has adopted and attributed.
    pub daemons: BTreeMap<i32, RunId>,
    /// The directory with the cgroups of the runs.
    pub cgroups: Option<PathBuf>,
}

/// The children that the supervisor has not started.
#[derive(Default)]
pub struct Orphans {
    adopted: BTreeMap<i32, Adopted>,
    /// The runs whose processes get SIGKILL as soon as they are found.
    killed: BTreeSet<RunId>,
    /// The process groups that have no child of the supervisor and are killed if they are still those of their run.
    groups: Vec<OrphanedGroup>,
    /// The ended runs of which something was left.
    ending: SortedMap<RunId, Ending>,
    /// Whether one of their processes may have exited since they were looked at.
    ending_changed: bool,
    /// When their process groups are looked at again without an exit, and when all orphans should be known.
    next_groups: Option<Instant>,
    attribution_ends: Option<Instant>,
    /// Processes of the supervisor that it no longer waits for. Reading their memory might block.
    abandoned: BTreeSet<i32>,
    reading: Option<Reading>,
    /// Whether a process of an ended run may be left. When all children are known to belong to runs that have not
    /// ended, there is none: the processes of a run descend from each other, and the first one of those that are left
    /// is a child of the supervisor.
    may_be_left: bool,
    /// When the children are listed next, and the earliest time for that.
    due: Option<Instant>,
    not_before: Option<Instant>,
    /// The earliest time for the next thread.
    read_not_before: Option<Instant>,
    /// Receives the reports of the thread.
    report: Option<Arc<dyn Fn(OrphanReport) + Send + Sync>>,
}

impl Orphans {
    /// Without a receiver for reports nothing is looked for.
    pub fn new(report: impl Fn(OrphanReport) + Send + Sync + 'static) -> Self {
        Self { report: Some(Arc::new(report)), ..Self::default() }
    }

    /// Has the children listed soon.
    pub(super) fn request(&mut self) {
        self.may_be_left = true;
        self.request_at(Instant::now());
    }

    fn request_at(&mut self, at: Instant) {
        if self.report.is_some() {
            let at = self.not_before.map_or(at, |earliest| earliest.max(at));
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// An orphan was reaped. Its children are the supervisor's now.
    pub(super) fn reaped(&mut self, pid: i32, is_live: impl Fn(RunId) -> bool) {
        self.abandoned.remove(&pid);
        self.ending_changed |= !self.ending.is_empty();
        if let Some(reading) = &mut self.reading {
            reading.pids.remove(&pid);
        }
        match self.adopted.remove(&pid) {
            Some(Adopted::Unmarked) => {}
            Some(Adopted::Of(run, _)) if is_live(run) => {}
            _ if self.may_be_left => self.request_at(Instant::now() + SETTLE),
            _ => {}
        }
    }

    /// The supervisor no longer waits for one of its processes.
    pub(super) fn abandon(&mut self, pid: i32) {
        self.abandoned.insert(pid);
        self.request();
    }

    /// Has the end of what is left of a run reported.
    pub(super) fn expect_end(&mut self, run: RunId) {
        self.ending.insert(run, Ending { exited: Instant::now(), group_gone: None });
        self.ending_changed = true;
    }

    pub(super) fn is_ending(&self, run: RunId) -> bool {
        self.ending.contains_key(&run)
    }

    pub(super) fn forget_end(&mut self, run: RunId) {
        self.ending.remove(&run);
    }

    /// Whether all children are known, or will be only when a thread is done that takes long.
    fn is_settled(&self) -> bool {
        let is_read = self.reading.as_ref().is_none_or(|reading| reading.is_reported);
        let is_unread = |adopted: &Adopted| matches!(adopted, Adopted::Unread(_));
        is_read && self.due.is_none() && !self.adopted.values().any(is_unread)
    }

    /// Has every process of a run killed.
    pub(super) fn kill(&mut self, run: RunId) {
        self.killed.insert(run);
        self.request();
    }

    /// Has a process group killed if a member of it is older than the end of its leader.
    pub(super) fn kill_group(&mut self, group: OrphanedGroup) {
        self.groups.push(group);
        self.request();
    }

    /// Adds the children that are not known yet.
    fn adopt(&mut self, children: Vec<i32>, is_own: impl Fn(i32) -> bool) {
        for pid in children {
            if !is_own(pid) && !self.abandoned.contains(&pid) {
                self.adopted.entry(pid).or_insert(Adopted::Unread(0));
            }
        }
    }

    /// Starts the thread if there is something to read and none runs. Returns a warning if one takes too long.
    fn read(&mut self, list: bool, cgroup: Option<Arc<str>>) -> Option<String> {
        let unread = |(pid, adopted): (&i32, &Adopted)| matches!(adopted, Adopted::Unread(_)).then_some(*pid);
        let has_work =
            list || !self.groups.is_empty() || self.adopted.iter().any(|child| unread(child).is_some());
        if !has_work {
            return None;
        }
        let now = Instant::now();
        if let Some(reading) = &mut self.reading {
            let is_slow = now.duration_since(reading.since) > SLOW_READ;
            return (is_slow && !std::mem::replace(&mut reading.is_reported, true)).then(|| {
                let pid = reading.current.load(Ordering::Relaxed);
                format!(
                    "reading the environment of process {pid} takes longer than {SLOW_READ:?}; \
                     other orphans of jobs are not found until it is done"
                )
            });
        }
        if let Some(earliest) = self.read_not_before.filter(|earliest| *earliest > now) {
            self.request_at(earliest);
            return None;
        }
        self.read_not_before = Some(now + READ_INTERVAL);
        let pids: BTreeSet<i32> = inserted(self.adopted.iter().filter_map(unread));
        let groups = std::mem::take(&mut self.groups);
        let request = OrphanRequest { list, pids: pids.iter().copied().collect(), groups, cgroup };
        let report = self.report.clone()?;
        match reader::start(request, report) {
            Ok(current) => self.reading = Some(Reading { pids, current, since: now, is_reported: false }),
            Err(groups) => {
                // No further thread is allowed now.
                self.groups = groups;
                self.request_at(now + NO_RESOURCES_RETRY);
            }
        }
        None
    }

    /// Takes over what the thread has read.
    fn apply(&mut self, report: OrphanReport) {
        let Some(reading) = self.reading.take() else { return };
        let mut retry = RETRY_INTERVAL;
        for (pid, mark) in report.marks {
            let Some(adopted) = self.adopted.get_mut(&pid).filter(|_| reading.pids.contains(&pid)) else {
                continue;
            };
            let Adopted::Unread(attempts) = *adopted else { continue };
            *adopted = match mark {
                Mark::Run(run) => Adopted::Of(run, None),
                Mark::NoResources => {
                    retry = NO_RESOURCES_RETRY;
                    continue;
                }
                Mark::Unreadable if attempts < MAX_ATTEMPTS => Adopted::Unread(attempts + 1),
                Mark::Foreign | Mark::Unreadable => Adopted::Unmarked,
            };
        }
        if self.adopted.values().any(|adopted| matches!(adopted, Adopted::Unread(_)))
            || !self.groups.is_empty()
        {
            self.request_at(Instant::now() + retry);
        }
    }
}

impl Reaper {
    /// When the loop must look for orphans.
    pub fn next_look(&self) -> Option<Instant> {
        let Orphans { due, next_groups, attribution_ends, .. } = &self.orphans;
        [due, next_groups, attribution_ends].into_iter().flatten().min().copied()
    }

    /// Whether a process may be left that has left the process group of its run.
    pub(super) fn may_have_daemons(&self) -> bool {
        if self.orphans.report.is_none() || matches!(sys::wait_nowait(), Ok(WaitState::NoChild)) {
            return false;
        }
        let is_live = |run: RunId| self.pids.contains_key(&Owner::Run(run));
        let may_be_daemon = |pid: &i32| match self.orphans.adopted.get(pid) {
            Some(Adopted::Unmarked) => false,
            Some(Adopted::Of(run, _)) => !is_live(*run),
            Some(Adopted::Unread(_)) => true,
            None => !self.owners.contains_key(pid) && !self.orphans.abandoned.contains(pid),
        };
        match proc::children() {
            Ok(children) => children.iter().any(may_be_daemon),
            Err(_) => proc::is_mounted(),
        }
    }

    /// Sends a signal to the processes of a run that have left its process group.
    pub(super) fn signal_daemons(&self, run: RunId, signal: Signal) {
        let group = self.orphaned_groups.get(&run).map(|orphaned| orphaned.group);
        for (pid, adopted) in &self.orphans.adopted {
            if matches!(adopted, Adopted::Of(of, _) if *of == run) && sys::group_of(*pid) != group {
                let _ = sys::kill_process(*pid, signal);
            }
        }
    }

    /// Looks at the process groups of ended runs. When one is gone, the children are listed: its last processes may have
    /// left daemons.
    fn look_at_groups(&mut self) {
        let now = Instant::now();
        let is_due = self.orphans.ending_changed || self.orphans.next_groups.is_some_and(|at| at <= now);
        if !is_due {
            return;
        }
        self.orphans.ending_changed = false;
        let (mut has_ended, mut next) = (false, None::<Instant>);
        for (run, ending) in self.orphans.ending.iter_mut().filter(|(_, ending)| ending.group_gone.is_none())
        {
            if self.orphaned_groups.get(run).is_some_and(|orphaned| orphaned.exists()) {
                // Only the exit of a child is signalled, and the parent of a member may be another process.
                let at = now + (now.duration_since(ending.exited) / 4).max(GROUP_INTERVAL);
                next = Some(next.map_or(at, |next| next.min(at)));
            } else {
                (ending.group_gone, has_ended) = (Some(now), true);
            }
        }
        self.orphans.next_groups = next;
        if has_ended {
            self.orphans.request();
        }
    }

    /// The runs of which nothing is left any more.
    fn gone_runs(&mut self) -> Vec<RunId> {
        self.orphans.attribution_ends = None;
        if self.orphans.ending.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        let has_children = !matches!(sys::wait_nowait(), Ok(WaitState::NoChild));
        let is_settled = self.orphans.is_settled();
        let (mut gone, mut next) = (Vec::new(), Vec::new());
        for (run, ending) in self.orphans.ending.iter() {
            let is_of_run = |adopted: &Adopted| matches!(adopted, Adopted::Of(of, _) if of == run);
            match ending.group_gone {
                None => {}
                Some(_) if has_children && self.orphans.adopted.values().any(is_of_run) => {}
                Some(at) if has_children && !is_settled && now < at + ATTRIBUTION => {
                    next.push(at + ATTRIBUTION)
                }
                Some(_) => gone.push(*run),
            }
        }
        for run in &gone {
            self.orphans.ending.remove(run);
            self.orphaned_groups.remove(run);
        }
        self.orphans.attribution_ends = next.into_iter().min();
        gone
    }

    /// What is known about the processes of runs. Without cgroups, daemons are looked for now, to be known the next
    /// time: a thread must read their environments.
    pub fn run_processes(&mut self) -> RunProcesses {
        let cgroups = self.cgroups.directory().map(Path::to_owned);
        if cgroups.is_none() && !self.pids.is_empty() {
            self.orphans.request();
        }
        let adopted = self.orphans.adopted.iter();
        let daemons = adopted.filter_map(|(pid, adopted)| match adopted {
            Adopted::Of(run, _) => Some((*pid, *run)),
            Adopted::Unread(_) | Adopted::Unmarked => None,
        });
        RunProcesses { daemons: inserted(daemons), cgroups }
    }

    /// Looks for processes of ended runs, if that is due.
    pub fn look_for_orphans(&mut self) -> OrphanLook {
        self.look_at_groups();
        let mut look = self.look_at_children();
        look.gone = self.gone_runs();
        look
    }

    fn look_at_children(&mut self) -> OrphanLook {
        let started = Instant::now();
        if self.orphans.due.take_if(|due| *due <= started).is_none() {
            return OrphanLook::default();
        }
        self.cgroups.remove_ended();
        let mut list = false;
        match proc::children() {
            Ok(children) => self.orphans.adopt(children, |pid| self.owners.contains_key(&pid)),
            // The kernel does not offer the list.
            Err(error) if error.kind() == io::ErrorKind::NotFound => list = proc::is_mounted(),
            // No descriptor or memory is free now.
            Err(_) => self.orphans.request_at(started + NO_RESOURCES_RETRY),
        }
        let found = self.signal_orphans();
        // What the thread lists is not known yet.
        self.orphans.may_be_left |= list;
        let warning = self.orphans.read(list, self.cgroups.path());
        let now = Instant::now();
        self.orphans.not_before = Some(now + now.duration_since(started) * (SHARE - 1));
        OrphanLook { found, warning, gone: Vec::new() }
    }

    /// The thread has read environments.
    pub fn orphans_read(&mut self, mut report: OrphanReport) -> OrphanLook {
        for group in std::mem::take(&mut report.groups) {
            // If a process has that pid, the group is gone, and the pid was reused.
            if !sys::process_exists(group) {
                let _ = sys::kill_group(group, Signal::KILL);
            }
        }
        let mut children = std::mem::take(&mut report.children);
        children.retain(|pid| !matches!(sys::wait_pid_nowait(*pid), Ok(WaitState::NoChild) | Err(_)));
        let had_children = self.orphans.adopted.len();
        self.orphans.adopt(children, |pid| self.owners.contains_key(&pid));
        self.orphans.apply(report);
        if self.orphans.adopted.len() > had_children {
            self.orphans.request();
        }
        let found = self.signal_orphans();
        OrphanLook { found, warning: None, gone: self.gone_runs() }
    }

    /// Signals the processes of ended runs that have not got their signal. Returns the runs that were sent SIGTERM.
    fn signal_orphans(&mut self) -> BTreeSet<RunId> {
        let mut found = BTreeSet::new();
        for (pid, adopted) in &mut self.orphans.adopted {
            let Adopted::Of(run, sent) = adopted else { continue };
            let signal = if self.orphans.killed.contains(run) { Signal::KILL } else { Signal::TERM };
            let is_live = self.pids.contains_key(&Owner::Run(*run));
            if *sent == Some(signal) || (signal == Signal::TERM && is_live) {
                continue;
            }
            *sent = Some(signal);
            if signal == Signal::TERM {
                let group = self.orphaned_groups.get(run).map(|orphaned| orphaned.group);
                if group.is_some() && sys::group_of(*pid) == group {
                    // It got SIGTERM with its group.
                    continue;
                }
                found.insert(*run);
            }
            let _ = sys::kill_process(*pid, signal);
        }
        self.note_what_is_left();
        found
    }

    /// When all children are known: notes whether one may be of an ended run, and forgets the runs of which none is
    /// left.
    fn note_what_is_left(&mut self) {
        let adopted = &self.orphans.adopted;
        let is_unread = self.orphans.reading.is_some()
            || self.orphans.due.is_some()
            || adopted.values().any(|adopted| matches!(adopted, Adopted::Unread(_)));
        if is_unread {
            return;
        }
        let is_live = |run: RunId| self.pids.contains_key(&Owner::Run(run));
        let is_of_live_run = |adopted: &Adopted| matches!(adopted, Adopted::Of(run, _) if is_live(*run));
        self.orphans.may_be_left =
            !self.orphans.abandoned.is_empty() || !adopted.values().all(is_of_live_run);
        if self.orphans.killed.is_empty() {
            return;
        }
        let left: BTreeSet<RunId> = inserted(
            adopted
                .values()
                .filter_map(|adopted| if let Adopted::Of(run, _) = adopted { Some(*run) } else { None }),
        );
        self.orphans.killed.retain(|run| left.contains(run) || is_live(*run));
    }
}

#[cfg(test)]
mod tests;
