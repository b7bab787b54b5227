//! What is known about a watched service.

use alloc::vec::Vec;

use crate::input::Instance;

/// What is known about a watched service.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    /// The healthy instances, sorted. Empty before the first answer.
    instances: Vec<Instance>,
    answered: bool,
}

impl WatchState {
    /// The healthy instances; `None` before the first answer of the catalog.
    pub(crate) fn instances(&self) -> Option<&[Instance]> {
        self.answered.then_some(self.instances.as_slice())
    }

    /// Returns true if there is a healthy instance.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.instances.is_empty()
    }

    /// Records an answer of the catalog. Returns true if the set of instances changed.
    pub(crate) fn update(&mut self, mut instances: Vec<Instance>) -> bool {
        instances.sort();
        instances.dedup();
        self.answered = true;
        let changed = self.instances != instances;
        self.instances = instances;
        changed
    }
}
