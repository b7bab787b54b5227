//! Makes the steps of a recording.

use std::panic::{AssertUnwindSafe, catch_unwind};

use containerpilot_command_line::failure::Failure;
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_recording::{Replay, Step};

use super::clock::Clock;

/// Makes the next step. `None` at the end.
pub(super) fn play(
    replay: &mut Replay<'_>,
    clock: &Clock,
    step: impl FnOnce(&mut Core, Time, Input, &mut Vec<Effect>),
) -> Result<Option<Step>, Failure> {
    let mut at = None;
    let next = catch_unwind(AssertUnwindSafe(|| {
        replay.next(|core, now, input, effects| {
            at = Some(now);
            step(core, now, input, effects);
        })
    }));
    match next {
        Ok(Ok(step)) => {
            step.iter().for_each(|step| clock.read_at(step.now, step.unix));
            Ok(step)
        }
        Ok(Err(error)) => Err(Failure::Failed(format!("the recording cannot be played further: {error}"))),
        Err(_) => {
            let at = at.map_or_else(String::new, |at| format!(" at {}", clock.text(clock.at(at))));
            Err(Failure::Failed(format!(
                "internal error in the step{at}, please report it with the recording"
            )))
        }
    }
}
