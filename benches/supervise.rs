//! The cost of supervision compared with a baseline in the same run.
//!
//! `cargo bench --bench supervise` runs the release binary and, alternating, the same work done by this program itself:
//! starting a child, restarting it, signalling it, running it as a check, reaping orphans. It prints the medians of both and
//! their ratio next to the expected ratio; a much larger one is marked. Only ratios are meaningful, and only on an idle
//! machine; on a busy one run the program that `cargo bench --no-run` prints under `chrt -r 1`, as root.
//! `cargo bench --bench supervise -- 9 start` runs nine rounds of the rows with `start` in their name.
//!
//! The child is this program too. It is larger than the one of benches/peers, so the ratios are smaller here.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PILOT: &str = env!("CARGO_BIN_EXE_containerpilot");
/// A ratio above the expected one times this is marked.
const TOLERANCE: f64 = 1.5;

/// A row: name with unit, expected ratio, and how the baseline and the supervisor are measured.
type Row = (&'static str, f64, fn(&Folder) -> io::Result<f64>, fn(&Folder) -> io::Result<f64>);

const ROWS: [Row; 6] = [
    ("start, -- cmd, ms", 2.3, start_bare, start_alone),
    ("start, one-job file, ms", 2.3, start_bare, start_file),
    ("signal, µs", 1.5, signal_direct, signal_passed),
    ("restart, µs each", 1.1, restart_bare, restart_job),
    ("check, µs of CPU time each", 1.2, check_bare, check_job),
    ("orphan, µs of CPU time each", 2.0, orphan_bare, orphan_job),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["child", "hello"] => io::stdout().write_all(b"x"),
        ["child", "mark", file] => mark(file),
        ["child", "hold", file] => hold(file),
        ["child", "nothing"] => Ok(()),
        [rounds, filter] => compare(rounds.parse().unwrap_or(5), filter),
        [rounds] => compare(rounds.parse().unwrap_or(5), ""),
        _ => compare(5, ""),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Appends a byte to a file.
fn mark(file: &str) -> io::Result<()> {
    File::options().append(true).open(file)?.write_all(b"x")
}

/// Writes a byte to a named pipe and holds it open until it is killed.
fn hold(file: &str) -> io::Result<()> {
    let mut pipe = File::options().write(true).open(file)?;
    pipe.write_all(b"x")?;
    loop {
        std::thread::park();
    }
}

/// A folder for one measurement.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("containerpilot-bench-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Starts the supervisor with a configuration.
    fn supervise(&self, config: &str) -> io::Result<Running> {
        let file = self.file("pilot.json5");
        fs::write(&file, config)?;
        Running::start(Command::new(PILOT).args(["-config", &file]))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that is stopped when it is dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> io::Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_remove("CONTAINERPILOT").spawn().map(Self)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed())
    }

    /// Waits for the first byte of its output.
    fn first_byte(&mut self) -> io::Result<()> {
        self.0.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut [0])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn this() -> io::Result<String> {
    Ok(std::env::current_exe()?.display().to_string())
}

fn child(words: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").args(words);
    Ok(command)
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}

fn start(command: &mut Command) -> io::Result<f64> {
    let started = Instant::now();
    let mut running = Running::start(command)?;
    running.first_byte()?;
    Ok(micros(started.elapsed(), 1000))
}

fn start_bare(_: &Folder) -> io::Result<f64> {
    start(&mut child(&["hello"])?)
}

fn start_alone(_: &Folder) -> io::Result<f64> {
    start(Command::new(PILOT).args(["--", &this()?, "child", "hello"]))
}

fn start_file(folder: &Folder) -> io::Result<f64> {
    let file = folder.file("pilot.json5");
    let job = format!("name: 'main', exec: ['{}', 'child', 'hello'], logging: {{ raw: true }}", this()?);
    fs::write(&file, format!("{{ jobs: [{{ {job} }}], logging: {{ output: 'stderr' }} }}"))?;
    start(Command::new(PILOT).args(["-config", &file]))
}

/// The time from the signal to the exit of the child, which closes a named pipe.
fn signal(folder: &Folder, start: impl Fn(&str) -> io::Result<Running>) -> io::Result<f64> {
    let fifo = folder.file("fifo");
    if !Path::new(&fifo).exists() {
        let made = Command::new("mkfifo").arg(&fifo).status()?;
        assert!(made.success(), "mkfifo {fifo}");
    }
    let running = start(&fifo)?;
    let mut pipe = File::open(&fifo)?;
    pipe.read_exact(&mut [0])?;
    // The child is ready; let the supervisor become idle.
    std::thread::sleep(Duration::from_millis(50));
    let started = Instant::now();
    kill(running.pid(), Signal::SIGTERM)?;
    pipe.read_to_end(&mut Vec::new())?;
    Ok(micros(started.elapsed(), 1))
}

fn signal_direct(folder: &Folder) -> io::Result<f64> {
    signal(folder, |fifo| Running::start(&mut child(&["hold", fifo])?))
}

fn signal_passed(folder: &Folder) -> io::Result<f64> {
    let this = this()?;
    signal(folder, |fifo| {
        folder.supervise(&format!(
            "{{ jobs: [{{ name: 'main', exec: ['{this}', 'child', 'hold', '{fifo}'] }}] }}"
        ))
    })
}

const RESTARTS: usize = 300;

fn restart_bare(folder: &Folder) -> io::Result<f64> {
    let file = folder.file("marks");
    fs::write(&file, "")?;
    let started = Instant::now();
    for _ in 0..RESTARTS {
        Running::start(&mut child(&["mark", &file])?)?.0.wait()?;
    }
    Ok(micros(started.elapsed(), RESTARTS))
}

fn restart_job(folder: &Folder) -> io::Result<f64> {
    let file = folder.file("marks");
    fs::write(&file, "")?;
    let how = "restarts: 'unlimited', restartBackoff: false";
    let exec = format!("['{}', 'child', 'mark', '{file}']", this()?);
    let _running = folder.supervise(&format!("{{ jobs: [{{ name: 'main', exec: {exec}, {how} }}] }}"))?;
    let marks = until(&file, 20)?;
    let started = Instant::now();
    let count = until(&file, marks + RESTARTS)? - marks;
    Ok(micros(started.elapsed(), count))
}

/// Waits until a file has `bytes` bytes; returns its size.
fn until(file: &str, bytes: usize) -> io::Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let size = usize::try_from(fs::metadata(file)?.len()).unwrap_or(usize::MAX);
        if size >= bytes {
            return Ok(size);
        }
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("{file} has {size} bytes, not {bytes}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The CPU time of all threads of a process.
fn used(process: &str) -> io::Result<Duration> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        sum += text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(sum))
}

const CHECKS: usize = 400;

fn check_bare(_: &Folder) -> io::Result<f64> {
    let before = used("self")?;
    for _ in 0..CHECKS {
        Running::start(&mut child(&["nothing"])?)?.0.wait()?;
    }
    Ok(micros(used("self")?.saturating_sub(before), CHECKS))
}

fn check_job(folder: &Folder) -> io::Result<f64> {
    let file = folder.file("marks");
    fs::write(&file, "")?;
    let health = format!("{{ exec: ['{}', 'child', 'mark', '{file}'], interval: '20ms', ttl: 10 }}", this()?);
    let job = |nth| format!("{{ name: 'job{nth}', exec: 'sleep 1000', health: {health} }}");
    let jobs: Vec<String> = (0..10).map(job).collect();
    let running = folder.supervise(&format!("{{ jobs: [{}] }}", jobs.join(", ")))?;
    let marks = until(&file, 50)?;
    let pid = running.pid().to_string();
    let before = used(&pid)?;
    let count = until(&file, marks + CHECKS)? - marks;
    Ok(micros(used(&pid)?.saturating_sub(before), count))
}

const ORPHANS: usize = 1000;

/// The cost of reaping known children.
fn orphan_bare(_: &Folder) -> io::Result<f64> {
    let mut all = Vec::new();
    for _ in 0..ORPHANS {
        all.push(Command::new("sleep").arg("1").spawn()?);
    }
    let before = used("self")?;
    for mut child in all {
        child.wait()?;
    }
    Ok(micros(used("self")?.saturating_sub(before), ORPHANS))
}

/// The cost of reaping orphans, which the supervisor has not started.
fn orphan_job(folder: &Folder) -> io::Result<f64> {
    let file = folder.file("marks");
    fs::write(&file, "")?;
    // All orphans exit at about the same time, while the job keeps running.
    let script = format!(
        "i=0; while [ $i -lt {ORPHANS} ]; do (sleep 1 > /dev/null 2>&1 &); i=$((i + 1)); done; echo x >> {file}; exec sleep 1000"
    );
    let running =
        folder.supervise(&format!("{{ jobs: [{{ name: 'main', exec: ['sh', '-c', '{script}'] }}] }}"))?;
    let pid = running.pid().to_string();
    let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    // The subshells in between are reaped already; the remaining children are the orphans and the job.
    until(&file, 1)?;
    let left = children()?.split_whitespace().count();
    let before = used(&pid)?;
    while children()?.split_whitespace().count() > 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(micros(used(&pid)?.saturating_sub(before), left.saturating_sub(1)))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn compare(rounds: usize, filter: &str) -> io::Result<()> {
    println!("{:36} {:>9} {:>9} {:>7} {:>8}", "", "baseline", "measured", "ratio", "expected");
    for (name, expected, baseline, supervised) in ROWS.into_iter().filter(|row| row.0.contains(filter)) {
        let (mut baselines, mut figures) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let folder = Folder::new()?;
            baselines.push(baseline(&folder)?);
            figures.push(supervised(&folder)?);
        }
        let (baseline, measured) = (median(baselines), median(figures));
        let mark = if measured > baseline * expected * TOLERANCE { "  <- a regression?" } else { "" };
        println!("{name:36} {baseline:9.2} {measured:9.2} {:7.2} {expected:8.2}{mark}", measured / baseline);
    }
    Ok(())
}
