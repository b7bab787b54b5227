//! The services that were found, and access to their files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::depends_on;
use crate::document::{Document, Value};
use crate::files::{Files, SourceLine, Text};

/// The bundles of s6-overlay that say what is started. Their names say nothing about a job.
pub(super) const START_BUNDLES: [&str; 3] = ["user", "user2", "default"];

/// Where s6-overlay has its directories in an image.
const IN_ETC: [&str; 5] = ["s6-overlay", "cont-init.d", "services.d", "cont-finish.d", "fix-attrs.d"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceType {
    Longrun,
    Oneshot,
    Bundle,
}

pub(super) struct Service {
    /// Its directory.
    pub(super) path: String,
    pub(super) kind: ServiceType,
    pub(super) files: BTreeSet<String>,
    /// Whether it is of `services.d`.
    pub(super) legacy: bool,
    pub(super) job: String,
}

impl Service {
    /// Whether s6 does not start it: a longrun with the file `down`, which s6-rc ignores.
    pub(super) fn is_down(&self) -> bool {
        self.kind == ServiceType::Longrun && self.files.contains("down") && !self.files.contains("type")
    }
}

pub(super) struct Importer<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) document: &'a mut Document,
    pub(super) order: Vec<String>,
    pub(super) services: BTreeMap<String, Service>,
    /// The last services of pipelines, by the names of the pipelines.
    pub(super) pipelines: BTreeMap<String, String>,
    /// The scripts of `cont-init.d` and `cont-finish.d`.
    pub(super) init: Vec<String>,
    pub(super) finish: Vec<String>,
    /// Loggers whose producer writes to their file.
    pub(super) loggers: BTreeMap<String, String>,
    pub(super) started: BTreeSet<String>,
    /// What each service requires, and its line.
    pub(super) requires: BTreeMap<String, Vec<(String, Option<SourceLine>)>>,
    /// `logging` of the producers.
    pub(super) logs: BTreeMap<String, Value>,
    /// The longest `timeout-kill`.
    pub(super) stop_time: Duration,
    /// Whether a job names a path that is not known to be one of the image.
    pub(super) has_unknown_paths: bool,
}

impl<'a> Importer<'a> {
    pub(super) fn new(files: &'a dyn Files, document: &'a mut Document) -> Self {
        Self {
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
            stop_time: depends_on::STOP_TIMEOUT,
            has_unknown_paths: false,
        }
    }

    /// The text of a file, if it is text.
    pub(super) fn text(&self, path: &str) -> Option<Text> {
        Text::read(self.files, path).ok()
    }

    /// The first line of a file.
    pub(super) fn place(&self, path: &str) -> SourceLine {
        self.text(path).map_or_else(
            || SourceLine { file: path.to_owned(), line: 1, text: String::new() },
            |text| text.place(1),
        )
    }

    /// The first word of a file of a service, with its place.
    pub(super) fn value(&self, service: &Service, file: &str) -> Option<(String, SourceLine)> {
        let text = service.files.contains(file).then(|| self.text(&format!("{}/{file}", service.path)))??;
        let (place, line) =
            text.lines().find(|(place, _)| !place.text.is_empty() && !place.text.starts_with('#'))?;
        Some((line.trim().to_owned(), place))
    }

    /// The names in a file with one name per line, or in a directory of empty files.
    pub(super) fn list(&self, service: &Service, file: &str) -> Vec<(String, SourceLine)> {
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

    /// The services that a name means: itself, those of a bundle, or the last one of a pipeline.
    pub(super) fn members(&self, name: &str) -> Vec<String> {
        let (mut seen, mut next, mut out) = (BTreeSet::new(), vec![name.to_owned()], Vec::new());
        while let Some(name) = next.pop() {
            let name = self.pipelines.get(&name).cloned().unwrap_or(name);
            let Some(service) = self.services.get(&name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            match service.kind {
                ServiceType::Bundle => {
                    next.extend(self.list(service, "contents").into_iter().map(|(name, _)| name))
                }
                _ => out.push(name),
            }
        }
        out.sort();
        out
    }

    /// The service that stands for this one: the producer, for a logger.
    pub(super) fn alias(&self, name: &str) -> String {
        self.loggers.get(name).map_or(name, String::as_str).to_owned()
    }

    pub(super) fn job(&self, name: &str) -> Option<String> {
        self.services.get(name).map(|service| service.job.clone())
    }

    /// The path of a file in the image, if it is below `/etc` of s6-overlay; else as it was found.
    pub(super) fn in_image(&mut self, path: &str) -> String {
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
