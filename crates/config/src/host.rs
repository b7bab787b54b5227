//! The host that a configuration is loaded for.
//!
//! This crate reads no file and starts no process; the caller answers these questions. [`StaticHost`] has fixed answers, for
//! tests and tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use containerpilot_core::inserted;
use containerpilot_core::plan::{Capabilities, Process};

use crate::interfaces::HostAddress;
use crate::limits::ENV_FILE_BYTES;
use crate::template::Environment;

/// How long all looks at [`Paths`] may take together (P15).
pub const PATIENCE: Duration = Duration::from_secs(1);

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
    /// Returns true if the path is a directory.
    fn is_directory(&self, path: &str) -> bool;
    /// Returns false if a process cannot get its user and group, because the supervisor lacks the privilege.
    fn can_switch_to(&self, process: &Process) -> bool;
    /// Checks that a file can be read. The error is the message of the operating system.
    fn readable(&self, path: &str) -> Result<(), String>;
    /// Checks that a file can be written, or created with its folders. The error is the message of the operating system.
    fn writable(&self, path: &str) -> Result<(), String>;
    /// The content of a regular file of at most [`limits::ENV_FILE_BYTES`](crate::limits::ENV_FILE_BYTES).
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, FileError>;
    /// Looks at paths of jobs, each of which may be on a file system that does not answer. A path without an answer
    /// within [`PATIENCE`] is missing in the result.
    fn examine(&self, paths: &Paths) -> Examined {
        look_at_each(self, paths)
    }

    /// Returns true if the user exists.
    fn has_user(&self, name: &str) -> bool;
    /// Returns true if the group exists.
    fn has_group(&self, name: &str) -> bool;

    /// The capabilities of the supervisor.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    /// Returns true if the supervisor is a process of another one, whose control socket is in the environment (P12).
    fn is_nested(&self) -> bool {
        false
    }

    /// The names of all users (`"user"`) or groups (`"group"`), for suggestions.
    fn account_names(&self, _what: &str) -> Vec<String> {
        Vec::new()
    }

    /// The version of the host's time zones, such as `2026a`.
    fn zone_version(&self) -> Option<String> {
        None
    }

    /// The host's data of a time zone (TZif). The name is a relative path without `..`.
    fn zone(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }

    /// An environment variable, if it is set, not empty and valid UTF-8.
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment().get(name.as_bytes())?;
        String::from_utf8(value.clone()).ok().filter(|text| !text.is_empty())
    }
}

/// The paths of jobs that loading looks at. No other job depends on the answers, so none waits for them (P15).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Programs, for [`Host::program`].
    pub programs: BTreeSet<String>,
    /// Working directories, for [`Host::is_directory`].
    pub directories: BTreeSet<String>,
    /// Certificates and keys, for [`Host::readable`].
    pub files: BTreeSet<String>,
    /// Templates of rendered files, for [`Host::read_file`].
    pub templates: BTreeSet<String>,
    /// Log files of jobs, for [`Host::writable`].
    pub log_files: BTreeSet<String>,
}

/// What a host has found at [`Paths`]. A path that is missing did not answer in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Whether the programs can be run.
    pub programs: BTreeMap<String, ProgramState>,
    /// Whether the paths are directories.
    pub directories: BTreeMap<String, bool>,
    /// Whether the files can be read.
    pub files: BTreeMap<String, Result<(), String>>,
    /// The content of the templates.
    pub templates: BTreeMap<String, Result<Vec<u8>, FileError>>,
    /// Whether the log files can be written.
    pub log_files: BTreeMap<String, Result<(), String>>,
}

/// Looks at one path after another, and waits for each answer.
fn look_at_each<H: Host + ?Sized>(host: &H, paths: &Paths) -> Examined {
    fn each<T>(paths: &BTreeSet<String>, look: impl Fn(&str) -> T) -> BTreeMap<String, T> {
        inserted(paths.iter().map(|path| (path.clone(), look(path))))
    }
    Examined {
        programs: each(&paths.programs, |path| host.program(path)),
        directories: each(&paths.directories, |path| host.is_directory(path)),
        files: each(&paths.files, |path| host.readable(path)),
        templates: each(&paths.templates, |path| host.read_file(path)),
        log_files: each(&paths.log_files, |path| host.writable(path)),
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// It does not exist.
    Missing,
    /// It is larger than the limit.
    TooLarge,
    /// The message of the operating system.
    Other(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("no such file or directory"),
            Self::TooLarge => write!(out, "larger than {} KiB", ENV_FILE_BYTES / 1024),
            Self::Other(message) => out.write_str(message),
        }
    }
}

/// Whether a program can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// It can be run.
    Runnable,
    /// The file does not exist, or is not in `PATH`.
    Missing,
    /// It is a script, and the program in its `#!` line does not exist.
    NoInterpreter(String),
    /// The file is not executable.
    NotExecutable,
    /// It is a directory.
    Directory,
    /// The file cannot be executed.
    Unusable {
        /// What is wrong with it: `is empty`.
        reason: String,
        /// What to do.
        help: String,
    },
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
    /// The paths that are no directories; all others are.
    pub not_directories: BTreeSet<String>,
    /// True if the supervisor has no capability, and so lacks the privilege to switch users.
    pub unprivileged: bool,
    /// The files that can be read.
    pub files: BTreeSet<String>,
    /// The content of files.
    pub contents: BTreeMap<String, Vec<u8>>,
    /// The paths without an answer, for [`Host::examine`].
    pub unanswered: BTreeSet<String>,
    /// The users and groups that exist.
    pub accounts: BTreeSet<String>,
    /// The version of the time zones.
    pub zone_version: Option<String>,
    /// The data of time zones.
    pub zones: BTreeMap<String, Vec<u8>>,
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
        self.programs.get(program).cloned().unwrap_or(ProgramState::Runnable)
    }

    fn is_directory(&self, path: &str) -> bool {
        !self.not_directories.contains(path)
    }

    fn can_switch_to(&self, _: &Process) -> bool {
        !self.unprivileged
    }

    fn capabilities(&self) -> Capabilities {
        if self.unprivileged { Capabilities::default() } else { Capabilities::ALL }
    }

    fn readable(&self, path: &str) -> Result<(), String> {
        if self.files.contains(path) { Ok(()) } else { Err("no such file or directory".to_owned()) }
    }

    fn writable(&self, path: &str) -> Result<(), String> {
        match self.not_directories.iter().any(|folder| std::path::Path::new(path).starts_with(folder)) {
            true => Err("not a directory".to_owned()),
            false => Ok(()),
        }
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.contents.get(path).cloned().ok_or(FileError::Missing)
    }

    fn examine(&self, paths: &Paths) -> Examined {
        let answered = |paths: &BTreeSet<String>| paths.difference(&self.unanswered).cloned().collect();
        look_at_each(
            self,
            &Paths {
                programs: answered(&paths.programs),
                directories: answered(&paths.directories),
                files: answered(&paths.files),
                templates: answered(&paths.templates),
                log_files: answered(&paths.log_files),
            },
        )
    }

    fn has_user(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }

    fn has_group(&self, name: &str) -> bool {
        self.accounts.contains(name)
    }

    fn zone_version(&self) -> Option<String> {
        self.zone_version.clone()
    }

    fn zone(&self, name: &str) -> Option<Vec<u8>> {
        self.zones.get(name).cloned()
    }

    fn account_names(&self, _: &str) -> Vec<String> {
        self.accounts.iter().cloned().collect()
    }
}
