//! How fast lines go from a child to the reader of our output, with `cat` in our place as the floor.
//!
//! `cargo bench --bench logs` runs `writer | relay | sink` for each kind of relay, several times in turn, and prints the
//! best and the median of each in million lines of 100 bytes per second. `cargo bench --bench logs -- 5` takes five
//! turns. All three are processes of their own, as they are in life.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use containerpilot_core::plan::{Format, Level, Logging, Output};

#[path = "../src"]
#[expect(dead_code, unused_imports, reason = "only a part of the modules is used, and none of their tests")]
mod binary {
    pub(crate) mod logs;
    pub(crate) mod mishap;
    pub(crate) mod sys;
}
use binary::{logs, mishap, sys};

const LINE: usize = 100;

/// A way of writing: its name, lines per write, lines in all.
const WRITERS: [(&str, usize, usize); 2] = [("64K", 640, 10_000_000), ("line", 1, 3_000_000)];
const RELAYS: [&str; 4] = ["cat", "default", "json", "text"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["write", lines, per_write] => write(number(lines), number(per_write)),
        ["sink", lines] => sink(number(lines)),
        ["relay", format, lines, per_write] => relay(format, lines, per_write),
        ["idle"] => idle(),
        [turns] => compare(number(turns)),
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

/// The child: so many lines of 100 bytes, each ending in `~` and a newline.
fn write(lines: usize, per_write: usize) -> io::Result<()> {
    let line: Vec<u8> = (0..LINE - 2).map(|at| b'a' + (at % 26) as u8).chain(*b"~\n").collect();
    let block = line.repeat(per_write);
    let mut stdout = std::fs::File::from(own_stdout()?);
    let mut left = lines;
    while left > 0 {
        let now = left.min(per_write);
        stdout.write_all(block.get(..now * LINE).unwrap_or(&block))?;
        left -= now;
    }
    Ok(())
}

fn own_stdout() -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned()
}

/// The reader of our output: done when all lines have come.
fn sink(lines: usize) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; 256 * 1024];
    let mut seen = 0;
    while seen < lines {
        let count = stdin.read(&mut buffer)?;
        if count == 0 {
            return Err(io::Error::other(format!("only {seen} of {lines} lines came")));
        }
        let read = buffer.get(..count).unwrap_or_default();
        seen += read.iter().map(|&byte| usize::from(byte == b'~')).sum::<usize>();
    }
    Ok(())
}

/// The supervisor, as far as the log goes.
fn relay(format: &str, lines: &str, per_write: &str) -> io::Result<()> {
    let format = match format {
        "json" => Format::Json,
        "text" => Format::Text,
        _ => Format::Default,
    };
    let logs = logs::Logs::start(&Logging { level: Level::Info, format, output: Output::Stdout })?;
    let mut child = writer(lines, per_write, Stdio::piped())?;
    let (stderr, _) = io::pipe()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let source = logs::Source { job: "main".into(), pid: child.id(), check: None };
    logs.attach(stdout.into(), stderr.into(), source);
    child.wait()?;
    logs.run_ended(child.id());
    if logs.finish(Instant::now() + Duration::from_secs(10)) {
        Ok(())
    } else {
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn writer(lines: &str, per_write: &str, stdout: Stdio) -> io::Result<Child> {
    own(&["write", lines, per_write])?.stdout(stdout).spawn()
}

/// `writer | relay | sink`; the time until the last line is at the sink.
fn once(relay: &str, per_write: usize, lines: usize) -> io::Result<Duration> {
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
        children.push(own(&["relay", relay, &lines, &per_write])?.stdout(write_end).spawn()?);
    }
    let status = sink.wait()?;
    let time = start.elapsed();
    for mut child in children {
        child.wait()?;
    }
    if status.success() { Ok(time) } else { Err(io::Error::other("lines are missing")) }
}

fn compare(turns: usize) -> io::Result<()> {
    println!("million lines/s {:>10} {:>8} {:>8} {:>8}", "relay", "best", "median", "of cat");
    for (name, per_write, lines) in WRITERS {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); RELAYS.len()];
        for _ in 0..turns {
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

/// Memory and wake-ups with 1,000 children that have each said something and are silent now.
fn idle() -> io::Result<()> {
    let logs = logs::Logs::start(&Logging {
        level: Level::Info,
        format: Format::Default,
        output: Output::File("/dev/null".into()),
    })?;
    let memory = || std::fs::read_to_string("/proc/self/status").map(|text| field(&text, "VmRSS"));
    let before = memory()?;
    let mut kept = Vec::new();
    for nth in 0..1_000 {
        let (stdout, mut writer) = io::pipe()?;
        let (stderr, other) = io::pipe()?;
        logs.attach(
            stdout.into(),
            stderr.into(),
            logs::Source { job: format!("job-{nth}"), pid: nth, check: None },
        );
        writer.write_all(b"hello\nand the beginning of a line")?;
        kept.push((writer, other));
    }
    while logs.tails().last_lines("job-999").is_empty() {
        std::thread::yield_now();
    }
    let switches = || -> io::Result<String> {
        let mut found = String::new();
        for task in std::fs::read_dir("/proc/self/task")? {
            let text = std::fs::read_to_string(task?.path().join("status"))?;
            if field(&text, "Name") == "logs" {
                found = field(&text, "voluntary_ctxt_switches");
            }
        }
        Ok(found)
    };
    std::thread::sleep(Duration::from_millis(500));
    let at_rest = switches()?;
    std::thread::sleep(Duration::from_secs(3));
    println!(
        "1,000 children: {before} before, {} after; wake-ups {at_rest}, 3 s later {}",
        memory()?,
        switches()?
    );
    Ok(())
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}
