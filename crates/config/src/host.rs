//! What a configuration can ask about the machine it is for.
//!
//! The configuration layer touches no file and no process; whoever loads a configuration answers these
//! questions. A [`StaticHost`] host answers from a description, for tests and tools.

use std::collections::{BTreeMap, BTreeSet};

use crate::interfaces::HostAddress;
use crate::template::Environment;

/// The machine a configuration is loaded on.
pub trait Host {
    /// The environment, which is also the template's data.
    fn environment(&self) -> &Environment;
    /// The addresses of the network interfaces.
    fn addresses(&self) -> &[HostAddress];
    /// The host's name.
    fn hostname(&self) -> &str;
    /// Whether a program can be run.
    fn program(&self, program: &str) -> ProgramState;
    /// Whether a file can be read; the error is in the system's own words.
    fn readable(&self, path: &str) -> Result<(), String>;
    /// Whether there is such a user.
    fn has_user(&self, name: &str) -> bool;
    /// Whether there is such a group.
    fn has_group(&self, name: &str) -> bool;

    /// A variable of the environment, if it is set, not empty and text.
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment().get(name.as_bytes())?;
        String::from_utf8(value.clone()).ok().filter(|text| !text.is_empty())
    }
}

/// Whether a program can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// It can.
    Runnable,
    /// There is no such file, or none in `PATH`.
    Missing,
    /// There is, but it may not be executed, or it is a directory.
    NotExecutable,
}

/// A host that exists only as a description.
#[derive(Clone, Debug, Default)]
pub struct StaticHost {
    /// The environment.
    pub environment: Environment,
    /// The network interfaces' addresses.
    pub addresses: Vec<HostAddress>,
    /// The host's name.
    pub hostname: String,
    /// Programs that cannot be run; every other can.
    pub programs: BTreeMap<String, ProgramState>,
    /// The files that can be read.
    pub files: BTreeSet<String>,
    /// The users and groups there are.
    pub accounts: BTreeSet<String>,
}

impl Host for StaticHost {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn addresses(&self) -> &[HostAddress] {
        &self.addresses
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn program(&self, program: &str) -> ProgramState {
        self.programs.get(program).copied().unwrap_or(ProgramState::Runnable)
    }

    fn readable(&self, path: &str) -> Result<(), String> {
        if self.files.contains(path) { Ok(()) } else { Err("No such file or directory".to_owned()) }
    }

    fn has_user(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }

    fn has_group(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }
}
