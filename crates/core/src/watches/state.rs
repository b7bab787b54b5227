//! What is known about a watch, and whether an answer changes it.

use alloc::collections::BTreeSet;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Entries, Instance, ValueBytes};
use crate::catalog::connectivity::Trouble;
use crate::state::watch_changes::ListChange;
use crate::variables::WatchText;
use crate::{inserted, sort_by};

/// What is known about a watch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WatchState {
    /// The last answer; `None` before the first one. Instances are sorted by their identity.
    pub(crate) known: Option<Answer>,
    /// The value before a peer went down.
    #[serde(serialize_with = "crate::recorded::optional_value")]
    last_value: Option<ValueBytes>,
    /// The last answer while maintenance mode paused the watch (C8).
    pub(crate) postponed: Option<Answer>,
    /// Why it cannot be answered. The last answer stays valid.
    pub(crate) trouble: Option<Trouble>,
}

/// What an answer has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerChange {
    /// True if the instances or the contents are others.
    pub(crate) contents: bool,
    /// True if the health is another.
    pub(crate) health: bool,
    /// What was added and removed, if instances or entries are watched and have changed.
    pub(crate) list: Option<ListChange>,
}

impl WatchState {
    /// Takes an answer and compares it with the one before. The first answer is compared with nothing.
    pub(crate) fn learn(&mut self, mut answer: Answer) -> AnswerChange {
        if let Answer::Instances(instances) = &mut answer {
            // The catalog may answer in any order.
            sort_by(instances, Ord::cmp);
            instances.dedup_by(|one, other| one.identity() == other.identity());
        }
        let contents = self.is_new(&answer);
        let health = self.is_healthy() != answer.is_healthy();
        let before = if contents { self.listed() } else { None };
        self.last_value = if let Answer::Down(_) = answer { self.value().cloned() } else { None };
        self.known = Some(answer);
        let after = if contents { self.listed() } else { None };
        let is_list = before.is_some() || after.is_some();
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let list = is_list.then(|| ListChange {
            added: joined(after.difference(&before)),
            removed: joined(before.difference(&after)),
        });
        AnswerChange { contents, health, list }
    }

    /// The addresses of instances, or the names of entries.
    fn listed(&self) -> Option<BTreeSet<String>> {
        match &self.known {
            Some(Answer::Instances(instances)) => Some(inserted(instances.iter().map(Instance::endpoint))),
            Some(Answer::Entries(entries)) => Some(inserted(entries.keys().cloned())),
            _ => None,
        }
    }

    /// The text of its variable (D12): addresses or names, or the value without a newline at its end. `None` if there
    /// is nothing, or not a text.
    pub(crate) fn variable(&self) -> Option<WatchText> {
        let text = match (self.listed(), self.value()) {
            (Some(list), _) => WatchText::List(joined(list.iter()).into()),
            (None, Some(value)) => {
                let text = core::str::from_utf8(value.strip_suffix(b"\n").unwrap_or(value)).ok()?;
                WatchText::Value(text.into())
            }
            (None, None) => return None,
        };
        (!text.as_str().contains('\0')).then_some(text)
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

    /// What files are rendered with (D15): the last answer, or the value of a peer that is down.
    pub(crate) fn data(&self) -> Option<Answer> {
        match &self.last_value {
            Some(value) => Some(Answer::Value(value.clone())),
            None => self.known.clone(),
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
    pub(crate) fn value(&self) -> Option<&ValueBytes> {
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

    /// Returns true if it will send an event: an instance that it has reported will also be reported as gone, and one
    /// of a postponed answer will be reported.
    pub(crate) fn will_change(&self) -> bool {
        self.is_healthy() || self.postponed.as_ref().is_some_and(Answer::is_healthy)
    }

    /// Returns true if there is an instance, a value or a peer.
    pub(crate) fn is_healthy(&self) -> bool {
        self.known.as_ref().is_some_and(Answer::is_healthy)
    }

    /// Returns true if the last answer is empty, absent or down.
    pub(crate) fn is_unhealthy(&self) -> bool {
        self.known.as_ref().is_some_and(|answer| !answer.is_healthy())
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self) -> impl core::hash::Hash + '_ {
        // Only reports depend on the trouble.
        let Self { known, last_value, postponed, trouble: _ } = self;
        (known, last_value, postponed)
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let mut out = String::new();
    for text in texts {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(text);
    }
    out
}
