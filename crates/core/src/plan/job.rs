//! A job: a process with rules for when it runs, how it is checked and how it is advertised.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Backoff, Exec, Health, JobOutput, Process, Ready, Replica, Requirement, RestartOn, Restarts, Service,
    StartLimit, Stop, When, Word,
};
use crate::exit_status::ExitStatus;
use crate::secrets::without_passwords;

/// A process with rules for when it runs, how it is checked and how it is advertised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The name, which is also the source of its events.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// What kind of job it is (W10).
    pub role: Role,
    /// The groups it belongs to (W22).
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub groups: Vec<String>,
    /// What a run does.
    pub exec: Exec,
    /// When it runs.
    pub when: When,
    /// What must be there before it starts (W18).
    pub requires: Vec<Requirement>,
    /// The names of the jobs that stop before it, besides those that require it (S10).
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub stop_after: Vec<String>,
    /// How long one run may take (P5).
    pub timeout: Option<Duration>,
    /// How often it is restarted after a run has ended (W6).
    pub restarts: Restarts,
    /// After which runs it is restarted (W13).
    pub restart_on: RestartOn,
    /// The exits that are a success (W13). Empty: only exit code 0.
    pub success_codes: Vec<ExitStatus>,
    /// The limit of automatic starts (W14).
    pub start_limit: Option<StartLimit>,
    /// The delay between restarts (W8). `None` restarts without delay, as 3.8 does.
    pub backoff: Option<Backoff>,
    /// How it is stopped (S2).
    pub stop: Stop,
    /// What happens to the container when the job fails (S5).
    pub on_failure: OnCompletion,
    /// What happens to the container when the job completes successfully (S5).
    pub on_success: OnCompletion,
    /// How its process reports that it is ready. Then `health` has a check of [`Probe::Ready`](super::Probe::Ready)
    /// (H11).
    pub ready: Option<Ready>,
    /// Its health checks.
    pub health: Option<Health>,
    /// The service it advertises in the catalog.
    pub service: Option<Service>,
    /// User, working directory, limits and so on (P9).
    pub process: Process,
    /// What happens to its output (L2, L8).
    pub output: JobOutput,
    /// Which replica it is (W20).
    pub replica: Option<Box<Replica>>,
}

impl Job {
    /// Returns true if it is a replica of the job with this name (W20).
    #[must_use]
    pub fn is_replica_of(&self, group: &str) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.group == group)
    }

    /// Returns true if its name is its command line: the default name of a coprocess (C6).
    pub(crate) fn has_command_name(&self) -> bool {
        let command = self.exec.program().filter(|_| self.role == Role::Coprocess);
        command.is_some_and(|command| !command.arguments.is_empty() && self.name == command.line())
    }
}

/// What kind of job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A job of the configuration.
    User,
    /// The program on the command line. When it ends, the container ends (S7).
    Main,
    /// A sidecar: it starts before the other jobs, stops after them, and neither keeps the supervisor running nor
    /// stops it (C6).
    Coprocess,
    /// The job that advertises the telemetry server.
    Telemetry,
    /// A job whose output is a value of the metric with this index (T2). It neither keeps the supervisor running nor
    /// affects its exit code.
    Sensor(u32),
}

impl Role {
    /// The name in the JSON of the servers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "job",
            Self::Main => "main",
            Self::Coprocess => "coprocess",
            Self::Telemetry => "telemetry",
            Self::Sensor(_) => "sensor",
        }
    }

    /// Returns true if the job is not part of the container's own work.
    #[must_use]
    pub const fn is_secondary(self) -> bool {
        matches!(self, Self::Coprocess | Self::Telemetry | Self::Sensor(_))
    }
}

/// A program and its arguments (P8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program, searched in `PATH` when it contains no slash.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub program: Word,
    /// Its arguments, without the program.
    pub arguments: Vec<Word>,
}

impl Command {
    /// The program and its arguments in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let words = core::iter::once(&self.program).chain(&self.arguments);
        words.map(Word::text).collect::<Vec<_>>().join(" ")
    }

    /// The arguments for the log, in the words of 3.8: `'[-c app]'`. Secrets are hidden (L5), and a long text is cut.
    #[must_use]
    pub(crate) fn arguments_in_log(&self) -> String {
        const LONGEST: usize = 200;
        let words = self.arguments.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        let words = String::from_utf8_lossy(&without_passwords(words.as_bytes())).into_owned();
        match words.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("'[{}…]'", &words[..end]),
            None => format!("'[{words}]'"),
        }
    }
}

/// What happens to the container when a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCompletion {
    /// The other jobs continue.
    Continue,
    /// The container shuts down.
    Shutdown,
}
