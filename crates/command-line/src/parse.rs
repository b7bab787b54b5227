//! Checks a command line against the table of commands.

use containerpilot_config::suggest;
use containerpilot_core::plan::Signal;

use crate::failure::Failure;
use crate::flags::{self, Arguments, FlagError, FlagErrorKind};
use crate::help;
use crate::output::print;
use crate::table::{Command, Program};

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
pub fn check_argument_count(program: Program, command: &Command, given: &Arguments) -> Result<(), String> {
    let name = command.name;
    let words = || command.arguments.split(' ').filter(|word| !word.is_empty() && *word != "--");
    let many = words().any(|word| word.ends_with(['…', ']']) && word.contains('…'));
    let most = if many { usize::MAX } else { words().count() };
    if let Some(extra) = given.rest.get(most) {
        let extra = extra.to_string_lossy();
        return Err(format!("unexpected argument `{extra}` for `{name}`"));
    }
    let least = words().filter(|word| !word.starts_with('[')).count();
    if given.rest.len() < least && name != "migrate" {
        let usage = help::usage(program, command);
        return Err(format!("missing argument; usage: {usage}"));
    }
    Ok(())
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
