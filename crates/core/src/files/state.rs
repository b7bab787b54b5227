//! The state of a rendered file (D15).
//!
//! | stage | ends with |
//! | --- | --- |
//! | `Idle` | a change of an input; while a watch has not answered, its first answer |
//! | `Debouncing` | its timer |
//! | `Retrying` | its timer, or a change of an input |
//! | `Rendering` | `FileRendered`: the same text as before, a new text in a temporary file, or an error |
//! | `Testing` | the exit of the test program, or its timeout |
//! | `Installing` | `FileInstalled` |
//!
//! A change of an input in the last three stages is remembered in `pending`, however many there are, and leads to one
//! further rendering. Nothing interrupts a rendering: inputs that always change could prevent it forever.

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{CheckRunId, RenderId};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::{Fingerprint, Name};
use crate::state::timers::TimerId;
use crate::time::Time;

/// The delays between attempts that the system has refused, doubled each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);
const MAX_DOUBLINGS: u32 = 6;

/// What is done for a file now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileStage {
    /// Nothing.
    #[default]
    Idle,
    /// The inputs have changed and may do so again.
    Debouncing(TimerId),
    /// The system has refused the last rendering, which is tried again.
    Retrying(TimerId),
    /// The runtime renders it.
    Rendering(RenderId),
    /// A program tests the new text. It has no timeout while it waits for its turn (P14).
    Testing { render: RenderId, run: CheckRunId, timeout: Option<TimerId> },
    /// The runtime replaces the file.
    Installing(RenderId),
}

/// Changes of inputs since the last rendering began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingChange {
    /// When the first of them came.
    pub(crate) first: Time,
    /// When the last of them came.
    pub(crate) last: Time,
}

/// The state of a rendered file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) stage: FileStage,
    /// Changes that are not rendered yet. Startup counts as one.
    pub(crate) pending: Option<PendingChange>,
    /// When the file was last known to have the text of its inputs. `None`: never, so that jobs that require it wait.
    pub(crate) rendered_at: Option<Time>,
    /// Why the last rendering failed, and when.
    pub(crate) failure: Option<(Time, String)>,
    /// How often in a row the system has refused it.
    pub(crate) refusals: u32,
    /// How often `changed` was sent.
    pub(crate) changes: u64,
    /// How often the file was rendered.
    pub(crate) renders: u64,
    /// How often a rendering failed.
    pub(crate) failures: u64,
}

impl FileState {
    /// Records a change of an input.
    pub(crate) fn change(&mut self, now: Time) {
        let first = self.pending.map_or(now, |pending| pending.first);
        self.pending = Some(PendingChange { first, last: now });
    }

    /// How long the next attempt waits after the system has refused the last one.
    pub(crate) fn retry_delay(&self) -> Duration {
        LAST_RETRY.min(FIRST_RETRY * (1 << self.refusals.saturating_sub(1).min(MAX_DOUBLINGS)))
    }

    /// Returns true if nothing is in progress that a further change would have to wait for.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.stage, FileStage::Idle | FileStage::Debouncing(_) | FileStage::Retrying(_))
    }

    /// Returns true if it could not be rendered, and is not being rendered.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_waiting() && self.failure.is_some()
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        // Only reports depend on the counts and on the text of a failure.
        let Self { stage, pending, rendered_at, failure, refusals, changes, renders, failures: _ } = self;
        print.add((core::mem::discriminant(stage), rendered_at.is_some(), failure.is_some()));
        print.add((*changes > 0, *renders > 0, (*refusals).min(MAX_DOUBLINGS)));
        match stage {
            FileStage::Idle => {}
            FileStage::Debouncing(timer) | FileStage::Retrying(timer) => timer.fingerprint(print),
            FileStage::Rendering(render) | FileStage::Installing(render) => {
                print.name(Name::Render, render.0);
            }
            FileStage::Testing { render, run, timeout } => {
                print.name(Name::Render, render.0);
                print.name(Name::Check, run.0);
                print.option(*timeout, |print, timer| timer.fingerprint(print));
            }
        }
        print.option(*pending, |print, PendingChange { first, last }| {
            print.age(first, core::time::Duration::MAX);
            print.age(last, core::time::Duration::MAX);
        });
    }
}
