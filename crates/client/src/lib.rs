//! The commands of `containerpilot`: one module per command. [`table`](containerpilot_command_line::table) lists them
//! all.
#![forbid(unsafe_code)]

mod analyze;
mod check;
mod client;
mod completions;
mod control;
mod events;
mod exec;
mod explain;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod groups;
mod health;
mod logs;
mod record;
mod render;
mod run;
mod status;
mod tools;
mod top;
mod wait;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use containerpilot_command_line::action::{Action, action};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::help;
use containerpilot_command_line::output::print;
use containerpilot_command_line::parse::{self, check_arguments, unknown_command};
use containerpilot_command_line::table::{COMMANDS, Command, MAIN_FLAGS, Program};
use containerpilot_command_line::version::version;

pub use self::run::Supervisor;

/// The program whose commands these are.
const PROGRAM: Program = Program::Containerpilot;

/// Runs the command line `args`, without the name of the program; `supervisor` is what `run` runs. Returns the exit
/// code.
pub fn main(args: &[OsString], supervisor: Supervisor) -> u8 {
    dispatch(args, supervisor).unwrap_or_else(|failure| failure.report(PROGRAM.name()))
}

fn dispatch(args: &[OsString], supervisor: Supervisor) -> Result<u8, Failure> {
    let global = match flags::parse(MAIN_FLAGS, args) {
        Ok(global) => global,
        Err(error) => return parse::help_or_failure(PROGRAM, &error, None).map(success),
    };
    match action(&global) {
        Action::Version => print(&version()).map(success),
        Action::Template => render::template(&global).map(success),
        Action::Control(_) => control::flags(&global).map(success),
        Action::Run => {
            let Some(first) = global.rest.first().filter(|_| !global.double_dash) else {
                return run::run(&global, supervisor);
            };
            let name = first.to_string_lossy();
            let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
                return other(&name, args, &global, supervisor);
            };
            run_command(command, args, &global, supervisor).map_err(|failure| parse::failed(command, failure))
        }
    }
}

/// The exit code of every command but `run`.
fn success((): ()) -> u8 {
    0
}

/// The first argument is not a command of this program.
fn other(name: &str, args: &[OsString], global: &Arguments, supervisor: Supervisor) -> Result<u8, Failure> {
    if name == "completions" && global.rest.get(1).is_some_and(|word| word == "jobs") {
        return completions::jobs(global).map(success);
    }
    if Program::Tools.command_names().any(|tool| tool == name) {
        return Err(tools::become_tools(name, args));
    }
    if parse::is_configuration(global) {
        return run::run(&parse::arguments_of_run(global.flags_only(), &global.rest)?, supervisor);
    }
    // With a ContainerPilot 2 configuration it is the main program.
    run::run(global, supervisor)
}

fn run_command(
    command: &'static Command,
    all: &[OsString],
    global: &Arguments,
    supervisor: Supervisor,
) -> Result<u8, Failure> {
    let name = command.name;
    let Some(mut own) = parse::parse_command(PROGRAM, command, global)? else { return Ok(0) };
    if name == "run" {
        let args = global.rest.get(1..).unwrap_or_default();
        return run::run(&parse::arguments_of_run(global.flags_only(), args)?, supervisor);
    }
    own.inherit(global);
    own.double_dash = false;
    check_arguments(PROGRAM, command, &own).map_err(Failure::Usage)?;
    let outcome = match command.name {
        "check" => check::check(&own, supervisor),
        "render" => render::render(&own),
        "status" => status::status(&own),
        "exec" => exec::exec(&own),
        "explain" => explain::explain(&own),
        "analyze" => analyze::analyze(&own),
        "health" => health::health(&own),
        "top" => top::top(&own),
        "wait" => wait::wait(&own),
        "logs" => logs::logs(&own),
        "events" => events::events(&own),
        "record" => record::record(&own),
        "start" | "stop" | "restart" => control::jobs(command.name, &own),
        "scale" => control::scale(&own),
        "signal" => control::signal(&own),
        "reload" => control::reload(&own),
        "maintenance" => control::maintenance(&own),
        "putenv" => control::put("/v3/environ", &own),
        "putmetric" => control::put("/v3/metric", &own),
        "ping" => control::ping(&own),
        "version" => print(&version()),
        "help" => print_help(&own, all),
        _ => Err(Failure::Usage(unknown_command(PROGRAM, name))),
    };
    if let Err(Failure::Failed(why) | Failure::InvalidInput(why)) = &outcome
        && prints_json_errors(name, &own)
    {
        print(&format!("{}\n", serde_json::json!({ "error": why })))?;
    }
    outcome.map(success)
}

/// `help`: the program and its commands. The tools have everything else: their own commands, and the manual.
fn print_help(args: &Arguments, all: &[OsString]) -> Result<(), Failure> {
    if args.rest.is_empty() {
        return print(&help::overview(PROGRAM));
    }
    let topic = args.rest.join(OsStr::new(" "));
    let topic = topic.to_string_lossy();
    match COMMANDS.iter().find(|command| command.name == topic) {
        Some(command) => print(&help::command(PROGRAM, command)),
        None => Err(tools::become_tools(&format!("help {topic}"), all)),
    }
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

/// A command that does not exist, which may be a program.
fn unknown_command_or_program(name: &str) -> Failure {
    let what = match name.contains('/') && !Path::new(name).exists() {
        true => format!("there is no configuration `{name}`, and no such command"),
        false => unknown_command(PROGRAM, name),
    };
    Failure::Usage(format!("{what}\nTo run a program, put `--` before it."))
}
