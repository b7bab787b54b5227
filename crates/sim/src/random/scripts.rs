//! What programs, checks and catalogs do, made up from a number.

use std::time::Duration;

use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Job, Signal};

use super::{LONG, SHORT};
use crate::catalog::{Fate, Incident};
use crate::chance::Chance;
use crate::scenario::{CheckScript, Keeping, Reaction, RunScript, Script};

/// What the programs and the checks of a job do.
pub(super) fn script(chance: &mut Chance, job: &Job) -> Script {
    let count = chance.pick(&[1, 1, 2, 3, 4]);
    let runs = (0..count).map(|_| run_script(chance)).collect();
    let checks = job.health.iter().flat_map(|health| &health.checks).map(|_| check_scripts(chance)).collect();
    Script { runs, checks, catalog: keeping(chance, job) }
}

/// Most catalogs answer at once, some take a while, and some never do.
fn keeping(chance: &mut Chance, job: &Job) -> Keeping {
    if job.service.is_none() || chance.percent(40) {
        return Keeping::Told(match chance.below(10) {
            0..6 => Some(Duration::ZERO),
            6..9 => Some(chance.time(&LONG)),
            _ => None,
        });
    }
    let calm = chance.percent(30);
    let fates = if calm { 0 } else { chance.below(12) };
    let fates = (0..fates).map(|_| match chance.below(10) {
        0..4 => Fate::Done(chance.pick(&[0, 1, 20, 400, 4_000])),
        4 | 5 => Fate::Refused(chance.pick(&[0, 1, 400])),
        6 => Fate::AnswerLost,
        7 => Fate::Late(chance.below(12_000)),
        _ => Fate::Lie,
    });
    let fates = fates.collect();
    let befalls = if calm { 0 } else { chance.pick(&[0, 0, 1, 2, 3]) };
    let mut at = 0;
    let incidents = (0..befalls).map(|_| {
        at += chance.pick(&[0, 1, 50, 300, 1_000, 4_000]) + chance.below(50);
        let freeze = Incident::Freeze(chance.pick(&[100, 2_000, 30_000]));
        (at, if chance.percent(60) { Incident::Forget } else { freeze })
    });
    let dropped_after = job.service.as_ref().and_then(|service| service.deregister_critical_after);
    Keeping::Kept { dropped_after, fates, incidents: incidents.collect(), seed: chance.number() }
}

fn run_script(chance: &mut Chance) -> RunScript {
    let kinds = [
        StartErrorKind::NotFound,
        StartErrorKind::NotExecutable,
        StartErrorKind::NoResources,
        StartErrorKind::Other,
    ];
    RunScript {
        latency: if chance.percent(50) { Duration::ZERO } else { chance.time(&SHORT) },
        fails: if chance.percent(10) { Some(chance.pick(&kinds)) } else { None },
        ends_after: if chance.percent(25) { None } else { Some(chance.time(&LONG)) },
        status: match chance.below(10) {
            0..6 => ExitStatus::Code(0),
            6..9 => ExitStatus::Code(1 + u8::try_from(chance.below(9)).unwrap_or(0)),
            _ => ExitStatus::Signal(Signal(11)),
        },
        asked: if chance.percent(20) {
            Reaction::Ignores
        } else {
            let code = if chance.percent(50) { Some(chance.pick(&[0, 0, 3])) } else { None };
            Reaction::Ends(chance.time(&SHORT), code)
        },
        dies_after: if chance.percent(4) { None } else { Some(chance.time(&SHORT)) },
        leftovers: chance.percent(10),
    }
}

fn check_scripts(chance: &mut Chance) -> Vec<CheckScript> {
    let mood = chance.pick(&[5, 50, 80, 95]);
    let count = 1 + chance.index(6);
    let one = |chance: &mut Chance| CheckScript {
        takes: if chance.percent(8) { None } else { Some(chance.time(&SHORT)) },
        passes: chance.percent(mood),
        cancel: if chance.percent(70) { Duration::ZERO } else { chance.time(&LONG) },
    };
    (0..count).map(|_| one(chance)).collect()
}
