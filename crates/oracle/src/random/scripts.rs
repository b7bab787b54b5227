//! What programs, checks and catalogs do, made up from a number.

use std::time::Duration;

use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Job, Signal};

use super::{LONG, SHORT};
use crate::catalog::{Fate, Incident};
use crate::rng::Rng;
use crate::scenario::{CheckScript, Keeping, Reaction, RunScript, Script};

/// What the programs and the checks of a job do.
pub(super) fn script(rng: &mut Rng, job: &Job) -> Script {
    let count = rng.pick(&[1, 1, 2, 3, 4]);
    let runs = (0..count).map(|_| run_script(rng)).collect();
    let checks = job.health.iter().flat_map(|health| &health.checks).map(|_| check_scripts(rng)).collect();
    Script { runs, checks, catalog: keeping(rng, job) }
}

/// Most catalogs answer at once, some take a while, and some never do.
fn keeping(rng: &mut Rng, job: &Job) -> Keeping {
    if job.service.is_none() || rng.percent(40) {
        return Keeping::Told(match rng.below(10) {
            0..6 => Some(Duration::ZERO),
            6..9 => Some(rng.time(&LONG)),
            _ => None,
        });
    }
    let calm = rng.percent(30);
    let fates = if calm { 0 } else { rng.below(12) };
    let fates = (0..fates).map(|_| match rng.below(10) {
        0..4 => Fate::Done(rng.pick(&[0, 1, 20, 400, 4_000])),
        4 | 5 => Fate::Refused(rng.pick(&[0, 1, 400])),
        6 => Fate::AnswerLost,
        7 => Fate::Late(rng.below(12_000)),
        _ => Fate::Lie,
    });
    let fates = fates.collect();
    let befalls = if calm { 0 } else { rng.pick(&[0, 0, 1, 2, 3]) };
    let mut at = 0;
    let incidents = (0..befalls).map(|_| {
        at += rng.pick(&[0, 1, 50, 300, 1_000, 4_000]) + rng.below(50);
        let freeze = Incident::Freeze(rng.pick(&[100, 2_000, 30_000]));
        (at, if rng.percent(60) { Incident::Forget } else { freeze })
    });
    let dropped_after = job.service.as_ref().and_then(|service| service.deregister_critical_after);
    Keeping::Kept { dropped_after, fates, incidents: incidents.collect(), seed: rng.number() }
}

fn run_script(rng: &mut Rng) -> RunScript {
    let kinds = [
        StartErrorKind::NotFound,
        StartErrorKind::NotExecutable,
        StartErrorKind::NoResources,
        StartErrorKind::Other,
    ];
    RunScript {
        latency: if rng.percent(50) { Duration::ZERO } else { rng.time(&SHORT) },
        fails: if rng.percent(10) { Some(rng.pick(&kinds)) } else { None },
        ends_after: if rng.percent(25) { None } else { Some(rng.time(&LONG)) },
        status: match rng.below(10) {
            0..6 => ExitStatus::Code(0),
            6..9 => ExitStatus::Code(1 + u8::try_from(rng.below(9)).unwrap_or(0)),
            _ => ExitStatus::Signal(Signal(11)),
        },
        asked: if rng.percent(20) {
            Reaction::Ignores
        } else {
            let code = if rng.percent(50) { Some(rng.pick(&[0, 0, 3])) } else { None };
            Reaction::Ends(rng.time(&SHORT), code)
        },
        dies_after: if rng.percent(4) { None } else { Some(rng.time(&SHORT)) },
        orphans: rng.percent(10),
    }
}

fn check_scripts(rng: &mut Rng) -> Vec<CheckScript> {
    let mood = rng.pick(&[5, 50, 80, 95]);
    let count = 1 + rng.index(6);
    let one = |rng: &mut Rng| CheckScript {
        takes: if rng.percent(8) { None } else { Some(rng.time(&SHORT)) },
        passes: rng.percent(mood),
        cancel: if rng.percent(70) { Duration::ZERO } else { rng.time(&LONG) },
    };
    (0..count).map(|_| one(rng)).collect()
}
