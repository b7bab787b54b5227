//! The health check of a service.

use std::time::Duration;

use super::keys::{HealthTest, duration, health_test};
use super::service::{Converter, WRITE_THE_VALUE, pieces, text};
use crate::command_line;
use crate::document::{Field, Fields, Value};
use crate::error::ImportError;
use crate::variables::{self, Piece};
use crate::yaml::{YamlEntry, YamlNode};

const NO_CHECKS: &str = "a job has no other checks than those of its configuration";
const IMAGE: &str = "the check of its image is not known: write `test`";

impl Converter<'_> {
    pub(super) fn health(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let Some(map) = entry.value.map() else {
            return Err(entry.error("`healthcheck` takes a mapping"));
        };
        let line = |node: &YamlNode| -> Result<Value, ImportError> {
            let pieces = pieces(node)?;
            Ok(match pieces.as_slice() {
                [Piece::Literal(line)] => command_line::shell(line),
                _ => Value::List(vec!["sh".into(), "-c".into(), variables::value(pieces)]),
            })
        };
        let (test, exec) = match health_test(map) {
            HealthTest::OfImage => {
                self.inexact(entry, IMAGE);
                return Ok(());
            }
            HealthTest::Disabled(by) => {
                self.document.not_needed(&by.place(), NO_CHECKS);
                return Ok(());
            }
            HealthTest::Words(test, words) => {
                (test, Value::List(words.iter().map(text).collect::<Result<_, _>>()?))
            }
            HealthTest::Line(test, command) => (test, line(command)?),
            HealthTest::Invalid(test) => {
                return Err(test.error("a test is NONE, [CMD, PROGRAM, …] or [CMD-SHELL, LINE]"));
            }
        };
        let mut health = Vec::new();
        health.set("exec", exec, Some(&test.place()));
        let mut interval = Duration::from_secs(30);
        let mut timeout = None;
        let mut failures = Field::new("failures", 3);
        for key in map {
            let given = duration(&key.value);
            match (key.key.as_str(), given) {
                ("test" | "disable", _) => {}
                ("start_interval", _) => self.document.not_needed(
                    &key.place(),
                    "until the first success, checks follow after 100 ms, 200 ms, 400 ms and so on",
                ),
                ("interval", Some(given)) if !given.is_zero() => interval = given,
                ("timeout", Some(given)) if !given.is_zero() => {
                    timeout = Some(given);
                    health.set("timeout", given, Some(&key.place()));
                }
                ("start_period", Some(given)) if !given.is_zero() => {
                    health.set("startPeriod", given, Some(&key.place()));
                }
                ("retries", _) => match key.value.integer().and_then(|n| u64::try_from(n).ok()) {
                    Some(n) => {
                        failures.from = Some(key.place());
                        match n {
                            0 => failures.note = Some("0 means the default of 3.".to_owned()),
                            _ => failures.value = n.into(),
                        }
                    }
                    None => self.inexact(key, WRITE_THE_VALUE),
                },
                ("interval", Some(_)) => {}
                ("timeout", Some(_)) => {
                    self.document.not_needed(&key.place(), "0 means the default of 30 s");
                }
                ("start_period", Some(_)) => self.document.not_needed(&key.place(), "this is the default"),
                ("interval" | "timeout" | "start_period", None) => {
                    self.inexact(key, "write a duration such as `30s`");
                }
                (key_name, _) if key_name.starts_with("x-") => {}
                _ => self.inexact(key, "unknown key"),
            }
        }
        let from = map.entry("interval").map(YamlEntry::place);
        health.set("interval", interval, from.as_ref());
        health.set("ttl", interval.saturating_mul(3), from.as_ref());
        if timeout.is_none() && interval < Duration::from_secs(30) {
            health.set("timeout", "30s", None);
        }
        health.push(failures);
        self.fields.set("health", Value::Object(health), Some(&entry.place()));
        Ok(())
    }
}
