//! Output that is forged, lost, stolen or not read (L2–L4).

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::fixture::{Hostile, Rank, as_init_and_child, permitted};
use crate::support::config::Config;
use crate::support::supervisor::wait_until;

/// Opens the reading end of a FIFO, which is read only when the test wants it.
fn fifo(path: &Path) -> File {
    wait_until("the FIFO exists", || path.exists());
    File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).unwrap()
}

/// Waits until a FIFO takes no more.
fn await_full_fifo(path: &Path) {
    let flags = OFlag::O_NONBLOCK.bits();
    let writer = File::options().write(true).custom_flags(flags).open(path).unwrap();
    wait_until("the FIFO is full", || {
        let mut polled = [PollFd::new(writer.as_fd(), PollFlags::POLLOUT)];
        poll(&mut polled, PollTimeout::ZERO) == Ok(0)
    });
}

/// All that is in a FIFO now.
fn drain(reader: &mut File) -> Vec<u8> {
    let mut all = Vec::new();
    // At the end EAGAIN if a writer is left, and nothing otherwise.
    let _ = reader.read_to_end(&mut all);
    all
}

/// The numbers of the lines that `hostile` wrote, in the order of the log.
fn numbers(log: &[u8]) -> Vec<u64> {
    let number = |line: &[u8]| {
        let line = String::from_utf8_lossy(line).into_owned();
        let (first, second) = line.split_once(" line ")?.1.split_once(' ')?;
        let number = first.parse().ok()?;
        (second.len() == 64 && second.parse() == Ok(number)).then_some(number)
    };
    log.split(|byte| *byte == b'\n').filter_map(number).collect()
}

/// Requires the lines up to a number, each once and in order. One more may have been written and not been counted.
fn assert_all(found: &[u64], count: u64) {
    let missing = (0..count).filter(|number| !found.contains(number)).take(10).collect::<Vec<_>>();
    let in_order = found.iter().copied().eq(0..found.len() as u64);
    let found = found.len();
    assert!(
        in_order && found as u64 >= count,
        "{found} of {count} lines are in the log; without {missing:?} …"
    );
}

/// How the output changes in the middle of a line.
#[derive(Clone, Copy, Debug)]
enum Change {
    Rotation,
    Reload,
}

/// An entry of another job, as its format shows it.
const FORGERIES: [(&str, &str); 3] = [
    ("default", "2030-01-01T00:00:00.000Z bank 7 paid"),
    ("text", "time=\"2030-01-01T00:00:00Z\" level=info msg=\"paid\" job=bank pid=7"),
    (
        "json",
        "{\"time\":\"2030-01-01T00:00:00Z\",\"level\":\"info\",\"msg\":\"paid\",\"job\":\"bank\",\"pid\":7}",
    ),
];

/// A job writes a long line to a log that is not read: its beginning is written, its end is not. Then the output changes.
/// Returns the first line of the new output that is not an entry of that job.
fn forge(change: Change, format: &str, forgery: &str) -> Option<String> {
    let quoted = serde_json::to_string(forgery).unwrap();
    let config = |output: &str| {
        Config::new()
            .keys(format!("logging: {{ output: '{output}', format: '{format}' }}"))
            .job("liar", format!("user: 'nobody', exec: ['@/hostile', 'long-line', '400000', {quoted}]"))
    };
    let mut hostile = Hostile::with_setup(Rank::Child, "mkfifo @/log; exec 8<>@/log", 1, &config("@/log"));
    let _reader = fifo(&hostile.run.file("log"));
    await_full_fifo(&hostile.run.file("log"));
    let new = match change {
        Change::Rotation => {
            fs::rename(hostile.run.file("log"), hostile.run.file("old")).unwrap();
            hostile.send(10);
            "log"
        }
        Change::Reload => {
            hostile.rewrite(&config("@/new"));
            hostile.send(1);
            "new"
        }
    };
    wait_until("the second line is written", || hostile.read(new).contains("second line"));
    let log = hostile.read(new);
    let wrong = log.lines().find(|line| !is_entry_of_liar(format, line));
    hostile.stops();
    wrong.map(|line| format!("{change:?}, {format}: {}", line.chars().take(100).collect::<String>()))
}

/// Whether a line is a whole entry of the job `liar` or of the supervisor itself.
fn is_entry_of_liar(format: &str, line: &str) -> bool {
    match format {
        "json" => {
            let entry = serde_json::from_str::<serde_json::Value>(line);
            entry.is_ok_and(|entry| entry["time"].is_string() && entry["job"] != "bank")
        }
        "text" => line.starts_with("time=") && (!line.contains("job=bank") || line.contains("job=liar")),
        _ => {
            let mut words = line.split(' ');
            let time = words.next().unwrap_or_default();
            time.len() < 40 && time.starts_with("20") && time.ends_with('Z') && words.next() != Some("bank")
        }
    }
}

/// Requires that no format lets a job forge an entry.
fn assert_no_forgery(change: Change) {
    if permitted() {
        let wrong: Vec<String> =
            FORGERIES.iter().filter_map(|(format, forgery)| forge(change, format, forgery)).collect();
        assert!(wrong.is_empty(), "lines that are no entry of the job:\n{}", wrong.join("\n"));
    }
}

#[test]
fn l3_long_line_cannot_forge_an_entry_when_the_log_is_rotated() {
    assert_no_forgery(Change::Rotation);
}

#[test]
fn l3_long_line_cannot_forge_an_entry_when_a_reload_changes_the_output() {
    assert_no_forgery(Change::Reload);
}

/// How many lines a job has written, which it keeps in a file.
fn written(hostile: &Hostile) -> u64 {
    let bytes = fs::read(hostile.run.file("own/count")).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

/// Waits until the job cannot write any more, or has written everything; returns how many lines.
fn await_full(hostile: &Hostile, limit: u64) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    wait_until("the job cannot write any more", || {
        let now = written(hostile);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        now == limit || now > 0 && since.elapsed() > Duration::from_secs(2)
    });
    last
}

/// While the log is full and not read, a job enlarges its pipe, writes 13,000 lines and exits.
fn enlarge() -> (Hostile, File) {
    let config = "logging: { output: 'stdout' }, jobs: [
        { name: 'noise', exec: ['sh', '-c', 'yes | head -n 20000; exec sleep 1000'] },
        { name: 'a', exec: ['@/hostile', 'enlarge', '@/own/count', '13000'], when: { source: 'SIGUSR2' } }]";
    let hostile = Hostile::with_setup(Rank::Child, "mkfifo @/out; exec 1<>@/out", 2, config);
    let reader = fifo(&hostile.run.file("out"));
    await_full_fifo(&hostile.run.file("out"));
    hostile.send(12);
    hostile.await_job("a", "has exited", |job| !job["lastExit"].is_null());
    assert_eq!(written(&hostile), 13_000);
    (hostile, reader)
}

#[test]
fn l4_p4_output_in_an_enlarged_pipe_is_not_lost_at_the_exit_of_the_job() {
    if !permitted() {
        return;
    }
    let (mut hostile, mut reader) = enlarge();
    let mut log = Vec::new();
    wait_until("the last line is written", || {
        log.extend(drain(&mut reader));
        numbers(&log).last() == Some(&12_999)
    });
    hostile.stops();
    assert_all(&numbers(&log), 13_000);
}

#[test]
fn l4_s6_output_in_an_enlarged_pipe_is_not_lost_at_shutdown() {
    if !permitted() {
        return;
    }
    let (mut hostile, mut reader) = enlarge();
    // From now on everything is read at once.
    let (done, is_done) = mpsc::channel::<()>();
    let reading = std::thread::spawn(move || {
        let mut log = Vec::new();
        while is_done.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            log.extend(drain(&mut reader));
        }
        log.extend(drain(&mut reader));
        log
    });
    hostile.stops();
    drop(done);
    let log = reading.join().unwrap();
    assert_all(&numbers(&log), written(&hostile));
}

/// Requires that standard error counts the lines that were written and are not in the log.
fn assert_loss_is_counted(hostile: &Hostile, log: &[u8]) {
    let (read, written) = (numbers(log).len() as u64, written(hostile));
    let (lost, stderr) = (written - read, hostile.run.stderr());
    // A line that was delivered in part may be counted or not.
    let mut counts = stderr.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    let counted = counts.any(|count| count > 0 && count + 1 >= lost);
    assert!(
        lost == 0 || counted,
        "{lost} of {written} lines are lost, and standard error has only {stderr:?}"
    );
}

/// A job writes lines while the log is not read; from SIGTERM on they are read at 80 KB/s. Returns the log.
fn stop_with_slow_reader(lines: u64) -> (Hostile, Vec<u8>) {
    let config = Config::new()
        .keys("logging: { output: 'stdout' }")
        .job("a", format!("user: 'nobody', exec: ['@/hostile', 'count', '@/own/count', '{lines}']"));
    let mut hostile = Hostile::with_setup(Rank::Child, "mkfifo @/out; exec 1<>@/out", 2, &config);
    let mut reader = fifo(&hostile.run.file("out"));
    await_full(&hostile, lines);
    let (done, is_done) = mpsc::channel::<()>();
    let reading = std::thread::spawn(move || {
        let (mut log, mut buffer) = (Vec::new(), [0; 4096]);
        while is_done.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            let count = reader.read(&mut buffer).unwrap_or(0);
            log.extend_from_slice(&buffer[..count]);
        }
        log.extend(drain(&mut reader));
        log
    });
    hostile.stops();
    drop(done);
    (hostile, reading.join().unwrap())
}

#[test]
fn s6_l4_slow_reader_that_can_read_everything_within_the_stop_timeout_gets_every_line() {
    if permitted() {
        // 360 KB, of which the FIFO itself holds 256 KiB.
        let (hostile, log) = stop_with_slow_reader(3_000);
        assert_all(&numbers(&log), written(&hostile));
    }
}

#[test]
fn s6_l4_lines_that_a_slow_reader_loses_are_counted_on_standard_error() {
    if permitted() {
        let (hostile, log) = stop_with_slow_reader(7_000);
        assert_loss_is_counted(&hostile, &log);
    }
}

#[test]
fn s6_l4_lines_that_a_stuck_reader_loses_are_counted_on_standard_error() {
    as_init_and_child(|rank| {
        let config = "logging: { output: 'stdout' }, jobs: [{ name: 'a', user: 'nobody',
            exec: ['@/hostile', 'count', '@/own/count', '1000000'] }]";
        let mut hostile = Hostile::with_setup(rank, "mkfifo @/out; exec 1<>@/out", 1, config);
        let mut reader = fifo(&hostile.run.file("out"));
        await_full(&hostile, 1_000_000);
        hostile.stops();
        assert_loss_is_counted(&hostile, &drain(&mut reader));
    });
}

/// How late the lines of two quiet jobs are in milliseconds, beside so many jobs that write without end. 10 MiB/s of
/// the log are read.
fn lateness_beside(floods: usize) -> Vec<u128> {
    let quiet = "exec: ['sh', '-c', 'while :; do date +tick=%s%3N; sleep 0.05; done'], user: 'nobody'";
    let config = Config::new()
        .keys("logging: { output: 'stdout' }")
        .jobs((0..floods).map(|nth| format!("flood{nth}")), "exec: 'yes', user: 'nobody'")
        .jobs(["a", "b"], quiet);
    let setup = "mkfifo @/out; exec 1<>@/out";
    let mut hostile = Hostile::with_setup(Rank::Child, setup, 2, &config);
    let mut reader = fifo(&hostile.run.file("out"));
    let (began, mut read, mut rest, mut late) = (Instant::now(), 0, Vec::new(), Vec::new());
    while began.elapsed() < Duration::from_secs(5) {
        let (mut part, allowed) = ([0; 64 * 1024], 10 * 1024 * 1024 * began.elapsed().as_millis() / 1000);
        // Ahead of the rate, or nothing to read.
        let count = if read > allowed { 0 } else { reader.read(&mut part).unwrap_or(0) };
        if count == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        read += count as u128;
        rest.extend_from_slice(&part[..count]);
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let lines: Vec<u8> = rest.drain(..=end).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            let sent = line.split_once("tick=").and_then(|(_, sent)| sent.parse::<u128>().ok());
            late.extend(sent.map(|sent| now.saturating_sub(sent)));
        }
    }
    // From now on everything is read.
    let (done, is_done) = mpsc::channel::<()>();
    let reading = std::thread::spawn(move || {
        while is_done.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            drain(&mut reader);
        }
    });
    hostile.stops();
    drop(done);
    reading.join().unwrap();
    late
}

#[test]
fn l4_jobs_that_write_without_end_do_not_hide_the_lines_of_others() {
    if !permitted() {
        return;
    }
    for floods in [1, 20, 200] {
        let late = lateness_beside(floods);
        let latest = late.iter().max();
        eprintln!("{floods} floods: {} lines of quiet jobs, the latest {latest:?} ms late", late.len());
        assert!(late.len() >= 20 && latest < Some(&5_000), "{floods} floods: {late:?}");
    }
}

/// The job makes `FILE.1` a directory, and writes on.
#[test]
fn l8_failed_rotations_neither_flood_the_log_nor_fill_the_disk() {
    if !permitted() {
        return;
    }
    let config = "logging: { output: '@/log' }, jobs: [{ name: 'a', user: 'nobody', logging: { file: '@/own/log', maxSize: '4KB', keep: 1 },
            exec: ['sh', '-c', 'mkdir -p @/own/log.1/full; seq 200000; echo done > @/own/done; exec sleep 1000'] },
        { name: 'b', exec: 'true', when: { interval: '100ms' } }]";
    let mut hostile = Hostile::start(Rank::Child, 1, config);
    hostile.await_file("own/done");
    hostile.await_log("a cannot rotate ");
    wait_until("the other job is in the log", || hostile.log().matches("b started").count() >= 5);
    let (log, size) = (hostile.log(), fs::metadata(hostile.run.file("own/log")).unwrap().len());
    assert_eq!(log.matches("cannot rotate").count(), 1);
    assert!(size <= 8 * 1024, "the file has {size} bytes");
    hostile.stops();
}

#[test]
fn l4_packets_in_a_pipe_are_lines_like_any_other() {
    if !permitted() {
        return;
    }
    let config = "jobs: [{ name: 'main', exec: 'sleep 1000' },
        { name: 'a', exec: ['@/hostile', 'packets', '5000'], user: 'nobody' }]";
    let mut hostile = Hostile::start(Rank::Init, 1, config);
    hostile.await_state("a", "complete");
    wait_until("the last line is written", || numbers(hostile.log().as_bytes()).last() == Some(&4_999));
    assert_all(&numbers(hostile.log().as_bytes()), 5_000);
    hostile.stops();
}

#[test]
fn l4_job_that_reads_its_own_output_does_not_block_the_log() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'thief', exec: ['@/hostile', 'thief', '@/stealing'] },
            { name: 'a', exec: ['@/hostile', 'write', '2000'], when: { source: 'SIGUSR2' } }]";
        let mut hostile = Hostile::start(rank, 1, config);
        hostile.await_file("stealing");
        hostile.send(12);
        wait_until("the lines of the other job are written", || {
            numbers(hostile.log().as_bytes()).last() == Some(&1_999)
        });
        assert_all(&numbers(hostile.log().as_bytes()), 2_000);
        hostile.stops();
    });
}

#[test]
fn l2_raw_job_that_makes_the_shared_output_non_blocking_loses_no_line_of_others() {
    if !permitted() {
        return;
    }
    let config = "logging: { output: 'stdout' }, jobs: [
        { name: 'raw', exec: ['@/hostile', 'nonblock'], logging: { raw: true } },
        { name: 'a', exec: ['@/hostile', 'write', '20000'], when: { source: 'SIGUSR2' } }]";
    let mut hostile = Hostile::with_setup(Rank::Child, "mkfifo @/out; exec 1<>@/out 2>&1", 2, config);
    let mut reader = fifo(&hostile.run.file("out"));
    let pid = hostile.pid;
    wait_until("the output is non-blocking", || {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/1")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
        i32::from_str_radix(&flags, 8).unwrap() & libc::O_NONBLOCK != 0
    });
    hostile.send(12);
    let mut log = Vec::new();
    wait_until("all lines are written", || {
        // Slowly, so that the output is full most of the time.
        let mut buffer = [0; 16384];
        let count = reader.read(&mut buffer).unwrap_or(0);
        log.extend_from_slice(&buffer[..count]);
        numbers(&log).last() == Some(&19_999)
    });
    hostile.stops();
    assert_all(&numbers(&log), 20_000);
}

#[test]
fn l9_no_entry_of_the_supervisor_is_dropped_in_a_burst_while_the_log_takes_it() {
    if !permitted() {
        return;
    }
    let count = 3_000;
    let config = Config::new()
        .keys("logging: { output: '@/log', format: 'json' }")
        .jobs((0..count).map(|n| format!("j{n}")), "exec: '/bin/true'");
    let hostile = Hostile::unanswered(Rank::Child, "", 1, &config);
    wait_until("all jobs are complete", || hostile.run.file("counted").exists());
    let log = hostile.log();
    let mut entries = vec![0; count];
    for line in log.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let nth = entry["job"].as_str().and_then(|name| name.strip_prefix('j')?.parse::<usize>().ok());
        if let Some(nth) = nth {
            entries[nth] += 1;
        }
    }
    // Started, exited, complete.
    let most = entries.iter().copied().max().unwrap_or_default();
    let incomplete = entries.iter().filter(|entries| **entries < most).count();
    assert!(most >= 2 && incomplete == 0, "{incomplete} of {count} jobs have fewer than {most} entries");
}
