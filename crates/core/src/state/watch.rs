//! What is known about a watched service.

use alloc::vec::Vec;

use crate::input::Instance;

/// What is known about a watched service.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct WatchState {
    /// The healthy instances, sorted; `None` before the first answer of the catalog.
    pub(crate) instances: Option<Vec<Instance>>,
}

impl WatchState {
    /// The healthy instances that are known: none before the first answer.
    pub(crate) fn known_instances(&self) -> &[Instance] {
        self.instances.as_deref().unwrap_or_default()
    }

    /// Returns true if there is a healthy instance.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.known_instances().is_empty()
    }
}
