//! One pipe of a process: splits its bytes into lines.
//!
//! A stream holds an incomplete line. While the writer is blocked it may also hold complete lines that could not be
//! written; it is *queued* then, and is written only in the order of the backlog.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::Source;
use super::tail::Tail;
use super::writer::{LONG_LINE, Writer};
use crate::process::sys;

/// All streams together hold at most this much, or [`LONG_LINE`] each if that is more. A longer line is split into several
/// entries.
pub(super) const MAX_HELD: usize = 16 << 20;
/// A larger line buffer is freed after use.
const KEPT_CAPACITY: usize = 4096;
/// The default capacity of a pipe. It is smaller if the user has too many pipes, and does not grow then either.
const DEFAULT_PIPE: usize = 64 * 1024;
/// The capacity of a pipe that was found full: fewer switches between the job and the log thread.
const LARGE_PIPE: usize = 256 * 1024;

/// The read end of a process's pipe.
#[derive(Debug)]
pub(super) struct Stream {
    /// `None` once the other end is closed.
    fd: Option<OwnedFd>,
    source: Arc<Source>,
    /// Keeps the last lines, if the process is a run of a job.
    tail: Option<Arc<Mutex<Tail>>>,
    /// Bytes that were read; those before `done` are written.
    held: Vec<u8>,
    done: usize,
    /// Whether it is in the backlog.
    pub(super) queued: bool,
    /// Whether an incomplete line is the last one and must be written.
    line_ended: bool,
    /// The capacity of the pipe.
    size: usize,
    /// The error that ended the stream.
    error: Option<io::Error>,
}

/// The context of every operation on a stream.
pub(super) struct Context<'a> {
    pub(super) writer: &'a mut Writer,
    /// How many bytes all streams hold.
    pub(super) held: &'a mut usize,
    /// Whether lines of jobs are not written: because of the level, or because the output is closed.
    pub(super) discard: bool,
}

impl Stream {
    pub(super) fn new(fd: OwnedFd, source: Arc<Source>, tail: Option<Arc<Mutex<Tail>>>) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        let size = DEFAULT_PIPE;
        Ok(Self {
            fd: Some(fd),
            source,
            tail,
            held: Vec::new(),
            done: 0,
            queued: false,
            line_ended: false,
            size,
            error: None,
        })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns true if the other end is closed and everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.fd.is_none()
    }

    /// Reads into the buffer. `None` if there is nothing now, `Some(0)` at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let fd = self.fd.as_ref()?.as_fd();
        match sys::read(fd, buffer) {
            Ok(count @ 1..) => {
                // Single lines leave a little of each page empty, so a full pipe holds less than its capacity.
                if count >= self.size / 8 * 7 && self.size < LARGE_PIPE {
                    // Refused if the user has too many large pipes; not tried again then.
                    self.size = sys::grow_pipe(fd, LARGE_PIPE).unwrap_or(LARGE_PIPE);
                }
                Some(count)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                None
            }
            Ok(_) => {
                self.fd = None;
                Some(0)
            }
            // A pipe does not fail; if it does, the stream ends and the error is logged.
            Err(error) => {
                self.fd = None;
                self.error = Some(error);
                Some(0)
            }
        }
    }

    /// The error that ended the stream, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// The capacity of the pipe.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Writes the lines that `chunk` completes, and keeps the rest.
    pub(super) fn feed(&mut self, chunk: &[u8], context: &mut Context<'_>) {
        if self.queued || context.writer.is_blocked() {
            self.hold(chunk, context);
            self.queued = true;
            return;
        }
        let Some(last) = memchr::memrchr(b'\n', chunk) else {
            self.hold(chunk, context);
            if *context.held > MAX_HELD && self.held.len() > LONG_LINE {
                context.writer.label(&self.source);
                self.write_held(true, context);
            }
            return;
        };
        context.writer.label(&self.source);
        let mut rest = chunk;
        if !self.held.is_empty()
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

    /// Continues with what was held while the writer was blocked. Afterwards the stream may be queued again.
    pub(super) fn resume(&mut self, context: &mut Context<'_>) {
        let held = std::mem::take(&mut self.held);
        let rest = held.get(self.done..).unwrap_or_default();
        let whole = memchr::memrchr(b'\n', rest).map_or(0, |last| last + 1);
        context.writer.label(&self.source);
        let done = self.write_lines(rest.get(..whole).unwrap_or_default(), context);
        *context.held = context.held.saturating_sub(done);
        self.queued = context.writer.is_blocked();
        if self.queued {
            self.held = held;
            self.done += done;
        } else {
            // Only an incomplete line is left.
            self.held = rest.get(done..).unwrap_or_default().to_vec();
            self.done = 0;
        }
    }

    /// The incomplete line is the last one: it becomes an entry.
    pub(super) fn end_line(&mut self) {
        self.line_ended = true;
    }

    /// Writes the last incomplete line, unless the stream is in the backlog.
    pub(super) fn write_last_line(&mut self, context: &mut Context<'_>) {
        if self.queued || !(self.line_ended || self.is_at_end()) {
            return;
        }
        if self.held.is_empty() {
            self.line_ended = false;
        } else if context.writer.is_blocked() {
            self.queued = true;
        } else {
            self.line_ended = false;
            context.writer.label(&self.source);
            self.write_held(false, context);
        }
    }

    /// Discards what is held and returns its size.
    pub(super) fn discard(&mut self, held: &mut usize) -> usize {
        let bytes = self.held.len() - self.done.min(self.held.len());
        *held = held.saturating_sub(bytes);
        self.held = Vec::new();
        self.done = 0;
        bytes
    }

    fn hold(&mut self, bytes: &[u8], context: &mut Context<'_>) {
        self.held.extend_from_slice(bytes);
        *context.held += bytes.len();
    }

    /// Writes complete lines. Returns how many bytes were written: fewer than all if the writer is blocked.
    fn write_lines(&mut self, lines: &[u8], context: &mut Context<'_>) -> usize {
        let done = if context.discard {
            lines.len()
        } else if context.writer.is_blocked() {
            0
        } else {
            context.writer.lines(lines)
        };
        if let (Some(tail), Some(done @ [_, ..])) = (&self.tail, lines.get(..done)) {
            tail.lock().unwrap_or_else(PoisonError::into_inner).push(self.source.pid, done);
        }
        done
    }

    /// Writes what is held as one line.
    fn write_held(&mut self, continued: bool, context: &mut Context<'_>) {
        let mut line = std::mem::take(&mut self.held);
        *context.held = context.held.saturating_sub(line.len());
        if let Some(tail) = &self.tail {
            tail.lock().unwrap_or_else(PoisonError::into_inner).push_line(self.source.pid, &line);
        }
        if context.discard {
            return;
        }
        if continued || line.len() > LONG_LINE {
            context.writer.long(line, continued);
            context.writer.flush();
        } else {
            context.writer.line(&line);
            if line.capacity() <= KEPT_CAPACITY {
                line.clear();
                self.held = line;
            }
        }
    }
}
