//! The last lines of a job, kept for `logs` and for the message of a failed exit (L6).

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use containerpilot_api::timestamps::rfc3339;
use containerpilot_log_format::StreamName;

/// A client that follows the lines of a job. The log never waits for it.
pub(crate) trait TailReader: std::fmt::Debug + Send {
    /// Offers lines. Returns false if the client is too slow or has gone; it is dropped then, after the message
    /// `too_slow` if possible.
    fn offer(&mut self, lines: Bytes, too_slow: &'static str) -> bool;

    /// Returns true if the client has gone.
    fn is_closed(&self) -> bool;
}

/// How many bytes are kept for each job.
const KEPT: usize = 8 * 1024;
/// How many sections are kept for each job.
const KEPT_SECTIONS: usize = 512;
/// Lines that arrive within this time have the same time.
const RESOLUTION: Duration = Duration::from_millis(1);

/// The last complete lines of a job. Takes no memory until the job has written something.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Lines with their newlines; the first one may be cut off.
    bytes: Vec<u8>,
    /// Whether something was cut off at the front.
    cut: bool,
    sections: VecDeque<Section>,
    /// The readers, each with whether it gets the time of each line.
    readers: Vec<(bool, Box<dyn TailReader>)>,
    /// The lines that were written, by stream.
    counts: LineCounts,
}

/// Lines that one process wrote at one time. A run has many sections, which may be mixed with those of the next run: if
/// the log is slow, its last lines are kept after the first ones of the next run.
#[derive(Clone, Copy, Debug)]
struct Section {
    pid: u32,
    time: SystemTime,
    /// Where it starts.
    start: usize,
}

/// A kept line, and when it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) time: SystemTime,
    pub(crate) text: String,
}

impl Line {
    /// The line with its newline, and with its time in front on request.
    pub(crate) fn print(&self, times: bool) -> String {
        let Self { time, text } = self;
        if times { format!("{} {text}\n", rfc3339(*time)) } else { format!("{text}\n") }
    }
}

/// How many lines a job has written (T4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

const TOO_SLOW: &str = "containerpilot: this reader was too slow, lines are missing from here on\n";

impl Tail {
    /// Counts lines.
    pub(super) fn count(&mut self, stream: StreamName, lines: usize) {
        let count = match stream {
            StreamName::Stdout => &mut self.counts.stdout,
            StreamName::Stderr => &mut self.counts.stderr,
        };
        *count = count.saturating_add(lines as u64);
    }

    pub(super) fn counts(&self) -> LineCounts {
        self.counts
    }

    /// Adds complete lines of a process.
    pub(super) fn push(&mut self, pid: u32, time: SystemTime, lines: &[u8]) {
        self.send(time, lines);
        self.keep(pid, time, lines);
    }

    /// Sends the last lines to a reader, and then each new line. With `times`, an empty line follows the last lines.
    pub(super) fn follow(&mut self, lines: usize, times: bool, mut reader: Box<dyn TailReader>) {
        let all = self.lines();
        let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
        let mut text: String = last.iter().map(|line| line.print(times)).collect();
        if times {
            text.push('\n');
        }
        if text.is_empty() || reader.offer(text.into(), TOO_SLOW) {
            // A silent job does not notice readers that have gone, so they are removed here too.
            self.readers.retain(|(_, reader)| !reader.is_closed());
            self.readers.push((times, reader));
        }
    }

    /// Sends complete lines to the readers.
    fn send(&mut self, time: SystemTime, lines: &[u8]) {
        if self.readers.is_empty() {
            return;
        }
        let plain = Bytes::copy_from_slice(lines);
        let with_times = self.readers.iter().any(|(times, _)| *times).then(|| {
            let time = format!("{} ", rfc3339(time)).into_bytes();
            let lines = lines.split_inclusive(|&byte| byte == b'\n');
            Bytes::from(lines.flat_map(|line| [time.as_slice(), line]).collect::<Vec<_>>().concat())
        });
        self.readers.retain_mut(|(times, reader)| {
            let lines = with_times.as_ref().filter(|_| *times).unwrap_or(&plain);
            reader.offer(lines.clone(), TOO_SLOW)
        });
    }

    fn keep(&mut self, pid: u32, time: SystemTime, lines: &[u8]) {
        if lines.len() >= KEPT {
            self.cut |= !self.bytes.is_empty() || lines.len() > KEPT;
            self.bytes.clear();
            self.sections.clear();
        }
        let continues = |last: &Section| last.pid == pid && is_same_time(last.time, time);
        if !self.sections.back().is_some_and(continues) {
            self.sections.push_back(Section { pid, time, start: self.bytes.len() });
        }
        let last = lines.get(lines.len().saturating_sub(KEPT)..).unwrap_or_default();
        self.bytes.extend_from_slice(last);
        // Moved only at twice the size, so that short lines are cheap.
        if self.bytes.len() > 2 * KEPT {
            self.cut = true;
            self.drop_front(self.bytes.len() - KEPT);
        }
        if self.sections.len() > 2 * KEPT_SECTIONS
            && let Some(first) = self.sections.get(KEPT_SECTIONS)
        {
            // A section starts with a whole line.
            self.cut = false;
            self.drop_front(first.start);
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count);
        while self.sections.get(1).is_some_and(|next| next.start <= count) {
            self.sections.pop_front();
        }
        for section in &mut self.sections {
            section.start = section.start.saturating_sub(count);
        }
    }

    /// Adds one line without its newline.
    pub(super) fn push_line(&mut self, pid: u32, time: SystemTime, line: &[u8]) {
        if !self.readers.is_empty() {
            self.send(time, &[line, b"\n"].concat());
        }
        self.keep(pid, time, line.get(line.len().saturating_sub(KEPT)..).unwrap_or_default());
        self.keep(pid, time, b"\n");
    }

    /// The sections with their bytes.
    fn sections(&self) -> impl Iterator<Item = (Section, &[u8])> {
        let ends = self.sections.iter().skip(1).map(|next| next.start).chain([self.bytes.len()]);
        let sections = self.sections.iter().copied().zip(ends);
        sections.map(|(section, end)| (section, self.bytes.get(section.start..end).unwrap_or_default()))
    }

    /// All kept lines, the oldest first.
    pub(super) fn lines(&self) -> Vec<Line> {
        let line = |time, text| Line { time, text };
        let lines = self
            .sections()
            .flat_map(|(section, bytes)| split(bytes).into_iter().map(move |text| line(section.time, text)));
        let mut lines: Vec<Line> = lines.collect();
        // The first line may be cut off: left out, unless it is the only one.
        if self.cut && lines.len() > 1 {
            lines.remove(0);
        }
        lines
    }

    /// The last lines of one run, within the limits.
    pub(super) fn of_run(&self, pid: u32, lines: usize, bytes: usize) -> Vec<String> {
        let own = self.sections().filter(|(section, _)| section.pid == pid);
        let own = own.flat_map(|(_, bytes)| split(bytes));
        let mut last: VecDeque<String> = VecDeque::new();
        let mut size = 0;
        for line in own {
            size += line.len();
            last.push_back(line);
            while last.len() > lines || size > bytes {
                let Some(oldest) = last.pop_front() else { break };
                size = size.saturating_sub(oldest.len());
            }
        }
        last.into()
    }
}

/// Returns true if a time is at most a moment after another.
fn is_same_time(time: SystemTime, later: SystemTime) -> bool {
    later.duration_since(time).is_ok_and(|passed| passed < RESOLUTION)
}

fn split(text: &[u8]) -> Vec<String> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    impl PartialEq<str> for Line {
        fn eq(&self, text: &str) -> bool {
            self.text == text
        }
    }

    impl PartialEq<&str> for Line {
        fn eq(&self, text: &&str) -> bool {
            self.text == *text
        }
    }

    fn texts(tail: &Tail) -> Vec<String> {
        tail.lines().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn l6_last_lines_are_kept_within_bounds() {
        let mut tail = Tail::default();
        assert!(tail.lines().is_empty());
        for nth in 0..100_000 {
            tail.push(nth / 1_000, at(0), format!("line {nth}\n").as_bytes());
        }
        let lines = texts(&tail);
        assert_eq!(lines.last().unwrap(), "line 99999");
        assert!(lines.iter().all(|line| line.starts_with("line ")), "no line is cut off at its start");
        assert!(lines.len() > 500 && tail.bytes.capacity() <= 4 * KEPT && tail.sections.len() < 10);
        assert_eq!(tail.of_run(99, 2, 100), ["line 99998", "line 99999"]);
    }

    #[test]
    fn x11_every_line_has_its_time_within_bounds() {
        let mut tail = Tail::default();
        for nth in 0..100_000 {
            tail.push(1, at(nth * 2), format!("{nth}\n").as_bytes());
        }
        let lines = tail.lines();
        assert!(lines.len() >= KEPT_SECTIONS && tail.sections.len() <= 2 * KEPT_SECTIONS);
        assert!(lines.iter().all(|line| line.time == at(line.text.parse::<u64>().unwrap() * 2)), "{lines:?}");
        assert_eq!(lines.last().unwrap().print(true), "1970-01-01T00:03:19.998000000Z 99999\n");
        assert_eq!(lines.last().unwrap().print(false), "99999\n");
    }

    #[test]
    fn x2_reader_gets_the_last_lines_and_then_new_ones() {
        let mut tail = Tail::default();
        tail.push(1, at(0), b"one\ntwo\n");
        let (feed, body) = crate::net::server::Body::stream();
        tail.follow(1, false, Box::new(feed));
        tail.push(1, at(0), b"three\n");
        tail.push_line(1, at(0), &[b'x'; 3 * KEPT]);
        drop(tail);
        let text = String::from_utf8(body.read_all()).unwrap();
        assert_eq!(text, format!("two\nthree\n{}\n", "x".repeat(3 * KEPT)));
    }

    #[test]
    fn x11_reader_gets_times_and_the_end_of_the_kept_lines() {
        let mut tail = Tail::default();
        let (feed, first) = crate::net::server::Body::stream();
        tail.follow(9, true, Box::new(feed));
        tail.push(1, at(0), b"one\n\n");
        let (feed, second) = crate::net::server::Body::stream();
        tail.follow(9, true, Box::new(feed));
        tail.push_line(1, at(1), b"two");
        drop(tail);
        let (time, later) = ("1970-01-01T00:00:00.000000000Z", "1970-01-01T00:00:00.001000000Z");
        let first = String::from_utf8(first.read_all()).unwrap();
        assert_eq!(first, format!("\n{time} one\n{time} \n{later} two\n"));
        let second = String::from_utf8(second.read_all()).unwrap();
        assert_eq!(second, format!("{time} one\n{time} \n\n{later} two\n"));
    }

    #[test]
    fn l6_batch_larger_than_the_kept_size() {
        let mut tail = Tail::default();
        tail.push(1, at(0), b"first\n");
        tail.push(2, at(0), "0123456789\n".repeat(10_000).as_bytes());
        assert!(texts(&tail).iter().all(|line| line == "0123456789"));
        assert!(tail.of_run(1, 5, 1000).is_empty());
        tail.push_line(3, at(0), &vec![b'x'; 1 << 20]);
        assert_eq!(tail.lines().len(), 1);
        assert!(tail.bytes.len() <= 2 * KEPT);
    }

    #[test]
    fn l6_run_shows_only_its_own_lines() {
        let mut tail = Tail::default();
        tail.push(1, at(0), b"one\ntwo\n");
        assert!(tail.of_run(2, 5, 1000).is_empty());
        tail.push(2, at(3), b"three\n\n");
        tail.push_line(1, at(5), b"late");
        tail.push_line(2, at(7), b"four");
        assert_eq!(tail.of_run(2, 5, 1000), ["three", "", "four"]);
        assert_eq!(tail.of_run(2, 2, 1000), ["", "four"]);
        assert_eq!(tail.of_run(2, 5, 5), ["", "four"]);
        assert_eq!(tail.of_run(1, 5, 1000), ["one", "two", "late"]);
        assert_eq!(texts(&tail), ["one", "two", "three", "", "late", "four"]);
    }
}
