//! The choice of the advertised address of a service (D6).

use containerpilot_core::sort_by;
use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The name of the interface.
    pub interface: String,
    /// The address.
    pub ip: IpAddr,
}

/// The version of an address. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) has version 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// `inet`
    V4,
    /// `inet6`
    V6,
}

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// One entry of `interfaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceSpec {
    /// `inet`, `inet6`: the first address of any interface that is not a loopback address.
    Any(IpVersion),
    /// `eth0`, `eth0:inet`, `eth0:inet6`: the first address of that version. A name alone means IPv4.
    Named {
        /// The name of the interface.
        interface: String,
        /// The version of the address.
        version: IpVersion,
    },
    /// `eth0[1]`: an address of the interface by its index, of either version.
    Indexed {
        /// The name of the interface.
        interface: String,
        /// The index, from 0.
        index: usize,
    },
    /// `10.0.0.0/8`: the first address in this network.
    Network(Network),
    /// `static:10.0.0.1`: this address, whether or not the host has it.
    Static(IpAddr),
}

/// Why an entry of `interfaces` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The range of the error in bytes; empty where something is missing.
    pub place: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl SpecError {
    fn new(place: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { place, message: message.into(), help: help.into() }
    }
}

const FORMS: &str =
    "write a name (eth0, eth0:inet6, eth0[1]), a network (10.0.0.0/8), inet, inet6 or static:ADDRESS";

impl InterfaceSpec {
    /// Parses one entry.
    ///
    /// # Errors
    /// If the text is not a valid entry.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        match text {
            "inet" => return Ok(Self::Any(IpVersion::V4)),
            "inet6" => return Ok(Self::Any(IpVersion::V6)),
            _ => {}
        }
        if let Some(address) = text.strip_prefix("static:") {
            return address.parse().map(|ip: IpAddr| Self::Static(ip.to_canonical())).map_err(|_| {
                let place = "static:".len()..text.len();
                SpecError::new(
                    place,
                    format!("`{address}` is not an IP address"),
                    "for example: static:10.0.0.1",
                )
            });
        }
        if text.contains('/') {
            return Network::parse(text).map(Self::Network);
        }
        Self::parse_named(text)
    }

    fn parse_named(text: &str) -> Result<Self, SpecError> {
        let end = text.find([':', '[']).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        check_name(text, name)?;
        let interface = name.to_owned();
        match rest {
            "" | ":inet" => return Ok(Self::Named { interface, version: IpVersion::V4 }),
            ":inet6" => return Ok(Self::Named { interface, version: IpVersion::V6 }),
            _ => {}
        }
        let place = end..text.len();
        let Some(index) = rest.strip_prefix('[') else {
            let help = format!("write {name}:inet or {name}:inet6, or {name}[1] for the second address");
            return Err(SpecError::new(place, format!("unknown address version `{rest}`"), help));
        };
        let help = format!("write {name}[0] for the first address");
        let Some(index) = index.strip_suffix(']').filter(|index| is_digits(index)) else {
            return Err(SpecError::new(place, "the index must be a number in brackets", help));
        };
        // The limit of Go's `int`.
        let number = index.parse::<i64>().ok().and_then(|index| usize::try_from(index).ok());
        match number {
            Some(index) => Ok(Self::Indexed { interface, index }),
            None => Err(SpecError::new(place, format!("the index {index} is too large"), help)),
        }
    }

    /// The first of the sorted addresses that matches.
    fn find(&self, addresses: &[(&str, IpAddr)]) -> Option<IpAddr> {
        let mut all = addresses.iter().copied();
        let found = match self {
            Self::Any(version) => all.find(|(_, ip)| IpVersion::of(*ip) == *version && !ip.is_loopback()),
            Self::Named { interface, version } => {
                all.find(|(name, ip)| name == interface && IpVersion::of(*ip) == *version)
            }
            Self::Indexed { interface, index } => all.filter(|(name, _)| name == interface).nth(*index),
            Self::Network(network) => all.find(|(_, ip)| network.contains(*ip)),
            Self::Static(ip) => return Some(*ip),
        };
        found.map(|(_, ip)| ip)
    }
}

impl fmt::Display for InterfaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(version) => write!(f, "{version}"),
            Self::Named { interface, version } => write!(f, "{interface}:{version}"),
            Self::Indexed { interface, index } => write!(f, "{interface}[{index}]"),
            Self::Network(network) => write!(f, "{network}"),
            Self::Static(ip) => write!(f, "static:{ip}"),
        }
    }
}

/// Checks the name of an interface: letters, digits and `_` as in 3.8, and also `-` and `.`, as in `br-lan` and `eth0.100`.
fn check_name(text: &str, name: &str) -> Result<(), SpecError> {
    if name.is_empty() {
        let message = if text.is_empty() { "the entry is empty" } else { "missing interface name" };
        return Err(SpecError::new(0..0, message, FORMS));
    }
    let wrong = name.char_indices().find(|(at, char)| {
        !(char.is_ascii_alphanumeric() || *char == '_' || *at > 0 && matches!(char, '-' | '.'))
    });
    if let Some((at, char)) = wrong {
        let place = at..at + char.len_utf8();
        let message = format!("unexpected {char:?} in the name of an interface");
        let help = if char == ',' { "write a list: [\"eth0\", \"eth1\"]" } else { FORMS };
        return Err(SpecError::new(place, message, help));
    }
    if name.contains('.') && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let help = format!("write static:{name} for an address, or {name}/24 for a network");
        return Err(SpecError::new(0..name.len(), "this is an address, not the name of an interface", help));
    }
    Ok(())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl IpVersion {
    /// The version of an address.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        if ip.to_canonical().is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V4 { "inet" } else { "inet6" })
    }
}

impl Network {
    fn parse(text: &str) -> Result<Self, SpecError> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let Ok(ip) = address.parse::<IpAddr>() else {
            let message = format!("`{address}` is not an IP address");
            return Err(SpecError::new(0..address.len(), message, "for example: 10.0.0.0/8"));
        };
        let widest = if ip.is_ipv4() { 32 } else { 128 };
        let bits = Some(prefix).filter(|prefix| is_digits(prefix)).and_then(|prefix| prefix.parse().ok());
        let Some(bits) = bits.filter(|bits: &u8| *bits <= widest) else {
            let help = format!("write a number from 0 to {widest} after the slash");
            let message = "invalid prefix length";
            return Err(SpecError::new(address.len() + 1..text.len(), message, help));
        };
        // The bits after the prefix are ignored. The result may be an IPv4-mapped network.
        let masked = match ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask_v4(bits))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask_v6(bits))),
        };
        match (masked, masked.to_canonical()) {
            (IpAddr::V6(_), address @ IpAddr::V4(_)) => Ok(Self { address, prefix: bits.saturating_sub(96) }),
            (address, _) => Ok(Self { address, prefix: bits }),
        }
    }

    /// Returns true if an address of the same version is in the network.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => network.to_bits() == ip.to_bits() & mask_v4(self.prefix),
            (IpAddr::V6(network), IpAddr::V6(ip)) => network.to_bits() == ip.to_bits() & mask_v6(self.prefix),
            _ => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn mask_v4(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

fn mask_v6(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

/// Sorts addresses by interface name, then by their 16-byte form.
fn sorted(addresses: &[HostAddress]) -> Vec<(&str, IpAddr)> {
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let mut sorted: Vec<_> =
        addresses.iter().map(|address| (address.interface.as_str(), address.ip.to_canonical())).collect();
    sort_by(&mut sorted, |one, other| (one.0, bytes(one.1)).cmp(&(other.0, bytes(other.1))));
    sorted
}

/// The address to advertise: the first match of the first entry that has one. Unknown interfaces are ignored. The default is
/// `eth0:inet`, then `inet`.
#[must_use]
pub fn choose(specs: &[InterfaceSpec], addresses: &[HostAddress]) -> Option<IpAddr> {
    let default = [
        InterfaceSpec::Named { interface: "eth0".to_owned(), version: IpVersion::V4 },
        InterfaceSpec::Any(IpVersion::V4),
    ];
    let specs = if specs.is_empty() { &default } else { specs };
    let addresses = sorted(addresses);
    specs.iter().find_map(|spec| spec.find(&addresses))
}

/// The addresses of the host for messages, in the order of the host: `lo 127.0.0.1, ::1; eth0 10.1.0.5`.
#[must_use]
pub fn summary(addresses: &[HostAddress]) -> String {
    let mut interfaces: Vec<(&str, String)> = Vec::new();
    let mut places = BTreeMap::new();
    for address in addresses {
        let place = *places.entry(address.interface.as_str()).or_insert(interfaces.len());
        match interfaces.get_mut(place) {
            Some((_, list)) => *list += &format!(", {}", address.ip),
            None => interfaces.push((&address.interface, address.ip.to_string())),
        }
    }
    let all: Vec<_> = interfaces.iter().map(|(name, list)| format!("{name} {list}")).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(addresses: &[(&str, &str)]) -> Vec<HostAddress> {
        let address = |(name, ip): &(&str, &str)| HostAddress {
            interface: (*name).to_owned(),
            ip: ip.parse().unwrap(),
        };
        addresses.iter().map(address).collect()
    }

    fn chosen(specs: &[&str], addresses: &[(&str, &str)]) -> Option<String> {
        let specs: Vec<_> = specs.iter().map(|spec| InterfaceSpec::parse(spec).unwrap()).collect();
        choose(&specs, &host(addresses)).map(|ip| ip.to_string())
    }

    #[test]
    fn d6_interface_names_can_contain_dashes_and_dots() {
        let addresses = [("br-lan", "10.9.9.9"), ("eth0.100", "10.8.8.8"), ("eth0.100", "fe80::8")];
        assert_eq!(chosen(&["br-lan"], &addresses).as_deref(), Some("10.9.9.9"));
        assert_eq!(chosen(&["eth0.100:inet6"], &addresses).as_deref(), Some("fe80::8"));
        assert_eq!(chosen(&["eth0.100[0]"], &addresses).as_deref(), Some("10.8.8.8"));
    }

    #[test]
    fn d6_an_entry_is_displayed_as_it_is_parsed() {
        for text in [
            "inet",
            "inet6",
            "eth0:inet",
            "br-lan:inet6",
            "eth0[1]",
            "10.0.0.0/8",
            "2001:db8::/32",
            "static:::1",
        ] {
            assert_eq!(InterfaceSpec::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(InterfaceSpec::parse("eth0").unwrap().to_string(), "eth0:inet");
        assert_eq!(InterfaceSpec::parse("::ffff:10.1.2.3/104").unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn d6_errors_have_the_range_of_the_mistake() {
        for (text, place, message) in [
            ("", 0..0, "the entry is empty"),
            ("eth0,eth1", 4..5, "unexpected ',' in the name of an interface"),
            ("10.0.0.1", 0..8, "this is an address, not the name of an interface"),
            ("10.0.0.0/33", 9..11, "invalid prefix length"),
            ("10/8", 0..2, "`10` is not an IP address"),
            ("static:host", 7..11, "`host` is not an IP address"),
            ("eth0:6", 4..6, "unknown address version `:6`"),
            ("eth0[-1]", 4..8, "the index must be a number in brackets"),
            (":inet", 0..0, "missing interface name"),
        ] {
            let error = InterfaceSpec::parse(text).unwrap_err();
            assert_eq!((error.place.clone(), error.message.as_str()), (place, message), "{text}");
            assert!(!error.help.is_empty());
        }
    }

    #[test]
    fn d6_the_summary_lists_all_addresses() {
        let addresses = host(&[("lo", "127.0.0.1"), ("eth0", "10.1.0.5"), ("lo", "::1")]);
        assert_eq!(summary(&addresses), "lo 127.0.0.1, ::1; eth0 10.1.0.5");
    }
}
