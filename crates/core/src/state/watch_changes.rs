//! What the last events of watches have added and removed, for the processes that they start (D12).

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::EventId;

/// How many events are remembered. A job may have 1,000 of them pending (W21).
const MAX_EVENTS: usize = 2048;
/// How many bytes are remembered, beside the last change.
const MAX_BYTES: usize = 1024 * 1024;

/// What an event has added and removed: addresses or names, sorted and separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListChange {
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) added: String,
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) removed: String,
}

impl ListChange {
    fn bytes(&self) -> usize {
        self.added.len() + self.removed.len()
    }
}

/// The changes of the last events, in the order of the events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WatchChanges {
    events: VecDeque<(EventId, Arc<ListChange>)>,
    bytes: usize,
}

impl WatchChanges {
    pub(crate) fn record(&mut self, event: EventId, change: Arc<ListChange>) {
        self.bytes += change.bytes();
        while self.events.len() >= MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.events.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
        self.events.push_back((event, change));
    }

    /// The change of an event, if it is remembered.
    pub(crate) fn of(&self, event: EventId) -> Option<&ListChange> {
        let at = self.events.binary_search_by_key(&event, |(event, _)| *event).ok()?;
        self.events.get(at).map(|(_, change)| &**change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d12_only_the_last_changes_are_remembered() {
        let mut changes = WatchChanges::default();
        let change = |bytes: usize| Arc::new(ListChange { added: "x".repeat(bytes), removed: String::new() });
        for id in 0..3000 {
            changes.record(EventId(id), change(1));
        }
        assert!(changes.of(EventId(2999)).is_some() && changes.of(EventId(952)).is_some());
        assert!(changes.of(EventId(951)).is_none());
        changes.record(EventId(3000), change(2 * MAX_BYTES));
        assert!(changes.of(EventId(2999)).is_none(), "a large one takes the place of the others");
        assert!(changes.of(EventId(3000)).is_some());
        changes.record(EventId(3001), change(1));
        assert_eq!((changes.events.len(), changes.bytes), (1, 1));
    }
}
