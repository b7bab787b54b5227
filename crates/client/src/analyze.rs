//! `analyze`: the critical path of the start, from the journal (X12).

mod path;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::time::Instant;

use containerpilot_api::responses::{Event, Start, Status};
use containerpilot_api::timestamps::short_duration;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_text::json::pretty_json;
use containerpilot_text::screen::{Cell, Screen, Tone, sanitized, table};

use self::path::{Analysis, PathStep, StartJournal, StepKind, analyze as find_path};
use super::client::{Client, DEFAULT_TIMEOUT};
use containerpilot_core::sort_by;

/// Steps that take a smaller part of the time are not worth a look.
const NOTABLE: f64 = 0.1;

pub(super) fn analyze(args: &Arguments) -> Result<(), Failure> {
    let draw = match args.text("format") {
        "" | "human" => human,
        "json" => |_: Screen, analysis: &Analysis| pretty_json(analysis),
        other => {
            let message = format!("unknown format `{other}`: the formats are `human` and `json`");
            return Err(Failure::Usage(message));
        }
    };
    let client = Client::of(args);
    let (events, starts) = read_journal(&client)?;
    let status: Status = client.get("/v3/status")?.json()?;
    let journal = StartJournal { status: &status, events: &events, starts: &starts };
    let analysis = find_path(&journal).map_err(|error| Failure::Failed(error.to_string()))?;
    let out = args.text("out");
    let screen = if matches!(out, "" | "-") { stdout_screen() } else { Screen::default() };
    output::write(out, draw(screen, &analysis).as_bytes())
}

fn read_journal(client: &Client) -> Result<(Vec<Event>, Vec<Start>), Failure> {
    let unexpected =
        |error: serde_json::Error| Failure::Failed(format!("unexpected event from the supervisor: {error}"));
    let (mut events, mut starts) = (Vec::new(), Vec::new());
    let mut stream = client.messages("/v3/events?follow=false")?;
    let until = Instant::now() + DEFAULT_TIMEOUT;
    while let Some(message) = stream.next(Some(until))? {
        match message.event.as_str() {
            "" => events.push(serde_json::from_slice(message.data.as_bytes()).map_err(unexpected)?),
            "start" => starts.push(serde_json::from_slice(message.data.as_bytes()).map_err(unexpected)?),
            _ => {}
        }
    }
    Ok((events, starts))
}

fn human(screen: Screen, analysis: &Analysis) -> String {
    let mut out = headline(analysis);
    out.push('\n');
    if !analysis.path.is_empty() {
        out += "\nThe chain that determined it:\n";
        let plain = |text: String| (Tone::Plain, text);
        let rows: Vec<Vec<Cell>> = analysis
            .path
            .iter()
            .map(|step| {
                let tone = if is_notable(analysis, step) { Tone::Waiting } else { Tone::Plain };
                vec![
                    plain(precise(step.at)),
                    (tone, format!("+{}", precise(step.took))),
                    (tone, step.what.clone()),
                ]
            })
            .collect();
        out += &table(screen, &["AT", "TOOK", "STEP"], &rows);
    }
    let hints = hints(analysis);
    if !hints.is_empty() {
        out += "\nLook at first:\n";
        for hint in hints {
            let _ = writeln!(out, "  {}", sanitized(&hint));
        }
    }
    if !analysis.pending.is_empty() {
        out += "\nNot ready yet:\n";
        for pending in &analysis.pending {
            let _ = writeln!(out, "  {}: {}", sanitized(&pending.job), sanitized(&pending.why));
        }
    }
    if !analysis.jobs.is_empty() {
        out += "\nAll jobs that were started with the container, in the order of their starts:\n";
        let rows: Vec<Vec<Cell>> = analysis.jobs.iter().map(job_row).collect();
        out += &table(screen, &["JOB", "STARTED", "READY", "TOOK", "RESTARTS", "WAITED FOR"], &rows);
    }
    out
}

fn headline(analysis: &Analysis) -> String {
    let last = analysis.last.as_deref().map(sanitized);
    match (analysis.ready, last, analysis.pending.is_empty()) {
        (Some(ready), Some(last), _) => {
            format!("ready {} after the start of the supervisor; {last} was the last job", precise(ready))
        }
        (None, Some(last), _) => {
            let at = analysis.path.last().map_or(0.0, |step| step.at);
            format!("not ready yet; {last} was the last job to be ready, after {}", precise(at))
        }
        (_, None, false) => "not ready yet; no job is ready".to_owned(),
        (_, None, true) => "no job was started with the container".to_owned(),
    }
}

fn job_row(job: &path::JobStart) -> Vec<Cell> {
    let tone = if job.critical { Tone::Waiting } else { Tone::Plain };
    let plain = |text: String| (Tone::Plain, text);
    vec![
        (tone, job.job.clone()),
        plain(precise(job.started)),
        plain(job.ready.map_or_else(|| "-".to_owned(), precise)),
        plain(job.ready.map_or_else(String::new, |ready| precise(ready - job.started))),
        plain(if job.restarts == 0 { String::new() } else { job.restarts.to_string() }),
        plain(job.waited_for.clone()),
    ]
}

fn is_notable(analysis: &Analysis, step: &PathStep) -> bool {
    let total = analysis.path.last().map_or(0.0, |step| step.at);
    // A few milliseconds are the work of the kernel.
    step.took > 0.01 && step.took >= NOTABLE * total
}

/// The steps that took most of the time, with what they depend on.
fn hints(analysis: &Analysis) -> Vec<String> {
    let total = analysis.path.last().map_or(0.0, |step| step.at);
    let mut steps: Vec<&PathStep> = analysis.path.iter().filter(|step| is_notable(analysis, step)).collect();
    sort_by(&mut steps, |a, b| b.took.total_cmp(&a.took));
    let hint = |step: &&PathStep| {
        let depends = match step.kind {
            StepKind::Done => "the running time of a one-time job; the next job waits for its exit",
            StepKind::Ready => {
                "its own start, until a check passes or it says that it is ready; checks come after 100ms, 200ms, 400ms … up to the interval"
            }
            StepKind::Start => {
                "between the event and the start of the program: a busy machine, a secret, or a back-off"
            }
            StepKind::Startup => "the supervisor itself, before its first event",
            StepKind::Other => "something outside the jobs: a watch, a file or a lock",
        };
        let percent = 100.0 * step.took / total;
        format!("{} ({percent:.0}%) until {}: {depends}", precise(step.took), step.what)
    };
    steps.iter().take(3).map(hint).collect()
}

/// A duration; from one second to one minute to the millisecond.
fn precise(seconds: f64) -> String {
    if (1.0..60.0).contains(&seconds) { format!("{seconds:.3}s") } else { short_duration(seconds) }
}
