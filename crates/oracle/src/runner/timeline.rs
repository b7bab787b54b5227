//! What happened, as text.

use std::fmt::Write as _;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::JobIx;
use containerpilot_core::{Core, Time};

/// Writes a step: the input, the events, the effects, and the state of every job after it.
pub(crate) fn write(timeline: &mut String, now: Time, input: &str, effects: &[Effect], core: &Core) {
    let seconds = now.as_nanos() as f64 / 1e9;
    // Writing to a string cannot fail.
    let _ = writeln!(timeline, "{seconds:>12.6}  {input}");
    let events: Vec<_> = core.journal().events().rev().take_while(|event| event.at == now).collect();
    for event in events.into_iter().rev() {
        let name = core.origin_name(event.origin);
        let _ = writeln!(timeline, "{:14}  · event {} {} {}", "", event.id.0, name, event.code);
    }
    for effect in effects {
        let effect = match effect {
            Effect::Spawn { job, run, .. } => format!("Spawn job {} run {}", job.0, run.0),
            Effect::RunCheck { job, check, run, .. } => {
                format!("RunCheck job {} check {} run {}", job.0, check.0, run.0)
            }
            Effect::Log(entry) => {
                format!("Log {:?} job {:?}: {}", entry.level, entry.job.map(|job| job.0), entry.message)
            }
            other => format!("{other:?}"),
        };
        let _ = writeln!(timeline, "{:14}  → {effect}", "");
    }
    for nth in 0..core.plan().jobs.len() {
        let status = core.status(JobIx::at(nth));
        let _ = writeln!(
            timeline,
            "{:14}    job {nth}: {:?}/{:?} run {:?} healthy {:?} restarts {} {:?}",
            "",
            status.state,
            status.stop_stage,
            status.run.map(|run| run.0),
            status.healthy,
            status.restarts,
            status.desired
        );
    }
}
