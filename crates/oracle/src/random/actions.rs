//! Random actions: commands, signals, answers of the catalog, reloads.

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Signal, Watch};
use containerpilot_core::request::Request;

use super::times::time;
use crate::scenario::{Action, CLOCK};
use containerpilot_core::rng::Rng;

/// Manual commands.
pub(super) fn commands(rng: &mut Rng, jobs: usize) -> Vec<(Duration, Action)> {
    let count = rng.pick(&[0, 0, 0, 1, 2, 4, 8]);
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 1, 10, 50, 100, 101, 200, 500, 1_000, 2_000, 5_000]);
        // Sometimes there is no such job.
        let bound = if rng.percent(3) { jobs + 1 } else { jobs };
        let job = JobIx::at(rng.index(bound));
        let command = match rng.below(10) {
            0..3 => Request::Start(job),
            3..6 => Request::Stop(job),
            6..9 => Request::Restart(job),
            _ => Request::Signal(job, rng.pick(&[Signal::TERM, Signal::KILL, Signal(10)])),
        };
        (at, Action::Request(command))
    };
    (0..count).map(|_| one(rng)).collect()
}

/// Signals, maintenance mode, answers of the catalog, pauses.
pub(super) fn actions(rng: &mut Rng, watches: &[Watch]) -> Vec<(Duration, Action)> {
    let count = rng.pick(&[0, 1, 2, 4, 8]);
    let mut list = Vec::new();
    for _ in 0..count {
        let at = time(rng, &[0, 1, 10, 50, 100, 200, 500, 1_000, 1_500, 2_000, 3_000, 5_000]);
        let what = match rng.below(100) {
            0..30 => Action::Signal(rng.pick(&[Signal(1), Signal(12), Signal(12), Signal::USR1])),
            30..50 => Action::Signal(rng.pick(&[Signal::INT, Signal::TERM, Signal::QUIT])),
            50..75 => Action::Request(Request::Maintenance(rng.percent(50))),
            75..95 if !watches.is_empty() => {
                let count = rng.below(3);
                let one = |nth: u64| Instance {
                    id: format!("i{nth}"),
                    address: "127.0.0.1".into(),
                    port: 80,
                    ..Instance::default()
                };
                let first = rng.below(2);
                Action::Instances(rng.index(watches.len()), (first..first + count).rev().map(one).collect())
            }
            95..97 => Action::Pause(standstill(rng)),
            // They mean nothing.
            97..99 => Action::Signal(rng.pick(&[Signal(14), Signal::CONT, Signal(40)])),
            _ => Action::Nothing,
        };
        list.push((at, what));
    }
    list
}

/// A short time, or so long that every deadline has passed.
fn standstill(rng: &mut Rng) -> Duration {
    match rng.below(4) {
        0 => Duration::from_millis(1 + rng.below(500)),
        1 => Duration::from_secs(1 + rng.below(20)),
        2 => Duration::from_secs(3_600 * (1 + rng.below(100))),
        // More than a year.
        _ => Duration::from_secs(86_400 * (365 + rng.below(1_000))),
    }
}

/// The system clock is set.
pub(super) fn clocks(rng: &mut Rng) -> Vec<(Duration, Action)> {
    let count = rng.pick(&[0, 1, 1, 2, 4]);
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 1, 10, 100, 200, 500, 1_000, 2_000, 5_000]);
        let other = Duration::from_millis(rng.pick(&[500, 1_000, 61_000, 600_000, 90_000_000]));
        (at, Action::Clock(if rng.percent(50) { CLOCK + other } else { CLOCK - other }))
    };
    (0..count).map(|_| one(rng)).collect()
}

/// Reloads, sometimes several at once (R4).
pub(super) fn reloads(rng: &mut Rng, versions: usize) -> Vec<(Duration, Action)> {
    let count = if versions > 1 { rng.pick(&[1, 1, 2, 3, 5]) } else { rng.pick(&[0, 0, 0, 1]) };
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 1, 10, 50, 100, 101, 200, 500, 1_000, 2_000]);
        (at, Action::Reload(rng.index(versions)))
    };
    (0..count).map(|_| one(rng)).collect()
}
