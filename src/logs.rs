//! The log: lines of jobs and entries of the supervisor, written on the log thread.
//!
//! The event loop holds a [`Logs`] and never waits for it: entries go into a bounded queue. The log thread starts with the
//! first entry, so a single program with inherited streams runs without it. The thread reads the pipes of the jobs, splits
//! lines, formats and writes them. It waits for the pipes while the output accepts data, and for the output while it does
//! not. So a reader that stops reading slows down the jobs that write, and nothing else (L4). While the thread waits for the
//! pipes its state is unlocked, and [`Logs::finish`] can write the rest of the log without waking it.
//!
//! ```text
//! jobs ─────── pipes ──▶ stream (lines) ──▶ writer (format) ──▶ output
//!                          │                  ▲
//! supervisor ── queue ─────┼── entries ───────┘
//!                          └──▶ tail (last lines, L6)
//! ```
//!
//! Memory is bounded: one read (256 KiB), one batch that could not be written (about 256 KiB), incomplete lines
//! (16 MiB for all jobs together), one long line in progress (16 MiB), 16 MiB of entries, and the last 16 KiB of each job
//! that has written anything. The streams of exited processes are bounded too, see `log_thread/exited.rs`.
//!
//! * A line of up to 16 MiB is one entry. A longer line is split into several entries, each but the last marked as
//!   continued; a shorter line (64 KiB or more) is also split while the others hold 16 MiB.
//! * A full disk, or another error of a log file, is retried every second; the jobs that write wait meanwhile.
//! * What is lost, because the output did not accept it before the supervisor had to exit, is counted on standard error.
//! * If the reader of standard output has closed it, the log is dropped, the last lines are kept, and a message is written
//!   to standard error.
//!
//! The log never prints an environment or a configuration value by itself; callers are responsible for their messages (L5).

pub(crate) mod check_output;
mod log_thread;
mod loss;
mod output;
mod queue;
mod ready_line;
mod stream;
/// The primitives of the queue, which a test replaces to try all interleavings.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
}
mod tail;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::log_entry::{self as core_log, Fields};
use containerpilot_core::plan::{Level, Logging};
use containerpilot_log_format::HiddenValues;
pub(crate) use containerpilot_log_format::is_hidden;

use self::log_thread::{LogWorker, OUTPUT_BYTES, OUTPUT_LINES};
use self::output::{Output, write_stderr};
use self::queue::{Entry, Queue, Work};
pub(crate) use self::ready_line::ReadyLine;
use self::tail::Tail;
pub(crate) use self::tail::{Line, LineCounts, Reader};
use crate::process::sys::Waker;

/// After this many panics the log thread gives up.
const MAX_PANICS: u32 = 100;
const PANICKED: &str = "internal error on the log thread: lines may be lost; please report it";
const UNFINISHED: &str = "the log could not be finished in time: lines may be lost";
/// How long the event loop waits for the log thread in one iteration, while the output accepts bytes and more is queued than
/// the thread has written (L9).
const GIVE_WAY: Duration = Duration::from_millis(10);
/// How long after its deadline the log thread may take to finish.
const GRACE: Duration = Duration::from_millis(100);

/// A time in RFC 3339, as in the log.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    containerpilot_log_format::stamp(time).iter().map(|byte| char::from(*byte)).collect()
}

/// The process that writes to a pipe.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) job: String,
    pub(crate) pid: u32,
    /// The name of the check, if the process is one.
    pub(crate) check: Option<String>,
    /// The values of its secrets, which are hidden (P11). A process without secrets has none.
    pub(crate) hidden: Option<HiddenValues>,
}

/// The event loop's part of the log. Nothing here blocks except [`Logs::finish`].
#[derive(Debug)]
pub(crate) struct Logs {
    shared: Arc<Shared>,
    /// The state of the log thread. The thread locks it except while it waits for the pipes.
    worker: Arc<Mutex<LogWorker>>,
    /// Whether the thread is started.
    started: AtomicBool,
    /// Whether the thread is not woken before [`Logs::end_batch`].
    batching: AtomicBool,
}

/// The last lines of jobs, for any thread.
#[derive(Clone, Debug)]
pub(crate) struct Tails {
    shared: Arc<Shared>,
}

impl Tails {
    /// The last lines of a job, of this run and earlier ones.
    pub(crate) fn last_lines(&self, job: &str) -> Vec<Line> {
        self.read(job, Tail::lines)
    }

    /// The last few lines of one run of a job.
    pub(crate) fn last_lines_of_run(&self, job: &str, pid: u32) -> Vec<String> {
        self.read(job, |tail| tail.of_run(pid, OUTPUT_LINES, OUTPUT_BYTES))
    }

    fn read<T>(&self, job: &str, what: impl FnOnce(&Tail) -> Vec<T>) -> Vec<T> {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tail) = tails.get(job).cloned() else { return Vec::new() };
        drop(tails);
        what(&tail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many lines each job has written.
    pub(crate) fn line_counts(&self) -> BTreeMap<Box<str>, LineCounts> {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<(Box<str>, Arc<Mutex<Tail>>)> =
            tails.iter().map(|(job, tail)| (job.clone(), Arc::clone(tail))).collect();
        drop(tails);
        let counts = |tail: &Mutex<Tail>| tail.lock().unwrap_or_else(PoisonError::into_inner).counts();
        all.into_iter().map(|(job, tail)| (job, counts(&tail))).collect()
    }

    /// Sends the last lines of a job to a reader, at most `lines`, and then each new line until the log is finished. A reader that
    /// is too slow is dropped. With `times`, each line has its time, and an empty line follows the last lines.
    pub(crate) fn follow(&self, job: &str, lines: usize, times: bool, reader: Box<dyn Reader>) {
        let tail = self.shared.tail(job);
        tail.lock().unwrap_or_else(PoisonError::into_inner).follow(lines, times, reader);
    }
}

/// Shared by the event loop, the log thread and clients.
#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// The lowest level that is written.
    level: AtomicU8,
    /// The last lines of each job.
    tails: Mutex<BTreeMap<Box<str>, Arc<Mutex<Tail>>>>,
}

impl Shared {
    fn tail(&self, job: &str) -> Arc<Mutex<Tail>> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(job) {
            return Arc::clone(tail);
        }
        Arc::clone(tails.entry(job.into()).or_default())
    }
}

/// The log thread.
fn run(worker: &Mutex<LogWorker>, shared: &Shared) {
    for _ in 0..MAX_PANICS {
        // The thread must survive a panic: jobs would get SIGPIPE if their pipes were closed.
        match catch_unwind(AssertUnwindSafe(|| LogWorker::run(worker))) {
            Ok(all_written) => return shared.queue.set_finished(all_written),
            Err(_) => write_stderr(PANICKED),
        }
    }
    shared.queue.set_finished(false);
}

impl Logs {
    /// Opens the output. The log thread starts with the first entry or pipe.
    pub(crate) fn start(logging: &Logging) -> io::Result<Self> {
        Self::start_on(Output::open(&logging.output)?, logging)
    }

    fn start_on(output: Output, logging: &Logging) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Queue::new(Waker::new()?),
            level: AtomicU8::new(logging.level as u8),
            tails: Mutex::default(),
        });
        let worker = Arc::new(Mutex::new(LogWorker::new(Arc::clone(&shared), output, logging)?));
        Ok(Self { shared, worker, started: AtomicBool::new(false), batching: AtomicBool::new(false) })
    }

    /// Starts the log thread if it is not running. If that fails, the next entry tries again; until then everything waits
    /// in the queue and in the pipes.
    pub(crate) fn start_thread(&self) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let (worker, shared) = (Arc::clone(&self.worker), Arc::clone(&self.shared));
        let started = std::thread::Builder::new().name("logs".into()).spawn(move || run(&worker, &shared));
        if let Err(error) = started {
            self.started.store(false, Ordering::Relaxed);
            write_stderr(&format!("cannot start the log thread: {error}; trying again with the next entry"));
        }
    }

    /// Does not wake the log thread until [`Logs::end_batch`]: one wake-up is enough for all entries of an iteration.
    pub(crate) fn begin_batch(&self) {
        self.batching.store(true, Ordering::Relaxed);
    }

    /// Wakes the log thread if there is work for it. Waits for it a moment if it is far behind and can write (L9).
    pub(crate) fn end_batch(&self) {
        self.batching.store(false, Ordering::Relaxed);
        self.shared.queue.wake();
        self.shared.queue.give_way(GIVE_WAY);
    }

    /// Wakes the log thread unless a batch is open. The thread is started at once, before further jobs can use up the
    /// limit of threads and processes.
    fn wake(&self) {
        self.start_thread();
        if !self.batching.load(Ordering::Relaxed) {
            self.shared.queue.wake();
        }
    }

    /// Returns true if there was never an entry or a pipe.
    pub(crate) fn is_unused(&self) -> bool {
        !self.started.load(Ordering::Relaxed) && self.shared.queue.is_empty()
    }

    fn push_work(&self, work: Work) {
        self.shared.queue.push_work(work);
        self.wake();
    }

    /// Reads the two pipes of a process until they are closed.
    pub(crate) fn attach(&self, stdout: OwnedFd, stderr: OwnedFd, source: Source) {
        self.attach_until_ready(stdout, stderr, source, None);
    }

    /// The same, and looks for a line in them (H11).
    pub(crate) fn attach_until_ready(
        &self,
        stdout: OwnedFd,
        stderr: OwnedFd,
        source: Source,
        line: Option<ReadyLine>,
    ) {
        self.push_work(Work::Attach { stdout, stderr, source, line });
    }

    /// A process has exited. Everything it has written is written before any later entry, also a last line without a
    /// newline (P4).
    pub(crate) fn process_exited(&self, pid: u32) {
        if self.is_unused() {
            return;
        }
        self.push_work(Work::Exited(pid, SystemTime::now()));
    }

    /// Writes an entry of the supervisor, about a job or in general.
    pub(crate) fn entry(&self, level: Level, job: Option<&str>, message: &str) {
        self.push(level, job, message, None, None);
    }

    /// Writes an entry with fields (L7), and with the last lines of one of the job's processes (L6). After
    /// [`Logs::process_exited`] these are the last ones it wrote.
    pub(crate) fn push(
        &self,
        level: Level,
        job: Option<&str>,
        message: &str,
        fields: Option<Fields>,
        output_of: Option<u32>,
    ) {
        let Some(entry) = self.new_entry(level, job, message, fields, output_of) else { return };
        let many = self.shared.queue.push_entry(entry);
        self.wake();
        if many {
            self.shared.queue.wake();
        }
    }

    /// An entry, unless its level is not written.
    fn new_entry(
        &self,
        level: Level,
        job: Option<&str>,
        message: &str,
        fields: Option<Fields>,
        output_of: Option<u32>,
    ) -> Option<Entry> {
        ((level as u8) >= self.shared.level.load(Ordering::Relaxed)).then(|| Entry {
            time: SystemTime::now(),
            level,
            job: job.map(Into::into),
            message: message.into(),
            fields: fields.map(Box::new),
            output_of,
        })
    }

    pub(crate) fn tails(&self) -> Tails {
        Tails { shared: Arc::clone(&self.shared) }
    }

    /// Forgets the last lines of a removed job, once everything it has written is read.
    pub(crate) fn forget(&self, job: &str) {
        if !self.is_unused() {
            self.push_work(Work::Forget(job.to_owned()));
        }
    }

    /// Changes level, format and output after a reload. If the new output cannot be opened, the old one is kept and an
    /// error is logged.
    pub(crate) fn configure(&self, logging: &Logging) {
        self.shared.level.store(logging.level as u8, Ordering::Relaxed);
        self.push_work(Work::Configure(logging.clone()));
    }

    /// Reopens the log file after a rotation (L1).
    pub(crate) fn reopen(&self) {
        self.push_work(Work::Reopen);
    }

    /// Writes everything that is in the pipes and the queue, and then the last entry (S12). Waits for that until the deadline
    /// (S6). Returns true if everything was written. Nothing is written afterwards.
    pub(crate) fn finish(&self, deadline: Instant, last: Option<&core_log::Entry>) -> bool {
        let last = last.and_then(|last| {
            self.new_entry(last.level, None, &last.message, Some(last.fields.clone()), None)
        });
        let all_written = last.is_none() && self.is_unused() || self.write_all(deadline, last);
        // Closes the streams of the readers.
        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner).clear();
        all_written
    }

    /// Writes everything: on this thread if the log thread is waiting or was never started, because two thread switches
    /// take longer than the writing.
    fn write_all(&self, deadline: Instant, last: Option<Entry>) -> bool {
        self.shared.queue.push_work(Work::Finish(deadline, last));
        let idle = match self.worker.try_lock() {
            Ok(worker) => Some(worker),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut worker) = idle {
            match catch_unwind(AssertUnwindSafe(|| worker.finish_now(deadline))) {
                Ok(all_written) => return all_written,
                Err(_) => write_stderr(PANICKED),
            }
        }
        self.shared.queue.wake();
        self.shared.queue.wait_finished(deadline + GRACE).unwrap_or_else(|| {
            // The thread is stuck in a write, for example to a disk that does not answer.
            write_stderr(UNFINISHED);
            false
        })
    }
}

impl Drop for Logs {
    /// Stops the log thread.
    fn drop(&mut self) {
        self.shared.queue.push_work(Work::Finish(Instant::now(), None));
        self.shared.queue.wake();
    }
}
