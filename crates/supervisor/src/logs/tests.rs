//! The whole log with real pipes and the real log thread. No test sleeps; conditions are waited for.

mod job_files;
mod join;
mod lines;
mod output;
mod queue;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use containerpilot_core::plan::{self, Format, JobLogging, Level, Logging};
use serde_json::Value;

use super::output::LogSink;
use super::{LogSource, Logs};

const PATIENCE: Duration = Duration::from_secs(60);

fn logging(format: Format) -> Logging {
    Logging { level: Level::Info, format, output: plan::Output::Stdout }
}

/// A log that writes into a pipe.
fn piped(format: Format) -> (Logs, io::PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    let output = LogSink::shared(writer.into()).unwrap();
    (Logs::start_on(output, &logging(format)).unwrap(), reader)
}

/// A log that writes into a file.
fn filed(path: &Path) -> Logs {
    let output = plan::Output::File(path.to_str().unwrap().into());
    Logs::start(&Logging { output, ..logging(Format::Default) }).unwrap()
}

/// The write ends of a new process's stdout and stderr.
fn attach(logs: &Logs, job: &str, pid: u32) -> (io::PipeWriter, io::PipeWriter) {
    attach_with(logs, job, pid, JobLogging::default())
}

/// The same for a process whose lines are logged in a certain way.
fn attach_with(logs: &Logs, job: &str, pid: u32, logging: JobLogging) -> (io::PipeWriter, io::PipeWriter) {
    let (stdout, stdout_writer) = io::pipe().unwrap();
    let (stderr, stderr_writer) = io::pipe().unwrap();
    let source = LogSource { job: job.into(), pid, check: None, hidden: None, logging, run: None };
    logs.attach(stdout.into(), stderr.into(), source);
    (stdout_writer, stderr_writer)
}

/// Reads everything on its own thread.
fn collect(mut reader: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all
    })
}

/// Finishes the log.
fn end(logs: Logs) {
    assert!(logs.finish(Instant::now() + PATIENCE, None), "not everything was written");
    drop(logs);
}

/// Finishes the log and returns its lines without times.
fn finish(logs: Logs, reader: JoinHandle<Vec<u8>>) -> Vec<String> {
    end(logs);
    texts(&reader.join().unwrap())
}

/// The lines of a log, without their times.
fn texts(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| line.split_once("Z ").expect("a time").1.to_owned()).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("containerpilot-logs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn l6_failed_exit_shows_the_last_lines_of_its_run() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    for pid in 0..500 {
        let (mut stdout, mut stderr) = attach(&logs, "main", pid);
        if pid % 2 == 0 {
            write!(stdout, "1\n2\n3\n4\n5\nout of run {pid}").unwrap();
            drop(stdout);
        } else {
            writeln!(stderr, "why of run {pid}").unwrap();
        }
        logs.process_exited(pid);
        logs.push(Level::Error, Some("main"), &format!("run {pid} failed"), None, Some(pid));
    }
    let lines = finish(logs, reader);
    let entries: Vec<_> = lines.iter().filter(|line| line.contains(" failed")).collect();
    assert_eq!(entries.len(), 500);
    for (pid, entry) in entries.into_iter().enumerate() {
        let output = if pid % 2 == 0 {
            format!("2 | 3 | 4 | 5 | out of run {pid}")
        } else {
            format!("why of run {pid}")
        };
        assert_eq!(*entry, format!("main run {pid} failed; last output: {output}"));
    }
}

#[test]
fn s6_finish_is_bounded_if_the_log_is_not_read() {
    let (logs, _reader) = piped(Format::Default);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let (sender, stuck) = mpsc::channel();
    std::thread::spawn(move || {
        let block = vec![b'\n'; 64 << 10];
        while stdout.write_all(&block).is_ok() {}
        sender.send(()).unwrap();
    });
    until("something is kept", || !logs.tails().last_lines("main").is_empty());
    let start = Instant::now();
    assert!(!logs.finish(start + Duration::from_millis(300), None));
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(logs);
    // The thread has ended and closed the pipe.
    stuck.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn s6_dropping_the_log_stops_its_thread() {
    let (logs, reader) = piped(Format::Default);
    logs.entry(Level::Info, None, "bye");
    drop(logs);
    assert_eq!(texts(&collect(reader).join().unwrap()), ["bye"]);
}

#[test]
fn l2_output_of_many_processes_is_read() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let mut children = Vec::new();
    for pid in 0..200 {
        let (mut stdout, stderr) = attach(&logs, &format!("job {pid}"), pid);
        stdout.write_all(b"hello\nbeginning").unwrap();
        children.push((stdout, stderr));
    }
    until("all were read", || {
        (0..200).all(|pid| logs.tails().last_lines(&format!("job {pid}")) == ["hello"])
    });
    drop(children);
    let lines = finish(logs, reader);
    assert_eq!(lines.len(), 400);
}
