//! The small world in which a call fails, and what must be true of it afterwards.
//!
//! It has a bit of everything: a task that sets up and one that waits for it, a service with three kinds of checks that is
//! advertised and watched, a periodic job, a log file, the control socket, telemetry, a reload, maintenance, and an end.

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

use crate::catalog::Catalog;
use crate::tracer::{Counts, Fault, Watched, run};

/// How long anything may take that is not hopeless.
const PATIENCE: Duration = Duration::from_secs(40);
/// How much longer something is waited for after the supervisor has said what is wrong.
const AFTER_A_WORD: Duration = Duration::from_secs(3);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// What became of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// All was done, and nothing was worth a word.
    Unharmed,
    /// It lived to its ordinary end; what could not be done was said.
    Lived,
    /// It ended by itself, and said why.
    Ended,
    /// The call was never made.
    Missed,
}

/// A world, from its beginning to its end.
struct World {
    folder: PathBuf,
    catalog: Catalog,
    /// Where telemetry listens.
    pages: String,
    watched: Arc<Watched>,
    fault: Option<Fault>,
    /// What did not come to pass.
    missing: Vec<String>,
}

/// Lives through a world in which a call may fail: what became of it, or which rules it broke.
pub(crate) fn live(fault: Option<&Fault>) -> (Result<Outcome, String>, Counts) {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("containerpilot-faults-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let [.., upper, lower] = number.to_be_bytes();
    let pages = format!("127.{}.{}.{}", 1 + (high ^ low) % 60, 1 + upper, 1 + lower % 250);
    let mut world = World {
        catalog: Catalog::start(),
        watched: Arc::default(),
        fault: fault.cloned(),
        missing: Vec::new(),
        folder,
        pages,
    };
    let (found, counts) = world.live();
    if found.is_ok() {
        let _ = fs::remove_dir_all(&world.folder);
    }
    (found, counts)
}

/// A static debug build: the system calls of a dynamic loader are not the supervisor's.
fn static_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let target = "x86_64-unknown-linux-gnu";
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--target", target])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .status();
        assert!(built.unwrap().success(), "the static build failed");
        // CARGO_TARGET_TMPDIR is `tmp` in the target folder.
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(target).join("debug/containerpilot")
    })
}

impl World {
    fn live(&mut self) -> (Result<Outcome, String>, Counts) {
        self.configure("");
        let mut command = Command::new("sh");
        command.args(["-c", "read go; exec \"$@\"", "sh"]).arg(static_binary()).arg("-config");
        command
            .arg(self.folder.join("config.json5"))
            .env_remove("CONTAINERPILOT")
            .env("FAULTS_WORLD", &self.folder);
        command.stdout(Stdio::null()).stderr(fs::File::create(self.folder.join("stderr")).unwrap());
        let (watched, fault) = (Arc::clone(&self.watched), self.fault.clone());
        let tracer = std::thread::spawn(move || run(&mut command, fault.as_ref(), &watched));
        self.drive();
        let hung = self.stop();
        let counts = tracer.join().unwrap();
        let left = self.orphans();
        (self.judge(hung, &left), counts)
    }

    /// Writes the configuration, with more jobs.
    fn configure(&self, more: &str) {
        let port = self.catalog.address.rsplit_once(':').unwrap().1;
        // What is in a job's file has been written before.
        let job = |name: &str, lines: u32, then: &str| {
            format!(
                "name: '{name}', exec: ['sh', '-c', 'for i in $(seq {lines}); do echo {name}-$$-$i; done; echo $$ >> @/{name}.wrote{then}']"
            )
        };
        let config = format!(
            "{{ consul: '{consul}', stopTimeout: '3s', control: {{ socket: '@/socket' }}, logging: {{ output: '@/log' }},
                telemetry: {{ port: 9090, interfaces: 'static:{pages}' }},
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
            consul = self.catalog.address,
            pages = self.pages,
            setup = job("setup", 1, ""),
            after = job("after", 1, ""),
            web = job("web", 3, "; exec sleep 1000"),
            tick = job("tick", 1, ""),
            seen = job("seen", 1, ""),
        );
        let config = config.replace("@/", &format!("{}/", self.folder.display()));
        // Never half of it.
        fs::write(self.folder.join("new"), config).unwrap();
        fs::rename(self.folder.join("new"), self.folder.join("config.json5")).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join(name)).unwrap_or_default()).into_owned()
    }

    /// Whether the supervisor has said what the call failed with.
    fn has_said(&self) -> bool {
        let Some(fault) = &self.fault else { return false };
        let text = self.read("stderr") + &self.log();
        // A thread that there is no memory for is told as one that there is no room for.
        let other = if fault.errno == Errno::ENOMEM { Errno::EAGAIN } else { fault.errno };
        [fault.errno, other].iter().any(|errno| {
            let system = std::io::Error::from_raw_os_error(*errno as i32).to_string();
            let system = system.split(" (os error").next().unwrap_or_default();
            text.contains(system) || text.contains(errno.desc())
        })
    }

    /// The log, also of before its rotation.
    fn log(&self) -> String {
        self.read("log.1") + &self.read("log")
    }

    /// Waits until something is so, or is known not to come, or the supervisor has ended.
    fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        let mut said = None;
        while !holds(self) {
            if self.watched.has_ended().is_some() {
                return;
            }
            if said.is_none() && self.has_said() {
                said = Some(Instant::now());
            }
            if began.elapsed() > PATIENCE || said.is_some_and(|said: Instant| said.elapsed() > AFTER_A_WORD) {
                self.missing.push(what.to_owned());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a job has written a line that is in the log.
    fn line_of(&self, job: &str) -> bool {
        self.read("log")
            .lines()
            .any(|line| line.contains(&format!(" {job} ")) && line.contains(&format!(" {job}-")))
    }

    /// Does what people do to a supervisor.
    fn drive(&mut self) {
        for job in ["setup", "after", "web", "tick", "seen"] {
            self.until(&format!("a line of {job}"), |world| world.line_of(job));
        }
        self.until("the service in the catalog", |world| world.catalog.passing().contains(&"web".to_owned()));
        self.until("a page of telemetry", |world| page(&world.pages).contains("containerpilot_job_up"));
        self.until("an answer to status", |world| world.ask("GET", "/v3/status").contains("\"tick\""));
        self.configure("{ name: 'more', exec: ['sh', '-c', 'echo more-$$-1; echo $$ >> @/more.wrote'] }");
        self.until("a reload", |world| world.ask("POST", "/v3/reload").contains(" 200 "));
        self.until("a line of what was reloaded", |world| world.line_of("more"));
        self.until("maintenance", |world| world.ask("POST", "/v3/maintenance/enable").contains(" 200 "));
        self.until("an empty catalog", |world| !world.catalog.passing().contains(&"web".to_owned()));
        self.until("the end of maintenance", |world| {
            world.ask("POST", "/v3/maintenance/disable").contains(" 200 ")
        });
        self.until("the service in the catalog again", |world| {
            world.catalog.passing().contains(&"web".to_owned())
        });
        // The log is moved away, as a rotation does.
        let _ = fs::rename(self.folder.join("log"), self.folder.join("log.1"));
        self.signal(Signal::SIGUSR1);
        self.until("a line after the rotation", |world| world.line_of("tick"));
    }

    /// Asks the control socket; the whole answer, or nothing.
    fn ask(&self, method: &str, path: &str) -> String {
        let Ok(mut stream) = UnixStream::connect(self.folder.join("socket")) else { return String::new() };
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = write!(stream, "{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
        read_all(&mut stream)
    }

    fn signal(&self, signal: Signal) {
        let pid = self.watched.pid.load(Ordering::SeqCst);
        if pid > 0 && self.watched.has_ended().is_none() {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Ends it as a scheduler does; whether it had to be killed.
    fn stop(&mut self) -> bool {
        self.signal(Signal::SIGTERM);
        let deadline = Instant::now() + PATIENCE;
        while self.watched.has_ended().is_none() {
            if Instant::now() > deadline {
                self.signal(Signal::SIGKILL);
                // It goes even when it stands at a call.
                let deadline = Instant::now() + PATIENCE;
                while self.watched.has_ended().is_none() {
                    assert!(Instant::now() < deadline, "not even SIGKILL ends it");
                    std::thread::sleep(Duration::from_millis(5));
                }
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// The processes of this world that are still there; they are taken away. Whoever was signalled may need a moment to go.
    fn orphans(&self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > deadline {
                for (pid, _) in &left {
                    let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
                }
                return left.into_iter().map(|(_, command)| command).collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes of this world, which all have its mark in their environment.
    fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("FAULTS_WORLD={}", self.folder.display());
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

    fn judge(&self, hung: bool, left: &[String]) -> Result<Outcome, String> {
        let code = self.watched.has_ended();
        let (log, stderr) = (self.log(), self.read("stderr"));
        let said = self.has_said();
        let mut wrong = Vec::new();
        if hung {
            wrong.push("it did not end after SIGTERM".to_owned());
        }
        for word in ["panicked", "internal error", "a fault of containerpilot"] {
            if log.contains(word) || stderr.contains(word) {
                wrong.push(format!("it said `{word}`"));
            }
        }
        if !left.is_empty() {
            wrong.push(format!("these were left: {left:?}"));
        }
        let heap = self.fault.as_ref().is_some_and(|fault| fault.call == "brk");
        // An end by itself is clear when it says why, and a failure.
        let ended = match code {
            Some(1) if !stderr.trim().is_empty() => true,
            // The C library's own words, before there is anything of ours; for an end of the heap, also later.
            Some(127) if stderr.contains("memory") => true,
            Some(134) if stderr.contains("glibc error") && heap => true,
            Some(0) => false,
            other => {
                wrong.push(format!("it ended with {other:?}"));
                false
            }
        };
        if ended && log.contains(" started, pid ") && !heap {
            wrong.push("it ended although jobs ran".to_owned());
        }
        if ended && !said && !heap {
            wrong.push("it ended without the words for the error".to_owned());
        }
        if !ended && !said && !self.missing.is_empty() {
            wrong.push(format!("without a word there was never {:?}", self.missing));
        }
        if !ended && !hung {
            wrong.extend(self.books(&log, said));
            if self.folder.join("socket").exists() && !said {
                wrong.push("the control socket was left".to_owned());
            }
            if self.catalog.count() > 0 && !said {
                wrong.push("a service was left in the catalog".to_owned());
            }
        }
        if !wrong.is_empty() {
            let missing = &self.missing;
            return Err(format!(
                "{}\n  exit {code:?}; missing {missing:?}; stderr: {stderr}\n  log:\n{log}",
                wrong.join("; ")
            ));
        }
        Ok(match self.watched.hits.load(Ordering::SeqCst) {
            0 if self.fault.is_some() => Outcome::Missed,
            _ if ended => Outcome::Ended,
            _ if said => Outcome::Lived,
            _ => Outcome::Unharmed,
        })
    }

    /// Every line that was written is in the log once, unless the loss was said.
    fn books(&self, log: &str, said: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        for (job, lines) in [("setup", 1), ("after", 1), ("web", 3), ("tick", 1), ("seen", 1), ("more", 1)] {
            let runs = self.read(&format!("{job}.wrote"));
            for pid in runs.lines() {
                for nth in 1..=lines {
                    let line = format!(" {job} {pid} {job}-{pid}-{nth}");
                    let count = log.lines().filter(|text| text.ends_with(&line)).count();
                    // A number may come back.
                    let wrote = runs.lines().filter(|other| *other == pid).count();
                    if count > wrote || count < wrote && !said {
                        wrong.push(format!("the line{line} is in the log {count} times"));
                    }
                }
            }
        }
        wrong
    }
}

/// The metrics, or nothing.
fn page(ip: &str) -> String {
    let Ok(mut stream) = TcpStream::connect((ip, 9090)) else { return String::new() };
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = write!(stream, "GET /metrics HTTP/1.0\r\n\r\n");
    read_all(&mut stream)
}

fn read_all(stream: &mut impl Read) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
