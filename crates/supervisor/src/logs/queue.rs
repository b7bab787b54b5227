//! The queue between the event loop and the log thread. Pushing never blocks.
//!
//! Work items (for example new streams) are few and never dropped. Entries are kept until the log can be written, but
//! within a bound: beyond it the oldest entries of the lowest levels are dropped, and the log reports their number.
//!
//! The bound is far above what one iteration of the event loop can cause, the log thread is woken in the middle of a
//! burst, and while much is queued [`LogQueue::give_way`] slows the event loop down to the speed of the output. So no
//! entry is dropped while the output accepts bytes (L9). An output that is full or fails never slows the loop down
//! (L4).
//!
//! Both are numbered in one sequence, so that the log keeps their order.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::ids::RunId;
use containerpilot_core::log_entry::Fields;
use containerpilot_core::plan::{Format, JobLogging, Level, LogFile, Logging};
use containerpilot_process::sys::Waker;

use super::loss::Loss;
use super::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use super::{LogSource, ReadyLine};

/// The limit of the queued entries, in bytes of memory: about 80,000 entries.
const MAX_BYTES: usize = 16 << 20;
/// With this much in the queue the event loop gives way to the log thread.
const MANY_BYTES: usize = 1 << 20;
/// With this much in the queue the log thread is woken at once, also in the middle of a batch.
const WAKE_BYTES: usize = 64 << 10;
/// What an allocation takes beyond its size, about.
const ALLOCATION: usize = 16;
/// A larger buffer is freed when the queue is empty, in entries.
const KEPT_CAPACITY: usize = 1024;

/// An entry of the supervisor.
#[derive(Debug)]
pub(super) struct QueuedEntry {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) job: Option<Box<str>>,
    pub(super) message: Box<str>,
    /// The fields of an entry of the core (L7).
    pub(super) fields: Option<Box<Fields>>,
    /// The process whose last lines are added (L6).
    pub(super) output_of: Option<u32>,
    /// These lines, if another thread reads them (L8).
    pub(super) last_lines: Option<LastLines>,
    /// Its run.
    pub(super) run: Option<RunId>,
}

/// The last lines of an exited process, from the thread of a file (L8).
#[derive(Debug)]
pub(super) struct LastLines {
    pub(super) lines: Receiver<Vec<String>>,
    /// Whether that thread was waited for in vain, and has done nothing since.
    pub(super) stuck: Arc<AtomicBool>,
}

impl LastLines {
    /// Waits for them, but not twice for a thread that does not answer: the log must not depend on it.
    pub(super) fn wait(&self, limit: Duration) -> Vec<String> {
        let limit = if self.stuck.load(Ordering::Relaxed) { Duration::ZERO } else { limit };
        self.lines.recv_timeout(limit).unwrap_or_else(|error| {
            self.stuck.store(error == RecvTimeoutError::Timeout, Ordering::Relaxed);
            Vec::new()
        })
    }
}

impl QueuedEntry {
    fn size(&self) -> usize {
        let job = self.job.as_ref().map_or(0, |job| job.len() + ALLOCATION);
        let fields = self.fields.as_ref().map_or(0, |fields| {
            let texts = [&fields.check, &fields.cause];
            let texts = texts.into_iter().flatten().map(|text| text.len() + ALLOCATION);
            size_of::<Fields>() + ALLOCATION + texts.sum::<usize>()
        });
        size_of::<(u64, Self)>() + self.message.len() + ALLOCATION + job + fields
    }
}

/// A work item for the log thread.
#[derive(Debug)]
pub(super) enum Work {
    Attach {
        stdout: OwnedFd,
        stderr: OwnedFd,
        source: LogSource,
        /// The line that is looked for (H11).
        line: Option<ReadyLine>,
    },
    /// The process with this pid was found to have exited at this time: read the rest of its output, and send the last
    /// lines.
    Exited(u32, SystemTime, Option<Sender<Vec<String>>>),
    /// Change format and output.
    Configure(Logging),
    /// Change the file of a job and its format (L8).
    ConfigureFile(LogFile, Format),
    /// Change how the lines of this job are logged (L8).
    Adjust(String, JobLogging),
    /// End with the last pipe. Until then the thread owns its channel, which is not known here.
    Retire(Arc<dyn Debug + Send + Sync>),
    /// Forget the last lines of this job.
    Forget(String),
    /// Reopen the log file.
    Reopen,
    /// Write everything and then the last entry, and finish, at the latest at this time.
    Finish(Instant, Option<QueuedEntry>),
}

#[derive(Debug)]
pub(super) struct LogQueue {
    inner: Mutex<Inner>,
    /// Notifies [`LogQueue::wait_finished`].
    finished: Condvar,
    /// Notifies [`LogQueue::wait_for_more`].
    finishing: Condvar,
    /// Notifies [`LogQueue::give_way`].
    shorter: Condvar,
    pub(super) waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last number.
    last: u64,
    work: VecDeque<(u64, Work)>,
    /// The entries up to level info, and those above.
    low: VecDeque<(u64, QueuedEntry)>,
    high: VecDeque<(u64, QueuedEntry)>,
    /// The size of the entries.
    bytes: usize,
    /// How many entries were dropped since the last that was written.
    dropped: Loss,
    /// Whether the log thread writes what it can: it runs, and the output is neither full nor failing.
    writing: bool,
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

    /// The queue with the oldest entry.
    fn oldest(&mut self) -> &mut VecDeque<(u64, QueuedEntry)> {
        let number =
            |queue: &VecDeque<(u64, QueuedEntry)>| queue.front().map_or(u64::MAX, |(number, _)| *number);
        if number(&self.low) < number(&self.high) { &mut self.low } else { &mut self.high }
    }

    fn drop_one(&mut self) {
        let Some((_, entry)) = self.low.pop_front().or_else(|| self.high.pop_front()) else { return };
        self.bytes = self.bytes.saturating_sub(entry.size());
        self.dropped += Loss { lines: 1, bytes: entry.message.len() as u64 };
    }

    /// Returns true if the event loop must give way.
    fn is_behind(&self) -> bool {
        self.bytes > MANY_BYTES && self.writing && !self.finishing
    }
}

impl LogQueue {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            inner: Mutex::new(Inner::default()),
            finished: Condvar::new(),
            finishing: Condvar::new(),
            shorter: Condvar::new(),
            waker,
        }
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

    /// Does not wake the log thread; see [`LogQueue::wake`].
    pub(super) fn push_work(&self, work: Work) {
        let mut inner = self.lock();
        let number = inner.number();
        let finish = matches!(work, Work::Finish(..));
        inner.finishing |= finish;
        inner.work.push_back((number, work));
        // The woken thread needs the lock.
        drop(inner);
        if finish {
            self.finishing.notify_one();
        }
    }

    /// Does not wake the log thread; see [`LogQueue::wake`]. Returns true if it should be woken now, before the batch
    /// ends.
    pub(super) fn push_entry(&self, entry: QueuedEntry) -> bool {
        let mut inner = self.lock();
        inner.bytes += entry.size();
        let number = inner.number();
        let queue = if entry.level <= Level::Info { &mut inner.low } else { &mut inner.high };
        queue.push_back((number, entry));
        while inner.bytes > MAX_BYTES && inner.low.len() + inner.high.len() > 1 {
            inner.drop_one();
        }
        inner.bytes > WAKE_BYTES
    }

    /// Waits until the log thread has written most of what is queued, if that is much; at most for this time, and not
    /// at all while the output accepts nothing.
    pub(super) fn give_way(&self, limit: Duration) {
        let inner = self.lock();
        if inner.is_behind() {
            let shorter = self.shorter.wait_timeout_while(inner, limit, |inner| inner.is_behind());
            drop(shorter.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether the log thread writes what it can, or waits for its output.
    pub(super) fn set_writing(&self, writing: bool) {
        self.lock().writing = writing;
        self.shorter.notify_all();
    }

    pub(super) fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.work.is_empty() && inner.low.is_empty() && inner.high.is_empty()
    }

    /// Waits for this time, so that more work accumulates, or until the log must be finished.
    pub(super) fn wait_for_more(&self, time: Duration) {
        let inner = self.lock();
        let until_finishing = self.finishing.wait_timeout_while(inner, time, |inner| !inner.finishing);
        drop(until_finishing.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether [`Work::Finish`] was queued: what is queued now may not be written any more.
    pub(super) fn is_finishing(&self) -> bool {
        self.lock().finishing
    }

    pub(super) fn has_entries(&self) -> bool {
        let inner = self.lock();
        !(inner.low.is_empty() && inner.high.is_empty())
    }

    /// Takes all work items, with their numbers.
    pub(super) fn take_work(&self) -> VecDeque<(u64, Work)> {
        self.waker.clear();
        let mut inner = self.lock();
        (inner.woken, inner.unseen) = (false, false);
        std::mem::take(&mut inner.work)
    }

    /// Takes the oldest entry and the dropped ones before it, if it was queued before the work item `before` and before
    /// all work that is not taken: the output of a process is read before the entry about its exit.
    pub(super) fn take_entry(&self, before: u64) -> Option<(QueuedEntry, Loss)> {
        let mut inner = self.lock();
        let first_work = inner.work.front().map_or(u64::MAX, |(number, _)| *number);
        let was_behind = inner.is_behind();
        let oldest = inner.oldest();
        let (_, entry) = oldest.pop_front_if(|(number, _)| *number < before.min(first_work))?;
        if oldest.is_empty() && oldest.capacity() > KEPT_CAPACITY {
            *oldest = VecDeque::new();
        }
        inner.bytes = inner.bytes.saturating_sub(entry.size());
        let dropped = std::mem::take(&mut inner.dropped);
        let shorter = was_behind && !inner.is_behind();
        drop(inner);
        if shorter {
            self.shorter.notify_all();
        }
        Some((entry, dropped))
    }

    /// Drops all entries. Returns how many there were, and how many were dropped before without a report.
    pub(super) fn drop_entries(&self) -> Loss {
        let mut inner = self.lock();
        for _ in 0..inner.low.len() + inner.high.len() {
            inner.drop_one();
        }
        std::mem::take(&mut inner.dropped)
    }

    /// The log thread has finished.
    pub(super) fn set_finished(&self, all_written: bool) {
        self.lock().all_written.get_or_insert(all_written);
        self.finished.notify_all();
    }

    /// Waits until the log thread has finished. Returns whether everything was written, and `None` after the deadline.
    pub(super) fn wait_finished(&self, deadline: Instant) -> Option<bool> {
        let mut inner = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if inner.all_written.is_some() || left.is_zero() {
                return inner.all_written;
            }
            inner = self.finished.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
