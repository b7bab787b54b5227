//! Watches: what the supervisor follows outside its own jobs (D7, D13).

use alloc::string::String;
use core::time::Duration;

use super::Service;

/// Something that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Its events come from `watch.NAME`.
    pub name: String,
    /// The longest time between two looks, and the longest delay before a failed one is repeated.
    pub interval: Duration,
    /// What is watched.
    pub kind: WatchKind,
}

/// What is watched. Everything that only one kind has is in its variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// The healthy instances of the service with the name of the watch, in the catalog.
    Service {
        /// Only instances with this tag count.
        tag: Option<String>,
        /// The data center to query.
        dc: Option<String>,
    },
}

impl WatchKind {
    /// The name in the JSON of the control socket and for people.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Service { .. } => "service",
        }
    }

    /// Returns true if the catalog answers it, not the supervisor itself.
    #[must_use]
    pub const fn is_in_catalog(&self) -> bool {
        match self {
            Self::Service { .. } => true,
        }
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
        }
    }
}
