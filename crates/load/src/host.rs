//! The properties of this host that the configuration layer needs.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use containerpilot_config::host::{FileError, Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::limits::ENV_FILE_BYTES;
use containerpilot_config::template::Environment;
use containerpilot_core::plan::{Capabilities, Principal, Process};
use containerpilot_process::error_text::describe;
use containerpilot_process::regular_file;
use containerpilot_process::spawn::{self, NotAProgram};
use containerpilot_process::{sys, users};

/// The pid of the supervisor.
const PID_VARIABLE: &[u8] = b"CONTAINERPILOT_PID";

/// How much of a program is read to find its interpreter, as much as the kernel reads.
const HEAD_BYTES: u64 = 256;

/// The time zones of the host.
const ZONES: &str = "/usr/share/zoneinfo";

/// The most that is read of a time zone. The largest has 4 KB.
const ZONE_BYTES: u64 = 64 << 10;

/// This host.
pub struct ThisHost {
    environment: Environment,
    /// Read only if a job is advertised: it takes 0.2 ms.
    addresses: OnceCell<Vec<HostAddress>>,
    hostname: String,
}

impl ThisHost {
    /// With the environment of this process.
    pub fn current() -> Self {
        Self::with(environment())
    }

    pub fn with(environment: Environment) -> Self {
        Self { environment, addresses: OnceCell::new(), hostname: sys::hostname() }
    }

    /// The files that a program without a path may be.
    fn candidates(&self, program: &str) -> impl Iterator<Item = PathBuf> {
        let path = self.environment.get(&b"PATH"[..]).map(|path| OsStr::from_bytes(path)).unwrap_or_default();
        std::env::split_paths(path).map(move |folder| folder.join(program))
    }

    /// The state of a program, and of its interpreter if it is a script.
    fn script_state(&self, path: &Path) -> ProgramState {
        let state = program_at(path);
        let head =
            (state == ProgramState::Runnable).then(|| regular_file::read(path, HEAD_BYTES).ok()).flatten();
        let Some(head) = head else { return state };
        if let Some(reason) = NotAProgram::new(&head) {
            return not_a_program(reason, path);
        }
        self.missing_interpreter(&head).map_or(state, ProgramState::NoInterpreter)
    }

    /// The program in the `#!` line of a script, or the one that `env` runs for it, if it does not exist.
    fn missing_interpreter(&self, head: &[u8]) -> Option<String> {
        let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line);
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let interpreter = words.next()?;
        if program_at(Path::new(interpreter)) == ProgramState::Missing {
            return Some(interpreter.to_owned());
        }
        let is_program = |word: &&str| !word.starts_with('-') && !word.contains(['=', '/']);
        let word = words.next().filter(|_| interpreter.ends_with("/env")).filter(is_program)?;
        let exists = self.candidates(word).any(|path| program_at(&path) == ProgramState::Runnable);
        (!exists).then(|| word.to_owned())
    }
}

/// The environment of this process as bytes. A command that a job runs has the pid of the supervisor (P7), others their own.
pub fn environment() -> Environment {
    let variables = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    let mut environment: Environment = variables.collect();
    environment.entry(PID_VARIABLE.to_vec()).or_insert_with(own_pid);
    environment
}

/// The environment of this process, which is the supervisor.
pub fn supervisor_environment() -> Environment {
    let mut environment = environment();
    environment.insert(PID_VARIABLE.to_vec(), own_pid());
    environment
}

fn own_pid() -> Vec<u8> {
    std::process::id().to_string().into_bytes()
}

impl Host for ThisHost {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn addresses(&self) -> &[HostAddress] {
        let addresses = || {
            let named = |(interface, ip)| HostAddress { interface, ip };
            sys::interface_addresses().into_iter().map(named).collect()
        };
        self.addresses.get_or_init(addresses)
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn program(&self, program: &str) -> ProgramState {
        if program.contains('/') {
            return self.script_state(Path::new(program));
        }
        // As `execvp`: a file that cannot be executed is skipped, but reported if no other is found.
        let mut found = ProgramState::Missing;
        for path in self.candidates(program) {
            match self.script_state(&path) {
                ProgramState::Runnable => return ProgramState::Runnable,
                ProgramState::Directory | ProgramState::Missing => {}
                state if found == ProgramState::Missing => found = state,
                _ => {}
            }
        }
        found
    }

    fn is_directory(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn can_switch_to(&self, process: &Process) -> bool {
        sys::may_switch_users() || !spawn::switches_user(process)
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

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let limit = ENV_FILE_BYTES as u64 + 1;
        match regular_file::read(path, limit) {
            Ok(content) if content.len() > ENV_FILE_BYTES => Err(FileError::TooLarge),
            Ok(content) => Ok(content),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(FileError::Missing)
            }
            Err(error) => Err(FileError::Other(describe(&error))),
        }
    }

    fn has_user(&self, name: &str) -> bool {
        users::user(&Principal::Name(name.to_owned())).is_ok_and(|user| user.is_some())
    }

    fn capabilities(&self) -> Capabilities {
        sys::capabilities().map_or(Capabilities::ALL, Capabilities)
    }

    fn is_nested(&self) -> bool {
        let own = std::process::id().to_string();
        std::env::var_os("CONTAINERPILOT_PID").is_some_and(|pid| pid != own.as_str())
    }

    fn account_names(&self, what: &str) -> Vec<String> {
        users::names(if what == "user" { "/etc/passwd" } else { "/etc/group" })
    }

    fn zone_version(&self) -> Option<String> {
        let head = regular_file::read(format!("{ZONES}/tzdata.zi"), 64).ok()?;
        let first = head.split(|byte| *byte == b'\n').next()?;
        let version = first.strip_prefix(b"# version ").map(<[u8]>::to_vec);
        let version = version.or_else(|| regular_file::read(format!("{ZONES}/+VERSION"), 64).ok())?;
        Some(String::from_utf8(version).ok()?.trim().to_owned())
    }

    fn zone(&self, name: &str) -> Option<Vec<u8>> {
        regular_file::read(format!("{ZONES}/{name}"), ZONE_BYTES).ok()
    }

    fn has_group(&self, name: &str) -> bool {
        users::group(&Principal::Name(name.to_owned())).is_ok_and(|group| group.is_some())
    }
}

fn program_at(path: &Path) -> ProgramState {
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            ProgramState::Missing
        }
        Err(error) => ProgramState::Unusable {
            reason: format!("cannot be executed: {}", describe(&error)),
            help: "check its path".to_owned(),
        },
        Ok(metadata) if metadata.is_file() && sys::may_execute(path) => ProgramState::Runnable,
        Ok(metadata) if metadata.is_dir() => ProgramState::Directory,
        Ok(_) => ProgramState::NotExecutable,
    }
}

fn not_a_program(reason: NotAProgram, path: &Path) -> ProgramState {
    let (reason, help) = match reason {
        NotAProgram::Empty => ("is empty", "write a script or a program into it".to_owned()),
        NotAProgram::ByteOrderMark => {
            ("begins with a byte order mark", "save it as UTF-8 without one".to_owned())
        }
        NotAProgram::NoInterpreter => {
            ("has no #! line", format!("write [\"sh\", \"{}\"], or add one", path.display()))
        }
    };
    ProgramState::Unusable { reason: reason.to_owned(), help }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use containerpilot_test_support as test_support;

    #[test]
    fn c7_file_that_the_kernel_does_not_execute_is_found_out() {
        let folder = test_support::folder();
        let host = ThisHost::with(Environment::new());
        let state = |name: &str, content: &str| {
            let path = folder.join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            match host.program(path.to_str().unwrap()) {
                ProgramState::Unusable { reason, .. } => reason,
                state => format!("{state:?}"),
            }
        };
        assert_eq!(state("empty", ""), "is empty");
        assert_eq!(state("marked", "\u{feff}#!/bin/sh\n"), "begins with a byte order mark");
        assert_eq!(state("plain", "echo hello\n"), "has no #! line");
        assert_eq!(state("script", "#!/bin/sh\n"), "Runnable");
        assert_eq!(state("windows", "#!/bin/sh\r\n"), r#"NoInterpreter("/bin/sh\r")"#);
        assert_eq!(state("binary", "\u{7f}ELF\u{1}"), "Runnable");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&link, &link).unwrap();
        let ProgramState::Unusable { reason, .. } = host.program(link.to_str().unwrap()) else { panic!() };
        assert!(reason.starts_with("cannot be executed: too many symbolic links"), "{reason}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
