//! The embedded catalog: which services of this supervisor are there, and how they are (D2).

use containerpilot_core::Input;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Plan, Service, Status, Watch};
use std::collections::BTreeMap;

/// What is advertised, by its id, which outlives every plan.
#[derive(Debug, Default)]
pub(super) struct Embedded {
    present: BTreeMap<String, (Service, Status)>,
}

impl Embedded {
    /// Makes a service as it is desired. Answers every watch that follows it, and the job that waits to be let go (S2).
    pub(super) fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        let mut answers = Vec::new();
        if let Some(service) = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref()) {
            match desired {
                DesiredService::Absent => drop(self.present.remove(&service.id)),
                DesiredService::Present(status) => {
                    drop(self.present.insert(service.id.clone(), (service.clone(), status)));
                }
            }
            answers.extend(self.seen_by(plan, |watch| watch.name == service.name));
        }
        if desired == DesiredService::Absent {
            answers.push(Input::Deregistered { job });
        }
        answers
    }

    /// What every watch of a plan sees now.
    pub(super) fn answers(&self, plan: &Plan) -> Vec<Input> {
        self.seen_by(plan, |_| true).collect()
    }

    /// What some watches see now. Whoever has seen the same before knows that nothing has changed.
    fn seen_by<'a>(
        &'a self,
        plan: &'a Plan,
        which: impl Fn(&Watch) -> bool + 'a,
    ) -> impl Iterator<Item = Input> + 'a {
        let watches = plan.watches.iter().enumerate().filter(move |(_, watch)| which(watch));
        watches.map(|(place, watch)| Input::Instances {
            watch: WatchIx::at(place),
            instances: self.healthy(watch),
        })
    }

    fn healthy(&self, watch: &Watch) -> Vec<Instance> {
        let passing = self.present.values().filter(|(_, status)| *status == Status::Passing);
        passing
            .map(|(service, _)| service)
            .filter(|service| watch.sees(service))
            .map(Service::instance)
            .collect()
    }
}
