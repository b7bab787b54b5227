//! What the new files are made from.

use std::time::Duration;

pub(super) const CONFIG: &str = "containerpilot.json5";
pub(super) const DOCKERFILE: &str = "Dockerfile.containerpilot";
pub(super) const SCENARIO: &str = "containerpilot.scenario.json5";

/// The answers without a terminal.
pub(super) const PROGRAM: &str = "/bin/server";
pub(super) const PORT: u16 = 8080;

/// What runs in the container.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The program and its arguments.
    pub(super) program: Vec<String>,
    pub(super) health: Option<Health>,
    /// Another program that runs as long as the container.
    pub(super) beside: Option<Vec<String>>,
    /// What runs once, before the others.
    pub(super) setup: Option<Vec<String>>,
    /// What a Dockerfile says.
    pub(super) image: Option<FromImage>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Health {
    Tcp(u16),
    Http(u16, String),
    Exec(Vec<String>, Times),
}

/// The times of `HEALTHCHECK`; `None` for the defaults of containerpilot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) interval: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) start_period: Option<Duration>,
    pub(super) failures: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct FromImage {
    pub(super) path: String,
    /// The lines that the configuration comes from, as comments.
    pub(super) program_from: Vec<String>,
    pub(super) health_from: Option<String>,
    /// Whether the Dockerfile has a CMD, which would become arguments of containerpilot.
    pub(super) has_cmd: bool,
    /// The stop signal of the program, if it is not SIGTERM, and the line it comes from.
    pub(super) stop_signal: Option<(String, String)>,
    /// The user, if it is known, and the line it comes from.
    pub(super) user: Option<(String, String)>,
    /// Whether the supervisor runs as another user than root.
    pub(super) unprivileged: bool,
    /// What a reader has to look at.
    pub(super) notes: Vec<String>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            program: vec![PROGRAM.to_owned()],
            health: Some(Health::Tcp(PORT)),
            beside: None,
            setup: None,
            image: None,
        }
    }
}
