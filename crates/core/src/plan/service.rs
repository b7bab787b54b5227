//! Services that jobs advertise in the catalog.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::answer::Instance;

/// A service that a job advertises in the catalog (D3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// The service's name; that of the job unless `service.name` is set (D10).
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// The id of this instance: `JOB-HOSTNAME` unless `service.id` is set (D10).
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub id: String,
    /// Where it can be reached.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// Its addresses in other networks, by name (D10).
    pub tagged_addresses: BTreeMap<String, TaggedAddress>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub meta: BTreeMap<String, String>,
    /// The TTL of its check.
    pub ttl: Duration,
    /// Whether its check has the id and name of the instance, as in ContainerPilot 2; otherwise its id is `service:ID`.
    pub legacy_check: bool,
    /// The status it is registered with before its health is known (D4).
    pub initial_status: Option<Status>,
    /// True if other clients may change its tags.
    pub enable_tag_override: bool,
    /// How long it may be critical before the catalog deregisters it.
    pub deregister_critical_after: Option<Duration>,
}

/// An address of a service in another network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaggedAddress {
    /// An IP address or a host name.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub address: String,
    /// The port there, if it is not that of the service.
    pub port: Option<u16>,
}

/// The status of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Healthy.
    Passing,
    /// Healthy, with a warning.
    Warning,
    /// Unhealthy.
    Critical,
}

impl Status {
    /// The name in Consul's API and in the JSON of the control socket.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl Service {
    /// The service as watches of the embedded catalog see it.
    #[must_use]
    pub fn instance(&self) -> Instance {
        Instance {
            id: self.id.clone(),
            address: self.address.to_string(),
            port: self.port,
            tags: self.tags.clone(),
            meta: self.meta.clone(),
        }
    }
}
