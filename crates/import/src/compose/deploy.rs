//! `deploy` of a service, and what it takes the place of: `restart` and `scale`.

use std::time::Duration;

use super::keys::{RestartPolicy, duration, restart_policy};
use super::service::{CONTAINER, Converter, number};
use crate::document::{Field, Fields, Value};
use crate::error::ImportError;
use crate::yaml::{Map, YamlEntry};

const RUNS_ONCE: &str = "a job runs once by default";
const DEFAULT: &str = "this is the default";

impl Converter<'_> {
    pub(super) fn restart(&mut self, entry: &YamlEntry, service: &Map) {
        let from = entry.place();
        if restart_policy(service).is_some_and(|(policy, ..)| policy.key != entry.key) {
            self.document.not_needed(&from, "`deploy.restart_policy` takes precedence");
            return;
        }
        self.policy(service, "expected no, always, on-failure, on-failure:N or unless-stopped");
    }

    /// The restart policy of a service. `expected` lists the possible values.
    fn policy(&mut self, service: &Map, expected: &str) {
        let Some((entry, policy, count)) = restart_policy(service) else { return };
        let from = entry.place();
        match policy {
            RestartPolicy::No => self.document.not_needed(&from, RUNS_ONCE),
            RestartPolicy::Always | RestartPolicy::OnFailure => {
                let restarts = count.map_or(Value::from("unlimited"), Value::from);
                self.fields.set("restarts", restarts, Some(&from));
                if policy == RestartPolicy::OnFailure {
                    self.fields.set("restartOn", "failure", Some(&from));
                }
            }
            RestartPolicy::Invalid => self.inexact(entry, expected),
        }
    }

    pub(super) fn deploy(&mut self, entry: &YamlEntry, service: &Map) -> Result<(), ImportError> {
        for key in entry.value.map().into_iter().flatten() {
            match (key.key.as_str(), service.get("scale")) {
                ("replicas", None) => self.replicas(key)?,
                ("replicas", Some(scale)) if scale.integer() == key.value.integer() => {
                    self.document.not_needed(&key.place(), "`scale` says the same");
                }
                ("replicas", Some(_)) => {
                    return Err(key.error("`deploy.replicas` and `scale` differ: remove one of them"));
                }
                ("restart_policy", _) => self.restart_policy(key, service),
                _ => self.inexact(key, CONTAINER),
            }
        }
        Ok(())
    }

    pub(super) fn replicas(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        match entry.value.integer() {
            Some(0) => self.manual = Some(entry.place()),
            Some(1) => self.document.not_needed(&entry.place(), DEFAULT),
            _ => self.fields.set("replicas", number(&entry.value)?, Some(&entry.place())),
        }
        Ok(())
    }

    fn restart_policy(&mut self, entry: &YamlEntry, service: &Map) {
        let Some(map) = entry.value.map() else { return };
        let from = entry.place();
        self.policy(service, "a condition is none, on-failure or any");
        let mut backoff = Vec::new();
        for key in map {
            match (key.key.as_str(), duration(&key.value)) {
                ("condition" | "max_attempts", _) => {}
                ("delay" | "window", Some(Duration::ZERO)) => self.document.not_needed(&key.place(), DEFAULT),
                ("delay", Some(delay)) => {
                    backoff.push(Field::new("initial", delay));
                    backoff.push(Field::new("max", delay));
                }
                ("window", Some(window)) => backoff.push(Field::new("reset", window)),
                ("delay" | "window", None) => self.inexact(key, "write a duration such as `5s`"),
                _ => self.inexact(key, "unknown key"),
            }
        }
        if !backoff.is_empty() && self.fields.get("restarts").is_some() {
            self.fields.set("restartBackoff", Value::Object(backoff), Some(&from));
        }
    }
}
