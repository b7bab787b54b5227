//! The properties of this host that the configuration layer needs.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use containerpilot_config::host::{Examined, FileError, Host, Paths, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::limits::ENV_FILE_BYTES;
use containerpilot_config::template::Environment;
use containerpilot_core::inserted;
use containerpilot_core::plan::{Capabilities, Principal, Process};
use containerpilot_process::error_text::describe;
use containerpilot_process::regular_file;
use containerpilot_process::spawn::{self, NotAProgram};
use containerpilot_process::{sys, users};

use crate::looks::{Looks, PathLook};

/// The pid of the supervisor.
const PID_VARIABLE: &[u8] = b"CONTAINERPILOT_PID";

/// How much of a program is read to find its interpreter, as much as the kernel reads.
const HEAD_BYTES: u64 = 256;

/// The users and groups of the host.
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// The time zones of the host.
const ZONES: &str = "/usr/share/zoneinfo";

/// The most that is read of a time zone. The largest has 4 KB.
const ZONE_BYTES: u64 = 64 << 10;

/// This host. All its files are looked at through [`Looks`].
pub struct ThisHost {
    environment: Environment,
    looks: Rc<Looks>,
    /// Read only if a job is advertised: it takes 0.2 ms.
    addresses: OnceCell<Vec<HostAddress>>,
    hostname: String,
}

impl ThisHost {
    /// With the environment of this process.
    pub fn current() -> Self {
        Self::with(environment())
    }

    /// For a command: standard error says which file is waited for.
    pub fn with(environment: Environment) -> Self {
        Self::new(environment, Rc::new(Looks::reported_on_stderr()))
    }

    pub fn new(environment: Environment, looks: Rc<Looks>) -> Self {
        Self { environment, looks, addresses: OnceCell::new(), hostname: sys::hostname() }
    }

    fn programs(&self) -> Programs {
        Programs {
            path: self.environment.get(&b"PATH"[..]).map(|path| path.as_slice().into()).unwrap_or_default(),
        }
    }

    /// The answer about a file that is needed; the default if the load is abandoned.
    fn needed<T: Default + Send + 'static>(
        &self,
        path: &str,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.looks.needed(Path::new(path), look).unwrap_or_default()
    }
}

/// Finds programs.
#[derive(Clone)]
struct Programs {
    /// The variable `PATH`.
    path: Arc<[u8]>,
}

impl Programs {
    /// The files that a program without a path may be.
    fn candidates(&self, program: &str) -> impl Iterator<Item = PathBuf> {
        std::env::split_paths(OsStr::from_bytes(&self.path)).map(move |folder| folder.join(program))
    }

    /// The paths that a look tries in turn. Interpreters of scripts are not among them: they are not known yet.
    fn paths(&self, look: &PathLook) -> Vec<CString> {
        let paths = match look {
            PathLook::Program(program) if !program.contains('/') => self.candidates(program).collect(),
            PathLook::Program(path)
            | PathLook::Directory(path)
            | PathLook::File(path)
            | PathLook::Template(path)
            | PathLook::LogFile(path) => vec![PathBuf::from(path)],
        };
        paths.into_iter().filter_map(|path| CString::new(path.into_os_string().into_vec()).ok()).collect()
    }

    fn state(&self, program: &str) -> ProgramState {
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

/// The environment of this process as bytes. A command that a job runs has the pid of the supervisor (P7), others their
/// own.
pub fn environment() -> Environment {
    let variables = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    let mut environment: Environment = inserted(variables);
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
        self.programs().state(program)
    }

    fn is_directory(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn examine(&self, paths: &Paths) -> Examined {
        let some = |paths: &BTreeSet<String>, look: fn(String) -> PathLook| {
            paths.iter().cloned().map(look).collect::<Vec<_>>()
        };
        let looks = [
            some(&paths.programs, PathLook::Program),
            some(&paths.directories, PathLook::Directory),
            some(&paths.files, PathLook::File),
            some(&paths.templates, PathLook::Template),
            some(&paths.log_files, PathLook::LogFile),
        ];
        let programs = self.programs();
        let looks = self.looks.answering(inserted(looks.into_iter().flatten()), |look| programs.paths(look));
        let look_at = move |look: &PathLook| match look {
            PathLook::Program(program) => Answer::Program(programs.state(program)),
            PathLook::Directory(path) => Answer::Directory(Path::new(path).is_dir()),
            PathLook::File(path) => Answer::File(readable(path)),
            PathLook::Template(path) => Answer::Template(read_file(path)),
            PathLook::LogFile(path) => Answer::LogFile(writable(path)),
        };
        let mut found = Examined::default();
        for (look, answer) in self.looks.answers(looks, look_at) {
            let (PathLook::Program(path)
            | PathLook::Directory(path)
            | PathLook::File(path)
            | PathLook::Template(path)
            | PathLook::LogFile(path)) = look;
            match answer {
                Answer::Program(state) => drop(found.programs.insert(path, state)),
                Answer::Directory(is) => drop(found.directories.insert(path, is)),
                Answer::File(result) => drop(found.files.insert(path, result)),
                Answer::Template(result) => drop(found.templates.insert(path, result)),
                Answer::LogFile(result) => drop(found.log_files.insert(path, result)),
            }
        }
        found
    }

    fn can_switch_to(&self, process: &Process) -> bool {
        sys::may_switch_users() || !spawn::switches_user(process)
    }

    fn readable(&self, path: &str) -> Result<(), String> {
        readable(path)
    }

    fn writable(&self, path: &str) -> Result<(), String> {
        writable(path)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let here = path.to_owned();
        let abandoned = || Err(FileError::Other("reading it was abandoned".to_owned()));
        self.looks.needed(Path::new(path), move || read_file(&here)).unwrap_or_else(abandoned)
    }

    fn has_user(&self, name: &str) -> bool {
        let name = Principal::Name(name.to_owned());
        self.needed(USERS, move || users::user(&name).is_ok_and(|user| user.is_some()))
    }

    fn capabilities(&self) -> Capabilities {
        sys::capabilities().map_or(Capabilities::ALL, Capabilities)
    }

    fn is_nested(&self) -> bool {
        let own = std::process::id().to_string();
        std::env::var_os("CONTAINERPILOT_PID").is_some_and(|pid| pid != own.as_str())
    }

    fn account_names(&self, what: &str) -> Vec<String> {
        let path = if what == "user" { USERS } else { GROUPS };
        self.needed(path, || users::names(path))
    }

    fn zone_version(&self) -> Option<String> {
        self.needed(ZONES, || {
            let head = regular_file::read(format!("{ZONES}/tzdata.zi"), 64).ok()?;
            let first = head.split(|byte| *byte == b'\n').next()?;
            let version = first.strip_prefix(b"# version ").map(<[u8]>::to_vec);
            let version = version.or_else(|| regular_file::read(format!("{ZONES}/+VERSION"), 64).ok())?;
            Some(String::from_utf8(version).ok()?.trim().to_owned())
        })
    }

    fn zone(&self, name: &str) -> Option<Vec<u8>> {
        let path = format!("{ZONES}/{name}");
        self.needed(ZONES, || regular_file::read(path, ZONE_BYTES).ok())
    }

    fn has_group(&self, name: &str) -> bool {
        let name = Principal::Name(name.to_owned());
        self.needed(GROUPS, move || users::group(&name).is_ok_and(|group| group.is_some()))
    }
}

/// What was found by a [`PathLook`].
enum Answer {
    Program(ProgramState),
    Directory(bool),
    File(Result<(), String>),
    Template(Result<Vec<u8>, FileError>),
    LogFile(Result<(), String>),
}

fn readable(path: &str) -> Result<(), String> {
    let path = Path::new(path);
    let opened = if path.is_dir() { std::fs::read_dir(path).map(drop) } else { regular_file::try_open(path) };
    opened.map_err(|error| describe(&error))
}

fn writable(path: &str) -> Result<(), String> {
    regular_file::writable(Path::new(path)).map_err(|error| describe(&error))
}

fn read_file(path: &str) -> Result<Vec<u8>, FileError> {
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
