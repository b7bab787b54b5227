//! The manual page, generated from the table of commands.

use std::fmt::Write;

use containerpilot_command_line::help::flag_usage;
use containerpilot_command_line::table::{COMMANDS, Command, EXIT_CODES, MAIN_FLAGS, TOOLS, VARIABLES};
use containerpilot_command_line::version::VERSION;

/// The page in roff, for section 1.
pub(crate) fn page() -> String {
    let mut out = format!(
        ".TH CONTAINERPILOT 1 \"2026-11-15\" \"containerpilot {}\" \"User Commands\"\n\
         .SH NAME\ncontainerpilot \\- an init system for containers\n\
         .SH SYNOPSIS\n.B containerpilot\n[\\fIFLAGS\\fR] [\\fIPATH\\fR] [\\fB\\-\\-\\fR \\fIPROGRAM ARGS\\fR…]\n.br\n\
         .B containerpilot\n\\fICOMMAND\\fR [\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n\
         .SH DESCRIPTION\n\
         containerpilot runs the jobs of a container. A job is a process with rules: when it starts, how its health is \
         checked and how it is registered in Consul. Jobs start at events of other jobs, and watches follow the services \
         that they depend on.\n\
         .SH FLAGS\n\
         A flag has one dash or two; its value follows after a space or =. These flags are given before a command or \
         without one; the flags of each command are listed with it.\n",
        roff(VERSION)
    );
    for flag in MAIN_FLAGS {
        let _ = write!(out, ".TP\n.B {}\n{}\n", roff(&flag_usage(flag)), roff(flag.help));
    }
    out.push_str(".SH COMMANDS\n");
    commands(&mut out, COMMANDS);
    out.push_str(
        ".SH COMMANDS OF CONTAINERPILOT\\-TOOLS\nThey work on files. If\n.B containerpilot\\-tools\nlies beside\n\
         .B containerpilot\nor in PATH,\n.B containerpilot \\fICOMMAND\\fR\nruns them.\n",
    );
    // Both programs have `version` and `help`.
    let own: Vec<&Command> =
        TOOLS.iter().copied().filter(|tool| !COMMANDS.iter().any(|other| other.name == tool.name)).collect();
    commands(&mut out, &own);
    out.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in EXIT_CODES {
        let _ = write!(out, ".TP\n.B {code}\n{}\n", roff(meaning));
    }
    out.push_str(".SH ENVIRONMENT\n");
    for (name, meaning) in VARIABLES {
        let _ = write!(out, ".TP\n.B {}\n{}\n", roff(name), roff(meaning));
    }
    out.push_str(".SH FILES\n");
    for (path, meaning) in [
        ("/etc/containerpilot.json5", "the default configuration"),
        (
            "/etc/containerpilot.d",
            "the directory with the default configuration, if that file does not exist",
        ),
        ("/var/run/containerpilot.socket", "the default control socket"),
    ] {
        let _ = write!(out, ".TP\n.I {}\n{}\n", roff(path), roff(meaning));
    }
    out.push_str(
        ".SH SEE ALSO\nThe tools contain the manual:\n.B containerpilot help topics\nlists the pages, and\n\
         .B containerpilot help \\fITOPIC\\fR\nprints one of them, such as\n.BR jobs ,\n.BR reference\nor\n.BR stopping .\n",
    );
    out
}

fn commands(out: &mut String, commands: &[&Command]) {
    for command in commands {
        let _ =
            write!(out, ".SS \"{} {}\"\n{}\n", command.name, roff(command.arguments), roff(command.about));
        for paragraph in command.details.lines().filter(|line| !line.is_empty()) {
            let _ = write!(out, ".PP\n{}\n", roff(paragraph));
        }
        for flag in command.flags {
            let _ = write!(out, ".TP\n.B {}\n{}\n", roff(&flag_usage(flag)), roff(flag.help));
        }
    }
}

/// Escapes a text for roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga").replace('"', "\\(dq");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}
