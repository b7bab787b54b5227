//! Readiness: H11 and H12.

use std::time::Duration;

use containerpilot_core::plan::{Check, Health, Probe, Ready};

use super::output::is_raw;
use super::{Lower, defaults};
use crate::decode::{Section, Spanned};
use crate::fields::{JobFields, ReadyFields};
use crate::limits::SHORTEST_TIME;
use crate::values::{Either, to_duration};

impl Lower<'_> {
    /// How a job reports that it is ready. `None` after an error.
    pub(super) fn ready(&mut self, fields: &JobFields) -> Option<Option<Ready>> {
        let watchdog = self.watchdog(fields);
        let Some(given) = &fields.ready else {
            return if self.is_reported(fields.place, "ready") { None } else { watchdog.map(|_| None) };
        };
        if fields.exec.is_none() && !self.is_reported(fields.place, "exec") {
            let message = "`ready` needs `exec`: without a process, there is nothing that can be ready";
            self.error(given.key, message, "remove it, and use `health`");
            return None;
        }
        match &given.value {
            Either::Text(text) if text == "notify" => Some(Some(Ready::Notify { watchdog: watchdog? })),
            Either::Text(text) => {
                let message = format!("`ready` must be \"notify\" or an object, not \"{text}\"");
                self.error(
                    given.place,
                    message,
                    "for example: \"notify\", { fd: 3 } or { line: \"listening\" }",
                );
                None
            }
            Either::Object(section) => {
                let ready = self.ready_by(fields, section);
                watchdog.and(ready).map(Some)
            }
        }
    }

    /// `{ fd: 3 }` or `{ line: "regex" }`.
    fn ready_by(&mut self, job: &JobFields, fields: &ReadyFields) -> Option<Ready> {
        match (&fields.fd, &fields.line) {
            (Some(fd), None) => u16::try_from(fd.value).ok().map(Ready::Descriptor),
            (None, Some(line)) => self.ready_line(job, line),
            (Some(_), Some(line)) => {
                self.error(line.key, "`ready` can have only one of `fd` and `line`", "remove one of them");
                None
            }
            (None, None) => {
                let wrong = ["fd", "line"].into_iter().any(|key| self.is_reported(fields.place, key));
                if !wrong {
                    let message = format!("{} needs `fd` or `line`", ReadyFields::INFO.name);
                    self.error(fields.place, message, "for example: { fd: 3 } or { line: \"listening\" }");
                }
                None
            }
        }
    }

    fn ready_line(&mut self, job: &JobFields, line: &Spanned<String>) -> Option<Ready> {
        if is_raw(&job.logging) {
            let message =
                "`ready.line` cannot be combined with `logging.raw`: the supervisor does not see the output";
            self.error(line.key, message, "remove `raw`, or use ready: \"notify\" or { fd: 3 }");
            return None;
        }
        if line.value.is_empty() {
            self.error(line.place, "`line` is empty", "write a part of the line, such as \"listening on\"");
            return None;
        }
        self.pattern("line", line).map(Ready::Line)
    }

    /// H12: only `notify` has a message for it.
    fn watchdog(&mut self, fields: &JobFields) -> Option<Option<Duration>> {
        let Some(given) = &fields.watchdog else { return Some(None) };
        let notifies =
            matches!(&fields.ready, Some(Spanned { value: Either::Text(text), .. }) if text == "notify");
        if !notifies && !self.is_reported(fields.place, "ready") {
            let message = "`watchdog` needs `ready: \"notify\"`";
            self.error(given.key, message, "the process sends WATCHDOG=1 to the same socket as READY=1");
            return None;
        }
        if given.value < SHORTEST_TIME {
            self.error(given.place, "`watchdog` must be at least 1ms", "remove it for no watchdog");
            return None;
        }
        Some(Some(to_duration(given.value)))
    }

    /// The health of a job with `ready`: one of its checks passes while the process is ready. That is its first check
    /// without `exec`, `http` and `tcp`, and otherwise one more.
    pub(super) fn with_readiness(
        &self,
        job: Option<&str>,
        ready: Option<&Option<Ready>>,
        health: Option<Option<Health>>,
    ) -> Option<Option<Health>> {
        let (Some(job), Some(Some(_))) = (job, ready) else { return health };
        let mut health = health?.unwrap_or_else(defaults::health_of_ready);
        if let Some(check) = health.checks.iter_mut().find(|check| check.probe == Probe::Running) {
            check.probe = Probe::Ready;
        } else {
            let interval = defaults::ready_interval(&health.checks);
            health.checks.push(Check {
                name: format!("ready.{job}"),
                probe: Probe::Ready,
                interval,
                timeout: defaults::check_timeout(interval),
                failures: 1,
                successes: 1,
                start_period: Duration::ZERO,
                raw_output: false,
            });
        }
        Some(Some(health))
    }
}
