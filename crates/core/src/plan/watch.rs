//! Watches: what the supervisor follows outside its own jobs (D7, D13).

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{HttpProbe, Service};

/// Something that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Its events come from `watch.NAME`.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// The longest time between two looks, and the longest delay before a failed one is repeated.
    pub interval: Duration,
    /// What is watched.
    pub kind: WatchKind,
}

/// What is watched. Everything that only one kind has is in its variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchKind {
    /// The healthy instances of the service with the name of the watch, in the catalog.
    Service {
        /// Only instances with this tag count.
        tag: Option<String>,
        /// The data center to query.
        #[serde(serialize_with = "crate::recorded::as_is")]
        dc: Option<String>,
    },
    /// A peer that accepts connections.
    Tcp {
        /// Host name or address.
        #[serde(serialize_with = "crate::recorded::as_is")]
        host: String,
        /// Port.
        port: u16,
    },
    /// The body of a response.
    Http(HttpProbe),
    /// The records of a name.
    Dns {
        /// The name.
        #[serde(serialize_with = "crate::recorded::as_is")]
        name: String,
        /// Which records.
        record: DnsRecord,
    },
    /// The contents of a file, or of the files of a directory.
    File {
        /// Its absolute path.
        #[serde(serialize_with = "crate::recorded::as_is")]
        path: String,
    },
    /// The value of a key in Consul.
    Key {
        /// The key.
        #[serde(serialize_with = "crate::recorded::as_is")]
        key: String,
        /// The data center to query.
        #[serde(serialize_with = "crate::recorded::as_is")]
        dc: Option<String>,
    },
    /// The keys below a prefix in Consul, and their values.
    Prefix {
        /// The prefix.
        #[serde(serialize_with = "crate::recorded::as_is")]
        prefix: String,
        /// The data center to query.
        #[serde(serialize_with = "crate::recorded::as_is")]
        dc: Option<String>,
    },
}

/// The type of a DNS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DnsRecord {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Hosts and ports of a service.
    Srv,
}

impl DnsRecord {
    /// Its name in a zone file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Srv => "SRV",
        }
    }
}

impl WatchKind {
    /// The name in the JSON of the control socket and for people.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Service { .. } => "service",
            Self::Tcp { .. } => "tcp",
            Self::Http(_) => "http",
            Self::Dns { .. } => "dns",
            Self::File { .. } => "file",
            Self::Key { .. } => "key",
            Self::Prefix { .. } => "prefix",
        }
    }

    /// Returns true if the catalog answers it, not the supervisor itself.
    #[must_use]
    pub const fn is_in_catalog(&self) -> bool {
        match self {
            Self::Service { .. } | Self::Key { .. } | Self::Prefix { .. } => true,
            Self::Tcp { .. } | Self::Http(_) | Self::Dns { .. } | Self::File { .. } => false,
        }
    }

    /// Returns true if it finds a set of instances.
    #[must_use]
    pub const fn has_instances(&self) -> bool {
        matches!(self, Self::Service { .. } | Self::Dns { .. })
    }

    /// Returns true if it finds contents.
    #[must_use]
    pub const fn has_value(&self) -> bool {
        !self.has_instances() && !matches!(self, Self::Tcp { .. })
    }
}

impl Watch {
    /// Returns true if the watch matches this service of the embedded catalog (D2).
    #[must_use]
    pub fn sees(&self, service: &Service) -> bool {
        match &self.kind {
            WatchKind::Service { tag, .. } => {
                service.name == self.name && tag.as_ref().is_none_or(|tag| service.tags.contains(tag))
            }
            _ => false,
        }
    }

    /// Returns true if a rendered file needs it, and the configuration does not name it (D15). Names in a configuration
    /// have no colon.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.name.contains(':')
    }

    /// What is watched, in words: `tcp db:5432`.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.kind {
            WatchKind::Service { tag, dc } => {
                let tag = tag.as_ref().map(|tag| format!(" with the tag {tag}")).unwrap_or_default();
                format!("service {}{tag}{}", self.name, in_datacenter(dc.as_deref()))
            }
            WatchKind::Tcp { host, port } if host.contains(':') => format!("tcp [{host}]:{port}"),
            WatchKind::Tcp { host, port } => format!("tcp {host}:{port}"),
            WatchKind::Http(probe) => probe.to_string(),
            WatchKind::Dns { name, record } => format!("{} records of {name}", record.name()),
            WatchKind::File { path } => format!("file {path}"),
            WatchKind::Key { key, dc } => format!("key {key}{}", in_datacenter(dc.as_deref())),
            WatchKind::Prefix { prefix, dc } => {
                format!("keys below {prefix}{}", in_datacenter(dc.as_deref()))
            }
        }
    }
}

fn in_datacenter(dc: Option<&str>) -> String {
    dc.map(|dc| format!(" in datacenter {dc}")).unwrap_or_default()
}
