//! The embedded catalog: the services of this supervisor and their status (D2).

use std::collections::BTreeMap;

use containerpilot_core::Input;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::{Answer, Instance};
use containerpilot_core::plan::{Plan, Service, Status, Watch, WatchKind};

#[derive(Debug, Default)]
pub(super) struct Embedded {
    /// By service id. A reload does not change ids.
    services: BTreeMap<String, (Service, Status)>,
}

impl Embedded {
    /// Registers, updates or deregisters a service. Returns the new instances for its watches, and the confirmation
    /// that a stopping job waits for (S2).
    pub(super) fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        let mut inputs = Vec::new();
        if let Some(service) = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref()) {
            match desired {
                DesiredService::Absent => drop(self.services.remove(&service.id)),
                DesiredService::Present(status) => {
                    drop(self.services.insert(service.id.clone(), (service.clone(), status)));
                }
            }
            inputs.extend(self.instances_for(plan, |watch| watch.name == service.name));
        }
        if desired == DesiredService::Absent {
            inputs.push(Input::Deregistered { job });
        }
        inputs
    }

    /// The instances of every watch of a plan.
    pub(super) fn inputs(&self, plan: &Plan) -> Vec<Input> {
        self.instances_for(plan, |_| true).collect()
    }

    /// The instances of the watches that `filter` selects. The core ignores those that have not changed.
    fn instances_for<'a>(
        &'a self,
        plan: &'a Plan,
        filter: impl Fn(&Watch) -> bool + 'a,
    ) -> impl Iterator<Item = Input> + 'a {
        let watches = plan
            .watches
            .iter()
            .enumerate()
            .filter(move |(_, watch)| matches!(watch.kind, WatchKind::Service { .. }) && filter(watch));
        watches.map(|(place, watch)| Input::Watched {
            watch: WatchIx::at(place),
            answer: Ok(Answer::Instances(self.healthy(watch))),
        })
    }

    fn healthy(&self, watch: &Watch) -> Vec<Instance> {
        let passing = self.services.values().filter(|(_, status)| *status == Status::Passing);
        passing
            .map(|(service, _)| service)
            .filter(|service| watch.sees(service))
            .map(Service::instance)
            .collect()
    }
}
