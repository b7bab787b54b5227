//! Everything about one job or watch, a fact a line.

use std::fmt::Write;

use serde_json::Value;

use super::super::answer::{self, Look};
use super::super::terminal::{Cell, Screen, Tone, span, visible};
use super::{awaited, coming, ended, health, state};

/// Everything about a job.
pub(super) fn job(screen: Screen, status: &Value, job: &Value) -> String {
    let (state_tone, state) = state(job);
    let mut out = format!("{}: {}", visible(job.text("name")), screen.paint(state_tone, &state));
    let (health_tone, health) = health(job);
    if health != "-" {
        let _ = write!(out, ", {}", screen.paint(health_tone, &health));
    }
    out.push('\n');
    let now = status.text("now");
    let ago = |moment: &str| answer::seconds_between(moment, now).map(|ago| format!("{} ago", span(ago)));
    let mut fact = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "  {name:10} {}", visible(&text));
        }
    };
    match job.text("role") {
        "job" | "" => {}
        role => fact("role", role.to_owned()),
    }
    if let Some(pid) = job.whole("pid") {
        let up = job.number("uptimeSeconds").map_or_else(String::new, |up| format!(", up {}", span(up)));
        let since = answer::moment(job.text("startedAt"));
        let since = if since.is_empty() { String::new() } else { format!(", since {since}") };
        fact("process", format!("pid {pid}{up}{since}"));
    }
    fact("started by", job.part("cause").map(answer::event).unwrap_or_default());
    fact("restarts", restarts(job));
    if job.part("lastExit").is_some() || job.text("state") == "failed" {
        fact("last run", ended(status, job));
    }
    match job.text("service") {
        "none" | "" => {}
        service => fact("service", format!("{service} in the catalog")),
    }
    for check in job.list("checks") {
        fact("check", check_line(check, &ago, now));
    }
    for one in awaited(job) {
        fact("waits for", one);
    }
    for hook in job.list("hooks").iter().filter_map(Value::as_str) {
        fact("waits for", format!("{hook} to be complete"));
    }
    for deadline in job.list("deadlines") {
        fact("soon", coming(deadline));
    }
    out
}

fn restarts(job: &Value) -> String {
    let done = job.whole("restarts").unwrap_or_default();
    match (job.get("restartsLeft"), done) {
        (Some(Value::Null), _) => format!("{done}, without limit"),
        (Some(left), _) if left.as_u64() != Some(0) => format!("{done}, {left} left"),
        (_, 0) => String::new(),
        _ => format!("{done}, none left"),
    }
}

fn check_line(check: &Value, ago: &impl Fn(&str) -> Option<String>, now: &str) -> String {
    let mut words = vec![match check.is("passed") {
        Some(true) => "passed".to_owned(),
        Some(false) => "failed".to_owned(),
        None => "not made yet".to_owned(),
    }];
    words.extend(ago(check.text("at")));
    let mut line = format!("{}: {}", check.text("name"), words.join(" "));
    if let Some(took) = check.number("tookSeconds") {
        let _ = write!(line, ", took {}", span(took));
    }
    match check.whole("failures") {
        None | Some(0 | 1) => {}
        Some(count) => drop(write!(line, ", {count} times in a row")),
    }
    if check.is("running") == Some(true) {
        line.push_str(", being made now");
    } else if let Some(next) = answer::seconds_between(now, check.text("nextAt")) {
        let _ = write!(line, ", next in {}", span(next));
    }
    match check.text("message") {
        "" => {}
        message => drop(write!(line, "; {message}")),
    }
    line
}

/// How many healthy instances a watch has seen, and where.
pub(super) fn instances(watch: &Value) -> Cell {
    if watch.part("instances").is_none() {
        return (Tone::Waiting, "no answer yet".to_owned());
    }
    let found: Vec<String> = watch
        .list("instances")
        .iter()
        .map(|one| {
            let (address, port) = (one.text("address"), one.whole("port").unwrap_or_default());
            if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
        })
        .collect();
    if found.is_empty() { (Tone::Bad, "none".to_owned()) } else { (Tone::Good, found.join(", ")) }
}

/// Everything about a watch.
pub(super) fn watch(watch: &Value) -> String {
    let mut out = format!("watch.{}: ", visible(watch.text("name")));
    if watch.part("instances").is_none() {
        out.push_str("the catalog has not answered yet\n");
        return out;
    }
    let found = watch.list("instances");
    let _ = writeln!(out, "{} healthy", found.len());
    for one in found {
        let (address, port) = (one.text("address"), one.whole("port").unwrap_or_default());
        let _ = writeln!(out, "  {} at {} port {port}", visible(one.text("id")), visible(address));
    }
    out
}
