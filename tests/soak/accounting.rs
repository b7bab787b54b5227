//! Reads the log and the event stream, and counts lines, runs and events to compare them.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// How many entries are kept to be printed if the test fails.
const RECENT: usize = 2_000;

/// The runs of a job, counted in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) started: u64,
    pub(crate) exited: u64,
    /// Failed starts, which count neither as started nor as exited.
    pub(crate) failed: u64,
}

/// The content of the log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// By stream of a run.
    streams: BTreeMap<String, Stream>,
    pub(crate) runs: BTreeMap<String, Runs>,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// The last entries of the supervisor.
    pub(crate) recent: VecDeque<String>,
    /// Entries that must never be logged, and lines that differ from what was written.
    pub(crate) wrong: Vec<String>,
    /// `SOAK_LOG`: a copy of all entries of the supervisor.
    pub(crate) copy: Option<fs::File>,
}

#[derive(Debug, Default)]
struct Stream {
    /// The number of the last line.
    lines: u64,
    /// Whether its last line was incomplete, after which no line may follow.
    truncated: bool,
}

impl Log {
    fn line(&mut self, line: &[u8]) {
        let mut parts = line.splitn(7, |byte| *byte == b' ');
        let mut word =
            || parts.next().map(|word| String::from_utf8_lossy(word).into_owned()).unwrap_or_default();
        let (_, _, _, token) = (word(), word(), word(), word());
        if let Some(token) = token.strip_prefix('~') {
            let (number, length) = (word(), word());
            let payload = parts.next().unwrap_or_default().len();
            return self.output_line(token, &number, &length, payload, line);
        }
        self.entry(&String::from_utf8_lossy(line));
    }

    fn output_line(&mut self, token: &str, number: &str, length: &str, payload: usize, line: &[u8]) {
        self.lines += 1;
        self.bytes += u64::try_from(line.len()).unwrap_or_default();
        let stream = self.streams.entry(token.to_owned()).or_default();
        let complete = length.parse() == Ok(payload);
        if stream.truncated {
            self.wrong.push(format!("{token} continues after an incomplete line"));
        }
        match number.parse::<u64>() {
            Ok(number) if number == stream.lines + 1 => stream.lines = number,
            // A line that is cut off inside its number.
            _ if !complete => {}
            _ => self.wrong.push(format!("{token}: line {number} follows line {}", stream.lines)),
        }
        if !complete {
            stream.truncated = true;
            stream.lines = stream.lines.saturating_sub(u64::from(number.parse() == Ok(stream.lines)));
        }
    }

    fn entry(&mut self, line: &str) {
        self.entries += 1;
        self.recent.push_back(line.to_owned());
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        if let Some(copy) = &mut self.copy {
            let _ = writeln!(copy, "{line}");
        }
        for word in [
            "panicked",
            "internal error",
            "a fault of",
            "a fault in",
            "a bug",
            "were dropped",
            "given up",
            "is lost",
            "be followed",
        ] {
            if line.contains(word) {
                self.wrong.push(line.to_owned());
            }
        }
        let Some((_, text)) = line.split_once(' ') else { return };
        let Some((job, message)) = text.split_once(' ') else { return };
        let runs = self.runs.entry(job.to_owned()).or_default();
        if message.starts_with("started (pid ") {
            runs.started += 1;
        } else if message.starts_with("exited with code ") || message.starts_with("exited on ") {
            runs.exited += 1;
        } else if message.starts_with("failed to start") {
            runs.failed += 1;
        }
    }

    /// Compares the log with the records of all writers; returns the number of runs.
    pub(crate) fn compare_with_records(&mut self, folder: &Path) -> usize {
        let mut runs = 0;
        for entry in fs::read_dir(folder.join("runs")).into_iter().flatten().flatten() {
            let token = entry.file_name().to_string_lossy().into_owned();
            let record = fs::read_to_string(entry.path()).unwrap_or_default();
            let recorded: Vec<u64> =
                record.split_whitespace().filter_map(|count| count.parse().ok()).collect();
            runs += 1;
            // It was killed before it wrote its record.
            let [out, err] = recorded.as_slice() else { continue };
            for (stream, recorded) in [('o', *out), ('e', *err)] {
                let logged = self.streams.get(&format!("{token}{stream}")).map_or(0, |stream| stream.lines);
                if logged != recorded && logged != recorded + 1 {
                    self.wrong.push(format!(
                        "{token}{stream}: {recorded} lines were written, {logged} are in the log"
                    ));
                }
            }
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("broken-") {
                self.wrong.push(format!("a writer's output was closed: {}", entry.file_name().display()));
            }
        }
        runs
    }
}

/// Reads the log to its end. `pause` is how many milliseconds to stop reading.
pub(crate) fn read_log(output: impl Read, log: &Mutex<Log>, pause: &AtomicU64) {
    let mut reader = BufReader::with_capacity(1 << 18, output);
    let mut line = Vec::new();
    loop {
        let pause = pause.swap(0, Ordering::SeqCst);
        if pause > 0 {
            std::thread::sleep(Duration::from_millis(pause));
        }
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => log.lock().unwrap().line(line.strip_suffix(b"\n").unwrap_or(&line)),
        }
    }
}

/// The content of the event stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) count: u64,
    last: u64,
    /// The exit events of each job.
    pub(crate) exits: BTreeMap<String, u64>,
    pub(crate) codes: BTreeMap<String, u64>,
    pub(crate) caused: u64,
    pub(crate) connections: u64,
    pub(crate) wrong: Vec<String>,
}

impl Events {
    fn event(&mut self, event: &Value) {
        let id = event["id"].as_u64().unwrap_or_default();
        if id <= self.last && self.count > 0 {
            self.wrong.push(format!("event {id} came after {}", self.last));
        }
        if self.count > 0 && id != self.last + 1 {
            self.wrong.push(format!("event {id} follows event {}", self.last));
        }
        self.count += 1;
        self.last = id;
        match event["cause"].as_u64() {
            Some(cause) if cause >= id => self.wrong.push(format!("event {id} has a later cause: {event}")),
            Some(_) => self.caused += 1,
            None => {}
        }
        let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let code = word("code");
        if code.starts_with("exit") && !event["exit"].is_null()
            || code == "exitFailed"
            || code == "exitSuccess"
        {
            *self.exits.entry(word("source")).or_default() += 1;
        }
        *self.codes.entry(code).or_default() += 1;
    }
}

/// Reads the event stream, and reconnects until `over` is set.
pub(crate) fn read_events(socket: &PathBuf, events: &Arc<Mutex<Events>>, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let Ok(mut stream) = UnixStream::connect(socket) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let last = {
            let mut events = events.lock().unwrap();
            events.connections += 1;
            (events.count > 0).then_some(events.last)
        };
        let since = last.map(|last| format!("?since={last}")).unwrap_or_default();
        let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
        if write!(stream, "GET /v3/events{since} HTTP/1.0\r\n\r\n").is_err() {
            continue;
        }
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            if let Some(event) = line.strip_prefix("data: ")
                && let Ok(event @ Value::Object(_)) = serde_json::from_str(event)
                && event["id"].is_u64()
            {
                events.lock().unwrap().event(&event);
            }
        }
    }
}
