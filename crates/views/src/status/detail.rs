//! Everything about one job, watch, rendered file or lock, one fact per line.

use std::fmt::Write;

use containerpilot_api::responses::{Check, Event, File, Instance, Job, Lock, Status, Watch};
use containerpilot_api::timestamps;
use containerpilot_api::timestamps::short_duration;
use containerpilot_core::files::waiting_for_watches;
use containerpilot_core::report::words;
use containerpilot_text::screen::{Cell, Screen, Tone, sanitized};

use super::cells::{health, state};

/// All facts about a job. `now` is the supervisor's time.
pub(super) fn job(screen: Screen, now: &str, job: &Job) -> String {
    let (state_tone, state) = state(job);
    let mut out = format!("{}: {}", sanitized(&job.name), screen.paint(state_tone, &state));
    let (health_tone, health) = health(job);
    if health != "-" {
        let _ = write!(out, ", {}", screen.paint(health_tone, &health));
    }
    out.push('\n');
    let mut fact = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "  {name:10} {}", sanitized(&text));
        }
    };
    match job.role.as_str() {
        "job" | "" => {}
        role => fact("role", role.to_owned()),
    }
    fact("action", job.action.clone().unwrap_or_default());
    let groups: Vec<String> = job.groups.iter().map(|group| format!("@{group}")).collect();
    fact("groups", groups.join(", "));
    fact("pending", pending(job));
    if let Some(pid) = job.pid {
        let up = job.uptime_seconds.map_or_else(String::new, |up| format!(", up {}", short_duration(up)));
        let since = job.started_at.as_deref().map(timestamps::to_millis);
        let since = since.map_or_else(String::new, |since| format!(", since {since}"));
        fact("process", format!("pid {pid}{up}{since}"));
    }
    let started_by = job.cause.as_ref().map(Event::name).or_else(|| job.started_by.clone());
    fact("started by", started_by.unwrap_or_default());
    fact("skipped", job.reason.clone().unwrap_or_default());
    fact("restarts", restarts(job));
    if job.last_exit.is_some() || job.state == "failed" {
        let which = if job.pid.is_some() { "previous" } else { "last run" };
        fact(which, words::last_run(job.last_run(now), job.failed_runs));
    }
    match (job.service.as_str(), &job.catalog) {
        ("none" | "", _) => {}
        // A supervisor that does not report what the catalog has.
        (wanted, None) => fact("service", format!("wanted: {wanted}")),
        (_, Some(entry)) => fact("service", entry.text(now)),
    }
    fact("ready", readiness(job).unwrap_or_default().to_owned());
    fact("says", job.process_status.clone().unwrap_or_default());
    for check in &job.checks {
        fact("check", check_line(check, now));
    }
    if let Some(line) = job.waiting() {
        fact("waiting", line.strip_prefix("waiting ").unwrap_or(&line).to_owned());
    }
    for deadline in &job.deadlines {
        let text = job.deadline(deadline, job.pid.is_some());
        fact("next", text.strip_prefix("next ").unwrap_or(&text).to_owned());
    }
    out
}

/// What the process says about its readiness, in words.
fn readiness(job: &Job) -> Option<&'static str> {
    Some(match job.readiness.as_deref()? {
        "starting" => "not yet",
        "reloading" => "yes, reloading its configuration",
        "stopping" => "no, stopping by itself",
        _ => "yes",
    })
}

/// Events that wait for the end of the run, and events that were dropped.
fn pending(job: &Job) -> String {
    let events = |count: u64| format!("{count} event{}", if count == 1 { "" } else { "s" });
    match (job.pending_events, job.dropped_events.unwrap_or(0)) {
        (0, 0) => String::new(),
        (pending, 0) => events(pending),
        (pending, dropped) => format!("{}, {dropped} dropped", events(pending)),
    }
}

fn restarts(job: &Job) -> String {
    match (job.restarts_left, job.restarts) {
        (None, done) => format!("{done}, without limit"),
        (Some(0), 0) => String::new(),
        (Some(0), done) => format!("{done}, none left"),
        (Some(left), done) => format!("{done}, {left} left"),
    }
}

fn check_line(check: &Check, now: &str) -> String {
    let result = match check.passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "has not run yet",
    };
    let mut line = format!("{}: {result}", check.name);
    if let Some(ago) = check.at.as_deref().and_then(|at| timestamps::seconds_between(at, now)) {
        let _ = write!(line, " {} ago", short_duration(ago));
    }
    if let Some(took) = check.took_seconds {
        let _ = write!(line, ", took {}", short_duration(took));
    }
    if (1..check.failures_needed).contains(&check.failures) {
        let _ = write!(line, ", {} of {} failures", check.failures, check.failures_needed);
    } else if check.failures > 1 {
        let _ = write!(line, ", {} times in a row", check.failures);
    }
    if check.running {
        line.push_str(", running now");
    } else if let Some(next) = check.next_at.as_deref().and_then(|at| timestamps::seconds_between(now, at)) {
        let _ = write!(line, ", next in {}", short_duration(next));
    }
    if let Some(message) = check.message.as_deref().filter(|message| !message.is_empty()) {
        let _ = write!(line, "; {message}");
    }
    line
}

/// What a watch has found: the addresses of instances, or what is there in words.
pub(super) fn found(watch: &Watch) -> Cell {
    let address = |Instance { address, port, .. }: &Instance| match (port, address.contains(':')) {
        (0, _) => address.clone(),
        (_, true) => format!("[{address}]:{port}"),
        (_, false) => format!("{address}:{port}"),
    };
    let (tone, text) = match (watch.instances.as_deref(), &watch.state) {
        (Some([]), _) => (Tone::Bad, "none".to_owned()),
        (Some(found), _) => (Tone::Good, found.iter().map(address).collect::<Vec<_>>().join(", ")),
        (None, Some(state)) if watch.healthy == Some(true) => (Tone::Good, state.clone()),
        (None, Some(state)) => (Tone::Bad, state.clone()),
        (None, None) => (Tone::Waiting, "no response yet".to_owned()),
    };
    match &watch.error {
        Some(error) => (Tone::Bad, format!("{text} ({error})")),
        None => (tone, text),
    }
}

/// All facts about a watch. While it cannot be answered, they are those of the last answer.
pub(super) fn watch(status: &Status, watch: &Watch) -> String {
    let name = sanitized(&watch.name);
    let is_in_catalog = matches!(watch.kind.as_str(), "" | "service" | "key" | "prefix");
    let trouble = match &watch.error {
        Some(error) => Some(error.clone()),
        None => status.catalog.trouble(&status.now).filter(|_| is_in_catalog),
    };
    let trouble = trouble.map_or_else(String::new, |trouble| format!("  {}\n", sanitized(&trouble)));
    let last = if trouble.is_empty() { "" } else { " at the last response" };
    let Some(instances) = &watch.instances else {
        return match &watch.state {
            Some(state) => {
                format!("watch.{name}: {} {}{last}\n{trouble}", sanitized(&watch.kind), sanitized(state))
            }
            None if is_in_catalog => format!("watch.{name}: no response from the catalog yet\n{trouble}"),
            None => format!("watch.{name}: no response yet\n{trouble}"),
        };
    };
    let mut out = format!("watch.{name}: {} healthy{last}\n{trouble}", instances.len());
    for Instance { id, address, port } in instances {
        let _ = match port {
            0 => writeln!(out, "  {}", sanitized(address)),
            port => writeln!(out, "  {} at {} port {port}", sanitized(id), sanitized(address)),
        };
    }
    out
}

/// Who has a lock, and since when.
pub(super) fn lock_state(status: &Status, lock: &Lock) -> Cell {
    let age = lock.since.as_deref().and_then(|since| timestamps::seconds_between(since, &status.now));
    let age = age.map_or_else(String::new, |seconds| format!(" for {}", short_duration(seconds)));
    let why = lock.waiting.as_deref().map(sanitized);
    let tone = if lock.fencing.is_some() { Tone::Good } else { Tone::Waiting };
    (tone, words::lock(lock.fencing, &age, why.as_deref()))
}

/// All facts about a lock.
pub(super) fn lock(status: &Status, lock: &Lock) -> String {
    let name = sanitized(&lock.name);
    let mut out = format!("lock.{name}: {}\n", lock_state(status, lock).1);
    if let Some(trouble) = status.catalog.trouble(&status.now).filter(|_| lock.key.is_some()) {
        let _ = writeln!(out, "  {}", sanitized(&trouble));
    }
    let _ = match &lock.key {
        Some(key) => writeln!(out, "  key {} in Consul", sanitized(key)),
        None => writeln!(out, "  a local lock"),
    };
    out
}

/// The columns of a rendered file.
pub(super) fn file_row(now: &str, file: &File) -> Vec<Cell> {
    vec![
        (Tone::Plain, file.name.clone()),
        file_state(file),
        (Tone::Plain, file.changes.to_string()),
        (Tone::Plain, file_note(now, file)),
    ]
}

fn file_state(file: &File) -> Cell {
    let tone = match file.state.as_str() {
        "rendered" => Tone::Good,
        "failed" => Tone::Bad,
        _ => Tone::Waiting,
    };
    (tone, file.state.clone())
}

fn file_note(now: &str, file: &File) -> String {
    let ago = |at: &Option<String>| {
        let ago = at.as_deref().and_then(|at| timestamps::seconds_between(at, now));
        ago.map_or_else(String::new, |ago| format!(" {} ago", short_duration(ago)))
    };
    match (&file.error, file.waits_for.as_slice()) {
        (Some(error), _) => format!("failed{}: {error}", ago(&file.failed_at)),
        (None, []) => String::new(),
        (None, watches) => waiting_for_watches(watches),
    }
}

/// All facts about a rendered file.
pub(super) fn file(screen: Screen, now: &str, file: &File) -> String {
    let (tone, state) = file_state(file);
    let mut out = format!("file.{}: {}\n", sanitized(&file.name), screen.paint(tone, &state));
    let _ = writeln!(out, "  {:10} {}", "path", sanitized(&file.to));
    let counts = (file.renders, file.failures, file.changes);
    let _ =
        writeln!(out, "  {:10} {} times, {} failed, {} written", "rendered", counts.0, counts.1, counts.2);
    let note = file_note(now, file);
    if !note.is_empty() {
        let _ = writeln!(out, "  {:10} {}", "note", sanitized(&note));
    }
    out
}
