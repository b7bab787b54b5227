//! Makes a scenario that breaks a rule as small as possible.

use std::fmt;
use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{
    Catalog, Check, Drain, Exec, Job, OnCompletion, OnUnhealthy, Restarts, Signal, Trigger, When,
};
use containerpilot_core::request::Request;
use containerpilot_simulation::world::script::Rest;

use crate::invariants::oracle::Violation;
use crate::runner;
use crate::scenario::{Action, CatalogScript, Scenario, Version};

/// A broken rule, and how to reproduce it.
#[derive(Debug)]
pub struct Failure {
    /// The seed of the original scenario.
    pub seed: u64,
    /// The violation in the small scenario.
    pub violation: Violation,
    /// The small scenario.
    pub scenario: Scenario,
    /// What happened in it.
    pub timeline: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.violation.at.as_nanos() as f64 / 1e9;
        writeln!(out, "{} is broken at {seconds:.6}s: {}", self.violation.rule, self.violation.what)?;
        writeln!(
            out,
            "seed {}; replay: cargo run -p containerpilot-oracle -- --replay {}",
            self.seed, self.seed
        )?;
        for (version, Version { plan, scripts, .. }) in self.scenario.versions.iter().enumerate() {
            writeln!(out, "\nsmallest plan, version {version}:")?;
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
                "stop timeout {:?}, pass signals: {}, embedded catalog: {}, watches: {:?}",
                plan.stop_timeout,
                plan.pass_signals,
                plan.catalog == Catalog::Embedded,
                plan.watches
            )?;
        }
        let Scenario { ready_at, late, max_steps, .. } = &self.scenario;
        writeln!(out, "ready at {ready_at:?}, late: {late}, stopped after {max_steps} steps")?;
        for (at, action) in &self.scenario.actions {
            writeln!(out, "at {at:?}: {action:?}")?;
        }
        writeln!(out, "\n{}", self.timeline)
    }
}

pub(crate) fn write_job(out: &mut fmt::Formatter<'_>, nth: usize, job: &Job) -> fmt::Result {
    let exec = match &job.exec {
        Exec::Program(_) => "a program".to_owned(),
        Exec::Action(action) => action.to_string(),
        Exec::Nothing => "nothing".to_owned(),
    };
    writeln!(out, "  job {nth} `{}` {:?}, runs {exec}", job.name, job.role)?;
    writeln!(out, "    when {:?}", job.when)?;
    writeln!(out, "    restarts {:?}, timeout {:?}, {:?}", job.restarts, job.timeout, job.stop)?;
    if job.has_stop_order() || !job.requires.is_empty() {
        writeln!(out, "    requires {:?}, stops after {:?}", job.requires, job.stop_after)?;
    }
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

/// Simplifies a job, given by scenario, version and index. Returns true if there was something to simplify.
type Simplification = fn(&mut Scenario, usize, usize) -> bool;

const SIMPLIFICATIONS: [Simplification; 24] = [
    |s, v, n| s.versions[v].plan.jobs[n].requires.pop().is_some(),
    |s, v, n| s.versions[v].plan.jobs[n].stop_after.pop().is_some(),
    |s, v, n| {
        let bound = s.versions[v].plan.jobs[n].requires.iter_mut().find(|one| one.bind);
        bound.map(|one| one.bind = false).is_some()
    },
    |s, v, n| {
        let changed =
            !matches!(s.versions[v].scripts[n].catalog, CatalogScript::Direct(Some(Duration::ZERO)));
        s.versions[v].scripts[n].catalog = CatalogScript::Direct(Some(Duration::ZERO));
        changed
    },
    |s, v, n| clear(&mut s.versions[v].plan.jobs[n].service),
    |s, v, n| {
        s.versions[v].plan.jobs[n].exec.is_some() && clear(&mut s.versions[v].plan.jobs[n].health) && {
            s.versions[v].plan.jobs[n].service = None;
            true
        }
    },
    |s, v, n| clear(&mut s.versions[v].plan.jobs[n].when.timeout),
    |s, v, n| clear(&mut s.versions[v].plan.jobs[n].timeout),
    |s, v, n| clear(&mut s.versions[v].plan.jobs[n].stop.hook_timeout),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].stop.drain, Drain::NONE),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].stop.signal, Signal::TERM),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].restarts, Restarts::Limited(0)),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].on_failure, OnCompletion::Continue),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].on_success, OnCompletion::Continue),
    |s, v, n| put(&mut s.versions[v].plan.jobs[n].when.trigger, When::at_startup().trigger),
    |s, v, n| shorten(&mut s.versions[v].scripts[n].runs),
    |s, v, n| {
        s.versions[v].scripts[n]
            .runs
            .iter_mut()
            .fold(false, |any, run| put(&mut run.starts_in, Some(Duration::ZERO)) | any)
    },
    |s, v, n| {
        s.versions[v].scripts[n].runs.iter_mut().fold(false, |any, run| clear(&mut run.start_error) | any)
    },
    |s, v, n| {
        s.versions[v].scripts[n]
            .runs
            .iter_mut()
            .fold(false, |any, run| put(&mut run.rest, Rest::Nothing) | clear(&mut run.daemons) | any)
    },
    |s, v, n| s.versions[v].scripts[n].checks.iter_mut().fold(false, |any, checks| shorten(checks) | any),
    |s, v, n| {
        s.versions[v].plan.jobs[n].health.as_mut().is_some_and(|health| {
            put(&mut health.on_unhealthy, OnUnhealthy::Report) | clear(&mut health.heartbeat)
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
            let plain = |check: &mut Check| {
                put(&mut check.failures, 1)
                    | put(&mut check.successes, 1)
                    | put(&mut check.start_period, Duration::ZERO)
                    | (!check.probe.is_passive() && {
                        let interval = check.interval;
                        put(&mut check.timeout, interval)
                    })
            };
            health.checks.iter_mut().fold(false, |any, check| plain(check) | any)
        })
    },
    |s, v, n| {
        let few = match &mut s.versions[v].plan.jobs[n].when.trigger {
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => conditions,
            _ => return false,
        };
        few.len() > 1 && few.pop().is_some()
    },
];

/// Adjusts an action to the removal of a job. Returns true if it still makes sense.
fn keep_without(action: &mut Action, gone: usize) -> bool {
    if let Action::Request(Request::RollingRestart(jobs)) = action {
        jobs.retain(|job| job.index() != gone);
        for job in jobs.iter_mut().filter(|job| job.index() > gone) {
            *job = JobIx::at(job.index() - 1);
        }
        return !jobs.is_empty();
    }
    let Action::Request(
        Request::Start(job) | Request::Stop(job) | Request::Restart(job) | Request::Signal(job, _),
    ) = action
    else {
        return true;
    };
    if job.index() > gone {
        *job = JobIx::at(job.index() - 1);
        return true;
    }
    job.index() < gone
}

/// The scenario without a version and without the reloads to it.
fn without_version(from: &Scenario, gone: usize) -> Scenario {
    let mut candidate = from.clone();
    candidate.versions.remove(gone);
    candidate.actions.retain_mut(|(_, action)| match action {
        Action::Reload(version) => {
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
        candidate.actions.retain_mut(|(_, action)| keep_without(action, nth));
    }
}

fn clear<T>(place: &mut Option<T>) -> bool {
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

/// Makes a failing scenario as small as possible.
#[must_use]
pub fn shrink(seed: u64, mut scenario: Scenario, mut violation: Violation) -> Failure {
    let mut tried = 0;
    while let Some((smaller, again)) = smaller(&scenario, violation.rule, &mut tried) {
        (scenario, violation) = (smaller, again);
    }
    let mut timeline = String::new();
    if let Err(again) = runner::run(&scenario, Some(&mut timeline)) {
        violation = again;
    }
    Failure { seed, violation, scenario, timeline }
}

/// The most attempts.
const MAX_ATTEMPTS: u32 = 5_000;

fn smaller(from: &Scenario, rule: &str, tried: &mut u32) -> Option<(Scenario, Violation)> {
    let mut attempt = |candidate: Scenario| {
        *tried += 1;
        let violation = runner::run(&candidate, None).err().filter(|violation| violation.rule == rule)?;
        (*tried < MAX_ATTEMPTS).then_some((candidate, violation))
    };
    // Versions that `scale` leads to are referred to by others.
    let is_scaled = from.versions.iter().any(|version| version.scaled_from.is_some());
    for nth in (1..from.versions.len()).filter(|_| !is_scaled) {
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
    for nth in 0..from.actions.len() {
        let mut candidate = from.clone();
        candidate.actions.remove(nth);
        if let Some(found) = attempt(candidate) {
            return Some(found);
        }
    }
    for (version, nth) in &places {
        let job = &from.versions[*version].plan.jobs[*nth];
        for simplify in SIMPLIFICATIONS {
            let mut candidate = from.clone();
            let mut any = false;
            // A job that is the same in several versions stays so.
            for (version, nth) in &places {
                if from.versions[*version].plan.jobs[*nth] == *job {
                    any |= simplify(&mut candidate, *version, *nth);
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
    candidate.max_steps /= 2;
    if candidate.max_steps > 4
        && let Some(found) = attempt(candidate)
    {
        return Some(found);
    }
    None
}
