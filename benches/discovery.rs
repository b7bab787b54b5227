//! The cost of discovery with a real Consul agent: the latency of a change, and idle load.
//!
//! `cargo bench --bench discovery`; `-- files` measures rendered files only, `QUICK=1` runs fewer rounds. The results are in docs/benchmarks.md.
#![expect(clippy::unwrap_used, reason = "a measurement stops at what it does not expect")]

#[path = "discovery/rendered_files.rs"]
mod rendered_files;
#[expect(dead_code, reason = "shared with the tests, which need more of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::consul::{self, Agent};
use support::supervisor::{Mode, Supervisor, wait_until};

/// The time between two changes. With an interval of 1 s, the queries of the watch have no pause then (D16).
const QUIET: Duration = Duration::from_millis(1_500);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--stamp") {
        return stamp(Path::new(&args[at + 1]));
    }
    if let Some(at) = args.iter().position(|arg| arg == "--receive") {
        return rendered_files::receive(Path::new(&args[at + 1]));
    }
    let rounds = if std::env::var_os("QUICK").is_some() { 10 } else { 50 };
    rendered_files::compare(rounds);
    if args.iter().any(|arg| arg == "files") {
        return;
    }
    change(rounds);
    idle("100 services and 100 watches", 100, 100, 10);
    idle("100 watches alone", 0, 100, 10);
    idle("1,000 watches", 0, 1_000, 10);
    idle("nothing but Consul's address", 0, 0, 10);
}

/// The triggered job: writes the current time.
fn stamp(file: &Path) {
    let now = monotonic();
    let part = file.with_extension("part");
    fs::write(&part, now.to_string()).unwrap();
    fs::rename(part, file).unwrap();
}

/// The monotonic clock in milliseconds.
fn monotonic() -> f64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() as f64 * 1e3 + now.tv_nsec() as f64 / 1e6
}

/// The time from a change in Consul to the first instruction of the triggered job.
fn change(rounds: usize) {
    let agent = Agent::dev();
    let own = std::env::current_exe().unwrap();
    let config = format!(
        "{{ consul: '{}', control: {{ socket: '@/control' }}, watches: [{{ name: 'db', interval: 1 }}], jobs: [
            {{ name: 'main', exec: 'sleep 10000' }},
            {{ name: 'act', exec: ['{}', '--stamp', '@/stamp'], when: {{ source: 'watch.db', each: 'changed' }} }} ] }}",
        agent.address(),
        own.display()
    );
    let run = Supervisor::start(Mode::Plain, &config);
    let file = run.file("stamp");
    // The first change is not counted: the watch has to start.
    let followed = measured(&agent, &file, rounds, 0);
    report("change to the job's first instruction, blocking query", followed);
    drop(run);

    // The last of an odd number of changes was a registration.
    agent.deregister("db-1");
    // The same with polling every second: query, compare, run the job after a change.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (address, file, job) = (agent.address(), stamp_file(), own);
    let poller = {
        let file = file.clone();
        std::thread::spawn(move || {
            let query =
                || consul::http(&address, "GET", "/v1/health/service/db?passing=1", None, "").unwrap().1;
            let mut known = query();
            while stopped.recv_timeout(Duration::from_secs(1)).is_err() {
                let found = query();
                if found != known {
                    known = found;
                    let mut child =
                        Command::new(&job).arg("--stamp").arg(&file).stdin(Stdio::null()).spawn().unwrap();
                    child.wait().unwrap();
                }
            }
        })
    };
    let polled = measured(&agent, &file, rounds / 5 * 2, 370);
    report("change to the job's first instruction, polling at 1 s", polled);
    stop.send(()).unwrap();
    poller.join().unwrap();
}

fn stamp_file() -> PathBuf {
    consul::folder().join("stamp")
}

/// Makes changes and waits for the stamp after each.
fn measured(agent: &Agent, file: &Path, rounds: usize, spread: u64) -> Vec<f64> {
    let mut times = Vec::new();
    for round in 0..=rounds {
        let _ = fs::remove_file(file);
        // A varying pause, so that it does not coincide with a poll.
        std::thread::sleep(QUIET + Duration::from_millis(spread * (round as u64 % 7)));
        let started = monotonic();
        if round % 2 == 0 {
            agent.register("db", "db-1", 1, &[])
        } else {
            agent.deregister("db-1")
        }
        wait_until("nothing was run", || file.exists());
        let stamped: f64 = fs::read_to_string(file).unwrap().parse().unwrap();
        if round > 0 {
            times.push(stamped - started);
        }
    }
    times
}

fn report(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!(
        "{what}: median {:.1} ms, 90 % {:.1} ms, worst {:.1} ms ({} changes)",
        at(50),
        at(90),
        at(100),
        times.len()
    );
}

/// The load while nothing changes.
fn idle(what: &str, services: usize, watches: usize, interval: usize) {
    let agent = Agent::dev();
    let jobs = (0..services).map(|nth| {
        format!(
            "{{ name: 'service-{nth}', port: 80, interfaces: 'static:10.1.2.3', health: {{ exec: 'true', interval: {interval}, ttl: {} }} }}",
            interval * 3
        )
    });
    let jobs: Vec<String> = jobs.chain(["{ name: 'main', exec: 'sleep 10000' }".to_owned()]).collect();
    let watches: Vec<String> =
        (0..watches).map(|nth| format!("{{ name: 'other-{nth}', interval: {interval} }}")).collect();
    let config = format!(
        "{{ consul: '{}', control: {{ socket: '@/control' }}, jobs: [{}], watches: [{}] }}",
        agent.address(),
        jobs.join(", ").replace("exec: 'true', ", ""),
        watches.join(", ")
    );
    let run = Supervisor::start(Mode::Plain, &config);
    let pid = run.pid();
    if services > 0 {
        let last = format!("service-{}", services - 1);
        agent.wait_for_status(&last, Some("passing"));
    }
    std::thread::sleep(Duration::from_secs(interval as u64 + 2));
    let (before, ticks, started) = (requests(&agent), run.cpu_ticks(), Instant::now());
    std::thread::sleep(Duration::from_secs(interval as u64 * 3));
    let seconds = started.elapsed().as_secs_f64();
    let rate = (requests(&agent) - before) as f64 / seconds;
    let busy = (run.cpu_ticks() - ticks) as f64 / seconds;
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let sockets = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets = sockets.filter(|fd| {
        let link = fs::read_link(fd.as_ref().unwrap().path()).unwrap_or_default();
        link.to_string_lossy().starts_with("socket:")
    });
    println!(
        "{what}, interval {interval} s: {rate:.1} requests/s, {busy:.2} % of a CPU, PSS {} KiB, {threads} threads, {} sockets",
        pss(pid),
        sockets.count()
    );
}

fn requests(agent: &Agent) -> usize {
    let log = fs::read_to_string(agent.folder().join("log")).unwrap();
    log.lines().filter(|line| line.contains("agent.http: Request finished")).count()
}

fn pss(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
