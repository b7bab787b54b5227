//! Formats entries and writes them as far as the output accepts them.
//!
//! The writer is *blocked* while the output is full, or while a long line is in progress, whose pieces must stay
//! together. Callers check that first; only the current batch is kept here, so a reader that stops reading needs one
//! batch of memory.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::log_entry::{Fields, LogEvent};
use containerpilot_core::plan::{Format, Level, LogFile};
use containerpilot_log_format::{self as format, EntryFormatter, Labels, StreamName, stamp};
use containerpilot_process::error_text::describe;

use super::loss::Loss;
use super::output::{LogSink, write_stderr};
use super::{LogSource, Reporter};

/// A batch is written when it has this many bytes.
const BATCH: usize = 256 * 1024;
/// A longer line is formatted in pieces, so that escapes do not multiply its size in memory.
pub(super) const LONG_LINE: usize = 64 * 1024;
/// The delay after an error of the output, for example a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// Two times that are further apart are not put in order: the clock was set.
const MAX_SKEW: Duration = Duration::from_secs(1);

/// Formats and writes entries.
#[derive(Debug)]
pub(super) struct LogWriter {
    output: LogSink,
    format: Format,
    /// The format of job lines, labelled for one job, and of the supervisor's entries.
    form: EntryFormatter,
    own: EntryFormatter,
    /// What `form` is labelled with.
    label: Option<Label>,
    /// The time of the last entry.
    last: SystemTime,
    /// Formatted entries, or a part of the long line; the bytes before `written` are written.
    pending: Vec<u8>,
    written: usize,
    /// A long line in progress, until its last part is written.
    long: Option<LongLine>,
    stall: Option<Stall>,
    /// Since when the output fails; `None` if it does not.
    failing: Option<Instant>,
    /// Whether the reader has closed the output: nothing is written any more.
    gone: bool,
    /// What was lost because a job's file could not be rotated.
    pub(super) lost: Loss,
    /// If this is the file of a job (L8): what messages about it are written to.
    log: Option<Reporter>,
}

/// Why nothing can be written now.
#[derive(Clone, Copy, Debug)]
enum Stall {
    /// The output is full; its descriptor becomes writable.
    Full,
    /// The output fails; retried at this time.
    Failing(Instant),
}

/// The process that has written a line, where to, and when it was read.
type Label = (Arc<LogSource>, LineOrigin, SystemTime);

/// The stream that a line was written to, and the level of its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineOrigin {
    pub(super) stream: StreamName,
    pub(super) level: Level,
}

/// A line that is formatted in pieces.
#[derive(Debug)]
struct LongLine {
    form: EntryFormatter,
    label: Option<Label>,
    text: Vec<u8>,
    progress: Progress,
    /// Whether the line continues in the next entry.
    continued: bool,
}

/// How much of a long line is formatted.
#[derive(Clone, Copy, Debug)]
enum Progress {
    Nothing,
    /// The head and this many bytes of the text.
    Text(usize),
    /// All of it.
    Complete,
}

impl LogWriter {
    pub(super) fn new(output: LogSink, format: Format) -> Self {
        let colour = format == Format::Text && output.has_colour();
        Self {
            output,
            format,
            form: EntryFormatter::new(format, colour),
            own: EntryFormatter::new(format, colour),
            label: None,
            last: SystemTime::UNIX_EPOCH,
            pending: Vec::new(),
            written: 0,
            long: None,
            stall: None,
            failing: None,
            gone: false,
            lost: Loss::default(),
            log: None,
        }
    }

    /// Writes the file of a job: in the format `default` only its lines, without time, job and pid.
    pub(super) fn for_job(output: LogSink, format: Format, log: Reporter) -> Self {
        Self { log: Some(log), ..Self::new(output, format) }
    }

    /// Returns true if lines are written as they are.
    fn is_plain(&self) -> bool {
        self.log.is_some() && self.format == Format::Default
    }

    /// Returns true if no entry may be added now.
    pub(super) fn is_blocked(&self) -> bool {
        self.stall.is_some() || self.long.is_some()
    }

    /// Returns true if the last write has failed, which is not because the output is full.
    pub(super) fn is_failing(&self) -> bool {
        matches!(self.stall, Some(Stall::Failing(_)))
    }

    /// Returns true if the reader has closed the output.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The following entries are lines of this process, read at this time.
    /// Returns their time in the log, which is not earlier than that of the last entry.
    pub(super) fn label(
        &mut self,
        source: &Arc<LogSource>,
        origin: LineOrigin,
        read_at: SystemTime,
    ) -> SystemTime {
        let time = self.in_order(read_at);
        // Also of a plain line: the format may change before it is written.
        self.label = Some((Arc::clone(source), origin, time));
        if !self.is_plain() {
            label(&mut self.form, source, origin, time);
        }
        time
    }

    /// The time of the next entry: not before the last one, unless the clock was set.
    fn in_order(&mut self, time: SystemTime) -> SystemTime {
        self.last = not_before(time, self.last);
        self.last
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

    /// Adds the entry of lines that belong together, without the last newline.
    pub(super) fn joined(&mut self, text: &[u8]) {
        if text.len() > LONG_LINE {
            self.long(text.to_vec(), false);
        } else {
            self.form.joined(text, &mut self.pending);
        }
        if self.long.is_some() || self.pending.len() >= BATCH {
            self.flush();
        }
    }

    /// Adds the entry of a line without a newline.
    pub(super) fn line(&mut self, line: &[u8]) {
        self.form.line(line, &mut self.pending);
    }

    /// Adds the entry of a long line; `continued` if the line continues in the next entry.
    pub(super) fn long(&mut self, text: Vec<u8>, continued: bool) {
        let (form, label) = (self.form.clone(), self.label.clone());
        self.long = Some(LongLine { form, label, text, progress: Progress::Nothing, continued });
    }

    /// Adds an entry of the supervisor about the log itself.
    pub(super) fn warn(&mut self, message: &str) {
        if let Some(log) = &self.log {
            return log.report(Level::Warn, message);
        }
        self.entry(SystemTime::now(), Level::Warn, None, None, message, &[]);
    }

    /// Adds an entry of the supervisor.
    pub(super) fn entry(
        &mut self,
        time: SystemTime,
        level: Level,
        job: Option<&str>,
        fields: Option<&Fields>,
        message: &str,
        output: &[String],
    ) {
        let writer = format::Writer::Supervisor(fields);
        let time = self.in_order(time);
        // The message about a timeout begins with the name of the job, as in 3.8.
        let is_named = self.format == Format::Default
            && fields.is_some_and(|fields| fields.event == LogEvent::Timeout)
            && job.is_some_and(|job| message.strip_prefix(job).is_some_and(|rest| rest.starts_with(' ')));
        let job = job.filter(|_| !is_named);
        self.own.label(&stamp(time), Labels { level, job, writer });
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
                let result = self.output.write(bytes);
                if let Some(log) = &self.log {
                    let (notice, lost) = self.output.take_notice();
                    log.log.lost.fetch_add(lost.lines, Ordering::Relaxed);
                    self.lost += lost;
                    if let Some((level, notice)) = notice {
                        log.report(level, &notice);
                    }
                }
                match result {
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
            let has_written = self.written > 0;
            self.pending.clear();
            self.written = 0;
            self.stall = None;
            // Not if everything was discarded.
            if has_written && let Some(since) = self.failing.take() {
                let message = format!("writing the log works again after {}s", since.elapsed().as_secs());
                // The pieces of a long line must stay together.
                if self.log.is_some() || self.long.as_ref().is_none_or(|long| !long.has_begun()) {
                    self.warn(&message);
                    continue;
                }
                write_stderr(&message);
            }
            if !self.long.as_mut().is_some_and(|long| long.next(&mut self.pending)) {
                self.long = None;
                return;
            }
        }
    }

    /// Handles an error of the output, which is permanent or retried. Reported once.
    fn fail(&mut self, error: &io::Error) {
        let (name, why) = (self.output.name(), describe(error));
        if self.output.is_gone(error) {
            self.gone = true;
            write_stderr(&format!("cannot write to {name}: {why}; dropping the log"));
            return;
        }
        if self.failing.is_none() {
            self.failing = Some(Instant::now());
            let message = format!("cannot write the log to {name}: {why}; retrying every second");
            match &self.log {
                None => write_stderr(&message),
                Some(log) => {
                    log.report(Level::Error, &format!("{message}; the job waits when its pipe is full"))
                }
            }
        }
        self.stall = Some(Stall::Failing(Instant::now() + RETRY));
    }

    /// The descriptor to wait for while the writer is blocked, and the longest wait.
    pub(super) fn wait_for(&self) -> (Option<BorrowedFd<'_>>, Option<Duration>) {
        match self.stall {
            None => (None, Some(Duration::ZERO)),
            Some(Stall::Full) => (self.output.fd(), None),
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
    pub(super) fn change(&mut self, output: LogSink, format: Format) {
        let before = self.output.file_id();
        self.output = output;
        self.set_format(format);
        self.continue_from(before);
    }

    /// Changes the format of the following entries.
    fn set_format(&mut self, format: Format) {
        let colour = format == Format::Text && self.output.has_colour();
        self.format = format;
        self.form.set_format(format, colour);
        self.form.clear_labels();
        self.own.set_format(format, colour);
    }

    /// Changes the file of a job, and the format.
    pub(super) fn change_file(&mut self, file: LogFile, format: Format) {
        if self.output.set_rotation(&file) {
            self.set_format(format);
        } else {
            self.change(LogSink::job_file(file), format);
        }
    }

    /// The name of the output in messages.
    pub(super) fn name(&self) -> &str {
        self.output.name()
    }

    /// Continues with a newly opened output. A half-written entry, also that of a long line, is written again
    /// completely if the file is a different one, and continued if it is the same. So no file begins with the rest of a
    /// line, which could look like an entry of another job (L3).
    fn continue_from(&mut self, before: Option<(u64, u64)>) {
        if before.is_none() || before != self.output.file_id() {
            match &mut self.long {
                Some(long) if long.has_begun() => {
                    let plain = self.log.is_some() && self.format == Format::Default;
                    long.restart(&self.form, plain);
                    self.pending.clear();
                    self.written = 0;
                }
                _ => {
                    let written = self.pending.get(..self.written).unwrap_or_default();
                    self.written = memchr::memrchr(b'\n', written).map_or(0, |end| end + 1);
                }
            }
            self.gone = false;
        }
        self.stall = None;
        self.flush();
    }

    /// Drops what is not written, except for the rest of an entry that has begun: the next one must not continue it.
    pub(super) fn discard(&mut self) -> Loss {
        let (written, rest) = self.pending.split_at(self.written);
        let has_begun = written.last().is_some_and(|last| *last != b'\n')
            || self.long.as_ref().is_some_and(LongLine::has_begun);
        if !has_begun {
            let lost = self.unwritten();
            self.pending.clear();
            (self.written, self.long, self.stall) = (0, None, None);
            return lost;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let lost = Loss::of(rest.get(end..).unwrap_or_default());
        self.pending.truncate(self.written + end);
        lost
    }

    /// What is not written.
    pub(super) fn unwritten(&self) -> Loss {
        let mut lost = Loss::of(self.pending.get(self.written..).unwrap_or_default());
        if let Some(long) = &self.long {
            lost.lines = if long.has_begun() { 1 } else { lost.lines + 1 };
            lost.bytes += long.unformatted().len() as u64;
        }
        lost
    }
}

/// The first time, unless the other one is a little later.
pub(super) fn not_before(time: SystemTime, other: SystemTime) -> SystemTime {
    match other.duration_since(time) {
        Ok(later) if later < MAX_SKEW => other,
        _ => time,
    }
}

impl LongLine {
    /// Returns true if the head is formatted.
    fn has_begun(&self) -> bool {
        !matches!(self.progress, Progress::Nothing)
    }

    /// Begins again, in the format of `form`.
    fn restart(&mut self, form: &EntryFormatter, plain: bool) {
        self.form = form.clone();
        if plain {
            self.form.clear_labels();
        } else if let Some((source, origin, read_at)) = &self.label {
            label(&mut self.form, source, *origin, *read_at);
        }
        self.progress = Progress::Nothing;
    }

    fn unformatted(&self) -> &[u8] {
        let done = match self.progress {
            Progress::Nothing => 0,
            Progress::Text(done) => done,
            Progress::Complete => self.text.len(),
        };
        self.text.get(done..).unwrap_or_default()
    }

    /// Formats the next part. Returns false if there is none.
    fn next(&mut self, out: &mut Vec<u8>) -> bool {
        let done = match self.progress {
            Progress::Nothing => {
                self.form.open(out);
                0
            }
            Progress::Text(done) => done,
            Progress::Complete => return false,
        };
        let rest = self.text.get(done..).unwrap_or_default();
        let mut end = rest.len();
        if end > LONG_LINE {
            // Back to the start of a UTF-8 character, at most three bytes away.
            let is_start = |at: &usize| rest.get(*at).is_some_and(|byte| byte & 0xc0 != 0x80);
            end = (LONG_LINE - 3..=LONG_LINE).rev().find(is_start).unwrap_or(LONG_LINE);
        }
        self.form.piece(rest.get(..end).unwrap_or_default(), out);
        self.progress = Progress::Text(done + end);
        if end == rest.len() {
            self.form.close(self.continued, out);
            self.progress = Progress::Complete;
        }
        true
    }
}

fn label(form: &mut EntryFormatter, source: &LogSource, origin: LineOrigin, time: SystemTime) {
    let LogSource { job, pid, check, hidden: _, logging: _, run: _ } = source;
    let writer = format::Writer::Process { pid: *pid, check: check.as_deref(), stream: origin.stream };
    form.label(&stamp(time), Labels { level: origin.level, job: Some(job), writer });
}

#[cfg(test)]
mod tests {
    use containerpilot_core::plan::JobLogging;

    use super::*;

    const STDOUT: LineOrigin = LineOrigin { stream: StreamName::Stdout, level: Level::Info };

    fn source() -> Arc<LogSource> {
        Arc::new(LogSource {
            job: "web".into(),
            pid: 7,
            check: None,
            hidden: None,
            logging: JobLogging::default(),
            run: None,
        })
    }

    #[test]
    fn l3_half_written_entry_continues_if_the_output_is_the_same_file() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut output = LogWriter::new(LogSink::shared(writer.into()).unwrap(), Format::Default);
        let line = vec![b'x'; 50_000];
        output.label(&source(), STDOUT, SystemTime::now());
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

    #[test]
    fn l3_half_written_long_line_begins_again_with_its_head_in_a_new_output() {
        let text: Vec<u8> = b"{\"job\":\"bank\"}\t".repeat(100_000);
        for (before, after) in [(Format::Json, Format::Json), (Format::Default, Format::Json)] {
            // Nothing, some and most of the line is in the old output when it changes.
            for reads in [0, 1, 20] {
                let (mut old, writer) = std::io::pipe().unwrap();
                let mut output = LogWriter::new(LogSink::shared(writer.into()).unwrap(), before);
                output.label(&source(), STDOUT, SystemTime::now());
                output.long(text.clone(), false);
                output.flush();
                let mut buffer = vec![0; 32 << 10];
                for _ in 0..reads {
                    std::io::Read::read_exact(&mut old, &mut buffer).unwrap();
                    output.retry();
                }
                assert!(output.is_blocked());
                let lost = output.unwritten();
                assert!(lost.lines == 1 && lost.bytes > 500_000, "{lost}");

                let (mut new, writer) = std::io::pipe().unwrap();
                let read = std::thread::spawn(move || {
                    let mut all = Vec::new();
                    std::io::Read::read_to_end(&mut new, &mut all).unwrap();
                    all
                });
                output.change(LogSink::shared(writer.into()).unwrap(), after);
                while output.is_blocked() {
                    output.retry();
                    std::thread::yield_now();
                }
                assert_eq!(output.unwritten(), Loss::default());
                drop(output);
                let entry: serde_json::Value = serde_json::from_slice(&read.join().unwrap()).unwrap();
                assert_eq!((&entry["job"], &entry["pid"]), (&"web".into(), &7.into()));
                assert_eq!(entry["msg"].as_str().unwrap().as_bytes(), text);
            }
        }
    }

    #[test]
    fn p4_times_are_put_in_order_unless_the_clock_was_set() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let later = |time, other| not_before(at(time), at(other));
        assert_eq!([later(5, 9), later(9, 5), later(5, 5_000)], [at(9), at(9), at(5)]);
    }
}
