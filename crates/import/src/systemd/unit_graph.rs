//! The units, and what they say about each other: dependencies, targets, and what starts with the container.

use std::collections::{BTreeMap, BTreeSet};

use super::keys;
use super::service_type::ServiceType;
use super::unit::{Link, Unit};
use crate::cycles;
use crate::document::{Document, Job, Value};
use crate::files::SourceLine;

/// What starts a service beside the startup.
pub(super) struct Trigger {
    pub(super) when: Value,
    pub(super) place: SourceLine,
    /// A job that must come first: a delay.
    pub(super) delay: Option<Job>,
    /// The job that it starts, if it is not the first one of the service.
    pub(super) target: Option<String>,
}

/// A dependency on another unit.
pub(super) struct Need {
    pub(super) on: String,
    pub(super) bind: bool,
    /// The lines that ask for it.
    pub(super) places: Vec<SourceLine>,
}

/// The units, and what they say about each other.
#[derive(Default)]
pub(super) struct UnitGraph {
    pub(super) units: BTreeMap<String, Unit>,
    pub(super) order: Vec<String>,
    pub(super) links: Vec<Link>,
    /// What other units set for a unit, by its name and the key: links, and `WantedBy=` and others of `[Install]`.
    pub(super) installed: BTreeMap<(String, &'static str), Vec<(String, SourceLine)>>,
    /// The job of each service.
    pub(super) jobs: BTreeMap<String, String>,
    /// The services of each target.
    pub(super) members: BTreeMap<String, BTreeSet<String>>,
    pub(super) needs: BTreeMap<String, Vec<Need>>,
    pub(super) after: BTreeMap<String, BTreeMap<String, SourceLine>>,
    pub(super) pulls: BTreeMap<String, BTreeSet<String>>,
    pub(super) triggers: BTreeMap<String, Vec<Trigger>>,
    /// The services that start with the container.
    pub(super) boot: BTreeSet<String>,
    /// The jobs of `ExecStopPost=` of each service.
    pub(super) last_hooks: BTreeMap<String, Vec<String>>,
    /// The jobs of `ExecStop=` and `ExecStopPost=` of each oneshot that remains.
    pub(super) shutdown_hooks: Vec<(String, Vec<String>)>,
    /// The services that come after each service.
    pub(super) users: BTreeMap<String, Vec<String>>,
    /// The services that a timer or the end of another one starts.
    pub(super) triggered: BTreeSet<String>,
}

/// The keys of `[Install]`, and what they mean in the other unit.
const INSTALL: [(&str, &str); 3] =
    [("WantedBy", "Wants"), ("RequiredBy", "Requires"), ("UpheldBy", "Upholds")];

impl UnitGraph {
    /// Removes units without content, which systemd does not start, and second names of others.
    pub(super) fn mask(&mut self, document: &mut Document) {
        let aliases: BTreeSet<(String, String)> = self
            .units
            .values()
            .flat_map(|unit| unit.all("Install", "Alias").into_iter().map(move |entry| (unit, entry)))
            .flat_map(|(unit, entry)| {
                entry.value.split_whitespace().map(|alias| (alias.to_owned(), unit.name.clone()))
            })
            .collect();
        let is_alias = |unit: &Unit, units: &BTreeMap<String, Unit>| {
            aliases.iter().any(|(alias, name)| {
                let same = |other: &Unit| other.entries.len() == unit.entries.len();
                *alias == unit.name && *name != unit.name && units.get(name).is_some_and(same)
            })
        };
        let gone: Vec<String> = self
            .order
            .iter()
            .filter(|name| {
                self.units.get(*name).is_some_and(|unit| unit.masked || is_alias(unit, &self.units))
            })
            .cloned()
            .collect();
        for name in gone {
            match self.units.remove(&name) {
                Some(unit) if unit.masked => document.not_needed(
                    &unit.top,
                    format!("`{name}` is empty, which masks it: systemd does not start it"),
                ),
                Some(unit) => document.not_needed(&unit.top, "it is another name (`Alias=`) of a unit"),
                None => {}
            }
            self.order.retain(|other| *other != name);
        }
    }

    pub(super) fn name_jobs(&mut self, document: &mut Document) {
        for name in &self.order {
            if let Some(stem) = name.strip_suffix(".service") {
                let job = document.free_name(stem);
                self.jobs.insert(name.clone(), job);
            }
        }
    }

    /// The services that a name means: itself, or those of a target.
    fn services(&self, name: &str) -> Vec<String> {
        match self.members.get(name) {
            Some(members) => members.iter().cloned().collect(),
            None => self.jobs.contains_key(name).then(|| name.to_owned()).into_iter().collect(),
        }
    }

    /// The names in all values of a key of `[Unit]`, with what other units set for this one.
    pub(super) fn listed(&self, unit: &str, key: &'static str) -> Vec<(String, SourceLine)> {
        let own = self.units.get(unit).map(|unit| names(unit, "Unit", key)).unwrap_or_default();
        let others = self.installed.get(&(unit.to_owned(), key)).cloned();
        own.into_iter().chain(others.unwrap_or_default()).collect()
    }

    /// Finds out what units set for others, and lists services among those that are not among the files.
    fn install(&mut self, document: &mut Document) {
        for link in std::mem::take(&mut self.links) {
            let installed = self.installed.entry((link.unit, link.key)).or_default();
            installed.push((link.target, link.place));
        }
        let mut installed = std::mem::take(&mut self.installed);
        for unit in self.units.values() {
            for (own, key) in INSTALL {
                for (other, place) in names(unit, "Install", own) {
                    self.missing(document, &other, &place);
                    installed.entry((other, key)).or_default().push((unit.name.clone(), place));
                }
            }
        }
        self.installed = installed;
    }

    /// The members of targets: units that are wanted by them, directly or by other targets.
    fn targets(&mut self, document: &mut Document) {
        let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in self.order.iter().filter(|name| name.ends_with(".target")) {
            let members = direct.entry(name.clone()).or_default();
            for key in ["Wants", "Requires", "BindsTo", "Upholds"] {
                for (member, place) in self.listed(name, key) {
                    self.missing(document, &member, &place);
                    members.insert(member);
                }
            }
        }
        for target in direct.keys() {
            let mut seen: BTreeSet<String> = BTreeSet::new();
            let mut next = vec![target.clone()];
            while let Some(name) = next.pop() {
                if seen.insert(name.clone()) {
                    next.extend(direct.get(&name).into_iter().flatten().cloned());
                }
            }
            seen.retain(|name| self.jobs.contains_key(name));
            self.members.insert(target.clone(), seen);
        }
    }

    /// The dependencies between services.
    pub(super) fn relate(&mut self, document: &mut Document) {
        self.install(document);
        self.targets(document);
        let services: Vec<String> =
            self.order.iter().filter(|name| self.jobs.contains_key(*name)).cloned().collect();
        for name in &services {
            for (key, forward) in [("After", true), ("Before", false)] {
                for (other, place) in self.listed(name, key) {
                    self.missing(document, &other, &place);
                    for other in self.services(&other).into_iter().filter(|other| other != name) {
                        let (from, to) = if forward { (name.clone(), other) } else { (other, name.clone()) };
                        self.after.entry(from).or_default().entry(to).or_insert_with(|| place.clone());
                    }
                }
            }
        }
        self.break_cycles(document);
        for name in &services {
            self.needs_of(name, document);
        }
    }

    fn needs_of(&mut self, name: &str, document: &mut Document) {
        for key in ["Requires", "BindsTo", "Requisite", "PartOf", "Wants", "Upholds", "Conflicts"] {
            for (other, place) in self.listed(name, key) {
                if key != "Conflicts" {
                    self.missing(document, &other, &place);
                }
                // A target is a group, whose jobs are stopped together.
                if key == "PartOf" && self.members.contains_key(&other) {
                    continue;
                }
                for other in self.services(&other).into_iter().filter(|found| found != name) {
                    if !matches!(key, "PartOf" | "Requisite" | "Conflicts") {
                        self.pulls.entry(name.to_owned()).or_default().insert(other.clone());
                    }
                    self.need(name, key, other, &place, document);
                }
            }
        }
    }

    fn need(&mut self, name: &str, key: &str, other: String, place: &SourceLine, document: &mut Document) {
        let order = self.after.get(name).and_then(|after| after.get(&other));
        let why = match key {
            "Conflicts" => "two jobs cannot exclude each other",
            "Upholds" => "give the other job `restarts: \"unlimited\"`",
            "Requisite" => "the job waits for the other one here, and does not fail without it",
            "BindsTo" | "PartOf" if order.is_none() => {
                "without `After=`, the job is not stopped with the other one: `requires` with `bind` also waits for it"
            }
            _ => "",
        };
        if !why.is_empty() {
            document.inexact(place, why);
        }
        let Some(order) = order.filter(|_| !matches!(key, "Conflicts" | "Upholds" | "Wants")) else { return };
        let bind = matches!(key, "BindsTo" | "PartOf");
        let needs = self.needs.entry(name.to_owned()).or_default();
        match needs.iter_mut().find(|need| need.on == other) {
            Some(need) => {
                need.bind |= bind;
                need.places.push(place.clone());
            }
            None => needs.push(Need { on: other, bind, places: vec![place.clone(), order.clone()] }),
        }
    }

    /// Lists a service that is not among the files. One of the machine needs nothing here.
    fn missing(&self, document: &mut Document, other: &str, place: &SourceLine) {
        let (stem, kind) = other.rsplit_once('.').unwrap_or((other, ""));
        let machine = kind != "service"
            || stem.starts_with("systemd-")
            || ["dbus", "rsyslog", "syslog", "docker", "containerd", "cloud-init", "cloud-final"]
                .contains(&stem)
            || ["network", "networking", "NetworkManager", "firewalld", "local-fs", "remote-fs"]
                .contains(&stem);
        if !machine && !self.jobs.contains_key(other) {
            document.inexact(
                place,
                format!("`{other}` is not among the files: convert it, too, or watch it if it runs in another container"),
            );
        }
    }

    fn break_cycles(&mut self, document: &mut Document) {
        let edges: BTreeSet<(String, String)> = self
            .after
            .iter()
            .flat_map(|(from, all)| all.keys().map(move |to| (from.clone(), to.clone())))
            .collect();
        for (from, to) in cycles::cyclic(&edges) {
            if let Some(place) = self.after.get_mut(&from).and_then(|after| after.remove(&to)) {
                document.inexact(&place, format!("`{from}` after `{to}` is part of a cycle"));
            }
        }
    }

    /// The services that start with the container: enabled or named ones, and what they pull in.
    pub(super) fn started(&mut self, named: &[String]) {
        let mut next: Vec<String> = self.boot.iter().cloned().collect();
        // A service that another service wants starts with that one.
        let by_others = self.installed.iter().filter(|((by, _), _)| !self.jobs.contains_key(by));
        let enabled: BTreeSet<&String> =
            by_others.flat_map(|(_, units)| units.iter().map(|(name, _)| name)).collect();
        for unit in self.units.values() {
            let named = named.contains(&unit.name) && !self.triggers.contains_key(&unit.name);
            if named || enabled.contains(&unit.name) || unit.name.ends_with(".target") {
                next.push(unit.name.clone());
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(name) = next.pop() {
            if seen.insert(name.clone()) {
                next.extend(self.pulls.get(&name).into_iter().flatten().cloned());
                next.extend(self.members.get(&name).into_iter().flatten().cloned());
            }
        }
        seen.retain(|name| self.jobs.contains_key(name));
        self.boot = seen;
    }

    /// `After=` a simple service: it counts as started when its process runs. If that service waits for another one, only
    /// `requires` can wait for it.
    pub(super) fn order_simple(&mut self, document: &mut Document) {
        let keys = ["ExecStartPre", "ExecCondition"];
        let keys: Vec<&str> =
            keys.into_iter().chain(keys::DIRECTORIES.iter().map(|(key, _, _)| *key)).collect();
        let waits = |name: &String| {
            let unit = self.units.get(name);
            self.needs.contains_key(name)
                || self
                    .after
                    .get(name)
                    .is_some_and(|after| after.keys().any(|other| self.boot.contains(other)))
                || unit.is_some_and(|unit| keys.iter().any(|key| !unit.all("Service", key).is_empty()))
                || unit
                    .is_some_and(|unit| unit.entries.iter().any(|entry| entry.key.starts_with("Condition")))
        };
        let mut found = Vec::new();
        for (name, after) in self.after.iter().filter(|(name, _)| self.boot.contains(*name)) {
            let hard: BTreeSet<&str> =
                self.needs.get(name).into_iter().flatten().map(|need| need.on.as_str()).collect();
            for (other, place) in after {
                let simple =
                    self.units.get(other).is_some_and(|unit| ServiceType::of(unit) == ServiceType::Simple);
                if simple && self.boot.contains(other) && !hard.contains(other.as_str()) && waits(other) {
                    found.push((
                        name.clone(),
                        Need { on: other.clone(), bind: false, places: vec![place.clone()] },
                    ));
                }
            }
        }
        if !found.is_empty() {
            document.remark(
                "A job with `After=` of a job that waits itself has `requires` here. systemd also starts it if the other one fails.",
            );
        }
        for (name, need) in found {
            self.needs.entry(name).or_default().push(need);
        }
    }
}

/// The names in all values of a key.
fn names(unit: &Unit, section: &str, key: &str) -> Vec<(String, SourceLine)> {
    let entries = unit.entries.iter().filter(|entry| entry.section == section && entry.key == key);
    entries
        .flat_map(|entry| entry.value.split_whitespace().map(move |word| (entry, word)))
        .filter_map(|(entry, word)| Some((unit.expand(word).ok()?, entry.place.clone())))
        .collect()
}
