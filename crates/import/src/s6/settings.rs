//! The small files of a service directory, and the file that a logger writes.

use std::time::Duration;

use super::importer::{Importer, Service, ServiceType};
use super::script::{self, Simple};
use crate::command_line::signal;
use crate::document::{Field, Fields, Value};
use crate::files::SourceLine;

/// What other functions read.
const READ: [&str; 15] = [
    "type",
    "run",
    "up",
    "finish",
    "log",
    "contents",
    "contents.d",
    "dependencies",
    "dependencies.d",
    "producer-for",
    "consumer-for",
    "pipeline-name",
    "timeout-finish",
    // The state of a service that ran here.
    "supervise",
    "event",
];

impl Importer<'_> {
    /// A time, with its line; `None` if it has no limit.
    pub(super) fn milliseconds(&mut self, service: &Service, file: &str) -> Option<(Duration, SourceLine)> {
        let (text, place) = self.value(service, file)?;
        match text.parse::<u64>().ok().filter(|number| *number < 1_000_000_000_000) {
            Some(0) => {
                self.document.not_needed(&place, "0 is no limit");
                None
            }
            Some(number) => Some((Duration::from_millis(number), place)),
            None => {
                self.document.inexact(&place, "this is not a number of milliseconds");
                None
            }
        }
    }

    /// The keys of the small files, and a list of those that become nothing.
    pub(super) fn settings(&mut self, service: &Service, fields: &mut Vec<Field>) {
        for file in service.files.iter().filter(|file| !READ.contains(&file.as_str())) {
            let place = self.place(&format!("{}/{file}", service.path));
            match (file.as_str(), service.kind) {
                (name, _) if name.starts_with('.') => {}
                ("data" | "env", ServiceType::Longrun) => {}
                ("data" | "env", _) => self.document.not_needed(&place, "s6-rc ignores it here"),
                ("down", ServiceType::Oneshot) => {}
                ("down", _) if service.is_down() => {}
                ("down", _) => self.document.not_needed(&place, "s6-rc ignores this file of a longrun"),
                ("timeout-down", ServiceType::Oneshot) if !service.files.contains("down") => {
                    self.document.not_needed(&place, "there is no `down`");
                }
                ("timeout-up" | "timeout-down", ServiceType::Oneshot) => {}
                ("flag-essential", _) => self.document.inexact(
                    &place,
                    "nothing protects a job: `containerpilot stop` stops every one, as `s6-rc -D` does",
                ),
                ("flag-recommended", _) => {
                    self.document.not_needed(&place, "it is only for repositories of services");
                }
                ("nosetsid", _) => self.document.inexact(&place, "every job leads its own process group"),
                ("flag-newpidns", _) => {
                    self.document.inexact(&place, "jobs share the PID namespace of the container");
                }
                ("flag-timeout-killpg", _) => {
                    self.document.not_needed(&place, "SIGKILL goes to all processes of a job");
                }
                ("lock-fd", _) => self.document.not_needed(&place, "a job never runs twice at the same time"),
                ("template" | "instance" | "instances", _) => {
                    self.document
                        .inexact(&place, "instances are not converted: write a job for each, or `replicas`");
                }
                _ => self.setting(service, file, &place, fields),
            }
        }
    }

    /// A file with a value.
    fn setting(&mut self, service: &Service, file: &str, place: &SourceLine, fields: &mut Vec<Field>) {
        let Some((value, place)) = self.value(service, file) else {
            self.document.inexact(place, "this is unknown in a service directory, or has no value");
            return;
        };
        match file {
            "notification-fd" => match value.parse::<u64>().ok().filter(|fd| (3..1024).contains(fd)) {
                Some(fd) => fields.set("ready", Value::Object(vec![Field::new("fd", fd)]), Some(&place)),
                None => self.document.inexact(&place, "the descriptor of `ready` is 3 to 1023"),
            },
            "down-signal" => match signal(&value) {
                Some(signal) => fields.set("stopSignal", signal, Some(&place)),
                None => self.document.inexact(&place, "this signal is unknown"),
            },
            "timeout-kill" => {
                if let Some((time, place)) = self.milliseconds(service, file) {
                    if time > self.stop_time {
                        self.stop_time = time;
                        self.document.top.set("stopTimeout", time, None);
                    }
                    fields.set("killAfter", time, Some(&place));
                }
            }
            "max-death-tally" => self
                .document
                .inexact(&place, "it only counts; `startLimit: { count, within }` ends a crash loop"),
            "timeout-up" | "timeout-down" => self.document.inexact(
                &place,
                "a start or stop by s6-rc has no timeout here; `killAfter` limits the stop of a job",
            ),
            _ => self.document.inexact(&place, "this file of a service directory is unknown"),
        }
    }

    /// Lists the files of a logger, which is not run.
    pub(super) fn unused_files(&mut self, path: &str) {
        for file in self.files.list(path).unwrap_or_default() {
            if !file.starts_with('.') && (file == "timeout-finish" || !READ.contains(&file.as_str())) {
                let place = self.place(&format!("{path}/{file}"));
                self.document.not_needed(&place, "this logger is not run");
            }
        }
    }
}

/// The file of `s6-log`, if it does nothing but write one.
pub(super) fn log_file(simple: &Simple) -> Option<Vec<Field>> {
    let (program, mut words) = simple.words.split_first()?;
    let (mut keep, mut size, mut directory) = (10_u64, 99_999_u64, None);
    match script::base(program) {
        "logutil-service" => (keep, size) = (20, 1_000_000),
        "s6-log" => {}
        _ => return None,
    }
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        let number = |from: &str| word.strip_prefix(from).and_then(|digits| digits.parse::<u64>().ok());
        match word.as_str() {
            "-b" | "-v" | "-q" | "-p" | "-t" | "-e" | "--" | "T" | "t" => {}
            "-d" | "-l" => words = words.get(1..)?,
            path if path.starts_with('/') && directory.is_none() => directory = Some(path.to_owned()),
            _ => match (number("n"), number("s"), number("S")) {
                (Some(number), _, _) => keep = number,
                (_, Some(number), _) => size = number,
                (_, _, Some(_)) => {}
                _ => return None,
            },
        }
    }
    let file = format!("{}/current", directory?.trim_end_matches('/'));
    let size = size.clamp(4096, 1 << 30);
    Some(vec![Field::new("file", file), Field::new("maxSize", size), Field::new("keep", keep.min(1000))])
}
