//! One service.

use std::collections::BTreeSet;
use std::time::Duration;

use super::dependencies::names;
use super::{strict, surroundings};
use crate::depends_on::{Condition, Dependency, Planned, Start};
use crate::document::{Document, Field, Fields, Value};
use crate::error::ImportError;
use crate::files::SourceLine;
use crate::yaml::{Map, YamlEntry};

/// The first delay before a restart, and the longest.
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_LIMIT: Duration = Duration::from_secs(30);

/// The exit code of Pebble when a service has shut it down as a failure.
const FAILURE_CODE: u64 = 10;

/// What the end of a job does to the container.
pub(super) struct Reaction {
    pub(super) event: &'static str,
    pub(super) code: u64,
    pub(super) from: SourceLine,
}

pub(super) struct Converter<'a> {
    entry: &'a YamlEntry,
    /// The services that Pebble starts.
    started: &'a BTreeSet<&'a str>,
    pub(super) document: &'a mut Document,
    fields: Vec<Field>,
    depends: Vec<Dependency>,
    stop: Duration,
    pub(super) reactions: Vec<Reaction>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(
        entry: &'a YamlEntry,
        started: &'a BTreeSet<&'a str>,
        document: &'a mut Document,
    ) -> Self {
        let (fields, depends, reactions) = (Vec::new(), Vec::new(), Vec::new());
        Self { entry, started, document, fields, depends, stop: Duration::ZERO, reactions }
    }

    pub(super) fn planned(self) -> Planned {
        let Self { entry, fields, depends, stop, .. } = self;
        let start = match self.started.contains(entry.key.as_str()) {
            true => Start::AtStartup,
            false => {
                Start::Manual(entry.value.map().and_then(|map| map.entry("startup")).map(YamlEntry::place))
            }
        };
        Planned { original: entry.key.clone(), from: entry.place(), fields, depends, start, stop }
    }

    pub(super) fn inexact(&mut self, entry: &YamlEntry, why: &str) {
        self.document.inexact(&entry.place(), why);
    }

    pub(super) fn service(&mut self) -> Result<(), ImportError> {
        let Some(service) = self.entry.value.map() else { return Ok(()) };
        let Some(command) = service.entry("command").filter(|command| !command.value.is_null()) else {
            return Err(self.entry.error(format!("the service `{}` has no command", self.entry.key)));
        };
        // Default arguments are in brackets.
        let words = words(command)?.into_iter().filter(|word| word != "[" && word != "]");
        self.fields.set("exec", words.collect::<Vec<_>>(), Some(&command.place()));
        self.surroundings(service);
        for entry in service {
            if !entry.value.is_null() {
                self.key(entry)?;
            }
        }
        self.restarts(service);
        self.backoff(service);
        Ok(())
    }

    /// Pebble sets `USER` to the name of the user, unless the service sets it.
    fn surroundings(&mut self, service: &Map) {
        let mut env = surroundings::variables(&[service]);
        let is_empty = |value: &Value| *value == Value::from("");
        if let Some((entry, user)) = surroundings::given(&[service], "user")
            && env.get("USER").is_none_or(is_empty)
        {
            env.set("USER", user, Some(&entry.place()));
        }
        surroundings::set(&mut self.fields, env, &[service], self.document);
    }

    fn key(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let text = entry.value.text();
        let place = entry.place();
        let from = Some(&place);
        match (entry.key.as_str(), text) {
            ("override" | "command" | "before" | "on-check-failure", _) => {}
            ("on-success" | "on-failure" | "backoff-delay" | "backoff-limit", _) => {}
            ("environment" | "user" | "user-id" | "group" | "group-id" | "working-dir", _) => {}
            ("summary" | "description", _) => self.document.not_needed(&place, "only a description"),
            ("startup", Some("enabled" | "disabled" | "")) => {}
            ("startup", _) => self.document.remark(format!(
                "{}:{}: Pebble starts a service with `startup: enabled` only, and does not start this one.",
                place.file, place.line
            )),
            ("requires", _) => self.requires(entry),
            ("after", _) => {
                for (_, name) in names(self.entry, "after") {
                    self.after(name, &place);
                }
            }
            ("kill-delay", _) => {
                // 0 kills at once.
                let limit = strict::duration(&entry.value).unwrap_or_default().max(Duration::from_millis(1));
                self.stop = limit;
                self.fields.set("killAfter", limit, from);
            }
            ("backoff-factor", factor) => match factor.and_then(|factor| factor.parse::<f64>().ok()) {
                Some(factor) if factor < 1.0 => return Err(entry.error("`backoff-factor` is at least 1.0")),
                Some(2.0) => self.document.not_needed(&place, "the delay always doubles"),
                _ => self.inexact(entry, "the delay always doubles"),
            },
            _ => self.inexact(entry, "no equivalent: write its environment and user in the job"),
        }
        Ok(())
    }

    /// It starts the other service; `after` says in which order.
    fn requires(&mut self, entry: &YamlEntry) {
        for (_, name) in names(self.entry, "requires") {
            match self.started.contains(name) {
                true => self.document.not_needed(
                    &entry.place(),
                    format!("`{name}` starts with the container; `after` says in which order"),
                ),
                false => self.inexact(
                    entry,
                    &format!("`containerpilot start {}` does not start `{name}`: start both", self.entry.key),
                ),
            }
        }
    }

    fn after(&mut self, name: &str, place: &SourceLine) {
        let own = self.entry.key.as_str();
        if name == own {
            self.document.not_needed(place, "it is the service itself");
        } else if self.started.contains(name) || !self.started.contains(own) {
            self.depends.push(Dependency {
                on: name.to_owned(),
                condition: Condition::Started,
                bind: false,
                optional: false,
                from: place.clone(),
            });
        } else {
            self.document.inexact(place, format!("`{name}` does not start with it"));
        }
    }

    fn restarts(&mut self, service: &Map) {
        let given =
            |key| service.entry(key).filter(|entry| entry.value.text().is_some_and(|text| !text.is_empty()));
        let (on_success, on_failure) = (given("on-success"), given("on-failure"));
        let action = |entry: Option<&'_ YamlEntry>| {
            entry.and_then(|entry| entry.value.text()).unwrap_or("restart").to_owned()
        };
        let (success, failure) = (action(on_success), action(on_failure));
        let restart_on = match (success.as_str(), failure.as_str()) {
            ("restart", "restart") => Some("exit"),
            ("restart", _) => Some("success"),
            (_, "restart") => Some("failure"),
            _ => None,
        };
        if let Some(on) = restart_on {
            let places: Vec<SourceLine> =
                on_success.into_iter().chain(on_failure).map(YamlEntry::place).collect();
            self.fields.set_from("restarts", "unlimited", &places);
            if on != "exit" {
                self.fields.set("restartOn", on, None);
            }
        }
        for (entry, event) in [(on_success, "exitSuccess"), (on_failure, "exitFailed")] {
            let Some(entry) = entry else { continue };
            let from = entry.place();
            match entry.value.text() {
                Some("shutdown") if event == "exitSuccess" => {
                    self.fields.set("onSuccess", "shutdown", Some(&from));
                }
                Some("success-shutdown") => self.reactions.push(Reaction { event, code: 0, from }),
                Some("shutdown" | "failure-shutdown") => {
                    self.reactions.push(Reaction { event, code: FAILURE_CODE, from });
                }
                Some("ignore") if restart_on.is_none() => {
                    self.document.not_needed(&from, "a job runs once by default");
                }
                _ => {}
            }
        }
    }

    fn backoff(&mut self, service: &Map) {
        let given = |key| service.entry(key);
        let (delay, limit) = (given("backoff-delay"), given("backoff-limit"));
        let Some(first) = delay.or(limit) else { return };
        let read = |entry: Option<&YamlEntry>, default| {
            entry.and_then(|entry| strict::duration(&entry.value)).unwrap_or(default)
        };
        let (initial, max) = (read(delay, BACKOFF), read(limit, BACKOFF_LIMIT));
        if initial.is_zero() {
            self.fields.set("restartBackoff", false, Some(&first.place()));
            return;
        }
        let from = |entry: Option<&YamlEntry>| entry.map(YamlEntry::place);
        let backoff = restart_backoff((initial, from(delay)), (max.max(initial), from(limit)));
        self.fields.set("restartBackoff", backoff, None);
    }
}

/// The delays between restarts of a service that does not set them.
pub(super) fn default_backoff() -> Value {
    restart_backoff((BACKOFF, None), (BACKOFF_LIMIT, None))
}

/// The delays between restarts, and the lines they come from. A run that is longer than the longest delay resets it.
fn restart_backoff(initial: (Duration, Option<SourceLine>), max: (Duration, Option<SourceLine>)) -> Value {
    let mut backoff = Vec::new();
    for (key, (delay, from)) in [("initial", &initial), ("max", &max), ("reset", &max)] {
        backoff.set(key, *delay, from.as_ref());
    }
    Value::Object(backoff)
}

/// The words of a command.
pub(super) fn words(entry: &YamlEntry) -> Result<Vec<String>, ImportError> {
    let words = entry.value.text().and_then(shlex::split).filter(|words| !words.is_empty());
    words.ok_or_else(|| entry.error("this is not a command line: is a quote not closed?"))
}
