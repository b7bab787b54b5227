//! What is known about a watch.

use crate::answer::{Answer, Entries, Instance, Value};
use crate::catalog::connectivity::Trouble;

/// What is known about a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchState {
    /// The last answer; `None` before the first one. Instances are sorted by their identity.
    pub(crate) known: Option<Answer>,
    /// The value before a peer went down.
    last_value: Option<Value>,
    /// The last answer while maintenance mode paused the watch (C8).
    pub(crate) held: Option<Answer>,
    /// Why it cannot be answered. The last answer stays valid.
    pub(crate) trouble: Option<Trouble>,
}

/// What an answer has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerChange {
    /// True if the instances or the contents are others.
    pub(crate) contents: bool,
    /// True if the health is another.
    pub(crate) health: bool,
}

impl WatchState {
    /// Takes an answer and compares it with the one before. The first answer is compared with nothing.
    pub(crate) fn learn(&mut self, mut answer: Answer) -> AnswerChange {
        if let Answer::Instances(instances) = &mut answer {
            // The catalog may answer in any order.
            instances.sort();
            instances.dedup_by(|one, other| one.identity() == other.identity());
        }
        let change =
            AnswerChange { contents: self.is_new(&answer), health: self.is_healthy() != answer.is_healthy() };
        self.last_value = if let Answer::Down(_) = answer { self.value().cloned() } else { None };
        self.known = Some(answer);
        change
    }

    fn is_new(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Instances(new) => {
                !self.instances().iter().map(Instance::identity).eq(new.iter().map(Instance::identity))
            }
            Answer::Value(new) => self.value() != Some(new),
            Answer::Entries(new) => self.entries() != Some(new),
            Answer::Down(_) if self.value().is_some() => false,
            Answer::Absent | Answer::Up | Answer::Down(_) => self.is_healthy() != answer.is_healthy(),
        }
    }

    /// The instances that are known: none before the first answer.
    pub(crate) fn instances(&self) -> &[Instance] {
        match &self.known {
            Some(Answer::Instances(instances)) => instances,
            _ => &[],
        }
    }

    /// The value that is known, also of a peer that is down.
    pub(crate) fn value(&self) -> Option<&Value> {
        match &self.known {
            Some(Answer::Value(value)) => Some(value),
            Some(Answer::Down(_)) => self.last_value.as_ref(),
            _ => None,
        }
    }

    fn entries(&self) -> Option<&Entries> {
        match &self.known {
            Some(Answer::Entries(entries)) => Some(entries),
            _ => None,
        }
    }

    /// Returns true if it will send an event: an instance that it has reported will also be reported as gone, and one of
    /// a held answer will be reported.
    pub(crate) fn will_change(&self) -> bool {
        self.is_healthy() || self.held.as_ref().is_some_and(Answer::is_healthy)
    }

    /// Returns true if there is an instance, a value or a peer.
    pub(crate) fn is_healthy(&self) -> bool {
        self.known.as_ref().is_some_and(Answer::is_healthy)
    }

    /// Returns true if an answer has told that nothing is there.
    pub(crate) fn is_unhealthy(&self) -> bool {
        self.known.as_ref().is_some_and(|answer| !answer.is_healthy())
    }

    /// Adds what decisions depend on, for the exhaustive search.
    pub(crate) fn fingerprint(&self) -> impl core::hash::Hash + '_ {
        // Only reports depend on the trouble.
        let Self { known, last_value, held, trouble: _ } = self;
        (known, last_value, held)
    }
}
