//! Units of systemd: `.service`, `.timer` and `.target` files with their drop-ins.
//!
//! A service becomes a job of the same name. Its other commands (`ExecStartPre`, `ExecStop`, …) become jobs beside it, a timer the
//! `when` of its service, and a target a group.

mod calendar;
mod exec;
mod jobs;
mod keys;
mod lines;
mod process;
mod restart;
mod service;
mod triggers;
mod unit;
mod verify;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ImportError;
use crate::document::{Document, Job, Value};
use crate::files::{Files, SourceLine};
use crate::graph;
use service::Kind;
use unit::{Link, Loaded, Unit, load};

/// The most instances of templates.
const MAX_INSTANCES: usize = 1000;

/// Reads the units.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut loaded = load(paths, files, document)?;
    instantiate(&mut loaded, files, document)?;
    loaded.list_other_drop_ins(files, document)?;
    let Loaded { units, order, named, links, .. } = loaded;
    let mut graph = UnitGraph { units, order, links, ..UnitGraph::default() };
    graph.mask(document);
    graph.verify(document)?;
    graph.name_jobs(document);
    graph.relate(document);
    graph.triggers(document);
    graph.started(&named);
    graph.order_simple(document);
    graph.emit(document);
    graph.mention_all_lines(document);
    document.sort_by_line();
    if document.jobs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::Empty { path, message: "there is no `.service` with an `ExecStart` here" });
    }
    Ok(())
}

/// Creates the instances of templates that other units name, or the default one.
fn instantiate(loaded: &mut Loaded, files: &dyn Files, document: &mut Document) -> Result<(), ImportError> {
    let mut wanted: VecDeque<String> = loaded.links.iter().map(|link| link.target.clone()).collect();
    let references = |unit: &Unit| -> Vec<String> {
        let keys = ["Wants", "Requires", "BindsTo", "Upholds", "OnFailure", "OnSuccess", "Unit"];
        let entries = unit.entries.iter().filter(|entry| keys.contains(&entry.key.as_str()));
        let words = entries.flat_map(|entry| entry.value.split_whitespace());
        words.filter(|word| word.contains('@')).filter_map(|word| unit.expand(word).ok()).collect()
    };
    let real = loaded.units.values().filter(|unit| !unit.is_template());
    wanted.extend(real.flat_map(&references));
    let mut count = 0;
    // The second round is for the default instances.
    for _ in 0..2 {
        while let Some(name) = wanted.pop_front() {
            if loaded.units.contains_key(&name) || count >= MAX_INSTANCES {
                continue;
            }
            if loaded.instantiate(&name, files, document)? {
                count += 1;
                wanted.extend(loaded.units.get(&name).map(&references).unwrap_or_default());
            }
        }
        let used: BTreeSet<String> = loaded.order.iter().filter_map(|name| unit::template_of(name)).collect();
        let defaults = loaded.units.values().filter(|unit| unit.is_template() && !used.contains(&unit.name));
        wanted.extend(defaults.filter_map(|unit| {
            let instance = unit.last("Install", "DefaultInstance")?;
            Some(unit.name.replacen("@.", &format!("@{}.", instance.value), 1))
        }));
    }
    let used: BTreeSet<String> = loaded.order.iter().filter_map(|name| unit::template_of(name)).collect();
    loaded.order.retain(|name| {
        let Some(unit) = loaded.units.get(name).filter(|unit| unit.is_template()) else { return true };
        if !used.contains(name) {
            let why = "a template without an instance: name the file `x@INSTANCE.service`, or use `replicas`";
            document.inexact(&unit.top, why);
        }
        false
    });
    loaded.units.retain(|_, unit| !unit.is_template());
    for unit in loaded.units.values_mut() {
        unit.remove_overridden(document);
    }
    Ok(())
}

/// What starts a service beside the startup.
struct Trigger {
    when: Value,
    place: SourceLine,
    /// A job that must come first: a delay.
    delay: Option<Job>,
    /// The job that it starts, if it is not the first one of the service.
    target: Option<String>,
}

/// A dependency on another unit.
struct Need {
    on: String,
    bind: bool,
    /// The lines that ask for it.
    places: Vec<SourceLine>,
}

/// The units, and what they say about each other.
#[derive(Default)]
struct UnitGraph {
    units: BTreeMap<String, Unit>,
    order: Vec<String>,
    links: Vec<Link>,
    /// What other units set for a unit, by its name and the key: links, and `WantedBy=` and others of `[Install]`.
    installed: BTreeMap<(String, &'static str), Vec<(String, SourceLine)>>,
    /// The job of each service.
    jobs: BTreeMap<String, String>,
    /// The services of each target.
    members: BTreeMap<String, BTreeSet<String>>,
    needs: BTreeMap<String, Vec<Need>>,
    after: BTreeMap<String, BTreeMap<String, SourceLine>>,
    pulls: BTreeMap<String, BTreeSet<String>>,
    triggers: BTreeMap<String, Vec<Trigger>>,
    /// The services that start with the container.
    boot: BTreeSet<String>,
    /// The jobs of `ExecStopPost=` of each service.
    last_hooks: BTreeMap<String, Vec<String>>,
    /// The jobs of `ExecStop=` and `ExecStopPost=` of each oneshot that remains.
    shutdown_hooks: Vec<(String, Vec<String>)>,
    /// The services that come after each service.
    users: BTreeMap<String, Vec<String>>,
    /// The services that a timer or the end of another one starts.
    triggered: BTreeSet<String>,
}

/// The keys of `[Install]`, and what they mean in the other unit.
const INSTALL: [(&str, &str); 3] =
    [("WantedBy", "Wants"), ("RequiredBy", "Requires"), ("UpheldBy", "Upholds")];

impl UnitGraph {
    /// Removes units without content, which systemd does not start, and second names of others.
    fn mask(&mut self, document: &mut Document) {
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

    fn name_jobs(&mut self, document: &mut Document) {
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
    fn listed(&self, unit: &str, key: &'static str) -> Vec<(String, SourceLine)> {
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
    fn relate(&mut self, document: &mut Document) {
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
        for (from, to) in graph::cyclic(&edges) {
            if let Some(place) = self.after.get_mut(&from).and_then(|after| after.remove(&to)) {
                document.inexact(&place, format!("`{from}` after `{to}` is part of a cycle"));
            }
        }
    }

    /// The services that start with the container: enabled or named ones, and what they pull in.
    fn started(&mut self, named: &[String]) {
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

    /// `After=` a simple service: it counts as started when its process runs. If that service waits itself, only `requires` can
    /// wait for it.
    fn order_simple(&mut self, document: &mut Document) {
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
                let simple = self.units.get(other).is_some_and(|unit| Kind::of(unit) == Kind::Simple);
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
