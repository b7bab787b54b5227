//! Many one-time jobs at once (P14): time and processor time per job, and whether the log is complete.
//!
//! `cargo bench --bench storm` runs the release binary with 100 to 10,000 jobs that start at once and write a line
//! each, while a client sends requests to the control socket. `cargo bench --bench storm -- 100 10000` takes other
//! numbers of jobs.
//!
//! It fails if a start, a line or an exit is missing in the log, or if a job costs more than 1.5 times as much
//! processor time with the largest number as with the smallest.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use containerpilot_process::proc::Stat;

const PILOT: &str = env!("CARGO_BIN_EXE_containerpilot");
const JOBS: [usize; 4] = [100, 1_000, 4_000, 10_000];
/// A row has this many runs; one with few jobs has more, because the kernel counts processor time in hundredths of a
/// second.
const RUNS: usize = 3;
const LEAST_JOBS: usize = 3_000;
const TOLERANCE: f64 = 1.5;

/// What one run has shown.
struct Run {
    /// From the start of the supervisor to its exit.
    time: Duration,
    /// The processor time of the supervisor.
    own: Duration,
    /// The processor time of the supervisor and of all jobs.
    all: Duration,
    /// The longest time until the control socket answered.
    answer: Duration,
}

fn main() -> ExitCode {
    let words = std::env::args().skip(1);
    let mut jobs: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
    if jobs.is_empty() {
        jobs = JOBS.to_vec();
    }
    match measure(&jobs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(rows: &[usize]) -> io::Result<()> {
    println!(
        "{:>6}  {:<44} {:<22} {:<22} slowest",
        "jobs", "time per job, ms, each run", "processor time, ms", "supervisor, ms"
    );
    let mut costs = Vec::new();
    for &jobs in rows {
        let runs = (0..RUNS.max(LEAST_JOBS.div_ceil(jobs).min(10))).map(|_| run(jobs));
        let runs = runs.collect::<io::Result<Vec<Run>>>()?;
        let each: Vec<String> = runs.iter().map(|run| format!("{:.2}", per_job(run.time, jobs))).collect();
        let mean =
            |part: fn(&Run) -> Duration| per_job(runs.iter().map(part).sum::<Duration>(), jobs * runs.len());
        let (all, own) = (mean(|run| run.all), mean(|run| run.own));
        let answer = runs.iter().map(|run| run.answer).max().unwrap_or_default();
        println!("{jobs:>6}  {:<44} {all:<22.3} {own:<22.3} {answer:.0?}", each.join(" "));
        costs.push((jobs, all));
    }
    let smallest = costs.iter().min_by_key(|(jobs, _)| *jobs);
    let largest = costs.iter().max_by_key(|(jobs, _)| *jobs);
    match (smallest, largest) {
        (Some((few, cheap)), Some((many, dear))) if *dear > cheap * TOLERANCE => Err(io::Error::other(
            format!("{many} jobs cost {:.2} times as much as {few}, per job", dear / cheap),
        )),
        _ => Ok(()),
    }
}

fn per_job(time: Duration, jobs: usize) -> f64 {
    time.as_secs_f64() * 1_000.0 / jobs as f64
}

fn run(jobs: usize) -> io::Result<Run> {
    let folder = Folder::new()?;
    let job = |nth| format!("{{ name: 'j{nth}', exec: ['echo', 'line of j{nth}'] }},");
    let list: String = (0..jobs).map(job).collect();
    let config = folder.0.join("config.json5");
    fs::write(&config, format!("{{ jobs: [{list}] }}"))?;
    let (log, socket) = (folder.0.join("log"), folder.0.join("socket"));
    let began = Instant::now();
    let mut command = Command::new(PILOT);
    command.arg("-config").arg(&config).env("CONTAINERPILOT_SOCKET", &socket).stdout(File::create(&log)?);
    let mut child = command.spawn()?;
    let stop = AtomicBool::new(false);
    let (answer, ended) = std::thread::scope(|scope| {
        let client = scope.spawn(|| slowest_answer(&socket, &stop));
        let ended = wait_for_end(child.id()).map(|cost| (began.elapsed(), cost));
        stop.store(true, Ordering::Relaxed);
        (client.join().unwrap_or_default(), ended)
    });
    let (time, (own, all)) = ended?;
    let status = child.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("{jobs} jobs: {status}")));
    }
    check_log(&fs::read_to_string(&log)?, jobs)?;
    Ok(Run { time, own, all, answer })
}

/// Waits until a child has exited, without reaping it. Returns the processor time of the child, and that of its
/// descendants added to it.
fn wait_for_end(pid: u32) -> io::Result<(Duration, Duration)> {
    loop {
        let stat = Stat::read(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        if stat.state == b'Z' {
            return Ok([stat.own_cpu_ticks, stat.cpu_ticks]
                .map(|ticks| Duration::from_millis(ticks * 10))
                .into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends requests to the control socket until `stop`. Returns the longest time until an answer.
fn slowest_answer(socket: &Path, stop: &AtomicBool) -> Duration {
    let mut slowest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        if ask(socket).is_ok() {
            slowest = slowest.max(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    slowest
}

fn ask(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"GET /v3/jobs/j0 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Every job has its start, its line and its exit in the log, once.
fn check_log(log: &str, jobs: usize) -> io::Result<()> {
    for what in ["started (pid ", "line of ", "exited with code 0 "] {
        let mut seen = vec![0_u32; jobs];
        for line in log.lines().filter(|line| line.contains(what)) {
            let mut words = line.split([' ', ':']);
            let name = words.find_map(|word| word.strip_prefix('j')?.parse::<usize>().ok());
            if let Some(count) = name.and_then(|nth| seen.get_mut(nth)) {
                *count += 1;
            }
        }
        let wrong = seen.iter().filter(|count| **count != 1).count();
        if wrong > 0 {
            return Err(io::Error::other(format!(
                "`{what}` is not in the log once for {wrong} of {jobs} jobs"
            )));
        }
    }
    Ok(())
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("containerpilot-storm-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
