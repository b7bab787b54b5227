//! Random changes of a plan, for reloads.

use std::time::Duration;

use containerpilot_core::plan::{Catalog, Drain, Job, Role};

use super::jobs::JobGenerator;
use super::plain::make_coprocess;
use super::{NAMES, scripts, stop_timeout, watches};
use crate::scenario::{JobScript, Version};
use containerpilot_core::rng::Rng;

/// The nth version of a plan: jobs and watches are kept, changed, removed and added.
pub(super) fn other(rng: &mut Rng, from: &Version, nth: usize) -> Version {
    let mut plan = from.plan.clone();
    let names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    let embedded = plan.catalog == Catalog::Embedded;
    if rng.percent(30) {
        plan.watches = watches(rng, embedded, &names);
    } else if rng.percent(20) {
        plan.watches.reverse();
    } else if rng.percent(20)
        && let Some(watch) = plan.watches.first_mut()
    {
        watch.interval += Duration::from_secs(1);
    }
    // R5: another process in each version. The model does not know checks that change while the process keeps running.
    let version = nth.to_string();
    let mut generator = JobGenerator { rng, names: &names, watches: &plan.watches };
    let mut jobs: Vec<(Job, JobScript)> = Vec::new();
    for (job, script) in plan.jobs.iter().zip(&from.scripts) {
        let choice = generator.rng.below(100);
        // The main program and the telemetry job do not come from the configuration.
        let is_internal = matches!(job.role, Role::Main | Role::Telemetry);
        match choice {
            0..55 => jobs.push((job.clone(), script.clone())),
            _ if is_internal => jobs.push((job.clone(), script.clone())),
            55..70 => {
                let mut job = generator.job(&job.name);
                job.process.env.insert("VERSION".to_owned(), version.clone());
                if generator.rng.percent(8) {
                    make_coprocess(&mut job);
                }
                let script = scripts::script(generator.rng, &job);
                jobs.push((job, script));
            }
            // The same except for a detail, with the same script.
            70..82 => {
                let mut job = job.clone();
                job.stop.drain = match &job.stop.drain {
                    Drain::For(time) => Drain::For(*time + Duration::from_millis(10)),
                    Drain::Until { program, timeout } => {
                        let timeout = timeout.map(|time| time + Duration::from_millis(10));
                        Drain::Until { program: program.clone(), timeout }
                    }
                };
                jobs.push((job, script.clone()));
            }
            _ => {}
        }
    }
    let new = generator.rng.pick(&[0, 0, 1, 1, 2]);
    for _ in 0..new {
        let name = generator.rng.pick(&NAMES);
        let taken = jobs.iter().any(|(job, _)| job.name == name);
        if taken && generator.rng.percent(90) {
            continue;
        }
        let mut job = generator.job(name);
        job.process.env.insert("VERSION".to_owned(), version.clone());
        let script = scripts::script(generator.rng, &job);
        // The telemetry job stays last.
        let place = jobs.iter().position(|(job, _)| job.role == Role::Telemetry).unwrap_or(jobs.len());
        jobs.insert(generator.rng.index(place + 1), (job, script));
    }
    if rng.percent(15) {
        jobs.reverse();
    }
    if jobs.is_empty()
        && let (Some(job), Some(script)) = (plan.jobs.first(), from.scripts.first())
    {
        jobs.push((job.clone(), script.clone()));
    }
    let (jobs, scripts) = jobs.into_iter().unzip();
    plan.jobs = jobs;
    if rng.percent(25) {
        plan.stop_timeout = stop_timeout(rng);
    }
    Version { plan, scripts, scaled_from: None }
}
