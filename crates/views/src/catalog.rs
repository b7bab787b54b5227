//! What is known about the catalog (D11).

use std::collections::BTreeMap;

use containerpilot_core::Time;
use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::{Plan, Service};

/// What is known about the catalog.
#[derive(Debug, Default)]
pub struct CatalogReport {
    /// `None` for the embedded catalog.
    pub consul: Option<ConsulReport>,
    /// The service of each job, by its index; `None` for a job without a service.
    pub services: Vec<Option<Known>>,
}

impl CatalogReport {
    /// Asks about the service of each job.
    pub fn new(catalog: &impl CatalogKnowledge, plan: &Plan) -> Self {
        let services = plan.jobs.iter().map(|job| catalog.known(job.service.as_ref()?));
        Self { consul: catalog.consul(), services: services.collect() }
    }

    pub fn kind(&self) -> &'static str {
        if self.consul.is_some() { "consul" } else { "embedded" }
    }

    /// The embedded catalog is always up.
    pub fn is_up(&self) -> Option<bool> {
        self.consul.as_ref().map_or(Some(true), |consul| consul.up)
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.consul.as_ref()?.trouble.as_ref()
    }
}

/// What is known about Consul.
#[derive(Debug, Default)]
pub struct ConsulReport {
    /// True if the last request of each service and watch was answered and accepted; `None` before the first result.
    pub up: Option<bool>,
    pub trouble: Option<Trouble>,
}

/// Knows what the catalog has answered. The core does not know it.
pub trait CatalogKnowledge {
    /// What is known about Consul; `None` for the embedded catalog.
    fn consul(&self) -> Option<ConsulReport>;
    /// What is known about a service.
    fn known(&self, service: &Service) -> Option<Known>;
    /// Why Consul does not answer a watch.
    fn watch_trouble(&self, watch: &str) -> Option<Trouble>;
    /// Why Consul does not answer the requests about a lock.
    fn lock_trouble(&self, lock: &str) -> Option<Trouble>;
}

/// The desired state of each service by its id, and since when.
#[derive(Debug, Default)]
pub struct DesiredServices(BTreeMap<String, (DesiredService, Option<Time>)>);

impl DesiredServices {
    /// Sets the state. `since` is `None` if it is not known how long it has been so.
    pub fn set(&mut self, id: &str, desired: DesiredService, since: Option<Time>) {
        match self.0.get_mut(id) {
            Some(known) if known.0 == desired => {}
            Some(known) => *known = (desired, since),
            None => drop(self.0.insert(id.to_owned(), (desired, since))),
        }
    }

    pub fn get(&self, id: &str) -> Option<DesiredService> {
        self.0.get(id).map(|(desired, _)| *desired)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets services that should not be in the catalog.
    pub fn forget_absent(&mut self) {
        self.0.retain(|_, (desired, _)| *desired != DesiredService::Absent);
    }

    /// What is known about a service in the embedded catalog, which has what is desired.
    pub fn known(&self, service: &Service) -> Known {
        let (desired, since) = self.0.get(&service.id).copied().unwrap_or((DesiredService::Absent, None));
        Known { confirmed: Some(desired), since, ..Known::default() }
    }
}
