//! The answers of a watch (E6).

use std::collections::BTreeSet;

/// The instances of an answer. Other tags and metadata are no event.
pub(super) type Places = BTreeSet<(String, String, u16)>;

/// The answers of a watch.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Answers {
    /// The last one that events have reported, or need not report. `None` before the first.
    pub(super) reported: Option<Places>,
    /// Those that came later.
    pub(super) new: Vec<Places>,
}

impl Answers {
    pub(super) fn is_healthy(&self) -> bool {
        self.reported.as_ref().is_some_and(|places| !places.is_empty())
    }

    pub(super) fn is_unhealthy(&self) -> bool {
        self.reported.as_ref().is_some_and(Places::is_empty)
    }

    /// Returns true if an instance will be reported, or reported as gone.
    pub(super) fn will_change(&self) -> bool {
        self.is_healthy() || self.new.iter().any(|places| !places.is_empty())
    }

    /// Returns true if an answer is an event. The first one is, unless it is empty.
    pub(super) fn is_changed_by(&self, new: &Places) -> bool {
        self.reported.as_ref().map_or(!new.is_empty(), |reported| reported != new)
    }
}
