//! Converted files of programs that the tests cannot install: `tests/tools/import/recorded/KIND/NAME/record` is what
//! Pebble 1.32.1 and process-compose 1.122 (without its user interface) did with the file beside it, and the converted
//! file must do the same (C11).
//!
//! The processes, which are runs of `run.sh`, append to the record what happens to them. `-- SIGTERM` in it is the
//! signal to the supervisor, and its last line is the exit code of the supervisor.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::fixtures::{self, Scratch};
use crate::support::deadline::wait_until_within;
use crate::support::program::containerpilot;

const LIMIT: Duration = Duration::from_secs(90);

#[derive(Debug, PartialEq, Eq)]
struct Record {
    /// The lines until the supervisor was sent SIGTERM, or until its end. They are sorted: the order of independent
    /// processes is random.
    before: Vec<String>,
    /// The lines after that, sorted.
    after: Vec<String>,
    /// The lines after that about the processes that stop one after the other, in their order.
    in_order: Vec<String>,
    code: Option<i32>,
}

impl Record {
    fn new(before: &[String], after: &[String], ordered: &[&str], code: Option<i32>) -> Self {
        let sorted = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort();
            lines
        };
        let is_ordered = |line: &&String| ordered.contains(&line.split(' ').nth(1).unwrap_or_default());
        let in_order = after.iter().filter(is_ordered).cloned().collect();
        Self { before: sorted(before), after: sorted(after), in_order, code }
    }
}

/// Runs a converted file as the original ran: until the record has the lines that it had before SIGTERM, or until the
/// end.
fn agrees(kind: &str, name: &str, ordered: &[&str]) {
    let source = fixtures::folder("recorded");
    let recorded = fs::read_to_string(source.join(kind).join(name).join("record")).unwrap();
    let mut lines: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let code = lines.pop().unwrap().strip_prefix("-- exit code ").unwrap().parse().ok();
    let signal = lines.iter().position(|line| line == "-- SIGTERM");
    let (before, after) = lines.split_at(signal.unwrap_or(lines.len()));
    let theirs = Record::new(before, after.get(1..).unwrap_or_default(), ordered, code);

    let scratch = Scratch::new(&format!("{kind}-{name}"));
    let folder = scratch.0.as_path();
    fs::create_dir(folder.join("files")).unwrap();
    for entry in fs::read_dir(source.join(kind).join(name)).unwrap() {
        let entry = entry.unwrap();
        let text = fs::read_to_string(entry.path()).unwrap().replace('@', folder.to_str().unwrap());
        if entry.file_name() != "record" {
            fs::write(folder.join("files").join(entry.file_name()), text).unwrap();
        }
    }
    fs::copy(source.join("run.sh"), folder.join("run.sh")).unwrap();
    fs::write(folder.join("record"), "").unwrap();
    let converted = fixtures::migrate(kind, folder, "files");
    let message = String::from_utf8_lossy(&converted.stderr);
    assert!(converted.status.code().is_some_and(|code| code == 0 || code == 3), "{message}");
    fs::write(folder.join("new.json5"), &converted.stdout).unwrap();

    let log = fs::File::create(folder.join("log")).unwrap();
    let mut child = Command::new(containerpilot())
        .args(["-config", "new.json5"])
        .current_dir(folder)
        .env("CONTAINERPILOT_SOCKET", folder.join("socket"))
        .env_remove("CONTAINERPILOT")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let read = || -> Vec<String> {
        fs::read_to_string(folder.join("record")).unwrap().lines().map(str::to_owned).collect()
    };
    let what = || format!("{kind}/{name}: {:?}\n{}", read(), fs::read_to_string(folder.join("log")).unwrap());
    let mut at_signal = None;
    if signal.is_some() {
        wait_until_within(LIMIT, what, || {
            let mut found = read();
            found.sort();
            let has = |line: &String| {
                found.iter().filter(|other| *other == line).count()
                    >= theirs.before.iter().filter(|other| *other == line).count()
            };
            theirs.before.iter().all(has)
        });
        at_signal = Some(read().len());
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    }
    let mut status = None;
    wait_until_within(LIMIT, what, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let lines = read();
    let (before, after) = lines.split_at(at_signal.unwrap_or(lines.len()));
    let ours = Record::new(before, after, ordered, status.unwrap().code());
    assert_eq!(ours, theirs, "{}", what());
}

#[test]
fn c11_pebble_services_restart_in_the_same_way() {
    agrees("pebble", "restarts", &[]);
}

#[test]
fn c11_pebble_services_stop_in_the_same_order() {
    agrees("pebble", "stop", &["a", "b", "c"]);
}

#[test]
fn c11_pebble_exits_with_the_same_code() {
    agrees("pebble", "failure-shutdown", &[]);
}

#[test]
fn c11_pebble_checks_restart_a_service_as_often() {
    agrees("pebble", "check-restart", &[]);
}

#[test]
fn c11_pebble_checks_do_not_concern_the_exits_of_a_service() {
    agrees("pebble", "check-exit", &[]);
}

#[test]
fn c11_pebble_checks_start_a_service_that_has_ended() {
    agrees("pebble", "check-revive", &[]);
}

#[test]
fn c11_pebble_exits_with_10_after_a_failure() {
    agrees("pebble", "shutdown-failure", &[]);
}

#[test]
fn c11_process_compose_conditions_start_the_same_processes() {
    agrees("process-compose", "order", &[]);
}

#[test]
fn c11_process_compose_processes_restart_in_the_same_way() {
    agrees("process-compose", "restarts", &[]);
}

#[test]
fn c11_process_compose_processes_get_the_same_signals() {
    agrees("process-compose", "stop", &[]);
}

#[test]
fn c11_process_compose_processes_stop_in_the_same_order() {
    agrees("process-compose", "ordered", &["a", "b", "c"]);
}

#[test]
fn c11_process_compose_exits_with_the_same_code() {
    agrees("process-compose", "exit-on-failure", &[]);
}

#[test]
fn c11_process_compose_conditions_mean_the_last_end() {
    agrees("process-compose", "last-end", &[]);
}

#[test]
fn c11_process_compose_probes_give_a_process_time_to_start() {
    agrees("process-compose", "probe-slow-start", &[]);
}

#[test]
fn c11_process_compose_shutdown_command_replaces_the_signal() {
    agrees("process-compose", "shutdown-command", &["polite"]);
}
