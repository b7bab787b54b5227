//! Formats entries and writes them as far as the output accepts them.
//!
//! The writer is *blocked* while the output is full, or while a long line is in progress, whose pieces must stay together.
//! Callers check that first; only the current batch is kept here, so a reader that stops reading needs one batch of memory.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{Format, Level};
use containerpilot_log_format::{EntryFormatter, Labels, stamp};

use super::Source;
use super::output::{Output, write_stderr};

/// A batch is written when it has this many bytes.
const BATCH: usize = 256 * 1024;
/// A longer line is formatted in pieces, so that escapes do not multiply its size in memory.
pub(super) const LONG_LINE: usize = 64 * 1024;
/// The delay after an error of the output, for example a full disk.
const RETRY: Duration = Duration::from_secs(1);

/// Formats and writes entries.
#[derive(Debug)]
pub(super) struct Writer {
    output: Output,
    /// The format of job lines, labelled for one job, and of the supervisor's entries.
    form: EntryFormatter,
    own: EntryFormatter,
    /// Formatted entries; the bytes before `written` are written.
    pending: Vec<u8>,
    written: usize,
    /// A long line in progress.
    long: Option<LongLine>,
    stall: Option<Stall>,
    /// Since when the output fails; `None` if it does not.
    failing: Option<Instant>,
    /// Whether the reader has closed the output: nothing is written any more.
    gone: bool,
}

/// Why nothing can be written now.
#[derive(Clone, Copy, Debug)]
enum Stall {
    /// The output is full; its descriptor becomes writable.
    Full,
    /// The output fails; retried at this time.
    Failing(Instant),
}

/// A line that is formatted in pieces.
#[derive(Debug)]
struct LongLine {
    form: EntryFormatter,
    text: Vec<u8>,
    /// How many bytes are formatted.
    at: usize,
    /// Whether the line continues in the next entry.
    continued: bool,
}

impl Writer {
    pub(super) fn new(output: Output, format: Format) -> Self {
        Self {
            output,
            form: EntryFormatter::new(format),
            own: EntryFormatter::new(format),
            pending: Vec::new(),
            written: 0,
            long: None,
            stall: None,
            failing: None,
            gone: false,
        }
    }

    /// Returns true if no entry may be added now.
    pub(super) fn is_blocked(&self) -> bool {
        self.stall.is_some() || self.long.is_some()
    }

    /// Returns true if the reader has closed the output.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The following entries are lines of this process, read now.
    pub(super) fn label(&mut self, source: &Source) {
        let labels = Labels {
            level: Level::Info,
            job: Some(&source.job),
            pid: Some(source.pid),
            check: source.check.as_deref(),
        };
        self.form.label(&stamp(SystemTime::now()), labels);
    }

    /// Adds the entries of complete lines. Returns how many bytes were taken: fewer than all if the output is full.
    pub(super) fn lines(&mut self, lines: &[u8]) -> usize {
        let mut done = 0;
        while let Some(rest @ [_, ..]) = lines.get(done..) {
            done += self.form.lines(rest, BATCH, LONG_LINE, &mut self.pending);
            if self.pending.len() < BATCH
                && let Some(rest @ [_, ..]) = lines.get(done..)
            {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                self.long(rest.get(..end).unwrap_or_default().to_vec(), false);
                done += end + 1;
            }
            if self.long.is_some() || self.pending.len() >= BATCH {
                self.flush();
                if self.is_blocked() {
                    break;
                }
            }
        }
        done.min(lines.len())
    }

    /// Adds the entry of a line without a newline.
    pub(super) fn line(&mut self, line: &[u8]) {
        self.form.line(line, &mut self.pending);
    }

    /// Adds the entry of a long line; `continued` if the line continues in the next entry.
    pub(super) fn long(&mut self, text: Vec<u8>, continued: bool) {
        self.form.open(&mut self.pending);
        self.long = Some(LongLine { form: self.form.clone(), text, at: 0, continued });
    }

    /// Adds an entry of the supervisor.
    pub(super) fn entry(
        &mut self,
        time: SystemTime,
        level: Level,
        job: Option<&str>,
        message: &str,
        output: &[String],
    ) {
        self.own.label(&stamp(time), Labels { level, job, pid: None, check: None });
        self.own.entry(message, output, &mut self.pending);
        if self.pending.len() >= BATCH {
            self.flush();
        }
    }

    /// Writes as much as the output accepts.
    pub(super) fn flush(&mut self) {
        loop {
            while let Some(bytes @ [_, ..]) = self.pending.get(self.written..) {
                if self.gone {
                    break;
                }
                match self.output.write(bytes) {
                    Ok(0) => return self.fail(&io::ErrorKind::WriteZero.into()),
                    Ok(count) => self.written += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.stall = Some(Stall::Full);
                        return;
                    }
                    Err(error) => {
                        self.fail(&error);
                        if self.stall.is_some() {
                            return;
                        }
                    }
                }
            }
            self.pending.clear();
            self.written = 0;
            self.stall = None;
            if let Some(since) = self.failing.take() {
                let message = format!("writing the log works again after {}s", since.elapsed().as_secs());
                // The pieces of a long line must stay together.
                if self.long.is_none() {
                    self.entry(SystemTime::now(), Level::Warn, None, &message, &[]);
                    continue;
                }
                write_stderr(&message);
            }
            let Some(long) = &mut self.long else { return };
            if long.piece(&mut self.pending) {
                self.long = None;
            }
        }
    }

    /// Handles an error of the output, which is permanent or retried. Reported once.
    fn fail(&mut self, error: &io::Error) {
        let name = self.output.name();
        if self.output.is_gone(error) {
            self.gone = true;
            write_stderr(&format!("cannot write to {name}: {error}; dropping the log"));
            return;
        }
        if self.failing.is_none() {
            self.failing = Some(Instant::now());
            write_stderr(&format!("cannot write the log to {name}: {error}; retrying every second"));
        }
        self.stall = Some(Stall::Failing(Instant::now() + RETRY));
    }

    /// The descriptor to wait for while the writer is blocked, and the longest wait.
    pub(super) fn wait_for(&self) -> (Option<BorrowedFd<'_>>, Option<Duration>) {
        match self.stall {
            None => (None, Some(Duration::ZERO)),
            Some(Stall::Full) => (Some(self.output.fd()), None),
            Some(Stall::Failing(retry_at)) => {
                (None, Some(retry_at.saturating_duration_since(Instant::now())))
            }
        }
    }

    /// Continues to write, if the retry time has passed.
    pub(super) fn retry(&mut self) {
        if matches!(self.stall, Some(Stall::Failing(retry_at)) if Instant::now() < retry_at) {
            return;
        }
        self.flush();
    }

    /// Reopens the log file after a rotation.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let before = self.output.file_id();
        self.output.reopen()?;
        self.continue_from(before);
        Ok(())
    }

    /// Changes output and format.
    pub(super) fn change(&mut self, output: Output, format: Format) {
        let before = self.output.file_id();
        self.output = output;
        self.form.set_format(format);
        self.own.set_format(format);
        self.continue_from(before);
    }

    /// Continues with a newly opened output. A half-written entry is written again completely if the file is a different one,
    /// and continued if it is the same.
    fn continue_from(&mut self, before: Option<(u64, u64)>) {
        if before.is_none() || before != self.output.file_id() {
            let written = self.pending.get(..self.written).unwrap_or_default();
            self.written = memchr::memrchr(b'\n', written).map_or(0, |end| end + 1);
            self.gone = false;
        }
        self.stall = None;
        self.flush();
    }
}

impl LongLine {
    /// Formats the next piece. Returns true if it was the last.
    fn piece(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut end = rest.len();
        if end > LONG_LINE {
            // Back to the start of a UTF-8 character, at most three bytes away.
            let is_start = |at: &usize| rest.get(*at).is_some_and(|byte| byte & 0xc0 != 0x80);
            end = (LONG_LINE - 3..=LONG_LINE).rev().find(is_start).unwrap_or(LONG_LINE);
        }
        self.form.piece(rest.get(..end).unwrap_or_default(), out);
        self.at += end;
        let last = self.at >= self.text.len();
        if last {
            self.form.close(self.continued, out);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_half_written_entry_continues_if_the_output_is_the_same_file() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut output = Writer::new(Output::shared(writer.into()).unwrap(), Format::Default);
        let line = vec![b'x'; 50_000];
        let source = Source { job: "web".into(), pid: 7, check: None };
        output.label(&source);
        let mut lines = 0;
        while !output.is_blocked() {
            output.line(&line);
            output.flush();
            lines += 1;
        }
        output.reopen().unwrap();
        let read = std::thread::spawn(move || {
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut all).unwrap();
            all
        });
        while output.is_blocked() {
            output.retry();
            std::thread::yield_now();
        }
        drop(output);
        let all = String::from_utf8(read.join().unwrap()).unwrap();
        assert_eq!(all.lines().count(), lines);
        for line in all.lines() {
            let (_, text) = line.rsplit_once(' ').unwrap();
            assert_eq!(text.len(), 50_000);
        }
    }
}
