//! The paths of jobs that the host looks at, all together, so that file systems that do not answer take as long as
//! one (P15).

use containerpilot_core::inserted;
use containerpilot_core::plan::Job;

use super::processes::{directory, log_directory, log_file};
use super::programs::{UsedCommand, commands};
use super::secrets::secret_files;
use crate::diagnostics::{Problem, Severity};
use crate::fields::{ConfigFields, JobFields};
use crate::host::{Examined, PATIENCE, Paths};
use crate::limits;
use crate::lower::{Draft, NeededFile};

/// The paths of a configuration.
pub(crate) fn paths(fields: &ConfigFields, draft: &Draft, needed: &[NeededFile]) -> Paths {
    let jobs = fields.jobs.iter().flat_map(|given| &given.value);
    let pairs: Vec<(&JobFields, Option<&Job>)> = jobs.zip(draft.jobs.iter().map(Option::as_ref)).collect();
    let files = fields.files.iter().flat_map(|given| &given.value);
    // Beside `template`, `from` is an error.
    let templates = files.filter(|file| file.template.is_none()).filter_map(|file| file.from.as_ref());
    Paths {
        programs: inserted(commands(fields, &pairs).iter().filter_map(UsedCommand::known_program)),
        directories: inserted(
            pairs
                .iter()
                .filter(|(_, job)| job.is_some())
                .filter_map(|(fields, _)| directory(fields))
                .map(|given| given.value.clone())
                .chain(log_directory(fields).map(|(directory, _)| directory)),
        ),
        files: inserted(
            (needed.iter().map(|file| file.path.clone()))
                .chain(secret_files(fields).map(|given| given.value.clone())),
        ),
        templates: inserted(templates.map(|given| given.value.clone())),
        log_files: inserted(pairs.iter().filter_map(|pair| Some(log_file(pair.1?)?.path.clone()))),
    }
}

/// The message about a path without an answer.
pub(super) fn no_answer(what: &str) -> String {
    format!("{what} could not be examined within {}s", PATIENCE.as_secs())
}

/// Reports certificates and keys that cannot be read.
pub(crate) fn check_files(needed: &[NeededFile], examined: &Examined, problems: &mut Vec<Problem>) {
    for NeededFile { path, named } in needed {
        let (severity, message, help) = match examined.files.get(path) {
            Some(Ok(())) => continue,
            Some(Err(why)) => {
                let help = "check the path; the file must exist when containerpilot starts";
                (Severity::Error, format!("cannot read `{path}`: {why}"), help)
            }
            None => {
                let help = "check its file system; what needs the file will fail unless that answers then";
                (Severity::Warning, no_answer(&format!("`{path}`")), help)
            }
        };
        let known = |problem: &Problem| problem.place == named.ok() && problem.message == message;
        if problems.len() >= limits::PROBLEMS || problems.iter().any(known) {
            continue;
        }
        problems.push(match named {
            Ok(place) => Problem::new(severity, *place, message).help(help),
            Err(variable) => Problem::unlocated(severity, format!("{variable}: {message}")),
        });
    }
}
