//! The services of advertised jobs: D6, D9 and their settings in the catalog.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use containerpilot_core::plan::{Job, REPLICA_VARIABLE, Service, Status};

use super::{Lower, defaults};
use crate::decode::Spanned;
use crate::diagnostics::{Place, Severity};
use crate::duration;
use crate::fields::{ConfigFields, JobFields};
use crate::interfaces::{self, InterfaceSpec};
use crate::service_name::{is_service_name, service_name_like, service_name_rule};
use crate::span::Span;
use crate::values::{keyword, to_duration, value_of};

impl Lower<'_> {
    /// The service of an advertised job; the inner `None` means that the job is not advertised.
    pub(super) fn service(
        &mut self,
        fields: &JobFields,
        name: Option<&str>,
        ttl: Option<Duration>,
    ) -> Option<Option<Service>> {
        let port = value_of(&fields.port).map(|ports| ports.first).filter(|port| *port != 0);
        let Some(port) = port else {
            self.fields_without_effect(fields);
            return Some(None);
        };
        let section = fields.service.as_ref().map(|given| &given.value);
        let own_name = section.and_then(|section| section.name.as_ref());
        if let Some(given) = own_name.filter(|given| !is_service_name(&given.value)) {
            let help = service_name_rule(&given.value);
            self.error(given.place, format!("`{}` is not a valid service name", given.value), &help);
            return None;
        }
        let job = name;
        let name = own_name.map(|given| given.value.as_str()).or(job);
        if let Some(name) = name.filter(|name| !is_service_name(name)) {
            match (&fields.name, &fields.port) {
                (Some(given), _) => {
                    let message =
                        format!("`{name}` is not a valid service name, which a job with a `port` needs");
                    self.error(given.place, message, &service_name_rule(name));
                }
                (None, port) => {
                    let place = port.as_ref().map_or(fields.place.first_byte(), |given| given.key);
                    let like = service_name_like(name).unwrap_or_else(|| "server".to_owned());
                    let help = format!(
                        "add for example name: \"{like}\"; its program, `{name}`, is not a valid service name"
                    );
                    self.error(place, "a job with a `port` needs a `name`", &help);
                }
            }
        }
        let own_address = section.and_then(|section| section.address.as_ref());
        let address = match own_address {
            None => self.address(fields.interfaces.as_ref()),
            Some(given) => self.own_address(fields, given),
        };
        let own_id = section.and_then(|section| section.id.as_ref());
        let has_number = |id: &str| id.contains(REPLICA_VARIABLE);
        let is_wrong = fields.replicas.is_none() && self.is_reported(fields.place, "replicas");
        let own_id = own_id.filter(|_| !is_wrong);
        if let Some(given) = own_id.filter(|given| fields.replicas.is_some() != has_number(&given.value)) {
            let (message, help) = if fields.replicas.is_some() {
                (
                    "each replica needs an `id` of its own",
                    format!("add the number: \"{}-${{{REPLICA_VARIABLE}}}\"", given.value),
                )
            } else {
                ("`$CONTAINERPILOT_REPLICA` in `id` needs `replicas`", "remove it from the id".to_owned())
            };
            self.error(given.place, message, &help);
            return None;
        }
        let extras = fields.consul.as_ref().map(|given| &given.value);
        let deregister_after = match extras.and_then(|extras| extras.deregister_after.as_ref()) {
            None => Some(None),
            Some(given) => self.with_unit(given, Severity::Error).map(Some),
        };
        let initial_status = match fields.initial_status.as_ref() {
            None => None,
            Some(given) => match keyword::<Status>("initial_status", &given.value) {
                Ok(status) => Some(status),
                Err((message, help)) => {
                    self.error(given.place, message, &help);
                    return None;
                }
            },
        };
        let name = name.filter(|name| is_service_name(name))?;
        Some(Some(Service {
            name: name.to_owned(),
            id: own_id.map_or_else(
                || defaults::service_id(job.unwrap_or(name), self.host),
                |given| given.value.clone(),
            ),
            address: address?,
            port,
            tagged_addresses: section
                .and_then(|section| value_of(&section.tagged_addresses))
                .unwrap_or_default(),
            tags: value_of(&fields.tags).unwrap_or_default(),
            meta: value_of(&fields.meta).unwrap_or_default(),
            ttl: ttl.unwrap_or_default(),
            initial_status,
            legacy_check: false,
            enable_tag_override: extras
                .and_then(|extras| value_of(&extras.enable_tag_override))
                .unwrap_or(false),
            deregister_critical_after: deregister_after?.map(to_duration),
        }))
    }

    /// `service.address`.
    fn own_address(&mut self, fields: &JobFields, given: &Spanned<String>) -> Option<IpAddr> {
        if let Some(interfaces) = fields.interfaces.as_ref().filter(|interfaces| interfaces.written) {
            let message = "`interfaces` has no effect beside `service.address`";
            self.report(Severity::Warning, interfaces.key, message, "remove one of them");
        }
        let address = given.value.parse().ok();
        if address.is_none() {
            let message = format!("`address` must be an IP address, not `{}`", given.value);
            self.error(
                given.place,
                message,
                "for example: \"10.0.0.5\"; host names can be in `taggedAddresses`",
            );
        }
        address
    }

    /// D10: each service id belongs to one job. Jobs of the same name are reported elsewhere.
    pub(super) fn service_ids(&mut self, fields: &ConfigFields, jobs: &[Option<Job>]) {
        let written = fields.jobs.iter().flat_map(|given| &given.value);
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (fields, job) in written.zip(jobs) {
            let Some((job, service)) = job.as_ref().and_then(|job| Some((job, job.service.as_ref()?))) else {
                continue;
            };
            if let Some(other) = taken.insert(&service.id, &job.name).filter(|other| *other != job.name) {
                let id = fields.service.as_ref().and_then(|given| given.value.id.as_ref());
                let place = id.map_or(fields.place.first_byte(), |given| given.place);
                let message = format!("the job `{other}` has the service id `{}`, too", service.id);
                self.error(place, message, "each instance needs an `id` of its own");
            }
        }
    }

    fn with_unit(&mut self, given: &Spanned<String>, severity: Severity) -> Option<i64> {
        match duration::parse_go(&given.value) {
            Ok(time) => Some(time),
            Err(error) => {
                let message =
                    format!("`deregisterCriticalServiceAfter` must be a duration with a unit: {error}");
                self.report(severity, given.place, message, "for example: \"10m\"");
                None
            }
        }
    }

    /// Warns about fields that have no effect without a `port`. 3.8 does not even decode some of them.
    fn fields_without_effect(&mut self, fields: &JobFields) {
        let written =
            |place: Option<(bool, Place)>| place.filter(|(written, _)| *written).map(|(_, place)| place);
        let unused = [
            ("tags", written(fields.tags.as_ref().map(|given| (given.written, given.key)))),
            ("interfaces", written(fields.interfaces.as_ref().map(|given| (given.written, given.key)))),
            (
                "initial_status",
                written(fields.initial_status.as_ref().map(|given| (given.written, given.key))),
            ),
            ("meta", written(fields.meta.as_ref().map(|given| (given.written, given.key)))),
            ("service", written(fields.service.as_ref().map(|given| (given.written, given.key)))),
            ("consul", written(fields.consul.as_ref().map(|given| (given.written, given.key)))),
        ];
        for (key, place) in unused {
            if let Some(place) = place {
                let help = "only a job with a `port` is registered in the catalog";
                self.report(
                    Severity::Warning,
                    place,
                    format!("`{key}` has no effect without a `port`"),
                    help,
                );
            }
        }
    }

    /// The address of a service: the first match of `interfaces` (D6).
    pub(super) fn address(&mut self, given: Option<&Spanned<Vec<Spanned<String>>>>) -> Option<IpAddr> {
        let given = given?;
        let mut specs = Vec::new();
        for one in &given.value {
            match InterfaceSpec::parse(&one.value) {
                Ok(spec) => specs.push(spec),
                Err(error) => {
                    self.error(part(one, &error.place), error.to_string(), &error.help);
                    return None;
                }
            }
        }
        let chosen = interfaces::choose(&specs, self.host.addresses());
        if chosen.is_none() {
            let place = if given.written { given.place } else { given.place.first_byte() };
            let help = if self.host.addresses().is_empty() {
                "this host has no network address; for example: interfaces: \"static:10.0.0.5\"".to_owned()
            } else {
                format!("the addresses of this host: {}", interfaces::summary(self.host.addresses()))
            };
            self.error(place, "no address of this host matches `interfaces`", &help);
        }
        chosen
    }
}

/// The place of a part of a string. If the string has escapes, only the place of the whole is known.
fn part(given: &Spanned<String>, range: &std::ops::Range<usize>) -> Place {
    let whole = given.place.span;
    if whole.range().len() != given.value.len() + 2 {
        return given.place;
    }
    let start = whole.start as usize + 1;
    Place { span: Span::new(start + range.start, start + range.end), ..given.place }
}
