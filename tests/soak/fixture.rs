//! The supervisor under test, with a Consul agent and readers of its log and events.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::accounting::{Events, Log, read_events, read_log};
use crate::support::consul::{Agent, service_id};
use crate::support::deadline::holds_within;
use crate::support::failure::report;
use crate::support::supervisor::{Mode, child_pids, modes, wait_until};

/// The jobs that every configuration has; those in [`SERVICES`] are advertised.
pub(crate) const WRITERS: [&str; 6] = ["w0", "w1", "w2", "w3", "w4", "w5"];
pub(crate) const SERVICES: [&str; 3] = ["w0", "w1", "w2"];

pub(crate) struct Fixture {
    pub(crate) folder: PathBuf,
    pub(crate) agent: Agent,
    child: Child,
    pub(crate) pid: u32,
    pub(crate) log: Arc<Mutex<Log>>,
    pub(crate) events: Arc<Mutex<Events>>,
    /// Set to stop reading the log for that many milliseconds.
    pub(crate) log_pause: Arc<AtomicU64>,
    /// Set to stop reading events.
    pub(crate) over: Arc<AtomicBool>,
    readers: Vec<std::thread::JoinHandle<()>>,
    /// The longest response time of the control socket, in milliseconds.
    pub(crate) slowest: AtomicU64,
    /// The additional jobs of the current configuration: number and version.
    pub(crate) extras: BTreeMap<u64, u64>,
}

/// The resources that the supervisor uses; memory in KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources {
    pub(crate) rss: u64,
    pub(crate) pss: u64,
    /// Anonymous memory: everything that could leak.
    pub(crate) anonymous: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl Fixture {
    pub(crate) fn start(pilot: &str) -> Self {
        let agent = Agent::dev();
        let folder = agent.folder().join("soak");
        fs::create_dir_all(folder.join("runs")).unwrap();
        let mode = *modes().last().unwrap_or(&Mode::Plain);
        let mut words = match mode {
            Mode::Plain => vec![],
            Mode::Pid1 => vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        };
        words.push(pilot);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("-config").arg(folder.join("config.json5"));
        command.env_remove("CONTAINERPILOT").stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(folder.join("stderr")).unwrap());
        fs::write(folder.join("config.json5"), config(&agent, &folder, &BTreeMap::new())).unwrap();
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (log, events) = (Arc::<Mutex<Log>>::default(), Arc::<Mutex<Events>>::default());
        let (log_pause, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let readers = vec![
            std::thread::spawn({
                let (log, log_pause) = (Arc::clone(&log), Arc::clone(&log_pause));
                move || read_log(output, &log, &log_pause)
            }),
            std::thread::spawn({
                let (socket, events, over) = (folder.join("socket"), Arc::clone(&events), Arc::clone(&over));
                move || read_events(&socket, &events, &over)
            }),
        ];
        let mut pid = child.id();
        if mode == Mode::Pid1 {
            wait_until("the supervisor runs", || {
                child_pids(child.id()).first().is_some_and(|child| {
                    pid = *child;
                    true
                })
            });
        }
        wait_until("the control socket exists", || folder.join("socket").exists());
        Self {
            folder,
            agent,
            child,
            pid,
            log,
            events,
            log_pause,
            over,
            readers,
            extras: BTreeMap::new(),
            slowest: AtomicU64::new(0),
        }
    }

    /// Writes the current configuration.
    pub(crate) fn configure(&self) {
        self.configure_with(&config(&self.agent, &self.folder, &self.extras));
    }

    pub(crate) fn configure_with(&self, text: &str) {
        fs::write(self.folder.join("new"), text).unwrap();
        fs::rename(self.folder.join("new"), self.folder.join("config.json5")).unwrap();
    }

    /// Sends a request to the control socket; returns the status, or 0 if there was no response, and the body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let began = Instant::now();
        let Ok(mut stream) = UnixStream::connect(self.folder.join("socket")) else {
            return (0, String::new());
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
        let length = body.len();
        let request = format!("{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
        let _ = stream.write_all(request.as_bytes());
        let answer = read_response(&mut stream);
        // A reload responds after the jobs have stopped, which has no bound here.
        if path != "/v3/reload" {
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or_default();
            self.slowest.fetch_max(took, Ordering::SeqCst);
        }
        answer
    }

    /// Fetches a page of the telemetry server.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        let Ok(mut stream) = TcpStream::connect((self.agent.ip.as_str(), 9090)) else {
            return (0, String::new());
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
        let _ = write!(stream, "GET {path} HTTP/1.0\r\n\r\n");
        read_response(&mut stream)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(i32::try_from(self.pid).unwrap()), signal);
    }

    /// The pids of its children: jobs, checks, orphans.
    pub(crate) fn children(&self) -> Vec<i32> {
        child_pids(self.pid).into_iter().filter_map(|pid| i32::try_from(pid).ok()).collect()
    }

    /// The state of every job.
    pub(crate) fn states(&self) -> BTreeMap<String, String> {
        let status: Value =
            serde_json::from_str(&self.request("GET", "/v3/status", "").1).unwrap_or_default();
        let jobs = status["jobs"].as_array().cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        jobs.iter().map(|job| (word(&job["name"]), word(&job["state"]))).collect()
    }

    /// Describes the first difference between the services in Consul and those `wanted`, which must be passing.
    pub(crate) fn catalog_differs(&self, wanted: &[&str]) -> Option<String> {
        let services = self.agent.try_get("/v1/agent/services").unwrap_or(Value::Null);
        let Some(services) = services.as_object() else {
            return Some("the agent does not respond".to_owned());
        };
        let mut ids: Vec<&String> = services.keys().collect();
        ids.sort();
        let mut expected: Vec<String> = wanted.iter().map(|name| service_id(name)).collect();
        expected.sort();
        if !ids.iter().copied().eq(expected.iter()) {
            return Some(format!("{ids:?} are registered, {expected:?} are wanted"));
        }
        let failing = wanted.iter().find(|name| self.agent.status(name).as_deref() != Some("passing"))?;
        Some(format!("{failing} is {:?}", self.agent.status(failing)))
    }

    pub(crate) fn resources(&self) -> Resources {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).unwrap_or_default();
        let kib = |key: &str| {
            let line = rollup.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
        };
        let count =
            |what: &str| fs::read_dir(format!("/proc/{}/{what}", self.pid)).map_or(0, Iterator::count);
        Resources {
            rss: kib("Rss:"),
            pss: kib("Pss:"),
            anonymous: kib("Anonymous:"),
            descriptors: count("fd"),
            threads: count("task"),
        }
    }

    /// Waits until it exits; returns its exit code, or `None` if it had to be killed after `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<i32> {
        let mut code = None;
        let has_exited = holds_within(limit, || {
            code = self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(255));
            code.is_some()
        });
        if !has_exited {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.over.store(true, Ordering::SeqCst);
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        code
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let entries = self.log.lock().map(|mut log| log.recent.make_contiguous().join("\n"));
        report("the supervisor", &entries.unwrap_or_default());
    }
}

fn read_response(stream: &mut impl Read) -> (u16, String) {
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        return (0, format!("after {} bytes of the response: {error}", answer.len()));
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (
        status,
        if status == 0 { format!("an invalid response of {} bytes", answer.len()) } else { body.to_owned() },
    )
}

/// A configuration with the given additional jobs.
fn config(agent: &Agent, folder: &std::path::Path, extras: &BTreeMap<u64, u64>) -> String {
    let program = std::env::current_exe().unwrap();
    let writer = |name: &str, more: &str| {
        format!(
            "{{ name: '{name}', exec: ['{}', 'write', '{name}', '{}'], restarts: 'unlimited', stopTimeout: '2s',
                restartBackoff: {{ initial: '20ms', max: '300ms', reset: '1s' }}, {more} }},\n",
            program.display(),
            folder.display()
        )
    };
    let mut jobs = String::new();
    for name in WRITERS {
        let more = if SERVICES.contains(&name) {
            format!(
                "port: 80, interfaces: 'static:10.1.2.3', health: {{
                    exec: ['test', '!', '-e', '{}/ill-{name}'], interval: '300ms', timeout: '5s', ttl: '60s' }}",
                folder.display()
            )
        } else {
            String::new()
        };
        jobs += &writer(name, &more);
    }
    for (name, version) in extras {
        jobs += &writer(&format!("x{name}"), &format!("env: {{ VERSION: '{version}' }}"));
    }
    // `orphans` leaves processes behind, some of them in their own sessions.
    jobs += "{ name: 'orphans', when: { interval: '700ms' }, timeout: '10s',
        exec: ['sh', '-c', 'for i in 1 2 3; do (sleep 0.1 &); (setsid sleep 0.2 &); done'] },
      { name: 'seen', exec: 'true', when: { source: 'watch.w0', each: 'changed' } },
      { name: 'repair', exec: 'true', when: { source: 'w3', each: 'exitFailed' } },
      { name: 'poked', exec: 'true', when: { source: 'SIGUSR2' } },
      { name: 'hook', exec: 'sleep 0.05', when: { source: 'w4', each: 'stopping' } },
      { name: 'nothing', exec: 'no-such-program-anywhere', when: { interval: '5s' } },";
    format!(
        "{{ consul: '{}', stopTimeout: '3s', control: {{ socket: '{folder}/socket' }},
            telemetry: {{ port: 9090, interfaces: 'static:{ip}', metrics: [
                {{ namespace: 'soak', name: 'steps', help: 'steps', type: 'counter' }}] }},
            watches: [{{ name: 'w0', interval: 5 }}, {{ name: 'w1', interval: 1 }}, {{ name: 'absent', interval: 1 }}],
            coprocesses: [{{ name: 'beside', command: ['{}', 'write', 'beside', '{folder}'], restarts: 'unlimited' }}],
            jobs: [{jobs}] }}",
        agent.address(),
        program.display(),
        folder = folder.display(),
        ip = agent.ip,
    )
}
