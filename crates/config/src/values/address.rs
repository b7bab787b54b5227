//! Addresses of health checks (H5) and services (D10).

use std::collections::BTreeMap;
use std::net::IpAddr;

use containerpilot_core::plan::{PORT_VARIABLE, TaggedAddress};

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::Node;

/// The address of a TCP check (H5).
pub struct TcpAddress;

impl ValueType for TcpAddress {
    type Value = (String, u16);
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<(String, u16)> {
        let text = cx.text(key, node)?;
        let address = host_and_port(&text, None);
        if address.is_none() {
            let message = format!("`{key}` must be a host and a port, not {}", found(node));
            cx.error(node.span, message, "for example: \"127.0.0.1:5432\" or \"[::1]:5432\"");
        }
        address
    }
}

/// The addresses of a service in other networks (D10).
pub struct TaggedAddresses;

impl ValueType for TaggedAddresses {
    type Value = BTreeMap<String, TaggedAddress>;
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let mut addresses = BTreeMap::new();
        for member in cx.members(key, node, "{ wan: \"198.51.100.7:80\" }")? {
            let text = cx.text(&member.key, &member.value)?;
            // An IPv6 address needs no brackets without a port.
            let address = match text.parse::<IpAddr>() {
                Ok(address) => Some((address.to_string(), None)),
                Err(_) => match host_and_port(&text, None) {
                    Some((_, 0)) => None,
                    Some((host, port)) => Some((host, Some(port))),
                    None => host_and_port(&text, Some(1)).map(|(host, _)| (host, None)),
                },
            };
            let Some((address, port)) = address.filter(|_| !member.key.is_empty()) else {
                let message = format!(
                    "each address in `{key}` must be a host with or without a port, not {}",
                    found(&member.value)
                );
                cx.error(member.value.span, message, "for example: \"198.51.100.7:80\" or \"10.0.0.7\"");
                return None;
            };
            if addresses.insert(member.key.clone(), TaggedAddress { address, port }).is_some() {
                cx.error(member.key_span, format!("`{}` is written twice", member.key), "remove one of them");
                return None;
            }
        }
        Some(addresses)
    }
}

/// A host and a port. Port 0 is that of the replica (W20).
pub(super) fn host_and_port(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let bracketed = text.starts_with('[');
    if host.is_empty() || !(bracketed || host.chars().all(plain)) {
        return None;
    }
    let port = match port {
        // The port of the replica (W20).
        Some(port) if port.strip_prefix('$').map(unbraced) == Some(PORT_VARIABLE) => 0,
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None => default_port?,
    };
    Some((host.to_owned(), port))
}

/// A name without its braces.
fn unbraced(name: &str) -> &str {
    name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
}
