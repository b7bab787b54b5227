//! Converted files run beside the original: the same programs, once under supervisord or honcho and once under
//! containerpilot, record what happens to them, and both records must agree (C11).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::fixtures::migrate;
use crate::support::deadline::wait_until_within;
use crate::support::program::{containerpilot, repository};

const LIMIT: Duration = Duration::from_secs(90);

/// What every job runs.
const PROGRAM: &str = include_str!("beside.sh");

/// A folder with a file, in which `@` is the folder, and the program.
fn folder(name: &str, file: &str, text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("containerpilot-beside-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("run.sh"), PROGRAM).unwrap();
    fs::write(folder.join(file), text.replace('@', folder.to_str().unwrap())).unwrap();
    fs::write(folder.join("record"), "").unwrap();
    folder
}

/// What happened to the programs.
#[derive(Debug)]
struct Record {
    /// The lines of the record.
    lines: Vec<String>,
    /// The exit code of the supervisor.
    code: Option<i32>,
}

impl Record {
    /// The programs in the order of their first starts: that of their process ids.
    fn first_starts(&self) -> Vec<String> {
        let mut starts: Vec<(u32, String)> = Vec::new();
        for line in self.lines.iter().filter_map(|line| line.strip_prefix("started ")) {
            let mut words = line.split(' ');
            let (name, pid) = (words.next().unwrap(), words.next().unwrap());
            if !starts.iter().any(|(_, known)| known == name) {
                starts.push((pid.parse().unwrap(), name.to_owned()));
            }
        }
        starts.sort();
        starts.into_iter().map(|(_, name)| name).collect()
    }

    /// The lines that begin so, in their order.
    fn lines(&self, start: &str) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| line.starts_with(start)).collect()
    }

    /// All lines without process ids, sorted.
    fn sorted(&self) -> Vec<String> {
        let no_pid = |line: &String| match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["started", name, _, rest @ ..] => format!("started {name} {}", rest.join(" ")),
            _ => line.clone(),
        };
        let mut lines: Vec<String> = self.lines.iter().map(no_pid).collect();
        lines.sort();
        lines
    }
}

/// Runs a supervisor until the record has a line that begins so, and then, unless it ends by itself, sends it SIGTERM.
fn run(folder: &Path, mut command: Command, last: &[&str], ends_by_itself: bool) -> Record {
    let log = fs::File::create(folder.join("log")).unwrap();
    command.current_dir(folder).env_remove("PORT").env_remove("CONTAINERPILOT");
    command.env("CONTAINERPILOT_SOCKET", folder.join("socket"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut child: Child = command.spawn().unwrap();
    let lines = || -> Vec<String> {
        fs::read_to_string(folder.join("record")).unwrap().lines().map(str::to_owned).collect()
    };
    let what = || {
        format!("the record has {last:?}: {:?}\n{}", lines(), fs::read_to_string(folder.join("log")).unwrap())
    };
    let is_there = |wanted: &str| lines().iter().any(|line| line.starts_with(wanted));
    wait_until_within(LIMIT, what, || last.iter().all(|wanted| is_there(wanted)));
    if !ends_by_itself {
        // honcho stops only the processes whose start it has seen.
        wait_until_within(LIMIT, what, || {
            let log = fs::read_to_string(folder.join("log")).unwrap();
            log.contains("spawned: ") || log.matches("started (pid").count() >= last.len()
        });
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    }
    let mut code = None;
    wait_until_within(LIMIT, what, || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    Record { lines: lines(), code: code.unwrap().code() }
}

/// Runs a file under its own program and, converted, under containerpilot.
fn both(name: &str, kind: &str, text: &str, last: &[&str], ends_by_itself: bool) -> (Record, Record) {
    let file = if kind == "procfile" { "Procfile" } else { "supervisord.conf" };
    let scripts = repository().join("scripts");
    let original = folder(&format!("{name}-original"), file, text);
    let command = match kind {
        "procfile" => {
            fs::write(original.join(".env"), "GREETING=\" hello\"\n").unwrap();
            let mut command = Command::new(scripts.join("honcho"));
            command.arg("start");
            command
        }
        _ => {
            let mut command = Command::new(scripts.join("supervisord"));
            command.args(["-c", file]);
            command
        }
    };
    let theirs = run(&original, command, last, ends_by_itself);

    let converted = folder(&format!("{name}-converted"), file, text);
    if kind == "procfile" {
        fs::write(converted.join(".env"), "GREETING=\" hello\"\n").unwrap();
    }
    let done = migrate(kind, &converted, file);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    fs::write(converted.join("new.json5"), done.stdout).unwrap();
    let mut command = Command::new(containerpilot());
    command.args(["-config", "new.json5"]);
    let ours = run(&converted, command, last, ends_by_itself);
    for folder in [original, converted] {
        fs::remove_dir_all(folder).unwrap();
    }
    (theirs, ours)
}

/// The settings of supervisord for these tests.
const SUPERVISORD: &str = "[supervisord]\nnodaemon=true\nlogfile=@/supervisord.log\npidfile=@/pid\n";

fn beside_supervisord(name: &str, programs: &str, last: &[&str]) -> (Record, Record) {
    both(name, "supervisord", &format!("{SUPERVISORD}{programs}"), last, false)
}

#[test]
fn c11_supervisord_order_of_starts_and_stops() {
    let programs = "
[program:zebra]
command=sh @/run.sh zebra 0
priority=10
[program:middle]
command=sh @/run.sh middle 0
priority=20
[program:ant]
command=sh @/run.sh ant 0
priority=30
[program:last]
command=sh @/run.sh last 0
";
    let last = ["started zebra", "started middle", "started ant", "started last"];
    let (theirs, ours) = beside_supervisord("order", programs, &last);
    assert_eq!(ours.first_starts(), ["zebra", "middle", "ant", "last"]);
    assert_eq!(theirs.first_starts(), ours.first_starts(), "{theirs:?}\n{ours:?}");
    assert_eq!(ours.lines("stopped"), ["stopped last", "stopped ant", "stopped middle", "stopped zebra"]);
    assert_eq!(theirs.lines("stopped"), ours.lines("stopped"), "{theirs:?}\n{ours:?}");
}

#[test]
fn c11_supervisord_restarts_after_the_same_exits() {
    let programs = "
[program:flaky]
command=sh @/run.sh flaky 0 1 1
[program:expected]
command=sh @/run.sh expected 0 2
exitcodes=0,2
startsecs=0
[program:unexpected]
command=sh @/run.sh unexpected 0 3 0
autorestart=unexpected
startsecs=0
[program:always]
command=sh @/run.sh always 1.5 0 1
autorestart=true
[program:never]
command=sh @/run.sh never 0 1
autorestart=false
startsecs=0
[program:clock]
command=sh @/run.sh clock 10 0
autorestart=false
startsecs=0
";
    let (theirs, ours) = beside_supervisord("restarts", programs, &["exits clock"]);
    assert_eq!(theirs.sorted(), ours.sorted());
    for (name, starts) in [("flaky", 3), ("expected", 1), ("unexpected", 2), ("always", 3), ("never", 1)] {
        assert_eq!(ours.lines(&format!("started {name} ")).len(), starts, "{name}: {ours:?}");
    }
}

#[test]
fn c11_supervisord_gives_up_after_the_same_number_of_attempts() {
    let programs = "
[program:once-more]
command=sh @/run.sh once-more 0 1 1 1 1 1 1
startretries=1
startsecs=3
[program:twice-more]
command=sh @/run.sh twice-more 0.2 1 1 1 1 1 1
autorestart=true
startretries=2
startsecs=3
[program:not-again]
command=sh @/run.sh not-again 0 1 1 1
startretries=0
startsecs=3
[program:longer]
command=sh @/run.sh longer 4 1 1
startretries=0
startsecs=3
[program:clock]
command=sh @/run.sh clock 15 0
autorestart=false
startsecs=0
";
    let (theirs, ours) = beside_supervisord("attempts", programs, &["exits clock"]);
    assert_eq!(theirs.sorted(), ours.sorted());
    for (name, starts) in [("once-more", 2), ("twice-more", 3), ("not-again", 1), ("longer", 3)] {
        assert_eq!(ours.lines(&format!("started {name} ")).len(), starts, "{name}: {ours:?}");
    }
}

#[test]
fn c11_procfile_stops_all_when_one_exits() {
    let procfile = "web: sh @/run.sh web 0\nonce: sh @/run.sh once 1 0\nworker: sh @/run.sh worker 0\n";
    let (theirs, ours) = both("exits", "procfile", procfile, &["exits once"], true);
    assert_eq!((theirs.sorted(), theirs.code), (ours.sorted(), ours.code));
    assert!(ours.sorted().contains(&"started worker 5200 hello".to_owned()), "{ours:?}");
    assert_eq!((ours.lines("stopped").len(), ours.code), (2, Some(0)));
}

#[test]
fn c11_procfile_exits_with_the_code_of_the_first_failure() {
    let procfile = "# a comment\nweb: sh @/run.sh web 0\n\nfails: cd @ && exec sh @/run.sh fails 1 7\n";
    let (theirs, ours) = both("fails", "procfile", procfile, &["exits fails"], true);
    assert_eq!((theirs.sorted(), theirs.code), (ours.sorted(), ours.code));
    assert_eq!(ours.code, Some(7));
}

#[test]
fn c11_procfile_stops_all_at_a_signal() {
    let procfile = "web: sh '@/run.sh' web 0\r\nworker_1: exec sh \"@/run.sh\" worker 0\r\n";
    let (theirs, ours) = both("signal", "procfile", procfile, &["started web", "started worker"], false);
    assert_eq!(theirs.sorted(), ours.sorted());
    assert_eq!(ours.lines("stopped").len(), 2);
}
