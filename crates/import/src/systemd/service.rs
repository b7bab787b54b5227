//! The `[Service]` section: what runs, and how.

use std::time::Duration;

use super::converter::{Converted, Converter};
use super::exec::{Command, quote, unknown_specifier};
use super::keys;
use super::restart::restarts_on_failure;
use super::service_type::ServiceType;
use super::unit::UnitSetting;
use super::words::{strip, words};
use crate::command_line::signal;
use crate::conditions::on;
use crate::document::{Field, Fields, Job, Value};
use crate::durations::Span;
use crate::files::SourceLine;

impl Converter<'_> {
    /// The fields and hooks of the service.
    pub(crate) fn convert(mut self) -> Converted {
        let mut out = Converted {
            before: Vec::new(),
            fields: Vec::new(),
            after: Vec::new(),
            at_shutdown: Vec::new(),
            stop_time: None,
        };
        self.classify();
        let kind = ServiceType::of(self.unit);
        let process = self.process();
        let mut main = self.commands("ExecStart");
        let last = main.pop();
        self.before(&mut out, &process, main);
        let pid = self.pid_variable();
        let exec = match &last {
            Some(command) => {
                if command.renamed {
                    self.document
                        .inexact(&command.place, "`@`: a program cannot get another name (`argv[0]`) here");
                }
                if command.ignore_failure && kind != ServiceType::Oneshot {
                    let why = "`-`: a failure counts here; list the exit codes that are no failure in `successCodes`";
                    self.document.inexact(&command.place, why);
                }
                command.exec(&pid, command.ignore_failure && kind == ServiceType::Oneshot)
            }
            None => vec!["true"].into(),
        };
        out.fields.set("exec", exec, last.as_ref().map(|command| &command.place));
        self.kind(&mut out);
        self.restart(&mut out, kind);
        self.stop(&mut out, &process, kind);
        out.fields.extend(match &last {
            Some(command) => self.for_command(command, &process),
            None => process,
        });
        out
    }

    /// Lists the keys that have no equivalent.
    fn classify(&mut self) {
        for entry in &self.unit.entries {
            if let Some(why) = keys::inexact(&entry.section, &entry.key).filter(|_| !entry.value.is_empty()) {
                self.document.inexact(&entry.place, why);
            }
        }
    }

    /// A job beside the service, with its user and environment.
    fn aside(&mut self, role: &str, command: &Command, process: &[Field]) -> Job {
        let name = self.document.free_name(&format!("{}-{role}", self.name));
        let mut fields = Vec::new();
        fields.set("exec", command.exec(&self.pid_variable(), command.ignore_failure), Some(&command.place));
        let own = self.for_command(command, process);
        fields.extend(own.iter().filter(|field| field.key != "logging").map(without_places));
        Job { name, from: None, fields }
    }

    /// What must have succeeded before the service starts, one after the other.
    fn before(&mut self, out: &mut Converted, process: &[Field], main: Vec<Command>) {
        let mut jobs = Vec::new();
        jobs.extend(self.conditions());
        jobs.extend(self.directories());
        for (role, key) in [("condition", "ExecCondition"), ("pre", "ExecStartPre")] {
            for command in self.commands(key) {
                jobs.push(self.aside(role, &command, process));
            }
        }
        for command in main {
            jobs.push(self.aside("step", &command, process));
        }
        for pair in 1..jobs.len() {
            let previous = pair.checked_sub(1).and_then(|at| jobs.get(at)).map(|job| job.name.clone());
            if let (Some(previous), Some(job)) = (previous, jobs.get_mut(pair)) {
                job.fields.set("requires", vec![previous], None);
            }
        }
        if !self.unit.all("Service", "ExecStartPre").is_empty() {
            self.document.remark(
                "`ExecStartPre` and conditions are jobs that run once. systemd repeats them at every start of the service.",
            );
        }
        out.before = jobs;
    }

    /// `ConditionPathExists=` and others as one job.
    fn conditions(&mut self) -> Option<Job> {
        let unit = self.unit;
        let (mut all, mut any, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for entry in unit.entries.iter().filter(|entry| entry.section == "Unit" && !entry.value.is_empty()) {
            let Some(key) = entry.key.strip_prefix("Condition").or_else(|| entry.key.strip_prefix("Assert"))
            else {
                continue;
            };
            let (alternative, rest) = strip(&entry.value, '|');
            let (negated, rest) = strip(rest, '!');
            let Ok(argument) = unit.expand(rest.trim()) else {
                self.document.inexact(&entry.place, "its specifier is known only on the machine of systemd");
                continue;
            };
            let path = quote(&argument);
            let test = match key {
                "PathExists" => format!("test -e {path}"),
                "PathIsDirectory" => format!("test -d {path}"),
                "PathIsSymbolicLink" => format!("test -L {path}"),
                "PathIsReadWrite" => format!("test -w {path}"),
                "FileNotEmpty" => format!("test -s {path}"),
                "FileIsExecutable" => format!("test -x {path}"),
                "DirectoryNotEmpty" => format!("test -n \"$(ls -A {path} 2>/dev/null)\""),
                "Environment" => match argument.split_once('=') {
                    Some((name, value)) => format!("test \"$(printenv {})\" = {}", quote(name), quote(value)),
                    None => format!("printenv {path} >/dev/null"),
                },
                _ => {
                    self.document
                        .inexact(&entry.place, "this condition is about the machine, not the container");
                    continue;
                }
            };
            let test = if negated { format!("! {test}") } else { test };
            if alternative { &mut any } else { &mut all }.push(test);
            places.push(entry.place.clone());
        }
        if !any.is_empty() {
            all.push(match all.is_empty() && any.len() == 1 {
                true => any.concat(),
                false => format!("{{ {}; }}", any.join(" || ")),
            });
        }
        let line = all.join(" && ");
        let (first, others) = places.split_first()?;
        let value = Value::from(vec!["sh".to_owned(), "-c".to_owned(), line])
            .commented(others.iter().map(ToString::to_string).collect());
        let mut fields = Vec::new();
        fields.set("exec", value, Some(first));
        Some(Job { name: self.document.free_name(&format!("{}-condition", self.name)), from: None, fields })
    }

    /// `RuntimeDirectory=` and others: a job that creates them.
    fn directories(&mut self) -> Vec<Job> {
        let owner = self.get("User").and_then(|entry| self.unit.expand(&entry.value).ok());
        let group = self.get("Group").and_then(|entry| self.unit.expand(&entry.value).ok());
        let mut jobs = Vec::new();
        for (key, root, _) in keys::DIRECTORIES {
            let mut paths = Vec::new();
            let entries = self.unit.all("Service", key);
            for entry in &entries {
                for word in words(&entry.value).unwrap_or_default() {
                    match self.unit.expand(&word.text) {
                        Ok(path) => {
                            paths.push(format!("{root}/{}", path.split(':').next().unwrap_or_default()))
                        }
                        Err(unknown) => self.document.inexact(&entry.place, unknown_specifier(unknown)),
                    }
                }
            }
            let Some(first) = entries.first().filter(|_| !paths.is_empty()) else { continue };
            let mode = self.get(&format!("{key}Mode"));
            let others = entries.iter().skip(1).map(|entry| entry.place.to_string());
            let comments = others.chain(mode.iter().map(|entry| entry.place.to_string())).collect();
            let mode = mode.as_ref().map_or("0755", |entry| entry.value.as_str());
            let mut exec = vec!["install".to_owned(), "-d".to_owned(), "-m".to_owned(), mode.to_owned()];
            for (flag, value) in [("-o", &owner), ("-g", &group)] {
                if let Some(value) = value {
                    exec.extend([flag.to_owned(), value.clone()]);
                }
            }
            exec.extend(paths);
            let mut fields = Vec::new();
            fields.set("exec", Value::from(exec).commented(comments), Some(&first.place));
            jobs.push(Job {
                name: self.document.free_name(&format!("{}-directory", self.name)),
                from: None,
                fields,
            });
        }
        jobs
    }

    /// `Type=`, readiness and the watchdog.
    fn kind(&mut self, out: &mut Converted) {
        let kind = self.get("Type");
        if let Some(entry) = &kind {
            self.declared_kind(entry, out);
        }
        let Some((watchdog, span)) = self.span("WatchdogSec") else { return };
        let notifies = kind.is_some_and(|entry| matches!(entry.value.as_str(), "notify" | "notify-reload"));
        match span.duration() {
            Some(Duration::ZERO) => {}
            Some(time) if notifies => {
                out.fields.set("watchdog", time, Some(&watchdog.place));
                if restarts_on_failure(self.unit) {
                    let health = vec![
                        Field::new("interval", 10_u64),
                        Field::new("ttl", 30_u64),
                        Field::new("onUnhealthy", "restart"),
                    ];
                    out.fields.set("health", Value::Object(health), Some(&watchdog.place));
                }
            }
            _ => {
                self.document.inexact(&watchdog.place, "`watchdog` needs `ready: \"notify\"` (`Type=notify`)")
            }
        }
    }

    fn declared_kind(&mut self, entry: &UnitSetting, out: &mut Converted) {
        match entry.value.as_str() {
            "simple" | "exec" | "idle" | "oneshot" => {
                if let Some(field) = out.fields.last_mut() {
                    let value = std::mem::replace(&mut field.value, Value::Flag(false));
                    field.value = value.commented(vec![entry.place.to_string()]);
                }
            }
            "notify" | "notify-reload" => out.fields.set("ready", "notify", Some(&entry.place)),
            "forking" => self.document.inexact(
                &entry.place,
                "a program that goes into the background has exited here: start it in the foreground (change `exec`)",
            ),
            "dbus" => self.document.inexact(
                &entry.place,
                "there is no D-Bus here: the job counts as started when its process runs",
            ),
            _ => self.document.inexact(&entry.place, "this type is unknown"),
        }
    }

    /// How it stops, and its hooks.
    fn stop(&mut self, out: &mut Converted, process: &[Field], kind: ServiceType) {
        if let Some(entry) = self.get("KillSignal") {
            match signal(&entry.value) {
                Some(signal) => out.fields.set("stopSignal", signal, Some(&entry.place)),
                None => self.document.inexact(&entry.place, "this signal is unknown"),
            }
        }
        if let Some(entry) = self.get("KillMode") {
            match entry.value.as_str() {
                "control-group" => {}
                "mixed" | "process" => out.fields.set("stopScope", "process", Some(&entry.place)),
                _ => self.document.inexact(&entry.place, "all processes of a job end with it"),
            }
        }
        let timeout = self.span("TimeoutStopSec").or_else(|| self.span("TimeoutSec"));
        let limit = timeout.as_ref().map(|(entry, span)| (entry.place.clone(), *span));
        match limit {
            Some((place, Span::Finite(limit))) if !limit.is_zero() => {
                out.fields.set("killAfter", limit, Some(&place));
                out.stop_time = Some(limit);
            }
            Some((place, _)) => {
                self.document.inexact(&place, "a stop has always a limit: set the global `stopTimeout`")
            }
            None => {}
        }
        let stays = kind == ServiceType::Oneshot && self.yes("RemainAfterExit");
        for command in self.commands("ExecStop") {
            if let Some(signal) = command.kills_main() {
                out.fields.set("stopSignal", signal, Some(&command.place));
                continue;
            }
            let mut job = self.aside("stop", &command, process);
            match stays {
                true => out.at_shutdown.push(job.name.clone()),
                false => job.fields.set("when", on(self.name, "once", "stopping"), None),
            }
            out.after.push(job);
        }
        for command in self.commands("ExecStopPost") {
            let mut job = self.aside("stop-post", &command, process);
            match stays {
                true => out.at_shutdown.push(job.name.clone()),
                false => job.fields.set("when", on(self.name, "once", "stopped"), None),
            }
            out.after.push(job);
        }
        for command in self.commands("ExecStartPost") {
            let mut job = self.aside("post", &command, process);
            job.fields.set("requires", vec![self.name.to_owned()], None);
            out.after.push(job);
        }
        self.reload(out, process);
    }

    fn reload(&mut self, out: &mut Converted, process: &[Field]) {
        let mut commands = self.commands("ExecReload");
        let signals = self.get("Type").filter(|entry| entry.value == "notify-reload");
        if let Some(entry) = signals.filter(|_| commands.is_empty()) {
            let signal = self
                .get("ReloadSignal")
                .and_then(|entry| signal(&entry.value))
                .unwrap_or("SIGHUP".to_owned());
            out.after.push(self.signal_job(signal, &entry.place));
        }
        if commands.len() > 1 {
            self.inexact_key("ExecReload", "several commands for one reload: write them as one script");
            commands.clear();
        }
        for command in commands {
            match command.kills_main() {
                Some(signal) => out.after.push(self.signal_job(signal, &command.place)),
                None => {
                    let mut job = self.aside("reload", &command, process);
                    job.fields.set("when", "manual", None);
                    out.after.push(job);
                }
            }
        }
    }

    fn signal_job(&mut self, signal: String, place: &SourceLine) -> Job {
        let mut fields = Vec::new();
        let action = vec![Field::new("signal", signal), Field::new("to", self.name)];
        fields.set("do", Value::Object(action), Some(place));
        fields.set("when", "manual", None);
        Job { name: self.document.free_name(&format!("{}-reload", self.name)), from: None, fields }
    }
}

fn without_places(field: &Field) -> Field {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Commented(_, inner) => plain(inner),
            Value::Object(members) => Value::Object(members.iter().map(without_places).collect()),
            Value::List(items) => Value::List(items.iter().map(plain).collect()),
            leaf => leaf.clone(),
        }
    }
    Field::new(&field.key, plain(&field.value))
}
