//! Compose files: each service becomes a job of one container; keys beside the services become notes.

mod deploy;
mod health;
pub mod keys;
mod service;

use crate::depends_on;
use crate::document::Document;
use crate::error::ImportError;
use crate::files::Files;
use crate::merge::{Loader, in_directory, names_of_list};
use crate::yaml::{Map, YamlEntry, YamlNode};

/// The names of a file that Compose looks for in a directory, in its order.
const NAMES: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];
const OVERRIDES: [&str; 4] = [
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// Reads the files, of which a later one overrides an earlier one.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut loader = Loader::new(files);
    let mut project = Map::default();
    for path in paths {
        for path in in_directory(path, files, NAMES, OVERRIDES)? {
            let file = loader.project(&path, 0)?;
            project = loader.merge_projects(&project, &file)?;
        }
    }
    let services = keys::services(&project).cloned().unwrap_or_default();
    if services.entries().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let message = "this is not a Compose file with services: expected `services:`";
        return Err(ImportError::Empty { path, message: message.into() });
    }
    for entry in &project {
        let why = match entry.key.as_str() {
            "services" | "include" => continue,
            "version" => {
                document.not_needed(&entry.place(), "Compose ignores it");
                continue;
            }
            "name" => {
                document.not_needed(&entry.place(), "there is one container, and no project");
                continue;
            }
            "networks" | "volumes" | "configs" | "secrets" | "models" => "belongs to the container",
            key if key.starts_with("x-") => continue,
            _ => "unknown key",
        };
        document.inexact(&entry.place(), why);
    }
    depends_on::limit(services.entries().len(), services.entries().first().map(YamlEntry::place))?;
    consistent(&services)?;
    let mut jobs = Vec::new();
    for entry in &services {
        let Some(map) = entry.value.map() else {
            return Err(entry.error(format!(
                "the service `{}` is {}, not a mapping",
                entry.key,
                entry.value.what()
            )));
        };
        jobs.extend(service::convert(entry, map, &services, document)?);
    }
    depends_on::add_all(jobs, keys::GRACE, document)?;
    Ok(())
}

/// Refuses dependencies on services that do not exist, and those in a cycle.
fn consistent(services: &Map) -> Result<(), ImportError> {
    let depends: Vec<(&YamlEntry, YamlNode)> = services
        .into_iter()
        .filter_map(|service| Some((service, names_of_list(service.value.get("depends_on")?))))
        .collect();
    let mut edges = Vec::new();
    for (service, others) in &depends {
        for other in others.map().into_iter().flatten() {
            if services.get(&other.key).is_some() {
                edges.push((service.key.as_str(), other.key.as_str(), other.place()));
            } else if keys::is_required(other) {
                let message = format!("`{}` depends on `{}`, which is not defined", service.key, other.key);
                return Err(other.error(message));
            }
        }
    }
    depends_on::refuse_cycle(&edges)
}
