//! A supervisor with a service, of whose process is known how often it was started.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::{As, Supervisor, until};

/// The job `web`: it writes down that it was started, and lives until it is asked to end. It is ill while the file
/// `ill` is there.
pub(crate) const WEB: &str = "name: 'web', port: 8080, interfaces: 'static:10.1.2.3',
    exec: ['sh', '-c', 'echo $$ >> @/web.pids; exec sleep 1000']";

/// The check that goes with it; `ttl` is to be said.
pub(crate) fn health(ttl: &str) -> String {
    format!("health: {{ exec: 'test ! -e @/ill', interval: '250ms', timeout: '20s', ttl: '{ttl}' }}")
}

/// A configuration with the job `web`, and more.
pub(crate) fn config(consul: &str, ttl: &str, more: &str) -> String {
    format!(
        "{{ consul: {consul}, stopTimeout: 20, control: {{ socket: '@/control' }}, jobs: [{{ {WEB}, {} }}], {more} }}",
        health(ttl)
    )
}

pub(crate) struct Pilot {
    pub(crate) run: Supervisor,
    began: Instant,
}

impl Pilot {
    pub(crate) fn start(config: &str) -> Self {
        Self { began: Instant::now(), run: Supervisor::start(As::Plain, config) }
    }

    pub(crate) fn behind(how: As, script: &str, config: &str) -> Self {
        Self { began: Instant::now(), run: Supervisor::behind(how, script, config) }
    }

    /// The processes that the job had.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.run.file("web.pids")).unwrap_or_default();
        text.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Waits until the job runs: whatever Consul does, that is soon.
    pub(crate) fn started(&self) {
        until("the job was not started", || !self.pids().is_empty());
        assert!(self.began.elapsed() < Duration::from_secs(20), "the job was delayed");
    }

    /// Asks something of it through its control socket; the whole answer.
    pub(crate) fn post(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.run.file("control")).unwrap();
        write!(stream, "POST {path} HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The job has run the whole time, in one process, and is stopped in time; the log.
    pub(crate) fn unharmed(self) -> String {
        // A check may pass before the process has come to write its number down.
        until("the job was not started", || !self.pids().is_empty());
        let pids = self.pids();
        assert_eq!(pids.len(), 1, "the job was started {} times", pids.len());
        // As PID 1's child it has another number here.
        if std::process::id() != 1 && self.run.pid() != 1 {
            let log = self.run.seen();
            assert!(!log.contains("web exited"), "{log}");
        }
        self.run.signal("-TERM");
        let asked = Instant::now();
        let (code, log) = self.run.end();
        assert_eq!(code, 0, "{log}");
        assert!(asked.elapsed() < Duration::from_secs(10), "it took {:?} to stop", asked.elapsed());
        assert_eq!(count(&log, "web exited on SIGTERM"), 1, "{log}");
        log
    }
}

/// How many lines have a text.
pub(crate) fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}
