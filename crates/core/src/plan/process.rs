//! How a process is set up: user, working directory, variables, limits.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How a process is set up (P9 to P11, P13).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The user it runs as.
    pub user: Option<Principal>,
    /// The group it runs as.
    pub group: Option<Principal>,
    /// The working directory.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub cwd: Option<String>,
    /// The variables of the top level, shared by all processes (P10). Those set by `putenv` and those of P7 win over
    /// them.
    #[serde(skip)]
    pub shared_env: Arc<BTreeMap<String, String>>,
    /// Variables of the job (P9, P10). They win over all others except `secrets`.
    pub env: BTreeMap<String, String>,
    /// Variables whose values are read from files when a process starts, by name (P11).
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub secrets: BTreeMap<String, String>,
    /// The umask.
    pub umask: Option<u16>,
    /// Resource limits.
    pub limits: Vec<Limit>,
    /// Sets `no_new_privs`: neither the process nor its children can gain privileges.
    pub no_new_privileges: bool,
    /// The nice value (P13).
    pub nice: Option<i8>,
    /// The adjustment of the kernel's choice of a process to kill when memory is short (P13).
    pub oom_score_adj: Option<i16>,
    /// The only capabilities that the process keeps (P13). `None` changes nothing.
    pub capabilities: Option<Capabilities>,
}

/// A set of Linux capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// The names of the capabilities in the order of their numbers, without `CAP_`.
    pub const NAMES: [&'static str; 41] = [
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "FSETID",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "LINUX_IMMUTABLE",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_ADMIN",
        "NET_RAW",
        "IPC_LOCK",
        "IPC_OWNER",
        "SYS_MODULE",
        "SYS_RAWIO",
        "SYS_CHROOT",
        "SYS_PTRACE",
        "SYS_PACCT",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_NICE",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "MKNOD",
        "LEASE",
        "AUDIT_WRITE",
        "AUDIT_CONTROL",
        "SETFCAP",
        "MAC_OVERRIDE",
        "MAC_ADMIN",
        "SYSLOG",
        "WAKE_ALARM",
        "BLOCK_SUSPEND",
        "AUDIT_READ",
        "PERFMON",
        "BPF",
        "CHECKPOINT_RESTORE",
    ];

    /// All capabilities, also those that have no name here.
    pub const ALL: Self = Self(u64::MAX);

    /// Adds the capability with this number.
    pub fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    /// Returns true if the capability with this number is in the set.
    #[must_use]
    pub const fn contains(self, number: usize) -> bool {
        self.0 & (1 << number) != 0
    }
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Principal {
    /// By name, looked up when the process starts.
    Name(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// By number.
    Id(u32),
}

/// A resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The limited resource.
    pub resource: LimitedResource,
    /// The soft limit.
    pub soft: Option<u64>,
    /// The hard limit.
    pub hard: Option<u64>,
}

/// A resource that can be limited, by the name `getrlimit(2)` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of getrlimit(2), where they are explained")]
pub enum LimitedResource {
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
