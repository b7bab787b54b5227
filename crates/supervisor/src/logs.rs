//! The log: lines of jobs and entries of the supervisor, written on the log thread.
//!
//! The event loop holds a [`Logs`] and never waits for it: entries go into a bounded queue. The log thread starts with
//! the first entry, so a single program with inherited streams runs without it. The thread reads the pipes of the jobs,
//! splits lines, formats and writes them. Each job with a file of its own (L8) has such a thread, too. It waits for the
//! pipes while the output accepts data, and for the output while it does not. So a reader that stops reading slows down
//! the jobs that write, and nothing else (L4). While the thread waits for the pipes its state is unlocked, and
//! [`Logs::finish`] can write the rest of the log without waking it.
//!
//! ```text
//! jobs ─────── pipes ──▶ stream (lines) ──▶ writer (format) ──▶ output
//!                          │                  ▲
//! supervisor ── queue ─────┼── entries ───────┘
//!                          └──▶ tail (last lines, L6)
//! ```
//!
//! Memory is bounded: one read (256 KiB), one batch that could not be written (about 256 KiB), incomplete lines (16 MiB
//! for all jobs together), one long line in progress (16 MiB), 16 MiB of entries, and the last 16 KiB of each job that
//! has written anything. Each file of a job has the same bounds, except for the entries. The streams of exited
//! processes are bounded too, see `log_thread/exited.rs`.
//!
//! * A line of up to 16 MiB is one entry. A longer line is split into several entries, each but the last marked as
//!   continued; a shorter line (64 KiB or more) is also split while the others hold 16 MiB.
//! * A full disk, or another error of a log file, is retried every second; the jobs that write wait meanwhile.
//! * What is lost, because the output did not accept it before the supervisor had to exit, is counted on standard error.
//! * If the reader of standard output has closed it, the log is dropped, the last lines are kept, and a message is written
//!   to standard error.
//!
//! The log never prints an environment or a configuration value by itself; callers are responsible for their messages
//! (L5).

mod channel;
pub(crate) mod check_output;
mod job_file;
mod job_files;
mod join;
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
mod tap;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::ids::RunId;
use containerpilot_core::inserted;
use containerpilot_core::log_entry::{self as core_log, Fields};
use containerpilot_core::plan::{JobLogging, Level, LogFile, Logging};
use containerpilot_log_format::HiddenValues;
pub(crate) use containerpilot_log_format::StreamName;
use containerpilot_process::error_text::describe;
use containerpilot_process::sys::Waker;

use self::channel::Channel;
use self::job_files::JobFiles;
use self::log_thread::LogWorker;
use self::output::LogSink;
pub(crate) use self::output::write_stderr;
use self::queue::{LogQueue, QueuedEntry, Work};
pub(crate) use self::ready_line::ReadyLine;
use self::tail::Tail;
pub(crate) use self::tail::{Line, LineCounts, TailReader};
use self::tap::TapSlot;
pub(crate) use self::tap::{Tap, TapEntry, TapOrigin};
use self::writer::LogWriter;

/// How long the event loop waits for the log thread in one iteration, while the output accepts bytes and more is queued
/// than the thread has written (L9).
const GIVE_WAY: Duration = Duration::from_millis(10);

/// How many of the last lines are added to an entry (L6).
const OUTPUT_LINES: usize = 5;
const OUTPUT_BYTES: usize = 1024;

/// The process that writes to a pipe.
#[derive(Clone, Debug)]
pub(crate) struct LogSource {
    pub(crate) job: String,
    pub(crate) pid: u32,
    /// The name of the check, if the process is one.
    pub(crate) check: Option<String>,
    /// The values of its secrets, which are hidden (P11). A process without secrets has none.
    pub(crate) hidden: Option<HiddenValues>,
    /// How its lines are logged (L8).
    pub(crate) logging: JobLogging,
    /// The run that the process is, or belongs to.
    pub(crate) run: Option<RunId>,
}

/// The event loop's part of the log. Nothing here blocks except [`Logs::finish`].
#[derive(Debug)]
pub(crate) struct Logs {
    log: Channel,
    files: JobFiles,
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
        self.shared.last_lines_of_run(job, pid)
    }

    fn read<T>(&self, job: &str, what: impl FnOnce(&Tail) -> Vec<T>) -> Vec<T> {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tail) = tails.get(job).cloned() else { return Vec::new() };
        drop(tails);
        what(&tail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many lines of the log and of the files of jobs were lost (T4).
    pub(crate) fn lost_lines(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// How many lines each job has written.
    pub(crate) fn line_counts(&self) -> BTreeMap<Box<str>, LineCounts> {
        let tails = self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<(Box<str>, Arc<Mutex<Tail>>)> =
            tails.iter().map(|(job, tail)| (job.clone(), Arc::clone(tail))).collect();
        drop(tails);
        let counts = |tail: &Mutex<Tail>| tail.lock().unwrap_or_else(PoisonError::into_inner).counts();
        inserted(all.into_iter().map(|(job, tail)| (job, counts(&tail))))
    }

    /// Sends the last lines of a job to a reader, at most `lines`, and then each new line until the log is finished. A
    /// reader that is too slow is dropped. With `times`, each line has its time, and an empty line follows the last
    /// lines.
    pub(crate) fn follow(&self, job: &str, lines: usize, times: bool, reader: Box<dyn TailReader>) {
        let tail = self.shared.tail(job);
        tail.lock().unwrap_or_else(PoisonError::into_inner).follow(lines, times, reader);
    }
}

type TailsByJob = BTreeMap<Box<str>, Arc<Mutex<Tail>>>;

/// Shared by the event loop, the log thread and clients.
#[derive(Debug)]
struct Shared {
    queue: LogQueue,
    /// The lowest level that is written.
    level: Arc<AtomicU8>,
    /// The last lines of each job.
    tails: Arc<Mutex<TailsByJob>>,
    /// How many lines were lost so far, of the log and of all files of jobs.
    lost: Arc<AtomicU64>,
    tap: Arc<TapSlot>,
}

/// Writes messages about the file of a job to the log (L8).
#[derive(Clone, Debug)]
struct Reporter {
    log: Arc<Shared>,
    job: Box<str>,
}

impl Reporter {
    fn report(&self, level: Level, message: &str) {
        self.log.report(level, Some(&self.job), message);
    }
}

impl Shared {
    fn tail(&self, job: &str) -> Arc<Mutex<Tail>> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(job) {
            return Arc::clone(tail);
        }
        Arc::clone(tails.entry(job.into()).or_default())
    }

    /// The last few lines of one run of a job.
    fn last_lines_of_run(&self, job: &str, pid: u32) -> Vec<String> {
        let tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tail) = tails.get(job).cloned() else { return Vec::new() };
        drop(tails);
        tail.lock().unwrap_or_else(PoisonError::into_inner).of_run(pid, OUTPUT_LINES, OUTPUT_BYTES)
    }

    /// Writes an entry from a log thread.
    fn report(&self, level: Level, job: Option<&str>, message: &str) {
        if (level as u8) >= self.level.load(Ordering::Relaxed) {
            self.queue.push_entry(QueuedEntry {
                time: SystemTime::now(),
                level,
                job: job.map(Into::into),
                message: message.into(),
                fields: None,
                output_of: None,
                last_lines: None,
                run: None,
            });
            self.queue.wake();
        }
    }
}

impl Logs {
    /// Opens the output. The log thread starts with the first entry or pipe.
    pub(crate) fn start(logging: &Logging) -> io::Result<Self> {
        Self::start_on(LogSink::open(&logging.output)?, logging)
    }

    fn start_on(output: LogSink, logging: &Logging) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: LogQueue::new(Waker::new()?),
            level: Arc::new(AtomicU8::new(logging.level as u8)),
            tails: Arc::default(),
            lost: Arc::default(),
            tap: Arc::default(),
        });
        let log = Channel::new(LogWorker::new(shared, LogWriter::new(output, logging.format), None)?);
        Ok(Self { log, files: JobFiles::new(logging.format), batching: AtomicBool::new(false) })
    }

    /// Starts the log thread if it is not running. If that fails, the next entry tries again; until then everything
    /// waits in the queue and in the pipes.
    pub(crate) fn start_thread(&self) {
        if let Err(error) = self.log.start() {
            write_stderr(&format!("cannot start the log thread: {error}; trying again with the next entry"));
        }
    }

    /// Neither starts nor wakes the log thread until [`Logs::end_batch`]: one wake-up is enough for all entries of an
    /// iteration.
    pub(crate) fn begin_batch(&self) {
        self.batching.store(true, Ordering::Relaxed);
    }

    /// Wakes the log thread if there is work for it. Waits for it a moment if it is far behind and can write (L9).
    pub(crate) fn end_batch(&self) {
        self.batching.store(false, Ordering::Relaxed);
        if !self.is_unused() {
            self.start_thread();
        }
        self.log.shared.queue.wake();
        self.log.shared.queue.give_way(GIVE_WAY);
    }

    /// Starts and wakes the log thread unless a batch is open.
    fn wake(&self) {
        if !self.batching.load(Ordering::Relaxed) {
            self.start_thread();
            self.log.shared.queue.wake();
        }
    }

    /// Returns true if there was never an entry or a pipe.
    pub(crate) fn is_unused(&self) -> bool {
        !self.log.is_started() && self.log.shared.queue.is_empty()
    }

    fn push_work(&self, work: Work) {
        self.log.shared.queue.push_work(work);
        self.wake();
    }

    /// Reads the two pipes of a process until they are closed.
    pub(crate) fn attach(&self, stdout: OwnedFd, stderr: OwnedFd, source: LogSource) {
        self.attach_until_ready(stdout, stderr, source, None);
    }

    /// The same, and looks for a line in them (H11).
    pub(crate) fn attach_until_ready(
        &self,
        stdout: OwnedFd,
        stderr: OwnedFd,
        source: LogSource,
        line: Option<ReadyLine>,
    ) {
        let channel = source.logging.file.as_ref().and_then(|file| {
            // Messages about the file are written to the log.
            self.start_thread();
            let channel = self.files.attach(&source.job, source.pid, file, &self.log.shared);
            channel.inspect_err(|error| self.no_thread(&source.job, file, error)).ok()
        });
        let work = Work::Attach { stdout, stderr, source, line };
        match channel {
            None => self.push_work(work),
            Some(channel) => channel.push_work(work),
        }
    }

    fn no_thread(&self, job: &str, file: &LogFile, error: &io::Error) {
        let message = format!(
            "cannot start the thread that writes {}: {}; logging the output of this run here",
            file.path,
            describe(error)
        );
        self.entry(Level::Error, Some(job), &message);
    }

    /// Changes how the lines of a job are logged, also those of its running process (R5). Whether they are in a file at
    /// all counts from the next run on.
    pub(crate) fn adjust(&self, job: &str, logging: &JobLogging) {
        if !self.files.adjust(job, logging) && !self.is_unused() {
            self.push_work(Work::Adjust(job.to_owned(), logging.clone()));
        }
    }

    /// A process has exited. Everything it has written is written before any later entry, also a last line without a
    /// newline (P4).
    pub(crate) fn process_exited(&self, pid: u32) {
        if !self.files.exited(pid) && !self.is_unused() {
            self.push_work(Work::Exited(pid, SystemTime::now(), None));
        }
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
        self.push_about(None, level, job, message, fields, output_of);
    }

    /// The same, about a run of the job.
    pub(crate) fn push_about(
        &self,
        run: Option<RunId>,
        level: Level,
        job: Option<&str>,
        message: &str,
        fields: Option<Fields>,
        output_of: Option<u32>,
    ) {
        let Some(entry) = self.new_entry(level, job, message, fields, output_of) else { return };
        let entry = QueuedEntry { run, ..entry };
        let many = self.log.shared.queue.push_entry(entry);
        self.wake();
        if many {
            self.log.shared.queue.wake();
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
    ) -> Option<QueuedEntry> {
        ((level as u8) >= self.log.shared.level.load(Ordering::Relaxed)).then(|| QueuedEntry {
            time: SystemTime::now(),
            level,
            job: job.map(Into::into),
            message: message.into(),
            fields: fields.map(Box::new),
            output_of,
            last_lines: output_of.and_then(|pid| self.files.last_lines(job, pid)),
            run: None,
        })
    }

    /// Sends a copy of everything that is logged from now on to a tap (T6), or to none.
    pub(crate) fn set_tap(&self, tap: Option<Arc<dyn Tap>>) {
        self.log.shared.tap.set(tap);
    }

    pub(crate) fn tails(&self) -> Tails {
        Tails { shared: Arc::clone(&self.log.shared) }
    }

    /// Forgets the last lines of a removed job, once everything it has written is read.
    pub(crate) fn forget(&self, job: &str) {
        self.files.forget(job);
        if !self.is_unused() {
            self.push_work(Work::Forget(job.to_owned()));
        }
    }

    /// Changes level, format and output after a reload. If the new output cannot be opened, the old one is kept and an
    /// error is logged.
    pub(crate) fn configure(&self, logging: &Logging) {
        self.log.shared.level.store(logging.level as u8, Ordering::Relaxed);
        self.push_work(Work::Configure(logging.clone()));
        self.files.set_format(logging.format);
    }

    /// Reopens the log file and those of jobs after a rotation (L1).
    pub(crate) fn reopen(&self) {
        self.push_work(Work::Reopen);
        self.files.reopen();
    }

    /// Writes everything that is in the pipes and the queue, and then the last entry (S12). Waits for that until the
    /// deadline (S6). Returns true if everything was written. Nothing is written afterwards.
    pub(crate) fn finish(&self, deadline: Instant, last: Option<&core_log::LogEntry>) -> bool {
        let last = last.and_then(|last| {
            self.new_entry(last.level, None, &last.message, Some(last.fields.clone()), None)
        });
        let files = self.files.finish(deadline);
        let log_written = last.is_none() && self.is_unused() || self.log.write_all(deadline, last);
        let unwritten = files.iter().filter(|file| !file.wait_finished(deadline)).count();
        let all_written = log_written && unwritten == 0;
        // Closes the streams of the readers.
        self.log.shared.tails.lock().unwrap_or_else(PoisonError::into_inner).clear();
        all_written
    }
}
