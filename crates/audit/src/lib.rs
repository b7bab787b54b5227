//! Compares a configuration with the deployment of its container: a manifest of Kubernetes, a Compose file, a Nomad job, or the Dockerfile
//! of its image (X14).
//!
//! [`read`] turns each format into the same [`model`]. [`choose`] finds the container that runs the configuration. [`audit`] applies the
//! rules to it. A rule reports what is certain from the two files, and nothing about what the image may contain.
//!
//! Everything here is a function of its arguments: it reads no file and no environment.
#![forbid(unsafe_code)]

mod compose;
pub mod dockerfile;
mod hcl;
mod kubernetes;
pub mod model;
mod nomad;
mod rules;
pub mod tree;
mod values;

use std::collections::BTreeSet;

use containerpilot_config::diagnostics::{Place, Severity, SourceFile};
use containerpilot_core::plan::Plan;
use containerpilot_import::ImportError;
use containerpilot_import::files::Text;
use containerpilot_import::yaml;

use model::{Container, ProbeAction};
use values::{base_name, containerpilot_calls};

pub use rules::audit;

/// A configuration and what is known about it.
#[derive(Clone, Copy)]
pub struct Configuration<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Its files.
    pub files: &'a [SourceFile],
    /// Reads the arguments of a `containerpilot` command line. The error says what is wrong with them.
    pub command_line: &'a dyn Fn(&[String]) -> Result<Invocation, String>,
}

/// A `containerpilot` command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The command: `run`, `health`.
    pub command: String,
    /// Its arguments that are no flags.
    pub arguments: Vec<String>,
    /// The control socket that it names.
    pub socket: Option<String>,
}

/// Something that will go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A fault is certain; a warning is likely.
    pub severity: Severity,
    /// The line of the deployment, from 1.
    pub line: usize,
    /// What will happen.
    pub message: String,
    /// What to do.
    pub help: String,
    /// The place in the configuration that it is about.
    pub config: Option<Place>,
}

/// Why a deployment cannot be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// It is not in the format that it seems to be in.
    #[error("{0}")]
    Unreadable(#[from] ImportError),
    /// It is in none of the formats.
    #[error(
        "{0} is no manifest of Kubernetes with containers, no Compose file, no Nomad job and no Dockerfile: it has neither `kind`, \
         `services`, `job`, `TaskGroups` nor `FROM`"
    )]
    UnknownFormat(String),
    /// Objects of Kubernetes without containers.
    #[error(
        "{path} has no containers: it has {}, and those of {} are read",
        .kinds.join(", "),
        kubernetes::KINDS
    )]
    NoContainers {
        /// The file.
        path: String,
        /// The kinds of its objects.
        kinds: Vec<String>,
    },
    /// A job file of Nomad without a task.
    #[error("{0} has no job with a task; tasks of `dynamic` blocks are not read")]
    NoTask(String),
    /// It does not say which container runs the configuration.
    #[error("several containers can run the configuration; name one with --container: {}", .0.join("; "))]
    Several(Vec<String>),
    /// It has no such container.
    #[error("the deployment has no container `{name}`; it has {}", .known.join("; "))]
    NoSuchContainer {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
}

/// The containers of a deployment.
///
/// # Errors
/// If the text is in none of the formats.
pub fn read(text: &Text) -> Result<Vec<Container>, AuditError> {
    let invalid = |line, message| ImportError::Invalid { file: text.path.clone(), line, message };
    if dockerfile::is_dockerfile(&text.path, &text.text) {
        let image = dockerfile::container(&text.text).map_err(|(line, message)| invalid(line, message))?;
        return Ok(vec![image]);
    }
    let has_extension = |extension: &str| text.path.ends_with(extension);
    if has_extension(".hcl") || has_extension(".nomad") || hcl::is_hcl(&text.text) {
        let tree = hcl::parse(&text.text).map_err(|error| invalid(error.line, error.message))?;
        let tasks = nomad::from_hcl(&tree);
        return if tasks.is_empty() { Err(AuditError::NoTask(text.path.clone())) } else { Ok(tasks) };
    }
    let documents = yaml::parse(text).map_err(|error| unrendered(error, text))?;
    let containers = documents.iter().flat_map(|document| {
        let tree = tree::from_yaml(document);
        if kubernetes::is_object(&tree) {
            kubernetes::containers(&tree)
        } else if document.get("services").is_some() {
            compose::containers(document)
        } else if nomad::is_job(&tree) {
            nomad::from_json(&tree)
        } else {
            Vec::new()
        }
    });
    let containers: Vec<Container> = containers.collect();
    let path = text.path.clone();
    let kinds = documents.iter().filter_map(|document| document.get("kind")?.text());
    let kinds: BTreeSet<String> = kinds.map(|kind| format!("`kind: {kind}`")).collect();
    match (containers.is_empty(), kinds.is_empty()) {
        (true, true) => Err(AuditError::UnknownFormat(path)),
        (true, false) => Err(AuditError::NoContainers { path, kinds: kinds.into_iter().collect() }),
        (false, _) => Ok(containers),
    }
}

/// The error of a file that is not YAML, with advice if that may be because it is a template.
fn unrendered(error: ImportError, text: &Text) -> ImportError {
    match error {
        ImportError::Invalid { file, line, message } if text.text.contains("{{") => {
            let advice = "if this is a template, render it first, such as with `helm template`";
            ImportError::Invalid { file, line, message: format!("{message}; {advice}") }
        }
        error => error,
    }
}

/// The container that runs the configuration: the one with this name (`NAME`, or `PARENT/NAME` if several have it), the only one that
/// mentions containerpilot, or the only one.
///
/// # Errors
/// If there is none, or several.
pub fn choose<'a>(containers: &'a [Container], name: Option<&str>) -> Result<&'a Container, AuditError> {
    let full = |container: &Container| format!("{}/{}", container.parent, container.name);
    let names = |list: &[&Container]| list.iter().map(|one| full(one)).collect::<Vec<_>>();
    let all: Vec<&Container> = containers.iter().collect();
    let chosen: Vec<&Container> = match name {
        Some(name) => all.iter().copied().filter(|one| one.name == name || full(one) == name).collect(),
        None => {
            let candidates: Vec<&Container> =
                all.iter().copied().filter(|one| runs_containerpilot(one)).collect();
            if candidates.is_empty() { all.clone() } else { candidates }
        }
    };
    match (chosen.as_slice(), name) {
        ([one], _) => Ok(one),
        ([], Some(name)) => Err(AuditError::NoSuchContainer { name: name.to_owned(), known: names(&all) }),
        (several, _) => Err(AuditError::Several(names(several))),
    }
}

/// Returns true if something of a container mentions containerpilot: its command, its image, a mounted file, a variable or a probe.
fn runs_containerpilot(container: &Container) -> bool {
    let mut words =
        [&container.command, &container.args].into_iter().flatten().flat_map(|words| &words.value);
    let probe = |action: &ProbeAction| matches!(action, ProbeAction::Exec(words) if !containerpilot_calls(words).is_empty());
    let is_file = |path: &str| base_name(path.trim_end_matches('/')).starts_with("containerpilot");
    let image = base_name(&container.image).split(['@', ':']).next().unwrap_or_default();
    words.any(|word| word.contains("containerpilot"))
        || image.contains("containerpilot")
        || container.env.iter().any(|(name, _)| name.starts_with("CONTAINERPILOT"))
        || container.mounts.iter().any(|mount| is_file(&mount.path))
        || container.probes.iter().any(|one| probe(&one.action))
        || container.hooks.iter().any(|hook| !containerpilot_calls(&hook.value).is_empty())
}
