//! `Restart=` and what limits the runs of a service.

use std::time::Duration;

use super::converter::{Converted, Converter};
use super::service_type::ServiceType;
use super::unit::{Unit, UnitSetting};
use crate::command_line::signal;
use crate::document::{Field, Fields, Value};
use crate::durations::Span;

/// The default of `StartLimitIntervalSec=`.
const START_LIMIT_INTERVAL: Span = Span::Finite(Duration::from_secs(10));

/// After which exits systemd restarts the service.
pub(crate) fn restarts_on_failure(unit: &Unit) -> bool {
    let restart = unit.last("Service", "Restart").map(|entry| entry.value.as_str());
    matches!(restart, Some("always" | "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog"))
}

/// The start limit of systemd: the number of starts, and the time. `None` if a crash loop cannot reach it.
pub(crate) fn start_limit(unit: &Unit) -> Option<(u64, Duration, Option<&UnitSetting>)> {
    let key = |new: &str, old: &str| unit.last("Unit", new).or_else(|| unit.last("Service", old));
    let burst = key("StartLimitBurst", "StartLimitBurst");
    let interval = key("StartLimitIntervalSec", "StartLimitInterval")
        .or_else(|| unit.last("Unit", "StartLimitInterval"));
    let count = burst.map_or(Some(5), |entry| entry.value.parse::<u64>().ok())?.min(1000);
    let within = match interval.map_or(Some(START_LIMIT_INTERVAL), |entry| Span::parse(&entry.value))? {
        Span::Finite(within) => within,
        Span::Infinity => Duration::from_secs(3600 * 24 * 365),
    };
    let pause = match unit.last("Service", "RestartSec").map(|entry| Span::parse(&entry.value)) {
        Some(Some(Span::Finite(pause))) => pause,
        Some(Some(Span::Infinity)) => Duration::MAX,
        _ => Duration::from_millis(100),
    };
    let starts = u32::try_from(count).unwrap_or(u32::MAX);
    let reached = count > 0 && !within.is_zero() && pause.saturating_mul(starts) < within;
    reached.then_some((count, within, burst.or(interval)))
}

impl Converter<'_> {
    /// `Restart=`, its delays and limits.
    pub(super) fn restart(&mut self, out: &mut Converted, kind: ServiceType) {
        let restart = self.get("Restart").filter(|entry| entry.value != "no");
        if let Some(entry) = &restart {
            let on = match entry.value.as_str() {
                "always" => Some(None),
                "on-failure" => Some(Some("failure")),
                "on-success" => Some(Some("success")),
                "on-abnormal" | "on-abort" | "on-watchdog" => {
                    let why = "it is restarted after every failure here, also after an exit code";
                    self.document.inexact(&entry.place, why);
                    Some(Some("failure"))
                }
                _ => {
                    self.document.inexact(&entry.place, "this restart policy is unknown");
                    None
                }
            };
            if let Some(on) = on {
                // A job with `unlimited` counts as a server, and those that require a oneshot wait for its success.
                let restarts = if kind == ServiceType::Oneshot {
                    Value::from(1_000_000_u64)
                } else {
                    "unlimited".into()
                };
                out.fields.set("restarts", restarts, Some(&entry.place));
                if let Some(on) = on {
                    out.fields.set("restartOn", on, Some(&entry.place));
                }
            }
        }
        let restarted = out.fields.get("restarts").is_some();
        self.back_off(out, restarted);
        if let Some((count, within, entry)) =
            start_limit(self.unit).filter(|_| restarts_on_failure(self.unit))
        {
            let mut limit = vec![Field::new("count", count), Field::new("within", within)];
            let action = self.unit.last("Unit", "StartLimitAction");
            if let Some(action) = action.filter(|entry| entry.value != "none") {
                limit.push(Field::new("then", "shutdown"));
                if action.value != "exit" {
                    self.document.inexact(&action.place, "the container is stopped, not the machine");
                }
            }
            let mut note: Vec<String> = Vec::new();
            for other in ["StartLimitBurst", "StartLimitIntervalSec", "StartLimitInterval"] {
                let lines = self.unit.entries.iter().filter(|line| line.key == other);
                let lines = lines.filter(|line| entry.is_none_or(|entry| entry.place != line.place));
                note.extend(lines.map(|line| line.place.to_string()));
            }
            let note =
                if entry.is_none() { vec!["the default start limit of systemd".to_owned()] } else { note };
            out.fields.set(
                "startLimit",
                Value::Object(limit).commented(note),
                entry.map(|entry| &entry.place),
            );
        }
        for (key, field) in [("FailureAction", "onFailure"), ("SuccessAction", "onSuccess")] {
            let Some(action) = self.unit.last("Unit", key).filter(|entry| entry.value != "none") else {
                continue;
            };
            out.fields.set(field, "shutdown", Some(&action.place));
            if !action.value.starts_with("exit") {
                self.document.inexact(&action.place, "the container is stopped, not the machine");
            }
        }
        self.exit_codes(out);
        if let Some((entry, span)) = self.span("RuntimeMaxSec")
            && let Some(time) = span.duration().filter(|time| !time.is_zero())
        {
            out.fields.set("timeout", time, Some(&entry.place));
        }
        let start = self.span("TimeoutStartSec").or_else(|| self.span("TimeoutSec"));
        if let Some((entry, Span::Finite(limit))) =
            start.filter(|(_, span)| *span != Span::Finite(Duration::ZERO))
        {
            match kind {
                ServiceType::Oneshot => out.fields.set("timeout", limit, Some(&entry.place)),
                ServiceType::Notify => self.document.inexact(
                    &entry.place,
                    "a job that does not become ready is not stopped; `containerpilot wait` has a timeout",
                ),
                ServiceType::Simple => {}
            }
        }
    }

    fn back_off(&mut self, out: &mut Converted, restarted: bool) {
        let Some((entry, span)) = self.span("RestartSec").filter(|_| restarted) else { return };
        let most = self.span("RestartMaxDelaySec").and_then(|(_, span)| span.duration());
        match span.duration() {
            Some(Duration::ZERO) => out.fields.set("restartBackoff", false, Some(&entry.place)),
            Some(time) => {
                let back_off = vec![Field::new("initial", time), Field::new("max", most.unwrap_or(time))];
                out.fields.set("restartBackoff", Value::Object(back_off), Some(&entry.place));
            }
            None => self.document.inexact(&entry.place, "systemd never restarts it with this delay, but the job is restarted here: set `restarts: \"never\"`"),
        }
    }

    fn exit_codes(&mut self, out: &mut Converted) {
        let mut codes: Vec<Value> = Vec::new();
        let mut places = Vec::new();
        let on_failure = matches!(out.fields.get("restartOn"), Some(Value::Text(on)) if on == "failure");
        for key in ["SuccessExitStatus", "RestartPreventExitStatus"] {
            for entry in self.unit.all("Service", key) {
                if key == "RestartPreventExitStatus" && !on_failure {
                    if out.fields.get("restarts").is_some() {
                        let why = "the job is restarted after this exit code; `restartOn: \"failure\"` with `successCodes` is not";
                        self.document.inexact(&entry.place, why);
                    }
                    continue;
                }
                let before = codes.clone();
                for word in entry.value.split_whitespace() {
                    match (
                        word.parse::<u8>(),
                        signal(word).filter(|_| word.starts_with("SIG")),
                        sysexit(word),
                    ) {
                        (Ok(code), _, _) | (_, None, Some(code)) => codes.push(u64::from(code).into()),
                        (_, Some(signal), _) => codes.push(signal.into()),
                        _ => self
                            .document
                            .inexact(&entry.place, format!("the exit status `{word}` is unknown")),
                    }
                }
                if key == "RestartPreventExitStatus" && codes.iter().any(|code| !before.contains(code)) {
                    let why = "without a restart, the exit status counts as a success here; in systemd it is a failure";
                    self.document.inexact(&entry.place, why);
                }
                places.push(entry.place.clone());
            }
        }
        if let Some((first, others)) = places.split_first().filter(|_| !codes.is_empty()) {
            let mut all = vec![Value::from(0_u64)];
            for code in codes {
                if !all.contains(&code) {
                    all.push(code);
                }
            }
            let comments = others.iter().map(ToString::to_string).collect();
            out.fields.set("successCodes", Value::List(all).commented(comments), Some(first));
        }
    }
}

/// Exit codes by name, of `sysexits.h` and the init scripts.
fn sysexit(name: &str) -> Option<u8> {
    let names = [
        ("FAILURE", 1),
        ("INVALIDARGUMENT", 2),
        ("NOTIMPLEMENTED", 3),
        ("NOPERMISSION", 4),
        ("NOTINSTALLED", 5),
        ("NOTCONFIGURED", 6),
        ("NOTRUNNING", 7),
        ("USAGE", 64),
        ("DATAERR", 65),
        ("NOINPUT", 66),
        ("NOUSER", 67),
        ("NOHOST", 68),
        ("UNAVAILABLE", 69),
        ("SOFTWARE", 70),
        ("OSERR", 71),
        ("OSFILE", 72),
        ("CANTCREAT", 73),
        ("IOERR", 74),
        ("TEMPFAIL", 75),
        ("PROTOCOL", 76),
        ("NOPERM", 77),
        ("CONFIG", 78),
    ];
    names.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}
