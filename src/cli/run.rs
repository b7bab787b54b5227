//! `run`: supervising (the default), and `-- PROGRAM` (S7).

use std::ffi::OsString;

use containerpilot_core::Core;

use super::flags::Arguments;
use super::{Failure, check, config_path, unknown_command};
use crate::load::source::{self, LoadError, Program, Source};
use crate::load::{files, host};
use crate::process::signals::{self, SignalMode};
use crate::runtime::Runtime;

/// Supervises what the configuration and the command line ask for; the code to exit with.
pub(super) fn run(args: &Arguments) -> Result<u8, Failure> {
    let program = program(args)?;
    // What stands behind `--` is the program's, and no path.
    let args = &args.flags_only();
    let configured = program.is_none() || config_path(args).is_some() || files::default_exists();
    let taken = if configured { SignalMode::Supervise } else { SignalMode::Forward };
    // Before anything that takes time: to PID 1 a signal that is not held is lost.
    signals::block(taken).map_err(|error| cannot("cannot block signals", &error))?;
    let (plan, source) = if configured {
        let mut source = Source::new(config_path(args), program.clone());
        source.read_stdin().map_err(|error| Failure::Failed(error.to_string()))?;
        let plan = match source.load(host::environment()) {
            Ok((plan, report)) => {
                check::complain(&report, false);
                plan
            }
            Err(LoadError::Read(error)) => return Err(Failure::Failed(error.to_string())),
            Err(LoadError::BareProgram) => return Err(not_a_program(program.as_ref())),
            Err(LoadError::Invalid(report)) => {
                check::complain(&report, false);
                let words = "the configuration has errors, so nothing was started";
                return Err(Failure::Failed(words.to_owned()));
            }
        };
        (plan, Some(source))
    } else {
        match &program {
            Some(Program { words, bare: false }) => {
                let plan = source::main_program(None, words).map_err(|report| {
                    let words = report.display(check::style(false)).to_string();
                    Failure::Failed(format!("the program cannot be a job:\n{words}"))
                })?;
                (plan, None)
            }
            Some(Program { bare: true, .. }) => return Err(not_a_program(program.as_ref())),
            None => return Err(Failure::Failed("there is nothing to run".to_owned())),
        }
    };
    let mut runtime = Runtime::new(Core::new(plan), taken, host::environment(), source)
        .map_err(|error| cannot("cannot start", &error))?;
    runtime.open().map_err(Failure::Failed)?;
    Ok(runtime.run())
}

fn cannot(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

/// The program of the command line and its arguments. ContainerPilot 2 took it without `--` before it; only beside such
/// a file that is one (C8).
fn program(args: &Arguments) -> Result<Option<Program>, Failure> {
    if args.rest.is_empty() {
        let missing = || Failure::Usage("there is no program after `--`".to_owned());
        return if args.dashes { Err(missing()) } else { Ok(None) };
    }
    let words = args.rest.iter().map(utf8).collect::<Result<_, _>>()?;
    Ok(Some(Program { words, bare: !args.dashes }))
}

fn not_a_program(program: Option<&Program>) -> Failure {
    unknown_command(program.and_then(|program| program.words.first()).map(String::as_str).unwrap_or_default())
}

/// A word of the command line as text.
pub(super) fn utf8(word: &OsString) -> Result<String, Failure> {
    source::utf8(word).map_err(Failure::Usage)
}
