//! Soak test: random disturbances of the real binary with a real Consul. At the end every log line, run and event must be
//! accounted for (E7, L3, L4, P1, P4, D5, R4, S6).
//!
//! `cargo test` runs it for two minutes. `make soak SOAK_SECONDS=1800` runs longer, with the release binary.
//!
//! | variable | meaning (default) |
//! | --- | --- |
//! | `SOAK_SECONDS` | the duration (120) |
//! | `SOAK_SEED` | the seed of the random actions (the time); it is printed |
//! | `SOAK_LOG` | a file for the supervisor's own log entries (none) |
//! | `SOAK_BINARY` | the binary to test (the one built for the tests) |
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod accounting;
mod chaos;
mod fixture;
mod rng;
#[expect(dead_code, reason = "the other tests use more of it")]
#[path = "../support/mod.rs"]
mod support;
mod writer;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;

use chaos::Chaos;
use fixture::{Fixture, Resources};
use support::deadline::holds_within;
use support::supervisor::{child_states, wait_until};

/// How often the disturbances pause, to let the supervisor recover and to measure it.
const PAUSES: u32 = 6;
/// The allowed growth of memory between the first and the last pause, in KiB: buffers of the log, the last lines of jobs
/// (docs/logging.md), and memory that the allocator keeps.
const MAX_MEMORY_GROWTH: u64 = 8 * 1024;
/// The allowed growth of descriptors: connections to Consul that are kept open.
const MAX_DESCRIPTOR_GROWTH: usize = 16;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, job, folder] = args.as_slice()
        && mode == "write"
    {
        writer::write(job, Path::new(folder)).unwrap();
        return;
    }
    // Like the default test harness: a name filters the tests, and `--list` runs none. `BLESS=1` has nothing to rewrite here.
    let mut names = args.iter().filter(|word| !word.starts_with('-')).peekable();
    let unwanted = names.peek().is_some() && !names.any(|name| "soak".contains(name.as_str()));
    if unwanted || args.iter().any(|word| word == "--list") || std::env::var_os("BLESS").is_some() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    soak(number("SOAK_SECONDS").unwrap_or(120), number("SOAK_SEED").unwrap_or(now.as_secs()));
}

fn soak(seconds: u64, seed: u64) {
    let pilot =
        std::env::var("SOAK_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_containerpilot").to_owned());
    println!("soak: {seconds} s, SOAK_SEED={seed}, {pilot}");
    let mut fixture = Fixture::start(&pilot);
    let copy = std::env::var_os("SOAK_LOG").map(|path| std::fs::File::create(path).unwrap());
    fixture.log.lock().unwrap().copy = copy;
    let mut chaos = Chaos::new(seed);
    let began = Instant::now();
    let part = Duration::from_secs(seconds) / PAUSES;
    let mut measured: Vec<Resources> = Vec::new();
    for nth in 1..=PAUSES {
        while began.elapsed() < part * nth {
            chaos.step(&mut fixture);
        }
        let pause = Instant::now();
        chaos.recover(&mut fixture);
        let recovery = pause.elapsed();
        let now = resources_at_rest(&fixture);
        println!(
            "  after {:>5} s: {now:?}; recovered within {} ms",
            began.elapsed().as_secs(),
            recovery.as_millis()
        );
        measured.push(now);
    }
    let mut wrong = std::mem::take(&mut chaos.wrong);
    wrong.extend(compare_exits_with_events(&fixture));
    fixture.signal(Signal::SIGTERM);
    let stopping = Instant::now();
    match fixture.wait(Duration::from_secs(60)) {
        Some(0) => {}
        code => wrong.push(format!("it exited with {code:?}")),
    }
    let stop_time = stopping.elapsed();
    wrong.extend(fixture.catalog_differs(&[]));
    summary(&fixture, &chaos, stop_time, &measured, &mut wrong);
    wrong.extend(growth(&measured));
    let stderr = std::fs::read_to_string(fixture.folder.join("stderr")).unwrap_or_default();
    // One job has a program that does not exist; the warning about it is expected.
    if ["containerpilot:", "panicked"].iter().any(|word| stderr.contains(word)) {
        wrong.push(format!("it wrote to standard error: {stderr}"));
    }
    if !wrong.is_empty() {
        panic!("SOAK_SEED={seed}: {} errors:\n{}", wrong.len(), wrong.join("\n"));
    }
    println!("test soak ... ok");
}

/// Waits until there are no zombies, and returns the least resources used within 3 s.
fn resources_at_rest(fixture: &Fixture) -> Resources {
    wait_until("there are no zombies", || !child_states(fixture.pid).contains(&'Z'));
    let mut least = fixture.resources();
    // Connections and buffers are released with a delay.
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
        let now = fixture.resources();
        least = Resources {
            rss: least.rss.min(now.rss),
            pss: least.pss.min(now.pss),
            anonymous: least.anonymous.min(now.anonymous),
            descriptors: least.descriptors.min(now.descriptors),
            threads: least.threads.min(now.threads),
        };
    }
    least
}

/// Compares the exits in the log with the exit events.
fn compare_exits_with_events(fixture: &Fixture) -> Vec<String> {
    let mut wrong = Vec::new();
    // Jobs keep running, so the two are equal only at moments.
    holds_within(Duration::from_secs(30), || {
        let (log, events) = (fixture.log.lock().unwrap(), fixture.events.lock().unwrap());
        wrong.clone_from(&events.wrong);
        for (job, runs) in &log.runs {
            let exit_events = events.exits.get(job).copied().unwrap_or_default();
            if runs.exited + runs.failed != exit_events {
                wrong.push(format!("{job}: the log has {runs:?}, but there were {exit_events} exit events"));
            }
        }
        wrong.is_empty()
    });
    wrong
}

fn growth(measured: &[Resources]) -> Vec<String> {
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else { return Vec::new() };
    let mut wrong = Vec::new();
    if last.rss > first.rss + MAX_MEMORY_GROWTH || last.anonymous > first.anonymous + MAX_MEMORY_GROWTH {
        wrong.push(format!("memory has grown from {first:?} to {last:?}"));
    }
    if last.descriptors > first.descriptors + MAX_DESCRIPTOR_GROWTH || last.threads > first.threads + 2 {
        wrong.push(format!("descriptors or threads have grown from {first:?} to {last:?}"));
    }
    wrong
}

fn summary(
    fixture: &Fixture,
    chaos: &Chaos,
    stop_time: Duration,
    measured: &[Resources],
    wrong: &mut Vec<String>,
) {
    let mut log = fixture.log.lock().unwrap();
    let events = fixture.events.lock().unwrap();
    let runs = log.compare_with_records(&fixture.folder);
    wrong.append(&mut log.wrong);
    let sum = |count: fn(&accounting::Runs) -> u64| log.runs.values().map(count).sum::<u64>();
    let (started, failed) = (sum(|runs| runs.started), sum(|runs| runs.failed));
    for (job, runs) in log.runs.iter().filter(|(_, runs)| runs.started != runs.exited) {
        wrong.push(format!("{job}: {} runs were started and {} have exited", runs.started, runs.exited));
    }
    println!("actions:");
    for (what, count) in &chaos.done {
        println!("  {count:>8}  {what}");
    }
    println!("results:");
    let rows = [
        (log.lines, "lines of jobs, each in the log once"),
        (log.bytes >> 20, "MiB of job output"),
        (runs as u64, "runs of writers whose records agree with the log"),
        (started, "runs in total, each with its exit in the log"),
        (failed, "starts that failed"),
        (log.entries, "log entries of the supervisor"),
        (events.count, "events, numbered without a gap"),
        (events.caused, "events with an earlier cause"),
        (events.connections, "connections to the event stream"),
        (fixture.slowest.load(Ordering::SeqCst), "ms for the slowest response of the control socket"),
        (u64::try_from(stop_time.as_millis()).unwrap_or_default(), "ms from SIGTERM to the exit"),
    ];
    for (count, what) in rows {
        println!("  {count:>8}  {what}");
    }
    if let (Some(first), Some(last)) = (measured.first(), measured.last()) {
        println!(
            "  RSS {} → {} KiB, PSS {} → {} KiB, anonymous {} → {} KiB, descriptors {} → {}, threads {} → {}",
            first.rss,
            last.rss,
            first.pss,
            last.pss,
            first.anonymous,
            last.anonymous,
            first.descriptors,
            last.descriptors,
            first.threads,
            last.threads
        );
    }
}
