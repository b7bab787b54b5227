//! Replicas: several jobs from one definition (W20).

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{EventPattern, Job, Repeat, ReplicaGroup, Restarts, Role, Trigger, When};
use containerpilot_core::request::Request;
use containerpilot_core::rng::Rng;

use super::scripts;
use super::times::time;
use crate::scenario::{Action, Version};

/// The most replicas of a job.
const MAX: u16 = 4;

/// Makes replicas of a job, and has another job wait for them. Returns the places of the replicas.
pub(super) fn change(rng: &mut Rng, version: &mut Version) -> Vec<usize> {
    let plan = &mut version.plan;
    let is_alone = |job: &&Job| plan.jobs.iter().filter(|other| other.name == job.name).count() == 1;
    let plain = |job: &&Job| job.role == Role::User && job.exec.is_some() && !job.when.is_periodic();
    let candidates: Vec<String> =
        plan.jobs.iter().filter(plain).filter(is_alone).map(|job| job.name.clone()).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let name = candidates[rng.index(candidates.len())].clone();
    let Some(place) = plan.jobs.iter().position(|job| job.name == name) else { return Vec::new() };
    let mut template = plan.jobs.remove(place);
    version.scripts.remove(place);
    // A group that waits for itself never starts.
    let waits_for_itself = |event: &EventPattern| event.source == Source::Job(name.clone());
    if template.when.patterns().iter().any(waits_for_itself) || rng.percent(50) {
        template.when = When::at_startup();
    }
    let count = rng.pick(&[1, 2, 2, 3]);
    let group = ReplicaGroup { template, configured: count, count, ports: None };
    let jobs: Vec<Job> = group.jobs().collect();
    let places: Vec<usize> = (place..place + jobs.len()).collect();
    for (nth, job) in jobs.into_iter().enumerate() {
        version.scripts.insert(place + nth, scripts::script(rng, &job));
        plan.jobs.insert(place + nth, job);
    }
    plan.replicas.push(group);
    let others = plan.jobs.iter_mut().filter(|job| job.replica.is_none()).find(|job| job.role == Role::User);
    if let Some(other) = others {
        let code = rng.pick(&[
            Code::Healthy,
            Code::Healthy,
            Code::BecameHealthy,
            Code::ExitSuccess,
            Code::ExitSuccess,
            Code::Stopped,
            Code::ExitFailed,
            Code::Unhealthy,
        ]);
        let event = EventPattern { source: Source::Job(name), code };
        let repeat = rng.pick(&[Repeat::Once, Repeat::Once, Repeat::Each]);
        other.when.trigger = Trigger::Event { event, repeat };
        if repeat == Repeat::Each && other.restarts == Restarts::Unlimited {
            // W6: an error of the configuration.
            other.restarts = Restarts::Limited(1);
        }
    }
    places
}

/// The version with another number of replicas in its configuration.
pub(super) fn scaled(rng: &mut Rng, from: &Version) -> Version {
    let count = rng.pick(&[1, 2, 3, MAX]);
    let mut version = with_count(rng, from, count);
    for group in &mut version.plan.replicas {
        group.configured = group.count;
    }
    version
}

/// All versions with the numbers of replicas that `scale` may set.
pub(super) fn scaled_by_request(rng: &mut Rng, versions: &[Version]) -> Vec<Version> {
    let mut scaled = Vec::new();
    for (nth, from) in versions.iter().enumerate() {
        for count in 1..=MAX {
            if from.plan.replicas.first().is_some_and(|group| group.configured != count) {
                scaled.push(Version { scaled_from: Some((nth, count)), ..with_count(rng, from, count) });
            }
        }
    }
    scaled
}

/// Requests to scale. Some are refused.
pub(super) fn scales(rng: &mut Rng, version: &Version) -> Vec<(Duration, Action)> {
    let Some(group) = version.plan.replicas.first() else { return Vec::new() };
    let count = rng.pick(&[1, 1, 2, 4]);
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 1, 10, 100, 200, 500, 1_000, 2_000]);
        let count = rng.pick(&[0, 1, 1, 2, 2, 3, 3, MAX, MAX, 1_001]);
        let name = if rng.percent(5) { "missing" } else { group.template.name.as_str() };
        (at, Action::Request(Request::Scale(name.to_owned(), count)))
    };
    (0..count).map(|_| one(rng)).collect()
}

/// The version with a number of replicas. The scripts of replicas that stay are the same.
fn with_count(rng: &mut Rng, from: &Version, count: u16) -> Version {
    let mut version = from.clone();
    let Some(group) = from.plan.replicas.first() else { return version };
    let Ok(plan) = from.plan.scaled(&group.template.name, count) else { return version };
    let mut script = |job: &Job| {
        let place = from.plan.jobs.iter().position(|old| old.name == job.name && old.replica.is_some());
        place.and_then(|place| from.scripts.get(place).cloned()).unwrap_or_else(|| scripts::script(rng, job))
    };
    let mut others = from.plan.jobs.iter().zip(&from.scripts).filter(|(job, _)| job.replica.is_none());
    version.scripts = plan
        .jobs
        .iter()
        .map(|job| match job.replica {
            Some(_) => script(job),
            None => others.next().map_or_else(|| script(job), |(_, script)| script.clone()),
        })
        .collect();
    version.plan = plan;
    version
}

/// Rolling restarts.
pub(super) fn rolling_restarts(rng: &mut Rng, places: &[usize]) -> Vec<(Duration, Action)> {
    let count = rng.pick(&[0, 0, 1, 1, 2]);
    let jobs: Vec<JobIx> = places.iter().map(|place| JobIx::at(*place)).collect();
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 10, 100, 500, 1_000, 2_000]);
        (at, Action::Request(Request::RollingRestart(jobs.clone())))
    };
    (0..count).map(|_| one(rng)).collect()
}
