//! The properties of this host that the configuration layer needs.

use std::cell::OnceCell;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use containerpilot_config::host::{Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;
use containerpilot_core::plan::Principal;

use crate::error_text::describe;
use crate::process::{sys, users};

/// This host.
pub(crate) struct ThisHost {
    environment: Environment,
    /// Read only if a job is advertised: it takes 0.2 ms.
    addresses: OnceCell<Vec<HostAddress>>,
    hostname: String,
}

impl ThisHost {
    /// With the environment of this process.
    pub(crate) fn current() -> Self {
        Self::with(environment())
    }

    pub(crate) fn with(environment: Environment) -> Self {
        Self { environment, addresses: OnceCell::new(), hostname: sys::hostname() }
    }
}

/// The environment of this process as bytes.
pub(crate) fn environment() -> Environment {
    std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec())).collect()
}

impl Host for ThisHost {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn addresses(&self) -> &[HostAddress] {
        self.addresses.get_or_init(sys::interface_addresses)
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn program(&self, program: &str) -> ProgramState {
        if program.contains('/') {
            return program_at(Path::new(program));
        }
        let path = self
            .environment
            .get(&b"PATH"[..])
            .map(|path| std::ffi::OsStr::from_bytes(path))
            .unwrap_or_default();
        // As `execvp`: a file that is not executable is skipped, but reported if no other is found.
        let states = std::env::split_paths(path).map(|folder| program_at(&folder.join(program)));
        let states = states.filter(|state| *state != ProgramState::Directory);
        states.fold(ProgramState::Missing, |best, state| match (best, state) {
            (ProgramState::Runnable, _) | (_, ProgramState::Runnable) => ProgramState::Runnable,
            (ProgramState::NotExecutable, _) | (_, ProgramState::NotExecutable) => {
                ProgramState::NotExecutable
            }
            _ => ProgramState::Missing,
        })
    }

    fn readable(&self, path: &str) -> Result<(), String> {
        let path = Path::new(path);
        let opened = if path.is_dir() {
            std::fs::read_dir(path).map(drop)
        } else {
            std::fs::File::open(path).map(drop)
        };
        opened.map_err(|error| describe(&error))
    }

    fn has_user(&self, name: &str) -> bool {
        users::user(&Principal::Name(name.to_owned())).is_ok_and(|user| user.is_some())
    }

    fn has_group(&self, name: &str) -> bool {
        users::group(&Principal::Name(name.to_owned())).is_ok_and(|group| group.is_some())
    }
}

fn program_at(path: &Path) -> ProgramState {
    match std::fs::metadata(path) {
        Err(_) => ProgramState::Missing,
        Ok(metadata) if metadata.is_file() && sys::may_execute(path) => ProgramState::Runnable,
        Ok(metadata) if metadata.is_dir() => ProgramState::Directory,
        Ok(_) => ProgramState::NotExecutable,
    }
}
