//! The description of a process to start, in the form that the kernel takes.
#![forbid(unsafe_code)]

use std::ffi::c_char;
use std::os::fd::RawFd;
use std::sync::Arc;

use containerpilot_core::plan::{Capabilities, Limit};
use nix::errno::Errno;

use super::{RawLimit, SignalSet};

/// A list of null-terminated strings, in one buffer.
#[derive(Clone, Debug, Default)]
pub struct CStrings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CStrings {
    /// EINVAL if a string contains a NUL byte.
    pub fn of<'a>(strings: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Errno> {
        let mut list = Self::default();
        strings.into_iter().try_for_each(|string| list.push(&[string]))?;
        Ok(list)
    }

    /// Adds the concatenation of `parts`; EINVAL if it contains a NUL byte.
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), Errno> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Errno::EINVAL);
        }
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        Ok(())
    }

    /// One string, without its NUL.
    pub fn get(&self, nth: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(*self.starts.get(nth)?..)?;
        rest.split(|byte| *byte == 0).next()
    }

    /// All strings in sequence, each with its NUL.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A pointer to each string, valid until the list changes.
    fn pointers(&self) -> impl Iterator<Item = *const c_char> {
        let base = self.bytes.as_ptr();
        self.starts.iter().map(move |start| base.wrapping_add(*start).cast::<c_char>())
    }

    /// The pointers and a terminating null. They are valid until the strings change.
    pub(super) fn list(&self) -> Vec<*const c_char> {
        self.pointers().chain([std::ptr::null()]).collect()
    }
}

/// The environment of a new process: several lists, each with the sorted positions of the strings to leave out.
#[derive(Debug)]
pub struct ExecVariables(pub [(Arc<CStrings>, Vec<usize>); 3]);

impl ExecVariables {
    /// All variables, each with a NUL at its end, as in `/proc/PID/environ`.
    pub fn bytes(&self) -> Vec<u8> {
        let shown = self.0.iter().flat_map(|(strings, hidden)| {
            let all = strings.bytes.split_inclusive(|byte| *byte == 0).enumerate();
            all.filter(|(nth, _)| hidden.binary_search(nth).is_err()).flat_map(|(_, string)| string)
        });
        shown.copied().collect()
    }

    /// See [`CStrings::list`].
    pub(super) fn list(&self) -> Vec<*const c_char> {
        let mut list =
            Vec::with_capacity(1 + self.0.iter().map(|(strings, _)| strings.starts.len()).sum::<usize>());
        for (strings, hidden) in &self.0 {
            if hidden.is_empty() {
                list.extend(strings.pointers());
            } else {
                let shown =
                    strings.pointers().enumerate().filter(|(nth, _)| hidden.binary_search(nth).is_err());
                list.extend(shown.map(|(_, string)| string));
            }
        }
        list.push(std::ptr::null());
        list
    }
}

/// A process to start. It owns everything that the child reads: the child may share the supervisor's memory.
#[derive(Debug)]
pub struct ExecSpec {
    /// The files to try to execute, in this order.
    pub files: Arc<CStrings>,
    /// The arguments, the program's name first.
    pub arguments: CStrings,
    pub environment: ExecVariables,
    /// The working directory: one string, or none to keep the supervisor's.
    pub cwd: CStrings,
    /// Standard input; `None` keeps the supervisor's, and takes the terminal's foreground. Otherwise the process leads
    /// a session of its own: it has no terminal.
    pub stdin: Option<RawFd>,
    /// Standard output and standard error; `None` keeps the supervisor's.
    pub output: Option<(RawFd, RawFd)>,
    /// The write end of the pipe for an [`ExecError`]. It is closed when the program is executed.
    pub result: RawFd,
    /// A descriptor, and the number that it has in the program.
    pub ready: Option<(RawFd, RawFd)>,
    /// Whether the program gets its own pid in `WATCHDOG_PID`.
    pub watchdog_pid: bool,
    /// The directory of the cgroup v2 for the process, which is left where it is if it cannot be moved there.
    pub cgroup: Option<RawFd>,
    /// The child closes all descriptors from this number on. `None` if the kernel has no `close_range`: `execve` closes
    /// them then.
    pub close_from: Option<u32>,
    /// The ignored signals, whose default disposition is restored.
    pub ignored: SignalSet,
    pub umask: Option<u16>,
    /// The supervisor's original descriptor limit, if it has raised its own.
    pub descriptor_limit: Option<RawLimit>,
    pub limits: Vec<Limit>,
    /// Supplementary groups, if they change.
    pub groups: Option<Vec<u32>>,
    /// The group, if it changes.
    pub group: Option<u32>,
    /// The user, if it changes.
    pub user: Option<u32>,
    pub no_new_privileges: bool,
    pub nice: Option<i8>,
    /// The decimal digits for `/proc/self/oom_score_adj`. The child must not share memory then.
    pub oom_score_adj: Option<Vec<u8>>,
    /// The only capabilities that are kept. The child must not share memory then.
    pub capabilities: Option<Capabilities>,
    /// The secrets that the child waits for (P11).
    pub secrets: Option<SecretPipe>,
    /// Whether the child shares the supervisor's memory until it executes its program. It must not change its user or
    /// groups then, and has no cgroup: only a copy can be created in one.
    pub share_memory: bool,
    /// Whether the present process executes the program itself (X12). It keeps its process group and its terminal.
    pub in_place: bool,
}

/// A pipe with the variables of secrets. It has two numbers: an error and the position of the secret that it is about,
/// or 0 and the number of bytes that follow. These are the variables, each with a NUL at its end.
#[derive(Clone, Copy, Debug)]
pub struct SecretPipe {
    pub read_end: RawFd,
    /// How many variables there are.
    pub count: usize,
    /// The most bytes of all variables.
    pub max_bytes: usize,
}

/// A step of a child on the way to its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnStep {
    /// Becoming the leader of a process group.
    ProcessGroup,
    Descriptors,
    /// Waiting for its secrets.
    Secrets,
    Limits,
    /// Switching to another user or group.
    User,
    /// Changing the working directory.
    Directory,
    /// Setting `no_new_privs`.
    Privileges,
    /// Setting the nice value.
    Nice,
    /// Setting the OOM score adjustment.
    OomScore,
    /// Dropping capabilities.
    Capabilities,
    /// Executing the program.
    Execute,
}

impl SpawnStep {
    const ALL: [Self; 11] = [
        Self::ProcessGroup,
        Self::Descriptors,
        Self::Secrets,
        Self::Limits,
        Self::User,
        Self::Directory,
        Self::Privileges,
        Self::Nice,
        Self::OomScore,
        Self::Capabilities,
        Self::Execute,
    ];
}

/// How much of a file a child reports: enough for an interpreter or a dynamic loader. A whole record is smaller than
/// `PIPE_BUF`, so it is written and read in one piece.
pub(super) const HEAD_BYTES: usize = 2048;

/// The head of a record: step, errno, position of the file, `st_mode` of that file.
pub(super) type RecordHead = [u32; 4];

/// Why a child could not execute its program, in its own words: the supervisor itself does not look at the files of a
/// job, because a file system that does not answer, or a FIFO, would block it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    pub step: SpawnStep,
    pub errno: Errno,
    /// The position of the file that `errno` is about. With [`SpawnStep::Limits`]: the position of the limit, from 1; 0
    /// is the supervisor's own descriptor limit. With [`SpawnStep::Capabilities`]: the number of the capability, from
    /// 1; 0 is none of them. With [`SpawnStep::Secrets`]: the position of the secret.
    pub file: usize,
    /// The `st_mode` of that file, if the child has seen it.
    pub mode: Option<u32>,
    /// The first bytes of the file, if it exists although `execve` says ENOENT, or if `execve` says ENOEXEC. With
    /// EACCES and no `mode`: the directory that the user may not search.
    pub head: Vec<u8>,
}

impl ExecSpec {
    /// Whether the process leads a session, and not only a process group. A job in the session of the supervisor could
    /// open its terminal, as `/dev/tty`, and type there.
    pub const fn leads_session(&self) -> bool {
        !self.in_place && self.stdin.is_some()
    }
}

impl ExecError {
    /// The most bytes of a record.
    pub const MAX_BYTES: usize = size_of::<RecordHead>() + HEAD_BYTES;

    /// Reads a record.
    pub fn from_record(record: &[u8]) -> Option<Self> {
        let (words, head) = record.split_at_checked(size_of::<RecordHead>())?;
        let mut words = words.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
        let step = *SpawnStep::ALL.get(usize::try_from(words.next()?).ok()?)?;
        let errno = Errno::from_raw(i32::try_from(words.next()?).ok()?);
        let file = usize::try_from(words.next()?).ok()?;
        let mode = words.next().filter(|mode| *mode != 0);
        Some(Self { step, errno, file, mode, head: head.to_vec() })
    }
}
