//! Why a process could not be started, with the next step for the user (P3).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Capabilities, Limit, LimitedResource};
use nix::errno::Errno;
use nix::libc;

use super::identity::{IdentityError, principal_name};
use super::start::Attempt;
use crate::secrets::SecretError;
use crate::sys::{self, ExecError, SpawnStep};

/// A failed start. A message starts with the program, and ends with the words of the system if it reported the error.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpawnError {
    #[error("{program}: cannot create a pipe: {}", errno.desc())]
    Pipe { program: String, errno: Errno },
    #[error("{program}: its arguments, environment or directory contain a NUL byte")]
    NulByte { program: String },
    #[error("{program}: cannot read its secrets: {error}")]
    Secrets { program: String, error: std::io::Error },
    #[error("{program}: cannot read the secret {name} from {file}: {source}")]
    Secret { program: String, name: String, file: String, source: SecretError },
    #[error("{program}: {error}")]
    Identity { program: String, error: IdentityError },
    #[error("{program}: cannot create a process: {}", process_limit(*errno))]
    Clone { program: String, errno: Errno },
    #[error("{program}: cannot switch to {principal}: {errno_name}", errno_name = switch_hint(*errno, principal))]
    User { program: String, principal: Switched, errno: Errno },
    #[error("{program}: cannot set the limit {limit}: {}", limit.hint(*errno))]
    Limit { program: String, limit: LimitWords, errno: Errno },
    #[error("{program}: cannot {action}: {}", privilege_hint(*errno, hint))]
    Privileged { program: String, action: String, hint: &'static str, errno: Errno },
    #[error("{program}: cannot {action}: {}", errno.desc())]
    Setup { program: String, action: String, errno: Errno },
    #[error("{program}: not found in PATH")]
    NotInPath { program: String },
    #[error("{program}: not found in PATH, where {user} has no permission to search {directory}")]
    NotInPathSoFar { program: String, directory: String, user: String },
    #[error("{}: {}", file.display(), errno.desc())]
    File { file: PathBuf, errno: Errno },
    #[error("{}: {missing}: {}", file.display(), Errno::ENOENT.desc())]
    Missing { file: PathBuf, missing: String },
    #[error("{}: its interpreter is `{interpreter}`: the script has Windows line endings; convert it to LF", file.display())]
    WindowsLineEndings { file: PathBuf, interpreter: String },
    #[error("{}: {}: it is not executable; chmod +x {0}", file.display(), Errno::EACCES.desc())]
    NotExecutable { file: PathBuf },
    #[error("{}: {}: {user} has no permission to search {directory}", file.display(), Errno::EACCES.desc())]
    Unsearchable { file: PathBuf, directory: String, user: String },
    #[error("{file}: {}: {}", Errno::ENOEXEC.desc(), reason.words(file, *alone))]
    NotAProgram { file: String, reason: NotAProgram, alone: bool },
}

/// Why the kernel does not execute a file that a person may take for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAProgram {
    Empty,
    /// A script whose `#!` is not at the beginning.
    ByteOrderMark,
    /// A script without a `#!` line. A shell runs it itself; the kernel does not.
    NoInterpreter,
}

impl NotAProgram {
    /// Looks at the beginning of a file.
    pub fn new(head: &[u8]) -> Option<Self> {
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
        if head.is_empty() {
            Some(Self::Empty)
        } else if head.starts_with(b"\xef\xbb\xbf#!") {
            Some(Self::ByteOrderMark)
        } else {
            (!head.starts_with(b"#!") && head.iter().all(is_text)).then_some(Self::NoInterpreter)
        }
    }

    /// The reason, and what to do. `alone` is a program on the command line without a configuration.
    fn words(self, file: &str, alone: bool) -> String {
        match self {
            Self::Empty => "it is empty".to_owned(),
            Self::ByteOrderMark => {
                "it begins with a byte order mark; save it as UTF-8 without one".to_owned()
            }
            Self::NoInterpreter if alone => {
                format!("it has no #! line; run containerpilot -- sh {file}, or add one")
            }
            Self::NoInterpreter => {
                format!("it has no #! line; write exec: [\"sh\", \"{file}\"], or add one")
            }
        }
    }
}

/// The setting that needed a privilege.
#[derive(Debug, thiserror::Error)]
pub(super) enum Switched {
    #[error("user `{0}`")]
    User(String),
    #[error("group `{0}`")]
    Group(String),
}

fn process_limit(errno: Errno) -> String {
    match errno {
        Errno::EAGAIN => format!("{} (the process limit is reached)", errno.desc()),
        _ => errno.desc().to_owned(),
    }
}

fn switch_hint(errno: Errno, switched: &Switched) -> String {
    let (key, needed) = match switched {
        Switched::User(_) => ("user", "CAP_SETUID and CAP_SETGID"),
        Switched::Group(_) => ("group", "CAP_SETGID"),
    };
    match errno {
        Errno::EPERM if sys::effective_ids().0 == 0 => {
            format!("EPERM (the supervisor needs {needed}, or remove `{key}`)")
        }
        Errno::EPERM => {
            format!("EPERM (only root can switch {key}s; remove `{key}` or run the supervisor as root)")
        }
        Errno::EAGAIN => format!("{} (the process limit of the user is reached)", errno.desc()),
        _ => errno.desc().to_owned(),
    }
}

/// `hint` explains a missing privilege.
fn privilege_hint(errno: Errno, hint: &str) -> String {
    match errno {
        Errno::EPERM => format!("EPERM ({hint})"),
        // Without CAP_SYS_NICE and CAP_SYS_RESOURCE.
        Errno::EACCES => format!("EACCES ({hint})"),
        _ => errno.desc().to_owned(),
    }
}

/// The limit that could not be set; `None` is the supervisor's own descriptor limit.
#[derive(Debug)]
pub(super) struct LimitWords(Option<Limit>);

impl std::fmt::Display for LimitWords {
    /// As in a configuration: `nofile` to 1000:2000.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(Limit { resource, soft, hard }) = self.0 else { return out.write_str("nofile") };
        let value = |value: Option<u64>| value.map_or("unlimited".to_owned(), |value| value.to_string());
        write!(out, "`{}` to {}", format!("{resource:?}").to_lowercase(), value(soft))?;
        if soft == hard { Ok(()) } else { write!(out, ":{}", value(hard)) }
    }
}

impl LimitWords {
    fn hint(&self, errno: Errno) -> String {
        if errno != Errno::EPERM {
            return errno.desc().to_owned();
        }
        let nofile = self.0.filter(|limit| limit.resource == LimitedResource::Nofile);
        let reason = match nofile.and_then(|limit| Some((limit.hard, max_descriptors()?))) {
            Some((hard, max)) if hard.is_none_or(|hard| hard > max) => {
                return format!("EPERM (the kernel allows at most {max}: fs.nr_open; lower the limit)");
            }
            _ if sys::effective_ids().0 == 0 => {
                "CAP_SYS_RESOURCE is missing; lower the limit or add the capability"
            }
            _ => "only root can raise a hard limit; lower the limit or run the supervisor as root",
        };
        format!("EPERM ({reason})")
    }
}

/// The largest number of descriptors that any process may have.
fn max_descriptors() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}

impl SpawnError {
    /// Explains the error of a child that could not execute its program. A record that cannot be read is not the
    /// child's.
    pub(super) fn new(error: Option<ExecError>, attempt: &Attempt) -> Self {
        let program = attempt.program.clone();
        let Some(error) = error else {
            return Self::Setup { program, action: "read its result".to_owned(), errno: Errno::EBADMSG };
        };
        let errno = error.errno;
        let action = match error.step {
            SpawnStep::Execute => return Self::from_exec_error(&error, attempt),
            SpawnStep::User => {
                let principal = match (&attempt.user, &attempt.group) {
                    (Some(user), _) => Switched::User(principal_name(user)),
                    (None, Some(group)) => Switched::Group(principal_name(group)),
                    (None, None) => Switched::User(String::new()),
                };
                return Self::User { program, principal, errno };
            }
            SpawnStep::ProcessGroup => "create a process group".to_owned(),
            SpawnStep::Descriptors => "set up its file descriptors".to_owned(),
            SpawnStep::Secrets => {
                return match attempt.secrets.get(error.file).cloned() {
                    Some((name, file)) => Self::Secret { program, name, file, source: SecretError(errno) },
                    None => Self::Setup { program, action: "read its secrets".to_owned(), errno },
                };
            }
            SpawnStep::Limits => {
                let limit = error.file.checked_sub(1).and_then(|nth| attempt.limits.get(nth));
                return Self::Limit { program, limit: LimitWords(limit.copied()), errno };
            }
            SpawnStep::Directory => {
                format!("change to its directory {}", attempt.cwd.as_deref().unwrap_or_default())
            }
            SpawnStep::Privileges => "set noNewPrivileges".to_owned(),
            SpawnStep::Nice => {
                let action = format!("set its nice value to {}", attempt.nice.unwrap_or_default());
                let hint = "CAP_SYS_NICE is needed to lower it; use a higher value or add the capability";
                return Self::Privileged { program, action, hint, errno };
            }
            SpawnStep::OomScore => {
                let action = format!("set oomScoreAdj to {}", attempt.oom_score_adj.unwrap_or_default());
                let hint = "CAP_SYS_RESOURCE is needed to lower it; use a higher value or add the capability";
                return Self::Privileged { program, action, hint, errno };
            }
            SpawnStep::Capabilities => return Self::capability(program, error.file, errno, attempt),
        };
        Self::Setup { program, action, errno }
    }

    /// P13: a capability that cannot be kept or dropped. `file` is its number, from 1.
    fn capability(program: String, file: usize, errno: Errno, attempt: &Attempt) -> Self {
        let name = file.checked_sub(1).map(|number| match Capabilities::NAMES.get(number) {
            Some(name) => format!("capability {name}"),
            None => format!("capability {number}"),
        });
        let kept = file.checked_sub(1).is_some_and(|number| attempt.capabilities.contains(number));
        let name = name.unwrap_or_else(|| "its capabilities".to_owned());
        let (action, hint) = match kept {
            true => {
                (format!("keep {name}"), "the supervisor does not have it itself; add it to the container")
            }
            false => (
                format!("drop {name}"),
                "CAP_SETPCAP is needed; run the supervisor as root or remove `capabilities`",
            ),
        };
        Self::Privileged { program, action, hint, errno }
    }

    fn from_exec_error(error: &ExecError, attempt: &Attempt) -> Self {
        let program = attempt.program.as_str();
        let tried = attempt.files.get(error.file).unwrap_or(program.as_bytes());
        let tried = Path::new(OsStr::from_bytes(tried));
        // A relative path is relative to the child's directory.
        let resolved = || attempt.cwd.as_ref().map_or(tried.to_owned(), |cwd| Path::new(cwd).join(tried));
        match (error.errno, error.mode) {
            (Errno::EACCES, None) if !error.head.is_empty() => {
                let directory = String::from_utf8_lossy(&error.head).escape_debug().to_string();
                let user = match &attempt.user {
                    Some(user) => format!("user `{}`", principal_name(user)),
                    None => "the supervisor".to_owned(),
                };
                // It may be somewhere else: a shell says 127, too.
                if program.contains('/') {
                    Self::Unsearchable { file: resolved(), directory, user }
                } else {
                    Self::NotInPathSoFar { program: program.to_owned(), directory, user }
                }
            }
            (Errno::EACCES, Some(mode)) if mode & libc::S_IFMT == libc::S_IFDIR => {
                Self::File { file: resolved(), errno: Errno::EISDIR }
            }
            (Errno::EACCES, Some(mode)) if mode & libc::S_IFMT == libc::S_IFREG && mode & 0o111 == 0 => {
                Self::NotExecutable { file: resolved() }
            }
            (Errno::EACCES, _) => Self::File { file: resolved(), errno: Errno::EACCES },
            (Errno::ENOENT, Some(_)) => match windows_interpreter(&error.head) {
                Some(interpreter) => Self::WindowsLineEndings { file: resolved(), interpreter },
                None => Self::Missing { missing: missing_part(&error.head), file: resolved() },
            },
            (Errno::ENOEXEC, Some(_)) if let Some(reason) = NotAProgram::new(&error.head) => {
                let file = tried.display().to_string();
                Self::NotAProgram { file, reason, alone: attempt.alone }
            }
            (Errno::ENOENT, None) if !program.contains('/') => {
                Self::NotInPath { program: program.to_owned() }
            }
            (Errno::ENOENT, None) => Self::File { file: program.into(), errno: Errno::ENOENT },
            (errno, _) => Self::File { file: tried.to_owned(), errno },
        }
    }

    /// What the error means for the exit code and for restarts.
    fn kind(&self) -> StartErrorKind {
        let kind = |errno: Errno| match errno {
            Errno::ENOENT | Errno::ENOTDIR => StartErrorKind::NotFound,
            Errno::EACCES | Errno::EISDIR | Errno::ENOEXEC => StartErrorKind::NotExecutable,
            Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => StartErrorKind::NoResources,
            _ => StartErrorKind::Other,
        };
        match self {
            Self::NotInPath { .. }
            | Self::NotInPathSoFar { .. }
            | Self::Missing { .. }
            | Self::WindowsLineEndings { .. } => StartErrorKind::NotFound,
            Self::NotAProgram { .. } | Self::NotExecutable { .. } | Self::Unsearchable { .. } => {
                StartErrorKind::NotExecutable
            }
            Self::Pipe { errno: Errno::EMFILE | Errno::ENFILE, .. } => StartErrorKind::NoDescriptors,
            Self::Pipe { errno, .. } | Self::Clone { errno, .. } | Self::File { errno, .. } => kind(*errno),
            Self::User { errno: Errno::EAGAIN, .. } => StartErrorKind::NoResources,
            // These errors are not about the program itself.
            Self::User { .. }
            | Self::Limit { .. }
            | Self::Privileged { .. }
            | Self::Secrets { .. }
            | Self::Secret { .. }
            | Self::Setup { .. }
            | Self::NulByte { .. }
            | Self::Identity { .. } => StartErrorKind::Other,
        }
    }
}

impl From<SpawnError> for StartError {
    fn from(error: SpawnError) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}

/// The first line of a script without the `#!`.
fn interpreter_line(head: &[u8]) -> Option<&[u8]> {
    head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()
}

/// The interpreter of a script, if its line ends with a carriage return, which the kernel takes as part of the name.
fn windows_interpreter(head: &[u8]) -> Option<String> {
    let line = interpreter_line(head).filter(|line| line.ends_with(b"\r"))?.trim_ascii_start();
    Some(String::from_utf8_lossy(line).escape_debug().to_string())
}

/// What is missing if `execve` reports ENOENT for a file that exists: its interpreter or dynamic loader.
fn missing_part(head: &[u8]) -> String {
    if let Some(line) = interpreter_line(head) {
        let interpreter =
            line.trim_ascii().split(|byte| *byte == b' ' || *byte == b'\t').next().unwrap_or_default();
        return format!("its interpreter {}", String::from_utf8_lossy(interpreter).escape_debug());
    }
    match elf_loader(head) {
        Some(loader) => format!("its dynamic loader {loader}"),
        None => "its interpreter or dynamic loader".to_owned(),
    }
}

/// The dynamic loader of an ELF file: the first string in its head that looks like the path of one.
fn elf_loader(head: &[u8]) -> Option<String> {
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let start = head.windows(5).position(|window| window == b"/lib/" || window == b"/lib6")?;
    let text = head.get(start..)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_owned()).ok().filter(|text| !text.contains(char::is_control))
}
