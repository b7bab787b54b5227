//! `migrate`: the new file, and the proof that it means what the old one does.

use std::fmt::Write;

use crate::diagnostics::{Problem, Report, Severity};
use crate::host::Host;
use crate::legacy::print::{Printer, comment};
use crate::legacy::{Version, as_version_3};
use crate::load::{self, Input, Options};

/// Why there is no new file.
#[derive(Debug)]
pub enum MigrateError {
    /// The old one has errors.
    Broken(Report),
    /// It is of version 3 already.
    NotOld,
}

/// A version 2 file as one of version 3.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// The new file.
    pub text: String,
    /// What is not as it was; the new file says it too.
    pub notes: Vec<String>,
}

/// Makes a version 3 file of one of version 2. With `program`, the words of the main program, that is a job of the new
/// file.
///
/// The new file is loaded and compared with the old one. Where keeping the template's actions changes what it means, it
/// is made again with the values they have now.
///
/// # Errors
/// If the old file has errors, or is none.
pub fn migrate(
    input: Input,
    host: &dyn Host,
    options: Options<'_>,
    program: Option<&[String]>,
) -> Result<Migrated, MigrateError> {
    let name = input.name.clone();
    let mut problems = Vec::new();
    let reading = load::read(vec![input], host.environment(), program, &mut problems);
    if reading.version == Version::Three && reading.well_formed {
        return Err(MigrateError::NotOld);
    }
    let old = load::plan_of(&reading, host, options, &mut problems);
    let (Some(old), Some(file)) = (old, reading.files.first()) else {
        return Err(MigrateError::Broken(Report::new(reading.files, problems)));
    };
    let old = as_version_3(old);
    let mut notes = notes(&reading.differences, program.is_some());
    for keeps in [true, false] {
        let mut printer = Printer::new(file, keeps);
        let body = printer.file(&reading.tree);
        let decided = printer.decided();
        if !decided.is_empty() {
            let what = decided.join("; ");
            notes.push(format!("Decided with the environment that `migrate` ran in: {what}."));
        }
        let text = format!("{}{body}", heading(&name, &notes));
        let again = Input { name: "the new file".to_owned(), text: text.clone().into_bytes() };
        let loaded = load::load(vec![again], host, options);
        if loaded.plan.map(as_version_3).as_ref() == Some(&old) {
            return Ok(Migrated { text, notes });
        }
        if !decided.is_empty() {
            notes.pop();
        }
    }
    let message = "the new file would not mean what the old one does, and containerpilot cannot say why";
    problems.push(Problem::unlocated(Severity::Error, message).help("this is a defect: please report it"));
    Err(MigrateError::Broken(Report::new(reading.files, problems)))
}

/// What is not as it was.
fn notes(differences: &[&'static str], has_program: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !has_program {
        notes.push(
            "The main program is not in this file. To make it a job, name it: containerpilot migrate OLD -- PROGRAM \
             ARGS. Otherwise start it with: containerpilot -config NEW -- PROGRAM ARGS; it then does not wait for \
             preStart, and no hook waits for it."
                .to_owned(),
        );
    }
    notes.extend(differences.iter().map(|note| (*note).to_owned()));
    notes.push(
        "SIGUSR1 does not enter and leave maintenance: use `containerpilot -maintenance enable` and `disable`."
            .to_owned(),
    );
    notes
}

fn heading(name: &str, notes: &[String]) -> String {
    let mut out = format!("// Made by `containerpilot migrate` from {}.\n//\n", comment(name));
    out.push_str("// What has no counterpart or is not quite as it was in ContainerPilot 2:\n");
    for note in notes {
        let mut line = "// -".to_owned();
        for word in comment(note).split_whitespace() {
            if line.chars().count() + word.chars().count() >= 110 {
                let _ = writeln!(out, "{line}");
                line = "//  ".to_owned();
            }
            let _ = write!(line, " {word}");
        }
        let _ = writeln!(out, "{line}");
    }
    out
}
