//! What the supervisor's thread and the log's thread share: a queue that is never waited for.
//!
//! Work (streams that come and go) is few and never dropped. Entries are kept until the log can be written, but not
//! without bound: then the oldest that matter least go, and the next that is written is preceded by their number.
//!
//! Both are numbered in one series, so that the log keeps the order in which they were asked for.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{Level, Logging};

use super::Source;
use crate::process::sys::Waker;

/// At most so many entries wait …
const MAX_ENTRIES: usize = 4096;
/// … and so many bytes of them.
const MAX_BYTES: usize = 1 << 20;

/// An entry of the supervisor's own.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) job: Option<Box<str>>,
    pub(super) message: Box<str>,
    /// The process whose last lines belong to it (L6).
    pub(super) output_of: Option<u32>,
}

impl Entry {
    fn size(&self) -> usize {
        size_of::<Self>() + self.message.len() + self.job.as_ref().map_or(0, |job| job.len())
    }
}

/// Something that the log's thread must do.
#[derive(Debug)]
pub(super) enum Work {
    /// Read these two pipes.
    Attach { stdout: OwnedFd, stderr: OwnedFd, source: Source },
    /// The process with this pid has ended: read what it has left.
    Ended(u32),
    /// Write in another form or to another place.
    Configure(Logging),
    /// Forget the last lines of this job.
    Forget(String),
    /// Open the log file anew.
    Reopen,
    /// Write what there is and end, at the latest at this time.
    Finish(Instant),
}

/// The queue between the two threads.
#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    /// Tells whoever waits in [`Queue::wait_end`].
    ended: Condvar,
    /// Tells whoever waits in [`Queue::gather`].
    finishing: Condvar,
    pub(super) waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    /// The number of what comes next.
    next: u64,
    work: VecDeque<(u64, Work)>,
    entries: VecDeque<(u64, Entry)>,
    /// The size of the entries.
    bytes: usize,
    /// How many entries were dropped since the last that was written.
    dropped: u64,
    /// Whether something has come that the other thread does not know of.
    news: bool,
    /// Whether the other thread has been woken and has not looked yet.
    woken: bool,
    /// Whether it has been told to end.
    finishing: bool,
    /// How the log's thread ended: with everything written or not.
    end: Option<bool>,
}

impl Inner {
    /// Numbers what has come.
    fn number(&mut self) -> u64 {
        self.news = true;
        self.next += 1;
        self.next
    }
}

impl Queue {
    pub(super) fn new(waker: Waker) -> Self {
        Self { inner: Mutex::default(), ended: Condvar::new(), finishing: Condvar::new(), waker }
    }

    /// The other side holds the lock only to move a few pointers, so this is no wait to speak of. A panic of the
    /// other side leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the other thread if something has come and it was not woken already.
    pub(super) fn wake(&self) {
        let mut inner = self.lock();
        let news = std::mem::take(&mut inner.news);
        if news && !inner.woken {
            inner.woken = true;
            drop(inner);
            self.waker.wake();
        }
    }

    /// Nobody is woken by this; see [`Queue::wake`].
    pub(super) fn push_work(&self, work: Work) {
        let mut inner = self.lock();
        let number = inner.number();
        let finish = matches!(work, Work::Finish(_));
        inner.finishing |= finish;
        inner.work.push_back((number, work));
        // Whoever is woken wants the lock.
        drop(inner);
        if finish {
            self.finishing.notify_one();
        }
    }

    /// Nobody is woken by this; see [`Queue::wake`].
    pub(super) fn push_entry(&self, entry: Entry) {
        let mut inner = self.lock();
        inner.bytes += entry.size();
        let number = inner.number();
        inner.entries.push_back((number, entry));
        while inner.entries.len() > MAX_ENTRIES || inner.bytes > MAX_BYTES && inner.entries.len() > 1 {
            let least = inner.entries.iter().position(|(_, entry)| entry.level <= Level::Info).unwrap_or(0);
            if let Some((_, dropped)) = inner.entries.remove(least) {
                inner.bytes = inner.bytes.saturating_sub(dropped.size());
                inner.dropped += 1;
            }
        }
    }

    /// Whether there is nothing to do and nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.work.is_empty() && inner.entries.is_empty()
    }

    /// Lets work gather for a while, but not when the end has been asked for: somebody waits for that.
    pub(super) fn gather(&self, time: Duration) {
        let inner = self.lock();
        let until_finishing = self.finishing.wait_timeout_while(inner, time, |inner| !inner.finishing);
        drop(until_finishing.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether an entry waits.
    pub(super) fn has_entries(&self) -> bool {
        !self.lock().entries.is_empty()
    }

    /// All the work there is, numbered.
    pub(super) fn take_work(&self) -> VecDeque<(u64, Work)> {
        self.waker.clear();
        let mut inner = self.lock();
        (inner.woken, inner.news) = (false, false);
        std::mem::take(&mut inner.work)
    }

    /// The oldest entry, and how many before it were dropped, if it was asked for before the work of a number and
    /// before all work that nobody has taken yet: a process's output must be read before the entry that tells of its
    /// end.
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

    /// The log's thread has ended.
    pub(super) fn set_end(&self, all_written: bool) {
        self.lock().end.get_or_insert(all_written);
        self.ended.notify_all();
    }

    /// Waits for the end of the log's thread; whether everything was written.
    pub(super) fn wait_end(&self, deadline: Instant) -> bool {
        let mut inner = self.lock();
        loop {
            if let Some(all_written) = inner.end {
                return all_written;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.ended.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
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
    fn l4_entries_are_bounded_and_the_least_go_first() {
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
        queue.push_work(Work::Ended(7));
        queue.push_entry(entry(Level::Info, "second"));
        queue.push_work(Work::Ended(8));
        queue.push_entry(entry(Level::Info, "third"));
        let message = |before| queue.take_entry(before).map(|(entry, _)| String::from(entry.message));
        assert_eq!((message(u64::MAX).as_deref(), message(u64::MAX)), (Some("first"), None));
        let work: Vec<u64> = queue.take_work().into_iter().map(|(number, _)| number).collect();
        assert_eq!(message(work[0]), None);
        assert_eq!((message(work[1]).as_deref(), message(work[1])), (Some("second"), None));
        assert_eq!(message(u64::MAX).as_deref(), Some("third"));
    }

    #[test]
    fn l4_large_entries_are_bounded_by_their_size() {
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
