//! `migrate`: converts a ContainerPilot 2 file to version 3, and checks that both have the same plan.

use std::fmt::Write;

use crate::columns;
use crate::diagnostics::{Problem, Report, Severity};
use crate::file_version::Version;
use crate::host::Host;
use crate::json5::write::comment;
use crate::legacy::print::Printer;
use crate::legacy::{MainProgram, as_version_3};
use crate::load::{self, ConfigFile, Options};

/// The columns of a note, without the start of its lines.
const MAX_NOTE: usize = 105;

/// Why a file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The file has errors.
    #[error("the file has errors")]
    Invalid(Report),
    /// The file is already a version 3 file.
    #[error("the file is already a version 3 file")]
    NotLegacy,
}

/// A converted file.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// The new file.
    pub text: String,
    /// The differences from version 2, which the new file lists too.
    pub notes: Vec<String>,
}

/// Converts a version 2 file to version 3. The words of the main program, `program`, become a job of the new file.
///
/// The new file is loaded and its plan compared with that of the old file. If they differ because of template actions, the file
/// is printed again with the current values of the actions.
///
/// # Errors
/// If the file has errors, or is not a version 2 file.
pub fn migrate(
    input: ConfigFile,
    host: &dyn Host,
    options: Options<'_>,
    program: Option<&[String]>,
) -> Result<Migrated, MigrateError> {
    let name = input.name.clone();
    let mut problems = Vec::new();
    let main = program.map(|words| MainProgram { words, host });
    let mut decoded = load::decode_files(vec![input], host.environment(), main, &mut problems);
    if decoded.version == Version::Three && decoded.well_formed {
        return Err(MigrateError::NotLegacy);
    }
    let old = load::plan_of(&mut decoded, host, options, &mut problems);
    let (Some(old), Some(file)) = (old, decoded.files.first()) else {
        return Err(MigrateError::Invalid(Report::new(decoded.files, problems)));
    };
    let old = as_version_3(old);
    let mut notes = notes(&decoded.differences, program.is_some());
    for keep_actions in [true, false] {
        let mut printer = Printer::new(file, keep_actions);
        let body = printer.file(&decoded.tree);
        let evaluated = printer.evaluated();
        if !evaluated.is_empty() {
            let what = evaluated.join("; ");
            notes.push(format!("Evaluated with the environment of `migrate`: {what}."));
        }
        let text = format!("{}{body}", heading(&name, &notes));
        let again = ConfigFile { name: "the new file".to_owned(), text: text.clone().into_bytes() };
        let loaded = load::load(vec![again], host, options);
        if loaded.plan.map(as_version_3).as_ref() == Some(&old) {
            return Ok(Migrated { text, notes });
        }
        if !evaluated.is_empty() {
            notes.pop();
        }
    }
    let message = "internal error: the converted file has another plan than the original";
    problems.push(Problem::unlocated(Severity::Error, message).help("please report this bug"));
    Err(MigrateError::Invalid(Report::new(decoded.files, problems)))
}

/// The notes for the heading of the new file.
fn notes(differences: &[&'static str], has_program: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !has_program {
        notes.push(
            "The main program is not in this file. To add it as a job, run: containerpilot migrate OLD -- PROGRAM ARGS. \
             Otherwise start it with: containerpilot -config NEW -- PROGRAM ARGS; then it does not wait for preStart, \
             and no hook waits for it."
                .to_owned(),
        );
    }
    notes.extend(differences.iter().map(|note| (*note).to_owned()));
    notes.push(
        "SIGUSR1 does not toggle maintenance mode: use `containerpilot -maintenance enable` and `disable`."
            .to_owned(),
    );
    notes
}

fn heading(name: &str, notes: &[String]) -> String {
    let mut out = format!("// Converted by `containerpilot migrate` from {}.\n//\n", comment(name));
    out.push_str("// Differences from ContainerPilot 2:\n");
    for note in notes {
        let lines = columns::wrap(comment(note).split_whitespace(), MAX_NOTE);
        for (line, mark) in lines.iter().zip(std::iter::once('-').chain(std::iter::repeat(' '))) {
            let _ = writeln!(out, "// {mark} {line}");
        }
    }
    out
}
