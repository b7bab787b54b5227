//! What starts services beside the startup: timers, and the end of others.

use std::collections::BTreeSet;
use std::time::Duration;

use super::restart::{restarts_on_failure, start_limit};
use super::unit::Unit;
use super::unit_graph::{Trigger, UnitGraph};
use super::{calendar, keys};
use crate::conditions::on;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::durations::Span;
use crate::files::SourceLine;

impl UnitGraph {
    /// What starts services beside the startup: timers, and the end of others.
    pub(super) fn triggers(&mut self, document: &mut Document) {
        for name in self.order.clone() {
            let Some(unit) = self.units.get(&name).cloned() else { continue };
            match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
                "timer" => self.timer(&unit, document),
                "service" => {
                    for (key, success) in [("OnFailure", false), ("OnSuccess", true)] {
                        for (other, place) in self.listed(&name, key) {
                            self.at_exit(&unit, &other, success, place, document);
                        }
                    }
                }
                "target" => {}
                "socket" => {
                    let service = unit
                        .last("Socket", "Service")
                        .map_or_else(|| format!("{}.service", unit.stem()), |entry| entry.value.clone());
                    self.boot.insert(service);
                    document.inexact(
                        &unit.top,
                        format!("`{name}`: sockets are not passed here: let the program open them"),
                    );
                }
                _ => document.inexact(
                    &unit.top,
                    format!("`{name}`: only services, timers and targets have an equivalent"),
                ),
            }
        }
    }

    fn at_exit(
        &mut self,
        unit: &Unit,
        other: &str,
        success: bool,
        place: SourceLine,
        document: &mut Document,
    ) {
        let Some(job) = self.jobs.get(&unit.name).cloned() else { return };
        if !self.jobs.contains_key(other) {
            document.inexact(&place, format!("`{other}` is not among the files: convert it, too"));
            return;
        }
        let restart = unit.last("Service", "Restart").map_or("no", |entry| entry.value.as_str());
        let code = match success {
            true if matches!(restart, "always" | "on-success") => None,
            true => Some("exitSuccess"),
            false if !restarts_on_failure(unit) => Some("exitFailed"),
            false => start_limit(unit).map(|_| "crashLoop"),
        };
        let words =
            |key| unit.all("Service", key).into_iter().flat_map(|entry| entry.value.split_whitespace());
        let successes: BTreeSet<&str> = words("SuccessExitStatus").collect();
        let prevented = words("RestartPreventExitStatus").any(|status| !successes.contains(status));
        let why = match restart {
            "on-abnormal" | "on-abort" | "on-watchdog" if !success => {
                Some("it does not start after an exit code: the job is restarted after every failure here")
            }
            _ if prevented && matches!(code, None | Some("crashLoop")) => Some(
                "it does not start after an exit status of `RestartPreventExitStatus=`, after which the job has not failed here",
            ),
            _ => None,
        };
        match (why, code) {
            (Some(why), _) => document.inexact(&place, why),
            (None, None) => document.not_needed(
                &place,
                "the service is always restarted, so this never happens under systemd either",
            ),
            (None, Some(_)) => {}
        }
        if let Some(code) = code {
            let trigger = Trigger { when: on(&job, "each", code), place, delay: None, target: None };
            self.triggers.entry(other.to_owned()).or_default().push(trigger);
        }
    }

    fn timer(&mut self, unit: &Unit, document: &mut Document) {
        for entry in &unit.entries {
            if let Some(why) = keys::inexact(&entry.section, &entry.key) {
                document.inexact(&entry.place, why);
            }
            let why = match entry.key.as_str() {
                "Persistent" if entry.value != "false" && entry.value != "no" => {
                    "a time that passed while the container did not run is not made up"
                }
                "RandomizedDelaySec" | "RandomizedOffsetSec" if entry.value != "0" => {
                    "there is no random delay"
                }
                "OnUnitInactiveSec" => {
                    "an interval counts from the start of a run here, not from its end: use `interval`"
                }
                _ => continue,
            };
            document.inexact(&entry.place, why);
        }
        let service = unit.timed_service();
        let Some(job) = self.jobs.get(&service).cloned() else {
            document.inexact(&unit.top, format!("`{service}` is not among the files: convert it, too"));
            return;
        };
        let mut triggers = Vec::new();
        for entry in unit.all("Timer", "OnCalendar") {
            match calendar::cron(&entry.value) {
                Ok(cron) => {
                    if cron.timezone.is_none() {
                        document.remark("The times of `cron` are UTC. systemd takes the time zone of the machine: set `timezone` if it is another.");
                    }
                    let mut when = vec![Field::new("cron", cron.fields)];
                    when.extend(cron.timezone.map(|zone| Field::new("timezone", zone)));
                    let note = cron.note.map(str::to_owned);
                    triggers.push(Trigger {
                        when: Value::Object(when).commented(note.into_iter().collect()),
                        place: entry.place.clone(),
                        delay: None,
                        target: None,
                    });
                }
                Err(why) => document.inexact(&entry.place, why),
            }
        }
        triggers.extend(self.monotonic(unit, &job, document));
        self.triggers.entry(service).or_default().extend(triggers);
    }

    /// `OnBootSec=` and others: a job that sleeps, and an interval.
    fn monotonic(&mut self, unit: &Unit, job: &str, document: &mut Document) -> Vec<Trigger> {
        let mut spans = Vec::new();
        for key in ["OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitActiveSec"] {
            for entry in unit.all("Timer", key) {
                match Span::parse(&entry.value) {
                    Some(Span::Finite(span)) => spans.push((key, span, entry)),
                    _ => document.inexact(&entry.place, "this is not a time span"),
                }
            }
        }
        let mut intervals = spans
            .iter()
            .filter(|(key, span, _)| *key == "OnUnitActiveSec" && *span >= Duration::from_millis(1));
        let interval = intervals.next();
        for (_, _, entry) in intervals {
            document.inexact(&entry.place, "a job has one interval");
        }
        let starts: Vec<_> = spans.iter().filter(|(key, _, _)| *key != "OnUnitActiveSec").collect();
        if starts.is_empty()
            && let Some((_, _, entry)) = interval
        {
            document.inexact(&entry.place, "nothing starts the service for the first time: add `OnBootSec=`");
        }
        let mut interval = interval.map(|(_, span, entry)| (*span, *entry));
        let mut triggers = Vec::new();
        for (_, delay, entry) in starts {
            let every = interval.take();
            let mut when = Vec::new();
            let delayed = (!delay.is_zero()).then(|| {
                let seconds = format!("{}.{:06}", delay.as_secs(), delay.subsec_micros());
                let seconds = seconds.trim_end_matches('0').trim_end_matches('.').to_owned();
                let mut fields = Vec::new();
                fields.set("exec", vec!["sleep".to_owned(), seconds], Some(&entry.place));
                Job { name: document.free_name(&format!("{job}-delay")), from: None, fields }
            });
            if let Some(delay) = &delayed {
                when.extend([Field::new("source", delay.name.as_str()), Field::new("once", "exitSuccess")]);
            }
            if let Some((interval, _)) = every {
                when.push(Field::new("interval", interval));
            }
            if when.is_empty() {
                when.push(Field::new("once", "startup"));
            }
            let place = every.map_or(&entry.place, |(_, entry)| &entry.place).clone();
            triggers.push(Trigger { when: Value::Object(when), place, delay: delayed, target: None });
        }
        triggers
    }
}
