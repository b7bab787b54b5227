//! The last lines of a job, kept for `logs` and for the message of a failed exit (L6).

use std::collections::VecDeque;

use bytes::Bytes;

/// A client that follows the lines of a job. The log never waits for it.
pub(crate) trait Reader: std::fmt::Debug + Send {
    /// Offers lines. Returns false if the client is too slow or has gone; it is dropped then, after the message `too_slow` if
    /// possible.
    fn offer(&mut self, lines: Bytes, too_slow: &'static str) -> bool;

    /// Returns true if the client has gone.
    fn is_closed(&self) -> bool;
}

/// How many bytes are kept for each job.
const KEPT: usize = 8 * 1024;

/// The last complete lines of a job. Takes no memory until the job has written something.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Lines with their newlines; the first one may be cut off.
    bytes: Vec<u8>,
    /// Whether something was cut off at the front.
    cut: bool,
    /// The process of each section of lines, and where it starts. A run may have several sections: if the log is slow, its last
    /// lines are kept after the first ones of the next run.
    runs: VecDeque<(u32, usize)>,
    readers: Vec<Box<dyn Reader>>,
}

const TOO_SLOW: &str = "containerpilot: this reader was too slow, lines are missing from here on\n";

impl Tail {
    /// Adds complete lines of a process.
    pub(super) fn push(&mut self, pid: u32, lines: &[u8]) {
        if !self.readers.is_empty() {
            self.send(Bytes::copy_from_slice(lines));
        }
        self.keep(pid, lines);
    }

    /// Sends the last lines to a reader, and then each new line.
    pub(super) fn follow(&mut self, lines: usize, mut reader: Box<dyn Reader>) {
        let all = self.lines();
        let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
        let text: String = last.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        if text.is_empty() || reader.offer(text.into(), TOO_SLOW) {
            // A silent job does not notice readers that have gone, so they are removed here too.
            self.readers.retain(|reader| !reader.is_closed());
            self.readers.push(reader);
        }
    }

    fn send(&mut self, lines: Bytes) {
        self.readers.retain_mut(|reader| reader.offer(lines.clone(), TOO_SLOW));
    }

    fn keep(&mut self, pid: u32, lines: &[u8]) {
        if lines.len() >= KEPT {
            self.cut |= !self.bytes.is_empty() || lines.len() > KEPT;
            self.bytes.clear();
            self.runs.clear();
        }
        if self.runs.back().is_none_or(|&(last, _)| last != pid) {
            self.runs.push_back((pid, self.bytes.len()));
        }
        let last = lines.get(lines.len().saturating_sub(KEPT)..).unwrap_or_default();
        self.bytes.extend_from_slice(last);
        // Moved only at twice the size, so that short lines are cheap.
        if self.bytes.len() > 2 * KEPT {
            let excess = self.bytes.len() - KEPT;
            self.bytes.drain(..excess);
            self.cut = true;
            while self.runs.get(1).is_some_and(|&(_, next)| next <= excess) {
                self.runs.pop_front();
            }
            for (_, start) in &mut self.runs {
                *start = start.saturating_sub(excess);
            }
        }
    }

    /// Adds one line without its newline.
    pub(super) fn push_line(&mut self, pid: u32, line: &[u8]) {
        if !self.readers.is_empty() {
            self.send([line, b"\n"].concat().into());
        }
        self.keep(pid, line.get(line.len().saturating_sub(KEPT)..).unwrap_or_default());
        self.keep(pid, b"\n");
    }

    /// All kept lines, the oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = split(&self.bytes);
        // The first line may be cut off: left out, unless it is the only one.
        if self.cut && lines.len() > 1 {
            lines.remove(0);
        }
        lines
    }

    /// The last lines of one run, within the limits.
    pub(super) fn of_run(&self, pid: u32, lines: usize, bytes: usize) -> Vec<String> {
        let ends = self.runs.iter().skip(1).map(|&(_, start)| start).chain([self.bytes.len()]);
        let own = self.runs.iter().zip(ends).filter(|((run, _), _)| *run == pid);
        let own = own.flat_map(|(&(_, start), end)| split(self.bytes.get(start..end).unwrap_or_default()));
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

fn split(text: &[u8]) -> Vec<String> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l6_last_lines_are_kept_within_bounds() {
        let mut tail = Tail::default();
        assert!(tail.lines().is_empty());
        for nth in 0..100_000 {
            tail.push(nth / 1_000, format!("line {nth}\n").as_bytes());
        }
        let lines = tail.lines();
        assert_eq!(lines.last().unwrap(), "line 99999");
        assert!(lines.iter().all(|line| line.starts_with("line ")), "no line is cut off at its start");
        assert!(lines.len() > 500 && tail.bytes.capacity() <= 4 * KEPT && tail.runs.len() < 10);
        assert_eq!(tail.of_run(99, 2, 100), ["line 99998", "line 99999"]);
    }

    #[test]
    fn x2_reader_gets_the_last_lines_and_then_new_ones() {
        let mut tail = Tail::default();
        tail.push(1, b"one\ntwo\n");
        let (feed, body) = crate::net::server::Body::stream();
        tail.follow(1, Box::new(feed));
        tail.push(1, b"three\n");
        tail.push_line(1, &[b'x'; 3 * KEPT]);
        drop(tail);
        let text = String::from_utf8(body.read_all()).unwrap();
        assert_eq!(text, format!("two\nthree\n{}\n", "x".repeat(3 * KEPT)));
    }

    #[test]
    fn l6_batch_larger_than_the_kept_size() {
        let mut tail = Tail::default();
        tail.push(1, b"first\n");
        tail.push(2, "0123456789\n".repeat(10_000).as_bytes());
        assert!(tail.lines().iter().all(|line| line == "0123456789"));
        assert!(tail.of_run(1, 5, 1000).is_empty());
        tail.push_line(3, &vec![b'x'; 1 << 20]);
        assert_eq!(tail.lines().len(), 1);
        assert!(tail.bytes.len() <= 2 * KEPT);
    }

    #[test]
    fn l6_run_shows_only_its_own_lines() {
        let mut tail = Tail::default();
        tail.push(1, b"one\ntwo\n");
        assert!(tail.of_run(2, 5, 1000).is_empty());
        tail.push(2, b"three\n\n");
        tail.push_line(1, b"late");
        tail.push_line(2, b"four");
        assert_eq!(tail.of_run(2, 5, 1000), ["three", "", "four"]);
        assert_eq!(tail.of_run(2, 2, 1000), ["", "four"]);
        assert_eq!(tail.of_run(2, 5, 5), ["", "four"]);
        assert_eq!(tail.of_run(1, 5, 1000), ["one", "two", "late"]);
        assert_eq!(tail.lines(), ["one", "two", "three", "", "late", "four"]);
    }
}
