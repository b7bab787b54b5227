//! The command line: one module per command. [`table`] lists all commands and flags.

mod analyze;
mod audit;
mod check;
pub(crate) mod client;
mod completions;
mod control;
mod events;
mod exec;
mod explain;
mod flags;
pub(crate) mod fuzz;
mod graph;
mod groups;
mod health;
mod help;
mod logs;
mod man;
mod manual;
mod migrate;
mod render;
mod report;
mod responses;
mod run;
mod simulate;
mod status;
mod summary;
mod svg_text;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod timestamps;
mod top;
mod wait;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use containerpilot_config::{duration, suggest};
use containerpilot_core::plan::Signal;

use self::flags::{Arguments, FlagError, FlagErrorKind};
use self::table::{COMMANDS, Command, MAIN_FLAGS};
use crate::error_text::describe;
use crate::load::find_files::ReadError;

/// Why a command failed (X6).
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command failed: exit code 1.
    Failed(String),
    /// The command failed and has already printed why: exit code 1.
    Reported,
    /// The command failed with this exit code.
    WithCode(u8, String),
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The arguments of this command are wrong: exit code 2.
    CommandUsage(&'static str, String),
    /// The configuration or the scenario to simulate is invalid: exit code 2.
    InvalidInput(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(describe(&error))
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::WithCode(_, message) | Self::InvalidInput(message) => {
                out.write_str(message)
            }
            Self::Reported => Ok(()),
            Self::Usage(message) => write!(out, "{message}\nTry `containerpilot help`."),
            Self::CommandUsage(command, message) => {
                write!(out, "{message}\nTry `containerpilot help {command}`.")
            }
        }
    }
}

/// Runs the command line `args`. Returns the exit code.
pub(crate) fn main(args: &[OsString]) -> u8 {
    let failure = match dispatch(args) {
        Ok(code) => return code,
        Err(Failure::Reported) => return 1,
        Err(failure) => failure,
    };
    // If standard error is closed, the exit code still reports the failure.
    let _ = writeln!(std::io::stderr(), "containerpilot: {failure}");
    match failure {
        Failure::Failed(_) | Failure::Reported => 1,
        Failure::WithCode(code, _) => code,
        Failure::Usage(_) | Failure::CommandUsage(..) | Failure::InvalidInput(_) => 2,
    }
}

fn dispatch(args: &[OsString]) -> Result<u8, Failure> {
    let global = match flags::parse(MAIN_FLAGS, args) {
        Ok(global) => global,
        Err(error) => return help_or_failure(&error, None).map(success),
    };
    match action(&global) {
        Action::Version => print(&version()).map(success),
        Action::Template => render::template(&global).map(success),
        Action::Control(_) => control::flags(&global).map(success),
        Action::Run => {
            let Some(first) = global.rest.first().filter(|_| !global.double_dash) else {
                return run::run(&global);
            };
            subcommand(&first.to_string_lossy(), &global)
        }
    }
}

/// What the flags of ContainerPilot 3 request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Version,
    Template,
    /// A request to a running supervisor; holds the name of the first such flag.
    Control(&'static str),
    Run,
}

/// Chooses the action if there are several flags, in the order of 3.8.
fn action(flags: &Arguments) -> Action {
    if flags.is_on("version") {
        return Action::Version;
    }
    if flags.is_on("template") {
        return Action::Template;
    }
    let given = |name: &&str| match *name {
        "reload" | "ping" => flags.is_on(name),
        "maintenance" => !flags.text(name).is_empty(),
        _ => !flags.pairs(name).is_empty(),
    };
    let control = ["reload", "maintenance", "putenv", "putmetric", "ping"].into_iter().find(given);
    control.map_or(Action::Run, Action::Control)
}

/// The exit code of every command but `run`.
fn success((): ()) -> u8 {
    0
}

fn subcommand(name: &str, global: &Arguments) -> Result<u8, Failure> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        if run::is_configuration(global) {
            return run::run(&run::with_configuration(global.flags_only(), &global.rest)?);
        }
        // With a ContainerPilot 2 configuration it is the main program.
        return run::run(global);
    };
    run_command(command, global).map_err(|failure| match failure {
        Failure::Usage(message) if command.name != "help" => Failure::CommandUsage(command.name, message),
        failure => failure,
    })
}

fn run_command(command: &'static Command, global: &Arguments) -> Result<u8, Failure> {
    let name = command.name;
    let mut known = command.flags.to_vec();
    known.retain(|flag| flag.name != "help");
    let args = global.rest.get(1..).unwrap_or_default();
    let mut own = match flags::parse_mixed(&known, args) {
        Ok(own) => own,
        Err(error) => {
            let is_signal = |arg: &OsString| {
                let name = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
                name.filter(|name| Signal::from_name(name).is_some()).map(str::to_owned)
            };
            let signal = if name == "signal" { args.iter().find_map(is_signal) } else { None };
            return match signal {
                Some(signal) => Err(Failure::Usage(format!("write the signal without a dash: {signal}"))),
                None => help_or_failure(&error, Some(command)).map(success),
            };
        }
    };
    if let Some(flag) = global.names().find(|name| !command.flags.iter().any(|flag| flag.name == *name)) {
        return Err(Failure::Usage(format!("`{name}` has no flag -{flag}")));
    }
    if name == "run" {
        return run::run(&run::with_configuration(global.flags_only(), args)?);
    }
    own.inherit(global);
    // Only `migrate` takes a program after `--`.
    own.double_dash &= name == "migrate";
    check_argument_count(command, &own)?;
    let outcome = match command.name {
        "check" => check::check(&own),
        "audit" => audit::audit(&own),
        "render" => render::render(&own),
        "graph" => graph::graph(&own),
        "simulate" => simulate::simulate(&own),
        "status" => status::status(&own),
        "exec" => exec::exec(&own),
        "explain" => explain::explain(&own),
        "analyze" => analyze::analyze(&own),
        "health" => health::health(&own),
        "top" => top::top(&own),
        "wait" => wait::wait(&own),
        "logs" => logs::logs(&own),
        "events" => events::events(&own),
        "start" | "stop" | "restart" => control::jobs(command.name, &own),
        "scale" => control::scale(&own),
        "signal" => control::signal(&own),
        "reload" => control::reload(&own),
        "maintenance" => control::maintenance(&own),
        "putenv" => control::put("/v3/environ", &own),
        "putmetric" => control::put("/v3/metric", &own),
        "ping" => control::ping(&own),
        "schema" => print(&containerpilot_config::schema::json_schema()),
        "version" => print(&version()),
        "help" if own.rest.is_empty() => print(&help::overview()),
        "help" => manual::show(&own.rest.join(OsStr::new(" ")).to_string_lossy()),
        "completions" => completions::completions(&own),
        "migrate" => migrate::migrate(&own),
        "man" => print(&man::page()),
        _ => Err(Failure::Usage(unknown_command(name))),
    };
    if let Err(Failure::Failed(why) | Failure::InvalidInput(why)) = &outcome
        && prints_json_errors(name, &own)
    {
        print(&format!("{}\n", serde_json::json!({ "error": why })))?;
    }
    outcome.map(success)
}

/// Returns true if a command prints its failure as JSON. `check` and `simulate` have their own JSON for that.
fn prints_json_errors(command: &str, args: &Arguments) -> bool {
    let knows = match command {
        "status" | "explain" | "events" | "reload" => true,
        "check" => args.is_on("diff"),
        _ => false,
    };
    knows && args.text("format") == "json"
}

/// Checks the number of arguments against the table of commands.
fn check_argument_count(command: &Command, given: &Arguments) -> Result<(), Failure> {
    let name = command.name;
    let words = || command.arguments.split(' ').filter(|word| !word.is_empty() && *word != "--");
    let many = words().any(|word| word.ends_with(['…', ']']) && word.contains('…'));
    let most = if many { usize::MAX } else { words().count() };
    if let Some(extra) = given.rest.get(most) {
        let extra = extra.to_string_lossy();
        return Err(Failure::Usage(format!("unexpected argument `{extra}` for `{name}`")));
    }
    let least = words().filter(|word| !word.starts_with('[')).count();
    if given.rest.len() < least && name != "migrate" {
        let usage = help::usage(command);
        return Err(Failure::Usage(format!("missing argument; usage: {usage}")));
    }
    Ok(())
}

/// A command that does not exist, which may be a program.
fn unknown_command_or_program(name: &str) -> Failure {
    let what = match name.contains('/') && !Path::new(name).exists() {
        true => format!("there is no configuration `{name}`, and no such command"),
        false => unknown_command(name),
    };
    Failure::Usage(format!("{what}\nTo run a program, put `--` before it."))
}

fn unknown_command(name: &str) -> String {
    let names = || COMMANDS.iter().map(|command| command.name);
    let hint = match suggest::nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the commands are {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("unknown command `{name}`: {hint}")
}

fn help_or_failure(error: &FlagError, command: Option<&Command>) -> Result<(), Failure> {
    match (error.kind, command) {
        (FlagErrorKind::Help, None) => print(&help::overview()),
        (FlagErrorKind::Help, Some(command)) => print(&help::command(command)),
        _ => Err(Failure::Usage(error.to_string())),
    }
}

/// The path of the configuration: the first argument, -config or CONTAINERPILOT. `None` means the default paths.
fn config_path(args: &Arguments) -> Option<PathBuf> {
    args.rest.first().map(PathBuf::from).or_else(|| named_config(args))
}

/// Like [`config_path`] for a command whose arguments are not paths.
fn named_config(args: &Arguments) -> Option<PathBuf> {
    let flag = Some(args.text("config")).filter(|path| !path.is_empty()).map(PathBuf::from);
    let variable = || std::env::var_os("CONTAINERPILOT").filter(|path| !path.is_empty()).map(PathBuf::from);
    flag.or_else(variable)
}

/// Returns true for `--format json`.
fn as_json(args: &Arguments) -> Result<bool, Failure> {
    match args.text("format") {
        "" | "human" => Ok(false),
        "json" => Ok(true),
        other => Err(Failure::Usage(format!("unknown format `{other}`: the formats are `human` and `json`"))),
    }
}

/// The value of --timeout.
fn time_limit(args: &Arguments) -> Result<Option<Duration>, Failure> {
    args.value("timeout").map(|text| parse_duration("timeout", text)).transpose()
}

/// The value of a flag that is a duration.
fn parse_duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    let wrong = |why: String| invalid_value(flag, text, &why);
    if text.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    let time = duration::parse(text).map_err(|error| wrong(format!("{error}; {}", error.help())))?;
    let time = u64::try_from(time).map_err(|_| wrong("it is negative".to_owned()))?;
    Ok(Duration::from_nanos(time))
}

/// The value of --lines; `None` means all lines.
fn line_limit(args: &Arguments) -> Result<Option<usize>, Failure> {
    let count = count(args, "lines", 0)?;
    Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}

/// The value of a flag that is a number of at least `min`, if the flag was given.
fn count(args: &Arguments, flag: &str, min: u64) -> Result<Option<u64>, Failure> {
    let Some(text) = args.value(flag) else { return Ok(None) };
    let wrong = |why: &str| invalid_value(flag, text, why);
    match (text.parse::<u64>(), text.parse::<i128>()) {
        (Ok(count), _) if count >= min => Ok(Some(count)),
        (Ok(_), _) => Err(wrong(&format!("it must be at least {min}"))),
        (_, Ok(..0)) => Err(wrong(&format!("it must be {min} or more"))),
        _ if text.is_empty() => Err(wrong("it is empty")),
        _ => Err(wrong("not a number")),
    }
}

fn invalid_value(flag: &str, text: &str, why: &str) -> Failure {
    Failure::Usage(format!("invalid -{flag} `{text}`: {why}"))
}

/// The version in the format of 3.8, and the build date. `build.rs` finds the hash; `scripts/dist` and `Dockerfile.build` set the date.
fn version() -> String {
    let hash = option_env!("CONTAINERPILOT_GIT_HASH").unwrap_or("unknown");
    let date = option_env!("CONTAINERPILOT_BUILD_DATE").unwrap_or("unknown");
    format!("Version: {}\nGitHash: {hash}\nBuildDate: {date}\n", crate::VERSION)
}

/// Prints to standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    write_stdout(text.as_bytes()).map(drop)
}

/// Writes to standard output. Returns false if its reader has gone.
fn write_stdout(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Indented JSON with a newline at the end.
fn pretty_json(value: &impl serde::Serialize) -> String {
    // Serializing to a string fails only for maps with keys that are not strings; no output has such a map.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
