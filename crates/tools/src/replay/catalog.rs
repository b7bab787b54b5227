//! What was known of the catalog at a time of a recording.

use std::sync::Arc;

use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Catalog, Plan, Service};
use containerpilot_core::{Core, Effect, Time};
use containerpilot_views::catalog::{CatalogKnowledge, ConsulReport, DesiredServices};

/// What was known of the catalog. The answers of Consul are not in a recording; the embedded catalog has what the core
/// has decided.
#[derive(Debug, Default)]
pub(super) struct RecordedCatalog {
    /// With the time of each change that was played.
    services: DesiredServices,
    is_consul: bool,
}

impl RecordedCatalog {
    /// Follows the effects of a step. `plan` is that of the core before the step.
    pub(super) fn follow(&mut self, plan: Arc<Plan>, now: Time, effects: &[Effect]) {
        let mut plan = plan;
        for effect in effects {
            match effect {
                Effect::Advertise { job, desired } => {
                    let service = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref());
                    if let Some(service) = service {
                        self.services.set(&service.id, *desired, Some(now));
                    }
                }
                Effect::PlanReplaced { plan: next, .. } => {
                    self.services.forget_absent();
                    plan = Arc::clone(next);
                }
                _ => {}
            }
        }
    }

    /// What is known in this state of the core. Since when is not known of what the recording began with.
    pub(super) fn complete(&mut self, core: &Core) {
        self.is_consul = matches!(core.plan().catalog, Catalog::Consul(_));
        for (nth, job) in core.plan().jobs.iter().enumerate() {
            if let Some(service) = &job.service {
                self.services.set(&service.id, core.status(JobIx::at(nth)).desired, None);
            }
        }
    }
}

impl CatalogKnowledge for RecordedCatalog {
    fn consul(&self) -> Option<ConsulReport> {
        self.is_consul.then(ConsulReport::default)
    }

    fn known(&self, service: &Service) -> Option<Known> {
        (!self.is_consul).then(|| self.services.known(service))
    }

    fn watch_trouble(&self, _: &str) -> Option<Trouble> {
        None
    }

    fn lock_trouble(&self, _: &str) -> Option<Trouble> {
        None
    }
}
