//! Random requirements and orders of stops (W18, S10), also in rings.

use containerpilot_core::plan::{Plan, RequiredSource, Requirement, Role};
use containerpilot_core::rng::Rng;

/// Adds requirements to some jobs of a plan. Names may be missing after a reload, so some are missing from the start.
pub(super) fn add(rng: &mut Rng, plan: &mut Plan) {
    let mut names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    names.sort();
    names.dedup();
    let watches: Vec<String> = plan.watches.iter().map(|watch| watch.name.clone()).collect();
    for job in plan.jobs.iter_mut().filter(|job| job.role == Role::User) {
        if rng.percent(45) {
            let count = rng.pick(&[1, 1, 2]);
            for _ in 0..count {
                let source = if !watches.is_empty() && rng.percent(20) {
                    RequiredSource::Watch(watches[rng.index(watches.len())].clone())
                } else if rng.percent(2) {
                    RequiredSource::Job("missing".into())
                } else {
                    RequiredSource::Job(names[rng.index(names.len())].clone())
                };
                if !job.requires.iter().any(|other| other.source == source) {
                    job.requires.push(Requirement { source, bind: rng.percent(50) });
                }
            }
        }
        if rng.percent(15) {
            job.stop_after.push(names[rng.index(names.len())].clone());
        }
    }
}
