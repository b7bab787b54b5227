//! Many worlds: first the usual one, then each fault by itself, then several at once, by rng.
//!
//! What is found is shown with the fewest faults that lead there. If nothing has to fail for it, it is a *problem* of the
//! configuration: it cannot bear another order or another pace. If something has to, it is a *consequence*.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use containerpilot_core::Ending;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Job, Plan, Role};
use containerpilot_core::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

use crate::expect::moment_of;
use crate::fault::Fault;
use crate::runner::simulate;
use crate::scenario::Scenario;
use crate::timeline::SimulationRun;

/// The most faults of a world.
const MOST: u64 = 5;
/// How long a world lasts at least.
const LEAST: Duration = Duration::from_secs(180);

/// A world, by number: the series, its place in it, and which of its faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The series.
    pub series: u64,
    /// The place in the series.
    pub nth: u64,
    /// A bit for each fault that happens.
    pub faults: u64,
}

impl fmt::Display for Seed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.series, self.nth)?;
        if self.faults != u64::MAX { write!(out, ".{:x}", self.faults) } else { Ok(()) }
    }
}

impl FromStr for Seed {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let series = parts.next().ok_or(())?.parse().map_err(drop)?;
        let nth = parts.next().ok_or(())?.parse().map_err(drop)?;
        let faults = match parts.next() {
            Some(faults) => u64::from_str_radix(faults, 16).map_err(drop)?,
            None => u64::MAX,
        };
        if parts.next().is_some() { Err(()) } else { Ok(Self { series, nth, faults }) }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A job waits for something that never comes.
    WaitsForEver(String),
    /// A job will never run, and the container goes on without it.
    GoesOnWithout(String),
    /// A job had to be killed, because the stop time was over.
    StopTimeOver(String),
    /// Something happens over and over while no time passes, or it does not leave.
    NoEnd,
    /// In no world was a job ever started.
    NeverStarts(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitsForEver(job) => write!(out, "{job} waits for ever"),
            Self::GoesOnWithout(job) => write!(out, "{job} never runs, and the container goes on without it"),
            Self::StopTimeOver(job) => write!(out, "{job} is killed, because the stop time is over"),
            Self::NoEnd => out.write_str("there is no end to it"),
            Self::NeverStarts(job) => write!(out, "{job} never starts, in any world"),
        }
    }
}

/// Something that was found, and how to see it again.
#[derive(Clone, Debug)]
pub struct Found {
    /// What.
    pub finding: Finding,
    /// The fewest faults that lead there.
    pub faults: Vec<Fault>,
    /// The world in which they happen.
    pub seed: Seed,
    /// In how many worlds it was so.
    pub worlds: u64,
    /// Why, in that world.
    pub because: Vec<String>,
}

impl Found {
    /// Whether nothing has to fail for it.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        !self.faults.iter().any(Fault::is_failure)
    }

    /// How much has to come together: what fails weighs more than what takes its time.
    fn weight(&self) -> usize {
        self.faults.iter().map(|fault| if fault.is_failure() { 100 } else { 1 }).sum()
    }
}

/// A plan, and the worlds around it.
pub struct Explorer<'a> {
    plan: &'a Plan,
    usual: Scenario,
    all: Vec<Fault>,
}

impl<'a> Explorer<'a> {
    /// The worlds around a plan that are like a scenario, but for their faults.
    #[must_use]
    pub fn new(plan: &'a Plan, scenario: &Scenario) -> Self {
        let mut usual = scenario.clone();
        let timeouts = plan.jobs.iter().filter_map(|job| job.when.timeout);
        let longest = timeouts.max().unwrap_or_default();
        usual.until =
            Some(scenario.until.unwrap_or_else(|| scenario.end().max(LEAST).saturating_add(longest)));
        usual.expectations.clear();
        Self { plan, all: Fault::all(plan, scenario), usual }
    }

    /// What happens in a world otherwise than usual.
    #[must_use]
    pub fn faults(&self, seed: Seed) -> Vec<Fault> {
        let all = self.all_of(seed).into_iter().enumerate();
        all.filter(|(nth, _)| seed.faults >> nth & 1 == 1).map(|(_, fault)| fault).collect()
    }

    fn all_of(&self, seed: Seed) -> Vec<Fault> {
        let place = usize::try_from(seed.nth).unwrap_or(usize::MAX);
        if place == 0 {
            return Vec::new();
        }
        if let Some(one) = self.all.get(place - 1) {
            return vec![one.clone()];
        }
        let mut rng = Rng::new(seed.series.rotate_left(32) ^ seed.nth);
        // The first number of neighbours is too much alike.
        let mut rng = Rng::new(rng.number());
        let count = 1 + rng.below(MOST);
        let mut chosen: Vec<Fault> = Vec::new();
        for _ in 0..count {
            let place = usize::try_from(rng.below(self.all.len() as u64)).unwrap_or(0);
            if let Some(one) = self.all.get(place) {
                chosen.push(one.clone().varied(&mut rng));
            }
        }
        chosen
    }

    /// The scenario of a world.
    #[must_use]
    pub fn scenario(&self, seed: Seed) -> Scenario {
        let mut scenario = self.usual.clone();
        for fault in self.faults(seed) {
            fault.apply(&mut scenario);
        }
        scenario
    }

    /// Tries so many worlds of a series.
    #[must_use]
    pub fn explore(&self, series: u64, worlds: u64) -> Vec<Found> {
        let mut found: BTreeMap<Finding, Found> = BTreeMap::new();
        let mut started: BTreeSet<String> = BTreeSet::new();
        let mut usual: Option<SimulationRun> = None;
        for nth in 0..worlds {
            let seed = Seed { series, nth, faults: u64::MAX };
            let run = simulate(self.plan, &self.scenario(seed));
            let ran = run.histories.iter().filter(|(_, history)| history.runs > 0);
            started.extend(ran.map(|(name, _)| name.clone()));
            for (finding, because) in self.findings(&run) {
                let faults = self.faults(seed);
                let new = Found { finding: finding.clone(), faults, seed, worlds: 1, because };
                match found.get_mut(&finding) {
                    None => drop(found.insert(finding, self.shrunk(new))),
                    Some(known) => {
                        known.worlds += 1;
                        // Only what can become a problem is worth the search.
                        let worth =
                            new.weight() < known.weight() || (new.is_problem() && !known.is_problem());
                        if worth || (!known.is_problem() && new.faults.iter().any(|one| !one.is_failure())) {
                            let (new, worlds) = (self.shrunk(new), known.worlds);
                            if new.weight() < known.weight() {
                                *known = Found { worlds, ..new };
                            }
                        }
                    }
                }
            }
            usual.get_or_insert(run);
        }
        let mut all: Vec<Found> = found.into_values().collect();
        if let Some(usual) = usual {
            all.extend(self.never(&started, &usual, series, worlds));
        }
        all.sort_by_key(|found| (!found.is_problem(), found.weight(), found.finding.clone()));
        all
    }

    /// Leaves out every fault that is not needed.
    fn shrunk(&self, mut found: Found) -> Found {
        let count = self.all_of(found.seed).len();
        let mut mask = if count < 64 { (1_u64 << count) - 1 } else { u64::MAX };
        for nth in 0..count {
            let seed = Seed { faults: mask & !(1 << nth), ..found.seed };
            let run = simulate(self.plan, &self.scenario(seed));
            let again = self.findings(&run).into_iter().find(|(finding, _)| *finding == found.finding);
            if let Some((_, because)) = again {
                mask = seed.faults;
                found = Found { faults: self.faults(seed), seed, because, ..found };
            }
        }
        found
    }

    /// What is wrong in a world.
    fn findings(&self, run: &SimulationRun) -> Vec<(Finding, Vec<String>)> {
        let mut findings = Vec::new();
        for job in self.plan.jobs.iter().filter(|job| job.role == Role::User || job.role == Role::Main) {
            let (Some(view), Some(history)) = (run.last.get(&job.name), run.histories.get(&job.name)) else {
                continue;
            };
            let waits = view.word == "waiting" && history.runs_at_end == 0 && hopes(job);
            let lost = matches!(view.ending, Some(Ending::Unreachable | Ending::GaveUp));
            // A ring of jobs is given up at once, and with the last of them the container ends.
            let ring = view.ending == Some(Ending::Unreachable) && self.is_in_ring(job);
            if waits || ring {
                findings.push((Finding::WaitsForEver(job.name.clone()), view.sentences.clone()));
            } else if lost && history.runs_at_end == 0 && run.asked_to_stop.is_some() && hopes(job) {
                findings.push((Finding::GoesOnWithout(job.name.clone()), view.sentences.clone()));
            }
        }
        for (at, job) in &run.killed {
            let because = vec![format!(
                "it is killed at {}, {} after the stop began",
                moment_of(*at),
                moment_of(containerpilot_core::Time::ZERO + self.plan.stop_timeout)
            )];
            findings.push((Finding::StopTimeOver(job.clone()), because));
        }
        if let Some(abort) = run.abort {
            findings.push((Finding::NoEnd, vec![abort.to_string()]));
        }
        findings
    }

    /// Whether a job waits, through others, for itself.
    fn is_in_ring(&self, job: &Job) -> bool {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = awaited(job).collect();
        while let Some(name) = open.pop() {
            if name == job.name {
                return true;
            }
            if seen.insert(name) {
                open.extend(self.plan.jobs.iter().filter(|other| other.name == name).flat_map(awaited));
            }
        }
        false
    }

    fn never(
        &self,
        started: &BTreeSet<String>,
        usual: &SimulationRun,
        series: u64,
        worlds: u64,
    ) -> Vec<Found> {
        // With fewer, something that would have started it may not have happened.
        if worlds <= self.all.len() as u64 {
            return Vec::new();
        }
        let idle = self.plan.jobs.iter().filter(|job| job.exec.is_some() && !started.contains(&job.name));
        idle.map(|job| Found {
            finding: Finding::NeverStarts(job.name.clone()),
            faults: Vec::new(),
            seed: Seed { series, nth: 0, faults: u64::MAX },
            worlds,
            because: usual.last.get(&job.name).map(|view| view.sentences.clone()).unwrap_or_default(),
        })
        .collect()
    }
}

/// The jobs that a job waits for.
fn awaited(job: &Job) -> impl Iterator<Item = &str> {
    job.when.patterns().iter().filter_map(|event| match &event.source {
        Source::Job(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Whether a job waits for something good: one that waits for a failure or for the end may wait for ever.
fn hopes(job: &Job) -> bool {
    job.when.patterns().iter().any(|event| matches!(event.code, Code::ExitSuccess | Code::Healthy))
}
