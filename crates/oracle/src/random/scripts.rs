//! Random behavior of programs, checks and catalogs.

use std::time::Duration;

use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Job, Signal};

use super::times::{LONG, SHORT, time};
use crate::agents;
use crate::scenario::{CatalogScript, JobScript};
use containerpilot_core::rng::Rng;
use containerpilot_simulation::world::script::{
    AgentFault, CheckEnd, CheckScript, ProgramScript, Reaction, ReportScript, Rest, SignalSet,
};

/// What the programs and checks of a job do.
pub(super) fn script(rng: &mut Rng, job: &Job) -> JobScript {
    let count = rng.pick(&[1, 1, 2, 3, 4]);
    let runs = (0..count).map(|_| run_script(rng)).collect();
    let checks = checks(rng, job);
    JobScript { runs, checks, catalog: catalog_script(rng, job) }
}

/// What the checks of a job do.
pub(super) fn checks(rng: &mut Rng, job: &Job) -> Vec<Vec<CheckScript>> {
    job.health.iter().flat_map(|health| &health.checks).map(|_| check_scripts(rng)).collect()
}

/// Most catalogs confirm at once, some after a while, and some never.
fn catalog_script(rng: &mut Rng, job: &Job) -> CatalogScript {
    if job.service.is_none() || rng.percent(40) {
        return CatalogScript::Direct(match rng.below(10) {
            0..6 => Some(Duration::ZERO),
            6..9 => Some(time(rng, &LONG)),
            _ => None,
        });
    }
    let calm = rng.percent(30);
    let responses = if calm { 0 } else { rng.below(12) };
    let responses = (0..responses).map(|_| agents::response(rng)).collect();
    let count = if calm { 0 } else { rng.pick(&[0, 0, 1, 2, 3]) };
    let mut at = 0;
    let faults = (0..count).map(|_| {
        at += rng.pick(&[0, 1, 50, 300, 1_000, 4_000]) + rng.below(50);
        let freeze = AgentFault::Freeze(rng.pick(&[100, 2_000, 30_000]));
        (at, if rng.percent(60) { AgentFault::Forget } else { freeze })
    });
    let deregister_critical_after =
        job.service.as_ref().and_then(|service| service.deregister_critical_after);
    CatalogScript::Agent {
        deregister_critical_after,
        responses,
        faults: faults.collect(),
        seed: rng.number(),
    }
}

fn run_script(rng: &mut Rng) -> ProgramScript {
    let kinds = [
        StartErrorKind::NotFound,
        StartErrorKind::NotExecutable,
        StartErrorKind::NoResources,
        StartErrorKind::Other,
    ];
    ProgramScript {
        starts_in: match rng.below(100) {
            0..50 => Some(Duration::ZERO),
            50..90 => Some(time(rng, &SHORT)),
            90..97 => Some(time(rng, &LONG)),
            // Just before, at and after the start timeout.
            97 => Some(Duration::from_millis(rng.pick(&[9_999, 10_000, 10_001]))),
            _ => None,
        },
        executes_early: rng.percent(50),
        lacks_processor: rng.percent(30),
        start_error: if rng.percent(10) { Some(rng.pick(&kinds)) } else { None },
        exits_after: if rng.percent(25) { None } else { Some(time(rng, &LONG)) },
        status: match rng.below(10) {
            0..6 => ExitStatus::Code(0),
            6..9 => ExitStatus::Code(1 + u8::try_from(rng.below(9)).unwrap_or(0)),
            _ => ExitStatus::Signal(Signal(11)),
        },
        on_signal: if rng.percent(20) {
            Reaction::Ignores
        } else {
            let code = if rng.percent(50) { Some(rng.pick(&[0, 0, 3])) } else { None };
            Reaction::Exits(time(rng, &SHORT), code)
        },
        ignores: SignalSet::default(),
        dies_after: if rng.percent(4) { None } else { Some(time(rng, &SHORT)) },
        rest: match rng.below(100) {
            0..10 => Rest::For(time(rng, &LONG)),
            10..14 => Rest::UntilKilled,
            _ => Rest::Nothing,
        },
        daemons: if rng.percent(10) { Some(time(rng, &LONG)) } else { None },
        reports: reports(rng),
    }
}

/// What a program says about itself, if its job has `ready`.
fn reports(rng: &mut Rng) -> ReportScript {
    let mut maybe = |percent| rng.percent(percent).then(|| time(rng, &LONG));
    ReportScript { ready: maybe(85), reloads: maybe(15), stopping: maybe(15), hangs: maybe(40) }
}

fn check_scripts(rng: &mut Rng) -> Vec<CheckScript> {
    let pass_percent = rng.pick(&[5, 50, 80, 95]);
    let count = 1 + rng.index(6);
    let one = |rng: &mut Rng| {
        let takes = if rng.percent(8) { None } else { Some(time(rng, &SHORT)) };
        let end = match rng.percent(pass_percent) {
            true => CheckEnd::Passes,
            // What the supervisor cannot start has failed at once.
            false if takes == Some(Duration::ZERO) => CheckEnd::NotRun,
            false => CheckEnd::Fails,
        };
        let cancel_takes = if rng.percent(70) { Duration::ZERO } else { time(rng, &LONG) };
        CheckScript { takes, end, cancel_takes }
    };
    (0..count).map(|_| one(rng)).collect()
}
