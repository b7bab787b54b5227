//! Versions that a reload applies without a restart (R5): other checks, services, restart policies and stop times.

use containerpilot_core::plan::{Exec, Health, Job, JobOutput, OnCompletion, Probe, Role, Status};
use containerpilot_core::rng::Rng;

use super::jobs::JobGenerator;
use super::scripts;
use crate::scenario::Version;

/// The version with other definitions of some jobs, whose processes keep running.
pub(super) fn adjusted(rng: &mut Rng, from: &Version) -> Version {
    let mut version = from.clone();
    let names: Vec<String> = from.plan.jobs.iter().map(|job| job.name.clone()).collect();
    let watches = from.plan.watches.clone();
    let mut generator = JobGenerator { rng, names: &names, watches: &watches };
    for (job, script) in version.plan.jobs.iter_mut().zip(&mut version.scripts) {
        if job.role == Role::User && job.replica.is_none() && generator.rng.percent(60) {
            change(&mut generator, job);
            script.checks = scripts::checks(generator.rng, job);
        }
    }
    // Replicas are made from their definition.
    let groups = &mut version.plan.replicas;
    for group in groups {
        if !generator.rng.percent(60) {
            continue;
        }
        change(&mut generator, &mut group.template);
        for new in group.jobs() {
            let mut jobs = version.plan.jobs.iter_mut().zip(&mut version.scripts);
            if let Some((job, script)) = jobs.find(|(job, _)| job.replica == new.replica) {
                script.checks = scripts::checks(generator.rng, &new);
                *job = new;
            }
        }
    }
    version
}

fn change(generator: &mut JobGenerator<'_>, job: &mut Job) {
    let is_action = job.exec.action().is_some();
    let count = generator.rng.pick(&[1, 1, 2, 3]);
    for _ in 0..count {
        match generator.rng.below(10) {
            0..3 if job.health.is_some() || matches!(job.exec, Exec::Program(_)) => {
                change_health(generator, job);
            }
            3..5 if job.service.is_some() => change_service(generator.rng, job),
            5 => job.restarts = generator.restarts(&job.when),
            6 => {
                job.backoff = generator.backoff();
                job.restart_on = generator.restart_on();
            }
            7 => job.stop = generator.stop(),
            8 if !is_action => {
                job.success_codes = generator.success_codes();
                job.start_limit = generator.rng.percent(50).then(|| generator.start_limit());
            }
            _ => {
                let ends = [OnCompletion::Continue, OnCompletion::Continue, OnCompletion::Shutdown];
                (job.on_failure, job.on_success) = (generator.rng.pick(&ends), generator.rng.pick(&ends));
                job.output = match job.output {
                    JobOutput::Raw => JobOutput::default(),
                    JobOutput::Logged(_) => JobOutput::Raw,
                };
                job.groups.push("adjusted".to_owned());
            }
        }
    }
}

/// Other checks, or others in part. A job that says when it is ready keeps the check for that.
fn change_health(generator: &mut JobGenerator<'_>, job: &mut Job) {
    let ready = job.health.iter().flat_map(|health| &health.checks).find(|it| it.probe == Probe::Ready);
    let ready = ready.cloned();
    let old = job.health.take().filter(|_| generator.rng.percent(50));
    let mut health: Health = old.unwrap_or_else(|| generator.health());
    if generator.rng.percent(50)
        && let Some(check) = health.checks.first_mut().filter(|check| check.probe != Probe::Ready)
    {
        let name = std::mem::take(&mut check.name);
        *check = generator.check(0);
        check.name = name;
    }
    health.checks.retain(|check| check.probe != Probe::Ready);
    if let Some(ready) = ready {
        health.checks.retain(|check| check.probe != Probe::Running);
        health.checks.push(ready);
    }
    if health.checks.is_empty() {
        health.checks.push(generator.check(0));
    }
    job.health = Some(health);
    // The agent of the catalog keeps its own definition of when it drops a critical service.
    let dropped = job.service.as_ref().and_then(|service| service.deregister_critical_after);
    generator.set_ttl(job);
    if let Some(service) = &mut job.service {
        service.deregister_critical_after = dropped.map(|dropped| dropped.max(service.ttl));
    }
}

fn change_service(rng: &mut Rng, job: &mut Job) {
    let Some(service) = &mut job.service else { return };
    match rng.below(4) {
        0 => service.tags.push(format!("tag{}", service.tags.len())),
        1 => _ = service.meta.insert("changed".to_owned(), service.meta.len().to_string()),
        2 => service.enable_tag_override = !service.enable_tag_override,
        _ => {
            let status = rng.pick(&[Status::Passing, Status::Warning, Status::Critical]);
            service.initial_status = rng.percent(70).then_some(status);
        }
    }
}
