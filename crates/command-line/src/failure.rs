//! Why a command failed, and its exit code.

use std::fmt;
use std::io::Write;

use containerpilot_api::NotOneJob;
use containerpilot_load::find_files::ReadError;
use containerpilot_process::error_text::describe;

/// Why a command failed (X6).
#[derive(Debug)]
pub enum Failure {
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

impl From<NotOneJob> for Failure {
    fn from(error: NotOneJob) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported => Ok(()),
            Self::Failed(message)
            | Self::WithCode(_, message)
            | Self::Usage(message)
            | Self::CommandUsage(_, message)
            | Self::InvalidInput(message) => out.write_str(message),
        }
    }
}

impl Failure {
    /// Prints the failure to standard error; `name` is that of the program that the user has called. Returns the exit
    /// code.
    pub fn report(&self, name: &str) -> u8 {
        let text = match self {
            Self::Reported => return 1,
            Self::Failed(_) | Self::WithCode(..) | Self::InvalidInput(_) => self.to_string(),
            Self::Usage(_) => format!("{self}\nTry `{name} help`."),
            Self::CommandUsage(command, _) => format!("{self}\nTry `{name} help {command}`."),
        };
        // It may have names of a file from anywhere.
        let text = text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
        // If standard error is closed, the exit code still reports the failure.
        let _ = writeln!(std::io::stderr(), "{name}: {text}");
        match self {
            Self::Failed(_) | Self::Reported => 1,
            Self::WithCode(code, _) => *code,
            Self::Usage(_) | Self::CommandUsage(..) | Self::InvalidInput(_) => 2,
        }
    }
}
