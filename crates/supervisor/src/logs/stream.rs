//! One pipe of a process: splits its bytes into lines.
//!
//! A stream holds an incomplete line. While the writer is blocked it may also hold complete lines that could not be
//! written; it is *queued* then, and is written only in the order of the backlog.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use containerpilot_config::template::Pattern;
use containerpilot_core::plan::Level;
use containerpilot_log_format::{HiddenValues, Redactor, StreamName};
use containerpilot_process::sys::{self, Readable};

use super::join::{DELAY, Join};
use super::loss::Loss;
use super::tail::Tail;
use super::writer::{LONG_LINE, LineOrigin, LogWriter, not_before};
use super::{LogSource, ReadyLine, Tap, TapOrigin};

/// All streams together hold at most this much, or [`LONG_LINE`] each if that is more. A longer line is split into
/// several entries.
pub(super) const MAX_BUFFERED: usize = 16 << 20;
/// A larger line buffer is freed after use.
const KEPT_CAPACITY: usize = 4096;
/// The usual capacity of a new pipe. It decides only when a pipe is enlarged, not how much is read.
const USUAL_PIPE: usize = 64 * 1024;
/// The capacity of a pipe that was found full: fewer switches between the job and the log thread.
const LARGE_PIPE: usize = 256 * 1024;

/// The read end of a process's pipe.
#[derive(Debug)]
pub(super) struct OutputStream {
    /// `None` once it is closed.
    fd: Option<OwnedFd>,
    /// What waits for it.
    readable: Option<Arc<Readable>>,
    source: Arc<LogSource>,
    /// Which of its streams it is, and the level of the lines.
    origin: LineOrigin,
    /// Keeps the last lines, if the process is a run of a job.
    tail: Option<Arc<Mutex<Tail>>>,
    /// Bytes that were read; those before `done` are written.
    buffered: Vec<u8>,
    done: usize,
    /// When they were read, or the exit of the process, and not before the entry that was written last.
    read_at: SystemTime,
    /// Whether it is in the backlog.
    pub(super) queued: bool,
    /// Whether an incomplete line is the last one and must be written.
    line_ended: bool,
    drain: Option<Drain>,
    /// The capacity of the pipe, or less.
    size: usize,
    /// The error that ended the stream.
    error: Option<io::Error>,
    /// Hides secrets (P11), from the first output on.
    redactor: Option<Box<Redactor>>,
    /// The line that is looked for, until it is found (H11).
    pub(super) ready_line: Option<Arc<ReadyLine>>,
    /// Joins continuation lines (L8).
    join: Option<Box<Join>>,
}

/// The content of a pipe is being read to its end, because the process has exited.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// How much of what was in the pipe at the beginning is not read. What other processes write meanwhile is not waited
    /// for.
    left: usize,
    /// Whether the pipe is closed then, although other processes hold it open.
    close: bool,
}

/// The context of every operation on a stream.
pub(super) struct StreamContext<'a> {
    pub(super) writer: &'a mut LogWriter,
    /// How many bytes all streams hold.
    pub(super) buffered: &'a mut usize,
    /// Whether the output is closed: nothing is written.
    pub(super) gone: bool,
    /// The lowest level that is written.
    pub(super) lowest: u8,
    /// Gets a copy of all lines (T6).
    pub(super) tap: Option<Arc<dyn Tap>>,
}

impl OutputStream {
    pub(super) fn new(
        fd: OwnedFd,
        source: Arc<LogSource>,
        name: StreamName,
        tail: Option<Arc<Mutex<Tail>>>,
    ) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        Ok(Self {
            fd: Some(fd),
            readable: None,
            source,
            origin: LineOrigin { stream: name, level: Level::Info },
            tail,
            buffered: Vec::new(),
            done: 0,
            read_at: SystemTime::UNIX_EPOCH,
            queued: false,
            line_ended: false,
            drain: None,
            size: USUAL_PIPE,
            error: None,
            redactor: None,
            ready_line: None,
            join: None,
        })
    }

    /// Sets the level of stderr, and which lines belong to the entry before them (L8).
    pub(super) fn set_logging(&mut self, stderr: Level, join: Option<&Arc<Pattern>>) {
        if self.origin.stream == StreamName::Stderr {
            self.origin.level = stderr;
        }
        match (&mut self.join, join) {
            (Some(present), Some(pattern)) => present.pattern = Arc::clone(pattern),
            (present, pattern) => {
                // What was buffered for continuations consists of complete lines now.
                self.queued |= present.is_some() && !self.buffered.is_empty();
                *present = pattern.map(|pattern| Box::new(Join::new(Arc::clone(pattern))));
            }
        }
    }

    /// Returns true if its lines are not written: because of their level, or because the output is closed.
    pub(super) fn is_hidden(&self, gone: bool, lowest: u8) -> bool {
        gone || lowest > self.origin.level as u8
    }

    pub(super) fn source(&self) -> &LogSource {
        &self.source
    }

    /// Has it read when it is readable, unless it is closed already.
    pub(super) fn watch(&mut self, readable: &Arc<Readable>, number: u64) -> io::Result<()> {
        if let Some(fd) = &self.fd {
            readable.add(fd, number)?;
            self.readable = Some(Arc::clone(readable));
        }
        Ok(())
    }

    /// Closes the pipe. Closing alone would not end the wait for it as long as a child that is being started has a
    /// copy.
    fn close(&mut self) {
        if let (Some(fd), Some(readable)) = (self.fd.take(), self.readable.take()) {
            readable.remove(fd);
        }
    }

    /// Returns true if it is closed: there is nothing more to read.
    pub(super) fn is_at_end(&self) -> bool {
        self.fd.is_none()
    }

    /// Begins to read what is in the pipe now. Its lines have the time of the exit, or that of earlier lines if it is
    /// later.
    pub(super) fn begin_drain(&mut self, exited: SystemTime, close: bool) {
        let Some(fd) = &self.fd else { return };
        let close = close || self.drain.is_some_and(|drain| drain.close);
        self.drain = Some(Drain { left: sys::unread_bytes(fd.as_fd()), close });
        self.read_at = not_before(exited, self.read_at);
    }

    /// How much of the pipe must still be read for the drain; `None` if it is complete. At 0 one more read finds out
    /// whether the pipe is closed.
    pub(super) fn left_to_drain(&self) -> Option<usize> {
        self.drain.map(|drain| drain.left)
    }

    /// Ends the drain. The incomplete line is the last one: it becomes an entry.
    pub(super) fn end_drain(&mut self) {
        self.line_ended = true;
        if self.drain.take().is_some_and(|drain| drain.close) {
            self.close();
        }
    }

    /// Reads into the buffer. `None` if there is nothing now, `Some(0)` at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let fd = self.fd.as_ref()?.as_fd();
        let result = loop {
            match sys::read(fd, buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        match result {
            Ok(count @ 1..) => {
                // Single lines leave a little of each page empty, so a full pipe holds less than its capacity.
                if count >= self.size / 8 * 7 && self.size < LARGE_PIPE {
                    // Refused if the user has too many large pipes; not tried again then.
                    self.size = sys::grow_pipe(fd, LARGE_PIPE).unwrap_or(LARGE_PIPE);
                }
                match &mut self.drain {
                    None => self.read_at = SystemTime::now(),
                    Some(drain) if count <= drain.left => drain.left -= count,
                    // Written since the drain began.
                    Some(drain) => drain.left = 0,
                }
                Some(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Ok(_) => {
                self.close();
                Some(0)
            }
            // A pipe does not fail; if it does, the stream ends and the error is logged.
            Err(error) => {
                self.close();
                self.error = Some(error);
                Some(0)
            }
        }
    }

    /// The error that ended the stream, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// The capacity of the pipe, or less.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// How many bytes are in the pipe.
    pub(super) fn unread(&self) -> usize {
        self.fd.as_ref().map_or(0, |fd| sys::unread_bytes(fd.as_fd()))
    }

    /// Writes the lines that `chunk` completes, and keeps the rest. Secrets are hidden first (P11).
    pub(super) fn feed(&mut self, chunk: &[u8], context: &mut StreamContext<'_>) {
        if self.source.hidden.is_some() && self.redactor.is_none() {
            // The values are known before the process can write.
            let patterns = self.source.hidden.as_ref().and_then(HiddenValues::get);
            self.redactor = patterns.map(|patterns| Box::new(Redactor::new(patterns)));
        }
        match &mut self.redactor {
            None => self.feed_lines(chunk, context),
            Some(redactor) => {
                let shown = redactor.push(chunk);
                self.feed_lines(&shown, context);
            }
        }
    }

    fn feed_lines(&mut self, chunk: &[u8], context: &mut StreamContext<'_>) {
        if let Some(join) = &mut self.join {
            (join.last_read, join.due) = (Instant::now(), false);
            self.hold(chunk, context);
            self.queued |= context.writer.is_blocked();
            if !self.queued {
                self.write_entries(context);
            }
            return;
        }
        if self.queued || context.writer.is_blocked() {
            self.hold(chunk, context);
            self.queued = true;
            return;
        }
        let Some(last) = memchr::memrchr(b'\n', chunk) else {
            self.hold(chunk, context);
            if *context.buffered > MAX_BUFFERED && self.buffered.len() > LONG_LINE {
                self.read_at = context.writer.label(&self.source, self.origin, self.read_at);
                self.write_held(true, context);
            }
            return;
        };
        self.read_at = context.writer.label(&self.source, self.origin, self.read_at);
        let mut rest = chunk;
        if !self.buffered.is_empty()
            && let Some(end) = memchr::memchr(b'\n', chunk)
        {
            let (first, others) = chunk.split_at(end);
            self.hold(first, context);
            self.write_held(false, context);
            rest = others.get(1..).unwrap_or_default();
        }
        let whole = rest.get(..(last + 1).saturating_sub(chunk.len() - rest.len())).unwrap_or_default();
        let done = self.write_lines(whole, context);
        self.hold(rest.get(done..).unwrap_or_default(), context);
        self.queued = context.writer.is_blocked();
    }

    /// Continues with what was buffered while the writer was blocked. Afterwards the stream may be queued again.
    pub(super) fn resume(&mut self, context: &mut StreamContext<'_>) {
        if self.join.is_some() {
            self.write_entries(context);
            return;
        }
        let buffered = std::mem::take(&mut self.buffered);
        let rest = buffered.get(self.done..).unwrap_or_default();
        let whole = memchr::memrchr(b'\n', rest).map_or(0, |last| last + 1);
        self.read_at = context.writer.label(&self.source, self.origin, self.read_at);
        let done = self.write_lines(rest.get(..whole).unwrap_or_default(), context);
        *context.buffered = context.buffered.saturating_sub(done);
        self.queued = context.writer.is_blocked();
        if self.queued {
            self.buffered = buffered;
            self.done += done;
        } else {
            // Only an incomplete line is left.
            self.buffered = rest.get(done..).unwrap_or_default().to_vec();
            self.done = 0;
        }
    }

    /// Writes the last incomplete line, unless the stream is in the backlog.
    pub(super) fn write_last_line(&mut self, context: &mut StreamContext<'_>) {
        if !(self.line_ended || self.is_at_end()) {
            return;
        }
        if let Some(redactor) = &mut self.redactor {
            let rest = redactor.finish();
            self.hold(&rest, context);
        }
        if self.queued {
            return;
        }
        if self.buffered.is_empty() {
            self.line_ended = false;
        } else if context.writer.is_blocked() {
            self.queued = true;
        } else if self.join.is_some() {
            self.write_last_entries(context);
        } else {
            self.line_ended = false;
            self.read_at = context.writer.label(&self.source, self.origin, self.read_at);
            self.write_held(false, context);
        }
    }

    /// Writes the entries that are complete, and the last one if its time has passed (L8). Afterwards the stream may be
    /// queued.
    fn write_entries(&mut self, context: &mut StreamContext<'_>) {
        let Some(mut join) = self.join.take() else { return };
        let buffered = std::mem::take(&mut self.buffered);
        let first = self.done;
        let mut start = first;
        join.end = join.end.max(start);
        join.searched = join.searched.max(join.end);
        // An entry from before has its own time.
        let earlier = (join.end > start).then_some(join.read_at);
        let mut time = context.writer.label(&self.source, self.origin, earlier.unwrap_or(self.read_at));
        while !context.writer.is_blocked() {
            let rest = buffered.get(join.searched..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest).map(|end| join.searched + end) else {
                join.searched = buffered.len();
                break;
            };
            let line = buffered.get(join.end..end).unwrap_or_default();
            if join.end > start && !join.continues(line) {
                self.write_entry(buffered.get(start..join.end).unwrap_or_default(), time, context);
                if start == first && earlier.is_some() {
                    time = context.writer.label(&self.source, self.origin, self.read_at);
                }
                start = join.end;
            }
            self.look_for_ready(line);
            (join.end, join.searched) = (end + 1, end + 1);
        }
        if join.due && join.end > start && !context.writer.is_blocked() {
            self.write_entry(buffered.get(start..join.end).unwrap_or_default(), time, context);
            start = join.end;
        }
        join.read_at = self.read_at;
        self.keep_last(buffered.get(first..start).unwrap_or_default(), time);
        *context.buffered = context.buffered.saturating_sub(start - first);
        (self.buffered, self.done, self.queued) = (buffered, start, context.writer.is_blocked());
        if start * 2 >= self.buffered.len() {
            self.buffered.drain(..start);
            if join.due {
                self.buffered.shrink_to(KEPT_CAPACITY);
            }
            (self.done, join.end, join.searched) = (0, join.end - start, join.searched - start);
        }
        let is_long = self.buffered.len() - self.done > LONG_LINE;
        if *context.buffered > MAX_BUFFERED && is_long && !self.queued {
            // Too long for one entry.
            self.buffered.drain(..self.done);
            (self.done, join.end, join.searched) = (0, 0, 0);
            self.write_held(true, context);
            self.queued = context.writer.is_blocked();
        }
        self.join = Some(join);
    }

    /// Writes lines that belong together, with their newlines, as one entry.
    fn write_entry(&self, lines: &[u8], time: SystemTime, context: &mut StreamContext<'_>) {
        let text = lines.strip_suffix(b"\n").unwrap_or(lines);
        if !self.is_hidden(context.gone, context.lowest) {
            context.writer.joined(text);
        }
        self.copy(text, false, time, context);
    }

    /// Writes all that is buffered: nothing follows it for now.
    fn write_last_entries(&mut self, context: &mut StreamContext<'_>) {
        if self.buffered.last().is_some_and(|byte| *byte != b'\n') {
            self.hold(b"\n", context);
        }
        if let Some(join) = &mut self.join {
            join.due = true;
        }
        self.write_entries(context);
        // Otherwise continued when the output accepts data.
        self.line_ended = self.queued;
    }

    /// Returns when the entry that is buffered is written at the latest, if there is one and that was not returned before.
    pub(super) fn await_continuation(&mut self) -> Option<Instant> {
        let join = self.join.as_mut().filter(|join| join.end > self.done && !join.timed)?;
        join.timed = true;
        Some(join.last_read + DELAY)
    }

    /// The time that [`OutputStream::await_continuation`] returned has passed. Returns the next one after more output.
    /// Otherwise the entry is due, and the stream is queued.
    pub(super) fn end_entry(&mut self, now: Instant) -> Option<Instant> {
        let join = self.join.as_mut()?;
        let due = join.last_read + DELAY;
        join.timed = join.end > self.done && due > now;
        if join.timed {
            return Some(due);
        }
        join.due = true;
        self.queued = true;
        None
    }

    /// Discards what it holds and what is in the pipe, and returns how much that was.
    pub(super) fn discard(&mut self, buffer: &mut [u8], buffered: &mut usize) -> Loss {
        if let Some(redactor) = &mut self.redactor {
            let rest = redactor.finish();
            *buffered += rest.len();
            self.buffered.extend(rest);
        }
        let rest = self.buffered.get(self.done..).unwrap_or_default();
        *buffered = buffered.saturating_sub(rest.len());
        let mut lost = Loss::of(rest);
        // The pipe continues the incomplete line.
        let mut in_line = rest.last().is_some_and(|byte| *byte != b'\n');
        (self.buffered, self.done) = (Vec::new(), 0);
        self.begin_drain(self.read_at, true);
        while self.left_to_drain().is_some_and(|left| left > 0) {
            let Some(chunk) = self.read(buffer).and_then(|count| buffer.get(..count)) else { break };
            let (mut more, last) = (Loss::of(chunk), chunk.last());
            more.lines -= u64::from(in_line && last.is_some());
            in_line = last.map_or(in_line, |byte| *byte != b'\n');
            lost += more;
        }
        self.end_drain();
        lost
    }

    fn hold(&mut self, bytes: &[u8], context: &mut StreamContext<'_>) {
        self.buffered.extend_from_slice(bytes);
        *context.buffered += bytes.len();
    }

    /// Writes complete lines. Returns how many bytes were written: fewer than all if the writer is blocked.
    fn write_lines(&mut self, lines: &[u8], context: &mut StreamContext<'_>) -> usize {
        let done = if self.is_hidden(context.gone, context.lowest) {
            lines.len()
        } else if context.writer.is_blocked() {
            0
        } else {
            context.writer.lines(lines)
        };
        if let Some(done) = lines.get(..done) {
            self.keep_last(done, self.read_at);
            self.look_for_ready(done);
            self.copy(done, true, self.read_at, context);
        }
        done
    }

    /// Sends a copy of output to the tap: one text, or several lines.
    fn copy(&self, text: &[u8], several: bool, time: SystemTime, context: &StreamContext<'_>) {
        let tap = context.tap.as_ref().filter(|_| !self.is_hidden(false, context.lowest));
        if let Some(tap) = tap.filter(|_| !(several && text.is_empty())) {
            let LineOrigin { stream, level } = self.origin;
            tap.output(&TapOrigin { source: &self.source, stream, level, time }, text, several);
        }
    }

    /// Keeps the last of complete lines, and counts them.
    fn keep_last(&self, lines: &[u8], time: SystemTime) {
        if let (Some(tail), [_, ..]) = (&self.tail, lines) {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push(self.source.pid, time, lines);
            tail.count(self.origin.stream, memchr::memchr_iter(b'\n', lines).count());
        }
    }

    /// Looks for the line that makes the process ready, in complete lines.
    fn look_for_ready(&mut self, lines: &[u8]) {
        let ready = self.ready_line.as_ref().filter(|_| !lines.is_empty());
        if ready.is_some_and(|line| line.look(lines)) {
            self.ready_line = None;
        }
    }

    /// Writes what is buffered as one line.
    fn write_held(&mut self, continued: bool, context: &mut StreamContext<'_>) {
        let mut line = std::mem::take(&mut self.buffered);
        *context.buffered = context.buffered.saturating_sub(line.len());
        self.look_for_ready(&line);
        if let Some(tail) = &self.tail {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push_line(self.source.pid, self.read_at, &line);
            // A long line is counted with its last part.
            let lines = memchr::memchr_iter(b'\n', &line).count() + usize::from(!continued);
            tail.count(self.origin.stream, lines);
        }
        self.copy(&line, false, self.read_at, context);
        if self.is_hidden(context.gone, context.lowest) {
            return;
        }
        if continued || line.len() > LONG_LINE {
            context.writer.long(line, continued);
            context.writer.flush();
        } else {
            context.writer.line(&line);
            if line.capacity() <= KEPT_CAPACITY {
                line.clear();
                self.buffered = line;
            }
        }
    }
}

impl Drop for OutputStream {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use containerpilot_core::plan::JobLogging;

    use super::*;

    fn stream(pipe: OwnedFd) -> OutputStream {
        let source = Arc::new(LogSource {
            job: "main".into(),
            pid: 7,
            check: None,
            hidden: None,
            logging: JobLogging::default(),
            run: None,
        });
        OutputStream::new(pipe, source, StreamName::Stdout, None).unwrap()
    }

    #[test]
    fn l4_discarded_lines_are_counted_across_reads() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut stream = stream(reader.into());
        stream.buffered = b"done\nwhole\nbeg".to_vec();
        stream.done = 5;
        writer.write_all(b"inning\nnext\nlast").unwrap();
        let (mut buffered, mut buffer) = (9, [0; 3]);
        let lost = stream.discard(&mut buffer, &mut buffered);
        assert_eq!((lost, buffered), (Loss { lines: 4, bytes: 25 }, 0));
        assert!(stream.is_at_end(), "closed, although the writer is open");
    }

    #[test]
    fn p4_closed_pipe_is_not_waited_for_although_a_child_that_is_being_started_has_a_copy() {
        let (reader, mut writer) = io::pipe().unwrap();
        let _copy = reader.try_clone().unwrap();
        let (readable, other) = (Arc::new(Readable::new().unwrap()), sys::Waker::new().unwrap());
        let mut stream = stream(reader.into());
        stream.watch(&readable, 7).unwrap();
        stream.begin_drain(SystemTime::now(), true);
        stream.end_drain();
        writer.write_all(b"of a process that the run has left\n").unwrap();
        readable.add(&other, 8).unwrap();
        other.wake();
        let mut ready = Vec::new();
        readable.wait(&mut ready, None);
        assert_eq!(ready, [8]);
    }
}
