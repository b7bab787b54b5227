//! A scenario that breaks a rule, made as small as it gets while it still breaks that rule.

use std::fmt;
use std::time::Duration;

use containerpilot_core::command::Command;
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{AtEnd, Catalog, Job, OnUnhealthy, Probe, Restarts, Signal};

use crate::invariants::Violation;
use crate::random::at_startup;
use crate::scenario::{Happening, Scenario};
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
            "seed {}; again: cargo run -p containerpilot-sim -- --replay {}",
            self.seed, self.seed
        )?;
        writeln!(out, "\nthe smallest plan that shows it:")?;
        for (nth, job) in self.scenario.plan.jobs.iter().enumerate() {
            write_job(out, nth, job)?;
            for run in &self.scenario.scripts[nth].runs {
                writeln!(out, "    run: {run:?}")?;
            }
            for checks in &self.scenario.scripts[nth].checks {
                writeln!(out, "    check: {checks:?}")?;
            }
        }
        writeln!(
            out,
            "stop time {:?}, ready at {:?}, late: {}, patience {}, signals passed on: {}, embedded: {}",
            self.scenario.plan.stop_timeout,
            self.scenario.ready_at,
            self.scenario.late,
            self.scenario.patience,
            self.scenario.plan.pass_signals,
            self.scenario.plan.catalog == Catalog::Embedded
        )?;
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
    if (job.on_failure, job.on_success) != (AtEnd::Continue, AtEnd::Continue) {
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

type Cut = fn(&mut Scenario, usize) -> bool;

/// Ways to make a job simpler; each says whether there was something to simplify.
const CUTS: [Cut; 20] = [
    |s, n| drop(&mut s.plan.jobs[n].service),
    |s, n| {
        s.plan.jobs[n].exec.is_some() && drop(&mut s.plan.jobs[n].health) && {
            s.plan.jobs[n].service = None;
            true
        }
    },
    |s, n| drop(&mut s.plan.jobs[n].when.timeout),
    |s, n| drop(&mut s.plan.jobs[n].timeout),
    |s, n| drop(&mut s.plan.jobs[n].stop.timeout),
    |s, n| put(&mut s.plan.jobs[n].stop.drain, Duration::ZERO),
    |s, n| put(&mut s.plan.jobs[n].stop.signal, Signal::TERM),
    |s, n| put(&mut s.plan.jobs[n].restarts, Restarts::Limited(0)),
    |s, n| put(&mut s.plan.jobs[n].on_failure, AtEnd::Continue),
    |s, n| put(&mut s.plan.jobs[n].on_success, AtEnd::Continue),
    |s, n| put(&mut s.plan.jobs[n].when.trigger, at_startup()),
    |s, n| shorten(&mut s.scripts[n].runs),
    |s, n| s.scripts[n].runs.iter_mut().fold(false, |any, run| put(&mut run.latency, Duration::ZERO) | any),
    |s, n| s.scripts[n].runs.iter_mut().fold(false, |any, run| drop(&mut run.fails) | any),
    |s, n| s.scripts[n].runs.iter_mut().fold(false, |any, run| put(&mut run.leftovers, false) | any),
    |s, n| s.scripts[n].checks.iter_mut().fold(false, |any, checks| shorten(checks) | any),
    |s, n| {
        s.plan.jobs[n].health.as_mut().is_some_and(|health| {
            put(&mut health.on_unhealthy, OnUnhealthy::Report) | drop(&mut health.heartbeat)
        })
    },
    |s, n| {
        s.scripts[n].checks.truncate(1);
        s.plan.jobs[n].health.as_mut().is_some_and(|health| {
            let more = health.checks.len() > 1;
            health.checks.truncate(1);
            more
        })
    },
    |s, n| {
        s.plan.jobs[n].health.as_mut().is_some_and(|health| {
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
    |s, n| {
        let few = match &mut s.plan.jobs[n].when.trigger {
            containerpilot_core::plan::Trigger::All { conditions, .. }
            | containerpilot_core::plan::Trigger::Any { conditions, .. } => conditions,
            _ => return false,
        };
        few.len() > 1 && few.pop().is_some()
    },
];

/// Whether something still happens when a job is taken out; those behind it move up.
fn keep_without(happening: &mut Happening, gone: usize) -> bool {
    let Happening::Command(
        Command::Start(job) | Command::Stop(job) | Command::Restart(job) | Command::Signal(job, _),
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
    let count = from.plan.jobs.len();
    for nth in (0..count).filter(|_| count > 1) {
        let mut candidate = from.clone();
        candidate.plan.jobs.remove(nth);
        candidate.scripts.remove(nth);
        candidate.happenings.retain_mut(|(_, happening)| keep_without(happening, nth));
        if let Some(found) = attempt(candidate) {
            return Some(found);
        }
    }
    for nth in 0..from.happenings.len() {
        let mut candidate = from.clone();
        candidate.happenings.remove(nth);
        if let Some(found) = attempt(candidate) {
            return Some(found);
        }
    }
    for nth in 0..count {
        for cut in CUTS {
            let mut candidate = from.clone();
            if cut(&mut candidate, nth)
                && let Some(found) = attempt(candidate)
            {
                return Some(found);
            }
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
