//! What comes from outside, made up from a number: what people ask for, signals, answers of the catalog.

use std::time::Duration;

use containerpilot_core::command::Command;
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Signal, Watch};

use crate::chance::Chance;
use crate::scenario::Happening;

/// What people ask for.
pub(super) fn commands(chance: &mut Chance, jobs: usize) -> Vec<(Duration, Happening)> {
    let count = chance.pick(&[0, 0, 0, 1, 2, 4, 8]);
    let one = |chance: &mut Chance| {
        let at = chance.time(&[0, 1, 10, 50, 100, 101, 200, 500, 1_000, 2_000, 5_000]);
        // Now and then there is no such job.
        let bound = if chance.percent(3) { jobs + 1 } else { jobs };
        let job = JobIx::at(chance.index(bound));
        let command = match chance.below(10) {
            0..3 => Command::Start(job),
            3..6 => Command::Stop(job),
            6..9 => Command::Restart(job),
            _ => Command::Signal(job, chance.pick(&[Signal::TERM, Signal::KILL, Signal(10)])),
        };
        (at, Happening::Command(command))
    };
    (0..count).map(|_| one(chance)).collect()
}

/// What else comes from outside.
pub(super) fn happenings(chance: &mut Chance, watches: &[Watch]) -> Vec<(Duration, Happening)> {
    let count = chance.pick(&[0, 1, 2, 4, 8]);
    let mut list = Vec::new();
    for _ in 0..count {
        let at = chance.time(&[0, 1, 10, 50, 100, 200, 500, 1_000, 1_500, 2_000, 3_000, 5_000]);
        let what = match chance.below(100) {
            0..30 => Happening::Signal(chance.pick(&[Signal(1), Signal(12), Signal(12), Signal::USR1])),
            30..50 => Happening::Signal(chance.pick(&[Signal(2), Signal::TERM])),
            50..75 => Happening::Command(Command::Maintenance(chance.percent(50))),
            75..95 if !watches.is_empty() => {
                let count = chance.below(3);
                let one =
                    |nth: u64| Instance { id: format!("i{nth}"), address: "127.0.0.1".into(), port: 80 };
                let first = chance.below(2);
                Happening::Instances(
                    chance.index(watches.len()),
                    (first..first + count).rev().map(one).collect(),
                )
            }
            95..97 => Happening::Standstill(standstill(chance)),
            _ => Happening::Nothing,
        };
        list.push((at, what));
    }
    list
}

/// A little while, or so long that every deadline there is has passed.
fn standstill(chance: &mut Chance) -> Duration {
    match chance.below(4) {
        0 => Duration::from_millis(1 + chance.below(500)),
        1 => Duration::from_secs(1 + chance.below(20)),
        2 => Duration::from_secs(3_600 * (1 + chance.below(100))),
        // A year and more.
        _ => Duration::from_secs(86_400 * (365 + chance.below(1_000))),
    }
}

/// Reloads, now and then several at once (R4).
pub(super) fn reloads(chance: &mut Chance, versions: usize) -> Vec<(Duration, Happening)> {
    let count = if versions > 1 { chance.pick(&[1, 1, 2, 3, 5]) } else { chance.pick(&[0, 0, 0, 1]) };
    let one = |chance: &mut Chance| {
        let at = chance.time(&[0, 1, 10, 50, 100, 101, 200, 500, 1_000, 2_000]);
        (at, Happening::Reload(chance.index(versions)))
    };
    (0..count).map(|_| one(chance)).collect()
}
