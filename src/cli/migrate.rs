//! `migrate`: a ContainerPilot 2 file as one of version 3.

use std::io::Write;

use containerpilot_config::legacy::{self, MigrateError, Migrated};

use super::flags::Arguments;
use super::{Failure, check, config_path, print, run};
use crate::load::files;
use crate::load::host::ThisHost;
use crate::load::source::OPTIONS;

pub(super) fn migrate(args: &Arguments) -> Result<(), Failure> {
    // Behind `--` everything is the program's; otherwise the file comes first.
    let (path, program) = match args.rest.split_first() {
        Some((_, program)) if !args.dashes => (config_path(args), program),
        _ => (config_path(&args.flags_only()), args.rest.as_slice()),
    };
    let program: Vec<String> = program.iter().map(run::utf8).collect::<Result<_, _>>()?;
    let mut inputs = files::read(path.as_deref()).map_err(|error| Failure::Failed(error.to_string()))?;
    let Some(input) = inputs.pop().filter(|_| inputs.is_empty()) else {
        let message = "a ContainerPilot 2 configuration is one file: name it, not its directory";
        return Err(Failure::Usage(message.to_owned()));
    };
    let name = input.name.clone();
    let program = Some(program).filter(|words| !words.is_empty());
    match legacy::migrate(input, &ThisHost::current(), OPTIONS, program.as_deref()) {
        Ok(Migrated { text, notes }) => {
            print(&text)?;
            let notes = notes.iter().map(|note| format!("note: {note}\n")).collect::<String>();
            // Without standard error there is nobody to tell; the file says it too.
            let _ = std::io::stderr().write_all(notes.as_bytes());
            Ok(())
        }
        Err(MigrateError::NotOld) => {
            Err(Failure::Failed(format!("{name} is no ContainerPilot 2 file: there is nothing to migrate")))
        }
        Err(MigrateError::Broken(report)) => {
            check::complain(&report, false);
            Err(Failure::Failed("the file has errors, so there is nothing to print".to_owned()))
        }
    }
}
