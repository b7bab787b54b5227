//! The layers of Pebble: each service and each check becomes a job.

mod checks;
mod layers;
mod service;
mod strict;
mod surroundings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ImportError;
use crate::conditions::on;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::files::Files;
use crate::merge::Loader;
use crate::planned::{self, Condition, Dependency, Planned, Start};
use crate::yaml::{self, Map, YamlEntry, YamlNode};

use service::Converter;

/// How long Pebble waits after SIGTERM.
const KILL_DELAY: Duration = Duration::from_secs(5);
/// How long Pebble waits at its shutdown after the longest `kill-delay`.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// The first delay before a restart, and the longest.
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_LIMIT: Duration = Duration::from_secs(30);

/// Reads layers, or directories of layers, in their order.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let (services, checks) = read(paths, files, document)?;
    if services.entries().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let message = "no layer has a service: expected files such as `001-base.yaml` with `services:`";
        return Err(ImportError::Empty { path, message });
    }
    for map in [&services, &checks] {
        planned::limit(map.entries().len(), map.entries().first().map(YamlEntry::place))?;
    }
    consistent(&services)?;
    checks::consistent(&checks, &services)?;
    let started = started(&services);
    let mut jobs: Vec<Planned> = Vec::new();
    let mut reactions = Vec::new();
    for entry in &services {
        let mut job = Converter::new(entry, &started, document);
        job.service()?;
        reactions.extend(job.reactions.drain(..).map(|reaction| (jobs.len(), reaction)));
        jobs.push(job.planned());
    }
    before(&services, &started, &mut jobs, document);
    let longest_stop = jobs.iter().map(|job| job.stop).max().unwrap_or_default().max(KILL_DELAY);
    let names = planned::add_all(jobs, KILL_DELAY, document)?;
    defaults(longest_stop, document);
    for (of, reaction) in reactions {
        let source = names.get(of).cloned().unwrap_or_default();
        let name = document.free_name(&format!("{source}-{}", reaction.event));
        let when = on(&source, "once", reaction.event);
        let shutdown = Value::Object(vec![Field::new("shutdown", reaction.code)]);
        let fields = vec![Field::new("do", shutdown), Field::new("when", when)];
        document.jobs.push(Job { name, from: Some(reaction.from), fields });
    }
    checks::add(&services, &names, &started, &checks, document)?;
    planned::limit(document.jobs.len(), services.entries().first().map(YamlEntry::place))?;
    if !started.is_empty() && all_may_end(&services, &started) && !checks.into_iter().any(checks::is_enabled)
    {
        document.remark(
            "Pebble keeps running when all of its services have ended. containerpilot then exits, with the code of the first \
             that failed.",
        );
    }
    document.sort_by_line();
    Ok(())
}

/// The defaults of Pebble, and how long its shutdown takes at most.
fn defaults(longest_stop: Duration, document: &mut Document) {
    let shutdown = longest_stop.saturating_add(AFTER_KILL);
    document.top.set("stopTimeout", shutdown, None);
    let backoff = service::restart_backoff((BACKOFF, None), (BACKOFF_LIMIT, None));
    let defaults = vec![Field::new("killAfter", KILL_DELAY), Field::new("restartBackoff", backoff)];
    document.top.set("defaults", Value::Object(defaults), None);
    document.top.note("defaults", "What Pebble does with a service that sets nothing else.");
}

/// Whether each service that Pebble starts may end without a restart and without a shutdown.
fn all_may_end(services: &Map, started: &BTreeSet<&str>) -> bool {
    let ignored =
        |service: &YamlEntry, key| service.value.get(key).and_then(YamlNode::text) == Some("ignore");
    let may_end = |service: &YamlEntry| ["on-success", "on-failure"].iter().any(|key| ignored(service, key));
    services.into_iter().filter(|service| started.contains(service.key.as_str())).all(may_end)
}

/// The services and checks of all layers.
fn read(paths: &[String], files: &dyn Files, document: &mut Document) -> Result<(Map, Map), ImportError> {
    let mut loader = Loader::new(files);
    let (mut services, mut checks) = (Map::default(), Map::default());
    let mut layers = Vec::new();
    for path in paths {
        layers.extend(layers::layers(path, files)?);
    }
    for path in layers {
        for layer in yaml::read(files, &path)? {
            let Some(layer) = layer.map() else {
                if layer.is_null() {
                    continue;
                }
                return Err(layer.error(format!("a layer is a mapping, not {}", layer.what())));
            };
            for section in layer {
                match section.key.as_str() {
                    "summary" | "description" => {
                        document.not_needed(&section.place(), "only a description");
                    }
                    "services" => {
                        strict::section(section, strict::SERVICE)?;
                        combine(&mut services, section, &mut loader)?;
                    }
                    "checks" => {
                        strict::section(section, strict::CHECK)?;
                        combine(&mut checks, section, &mut loader)?;
                    }
                    "log-targets" => {
                        strict::section(section, strict::LOG_TARGET)?;
                        let why = "the log of the container goes to stdout; for OpenTelemetry use `otlp: { endpoint: … }`";
                        document.inexact(&section.place(), why);
                    }
                    "workloads" => {
                        document.inexact(&section.place(), "write its environment and user in the jobs");
                    }
                    "pairing" => {
                        document.inexact(&section.place(), "only the owner of the control socket has access");
                    }
                    key => {
                        return Err(
                            section.error(format!("Pebble does not know the section `{key}`: remove it"))
                        );
                    }
                }
            }
        }
    }
    Ok((services, checks))
}

/// Adds the services or checks of a layer: `override` says how.
fn combine(all: &mut Map, section: &YamlEntry, loader: &mut Loader<'_>) -> Result<(), ImportError> {
    for entry in section.value.map().into_iter().flatten() {
        let value = match (entry.value.get("override").and_then(YamlNode::text), all.get(&entry.key)) {
            (Some("merge"), Some(old)) => loader.merge_values(old, &entry.value)?,
            (Some("merge" | "replace"), _) => entry.value.clone(),
            _ => {
                return Err(
                    entry.error(format!("`{}` needs `override: replace` or `override: merge`", entry.key))
                );
            }
        };
        all.set(entry.with(value));
    }
    Ok(())
}

/// The services that Pebble starts: the enabled ones, and those that they require.
fn started(services: &Map) -> BTreeSet<&str> {
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
fn consistent(services: &Map) -> Result<(), ImportError> {
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
    planned::refuse_cycle(&edges)
}

/// The names in a list of a service.
fn names<'a>(service: &'a YamlEntry, key: &str) -> impl Iterator<Item = (&'a YamlEntry, &'a str)> {
    let list = service.value.map().and_then(|service| service.entry(key));
    list.into_iter().flat_map(|list| {
        let items = list.value.list().unwrap_or_default().iter();
        items.filter_map(YamlNode::text).map(move |name| (list, name))
    })
}

/// `before` is the dependency of another service.
fn before(services: &Map, started: &BTreeSet<&str>, jobs: &mut [Planned], document: &mut Document) {
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
