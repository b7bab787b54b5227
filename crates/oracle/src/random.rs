//! Random scenarios.
//!
//! Most times are taken from a few round ones, so that items often happen at the same instant. Most plans are small,
//! because most bugs need few jobs and many orders of events.

mod actions;
mod adjusted;
mod jobs;
mod plain;
mod replicas;
mod requires;
mod schedules;
mod scripts;
mod signals;
mod times;
mod versions;

use containerpilot_core::plan::{self, Catalog, Exec, Plan, Repeat, Role, Signal, Target, Trigger};
use containerpilot_core::rng::{Rng, mix};

pub use self::plain::{consul, plain_job, plain_plan, service};
pub(crate) use self::schedules::every_minute;
use self::times::{SHORT, time};
use crate::scenario::{Action, Scenario};

/// The scenario of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut rng = Rng::from_seed(seed);
    let mut first = versions::first(&mut rng);
    // Later additions have their own generator, so that an old seed still gives the same schedule.
    let mut requires_rng = Rng::from_seed(mix(mix(mix(seed))));
    // Files of version 2, whose maintenance mode pauses schedules, have no `requires`.
    if !first.plan.pass_signals && !first.plan.legacy_maintenance && requires_rng.percent(35) {
        requires::add(&mut requires_rng, &mut first.plan);
    }
    let mut queue_rng = Rng::from_seed(mix(mix(mix(mix(seed)))));
    if queue_rng.percent(25) {
        queue_events(&mut queue_rng, &mut first.plan);
    }
    if !first.plan.pass_signals && queue_rng.percent(25) {
        add_actions(&mut queue_rng, &mut first.plan);
    }
    let mut do_rng = Rng::from_seed(mix(mix(mix(mix(mix(mix(mix(seed))))))));
    if !first.plan.pass_signals && do_rng.percent(20) {
        add_actions(&mut do_rng, &mut first.plan);
    }
    if do_rng.percent(60) {
        change_actions(&mut do_rng, &mut first.plan);
    }
    let plan = &first.plan;
    let mut actions = actions::actions(&mut rng, &plan.watches);
    if plan.catalog == Catalog::Embedded {
        // The embedded catalog answers by itself.
        actions.retain(|(_, action)| !matches!(action, Action::Instances(..)));
    }
    // Later additions have their own generator, so that an old seed still gives the same schedule.
    let mut more_rng = Rng::from_seed(mix(seed));
    let mut first = first;
    let mut schedule_rng = Rng::from_seed(mix(mix(seed)));
    if schedule_rng.percent(30) && !first.plan.legacy_maintenance && !first.plan.pass_signals {
        schedules::change(&mut schedule_rng, &mut first.plan);
        actions.extend(actions::clocks(&mut schedule_rng));
    }
    let mut replica_rng = Rng::from_seed(mix(mix(mix(mix(mix(seed))))));
    let mut replicas = Vec::new();
    // The model does not know rolling restarts of actions.
    let acts = first.plan.jobs.iter().any(|job| job.exec.action().is_some());
    if replica_rng.percent(15) && !first.plan.pass_signals && !acts {
        replicas = replicas::change(&mut replica_rng, &mut first);
        actions.extend(replicas::rolling_restarts(&mut replica_rng, &replicas));
    }
    let mut versions = vec![first];
    if !versions[0].plan.pass_signals {
        actions.extend(actions::commands(&mut more_rng, versions[0].plan.jobs.len()));
        let others = more_rng.pick(&[0, 0, 0, 1, 1, 2]);
        // The other versions of a plan with replicas have another number of them.
        let (others, scaled) = if replicas.is_empty() { (others, 0) } else { (0, others) };
        for _ in 0..scaled {
            let other = replicas::scaled(&mut replica_rng, &versions[0]);
            versions.push(other);
        }
        for _ in 0..others {
            let from = more_rng.index(versions.len());
            let other = versions::other(&mut more_rng, &versions[from], versions.len());
            versions.push(other);
        }
        actions.extend(actions::reloads(&mut more_rng, versions.len()));
        let mut adjusted_rng = Rng::from_seed(mix(mix(mix(mix(mix(mix(seed)))))));
        if adjusted_rng.percent(30) {
            let from = adjusted_rng.index(versions.len());
            let other = adjusted::adjusted(&mut adjusted_rng, &versions[from]);
            versions.push(other);
            actions.extend(actions::reloads(&mut adjusted_rng, versions.len()));
        }
        if !replicas.is_empty() && adjusted_rng.percent(50) {
            actions.extend(replicas::scales(&mut adjusted_rng, &versions[0]));
            let scaled = replicas::scaled_by_request(&mut adjusted_rng, &versions);
            versions.extend(scaled);
        }
    }
    let mut signal_rng = Rng::from_seed(!mix(seed));
    if !versions[0].plan.pass_signals && signal_rng.percent(20) {
        let same = signal_rng.percent(70);
        let stop_seed = signal_rng.number();
        for (nth, version) in versions.iter_mut().enumerate() {
            // Most reloads do not change them, and those of one configuration with several numbers of replicas must not.
            let nth = version.scaled_from.map_or(nth, |(base, _)| base);
            let seed = if same { stop_seed } else { stop_seed ^ nth as u64 };
            signals::change(&mut Rng::from_seed(seed), &mut version.plan);
        }
        actions.extend(signals::signals(&mut signal_rng));
    }
    Scenario {
        versions,
        actions,
        ready_at: time(&mut rng, &SHORT),
        order: rng.number(),
        late: rng.percent(10),
        max_steps: rng.pick(&[15, 20, 30, 60, 150]),
        has_twin: false,
        recorded: None,
    }
}

/// Has some jobs run once for every event (W21).
fn queue_events(rng: &mut Rng, plan: &mut Plan) {
    for job in &mut plan.jobs {
        if let Trigger::Event { repeat, .. } | Trigger::All { repeat, .. } | Trigger::Any { repeat, .. } =
            &mut job.when.trigger
            && *repeat == Repeat::Each
            && rng.percent(60)
        {
            *repeat = Repeat::EachQueued;
        }
    }
}

/// Replaces some programs by actions (W19).
fn add_actions(rng: &mut Rng, plan: &mut Plan) {
    let names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    for job in plan.jobs.iter_mut().filter(|job| job.role == Role::User && job.exec.program().is_some()) {
        let plain = job.health.is_none() && job.service.is_none() && job.ready.is_none();
        if !plain || !rng.percent(50) {
            continue;
        }
        let target = Target::Job(names[rng.index(names.len())].clone());
        job.exec = Exec::Action(match rng.below(4) {
            0..2 => plan::Action::Signal(rng.pick(&[Signal::USR1, Signal::KILL]), target),
            2 => plan::Action::SetEnv(vec![("SET".to_owned(), Some(job.name.clone()))]),
            _ => plan::Action::SetEnv(vec![("SET".to_owned(), None)]),
        });
        (job.timeout, job.start_limit, job.success_codes) = (None, None, Vec::new());
    }
}

/// Replaces some actions by those that change the state of jobs or of the supervisor (W19).
fn change_actions(rng: &mut Rng, plan: &mut Plan) {
    let names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    for job in plan.jobs.iter_mut().filter(|job| job.exec.action().is_some()) {
        if !rng.percent(70) {
            continue;
        }
        let target = Target::Job(names[rng.index(names.len())].clone());
        job.exec = Exec::Action(match rng.below(12) {
            0..3 => plan::Action::Start(target),
            3..6 => plan::Action::Stop(target),
            6..9 => plan::Action::Restart(target),
            9 => plan::Action::Maintenance(rng.percent(50)),
            10 => plan::Action::Reload,
            _ => plan::Action::Shutdown(rng.pick(&[0, 7])),
        });
    }
}
