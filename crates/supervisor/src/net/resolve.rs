//! Resolves host names by `/etc/hosts` and the name servers of `/etc/resolv.conf`.
//!
//! glibc's own resolver would load NSS plug-ins of the image's libc into this static binary, and an image built from
//! scratch has none. Every container engine provides the two files.
//!
//! `hosts` parses `/etc/hosts`, `settings` parses `/etc/resolv.conf`, `message` encodes questions and parses answers,
//! and `ask` sends the questions, with retries and timeouts.
//!
//! A look-up is a future on the network thread, with one socket at a time. IPv4 addresses are sorted before IPv6
//! addresses, because most containers have only IPv4; within a family the order is the server's.

mod ask;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod hosts;
mod message;
mod settings;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use containerpilot_core::plan::DnsRecord;
use containerpilot_core::sort_by;
use containerpilot_process::regular_file;
use message::{DnsName, ResponseCode};
pub(crate) use message::{FoundRecord, RecordData};
use settings::ResolverSettings;
use thiserror::Error;
use tokio::time::Instant;

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
    let settings =
        ResolverSettings::parse(&read_file("/etc/resolv.conf"), &containerpilot_process::sys::hostname());
    look_up_in(host, &read_file("/etc/hosts"), &settings, Instant::now() + LOOK_UP_TIMEOUT).await
}

async fn look_up_in(
    host: &str,
    hosts: &[u8],
    settings: &ResolverSettings,
    deadline: Instant,
) -> Result<Vec<IpAddr>, ResolveError> {
    if let Some(addresses) = without_look_up(host) {
        return Ok(addresses);
    }
    DnsName::parse(host).map_err(ResolveError::InvalidName)?;
    let mut addresses = hosts::addresses(hosts, host.strip_suffix('.').unwrap_or(host));
    if addresses.is_empty() {
        let records = ask::records(host, &[DnsRecord::A, DnsRecord::Aaaa], settings, deadline).await?;
        addresses = records.iter().filter_map(FoundRecord::address).collect();
    }
    sort_by(&mut addresses, |one, other| one.is_ipv6().cmp(&other.is_ipv6()));
    addresses.truncate(MAX_ADDRESSES);
    Ok(addresses)
}

/// The records of a name (D13), none if it does not exist. `/etc/hosts` has addresses, too; they have no TTL.
pub(crate) async fn records(
    name: &str,
    record: DnsRecord,
    deadline: Instant,
) -> Result<Vec<FoundRecord>, ResolveError> {
    let settings =
        ResolverSettings::parse(&read_file("/etc/resolv.conf"), &containerpilot_process::sys::hostname());
    records_in(name, record, &read_file("/etc/hosts"), &settings, deadline).await
}

async fn records_in(
    name: &str,
    record: DnsRecord,
    hosts: &[u8],
    settings: &ResolverSettings,
    deadline: Instant,
) -> Result<Vec<FoundRecord>, ResolveError> {
    DnsName::parse(name).map_err(ResolveError::InvalidName)?;
    let is_wanted = |address: &IpAddr| match record {
        DnsRecord::A => address.is_ipv4(),
        DnsRecord::Aaaa => address.is_ipv6(),
        DnsRecord::Srv => false,
    };
    let known = hosts::addresses(hosts, name.strip_suffix('.').unwrap_or(name));
    let known: Vec<IpAddr> = known.into_iter().filter(is_wanted).collect();
    if !known.is_empty() {
        return Ok(known
            .into_iter()
            .map(|address| FoundRecord { data: RecordData::Address(address), ttl: u32::MAX })
            .collect());
    }
    match ask::records(name, &[record], settings, deadline).await {
        Err(ResolveError::NotFound) => Ok(Vec::new()),
        other => other,
    }
}

/// The content of a file. One that is missing, not a regular file or unreadable counts as empty; the look-up then fails
/// with an error.
fn read_file(path: &str) -> Vec<u8> {
    regular_file::read(path, FILE_BYTES).unwrap_or_default()
}

#[cfg(test)]
mod tests;
