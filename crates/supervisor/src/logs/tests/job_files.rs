//! The log files of jobs (L8).

use std::num::NonZeroU64;

use containerpilot_core::plan::LogFile;

use super::*;

fn in_file(path: &Path, max_size: u64, keep: u32) -> JobLogging {
    let path = path.to_str().unwrap().to_owned();
    JobLogging {
        file: Some(LogFile { path, max_size: NonZeroU64::new(max_size), keep }),
        ..JobLogging::default()
    }
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn l8_lines_are_in_the_file_as_the_job_wrote_them_and_not_in_the_log() {
    let folder = Folder::new("job-file");
    let path = folder.0.join("web.log");
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let (mut stdout, mut stderr) = attach_with(&logs, "web", 7, in_file(&path, 0, 0));
    stdout.write_all(b"one\ntwo \xff\0\nlast").unwrap();
    until("it is written", || content_len(&path) >= 11);
    writeln!(stderr, "error").unwrap();
    until("it is written", || content_len(&path) >= 16);
    drop((stdout, stderr));
    logs.process_exited(7);
    logs.push(Level::Error, Some("web"), "failed", None, Some(7));
    let lines = finish(logs, reader);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("web failed; last output: one | two") && lines[0].ends_with("| error | last"),
        "{lines:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"one\ntwo \xff\0\nerror\nlast\n");
}

fn content_len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[test]
fn l8_exit_of_every_run_has_the_last_lines_that_another_thread_reads() {
    let folder = Folder::new("job-file-exits");
    let path = folder.0.join("log");
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    for pid in 0..500 {
        let (mut stdout, _) = attach_with(&logs, "main", pid, in_file(&path, 0, 0));
        write!(stdout, "run {pid}").unwrap();
        drop(stdout);
        logs.process_exited(pid);
        logs.push(Level::Error, Some("main"), "failed", None, Some(pid));
    }
    let lines = finish(logs, reader);
    let expected: Vec<String> = (0..500).map(|pid| format!("main failed; last output: run {pid}")).collect();
    assert_eq!(lines, expected);
    assert_eq!(content(&path), (0..500).map(|pid| format!("run {pid}\n")).collect::<String>());
}

#[test]
fn l8_formats_text_and_json_write_entries_to_the_file() {
    let folder = Folder::new("job-file-json");
    let path = folder.0.join("log");
    let (logs, _reader) = piped(Format::Json);
    let logging = JobLogging { stderr: Level::Error, ..in_file(&path, 0, 0) };
    let (mut stdout, mut stderr) = attach_with(&logs, "web", 7, logging);
    writeln!(stderr, "bad").unwrap();
    until("it is written", || content(&path).ends_with('\n'));
    // Another format counts at once.
    let other = Logging { output: plan::Output::Stderr, ..logging_of(Format::Text) };
    logs.configure(&other);
    writeln!(stdout, "good").unwrap();
    until("it is written", || content(&path).lines().count() == 2);
    end(logs);
    let text = content(&path);
    let (first, second) = text.trim_end().split_once('\n').unwrap();
    let value: Value = serde_json::from_str(first).unwrap();
    assert_eq!((&value["level"], &value["msg"]), (&"error".into(), &"bad".into()));
    assert!(second.contains(" level=info msg=good job=web"), "{second}");
}

fn logging_of(format: Format) -> Logging {
    super::logging(format)
}

#[test]
fn l8_rotation_under_load_loses_no_line() {
    let folder = Folder::new("job-file-load");
    let path = folder.0.join("log");
    let (logs, _reader) = piped(Format::Default);
    let (mut stdout, mut stderr) = attach_with(&logs, "main", 7, in_file(&path, 64 << 10, 1000));
    let errors = std::thread::spawn(move || {
        for number in 0..20_000 {
            writeln!(stderr, "e {number}").unwrap();
        }
    });
    for number in 0..200_000 {
        writeln!(stdout, "line {number} {}", "x".repeat(number % 50)).unwrap();
    }
    errors.join().unwrap();
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let files: Vec<PathBuf> =
        (1..1000).rev().map(|number| folder.0.join(format!("log.{number}"))).chain([path]).collect();
    let all: String = files.iter().map(|path| content(path)).collect();
    assert!(files.iter().all(|path| content_len(path) <= 64 << 10));
    assert!(files.iter().filter(|path| path.exists()).count() > 50);
    let numbers = |start: &str| -> Vec<usize> {
        let own = all.lines().filter_map(|line| line.strip_prefix(start));
        own.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(numbers("line "), (0..200_000).collect::<Vec<_>>());
    assert_eq!(numbers("e "), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn l8_file_that_cannot_be_written_holds_up_only_its_job_and_recovers() {
    let folder = Folder::new("job-file-missing");
    let path = folder.0.join("later/log");
    fs::write(folder.0.join("later"), "in its way").unwrap();
    let (logs, reader) = piped(Format::Default);
    let (mut stdout, _) = attach_with(&logs, "main", 7, in_file(&path, 0, 0));
    let (mut other, _) = attach(&logs, "other", 8);
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let child = std::thread::spawn(move || {
        for number in 0..100_000 {
            writeln!(stdout, "line {number} of a job that writes a lot").unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    until("the job writes", || written.load(Ordering::SeqCst) > 1_000);
    for number in 0..1_001 {
        writeln!(other, "other {number}").unwrap();
    }
    let said = format!("main cannot write the log to {}: not a directory; retrying", path.display());
    let mut lines = Vec::new();
    let mut reader = io::BufReader::new(reader);
    while !lines.iter().any(|line: &String| line.starts_with(&said)) {
        let mut line = String::new();
        io::BufRead::read_line(&mut reader, &mut line).unwrap();
        lines.extend(texts(line.as_bytes()));
    }
    assert!(!child.is_finished() && written.load(Ordering::SeqCst) < 100_000, "the job must wait");
    fs::remove_file(folder.0.join("later")).unwrap();
    let reader = collect(reader);
    child.join().unwrap();
    logs.process_exited(7);
    drop(other);
    lines.extend(finish(logs, reader));
    assert_eq!(lines.iter().filter(|line| line.starts_with("other 8 other ")).count(), 1_001);
    assert_eq!(lines.iter().filter(|line| line.starts_with(&said)).count(), 1, "it is said once");
    assert!(lines.iter().any(|line| line.starts_with("main writing the log works again after ")));
    assert_eq!(content(&path).lines().count(), 100_000, "nothing is lost");
}

/// The thread of the file does not answer, as in a write to a file system that hangs.
#[test]
fn l8_file_system_that_does_not_answer_holds_up_neither_the_log_nor_the_end() {
    let folder = Folder::new("job-file-hangs");
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let (mut stdout, _) = attach_with(&logs, "main", 7, in_file(&folder.0.join("log"), 0, 0));
    writeln!(stdout, "first").unwrap();
    until("it is read", || !logs.tails().last_lines("main").is_empty());
    let channel =
        logs.files.attach("main", 8, &in_file(&folder.0.join("log"), 0, 0).file.unwrap(), &logs.log.shared);
    let worker = Arc::clone(&channel.unwrap().worker);
    let stuck = worker.lock().unwrap();
    for pid in 100..400 {
        let (mut stdout, _) = attach_with(&logs, "main", pid, in_file(&folder.0.join("log"), 0, 0));
        writeln!(stdout, "not read").unwrap();
        drop(stdout);
        logs.process_exited(pid);
        logs.push(Level::Error, Some("main"), &format!("run {pid} failed"), None, Some(pid));
    }
    let (mut other, _) = attach(&logs, "other", 9);
    writeln!(other, "still here").unwrap();
    drop(other);
    until("the other job is logged", || !logs.tails().last_lines("other").is_empty());
    let start = Instant::now();
    assert!(!logs.finish(start + Duration::from_millis(300), None), "lines may be lost");
    assert!(start.elapsed() < Duration::from_secs(20));
    drop(stuck);
    drop(logs);
    let lines = texts(&reader.join().unwrap());
    assert_eq!(lines.iter().filter(|line| line.contains(" failed")).count(), 300);
    assert!(lines.contains(&"other 9 still here".to_owned()));
}

#[test]
fn l8_r5_file_size_and_path_change_while_the_process_runs() {
    let folder = Folder::new("job-file-change");
    let (first, second) = (folder.0.join("first"), folder.0.join("second"));
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let (mut stdout, mut stderr) = attach_with(&logs, "main", 7, in_file(&first, 0, 0));
    writeln!(stdout, "one").unwrap();
    until("it is written", || content(&first) == "one\n");
    logs.adjust("main", &JobLogging { join: Some("^ ".into()), ..in_file(&second, 20, 1) });
    stdout.write_all(b"two\n three\nfour\n").unwrap();
    until("it is written", || content(&second) == "two\n three\nfour\n");
    writeln!(stderr, "five").unwrap();
    until("it is rotated", || content(&second) == "five\n");
    assert_eq!(content(&folder.0.join("second.1")), "two\n three\nfour\n");
    // Without a file, this run ends in the old one, and the next is in the log.
    logs.adjust("main", &JobLogging::default());
    let (mut next, _) = attach(&logs, "main", 8);
    writeln!(next, "next").unwrap();
    writeln!(stderr, "six").unwrap();
    drop((stdout, stderr, next));
    logs.process_exited(7);
    until("it is written", || content(&second) == "five\nsix\n");
    let lines = finish(logs, reader);
    assert_eq!(lines, ["main 8 next"]);
}

#[test]
fn l1_l8_files_of_jobs_are_reopened_and_forgotten_ones_end() {
    let folder = Folder::new("job-file-reopen");
    let (path, old) = (folder.0.join("log"), folder.0.join("old"));
    let (logs, _reader) = piped(Format::Default);
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let (mut stdout, _) = attach_with(&logs, "main", 7, in_file(&path, 0, 0));
    writeln!(stdout, "one").unwrap();
    until("it is written", || content(&path) == "one\n");
    fs::rename(&path, &old).unwrap();
    logs.reopen();
    until("there is a new file", || path.exists());
    writeln!(stdout, "two").unwrap();
    until("it is written", || content(&path) == "two\n");
    let before = threads();
    logs.forget("main");
    drop(stdout);
    until("the thread ends with its last pipe", || threads() < before);
    end(logs);
    assert_eq!(content(&old), "one\n");
}
