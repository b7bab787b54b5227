//! P14: many starts at once, with the real binary.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::config::Config;
use crate::support::supervisor::{Mode, Supervisor, folder, wait_until};

/// One-time jobs `j0` to `jN`, each of which writes a line.
fn jobs(count: usize) -> Config {
    (0..count).fold(Config::new(), |config, nth| {
        config.job(format!("j{nth}"), format!("exec: 'echo line {nth} of j{nth}'"))
    })
}

/// Returns true if every job has a start, its line and an exit in the log.
fn assert_complete(log: &str, count: usize) {
    for text in ["started (pid ", " of j", "exited with code 0"] {
        assert_eq!(log.lines().filter(|line| line.contains(text)).count(), count, "`{text}`");
    }
    assert!(!log.contains("failed to start"));
}

/// Requests a path of the control socket. Returns the response, and how long it took.
fn get(socket: &Path, path: &str) -> Option<(String, Duration)> {
    let began = Instant::now();
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    (!response.is_empty()).then_some((response, began.elapsed()))
}

#[test]
fn p14_every_start_line_and_exit_of_a_storm_is_in_the_log_and_requests_are_answered() {
    const JOBS: usize = 1_000;
    let config = jobs(JOBS).job("last", "exec: 'sleep 1000'");
    let mut run = Supervisor::start(Mode::Plain, &config);
    let socket = run.file("socket");
    wait_until("the control socket listens", || get(&socket, "/v3/ping").is_some());
    let (mut answers, mut slowest, mut waited) = (0, Duration::ZERO, false);
    wait_until("all jobs are complete", || {
        let (status, took) = get(&socket, "/v3/status").unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        answers += 1;
        slowest = slowest.max(took);
        waited |= status.contains("\"queued\":true");
        status.matches("\"outcome\":\"complete\"").count() == JOBS
    });
    // The rule says one second. This is a build for tests, on a machine that runs other tests.
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert!(waited || answers < 5, "no start has waited: {answers} answers");
    run.wait_for_lines("exited with code 0", JOBS);
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    let log: Vec<&str> = log.lines().filter(|line| !line.contains("last")).collect();
    assert_complete(&log.join("\n"), JOBS);
}

#[test]
fn p14_s4_a_shutdown_during_a_storm_starts_nothing_more() {
    const JOBS: usize = 1_000;
    let mut run = Supervisor::start(Mode::Plain, &jobs(JOBS));
    run.wait_for_line("started (pid ");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    let stopped = log.lines().position(|line| line.contains("received SIGTERM"));
    let after = log.lines().skip(stopped.unwrap()).filter(|line| line.contains("started (pid ")).count();
    assert!(after <= 64, "{after} were started after SIGTERM");
}

/// A cgroup with one percent of a processor, removed at the end of the test.
struct SlowCgroup(PathBuf);

impl SlowCgroup {
    /// Fails with the reason why there is none.
    fn new() -> Result<Self, String> {
        let name = folder().file_name().unwrap().to_owned();
        let (root, limits): (_, &[(&str, &str)]) = if Path::new("/sys/fs/cgroup/cpu").is_dir() {
            let limits = &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "1000")];
            (Path::new("/sys/fs/cgroup/cpu"), limits)
        } else {
            (Path::new("/sys/fs/cgroup"), &[("cpu.max", "1000 100000")])
        };
        let cgroup = Self(root.join(name));
        fs::create_dir(&cgroup.0).map_err(|error| format!("{}: {error}", cgroup.0.display()))?;
        for (file, value) in limits {
            let file = cgroup.0.join(file);
            fs::write(&file, value).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(cgroup)
    }
}

impl Drop for SlowCgroup {
    fn drop(&mut self) {
        // The last process may take a moment to leave it.
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.0.exists() && fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

#[test]
fn p14_with_one_percent_of_a_processor_fifty_jobs_start() {
    const JOBS: usize = 50;
    let cgroup = match SlowCgroup::new() {
        Ok(cgroup) => cgroup,
        Err(why) => return println!("skipped: no cgroup with one percent of a processor: {why}"),
    };
    let config = jobs(JOBS).job("last", "exec: 'sleep 1000'");
    let enter = format!("echo $$ > {}/cgroup.procs", cgroup.0.display());
    let mut run = Supervisor::with_setup(Mode::Plain, &enter, &config);
    run.wait_for_lines("exited with code 0", JOBS);
    // What remains need not be slow.
    let limit =
        if cgroup.0.join("cpu.max").exists() { ("cpu.max", "max") } else { ("cpu.cfs_quota_us", "-1") };
    fs::write(cgroup.0.join(limit.0), limit.1).unwrap();
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    let log: Vec<&str> = log.lines().filter(|line| !line.contains("last")).collect();
    assert_complete(&log.join("\n"), JOBS);
}
