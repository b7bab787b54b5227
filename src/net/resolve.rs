//! Names of machines: from `/etc/hosts`, or else by asking the servers in `/etc/resolv.conf`.
//!
//! The C library's own look-up would load plug-ins of whatever library the image happens to hold into this static binary, as
//! its `nsswitch.conf` says, and an image made of nothing has neither. The two files are what every engine gives a container.
//!
//! | file | room |
//! | --- | --- |
//! | `/etc/hosts` | `hosts` |
//! | `/etc/resolv.conf` | `settings` |
//! | what is asked and what is answered, as bytes | `message`: pure, trusts nothing |
//! | asking: which server, how often, how long | `ask` |
//!
//! Looking up blocks, so whoever calls has a thread for it. IPv4 comes before IPv6, because that is what a container
//! mostly has; in each the order is the server's.

mod ask;
pub(crate) mod fuzz;
mod hosts;
mod message;
mod settings;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use message::Name;
use settings::Settings;

/// How long one look-up may take in all.
const MOST_TIME: Duration = Duration::from_secs(15);

/// How many addresses of a name are kept.
const MOST_ADDRESSES: usize = 64;

/// How much of a file is read.
const MOST_FILE: u64 = 4 << 20;

/// The addresses that a host has without being looked up: it is an address, or this machine.
pub(crate) fn known(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let local = host.eq_ignore_ascii_case("localhost");
    local.then(|| vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)])
}

/// The addresses of a host, of which there is at least one; or why there is none, in words. It may take its time.
pub(crate) fn look_up(host: &str) -> Result<Vec<IpAddr>, String> {
    let settings = Settings::read(&file("/etc/resolv.conf"), &crate::process::sys::hostname());
    found_in(host, &file("/etc/hosts"), &settings, Instant::now() + MOST_TIME)
}

fn found_in(host: &str, hosts: &[u8], settings: &Settings, deadline: Instant) -> Result<Vec<IpAddr>, String> {
    if let Some(addresses) = known(host) {
        return Ok(addresses);
    }
    Name::of(host)?;
    let mut addresses = hosts::addresses(hosts, host.strip_suffix('.').unwrap_or(host));
    if addresses.is_empty() {
        addresses = ask::addresses(host, settings, deadline)?;
    }
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.truncate(MOST_ADDRESSES);
    Ok(addresses)
}

/// A file's contents. One that cannot be read has none: the look-up then says what it misses.
fn file(path: &str) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // What was read before an error is still worth having.
        let _ = file.take(MOST_FILE).read_to_end(&mut text);
    }
    text
}

#[cfg(test)]
mod tests;
