//! Dependencies, loggers, and what starts with the container.

use std::collections::{BTreeMap, BTreeSet};

use super::importer::{Importer, START_BUNDLES, ServiceType};
use super::script;
use super::settings::log_file;
use crate::cycles;
use crate::document::Value;

impl Importer<'_> {
    /// Dependencies, loggers, and what starts with the container.
    pub(super) fn relate(&mut self) {
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
            let Some(service) =
                self.services.get(&name).filter(|service| service.kind != ServiceType::Bundle)
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
        for (from, to) in cycles::cyclic(&edges) {
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

    /// A logger: its producer writes to the file of `s6-log` instead.
    pub(super) fn logger(&mut self, path: &str, producer: &str) {
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
            |name: &&str| self.services.get(*name).is_some_and(|service| service.kind == ServiceType::Bundle);
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
}
