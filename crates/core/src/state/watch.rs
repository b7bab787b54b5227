//! What is known about a watched service.

use alloc::vec::Vec;

use crate::input::Instance;

/// What is known about a watched service.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct WatchState {
    /// The healthy instances, sorted; `None` before the first answer of the catalog.
    pub(crate) instances: Option<Vec<Instance>>,
    /// The last answer while maintenance mode paused the watch (C8).
    pub(crate) held: Option<Vec<Instance>>,
}

impl WatchState {
    /// The healthy instances that are known: none before the first answer.
    pub(crate) fn known_instances(&self) -> &[Instance] {
        self.instances.as_deref().unwrap_or_default()
    }

    /// Returns true if it will send an event: an instance that it has reported will also be reported as gone, and one of
    /// a held answer will be reported.
    pub(crate) fn will_change(&self) -> bool {
        self.is_healthy() || self.held.as_ref().is_some_and(|held| !held.is_empty())
    }

    /// Returns true if there is a healthy instance.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.known_instances().is_empty()
    }
}
