//! Resolves host names by `/etc/hosts` and the name servers of `/etc/resolv.conf`.
//!
//! glibc's own resolver would load NSS plug-ins of the image's libc into this static binary, and an image built from scratch has
//! none. Every container engine provides the two files.
//!
//! `hosts` parses `/etc/hosts`, `settings` parses `/etc/resolv.conf`, `message` encodes questions and parses answers, and
//! `ask` sends the questions, with retries and timeouts.
//!
//! A look-up is a future on the network thread, with one socket at a time. IPv4 addresses are sorted before IPv6 addresses, because most
//! containers have only IPv4; within a family the order is the server's.

mod ask;
pub(crate) mod fuzz;
mod hosts;
mod message;
mod settings;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use message::{Name, ResponseCode};
use settings::Settings;
use thiserror::Error;
use tokio::time::Instant;

use crate::regular_file;

/// Time for one look-up, over all servers and attempts.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(15);

/// Most addresses of one name.
const MAX_ADDRESSES: usize = 64;

/// How much of a file is read.
const FILE_BYTES: u64 = 4 << 20;

/// Why a host has no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ResolveError {
    #[error("{0}")]
    InvalidName(&'static str),
    #[error("not found in /etc/hosts or at the name server")]
    NotFound,
    #[error("name server {server} answered {code}")]
    ServerError { server: IpAddr, code: ResponseCode },
    #[error("name server {server}: {reason}")]
    NoAnswer { server: IpAddr, reason: String },
}

/// The addresses of a host that needs no look-up: an IP address, or `localhost`.
pub(crate) fn without_look_up(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let local = host.eq_ignore_ascii_case("localhost");
    local.then(|| vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)])
}

/// The addresses of a host, at least one; or the reason why there is none. Takes at most 15 seconds.
pub(crate) async fn look_up(host: &str) -> Result<Vec<IpAddr>, ResolveError> {
    let settings = Settings::parse(&read_file("/etc/resolv.conf"), &crate::process::sys::hostname());
    look_up_in(host, &read_file("/etc/hosts"), &settings, Instant::now() + LOOK_UP_TIMEOUT).await
}

async fn look_up_in(
    host: &str,
    hosts: &[u8],
    settings: &Settings,
    deadline: Instant,
) -> Result<Vec<IpAddr>, ResolveError> {
    if let Some(addresses) = without_look_up(host) {
        return Ok(addresses);
    }
    Name::parse(host).map_err(ResolveError::InvalidName)?;
    let mut addresses = hosts::addresses(hosts, host.strip_suffix('.').unwrap_or(host));
    if addresses.is_empty() {
        addresses = ask::addresses(host, settings, deadline).await?;
    }
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.truncate(MAX_ADDRESSES);
    Ok(addresses)
}

/// The content of a file. One that is missing, not a regular file or unreadable counts as empty; the look-up then fails with an error.
fn read_file(path: &str) -> Vec<u8> {
    regular_file::read(path, FILE_BYTES).unwrap_or_default()
}

#[cfg(test)]
mod tests;
