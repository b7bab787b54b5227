//! The command line: what is asked for, and who answers.

mod answer;
mod check;
pub(crate) mod client;
mod completions;
mod events;
mod explain;
mod flags;
pub(crate) mod fuzz;
mod graph;
mod health;
mod help;
mod logs;
mod man;
mod migrate;
mod orders;
mod picture;
mod render;
mod run;
mod simulate;
mod status;
mod summary;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod wait;

use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use containerpilot_config::{duration, suggest};

use self::flags::{Arguments, FlagError, FlagErrorKind};
use self::table::{COMMANDS, Command, MAIN_FLAGS};

/// Why a command did not do what was asked (X6).
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed: exit code 1. The message may be empty where everything has been said.
    Failed(String),
    /// The command line was wrong: exit code 2.
    Usage(String),
    /// What was to be tried has mistakes, so that nothing could be tried: exit code 2. The message may be empty.
    Unreadable(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Unreadable(message) => out.write_str(message),
            Self::Usage(message) => write!(out, "{message}\nTry `containerpilot help`."),
        }
    }
}

/// Does what the arguments ask for; the exit code says how it went.
pub(crate) fn main(args: &[OsString]) -> u8 {
    let (code, message) = match dispatch(args) {
        Ok(code) => return code,
        Err(failure @ Failure::Failed(_)) => (1, failure.to_string()),
        Err(failure @ (Failure::Usage(_) | Failure::Unreadable(_))) => (2, failure.to_string()),
    };
    if !message.is_empty() {
        // Nothing can be done if standard error is gone too; the exit code tells.
        let _ = writeln!(std::io::stderr(), "containerpilot: {message}");
    }
    code
}

fn dispatch(args: &[OsString]) -> Result<u8, Failure> {
    let main = match flags::parse(MAIN_FLAGS, args) {
        Ok(main) => main,
        Err(error) => return asked_for_help(&error, None).map(done),
    };
    match action(&main) {
        Action::Version => print(&version()).map(done),
        Action::Template => render::template(&main).map(done),
        Action::Control(_) => orders::flags(&main).map(done),
        Action::Run => {
            let Some(first) = main.rest.first().filter(|_| !main.dashes) else { return run::run(&main) };
            subcommand(&first.to_string_lossy(), &main)
        }
    }
}

/// What ContainerPilot 3's flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Version,
    Template,
    /// Something that a running supervisor has to do; the name of the first such flag.
    Control(&'static str),
    Run,
}

/// What is done when several things are asked for, in 3.8's order.
fn action(flags: &Arguments) -> Action {
    if flags.is_on("version") {
        return Action::Version;
    }
    if flags.is_on("template") {
        return Action::Template;
    }
    let asked = |name: &&str| match *name {
        "reload" | "ping" => flags.is_on(name),
        "maintenance" => !flags.text(name).is_empty(),
        _ => !flags.pairs(name).is_empty(),
    };
    let control = ["reload", "maintenance", "putenv", "putmetric", "ping"].into_iter().find(asked);
    control.map_or(Action::Run, Action::Control)
}

/// Every command but `run` has nothing to say but that it is done.
fn done((): ()) -> u8 {
    0
}

fn subcommand(name: &str, main: &Arguments) -> Result<u8, Failure> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        // Beside a ContainerPilot 2 file it is the main program.
        return run::run(main);
    };
    let mut known = command.flags.to_vec();
    known.retain(|flag| flag.name != "help");
    let args = main.rest.get(1..).unwrap_or_default();
    let mut own = match flags::parse_mixed(&known, args) {
        Ok(own) => own,
        Err(error) => return asked_for_help(&error, Some(command)).map(done),
    };
    if let Some(flag) = main.names().find(|name| !command.flags.iter().any(|flag| flag.name == *name)) {
        return Err(Failure::Usage(format!("`{name}` does not know the flag -{flag}")));
    }
    own.inherit(main);
    // For others than these, what stands behind `--` is an argument like any other.
    own.dashes &= matches!(command.name, "run" | "migrate");
    count(command, &own)?;
    let answered = match command.name {
        "check" => check::check(&own),
        "render" => render::render(&own),
        "graph" => graph::graph(&own),
        "simulate" => simulate::simulate(&own),
        "status" => status::status(&own),
        "explain" => explain::explain(&own),
        "health" => health::health(&own),
        "wait" => wait::wait(&own),
        "logs" => logs::logs(&own),
        "events" => events::events(&own),
        "start" | "stop" | "restart" => orders::jobs(command.name, &own),
        "signal" => orders::signal(&own),
        "reload" => orders::reload(&own),
        "maintenance" => orders::maintenance(&own),
        "putenv" => orders::put("/v3/environ", &own),
        "putmetric" => orders::put("/v3/metric", &own),
        "ping" => orders::ping(&own),
        "schema" => print(&containerpilot_config::schema::json_schema()),
        "version" => print(&version()),
        "help" => match own.rest.first().map(|name| name.to_string_lossy().into_owned()) {
            None => print(&help::overview()),
            Some(name) => match COMMANDS.iter().find(|command| command.name == name) {
                Some(command) => print(&help::command(command)),
                None => Err(unknown_command(&name)),
            },
        },
        "completions" => completions::completions(&own),
        "migrate" => migrate::migrate(&own),
        "man" => print(&man::page()),
        _ => return run::run(&own),
    };
    answered.map(done)
}

/// Whether a command has got as many arguments as the table says it takes.
fn count(command: &Command, given: &Arguments) -> Result<(), Failure> {
    let name = command.name;
    let words = || command.arguments.split(' ').filter(|word| !word.is_empty());
    let (most, hint) = match name {
        "run" if given.dashes => (usize::MAX, ""),
        "run" => (0, ": name a configuration with -config, a program after `--`"),
        _ if words().any(|word| word.ends_with(['…', ']']) && word.contains('…')) => (usize::MAX, ""),
        _ => (words().count(), ""),
    };
    if let Some(extra) = given.rest.get(most) {
        let extra = extra.to_string_lossy();
        return Err(Failure::Usage(format!("`{name}` does not know what to do with `{extra}`{hint}")));
    }
    let least = words().filter(|word| !word.starts_with('[')).count();
    if given.rest.len() < least && !matches!(name, "run" | "migrate") {
        return Err(Failure::Usage(format!("`{name}` needs {}", command.arguments)));
    }
    Ok(())
}

fn unknown_command(name: &str) -> Failure {
    let names = || COMMANDS.iter().map(|command| command.name);
    let hint = match suggest::nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the commands are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Failure::Usage(format!("unknown command `{name}`: {hint}\nTo run a program, put `--` before it."))
}

fn asked_for_help(error: &FlagError, command: Option<&Command>) -> Result<(), Failure> {
    match (error.kind, command) {
        (FlagErrorKind::Help, None) => print(&help::overview()),
        (FlagErrorKind::Help, Some(command)) => print(&help::command(command)),
        _ => Err(Failure::Usage(error.to_string())),
    }
}

/// The configuration's path from the command line or the environment; `None` for the usual places.
fn config_path(args: &Arguments) -> Option<PathBuf> {
    args.rest.first().map(PathBuf::from).or_else(|| named_config(args))
}

/// The same for a command whose arguments are no paths.
fn named_config(args: &Arguments) -> Option<PathBuf> {
    let flag = Some(args.text("config")).filter(|path| !path.is_empty()).map(PathBuf::from);
    let variable = || std::env::var_os("CONTAINERPILOT").filter(|path| !path.is_empty()).map(PathBuf::from);
    flag.or_else(variable)
}

/// Whether a program asks, and wants JSON.
fn as_json(args: &Arguments) -> Result<bool, Failure> {
    match args.text("format") {
        "" | "human" => Ok(false),
        "json" => Ok(true),
        other => Err(Failure::Usage(format!("there is no format `{other}`; there are `human` and `json`"))),
    }
}

/// How long a command may take, if that is said.
fn time_limit(args: &Arguments) -> Result<Option<Duration>, Failure> {
    let text = args.text("timeout");
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |why: String| Failure::Usage(format!("-timeout cannot be `{text}`: {why}"));
    let time = duration::parse(text).map_err(|error| wrong(format!("{error}; {}", error.help())))?;
    let time = u64::try_from(time).map_err(|_| wrong("it is before now".to_owned()))?;
    Ok(Some(Duration::from_nanos(time)))
}

/// How many of the last lines are asked for; all if that is not said.
struct Lines(Option<usize>);

impl Lines {
    fn of(args: &Arguments) -> Result<Self, Failure> {
        let text = args.text("lines");
        if text.is_empty() {
            return Ok(Self(None));
        }
        let count = text
            .parse()
            .map_err(|_| Failure::Usage(format!("-lines cannot be `{text}`: it is no number")))?;
        Ok(Self(Some(count)))
    }
}

/// The version in the format of 3.8, and the build date. `build.rs` finds the hash; only `make static` sets the date.
fn version() -> String {
    let hash = option_env!("CONTAINERPILOT_GIT_HASH").unwrap_or("unknown");
    let date = option_env!("CONTAINERPILOT_BUILD_DATE").unwrap_or("unknown");
    format!("Version: {}\nGitHash: {hash}\nBuildDate: {date}\n", env!("CARGO_PKG_VERSION"))
}

/// Prints to standard output. A reader that has gone away is no failure of ours.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether messages to standard error may have colours.
fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
