//! What is reported about a watch.

use alloc::string::String;
use alloc::vec::Vec;

use crate::answer::{Answer, Instance};
use crate::catalog::connectivity::Trouble;
use crate::ids::WatchIx;
use crate::plan::Plan;
use crate::watches::Watches;

/// Everything known about a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOverview {
    /// The watch.
    pub watch: WatchIx,
    /// Its name.
    pub name: String,
    /// What it watches.
    pub kind: &'static str,
    /// The last answer; `None` before the first one.
    pub answer: Option<Answer>,
    /// Why it cannot be answered now, other than by the catalog.
    pub trouble: Option<Trouble>,
}

impl WatchOverview {
    /// The instances; `None` before the first answer, and if it watches something else.
    #[must_use]
    pub fn instances(&self) -> Option<&[Instance]> {
        match &self.answer {
            Some(Answer::Instances(instances)) => Some(instances),
            _ => None,
        }
    }
}

impl Watches {
    pub(crate) fn overviews(&self, plan: &Plan) -> Vec<WatchOverview> {
        let planned = plan.watches.iter().zip(&self.states).enumerate();
        planned
            .map(|(nth, (watch, state))| WatchOverview {
                watch: WatchIx::at(nth),
                name: watch.name.clone(),
                kind: watch.kind.name(),
                answer: state.known.clone(),
                trouble: state.trouble.clone(),
            })
            .collect()
    }

    /// Replaces the texts of errors.
    pub(crate) fn redact(&mut self, hidden: &str) {
        for state in &mut self.states {
            if let Some(Answer::Down(why)) = &mut state.known {
                *why = "does not respond as expected".into();
            }
            if let Some(trouble) = &mut state.trouble {
                trouble.error = hidden.into();
            }
        }
    }
}
