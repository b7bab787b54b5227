//! From fields to a plan: defaults that depend on other fields, and requirements between fields.

mod catalog;
mod health;
mod job;
mod telemetry;
mod when;

pub(crate) use when::source_named;

use std::net::IpAddr;
use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, Control, EventPattern, Job, Logging, Plan, Repeat, Role, Telemetry, Trigger, Watch,
};
use std::collections::BTreeSet;

use crate::command::joined;
use crate::decode::{DecodeContext, Section, SectionInfo, Spanned};
use crate::diagnostics::{Place, Problem, Severity, is_reported};
use crate::fields::{ConfigFields, CoprocessFields, JobFields};
use crate::host::Host;
use crate::interfaces::{self, InterfaceSpec};
use crate::limits;
use crate::names::PRE_START;
use crate::span::Span;
use crate::values::{to_duration, value_of};

/// The longest path of a unix socket, in bytes.
const MAX_SOCKET_PATH: usize = 107;
/// The environment variable with the path of the control socket, if the configuration has none.
pub(crate) const SOCKET_VARIABLE: &str = "CONTAINERPILOT_SOCKET";

/// The state of lowering one configuration.
pub(crate) struct Lower<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) version: &'a str,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Lower<'_> {
    pub(crate) fn report(
        &mut self,
        severity: Severity,
        place: Place,
        message: impl Into<String>,
        help: &str,
    ) {
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let problem = Problem::new(severity, place, message);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        self.report(Severity::Error, place, message, help);
    }

    /// Lowers all fields. A part with errors is `None`.
    pub(crate) fn draft(&mut self, fields: &ConfigFields) -> Draft {
        let jobs = fields.jobs.iter().flat_map(|jobs| &jobs.value);
        let mut jobs: Vec<_> = jobs.map(|job| self.job(job)).collect();
        resolve_sources(&mut jobs, fields);
        let watches = fields.watches.iter().flat_map(|watches| &watches.value);
        let coprocesses = fields.coprocesses.iter().flat_map(|list| &list.value);
        let pre_start = jobs.iter().flatten().any(|job| job.name == PRE_START);
        Draft {
            jobs,
            watches: watches.map(|watch| self.watch(watch)).collect(),
            coprocesses: coprocesses.map(|one| self.coprocess(one, pre_start)).collect(),
            catalog: self.catalog(fields.consul.as_ref()),
            control: self.control(fields),
            logging: logging(fields),
            telemetry: fields.telemetry.as_ref().map(|given| self.telemetry(&given.value)),
            stop_timeout: self.stop_timeout(fields),
        }
    }

    fn control(&mut self, fields: &ConfigFields) -> Option<Control> {
        let section = &fields.control.as_ref()?.value;
        let group = self.account(section.group.as_ref(), "group", |host, name| host.has_group(name));
        let socket = section.socket.as_ref().and_then(|given| self.socket(given));
        let mode = value_of(&section.mode)?;
        if let Some(group) = &section.group
            && mode & 0o020 == 0
        {
            let message =
                "`mode` does not give `group` write access to the control socket, so `group` has no effect";
            self.report(Severity::Warning, group.key, message, "add mode: \"0660\"");
        }
        let (socket, required) = socket?;
        Some(Control { socket, required, mode, group: group? })
    }

    /// The path of the control socket, and whether it was set explicitly.
    fn socket(&mut self, given: &Spanned<String>) -> Option<(String, bool)> {
        let variable = self.host.variable(SOCKET_VARIABLE).filter(|_| !given.written);
        let from_variable = variable.is_some();
        let socket = variable.unwrap_or_else(|| given.value.clone());
        let length = socket.len();
        if length <= MAX_SOCKET_PATH {
            return Some((socket, given.written || from_variable));
        }
        let message =
            format!("the path of the control socket has {length} bytes; the maximum is {MAX_SOCKET_PATH}");
        let help = "use a shorter path: the operating system limits the path of a socket";
        if from_variable {
            let message = format!("{SOCKET_VARIABLE}: {message}");
            self.problems.push(Problem::unlocated(Severity::Error, message).help(help));
        } else {
            self.error(given.place, message, help);
        }
        None
    }

    fn stop_timeout(&mut self, fields: &ConfigFields) -> Option<Duration> {
        let given = fields.stop_timeout.as_ref()?;
        if given.value < 0 {
            let message = "a negative `stopTimeout` sends SIGKILL to all jobs at once";
            self.report(Severity::Warning, given.place, message, "write a positive duration");
        }
        Some(to_duration(given.value))
    }

    /// Lowers a coprocess to a job with its own role, so that the rules of starting, restarting and stopping apply to it (C6).
    fn coprocess(&mut self, fields: &CoprocessFields, pre_start: bool) -> Option<Job> {
        let Some(command) = &fields.command else {
            self.required(&CoprocessFields::INFO, fields.place, fields.place.first_byte(), "command");
            return None;
        };
        let mut plain = JobFields::from_members(
            &mut DecodeContext::new(fields.place.file, self.problems),
            fields.place.span,
            &[],
        );
        plain.name = Some(fields.name.clone().unwrap_or_else(|| Spanned {
            value: joined(&command.value),
            place: command.place,
            key: command.key,
            written: false,
        }));
        plain.exec = Some(command.clone());
        plain.restarts = fields.restarts.clone();
        let mut job = self.job(&plain)?;
        job.role = Role::Coprocess;
        if pre_start {
            let exit = |code| EventPattern { source: Source::Job(PRE_START.to_owned()), code };
            let conditions = vec![exit(Code::ExitSuccess), exit(Code::ExitFailed)];
            job.when.trigger = Trigger::Any { conditions, repeat: Repeat::Once };
        }
        Some(job)
    }

    /// Reports a missing key, unless an error already mentions it.
    pub(crate) fn required(&mut self, info: &SectionInfo, section: Place, at: Place, key: &str) {
        if !self.is_reported(section, key) {
            let (message, help) = info.missing(key);
            self.error(at, message, &help);
        }
    }

    /// Returns true if an error in a section already mentions a key.
    pub(crate) fn is_reported(&self, section: Place, key: &str) -> bool {
        is_reported(self.problems, Some(section), key)
    }

    /// The address of a service: the first match of `interfaces` (D6).
    pub(crate) fn address(&mut self, given: Option<&Spanned<Vec<Spanned<String>>>>) -> Option<IpAddr> {
        let given = given?;
        let mut specs = Vec::new();
        for one in &given.value {
            match InterfaceSpec::parse(&one.value) {
                Ok(spec) => specs.push(spec),
                Err(error) => {
                    self.error(part(one, &error.place), error.to_string(), &error.help);
                    return None;
                }
            }
        }
        let chosen = interfaces::choose(&specs, self.host.addresses());
        if chosen.is_none() {
            let place = if given.written { given.place } else { given.place.first_byte() };
            let there = interfaces::summary(self.host.addresses());
            let help = if there.is_empty() {
                "this host has no network address; for example: interfaces: \"static:10.0.0.5\"".to_owned()
            } else {
                format!("the addresses of this host: {there}")
            };
            self.error(place, "no address of this host matches `interfaces`", &help);
        }
        chosen
    }
}

/// A plan with missing parts where there are errors.
pub(crate) struct Draft {
    pub(crate) jobs: Vec<Option<Job>>,
    watches: Vec<Option<Watch>>,
    coprocesses: Vec<Option<Job>>,
    catalog: Option<Catalog>,
    control: Option<Control>,
    logging: Option<Logging>,
    telemetry: Option<Option<(Telemetry, Vec<Job>)>>,
    stop_timeout: Option<Duration>,
}

impl Draft {
    /// The plan, if it is complete.
    pub(crate) fn finish(self, toggle_maintenance: bool) -> Option<Plan> {
        // Coprocesses start first.
        let mut jobs = self.coprocesses.into_iter().chain(self.jobs).collect::<Option<Vec<Job>>>()?;
        let telemetry = match self.telemetry {
            None => None,
            Some(drafted) => {
                let (telemetry, served) = drafted?;
                jobs.extend(served);
                Some(telemetry)
            }
        };
        Some(Plan {
            jobs,
            watches: self.watches.into_iter().collect::<Option<_>>()?,
            catalog: self.catalog?,
            control: self.control?,
            logging: self.logging?,
            telemetry,
            stop_timeout: self.stop_timeout?,
            pass_signals: false,
            toggle_maintenance,
        })
    }
}

/// Resolves a source that is the name of a watch but not of a job to the watch (E1).
fn resolve_sources(jobs: &mut [Option<Job>], fields: &ConfigFields) {
    let named: BTreeSet<String> = jobs.iter().flatten().map(|job| job.name.clone()).collect();
    let watches = fields.watches.iter().flat_map(|given| &given.value);
    let watched: BTreeSet<&String> =
        watches.filter_map(|watch| watch.name.as_ref()).map(|given| &given.value).collect();
    let resolve = |event: &mut EventPattern| {
        if let Source::Job(name) = &mut event.source
            && !named.contains(name)
            && watched.contains(name)
        {
            event.source = Source::Watch(std::mem::take(name));
        }
    };
    for job in jobs.iter_mut().flatten() {
        match &mut job.when.trigger {
            Trigger::Event { event, .. } => resolve(event),
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => {
                conditions.iter_mut().for_each(resolve)
            }
            Trigger::Interval(_) | Trigger::Never => {}
        }
    }
}

/// The place of a part of a string. If the string has escapes, only the place of the whole is known.
fn part(given: &Spanned<String>, range: &std::ops::Range<usize>) -> Place {
    let whole = given.place.span;
    if whole.range().len() != given.value.len() + 2 {
        return given.place;
    }
    let start = whole.start as usize + 1;
    Place { span: Span::new(start + range.start, start + range.end), ..given.place }
}

fn logging(fields: &ConfigFields) -> Option<Logging> {
    let section = &fields.logging.as_ref()?.value;
    let (level, format, output) =
        (value_of(&section.level)?, value_of(&section.format)?, value_of(&section.output)?);
    Some(Logging { level, format, output })
}
