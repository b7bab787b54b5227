//! What a configuration would do, for people and for programs.

use std::fmt::Write;
use std::time::Duration;

use containerpilot_config::diagnostics::{Report, Severity};
use containerpilot_config::duration;
use containerpilot_config::json::Json;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, ConsulAddress, EventPattern, Job, Plan, Repeat, Restarts, Role, Trigger, Watch,
};

/// The summary that `check` prints below its `ok`.
pub(super) fn human(names: &[String], plan: &Plan) -> String {
    let mut out = format!("ok: {}\n", names.join(", "));
    let jobs: Vec<&Job> = plan.jobs.iter().filter(|job| job.role == Role::User).collect();
    let rows: Vec<(&str, String)> = jobs.iter().map(|job| (job.name.as_str(), job_line(job))).collect();
    section(&mut out, "job", &rows);
    let rows: Vec<(&str, String)> = plan
        .jobs
        .iter()
        .filter(|job| job.role == Role::Coprocess)
        .map(|job| (job.name.as_str(), restarts(job.restarts)))
        .collect();
    section(&mut out, "coprocess", &rows);
    let rows: Vec<(&str, String)> =
        plan.watches.iter().map(|watch| (watch.name.as_str(), watch_line(watch))).collect();
    section(&mut out, "watch", &rows);
    if let Some(telemetry) = &plan.telemetry {
        let metrics = telemetry.metrics.len();
        let _ = writeln!(
            out,
            "telemetry: {}:{}, {}",
            telemetry.address,
            telemetry.port,
            plural(metrics, "metric")
        );
    }
    let catalog = match &plan.catalog {
        Catalog::Embedded => "embedded".to_owned(),
        Catalog::Consul(consul) => match &consul.address {
            ConsulAddress::Unix(path) => format!("Consul at unix://{path}"),
            ConsulAddress::Network(address) => {
                format!("Consul at {}://{address}", if consul.https { "https" } else { "http" })
            }
        },
    };
    let _ = writeln!(out, "catalog: {catalog}");
    out
}

fn plural(count: usize, word: &str) -> String {
    let ending = match (count, word.ends_with("ch") || word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {word}{ending}")
}

fn section(out: &mut String, word: &str, rows: &[(&str, String)]) {
    if rows.is_empty() && word == "coprocess" {
        return;
    }
    let _ = writeln!(out, "{}", plural(rows.len(), word));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(32);
    for (name, line) in rows {
        let _ = writeln!(out, "  {name:width$}  {line}");
    }
}

pub(super) fn time(time: Duration) -> String {
    duration::format(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

fn job_line(job: &Job) -> String {
    let mut parts = vec![trigger(&job.when.trigger)];
    if let Some(timeout) = job.when.timeout {
        parts.push(format!("waits at most {}", time(timeout)));
    }
    let periodic = matches!(job.when.trigger, Trigger::Interval(_));
    match job.restarts {
        Restarts::Limited(0) if !periodic => {}
        Restarts::Unlimited if periodic => {}
        other => parts.push(restarts(other)),
    }
    if job.exec.is_none() {
        parts.push("runs nothing itself".to_owned());
    }
    if let Some(health) = &job.health {
        let intervals: Vec<String> = health.checks.iter().map(|check| time(check.interval)).collect();
        parts.push(format!("checked every {}", intervals.join(", ")));
    }
    if let Some(service) = &job.service {
        parts.push(format!("advertised as {}:{}", service.address, service.port));
    }
    parts.join("; ")
}

pub(super) fn restarts(restarts: Restarts) -> String {
    match restarts {
        Restarts::Limited(0) => "never restarted".to_owned(),
        Restarts::Limited(1) => "restarted once".to_owned(),
        Restarts::Limited(count) => format!("restarted {count} times"),
        Restarts::Unlimited => "restarted without limit".to_owned(),
    }
}

fn trigger(trigger: &Trigger) -> String {
    let often = |repeat: &Repeat| if *repeat == Repeat::Each { "each time" } else { "once" };
    let list = |events: &[EventPattern], word: &str| {
        events.iter().map(event).collect::<Vec<_>>().join(&format!(" {word} "))
    };
    match trigger {
        Trigger::Event { event: EventPattern { source: Source::Global, code: Code::Startup }, .. } => {
            "at startup".to_owned()
        }
        Trigger::Event { event: EventPattern { source: Source::Signal(signal), .. }, .. } => {
            format!("at every {}", signal.name())
        }
        Trigger::Event { event: pattern, repeat } => format!("{} {}", often(repeat), event(pattern)),
        Trigger::Interval(interval) => format!("at startup and every {}", time(*interval)),
        Trigger::All { conditions, repeat } => {
            format!("{} all hold: {}", often(repeat), list(conditions, "and"))
        }
        Trigger::Any { conditions, repeat } => format!("{} {}", often(repeat), list(conditions, "or")),
        Trigger::Never => "never".to_owned(),
    }
}

fn event(pattern: &EventPattern) -> String {
    match &pattern.source {
        Source::Global => format!("{} comes", pattern.code),
        Source::Signal(signal) => format!("{} comes", signal.name()),
        source => format!("{source} is {}", pattern.code),
    }
}

fn watch_line(watch: &Watch) -> String {
    let mut line = format!("looked at least every {}", time(watch.interval));
    if let Some(tag) = &watch.tag {
        let _ = write!(line, "; with tag {tag}");
    }
    if let Some(dc) = &watch.dc {
        let _ = write!(line, "; in {dc}");
    }
    line
}

/// The answer of `check --format json`.
pub(super) fn json(plan: Option<&Plan>, good: bool, report: &Report) -> String {
    let problems = report.problems().iter().map(|one| {
        let severity = match one.problem.severity {
            Severity::Error | Severity::Fault => "error",
            Severity::Warning => "warning",
        };
        let mut fields =
            vec![("severity", Json::text(severity)), ("message", Json::text(&one.problem.message))];
        if let Some(at) = &one.location {
            fields.push(("file", Json::text(report.file_name(at.file))));
            fields.push(("line", Json::whole(at.line)));
            fields.push(("column", Json::whole(at.column)));
            if let Some(produced) = &at.produced {
                fields.push(("rendered", Json::text(&produced.rendered)));
            }
        }
        if let Some(help) = &one.problem.help {
            fields.push(("help", Json::text(help)));
        }
        Json::object(fields)
    });
    let problems = Json::List(problems.collect());
    let mut fields = vec![("ok", Json::Bool(good)), ("problems", problems)];
    if let Some(plan) = plan {
        let named = |name: &str, line: String| {
            Json::object([("name", Json::text(name)), ("summary", Json::text(&line))])
        };
        let jobs = plan.jobs.iter().map(|job| named(&job.name, job_line(job)));
        fields.push(("jobs", Json::List(jobs.collect())));
        let watches = plan.watches.iter().map(|watch| named(&watch.name, watch_line(watch)));
        fields.push(("watches", Json::List(watches.collect())));
    }
    Json::object(fields).pretty()
}
