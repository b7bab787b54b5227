//! The log as a whole: real pipes, the real thread, and bad luck. No test sleeps; what must come is waited for.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use containerpilot_core::plan::{self, Format, Level, Logging};
use serde_json::Value;

use super::output::Output;
use super::{Logs, Source};

const PATIENCE: Duration = Duration::from_secs(60);

fn logging(format: Format) -> Logging {
    Logging { level: Level::Info, format, output: plan::Output::Stdout }
}

/// A log that writes into a pipe.
fn piped(format: Format) -> (Logs, io::PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    let output = Output::shared(writer.into()).unwrap();
    (Logs::start_on(output, &logging(format)).unwrap(), reader)
}

/// A log that writes into a file.
fn filed(path: &Path) -> Logs {
    let output = plan::Output::File(path.to_str().unwrap().into());
    Logs::start(&Logging { output, ..logging(Format::Default) }).unwrap()
}

/// The write ends of a new process's stdout and stderr.
fn attach(logs: &Logs, job: &str, pid: u32) -> (io::PipeWriter, io::PipeWriter) {
    let (stdout, stdout_writer) = io::pipe().unwrap();
    let (stderr, stderr_writer) = io::pipe().unwrap();
    logs.attach(stdout.into(), stderr.into(), Source { job: job.into(), pid, check: None });
    (stdout_writer, stderr_writer)
}

/// Reads all that comes, on a thread of its own.
fn collect(mut reader: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all
    })
}

/// Ends the log.
fn end(logs: Logs) {
    assert!(logs.finish(Instant::now() + PATIENCE), "not everything was written");
    drop(logs);
}

/// Ends the log and returns what it has written, without times.
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
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A folder that is removed again.
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
fn l2_each_line_is_an_entry_and_the_last_needs_no_newline() {
    let (logs, reader) = piped(Format::Default);
    let (mut stdout, mut stderr) = attach(&logs, "main", 7);
    stdout.write_all(b"one\n\ntw").unwrap();
    stdout.write_all(b"o\nthree").unwrap();
    drop(stdout);
    stderr.write_all(b"four").unwrap();
    drop(stderr);
    logs.process_exited(7);
    logs.entry(Level::Info, Some("main"), "exited");
    let mut lines = finish(logs, collect(reader));
    assert_eq!(lines.pop().unwrap(), "main exited");
    let four = lines.iter().position(|line| line == "main 7 four").unwrap();
    lines.remove(four);
    assert_eq!(lines, ["main 7 one", "main 7 ", "main 7 two", "main 7 three"]);
}

#[test]
fn l2_lines_of_a_check_are_labelled() {
    let (logs, reader) = piped(Format::Json);
    let (stdout, mut writer) = io::pipe().unwrap();
    let (stderr, _) = io::pipe().unwrap();
    logs.attach(
        stdout.into(),
        stderr.into(),
        Source { job: "main".into(), pid: 3, check: Some("web".into()) },
    );
    writer.write_all(b"ok").unwrap();
    drop(writer);
    logs.process_exited(3);
    logs.entry_with_output(Level::Error, "main", 3, "failed");
    assert!(logs.tails().last_lines("main").is_empty(), "a check's output is not the job's");
    end(logs);
    let all = String::from_utf8(collect(reader).join().unwrap()).unwrap();
    let entries: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&entries[0]["check"], &entries[0]["msg"]), (&"web".into(), &"ok".into()));
    assert_eq!(entries[1].get("output"), None);
}

#[test]
fn p4_grandchild_that_keeps_the_pipe_open_delays_nothing() {
    let (logs, mut reader) = piped(Format::Default);
    let (mut stdout, _stderr) = attach(&logs, "main", 7);
    stdout.write_all(b"done\nalmost").unwrap();
    logs.process_exited(7);
    logs.entry(Level::Info, None, "exited");
    let mut next = move || {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        texts(&line).remove(0)
    };
    assert_eq!([next(), next(), next()], ["main 7 done", "main 7 almost", "exited"]);
    stdout.write_all(b"still here\n").unwrap();
    assert_eq!(next(), "main 7 still here");
    stdout.write_all(b"and gone").unwrap();
    drop(stdout);
    assert_eq!(next(), "main 7 and gone");
}

#[test]
fn l2_process_that_closes_its_output_keeps_running() {
    let (logs, reader) = piped(Format::Default);
    let (stdout, mut stderr) = attach(&logs, "main", 7);
    drop(stdout);
    stderr.write_all(b"alive\n").unwrap();
    until("the line is there", || logs.tails().last_lines("main") == ["alive"]);
    drop(stderr);
    logs.process_exited(7);
    assert_eq!(finish(logs, collect(reader)), ["main 7 alive"]);
}

#[test]
fn l2_level_above_info_hides_lines_but_keeps_the_last_ones() {
    let (reader, writer) = io::pipe().unwrap();
    let warn = Logging { level: Level::Warn, ..logging(Format::Default) };
    let logs = Logs::start_on(Output::shared(writer.into()).unwrap(), &warn).unwrap();
    let (mut stdout, _) = attach(&logs, "main", 7);
    stdout.write_all(b"hidden\nalso").unwrap();
    drop(stdout);
    logs.process_exited(7);
    logs.entry(Level::Info, None, "hidden too");
    logs.entry_with_output(Level::Warn, "main", 7, "shown");
    until("the lines are kept", || logs.tails().last_lines("main") == ["hidden", "also"]);
    logs.forget("main");
    until("they are forgotten", || logs.tails().last_lines("main").is_empty());
    let lines = finish(logs, collect(reader));
    assert!(lines.len() == 1 && lines[0].starts_with("main shown"));
}

#[test]
fn l3_line_of_ten_megabytes_is_one_entry() {
    for (format, byte) in
        [(Format::Default, b'x'), (Format::Json, 0), (Format::Text, b'"'), (Format::Json, 0xc3)]
    {
        let (logs, reader) = piped(format);
        let reader = collect(reader);
        let (mut stdout, _) = attach(&logs, "main", 7);
        stdout.write_all(b"before\n").unwrap();
        stdout.write_all(&vec![byte; 10 << 20]).unwrap();
        stdout.write_all(b"\nafter\n").unwrap();
        drop(stdout);
        logs.process_exited(7);
        end(logs);
        let all = reader.join().unwrap();
        let lines: Vec<&[u8]> = all.strip_suffix(b"\n").unwrap().split(|&byte| byte == b'\n').collect();
        assert_eq!(lines.len(), 3);
        let letters = match format {
            Format::Json => {
                let value: Value = serde_json::from_slice(lines[1]).unwrap();
                value["msg"].as_str().unwrap().chars().count()
            }
            Format::Text => lines[1].windows(2).filter(|pair| pair == b"\\\"").count(),
            Format::Default => lines[1].iter().filter(|&&found| found == byte).count(),
        };
        assert_eq!(letters, 10 << 20, "{format:?}");
    }
}

#[test]
fn l3_characters_are_not_split_inside_a_long_line() {
    let (logs, reader) = piped(Format::Json);
    let reader = collect(reader);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let text = format!("x{}", "🦀ß∂".repeat(200_000));
    stdout.write_all(text.as_bytes()).unwrap();
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let value: Value = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    assert!(value["msg"] == text);
}

#[test]
fn l3_endless_line_is_split_into_marked_entries() {
    let (logs, reader) = piped(Format::Json);
    let reader = collect(reader);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let part = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        stdout.write_all(&part).unwrap();
    }
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let all = String::from_utf8(reader.join().unwrap()).unwrap();
    let parts: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parts.iter().map(|part| part["msg"].as_str().unwrap().len()).sum::<usize>(), 40 << 20);
    let (last, others) = parts.split_last().unwrap();
    assert!(others.len() >= 2 && others.iter().all(|part| part["partial"] == true));
    assert_eq!(last.get("partial"), None);
}

/// A reader that takes little at a time, so that the writer is blocked again and again.
struct Slow(io::PipeReader, usize);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 % 5000 + 701;
        std::thread::yield_now();
        let end = buffer.len().min(self.1);
        self.0.read(&mut buffer[..end])
    }
}

#[test]
fn l3_lines_are_never_mixed_whatever_the_bytes_and_the_pace() {
    for seed in 1..=6_u64 {
        let (logs, reader) = piped(Format::Default);
        let reader = if seed % 2 == 0 { collect(reader) } else { collect(Slow(reader, 0)) };
        let writers: Vec<_> = (0..4)
            .map(|nth: u32| {
                let (mut stdout, _) = attach(&logs, "j", nth);
                std::thread::spawn(move || {
                    let mut state = seed * 1_000 + u64::from(nth) + 1;
                    let mut chance = move |below: u64| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        state % below
                    };
                    let mut lines: Vec<Vec<u8>> = Vec::new();
                    for _ in 0..300 {
                        let length = match chance(10) {
                            0 => chance(200_000),
                            1 => 0,
                            _ => chance(300),
                        };
                        let byte = |value: u64| if value as u8 == b'\n' { 0 } else { value as u8 };
                        lines.push((0..length).map(|_| byte(chance(256))).collect());
                    }
                    let mut all = lines.join(&b'\n');
                    all.push(b'\n');
                    let mut rest = all.as_slice();
                    while !rest.is_empty() {
                        let (now, later) = rest.split_at(rest.len().min(1 + chance(70_000) as usize));
                        stdout.write_all(now).unwrap();
                        rest = later;
                    }
                    lines
                })
            })
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        (0..4).for_each(|pid| logs.process_exited(pid));
        end(logs);
        let all = reader.join().unwrap();
        let mut found: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 4];
        for line in all.strip_suffix(b"\n").unwrap().split(|&byte| byte == b'\n') {
            assert_eq!(&line[29..33], b"Z j ", "an entry begins with its head");
            found[usize::from(line[33] - b'0')].push(line[35..].to_vec());
        }
        assert!(found == written, "seed {seed}");
    }
}

#[test]
fn l4_log_that_is_never_read_slows_only_the_jobs() {
    let (logs, reader) = piped(Format::Default);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let block = b"a line of some length, over and over again, as children do\n".repeat(100);
    let (total, size) = (64 << 20, block.len());
    let child = std::thread::spawn(move || {
        while counter.load(Ordering::SeqCst) < total {
            stdout.write_all(&block).unwrap();
            counter.fetch_add(size, Ordering::SeqCst);
        }
    });
    until("the child has begun", || written.load(Ordering::SeqCst) > 128 * 1024);
    for nth in 0..20_000 {
        logs.entry(Level::Info, None, &format!("number {nth}"));
        if nth % 1_000 == 0 {
            logs.entry(Level::Error, None, "important");
        }
    }
    let (mut other, _) = attach(&logs, "other", 8);
    other.write_all(b"last words").unwrap();
    drop(other);
    logs.process_exited(8);
    logs.entry_with_output(Level::Error, "other", 8, "failed");
    assert!(!child.is_finished() && written.load(Ordering::SeqCst) < 8 << 20, "the child must wait");

    let reader = collect(reader);
    child.join().unwrap();
    logs.process_exited(7);
    let lines = finish(logs, reader);
    let from = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(from("main 7 a line of some length"), written.load(Ordering::SeqCst) / 59);
    assert_eq!(from("important"), 20, "what matters is kept");
    // One for all of them, unless the log was still keeping up when they began.
    let dropped = lines.iter().filter_map(|line| {
        let count = line.strip_prefix("the log was not read: dropped ")?.strip_suffix(" entries")?;
        count.parse::<usize>().ok()
    });
    assert_eq!(from("number ") + dropped.sum::<usize>(), 20_000);
    let words = lines.iter().position(|line| line == "other 8 last words").unwrap();
    let entry = lines.iter().position(|line| line == "other failed; last output: last words").unwrap();
    assert!(words < entry);
}

#[test]
fn l4_log_with_a_closed_reader_does_not_block_jobs() {
    let (logs, reader) = piped(Format::Default);
    drop(reader);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let block = b"nobody hears this\n".repeat(1_000);
    for _ in 0..1_000 {
        stdout.write_all(&block).unwrap();
    }
    stdout.write_all(b"but it is kept\n").unwrap();
    until("the last line is kept", || logs.tails().last_lines("main").last().unwrap() == "but it is kept");
    end(logs);
}

#[test]
fn l4_quick_restarts_with_an_unread_log_do_not_exhaust_descriptors() {
    let (logs, reader) = piped(Format::Default);
    let output = [b"x".repeat(49_999).as_slice(), b"\n"].concat();
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for pid in 0..2_000 {
        until("old streams are given up", || open() < before + 700);
        let (mut stdout, _) = attach(&logs, "main", pid);
        stdout.write_all(&output).unwrap();
        drop(stdout);
        logs.process_exited(pid);
    }
    let lines = finish(logs, collect(reader));
    let outputs = lines.iter().filter(|line| line.ends_with("xxx")).count();
    let dropped: usize = lines
        .iter()
        .filter_map(|line| {
            line.strip_prefix("the log was not read: dropped the output of ")?
                .split(' ')
                .next()?
                .parse::<usize>()
                .ok()
        })
        .sum();
    assert_eq!(outputs + dropped, 2_000);
    assert!(dropped > 0 && outputs > 300);
}

#[test]
fn l1_rotated_log_file_is_reopened() {
    let folder = Folder::new("rotate");
    let (path, old) = (folder.0.join("log"), folder.0.join("log.1"));
    let logs = filed(&path);
    let (mut stdout, _) = attach(&logs, "main", 7);
    stdout.write_all(b"first\n").unwrap();
    until("it is written", || fs::read(&path).unwrap().ends_with(b"first\n"));
    fs::rename(&path, &old).unwrap();
    stdout.write_all(b"second\n").unwrap();
    until("it is written", || fs::read(&old).unwrap().ends_with(b"second\n"));
    logs.reopen();
    until("there is a new file", || path.exists());
    stdout.write_all(b"third\n").unwrap();
    until("it is written", || fs::read(&path).unwrap().ends_with(b"third\n"));

    // The folder goes: the file cannot be opened again, and the old one serves on.
    let gone = folder.0.with_extension("gone");
    fs::rename(&folder.0, &gone).unwrap();
    logs.reopen();
    logs.entry(Level::Info, None, "fourth");
    end(logs);
    let lines = texts(&fs::read(gone.join("log")).unwrap());
    fs::rename(&gone, &folder.0).unwrap();
    assert_eq!(lines[0], "main 7 third");
    assert!(lines.contains(&"fourth".to_owned()));
    assert!(lines.iter().any(|line| line.starts_with("cannot reopen the log file: No such file")));
}

#[test]
fn l1_format_and_output_can_change() {
    let folder = Folder::new("change");
    let path = folder.0.join("log");
    let (logs, reader) = piped(Format::Default);
    logs.entry(Level::Info, None, "before");
    let reader = collect(reader);
    let output = plan::Output::File(path.to_str().unwrap().into());
    logs.configure(&Logging { level: Level::Debug, format: Format::Json, output });
    let mut before = String::new();
    until("the old pipe is left", || reader.is_finished());
    before.push_str(&String::from_utf8(reader.join().unwrap()).unwrap());
    logs.entry(Level::Debug, Some("main"), "after");
    end(logs);
    let after = before + &fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(after.lines().last().unwrap()).unwrap();
    assert_eq!((&last["level"], &last["msg"]), (&"debug".into(), &"after".into()));
    assert!(after.contains("before"));
}

#[test]
fn l4_full_disk_is_retried() {
    let folder = Folder::new("full");
    let mount = |arguments: &[&str]| {
        let status = Command::new(arguments[0]).args(&arguments[1..]).arg(&folder.0).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]) {
        eprintln!("not tried: only root can mount a small disk");
        return;
    }
    let (path, ballast) = (folder.0.join("log"), folder.0.join("ballast"));
    fs::write(&ballast, vec![0; 384 << 10]).unwrap();
    let logs = filed(&path);
    let (mut stdout, _) = attach(&logs, "main", 7);
    let child = std::thread::spawn(move || {
        for nth in 0..5_000 {
            writeln!(stdout, "line {nth}").unwrap();
        }
    });
    until("the disk is full", || {
        let full = fs::write(folder.0.join("probe"), [0]).is_err();
        let _ = fs::remove_file(folder.0.join("probe"));
        full
    });
    for _ in 0..10_000 {
        logs.entry(Level::Debug, None, "never shown, never in the way");
    }
    fs::remove_file(&ballast).unwrap();
    child.join().unwrap();
    logs.process_exited(7);
    let finished = logs.finish(Instant::now() + PATIENCE);
    drop(logs);
    let lines = texts(&fs::read(&path).unwrap());
    until("the file is closed", || mount(&["umount"]));
    assert!(finished);
    let own: Vec<_> = lines.iter().filter(|line| line.starts_with("main 7 ")).collect();
    for (nth, line) in own.iter().enumerate() {
        assert_eq!(**line, format!("main 7 line {nth}"));
    }
    assert_eq!(own.len(), 5_000);
}

#[test]
fn l4_failing_output_loses_nothing_and_does_not_block_jobs() {
    let folder = Folder::new("fails");
    let path = folder.0.join("log");
    let logs = filed(Path::new("/dev/full"));
    let (mut stdout, _) = attach(&logs, "main", 7);
    let child = std::thread::spawn(move || {
        for nth in 0..100_000 {
            writeln!(stdout, "line {nth}").unwrap();
        }
    });
    until("something was read", || !logs.tails().last_lines("main").is_empty());
    logs.entry(Level::Info, None, "an entry");
    assert!(!child.is_finished(), "the child must wait");
    logs.configure(&Logging {
        output: plan::Output::File(path.to_str().unwrap().into()),
        ..logging(Format::Default)
    });
    child.join().unwrap();
    logs.process_exited(7);
    end(logs);
    let lines = texts(&fs::read(&path).unwrap());
    let own = lines.iter().filter(|line| line.starts_with("main 7 "));
    assert!(own.clone().enumerate().all(|(nth, line)| *line == format!("main 7 line {nth}")));
    assert_eq!(own.count(), 100_000);
    assert!(lines.contains(&"an entry".to_owned()));
    assert_eq!(lines.iter().filter(|line| line.starts_with("writing the log works again after ")).count(), 1);
}

#[test]
#[ignore = "run by l4_log_survives_without_free_descriptors, in a process of its own"]
fn without_descriptors() {
    let folder = Folder::new("emfile");
    let path = folder.0.join("log");
    let logs = filed(&path);
    let (mut stdout, stderr) = attach(&logs, "main", 7);
    let mut all: Vec<OwnedFd> = Vec::new();
    while let Ok(fd) = stderr.try_clone() {
        all.push(fd.into());
    }
    logs.reopen();
    stdout.write_all(b"hello\n").unwrap();
    until("the line is there", || logs.tails().last_lines("main") == ["hello"]);
    drop(all);
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let lines = texts(&fs::read(&path).unwrap());
    assert!(lines.contains(&"main 7 hello".to_owned()));
    assert!(lines.iter().any(|line| line.contains("Too many open files")), "{lines:?}");
}

#[test]
fn l4_log_survives_without_free_descriptors() {
    let run = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact --ignored logs::tests::without_descriptors"])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
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
        logs.entry_with_output(Level::Error, "main", pid, &format!("run {pid} failed"));
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
    assert!(!logs.finish(start + Duration::from_millis(300)));
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(logs);
    // The thread has ended: it holds the pipe no more.
    stuck.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn s6_dropping_the_log_ends_its_thread() {
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
