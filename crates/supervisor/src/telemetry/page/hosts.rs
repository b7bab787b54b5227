//! Under which host names the page may be requested.
//!
//! A website can point a name of its own at the address of this server, and a browser then lets it read what is there
//! (DNS rebinding). Such a name is a public one. Addresses, names without a dot, and names that cannot be registered
//! are no danger.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{HOST, HeaderMap};

/// Ends of names that cannot be registered in public: RFC 6761, RFC 6762, RFC 8375, the domain of ICANN for private
/// use, and Consul's default.
const PRIVATE: [&str; 8] =
    [".localhost", ".local", ".internal", ".test", ".home.arpa", ".svc", ".lan", ".consul"];

/// Whether the `Host` of a request is an address, a name that is not public, or one of `allowed`.
pub(super) fn is_accepted(headers: &HeaderMap, allowed: &[String]) -> bool {
    // The server has refused an HTTP/1.1 request without one. A browser always sends it.
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let is_port = |rest: &str| {
        rest.is_empty()
            || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split_once(']').filter(|(_, rest)| is_port(rest));
        return address.is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
    }
    let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
    if !is_port(rest) {
        return false;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    !name.contains('.')
        || name.parse::<IpAddr>().is_ok()
        || PRIVATE.iter().any(|end| name.ends_with(end))
        || allowed.iter().any(|other| other.eq_ignore_ascii_case(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn t5_public_names_need_an_entry() {
        let accepted = |host: &str, allowed: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            is_accepted(&headers, &allowed.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        for host in [
            "10.0.0.5:9090",
            "10.0.0.5",
            "[::1]:9090",
            "localhost:9090",
            "web",
            "web.default.svc.cluster.local:9090",
            "a.localhost",
            "containerpilot.service.consul:9090",
            "HOST.INTERNAL.",
            "",
        ] {
            assert!(accepted(host, &[]), "{host}");
        }
        for host in [
            "evil.example.com",
            "evil.com:9090",
            "10.0.0.5.evil.com",
            "evil.com.",
            "local.evil.com",
            "[evil.com]",
            "[::1].evil.com",
            "localhost:evil.com",
            "evillocal.com",
            "\u{fe}.com",
        ] {
            assert!(!accepted(host, &[]), "{host}");
        }
        assert!(accepted("Pilot.example.com:443", &["pilot.example.com"]));
        assert!(!accepted("x.pilot.example.com", &["pilot.example.com"]));
    }
}
