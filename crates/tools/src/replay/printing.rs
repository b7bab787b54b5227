//! How the answers are printed.

use std::io::Write;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_text::screen::{Screen, sanitized};

/// Prints to standard error. If that is closed, the command still works.
pub(super) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", sanitized(text));
}

pub(super) fn unknown_format(given: &str, known: &str) -> Failure {
    Failure::Usage(format!("unknown format `{given}`: the formats are {known}"))
}

/// That of standard output, unless it goes to a file.
pub(super) fn screen(args: &Arguments) -> Screen {
    if matches!(args.text("out"), "" | "-") { stdout_screen() } else { Screen::default() }
}
