//! A soak: chaos on the real binary with a real Consul, and books that balance at its end (E7, L3, L4, P1, P4, D5, R4, S6).
//!
//! Two minutes of it are part of the tests. `make soak SOAK_SECONDS=1800` takes longer, on the release binary.
//!
//! | variable | |
//! | --- | --- |
//! | `SOAK_SECONDS` | how long; 120 if not said |
//! | `SOAK_SEED` | what is done when: from the clock if not said, and printed |
//! | `SOAK_LOG` | a file for all that the supervisor itself has logged |
//! | `SOAK_BINARY` | the program to torment; that of the tests if not said |
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

#[expect(dead_code, reason = "it is shared with the tests of discovery, which need more of it")]
#[path = "../discovery/agent.rs"]
mod agent;
mod books;
mod chaos;
mod rng;
#[expect(dead_code, reason = "it is shared with the tests of the supervisor, which need more of it")]
#[path = "../supervisor/support.rs"]
mod support;
mod world;
mod writer;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;

use chaos::Chaos;
use support::{children, until};
use world::{Holds, World};

/// How often the supervisor is left in peace, to be measured.
const CALMS: u32 = 6;
/// How much more memory than after the first part it may have at the end, in KiB: what the log and the tails of jobs may hold
/// (docs/logging.md), and what an allocator keeps.
const MORE_MEMORY: u64 = 8 * 1024;
/// How many more descriptors: connections to Consul that are kept.
const MORE_DESCRIPTORS: usize = 16;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, job, folder] = args.as_slice()
        && mode == "write"
    {
        writer::write(job, Path::new(folder)).unwrap();
        return;
    }
    // As the usual harness does: a name chooses among the tests, and a list is a list. There is nothing to write anew either.
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
    let mut world = World::start(&pilot);
    let copy = std::env::var_os("SOAK_LOG").map(|path| std::fs::File::create(path).unwrap());
    world.log.lock().unwrap().copy = copy;
    let mut chaos = Chaos::new(seed);
    let began = Instant::now();
    let part = Duration::from_secs(seconds) / CALMS;
    let mut held: Vec<Holds> = Vec::new();
    for nth in 1..=CALMS {
        while began.elapsed() < part * nth {
            chaos.step(&mut world);
        }
        let tired = Instant::now();
        chaos.calm(&mut world);
        let calm = tired.elapsed();
        let now = settled(&world);
        println!(
            "  after {:>5} s: {now:?}; all was well again within {} ms",
            began.elapsed().as_secs(),
            calm.as_millis()
        );
        held.push(now);
    }
    let mut wrong = std::mem::take(&mut chaos.wrong);
    wrong.extend(balance_events(&world));
    world.signal(Signal::SIGTERM);
    let asked = Instant::now();
    match world.end(Duration::from_secs(60)) {
        Some(0) => {}
        code => wrong.push(format!("it ended with {code:?}")),
    }
    let stopped = asked.elapsed();
    wrong.extend(world.catalog_differs(&[]));
    summary(&world, &chaos, stopped, &held, &mut wrong);
    wrong.extend(grown(&held));
    let stderr = std::fs::read_to_string(world.folder.join("stderr")).unwrap_or_default();
    // The warning about a program that is not there is meant.
    if ["containerpilot:", "panicked"].iter().any(|word| stderr.contains(word)) {
        wrong.push(format!("it wrote to standard error: {stderr}"));
    }
    if !wrong.is_empty() {
        panic!("SOAK_SEED={seed}: {} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
    println!("test soak ... ok");
}

/// What the supervisor holds when nothing is left of the chaos: no zombie, and no more than the children it should have.
fn settled(world: &World) -> Holds {
    until("there are zombies", || !children(world.pid).contains(&'Z'));
    let mut least = world.holds();
    // Connections close and buffers go in their own time.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
        let now = world.holds();
        least = Holds {
            rss: least.rss.min(now.rss),
            pss: least.pss.min(now.pss),
            own: least.own.min(now.own),
            descriptors: least.descriptors.min(now.descriptors),
            threads: least.threads.min(now.threads),
        };
    }
    least
}

/// Every end of a run that the log tells is an event, and the other way round.
fn balance_events(world: &World) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut wrong = Vec::new();
        {
            let (log, events) = (world.log.lock().unwrap(), world.events.lock().unwrap());
            for (job, runs) in &log.runs {
                let told = events.exits.get(job).copied().unwrap_or_default();
                if runs.ended + runs.failed != told {
                    wrong
                        .push(format!("{job}: the log has {runs:?}, and there were {told} events of an end"));
                }
            }
            wrong.extend(events.wrong.iter().cloned());
        }
        // Jobs go on, so the two are equal for moments only.
        if wrong.is_empty() || Instant::now() > deadline {
            return wrong;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

fn grown(held: &[Holds]) -> Vec<String> {
    let (Some(first), Some(last)) = (held.first(), held.last()) else { return Vec::new() };
    let mut wrong = Vec::new();
    if last.rss > first.rss + MORE_MEMORY || last.own > first.own + MORE_MEMORY {
        wrong.push(format!("memory has grown from {first:?} to {last:?}"));
    }
    if last.descriptors > first.descriptors + MORE_DESCRIPTORS || last.threads > first.threads + 2 {
        wrong.push(format!("descriptors or threads have grown from {first:?} to {last:?}"));
    }
    wrong
}

fn summary(world: &World, chaos: &Chaos, stopped: Duration, held: &[Holds], wrong: &mut Vec<String>) {
    let mut log = world.log.lock().unwrap();
    let events = world.events.lock().unwrap();
    let runs = log.settle(&world.folder);
    wrong.append(&mut log.wrong);
    let sum = |count: fn(&books::Runs) -> u64| log.runs.values().map(count).sum::<u64>();
    let (started, failed) = (sum(|runs| runs.started), sum(|runs| runs.failed));
    for (job, runs) in log.runs.iter().filter(|(_, runs)| runs.started != runs.ended) {
        wrong.push(format!("{job}: {} runs were started and {} have ended", runs.started, runs.ended));
    }
    println!("what was done:");
    for (what, count) in &chaos.done {
        println!("  {count:>8}  {what}");
    }
    println!("what came of it:");
    let rows = [
        (log.lines, "lines of jobs, each in the log once"),
        (log.bytes >> 20, "MiB of them"),
        (runs as u64, "runs of writers, whose records agree with the log"),
        (started, "runs in all, each with its end in the log"),
        (failed, "starts that failed"),
        (log.entries, "entries of the supervisor"),
        (events.count, "events, numbered without a gap"),
        (events.caused, "of them caused by an earlier one"),
        (events.connections, "connections on which they were heard"),
        (world.slowest.load(Ordering::SeqCst), "ms took the slowest answer of the control socket"),
        (u64::try_from(stopped.as_millis()).unwrap_or_default(), "ms from SIGTERM to the end"),
    ];
    for (count, what) in rows {
        println!("  {count:>8}  {what}");
    }
    if let (Some(first), Some(last)) = (held.first(), held.last()) {
        println!(
            "  RSS {} → {} KiB, PSS {} → {} KiB, of its own {} → {} KiB, descriptors {} → {}, threads {} → {}",
            first.rss,
            last.rss,
            first.pss,
            last.pss,
            first.own,
            last.own,
            first.descriptors,
            last.descriptors,
            first.threads,
            last.threads
        );
    }
}
