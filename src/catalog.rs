//! The embedded catalog: which services of this supervisor are there, and how they are (D2).

use std::collections::BTreeMap;

use containerpilot_core::Input;
use containerpilot_core::effect::Wanted;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Plan, Service, Status, Watch};
use containerpilot_core::reload::Moves;

/// What is advertised.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    present: BTreeMap<JobIx, Status>,
}

impl Catalog {
    /// Makes a service as it is wanted. Answers every watch that follows it, and the job that waits to be let go (S2).
    pub(crate) fn advertise(&mut self, plan: &Plan, job: JobIx, wanted: Wanted) -> Vec<Input> {
        let before = match wanted {
            Wanted::Absent => self.present.remove(&job),
            Wanted::Present(status) => self.present.insert(job, status),
        };
        let mut answers = Vec::new();
        if let Some(service) = service(plan, job)
            && before != self.present.get(&job).copied()
        {
            let watches = plan.watches.iter().enumerate().filter(|(_, watch)| watch.name == service.name);
            answers.extend(watches.map(|(place, watch)| Input::Instances {
                watch: WatchIx::at(place),
                instances: self.healthy(plan, watch),
            }));
        }
        if wanted == Wanted::Absent {
            answers.push(Input::Withdrawn { job });
        }
        answers
    }

    /// Jobs are in other places now. What was removed has left already.
    pub(crate) fn replanned(&mut self, moves: &Moves) {
        let present = std::mem::take(&mut self.present);
        self.present =
            present.into_iter().filter_map(|(job, status)| Some((moves.job(job)?, status))).collect();
    }

    /// What a watch sees at the moment; a watch that a reload has brought begins with it.
    pub(crate) fn answers(&self, plan: &Plan) -> Vec<Input> {
        let watches = plan.watches.iter().enumerate();
        watches
            .map(|(place, watch)| Input::Instances {
                watch: WatchIx::at(place),
                instances: self.healthy(plan, watch),
            })
            .collect()
    }

    fn healthy(&self, plan: &Plan, watch: &Watch) -> Vec<Instance> {
        let passing = self.present.iter().filter(|(_, status)| **status == Status::Passing);
        let services = passing.filter_map(|(job, _)| service(plan, *job));
        let seen = |service: &&Service| {
            service.name == watch.name && watch.tag.as_ref().is_none_or(|tag| service.tags.contains(tag))
        };
        let instance = |service: &Service| Instance {
            id: service.id.clone(),
            address: service.address,
            port: service.port,
        };
        services.filter(seen).map(instance).collect()
    }
}

fn service(plan: &Plan, job: JobIx) -> Option<&Service> {
    plan.jobs.get(job.index())?.service.as_ref()
}
