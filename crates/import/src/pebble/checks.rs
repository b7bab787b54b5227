//! Checks: each becomes a job that has `health` and no process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use containerpilot_config::limits::SOURCE_BYTES;

use super::service::words;
use super::{strict, surroundings};
use crate::conditions::on;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::error::ImportError;
use crate::yaml::{Map, YamlEntry, YamlNode};

/// The exit code of Pebble after `on-check-failure: shutdown`.
const SHUTDOWN_CODE: u64 = 11;

/// Refuses the checks that Pebble refuses when all layers are combined.
pub(super) fn consistent(checks: &Map, services: &Map) -> Result<(), ImportError> {
    // Each check has a copy of the variables of its service.
    let mut copied: usize = 0;
    for check in checks {
        let kinds = ["http", "tcp", "exec"].into_iter().filter(|key| check.value.get(key).is_some());
        if kinds.count() != 1 {
            return Err(
                check.error(format!("the check `{}` needs one of `http`, `tcp` or `exec`", check.key))
            );
        }
        let context =
            check.value.get("exec").and_then(YamlNode::map).and_then(|exec| exec.entry("service-context"));
        let named = context.and_then(|context| Some((context, context.value.text()?)));
        let Some((context, name)) = named.filter(|(_, name)| !name.is_empty()) else { continue };
        let Some(service) = services.get(name) else {
            return Err(context.error(format!("the service `{name}` is not defined")));
        };
        copied = copied.saturating_add(service.get("environment").map_or(0, YamlNode::size));
        if copied > SOURCE_BYTES {
            return Err(context.error(
                "too many checks have the variables of a service: remove `service-context` from some",
            ));
        }
    }
    Ok(())
}

/// Whether Pebble starts the check.
pub(super) fn is_enabled(check: &YamlEntry) -> bool {
    check.value.get("startup").and_then(YamlNode::text) != Some("disabled")
}

/// Adds a job for each check, and one for each action of a service at its failure. `names` are the jobs of the services.
///
/// A check of Pebble belongs to no service: it also runs, and acts, while no process of a service runs. So its job has no process.
pub(super) fn add(
    services: &Map,
    names: &[String],
    started: &BTreeSet<&str>,
    checks: &Map,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut jobs = BTreeMap::new();
    for check in checks {
        let name = document.free_name(&format!("check-{}", check.key));
        let mut fields = Vec::new();
        if let Some(exec) = check.value.get("exec").and_then(YamlNode::map) {
            let context = exec.get("service-context").and_then(YamlNode::text);
            let context = context.and_then(|name| services.get(name)).and_then(YamlNode::map);
            let sources: Vec<&Map> = context.into_iter().chain([exec]).collect();
            surroundings::set(&mut fields, surroundings::variables(&sources), &sources, document);
        }
        fields.set("health", health(check, document)?, None);
        if !is_enabled(check) {
            let startup = check.value.map().and_then(|check| check.entry("startup"));
            fields.set("when", "manual", startup.map(YamlEntry::place).as_ref());
        }
        jobs.insert(check.key.as_str(), name.clone());
        document.jobs.push(Job { name, from: Some(check.place()), fields });
    }
    for (service, name) in services.into_iter().zip(names) {
        for action in service.value.get("on-check-failure").and_then(YamlNode::map).into_iter().flatten() {
            let from = action.place();
            let Some(check) = jobs.get(action.key.as_str()) else {
                document.inexact(&from, "there is no such check");
                continue;
            };
            let (wanted, key, what) = match action.value.text() {
                Some("restart") => {
                    (format!("{check}-restart-{name}"), "each", Field::new("restart", name.as_str()))
                }
                Some("shutdown") => {
                    (format!("{check}-shutdown"), "once", Field::new("shutdown", SHUTDOWN_CODE))
                }
                Some("success-shutdown") => (format!("{check}-shutdown"), "once", Field::new("shutdown", 0)),
                _ => {
                    document.not_needed(&from, "a failed check changes nothing else");
                    continue;
                }
            };
            if !started.contains(service.key.as_str()) {
                let why = format!("a user starts `{name}`, and the check would also act before that");
                document.inexact(&from, why);
                continue;
            }
            let fields = vec![
                Field::new("do", Value::Object(vec![what])),
                Field::new("when", on(check, key, "becameUnhealthy")),
            ];
            let name = document.free_name(&wanted);
            document.jobs.push(Job { name, from: Some(from), fields });
        }
    }
    Ok(())
}

fn health(entry: &YamlEntry, document: &mut Document) -> Result<Value, ImportError> {
    let mut check = vec![Field::new("name", entry.key.as_str())];
    let (mut period, mut timeout, mut failures) = (Duration::from_secs(10), Duration::from_secs(3), 3);
    for key in entry.value.map().into_iter().flatten() {
        let place = key.place();
        let duration = strict::duration(&key.value).filter(|duration| !duration.is_zero());
        match key.key.as_str() {
            "override" | "startup" => {}
            "level" => document.not_needed(&place, "a job is healthy or not: there are no levels"),
            "period" | "timeout" => match duration {
                Some(duration) if key.key == "period" => period = duration,
                Some(duration) => timeout = duration,
                None => return Err(key.error(format!("`{}` must not be 0", key.key))),
            },
            "threshold" => match key.value.integer().and_then(|n| u64::try_from(n).ok()) {
                Some(count) if count > 0 => failures = count,
                _ => document.not_needed(&place, "0 means the default of 3"),
            },
            "http" => {
                let url = key.value.get("url").and_then(YamlNode::text);
                let url = url.ok_or_else(|| key.error("`http` needs `url`"))?;
                let mut headers = Vec::new();
                for header in key.value.get("headers").and_then(YamlNode::map).into_iter().flatten() {
                    headers.set(&header.key, header.value.text().unwrap_or_default(), Some(&header.place()));
                }
                let http = match headers.is_empty() {
                    true => Value::from(url),
                    false => Value::Object(vec![
                        Field::new("url", url),
                        Field::new("headers", Value::Object(headers)),
                    ]),
                };
                check.set("http", http, Some(&place));
            }
            "tcp" => {
                let port = key.value.get("port").and_then(YamlNode::text);
                let port = port.ok_or_else(|| key.error("`tcp` needs `port`"))?;
                let host = key.value.get("host").and_then(YamlNode::text).unwrap_or("localhost");
                check.set("tcp", format!("{host}:{port}"), Some(&place));
            }
            "exec" => {
                let Some(command) = key.value.map().and_then(|exec| exec.entry("command")) else {
                    return Err(key.error("`exec` needs `command`"));
                };
                check.set("exec", words(command)?, Some(&place));
            }
            _ => {}
        }
    }
    let place = |key| entry.value.map().and_then(|check| check.entry(key)).map(YamlEntry::place);
    check.set("interval", period, place("period").as_ref());
    check.set("ttl", period.saturating_mul(3), place("period").as_ref());
    check.set("timeout", timeout.min(period), place("timeout").as_ref());
    check.set("failures", failures, place("threshold").as_ref());
    // The supervisor checks sooner and more often until a check passes, Pebble first after `period`.
    if failures > 1 {
        check.set("startPeriod", period, None);
    }
    Ok(Value::Object(check))
}
