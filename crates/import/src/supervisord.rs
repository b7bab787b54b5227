//! supervisord: an INI file with a section for each program, and the files that it includes.

mod expand;
mod include;
mod logs;
mod program;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ImportError;
use crate::document::{Document, Field, Fields, Value};
use crate::files::{Files, SourceLine, Text, directory, join};
use crate::ini::{Ini, IniOption, Section};
use expand::{Expanded, Names, plain};

/// The defaults of supervisord.
const PRIORITY: i64 = 999;
const START_SECONDS: u64 = 1;
const START_RETRIES: u64 = 3;
const STOP_SECONDS: u64 = 10;

/// The maximum length of all `stopAfter` together.
const MAX_STOP_AFTER: usize = 1 << 20;

/// Reads the files of supervisord.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let ini = read(paths, files, document)?;
    let groups = groups(&ini, document)?;
    if groups.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::Empty { path, message: "no file has a section [program:x]" });
    }
    let mut names = Names::default();
    names.set("host_node_name", vec![expand::Piece::Action(".HOSTNAME".into())]);
    let mut defaults = settings::convert(&ini, &mut names, document)?;
    other_sections(&ini, document);
    let mut converted = Vec::new();
    let mut log_files = BTreeSet::new();
    for group in &groups {
        for section in &group.sections {
            converted.extend(program::convert(section, group, &names, &mut log_files, document)?);
        }
    }
    stop_order(&converted, document);
    if !converted.iter().any(|program| program.always_restarts) {
        document.remark(
            "supervisord keeps running when all of its programs have ended. containerpilot then exits, with the code of the \
             first that failed.",
        );
    }
    let mut all = program::defaults();
    all.append(&mut defaults);
    document.top.set("defaults", Value::Object(all), None);
    document.top.note("defaults", "What supervisord does with a program that sets nothing else.");
    document.sort_by_line();
    Ok(())
}

/// Reads all files.
fn read(paths: &[String], files: &dyn Files, document: &mut Document) -> Result<Ini, ImportError> {
    let mut ini = Ini::default();
    let mut done = BTreeSet::new();
    for path in paths {
        for path in in_directory(path, files)? {
            if !done.insert(path.clone()) {
                continue;
            }
            ini.read(&Text::read(files, &path)?, document)?;
            let Some(include) = ini.remove("include") else { continue };
            let Some(entry) = include.options.get("files") else {
                return Err(invalid(&include.place, "the section needs `files=`"));
            };
            let mut names = Names::default();
            names.set_text("here", directory(&path));
            // The patterns are relative to this directory anyway.
            let patterns =
                entry.value.replace("%(here)s/", if path.starts_with('/') { "%(here)s/" } else { "" });
            let patterns = names.expand(&patterns).map_err(|why| invalid(&entry.place, why))?;
            let Some(patterns) = plain(&patterns) else {
                document
                    .inexact(&entry.place, "it depends on a variable: name the files as further arguments");
                continue;
            };
            for pattern in patterns.split_whitespace() {
                let pattern = join(directory(&path), pattern);
                let found = include::matching(&pattern, files);
                if found.is_empty() {
                    document.inexact(
                        &entry.place,
                        format!("no file matches {pattern}: name its files as further arguments"),
                    );
                }
                for path in found {
                    if done.len() > include::MAX_FILES {
                        let why = format!("it includes more than {} files", include::MAX_FILES);
                        return Err(invalid(&entry.place, why));
                    }
                    if done.insert(path.clone()) {
                        ini.read(&Text::read(files, &path)?, document)?;
                    }
                    if let Some(include) = ini.remove("include") {
                        document
                            .inexact(&include.place, "supervisord does not read this in an included file");
                    }
                }
            }
        }
    }
    Ok(ini)
}

/// The files of a path: itself, or what a directory has.
fn in_directory(path: &str, files: &dyn Files) -> Result<Vec<String>, ImportError> {
    let Some(names) = files.list(path) else { return Ok(vec![path.to_owned()]) };
    let names: Vec<String> = match names.iter().any(|name| name == "supervisord.conf") {
        true => vec!["supervisord.conf".to_owned()],
        false => names.into_iter().filter(|name| name.ends_with(".conf") || name.ends_with(".ini")).collect(),
    };
    if names.is_empty() {
        let message = "the directory has no supervisord.conf, and no other file *.conf or *.ini";
        return Err(ImportError::Empty { path: path.to_owned(), message });
    }
    Ok(names.iter().map(|name| join(path, name)).collect())
}

fn invalid(place: &SourceLine, message: impl Into<String>) -> ImportError {
    ImportError::Invalid { file: place.file.clone(), line: place.line, message: message.into() }
}

/// Programs that start and stop together. A program that is in no group is a group of its own.
struct Group<'a> {
    name: String,
    priority: i64,
    /// The line that sets the priority.
    priority_from: Option<SourceLine>,
    /// The line that lists the programs of a `[group:x]`.
    from: Option<SourceLine>,
    sections: Vec<&'a Section>,
}

/// The groups in the order of their starts.
fn groups<'a>(ini: &'a Ini, document: &mut Document) -> Result<Vec<Group<'a>>, ImportError> {
    let mut priority = |section: &Section| match section.options.get("priority") {
        Some(entry) if entry.value.contains("%(") => {
            document.inexact(&entry.place, "it depends on a variable, which is not possible for this key");
            Ok((PRIORITY, None))
        }
        Some(entry) => {
            let priority = entry.value.trim().parse::<i64>();
            let priority = priority.map_err(|_| invalid(&entry.place, "the priority is not an integer"))?;
            Ok((priority, Some(entry.place.clone())))
        }
        None => Ok((PRIORITY, None)),
    };
    let mut groups = Vec::new();
    let mut in_groups = BTreeSet::new();
    for section in &ini.sections {
        let Some(name) = section.name.strip_prefix("group:") else { continue };
        let Some(entry) = section.options.get("programs") else {
            return Err(invalid(&section.place, "the group needs `programs=`"));
        };
        let mut members = Vec::new();
        for program in entry.value.split(',').map(str::trim).filter(|program| !program.is_empty()) {
            match (
                ini.section(&format!("program:{program}")),
                ini.section(&format!("fcgi-program:{program}")),
            ) {
                (Some(section), _) => {
                    if in_groups.insert(program) {
                        members.push(section);
                    }
                }
                // It is listed as left out.
                (None, Some(_)) => {}
                (None, None) => {
                    return Err(invalid(&entry.place, format!("there is no [program:{program}]")));
                }
            }
        }
        let (priority, priority_from) = priority(section)?;
        let (name, from) = (name.trim().to_owned(), Some(entry.place.clone()));
        groups.push(Group { name, priority, priority_from, from, sections: members });
    }
    for section in &ini.sections {
        let Some(name) = section.name.strip_prefix("program:").map(str::trim) else { continue };
        if in_groups.contains(name) {
            continue;
        }
        let (priority, priority_from) = priority(section)?;
        let name = name.to_owned();
        groups.push(Group { name, priority, priority_from, from: None, sections: vec![section] });
    }
    groups.retain(|group| !group.sections.is_empty());
    groups.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
    Ok(groups)
}

/// The sections that are no programs.
fn other_sections(ini: &Ini, document: &mut Document) {
    for section in &ini.sections {
        let place = &section.place;
        let (kind, _) = section.name.split_once(':').unwrap_or((&section.name, ""));
        let known: &[&str] = match kind {
            "program" | "supervisord" => continue,
            "group" => &["programs", "priority"],
            // It was read before.
            "" => continue,
            "DEFAULT" => {
                document.inexact(place, "write these keys into the sections of the programs");
                continue;
            }
            "unix_http_server" | "supervisorctl" | "ctlplugin" => {
                document.not_needed(place, "the commands of containerpilot use its own control socket");
                continue;
            }
            "rpcinterface" => {
                document.not_needed(place, "the control socket is always there");
                continue;
            }
            "inet_http_server" => {
                document.inexact(
                    place,
                    "control is possible through a unix socket only; `telemetry` has a page to look at",
                );
                continue;
            }
            "eventlistener" => {
                document.inexact(place, listener_advice(section));
                continue;
            }
            "fcgi-program" => {
                let why = "supervisord passes it a socket as standard input: run a program that opens the socket itself";
                document.inexact(place, why);
                continue;
            }
            _ => {
                document.inexact(place, "supervisord has no such section");
                continue;
            }
        };
        let unknown = section.options.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        for (_, entry) in unknown {
            document.inexact(&entry.place, "supervisord does not know this key");
        }
    }
}

/// What to do in place of an event listener.
fn listener_advice(section: &Section) -> String {
    let events = section.options.get("events").map(|entry| entry.value.to_uppercase()).unwrap_or_default();
    let advice = if events.contains("PROCESS_STATE") {
        "to stop the container with a program, add `onFailure: \"shutdown\"` to its job; to react to it, add a job at its `exitFailed`"
    } else if events.contains("TICK") {
        "add a job with `when: { interval: … }`"
    } else if events.contains("PROCESS_LOG") || events.contains("PROCESS_COMMUNICATION") {
        "the output of all jobs is in the log"
    } else {
        "programs can read `containerpilot events`"
    };
    format!("jobs get no events on standard input: {advice}")
}

/// A converted program, for the order of the stops.
struct Converted {
    job: usize,
    priority: i64,
    priority_from: Option<SourceLine>,
    stop_seconds: u64,
    always_restarts: bool,
}

/// `stopAfter` of the jobs, and the time for all of them: supervisord stops the programs with the highest priority first, and waits for them.
fn stop_order(converted: &[Converted], document: &mut Document) {
    let mut levels: BTreeMap<i64, Vec<&Converted>> = BTreeMap::new();
    for program in converted {
        levels.entry(program.priority).or_default().push(program);
    }
    let slowest =
        |level: &Vec<&Converted>| level.iter().map(|program| program.stop_seconds).max().unwrap_or(0);
    let total = levels.values().map(slowest).fold(0, u64::saturating_add);
    let total = total.min(program::MAX_SECONDS);
    document.top.set("stopTimeout", Duration::from_secs(total), None);
    if levels.len() > 1 {
        document.top.note(
            "stopTimeout",
            "The time of all priorities together: supervisord stops them one after the other.",
        );
    }
    let mut later: Vec<String> = Vec::new();
    let (mut length, mut length_of_all) = (0_usize, 0_usize);
    for level in levels.values().rev() {
        length_of_all = length_of_all.saturating_add(length.saturating_mul(level.len()));
        if length_of_all > MAX_STOP_AFTER {
            let place = level.iter().find_map(|program| program.priority_from.as_ref());
            if let Some(place) = place {
                document.inexact(place, "there are too many priorities: no order of the stops from here on");
            }
            return;
        }
        if later.is_empty() {
            for place in level.iter().filter_map(|program| program.priority_from.as_ref()) {
                document.not_needed(place, "it starts last and stops first");
            }
        }
        for program in level {
            let Some(job) = document.jobs.get_mut(program.job).filter(|_| !later.is_empty()) else {
                continue;
            };
            job.fields.set("stopAfter", later.clone(), program.priority_from.as_ref());
        }
        let level = level.iter().filter_map(|program| document.jobs.get(program.job));
        later.extend(level.map(|job| job.name.clone()));
        length = later.iter().map(|name| name.len() + 4).sum();
    }
}

/// The options of a section that were not read yet.
struct Options<'a> {
    section: &'a Section,
    names: Names,
    left: BTreeSet<&'a str>,
}

impl<'a> Options<'a> {
    fn new(section: &'a Section, names: &Names) -> Self {
        let left = section.options.keys().map(String::as_str).collect();
        Self { section, names: names.clone(), left }
    }

    /// The option as it is written.
    fn raw(&mut self, name: &str) -> Option<&'a IniOption> {
        self.left.remove(name);
        self.section.options.get(name)
    }

    /// The option with everything replaced.
    fn get(&mut self, name: &str) -> Result<Option<(Expanded, &'a SourceLine)>, ImportError> {
        let Some(entry) = self.raw(name) else { return Ok(None) };
        // `here` is the directory of the file with this line.
        self.names.set_text("here", directory(&entry.place.file));
        let value = self.names.expand(&entry.value).map_err(|why| invalid(&entry.place, why))?;
        Ok(Some((value, &entry.place)))
    }

    /// The option, if it does not depend on a variable.
    fn text(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(String, &'a SourceLine)>, ImportError> {
        let Some((value, place)) = self.get(name)? else { return Ok(None) };
        let text = plain(&value);
        if text.is_none() {
            document.inexact(place, "it depends on a variable, which is not possible for this key");
        }
        Ok(text.map(|text| (text, place)))
    }

    fn number(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(u64, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some((number, place))),
            Err(_) => Err(invalid(place, format!("`{name}` is not a number that supervisord accepts"))),
        }
    }

    fn flag(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(bool, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "yes" | "true" | "on" | "1" => Ok(Some((true, place))),
            "no" | "false" | "off" | "0" => Ok(Some((false, place))),
            _ => Err(invalid(place, format!("`{name}` is `true` or `false`"))),
        }
    }

    /// A size such as `50MB`.
    fn bytes(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(u64, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        let text = text.to_lowercase();
        let units = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30)];
        let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (digits, factor) = unit.unwrap_or((&text, 1));
        match digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
            Some(bytes) => Ok(Some((bytes, place))),
            None => Err(invalid(place, format!("`{name}` is not a size such as 50MB"))),
        }
    }

    /// Variables of processes. Those that follow can name them.
    fn environment(
        &mut self,
        document: &mut Document,
    ) -> Result<Option<(Vec<Field>, &'a SourceLine)>, ImportError> {
        let Some((value, place)) = self.get("environment")? else { return Ok(None) };
        let (variables, skipped) = expand::environment(&value).map_err(|why| invalid(place, why))?;
        for text in skipped {
            document.inexact(
                place,
                format!("supervisord ignores `{text}`: a value with such characters needs quotes"),
            );
        }
        let mut env: Vec<Field> = Vec::new();
        let mut by_name = BTreeMap::new();
        for (name, text) in variables {
            let field = Field::new(&name, expand::value(&text));
            let index = *by_name.entry(name.clone()).or_insert(env.len());
            match env.get_mut(index) {
                Some(earlier) => *earlier = field,
                None => env.push(field),
            }
            self.names.set(&format!("ENV_{name}"), text);
        }
        Ok(Some((env, place)))
    }

    /// Lists all options that were not read.
    fn inexact_others(&self, document: &mut Document) {
        let mut others: Vec<&IniOption> =
            self.left.iter().filter_map(|name| self.section.options.get(*name)).collect();
        others.sort_by_key(|entry| (&entry.place.file, entry.place.line));
        for entry in others {
            document.inexact(&entry.place, "supervisord does not know this key");
        }
    }
}
