//! The output of `help`, generated from the table of commands.

use std::fmt::Write;

use containerpilot_config::columns;

use crate::flags::{Flag, FlagKind};
use crate::table::{COMMANDS, Command, EXIT_CODES, MAIN_FLAGS, Program, TOOLS, TOOLS_FLAGS, VARIABLES};

const WIDTH: usize = 80;

/// Help for the whole program.
pub fn overview(program: Program) -> String {
    match program {
        Program::Containerpilot => containerpilot(),
        Program::Tools => tools(),
    }
}

fn containerpilot() -> String {
    let mut out = String::from(
        "containerpilot: an init system for containers\n\n\
         Usage:\n  containerpilot [FLAGS] [PATH] [-- PROGRAM ARGS…]\n  containerpilot COMMAND [FLAGS] [ARGUMENTS]\n\n\
         Commands:\n",
    );
    for command in COMMANDS {
        row(&mut out, command.name, command.about);
    }
    out.push_str(
        "\nCommands of containerpilot-tools, which `containerpilot COMMAND` runs if it is installed:\n",
    );
    for (name, about) in Program::Tools.abouts() {
        row(&mut out, name, about);
    }
    out.push_str("\nFlags (one dash or two; `-flag value` or `-flag=value`):\n");
    for flag in MAIN_FLAGS {
        row(&mut out, &flag_usage(flag), flag.help);
    }
    ending(&mut out);
    out
}

fn tools() -> String {
    let mut out = String::from(
        "containerpilot-tools: what works on the files of containerpilot, before a deployment or after an incident\n\n\
         Usage:\n  containerpilot-tools COMMAND [FLAGS] [ARGUMENTS]\n\n\
         Commands:\n",
    );
    for command in TOOLS {
        row(&mut out, command.name, command.about);
    }
    out.push_str("\nFlags (one dash or two; `-flag value` or `-flag=value`):\n");
    for flag in TOOLS_FLAGS {
        row(&mut out, &flag_usage(flag), flag.help);
    }
    ending(&mut out);
    out
}

/// What both programs have in common.
fn ending(out: &mut String) {
    out.push_str("\nExit codes:\n");
    for (code, meaning) in EXIT_CODES {
        row(out, code, meaning);
    }
    out.push_str("\nEnvironment:\n");
    for (name, meaning) in VARIABLES {
        row(out, name, meaning);
    }
    out.push_str(
        "\n`containerpilot help COMMAND` prints the help of a command, `containerpilot help TOPIC` a page of the manual.\n\
         `containerpilot help topics` lists the pages.\n",
    );
}

/// Help for one command.
pub fn command(program: Program, command: &Command) -> String {
    let usage = usage(program, command);
    let mut out = format!("{} {}: {}\n\nUsage:\n  {usage}\n\n", program.name(), command.name, command.about);
    for paragraph in command.details.lines() {
        for line in columns::wrap(paragraph.split(' '), WIDTH) {
            let _ = writeln!(out, "{line}");
        }
    }
    if !command.flags.is_empty() {
        out.push_str("\nFlags:\n");
        for flag in command.flags {
            row(&mut out, &flag_usage(flag), flag.help);
        }
    }
    if command.has_page() {
        let _ = write!(out, "\nThe page of the manual: containerpilot help manual/{}\n", command.name);
    }
    out
}

/// `containerpilot wait [FLAGS] [JOB…] STATE`
pub fn usage(program: Program, command: &Command) -> String {
    let flags = if command.flags.is_empty() { "" } else { " [FLAGS]" };
    let space = if command.arguments.is_empty() { "" } else { " " };
    format!("{} {}{flags}{space}{}", program.name(), command.name, command.arguments)
}

/// The flag with its short form and the name of its value.
pub fn flag_usage(flag: &Flag) -> String {
    let name = match flag.letter() {
        Some(letter) => format!("-{letter}, -{}", flag.name),
        None => format!("-{}", flag.name),
    };
    match flag.kind {
        FlagKind::Bool => name,
        FlagKind::Text(value) => format!("{name} {value}"),
        FlagKind::Pairs => format!("{name} KEY=VALUE"),
    }
}

fn row(out: &mut String, name: &str, meaning: &str) {
    if name.len() > 26 {
        let _ = writeln!(out, "  {name}\n  {:27}{meaning}", "");
    } else {
        let _ = writeln!(out, "  {name:27}{meaning}");
    }
}
