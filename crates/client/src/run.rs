//! `run`: supervises the configuration (the default), a program after `--` (S7), or both.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::options::{named_config, names_configuration};
use containerpilot_command_line::parse::nearest_command;
use containerpilot_command_line::report::{print_report, style};
use containerpilot_command_line::table::RUN;
use containerpilot_config::template::Environment;
use containerpilot_core::plan::Plan;
use containerpilot_load::command_line::{self, ConfigSource, LoadError, ProgramArguments, ProgramForm};
use containerpilot_load::{at_start, find_files, host};
use containerpilot_process::error_text::describe;
use containerpilot_process::signals;

use super::{PROGRAM, unknown_command_or_program};

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
    let program = program(args)?;
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
                let plan = command_line::main_program(None, words).map_err(|report| {
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

/// C10: returns true if the first argument, which is not the name of a command, is the path of a configuration. It is
/// not if it may be the main program of a ContainerPilot 2 configuration (C8).
pub(super) fn is_configuration(args: &Arguments) -> bool {
    let Some(path) = args.rest.first().map(Path::new).filter(|_| args.value("config").is_none()) else {
        return false;
    };
    let is_program = |file: std::fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    let exists = || find_files::metadata(path).is_ok_and(|file| !is_program(file));
    names_configuration(path) || (named_config(args).is_none() && exists())
}

/// The arguments of `run`: flags, perhaps the path of a configuration (C10), flags, and perhaps `--` and a program.
pub(super) fn with_configuration(before: Arguments, args: &[OsString]) -> Result<Arguments, Failure> {
    let wrong = |error: flags::FlagError| Failure::Usage(error.to_string());
    let mut all = flags::parse(RUN.flags, args).map_err(wrong)?;
    let path = if all.double_dash { None } else { all.rest.first().cloned() };
    let is_named = all.value("config").or_else(|| before.value("config")).is_some();
    if is_named && path.as_ref().is_some_and(|path| !names_configuration(Path::new(path))) {
        all.inherit(&before);
        return Ok(all);
    }
    if path.is_some() {
        let mut after = flags::parse(RUN.flags, all.rest.split_off(1).as_slice()).map_err(wrong)?;
        after.inherit(&all);
        all = after;
    }
    if let Some(extra) = all.rest.first().filter(|_| !all.double_dash) {
        let extra = extra.to_string_lossy();
        return Err(Failure::Usage(format!("unexpected argument `{extra}`: put `--` before a program")));
    }
    all.inherit(&before);
    if let Some(path) = path {
        add_configuration(&mut all, &path)?;
    }
    Ok(all)
}

fn add_configuration(args: &mut Arguments, path: &OsStr) -> Result<(), Failure> {
    let text = path.to_str().ok_or_else(|| Failure::Usage(format!("`{}` is not UTF-8", path.display())))?;
    if let Some(other) = args.value("config") {
        return Err(Failure::Usage(format!("two configurations: -config `{other}` and `{text}`")));
    }
    let is_path = text != "-" && !text.starts_with('{') && Path::new(text).extension().is_none();
    if is_path && find_files::metadata(Path::new(text)).is_err() {
        let message = format!("there is no configuration `{text}`\nTo run a program, put `--` before it.");
        return Err(Failure::Usage(message));
    }
    args.add("config", text.to_owned());
    Ok(())
}

fn cannot(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

/// The program on the command line, with its arguments. Without `--` it counts only with a ContainerPilot 2
/// configuration (C8).
fn program(args: &Arguments) -> Result<Option<ProgramArguments>, Failure> {
    if args.rest.is_empty() {
        let missing = || Failure::Usage("missing program after `--`".to_owned());
        return if args.double_dash { Err(missing()) } else { Ok(None) };
    }
    let form = match (args.double_dash, may_be_ignored(args)) {
        (true, _) => ProgramForm::AfterDashes,
        (false, true) => ProgramForm::Ignorable,
        (false, false) => ProgramForm::Bare,
    };
    Ok(Some(ProgramArguments { words: args.rest.clone(), form }))
}

/// X4: returns true if words without `--` are ignored beside a version 3 configuration, as by 3.8: it is named, so they
/// are not its path. But a misspelt command must not start a second supervisor.
fn may_be_ignored(args: &Arguments) -> bool {
    let first = args.rest.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    named_config(args).is_some() && nearest_command(PROGRAM, &first).is_none()
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
