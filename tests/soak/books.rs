//! The books: what was written and what is in the log, which runs have ended and which events told of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// How often something of a job was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// Starts that failed: an end without a beginning.
    pub(crate) failed: u64,
}

/// What the log has said.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The number of the last line of each stream, and how much of its text was there.
    streams: BTreeMap<String, Stream>,
    pub(crate) runs: BTreeMap<String, Runs>,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// What must never be said, and lines that are not what was written.
    pub(crate) wrong: Vec<String>,
    /// Where all entries go, for whoever looks into a failure.
    pub(crate) copy: Option<fs::File>,
}

#[derive(Debug, Default)]
struct Stream {
    lines: u64,
    /// Whether its last line was cut short, after which there must be none.
    cut: bool,
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
            return self.written(token, &number, &length, payload, line);
        }
        self.entry(&String::from_utf8_lossy(line));
    }

    fn written(&mut self, token: &str, number: &str, length: &str, payload: usize, line: &[u8]) {
        self.lines += 1;
        self.bytes += u64::try_from(line.len()).unwrap_or_default();
        let stream = self.streams.entry(token.to_owned()).or_default();
        let whole = length.parse() == Ok(payload);
        if stream.cut {
            self.wrong.push(format!("{token} goes on after a line that was cut"));
        }
        match number.parse::<u64>() {
            Ok(number) if number == stream.lines + 1 => stream.lines = number,
            // The head of a line that was cut.
            _ if !whole => {}
            _ => self.wrong.push(format!("{token}: line {number} follows line {}", stream.lines)),
        }
        if !whole {
            stream.cut = true;
            stream.lines = stream.lines.saturating_sub(u64::from(number.parse() == Ok(stream.lines)));
        }
    }

    fn entry(&mut self, line: &str) {
        self.entries += 1;
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
        let Some((job, said)) = text.split_once(' ') else { return };
        let runs = self.runs.entry(job.to_owned()).or_default();
        if said.starts_with("started, pid ") {
            runs.started += 1;
        } else if said.starts_with("exited with code ") || said.starts_with("was ended by signal ") {
            runs.ended += 1;
        } else if said.starts_with("could not be started") {
            runs.failed += 1;
        }
    }

    /// Compares what is in the log with what the writers have recorded, of all runs; how many there were.
    pub(crate) fn settle(&mut self, folder: &Path) -> usize {
        let mut runs = 0;
        for entry in fs::read_dir(folder.join("runs")).into_iter().flatten().flatten() {
            let token = entry.file_name().to_string_lossy().into_owned();
            let record = fs::read_to_string(entry.path()).unwrap_or_default();
            let recorded: Vec<u64> =
                record.split_whitespace().filter_map(|count| count.parse().ok()).collect();
            runs += 1;
            // Killed before it had a record.
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

/// Reads the log to its end. `frozen` is how many milliseconds nobody is to read it.
pub(crate) fn keep_log(output: impl Read, log: &Mutex<Log>, frozen: &AtomicU64) {
    let mut reader = BufReader::with_capacity(1 << 18, output);
    let mut line = Vec::new();
    loop {
        let nap = frozen.swap(0, Ordering::SeqCst);
        if nap > 0 {
            std::thread::sleep(Duration::from_millis(nap));
        }
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => log.lock().unwrap().line(line.strip_suffix(b"\n").unwrap_or(&line)),
        }
    }
}

/// What the stream of events has told.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) count: u64,
    last: u64,
    /// Runs of each job that have ended.
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
        // What follows from an exit by itself names its cause; a job that became unhealthy because its process went has one.
        *self.codes.entry(code).or_default() += 1;
    }
}

/// Follows the events, again and again if need be, until the end of the world.
pub(crate) fn keep_events(socket: &PathBuf, events: &Arc<Mutex<Events>>, over: &AtomicBool) {
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
