//! One pipe of a child: its bytes, cut into lines.
//!
//! A stream holds the beginning of a line whose end has not come yet. While the writer is blocked it may also hold
//! whole lines, those that were read and could not be written; it is then *queued*, and nothing of it may be written
//! but in its turn.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::Source;
use super::tail::Tail;
use super::writer::{LONG, Writer};
use crate::process::sys;

/// The streams hold no more than this together, or [`LONG`] each if that is more. A line that is longer is written
/// in parts, marked as such.
pub(super) const MAX_HELD: usize = 16 << 20;
/// A held line that needed more room than this gives it back.
const KEPT_ROOM: usize = 4096;
/// What a new pipe holds, unless its user has too many of them; then it is less, and does not grow either.
const NEW_PIPE: usize = 64 * 1024;
/// The size that a pipe gets which was found full: less turns between the child and us.
const PIPE: usize = 256 * 1024;

/// The read end of a child's pipe.
#[derive(Debug)]
pub(super) struct Stream {
    /// Closed as soon as the other end is.
    fd: Option<OwnedFd>,
    source: Arc<Source>,
    /// Where its last lines are kept, if it is a job's own output.
    tail: Option<Arc<Mutex<Tail>>>,
    /// What was read and is not written; those before `done` are.
    held: Vec<u8>,
    done: usize,
    /// Whether it waits for its turn to be written.
    pub(super) queued: bool,
    /// Whether what is held will not go on: a line without its newline is then a line.
    cut: bool,
    /// How many bytes the pipe can hold at most.
    size: usize,
    /// Why there is no more to read, if that is not because nobody writes any more.
    failed: Option<io::Error>,
}

/// What goes with every operation on a stream.
pub(super) struct Context<'a> {
    pub(super) writer: &'a mut Writer,
    /// How many bytes all streams hold.
    pub(super) held: &'a mut usize,
    /// Whether lines of children are not written: because of the level, or because nobody is there to read them.
    pub(super) quiet: bool,
}

impl Stream {
    /// Takes a pipe over.
    pub(super) fn new(fd: OwnedFd, source: Arc<Source>, tail: Option<Arc<Mutex<Tail>>>) -> io::Result<Self> {
        sys::set_nonblocking(fd.as_fd())?;
        let size = NEW_PIPE;
        Ok(Self {
            fd: Some(fd),
            source,
            tail,
            held: Vec::new(),
            done: 0,
            queued: false,
            cut: false,
            size,
            failed: None,
        })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the other end is closed and all was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.fd.is_none()
    }

    /// Reads what is there, as far as the buffer goes. `None`: nothing, for now.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let fd = self.fd.as_ref()?.as_fd();
        match sys::read(fd, buffer) {
            Ok(count @ 1..) => {
                // Lines that are written one by one leave a little of each page empty.
                if count >= self.size / 8 * 7 && self.size < PIPE {
                    // Refused when the user has too many large pipes; then it is not asked again.
                    self.size = sys::grow_pipe(fd, PIPE).unwrap_or(PIPE);
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
            // No pipe fails. If one should, there is no more to come, and that is said.
            Err(error) => {
                self.fd = None;
                self.failed = Some(error);
                Some(0)
            }
        }
    }

    /// Why the rest was lost, if it was; told once.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// How much could be in the pipe.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Writes the lines that a piece of output completes, and keeps the rest.
    pub(super) fn feed(&mut self, chunk: &[u8], context: &mut Context<'_>) {
        if self.queued || context.writer.is_blocked() {
            self.hold(chunk, context);
            self.queued = true;
            return;
        }
        let Some(last) = memchr::memrchr(b'\n', chunk) else {
            self.hold(chunk, context);
            if *context.held > MAX_HELD && self.held.len() > LONG {
                context.writer.label_child(&self.source);
                self.write_held(true, context);
            }
            return;
        };
        context.writer.label_child(&self.source);
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

    /// Goes on with what was held while the writer was blocked. Afterwards the stream may be queued again.
    pub(super) fn resume(&mut self, context: &mut Context<'_>) {
        let held = std::mem::take(&mut self.held);
        let rest = held.get(self.done..).unwrap_or_default();
        let whole = memchr::memrchr(b'\n', rest).map_or(0, |last| last + 1);
        context.writer.label_child(&self.source);
        let done = self.write_lines(rest.get(..whole).unwrap_or_default(), context);
        *context.held = context.held.saturating_sub(done);
        self.queued = context.writer.is_blocked();
        if self.queued {
            self.held = held;
            self.done += done;
        } else {
            // Only the beginning of a line is left.
            self.held = rest.get(done..).unwrap_or_default().to_vec();
            self.done = 0;
        }
    }

    /// No more belongs to the line that is held: it is a line, as soon as it can be written.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    /// Writes a line that was cut, if it is the stream's turn.
    pub(super) fn settle(&mut self, context: &mut Context<'_>) {
        if self.queued || !(self.cut || self.is_at_end()) {
            return;
        }
        if self.held.is_empty() {
            self.cut = false;
        } else if context.writer.is_blocked() {
            self.queued = true;
        } else {
            self.cut = false;
            context.writer.label_child(&self.source);
            self.write_held(false, context);
        }
    }

    /// Throws away what is held; how many bytes that was.
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

    /// Writes whole lines; returns how many bytes, less than all if the writer is blocked.
    fn write_lines(&mut self, lines: &[u8], context: &mut Context<'_>) -> usize {
        let done = if context.quiet {
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
    fn write_held(&mut self, goes_on: bool, context: &mut Context<'_>) {
        let mut line = std::mem::take(&mut self.held);
        *context.held = context.held.saturating_sub(line.len());
        if let Some(tail) = &self.tail {
            tail.lock().unwrap_or_else(PoisonError::into_inner).push_line(self.source.pid, &line);
        }
        if context.quiet {
            return;
        }
        if goes_on || line.len() > LONG {
            context.writer.long(line, goes_on);
            context.writer.flush();
        } else {
            context.writer.line(&line);
            if line.capacity() <= KEPT_ROOM {
                line.clear();
                self.held = line;
            }
        }
    }
}
