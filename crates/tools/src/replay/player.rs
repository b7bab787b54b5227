//! Makes the steps of a recording.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_recording::{Recording, Replay, Step};

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

/// When the recording ends, as far as it can be played.
pub(super) fn end(recording: &Recording<'_>, clock: &Clock) -> SystemTime {
    let (mut replay, mut last) = (Replay::new(recording), clock.start());
    while let Ok(Some(step)) = play(&mut replay, clock, |core, now, input, effects| {
        core.step(now, input, effects);
    }) {
        last = clock.at(step.now);
    }
    last
}

/// --from and --to.
pub(super) fn times(
    args: &Arguments,
    recording: &Recording<'_>,
    clock: &Clock,
) -> Result<(Option<SystemTime>, Option<SystemTime>), Failure> {
    let time =
        |flag| args.value(flag).map(|text| clock.read(flag, text, || end(recording, clock))).transpose();
    let (from, to) = (time("from")?, time("to")?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let (from, to) = (clock.text(from), clock.text(to));
        return Err(Failure::Usage(format!("--from is after --to: {from} and {to}")));
    }
    Ok((from, to))
}
