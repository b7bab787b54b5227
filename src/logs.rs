//! The log: lines of children and entries of the supervisor, on a thread of their own.
//!
//! # How it works
//!
//! The supervisor's thread holds a [`Logs`] and never waits for anything in it: what it says goes into a bounded queue.
//! The log's thread starts with the first thing that is said, so that a program with our own streams comes without it; it
//! reads the children's pipes, cuts lines, formats and writes them. It waits in two ways only (see
//! `log_thread`): for the pipes while the output takes what it is given, and for the output while it does not. So a reader
//! who stops reading slows the children who write, and nobody else (L4). While it waits for the pipes, what it works with is
//! free, and whoever wants the end of the log may write the rest (see `Logs::finish`).
//!
//! ```text
//! children ── pipes ──▶ stream (lines) ──▶ writer (form) ──▶ output
//!                          │                  ▲
//! supervisor ── queue ─────┼── entries ───────┘
//!                          └──▶ tail (last lines, L6)
//! ```
//!
//! What is kept in memory, at most: one read (256 KiB), one batch that could not be written (some 256 KiB), the
//! beginnings of lines (16 MiB for all children together), one long line under way (16 MiB), 1 MiB of entries, and
//! the last 16 KiB of each job that has written any.
//!
//! * A line of up to 16 MiB is one entry. A longer one, or a shorter one (of 64 KiB at least) while others hold as
//!   much, becomes several, and each but the last says that it goes on.
//! * A full disk, or any other error of a log file, is retried every second; meanwhile children wait.
//! * Standard output whose reader has left for good is not waited for: the log is dropped, the last lines are kept,
//!   and standard error is told.
//!
//! The log never prints an environment or a value of the configuration by itself; what an entry says is its caller's
//! duty (L5).

pub(crate) mod check_output;
mod log_thread;
mod output;
mod queue;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{self, Level, Logging};
pub(crate) use containerpilot_log_format::is_hidden;
use std::collections::BTreeMap;

use self::log_thread::Plane;
use self::output::{Output, complain};
use self::queue::{Entry, Queue, Work};
pub(crate) use self::tail::Reader;
use self::tail::Tail;
use crate::process::sys::Waker;

/// After so many panics the log's thread gives up; each is a bug, and there is no use in endless ones.
const MAX_PANICS: u32 = 100;
/// What is said about a panic.
const FAULT: &str = "a bug in the log: some lines may be lost; please report it";
/// How much longer than its own deadline the end of the log's thread is waited for.
const GRACE: Duration = Duration::from_millis(100);

/// A time as the log writes it, as RFC 3339 wants it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    containerpilot_log_format::stamp(time).iter().map(|byte| char::from(*byte)).collect()
}

/// Who writes to a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The job's name.
    pub(crate) job: String,
    /// The process.
    pub(crate) pid: u32,
    /// The check's name, if it is one of the job's checks.
    pub(crate) check: Option<String>,
}

/// The supervisor's end of the log. Nothing here waits, but for [`Logs::finish`].
#[derive(Debug)]
pub(crate) struct Logs {
    shared: Arc<Shared>,
    /// What the log's thread works with. It holds this, but for the time that it waits for something to read.
    log_thread: Arc<Mutex<Plane>>,
    /// Whether there is such a thread.
    begun: AtomicBool,
    /// Whether nobody is woken for what is said, for the time being.
    held: AtomicBool,
}

/// The last lines of jobs, for whoever asks, on any thread.
#[derive(Clone, Debug)]
pub(crate) struct Tails {
    shared: Arc<Shared>,
}

impl Tails {
    /// The last lines of a job, of this run and former ones, as far as they have been read.
    pub(crate) fn last_lines(&self, job: &str) -> Vec<String> {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tail) = tails.get(job).cloned() else { return Vec::new() };
        drop(tails);
        tail.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }

    /// Gives a reader the last lines of a job, at most so many, and then each that comes, until the log ends. A reader
    /// that does not keep up is left behind.
    pub(crate) fn follow(&self, job: &str, lines: usize, reader: Box<dyn Reader>) {
        let tail = self.shared.tail(job);
        tail.lock().unwrap_or_else(PoisonError::into_inner).follow(lines, reader);
    }
}

/// What both threads hold.
#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// The least level that is written.
    level: AtomicU8,
    /// Whether everything has been started.
    settled: AtomicBool,
    /// The last lines of each job.
    tails: Mutex<BTreeMap<Box<str>, Arc<Mutex<Tail>>>>,
}

impl Shared {
    /// The last lines of a job; made when first asked for.
    fn tail(&self, job: &str) -> Arc<Mutex<Tail>> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(job) {
            return Arc::clone(tail);
        }
        Arc::clone(tails.entry(job.into()).or_default())
    }
}

/// The life of the log's thread.
fn run(log_thread: &Mutex<Plane>, shared: &Shared) {
    for _ in 0..MAX_PANICS {
        // A panic is a bug, but not one that children should die of, as they would when their pipes close.
        match catch_unwind(AssertUnwindSafe(|| Plane::run(log_thread))) {
            Ok(all_written) => return shared.queue.set_end(all_written),
            Err(_) => complain(FAULT),
        }
    }
    shared.queue.set_end(false);
}

/// Opens the output; an error names the file, because the system's words do not.
fn open(logging: &Logging) -> io::Result<Output> {
    Output::open(&logging.output).map_err(|error| match &logging.output {
        plan::Output::File(path) => {
            io::Error::new(error.kind(), format!("the log file {path} cannot be opened: {error}"))
        }
        plan::Output::Stdout | plan::Output::Stderr => error,
    })
}

impl Logs {
    /// Opens the output. The log's thread starts when there is something for it to do.
    pub(crate) fn start(logging: &Logging) -> io::Result<Self> {
        Self::start_on(open(logging)?, logging)
    }

    fn start_on(output: Output, logging: &Logging) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Queue::new(Waker::new()?),
            level: AtomicU8::new(logging.level as u8),
            settled: AtomicBool::new(false),
            tails: Mutex::default(),
        });
        let log_thread = Arc::new(Mutex::new(Plane::new(Arc::clone(&shared), output, logging)?));
        Ok(Self { shared, log_thread, begun: AtomicBool::new(false), held: AtomicBool::new(false) })
    }

    /// Makes sure that somebody does what is in the queue. If no thread can be had, the next word tries again; until
    /// then all waits in the queue and in the pipes.
    fn run_plane(&self) {
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let (log_thread, shared) = (Arc::clone(&self.log_thread), Arc::clone(&self.shared));
        let started =
            std::thread::Builder::new().name("logs".into()).spawn(move || run(&log_thread, &shared));
        if let Err(error) = started {
            self.begun.store(false, Ordering::Relaxed);
            complain(&format!("the log has to wait, for it cannot have a thread: {error}"));
        }
    }

    /// Tells the log's thread that everything has been started, for when it comes to rest.
    pub(crate) fn settle(&self) {
        self.shared.settled.store(true, Ordering::Relaxed);
    }

    /// Collects what is said until [`Logs::release`]: the thread is woken once for all of it, and after what matters more
    /// than the log has been done.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::Relaxed);
    }

    /// Lets the log's thread have what was collected.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Relaxed);
        self.shared.queue.wake();
    }

    /// Wakes the log's thread, unless that has to wait. It is there from the first word on, before further jobs can use
    /// up what a user may have of threads and processes.
    fn wake(&self) {
        self.run_plane();
        if !self.held.load(Ordering::Relaxed) {
            self.shared.queue.wake();
        }
    }

    /// Whether nothing was ever said, and no output followed.
    pub(crate) fn is_silent(&self) -> bool {
        !self.begun.load(Ordering::Relaxed) && self.shared.queue.is_empty()
    }

    fn push_work(&self, work: Work) {
        self.shared.queue.push_work(work);
        self.wake();
    }

    /// Reads two pipes of a process from now on, until they are closed.
    pub(crate) fn attach(&self, stdout: OwnedFd, stderr: OwnedFd, source: Source) {
        self.push_work(Work::Attach { stdout, stderr, source });
    }

    /// A process has ended. All that it has written is forwarded, also a last line without a newline (P4), before any
    /// entry that comes after this.
    pub(crate) fn run_ended(&self, pid: u32) {
        if self.is_silent() {
            return;
        }
        self.push_work(Work::Ended(pid));
    }

    /// Writes an entry of the supervisor's own, about a job or not.
    pub(crate) fn entry(&self, level: Level, job: Option<&str>, message: &str) {
        self.push(level, job, message, None);
    }

    /// Writes an entry about a job together with the last lines of one of its processes (L6). If that was told to have
    /// ended before, these are the last that it wrote.
    pub(crate) fn entry_with_output(&self, level: Level, job: &str, pid: u32, message: &str) {
        self.push(level, Some(job), message, Some(pid));
    }

    fn push(&self, level: Level, job: Option<&str>, message: &str, output_of: Option<u32>) {
        if (level as u8) < self.shared.level.load(Ordering::Relaxed) {
            return;
        }
        let entry = Entry {
            time: SystemTime::now(),
            level,
            job: job.map(Into::into),
            message: message.into(),
            output_of,
        };
        self.shared.queue.push_entry(entry);
        self.wake();
    }

    /// The last lines of jobs, for whoever asks.
    pub(crate) fn tails(&self) -> Tails {
        Tails { shared: Arc::clone(&self.shared) }
    }

    /// Forgets the last lines of a job that is no more, when all that it has written is read.
    pub(crate) fn forget(&self, job: &str) {
        if !self.is_silent() {
            self.push_work(Work::Forget(job.to_owned()));
        }
    }

    /// Changes level, form and output, after a reload. If the new output cannot be opened, the old one is kept and
    /// the log says so.
    pub(crate) fn configure(&self, logging: &Logging) {
        self.shared.level.store(logging.level as u8, Ordering::Relaxed);
        self.push_work(Work::Configure(logging.clone()));
    }

    /// Opens the log file again, after a rotation (L1).
    pub(crate) fn reopen(&self) {
        self.push_work(Work::Reopen);
    }

    /// Writes everything that has been written and said by now, and waits for that, until the deadline (S6). Whether
    /// everything was written. Nothing is written afterwards.
    pub(crate) fn finish(&self, deadline: Instant) -> bool {
        let all_written = self.is_silent() || self.write_all(deadline);
        // Those who follow a job have heard its last line.
        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner).clear();
        all_written
    }

    /// Has everything written: by ourselves if the log's thread is at rest or was never had, for to wake it and to be woken
    /// by it takes longer than the writing.
    fn write_all(&self, deadline: Instant) -> bool {
        self.shared.queue.push_work(Work::Finish(deadline));
        let at_rest = match self.log_thread.try_lock() {
            Ok(log_thread) => Some(log_thread),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut log_thread) = at_rest {
            match catch_unwind(AssertUnwindSafe(|| log_thread.finish_now(deadline))) {
                Ok(all_written) => return all_written,
                Err(_) => complain(FAULT),
            }
        }
        self.release();
        self.shared.queue.wait_end(deadline + GRACE)
    }
}

impl Drop for Logs {
    /// Nobody can speak any more: the thread ends too.
    fn drop(&mut self) {
        self.shared.queue.push_work(Work::Finish(Instant::now()));
        self.shared.queue.wake();
    }
}
