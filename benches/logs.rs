//! Log throughput: how fast the lines of a job reach the reader of the supervisor's output, compared with `cat`.
//!
//! `cargo bench --bench logs` runs `writer | relay | sink` for each relay several times, alternating, and prints the best
//! and the median rate in million lines of 100 bytes per second. `cargo bench --bench logs -- 5` runs five rounds. The
//! relay is `cat` or the release binary with one of its log formats and the writer as its job; `stderr` and `join` are the format
//! `default` with a level for stderr, to which the job writes then, and with a pattern for continuation lines.
//!
//! `cat-file`, `file`, `rotate` and `file-json` have no sink: they write to a file in memory, the latter three by `logging.file` of the
//! job, and are measured until the relay has ended. `rotate` has `maxSize: "10MB"`.
//!
//! `cargo bench --bench logs -- export 5` compares the log without and with the export to an OpenTelemetry collector (T6), alternating: how
//! fast the lines arrive, the CPU time of the supervisor, and how many lines the collector got. The collector is a thread of the benchmark that
//! reads everything and answers at once.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use containerpilot_process::proc::Stat;

const PILOT: &str = env!("CARGO_BIN_EXE_containerpilot");
const LINE: usize = 100;
/// How every line ends, before its newline.
const LINE_END: &[u8] = b"opqrst~";

/// How the job writes: a name, lines per write, lines in total.
const WRITERS: [(&str, usize, usize); 2] = [("64K", 640, 10_000_000), ("line", 1, 3_000_000)];
const RELAYS: [&str; 10] =
    ["cat", "default", "json", "text", "stderr", "join", "cat-file", "file", "rotate", "file-json"];
/// Where files are written: in memory, because this measures the log and not a disk.
const MEMORY: &str = "/dev/shm";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["write", lines, per_write] => write(number(lines), number(per_write), io::stdout().as_fd()),
        ["write-stderr", lines, per_write] => write(number(lines), number(per_write), io::stderr().as_fd()),
        ["sink", lines] => sink(number(lines)),
        ["export"] => export(5),
        ["export", rounds] => export(number(rounds)),
        [rounds] => compare(number(rounds)),
        _ => compare(5),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn number(word: &str) -> usize {
    word.parse().unwrap_or(1)
}

fn own(words: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words);
    Ok(command)
}

/// The job: writes lines of 100 bytes, each ending in `~` and a newline.
fn write(lines: usize, per_write: usize, output: BorrowedFd<'_>) -> io::Result<()> {
    let line: Vec<u8> = (0..LINE - 2).map(|at| b'a' + (at % 26) as u8).chain(*b"~\n").collect();
    let block = line.repeat(per_write);
    let mut output = File::from(output.try_clone_to_owned()?);
    let mut left = lines;
    while left > 0 {
        let now = left.min(per_write);
        output.write_all(block.get(..now * LINE).unwrap_or(&block))?;
        left -= now;
    }
    Ok(())
}

/// The reader of the output: returns when all lines have arrived.
fn sink(lines: usize) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; 256 * 1024];
    let mut seen = 0;
    while seen < lines {
        let count = stdin.read(&mut buffer)?;
        if count == 0 {
            return Err(io::Error::other(format!("only {seen} of {lines} lines arrived")));
        }
        let read = buffer.get(..count).unwrap_or_default();
        seen += read.iter().map(|&byte| usize::from(byte == b'~')).sum::<usize>();
    }
    Ok(())
}

fn writer(lines: &str, per_write: &str, stdout: Stdio) -> io::Result<Child> {
    own(&["write", lines, per_write])?.stdout(stdout).spawn()
}

/// The file that is written, in a folder in memory.
fn log_file() -> PathBuf {
    PathBuf::from(MEMORY).join(format!("containerpilot-bench-logs-{}", std::process::id())).join("log")
}

/// Runs the release binary with the writer as its only job.
fn supervisor(relay: &str, lines: &str, per_write: &str) -> io::Result<Command> {
    let path = std::env::temp_dir().join(format!("containerpilot-bench-logs-{}.json5", std::process::id()));
    let program = std::env::current_exe()?;
    let file = log_file();
    let (format, logging) = match relay {
        "stderr" => ("default", r#"{ stderr: "error" }"#.to_owned()),
        "join" => ("default", r#"{ join: "^\\s" }"#.to_owned()),
        "file" => ("default", format!("{{ file: {file:?}, maxSize: 0 }}")),
        "rotate" => ("default", format!("{{ file: {file:?}, maxSize: \"10MB\", keep: 3 }}")),
        "file-json" => ("json", format!("{{ file: {file:?}, maxSize: \"10MB\", keep: 3 }}")),
        format => (format, "{}".to_owned()),
    };
    let write = if relay == "stderr" { "write-stderr" } else { "write" };
    let config = format!(
        r#"{{ logging: {{ format: "{format}" }}, jobs: [{{ name: "main", exec: [{program:?}, "{write}", "{lines}", "{per_write}"],
             logging: {logging} }}], control: {{ socket: "{}" }} }}"#,
        path.with_extension("socket").display(),
    );
    fs::write(&path, config)?;
    let mut command = Command::new(PILOT);
    command.arg("-config").arg(path);
    Ok(command)
}

/// Runs `writer | relay | sink` and returns the time until the last line has arrived at the sink.
fn once(relay: &str, per_write: usize, lines: usize) -> io::Result<Duration> {
    if matches!(relay, "cat-file" | "file" | "rotate" | "file-json") {
        return once_to_file(relay, per_write, lines);
    }
    let (lines, per_write) = (lines.to_string(), per_write.to_string());
    let (read_end, write_end) = io::pipe()?;
    let mut sink = own(&["sink", &lines])?.stdin(read_end).spawn()?;
    let start = Instant::now();
    let mut children = Vec::new();
    if relay == "cat" {
        let (input, output) = io::pipe()?;
        children.push(Command::new("cat").stdin(input).stdout(write_end).spawn()?);
        children.push(writer(&lines, &per_write, output.into())?);
    } else {
        children.push(supervisor(relay, &lines, &per_write)?.stdout(write_end).spawn()?);
    }
    let status = sink.wait()?;
    let time = start.elapsed();
    for mut child in children {
        child.wait()?;
    }
    if status.success() { Ok(time) } else { Err(io::Error::other("lines are missing")) }
}

/// Runs `writer | relay > FILE` and returns the time until the relay has ended.
fn once_to_file(relay: &str, per_write: usize, lines: usize) -> io::Result<Duration> {
    let (lines, per_write) = (lines.to_string(), per_write.to_string());
    let file = log_file();
    let folder = file.parent().ok_or_else(|| io::Error::other("no folder"))?;
    fs::create_dir_all(folder)?;
    let start = Instant::now();
    let status = if relay == "cat-file" {
        let (input, output) = io::pipe()?;
        let mut cat = Command::new("cat").stdin(input).stdout(File::create(&file)?).spawn()?;
        writer(&lines, &per_write, output.into())?.wait()?;
        cat.wait()?
    } else {
        supervisor(relay, &lines, &per_write)?.stdout(Stdio::null()).status()?
    };
    let time = start.elapsed();
    let size: u64 =
        fs::read_dir(folder)?.flatten().filter_map(|one| one.metadata().ok()).map(|one| one.len()).sum();
    fs::remove_dir_all(folder)?;
    let expected = if relay == "rotate" || relay == "file-json" { 20 << 20 } else { number(&lines) * LINE };
    if status.success() && size >= expected as u64 {
        Ok(time)
    } else {
        Err(io::Error::other("lines are missing"))
    }
}

fn compare(rounds: usize) -> io::Result<()> {
    println!("million lines/s {:>10} {:>8} {:>8} {:>8}", "relay", "best", "median", "of cat");
    for (name, per_write, lines) in WRITERS {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); RELAYS.len()];
        for _ in 0..rounds {
            for (relay, times) in RELAYS.iter().zip(&mut times) {
                times.push(once(relay, per_write, lines)?);
            }
        }
        let mut floor = None;
        for (relay, times) in RELAYS.iter().zip(&mut times) {
            times.sort_unstable();
            let rate =
                |time: Option<&Duration>| time.map_or(0.0, |time| lines as f64 / time.as_secs_f64() / 1e6);
            let (best, median) = (rate(times.first()), rate(times.get(times.len() / 2)));
            let floor = *floor.get_or_insert(median);
            println!("{name:>15} {relay:>10} {best:>8.2} {median:>8.2} {:>7.2}x", median / floor);
        }
    }
    Ok(())
}

/// A collector that counts lines.
fn collector() -> io::Result<(SocketAddr, Arc<AtomicU64>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (address, seen) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            std::thread::spawn(move || drop(answer(&stream, &count)));
        }
    });
    Ok((address, seen))
}

fn answer(stream: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = number(text.trim());
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        // The end of each line; a single byte may also be a part of a number.
        count.fetch_add(memchr::memmem::find_iter(&body, LINE_END).count() as u64, Ordering::Relaxed);
        writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

/// The log without and with the export, in the same run.
fn export(rounds: usize) -> io::Result<()> {
    println!(
        "{:>10} {:>8} {:>16} {:>22} {:>10}",
        "writer", "export", "million lines/s", "CPU s/million lines", "exported"
    );
    for (name, per_write, lines) in [("64K", 640, 3_000_000), ("line", 1, 1_000_000)] {
        for _ in 0..rounds {
            for exports in [false, true] {
                let (address, seen) = collector()?;
                let path = std::env::temp_dir()
                    .join(format!("containerpilot-bench-export-{}.json5", std::process::id()));
                let program = std::env::current_exe()?;
                let otlp = match exports {
                    true => {
                        format!("otlp: {{ endpoint: 'http://{address}', traces: false, metrics: false }},")
                    }
                    false => String::new(),
                };
                let config = format!(
                    r#"{{ {otlp} jobs: [{{ name: "main", exec: [{program:?}, "write", "{lines}", "{per_write}"] }},
                         {{ name: "stays", exec: "sleep 1000" }}], control: {{ socket: "{}" }} }}"#,
                    path.with_extension("socket").display(),
                );
                fs::write(&path, config)?;
                let (read_end, write_end) = io::pipe()?;
                // The supervisor can write after the sink has ended.
                let _open = read_end.try_clone()?;
                let mut sink = own(&["sink", &lines.to_string()])?.stdin(read_end).spawn()?;
                let start = Instant::now();
                let mut supervisor =
                    Command::new(PILOT).arg("-config").arg(&path).stdout(write_end).spawn()?;
                let is_complete = sink.wait()?.success();
                let rate = lines as f64 / start.elapsed().as_secs_f64() / 1e6;
                // The rest is sent within a second or two.
                let mut before = u64::MAX;
                while exports && before != seen.load(Ordering::Relaxed) {
                    before = seen.load(Ordering::Relaxed);
                    std::thread::sleep(Duration::from_secs(2));
                }
                let ticks =
                    Stat::read(supervisor.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?.own_cpu_ticks;
                nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(supervisor.id() as i32),
                    nix::sys::signal::SIGTERM,
                )?;
                supervisor.wait()?;
                if !is_complete {
                    return Err(io::Error::other("lines are missing"));
                }
                let cpu = ticks as f64 / 100.0 / (lines as f64 / 1e6);
                let share = 100.0 * seen.load(Ordering::Relaxed) as f64 / lines as f64;
                let exported = if exports { format!("{share:.1} %") } else { String::new() };
                println!("{name:>10} {exports:>8} {rate:>16.2} {cpu:>22.2} {exported:>10}");
            }
        }
    }
    Ok(())
}
