//! `/etc/hosts`: one address and its names per line.

use std::net::IpAddr;

/// The addresses of a name, in the order of the file.
pub(super) fn addresses(text: &[u8], name: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(address) = words.next() else { continue };
        if !words.any(|word| word.eq_ignore_ascii_case(name.as_bytes())) {
            continue;
        }
        let Some(address) = std::str::from_utf8(address).ok().and_then(|text| text.parse().ok()) else {
            continue;
        };
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &[u8] = b"127.0.0.1\tlocalhost\n# 10.0.0.1 consul\n10.0.0.2 Consul consul.local # the one\n\
        ::2 consul\r\n10.0.0.2 consul\nnonsense consul\nfe80::1%eth0 consul\n10.0.0.3\n\xff\xfe consul\n  10.0.0.4  last";

    fn of(name: &str) -> Vec<String> {
        addresses(HOSTS, name).iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn d5_hosts_gives_every_address_once_and_skips_invalid_lines() {
        assert_eq!(of("consul"), ["10.0.0.2", "::2"]);
        assert_eq!(of("CONSUL.local"), ["10.0.0.2"]);
        assert_eq!(of("last"), ["10.0.0.4"]);
        assert_eq!(of("con"), [""; 0]);
        assert_eq!(of("10.0.0.3"), [""; 0]);
    }
}
