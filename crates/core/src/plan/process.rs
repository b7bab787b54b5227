//! How a process is set up: user, working directory, variables, limits.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// How a process is set up (P9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The user it runs as.
    pub user: Option<Principal>,
    /// The group it runs as.
    pub group: Option<Principal>,
    /// The working directory.
    pub cwd: Option<String>,
    /// Variables in addition to those of P7.
    pub env: BTreeMap<String, String>,
    /// The umask.
    pub umask: Option<u16>,
    /// Resource limits.
    pub limits: Vec<Limit>,
    /// Sets `no_new_privs`: neither the process nor its children can gain privileges.
    pub no_new_privileges: bool,
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// By name, looked up when the process starts.
    Name(String),
    /// By number.
    Id(u32),
}

/// A resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limited resource.
    pub resource: Resource,
    /// The soft limit.
    pub soft: Option<u64>,
    /// The hard limit.
    pub hard: Option<u64>,
}

/// A resource that can be limited, by the name `getrlimit(2)` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of getrlimit(2), where they are explained")]
pub enum Resource {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}
