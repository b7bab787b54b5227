//! The output of `help`, generated from the table of commands.

use std::fmt::Write;

use super::flags::{Flag, FlagKind};
use super::manual::manual;
use super::table::{COMMANDS, Command, EXIT_CODES, MAIN_FLAGS, VARIABLES};

const WIDTH: usize = 80;

/// Help for the whole program.
pub(super) fn overview() -> String {
    let mut out = String::from(
        "containerpilot: an init system for containers\n\n\
         Usage:\n  containerpilot [FLAGS] [PATH] [-- PROGRAM ARGS…]\n  containerpilot COMMAND [FLAGS] [ARGUMENTS]\n\n\
         Commands:\n",
    );
    for command in COMMANDS {
        row(&mut out, command.name, command.about);
    }
    out.push_str("\nFlags (one dash or two; `-flag value` or `-flag=value`):\n");
    for flag in MAIN_FLAGS {
        row(&mut out, &flag_usage(flag), flag.help);
    }
    out.push_str("\nExit codes:\n");
    for (code, meaning) in EXIT_CODES {
        row(&mut out, code, meaning);
    }
    out.push_str("\nEnvironment:\n");
    for (name, meaning) in VARIABLES {
        row(&mut out, name, meaning);
    }
    let _ = write!(
        out,
        "\n`containerpilot help COMMAND` prints the help of a command, `containerpilot help TOPIC` a page of the manual.\n\
         `containerpilot help topics` lists the pages.\n"
    );
    out
}

/// Help for one command.
pub(super) fn command(command: &Command) -> String {
    let mut out =
        format!("containerpilot {}: {}\n\nUsage:\n  {}\n\n", command.name, command.about, usage(command));
    for paragraph in command.details.lines() {
        wrap(&mut out, paragraph);
    }
    if !command.flags.is_empty() {
        out.push_str("\nFlags:\n");
        for flag in command.flags {
            row(&mut out, &flag_usage(flag), flag.help);
        }
    }
    if manual().pages().any(|page| page.topic() == command.name) {
        let _ = write!(out, "\nThe page of the manual: containerpilot help manual/{}\n", command.name);
    }
    out
}

/// `containerpilot wait [FLAGS] [JOB…] STATE`
pub(super) fn usage(command: &Command) -> String {
    let flags = if command.flags.is_empty() { "" } else { " [FLAGS]" };
    let space = if command.arguments.is_empty() { "" } else { " " };
    format!("containerpilot {}{flags}{space}{}", command.name, command.arguments)
}

/// The flag with its short form and the name of its value.
pub(super) fn flag_usage(flag: &Flag) -> String {
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

fn wrap(out: &mut String, paragraph: &str) {
    let mut column = 0;
    for word in paragraph.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
