//! What viewers of the page have been told, and what they must be told next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::items::{Shown, items, record};
use super::picture::Picture;
use crate::journal::JournalRecord;
use crate::snapshot::PublicSnapshot;

/// How many records of the journal are shown.
const RECORDS: usize = 400;

/// What viewers see.
#[derive(Debug, Default)]
pub struct Board {
    version: u64,
    /// The version of the last change of the set of items: a viewer that has seen less needs a complete state.
    complete_since: u64,
    /// Each item with the version of its last change.
    items: BTreeMap<String, (u64, String)>,
    records: VecDeque<(u64, String)>,
}

/// What a viewer is told.
#[derive(Debug)]
pub struct Change {
    /// Whether it replaces everything that the viewer has been told.
    pub is_complete: bool,
    /// One line of JSON.
    pub text: String,
}

impl Board {
    /// One without items that continues with the versions of another one.
    pub fn after(version: u64) -> Self {
        Self { version, ..Self::default() }
    }

    pub const fn version(&self) -> u64 {
        self.version
    }

    pub fn update(
        &mut self,
        public: &PublicSnapshot,
        picture: &mut Picture,
        shown: &Shown<'_>,
        records: &[Arc<JournalRecord>],
    ) {
        let next = self.version + 1;
        let items = items(public, picture, shown);
        let is_same_set =
            items.len() == self.items.len() && items.iter().all(|(key, _)| self.items.contains_key(key));
        let mut changed = !records.is_empty();
        if !is_same_set {
            self.items.clear();
            self.complete_since = next;
        }
        for (key, text) in items {
            match self.items.get_mut(&key) {
                Some((_, known)) if *known == text => {}
                Some(item) => (*item, changed) = ((next, text), true),
                None => changed |= self.items.insert(key, (next, text)).is_none(),
            }
        }
        let records = records.iter().skip(records.len().saturating_sub(RECORDS));
        self.records.extend(records.map(|one| (next, record(one, &public.renamed))));
        self.records.drain(..self.records.len().saturating_sub(RECORDS));
        if changed {
            self.version = next;
        }
    }

    /// The version after which a viewer that has seen this one is told the changes; `None` if it is told everything.
    pub fn base(&self, seen: Option<u64>) -> Option<u64> {
        seen.filter(|seen| *seen >= self.complete_since)
    }

    /// What a viewer with the version `seen` is told; `None` if it has been told everything. `now` is in milliseconds
    /// since 1970.
    pub fn change(&self, seen: Option<u64>, now: u64) -> Option<Change> {
        if self.items.is_empty() || seen == Some(self.version) {
            return None;
        }
        let after = self.base(seen);
        Some(Change { is_complete: after.is_none(), text: self.text(after, now) })
    }

    /// What has changed after a version, or everything, in one line of JSON.
    pub fn text(&self, after: Option<u64>, now: u64) -> String {
        let is_new = |version: u64| after.is_none_or(|after| version > after);
        let items = self.items.iter().filter(|(_, (version, _))| is_new(*version));
        // Keys have only letters and digits.
        let items: Vec<String> = items.map(|(key, (_, text))| format!("\"{key}\":{text}")).collect();
        let records = self.records.iter().filter(|(version, _)| is_new(*version));
        let records: Vec<&str> = records.map(|(_, text)| text.as_str()).collect();
        format!("{{\"now\":{now},\"items\":{{{}}},\"records\":[{}]}}", items.join(","), records.join(","))
    }
}
