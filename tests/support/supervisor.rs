//! Starts a real supervisor with a configuration, reads its log, sends it signals, and cleans up after the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use containerpilot_process::proc::Stat;
use nix::sys::signal::Signal;

use super::deadline;
use super::deadline::InTime;
use super::failure::{report, tail_of_file};
use super::processes::{end_all, send};
use super::program::{containerpilot, with_paths};
use super::skip::skip;

/// The test fails if a single wait takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How the supervisor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As an ordinary process that makes itself a child subreaper.
    Plain,
    /// As PID 1 of a new PID namespace.
    Pid1,
}

pub(crate) struct Supervisor {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    folder: PathBuf,
    /// For [`Stdout::Unread`]: keeps the pipe open without reading it.
    unread: Option<ChildStdout>,
}

/// What happens to the supervisor's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// The test reads all of it.
    Read,
    /// The pipe stays open and is never read.
    Unread,
    /// The reading end of the pipe is closed.
    Closed,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Supervisor {
    /// Starts it with `config`, in which `@/` stands for the directory of this test and `@programs/` for `tests/programs`.
    pub(crate) fn start(mode: Mode, config: &str) -> Self {
        Self::with_setup(mode, "", config)
    }

    /// Runs the shell script `script`, which may change limits, mounts or `"$@"`, and then starts it with `config`. In
    /// both, `@/` and `@programs/` stand for directories, as in [`Supervisor::start`].
    pub(crate) fn with_setup(mode: Mode, script: &str, config: &str) -> Self {
        let (folder, file) = write_config(config);
        let script = with_paths(script, &folder);
        Self::spawn(mode, folder, &script, &["-config", &file], Stdout::Read)
    }

    /// Starts it with `config` and treats its standard output as `output` says.
    pub(crate) fn with_stdout(mode: Mode, output: Stdout, config: &str) -> Self {
        let (folder, file) = write_config(config);
        Self::spawn(mode, folder, "", &["-config", &file], output)
    }

    pub(crate) fn with_args(mode: Mode, args: &[&str]) -> Self {
        Self::spawn(mode, folder(), "", args, Stdout::Read)
    }

    /// Runs the shell script `script` and then starts it with `args`.
    pub(crate) fn with_setup_and_args(mode: Mode, script: &str, args: &[&str]) -> Self {
        Self::spawn(mode, folder(), script, args, Stdout::Read)
    }

    /// Starts it with `args` and `input` as standard input.
    pub(crate) fn with_stdin(mode: Mode, input: &str, args: &[&str]) -> Self {
        let folder = folder();
        let file = folder.join("input");
        fs::write(&file, input).unwrap();
        let script = format!("exec < {}", file.display());
        Self::spawn(mode, folder, &script, args, Stdout::Read)
    }

    fn spawn(mode: Mode, folder: PathBuf, script: &str, args: &[&str], output: Stdout) -> Self {
        let pilot = containerpilot();
        let shell = format!("{script}\nexec \"$@\"");
        let mut command_line = match mode {
            Mode::Plain => vec![],
            Mode::Pid1 => vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        };
        if !script.is_empty() {
            command_line.extend(["sh", "-c", &shell, "sh"]);
        }
        command_line.push(pilot);
        let mut command = Command::new(command_line[0]);
        command.args(&command_line[1..]).args(args).env_remove("CONTAINERPILOT");
        // Tests run in parallel, so each needs its own socket.
        command.env("CONTAINERPILOT_SOCKET", folder.join("socket"));
        command.env("CONTAINERPILOT_TEST", &folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // Messages from before the log is open.
        command.stderr(fs::File::create(folder.join("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (lines, unread) = match output {
            Stdout::Read => (read_lines(stdout), None),
            Stdout::Unread => (mpsc::channel().1, Some(stdout)),
            Stdout::Closed => (mpsc::channel().1, None),
        };
        Self { child, lines, seen: Vec::new(), folder, unread }
    }

    pub(crate) fn folder(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// The path of a file in the test's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces the configuration file that it was started with.
    pub(crate) fn rewrite(&self, config: &str) {
        let new = self.file("new");
        fs::write(&new, with_paths(config, &self.folder)).unwrap();
        fs::rename(new, self.file("config.json5")).unwrap();
    }

    /// The content of a file in the test's directory, seen through the supervisor's mount namespace.
    pub(crate) fn read(&self, name: &str) -> String {
        let path = format!("/proc/{}/root{}", self.pid(), self.file(name).display());
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    }

    /// The size in bytes of a file in the test's directory; 0 if it does not exist.
    pub(crate) fn size(&self, name: &str) -> u64 {
        fs::metadata(self.file(name)).map_or(0, |data| data.len())
    }

    /// The supervisor's pid in the namespace of the test.
    pub(crate) fn pid(&self) -> u32 {
        let own = self.child.id();
        let mut found = None;
        wait_until("the supervisor runs", || {
            let name = fs::read_to_string(format!("/proc/{own}/comm")).unwrap_or_default();
            found = if name.trim() == "unshare" {
                let list = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
                list.split_whitespace().next().map(|child| child.parse().unwrap())
            } else {
                Some(own)
            };
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until `count` lines that contain `text` have been logged, counted from the start.
    pub(crate) fn wait_for_lines(&mut self, text: &str, count: usize) {
        while self.seen.iter().filter(|line| line.contains(text)).count() < count {
            self.wait_for_line(text);
        }
    }

    /// Waits for the next line that contains `text`. Lines that earlier calls have consumed do not count.
    pub(crate) fn wait_for_line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line contains `{text}`");
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status_in_time().unwrap().success());
    }

    /// The CPU time it has used, in hundredths of a second.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        cpu_ticks(self.pid())
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.file("stderr")).unwrap_or_default()
    }

    /// The lines of standard output that were read so far.
    pub(crate) fn log_so_far(&self) -> String {
        self.seen.join("\n")
    }

    /// Waits until it exits. Returns its exit code, or 128+N for signal N, and all its standard output.
    pub(crate) fn wait(mut self) -> (i32, String) {
        let mut status = None;
        wait_until("the supervisor exits", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let status = status.unwrap();
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap()), self.read_rest())
    }

    fn read_rest(&mut self) -> String {
        // Until the pipe is closed. A busy machine may delay lines; only a grandchild that holds the pipe is not waited for.
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(2)) {
            self.seen.push(line);
        }
        self.seen.join("\n")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // SIGSTOP keeps it from starting new processes while its descendants are listed.
            send(self.child.id(), Signal::SIGSTOP);
            let orphans = descendants_of(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
            orphans.into_iter().for_each(|orphan| send(orphan, Signal::SIGKILL));
        }
        // What outlived a supervisor that was killed, or that has exited, and is no descendant of it any more.
        end_all(&mark(&self.folder));
        if let Some(stdout) = self.unread.take() {
            self.lines = read_lines(stdout);
        }
        let log = [self.read_rest(), self.stderr(), tail_of_file(&self.file("log"))].join("\n");
        report(&format!("the supervisor in {}", self.folder()), &log);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Reads the lines of a pipe in a thread.
fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        let lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
        lines.map(text).try_for_each(|line| sender.send(line))
    });
    lines
}

/// An entry of the environment of a supervisor and of its jobs, by which they are found.
fn mark(folder: &Path) -> String {
    format!("CONTAINERPILOT_TEST={}", folder.display())
}

/// Creates the test's directory with the configuration in it.
fn write_config(config: &str) -> (PathBuf, String) {
    let folder = folder();
    let file = folder.join("config.json5");
    fs::write(&file, with_paths(config, &folder)).unwrap();
    (folder, file.to_str().unwrap().to_owned())
}

/// A new directory for a test.
pub(crate) fn folder() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("containerpilot-run-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// The modes to test: both, or only [`Mode::Plain`] where creating a PID namespace is not permitted.
pub(crate) fn modes() -> Vec<Mode> {
    static NAMESPACE: LazyLock<bool> = LazyLock::new(|| {
        let unshare =
            Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output_in_time();
        unshare.is_ok_and(|output| output.status.success())
    });
    if *NAMESPACE {
        vec![Mode::Plain, Mode::Pid1]
    } else {
        skip("as PID 1: creating a PID namespace is not permitted");
        vec![Mode::Plain]
    }
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Waits until `holds` returns true; `what` describes that condition.
pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    deadline::wait_until_within(TIMEOUT, || what.to_owned(), holds);
}

/// The CPU time that a process has used, in hundredths of a second.
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    Stat::read(pid.cast_signed()).unwrap().own_cpu_ticks
}

/// The state of a process, such as `S` (sleeping) or `Z` (zombie); `None` if it is gone.
pub(crate) fn state(pid: u32) -> Option<char> {
    Some(Stat::read(pid.cast_signed())?.state.into())
}

/// The pids of the children of a process, in the namespace of the test.
pub(crate) fn child_pids(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn descendants_of(pid: u32) -> Vec<u32> {
    child_pids(pid).into_iter().flat_map(|child| [vec![child], descendants_of(child)].concat()).collect()
}

pub(crate) fn child_states(pid: u32) -> Vec<char> {
    child_pids(pid).into_iter().filter_map(state).collect()
}
