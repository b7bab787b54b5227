//! A supervisor with hostile jobs, and the two rules that always hold: the control socket answers within a second
//! all the time, and SIGTERM ends the supervisor within the bound of its stop timeout.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::deadline::{InTime, holds_within};
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, child_pids, is_root, modes, state, wait_until};

/// The control socket answers every request within this time, not counting the time in which the supervisor and the
/// test wait for a CPU that other processes of the machine use.
const ANSWER: Duration = Duration::from_secs(1);
/// The longest time until an answer on a machine that is busy.
const LONGEST: Duration = Duration::from_secs(30);
/// What is allowed on top of the stop timeout: a second, and the rest for a busy machine. What hostile jobs hold up
/// lasts for ten seconds or for ever; the stop timeout itself is measured in virtual time
/// (`crates/core/tests/rules/shutdown.rs`).
const MARGIN: Duration = Duration::from_secs(6);

/// The place of the supervisor in its PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// PID 1.
    Init,
    /// The child of another PID 1, as below an init of the container.
    Child,
}

/// Runs a test with the supervisor as PID 1 and as another process, at the same time. Skips it where that is not
/// permitted.
pub(crate) fn as_init_and_child(test: impl Fn(Rank) + Sync) {
    if !permitted() {
        return;
    }
    std::thread::scope(|scope| {
        let runs = [Rank::Init, Rank::Child].map(|rank| {
            let test = &test;
            (rank, scope.spawn(move || test(rank)))
        });
        let failed: Vec<Rank> =
            runs.into_iter().filter_map(|(rank, run)| run.join().is_err().then_some(rank)).collect();
        assert!(failed.is_empty(), "failed as {failed:?}");
    });
}

/// Whether hostile jobs can be started here. Says so if not.
pub(crate) fn permitted() -> bool {
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    let permitted =
        *PERMITTED.get_or_init(|| is_root() && modes().contains(&Mode::Pid1) && program().is_some());
    if !permitted {
        skip("hostile jobs need root, a PID namespace and a C compiler");
    }
    permitted
}

/// The compiled `hostile.c`, or `None` without a C compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(folder).ok()?;
        let (program, new) = (folder.join("hostile"), folder.join(format!("hostile-{}", std::process::id())));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/hostile.c");
        let compiler =
            Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&new).arg(source).status_in_time().ok()?;
        assert!(compiler.success(), "hostile.c does not compile");
        // At once, because another run of these tests may copy it just now.
        fs::rename(new, &program).ok()?;
        Some(program)
    };
    PROGRAM.get_or_init(compile).as_deref()
}

/// A supervisor with hostile jobs, in a PID namespace of its own.
///
/// In its directory `@/` are `hostile`, the compiled hostile programs; `programs`, a copy of `tests/programs` for users
/// that cannot read the repository; and `own`, which belongs to the user `nobody` and has another copy, `own/program`.
pub(crate) struct Hostile {
    pub(crate) run: Supervisor,
    /// Its pid in the namespace of the test.
    pub(crate) pid: u32,
    rank: Rank,
    stop_timeout: Duration,
    monitor: Monitor,
}

impl Hostile {
    /// Starts it with the keys of a configuration, and waits until the control socket answers.
    pub(crate) fn start(rank: Rank, stop_timeout: u64, config: &str) -> Self {
        Self::with_setup(rank, "", stop_timeout, config)
    }

    /// Runs a shell script in the namespace first.
    pub(crate) fn with_setup(rank: Rank, script: &str, stop_timeout: u64, config: &str) -> Self {
        let mut hostile = Self::unanswered(rank, script, stop_timeout, config);
        wait_until("the control socket answers", || {
            assert!(!hostile.has_exited(), "it exited");
            request(&hostile.socket(), "GET", "/v3/ping").is_ok()
        });
        hostile.monitor = Monitor::start(hostile.socket());
        hostile
    }

    /// Waits until the log has a text: the log is written by a thread, and may be behind what the control socket says.
    pub(crate) fn await_log(&self, text: &str) {
        wait_until(text, || self.log().contains(text));
    }

    /// Starts it without connecting to the control socket.
    pub(crate) fn unanswered(rank: Rank, script: &str, stop_timeout: u64, config: &str) -> Self {
        let config = whole(stop_timeout, config);
        let run = Supervisor::with_setup(Mode::Pid1, &prelude(rank, script), &config);
        Self::adopt(run, rank, stop_timeout)
    }

    fn adopt(run: Supervisor, rank: Rank, stop_timeout: u64) -> Self {
        let mut pid = None;
        wait_until("the supervisor is executed", || {
            // Asked each time: right after the start it may be `unshare` itself.
            let first = run.pid();
            let candidates = if rank == Rank::Init { vec![first] } else { child_pids(first) };
            pid = candidates.into_iter().find(|pid| exe(*pid).ends_with("containerpilot"));
            pid.is_some()
        });
        let stop_timeout = Duration::from_secs(stop_timeout);
        Self { run, pid: pid.unwrap(), rank, stop_timeout, monitor: Monitor::none() }
    }

    /// Replaces the configuration.
    pub(crate) fn rewrite(&self, config: &str) {
        self.run.rewrite(&whole(self.stop_timeout.as_secs(), config));
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.run.file("socket")
    }

    /// The log, unless the configuration has its own `logging`.
    pub(crate) fn log(&self) -> String {
        self.read("log")
    }

    /// The content of a file in the test's directory; empty if it does not exist.
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.run.file(name)).unwrap_or_default()).into_owned()
    }

    /// Waits until every trick of the configuration has printed that it is ready.
    pub(crate) fn await_ready(&self, count: usize) {
        wait_until(&format!("{count} hostile jobs are ready"), || {
            self.log().lines().filter(|line| line.ends_with(" ready")).count() >= count
        });
    }

    /// Waits until a file of the test's directory exists.
    pub(crate) fn await_file(&self, name: &str) {
        wait_until(&format!("{name} exists"), || self.run.file(name).exists());
    }

    pub(crate) fn post(&self, path: &str) -> String {
        request(&self.socket(), "POST", path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A job as `/v3/status` shows it.
    pub(crate) fn job(&self, name: &str) -> Value {
        let status = request(&self.socket(), "GET", "/v3/status").unwrap_or_else(|error| panic!("{error}"));
        let status: Value = serde_json::from_str(&status).unwrap_or_else(|error| panic!("{error}: {status}"));
        let jobs = status["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["name"] == name).unwrap_or_else(|| panic!("no {name} in {status}")).clone()
    }

    /// The process of a job, as soon as it runs.
    pub(crate) fn pid_of(&self, name: &str) -> Value {
        self.await_state(name, "running");
        self.job(name)["pid"].clone()
    }

    /// Waits until a job is in a state.
    pub(crate) fn await_state(&self, name: &str, state: &str) {
        self.await_job(name, &format!("is {state}"), |job| job["state"] == state);
    }

    /// Waits until `holds` is true of a job; panics at once if the control socket stops answering.
    pub(crate) fn await_job(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) {
        wait_until(&format!("{name} {what}"), || holds(&self.job(name)));
    }

    pub(crate) fn send(&self, signal: i32) {
        // By number, because `nix` knows no real-time signals.
        let sent =
            Command::new("kill").args([format!("-{signal}"), self.pid.to_string()]).status_in_time().unwrap();
        assert!(sent.success(), "signal {signal} cannot be sent to {}", self.pid);
    }

    /// Whether the supervisor has exited.
    pub(crate) fn has_exited(&self) -> bool {
        state(self.pid).is_none_or(|state| matches!(state, 'Z' | 'X'))
    }

    /// The processes that execute a file of the test's directory, without the small init.
    pub(crate) fn hostile_processes(&self) -> Vec<u32> {
        let (folder, first) = (self.run.folder(), self.run.pid());
        processes().into_iter().filter(|pid| *pid != first && exe(*pid).starts_with(folder)).collect()
    }

    /// Sends SIGTERM and requires the exit within the stop timeout plus [`MARGIN`], an answer to every request until
    /// then, and that no process survives.
    pub(crate) fn stops(&mut self) {
        self.stops_within(self.stop_timeout + MARGIN);
    }

    /// As [`Hostile::stops`], for a configuration with hooks: within twice the stop timeout plus [`MARGIN`].
    pub(crate) fn stops_with_hooks(&mut self) {
        self.stops_within(2 * self.stop_timeout + MARGIN);
    }

    fn stops_within(&mut self, bound: Duration) {
        self.monitor.stage.store(STOPPING, Ordering::SeqCst);
        kill(Pid::from_raw(i32::try_from(self.pid).unwrap()), Signal::SIGTERM).unwrap();
        let began = Instant::now();
        // Longer than the bound, so that a failure says by how much it was missed; a frozen supervisor is not waited for.
        let patience = bound + Duration::from_secs(2);
        let has_exited = holds_within(patience, || self.has_exited());
        let took = began.elapsed();
        if !has_exited {
            let what = self.describe();
            panic!("it did not exit within {took:?} after SIGTERM; the bound is {bound:?}\n{what}");
        }
        let mut wrong = self.monitor.finish();
        if took > bound {
            wrong.push(format!("it exited {took:?} after SIGTERM; the bound is {bound:?}"));
        }
        if self.rank == Rank::Child {
            // The small init writes them, and exits then.
            wait_until("the survivors are counted", || self.run.file("counted").exists());
            let survivors = self.read("survivors");
            wrong.extend(survivors.lines().map(|process| format!("{process} outlived the supervisor")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What the supervisor and its children are doing.
    fn describe(&self) -> String {
        let about = |pid: u32| format!("{pid} {} {:?} waits in {}", exe(pid), state(pid), waits_in(pid, pid));
        let children = child_pids(self.pid).into_iter().map(about);
        std::iter::once(about(self.pid)).chain(children).collect::<Vec<_>>().join("\n")
    }
}

/// An IPv4 address of the loopback interface that no other test uses.
pub(crate) fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, COUNT.fetch_add(1, Ordering::SeqCst))
}

/// A user id that no other test uses.
pub(crate) fn own_user() -> u32 {
    let [.., low] = own_address().octets();
    // Pids have at most 22 bits.
    (1 << 30) + (std::process::id() << 8) + u32::from(low)
}

/// The time for which a thread has waited for a CPU.
fn waited_for_cpu(thread: &Path) -> Duration {
    let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let waited = text.split(' ').nth(1).and_then(|nanoseconds| nanoseconds.parse().ok());
    waited.map_or(Duration::ZERO, Duration::from_nanos)
}

/// The time for which this thread, and those of the process that listens at the other end of a connection, have waited
/// for a CPU.
fn waited_by_both(stream: &UnixStream) -> Duration {
    let listener = getsockopt(stream, PeerCredentials).unwrap().pid();
    let threads = fs::read_dir(format!("/proc/{listener}/task")).into_iter().flatten().flatten();
    let theirs: Duration = threads.map(|thread| waited_for_cpu(&thread.path())).sum();
    theirs + waited_for_cpu(Path::new("/proc/thread-self"))
}

/// Sends a request and returns the body of the response. An error if there is no response within [`ANSWER`], or not
/// with status 200.
pub(crate) fn request(socket: &Path, method: &str, path: &str) -> Result<String, String> {
    let began = Instant::now();
    let mut stream = UnixStream::connect(socket).map_err(|error| format!("cannot connect: {error}"))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .map_err(|error| format!("cannot send: {error}"))?;
    let (mut response, mut buffer) = (Vec::new(), [0; 65536]);
    let waited = waited_by_both(&stream);
    loop {
        let busy = waited_by_both(&stream).saturating_sub(waited);
        let left = (ANSWER + busy).min(LONGEST).checked_sub(began.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or_else(|| format!("no answer to {path} within {ANSWER:?}"))?;
        stream.set_read_timeout(Some(left)).unwrap();
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => response.extend_from_slice(&buffer[..count]),
            // A read with a timeout is interrupted when the process is stopped and continued.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(format!("cannot read: {error}")),
        }
    }
    let response = String::from_utf8_lossy(&response);
    match response.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => Err(format!("not answered with 200: {response:?}")),
    }
}

const RUNNING: u8 = 0;
/// SIGTERM was sent: the socket may be closed at any time, but a connection that it takes is answered.
const STOPPING: u8 = 1;
const FINISHED: u8 = 2;

/// Asks all the time: `ping`, which the network thread answers, and `status`, which the event loop answers.
struct Monitor {
    stage: Arc<AtomicU8>,
    wrong: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    fn none() -> Self {
        Self { stage: Arc::default(), wrong: Arc::default(), thread: None }
    }

    fn start(socket: PathBuf) -> Self {
        let (stage, wrong) = (Arc::new(AtomicU8::new(RUNNING)), Arc::new(Mutex::new(Vec::new())));
        let thread = std::thread::spawn({
            let (stage, wrong) = (Arc::clone(&stage), Arc::clone(&wrong));
            move || {
                for path in ["/v3/ping", "/v3/status"].into_iter().cycle() {
                    let answer = request(&socket, "GET", path);
                    match (stage.load(Ordering::SeqCst), answer) {
                        (FINISHED, _) => return,
                        (STOPPING, Err(error)) if !error.contains("within") => return,
                        (_, Err(error)) => wrong.lock().unwrap().push(error),
                        (_, Ok(_)) => {}
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        Self { stage, wrong, thread: Some(thread) }
    }

    /// Ends it and returns what went wrong.
    fn finish(&mut self) -> Vec<String> {
        self.stage.store(FINISHED, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.wrong.lock().unwrap().clone()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stage.store(FINISHED, Ordering::SeqCst);
    }
}

/// What a shell does before it starts the supervisor: it prepares the directory of the test.
fn prelude(rank: Rank, script: &str) -> String {
    let program = program().unwrap().display();
    let init = if rank == Rank::Child { "set -- @/hostile init \"$@\"" } else { "" };
    format!(
        "chmod 755 @/ && cp -r @programs/ @/programs && cp {program} @/hostile && mkdir @/own && cp @/hostile @/own/program && chown -R nobody @/own || exit 97\n\
         {script}\n{init}\n"
    )
}

/// A whole configuration from some of its keys, with or without the outer braces.
pub(crate) fn whole(stop_timeout: u64, config: &str) -> String {
    let keys = config.strip_prefix('{').and_then(|keys| keys.strip_suffix('}')).unwrap_or(config);
    let logging = if config.contains("logging:") { "" } else { "logging: { output: '@/log' }, " };
    format!("{{ stopTimeout: {stop_timeout}, {logging}{keys} }}")
}

/// All pids in the namespace of the test.
fn processes() -> Vec<u32> {
    let names = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// The path of the program that a process executes; empty if there is none.
pub(crate) fn exe(pid: u32) -> String {
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    path.display().to_string().trim_end_matches(" (deleted)").to_owned()
}

/// What a thread waits for in the kernel, by the name of a kernel function.
pub(crate) fn waits_in(pid: u32, thread: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/task/{thread}/wchan")).unwrap_or_default()
}
