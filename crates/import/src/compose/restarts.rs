//! `restart`, `deploy` and `scale` of a service.

use std::time::Duration;

use super::service::{CONTAINER, Converter, number, plain};
use crate::ImportError;
use crate::document::{Field, Fields, Value};
use crate::durations;
use crate::yaml::{Map, YamlEntry, YamlNode};

const RUNS_ONCE: &str = "a job runs once by default";
const DEFAULT: &str = "this is the default";

impl Converter<'_> {
    pub(super) fn restart(&mut self, entry: &YamlEntry, service: &Map) {
        let from = entry.place();
        if service.get("deploy").and_then(|deploy| deploy.get("restart_policy")).is_some_and(|p| !p.is_null())
        {
            self.document.not_needed(&from, "`deploy.restart_policy` takes precedence");
            return;
        }
        let policy = plain(&entry.value).unwrap_or_default();
        let (policy, count) = policy.split_once(':').map_or((policy, None), |(policy, n)| (policy, Some(n)));
        match (policy, count.map(str::parse::<u64>)) {
            ("no" | "false", None) => self.document.not_needed(&from, RUNS_ONCE),
            ("always" | "unless-stopped", None) => self.fields.set("restarts", "unlimited", Some(&from)),
            ("on-failure", None | Some(Ok(0))) => {
                self.fields.set("restarts", "unlimited", Some(&from));
                self.fields.set("restartOn", "failure", Some(&from));
            }
            ("on-failure", Some(Ok(count))) => {
                self.fields.set("restarts", count, Some(&from));
                self.fields.set("restartOn", "failure", Some(&from));
            }
            _ => self.inexact(entry, "expected no, always, on-failure, on-failure:N or unless-stopped"),
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
                ("restart_policy", _) => self.restart_policy(key),
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

    fn restart_policy(&mut self, entry: &YamlEntry) {
        let Some(map) = entry.value.map() else { return };
        let from = entry.place();
        let condition = map.get("condition").and_then(plain).unwrap_or("any");
        let count = map.get("max_attempts").and_then(YamlNode::integer).and_then(|n| u64::try_from(n).ok());
        let restarts = count.map_or(Value::from("unlimited"), Value::from);
        match condition {
            "none" | "no" => self.document.not_needed(&from, RUNS_ONCE),
            "any" | "always" | "unless-stopped" => self.fields.set("restarts", restarts, Some(&from)),
            "on-failure" => {
                self.fields.set("restarts", restarts, Some(&from));
                self.fields.set("restartOn", "failure", Some(&from));
            }
            _ => self.inexact(entry, "a condition is none, on-failure or any"),
        }
        let mut backoff = Vec::new();
        for key in map {
            let duration = plain(&key.value).and_then(durations::compose);
            match (key.key.as_str(), duration) {
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
