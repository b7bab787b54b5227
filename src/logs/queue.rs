//! What the supervisor's thread and the log's thread share: a queue that is never waited for.
//!
//! Work (streams that come and go) is few and never dropped. Entries are kept until the log can be written, but not
//! without bound: then the oldest that matter least go, and the next that is written is preceded by their number.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use containerpilot_core::plan::{Level, Logging};

use super::Source;
use crate::sys::Waker;

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
    pub(super) waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    work: VecDeque<Work>,
    entries: VecDeque<Entry>,
    /// The size of the entries.
    bytes: usize,
    /// How many entries were dropped since the last that was written.
    dropped: u64,
    /// Whether the other thread has been woken and has not looked yet.
    woken: bool,
    /// How the log's thread ended: with everything written or not.
    end: Option<bool>,
}

impl Queue {
    pub(super) fn new(waker: Waker) -> Self {
        Self { inner: Mutex::default(), ended: Condvar::new(), waker }
    }

    /// The other side holds the lock only to move a few pointers, so this is no wait to speak of. A panic of the
    /// other side leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut inner: MutexGuard<'_, Inner>) {
        let first = !inner.woken;
        inner.woken = true;
        drop(inner);
        if first {
            self.waker.wake();
        }
    }

    pub(super) fn push_work(&self, work: Work) {
        let mut inner = self.lock();
        inner.work.push_back(work);
        self.wake(inner);
    }

    pub(super) fn push_entry(&self, entry: Entry) {
        let mut inner = self.lock();
        inner.bytes += entry.size();
        inner.entries.push_back(entry);
        while inner.entries.len() > MAX_ENTRIES || inner.bytes > MAX_BYTES && inner.entries.len() > 1 {
            let least = inner.entries.iter().position(|entry| entry.level <= Level::Info).unwrap_or(0);
            if let Some(dropped) = inner.entries.remove(least) {
                inner.bytes = inner.bytes.saturating_sub(dropped.size());
                inner.dropped += 1;
            }
        }
        self.wake(inner);
    }

    /// All the work there is.
    pub(super) fn take_work(&self) -> VecDeque<Work> {
        self.waker.clear();
        let mut inner = self.lock();
        inner.woken = false;
        std::mem::take(&mut inner.work)
    }

    /// The oldest entry, and how many before it were dropped.
    ///
    /// Nothing as long as there is work: it may have been asked for before the entry was, and a process's output
    /// must be read before the entry that tells of its end.
    pub(super) fn take_entry(&self) -> Option<(Entry, u64)> {
        let mut inner = self.lock();
        if !inner.work.is_empty() {
            return None;
        }
        let entry = inner.entries.pop_front()?;
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
        let (first, dropped) = queue.take_entry().unwrap();
        assert_eq!((&*first.message, dropped), ("first", 10_002 - MAX_ENTRIES as u64));
        let mut rest =
            std::iter::from_fn(|| queue.take_entry()).inspect(|(_, dropped)| assert_eq!(*dropped, 0));
        assert_eq!(&*rest.next().unwrap().0.message, format!("{}", 10_002 - MAX_ENTRIES));
        assert_eq!(&*rest.last().unwrap().0.message, "last");
    }

    #[test]
    fn l4_large_entries_are_bounded_by_their_size() {
        let queue = Queue::new(Waker::new().unwrap());
        let large = "x".repeat(MAX_BYTES / 4);
        for _ in 0..10 {
            queue.push_entry(entry(Level::Error, &large));
        }
        assert_eq!(queue.take_entry().unwrap().1, 7);
        let huge = "x".repeat(MAX_BYTES * 2);
        queue.push_entry(entry(Level::Error, &huge));
        assert_eq!(queue.lock().entries.len(), 1, "one entry is always kept");
    }
}
