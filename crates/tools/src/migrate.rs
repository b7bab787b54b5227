//! `migrate`: converts a ContainerPilot 2 configuration to version 3, or the configuration of another supervisor.

use std::io::Write;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::options::utf8;
use containerpilot_command_line::output::print;
use containerpilot_command_line::report::print_report;
use containerpilot_config::migrate::{self, MigrateError, Migrated};
use containerpilot_config::suggest;
use containerpilot_import::{self as import, ImportFormat};
use containerpilot_load::config_source::OPTIONS;
use containerpilot_load::find_files;
use containerpilot_load::host::ThisHost;

use crate::on_disk::OnDisk;

pub(crate) fn migrate(args: &Arguments) -> Result<(), Failure> {
    match args.value("from") {
        Some(program) => import(program, args),
        None => from_version_2(args),
    }
}

/// Converts the configuration of another supervisor (C11).
fn import(program: &str, args: &Arguments) -> Result<(), Failure> {
    let Some(format) = ImportFormat::from_name(program) else {
        let names: Vec<&str> = ImportFormat::ALL.iter().map(|format| format.name()).collect();
        let part = names.iter().find(|name| program.contains(**name)).copied();
        let near = part.or_else(|| suggest::nearest(program, names.iter().copied()));
        let hint = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let names = names.join(", ");
        return Err(Failure::Usage(format!("-from is one of {names}, not `{program}`{hint}")));
    };
    if args.before_dashes.is_some() || args.double_dash {
        let message = "`-- PROGRAM` is for ContainerPilot 2 files: leave it out with -from";
        return Err(Failure::Usage(message.to_owned()));
    }
    let paths: Vec<String> = args.rest.iter().map(utf8).collect::<Result<_, _>>()?;
    if paths.is_empty() {
        let message = format!("name the files of {program}: containerpilot migrate -from {program} PATH…");
        return Err(Failure::Usage(message));
    }
    let imported =
        import::import(format, &paths, &OnDisk).map_err(|error| Failure::Failed(error.to_string()))?;
    print(&imported.text)?;
    if imported.inexact.is_empty() {
        return Ok(());
    }
    let lines: String =
        imported.inexact.iter().map(|line| format!("no exact equivalent: {line}\n")).collect();
    // They are also in the printed file.
    let _ = std::io::stderr().write_all(lines.as_bytes());
    let message = match imported.inexact.len() {
        1 => "1 part of the original has no exact equivalent".to_owned(),
        count => format!("{count} parts of the original have no exact equivalent"),
    };
    Err(Failure::WithCode(3, message))
}

fn from_version_2(args: &Arguments) -> Result<(), Failure> {
    // All arguments after `--` belong to the program. Without `--` the first argument is the file.
    let (path, program) = match args.rest.split_first() {
        Some((_, program)) if !args.double_dash => (config_path(args), program),
        _ => (config_path(&args.flags_only()), args.rest.as_slice()),
    };
    let program: Vec<String> = program.iter().map(utf8).collect::<Result<_, _>>()?;
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
