//! The probes of a process become checks.

use std::time::Duration;

use super::process::Converter;
use crate::document::{Field, Fields, Value};
use crate::error::ImportError;
use crate::variables::{self, Piece};
use crate::yaml::{Map, YamlEntry, YamlNode};

impl Converter<'_> {
    pub(super) fn probe(&mut self, entry: &YamlEntry, process: &Map) -> Result<(), ImportError> {
        let is_daemon = process.get("is_daemon").and_then(YamlNode::flag) == Some(true);
        if entry.key == "liveness_probe" && !is_daemon {
            self.inexact(entry, "process-compose acts on it only with `is_daemon`: add it to `health`");
            return Ok(());
        }
        let Some(map) = entry.value.map() else {
            return Err(entry.error(format!("`{}` takes a mapping", entry.key)));
        };
        let mut check = vec![Field::new("name", entry.key.trim_end_matches("_probe"))];
        for key in map {
            match key.key.as_str() {
                "exec" => {
                    let Some(command) = key.value.get("command") else {
                        return Err(key.error("`exec` needs `command`"));
                    };
                    let pieces = self.texts.shell_pieces(command, self.document)?;
                    check.set("exec", self.texts.line(pieces), Some(&key.place()));
                    for other in key.value.map().into_iter().flatten().filter(|other| other.key != "command")
                    {
                        self.inexact(other, "a check runs in the directory of its job");
                    }
                }
                "http_get" => self.http(key, &mut check)?,
                "initial_delay_seconds"
                | "period_seconds"
                | "timeout_seconds"
                | "success_threshold"
                | "failure_threshold" => {}
                _ => self.inexact(key, "unknown key"),
            }
        }
        if check.len() == 1 {
            self.inexact(entry, "it has neither `exec` nor `http_get`");
            return Ok(());
        }
        let number = |key: &str, default: u64| {
            let entry = map.entry(key);
            let number = entry.and_then(|entry| entry.value.integer()).and_then(|n| u64::try_from(n).ok());
            let number = number.filter(|number| (1..1_000_000).contains(number));
            (number.unwrap_or(default), entry.filter(|_| number.is_some()).map(YamlEntry::place))
        };
        let (period, from) = number("period_seconds", 10);
        check.set("interval", Duration::from_secs(period), from.as_ref());
        check.set("ttl", Duration::from_secs(period * 3), from.as_ref());
        let (timeout, from) = number("timeout_seconds", 1);
        check.set("timeout", Duration::from_secs(timeout), from.as_ref());
        let (failures, from) = number("failure_threshold", 3);
        check.set("failures", failures, from.as_ref());
        if let Some(successes) = map.entry("success_threshold") {
            self.document
                .not_needed(&successes.place(), "process-compose does not use it: one success counts");
        }
        let (delay, from) = number("initial_delay_seconds", 0);
        let start = delay + period * (failures - 1);
        if start > 0 {
            check.set("startPeriod", Duration::from_secs(start), from.as_ref());
            if failures > 1 {
                let note = "With the time of the failures that process-compose allows: until the first success, checks follow faster here.";
                check.note("startPeriod", note);
            }
        }
        self.checks.push(Value::Object(check));
        self.checks_from.get_or_insert_with(|| entry.place());
        Ok(())
    }

    fn http(&mut self, entry: &YamlEntry, check: &mut Vec<Field>) -> Result<(), ImportError> {
        let mut part = |key: &str, default: &str| -> Result<Vec<Piece>, ImportError> {
            match entry.value.get(key).filter(|node| !node.is_null()) {
                Some(node) => self.texts.pieces(node, self.document),
                None => Ok(vec![Piece::Literal(default.to_owned())]),
            }
        };
        let mut url = part("scheme", "http")?;
        url.push(Piece::Literal("://".to_owned()));
        url.extend(part("host", "127.0.0.1")?);
        if entry.value.get("port").is_some() {
            url.push(Piece::Literal(":".to_owned()));
            url.extend(part("port", "80")?);
        }
        url.extend(part("path", "/")?);
        let literal = url.iter().map(|piece| match piece {
            Piece::Literal(text) => Some(text.as_str()),
            Piece::Variable(_) => None,
        });
        let url = match literal.collect::<Option<String>>() {
            Some(url) => Value::Text(url),
            None => variables::value(url),
        };
        let mut http = vec![Field::new("url", url.clone())];
        for key in entry.value.map().into_iter().flatten() {
            match key.key.as_str() {
                "scheme" | "host" | "port" | "path" => {}
                "headers" => {
                    let mut headers = Vec::new();
                    for header in key.value.map().into_iter().flatten() {
                        let value = self.value(&header.value)?;
                        headers.set(&header.key, value, None);
                    }
                    http.set("headers", Value::Object(headers), Some(&key.place()));
                }
                "status_code" => {
                    let value = match key.value.integer() {
                        Some(code) => Value::Number(code.to_string()),
                        None => self.value(&key.value)?,
                    };
                    http.set("status", Value::List(vec![value]), Some(&key.place()));
                }
                _ => self.inexact(key, "unknown key"),
            }
        }
        let http = if http.len() == 1 { url } else { Value::Object(http) };
        check.set("http", http, Some(&entry.place()));
        Ok(())
    }
}
