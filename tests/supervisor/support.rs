//! A running supervisor: started with a configuration, read with a deadline, signalled, and always taken away.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the supervisor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    /// As a process among others.
    Plain,
    /// As PID 1 of a namespace of its own.
    Init,
}

pub(crate) struct Supervisor {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    folder: PathBuf,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Supervisor {
    /// Starts it with a configuration, in which `@` stands for a folder of its own.
    pub(crate) fn start(how: As, config: &str) -> Self {
        let folder = folder();
        let config = config.replace('@', folder.to_str().unwrap());
        let file = folder.join("config.json5");
        fs::write(&file, config).unwrap();
        Self::spawn(how, folder, &["-config", file.to_str().unwrap()])
    }

    /// Starts it with arguments.
    pub(crate) fn with(how: As, args: &[&str]) -> Self {
        Self::spawn(how, folder(), args)
    }

    fn spawn(how: As, folder: PathBuf, args: &[&str]) -> Self {
        let pilot = env!("CARGO_BIN_EXE_containerpilot");
        let mut command = match how {
            As::Plain => Command::new(pilot),
            As::Init => {
                let mut command = Command::new("unshare");
                command.args(["--pid", "--fork", "--kill-child", "--mount-proc", pilot]);
                command
            }
        };
        command.args(args).env_remove("CONTAINERPILOT");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, seen: Vec::new(), folder }
    }

    pub(crate) fn folder(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// The supervisor's own process, as this namespace numbers it.
    pub(crate) fn pid(&self) -> u32 {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let name = fs::read_to_string(format!("/proc/{own}/comm")).unwrap_or_default();
        if name.trim() == "unshare" {
            children.split_whitespace().next().unwrap().parse().unwrap()
        } else {
            own
        }
    }

    /// Waits for a line of the log that contains a text.
    pub(crate) fn line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line with `{text}` came; there were:\n{}", self.seen.join("\n"));
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for its end: the exit code, or 128 and the signal; and everything it wrote.
    pub(crate) fn end(mut self) -> (i32, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end; it wrote:\n{}", self.all());
            std::thread::sleep(Duration::from_millis(2));
        };
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap()), self.all())
    }

    fn all(&mut self) -> String {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(50)) {
            self.seen.push(line);
        }
        self.seen.join("\n")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // By the id of what was started; `unshare` takes its namespace along.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("containerpilot-run-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Both ways to run; only a plain process where there is no right to make a namespace.
pub(crate) fn ways() -> Vec<As> {
    let may = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    if may.is_ok_and(|output| output.status.success()) { vec![As::Plain, As::Init] } else { vec![As::Plain] }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The states of the children of a process, such as `S` or `Z`.
pub(crate) fn children(pid: u32) -> Vec<char> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let state = |child: &str| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    list.split_whitespace().filter_map(state).collect()
}
