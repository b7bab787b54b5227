//! The scenario in which one call fails, and the rules that must hold afterwards.
//!
//! It uses most features: a setup job and one that depends on it, an advertised and watched service with three kinds of
//! checks, a periodic job, a log file, the control socket, telemetry, a reload, maintenance, log rotation and a shutdown.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fake_consul::FakeConsul;
use crate::support::deadline::{InTime, holds_within};
use crate::support::delegated::Delegated;
use crate::tracer::{Counts, Fault, RunState, run};

/// The longest wait for any single step.
const TIMEOUT: Duration = Duration::from_secs(40);
/// The longest wait for a step after the supervisor has reported the error.
const TIMEOUT_AFTER_REPORT: Duration = Duration::from_secs(3);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The result of a scenario that violated no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Every step succeeded, and no error was reported.
    Unharmed,
    /// It ran until SIGTERM, and the error was reported.
    Reported,
    /// It exited by itself with a message.
    Exited,
    /// The call was not made.
    NotReached,
}

struct Scenario {
    folder: PathBuf,
    consul: FakeConsul,
    telemetry_ip: String,
    state: Arc<RunState>,
    fault: Option<Fault>,
    /// The steps that did not succeed.
    missing: Vec<String>,
}

/// Runs the scenario, optionally with a fault; returns its outcome, or the rules that it violated, and the calls made.
pub(crate) fn run_scenario(fault: Option<&Fault>) -> (Result<Outcome, String>, Counts) {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("containerpilot-faults-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let [.., upper, lower] = number.to_be_bytes();
    let telemetry_ip = format!("127.{}.{}.{}", 1 + (high ^ low) % 60, 1 + upper, 1 + lower % 250);
    let mut scenario = Scenario {
        consul: FakeConsul::start(),
        state: Arc::default(),
        fault: fault.cloned(),
        missing: Vec::new(),
        folder,
        telemetry_ip,
    };
    let (found, counts) = scenario.run();
    if found.is_ok() {
        let _ = fs::remove_dir_all(&scenario.folder);
    }
    (found, counts)
}

/// A static debug build: the system calls of a dynamic loader are not the supervisor's.
fn static_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // CARGO_TARGET_TMPDIR is `tmp` in the target folder.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let built = Command::new("scripts/static")
            .arg("--debug")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_TARGET_DIR", target)
            .stderr(Stdio::inherit())
            .output_in_time()
            .unwrap();
        assert!(built.status.success(), "the static build failed");
        PathBuf::from(String::from_utf8(built.stdout).unwrap().trim_end())
    })
}

impl Scenario {
    fn run(&mut self) -> (Result<Outcome, String>, Counts) {
        self.configure("");
        let mut command = Command::new("sh");
        // Where a cgroup can be made, the calls for cgroups fail, too.
        let cgroup = Delegated::new();
        let enter = cgroup.as_ref().map(Delegated::enter).unwrap_or_default();
        command
            .args(["-c", &format!("{enter}\nread go; exec \"$@\""), "sh"])
            .arg(static_binary())
            .arg("-config");
        command
            .arg(self.folder.join("config.json5"))
            .env_remove("CONTAINERPILOT")
            .env("FAULTS_SCENARIO", &self.folder);
        command.stdout(Stdio::null()).stderr(fs::File::create(self.folder.join("stderr")).unwrap());
        let (state, fault) = (Arc::clone(&self.state), self.fault.clone());
        let tracer = std::thread::spawn(move || run(&mut command, fault.as_ref(), &state));
        self.drive();
        let hung = self.stop();
        let counts = tracer.join().unwrap();
        let remaining = self.kill_remaining();
        (self.judge(hung, &remaining), counts)
    }

    /// Writes the configuration file, with additional jobs.
    fn configure(&self, more: &str) {
        let port = self.consul.address.rsplit_once(':').unwrap().1;
        // A job records its pid after it has written its lines.
        let job = |name: &str, lines: u32, then: &str| {
            format!(
                "name: '{name}', exec: ['sh', '-c', 'for i in $(seq {lines}); do echo {name}-$$-$i; done; echo $$ >> @/{name}.wrote{then}']"
            )
        };
        let config = format!(
            "{{ consul: '{consul}', stopTimeout: '3s', control: {{ socket: '@/socket' }}, logging: {{ output: '@/log' }},
                telemetry: {{ port: 9090, interfaces: 'static:{telemetry_ip}' }},
                watches: [{{ name: 'web', interval: 5 }}],
                jobs: [
                    {{ {setup} }},
                    {{ {after}, when: {{ source: 'setup', once: 'exitSuccess' }} }},
                    {{ {web}, port: 8080, interfaces: 'static:127.0.0.1', restarts: 'unlimited', health: [
                        {{ exec: 'true', interval: '500ms', timeout: '20s', ttl: 60 }},
                        {{ name: 'port', tcp: '{consul}', interval: '500ms', timeout: '20s' }},
                        {{ name: 'page', http: 'http://localhost:{port}/', interval: '500ms', timeout: '20s' }}] }},
                    {{ {tick}, when: {{ interval: '300ms' }}, timeout: '20s' }},
                    {{ {seen}, when: {{ source: 'watch.web', each: 'changed' }} }}, {more}
                ] }}",
            consul = self.consul.address,
            telemetry_ip = self.telemetry_ip,
            setup = job("setup", 1, ""),
            after = job("after", 1, ""),
            web = job("web", 3, "; exec sleep 1000"),
            tick = job("tick", 1, ""),
            seen = job("seen", 1, ""),
        );
        let config = config.replace("@/", &format!("{}/", self.folder.display()));
        // Renamed, so that it is never read half written.
        fs::write(self.folder.join("new"), config).unwrap();
        fs::rename(self.folder.join("new"), self.folder.join("config.json5")).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join(name)).unwrap_or_default()).into_owned()
    }

    /// Whether the supervisor has reported the error of the failed call.
    fn has_reported(&self) -> bool {
        let Some(fault) = &self.fault else { return false };
        let text = (self.read("stderr") + &self.log()).to_lowercase();
        // pthread_create returns EAGAIN where clone fails with ENOMEM.
        let other = if fault.errno == Errno::ENOMEM { Errno::EAGAIN } else { fault.errno };
        [fault.errno, other].iter().any(|errno| {
            let system = std::io::Error::from_raw_os_error(*errno as i32).to_string();
            let system = system.split(" (os error").next().unwrap_or_default();
            text.contains(&system.to_lowercase()) || text.contains(&errno.desc().to_lowercase())
        })
    }

    /// The log, including the rotated file.
    fn log(&self) -> String {
        self.read("log.1") + &self.read("log")
    }

    /// Waits until `holds` returns true, a timeout passes, or the supervisor has exited.
    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        let mut reported = None;
        while !holds(self) {
            if self.state.exit_code().is_some() {
                return;
            }
            if reported.is_none() && self.has_reported() {
                reported = Some(Instant::now());
            }
            if began.elapsed() > TIMEOUT
                || reported.is_some_and(|at: Instant| at.elapsed() > TIMEOUT_AFTER_REPORT)
            {
                self.missing.push(what.to_owned());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the log has an output line of a job.
    fn line_of(&self, job: &str) -> bool {
        self.read("log")
            .lines()
            .any(|line| line.contains(&format!(" {job} ")) && line.contains(&format!(" {job}-")))
    }

    /// Uses all features of the supervisor, one after the other.
    fn drive(&mut self) {
        for job in ["setup", "after", "web", "tick", "seen"] {
            self.wait_until(&format!("a line of {job}"), |scenario| scenario.line_of(job));
        }
        self.wait_until("the service in the catalog", |scenario| {
            scenario.consul.passing().contains(&"web".to_owned())
        });
        self.wait_until("a page of telemetry", |scenario| {
            page(&scenario.telemetry_ip).contains("containerpilot_job_up")
        });
        self.wait_until("an answer to status", |scenario| {
            scenario.request("GET", "/v3/status").contains("\"tick\"")
        });
        self.configure("{ name: 'more', exec: ['sh', '-c', 'echo more-$$-1; echo $$ >> @/more.wrote'] }");
        self.wait_until("a reload", |scenario| scenario.request("POST", "/v3/reload").contains(" 200 "));
        self.wait_until("a line of what was reloaded", |scenario| scenario.line_of("more"));
        self.wait_until("maintenance", |scenario| {
            scenario.request("POST", "/v3/maintenance/enable").contains(" 200 ")
        });
        self.wait_until("an empty catalog", |scenario| {
            !scenario.consul.passing().contains(&"web".to_owned())
        });
        self.wait_until("the end of maintenance", |scenario| {
            scenario.request("POST", "/v3/maintenance/disable").contains(" 200 ")
        });
        self.wait_until("the service in the catalog again", |scenario| {
            scenario.consul.passing().contains(&"web".to_owned())
        });
        // Log rotation.
        let _ = fs::rename(self.folder.join("log"), self.folder.join("log.1"));
        self.signal(Signal::SIGUSR1);
        self.wait_until("a line after the rotation", |scenario| scenario.line_of("tick"));
    }

    /// Sends a request to the control socket; returns the whole response, or an empty string.
    fn request(&self, method: &str, path: &str) -> String {
        let Ok(mut stream) = UnixStream::connect(self.folder.join("socket")) else { return String::new() };
        let _ = stream.set_read_timeout(Some(TIMEOUT));
        let _ = write!(stream, "{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
        read_all(&mut stream)
    }

    fn signal(&self, signal: Signal) {
        let pid = self.state.pid.load(Ordering::SeqCst);
        if pid > 0 && self.state.exit_code().is_none() {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Sends SIGTERM; returns true if it hung and had to be killed.
    fn stop(&mut self) -> bool {
        self.signal(Signal::SIGTERM);
        let has_exited = || self.state.exit_code().is_some();
        if holds_within(TIMEOUT, has_exited) {
            return false;
        }
        self.signal(Signal::SIGKILL);
        // SIGKILL also ends a process that is stopped by the tracer.
        assert!(holds_within(TIMEOUT, has_exited), "SIGKILL does not end it");
        true
    }

    /// Kills the processes of this scenario that still run after 10 s; returns their commands.
    fn kill_remaining(&self) -> Vec<String> {
        let mut remaining = Vec::new();
        holds_within(Duration::from_secs(10), || {
            remaining = self.processes();
            remaining.is_empty()
        });
        for (pid, _) in &remaining {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        remaining.into_iter().map(|(_, command)| command).collect()
    }

    /// The processes of this scenario, found by a variable in their environment.
    fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("FAULTS_SCENARIO={}", self.folder.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
                let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&command).replace('\0', " ")));
            }
        }
        found
    }

    fn judge(&self, hung: bool, remaining: &[String]) -> Result<Outcome, String> {
        let code = self.state.exit_code();
        let (log, stderr) = (self.log(), self.read("stderr"));
        let reported = self.has_reported();
        let mut violations = Vec::new();
        if hung {
            violations.push("it did not exit after SIGTERM".to_owned());
        }
        for word in ["panicked", "internal error", "a fault of containerpilot"] {
            if log.contains(word) || stderr.contains(word) {
                violations.push(format!("it logged `{word}`"));
            }
        }
        if !remaining.is_empty() {
            violations.push(format!("these processes remained: {remaining:?}"));
        }
        let heap = self.fault.as_ref().is_some_and(|fault| fault.call == "brk pages");
        // It may exit by itself only with a failure code and a message.
        let exited = match code {
            Some(1) if !stderr.trim().is_empty() => true,
            // The C library exits by itself before `main`, and at any time if the heap cannot grow.
            Some(127) if stderr.contains("memory") => true,
            Some(134) if stderr.contains("glibc error") && heap => true,
            Some(0) => false,
            other => {
                violations.push(format!("it exited with {other:?}"));
                false
            }
        };
        if exited && log.contains(" started (pid ") && !heap {
            violations.push("it exited although jobs were running".to_owned());
        }
        if exited && !reported && !heap {
            violations.push("it exited without reporting the error".to_owned());
        }
        if !exited && !reported && !self.missing.is_empty() {
            violations.push(format!("steps failed without a report: {:?}", self.missing));
        }
        if !exited && !hung {
            violations.extend(self.check_lines(&log, reported));
            if self.folder.join("socket").exists() && !reported {
                violations.push("the control socket was not removed".to_owned());
            }
            if self.consul.count() > 0 && !reported {
                violations.push("a service was not deregistered".to_owned());
            }
        }
        if !violations.is_empty() {
            let missing = &self.missing;
            return Err(format!(
                "{}\n  exit {code:?}; missing {missing:?}; stderr: {stderr}\n  log:\n{log}",
                violations.join("; ")
            ));
        }
        Ok(match self.state.hits.load(Ordering::SeqCst) {
            0 if self.fault.is_some() => Outcome::NotReached,
            _ if exited => Outcome::Exited,
            _ if reported => Outcome::Reported,
            _ => Outcome::Unharmed,
        })
    }

    /// Checks that every line written by a job is in the log once; lines may be missing if the error was reported.
    fn check_lines(&self, log: &str, reported: bool) -> Vec<String> {
        let mut violations = Vec::new();
        for (job, lines) in [("setup", 1), ("after", 1), ("web", 3), ("tick", 1), ("seen", 1), ("more", 1)] {
            let runs = self.read(&format!("{job}.wrote"));
            for pid in runs.lines() {
                for nth in 1..=lines {
                    let line = format!(" {job} {pid} {job}-{pid}-{nth}");
                    let count = log.lines().filter(|text| text.ends_with(&line)).count();
                    // Pids may be reused.
                    let wrote = runs.lines().filter(|other| *other == pid).count();
                    if count > wrote || count < wrote && !reported {
                        violations.push(format!("the line{line} is in the log {count} times"));
                    }
                }
            }
        }
        violations
    }
}

/// The page of metrics, or an empty string.
fn page(ip: &str) -> String {
    let Ok(mut stream) = TcpStream::connect((ip, 9090)) else { return String::new() };
    let _ = stream.set_read_timeout(Some(TIMEOUT));
    let _ = write!(stream, "GET /metrics HTTP/1.0\r\n\r\n");
    read_all(&mut stream)
}

fn read_all(stream: &mut impl Read) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
