//! Services in the catalog: the ones that jobs advertise, and the ones that are watched.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

/// A service that a job advertises in the catalog (D3).
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The service's name: the job's.
    pub name: String,
    /// The id of this instance: `NAME-HOSTNAME`.
    pub id: String,
    /// Where it can be reached.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub meta: BTreeMap<String, String>,
    /// The TTL of its check.
    pub ttl: Duration,
    /// The status it is registered with before its health is known (D4).
    pub initial_status: Option<Status>,
    /// True if other clients may change its tags.
    pub enable_tag_override: bool,
    /// How long it may be critical before the catalog deregisters it.
    pub deregister_critical_after: Option<Duration>,
}

/// The status of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A watched service (D7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The service; its events come from `watch.NAME`.
    pub name: String,
    /// The longest time between two queries.
    pub interval: Duration,
    /// Only instances with this tag count.
    pub tag: Option<String>,
    /// The data center to query.
    pub dc: Option<String>,
}

impl Watch {
    /// Returns true if the watch matches this service of the embedded catalog (D2).
    #[must_use]
    pub fn sees(&self, service: &Service) -> bool {
        service.name == self.name && self.tag.as_ref().is_none_or(|tag| service.tags.contains(tag))
    }
}
