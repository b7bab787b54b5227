//! The layers of Pebble: each service and each check becomes a job.

mod checks;
mod dependencies;
mod layers;
mod service;
mod strict;
mod surroundings;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::conditions::on;
use crate::depends_on::{self, Planned};
use crate::document::{Document, Field, Fields, Job, Value};
use crate::error::ImportError;
use crate::files::Files;
use crate::yaml::{Map, YamlEntry, YamlNode};

use service::Converter;

/// How long Pebble waits after SIGTERM.
const KILL_DELAY: Duration = Duration::from_secs(5);
/// How long Pebble waits at its shutdown after the longest `kill-delay`.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// Reads layers, or directories of layers, in their order.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let (services, checks) = layers::read(paths, files, document)?;
    if services.entries().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let message = "no layer has a service: expected files such as `001-base.yaml` with `services:`";
        return Err(ImportError::Empty { path, message: message.into() });
    }
    for map in [&services, &checks] {
        depends_on::limit(map.entries().len(), map.entries().first().map(YamlEntry::place))?;
    }
    dependencies::consistent(&services)?;
    checks::consistent(&checks, &services)?;
    let started = dependencies::started(&services);
    let mut jobs: Vec<Planned> = Vec::new();
    let mut reactions = Vec::new();
    for entry in &services {
        let mut job = Converter::new(entry, &started, document);
        job.service()?;
        reactions.extend(job.reactions.drain(..).map(|reaction| (jobs.len(), reaction)));
        jobs.push(job.planned());
    }
    dependencies::before(&services, &started, &mut jobs, document);
    let longest_stop = jobs.iter().map(|job| job.stop).max().unwrap_or_default().max(KILL_DELAY);
    let names = depends_on::add_all(jobs, KILL_DELAY, document)?;
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
    depends_on::limit(document.jobs.len(), services.entries().first().map(YamlEntry::place))?;
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
    let backoff = service::default_backoff();
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
