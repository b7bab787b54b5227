//! A scenario that breaks a rule, made as small as it gets while it still breaks that rule.

use std::fmt;
use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Catalog, Job, OnCompletion, OnUnhealthy, Probe, Restarts, Signal};
use containerpilot_core::request::Request;

use crate::invariants::Violation;
use crate::random::at_startup;
use crate::scenario::{Happening, Keeping, Scenario, Version};
use crate::world;

/// A rule that was broken, and how to see it again.
#[derive(Debug)]
pub struct Failure {
    /// The seed it came from.
    pub seed: u64,
    /// What was broken, in the small scenario.
    pub violation: Violation,
    /// The small scenario.
    pub scenario: Scenario,
    /// Everything that happened in it.
    pub timeline: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.violation.at.as_nanos() as f64 / 1e9;
        writeln!(out, "{} is broken at {seconds:.6} s: {}", self.violation.rule, self.violation.what)?;
        writeln!(
            out,
            "seed {}; again: cargo run -p containerpilot-oracle -- --replay {}",
            self.seed, self.seed
        )?;
        for (version, Version { plan, scripts }) in self.scenario.versions.iter().enumerate() {
            writeln!(out, "\nthe smallest plan that shows it, version {version}:")?;
            for (nth, (job, script)) in plan.jobs.iter().zip(scripts).enumerate() {
                write_job(out, nth, job)?;
                for run in &script.runs {
                    writeln!(out, "    run: {run:?}")?;
                }
                for checks in &script.checks {
                    writeln!(out, "    check: {checks:?}")?;
                }
                writeln!(out, "    {:?}", script.catalog)?;
            }
            writeln!(
                out,
                "stop time {:?}, signals passed on: {}, embedded: {}, watches: {:?}",
                plan.stop_timeout,
                plan.pass_signals,
                plan.catalog == Catalog::Embedded,
                plan.watches
            )?;
        }
        let Scenario { ready_at, late, patience, .. } = &self.scenario;
        writeln!(out, "ready at {ready_at:?}, late: {late}, patience {patience}")?;
        for (at, happening) in &self.scenario.happenings {
            writeln!(out, "at {at:?}: {happening:?}")?;
        }
        writeln!(out, "\n{}", self.timeline)
    }
}

fn write_job(out: &mut fmt::Formatter<'_>, nth: usize, job: &Job) -> fmt::Result {
    writeln!(out, "  job {nth} `{}` {:?}, exec: {}", job.name, job.role, job.exec.is_some())?;
    writeln!(out, "    when {:?}", job.when)?;
    writeln!(out, "    restarts {:?}, timeout {:?}, {:?}", job.restarts, job.timeout, job.stop)?;
    if let Some(backoff) = &job.backoff {
        writeln!(out, "    {backoff:?}")?;
    }
    if (job.on_failure, job.on_success) != (OnCompletion::Continue, OnCompletion::Continue) {
        writeln!(out, "    on failure {:?}, on success {:?}", job.on_failure, job.on_success)?;
    }
    if let Some(health) = &job.health {
        writeln!(out, "    {health:?}")?;
    }
    if let Some(service) = &job.service {
        writeln!(out, "    service, initial status {:?}", service.initial_status)?;
    }
    Ok(())
}

/// Of a scenario, a version of its plan, and a job of that.
type Cut = fn(&mut Scenario, usize, usize) -> bool;

/// Ways to make a job simpler; each says whether there was something to simplify.
const CUTS: [Cut; 21] = [
    |s, v, n| {
        let calm = !matches!(s.versions[v].scripts[n].catalog, Keeping::Told(Some(Duration::ZERO)));
        s.versions[v].scripts[n].catalog = Keeping::Told(Some(Duration::ZERO));
        calm
    },
    |s, v, n| drop(&mut s.versions[v].plan.jobs[n].service),
    |s, v, n| {
        s.versions[v].plan.jobs[n].exec.is_some() && drop(&mut s.versions[v].plan.jobs[n].health) && {
            s.versions[v].plan.jobs[n].service = None;
            true
        }
    },
    |s, v, n| drop(&mut s.versions[v].plan.jobs[n].when.timeout),
    |s, v, n| drop(&mut s.versions[v].plan.jobs[n].timeout),
    |s, v, n| drop(&mut s.versions[v].plan.jobs[n].stop.hook_timeout),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].stop.drain, Duration::ZERO),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].stop.signal, Signal::TERM),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].restarts, Restarts::Limited(0)),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].on_failure, OnCompletion::Continue),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].on_success, OnCompletion::Continue),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].when.trigger, at_startup()),
    |s, v, n| shorten(&mut s.versions[v].scripts[n].runs),
    |s, v, n| {
        s.versions[v].scripts[n]
            .runs
            .iter_mut()
            .fold(false, |any, run| put(&mut run.latency, Duration::ZERO) | any)
    },
    |s, v, n| s.versions[v].scripts[n].runs.iter_mut().fold(false, |any, run| drop(&mut run.fails) | any),
    |s, v, n| {
        s.versions[v].scripts[n].runs.iter_mut().fold(false, |any, run| put(&mut run.orphans, false) | any)
    },
    |s, v, n| s.versions[v].scripts[n].checks.iter_mut().fold(false, |any, checks| shorten(checks) | any),
    |s, v, n| {
        s.versions[v].plan.jobs[n].health.as_mut().is_some_and(|health| {
            put(&mut health.on_unhealthy, OnUnhealthy::Report) | drop(&mut health.heartbeat)
        })
    },
    |s, v, n| {
        s.versions[v].scripts[n].checks.truncate(1);
        s.versions[v].plan.jobs[n].health.as_mut().is_some_and(|health| {
            let more = health.checks.len() > 1;
            health.checks.truncate(1);
            more
        })
    },
    |s, v, n| {
        s.versions[v].plan.jobs[n].health.as_mut().is_some_and(|health| {
            let plain = |check: &mut containerpilot_core::plan::Check| {
                put(&mut check.failures, 1)
                    | (check.probe != Probe::Running && {
                        let interval = check.interval;
                        put(&mut check.timeout, interval)
                    })
            };
            health.checks.iter_mut().fold(false, |any, check| plain(check) | any)
        })
    },
    |s, v, n| {
        let few = match &mut s.versions[v].plan.jobs[n].when.trigger {
            containerpilot_core::plan::Trigger::All { conditions, .. }
            | containerpilot_core::plan::Trigger::Any { conditions, .. } => conditions,
            _ => return false,
        };
        few.len() > 1 && few.pop().is_some()
    },
];

/// Whether something still happens when a job is taken out; those behind it move up.
fn keep_without(happening: &mut Happening, gone: usize) -> bool {
    let Happening::Request(
        Request::Start(job) | Request::Stop(job) | Request::Restart(job) | Request::Signal(job, _),
    ) = happening
    else {
        return true;
    };
    if job.index() > gone {
        *job = JobIx::at(job.index() - 1);
        return true;
    }
    job.index() < gone
}

/// The same without a version; reloads to it do not happen.
fn without_version(from: &Scenario, gone: usize) -> Scenario {
    let mut candidate = from.clone();
    candidate.versions.remove(gone);
    candidate.happenings.retain_mut(|(_, happening)| match happening {
        Happening::Reload(version) => {
            let keep = *version != gone;
            *version -= usize::from(*version > gone);
            keep
        }
        _ => true,
    });
    candidate
}

fn without_job(candidate: &mut Scenario, version: usize, nth: usize) {
    candidate.versions[version].plan.jobs.remove(nth);
    candidate.versions[version].scripts.remove(nth);
    if version == 0 {
        candidate.happenings.retain_mut(|(_, happening)| keep_without(happening, nth));
    }
}

fn drop<T>(place: &mut Option<T>) -> bool {
    place.take().is_some()
}

fn put<T: PartialEq>(place: &mut T, value: T) -> bool {
    let other = *place != value;
    *place = value;
    other
}

fn shorten<T>(list: &mut Vec<T>) -> bool {
    list.len() > 1 && list.pop().is_some()
}

/// Makes a failure as small as it gets.
#[must_use]
pub fn shrink(seed: u64, mut scenario: Scenario, mut violation: Violation) -> Failure {
    let mut tried = 0;
    while let Some((smaller, again)) = smaller(&scenario, violation.rule, &mut tried) {
        (scenario, violation) = (smaller, again);
    }
    let mut timeline = String::new();
    if let Err(again) = world::run(&scenario, Some(&mut timeline)) {
        violation = again;
    }
    Failure { seed, violation, scenario, timeline }
}

/// The longest search.
const MOST: u32 = 5_000;

fn smaller(from: &Scenario, rule: &str, tried: &mut u32) -> Option<(Scenario, Violation)> {
    let mut attempt = |candidate: Scenario| {
        *tried += 1;
        let violation = world::run(&candidate, None).err().filter(|violation| violation.rule == rule)?;
        (*tried < MOST).then_some((candidate, violation))
    };
    for nth in 1..from.versions.len() {
        if let Some(found) = attempt(without_version(from, nth)) {
            return Some(found);
        }
    }
    let places: Vec<(usize, usize)> = (0..from.versions.len())
        .flat_map(|version| (0..from.versions[version].plan.jobs.len()).map(move |nth| (version, nth)))
        .collect();
    for (version, nth) in &places {
        let name = &from.versions[*version].plan.jobs[*nth].name;
        for everywhere in [true, false] {
            let mut candidate = from.clone();
            let mut left = true;
            for other in 0..candidate.versions.len() {
                if other == *version || everywhere {
                    let jobs = &candidate.versions[other].plan.jobs;
                    let Some(place) = jobs.iter().position(|job| job.name == *name) else { continue };
                    let place = if other == *version { *nth } else { place };
                    without_job(&mut candidate, other, place);
                }
                left &= !candidate.versions[other].plan.jobs.is_empty();
            }
            if left && let Some(found) = attempt(candidate) {
                return Some(found);
            }
        }
    }
    for nth in 0..from.happenings.len() {
        let mut candidate = from.clone();
        candidate.happenings.remove(nth);
        if let Some(found) = attempt(candidate) {
            return Some(found);
        }
    }
    for (version, nth) in &places {
        let job = &from.versions[*version].plan.jobs[*nth];
        for cut in CUTS {
            let mut candidate = from.clone();
            let mut any = false;
            // What is the same in several versions stays so.
            for (version, nth) in &places {
                if from.versions[*version].plan.jobs[*nth] == *job {
                    any |= cut(&mut candidate, *version, *nth);
                }
            }
            if any && let Some(found) = attempt(candidate) {
                return Some(found);
            }
        }
    }
    for nth in 0..from.versions.len() {
        let mut candidate = from.clone();
        let watches = std::mem::take(&mut candidate.versions[nth].plan.watches);
        if !watches.is_empty()
            && let Some(found) = attempt(candidate)
        {
            return Some(found);
        }
    }
    let mut candidate = from.clone();
    if (put(&mut candidate.late, false) | put(&mut candidate.ready_at, Duration::ZERO))
        && let Some(found) = attempt(candidate)
    {
        return Some(found);
    }
    let mut candidate = from.clone();
    candidate.patience /= 2;
    if candidate.patience > 4
        && let Some(found) = attempt(candidate)
    {
        return Some(found);
    }
    None
}
