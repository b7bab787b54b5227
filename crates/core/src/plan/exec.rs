//! What a run of a job does: a program, an action of the supervisor, or nothing.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Command, Signal};

/// What a run of a job does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exec {
    /// Nothing: the job only advertises and checks something that runs elsewhere (W11).
    Nothing,
    /// A program.
    Program(Command),
    /// An action of the supervisor (W19). Such a job has no process.
    Action(Action),
}

impl Exec {
    /// Returns true if there is neither a program nor an action.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Returns true if there is a program or an action: the job sends `exitSuccess` and `exitFailed`.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        !self.is_none()
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> Option<&Command> {
        match self {
            Self::Program(command) => Some(command),
            Self::Nothing | Self::Action(_) => None,
        }
    }

    /// The action.
    #[must_use]
    pub const fn action(&self) -> Option<&Action> {
        match self {
            Self::Action(action) => Some(action),
            Self::Nothing | Self::Program(_) => None,
        }
    }
}

/// An action of the supervisor, in place of a program (W19).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Send a signal to the process groups of these jobs.
    Signal(Signal, Target),
    /// Start these jobs.
    Start(Target),
    /// Stop these jobs.
    Stop(Target),
    /// Restart these jobs.
    Restart(Target),
    /// Reload the configuration (R1).
    Reload,
    /// Enter or leave maintenance mode (D8).
    Maintenance(bool),
    /// Shut down and exit with this code (S5).
    Shutdown(u8),
    /// Set variables of all processes started from then on (P7). `None` unsets one.
    SetEnv(#[serde(serialize_with = "crate::recorded::names_as_is")] Vec<(String, Option<String>)>),
}

impl Action {
    /// The jobs that it concerns; `None` if it concerns the supervisor.
    #[must_use]
    pub const fn target(&self) -> Option<&Target> {
        match self {
            Self::Signal(_, target) | Self::Start(target) | Self::Stop(target) | Self::Restart(target) => {
                Some(target)
            }
            Self::Reload | Self::Maintenance(_) | Self::Shutdown(_) | Self::SetEnv(_) => None,
        }
    }

    /// Returns true if it starts its target.
    #[must_use]
    pub const fn starts(&self) -> bool {
        matches!(self, Self::Start(_) | Self::Restart(_))
    }
}

impl fmt::Display for Action {
    /// Writes it as a phrase: `restart web`. Values of variables are left out, since they may be secret (L5).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal, to) => write!(out, "send {signal} to {to}"),
            Self::Start(target) => write!(out, "start {target}"),
            Self::Stop(target) => write!(out, "stop {target}"),
            Self::Restart(target) => write!(out, "restart {target}"),
            Self::Reload => out.write_str("reload the configuration"),
            Self::Maintenance(true) => out.write_str("enter maintenance mode"),
            Self::Maintenance(false) => out.write_str("leave maintenance mode"),
            Self::Shutdown(code) => write!(out, "shut down with code {code}"),
            Self::SetEnv(variables) => {
                out.write_str("set")?;
                for (nth, (name, _)) in variables.iter().enumerate() {
                    write!(out, "{} {name}", if nth == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Action {
    /// Hides the values of variables (L5).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Action({self})")
    }
}

/// The jobs that an action or a command concerns: those with a name, or those of a group (W22).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// The jobs of this name, or the replicas of the job of this name (W20).
    Job(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// The jobs of this group, without the `@`.
    Group(#[serde(serialize_with = "crate::recorded::as_is")] String),
}

impl Target {
    /// The target of a name; one that begins with `@` is a group.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name.strip_prefix('@') {
            Some(group) => Self::Group(group.into()),
            None => Self::Job(name.into()),
        }
    }

    /// Returns true if a job belongs to it.
    #[must_use]
    pub fn includes(&self, job: &super::Job) -> bool {
        match self {
            Self::Job(name) => job.name == *name || job.is_replica_of(name),
            Self::Group(group) => job.groups.contains(group),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(name) => out.write_str(name),
            Self::Group(group) => write!(out, "@{group}"),
        }
    }
}
