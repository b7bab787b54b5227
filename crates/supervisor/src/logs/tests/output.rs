//! Outputs that are slow, closed, full or rotated (L1, L4).

use super::*;

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
    until("the child has started", || written.load(Ordering::SeqCst) > 128 * 1024);
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
    logs.push(Level::Error, Some("other"), "failed", None, Some(8));
    assert!(!child.is_finished() && written.load(Ordering::SeqCst) < 8 << 20, "the child must wait");

    let reader = collect(reader);
    child.join().unwrap();
    logs.process_exited(7);
    let lines = finish(logs, reader);
    let from = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(from("main 7 a line of some length"), written.load(Ordering::SeqCst) / 59);
    assert_eq!(from("important"), 20, "what matters is kept");
    // One for all of them, unless the log was still keeping up when they started.
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
    let block = b"not read\n".repeat(1_000);
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

    // The folder is renamed: the file cannot be reopened, and the old one stays in use.
    let gone = folder.0.with_extension("gone");
    fs::rename(&folder.0, &gone).unwrap();
    logs.reopen();
    logs.entry(Level::Info, None, "fourth");
    end(logs);
    let lines = texts(&fs::read(gone.join("log")).unwrap());
    fs::rename(&gone, &folder.0).unwrap();
    assert_eq!(lines[0], "main 7 third");
    assert!(lines.contains(&"fourth".to_owned()));
    assert!(lines.iter().any(|line| line.starts_with("cannot reopen the log file: no such file")));
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
        containerpilot_test_support::skip("only root can mount a small disk");
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
    let finished = logs.finish(Instant::now() + PATIENCE, None);
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
#[ignore = "run by l4_log_survives_without_free_descriptors, in its own process"]
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
    assert!(lines.iter().any(|line| line.contains("too many open files")), "{lines:?}");
}

#[test]
fn l4_log_survives_without_free_descriptors() {
    let run = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact --ignored logs::tests::output::without_descriptors"])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}");
}
