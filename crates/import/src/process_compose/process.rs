//! One process.

use std::collections::BTreeSet;
use std::time::Duration;

use super::project::process_of;
use super::texts::Texts;
use crate::command_line;
use crate::depends_on::{Condition, Dependency, Planned, Start};
use crate::document::{Document, Field, Fields, Value};
use crate::durations;
use crate::error::ImportError;
use crate::files::SourceLine;
use crate::merge::{beside, names_of_list};
use crate::yaml::{Map, YamlEntry, YamlNode};

const DEFAULT: &str = "this is the default";
const STOPPED_BY_COMMAND: &str =
    "The command stops the process. SIGCONT, which a running process ignores, is in place of SIGTERM.";
const ON_FAILURE: &str = "A failed check restarts a job with `restartOn: \"failure\"`. In process-compose a process that then exits with 0 is not restarted.";

/// How long process-compose waits for a process that stops.
pub(super) const STOP: Duration = Duration::from_secs(10);

/// The name, place and fields of a job that runs while this one stops.
pub(super) type Hook = (String, SourceLine, Vec<Field>);

pub(super) struct Converter<'a> {
    pub(super) name: &'a str,
    pub(super) texts: &'a Texts<'a>,
    processes: &'a Map,
    /// The files of the output of all processes.
    pub(super) log_files: &'a mut BTreeSet<String>,
    pub(super) document: &'a mut Document,
    pub(super) fields: Vec<Field>,
    depends: Vec<Dependency>,
    start: Start,
    pub(super) checks: Vec<Value>,
    pub(super) checks_from: Option<SourceLine>,
    pub(super) logging: Vec<Field>,
    pub(super) hook: Option<Hook>,
    /// The line with `exit_on_skipped`.
    pub(super) exit_on_skipped: Option<SourceLine>,
    /// The line with the probe whose failure stops the process, because nothing restarts it.
    pub(super) stops_when_unhealthy: Option<SourceLine>,
    stop: Duration,
}

impl<'a> Converter<'a> {
    pub(super) fn new(
        name: &'a str,
        texts: &'a Texts<'a>,
        processes: &'a Map,
        log_files: &'a mut BTreeSet<String>,
        document: &'a mut Document,
    ) -> Self {
        Self {
            name,
            texts,
            processes,
            log_files,
            document,
            fields: Vec::new(),
            depends: Vec::new(),
            start: Start::AtStartup,
            checks: Vec::new(),
            checks_from: None,
            logging: Vec::new(),
            hook: None,
            exit_on_skipped: None,
            stops_when_unhealthy: None,
            stop: Duration::ZERO,
        }
    }

    pub(super) fn planned(self, entry: &YamlEntry) -> Planned {
        let Self { fields, depends, start, stop, .. } = self;
        Planned { original: entry.key.clone(), from: entry.place(), fields, depends, start, stop }
    }

    pub(super) fn inexact(&mut self, entry: &YamlEntry, why: &str) {
        self.document.inexact(&entry.place(), why);
    }

    pub(super) fn value(&mut self, node: &YamlNode) -> Result<Value, ImportError> {
        self.texts.value(node, self.document)
    }

    /// Returns false if there is nothing to run.
    pub(super) fn process(&mut self, process: &Map, place: &SourceLine) -> Result<bool, ImportError> {
        let given = |key| process.entry(key).filter(|entry| !entry.value.is_null());
        let raw = process.get("is_template_disabled").and_then(YamlNode::flag) == Some(true);
        let exec = match (given("command"), given("entrypoint")) {
            (Some(command), _) => {
                let pieces = match command.value.text() {
                    Some(text) if raw => self.texts.expanded(text.to_owned(), &command.value, self.document),
                    _ => self.texts.shell_pieces(&command.value, self.document)?,
                };
                Some((self.texts.line(pieces), command))
            }
            (None, Some(entry)) => {
                let items = entry.value.list().unwrap_or(std::slice::from_ref(&entry.value));
                let words = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                Some((Value::List(words), entry)).filter(|_| !items.is_empty())
            }
            (None, None) => None,
        };
        let Some((exec, from)) = exec else {
            self.document.inexact(place, "it has no command");
            return Ok(false);
        };
        self.fields.set("exec", exec, Some(&from.place()));
        for entry in process {
            if !entry.value.is_null() {
                self.key(entry, process)?;
            }
        }
        if !self.checks.is_empty() {
            let restarts = self.fields.get("restarts").is_some();
            let first = match (restarts, self.checks.first_mut()) {
                (true, Some(Value::Object(check))) => Some(check),
                _ => None,
            };
            if let Some(check) = first {
                check.push(Field::new("onUnhealthy", "restart"));
            } else {
                self.stops_when_unhealthy = self.checks_from.clone();
            }
            if self.fields.get("restartOn").is_some() {
                self.document.remark(ON_FAILURE);
            }
            let mut checks = std::mem::take(&mut self.checks);
            let health = match checks.len() {
                1 => checks.remove(0),
                _ => Value::List(checks),
            };
            self.fields.set("health", health, self.checks_from.as_ref());
        }
        // The rotation is that of the file in `log_location`.
        if self.logging.get("file").is_some() {
            self.fields.set("logging", Value::Object(std::mem::take(&mut self.logging)), None);
        }
        self.own_variables(process, &from.place());
        let (cwd, env) = (self.fields.get("cwd").cloned(), self.fields.get("env").cloned());
        if let Some((_, _, hook)) = &mut self.hook {
            cwd.into_iter().for_each(|cwd| hook.set("cwd", cwd, None));
            env.into_iter().for_each(|env| hook.set("env", env, None));
        }
        Ok(true)
    }

    fn key(&mut self, entry: &YamlEntry, process: &Map) -> Result<(), ImportError> {
        let value = &entry.value;
        let place = entry.place();
        let from = Some(&place);
        match entry.key.as_str() {
            "command" | "extends" => {}
            "entrypoint" => {
                if self.fields.iter().all(|field| field.from.as_ref() != from) {
                    self.document.not_needed(&place, "`command` takes precedence");
                }
            }
            "vars" => self.document.not_needed(&place, "its values are written where they are used"),
            "is_template_disabled" => self.document.not_needed(&place, "the command is written accordingly"),
            "description" | "name" => self.document.not_needed(&place, "only a description"),
            "launch_timeout_seconds" => self.document.not_needed(&place, "concerns only a daemon"),
            "working_dir" => {
                let value = self.value(value)?;
                self.fields.set("cwd", value, from);
            }
            "environment" => {
                let env = self.texts.environment(value, self.document)?;
                if !env.is_empty() {
                    self.fields.set("env", Value::Object(env), from);
                }
            }
            "env_file" => {
                let value = match self.value(value)? {
                    Value::Text(path) => Value::Text(beside(&place.file, &path)),
                    other => other,
                };
                self.fields.set("envFile", value, from);
            }
            "availability" => self.availability(entry)?,
            "depends_on" => self.depends_on(entry)?,
            "readiness_probe" | "liveness_probe" => self.probe(entry, process)?,
            "ready_log_line" if process.get("readiness_probe").is_some_and(|probe| !probe.is_null()) => {
                return Err(
                    entry.error("`ready_log_line` and `readiness_probe` exclude each other: remove one")
                );
            }
            "ready_log_line" => {
                let line = value.text().unwrap_or_default();
                let ready = vec![Field::new("line", escaped_regex(line))];
                self.fields.set("ready", Value::Object(ready), from);
            }
            "shutdown" => self.shutdown(entry)?,
            "replicas" => match value.integer() {
                Some(0 | 1) => self.document.not_needed(&place, DEFAULT),
                Some(count) => self.fields.set("replicas", Value::Number(count.to_string()), from),
                None => {
                    let value = self.value(value)?;
                    self.fields.set("replicas", value, from);
                }
            },
            "namespace" => {
                let items = value.list().unwrap_or(std::slice::from_ref(value));
                let groups = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                self.fields.set("groups", Value::List(groups), from);
            }
            "disabled" | "is_disabled" => match value.flag() {
                Some(true) => self.start = Start::Manual(Some(place)),
                _ => self.document.not_needed(&place, DEFAULT),
            },
            "schedule" => self.schedule(entry),
            "success_exit_codes" => {
                let codes = value.list().unwrap_or_default().iter().filter_map(YamlNode::integer);
                let codes = codes.filter(|code| *code != 0).map(|code| Value::Number(code.to_string()));
                let codes = std::iter::once(Value::from(0)).chain(codes).collect();
                self.fields.set("successCodes", Value::List(codes), from);
            }
            "log_location" => self.log_location(entry)?,
            "log_configuration" => self.log_configuration(entry),
            "is_daemon" if value.flag() != Some(false) => {
                self.inexact(entry, "run the program in the foreground: a job ends with its process");
            }
            "is_foreground" | "is_interactive" | "is_tty" if value.flag() != Some(false) => {
                if entry.key == "is_foreground" {
                    self.start = Start::Manual(Some(place));
                }
                self.inexact(entry, "a job has no terminal, and `/dev/null` as stdin");
            }
            "is_elevated" if value.flag() != Some(false) => {
                self.inexact(entry, "run the supervisor as root, and give the other jobs a `user`");
            }
            "is_dotenv_disabled" if self.texts.project.dotenv && value.flag() != Some(false) => {
                self.inexact(entry, "all jobs get the variables of `.env`");
            }
            "is_daemon" | "is_foreground" | "is_interactive" | "is_tty" | "is_elevated"
            | "is_dotenv_disabled" => self.document.not_needed(&place, DEFAULT),
            "disable_ansi_colors" | "truncate_log" | "monitor_for" | "monitor_silence_threshold" => {
                self.inexact(entry, "concerns its user interface");
            }
            "watch" => {
                self.inexact(entry, "is for development: `containerpilot restart` starts a changed program")
            }
            "mcp" => self.inexact(entry, "no equivalent"),
            key if key.starts_with("x-") => {}
            _ => self.inexact(entry, "unknown key"),
        }
        Ok(())
    }

    fn availability(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let Some(map) = entry.value.map() else { return Ok(()) };
        let number = |key| map.get(key).and_then(YamlNode::integer).and_then(|n| u64::try_from(n).ok());
        let count = number("max_restarts").filter(|count| *count > 0);
        for key in map {
            let place = key.place();
            let from = Some(&place);
            match (key.key.as_str(), key.value.text().unwrap_or_default()) {
                ("restart", policy @ ("always" | "on_failure")) => {
                    self.fields.set("restarts", count.map_or(Value::from("unlimited"), Value::from), from);
                    if policy == "on_failure" {
                        self.fields.set("restartOn", "failure", from);
                    }
                    if map.get("backoff_seconds").is_none_or(YamlNode::is_null) {
                        self.fields.set("restartBackoff", backoff(1), None);
                        self.fields.note("restartBackoff", "The default of process-compose.");
                    }
                }
                ("restart", "exit_on_failure") => self.fields.set("onFailure", "shutdown", from),
                ("restart", "no" | "false") => self.document.not_needed(&place, "a job runs once by default"),
                ("restart", policy) if policy.contains('$') => {
                    self.inexact(key, "a variable is not possible here: write the value");
                }
                ("restart", _) => {
                    return Err(key.error("`restart` is no, always, on_failure or exit_on_failure"));
                }
                ("backoff_seconds", _) => match key.value.integer().and_then(|n| u64::try_from(n).ok()) {
                    Some(seconds) => self.fields.set("restartBackoff", backoff(seconds), from),
                    None => self.inexact(key, "expected a whole number"),
                },
                ("max_restarts", _) => match (count, key.value.integer()) {
                    (Some(_), _) => {}
                    (None, Some(0)) => self.document.not_needed(&place, DEFAULT),
                    (None, _) => self.inexact(key, "expected a whole number"),
                },
                ("exit_on_end", _) if key.value.flag() == Some(true) => {
                    self.fields.set("onSuccess", "shutdown", from);
                    self.fields.set("onFailure", "shutdown", from);
                }
                ("exit_on_skipped", _) if key.value.flag() == Some(true) => {
                    self.exit_on_skipped = Some(place);
                }
                ("exit_on_end" | "exit_on_skipped", _) => self.document.not_needed(&place, DEFAULT),
                _ => self.inexact(key, "unknown key"),
            }
        }
        Ok(())
    }

    fn depends_on(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let names = names_of_list(&entry.value);
        for other in names.map().into_iter().flatten() {
            let condition = match other.value.get("condition").and_then(YamlNode::text) {
                Some("process_completed") | None => Condition::Completed,
                Some("process_completed_successfully") => Condition::Succeeded,
                Some("process_healthy" | "process_log_ready") => Condition::Healthy,
                Some("process_started") => Condition::Started,
                Some(other_condition) => {
                    return Err(other.error(format!("unknown condition `{other_condition}`")));
                }
            };
            for key in other.value.map().into_iter().flatten() {
                if key.key != "condition" && !key.key.starts_with("x-") {
                    self.inexact(key, "unknown key");
                }
            }
            let on = process_of(&other.key, self.processes).to_owned();
            self.depends.push(Dependency {
                on,
                condition,
                bind: false,
                optional: false,
                from: other.place(),
            });
        }
        Ok(())
    }

    fn shutdown(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let Some(map) = entry.value.map() else { return Ok(()) };
        let timeout =
            map.get("timeout_seconds").and_then(YamlNode::integer).and_then(|n| u64::try_from(n).ok());
        let timeout = timeout.filter(|seconds| (1..1_000_000).contains(seconds)).map(Duration::from_secs);
        let has_command = map.get("command").is_some_and(|command| !command.is_null());
        for key in map {
            let place = key.place();
            let from = Some(&place);
            match key.key.as_str() {
                "signal" | "parent_only" if has_command => {
                    self.document.not_needed(&place, "`command` stops the process, and no signal");
                }
                "timeout_seconds" if has_command => {}
                "signal" => match key.value.text().and_then(command_line::signal) {
                    Some(name) if name == "SIGTERM" => self.document.not_needed(&place, DEFAULT),
                    Some(name) => self.fields.set("stopSignal", name, from),
                    None => self
                        .inexact(key, "there is no such signal: write a number, or a name such as SIGTERM"),
                },
                "timeout_seconds" => match timeout {
                    Some(limit) => {
                        self.stop = limit;
                        self.fields.set("killAfter", limit, from);
                    }
                    None if key.value.integer() == Some(0) => self.document.not_needed(&place, DEFAULT),
                    None => self.inexact(key, "expected a whole number"),
                },
                "parent_only" => match key.value.flag() {
                    Some(true) => self.fields.set("stopScope", "process", from),
                    _ => self.document.not_needed(&place, DEFAULT),
                },
                "command" => {
                    let pieces = self.texts.pieces(&key.value, self.document)?;
                    let mut hook = Vec::new();
                    hook.set("exec", self.texts.line(pieces), None);
                    let limit = timeout.unwrap_or(STOP);
                    hook.set("timeout", limit, None);
                    // First the command, then the rest of the stop.
                    self.stop = limit * 2;
                    self.fields.set("stopSignal", "SIGCONT", from);
                    self.fields.note("stopSignal", STOPPED_BY_COMMAND);
                    let limit_from = map.entry("timeout_seconds").map(YamlEntry::place);
                    self.fields.set("killAfter", limit, limit_from.as_ref());
                    self.hook = Some((format!("{}-shutdown", self.name), place, hook));
                }
                "send_keys" => self.inexact(key, "a job has no terminal: it gets its stop signal"),
                _ => self.inexact(key, "unknown key"),
            }
        }
        Ok(())
    }

    fn schedule(&mut self, entry: &YamlEntry) {
        let Some(map) = entry.value.map() else { return };
        let mut when = Vec::new();
        for key in map {
            let from = key.place();
            match (key.key.as_str(), key.value.text().unwrap_or_default()) {
                ("cron", cron) => when.set("cron", cron, Some(&from)),
                ("timezone", zone) => when.set("timezone", zone, Some(&from)),
                ("interval", interval) => match durations::go(interval) {
                    Some(interval) if !interval.is_zero() => when.set("interval", interval, Some(&from)),
                    _ => self.inexact(key, "write a duration such as `30m`"),
                },
                ("run_on_start", _) => match (key.value.flag(), map.get("interval")) {
                    (Some(true), Some(_)) => {
                        self.document.not_needed(&from, "the first run is at the start");
                    }
                    (Some(true), None) => self.inexact(
                        key,
                        "a job with `cron` does not run at the start: use `containerpilot start`",
                    ),
                    _ => self.document.not_needed(&from, DEFAULT),
                },
                ("max_concurrent", _) => match key.value.integer() {
                    Some(0 | 1) => self.document.not_needed(&from, "a job has one process at a time"),
                    _ => self.inexact(key, "a job has one process at a time"),
                },
                _ => self.inexact(key, "unknown key"),
            }
        }
        if let Some(interval) = map.entry("interval")
            && map.get("run_on_start").and_then(YamlNode::flag) != Some(true)
        {
            self.inexact(interval, "the first run is at the start, not after the first interval");
        }
        if !when.is_empty() && self.start == Start::AtStartup {
            self.start = Start::Schedule(when, entry.place());
        }
    }
}

/// The same delay before each restart.
fn backoff(seconds: u64) -> Value {
    let delay = Duration::from_secs(seconds.clamp(1, 86_400));
    Value::Object(vec![Field::new("initial", delay), Field::new("max", delay)])
}

/// A regular expression that matches this text.
fn escaped_regex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
