//! Service directories of s6: s6-rc source directories, s6-overlay's `services.d`, `cont-init.d` and `cont-finish.d`, and plain scan
//! directories.
//!
//! A longrun becomes a job that is restarted, a oneshot a job that runs once, a bundle a group. A script that only executes one program
//! becomes that program; any other script is run where it was found.

mod jobs;
mod script;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ImportError;
use crate::document::{Document, Value};
use crate::files::{Files, SourceLine, Text};
use crate::graph;
use crate::planned;
use settings::log_file;

/// The bundles of s6-overlay that say what is started. Their names say nothing about a job.
const START_BUNDLES: [&str; 3] = ["user", "user2", "default"];

/// Where s6-overlay has its directories in an image.
const IN_ETC: [&str; 5] = ["s6-overlay", "cont-init.d", "services.d", "cont-finish.d", "fix-attrs.d"];

/// What a directory contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Subdirectories with a file `type`.
    Source,
    /// Subdirectories with a file `run`.
    Services,
    Init,
    Finish,
    FixAttributes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Longrun,
    Oneshot,
    Bundle,
}

struct Service {
    /// Its directory.
    path: String,
    kind: Kind,
    files: BTreeSet<String>,
    /// Whether it is of `services.d`.
    legacy: bool,
    job: String,
}

impl Service {
    /// Whether s6 does not start it: a longrun with the file `down`, which s6-rc ignores.
    fn is_down(&self) -> bool {
        self.kind == Kind::Longrun && self.files.contains("down") && !self.files.contains("type")
    }
}

struct Importer<'a> {
    files: &'a dyn Files,
    document: &'a mut Document,
    order: Vec<String>,
    services: BTreeMap<String, Service>,
    /// The last services of pipelines, by the names of the pipelines.
    pipelines: BTreeMap<String, String>,
    /// The scripts of `cont-init.d` and `cont-finish.d`.
    init: Vec<String>,
    finish: Vec<String>,
    /// Loggers whose producer writes to their file.
    loggers: BTreeMap<String, String>,
    started: BTreeSet<String>,
    /// What each service requires, and the line that says so.
    requires: BTreeMap<String, Vec<(String, Option<SourceLine>)>>,
    /// `logging` of the producers.
    logs: BTreeMap<String, Value>,
    /// The longest `timeout-kill`.
    stop_time: Duration,
    /// Whether a job names a path that is not known to be one of the image.
    has_unknown_paths: bool,
}

/// Reads the service directories.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut importer = Importer {
        files,
        document,
        order: Vec::new(),
        services: BTreeMap::new(),
        pipelines: BTreeMap::new(),
        init: Vec::new(),
        finish: Vec::new(),
        loggers: BTreeMap::new(),
        started: BTreeSet::new(),
        requires: BTreeMap::new(),
        logs: BTreeMap::new(),
        stop_time: planned::STOP_TIMEOUT,
        has_unknown_paths: false,
    };
    for path in paths {
        importer.find(path)?;
    }
    importer.relate();
    importer.emit();
    if document.jobs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::Empty { path, message: "there is no service with `run` or `up` here" });
    }
    Ok(())
}

impl Importer<'_> {
    /// Finds the service directories at a path.
    fn find(&mut self, path: &str) -> Result<(), ImportError> {
        let trimmed = path.trim_end_matches('/');
        let path = if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed };
        let Some(names) = self.files.list(path) else {
            let kinds =
                "name an s6-rc source directory, a scan directory, or the root of an image with s6-overlay";
            let why = match path {
                "-" => format!("standard input is not a directory: {kinds}"),
                _ => self.files.read(path).err().unwrap_or_else(|| format!("it is not a directory: {kinds}")),
            };
            return Err(ImportError::Unreadable { path: path.to_owned(), why });
        };
        let join = |rest: &str| format!("{}/{rest}", path.trim_end_matches('/'));
        if let Some(layout) = named(script::base(path)) {
            self.read(path, layout);
            return Ok(());
        }
        if names.iter().any(|name| matches!(name.as_str(), "run" | "type")) {
            self.service(path, script::base(path), false);
            return Ok(());
        }
        let mut found = false;
        for inside in ["", "s6-overlay/", "etc/", "etc/s6-overlay/"] {
            for name in
                ["s6-rc.d", "user-bundles.d", "cont-init.d", "services.d", "cont-finish.d", "fix-attrs.d"]
            {
                let directory = join(&format!("{inside}{name}"));
                if let Some(layout) = named(name).filter(|_| self.files.list(&directory).is_some()) {
                    self.read(&directory, layout);
                    found = true;
                }
            }
        }
        if !found {
            self.read(path, Layout::Services);
        }
        Ok(())
    }

    fn read(&mut self, directory: &str, layout: Layout) {
        for name in self.files.list(directory).unwrap_or_default() {
            let path = format!("{}/{name}", directory.trim_end_matches('/'));
            match layout {
                _ if name.starts_with('.') => {}
                Layout::Source => self.service(&path, &name, false),
                Layout::Services => self.service(&path, &name, script::base(directory) == "services.d"),
                Layout::Init => self.init.push(path),
                Layout::Finish => self.finish.push(path),
                Layout::FixAttributes => {
                    for (place, line) in self.text(&path).iter().flat_map(Text::lines) {
                        if !line.trim().is_empty() && !line.starts_with('#') {
                            self.document.inexact(&place, "set owner and mode in the image, or with a job that runs `chown` and `chmod`");
                        }
                    }
                }
            }
        }
    }

    /// The text of a file, if it is text.
    fn text(&self, path: &str) -> Option<Text> {
        Text::read(self.files, path).ok()
    }

    /// The first line of a file.
    fn place(&self, path: &str) -> SourceLine {
        self.text(path).map_or_else(
            || SourceLine { file: path.to_owned(), line: 1, text: String::new() },
            |text| text.place(1),
        )
    }

    /// The first word of a file of a service, with its place.
    fn value(&self, service: &Service, file: &str) -> Option<(String, SourceLine)> {
        let text = service.files.contains(file).then(|| self.text(&format!("{}/{file}", service.path)))??;
        let (place, line) =
            text.lines().find(|(place, _)| !place.text.is_empty() && !place.text.starts_with('#'))?;
        Some((line.trim().to_owned(), place))
    }

    /// The names in a file with one name per line, or in a directory of empty files.
    fn list(&self, service: &Service, file: &str) -> Vec<(String, SourceLine)> {
        let mut names = Vec::new();
        if service.files.contains(file) {
            for (place, line) in self.text(&format!("{}/{file}", service.path)).iter().flat_map(Text::lines) {
                let line = line.trim();
                if !line.is_empty() && !line.starts_with('#') {
                    names.push((line.to_owned(), place));
                }
            }
        }
        let directory = format!("{}/{file}.d", service.path);
        for name in self.files.list(&directory).unwrap_or_default() {
            if !name.starts_with('.') {
                let place = SourceLine { file: format!("{directory}/{name}"), line: 1, text: String::new() };
                names.push((name, place));
            }
        }
        names
    }

    fn service(&mut self, path: &str, name: &str, legacy: bool) {
        let Some(names) = self.files.list(path) else { return };
        let files: BTreeSet<String> = names.into_iter().collect();
        let mut service =
            Service { path: path.to_owned(), kind: Kind::Longrun, files, legacy, job: String::new() };
        let kind = self.value(&service, "type");
        service.kind = match kind.as_ref().map(|(kind, _)| kind.as_str()) {
            Some("oneshot") => Kind::Oneshot,
            Some("bundle") => Kind::Bundle,
            Some("longrun") => Kind::Longrun,
            None if service.files.contains("run") => Kind::Longrun,
            None if service.files.contains("contents.d") => Kind::Bundle,
            None => return,
            Some(_) => {
                if let Some((_, place)) = &kind {
                    self.document.inexact(place, "the type is `longrun`, `oneshot` or `bundle`");
                }
                return;
            }
        };
        if service.kind == Kind::Longrun && !service.files.contains("run") {
            self.document.inexact(&self.place(&format!("{path}/type")), "a longrun without `run`");
            return;
        }
        if service.kind != Kind::Bundle {
            service.job = self.document.free_name(name);
        }
        if let Some((pipeline, _)) = self.value(&service, "pipeline-name") {
            self.pipelines.insert(pipeline, name.to_owned());
        }
        let log = format!("{path}/log");
        let has_log = service.kind == Kind::Longrun
            && self.files.list(&log).is_some_and(|files| files.iter().any(|file| file == "run"));
        if !self.services.contains_key(name) {
            self.order.push(name.to_owned());
            self.services.insert(name.to_owned(), service);
        }
        if has_log {
            self.logger(&log, name);
        }
    }

    /// The services that a name means: itself, those of a bundle, or the last one of a pipeline.
    fn members(&self, name: &str) -> Vec<String> {
        let (mut seen, mut next, mut out) = (BTreeSet::new(), vec![name.to_owned()], Vec::new());
        while let Some(name) = next.pop() {
            let name = self.pipelines.get(&name).cloned().unwrap_or(name);
            let Some(service) = self.services.get(&name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            match service.kind {
                Kind::Bundle => next.extend(self.list(service, "contents").into_iter().map(|(name, _)| name)),
                _ => out.push(name),
            }
        }
        out.sort();
        out
    }

    /// A logger: its producer writes to the file of `s6-log` instead.
    fn logger(&mut self, path: &str, producer: &str) {
        let run = format!("{path}/run");
        let file = self
            .text(&run)
            .and_then(|text| script::simplify(&text))
            .and_then(|simple| Some((log_file(&simple)?, simple)));
        let place = self.place(&run);
        self.unused_files(path);
        match file {
            Some((file, simple)) => {
                if simple.words.iter().any(|word| matches!(word.as_str(), "T" | "t"))
                    || script::base(simple.words.first().map_or("", |word| word)) == "logutil-service"
                {
                    let place = simple.lines.last().unwrap_or(&place).clone();
                    self.document.inexact(
                        &place,
                        "the lines of the file have no time: `logging: { format: \"text\" }` adds it",
                    );
                }
                let comments = simple.lines.iter().map(ToString::to_string).collect();
                self.logs.insert(producer.to_owned(), Value::Object(file).commented(comments));
            }
            None => self
                .document
                .inexact(&place, "the output of a job is in the log, with its name; this logger is not run"),
        }
    }

    /// The service that stands for this one: the producer, for a logger.
    fn alias(&self, name: &str) -> String {
        self.loggers.get(name).map_or(name, String::as_str).to_owned()
    }

    /// Lets each logger name the first producer of its pipeline.
    fn find_producers(&mut self) {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for logger in self.loggers.keys() {
            let (mut path, mut at) = (vec![logger], logger);
            let mut seen = BTreeSet::from([logger]);
            while let Some(producer) = self.loggers.get(at).filter(|_| !found.contains_key(at)) {
                at = producer;
                if !seen.insert(at) {
                    break;
                }
                path.push(at);
            }
            let first = found.get(at).unwrap_or(at).clone();
            found.extend(
                path.into_iter()
                    .filter(|name| self.loggers.contains_key(*name))
                    .map(|name| (name.clone(), first.clone())),
            );
        }
        self.loggers = found;
    }

    /// Dependencies, loggers, and what starts with the container.
    fn relate(&mut self) {
        for name in self.order.clone() {
            let Some(service) = self.services.get(&name) else { continue };
            let Some((consumer, place)) = self.value(service, "producer-for") else { continue };
            let chained = service.files.contains("consumer-for");
            let Some(logger) = self.services.get(&consumer).filter(|_| consumer != name) else {
                self.document.inexact(&place, format!("there is no service `{consumer}`"));
                continue;
            };
            let several = self.list(logger, "consumer-for").len() > 1;
            let longer = logger.files.contains("producer-for");
            let path = logger.path.clone();
            self.loggers.insert(consumer, name.clone());
            if chained || longer || several {
                let why =
                    "there are no pipes between jobs: the output is in the log, and the consumer is not run";
                self.document.inexact(&place, why);
                self.unused_files(&path);
            } else {
                self.logger(&path, &name);
            }
        }
        self.find_producers();
        let mut edges = BTreeSet::new();
        for name in self.order.clone() {
            let Some(service) = self.services.get(&name).filter(|service| service.kind != Kind::Bundle)
            else {
                continue;
            };
            let own = self.alias(&name);
            for (other, place) in self.list(service, "dependencies") {
                let known =
                    matches!(other.as_str(), "base" | "fix-attrs" | "legacy-cont-init" | "legacy-services");
                if !self.services.contains_key(&other) && !self.pipelines.contains_key(&other) && !known {
                    self.document.inexact(&place, format!("there is no service `{other}`"));
                }
                let others = match other.as_str() {
                    "legacy-services" => self.legacy_services(),
                    _ => self.members(&other),
                };
                for other in others {
                    let other = self.alias(&other);
                    if other != own && edges.insert((own.clone(), other.clone())) {
                        let required = self.requires.entry(own.clone()).or_default();
                        required.push((other, Some(place.clone())));
                    }
                }
            }
        }
        self.add_legacy_edges(&mut edges);
        for (from, to) in graph::cyclic(&edges) {
            if let Some(required) = self.requires.get_mut(&from)
                && let Some(at) = required.iter().position(|(other, _)| *other == to)
            {
                let (_, place) = required.remove(at);
                if let Some(place) = place {
                    self.document.inexact(&place, format!("`{from}` after `{to}` is part of a cycle"));
                }
            }
        }
        self.list_unordered();
        self.start();
    }

    /// `services.d` starts after the services of `user`.
    fn add_legacy_edges(&mut self, edges: &mut BTreeSet<(String, String)>) {
        let user: Vec<String> = self.members("user").iter().map(|name| self.alias(name)).collect();
        for (name, _) in self.services.iter().filter(|(_, service)| service.legacy) {
            for other in user.iter().filter(|other| *other != name) {
                if edges.insert((name.clone(), other.clone())) {
                    self.requires.entry(name.clone()).or_default().push((other.clone(), None));
                }
            }
        }
    }

    /// What `legacy-services` of s6-overlay means: `services.d`. Without it, what it waits for: the services of `user`.
    fn legacy_services(&self) -> Vec<String> {
        let legacy = self.services.iter().filter(|(_, service)| service.legacy);
        let legacy: Vec<String> = legacy.map(|(name, _)| name.clone()).collect();
        if legacy.is_empty() { self.members("user") } else { legacy }
    }

    /// Lists the services of the bundle `user2` that nothing orders after `services.d` and `user`.
    fn list_unordered(&mut self) {
        let earlier: BTreeSet<String> =
            self.legacy_services().iter().chain(&self.members("user")).map(|name| self.alias(name)).collect();
        let Some(user2) = self.services.get("user2").filter(|_| !earlier.is_empty()) else { return };
        for (name, place) in self.list(user2, "contents") {
            let is_ordered = self.members(&name).into_iter().all(|name| {
                let (mut seen, mut next) = (BTreeSet::new(), vec![self.alias(&name)]);
                while let Some(at) = next.pop() {
                    if earlier.contains(&at) {
                        return true;
                    }
                    let required =
                        self.requires.get(&at).into_iter().flatten().map(|(other, _)| other.clone());
                    next.extend(required.filter(|other| seen.insert(other.clone())));
                }
                false
            });
            if !is_ordered {
                let why = "the bundle `user2` alone orders nothing, also in s6-overlay: a dependency on `legacy-services` does";
                self.document.not_needed(&place, why);
            }
        }
    }

    fn start(&mut self) {
        let bundle =
            |name: &&str| self.services.get(*name).is_some_and(|service| service.kind == Kind::Bundle);
        let roots: Vec<&str> = START_BUNDLES.into_iter().filter(bundle).collect();
        let mut next: Vec<String> = match roots.is_empty() {
            true => self.order.clone(),
            false => roots.into_iter().flat_map(|root| self.members(root)).collect(),
        };
        next.extend(self.services.iter().filter(|(_, service)| service.legacy).map(|(name, _)| name.clone()));
        while let Some(name) = next.pop() {
            let name = self.alias(&name);
            if self.started.insert(name.clone()) {
                next.extend(self.requires.get(&name).into_iter().flatten().map(|(other, _)| other.clone()));
            }
        }
    }

    fn job(&self, name: &str) -> Option<String> {
        self.services.get(name).map(|service| service.job.clone())
    }

    /// The path of a file in the image, if it is below `/etc` of s6-overlay; else as it was found.
    fn in_image(&mut self, path: &str) -> String {
        let words: Vec<&str> = path.split('/').collect();
        let etc = words.windows(2).rposition(|pair| matches!(pair, ["etc", name] if IN_ETC.contains(name)));
        match etc.and_then(|at| words.get(at..)) {
            Some(words) => format!("/{}", words.join("/")),
            None => {
                self.has_unknown_paths = true;
                path.to_owned()
            }
        }
    }
}

fn named(directory: &str) -> Option<Layout> {
    Some(match directory {
        "s6-rc.d" | "user-bundles.d" => Layout::Source,
        "services.d" => Layout::Services,
        "cont-init.d" => Layout::Init,
        "cont-finish.d" => Layout::Finish,
        "fix-attrs.d" => Layout::FixAttributes,
        _ => return None,
    })
}
