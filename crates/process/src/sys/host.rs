//! Properties of the host and of this process.
#![forbid(unsafe_code)]

use std::ffi::CStr;
use std::net::IpAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::rlim_t;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// The addresses of the network interfaces, each with the name of its interface, in the system's order.
pub fn interface_addresses() -> Vec<(String, IpAddr)> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            Some((interface.interface_name, v4.or(v6)?))
        })
        .collect()
}

/// The host name, or an empty string if it is not UTF-8.
pub fn hostname() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// Returns true if this process may execute the file.
pub fn may_execute(path: &Path) -> bool {
    nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// The effective user and group.
pub fn effective_ids() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

/// The supplementary groups of this process.
pub fn supplementary_groups() -> Vec<u32> {
    let groups = nix::unistd::getgroups().unwrap_or_default();
    groups.into_iter().map(nix::unistd::Gid::as_raw).collect()
}

/// Returns false if this process has no privilege to switch users and groups. If that is not known, it may have it.
pub fn may_switch_users() -> bool {
    const SETGID_AND_SETUID: u64 = 0b11 << 6;
    capabilities().is_none_or(|capabilities| capabilities & SETGID_AND_SETUID == SETGID_AND_SETUID)
}

/// The capabilities of this process, as far as they are known.
pub fn capabilities() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

/// Calls a function with the file access of another user, in this thread only. Other checks, and what other users may
/// do to this thread, stay as they are.
pub fn with_file_access_of<T>(user: u32, group: u32, call: impl FnOnce() -> T) -> T {
    /// Whether it was before the first call. Calls in several threads overlap.
    static DUMPABLE: OnceLock<bool> = OnceLock::new();
    let was_dumpable = *DUMPABLE.get_or_init(|| prctl::get_dumpable() == Ok(true));
    let old_group = setfsgid(Gid::from_raw(group));
    let old_user = setfsuid(Uid::from_raw(user));
    let result = call();
    setfsuid(old_user);
    setfsgid(old_group);
    // The kernel clears the flag at such a change. Without it, jobs cannot open `/proc/1/fd/1` any more.
    if was_dumpable {
        let _ = prctl::set_dumpable(true);
    }
    result
}

/// Makes this process the parent of its orphaned descendants (P1).
pub fn become_subreaper() -> Result<(), Errno> {
    prctl::set_child_subreaper(true)
}

/// Sets the name in the process table (P1). The kernel keeps 15 bytes.
pub fn set_name(name: &CStr) -> Result<(), Errno> {
    prctl::set_name(name)
}

/// A soft and a hard resource limit.
pub type RawLimit = (rlim_t, rlim_t);

/// Raises the soft descriptor limit to the hard one, because each job needs two descriptors. Returns the old limit if
/// it was lower.
pub fn raise_descriptor_limit() -> Option<RawLimit> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft >= hard {
        return None;
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some((soft, hard))
}

/// The soft descriptor limit.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
}

/// The CPU time of all threads of this process.
pub fn processor_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok().map(Duration::from)
}
