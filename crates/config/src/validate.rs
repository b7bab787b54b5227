//! Finds what is well-formed but can never work (C7).
//!
//! 3.8 starts such files without a message, so these are faults, not errors: `check` rejects them, the supervisor logs a
//! warning and starts.

mod cycles;
mod duplicate_names;
mod embedded_catalog;
mod events;
mod programs;
mod ttl;
mod waits;

pub(crate) use ttl::ttl_too_short;

use containerpilot_core::plan::Job;

use crate::diagnostics::{Place, Problem, Severity, is_reported};
use crate::fields::{ConfigFields, JobFields};
use crate::file_version::Version;
use crate::host::Host;
use crate::lower::Draft;
use waits::Names;

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
        checker.ttls();
    }
    checker.duplicate_names(fields);
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
}
