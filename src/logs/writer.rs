//! Entries on their way out: formatted, and written as far as the output takes them.
//!
//! The writer is *blocked* while the output takes no more, or while a long line is under way, whose pieces must not
//! be parted by anything else. Whoever has lines asks first; only what was already begun is kept here, so that a
//! reader who stops reading costs one batch of memory and no more.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{Format, Level};
use containerpilot_log_format::{Form, Labels, stamp};

use super::Source;
use super::output::{Output, complain};

/// A batch is written when it has so many bytes.
const BATCH: usize = 256 * 1024;
/// A longer line is formatted piece by piece, so that escapes do not multiply its size in memory.
pub(super) const LONG: usize = 64 * 1024;
/// How long to wait after an error of the output, a full disk for example.
const RETRY: Duration = Duration::from_secs(1);

/// Formats and writes entries.
#[derive(Debug)]
pub(super) struct Writer {
    output: Output,
    /// The form of children's lines, labelled for one of them, and that of the supervisor's entries.
    form: Form,
    own: Form,
    /// Formatted entries; those before `written` are out.
    pending: Vec<u8>,
    written: usize,
    /// A long line whose entry is under way.
    long: Option<Long>,
    stall: Option<Stall>,
    /// Since when the output fails, if it has been reported.
    failing: Option<Instant>,
    /// Whether the reader of the output is gone, so that nothing is written any more.
    gone: bool,
}

/// Why nothing can be written just now.
#[derive(Clone, Copy, Debug)]
enum Stall {
    /// The output is full; it will say when it is not.
    Full,
    /// The output fails; it is tried again at this time.
    Failing(Instant),
}

/// A line that is formatted piece by piece.
#[derive(Debug)]
struct Long {
    form: Form,
    text: Vec<u8>,
    /// How much of it has been formatted.
    at: usize,
    /// Whether the line goes on in the next entry.
    goes_on: bool,
}

impl Writer {
    pub(super) fn new(output: Output, format: Format) -> Self {
        Self {
            output,
            form: Form::new(format),
            own: Form::new(format),
            pending: Vec::new(),
            written: 0,
            long: None,
            stall: None,
            failing: None,
            gone: false,
        }
    }

    /// Whether no entry may be added just now.
    pub(super) fn is_blocked(&self) -> bool {
        self.stall.is_some() || self.long.is_some()
    }

    /// Whether nobody will ever read what is written.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The entries that follow are lines of a child, read now.
    pub(super) fn label_child(&mut self, source: &Source) {
        let labels = Labels {
            level: Level::Info,
            job: Some(&source.job),
            pid: Some(source.pid),
            check: source.check.as_deref(),
        };
        self.form.label(&stamp(SystemTime::now()), labels);
    }

    /// Adds the entries of whole lines, each with its newline; returns how many bytes of them, less than all if the
    /// output is full.
    pub(super) fn lines(&mut self, lines: &[u8]) -> usize {
        let mut done = 0;
        while let Some(rest @ [_, ..]) = lines.get(done..) {
            done += self.form.lines(rest, BATCH, LONG, &mut self.pending);
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

    /// Adds the entry of a long line; says so if the line itself goes on in the next entry.
    pub(super) fn long(&mut self, text: Vec<u8>, goes_on: bool) {
        self.form.open(&mut self.pending);
        self.long = Some(Long { form: self.form.clone(), text, at: 0, goes_on });
    }

    /// Adds an entry of the supervisor's own.
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

    /// Writes as much as the output takes.
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
                let message = format!("the log could not be written for {} s", since.elapsed().as_secs());
                // Behind a long line that is under way, since nothing may part its pieces.
                if self.long.is_none() {
                    self.entry(SystemTime::now(), Level::Warn, None, &message, &[]);
                    continue;
                }
                complain(&message);
            }
            let Some(long) = &mut self.long else { return };
            if long.piece(&mut self.pending) {
                self.long = None;
            }
        }
    }

    /// The output has failed: for ever, or until it is tried again. Reported once.
    fn fail(&mut self, error: &io::Error) {
        let name = self.output.name();
        if self.output.is_gone(error) {
            self.gone = true;
            complain(&format!("{name} cannot be written any more ({error}): the log is dropped from now on"));
            return;
        }
        if self.failing.is_none() {
            self.failing = Some(Instant::now());
            complain(&format!("cannot write the log to {name}: {error}; trying again until it works"));
        }
        self.stall = Some(Stall::Failing(Instant::now() + RETRY));
    }

    /// What to wait for while the writer is blocked, and how long at most.
    pub(super) fn awaited(&self) -> (Option<BorrowedFd<'_>>, Option<Duration>) {
        match self.stall {
            None => (None, Some(Duration::ZERO)),
            Some(Stall::Full) => (Some(self.output.fd()), None),
            Some(Stall::Failing(again)) => (None, Some(again.saturating_duration_since(Instant::now()))),
        }
    }

    /// Writes on if there is hope.
    pub(super) fn retry(&mut self) {
        if matches!(self.stall, Some(Stall::Failing(again)) if Instant::now() < again) {
            return;
        }
        self.flush();
    }

    /// Opens the log file again, after a rotation.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let before = self.output.place();
        self.output.reopen()?;
        self.go_on_from(before);
        Ok(())
    }

    /// Writes in another form, to another place.
    pub(super) fn change(&mut self, output: Output, format: Format) {
        let before = self.output.place();
        self.output = output;
        self.form.set_format(format);
        self.own.set_format(format);
        self.go_on_from(before);
    }

    /// Goes on with an output that has just been opened. What is elsewhere gets an entry that the old one has got only in part
    /// from its beginning; the same place gets the rest.
    fn go_on_from(&mut self, before: Option<(u64, u64)>) {
        if before.is_none() || before != self.output.place() {
            let begun = self.pending.get(..self.written).unwrap_or_default();
            self.written = memchr::memrchr(b'\n', begun).map_or(0, |end| end + 1);
            self.gone = false;
        }
        self.stall = None;
        self.flush();
    }
}

impl Long {
    /// Formats the next piece; whether it was the last.
    fn piece(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut end = rest.len();
        if end > LONG {
            // Back to the beginning of a letter, which is never farther than three bytes away.
            let begins = |at: &usize| rest.get(*at).is_some_and(|byte| byte & 0xc0 != 0x80);
            end = (LONG - 3..=LONG).rev().find(begins).unwrap_or(LONG);
        }
        self.form.piece(rest.get(..end).unwrap_or_default(), out);
        self.at += end;
        let last = self.at >= self.text.len();
        if last {
            self.form.close(self.goes_on, out);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L3: whoever asks for the file anew while a batch is half written gets no part of a line twice: standard output has not
    /// become another one.
    #[test]
    fn l3_a_half_written_entry_goes_on_where_the_output_is_the_same() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut output = Writer::new(Output::shared(writer.into()).unwrap(), Format::Default);
        let line = vec![b'x'; 50_000];
        let source = Source { job: "web".into(), pid: 7, check: None };
        output.label_child(&source);
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
