//! `migrate`: converts a ContainerPilot 2 configuration to version 3.

use std::io::Write;

use containerpilot_config::migrate::{self, MigrateError, Migrated};

use super::flags::Arguments;
use super::report::print_report;
use super::{Failure, config_path, print, run};
use crate::load::command_line::OPTIONS;
use crate::load::find_files;
use crate::load::host::ThisHost;

pub(super) fn migrate(args: &Arguments) -> Result<(), Failure> {
    // All arguments after `--` belong to the program. Without `--` the first argument is the file.
    let (path, program) = match args.rest.split_first() {
        Some((_, program)) if !args.double_dash => (config_path(args), program),
        _ => (config_path(&args.flags_only()), args.rest.as_slice()),
    };
    let program: Vec<String> = program.iter().map(run::utf8).collect::<Result<_, _>>()?;
    let mut inputs = find_files::read(path.as_deref())?;
    let Some(input) = inputs.pop().filter(|_| inputs.is_empty()) else {
        let message = "a ContainerPilot 2 configuration is a file, not a directory";
        return Err(Failure::Usage(message.to_owned()));
    };
    let name = input.name.clone();
    let program = Some(program).filter(|words| !words.is_empty());
    match migrate::migrate(input, &ThisHost::current(), OPTIONS, program.as_deref()) {
        Ok(Migrated { text, notes }) => {
            print(&text)?;
            let notes = notes.iter().map(|note| format!("note: {note}\n")).collect::<String>();
            // The notes are also in the printed file.
            let _ = std::io::stderr().write_all(notes.as_bytes());
            Ok(())
        }
        Err(MigrateError::NotLegacy) => Err(Failure::Failed(format!(
            "{name} is not a ContainerPilot 2 configuration: nothing to migrate"
        ))),
        Err(MigrateError::Invalid(report)) => {
            print_report(&report, false);
            Err(Failure::Failed("the configuration has errors, so it was not migrated".to_owned()))
        }
    }
}
