//! `run`: supervises the configuration (the default), a program after `--` (S7), or both.

use std::io::Write;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::parse;
use containerpilot_command_line::report::{print_report, style};
use containerpilot_config::template::Environment;
use containerpilot_core::plan::Plan;
use containerpilot_load::config_source::{self, ConfigSource, LoadError, ProgramArguments, ProgramForm};
use containerpilot_load::{at_start, find_files, host};
use containerpilot_process::error_text::describe;
use containerpilot_process::signals;

use super::unknown_command_or_program;

/// What this program can supervise with.
#[derive(Clone, Copy)]
pub struct Supervisor {
    /// Runs the supervisor with a plan until the container stops. Returns its exit code, or why it could not start: as
    /// text, because this crate does not know the supervisor.
    pub run: fn(Plan, Environment, Option<ConfigSource>) -> Result<u8, String>,
    /// Why it would not start with a plan, where that needs more than the configuration.
    pub check: fn(&Plan) -> Result<(), String>,
}

/// Runs the supervisor. Returns its exit code.
pub(super) fn run(args: &Arguments, supervisor: Supervisor) -> Result<u8, Failure> {
    let program = parse::program_of_run(args)?;
    // Arguments after `--` belong to the program; none of them is a path.
    let args = &args.flags_only();
    let configured = program.is_none() || config_path(args).is_some() || find_files::default_exists();
    // First of all: a signal that PID 1 does not block is lost.
    signals::block().map_err(|error| cannot("cannot block signals", &describe(&error)))?;
    let (plan, source) = if configured {
        let loaded = at_start::load(ConfigSource::new(config_path(args), program.clone()))
            .map_err(|error| cannot("cannot load the configuration", &error))?;
        let Some((mut source, loaded)) = loaded else {
            let stopped = "stopped by a signal while loading the configuration; nothing was started";
            // If standard error is closed, the exit code is still right.
            let _ = writeln!(std::io::stderr(), "containerpilot: {stopped}");
            return Ok(0);
        };
        let plan = match loaded {
            Ok((plan, report)) => {
                print_report(&report, false);
                if let Some(ignored) = source.settle(&plan) {
                    warn_of_ignored(&ignored);
                }
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
            Some(ProgramArguments { words, form: ProgramForm::AfterDashes }) => {
                let plan = config_source::main_program(None, words).map_err(|report| {
                    let words = report.display(style(false)).to_string();
                    Failure::Failed(format!("cannot run the program as a job:\n{words}"))
                })?;
                (plan, None)
            }
            Some(ProgramArguments { .. }) => return Err(not_a_program(program.as_ref())),
            None => return Err(Failure::Failed("nothing to run".to_owned())),
        }
    };
    (supervisor.run)(plan, host::supervisor_environment(), source).map_err(Failure::Failed)
}

fn cannot(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

fn warn_of_ignored(program: &ProgramArguments) {
    let words: Vec<_> = program.words.iter().map(|word| word.to_string_lossy()).collect();
    let words = words.join(" ");
    // If standard error is closed, nobody can be warned.
    let _ = writeln!(
        std::io::stderr(),
        "containerpilot: ignoring `{words}` after the configuration: to run it, write `-- {words}`"
    );
}

fn not_a_program(program: Option<&ProgramArguments>) -> Failure {
    let word = program.and_then(|program| program.words.first()).map(|word| word.to_string_lossy());
    unknown_command_or_program(&word.unwrap_or_default())
}
