//! The `containerpilot-tools` program: what works on files, before a deployment or after an incident (X15).
#![forbid(unsafe_code)]

mod audit;
mod completions;
mod graph;
mod init;
mod man;
mod manual;
mod mcp;
mod migrate;
mod on_disk;
mod replay;
mod simulate;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::help;
use containerpilot_command_line::output::print;
use containerpilot_command_line::parse::{self, check_arguments, unknown_command};
use containerpilot_command_line::table::{CALLED_BY, Command, Program, TOOLS, TOOLS_FLAGS};
use containerpilot_command_line::version::{VERSION, version};

const PROGRAM: Program = Program::Tools;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // `containerpilot` passes its version before all other arguments.
    let (caller, args) = match args.split_first() {
        Some((first, rest)) if first.as_encoded_bytes().starts_with(CALLED_BY.as_bytes()) => {
            (Some(first), rest)
        }
        _ => (None, args.as_slice()),
    };
    let name = if caller.is_some() { PROGRAM.other().name() } else { PROGRAM.name() };
    if let Some(version) = caller.and_then(|caller| caller.to_str()?.strip_prefix(CALLED_BY))
        && version != VERSION
    {
        // If standard error is closed, the command still works.
        let _ = writeln!(
            std::io::stderr(),
            "warning: containerpilot {version} runs containerpilot-tools {VERSION}: install the same version of both"
        );
    }
    ExitCode::from(dispatch(args).map_or_else(|failure| failure.report(name), |()| 0))
}

fn dispatch(args: &[OsString]) -> Result<(), Failure> {
    let global = match flags::parse(TOOLS_FLAGS, args) {
        Ok(global) => global,
        Err(error) => return parse::help_or_failure(PROGRAM, &error, None),
    };
    if global.is_on("version") {
        return print(&version());
    }
    let Some(name) = global.rest.first().map(|name| name.to_string_lossy().into_owned()) else {
        return print(&help::overview(PROGRAM));
    };
    let Some(command) = TOOLS.iter().find(|command| command.name == name) else {
        let message = match PROGRAM.other().command_names().any(|other| other == name) {
            true => format!("`{name}` is a command of {}", PROGRAM.other().name()),
            false => unknown_command(PROGRAM, &name),
        };
        return Err(Failure::Usage(message));
    };
    run_command(command, &global).map_err(|failure| parse::failed(command, failure))
}

fn run_command(command: &'static Command, global: &Arguments) -> Result<(), Failure> {
    let Some(mut own) = parse::parse_command(PROGRAM, command, global)? else { return Ok(()) };
    own.inherit(global);
    // Only `migrate` takes a program after `--`.
    own.double_dash &= command.name == "migrate";
    check_arguments(PROGRAM, command, &own).map_err(Failure::Usage)?;
    match command.name {
        "audit" => audit::audit(&own),
        "graph" => graph::graph(&own),
        "replay" => replay::replay(&own),
        "init" => init::init(&own),
        "simulate" => simulate::simulate(&own),
        "schema" => print(&containerpilot_config::schema::json_schema()),
        "version" => print(&version()),
        "help" if own.rest.is_empty() => print(&help::overview(PROGRAM)),
        "help" => manual::show(&own.rest.join(OsStr::new(" ")).to_string_lossy()),
        "completions" => completions::completions(&own),
        "mcp" => mcp::mcp(&own),
        "migrate" => migrate::migrate(&own),
        "man" => print(&man::page()),
        name => Err(Failure::Usage(unknown_command(PROGRAM, name))),
    }
}
