//! Finds what is well-formed but can never work (C7).
//!
//! 3.8 starts such files without a message, so these are faults, not errors: `check` rejects them, the supervisor logs a
//! warning and starts.

mod cycles;
mod events;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use containerpilot_core::plan::{Command, Job};

use crate::decode::Spanned;
use crate::diagnostics::{Place, Problem, Severity, is_reported};
use crate::fields::{ConfigFields, JobFields};
use crate::host::{Host, ProgramState};
use crate::legacy::Version;
use crate::lower::Draft;
use waits::{Names, coprocess_name, name_of};

/// Checks a configuration and reports problems.
pub(crate) fn check(
    fields: &ConfigFields,
    draft: &Draft,
    host: &dyn Host,
    version: Version,
    problems: &mut Vec<Problem>,
) {
    let jobs = fields.jobs.as_ref().map(|given| given.value.as_slice()).unwrap_or_default();
    let drafts = draft.jobs.iter().map(Option::as_ref);
    let pairs: Vec<(&JobFields, Option<&Job>)> = jobs.iter().zip(drafts).collect();
    let names_incomplete = ["name", "jobs", "watches"].iter().any(|key| is_reported(problems, None, key));
    let mut checker = Checker { host, problems, names: Names::new(fields), names_incomplete, pairs };
    checker.events();
    checker.cycles();
    // The keys of a version 2 file have other names and have been checked already.
    if version == Version::Three {
        checker.times();
    }
    checker.duplicates(fields);
    checker.programs(fields);
    checker.embedded_catalog(fields);
}

struct Checker<'a> {
    host: &'a dyn Host,
    problems: &'a mut Vec<Problem>,
    names: Names,
    /// A name could not be decoded, so an unknown name may be that one.
    names_incomplete: bool,
    pairs: Vec<(&'a JobFields, Option<&'a Job>)>,
}

impl Checker<'_> {
    fn report(&mut self, severity: Severity, place: Place, message: String, help: impl Into<String>) {
        if self.problems.len() < crate::limits::PROBLEMS {
            self.problems.push(Problem::new(severity, place, message).help(help));
        }
    }

    fn fault(&mut self, place: Place, message: String, help: impl Into<String>) {
        self.report(Severity::Fault, place, message, help);
    }

    /// Reports a TTL that expires before the next heartbeat.
    fn times(&mut self) {
        for (fields, _) in self.pairs.clone() {
            for check in fields.health.iter().flat_map(|given| &given.value.items) {
                let (Some(ttl), Some(interval)) = (&check.ttl, &check.interval) else { continue };
                let (period, key) = match &check.heartbeat {
                    Some(heartbeat) => (heartbeat.value, "heartbeat"),
                    None => (interval.value, "interval"),
                };
                if ttl.value > 0 && period > 0 && ttl.value <= period {
                    let message = format!("`ttl` must be longer than `{key}`");
                    let help = "otherwise the service turns critical between two heartbeats; two or three times as long is \
                                usual";
                    self.fault(ttl.place, message, help);
                }
            }
        }
    }

    /// Reports names that are used twice.
    fn duplicates(&mut self, fields: &ConfigFields) {
        let advertised = |job: &JobFields| job.port.as_ref().is_some_and(|port| port.value != 0);
        let given = self.pairs.iter().rev().filter(|(job, _)| job.name.is_some());
        let first: BTreeMap<&str, &JobFields> =
            given.filter_map(|(job, _)| Some((name_of(job)?, *job))).collect();
        for (job, _) in self.pairs.clone() {
            let (Some(name), Some(place)) = (name_of(job), job.name.as_ref().map(|given| given.place)) else {
                continue;
            };
            let Some(other) = first.get(name).filter(|first| !std::ptr::eq(**first, job)) else { continue };
            if advertised(job) && advertised(other) {
                let message = format!("two jobs with a `port` are named `{name}`");
                self.fault(
                    place,
                    message,
                    "they would overwrite each other in the catalog: rename one of them",
                );
            } else {
                let message = format!("two jobs are named `{name}`");
                self.report(
                    Severity::Warning,
                    place,
                    message,
                    "a job that waits for one of them cannot tell them apart",
                );
            }
        }
        for one in fields.coprocesses.iter().flat_map(|given| &given.value) {
            if let Some(name) = coprocess_name(one).filter(|name| first.contains_key(name.as_str())) {
                let place = one.name.as_ref().map_or(one.place.first_byte(), |given| given.place);
                let message = format!("a job and a coprocess are both named `{name}`");
                let help = "a job that waits for one of them cannot tell them apart";
                self.report(Severity::Warning, place, message, help);
            }
        }
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches: Vec<&Spanned<String>> = watches.filter_map(|watch| watch.name.as_ref()).collect();
        let first: BTreeMap<&str, &Spanned<String>> =
            watches.iter().rev().map(|name| (name.value.as_str(), *name)).collect();
        for name in watches {
            if first.get(name.value.as_str()).is_some_and(|first| !std::ptr::eq(*first, name)) {
                let message = format!("two watches are named `{}`", name.value);
                self.report(
                    Severity::Warning,
                    name.place,
                    message,
                    "a job that waits for one of them cannot tell them apart",
                );
            }
        }
    }

    /// Warns about programs that do not exist or are not executable.
    fn programs(&mut self, fields: &ConfigFields) {
        let mut commands: Vec<(&Spanned<Command>, bool)> = Vec::new();
        for (job, _) in &self.pairs {
            // With its own `cwd` or PATH, the program can only be found when it is started.
            let elsewhere =
                job.cwd.is_some() || job.env.as_ref().is_some_and(|env| env.value.contains_key("PATH"));
            let checks = job
                .health
                .iter()
                .flat_map(|given| &given.value.items)
                .filter_map(|check| check.exec.as_ref());
            commands.extend(job.exec.iter().chain(checks).map(|command| (command, elsewhere)));
        }
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value);
        commands.extend(coprocesses.filter_map(|one| one.command.as_ref()).map(|command| (command, false)));
        let metrics = fields.telemetry.iter().flat_map(|given| &given.value.metrics);
        let metrics = metrics.flat_map(|given| &given.value).filter_map(|metric| metric.exec.as_ref());
        commands.extend(metrics.map(|command| (command, false)));
        commands.retain(|(command, elsewhere)| !elsewhere || Path::new(&command.value.program).is_absolute());
        // Each program is searched once.
        let programs: BTreeSet<&str> =
            commands.iter().map(|(command, _)| command.value.program.as_str()).collect();
        let states: BTreeMap<&str, ProgramState> =
            programs.into_iter().map(|program| (program, self.host.program(program))).collect();
        for (command, _) in commands {
            let program = &command.value.program;
            let Some(state) = states.get(program.as_str()).copied() else { continue };
            let (message, help) = match (state, program.contains('/')) {
                (ProgramState::Runnable, _) => continue,
                (ProgramState::Missing, true) => {
                    (format!("program `{program}` not found"), "the job will fail unless it exists by then")
                }
                (ProgramState::Missing, false) => (
                    format!("program `{program}` not found in PATH"),
                    "the job will fail unless it exists by then",
                ),
                (ProgramState::NotExecutable, _) => (
                    format!("`{program}` is not executable"),
                    "make it executable, for example with chmod +x",
                ),
            };
            self.report(Severity::Warning, command.place, message, help);
        }
    }

    /// Warns about services that cannot be found from outside (D2).
    fn embedded_catalog(&mut self, fields: &ConfigFields) {
        if fields.consul.is_some() {
            return;
        }
        let ports = self.pairs.iter().filter_map(|(job, _)| job.port.as_ref());
        if let Some(place) = ports.filter(|port| port.value != 0).map(|port| port.key).next() {
            let message = "without `consul`, services can be found only inside this container".to_owned();
            self.report(
                Severity::Warning,
                place,
                message,
                "add consul: \"localhost:8500\" to advertise them",
            );
        }
    }
}
