//! The queue between the event loop and the log thread. Pushing never blocks.
//!
//! Work items (for example new streams) are few and never dropped. Entries are kept until the log can be written, but
//! within bounds: the oldest entries of the lowest levels are dropped, and the log reports their number.
//!
//! Both are numbered in one sequence, so that the log keeps their order.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{Level, Logging};

use super::Source;
use crate::process::sys::Waker;

/// The limits of the queued entries, in number and bytes.
const MAX_ENTRIES: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

/// An entry of the supervisor.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) job: Option<Box<str>>,
    pub(super) message: Box<str>,
    /// The process whose last lines are added (L6).
    pub(super) output_of: Option<u32>,
}

impl Entry {
    fn size(&self) -> usize {
        size_of::<Self>() + self.message.len() + self.job.as_ref().map_or(0, |job| job.len())
    }
}

/// A work item for the log thread.
#[derive(Debug)]
pub(super) enum Work {
    Attach {
        stdout: OwnedFd,
        stderr: OwnedFd,
        source: Source,
    },
    /// The process with this pid has exited: read the rest of its output.
    Exited(u32),
    /// Change format and output.
    Configure(Logging),
    /// Forget the last lines of this job.
    Forget(String),
    /// Reopen the log file.
    Reopen,
    /// Write everything and finish, at the latest at this time.
    Finish(Instant),
}

#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    /// Notifies [`Queue::wait_finished`].
    finished: Condvar,
    /// Notifies [`Queue::wait_for_more`].
    finishing: Condvar,
    pub(super) waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last number.
    last: u64,
    work: VecDeque<(u64, Work)>,
    entries: VecDeque<(u64, Entry)>,
    /// The size of the entries.
    bytes: usize,
    /// How many entries were dropped since the last that was written.
    dropped: u64,
    /// Whether there is something that the log thread was not woken for.
    unseen: bool,
    /// Whether the log thread was woken and has not taken the work yet.
    woken: bool,
    /// Whether [`Work::Finish`] was queued.
    finishing: bool,
    /// Set when the log thread has finished: whether everything was written.
    all_written: Option<bool>,
}

impl Inner {
    /// The number for a new item.
    fn number(&mut self) -> u64 {
        self.unseen = true;
        self.last += 1;
        self.last
    }
}

impl Queue {
    pub(super) fn new(waker: Waker) -> Self {
        Self { inner: Mutex::default(), finished: Condvar::new(), finishing: Condvar::new(), waker }
    }

    /// The other thread holds the lock only to move a few pointers. A panic cannot leave it inconsistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the log thread if there is something new and it was not woken already.
    pub(super) fn wake(&self) {
        let mut inner = self.lock();
        let unseen = std::mem::take(&mut inner.unseen);
        if unseen && !inner.woken {
            inner.woken = true;
            drop(inner);
            self.waker.wake();
        }
    }

    /// Does not wake the log thread; see [`Queue::wake`].
    pub(super) fn push_work(&self, work: Work) {
        let mut inner = self.lock();
        let number = inner.number();
        let finish = matches!(work, Work::Finish(_));
        inner.finishing |= finish;
        inner.work.push_back((number, work));
        // The woken thread needs the lock.
        drop(inner);
        if finish {
            self.finishing.notify_one();
        }
    }

    /// Does not wake the log thread; see [`Queue::wake`].
    pub(super) fn push_entry(&self, entry: Entry) {
        let mut inner = self.lock();
        inner.bytes += entry.size();
        let number = inner.number();
        inner.entries.push_back((number, entry));
        while inner.entries.len() > MAX_ENTRIES || inner.bytes > MAX_BYTES && inner.entries.len() > 1 {
            let lowest = inner.entries.iter().position(|(_, entry)| entry.level <= Level::Info).unwrap_or(0);
            if let Some((_, dropped)) = inner.entries.remove(lowest) {
                inner.bytes = inner.bytes.saturating_sub(dropped.size());
                inner.dropped += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.work.is_empty() && inner.entries.is_empty()
    }

    /// Waits for this time, so that more work accumulates, or until the log must be finished.
    pub(super) fn wait_for_more(&self, time: Duration) {
        let inner = self.lock();
        let until_finishing = self.finishing.wait_timeout_while(inner, time, |inner| !inner.finishing);
        drop(until_finishing.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.lock().entries.is_empty()
    }

    /// Takes all work items, with their numbers.
    pub(super) fn take_work(&self) -> VecDeque<(u64, Work)> {
        self.waker.clear();
        let mut inner = self.lock();
        (inner.woken, inner.unseen) = (false, false);
        std::mem::take(&mut inner.work)
    }

    /// Takes the oldest entry and the number of dropped ones before it, if it was queued before the work item `before` and
    /// before all work that is not taken: the output of a process is read before the entry about its exit.
    pub(super) fn take_entry(&self, before: u64) -> Option<(Entry, u64)> {
        let mut inner = self.lock();
        let first_work = inner.work.front().map_or(u64::MAX, |(number, _)| *number);
        if inner.entries.front()?.0 >= before.min(first_work) {
            return None;
        }
        let (_, entry) = inner.entries.pop_front()?;
        inner.bytes = inner.bytes.saturating_sub(entry.size());
        let dropped = std::mem::take(&mut inner.dropped);
        Some((entry, dropped))
    }

    /// The log thread has finished.
    pub(super) fn set_finished(&self, all_written: bool) {
        self.lock().all_written.get_or_insert(all_written);
        self.finished.notify_all();
    }

    /// Waits until the log thread has finished. Returns true if everything was written.
    pub(super) fn wait_finished(&self, deadline: Instant) -> bool {
        let mut inner = self.lock();
        loop {
            if let Some(all_written) = inner.all_written {
                return all_written;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.finished.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(level: Level, message: &str) -> Entry {
        Entry { time: SystemTime::UNIX_EPOCH, level, job: None, message: message.into(), output_of: None }
    }

    #[test]
    fn l4_entries_are_bounded_and_the_lowest_levels_are_dropped_first() {
        let queue = Queue::new(Waker::new().unwrap());
        queue.push_entry(entry(Level::Error, "first"));
        for nth in 0..10_000 {
            queue.push_entry(entry(Level::Info, &format!("{nth}")));
        }
        queue.push_entry(entry(Level::Warn, "last"));
        let (first, dropped) = queue.take_entry(u64::MAX).unwrap();
        assert_eq!((&*first.message, dropped), ("first", 10_002 - MAX_ENTRIES as u64));
        let mut rest =
            std::iter::from_fn(|| queue.take_entry(u64::MAX)).inspect(|(_, dropped)| assert_eq!(*dropped, 0));
        assert_eq!(&*rest.next().unwrap().0.message, format!("{}", 10_002 - MAX_ENTRIES));
        assert_eq!(&*rest.last().unwrap().0.message, "last");
    }

    #[test]
    fn l2_work_and_entries_keep_their_order() {
        let queue = Queue::new(Waker::new().unwrap());
        queue.push_entry(entry(Level::Info, "first"));
        queue.push_work(Work::Exited(7));
        queue.push_entry(entry(Level::Info, "second"));
        queue.push_work(Work::Exited(8));
        queue.push_entry(entry(Level::Info, "third"));
        let message = |before| queue.take_entry(before).map(|(entry, _)| String::from(entry.message));
        assert_eq!((message(u64::MAX).as_deref(), message(u64::MAX)), (Some("first"), None));
        let work: Vec<u64> = queue.take_work().into_iter().map(|(number, _)| number).collect();
        assert_eq!(message(work[0]), None);
        assert_eq!((message(work[1]).as_deref(), message(work[1])), (Some("second"), None));
        assert_eq!(message(u64::MAX).as_deref(), Some("third"));
    }

    #[test]
    fn l4_entries_are_bounded_by_their_size() {
        let queue = Queue::new(Waker::new().unwrap());
        let large = "x".repeat(MAX_BYTES / 4);
        for _ in 0..10 {
            queue.push_entry(entry(Level::Error, &large));
        }
        assert_eq!(queue.take_entry(u64::MAX).unwrap().1, 7);
        let huge = "x".repeat(MAX_BYTES * 2);
        queue.push_entry(entry(Level::Error, &huge));
        assert_eq!(queue.lock().entries.len(), 1, "one entry is always kept");
    }
}
