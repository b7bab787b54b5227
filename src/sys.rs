//! All system calls that the standard library has no words for.

use std::net::IpAddr;
use std::path::Path;

use containerpilot_config::interfaces::HostAddress;

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

/// Whether there is a user of that name.
pub(crate) fn has_user(name: &str) -> bool {
    matches!(nix::unistd::User::from_name(name), Ok(Some(_)))
}

/// Whether there is a group of that name.
pub(crate) fn has_group(name: &str) -> bool {
    matches!(nix::unistd::Group::from_name(name), Ok(Some(_)))
}
