//! `Type=` of a service.

use super::unit::Unit;

/// When a service is ready for those that are ordered after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceType {
    /// As soon as its process runs.
    Simple,
    /// When it reports readiness (`sd_notify`).
    Notify,
    /// When its process has exited.
    Oneshot,
}

impl ServiceType {
    pub(crate) fn of(unit: &Unit) -> Self {
        let kind = unit.last("Service", "Type").map(|entry| entry.value.as_str());
        match kind {
            Some("notify" | "notify-reload") => Self::Notify,
            Some("oneshot") => Self::Oneshot,
            None if unit.all("Service", "ExecStart").is_empty() => Self::Oneshot,
            _ => Self::Simple,
        }
    }
}
