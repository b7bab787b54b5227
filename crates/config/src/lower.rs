//! From fields to a plan: defaults that depend on other fields, and everything that must hold between them.

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

/// The longest path that fits into a socket's address.
const LONGEST_SOCKET: usize = 107;
/// The path of the control socket where a configuration does not say.
pub(crate) const SOCKET_VARIABLE: &str = "CONTAINERPILOT_SOCKET";

/// What lowering needs to know, and where it says what it found.
pub(crate) struct Lower<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) version: &'a str,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Lower<'_> {
    pub(crate) fn say(&mut self, severity: Severity, place: Place, message: impl Into<String>, help: &str) {
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let problem = Problem::new(severity, place, message);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        self.say(Severity::Error, place, message, help);
    }

    /// Everything a configuration asks for, with a hole wherever a problem was found.
    pub(crate) fn draft(&mut self, fields: &ConfigFields) -> Draft {
        let jobs = fields.jobs.iter().flat_map(|jobs| &jobs.value);
        let mut jobs: Vec<_> = jobs.map(|job| self.job(job)).collect();
        settle_sources(&mut jobs, fields);
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
                "the control socket's `mode` does not let its `group` write, so `group` changes nothing";
            self.say(Severity::Warning, group.key, message, "add mode: \"0660\"");
        }
        let (socket, required) = socket?;
        Some(Control { socket, required, mode, group: group? })
    }

    /// The path of the control socket, and whether somebody has asked for it.
    fn socket(&mut self, given: &Spanned<String>) -> Option<(String, bool)> {
        let variable = self.host.variable(SOCKET_VARIABLE).filter(|_| !given.written);
        let from_variable = variable.is_some();
        let socket = variable.unwrap_or_else(|| given.value.clone());
        let length = socket.len();
        if length <= LONGEST_SOCKET {
            return Some((socket, given.written || from_variable));
        }
        let message =
            format!("the path of the control socket has {length} bytes, more than {LONGEST_SOCKET}");
        let help = "the system takes no longer path for a socket";
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
            let message = "a negative `stopTimeout` kills everything at once";
            self.say(Severity::Warning, given.place, message, "write how long a shutdown may take");
        }
        Some(to_duration(given.value))
    }

    /// A coprocess is a job with a role of its own: everything that is known about starting, restarting and stopping a
    /// process holds for it too (C6).
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

    /// Says that a key is missing, unless a wrong one has been complained about already.
    pub(crate) fn required(&mut self, info: &SectionInfo, section: Place, at: Place, key: &str) {
        if !self.is_reported(section, key) {
            let (message, help) = info.missing(key);
            self.error(at, message, &help);
        }
    }

    /// Whether an error inside a section speaks of a key already, so that nothing more need be said of it: the
    /// key itself was wrong, or an unknown one was probably meant to be it.
    pub(crate) fn is_reported(&self, section: Place, key: &str) -> bool {
        is_reported(self.problems, Some(section), key)
    }

    /// The address of a service: the first match of its `interfaces` (D6).
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
            let there = interfaces::inventory(self.host.addresses());
            let help = if there.is_empty() {
                "this host has no network address; write for example interfaces: \"static:10.0.0.5\""
                    .to_owned()
            } else {
                format!("this host has: {there}")
            };
            self.error(place, "none of the `interfaces` has an address on this host", &help);
        }
        chosen
    }
}

/// A plan in the making.
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
    /// The plan, if nothing is missing in it.
    pub(crate) fn finish(self, toggle_maintenance: bool) -> Option<Plan> {
        // Coprocesses come first, as they do when things are started.
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

/// A source that names no job but a watch means the watch (E1).
fn settle_sources(jobs: &mut [Option<Job>], fields: &ConfigFields) {
    let named: BTreeSet<String> = jobs.iter().flatten().map(|job| job.name.clone()).collect();
    let watches = fields.watches.iter().flat_map(|given| &given.value);
    let watched: BTreeSet<&String> =
        watches.filter_map(|watch| watch.name.as_ref()).map(|given| &given.value).collect();
    let settle = |event: &mut EventPattern| {
        if let Source::Job(name) = &mut event.source
            && !named.contains(name)
            && watched.contains(name)
        {
            event.source = Source::Watch(std::mem::take(name));
        }
    };
    for job in jobs.iter_mut().flatten() {
        match &mut job.when.trigger {
            Trigger::Event { event, .. } => settle(event),
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => {
                conditions.iter_mut().for_each(settle)
            }
            Trigger::Interval(_) | Trigger::Never => {}
        }
    }
}

/// The place of a part of a text. With escapes in it nothing is known but the place of the whole.
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
