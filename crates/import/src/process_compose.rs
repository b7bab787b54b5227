//! `process-compose.yaml`: each process becomes a job.

mod ends;
mod logs;
mod own_variables;
mod probes;
mod process;
mod project;
mod settings;
mod texts;

use std::collections::BTreeSet;

use crate::conditions::on;
use crate::depends_on;
use crate::document::{Document, Fields, Job, Value};
use crate::error::ImportError;
use crate::files::Files;
use crate::merge::{Loader, beside, in_directory, names_of_list};
use crate::yaml::{Map, YamlEntry, YamlNode};

use ends::Reaction;
use process::Converter;
use project::{Project, process_of};
use texts::Texts;

const NAMES: [&str; 4] = ["compose.yml", "compose.yaml", "process-compose.yml", "process-compose.yaml"];
const OVERRIDES: [&str; 4] = [
    "compose.override.yml",
    "compose.override.yaml",
    "process-compose.override.yml",
    "process-compose.override.yaml",
];
/// Reads the files, of which a later one overrides an earlier one.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut loader = Loader::new(files);
    let mut map = Map::default();
    let mut dotenv = Vec::new();
    for path in paths {
        for (at, path) in in_directory(path, files, NAMES, OVERRIDES)?.iter().enumerate() {
            let directory = path.rsplit_once('/').map_or(".", |(directory, _)| directory);
            let has_dotenv =
                files.list(directory).is_some_and(|names| names.iter().any(|name| name == ".env"));
            if has_dotenv && at == 0 {
                dotenv.push(Value::from(beside(path, ".env")));
            }
            let file = loader.project(path, 0)?;
            map = loader.merge_projects(&map, &file)?;
        }
    }
    let processes = map.get("processes").and_then(YamlNode::map).cloned().unwrap_or_default();
    if processes.entries().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let message = "this is not a file of process-compose: expected `processes:`";
        return Err(ImportError::Empty { path, message: message.into() });
    }
    let project = Project {
        vars: map.get("vars").and_then(YamlNode::map).cloned().unwrap_or_default(),
        shell: project::shell(map.get("shell")),
        dotenv: !dotenv.is_empty(),
        expand: map.get("disable_env_expansion").and_then(YamlNode::flag) != Some(true),
    };
    if !dotenv.is_empty() {
        document.top.set("envFile", Value::List(dotenv), None);
        document.remark("Variables of `.env` are passed to all jobs, but templates cannot use them.");
    }
    settings::top(&map, &project, document)?;
    depends_on::limit(processes.entries().len(), processes.entries().first().map(YamlEntry::place))?;
    consistent(&processes)?;
    let mut jobs = Vec::new();
    let mut hooks = Vec::new();
    let (mut stops, mut skips) = (Vec::new(), Vec::new());
    let mut log_files = BTreeSet::new();
    for entry in &processes {
        let Some(process) = entry.value.map() else {
            let message = format!("the process `{}` is {}, not a mapping", entry.key, entry.value.what());
            return Err(entry.error(message));
        };
        let vars = process.get("vars").and_then(YamlNode::map);
        let replicas = process.get("replicas").filter(|replicas| !replicas.is_null());
        // A variable may be any number.
        let replicated = replicas.is_some_and(|replicas| replicas.integer().is_none_or(|count| count > 1));
        let texts = Texts { project: &project, vars, replicated };
        let mut job = Converter::new(&entry.key, &texts, &processes, &mut log_files, document);
        if job.process(process, &entry.place())? {
            hooks.extend(job.hook.take().map(|hook| (jobs.len(), hook)));
            stops.extend(job.stops_when_unhealthy.take().map(|place| (jobs.len(), place)));
            skips.extend(job.exit_on_skipped.take().map(|place| (jobs.len(), place)));
            jobs.push(job.planned(entry));
        }
    }
    ends::remarks(&jobs, map.get("ordered_shutdown").and_then(YamlNode::flag) == Some(true), document);
    ends::wait_for_last_end(&mut jobs, document);
    let mut reactions = Vec::new();
    for (at, place) in stops {
        reactions.extend(jobs.get(at).and_then(|job| Reaction::stop(at, job, place, document)));
    }
    reactions.extend(Reaction::shutdowns(skips, &jobs, document));
    let names = depends_on::add_all(jobs, process::STOP, document)?;
    for (of, (name, from, mut fields)) in hooks {
        let name = document.free_name(&name);
        let source = names.get(of).cloned().unwrap_or_default();
        fields.set("when", on(&source, "once", "stopping"), None);
        document.jobs.push(Job { name, from: Some(from), fields });
    }
    for reaction in reactions {
        reaction.add(&names, document);
    }
    document.sort_by_line();
    Ok(())
}

/// Refuses the dependencies that process-compose refuses.
fn consistent(processes: &Map) -> Result<(), ImportError> {
    let depends: Vec<(&YamlEntry, YamlNode)> = processes
        .into_iter()
        .filter_map(|process| Some((process, names_of_list(process.value.get("depends_on")?))))
        .collect();
    let mut edges = Vec::new();
    for (process, others) in &depends {
        for other in others.map().into_iter().flatten() {
            let name = process_of(&other.key, processes);
            let Some(on) = processes.get(name) else {
                let message = format!("`{}` depends on `{}`, which is not defined", process.key, other.key);
                return Err(other.error(message));
            };
            let condition = other.value.get("condition").and_then(YamlNode::text);
            if condition == Some("process_log_ready")
                && on.get("ready_log_line").is_none_or(YamlNode::is_null)
            {
                return Err(other.error(format!("`{name}` has no `ready_log_line`")));
            }
            edges.push((process.key.as_str(), name, other.place()));
        }
    }
    depends_on::refuse_cycle(&edges)
}
