//! Prints the problems of a configuration to standard error.

use std::io::Write;

use containerpilot_config::diagnostics::{Report, Style};

use crate::terminal::stderr_has_colour;

/// Prints errors and warnings.
pub fn print_report(report: &Report, faults_are_errors: bool) {
    let mut text = report.display(style(faults_are_errors)).to_string();
    if !text.is_empty() {
        text.push('\n');
        // If standard error is closed, the exit code still reports the failure.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

pub fn style(faults_are_errors: bool) -> Style {
    Style { faults_are_errors, colour: stderr_has_colour() }
}
