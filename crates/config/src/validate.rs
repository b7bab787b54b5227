//! Finds what is well-formed but can never work, or not as intended (C7).
//!
//! 3.8 starts such files without a message, so what can never work is a fault, not an error: `check` rejects it, and the
//! supervisor logs a warning and starts. For keys that 3.8 does not have, such as the target of an action, it is an error.
//! A file that works as written gets only warnings, which `check --strict` rejects (C9).

mod actions;
mod cycles;
mod duplicate_names;
mod embedded_catalog;
mod events;
mod examined;
mod locks;
mod no_effect;
mod processes;
mod programs;
mod requires;
mod restart_policy;
mod secrets;
mod shell_words;
mod ttl;
mod waits;

pub(crate) use examined::{check_files, paths};
pub(crate) use ttl::ttl_too_short;

use containerpilot_core::plan::{Job, Signal};

use crate::diagnostics::{Place, Problem, Severity, is_reported};
use crate::fields::{ConfigFields, JobFields};
use crate::file_version::Version;
use crate::host::{Examined, Host};
use crate::lower::Draft;
use waits::Names;

/// Checks a configuration and reports problems.
pub(crate) fn check(
    fields: &ConfigFields,
    draft: &Draft,
    host: &dyn Host,
    examined: &Examined,
    version: Version,
    problems: &mut Vec<Problem>,
) {
    let jobs = fields.jobs.as_ref().map(|given| given.value.as_slice()).unwrap_or_default();
    let drafts = draft.jobs.iter().map(Option::as_ref);
    let pairs: Vec<(&JobFields, Option<&Job>)> = jobs.iter().zip(drafts).collect();
    // An unknown key beside `jobs` was not meant to be `jobs`.
    let sections = [
        ("jobs", fields.jobs.is_some()),
        ("watches", fields.watches.is_some()),
        ("files", fields.files.is_some()),
        ("locks", fields.locks.is_some()),
    ];
    let lost = |(key, given): (&str, bool)| {
        let quoted = format!("`{key}`");
        let is_about = |problem: &Problem| is_error(problem) && problem.message.contains(&quoted);
        if given { problems.iter().any(is_about) } else { is_reported(problems, None, key) }
    };
    let names_incomplete = is_reported(problems, None, "name") || sections.into_iter().any(lost);
    let mut checker = Checker {
        host,
        examined,
        problems,
        names: Names::new(fields),
        names_incomplete,
        pairs,
        stop_on: draft.stop_on(),
    };
    checker.events();
    checker.required_names();
    checker.cycles();
    checker.actions();
    checker.stop_rings();
    // The keys of a version 2 file have other names and have been checked already.
    if version == Version::Three {
        checker.ttls();
    }
    checker.duplicate_names(fields);
    checker.reserved_names(fields);
    checker.no_effect();
    checker.long_drains(draft);
    checker.restart_policy();
    checker.long_stops(draft);
    checker.shell_words(fields);
    checker.programs(fields);
    checker.processes();
    checker.log(fields);
    checker.secret_files(fields);
    checker.secrets(fields);
    checker.embedded_catalog(fields, draft);
}

pub(crate) use locks::check_locks;

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

struct Checker<'a> {
    host: &'a dyn Host,
    examined: &'a Examined,
    problems: &'a mut Vec<Problem>,
    names: Names,
    /// A name could not be decoded, so an unknown name may be that one.
    names_incomplete: bool,
    pairs: Vec<(&'a JobFields, Option<&'a Job>)>,
    stop_on: &'a [Signal],
}

impl Checker<'_> {
    fn report(&mut self, severity: Severity, place: Place, message: String, help: impl Into<String>) {
        // Every job with the same default has the same problem.
        let known = |problem: &Problem| problem.place == Some(place) && problem.message == message;
        if self.problems.len() < crate::limits::PROBLEMS && !self.problems.iter().any(known) {
            self.problems.push(Problem::new(severity, place, message).help(help));
        }
    }

    fn fault(&mut self, place: Place, message: String, help: impl Into<String>) {
        self.report(Severity::Fault, place, message, help);
    }
}
