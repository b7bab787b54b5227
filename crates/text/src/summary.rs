//! The output of `check`: a summary of a plan for people, and problems and summary as JSON for programs.

use std::fmt::Write;
use std::time::Duration;

use containerpilot_config::columns;
use containerpilot_config::diagnostics::{Located, Report, Severity};
use containerpilot_config::duration::exact;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, Check, ConsulAddress, Cron, EventPattern, Exec, FirstTick, Job, Lock, OnCompletion,
    OnStartLimit, Plan, Principal, Probe, RenderedFile, Repeat, Requirement, Restarts, Role, Trigger, Watch,
    WatchKind,
};
use containerpilot_core::report::words;
use containerpilot_core::sort_by;
use containerpilot_core::state::longest_stop::longest_stop;
use serde::Serialize;

/// The summary of a valid plan. `names` are the names of its files.
pub fn human(names: &[String], plan: &Plan) -> String {
    let mut out = format!("ok: {}\n", names.join(", "));
    let jobs = plan.jobs.iter().filter(|job| job.role == Role::User);
    section(&mut out, "job", &jobs.map(|job| (job.name.as_str(), job_line(job))).collect::<Vec<_>>());
    let coprocesses = plan.jobs.iter().filter(|job| job.role == Role::Coprocess);
    let rows: Vec<_> = coprocesses.map(|job| (job.name.as_str(), words::restarts(job.restarts))).collect();
    if !rows.is_empty() {
        section(&mut out, "coprocess", &rows);
    }
    let watches = plan.watches.iter().map(|watch| (watch.name.as_str(), watch_line(watch)));
    section(&mut out, "watch", &watches.collect::<Vec<_>>());
    let files = plan.files.iter().map(|file| (file.name.as_str(), file_line(file)));
    let files: Vec<_> = files.collect();
    if !files.is_empty() {
        section(&mut out, "file", &files);
    }
    let locks: Vec<_> = plan.locks.iter().map(|lock| (lock.name.as_str(), lock_line(lock))).collect();
    if !locks.is_empty() {
        section(&mut out, "lock", &locks);
    }
    if let Some(telemetry) = &plan.telemetry {
        let metrics = plural(telemetry.metrics.len(), "metric");
        let _ = writeln!(out, "telemetry: {}:{}, {metrics}", telemetry.address, telemetry.port);
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
    let stop = longest_stop(plan);
    let _ = writeln!(out, "stop: at most {}: {}", exact(stop.time), stop.words(plan));
    out
}

/// `1 job`, `2 jobs`, `2 watches`
pub fn plural(count: usize, word: &str) -> String {
    let ending = match (count, word.ends_with("ch") || word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {word}{ending}")
}

fn section(out: &mut String, word: &str, rows: &[(&str, String)]) {
    let _ = writeln!(out, "{}", plural(rows.len(), word));
    let width = rows.iter().map(|(name, _)| columns::width(name)).max().unwrap_or(0).min(32);
    for (name, line) in rows {
        let rest = width.saturating_sub(columns::width(name));
        let _ = writeln!(out, "  {name}{:rest$}  {line}", "");
    }
}

fn job_line(job: &Job) -> String {
    let mut parts = vec![trigger(&job.when.trigger)];
    if let Some(timeout) = job.when.timeout {
        parts.push(format!("gives up after {}", exact(timeout)));
    }
    parts.extend(requirements(&job.requires));
    let periodic = job.when.is_periodic();
    match job.restarts {
        Restarts::Limited(0) if !periodic => {}
        Restarts::Unlimited if periodic => {}
        Restarts::Limited(0) => parts.push("no further tick".to_owned()),
        Restarts::Limited(count) if periodic => {
            parts.push(format!("{count} further tick{}", if count == 1 { "" } else { "s" }));
        }
        _ => parts.push(words::restart_policy(job)),
    }
    if job.when.queues_events() {
        parts.push("one run for every event".to_owned());
    }
    match &job.exec {
        Exec::Program(_) => {}
        Exec::Action(action) => parts.push(format!("action: {action}")),
        Exec::Nothing => parts.push("runs no process".to_owned()),
    }
    if !job.groups.is_empty() {
        parts.push(format!("in {}", groups(&job.groups)));
    }
    if let Some(ready) = &job.ready {
        parts.push(format!("ready when it {}", ready.words()));
    }
    if let Some(health) = &job.health {
        parts.push(checks(&health.checks));
    }
    if let Some(service) = &job.service {
        parts.push(format!("advertised as {}:{}", service.address, service.port));
    }
    if let Some(user) = &job.process.user {
        parts.push(format!("as {}", principal(user)));
    }
    if let Some(file) = job.output.file() {
        parts.push(format!("logs to {}", file.path));
    }
    parts.extend(ends_container(job));
    parts.join("; ")
}

fn principal(principal: &Principal) -> String {
    match principal {
        Principal::Name(name) => name.clone(),
        Principal::Id(id) => format!("user {id}"),
    }
}

/// What of it ends the container (S5, W14).
fn ends_container(job: &Job) -> Option<String> {
    let ends = [
        (job.on_success == OnCompletion::Shutdown, "its success"),
        (job.on_failure == OnCompletion::Shutdown, "its failure"),
        (job.start_limit.is_some_and(|limit| limit.then == OnStartLimit::Shutdown), "its start limit"),
    ];
    let words: Vec<&str> = ends.into_iter().filter_map(|(ends, word)| ends.then_some(word)).collect();
    (!words.is_empty()).then(|| format!("{} ends the container", words.join(" or ")))
}

/// `key app/primary in Consul; 2 slots; TTL 15s`
fn lock_line(lock: &Lock) -> String {
    let slots =
        if lock.slots == 1 { String::new() } else { format!("; {}", plural(lock.slots as usize, "slot")) };
    format!("key {} in Consul{slots}; TTL {}", lock.key, exact(lock.ttl))
}

/// `requires db, watch.cache`, `stopped without db`: what must be there at the start, and all the time (W18).
fn requirements(requires: &[Requirement]) -> Vec<String> {
    let names = |bound: bool| {
        let names = requires.iter().filter(|one| !bound || one.bind).map(|one| one.source.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    let parts = [("requires", names(false)), ("stopped without", names(true))];
    parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word} {names}"))
        .collect()
}

/// `@web, @blue`
fn groups(groups: &[String]) -> String {
    groups.iter().map(|group| format!("@{group}")).collect::<Vec<_>>().join(", ")
}

/// `checked every 5s`, `2 checks, every 1s and 5s`; a job without a probe is healthy while it runs (H1).
fn checks(checks: &[Check]) -> String {
    let probes: Vec<&Check> = checks.iter().filter(|check| !check.probe.is_passive()).collect();
    let mut intervals: Vec<Duration> = probes.iter().map(|check| check.interval).collect();
    sort_by(&mut intervals, Ord::cmp);
    intervals.dedup();
    let intervals = intervals.into_iter().map(exact).collect::<Vec<_>>().join(" and ");
    match probes.as_slice() {
        [] if checks.iter().any(|check| check.probe == Probe::Ready) => {
            "healthy while it is ready".to_owned()
        }
        [] => "healthy while it runs".to_owned(),
        [_] => format!("checked every {intervals}"),
        probes => format!("{} checks, every {intervals}", probes.len()),
    }
}

fn trigger(trigger: &Trigger) -> String {
    let list =
        |events: &[EventPattern], word: &str| events.iter().map(condition).collect::<Vec<_>>().join(word);
    match trigger {
        Trigger::Event { event, repeat } => on_event(event, *repeat),
        Trigger::Interval { every, first: FirstTick::AtStartup } => {
            format!("at startup and every {}", exact(*every))
        }
        Trigger::Interval { every, first: FirstTick::IntervalAfter(event) } => {
            format!("every {}, counted from when {}", exact(*every), condition(event))
        }
        Trigger::Interval { every, first: FirstTick::AtEvent(event) } => {
            format!("when {}, and then every {}", condition(event), exact(*every))
        }
        Trigger::Cron { cron: times, after: None } => cron(times),
        Trigger::Cron { cron: times, after: Some(event) } => {
            format!("{}, from when {}", cron(times), condition(event))
        }
        Trigger::Manual => "by hand only".to_owned(),
        Trigger::All { conditions, repeat } | Trigger::Any { conditions, repeat }
            if let [event] = conditions.as_slice() =>
        {
            on_event(event, *repeat)
        }
        Trigger::All { conditions, repeat: Repeat::Each | Repeat::EachQueued } => {
            format!("whenever all of these become true: {}", list(conditions, ", "))
        }
        Trigger::All { conditions, repeat: Repeat::Once } => format!("when {}", list(conditions, " and ")),
        Trigger::Any { conditions, repeat: Repeat::Once } => format!("when {}", list(conditions, " or ")),
        Trigger::Any { conditions, repeat: Repeat::Each | Repeat::EachQueued } => {
            let events: Vec<String> = conditions.iter().map(|event| on_event(event, Repeat::Each)).collect();
            events.join(", or ")
        }
        Trigger::Never => "never".to_owned(),
    }
}

/// `cron 0 3 * * * (Europe/Berlin)`
pub fn cron(cron: &Cron) -> String {
    format!("cron {} ({})", cron.text, cron.zone.name)
}

fn on_event(event: &EventPattern, repeat: Repeat) -> String {
    match (event, repeat) {
        (EventPattern { source: Source::Global, code: Code::Startup }, _) => "at startup".to_owned(),
        (EventPattern { source: Source::Signal(signal), .. }, Repeat::Each | Repeat::EachQueued) => {
            format!("at every {signal}")
        }
        (event, Repeat::Each | Repeat::EachQueued) => format!("each time {}", condition(event)),
        (event, Repeat::Once) => format!("when {}", condition(event)),
    }
}

fn condition(event: &EventPattern) -> String {
    words::condition(&event.source.to_string(), event.code)
}

fn watch_line(watch: &Watch) -> String {
    let (target, interval) = (watch.target(), exact(watch.interval));
    match &watch.kind {
        WatchKind::Service { tag, dc } => {
            let mut line = format!("polled at least every {interval}");
            if let Some(tag) = tag {
                let _ = write!(line, "; with tag {tag}");
            }
            if let Some(dc) = dc {
                let _ = write!(line, "; in datacenter {dc}");
            }
            line
        }
        WatchKind::Tcp { .. } | WatchKind::Http(_) => format!("{target}, every {interval}"),
        WatchKind::Dns { .. } => format!("{target}, looked up at least every {interval}"),
        WatchKind::File { .. } => target,
        WatchKind::Key { .. } | WatchKind::Prefix { .. } => format!("{target} in Consul"),
    }
}

fn file_line(file: &RenderedFile) -> String {
    let mut line = format!("{} from {}", file.to, file.template_name);
    if !file.watches.is_empty() {
        let watches: Vec<String> = file.watches.iter().map(|name| format!("watch.{name}")).collect();
        let _ = write!(line, "; again when {} changes", watches.join(" or "));
    }
    if let Some(test) = &file.test {
        let _ = write!(line, "; tested by {}", test.command.program.text());
    }
    line
}

/// The output of `check --format json`.
#[derive(Serialize)]
struct Output<'a> {
    ok: bool,
    problems: Vec<Problem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<Summary<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watches: Option<Vec<Summary<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<Summary<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<Vec<Summary<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
}

/// The longest stop (S15).
#[derive(Serialize)]
struct Stop {
    longest: String,
    summary: String,
}

#[derive(Serialize)]
struct Problem<'a> {
    severity: &'static str,
    message: &'a str,
    #[serde(flatten)]
    location: Option<Location<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

#[derive(Serialize)]
struct Location<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    /// The rendered text, if the place is inside a template action.
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<&'a str>,
}

#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    summary: String,
}

pub fn json(plan: Option<&Plan>, ok: bool, report: &Report) -> String {
    let summary = |name, summary| Summary { name, summary };
    crate::json::pretty_json(&Output {
        ok,
        problems: report.problems().iter().map(|problem| describe(report, problem)).collect(),
        jobs: plan.map(|plan| plan.jobs.iter().map(|job| summary(&*job.name, job_line(job))).collect()),
        watches: plan
            .map(|plan| plan.watches.iter().map(|watch| summary(&*watch.name, watch_line(watch))).collect()),
        files: plan
            .filter(|plan| !plan.files.is_empty())
            .map(|plan| plan.files.iter().map(|file| summary(&*file.name, file_line(file))).collect()),
        locks: plan
            .filter(|plan| !plan.locks.is_empty())
            .map(|plan| plan.locks.iter().map(|lock| summary(&*lock.name, lock_line(lock))).collect()),
        stop: plan.map(|plan| {
            let stop = longest_stop(plan);
            Stop { longest: exact(stop.time), summary: stop.words(plan) }
        }),
    })
}

fn describe<'a>(report: &'a Report, located: &'a Located) -> Problem<'a> {
    Problem {
        severity: match located.problem.severity {
            Severity::Error | Severity::Fault => "error",
            Severity::Warning => "warning",
        },
        message: &located.problem.message,
        location: located.location.as_ref().map(|at| Location {
            file: report.file_name(at.file),
            line: at.line,
            column: at.column,
            rendered: at.produced.as_ref().map(|produced| produced.rendered.as_str()),
        }),
        help: located.problem.help.as_deref(),
    }
}
