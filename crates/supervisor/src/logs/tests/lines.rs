//! Lines and entries (L2, L3).

use std::os::fd::AsFd;

use containerpilot_log_format::{HiddenValues, Patterns};
use containerpilot_process::sys;

use super::*;

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
        LogSource {
            job: "main".into(),
            pid: 3,
            check: Some("web".into()),
            hidden: None,
            logging: JobLogging::default(),
            run: None,
        },
    );
    writer.write_all(b"ok").unwrap();
    drop(writer);
    logs.process_exited(3);
    logs.push(Level::Error, Some("main"), "failed", None, Some(3));
    assert!(logs.tails().last_lines("main").is_empty(), "a check's output is not the job's");
    end(logs);
    let all = String::from_utf8(collect(reader).join().unwrap()).unwrap();
    let entries: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&entries[0]["check"], &entries[0]["msg"]), (&"web".into(), &"ok".into()));
    assert_eq!(entries[1].get("output"), None);
}

#[test]
fn p11_secrets_are_hidden_in_lines_and_in_the_last_lines() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let (stdout, mut writer) = io::pipe().unwrap();
    let (stderr, mut errors) = io::pipe().unwrap();
    let hidden = HiddenValues::default();
    let source = LogSource {
        job: "main".into(),
        pid: 3,
        check: None,
        hidden: Some(hidden.clone()),
        logging: JobLogging::default(),
        run: None,
    };
    // The log has the pipes before the files are read.
    logs.attach(stdout.into(), stderr.into(), source);
    hidden.set(Patterns::new([&b"hunter2"[..]]).map(Arc::new));
    for part in ["a hun", "ter2 b\nhunt\nhun", "ter2"] {
        writer.write_all(part.as_bytes()).unwrap();
        // Each part is read on its own.
        until("it is read", || sys::unread_bytes(writer.as_fd()) == 0);
    }
    errors.write_all(b"hunter").unwrap();
    drop((writer, errors));
    logs.process_exited(3);
    logs.push(Level::Error, Some("main"), "failed", None, Some(3));
    let tails = logs.tails();
    until("the last line is kept", || tails.last_lines("main").len() == 4);
    assert!(tails.last_lines_of_run("main", 3).iter().all(|line| !line.contains("hunter2")));
    let mut lines = finish(logs, reader);
    let entry = lines.pop().unwrap();
    assert!(entry.starts_with("main failed; last output: a *** b | hunt | "), "{entry}");
    lines.sort();
    assert_eq!(lines, ["main 3 ***", "main 3 a *** b", "main 3 hunt", "main 3 hunter"]);
}

#[test]
fn p4_grandchild_that_keeps_the_pipe_open_does_not_delay_the_exit() {
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
fn p4_line_is_not_later_than_the_entry_about_the_exit() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    for pid in 0..1_000 {
        let (mut stdout, _) = attach(&logs, &format!("job-{pid}"), pid);
        stdout.write_all(b"first\n").unwrap();
        stdout.write_all(b"second\nlast").unwrap();
        drop(stdout);
        logs.process_exited(pid);
        logs.entry(Level::Info, Some(&format!("job-{pid}")), "exited");
    }
    end(logs);
    let all = String::from_utf8(reader.join().unwrap()).unwrap();
    let mut runs: std::collections::BTreeMap<&str, Vec<&str>> = std::collections::BTreeMap::new();
    for line in all.lines() {
        let mut words = line.split(' ');
        let (time, job) = (words.next().unwrap(), words.next().unwrap());
        runs.entry(job).or_default().push(time);
    }
    assert!(runs.len() == 1_000 && runs.values().all(|times| times.len() == 4 && times.is_sorted()));
}

#[test]
fn p4_everything_in_an_enlarged_pipe_is_read_before_the_entry_about_the_exit() {
    let (logs, reader) = piped(Format::Default);
    let (mut noise, _) = attach(&logs, "noise", 7);
    let noise = std::thread::spawn(move || noise.write_all(&b"noise\n".repeat(400_000)).unwrap());
    until("the log is full", || !logs.tails().last_lines("noise").is_empty());
    let (mut stdout, stderr) = attach(&logs, "main", 8);
    nix::fcntl::fcntl(&stdout, nix::fcntl::FcntlArg::F_SETPIPE_SZ(1 << 20)).unwrap();
    let lines: String = (0..50_000).map(|nth| format!("line {nth}\n")).collect();
    stdout.write_all(lines.as_bytes()).unwrap();
    logs.process_exited(8);
    logs.entry(Level::Info, Some("main"), "exited");
    let reader = collect(reader);
    noise.join().unwrap();
    // The pipe is held open all the time.
    let lines = finish(logs, reader);
    drop((stdout, stderr));
    let own: Vec<_> = lines.iter().filter(|line| line.starts_with("main ")).collect();
    assert_eq!(own.len(), 50_001);
    assert!((0..50_000).all(|nth| *own[nth] == format!("main 8 line {nth}")));
}

#[test]
fn l4_pipes_that_others_hold_open_after_the_exit_are_bounded_per_job() {
    let (logs, reader) = piped(Format::Default);
    let reader = collect(reader);
    let mut writers = Vec::new();
    for pid in 0..100 {
        let (mut stdout, stderr) = attach(&logs, "main", pid);
        writeln!(stdout, "of {pid}").unwrap();
        writers.push((stdout, stderr));
        logs.process_exited(pid);
    }
    let (mut other, _) = attach(&logs, "other", 1_000);
    logs.process_exited(1_000);
    until("the pipes of old runs are closed", || {
        writers.iter_mut().take(92).all(|(stdout, stderr)| {
            let closed = |writer: &mut io::PipeWriter| {
                writer.write(b"x").is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            };
            closed(stdout) && closed(stderr)
        })
    });
    for (stdout, stderr) in &mut writers[92..] {
        stdout.write_all(b"still here\n").unwrap();
        stderr.write_all(b"here too\n").unwrap();
    }
    other.write_all(b"not affected\n").unwrap();
    drop((writers, other));
    let lines = finish(logs, reader);
    let count = |text: &str| lines.iter().filter(|line| line.ends_with(text)).count();
    assert!((0..100).all(|pid| lines.contains(&format!("main {pid} of {pid}"))));
    assert_eq!([count(" still here"), count(" here too"), count("other 1000 not affected")], [8, 8, 1]);
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
    let logs = Logs::start_on(LogSink::shared(writer.into()).unwrap(), &warn).unwrap();
    let (mut stdout, _) = attach(&logs, "main", 7);
    stdout.write_all(b"hidden\nalso").unwrap();
    drop(stdout);
    logs.process_exited(7);
    logs.entry(Level::Info, None, "hidden too");
    logs.push(Level::Warn, Some("main"), "shown", None, Some(7));
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
fn l3_lines_are_never_mixed_for_any_bytes_and_rate() {
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
            assert_eq!(&line[29..33], b"Z j ", "an entry starts with its head");
            found[usize::from(line[33] - b'0')].push(line[35..].to_vec());
        }
        assert!(found == written, "seed {seed}");
    }
}
