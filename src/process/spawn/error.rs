//! Why a process could not be started, with the next step for the user (P3).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use containerpilot_core::input::{StartError, StartErrorKind};
use nix::errno::Errno;
use nix::libc;

use super::identity::{IdentityError, principal_name};
use super::start::Attempt;
use crate::process::sys::{ExecError, SpawnStep};

/// A failed start. A message starts with the program, and ends with the words of the system if it reported the error.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpawnError {
    #[error("{program}: cannot create a pipe: {}", errno.desc())]
    Pipe { program: String, errno: Errno },
    #[error("{program}: its arguments, environment or directory contain a NUL byte")]
    NulByte { program: String },
    #[error("{program}: {error}")]
    Identity { program: String, error: IdentityError },
    #[error("{program}: cannot create a process: {}", process_limit(*errno))]
    Clone { program: String, errno: Errno },
    #[error("{program}: cannot switch to {principal}: {errno_name}", errno_name = switch_hint(*errno, principal))]
    User { program: String, principal: Switched, errno: Errno },
    #[error("{program}: cannot {action}: {}", errno.desc())]
    Setup { program: String, action: String, errno: Errno },
    #[error("{program}: not found in PATH")]
    NotInPath { program: String },
    #[error("{}: {}", file.display(), errno.desc())]
    File { file: PathBuf, errno: Errno },
    #[error("{}: {missing}: {}", file.display(), Errno::ENOENT.desc())]
    Missing { file: PathBuf, missing: String },
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
    let key = match switched {
        Switched::User(_) => "user",
        Switched::Group(_) => "group",
    };
    match errno {
        Errno::EPERM => {
            format!("EPERM (only root can switch {key}s; remove `{key}` or run the supervisor as root)")
        }
        Errno::EAGAIN => format!("{} (the process limit of the user is reached)", errno.desc()),
        _ => errno.desc().to_owned(),
    }
}

impl SpawnError {
    /// Explains the error of a child that could not execute its program. A record that cannot be read is not the child's.
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
            SpawnStep::Limits => "set a resource limit".to_owned(),
            SpawnStep::Directory => {
                format!("change to its directory {}", attempt.cwd.as_deref().unwrap_or_default())
            }
            SpawnStep::Privileges => "set noNewPrivileges".to_owned(),
        };
        Self::Setup { program, action, errno }
    }

    fn from_exec_error(error: &ExecError, attempt: &Attempt) -> Self {
        let program = attempt.program.as_str();
        let tried = attempt.files.get(error.file).unwrap_or(program.as_bytes());
        let tried = Path::new(OsStr::from_bytes(tried));
        // A relative path is relative to the child's directory.
        let resolved = || attempt.cwd.as_ref().map_or(tried.to_owned(), |cwd| Path::new(cwd).join(tried));
        match (error.errno, error.mode) {
            (Errno::EACCES, mode) => {
                let is_directory = mode.is_some_and(|mode| mode & libc::S_IFMT == libc::S_IFDIR);
                let errno = if is_directory { Errno::EISDIR } else { Errno::EACCES };
                Self::File { file: resolved(), errno }
            }
            (Errno::ENOENT, Some(_)) => {
                Self::Missing { missing: missing_part(&error.head), file: resolved() }
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
            Self::NotInPath { .. } | Self::Missing { .. } => StartErrorKind::NotFound,
            Self::Pipe { errno, .. } | Self::Clone { errno, .. } | Self::File { errno, .. } => kind(*errno),
            Self::User { errno: Errno::EAGAIN, .. } => StartErrorKind::NoResources,
            // These errors are not about the program itself.
            Self::User { .. } | Self::Setup { .. } | Self::NulByte { .. } | Self::Identity { .. } => {
                StartErrorKind::Other
            }
        }
    }
}

impl From<SpawnError> for StartError {
    fn from(error: SpawnError) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}

/// What is missing if `execve` reports ENOENT for a file that exists: its interpreter or dynamic loader.
fn missing_part(head: &[u8]) -> String {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(|byte| *byte == b' ' || *byte == b'\t').next().unwrap_or_default();
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
