//! `status`: what every job is doing, or everything about one.

mod detail;
#[cfg(test)]
mod tests;

use containerpilot_config::suggest;
use serde_json::Value;

use super::answer::{self, Look};
use super::client::Client;
use super::flags::Arguments;
use super::terminal::{Cell, Screen, Tone, span, table};
use super::{Failure, as_json, print};

pub(super) fn status(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let answer = Client::of(args)?.get("/v3/status")?.success()?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned());
    if json && name.is_none() {
        return print(&format!("{}\n", answer.text().trim_end()));
    }
    let status = answer.json()?;
    let screen = Screen::of_stdout();
    match name {
        None => print(&overview(screen, &status)),
        Some(name) => {
            let found = found(&status, &name)?;
            if json {
                return print(&format!("{}\n", found.value()));
            }
            print(&match found {
                Found::Job(job) => detail::job(screen, &status, job),
                Found::Watch(watch) => detail::watch(watch),
            })
        }
    }
}

/// What a name means.
enum Found<'a> {
    Job(&'a Value),
    Watch(&'a Value),
}

impl Found<'_> {
    fn value(&self) -> &Value {
        let (Self::Job(value) | Self::Watch(value)) = self;
        value
    }
}

fn found<'a>(status: &'a Value, name: &str) -> Result<Found<'a>, Failure> {
    let watches = status.list("watches");
    let watch = name.strip_prefix("watch.").unwrap_or(name);
    let watch = || watches.iter().find(|one| one.text("name") == watch);
    match job(status, name) {
        Ok(job) => Ok(Found::Job(job)),
        Err(failure) => watch().map(Found::Watch).ok_or(failure),
    }
}

/// The job of a name; of several with one name, `NAME:2` is the second.
pub(super) fn job<'a>(status: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    let jobs = status.list("jobs");
    let named = |name: &str, nth: usize| jobs.iter().filter(|job| job.text("name") == name).nth(nth);
    let numbered = || {
        let (name, number) = name.rsplit_once(':')?;
        named(name, number.parse::<usize>().ok()?.checked_sub(1)?)
    };
    named(name, 0).or_else(numbered).ok_or_else(|| {
        let names: Vec<&str> = jobs.iter().map(|job| job.text("name")).collect();
        let hint = match suggest::nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.len() > 20 => "`containerpilot status` lists them".to_owned(),
            None => format!("there are: {}", names.join(", ")),
        };
        Failure::Failed(format!("there is no job `{name}`; {hint}"))
    })
}

/// Everything at a glance.
fn overview(screen: Screen, status: &Value) -> String {
    let mut out = format!(
        "containerpilot {}, pid {}, up {}",
        status.text("version"),
        status.whole("pid").unwrap_or_default(),
        span(status.number("uptimeSeconds").unwrap_or_default())
    );
    match status.text("phase") {
        "running" | "" => {}
        phase => out += &format!(", {}", screen.paint(Tone::Waiting, phase)),
    }
    if status.is("maintenance") == Some(true) {
        out += &format!(", {}", screen.paint(Tone::Waiting, "in maintenance"));
    }
    out.push_str("\n\n");
    let rows: Vec<Vec<Cell>> = status.list("jobs").iter().map(|job| row(status, job)).collect();
    out += &table(screen, &["JOB", "STATE", "HEALTH", "PID", "UPTIME", "RESTARTS", "NOTE"], &rows);
    let watches = status.list("watches");
    if !watches.is_empty() {
        out.push('\n');
        let rows: Vec<Vec<Cell>> = watches
            .iter()
            .map(|watch| {
                let (tone, text) = detail::instances(watch);
                vec![(Tone::Plain, watch.text("name").to_owned()), (tone, text)]
            })
            .collect();
        out += &table(screen, &["WATCH", "HEALTHY INSTANCES"], &rows);
    }
    out
}

fn row(status: &Value, job: &Value) -> Vec<Cell> {
    let plain = |text: String| (Tone::Plain, text);
    let number = |number: Option<u64>| plain(number.map_or_else(String::new, |number| number.to_string()));
    vec![
        plain(job.text("name").to_owned()),
        state(job),
        health(job),
        number(job.whole("pid")),
        plain(job.number("uptimeSeconds").map_or_else(String::new, span)),
        number(job.whole("restarts")),
        plain(note(status, job)),
    ]
}

fn state(job: &Value) -> Cell {
    let state = job.text("state");
    let tone = match state {
        "running" => Tone::Good,
        "failed" => Tone::Bad,
        "complete" | "stopped" => Tone::Faint,
        _ => Tone::Waiting,
    };
    (tone, state.to_owned())
}

fn health(job: &Value) -> Cell {
    match job.text("health") {
        "healthy" => (Tone::Good, "healthy".to_owned()),
        "unhealthy" => (Tone::Bad, "unhealthy".to_owned()),
        // Whoever does not run need not be well.
        "unknown" if job.text("state") == "running" => (Tone::Waiting, "unknown".to_owned()),
        _ => (Tone::Plain, "-".to_owned()),
    }
}

/// What is worth knowing beside the columns: what it waits for, what is going to happen, what went wrong.
fn note(status: &Value, job: &Value) -> String {
    let waits: Vec<String> = awaited(job);
    if !waits.is_empty() {
        return format!("waits for {}", waits.join(", "));
    }
    let hooks: Vec<&str> = job.list("hooks").iter().filter_map(Value::as_str).collect();
    if !hooks.is_empty() {
        return format!("waits for {} to be complete", hooks.join(", "));
    }
    match job.text("state") {
        "failed" => ended(status, job),
        "running" => failing(job).unwrap_or_default(),
        "waiting" | "restarting" | "stopping" => {
            job.list("deadlines").first().map(coming).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// What a job waits for and what has not come yet, each with the state of its source.
fn awaited(job: &Value) -> Vec<String> {
    let waits = job.list("waitsFor").iter().filter(|one| one.is("holds") != Some(true));
    waits
        .map(|one| {
            let state = match (one.is("possible"), one.text("state")) {
                (Some(false), _) => " (which cannot come any more)".to_owned(),
                (_, "") => String::new(),
                (_, state) => format!(" ({state})"),
            };
            format!("{}{state}", answer::event(one))
        })
        .collect()
}

/// Something that is going to happen.
fn coming(deadline: &Value) -> String {
    let when = span(deadline.number("inSeconds").unwrap_or_default());
    match deadline.text("what") {
        "giveUp" => format!("gives up in {when}"),
        "turn" => format!("next turn in {when}"),
        "restart" => format!("restarts in {when}"),
        "timeout" => format!("its time is over in {when}"),
        "hooks" => format!("waits at most {when} more for its hooks"),
        "withdrawal" => format!("waits at most {when} more for the catalog"),
        "drained" => format!("has drained in {when}"),
        "kill" => format!("killed in {when}"),
        other => format!("{other} in {when}"),
    }
}

/// How and when the last run ended.
fn ended(status: &Value, job: &Value) -> String {
    let Some(exit) = job.part("lastExit") else { return "could not be started".to_owned() };
    let ago = answer::seconds_between(job.text("endedAt"), status.text("now"));
    let ago = ago.map_or_else(String::new, |ago| format!(" {} ago", span(ago)));
    format!("exited with {}{ago}", answer::exit(exit))
}

/// The first check that fails, and why.
fn failing(job: &Value) -> Option<String> {
    let check = job.list("checks").iter().find(|check| check.is("passed") == Some(false))?;
    Some(match check.text("message") {
        "" => format!("check {} fails", check.text("name")),
        message => format!("check {}: {message}", check.text("name")),
    })
}

/// The same behind a sentence.
pub(super) fn why_unhealthy(job: &Value) -> String {
    failing(job).map_or_else(String::new, |why| format!(": {why}"))
}
