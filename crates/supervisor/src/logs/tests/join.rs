//! Levels of stderr, and lines that belong to the entry before (L8).

use super::*;

fn joined(pattern: &str) -> JobLogging {
    JobLogging { join: Some(pattern.into()), ..JobLogging::default() }
}

fn messages(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let value = |line: &str| serde_json::from_str::<Value>(line).unwrap()["msg"].as_str().unwrap().to_owned();
    text.lines().map(value).collect()
}

#[test]
fn l8_lines_that_match_belong_to_the_entry_before_wherever_a_read_ends() {
    let text = b"first\n  at a\n  at b\nsecond\n\nthird\n\tx\nlast\n  with more";
    let expected = ["first\n  at a\n  at b", "second", "", "third\n\tx", "last\n  with more"];
    for size in 1..text.len() {
        let (logs, reader) = piped(Format::Json);
        let reader = collect(reader);
        let (mut stdout, _) = attach_with(&logs, "main", 7, joined(r"^\s"));
        for part in text.chunks(size) {
            stdout.write_all(part).unwrap();
            if size > 3 {
                std::thread::yield_now();
            }
        }
        drop(stdout);
        logs.process_exited(7);
        end(logs);
        assert_eq!(messages(&reader.join().unwrap()), expected, "{size}");
    }
}

#[test]
fn l8_streams_and_runs_are_joined_for_themselves() {
    let (logs, reader) = piped(Format::Json);
    let reader = collect(reader);
    for pid in 1..3 {
        let (mut stdout, mut stderr) = attach_with(&logs, "main", pid, joined("^ "));
        stdout.write_all(b" a\n b\n").unwrap();
        stderr.write_all(b" c\n d\n").unwrap();
        drop((stdout, stderr));
        logs.process_exited(pid);
    }
    end(logs);
    let mut all = messages(&reader.join().unwrap());
    all.sort();
    assert_eq!(all, [" a\n b", " a\n b", " c\n d", " c\n d"]);
}

#[test]
fn l8_entry_is_written_soon_if_nothing_follows() {
    let (logs, reader) = piped(Format::Default);
    let (mut stdout, _) = attach_with(&logs, "main", 7, joined("^ "));
    let mut reader = io::BufReader::new(reader);
    let mut read = |lines: usize| -> String {
        (0..lines)
            .map(|_| {
                let mut line = String::new();
                io::BufRead::read_line(&mut reader, &mut line).unwrap();
                line
            })
            .collect()
    };
    stdout.write_all(b"panic\n at a\nincomplete").unwrap();
    let text = read(2);
    assert!(text.ends_with(" main 7 panic\n\t at a\n"), "{text}");
    stdout.write_all(b" line\n").unwrap();
    assert!(read(1).ends_with(" main 7 incomplete line\n"));
    assert_eq!(logs.tails().last_lines("main"), ["panic", " at a", "incomplete line"]);
    drop(stdout);
    end(logs);
}

#[test]
fn l8_time_of_a_joined_entry_is_not_before_the_last_one() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let (mut stdout, _) = attach_with(&logs, "main", 7, joined("^ "));
    for number in 0..50 {
        writeln!(stdout, "entry {number}\n more").unwrap();
        logs.entry(Level::Info, None, "own");
    }
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let text = String::from_utf8(reader.join().unwrap()).unwrap();
    let times: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('\t'))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(times.len(), 100);
    assert!(times.is_sorted() && times[0].starts_with("20"), "{text}");
}

#[test]
fn l8_joined_entry_is_bounded_and_no_byte_is_lost() {
    let (logs, reader) = piped(Format::Json);
    let reader = collect(reader);
    let (mut stdout, _) = attach_with(&logs, "main", 7, joined("^ "));
    let line = [b" ".to_vec(), vec![b'x'; 998], b"\n".to_vec()].concat();
    for _ in 0..40_000 {
        stdout.write_all(&line).unwrap();
    }
    drop(stdout);
    logs.process_exited(7);
    end(logs);
    let all = messages(&reader.join().unwrap());
    assert!((3..20).contains(&all.len()), "{} entries", all.len());
    assert!(all.iter().all(|entry| entry.len() < 17 << 20));
    let count: usize = all.iter().map(|entry| entry.matches('x').count()).sum();
    assert_eq!(count, 998 * 40_000);
    assert_eq!(logs_lines(&all), 40_000);
}

fn logs_lines(all: &[String]) -> usize {
    all.iter().flat_map(|entry| entry.split('\n')).filter(|line| line.len() == 999).count()
}

#[test]
fn l8_joined_lines_survive_an_output_that_is_not_read() {
    let (logs, reader) = piped(Format::Json);
    let (mut stdout, _) = attach_with(&logs, "main", 7, joined("^ "));
    let child = std::thread::spawn(move || {
        for number in 0..100_000 {
            write!(stdout, "entry {number}\n one\n two\n").unwrap();
        }
    });
    until("the job waits", || logs.tails().last_lines("main").len() > 100);
    let reader = collect(reader);
    child.join().unwrap();
    logs.process_exited(7);
    assert_eq!(logs.tails().line_counts().len(), 1);
    end(logs);
    let expected: Vec<String> = (0..100_000).map(|number| format!("entry {number}\n one\n two")).collect();
    assert!(messages(&reader.join().unwrap()) == expected);
}

#[test]
fn l8_r5_join_and_level_change_while_the_process_runs() {
    let (logs, reader) = piped(Format::Json);
    let reader = collect(reader);
    let (mut stdout, mut stderr) = attach_with(&logs, "main", 7, joined("^ "));
    stdout.write_all(b"a\n b\nc\n").unwrap();
    until("an entry is written", || logs.tails().last_lines("main").len() >= 2);
    logs.adjust("main", &JobLogging { stderr: Level::Error, ..JobLogging::default() });
    until("the rest is written", || logs.tails().last_lines("main").len() == 3);
    stdout.write_all(b" d\ne\n").unwrap();
    writeln!(stderr, "bad").unwrap();
    until("all is written", || logs.tails().last_lines("main").len() == 6);
    drop((stdout, stderr));
    logs.process_exited(7);
    end(logs);
    let all = reader.join().unwrap();
    let mut lines = messages(&all);
    lines.sort();
    assert_eq!(lines, [" d", "a\n b", "bad", "c", "e"]);
    assert!(
        String::from_utf8(all)
            .unwrap()
            .contains("\"level\":\"error\",\"job\":\"main\",\"pid\":7,\"stream\":\"stderr\",\"msg\":\"bad\"")
    );
}

#[test]
fn l8_level_of_stderr_decides_whether_it_is_written() {
    for (lowest, expected) in [(Level::Info, "err out"), (Level::Warn, "err"), (Level::Panic, "")] {
        let (reader, writer) = io::pipe().unwrap();
        let output = LogSink::shared(writer.into()).unwrap();
        let logs = Logs::start_on(output, &Logging { level: lowest, ..logging(Format::Json) }).unwrap();
        let settings = JobLogging { stderr: Level::Error, ..JobLogging::default() };
        let (mut stdout, mut stderr) = attach_with(&logs, "main", 7, settings);
        writeln!(stdout, "out").unwrap();
        writeln!(stderr, "err").unwrap();
        drop((stdout, stderr));
        logs.process_exited(7);
        assert!(logs.finish(Instant::now() + PATIENCE, None));
        drop(logs);
        let mut lines = messages(&collect(reader).join().unwrap());
        lines.sort();
        assert_eq!(lines.join(" "), expected, "{lowest:?}");
    }
}
