//! Replicas: several jobs from one definition (W20).

use std::borrow::Cow;
use std::collections::BTreeMap;

use containerpilot_core::plan::{Job, PORT_VARIABLE, PortRange, Probe, ReplicaGroup};

use super::Lower;
use crate::default_names::{coprocess_name, job_name};
use crate::diagnostics::Place;
use crate::fields::{ConfigFields, JobFields};
use crate::values::value_of;

/// How often a job is made from its definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replicas {
    count: u16,
    ports: Option<PortRange>,
}

impl Replicas {
    /// The definition of the replicas of a job.
    pub(super) fn of(self, template: Job) -> ReplicaGroup {
        let Self { count, ports } = self;
        ReplicaGroup { template, configured: count, count, ports }
    }
}

impl Lower<'_> {
    /// The replicas of a job; `None` without `replicas`.
    pub(super) fn replicas(&mut self, fields: &JobFields, job: Option<&Job>) -> Option<Replicas> {
        let ports = value_of(&fields.port).filter(|ports| ports.first != 0);
        let place = fields.port.as_ref().map_or(fields.place.first_byte(), |given| given.place);
        let Some(given) = &fields.replicas else {
            // One that is wrong is an error already.
            if self.is_reported(fields.place, "replicas") {
                return None;
            }
            if let Some(PortRange { first, last }) = ports.filter(|ports| ports.count() > 1) {
                let help = format!("add for example replicas: 2, or write one port: {first}");
                self.error(place, format!("a range of ports, {first} to {last}, needs `replicas`"), &help);
            }
            self.own_ports(fields, job, "`replicas`");
            return None;
        };
        let count = u16::try_from(given.value).ok()?;
        match ports {
            None => self.own_ports(fields, job, "a `port`"),
            Some(ports) if ports.count() < count => {
                let have = match ports.count() {
                    1 => "1 port".to_owned(),
                    many => format!("{many} ports"),
                };
                let last = ports.first.checked_add(count - 1);
                let help = last.map_or_else(
                    || "choose a lower first port".to_owned(),
                    |last| format!("each replica needs one: \"{}-{last}\"", ports.first),
                );
                self.error(place, format!("{have} for {count} replicas"), &help);
            }
            Some(_) => {}
        }
        Some(Replicas { count, ports })
    }

    /// Reports checks of `$CONTAINERPILOT_PORT` in a job that has no such port.
    fn own_ports(&mut self, fields: &JobFields, job: Option<&Job>, missing: &str) {
        let checks = job.and_then(|job| job.health.as_ref()).map(|health| health.checks.as_slice());
        let written = fields.health.iter().flat_map(|given| &given.value.items);
        for (check, written) in checks.unwrap_or_default().iter().zip(written) {
            let is_own = match &check.probe {
                Probe::Http(http) => http.target.port == 0,
                Probe::Tcp { port, .. } => *port == 0,
                Probe::Running | Probe::Ready | Probe::Exec(_) => false,
            };
            if is_own {
                let message = format!("`${PORT_VARIABLE}` needs {missing} in this job");
                self.error(written.place.first_byte(), message, "write the number of the port");
            }
        }
    }

    /// W20: the name of the definition and the names of its replicas belong to it alone.
    pub(super) fn replica_names(&mut self, fields: &ConfigFields) {
        let jobs = fields.jobs.iter().flat_map(|given| &given.value);
        let mut taken: BTreeMap<Cow<'_, str>, (Place, bool)> = BTreeMap::new();
        for job in jobs.clone() {
            if let Some(name) = job_name(job) {
                let place = job.name.as_ref().map_or(job.place.first_byte(), |given| given.place);
                let replicated = job.replicas.is_some();
                if taken.get(&name).is_some_and(|(_, other)| replicated || *other) {
                    self.error(place, format!("another job is named `{name}`"), RENAME);
                }
                taken.insert(name, (place, replicated));
            }
        }
        for one in fields.coprocesses.iter().flat_map(|given| &given.value) {
            if let Some(name) = coprocess_name(one) {
                taken.insert(name.into(), (one.place.first_byte(), false));
            }
        }
        for job in jobs {
            let (Some(name), Some(replicas)) = (job_name(job), &job.replicas) else { continue };
            for number in 1..=u16::try_from(replicas.value).unwrap_or(0) {
                if let Some((place, _)) = taken.get(ReplicaGroup::name_of(&name, number).as_str()) {
                    let message = format!("`{name}-{number}` is the name of a replica of `{name}`");
                    self.error(*place, message, RENAME);
                }
            }
        }
    }
}

const RENAME: &str = "rename one of them";
