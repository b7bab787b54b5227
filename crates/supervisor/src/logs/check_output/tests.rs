use std::io::{self, PipeWriter, Write};
use std::path::{Path, PathBuf};

use containerpilot_core::plan::{self, Format, Level, Logging};
use containerpilot_test_support::{folder, until};

use super::*;

/// A log in a file.
fn log() -> (Logs, PathBuf) {
    let file = folder().join("log");
    let output = plan::Output::File(file.to_str().unwrap().into());
    (Logs::start(&Logging { level: Level::Info, format: Format::Default, output }).unwrap(), file)
}

/// Starts a check and returns the write ends of its pipes.
fn start(outputs: &mut CheckOutputs, pid: u32) -> (PipeWriter, PipeWriter) {
    let (stdout, stdout_writer) = io::pipe().unwrap();
    let (stderr, stderr_writer) = io::pipe().unwrap();
    let source = LogSource {
        job: "web".into(),
        pid,
        check: Some("check.web".into()),
        hidden: None,
        logging: containerpilot_core::plan::JobLogging::default(),
        run: None,
    };
    outputs.started(stdout.into(), stderr.into(), source);
    (stdout_writer, stderr_writer)
}

/// The lines of the log, without their times.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| line.split_once("Z ").expect("a time").1.to_owned()).collect()
}

/// Finishes the log and returns its lines.
fn finish(logs: Logs, file: &Path) -> Vec<String> {
    assert!(logs.finish(Instant::now() + Duration::from_secs(30), None));
    let lines = lines(file);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    lines
}

#[test]
fn l2_silent_check_does_not_wake_the_log_thread() {
    let (logs, file) = log();
    let mut outputs = CheckOutputs::default();
    for pid in 1..10 {
        drop(start(&mut outputs, pid));
        assert!(outputs.next_due().is_some());
        // A child that another test starts in this process has copies of the pipes until its `execve`.
        until(|| outputs.outputs.get(&pid).unwrap().is_finished());
        outputs.exited(pid, &logs);
        assert_eq!((outputs.next_due(), outputs.outputs.len()), (None, 0), "no wake-up is scheduled");
    }
    assert!(logs.is_unused());
    assert!(finish(logs, &file).is_empty());
}

#[test]
fn p4_last_lines_without_a_newline_belong_to_their_runs() {
    let (logs, file) = log();
    let mut outputs = CheckOutputs::default();
    for pid in [7, 8] {
        let (mut stdout, mut stderr) = start(&mut outputs, pid);
        write!(stdout, "first\nlast of {pid}").unwrap();
        write!(stderr, "trouble").unwrap();
        drop((stdout, stderr));
        outputs.exited(pid, &logs);
        logs.entry(Level::Info, Some("web"), "failed");
    }
    let of = |pid: u32| {
        ["first", &format!("last of {pid}"), "trouble"].map(|text| format!("web/check.web {pid} {text}"))
    };
    let expected = [&of(7)[..], &["web failed".to_owned()], &of(8), &["web failed".to_owned()]].concat();
    assert_eq!(finish(logs, &file), expected);
}

#[test]
fn p4_output_of_a_process_that_outlives_its_check_is_read() {
    let (logs, file) = log();
    let mut outputs = CheckOutputs::default();
    let (mut daemon, _) = start(&mut outputs, 7);
    outputs.exited(7, &logs);
    logs.entry(Level::Info, Some("web"), "is well");
    let (mut next, _) = start(&mut outputs, 8);
    write!(next, "next").unwrap();
    drop(next);
    outputs.exited(8, &logs);
    until(|| lines(&file).len() == 2);
    daemon.write_all(b"still here\n").unwrap();
    until(|| lines(&file).len() == 3);
    assert_eq!(
        finish(logs, &file),
        ["web is well", "web/check.web 8 next", "web/check.web 7 still here"],
        "each with the pid of its run"
    );
}

#[test]
fn l2_a_check_that_runs_for_a_while_is_read_while_it_runs() {
    let (logs, file) = log();
    let mut outputs = CheckOutputs::default();
    let (mut stdout, _stderr) = start(&mut outputs, 7);
    stdout.write_all(b"under way\n").unwrap();
    until(|| {
        outputs.follow_due(&logs);
        lines(&file) == ["web/check.web 7 under way"]
    });
    assert_eq!(outputs.next_due(), None);
    stdout.write_all(b"almost").unwrap();
    outputs.exited(7, &logs);
    logs.entry(Level::Info, None, "next");
    assert_eq!(finish(logs, &file)[1..], ["web/check.web 7 almost", "next"]);
}

#[test]
fn s6_check_output_not_yet_followed_is_written_at_the_end() {
    let (logs, file) = log();
    let mut outputs = CheckOutputs::default();
    let (mut stdout, _stderr) = start(&mut outputs, 7);
    stdout.write_all(b"last words").unwrap();
    outputs.follow_all(&logs);
    assert_eq!(finish(logs, &file), ["web/check.web 7 last words"]);
}
