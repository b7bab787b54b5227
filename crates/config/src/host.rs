//! The host that a configuration is loaded for.
//!
//! This crate reads no file and starts no process; the caller answers these questions. [`StaticHost`] has fixed answers, for
//! tests and tools.

use std::collections::{BTreeMap, BTreeSet};

use crate::interfaces::HostAddress;
use crate::template::Environment;

/// The host that a configuration is loaded for.
pub trait Host {
    /// The environment variables, which are also the data of the template.
    fn environment(&self) -> &Environment;
    /// The addresses of the network interfaces.
    fn addresses(&self) -> &[HostAddress];
    /// The host name.
    fn hostname(&self) -> &str;
    /// Checks whether a program can be run.
    fn program(&self, program: &str) -> ProgramState;
    /// Checks that a file can be read. The error is the message of the operating system.
    fn readable(&self, path: &str) -> Result<(), String>;
    /// Returns true if the user exists.
    fn has_user(&self, name: &str) -> bool;
    /// Returns true if the group exists.
    fn has_group(&self, name: &str) -> bool;

    /// An environment variable, if it is set, not empty and valid UTF-8.
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment().get(name.as_bytes())?;
        String::from_utf8(value.clone()).ok().filter(|text| !text.is_empty())
    }
}

/// Whether a program can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// It can be run.
    Runnable,
    /// The file does not exist, or is not in `PATH`.
    Missing,
    /// The file is not executable.
    NotExecutable,
    /// It is a directory.
    Directory,
}

/// A host with fixed answers.
#[derive(Clone, Debug, Default)]
pub struct StaticHost {
    /// The environment.
    pub environment: Environment,
    /// The addresses of the network interfaces.
    pub addresses: Vec<HostAddress>,
    /// The host name.
    pub hostname: String,
    /// The programs that cannot be run; all others can.
    pub programs: BTreeMap<String, ProgramState>,
    /// The files that can be read.
    pub files: BTreeSet<String>,
    /// The users and groups that exist.
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
        if self.files.contains(path) { Ok(()) } else { Err("no such file or directory".to_owned()) }
    }

    fn has_user(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }

    fn has_group(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }
}
