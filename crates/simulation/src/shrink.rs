//! The fewest facts of a world with which something still happens.

use std::collections::BTreeSet;

use containerpilot_core::plan::Plan;

use crate::expect::judge;
use crate::moment::Moment;
use crate::runner::simulate;
use crate::scenario::{Claim, Expectation, JobScript, RunScript, Scenario};
use crate::timeline::SimulationRun;
use std::time::Duration;

/// Of so many facts, those without which `still` is false. Removes many at a time first, and then one after the other,
/// until each of them is needed. `still` is true of all of them.
pub fn fewest(count: usize, mut still: impl FnMut(&[bool]) -> bool) -> Vec<bool> {
    let mut kept = vec![true; count];
    let mut size = if count > 8 { count / 2 } else { 1 };
    loop {
        let mut has_changed = false;
        for from in (0..count).step_by(size.max(1)) {
            let part = from..(from + size).min(count);
            let mut fewer = kept.clone();
            fewer.get_mut(part).unwrap_or_default().fill(false);
            if fewer != kept && still(&fewer) {
                kept = fewer;
                has_changed = true;
            }
        }
        match size {
            0 | 1 if !has_changed => return kept,
            0 | 1 => {}
            _ => size /= 2,
        }
    }
}

/// Something that a scenario says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Run(String, usize),
    RunCheck(String, usize, usize),
    RunPart(String, usize, RunPart),
    Check(String, usize),
    Seen(String, usize),
    Lock(String, usize),
    FileFails(String, usize),
    FileTest(String, usize),
    FileTakes(String),
    Away(usize),
    Forgets(usize),
    Action(usize),
}

/// What a run may do in another way than by default. How it ends is no part of it: that is the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RunPart {
    StartsIn,
    Stops,
    Ignores,
    OutlivedFor,
    HealthyAfter,
    Ready,
    WatchdogStops,
    Drain,
    /// It runs for as long as it does by default.
    Lasts,
}

impl RunPart {
    const ALL: [Self; 9] = [
        Self::StartsIn,
        Self::Stops,
        Self::Ignores,
        Self::OutlivedFor,
        Self::HealthyAfter,
        Self::Ready,
        Self::WatchdogStops,
        Self::Drain,
        Self::Lasts,
    ];

    fn remove(self, run: &mut RunScript) {
        match self {
            Self::StartsIn => run.starts_in = None,
            Self::Stops => (run.stops_in, run.stop_exit) = (None, None),
            Self::Ignores => run.ignores = Default::default(),
            Self::OutlivedFor => run.outlived_for = None,
            Self::HealthyAfter => run.healthy_after = None,
            Self::Ready => run.ready = None,
            Self::WatchdogStops => run.watchdog_stops = None,
            Self::Drain => (run.drain, run.drain_fails) = (None, false),
            Self::Lasts => {
                if run.status.is_none() {
                    run.lasts = None;
                }
            }
        }
    }
}

/// The facts of a scenario: whole runs and events first, then the parts of runs.
fn facts(scenario: &Scenario) -> [Vec<Fact>; 2] {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for (name, job) in &scenario.jobs {
        whole.extend((0..job.runs.len()).map(|nth| Fact::Run(name.clone(), nth)));
        whole.extend((0..job.checks.len()).map(|nth| Fact::Check(name.clone(), nth)));
        for (nth, run) in job.runs.iter().enumerate() {
            parts.extend((0..run.checks.len()).map(|check| Fact::RunCheck(name.clone(), nth, check)));
            for part in RunPart::ALL {
                let mut without = run.clone();
                part.remove(&mut without);
                if without != *run {
                    parts.push(Fact::RunPart(name.clone(), nth, part));
                }
            }
        }
    }
    for (name, seen) in &scenario.watches {
        whole.extend((0..seen.len()).map(|nth| Fact::Seen(name.clone(), nth)));
    }
    for (name, changes) in &scenario.locks {
        whole.extend((0..changes.len()).map(|nth| Fact::Lock(name.clone(), nth)));
    }
    for (name, file) in &scenario.files {
        whole.extend((0..file.fails.len()).map(|nth| Fact::FileFails(name.clone(), nth)));
        whole.extend((0..file.tests.len()).map(|nth| Fact::FileTest(name.clone(), nth)));
        if file.takes != crate::defaults::CHECK {
            parts.push(Fact::FileTakes(name.clone()));
        }
    }
    whole.extend((0..scenario.outages.len()).map(Fact::Away));
    whole.extend((0..scenario.forgets.len()).map(Fact::Forgets));
    whole.extend((0..scenario.actions.len()).map(Fact::Action));
    [whole, parts]
}

/// Keeps the elements whose places are not removed.
fn retain<T>(list: &mut Vec<T>, mut is_removed: impl FnMut(usize) -> bool) {
    let mut nth = 0;
    list.retain(|_| {
        nth += 1;
        !is_removed(nth - 1)
    });
}

/// The scenario without some facts.
fn without(scenario: &Scenario, removed: &BTreeSet<&Fact>) -> Scenario {
    let is_removed = |fact: Fact| removed.contains(&fact);
    let mut fewer = scenario.clone();
    for (name, job) in &mut fewer.jobs {
        let name = || name.clone();
        for (nth, run) in job.runs.iter_mut().enumerate() {
            retain(&mut run.checks, |check| is_removed(Fact::RunCheck(name(), nth, check)));
            for part in RunPart::ALL {
                if is_removed(Fact::RunPart(name(), nth, part)) {
                    part.remove(run);
                }
            }
        }
        retain(&mut job.runs, |nth| is_removed(Fact::Run(name(), nth)));
        retain(&mut job.checks, |nth| is_removed(Fact::Check(name(), nth)));
    }
    fewer.jobs.retain(|_, job| *job != JobScript::default());
    for (name, seen) in &mut fewer.watches {
        retain(seen, |nth| is_removed(Fact::Seen(name.clone(), nth)));
    }
    fewer.watches.retain(|_, seen| !seen.is_empty());
    for (name, changes) in &mut fewer.locks {
        retain(changes, |nth| is_removed(Fact::Lock(name.clone(), nth)));
    }
    fewer.locks.retain(|_, changes| !changes.is_empty());
    for (name, file) in &mut fewer.files {
        retain(&mut file.fails, |nth| is_removed(Fact::FileFails(name.clone(), nth)));
        retain(&mut file.tests, |nth| is_removed(Fact::FileTest(name.clone(), nth)));
        if is_removed(Fact::FileTakes(name.clone())) {
            file.takes = crate::defaults::CHECK;
        }
    }
    fewer.files.retain(|_, file| *file != crate::defaults::file());
    retain(&mut fewer.outages, |nth| is_removed(Fact::Away(nth)));
    retain(&mut fewer.forgets, |nth| is_removed(Fact::Forgets(nth)));
    retain(&mut fewer.actions, |nth| is_removed(Fact::Action(nth)));
    fewer
}

/// Fewer facts that break a sentence.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario, with the sentence in its expectations.
    pub scenario: Scenario,
    /// What happens in it.
    pub run: SimulationRun,
    /// How many facts it has, and how many there were.
    pub facts: (usize, usize),
}

/// The fewest facts of a scenario that break a sentence. `None` if the sentence holds with all of them.
#[must_use]
pub fn shrink(plan: &Plan, scenario: &Scenario, claim: &Claim) -> Option<Shrunk> {
    let expectations = vec![Expectation { claim: claim.clone(), why: None }];
    let mut current = Scenario { expectations, ..scenario.clone() };
    let broken = |scenario: &Scenario| {
        let run = simulate(plan, scenario);
        let is_broken = judge(scenario, &run).iter().any(|verdict| !verdict.holds);
        (run.abort.is_none() && is_broken).then_some(run)
    };
    let mut run = broken(&current)?;
    if let Claim::Never(moment, _) = claim {
        // What comes later does not matter, and a short simulation takes less time.
        let sooner = Scenario { until: Some(soon_after(&run, moment)), ..current.clone() };
        if let Some(shorter) = broken(&sooner) {
            (current, run) = (sooner, shorter);
        }
    }
    let all: usize = facts(scenario).iter().map(Vec::len).sum();
    for stage in 0..2 {
        let facts = facts(&current);
        let Some(facts) = facts.get(stage) else { continue };
        let removed = |kept: &[bool]| {
            facts.iter().zip(kept).filter(|(_, kept)| !**kept).map(|(fact, _)| fact).collect::<BTreeSet<_>>()
        };
        let kept = fewest(facts.len(), |kept| match broken(&without(&current, &removed(kept))) {
            Some(fewer) => {
                run = fewer;
                true
            }
            None => false,
        });
        current = without(&current, &removed(&kept));
    }
    let left: usize = facts(&current).iter().map(Vec::len).sum();
    Some(Shrunk { scenario: current, run, facts: (left, all) })
}

/// A whole second after the first time that something happens.
fn soon_after(run: &SimulationRun, moment: &Moment) -> Duration {
    let first = run.entries.iter().find(|entry| entry.is(moment)).map_or(run.end, |entry| entry.at);
    Duration::from_secs(first.since(containerpilot_core::Time::ZERO).as_secs() + 2)
}

#[cfg(test)]
mod tests {
    use super::fewest;

    #[test]
    fn b5_what_is_needed_is_left() {
        for count in [1, 2, 5, 9, 33, 100] {
            for needed in [vec![], vec![0], vec![count - 1], vec![0, count / 2, count - 1]] {
                let mut tries = 0;
                let kept = fewest(count, |kept| {
                    tries += 1;
                    needed.iter().all(|place| kept[*place])
                });
                let left: Vec<usize> = (0..count).filter(|place| kept[*place]).collect();
                let mut needed = needed.clone();
                needed.dedup();
                assert_eq!(left, needed, "{count}");
                assert!(tries <= 4 * count + 4, "{tries} tries for {count}");
            }
        }
    }
}
