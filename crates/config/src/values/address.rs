//! Addresses of health checks (H5).

use containerpilot_core::plan::PORT_VARIABLE;

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
