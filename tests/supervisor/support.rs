//! A running supervisor: started with a configuration, read with a deadline, signalled, and always taken away.

#[path = "patience.rs"]
mod patience;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

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
    /// An output that nobody reads, but nobody closes either.
    _unread: Option<ChildStdout>,
}

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// This test, all of it.
    All,
    /// Nobody, although it could be read.
    Asleep,
    /// Nobody, for good.
    Gone,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Supervisor {
    /// Starts it with a configuration, in which `@/` stands for a folder of its own.
    pub(crate) fn start(how: As, config: &str) -> Self {
        Self::behind(how, "", config)
    }

    /// Starts it with a configuration behind a shell script, which may take something away from it first. In both, `@/`
    /// stands for a folder of its own.
    pub(crate) fn behind(how: As, script: &str, config: &str) -> Self {
        let (folder, file) = written(config);
        let script = script.replace("@/", &format!("{}/", folder.display()));
        Self::spawn(how, folder, &script, &["-config", &file], Reader::All)
    }

    /// Starts it with a configuration, and does with its output what is said.
    pub(crate) fn read_by(how: As, reader: Reader, config: &str) -> Self {
        let (folder, file) = written(config);
        Self::spawn(how, folder, "", &["-config", &file], reader)
    }

    /// Starts it with arguments.
    pub(crate) fn with(how: As, args: &[&str]) -> Self {
        Self::spawn(how, folder(), "", args, Reader::All)
    }

    /// Starts it with arguments, after a line of shell.
    pub(crate) fn after(how: As, script: &str, args: &[&str]) -> Self {
        Self::spawn(how, folder(), script, args, Reader::All)
    }

    /// Starts it with arguments and something to read.
    pub(crate) fn fed(how: As, input: &str, args: &[&str]) -> Self {
        let folder = folder();
        let file = folder.join("input");
        fs::write(&file, input).unwrap();
        let script = format!("exec < {}", file.display());
        Self::spawn(how, folder, &script, args, Reader::All)
    }

    fn spawn(how: As, folder: PathBuf, script: &str, args: &[&str], reader: Reader) -> Self {
        let pilot = env!("CARGO_BIN_EXE_containerpilot");
        let shell = format!("{script}\nexec \"$@\"");
        let mut words = match how {
            As::Plain => vec![],
            As::Init => vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        };
        if !script.is_empty() {
            words.extend(["sh", "-c", &shell, "sh"]);
        }
        words.push(pilot);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(args).env_remove("CONTAINERPILOT");
        // Each has its own: many of them run at once.
        command.env("CONTAINERPILOT_SOCKET", folder.join("socket"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // What it says of itself before it has a log.
        command.stderr(fs::File::create(folder.join("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        let mut unread = None;
        match reader {
            Reader::All => drop(std::thread::spawn(move || {
                let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
                let lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
                lines.map(text).try_for_each(|line| sender.send(line))
            })),
            Reader::Asleep => unread = Some(stdout),
            Reader::Gone => {}
        }
        Self { child, lines, seen: Vec::new(), folder, _unread: unread }
    }

    pub(crate) fn folder(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// A file in its folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What is in a file of its folder, as the supervisor sees it: it may have mounted something there.
    pub(crate) fn read(&self, name: &str) -> String {
        let path = format!("/proc/{}/root{}", self.pid(), self.file(name).display());
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    }

    /// How many bytes a file in its folder has; none if it is not there.
    pub(crate) fn size(&self, name: &str) -> u64 {
        fs::metadata(self.file(name)).map_or(0, |data| data.len())
    }

    /// The supervisor's own process, as this namespace numbers it.
    pub(crate) fn pid(&self) -> u32 {
        let own = self.child.id();
        let mut found = None;
        until("there is no supervisor", || {
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

    /// Waits until so many lines with a text have come in all, whatever stands between them.
    pub(crate) fn lines(&mut self, text: &str, count: usize) {
        while self.seen.iter().filter(|line| line.contains(text)).count() < count {
            self.line(text);
        }
    }

    /// Waits for a line of the log that contains a text.
    pub(crate) fn line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line with `{text}` came; there were:\n{}{}", self.seen(), self.stderr());
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

    /// How much processor time it has used, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// What it has written to standard error by now.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.file("stderr")).unwrap_or_default()
    }

    /// What it has written by now.
    pub(crate) fn seen(&self) -> String {
        self.seen.join("\n")
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
        // Until the pipe is closed. A busy machine may delay lines; only a grandchild that holds the pipe is not waited for.
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(2)) {
            self.seen.push(line);
        }
        self.seen.join("\n")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("its standard error: {}", self.stderr());
        }
        if let Ok(None) = self.child.try_wait() {
            // Stopped, it starts hardly anything more while those are counted whom nobody would end without it.
            send(self.child.id(), Signal::SIGSTOP);
            let orphans = descendants_of(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
            orphans.into_iter().for_each(|orphan| send(orphan, Signal::SIGKILL));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// To one that may have ended meanwhile.
fn send(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
}

/// A folder with a configuration in it.
fn written(config: &str) -> (PathBuf, String) {
    let folder = folder();
    let file = folder.join("config.json5");
    fs::write(&file, config.replace("@/", &format!("{}/", folder.display()))).unwrap();
    (folder, file.to_str().unwrap().to_owned())
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

/// Whether this test may do what root may.
pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// Waits until something holds.
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    patience::until_within(PATIENCE, || what.to_owned(), holds);
}

/// The numbers of the children of a process, as this namespace counts.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Their children, too, and so on.
fn descendants_of(pid: u32) -> Vec<u32> {
    children_of(pid).into_iter().flat_map(|child| [vec![child], descendants_of(child)].concat()).collect()
}

/// The states of the children of a process, such as `S` or `Z`.
pub(crate) fn children(pid: u32) -> Vec<char> {
    let state = |child: u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    children_of(pid).into_iter().filter_map(state).collect()
}
