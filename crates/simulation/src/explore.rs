//! Simulates a configuration in many variations: first without faults, then with each fault alone, then with several random
//! ones.
//!
//! A finding is shown with the fewest faults that lead to it. If nothing has to fail (`is_failure`), it is a *problem*
//! of the configuration, which does not tolerate another order or other durations. Otherwise it is a *consequence*.
//! `simulate --explore` prints `PROBLEM` and `FAULT`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use containerpilot_config::duration::exact;
use containerpilot_core::StopReason;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    DependencyEdge, DependencyKind, Dependent, EventPattern, Job, Plan, Role, Trigger,
};
use containerpilot_core::rng::{Rng, mix};
use std::collections::{BTreeMap, BTreeSet};

use crate::expect::moment_of;
use crate::fault::Fault;
use crate::runner::simulate;
use crate::scenario::Scenario;
use crate::shrink::fewest;
use crate::timeline::SimulationRun;

/// The most random faults of a variation.
const MAX_FAULTS: u64 = 5;
/// The shortest time that is simulated.
const MIN_DURATION: Duration = Duration::from_secs(180);

/// Identifies a variation: the series, its index in the series, and which of its faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The series.
    pub series: u64,
    /// The index in the series.
    pub nth: u64,
    /// A bit for each fault; set if it happens.
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

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A job waits for something that never happens.
    WaitsForever(String),
    /// A job can never run, and the container continues without it.
    ContinuesWithout(String),
    /// A job was killed in a shutdown because the stop timeout passed, or a stop hook at its own timeout.
    KilledAtStopTimeout(String),
    /// A job got its stop signal before its hooks, deregistration and drain were complete.
    StoppedEarly(String),
    /// The simulation was aborted.
    NoEnd,
    /// A job was started in no variation.
    NeverStarts(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitsForever(job) => write!(out, "{job} waits forever"),
            Self::ContinuesWithout(job) => {
                write!(out, "{job} never runs, and the container continues without it")
            }
            Self::KilledAtStopTimeout(job) => write!(out, "{job} is killed because the stop timeout passed"),
            Self::StoppedEarly(job) => {
                write!(
                    out,
                    "{job} is stopped before its hooks and drain are complete: the stop timeout passed"
                )
            }
            Self::NoEnd => out.write_str("the simulation does not end"),
            Self::NeverStarts(job) => write!(out, "{job} never starts in any variation"),
        }
    }
}

/// A finding, and how to reproduce it.
#[derive(Clone, Debug)]
pub struct Found {
    /// What goes wrong.
    pub finding: Finding,
    /// The fewest faults that lead to it.
    pub faults: Vec<Fault>,
    /// The variation in which they happen.
    pub seed: Seed,
    /// In how many variations it was found.
    pub variations: u64,
    /// The explanation, in that variation.
    pub because: Vec<String>,
}

impl Found {
    /// Returns true if it happens although nothing fails.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        !self.faults.iter().any(is_failure)
    }

    /// Lower is simpler: failures weigh more than delays.
    fn weight(&self) -> usize {
        self.faults.iter().map(|fault| if is_failure(fault) { 100 } else { 1 }).sum()
    }
}

/// Returns true if something fails, rather than takes longer.
const fn is_failure(fault: &Fault) -> bool {
    match fault {
        Fault::TakesLonger(..)
        | Fault::StartsLate(..)
        | Fault::HealthyLate(..)
        | Fault::StopsLate(..)
        | Fault::SeenLate(..)
        | Fault::Stop(_)
        | Fault::Signal(..)
        | Fault::Maintenance(..) => false,
        Fault::Fails(..)
        | Fault::CannotStart(_)
        | Fault::Dies(..)
        | Fault::NeverHealthy(_)
        | Fault::Unhealthy(..)
        | Fault::NeverSeen(_)
        | Fault::Vanishes(..)
        | Fault::CatalogOutage(..) => true,
    }
}

/// Tries variations of a plan.
pub struct Explorer<'a> {
    plan: &'a Plan,
    /// For each name of a job, the jobs that it waits for.
    awaited: BTreeMap<&'a str, Vec<String>>,
    usual: Scenario,
    all: Vec<Fault>,
}

impl<'a> Explorer<'a> {
    /// Worlds that are like a scenario, except for their faults.
    #[must_use]
    pub fn new(plan: &'a Plan, scenario: &Scenario) -> Self {
        let mut usual = scenario.clone();
        let timeouts = plan.jobs.iter().filter_map(|job| job.when.timeout);
        let longest = timeouts.max().unwrap_or_default();
        usual.until =
            Some(scenario.until.unwrap_or_else(|| scenario.end().max(MIN_DURATION).saturating_add(longest)));
        usual.expectations.clear();
        Self { plan, awaited: awaited(plan), all: Fault::all(plan, scenario), usual }
    }

    /// The faults of a variation.
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
        let mut rng = Rng::new(mix(seed.series.rotate_left(32) ^ seed.nth));
        let count = 1 + rng.below(MAX_FAULTS);
        let mut chosen: Vec<Fault> = Vec::new();
        for _ in 0..count {
            let place = usize::try_from(rng.below(self.all.len() as u64)).unwrap_or(0);
            if let Some(one) = self.all.get(place) {
                chosen.push(one.clone().varied(&mut rng));
            }
        }
        chosen
    }

    /// The scenario of a variation.
    #[must_use]
    pub fn scenario(&self, seed: Seed) -> Scenario {
        let mut scenario = self.usual.clone();
        for fault in self.faults(seed) {
            fault.apply(&mut scenario);
        }
        scenario
    }

    /// Tries a number of variations of a series.
    #[must_use]
    pub fn explore(&self, series: u64, variations: u64) -> Vec<Found> {
        let mut found: BTreeMap<Finding, Found> = BTreeMap::new();
        let mut started: BTreeSet<String> = BTreeSet::new();
        let mut usual: Option<SimulationRun> = None;
        for nth in 0..variations {
            let seed = Seed { series, nth, faults: u64::MAX };
            let run = simulate(self.plan, &self.scenario(seed));
            let ran = run.histories.iter().filter(|(_, history)| history.runs > 0);
            started.extend(ran.map(|(name, _)| name.clone()));
            for (finding, because) in self.findings(&run) {
                let faults = self.faults(seed);
                let new = Found { finding: finding.clone(), faults, seed, variations: 1, because };
                match found.get_mut(&finding) {
                    None => drop(found.insert(finding, self.shrink(new))),
                    Some(known) => {
                        known.variations += 1;
                        // Shrinks only what may turn out to be simpler, or a problem.
                        let worth =
                            new.weight() < known.weight() || (new.is_problem() && !known.is_problem());
                        if worth || (!known.is_problem() && new.faults.iter().any(|one| !is_failure(one))) {
                            let (new, variations) = (self.shrink(new), known.variations);
                            if new.weight() < known.weight() {
                                *known = Found { variations, ..new };
                            }
                        }
                    }
                }
            }
            usual.get_or_insert(run);
        }
        let mut all: Vec<Found> = found.into_values().collect();
        if let Some(usual) = usual {
            all.extend(self.never(&started, &usual, series, variations));
        }
        all.sort_by_key(|found| (!found.is_problem(), found.weight(), found.finding.clone()));
        all
    }

    /// Removes every fault that is not needed.
    fn shrink(&self, mut found: Found) -> Found {
        let count = self.all_of(found.seed).len();
        fewest(count, |kept| {
            let kept = kept.iter().enumerate().filter(|(_, kept)| **kept);
            let seed = Seed { faults: kept.map(|(nth, _)| 1 << nth).sum(), ..found.seed };
            let run = simulate(self.plan, &self.scenario(seed));
            let again = self.findings(&run).into_iter().find(|(finding, _)| *finding == found.finding);
            let Some((_, because)) = again else { return false };
            (found.faults, found.seed, found.because) = (self.faults(seed), seed, because);
            true
        });
        found
    }

    /// What goes wrong in a variation.
    fn findings(&self, run: &SimulationRun) -> Vec<(Finding, Vec<String>)> {
        let mut findings = Vec::new();
        for job in self.plan.jobs.iter().filter(|job| job.role == Role::User || job.role == Role::Main) {
            let (Some(view), Some(history)) = (run.last.get(&job.name), run.histories.get(&job.name)) else {
                continue;
            };
            let waits = view.word == "waiting" && history.runs_at_end == 0 && expects_success(job);
            let lost = matches!(view.stop_reason, Some(StopReason::Unreachable | StopReason::StartTimeout));
            // A cycle of jobs is unreachable at once, and the container exits with the last of them.
            let cycle = view.stop_reason == Some(StopReason::Unreachable) && self.is_in_cycle(job);
            if waits || cycle {
                findings.push((Finding::WaitsForever(job.name.clone()), view.sentences.clone()));
            } else if lost
                && history.runs_at_end == 0
                && run.stop_requested_at.is_some()
                && expects_success(job)
            {
                findings.push((Finding::ContinuesWithout(job.name.clone()), view.sentences.clone()));
            }
        }
        let timeout = exact(self.plan.stop_timeout);
        for (at, job) in &run.killed {
            let at = moment_of(*at);
            let planned = self.plan.jobs.iter().find(|planned| planned.name == *job);
            let because = match planned.and_then(Job::hook_time) {
                Some(own) => format!("killed at {at}: it did not exit within its own {}", exact(own)),
                None => format!("killed at {at}: it did not exit within the stop timeout of {timeout}"),
            };
            findings.push((Finding::KilledAtStopTimeout(job.clone()), vec![because]));
        }
        for (at, job) in &run.stopped_early {
            let because = format!(
                "sent its stop signal at {}: hooks, deregistration or drain took longer than the stop timeout of {timeout} allows",
                moment_of(*at)
            );
            findings.push((Finding::StoppedEarly(job.clone()), vec![because]));
        }
        if let Some(abort) = run.abort {
            findings.push((Finding::NoEnd, vec![abort.to_string()]));
        }
        findings
    }

    /// Returns true if a job waits for itself, directly or through others.
    fn is_in_cycle(&self, job: &Job) -> bool {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![job.name.as_str()];
        while let Some(name) = open.pop() {
            let awaited = self.awaited.get(name).into_iter().flatten().map(String::as_str);
            open.extend(awaited.filter(|name| seen.insert(*name)));
        }
        seen.contains(job.name.as_str())
    }

    fn never(
        &self,
        started: &BTreeSet<String>,
        usual: &SimulationRun,
        series: u64,
        variations: u64,
    ) -> Vec<Found> {
        // With fewer variations, a fault that starts the job may not have been tried.
        if variations <= self.all.len() as u64 {
            return Vec::new();
        }
        // W17: a scenario says who starts a job by hand.
        let starts = |job: &Job| job.exec.is_some() && !matches!(job.when.trigger, Trigger::Manual);
        let idle = self.plan.jobs.iter().filter(|job| starts(job) && !started.contains(&job.name));
        idle.map(|job| Found {
            finding: Finding::NeverStarts(job.name.clone()),
            faults: Vec::new(),
            seed: Seed { series, nth: 0, faults: u64::MAX },
            variations,
            because: usual.last.get(&job.name).map(|view| view.sentences.clone()).unwrap_or_default(),
        })
        .collect()
    }
}

/// For each name of a job, the names of the jobs whose events start it, or that it requires.
fn awaited(plan: &Plan) -> BTreeMap<&str, Vec<String>> {
    let mut awaited: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for DependencyEdge { source, dependent, kind } in plan.dependencies() {
        if let (Source::Job(name), Dependent::Job(job)) = (source, dependent)
            && kind != DependencyKind::StopsAfter
            && let Some(job) = plan.jobs.get(job.index())
        {
            awaited.entry(&job.name).or_default().push(name);
        }
    }
    awaited
}

/// Returns true if a job waits for a success, or requires something (W18). One that waits for a failure or for a stop may wait forever.
fn expects_success(job: &Job) -> bool {
    let is_success =
        |event: &EventPattern| matches!(event.code, Code::ExitSuccess | Code::Healthy | Code::BecameHealthy);
    !job.requires.is_empty() || job.when.patterns().iter().any(is_success)
}
