//! Checks a command line against the table of commands: which flags, words and numbers of arguments are an error, and
//! which words of `run` are a configuration or a program.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use containerpilot_config::suggest;
use containerpilot_core::plan::Signal;
use containerpilot_load::config_source::{ProgramArguments, ProgramForm};
use containerpilot_load::find_files;

use crate::failure::Failure;
use crate::flags::{self, Arguments, FlagError, FlagErrorKind};
use crate::help;
use crate::options::{named_config, names_configuration};
use crate::output::print;
use crate::table::{Command, Program, RUN};

/// The flags and arguments of a command; `global` has the flags before it, and its name. `None` if help was requested
/// and printed.
pub fn parse_command(
    program: Program,
    command: &'static Command,
    global: &Arguments,
) -> Result<Option<Arguments>, Failure> {
    let name = command.name;
    let mut known = command.flags.to_vec();
    known.retain(|flag| flag.name != "help");
    let args = global.rest.get(1..).unwrap_or_default();
    let own = match flags::parse_mixed(&known, args) {
        Ok(own) => own,
        Err(error) => {
            let is_signal = |arg: &std::ffi::OsString| {
                let name = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
                name.filter(|name| Signal::from_name(name).is_some()).map(str::to_owned)
            };
            let signal = if name == "signal" { args.iter().find_map(is_signal) } else { None };
            return match signal {
                Some(signal) => Err(Failure::Usage(format!("write the signal without a dash: {signal}"))),
                None => help_or_failure(program, &error, Some(command)).map(|()| None),
            };
        }
    };
    if let Some(flag) = global.names().find(|name| !command.flags.iter().any(|flag| flag.name == *name)) {
        return Err(Failure::Usage(format!("`{name}` has no flag -{flag}")));
    }
    Ok(Some(own))
}

/// A failure of this command: the hint names the help of the command.
pub fn failed(command: &'static Command, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(message) if command.name != "help" => Failure::CommandUsage(command.name, message),
        failure => failure,
    }
}

/// Prints the help that was requested, or returns the error.
pub fn help_or_failure(
    program: Program,
    error: &FlagError,
    command: Option<&Command>,
) -> Result<(), Failure> {
    match (error.kind, command) {
        (FlagErrorKind::Help, None) => print(&help::overview(program)),
        (FlagErrorKind::Help, Some(command)) => print(&help::command(program, command)),
        _ => Err(Failure::Usage(error.to_string())),
    }
}

/// Checks the number of arguments against the table of commands. An error is a message about them.
pub fn check_arguments(program: Program, command: &Command, given: &Arguments) -> Result<(), String> {
    let name = command.name;
    let words = || command.arguments.split(' ').filter(|word| !word.is_empty() && *word != "--");
    let many = words().any(|word| word.ends_with(['…', ']']) && word.contains('…'));
    let most = if many { usize::MAX } else { words().count() };
    // With -config, the first argument is what follows the configuration.
    let has_config = words().next() == Some("[CONFIG]") && !given.text("config").is_empty();
    if let Some(extra) = given.rest.get(most - usize::from(has_config)) {
        let extra = extra.to_string_lossy();
        return Err(format!("unexpected argument `{extra}` for `{name}`"));
    }
    let least = words().filter(|word| !word.starts_with('[')).count();
    if given.rest.len() < least && name != "migrate" {
        let usage = help::usage(program, command);
        return Err(format!("missing argument; usage: {usage}"));
    }
    match (name, given.rest.len()) {
        ("check", 1..) if given.is_on("diff") => {
            Err("-diff takes no path: the supervisor reads its own configuration".to_owned())
        }
        ("wait", 2..) if given.is_on("all") => Err("`wait --all` takes a state and no jobs".to_owned()),
        ("wait", ..2) if !given.is_on("all") => {
            Err("`wait` needs a job and a state, or --all and a state".to_owned())
        }
        _ => Ok(()),
    }
}

/// C10: returns true if the first argument, which is not the name of a command, is the path of a configuration. It is
/// not if it may be the main program of a ContainerPilot 2 configuration (C8).
pub fn is_configuration(args: &Arguments) -> bool {
    let Some(path) = args.rest.first().map(Path::new).filter(|_| args.value("config").is_none()) else {
        return false;
    };
    let is_program = |file: std::fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    let exists = || find_files::metadata(path).is_ok_and(|file| !is_program(file));
    names_configuration(path) || (named_config(args).is_none() && exists())
}

/// The arguments of `run`: flags, perhaps the path of a configuration (C10), flags, and perhaps `--` and a program.
pub fn arguments_of_run(before: Arguments, args: &[OsString]) -> Result<Arguments, Failure> {
    let wrong = |error: FlagError| Failure::Usage(error.to_string());
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

/// The program on the command line, with its arguments. Without `--` it counts only with a ContainerPilot 2
/// configuration (C8).
pub fn program_of_run(args: &Arguments) -> Result<Option<ProgramArguments>, Failure> {
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
    named_config(args).is_some() && nearest_command(Program::Containerpilot, &first).is_none()
}

/// What to write instead of a command that neither program has.
pub fn unknown_command(program: Program, name: &str) -> String {
    let own = || program.command_names();
    let hint = match nearest_command(program, name) {
        Some(near) if own().any(|own| own == near) => format!("did you mean `{near}`?"),
        Some(near) => format!("did you mean `{} {near}`?", program.other().name()),
        None => format!("the commands are {}", own().collect::<Vec<_>>().join(", ")),
    };
    format!("unknown command `{name}`: {hint}")
}

/// The command of either program that a word is a misspelling of.
pub fn nearest_command(program: Program, name: &str) -> Option<&'static str> {
    suggest::nearest(name, program.command_names().chain(program.other().command_names()))
}
