//! A supervisor with the job `web`, whose starts are counted.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::config::Config;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// The keys of the job `web`. It appends its pid to `web.pids` and runs until SIGTERM. Its check fails while the file `ill` exists.
pub(crate) const WEB: &str = "port: 8080, interfaces: 'static:10.1.2.3',
    exec: ['sh', '-c', 'echo $$ >> @/web.pids; exec sleep 1000']";

/// The check of the job `web`.
pub(crate) fn health(ttl: &str) -> String {
    format!("health: {{ exec: 'test ! -e @/ill', interval: '250ms', timeout: '20s', ttl: '{ttl}' }}")
}

/// A configuration without jobs.
pub(crate) fn settings() -> Config {
    Config::new().keys("stopTimeout: 20, control: { socket: '@/control' }")
}

/// A configuration with the job `web`.
pub(crate) fn config(ttl: &str) -> Config {
    settings().job("web", format!("{WEB}, {}", health(ttl)))
}

pub(crate) struct Pilot {
    pub(crate) run: Supervisor,
    began: Instant,
}

impl Pilot {
    pub(crate) fn start(config: &str) -> Self {
        Self { began: Instant::now(), run: Supervisor::start(Mode::Plain, config) }
    }

    pub(crate) fn with_setup(mode: Mode, script: &str, config: &str) -> Self {
        Self { began: Instant::now(), run: Supervisor::with_setup(mode, script, config) }
    }

    /// The pids of all runs of the job.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.run.file("web.pids")).unwrap_or_default();
        text.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Waits until the job runs. Consul must not delay that.
    pub(crate) fn wait_for_job(&self) {
        wait_until("the job is started", || !self.pids().is_empty());
        assert!(self.began.elapsed() < Duration::from_secs(40), "the job was delayed");
    }

    /// Sends a POST request to the control socket; returns the whole response.
    pub(crate) fn post(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.run.file("control")).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        write!(stream, "POST {path} HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Stops the supervisor and requires that the job ran in one process all the time; returns the log.
    pub(crate) fn assert_unharmed(self) -> String {
        // A check may pass before the process has written its pid.
        wait_until("the job is started", || !self.pids().is_empty());
        let pids = self.pids();
        assert_eq!(pids.len(), 1, "the job was started {} times", pids.len());
        // In a PID namespace the job has another pid here.
        if std::process::id() != 1 && self.run.pid() != 1 {
            let log = self.run.log_so_far();
            assert!(!log.contains("web exited"));
        }
        self.run.signal("-TERM");
        let stopping = Instant::now();
        let (code, log) = self.run.wait();
        assert_eq!(code, 0);
        assert!(stopping.elapsed() < Duration::from_secs(30), "it took {:?} to stop", stopping.elapsed());
        assert_eq!(count(&log, "web exited on SIGTERM"), 1);
        log
    }
}

/// The number of lines that contain `text`.
pub(crate) fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}
