//! `run`: supervises the configuration (the default), a program after `--` (S7), or both.

use std::ffi::OsString;
use std::io::Write;

use containerpilot_core::Core;

use super::flags::Arguments;
use super::report::{print_report, style};
use super::{Failure, config_path, unknown_command_or_program};
use crate::error_text::describe;
use crate::load::command_line::{self, LoadError, Program, Source};
use crate::load::{at_start, find_files, host};
use crate::process::signals;
use crate::runtime::Runtime;

/// Runs the supervisor. Returns its exit code.
pub(super) fn run(args: &Arguments) -> Result<u8, Failure> {
    let program = program(args)?;
    // Arguments after `--` belong to the program; none of them is a path.
    let args = &args.flags_only();
    let configured = program.is_none() || config_path(args).is_some() || find_files::default_exists();
    // First of all: a signal that PID 1 does not block is lost.
    signals::block().map_err(|error| cannot("cannot block signals", &describe(&error)))?;
    let (plan, source) = if configured {
        let loaded = at_start::load(Source::new(config_path(args), program.clone()))
            .map_err(|error| cannot("cannot load the configuration", &error))?;
        let Some((source, loaded)) = loaded else {
            let stopped = "stopped by a signal while loading the configuration; nothing was started";
            // If standard error is closed, the exit code is still right.
            let _ = writeln!(std::io::stderr(), "containerpilot: {stopped}");
            return Ok(0);
        };
        let plan = match loaded {
            Ok((plan, report)) => {
                print_report(&report, false);
                plan
            }
            Err(LoadError::Read(error)) => return Err(error.into()),
            Err(LoadError::BareProgram) => return Err(not_a_program(program.as_ref())),
            Err(LoadError::Invalid(report)) => {
                print_report(&report, false);
                let words = "the configuration has errors, so nothing was started";
                return Err(Failure::Failed(words.to_owned()));
            }
        };
        (plan, Some(source))
    } else {
        match &program {
            Some(Program { words, bare: false }) => {
                let plan = command_line::main_program(None, words).map_err(|report| {
                    let words = report.display(style(false)).to_string();
                    Failure::Failed(format!("cannot run the program as a job:\n{words}"))
                })?;
                (plan, None)
            }
            Some(Program { bare: true, .. }) => return Err(not_a_program(program.as_ref())),
            None => return Err(Failure::Failed("nothing to run".to_owned())),
        }
    };
    let mut runtime = Runtime::new(Core::new(plan), host::environment(), source)
        .map_err(|error| cannot("cannot start", &error))?;
    runtime.open().map_err(Failure::Failed)?;
    Ok(runtime.run())
}

fn cannot(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

/// The program on the command line, with its arguments. Without `--` it counts only with a ContainerPilot 2
/// configuration (C8).
fn program(args: &Arguments) -> Result<Option<Program>, Failure> {
    if args.rest.is_empty() {
        let missing = || Failure::Usage("missing program after `--`".to_owned());
        return if args.double_dash { Err(missing()) } else { Ok(None) };
    }
    Ok(Some(Program { words: args.rest.clone(), bare: !args.double_dash }))
}

fn not_a_program(program: Option<&Program>) -> Failure {
    let word = program.and_then(|program| program.words.first()).map(|word| word.to_string_lossy());
    unknown_command_or_program(&word.unwrap_or_default())
}

pub(super) fn utf8(word: &OsString) -> Result<String, Failure> {
    command_line::utf8(word).map_err(Failure::Usage)
}
