//! Ids in a recording: how far each is from the last one of its kind. The runs of checks are counted up, so that their
//! inputs are always the same bytes.

use containerpilot_core::Input;
use containerpilot_core::ids::{CheckRunId, RenderId, RunId};

/// The last id of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    run: u64,
    check: u64,
    render: u64,
}

impl Ids {
    /// Replaces the id of an input by the distance.
    pub(crate) fn shorten(&mut self, input: &mut Input) {
        self.each(input, |last, id| {
            let distance = id.wrapping_sub(*last).cast_signed();
            *last = id;
            ((distance << 1) ^ (distance >> 63)).cast_unsigned()
        });
    }

    /// The opposite.
    pub(crate) fn restore(&mut self, input: &mut Input) {
        self.each(input, |last, distance| {
            let distance = (distance >> 1).cast_signed() ^ -(distance & 1).cast_signed();
            *last = last.wrapping_add_signed(distance);
            *last
        });
    }

    fn each(&mut self, input: &mut Input, change: impl FnOnce(&mut u64, u64) -> u64) {
        match input {
            Input::Started { run: RunId(id), .. }
            | Input::StartFailed { run: RunId(id), .. }
            | Input::StartPending { run: RunId(id) }
            | Input::StartDelayed { run: RunId(id) }
            | Input::Exited { run: RunId(id), .. }
            | Input::OrphansFound { run: RunId(id) }
            | Input::OrphansGone { run: RunId(id) }
            | Input::Notified { run: RunId(id), .. } => *id = change(&mut self.run, *id),
            Input::CheckStarted { check: CheckRunId(id) }
            | Input::CheckDone { check: CheckRunId(id), .. } => {
                *id = change(&mut self.check, *id);
            }
            Input::FileRendered { render: RenderId(id), .. }
            | Input::FileInstalled { render: RenderId(id), .. } => {
                *id = change(&mut self.render, *id);
            }
            Input::Ready
            | Input::OutOfMemory { .. }
            | Input::Watched { .. }
            | Input::Lock { .. }
            | Input::Signal(_)
            | Input::Deregistered { .. }
            | Input::Request { .. }
            | Input::TelemetryListens(_)
            | Input::Clock { .. }
            | Input::Tick => {}
        }
    }
}
