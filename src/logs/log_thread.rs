//! The log's thread: waits, reads, writes.
//!
//! There are two ways to wait. While the output takes what it is given, all streams are waited for. While it does
//! not, no stream is, only the output and the supervisor: the pipes fill up and the children who write wait (L4).

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{self, Level, Logging};
use std::collections::BTreeMap;

use super::output::Output;
use super::queue::{Entry, Work};
use super::stream::{Context, MAX_HELD, Stream};
use super::writer::Writer;
use super::{Shared, Source};
use crate::process::sys::{self, Readable};
use crate::runtime::failpoints::failpoint;

/// The number under which the supervisor's wake-ups come; streams count from 1.
const WAKER: u64 = 0;
/// How much is read at a time.
const READ: usize = 256 * 1024;
const LITTLE: usize = 4096;
/// At most so many streams of ended processes wait until the log can be written. Without a bound, a job that restarts
/// quickly would use up all descriptors while nobody reads the log.
const MAX_LEFT: usize = 256;
/// A child that writes line by line is read in batches: after so many turns in a row without a wait, and as long as no
/// turn finds a pipe half full, the thread sleeps a moment. It saves the child most of its cost, which then has nobody to
/// wake with every line and nobody to share the pipe's lock with.
const BUSY_TURNS: u32 = 4;
const MOMENT: Duration = Duration::from_micros(150);
/// When the supervisor speaks again so soon, it is in a hurry (jobs that end as soon as they are started, many checks at
/// once), and what it has to say is left to gather for a while. Nobody is woken for it meanwhile, and a process that came
/// and went in that time is read without being waited for.
const SOON: Duration = Duration::from_millis(1);
const GATHERING: Duration = Duration::from_micros(500);
/// When everything has been started and there was nothing to write for so long, the code that was needed for it is given
/// back; this once.
const REST: Duration = Duration::from_millis(100);
/// The last lines that are shown with an entry (L6).
const OUTPUT_LINES: usize = 5;
const OUTPUT_BYTES: usize = 1024;

/// Everything the log's thread knows.
#[derive(Debug)]
pub(super) struct Plane {
    shared: Arc<Shared>,
    readable: Arc<Readable>,
    streams: BTreeMap<u64, Box<Stream>>,
    next_stream: u64,
    /// The streams of each process that has not ended.
    runs: BTreeMap<u32, [u64; 2]>,
    writer: Writer,
    /// How many bytes the streams hold.
    held: usize,
    /// Streams that hold lines which could not be written, in the order of their turns.
    backlog: VecDeque<u64>,
    /// Streams of ended processes that could not even be read, for want of room.
    left: VecDeque<u64>,
    /// How many of these were given up.
    given_up: u64,
    buffer: Vec<u8>,
    ready: Vec<u64>,
    /// Whether it has given back the code that the start needed.
    rested: bool,
    /// How many turns had something to do at once.
    busy: u32,
    /// Whether the last turn has read anything, and whether a pipe was half full.
    read: bool,
    crowded: bool,
    /// When the supervisor was listened to last.
    listened: Option<Instant>,
    /// Streams that came in this turn and are not waited for yet.
    fresh: Vec<u64>,
    /// Work that was taken and is not done yet.
    todo: VecDeque<(u64, Work)>,
    /// Whether everything was written, once it is finished.
    end: Option<bool>,
}

impl Plane {
    pub(super) fn new(shared: Arc<Shared>, output: Output, logging: &Logging) -> std::io::Result<Self> {
        let readable = Readable::new()?;
        readable.add(&shared.queue.waker, WAKER)?;
        Ok(Self {
            shared,
            readable: Arc::new(readable),
            streams: BTreeMap::new(),
            next_stream: WAKER + 1,
            runs: BTreeMap::new(),
            writer: Writer::new(output, logging.format),
            held: 0,
            backlog: VecDeque::new(),
            left: VecDeque::new(),
            given_up: 0,
            buffer: Vec::new(),
            // The supervisor has something to say, or there would be no thread.
            ready: vec![WAKER],
            rested: false,
            busy: 0,
            read: false,
            crowded: false,
            listened: None,
            fresh: Vec::new(),
            todo: VecDeque::new(),
            end: None,
        })
    }

    /// Works until it is told to finish, or somebody else has finished; returns whether everything was written.
    pub(super) fn run(place: &Mutex<Self>) -> bool {
        let mut log_thread = lock(place);
        loop {
            if let Some(all_written) = log_thread.end {
                return all_written;
            }
            failpoint("log");
            if let Some(deadline) = log_thread.work() {
                return log_thread.finish(deadline);
            }
            log_thread.write_on(u64::MAX);
            log_thread.read_ready();
            log_thread.flush();
            log_thread = Self::wait(place, log_thread);
        }
    }

    /// Finishes at once, for whoever has found the log_thread free; [`Work::Finish`] is in the queue.
    pub(super) fn finish_now(&mut self, deadline: Instant) -> bool {
        let deadline = self.obey().unwrap_or(deadline);
        self.finish(deadline)
    }

    /// Waits until there is something to do. Idle, this is one system call without a timeout, but for the first time, and
    /// the log_thread is free meanwhile.
    fn wait<'a>(place: &'a Mutex<Self>, mut log_thread: MutexGuard<'a, Self>) -> MutexGuard<'a, Self> {
        if log_thread.writer.is_blocked() {
            let (output, limit) = log_thread.writer.awaited();
            sys::wait_read_or_write(log_thread.shared.queue.waker.as_fd(), output, limit);
            log_thread.ready.clear();
            log_thread.ready.push(WAKER);
            return log_thread;
        }
        let a_moment = log_thread.busy >= BUSY_TURNS && log_thread.read && !log_thread.crowded;
        let write_timeout =
            (!log_thread.rested && log_thread.shared.settled.load(Ordering::Relaxed)).then_some(REST);
        let readable = Arc::clone(&log_thread.readable);
        let mut ready = std::mem::take(&mut log_thread.ready);
        drop(log_thread);

        if a_moment {
            std::thread::sleep(MOMENT);
        }
        let before = Instant::now();
        readable.wait(&mut ready, write_timeout);
        let rested = write_timeout.is_some() && ready.is_empty();
        if rested {
            // A program that runs alone has no log.
            sys::Urgent::Stop.release_others();
            readable.wait(&mut ready, None);
        }
        let at_once = before.elapsed() < MOMENT;

        let mut log_thread = lock(place);
        log_thread.ready = ready;
        log_thread.rested |= rested;
        log_thread.busy = if at_once { log_thread.busy.saturating_add(1) } else { 0 };
        (log_thread.read, log_thread.crowded) = (false, false);
        log_thread
    }

    /// Writes the batch of this turn. Not if the writer was blocked already: what waits for it is written by
    /// [`Plane::write_on`] only, which leaves nothing behind.
    fn flush(&mut self) {
        if !self.writer.is_blocked() {
            self.writer.flush();
        }
    }

    /// Does what the supervisor has asked for, or tells that it wants the end.
    fn work(&mut self) -> Option<Instant> {
        if !self.ready.contains(&WAKER) && self.todo.is_empty() {
            return None;
        }
        self.gather();
        let end = self.obey();
        self.await_fresh();
        end
    }

    /// Lets more work come if it comes quickly.
    fn gather(&mut self) {
        let soon = self.listened.is_some_and(|last| last.elapsed() < SOON);
        if soon && !self.writer.is_blocked() {
            self.shared.queue.gather(GATHERING);
        }
        self.listened = Some(Instant::now());
    }

    fn obey(&mut self) -> Option<Instant> {
        // One by one: whatever goes wrong with one must not take the others along.
        self.todo.extend(self.shared.queue.take_work());
        while let Some((number, work)) = self.todo.pop_front() {
            match work {
                Work::Attach { stdout, stderr, source } => self.attach(stdout, stderr, source),
                Work::Ended(pid) => {
                    self.write_entries(number);
                    for number in self.runs.remove(&pid).unwrap_or_default() {
                        self.drain(number);
                    }
                }
                Work::Configure(logging) => match Output::open(&logging.output) {
                    Ok(output) => self.writer.change(output, logging.format),
                    Err(error) => {
                        let output = match &logging.output {
                            plan::Output::Stdout => "standard output",
                            plan::Output::Stderr => "standard error",
                            plan::Output::File(path) => path,
                        };
                        self.trouble(&format!(
                            "the log stays where it is: its new output {output} cannot be opened: {error}"
                        ));
                    }
                },
                Work::Forget(job) => {
                    drop(
                        self.shared.tails.lock().unwrap_or_else(PoisonError::into_inner).remove(job.as_str()),
                    );
                }
                Work::Reopen => {
                    if let Err(error) = self.writer.reopen() {
                        self.trouble(&format!("the log file cannot be opened again: {error}"));
                    }
                }
                Work::Finish(deadline) => {
                    self.write_entries(number);
                    return Some(deadline);
                }
            }
        }
        None
    }

    /// Writes what was said before the work of this number, so that no line overtakes an entry.
    fn write_entries(&mut self, before: u64) {
        if !self.writer.is_blocked() && self.shared.queue.has_entries() {
            self.write_on(before);
        }
    }

    /// Logs a trouble of the log's own.
    fn trouble(&self, message: &str) {
        self.shared.queue.push_entry(Entry {
            time: SystemTime::now(),
            level: Level::Error,
            job: None,
            message: message.into(),
            output_of: None,
        });
        self.shared.queue.wake();
    }

    fn attach(&mut self, stdout: OwnedFd, stderr: OwnedFd, source: Source) {
        if self.buffer.is_empty() {
            // Not touched before the first output comes, and so not in memory either.
            self.buffer = vec![0; READ];
        }
        let tail = source.check.is_none().then(|| self.shared.tail(&source.job));
        let source = Arc::new(source);
        let numbers = [stdout, stderr].map(|fd| {
            let number = self.next_stream;
            self.next_stream += 1;
            match Stream::new(fd, Arc::clone(&source), tail.clone()) {
                Ok(stream) => {
                    self.streams.insert(number, Box::new(stream));
                    self.fresh.push(number);
                }
                Err(error) => self.lost(&source, &error),
            }
            number
        });
        self.runs.insert(source.pid, numbers);
    }

    fn lost(&self, source: &Source, error: &std::io::Error) {
        self.trouble(&format!("the output of {} cannot be followed: {error}", source.job));
    }

    /// Waits for new streams from now on. Most of those whose process has already ended need that no more.
    fn await_fresh(&mut self) {
        for number in std::mem::take(&mut self.fresh) {
            let Some(stream) = self.streams.get(&number) else { continue };
            // Even if it cannot be waited for, it is read when its process ends.
            if let Some(Err(error)) = stream.fd().map(|fd| self.readable.add(fd, number)) {
                self.lost(stream.source(), &error);
            }
        }
    }

    /// Reads all that is in a pipe at this moment, for the process that could write to it has ended. Someone else may
    /// hold it still (a grandchild): then it is read on, but nobody waits for that.
    fn drain(&mut self, number: u64) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let mut context = context(&mut self.writer, &mut self.held, &self.shared);
        let mut budget = stream.size();
        let mut is_left = false;
        while budget > 0 && !stream.is_at_end() {
            // Without room, only a little is read, to find out whether there is anything at all.
            let no_room = context.writer.is_blocked() && *context.held > MAX_HELD;
            let buffer = self.buffer.get_mut(..if no_room { LITTLE } else { READ }).unwrap_or_default();
            let Some(count) = stream.read(buffer) else { break };
            stream.feed(self.buffer.get(..count).unwrap_or_default(), &mut context);
            budget = budget.saturating_sub(count);
            if no_room && count > 0 {
                self.left.push_back(number);
                is_left = true;
                break;
            }
        }
        if !is_left {
            stream.cut();
        }
        self.settle(number);
        self.give_up();
    }

    /// Does what follows from a stream's state: a turn in the backlog, or its end.
    fn settle(&mut self, number: u64) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let was_queued = self.backlog.contains(&number);
        stream.settle(&mut context(&mut self.writer, &mut self.held, &self.shared));
        if stream.queued {
            if !was_queued {
                self.backlog.push_back(number);
            }
        } else if stream.is_at_end()
            && let Some(mut stream) = self.streams.remove(&number)
            && let Some(error) = stream.take_failure()
        {
            let job = &stream.source().job;
            self.trouble(&format!("some output of {job} is lost, for it cannot be read: {error}"));
        }
    }

    /// Keeps the number of unread streams bounded while nobody reads the log.
    fn give_up(&mut self) {
        while self.left.len() > MAX_LEFT {
            let Some(number) = self.left.pop_front() else { return };
            if let Some(mut stream) = self.streams.remove(&number) {
                stream.discard(&mut self.held);
                self.given_up += 1;
            }
        }
    }

    /// Writes what has waited: what was begun, then lines, then entries; each only if nothing before it is stuck.
    /// Only entries from before the work of a number.
    fn write_on(&mut self, before: u64) {
        if self.writer.is_blocked() {
            self.writer.retry();
        }
        while !self.writer.is_blocked() {
            if let Some(number) = self.backlog.pop_front() {
                if let Some(stream) = self.streams.get_mut(&number) {
                    stream.resume(&mut context(&mut self.writer, &mut self.held, &self.shared));
                }
                self.settle(number);
            } else if let Some(number) = self.left.pop_front() {
                self.drain(number);
            } else if self.given_up > 0 {
                let given_up = std::mem::take(&mut self.given_up);
                let message =
                    format!("the log was not read: {given_up} streams of ended processes were given up");
                self.writer.entry(SystemTime::now(), Level::Warn, None, &message, &[]);
            } else if let Some((entry, dropped)) = self.shared.queue.take_entry(before) {
                self.write_entry(&entry, dropped);
            } else {
                return;
            }
        }
    }

    fn write_entry(&mut self, entry: &Entry, dropped: u64) {
        if dropped > 0 {
            let message = format!("the log was not read: {dropped} entries were dropped");
            self.writer.entry(SystemTime::now(), Level::Warn, None, &message, &[]);
        }
        let job = entry.job.as_deref();
        let output = match (job, entry.output_of) {
            (Some(job), Some(pid)) => {
                let tail = self.shared.tail(job);
                tail.lock().unwrap_or_else(PoisonError::into_inner).of_run(pid, OUTPUT_LINES, OUTPUT_BYTES)
            }
            _ => Vec::new(),
        };
        self.writer.entry(entry.time, entry.level, job, &entry.message, &output);
    }

    /// Reads each stream that has something, once, so that none waits for another.
    fn read_ready(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        for &number in &ready {
            if self.writer.is_blocked() {
                break;
            }
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let Some(count) = stream.read(&mut self.buffer) else { continue };
            self.read |= count > 0;
            self.crowded |= count * 2 >= stream.size();
            // What the child has written after something was said, is written after it.
            self.write_entries(u64::MAX);
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let mut context = context(&mut self.writer, &mut self.held, &self.shared);
            stream.feed(self.buffer.get(..count).unwrap_or_default(), &mut context);
            if stream.queued || stream.is_at_end() {
                self.settle(number);
            }
        }
        self.ready = ready;
    }

    /// Writes everything that is there by now, in the time that is left (S6).
    fn finish(&mut self, deadline: Instant) -> bool {
        let numbers: Vec<u64> = self.streams.keys().copied().collect();
        for number in numbers {
            self.drain(number);
        }
        let all_written = self.write_rest(deadline);
        self.end = Some(all_written);
        all_written
    }

    fn write_rest(&mut self, deadline: Instant) -> bool {
        loop {
            self.shared.queue.take_work();
            self.write_on(u64::MAX);
            self.flush();
            if !self.writer.is_blocked() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (output, limit) = self.writer.awaited();
            let limit = limit.map_or(left, |limit| limit.min(left));
            sys::wait_read_or_write(self.shared.queue.waker.as_fd(), output, Some(limit));
        }
    }
}

/// A panic leaves the log_thread as it was between two pieces of work; see [`Plane::obey`].
fn lock(place: &Mutex<Plane>) -> MutexGuard<'_, Plane> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What goes with every operation on a stream; a function of fields, so that the streams stay free to be borrowed.
fn context<'a>(writer: &'a mut Writer, held: &'a mut usize, shared: &Shared) -> Context<'a> {
    let quiet = writer.is_gone() || shared.level.load(Ordering::Relaxed) > Level::Info as u8;
    Context { writer, held, quiet }
}
