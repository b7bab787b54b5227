//! The log thread: it waits for streams, reads them and writes the log.
//!
//! While the output accepts data, the thread waits for all streams. While it does not, the thread waits only for the
//! output and the event loop: the pipes fill up, and the jobs that write wait (L4).

mod exited;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_config::template::Pattern;
use containerpilot_core::plan::{JobLogging, Level};
use containerpilot_core::{SortedMap, sort_by};
use containerpilot_log_format::StreamName;
use containerpilot_process::error_text::describe;
use containerpilot_process::failpoints::failpoint;
use containerpilot_process::sys::{self, Readable};

use self::exited::Lingering;
use super::loss::Loss;
use super::output::{LogSink, write_stderr};
use super::queue::{QueuedEntry, Work};
use super::stream::{OutputStream, StreamContext};
use super::writer::LogWriter;
use super::{LogSource, ReadyLine, Reporter, Shared, TapEntry};

/// The epoll number of the event loop's wake-ups; streams count from 1.
const WAKER: u64 = 0;
/// The size of one read.
const READ: usize = 256 * 1024;
/// The size of one read while the output does not accept everything. A short line becomes an entry of many times its
/// length, so this can be a megabyte of the log.
const TURN: usize = 32 * 1024;
/// How long after it was full the output counts as one that does not accept everything.
const CONGESTED: Duration = Duration::from_secs(1);
/// A job that writes line by line is read in batches: after `BUSY_ROUNDS` rounds without a wait, and as long as no pipe
/// is half full, the thread sleeps for `BATCH_DELAY`. The job's writes get cheaper: they do not wake a reader with
/// every line and do not compete for the pipe's lock.
const BUSY_ROUNDS: u32 = 4;
const BATCH_DELAY: Duration = Duration::from_micros(150);
/// If work arrives this soon after the last, there is a lot (jobs that exit at once, many checks), and the thread lets
/// it accumulate for `WORK_DELAY`. A process that starts and exits in that time is read without being added to epoll.
const FREQUENT_WORK: Duration = Duration::from_millis(1);
const WORK_DELAY: Duration = Duration::from_micros(500);
/// How long an entry about an exit waits for the thread of the job's file to read the last lines.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// The state of the log thread.
#[derive(Debug)]
pub(super) struct LogWorker {
    shared: Arc<Shared>,
    readable: Arc<Readable>,
    streams: SortedMap<u64, Box<OutputStream>>,
    next_stream: u64,
    /// The streams of each process that has not exited.
    processes: SortedMap<u32, [u64; 2]>,
    writer: LogWriter,
    /// How many bytes the streams hold.
    buffered: usize,
    /// Streams with lines that could not be written, in the order in which they are written.
    backlog: VecDeque<u64>,
    /// Streams of exited processes that could not be read, because the streams hold too much.
    unread: VecDeque<u64>,
    /// How many of these were dropped and not yet reported.
    dropped: u64,
    /// Streams of exited processes that other processes hold open.
    lingering: Lingering,
    /// Everything that was lost so far.
    lost: Loss,
    buffer: Vec<u8>,
    ready: Vec<u64>,
    /// The stream that was read last.
    last_read: u64,
    /// When the output was full last.
    full_at: Option<Instant>,
    /// How many rounds in a row did not have to wait.
    busy_rounds: u32,
    /// Whether the last round has read anything, and whether a pipe was half full.
    read: bool,
    half_full: bool,
    /// When work was taken last.
    last_work: Option<Instant>,
    /// What the queue knows about the output, see [`LogQueue::set_writing`](super::queue::LogQueue::set_writing).
    writing: bool,
    /// New streams that are not in epoll yet.
    new_streams: Vec<u64>,
    /// Work that was taken from the queue and is not done yet.
    unfinished: VecDeque<(u64, Work)>,
    /// Streams with an entry that may be continued, and when it is written, about the oldest first.
    continuations: VecDeque<(Instant, u64)>,
    /// Whether another thread has waited for this one in vain, see [`LastLines`](super::queue::LastLines).
    stuck: Arc<AtomicBool>,
    /// If this is the file of a job (L8): what messages about it are written to.
    reporter: Option<Reporter>,
    /// Whether the lines of its last run were given up (S16).
    gave_up: bool,
    /// Its channel, if it ends with the last stream.
    retired: Option<Arc<dyn Debug + Send + Sync>>,
    /// Whether everything was written, once the log is finished.
    end: Option<bool>,
}

impl LogWorker {
    pub(super) fn new(
        shared: Arc<Shared>,
        writer: LogWriter,
        reporter: Option<Reporter>,
    ) -> std::io::Result<Self> {
        let readable = Readable::new()?;
        readable.add(&shared.queue.waker, WAKER)?;
        Ok(Self {
            shared,
            readable: Arc::new(readable),
            streams: SortedMap::new(),
            next_stream: WAKER + 1,
            processes: SortedMap::new(),
            writer,
            buffered: 0,
            backlog: VecDeque::new(),
            unread: VecDeque::new(),
            dropped: 0,
            lingering: Lingering::default(),
            lost: Loss::default(),
            buffer: Vec::new(),
            // The thread is started because there is work.
            ready: vec![WAKER],
            last_read: WAKER,
            full_at: None,
            busy_rounds: 0,
            read: false,
            half_full: false,
            last_work: None,
            writing: false,
            new_streams: Vec::new(),
            unfinished: VecDeque::new(),
            continuations: VecDeque::new(),
            stuck: Arc::default(),
            reporter,
            gave_up: false,
            retired: None,
            end: None,
        })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn stuck(&self) -> &Arc<AtomicBool> {
        &self.stuck
    }

    /// Runs until the log is finished, by this thread or by [`LogWorker::finish_now`]. Returns true if everything was
    /// written.
    pub(super) fn run(shared: &Mutex<Self>) -> bool {
        let mut worker = lock(shared);
        worker.set_writing(true);
        loop {
            if let Some(all_written) = worker.end {
                return all_written;
            }
            failpoint("log");
            worker.stuck.store(false, Ordering::Relaxed);
            if let Some((deadline, last)) = worker.work() {
                return worker.finish(deadline, last);
            }
            worker.end_entries();
            worker.write_pending(u64::MAX);
            worker.read_ready();
            worker.flush();
            worker.give_up();
            if worker.retired.is_some() && worker.streams.is_empty() && !worker.writer.is_blocked() {
                return worker.finish(Instant::now(), None);
            }
            worker = Self::wait(shared, worker);
        }
    }

    /// The channel of a thread that has ended, and was its last owner.
    pub(super) fn take_retired(shared: &Mutex<Self>) -> Option<Arc<dyn Debug + Send + Sync>> {
        lock(shared).retired.take()
    }

    /// Finishes the log on the calling thread, while the log thread waits. [`Work::Finish`] must be in the queue.
    pub(super) fn finish_now(&mut self, deadline: Instant) -> bool {
        let (deadline, last) = self.do_work().unwrap_or((deadline, None));
        self.finish(deadline, last)
    }

    /// Waits until there is something to do. An idle thread is in one system call without a timeout, and its state is
    /// unlocked meanwhile.
    fn wait<'a>(shared: &'a Mutex<Self>, mut worker: MutexGuard<'a, Self>) -> MutexGuard<'a, Self> {
        let blocked = worker.writer.is_blocked();
        worker.set_writing(!blocked);
        if blocked {
            worker.full_at = Some(Instant::now());
            let (output, limit) = worker.writer.wait_for();
            sys::wait_read_or_write(worker.shared.queue.waker.as_fd(), output, limit);
            worker.ready.clear();
            worker.ready.push(WAKER);
            return worker;
        }
        let delay = worker.busy_rounds >= BUSY_ROUNDS && worker.read && !worker.half_full;
        let readable = Arc::clone(&worker.readable);
        let due = worker.continuations.front().map(|(due, _)| *due);
        let mut ready = std::mem::take(&mut worker.ready);
        drop(worker);

        if delay {
            std::thread::sleep(BATCH_DELAY);
        }
        let started = Instant::now();
        readable.wait(&mut ready, due.map(|due| due.saturating_duration_since(started)));
        let at_once = started.elapsed() < BATCH_DELAY;

        let mut worker = lock(shared);
        worker.ready = ready;
        worker.busy_rounds = if at_once { worker.busy_rounds.saturating_add(1) } else { 0 };
        (worker.read, worker.half_full) = (false, false);
        worker
    }

    fn set_writing(&mut self, writing: bool) {
        if std::mem::replace(&mut self.writing, writing) != writing {
            self.shared.queue.set_writing(writing);
        }
    }

    /// Writes the batch of this round. If the writer was blocked already, [`LogWorker::write_pending`] writes it
    /// instead.
    fn flush(&mut self) {
        if !self.writer.is_blocked() {
            self.writer.flush();
        }
    }

    /// Does the work in the queue. Returns the deadline and the last entry if the log must be finished.
    fn work(&mut self) -> Option<(Instant, Option<QueuedEntry>)> {
        if !self.ready.contains(&WAKER) && self.unfinished.is_empty() {
            return None;
        }
        self.accumulate_work();
        let end = self.do_work();
        self.watch_new_streams();
        end
    }

    /// Waits for more work if it arrives frequently.
    fn accumulate_work(&mut self) {
        let frequent = self.last_work.is_some_and(|last| last.elapsed() < FREQUENT_WORK);
        if frequent && !self.writer.is_blocked() {
            self.shared.queue.wait_for_more(WORK_DELAY);
        }
        self.last_work = Some(Instant::now());
    }

    fn do_work(&mut self) -> Option<(Instant, Option<QueuedEntry>)> {
        // One item at a time: a panic must not lose the others.
        self.unfinished.extend(self.shared.queue.take_work());
        while let Some((number, work)) = self.unfinished.pop_front() {
            match work {
                Work::Attach { stdout, stderr, source, line } => self.attach(stdout, stderr, source, line),
                Work::Exited(pid, exited, last_lines) => {
                    self.write_entries(number);
                    for number in self.processes.remove(&pid).unwrap_or_default() {
                        self.process_exited(number, exited);
                    }
                    self.limit_unread();
                    if let (Some(last_lines), Some(reporter)) = (last_lines, &self.reporter) {
                        // Before the next run writes more than is kept.
                        let _ = last_lines.send(self.shared.last_lines_of_run(&reporter.job, pid));
                    }
                }
                Work::Configure(logging) => match LogSink::open(&logging.output) {
                    Ok(output) => self.writer.change(output, logging.format),
                    Err(error) => self.log_error(&format!("{error}; keeping the old one")),
                },
                Work::ConfigureFile(file, format) => self.writer.change_file(file, format),
                Work::Adjust(job, logging) => self.adjust(&job, &logging),
                Work::Retire(own) => self.retired = Some(own),
                Work::Forget(job) => {
                    drop(
                        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner).remove(job.as_str()),
                    );
                }
                Work::Reopen => {
                    if let Err(error) = self.writer.reopen() {
                        let why = describe(&error);
                        self.log_error(&format!("cannot reopen the log file: {why}; keeping the old one"));
                    }
                }
                Work::Finish(deadline, last) => {
                    self.write_entries(number);
                    return Some((deadline, last));
                }
            }
        }
        None
    }

    /// Writes the entries that were queued before this work item, so that no line overtakes an entry.
    fn write_entries(&mut self, before: u64) {
        if !self.writer.is_blocked() && self.shared.queue.has_entries() {
            self.write_pending(before);
        }
    }

    /// Logs an error of the log itself.
    fn log_error(&self, message: &str) {
        match &self.reporter {
            None => self.shared.report(Level::Error, None, message),
            Some(reporter) => reporter.report(Level::Error, message),
        }
    }

    /// Changes how the lines of the runs of a job are logged.
    fn adjust(&mut self, job: &str, logging: &JobLogging) {
        let join = pattern(logging);
        let is_own = |stream: &OutputStream| stream.source().job == job && stream.source().check.is_none();
        let own = self.streams.iter_mut().filter(|(_, stream)| is_own(stream));
        let changed: Vec<u64> = own
            .map(|(number, stream)| {
                stream.set_logging(logging.stderr, join.as_ref());
                *number
            })
            .collect();
        changed.into_iter().for_each(|number| self.update_stream(number));
    }

    /// Ends the entries that were not continued in time (L8): their streams are in the backlog then.
    fn end_entries(&mut self) {
        if self.continuations.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((_, number)) = self.continuations.pop_front_if(|(due, _)| *due <= now) {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            if let Some(due) = stream.end_entry(now) {
                self.continuations.push_back((due, number));
            } else {
                self.update_stream(number);
            }
        }
    }

    fn attach(&mut self, stdout: OwnedFd, stderr: OwnedFd, source: LogSource, line: Option<ReadyLine>) {
        if self.buffer.is_empty() {
            // Untouched pages take no memory until the first output arrives.
            self.buffer = vec![0; READ];
        }
        self.gave_up = false;
        let tail = source.check.is_none().then(|| self.shared.tail(&source.job));
        let join = pattern(&source.logging);
        let (source, line) = (Arc::new(source), line.map(Arc::new));
        let numbers = [(stdout, StreamName::Stdout), (stderr, StreamName::Stderr)].map(|(fd, name)| {
            let number = self.next_stream;
            self.next_stream += 1;
            match OutputStream::new(fd, Arc::clone(&source), name, tail.clone()) {
                Ok(mut stream) => {
                    stream.ready_line.clone_from(&line);
                    stream.set_logging(source.logging.stderr, join.as_ref());
                    self.streams.insert(number, Box::new(stream));
                    self.new_streams.push(number);
                }
                Err(error) => self.cannot_read(&source, &error),
            }
            number
        });
        self.processes.insert(source.pid, numbers);
    }

    fn cannot_read(&self, source: &LogSource, error: &std::io::Error) {
        self.log_error(&format!("cannot read the output of {}: {}", source.job, describe(error)));
    }

    /// Adds new streams to epoll, except those that are closed already.
    fn watch_new_streams(&mut self) {
        for number in std::mem::take(&mut self.new_streams) {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            // If this fails, the stream is still read when its process exits.
            if let Err(error) = stream.watch(&self.readable, number) {
                let message = format!("cannot read the output of {}: {error}", stream.source().job);
                self.log_error(&message);
            }
        }
    }

    /// Adds a stream to the backlog, or removes it at its end.
    fn update_stream(&mut self, number: u64) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let was_queued = self.backlog.contains(&number);
        stream.write_last_line(&mut context(&mut self.writer, &mut self.buffered, &self.shared));
        if stream.queued {
            if !was_queued {
                self.backlog.push_back(number);
            }
        } else if stream.is_at_end()
            && let Some(mut stream) = self.streams.remove(&number)
        {
            self.lingering.remove(number, stream.source());
            if let Some(error) = stream.take_error() {
                let job = &stream.source().job;
                self.log_error(&format!("lost output of {job}: {}", describe(&error)));
            }
        }
    }

    /// Writes pending data until the output is full: the current batch, then lines, then entries that were queued
    /// before this work item.
    fn write_pending(&mut self, before: u64) {
        if self.writer.is_blocked() {
            self.writer.retry();
        }
        while !self.writer.is_blocked() {
            if let Some(number) = self.backlog.pop_front() {
                if let Some(stream) = self.streams.get_mut(&number) {
                    stream.resume(&mut context(&mut self.writer, &mut self.buffered, &self.shared));
                }
                self.update_stream(number);
            } else if let Some(number) = self.unread.pop_front() {
                self.drain(number);
            } else if self.dropped > 0 {
                let dropped = std::mem::take(&mut self.dropped);
                let message = format!(
                    "the log was not read: dropped the output of {dropped} streams of exited processes"
                );
                self.writer.warn(&message);
            } else if let Some((entry, dropped)) = self.shared.queue.take_entry(before) {
                self.write_entry(&entry, dropped);
            } else {
                return;
            }
        }
    }

    fn write_entry(&mut self, entry: &QueuedEntry, dropped: Loss) {
        if !dropped.is_none() {
            self.lose(dropped);
            self.writer.warn(&format!("the log was not read: dropped {} entries", dropped.lines));
        }
        let job = entry.job.as_deref();
        let output = match (job, entry.output_of) {
            (Some(job), Some(pid)) => {
                let other_thread = entry.last_lines.as_ref().map(|lines| lines.wait(DRAIN_LIMIT));
                other_thread.unwrap_or_else(|| self.shared.last_lines_of_run(job, pid))
            }
            _ => Vec::new(),
        };
        let QueuedEntry { time, level, message, run, .. } = entry;
        let fields = entry.fields.as_deref();
        self.writer.entry(*time, *level, job, fields, message, &output);
        if let Some(tap) = self.shared.tap.get() {
            tap.entry(&TapEntry { time: *time, level: *level, job, run: *run, fields, message });
        }
    }

    /// Where the output does not accept everything, puts the readable streams in order: those that have written little
    /// come first, and those that have written more than one turn takes go on after the one that was read last. So a
    /// job that writes without end takes only its own turns. Returns how much may be read of each.
    fn take_turns(&mut self) -> usize {
        self.full_at = self.full_at.filter(|at| at.elapsed() < CONGESTED);
        if self.full_at.is_none() || self.processes.len() < 2 {
            return READ;
        }
        let turn = |number: &u64| {
            let unread = self.streams.get(number).map_or(0, |stream| stream.unread());
            (unread.min(TURN), *number <= self.last_read, *number)
        };
        let mut turns: Vec<_> = self.ready.iter().map(turn).collect();
        sort_by(&mut turns, Ord::cmp);
        self.ready.clear();
        self.ready.extend(turns.into_iter().map(|(_, _, number)| number));
        TURN
    }

    /// Reads each readable stream once.
    fn read_ready(&mut self) {
        let turn = self.take_turns();
        let ready = std::mem::take(&mut self.ready);
        for &number in &ready {
            if self.writer.is_blocked() {
                break;
            }
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let buffer = self.buffer.get_mut(..turn).unwrap_or_default();
            let Some(count) = stream.read(buffer) else { continue };
            self.last_read = number;
            self.read |= count > 0;
            self.half_full |= count * 2 >= stream.size();
            // Entries that were queued before this read are written first.
            self.write_entries(u64::MAX);
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let mut context = context(&mut self.writer, &mut self.buffered, &self.shared);
            stream.feed(self.buffer.get(..count).unwrap_or_default(), &mut context);
            if let Some(due) = stream.await_continuation() {
                self.continuations.push_back((due, number));
            }
            if stream.queued || stream.is_at_end() {
                self.update_stream(number);
            }
        }
        self.ready = ready;
    }

    /// Writes everything that has arrived, and then the last entry (S12), until the deadline (S6), and reports what was
    /// lost.
    fn finish(&mut self, deadline: Instant, last: Option<QueuedEntry>) -> bool {
        self.drain_all(SystemTime::now());
        if let Some(entry) = last {
            // Entries are written after all lines.
            self.shared.queue.push_entry(entry);
        }
        let all_written = self.write_rest(deadline);
        if !all_written {
            self.discard_rest();
        }
        self.lost += self.writer.lost;
        if !self.lost.is_none() {
            let log = if self.reporter.is_some() { self.writer.name() } else { "the log" };
            write_stderr(&format!(
                "{} of {log} were lost: the output did not accept them in time",
                self.lost
            ));
        }
        self.end = Some(all_written);
        all_written
    }

    /// Counts what was lost.
    fn lose(&mut self, loss: Loss) {
        self.lost += loss;
        self.shared.lost.fetch_add(loss.lines, Ordering::Relaxed);
    }

    fn write_rest(&mut self, deadline: Instant) -> bool {
        loop {
            self.shared.queue.take_work();
            self.write_pending(u64::MAX);
            self.flush();
            if !self.writer.is_blocked() {
                return true;
            }
            // S16: the exit does not wait for a job's file that cannot be written.
            if self.reporter.is_some() && self.writer.is_failing() {
                return false;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (output, limit) = self.writer.wait_for();
            let limit = limit.map_or(left, |limit| limit.min(left));
            sys::wait_read_or_write(self.shared.queue.waker.as_fd(), output, Some(limit));
        }
    }
}

/// After a panic the state is that between two work items; see [`LogWorker::do_work`].
fn lock(shared: &Mutex<LogWorker>) -> MutexGuard<'_, LogWorker> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The context of every operation on a stream. It borrows single fields, so that the streams can be borrowed too.
fn context<'a>(writer: &'a mut LogWriter, buffered: &'a mut usize, shared: &Shared) -> StreamContext<'a> {
    let gone = writer.is_gone();
    StreamContext {
        writer,
        buffered,
        gone,
        lowest: shared.level.load(Ordering::Relaxed),
        tap: shared.tap.get(),
    }
}

/// The pattern of continuation lines. The configuration was checked.
fn pattern(logging: &JobLogging) -> Option<Arc<Pattern>> {
    logging.join.as_ref().and_then(|join| Pattern::new(join).ok()).map(Arc::new)
}
