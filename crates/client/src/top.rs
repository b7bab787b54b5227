//! `top`: the jobs live, on a terminal (X12).
//!
//! `rows` makes the table from a status, `app` holds what is shown and reacts to keys, `draw` draws it, `keys` reads
//! keys and `terminal` prepares and restores the terminal. The terminal is driven by hand: the few sequences that are
//! needed cost nothing, while crossterm adds 100 KiB to the binary, and ratatui 260 KiB.

mod app;
mod draw;
mod keys;
mod rows;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use containerpilot_api::percent_encoded;
use containerpilot_api::responses::{Explanation, JobMessage, Status};
use containerpilot_api::timestamps;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::invalid_value;
use containerpilot_command_line::options::parse_duration;
use containerpilot_command_line::output::write_stdout;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_core::plan::Signal;
use containerpilot_core::sort_by;
use containerpilot_process::failpoints::failpoint;
use containerpilot_process::sys::{self, SignalSet};
use containerpilot_text::screen::{sanitized, table};
use serde_json::json;

use self::app::{Act, App, Pane, PaneKind, Reaction, log_lines};
use self::keys::Keys;
use self::rows::{Column, CpuUsage, rows};
use self::terminal::RawTerminal;
use super::client::{Client, ClientError};

const DEFAULT_INTERVAL: Duration = Duration::from_secs(2);
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// How long the terminal does not react while the supervisor does not answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for the rest of a key's bytes.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);
/// Between the two looks of `--once`, whose difference is the CPU usage.
const ONCE_INTERVAL: Duration = Duration::from_millis(500);
/// How many lines of a job are shown.
const LOG_LINES: usize = 2000;
const WINCH: u8 = 28;

pub(super) fn top(args: &Arguments) -> Result<(), Failure> {
    let interval = args.value("interval").map(|text| parse_duration("interval", text)).transpose()?;
    let interval = interval.unwrap_or(DEFAULT_INTERVAL);
    if interval < MIN_INTERVAL {
        return Err(invalid_value("interval", args.text("interval"), "it must be at least 100ms"));
    }
    let sort = args.value("sort").map(|name| {
        let why = "the columns are job, state, health, restarts, pid, uptime, cpu and memory";
        Column::from_name(name).ok_or_else(|| invalid_value("sort", name, why))
    });
    let sort = sort.transpose()?.unwrap_or_default();
    let client = Client::of(args).with_timeout(ANSWER_TIMEOUT);
    if args.is_on("once") {
        return once(&client, sort);
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return plain(&client, sort, interval);
    }
    live(&client, sort, interval)
}

fn status(client: &Client) -> Result<Status, Failure> {
    client.get("/v3/status?usage=true")?.json()
}

fn once(client: &Client, sort: Column) -> Result<(), Failure> {
    let mut usage = CpuUsage::default();
    rows(&status(client)?, &mut usage);
    std::thread::sleep(ONCE_INTERVAL);
    print_table(&status(client)?, sort, &mut usage).map(drop)
}

/// Prints the table at each interval, without a terminal, until its reader or the supervisor has gone.
fn plain(client: &Client, sort: Column, interval: Duration) -> Result<(), Failure> {
    let mut usage = CpuUsage::default();
    loop {
        let status = status(client)?;
        let heading = format!("{}\n", sanitized(&timestamps::to_millis(&status.now)));
        if !write_stdout(heading.as_bytes())?
            || !print_table(&status, sort, &mut usage)?
            || !write_stdout(b"\n")?
        {
            return Ok(());
        }
        std::thread::sleep(interval);
    }
}

fn print_table(status: &Status, sort: Column, usage: &mut CpuUsage) -> Result<bool, Failure> {
    let mut rows = rows(status, usage);
    sort_by(&mut rows, |a, b| a.compare(b, sort));
    let cells: Vec<_> = rows.into_iter().map(|row| row.cells).collect();
    write_stdout(table(stdout_screen(), &Column::ALL.map(Column::head), &cells).as_bytes())
}

/// Shows the table until the user quits.
fn live(client: &Client, sort: Column, interval: Duration) -> Result<(), Failure> {
    let ending = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];
    let signals = ending.iter().fold(SignalSet::EMPTY.with(WINCH), |set, signal| set.with(signal.0));
    let from_system = |errno: nix::errno::Errno| Failure::from(io::Error::from(errno));
    sys::block_signals(signals).map_err(from_system)?;
    let signals = sys::signal_fd(signals).map_err(from_system)?;
    let mut app = App::default();
    app.sort = sort;
    // Fails before the screen is cleared, if there is no such socket.
    app.update(&status(client)?);
    let colour = stdout_screen().colour;
    let _restored = RawTerminal::enter()?;
    let mut keys = Keys::default();
    let mut next = Instant::now() + interval;
    loop {
        failpoint("top");
        show(&mut app, colour)?;
        let left =
            if keys.is_incomplete() { KEY_TIMEOUT } else { next.saturating_duration_since(Instant::now()) };
        let readable = sys::poll_fd(0, nix::libc::POLLIN);
        let mut fds = [readable, sys::poll_fd(signals.as_raw_fd(), nix::libc::POLLIN)];
        if sys::poll(&mut fds, Some(left)).is_err() {
            continue;
        }
        let [input, signalled] = fds.map(|fd| fd.revents != 0);
        if signalled
            && let Some(received) = sys::read_signal(signals.as_fd()).ok().flatten()
            && received.signal.0 != WINCH
        {
            let signal = received.signal;
            return Err(Failure::WithCode(128 + signal.0, format!("received {signal}")));
        }
        let pressed = if input {
            let mut bytes = [0; 1024];
            match nix::unistd::read(io::stdin().as_fd(), &mut bytes) {
                Ok(0) => return Err(Failure::Failed("the terminal has gone".to_owned())),
                Ok(count) => keys.read(bytes.get(..count).unwrap_or_default()),
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => Vec::new(),
                Err(errno) => return Err(from_system(errno)),
            }
        } else if keys.is_incomplete() && !signalled {
            keys.flush().into_iter().collect()
        } else {
            Vec::new()
        };
        for key in pressed {
            match app.key(key) {
                Reaction::Quit => return Ok(()),
                Reaction::Nothing => {}
                Reaction::Refresh => refresh_pane(&mut app, client),
                Reaction::Act(act) => {
                    let outcome = request(client, &act);
                    app.message = Some(outcome.map(|text| sanitized(&text)).map_err(|why| sanitized(&why)));
                    refresh(&mut app, client);
                }
            }
        }
        if Instant::now() >= next {
            refresh(&mut app, client);
            next = Instant::now() + interval;
        }
    }
}

/// Draws everything in one write. Each line is placed by itself: a character with another width than expected shifts no
/// other line.
fn show(app: &mut App, colour: bool) -> Result<(), Failure> {
    let (columns, lines) = sys::terminal_size(&io::stdout()).unwrap_or_default();
    let known = |number: usize, default: usize| if number == 0 { default } else { number };
    let (columns, lines) = (known(columns, 80), known(lines, 24));
    let mut frame = String::new();
    for (nth, line) in draw::draw(app, columns, lines, colour).iter().enumerate() {
        frame += &format!("\x1b[{};1H\x1b[0m\x1b[2K{line}", nth + 1);
    }
    Ok(terminal::write(frame.as_bytes())?)
}

fn refresh(app: &mut App, client: &Client) {
    match status(client) {
        Ok(status) => app.update(&status),
        Err(failure) => app.trouble = Some(sanitized(&failure.to_string())),
    }
    refresh_pane(app, client);
}

/// Reads the text of the pane again, unless the user has scrolled back in a log.
fn refresh_pane(app: &mut App, client: &Client) {
    let Some(pane) = &mut app.pane else { return };
    match read_pane(pane, client) {
        Ok(Some(lines)) => pane.lines = lines,
        Ok(None) => {}
        Err(failure) => app.trouble = Some(sanitized(&failure.to_string())),
    }
}

fn read_pane(pane: &Pane, client: &Client) -> Result<Option<Vec<String>>, Failure> {
    match &pane.kind {
        PaneKind::Logs(job) if pane.follow => {
            let path = format!("/v3/jobs/{}/logs?lines={LOG_LINES}", percent_encoded(job));
            let lines = log_lines(&client.get(&path)?.success()?.text());
            let nothing = "it has written nothing, or its lines are not kept (logging: { raw: true })";
            Ok(Some(if lines.is_empty() { vec![nothing.to_owned()] } else { lines }))
        }
        PaneKind::Explain(job) => {
            let path = format!("/v3/jobs/{}/explain", percent_encoded(job));
            let explained: Explanation = client.get(&path)?.json()?;
            Ok(Some(explained.sentences.iter().map(|line| sanitized(line)).collect()))
        }
        PaneKind::Logs(_) | PaneKind::Help => Ok(None),
    }
}

fn request(client: &Client, act: &Act) -> Result<String, String> {
    let path = format!("/v3/jobs/{}/{}", percent_encoded(&act.job), act.action);
    let body = act.signal.as_ref().map(|signal| json!({ "signal": signal }).to_string());
    let response = client.post(&path, body.as_deref()).map_err(|error: ClientError| error.to_string())?;
    let done: JobMessage = response.json().map_err(|failure| failure.to_string())?;
    Ok(format!("{}: {}", act.job, done.message))
}
