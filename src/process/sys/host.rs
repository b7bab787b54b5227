//! What the system knows about this machine and this process.
#![forbid(unsafe_code)]

use std::ffi::CStr;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use containerpilot_config::interfaces::HostAddress;
use nix::errno::Errno;
use nix::libc::rlim_t;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};

/// The addresses of the network interfaces, in the order the system gives them.
pub(crate) fn interface_addresses() -> Vec<HostAddress> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            Some(HostAddress { interface: interface.interface_name, ip: v4.or(v6)? })
        })
        .collect()
}

/// The host's name, or nothing if it has none that is text.
pub(crate) fn hostname() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// Whether this process may execute a file.
pub(crate) fn may_execute(path: &Path) -> bool {
    nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// The user and group this process acts as.
pub(crate) fn effective_ids() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

/// Makes this process the one that orphans below it are given to (P1).
pub(crate) fn become_subreaper() -> Result<(), Errno> {
    prctl::set_child_subreaper(true)
}

/// Sets the name in the process table (P1), of which the kernel takes the first fifteen bytes.
pub(crate) fn set_name(name: &CStr) -> Result<(), Errno> {
    prctl::set_name(name)
}

/// A resource limit: the one that counts, and how far it may be raised.
pub(crate) type RawLimit = (rlim_t, rlim_t);

/// Raises the number of descriptors this process may have as far as it may go, since each job needs two.
/// Says what it was before, if it was less.
pub(crate) fn raise_descriptor_limit() -> Option<RawLimit> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft >= hard {
        return None;
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some((soft, hard))
}

/// How many descriptors this process may have.
pub(crate) fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
}

/// How much processor time this process has used, all its threads together.
pub(crate) fn processor_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok().map(Duration::from)
}
