//! `requires`, `after` and `before` of the services of all layers.

use std::collections::{BTreeMap, BTreeSet};

use crate::depends_on::{self, Condition, Dependency, Planned, Start};
use crate::document::Document;
use crate::error::ImportError;
use crate::yaml::{Map, YamlEntry, YamlNode};

/// The services that Pebble starts: the enabled ones, and those that they require.
pub(super) fn started(services: &Map) -> BTreeSet<&str> {
    let enabled = |entry: &&YamlEntry| entry.value.get("startup").and_then(YamlNode::text) == Some("enabled");
    let mut open: Vec<&YamlEntry> = services.into_iter().filter(enabled).collect();
    let mut started = BTreeSet::new();
    while let Some(entry) = open.pop() {
        if started.insert(entry.key.as_str()) {
            let names = entry.value.get("requires").and_then(YamlNode::list).unwrap_or_default();
            open.extend(names.iter().filter_map(YamlNode::text).filter_map(|name| services.entry(name)));
        }
    }
    started
}

/// Refuses services that require one that does not exist, and an order in a cycle.
pub(super) fn consistent(services: &Map) -> Result<(), ImportError> {
    let mut edges = Vec::new();
    for service in services {
        for (key, name) in names(service, "requires") {
            if services.get(name).is_none() {
                return Err(key.error(format!("`{}` requires `{name}`, which is not defined", service.key)));
            }
        }
        // Pebble ignores a service that is to start after itself.
        let exists = |name: &str| name != service.key && services.get(name).is_some();
        for (key, name) in names(service, "after").filter(|(_, name)| exists(name)) {
            edges.push((service.key.as_str(), name, key.place()));
        }
        for (key, name) in names(service, "before").filter(|(_, name)| exists(name)) {
            edges.push((name, service.key.as_str(), key.place()));
        }
    }
    depends_on::refuse_cycle(&edges)
}

/// The names in a list of a service.
pub(super) fn names<'a>(service: &'a YamlEntry, key: &str) -> impl Iterator<Item = (&'a YamlEntry, &'a str)> {
    let list = service.value.map().and_then(|service| service.entry(key));
    list.into_iter().flat_map(|list| {
        let items = list.value.list().unwrap_or_default().iter();
        items.filter_map(YamlNode::text).map(move |name| (list, name))
    })
}

/// `before` is the dependency of another service.
pub(super) fn before(
    services: &Map,
    started: &BTreeSet<&str>,
    jobs: &mut [Planned],
    document: &mut Document,
) {
    let index: BTreeMap<String, usize> =
        jobs.iter().enumerate().map(|(at, job)| (job.original.clone(), at)).collect();
    for service in services {
        for (key, name) in names(service, "before") {
            match index.get(name).and_then(|at| jobs.get_mut(*at)) {
                Some(_) if name == service.key => {
                    document.not_needed(&key.place(), "it is the service itself")
                }
                Some(job) if started.contains(service.key.as_str()) || job.start != Start::AtStartup => {
                    job.depends.push(Dependency {
                        on: service.key.clone(),
                        condition: Condition::Started,
                        bind: false,
                        optional: false,
                        from: key.place(),
                    });
                }
                _ => document.inexact(&key.place(), format!("`{name}` does not start with it")),
            }
        }
    }
}
