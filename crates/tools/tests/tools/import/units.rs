//! The fixtures `beside-*` of s6 run under s6 and under containerpilot, with the same record of what their programs
//! did.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::fixtures::{Scratch, folder, migrate};
use crate::support::deadline::InTime;
use crate::support::deadline::wait_until_within;
use crate::support::program::containerpilot;
use crate::tools;

const DEADLINE: Duration = Duration::from_secs(60);

fn until(what: &str, holds: impl FnMut() -> bool) {
    wait_until_within(DEADLINE, || what.to_owned(), holds);
}

fn copy(from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to, change);
        } else {
            std::fs::write(&to, change(std::fs::read_to_string(&from).unwrap())).unwrap();
            std::fs::set_permissions(&to, std::fs::metadata(&from).unwrap().permissions()).unwrap();
        }
    }
}

/// The lines of the record, sorted: services start and stop at the same time.
fn record(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Waits until the record is complete, stops the supervisor with SIGTERM, and returns the whole record.
fn finish(mut supervisor: Child, path: &Path, expected: &[&str]) -> Vec<String> {
    let started: Vec<&&str> = expected.iter().filter(|line| line.ends_with(" up")).collect();
    until("all services have started", || {
        let lines = record(path);
        lines.iter().filter(|line| line.ends_with(" up")).count() >= started.len()
    });
    let pid = supervisor.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status_in_time().unwrap().success());
    until("the supervisor has exited", || supervisor.try_wait().unwrap().is_some());
    record(path)
}

/// Runs a scan directory under s6-svscan, and under containerpilot after its conversion. Both must leave the expected
/// record. `/tmp/import-beside-log` in a fixture is a folder of each run.
fn beside_s6(name: &str, expected: &[&str], log: &str) {
    for original in [true, false] {
        let scratch = Scratch::new(&format!("{name}-{original}"));
        let (services, logs, record) =
            (scratch.0.join("services"), scratch.0.join("logs"), scratch.0.join("record"));
        std::fs::create_dir(&logs).unwrap();
        let here = logs.to_str().unwrap();
        copy(&folder("s6").join(name), &services, &|text| text.replace("/tmp/import-beside-log", here));
        let mut command = if original {
            // A shell cannot trap a signal that is ignored when it starts, as SIGINT is in a background job of a
            // script.
            let mut command = Command::new("env");
            command.args(["--default-signal", "s6-svscan"]);
            command
        } else {
            let converted = migrate("s6", &scratch.0, services.to_str().unwrap());
            std::fs::write(scratch.0.join("converted.json5"), converted.stdout).unwrap();
            let mut command = Command::new(containerpilot());
            command.arg("-config").arg(scratch.0.join("converted.json5"));
            command.env("CONTAINERPILOT_SOCKET", scratch.0.join("socket"));
            command
        };
        if original {
            command.arg(&services);
        }
        command.env("RECORD", &record).stdout(Stdio::null()).stderr(Stdio::null());
        let found = finish(command.spawn().unwrap(), &record, expected);
        let who = if original { "s6" } else { "containerpilot" };
        assert_eq!(found, expected, "{name} under {who}");
        assert_eq!(
            std::fs::read_to_string(logs.join("current")).unwrap_or_default(),
            log,
            "{name} under {who}"
        );
    }
}

#[test]
fn c11_s6_services_get_the_same_signals() {
    beside_s6("beside-signals", &["plain TERM", "plain up", "polite INT", "polite up"], "");
}

#[test]
fn c11_s6_services_restart_in_the_same_way() {
    beside_s6("beside-restarts", &["crash up", "crash up", "crash up", "once up"], "");
}

#[test]
fn c11_s6_log_and_the_file_of_a_job_have_the_same_lines() {
    beside_s6("beside-log", &["talk up"], "one\ntwo\n");
}

/// The order of starts and stops is the one that systemd 252 had, as PID 1 of a PID namespace with the units of this
/// fixture.
#[test]
fn c11_units_start_and_stop_in_the_order_of_systemd() {
    let scratch = Scratch::new("order");
    let record = scratch.0.join("record");
    let converted = migrate("systemd", &folder("systemd"), "order");
    std::fs::write(scratch.0.join("converted.json5"), converted.stdout).unwrap();
    let mut command = Command::new(containerpilot());
    command.arg("-config").arg(scratch.0.join("converted.json5"));
    command.env("CONTAINERPILOT_SOCKET", scratch.0.join("socket")).env("RECORD", &record);
    let mut supervisor = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || -> Vec<String> {
        std::fs::read_to_string(&record).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    until("everything has started, and the crash loop has ended", || {
        let lines = lines();
        ["app up 4 a", "late two", "alert crash.service"]
            .iter()
            .all(|line| lines.iter().any(|found| found == line))
    });
    let pid = supervisor.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status_in_time().unwrap().success());
    until("the supervisor has exited", || supervisor.try_wait().unwrap().is_some());
    let (crash, others): (Vec<String>, Vec<String>) =
        lines().into_iter().partition(|line| line.contains("crash"));
    assert_eq!(crash, ["crash up", "crash up", "crash up", "alert crash.service"]);
    // A simple service has started when its process exists, so what comes after it does not wait for its first line.
    let (up, others): (Vec<String>, Vec<String>) =
        others.into_iter().partition(|line| line.starts_with("app up"));
    assert_eq!(up, ["app up 4 a"]);
    let expected =
        ["setup up", "app pre", "late one", "late two", "app stop", "app INT", "app post", "setup down"];
    assert_eq!(others, expected);
}

#[test]
fn c11_a_unit_that_does_not_exist_is_said_to_be_missing() {
    let done = migrate("systemd", &folder("systemd"), "absent");
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{err}");
    assert!(err.contains("cannot read absent: no such file or directory"), "{err}");
}

/// The files below a folder of the fixtures, by their path from there.
fn files_below(folder: &Path, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join(name)).unwrap();
    let names = entries.map(|entry| format!("{name}/{}", entry.unwrap().file_name().to_str().unwrap()));
    names
        .flat_map(|name| match folder.join(&name).is_dir() {
            true => files_below(folder, &name),
            false => vec![name],
        })
        .collect()
}

/// Every assignment is a comment or is listed, unless its whole file is.
#[test]
fn c11_every_line_of_the_units_is_in_the_result() {
    let folder = folder("systemd");
    let mut lost = Vec::new();
    let mut lines = 0;
    for entry in std::fs::read_dir(&folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()) {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let converted = String::from_utf8(migrate("systemd", &folder, &name).stdout).unwrap();
        // The files in `x.target.wants` stand for links.
        for file in files_below(&folder, &name).iter().filter(|file| !file.contains(".wants/")) {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let assignments = text.lines().enumerate().filter(|(_, line)| {
                line.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains('=')
            });
            for (index, line) in assignments {
                lines += 1;
                let listed = [
                    format!("{file}:{}  ", index + 1),
                    format!("{file}:{}: ", index + 1),
                    format!("- {file}:1: "),
                ];
                if !listed.iter().any(|place| converted.contains(place)) {
                    lost.push(format!("{file}:{}  {line}", index + 1));
                }
            }
        }
    }
    assert!(lines > 100 && lost.is_empty(), "{lines} lines, of which these are lost: {lost:#?}");
}

/// What systemd says about the times of a calendar event from the start of 2026 on, in seconds since then.
fn systemd_times(event: &str, until: u64) -> Vec<u64> {
    let base = "2026-01-01 00:00:00 UTC";
    let mut command = Command::new("systemd-analyze");
    command.env("TZ", "UTC").args(["calendar", "--iterations=12", "--base-time", base, event]);
    let done = command.output_in_time().unwrap();
    assert!(done.status.success(), "{event}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let times = text
        .lines()
        .filter(|line| line.ends_with(" UTC") && (line.contains("Iter.") || line.contains("Next elapse")));
    let seconds = times.map(|line| {
        let words: Vec<&str> = line.split_whitespace().rev().take(3).collect();
        let [_, time, date] = words.as_slice() else { panic!("{line}") };
        let date: Vec<u64> = date.split('-').map(|part| part.parse().unwrap()).collect();
        let clock: Vec<u64> = time.split(':').map(|part| part.parse().unwrap()).collect();
        let [year, month, day] = date.as_slice() else { panic!("{line}") };
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let days: u64 = lengths.iter().take(usize::try_from(*month).unwrap() - 1).sum();
        let days = (year - 2026) * 365 + days + day - 1;
        ((days * 24 + clock[0]) * 60 + clock[1]) * 60 + clock[2]
    });
    seconds.filter(|seconds| *seconds <= until).collect()
}

/// When `simulate` starts the job of a converted timer, in seconds.
fn simulated_times(event: &str, scratch: &Path, until: u64) -> Vec<u64> {
    std::fs::write(scratch.join("x.service"), "[Service]\nType=oneshot\nExecStart=/bin/true\n").unwrap();
    std::fs::write(scratch.join("x.timer"), format!("[Timer]\nOnCalendar={event}\n")).unwrap();
    let converted = migrate("systemd", scratch, ".");
    assert!(converted.status.success(), "{event}: {}", String::from_utf8_lossy(&converted.stderr));
    std::fs::write(scratch.join("x.json5"), converted.stdout).unwrap();
    let scenario = format!("{{ at: \"2026-01-01T00:00:00Z\", until: \"{until}s\" }}");
    std::fs::write(scratch.join("scenario.json5"), scenario).unwrap();
    let mut command = Command::new(tools());
    let done = command
        .current_dir(scratch)
        .args(["simulate", "--full", "x.json5", "scenario.json5"])
        .output_in_time()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let starts = text.lines().filter(|line| line.split_whitespace().nth(2) == Some("starts"));
    let seconds = starts.map(|line| {
        let clock: Vec<f64> =
            line.split_whitespace().next().unwrap().split(':').map(|part| part.parse().unwrap()).collect();
        let seconds = (clock[0] * 60.0 + clock[1]) * 60.0 + clock[2];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
        let seconds = seconds as u64;
        seconds
    });
    seconds.take(12).collect()
}

/// `systemd-analyze calendar` and `simulate` agree about the next times.
#[test]
fn c11_calendar_events_have_the_times_of_systemd() {
    let scratch = Scratch::new("calendar");
    let day = 24 * 3600;
    for (event, days) in [
        ("hourly", 1),
        ("daily", 20),
        ("weekly", 100),
        ("monthly", 300),
        ("quarterly", 400),
        ("semiannually", 400),
        ("yearly", 700),
        ("Mon..Fri 09:00", 30),
        ("Sat,Sun *-*-* 10:30", 60),
        ("sunday 23:15", 60),
        ("Mon *-*-01..07 04:00:00", 350),
        ("Sun *-*-8..14 05:00", 350),
        ("Tue *-*-1/2 06:00", 300),
        ("*:0/15", 1),
        ("*:5/20", 1),
        ("8..18/2:30", 3),
        ("*-*-1,15 12:00", 300),
        ("03-01 00:30", 700),
        ("*-2..4-* 1:00 UTC", 60),
        ("*-*-31 02:00", 500),
    ] {
        let until = days * day;
        // The first time of systemd is after the base time, and that of the supervisor may be at its start.
        let ours: Vec<u64> =
            simulated_times(event, &scratch.0, until).into_iter().filter(|time| *time > 0).collect();
        let theirs: Vec<u64> = systemd_times(event, until);
        let count = ours.len().min(theirs.len());
        assert!(count > 0 && ours.len().abs_diff(theirs.len()) <= 1, "{event}: {ours:?} {theirs:?}");
        assert_eq!(ours[..count], theirs[..count], "{event}");
    }
}
