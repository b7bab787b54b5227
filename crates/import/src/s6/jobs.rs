//! The jobs of the services, and what connects them.

use std::collections::{BTreeMap, BTreeSet};

use super::importer::{Importer, START_BUNDLES, Service, ServiceType};
use super::script::{self, Simple};
use crate::conditions::{at_shutdown, ended, on};
use crate::document::{Field, Fields, Job, Value};

impl Importer<'_> {
    /// Adds all jobs to the new file.
    pub(super) fn emit(&mut self) {
        let init = self.emit_init();
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in self.order.clone().iter().filter(|name| !START_BUNDLES.contains(&name.as_str())) {
            if self.services.get(name).is_some_and(|service| service.kind == ServiceType::Bundle) {
                for member in self.members(name) {
                    groups.entry(self.alias(&member)).or_default().push(name.clone());
                }
            }
        }
        for (pipeline, consumer) in &self.pipelines {
            groups.entry(self.alias(consumer)).or_default().push(pipeline.clone());
        }
        let mut last = Vec::new();
        for name in self.order.clone() {
            let Some(service) = self.services.remove(&name) else { continue };
            if service.kind == ServiceType::Bundle || self.loggers.contains_key(&name) {
                if service.kind == ServiceType::Bundle {
                    self.settings(&service, &mut Vec::new());
                }
                self.services.insert(name, service);
                continue;
            }
            let mut after = Vec::new();
            let mut fields = self.run(&service, &mut after);
            self.settings(&service, &mut fields);
            if let Some(groups) = groups.get(&name) {
                fields.set("groups", groups.clone(), None);
            }
            if let Some(logging) = self.logs.remove(&name) {
                fields.set("logging", logging, None);
            }
            if service.is_down() {
                fields.set("when", "manual", None);
                fields.note("when", format!("{}/down", service.path));
            } else if !self.started.contains(&name) {
                fields.set("when", "manual", None);
            } else if let Some(init) = &init {
                fields.set("when", ended(init), None);
            }
            self.services.insert(name.clone(), service);
            self.require(&name, &mut fields);
            let Some(service) = self.services.get(&name) else { continue };
            let first = if service.files.contains("type") { "type" } else { "run" };
            let from = Some(self.place(&format!("{}/{first}", service.path)));
            let from =
                from.filter(|place| !fields.first().is_some_and(|field| field.from.as_ref() == Some(place)));
            self.document.jobs.push(Job { name: service.job.clone(), from, fields });
            for job in after {
                match job.fields.get("when").is_some() {
                    true => self.document.jobs.push(job),
                    false => last.push((name.clone(), job)),
                }
            }
        }
        self.emit_down(last);
        self.emit_finish();
        if self.has_unknown_paths {
            self.document.remark(
                "Scripts run where they were found: change `exec` and `cwd` to where they are in the image.",
            );
        }
    }

    /// `cont-init.d`: one after the other, also after a failure. Returns the last job.
    fn emit_init(&mut self) -> Option<String> {
        let mut previous: Option<String> = None;
        for path in std::mem::take(&mut self.init) {
            let place = self.place(&path);
            let mut fields = Vec::new();
            fields.set("exec", vec![self.in_image(&path)], Some(&place));
            if let Some(previous) = &previous {
                fields.set("when", ended(previous), None);
            }
            let name = self.document.free_name(script::base(&path).trim_end_matches(".sh"));
            self.document.jobs.push(Job { name: name.clone(), from: None, fields });
            previous = Some(name);
        }
        previous
    }

    /// `cont-finish.d`: when everything has stopped, one after the other.
    fn emit_finish(&mut self) {
        let lives: Vec<String> = self
            .order
            .iter()
            .filter(|name| self.started.contains(*name) && !self.loggers.contains_key(*name))
            .filter_map(|name| self.services.get(name))
            .filter(|service| service.kind == ServiceType::Longrun && !service.is_down())
            .map(|service| service.job.clone())
            .collect();
        let mut previous: Option<String> = None;
        for path in std::mem::take(&mut self.finish) {
            let place = self.place(&path);
            let name = self.document.free_name(script::base(&path).trim_end_matches(".sh"));
            let mut fields = Vec::new();
            fields.set("exec", vec![self.in_image(&path)], Some(&place));
            let when = match previous.replace(name.clone()) {
                Some(previous) => on(&previous, "once", "stopped"),
                None => at_shutdown(&lives),
            };
            fields.set("when", when, None);
            self.document.jobs.push(Job { name, from: None, fields });
        }
    }

    /// `down` of oneshots: at the shutdown, when what depends on them has stopped.
    fn emit_down(&mut self, hooks: Vec<(String, Job)>) {
        let downs: BTreeMap<String, String> =
            hooks.iter().map(|(name, job)| (name.clone(), job.name.clone())).collect();
        let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (user, required) in &self.requires {
            for (other, _) in required {
                users.entry(other.clone()).or_default().push(user.clone());
            }
        }
        for (name, mut job) in hooks {
            let (mut seen, mut next, mut stopped) = (BTreeSet::new(), vec![name.clone()], Vec::new());
            while let Some(at) = next.pop() {
                for user in users.get(&at).into_iter().flatten().filter(|user| self.started.contains(*user)) {
                    if !seen.insert(user.clone()) {
                        continue;
                    }
                    let kind = self.services.get(user).map(|service| service.kind);
                    match (kind, downs.get(user)) {
                        (Some(ServiceType::Longrun), _) => stopped.extend(self.job(user)),
                        (_, Some(down)) => stopped.push(down.clone()),
                        _ => next.push(user.clone()),
                    }
                }
            }
            stopped.sort();
            job.fields.set("when", at_shutdown(&stopped), None);
            // What the oneshot depends on stops after it.
            let required: Vec<String> = self
                .requires
                .get(&name)
                .into_iter()
                .flatten()
                .filter_map(|(other, _)| self.job(other))
                .collect();
            for other in self.document.jobs.iter_mut().filter(|other| required.contains(&other.name)) {
                if other.fields.get("restarts").is_none() {
                    continue;
                }
                let mut after = match other.fields.get("stopAfter") {
                    Some(Value::List(items)) => items.clone(),
                    _ => Vec::new(),
                };
                after.push(job.name.as_str().into());
                other.fields.set("stopAfter", Value::List(after), None);
            }
            self.document.jobs.push(job);
        }
    }

    /// What the service runs.
    fn run(&mut self, service: &Service, after: &mut Vec<Job>) -> Vec<Field> {
        let mut fields = Vec::new();
        if service.kind == ServiceType::Oneshot {
            self.up(service, "up", &mut fields);
            if let Some((timeout, place)) = self.milliseconds(service, "timeout-up") {
                fields.set("timeout", timeout, Some(&place));
            }
            if service.files.contains("down") {
                let mut down = Vec::new();
                self.up(service, "down", &mut down);
                if let Some((timeout, place)) = self.milliseconds(service, "timeout-down") {
                    down.set("timeout", timeout, Some(&place));
                }
                let nothing = matches!(down.get("exec"), Some(Value::List(words)) if *words == vec![Value::from("true")]);
                if !nothing {
                    let name = self.document.free_name(&format!("{}-down", service.job));
                    after.push(Job { name, from: None, fields: down });
                }
            }
            return fields;
        }
        let path = format!("{}/run", service.path);
        let simple = self.text(&path).and_then(|text| script::simplify(&text));
        let other_directory = simple.as_ref().is_some_and(|simple| simple.cwd.is_some());
        let own: Vec<&str> =
            ["data", "env"].into_iter().filter(|name| service.files.contains(*name)).collect();
        match &simple {
            Some(simple) => program(&mut fields, simple),
            None => fields.set("exec", vec!["./run"], Some(&self.place(&path))),
        }
        if other_directory {
            for name in own {
                let place = self.place(&format!("{}/{name}", service.path));
                self.document.not_needed(&place, "the program runs in another directory");
            }
        } else if simple.is_none() || !own.is_empty() {
            fields.set("cwd", self.in_image(&service.path), None);
            if !own.is_empty() {
                let names: Vec<String> = own.iter().map(|name| format!("`{name}`")).collect();
                fields.note("cwd", format!("The directory with {}.", names.join(" and ")));
            }
        }
        fields.set("restarts", "unlimited", None);
        if service.files.contains("finish") {
            after.extend(self.finish_script(service, &mut fields));
        }
        if let Some((_, place)) = self.value(service, "timeout-finish").filter(|_| after.is_empty()) {
            self.document.not_needed(&place, "no `finish` script runs");
        }
        fields
    }

    /// `up` and `down` are execline command lines.
    fn up(&mut self, service: &Service, file: &str, fields: &mut Vec<Field>) {
        let path = format!("{}/{file}", service.path);
        let text = self.text(&path);
        let empty = text.as_ref().is_none_or(|text| {
            text.lines().all(|(place, _)| place.text.is_empty() || place.text.starts_with('#'))
        });
        match text.as_ref().and_then(script::execline) {
            _ if empty => fields.set("exec", vec!["true"], Some(&self.place(&path))),
            Some(simple) => program(fields, &simple),
            None => fields.set(
                "exec",
                vec!["execlineb".to_owned(), "-P".to_owned(), self.in_image(&path)],
                Some(&self.place(&path)),
            ),
        }
    }

    /// `finish` runs after every exit. Known ones become keys of the job, others a hook.
    fn finish_script(&mut self, service: &Service, fields: &mut Vec<Field>) -> Option<Job> {
        let path = format!("{}/finish", service.path);
        let place = self.place(&path);
        let text = self.text(&path);
        let commands = text.as_ref().and_then(script::commands).unwrap_or_default();
        let halts = |line: &str| {
            line.contains("s6-svscanctl -t") || line.ends_with("/basedir/bin/halt") || line == "halt"
        };
        let early = |line: &str| {
            line.split_whitespace().any(|word| {
                matches!(word.trim_end_matches(';'), "exit" | "exec" | "return" | "if" | "ifelse" | "case")
            })
        };
        match commands.as_slice() {
            [] if text.is_some() => return None,
            [one] if matches!(one.text.as_str(), "exit 0" | "true" | ":") => return None,
            [one] if one.text == "exit 125" => {
                fields.set("restarts", "never", Some(one));
                return None;
            }
            [before @ .., last] if halts(last.text.trim_start_matches("exec ")) => {
                let text = text.as_ref().map_or("", |text| text.text.as_str());
                let unindented = text.lines().any(|line| line == last.text);
                let conditional = before.iter().any(|line| {
                    early(&line.text) && !line.text.starts_with("if test") && !line.text.starts_with("if [")
                });
                if unindented && !conditional {
                    fields.set("restarts", "never", Some(last));
                    fields.set("onFailure", "shutdown", Some(last));
                    fields.set("onSuccess", "shutdown", Some(last));
                    return None;
                }
            }
            _ => {}
        }
        if commands
            .iter()
            .any(|line| line.text.contains("s6-svscanctl -t") || line.text.contains("basedir/bin/halt"))
        {
            self.document.inexact(
                &place,
                "it stops the container under a condition: use `onFailure: \"shutdown\"` and `successCodes`",
            );
            return None;
        }
        self.document.inexact(
            &place,
            "it runs once, when the job has ended, and not after every exit; its arguments are 0 and 0",
        );
        let mut hook = Vec::new();
        hook.set("exec", vec!["./finish", "0", "0"], Some(&place));
        hook.set("cwd", self.in_image(&service.path), None);
        match self.milliseconds(service, "timeout-finish") {
            Some((timeout, place)) => hook.set("timeout", timeout, Some(&place)),
            None if service.files.contains("timeout-finish") => {}
            None => hook.set("timeout", "5s", None),
        }
        hook.set("when", on(&service.job, "once", "stopped"), None);
        Some(Job {
            name: self.document.free_name(&format!("{}-finish", service.job)),
            from: None,
            fields: hook,
        })
    }

    /// `requires` of the dependencies.
    fn require(&mut self, name: &str, fields: &mut Vec<Field>) {
        let required = self.requires.get(name).cloned().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut items = Vec::new();
        for (other, place) in required {
            let Some(job) = self.job(&other).filter(|job| !job.is_empty() && seen.insert(job.clone())) else {
                continue;
            };
            let comments = place.iter().map(|place| place.to_string().trim_end().to_owned()).collect();
            items.push(Value::from(job).commented(comments));
        }
        if !items.is_empty() {
            fields.set("requires", Value::List(items), None);
        }
    }
}

fn program(fields: &mut Vec<Field>, simple: &Simple) {
    let (last, others) =
        simple.lines.split_last().map_or((None, &[][..]), |(last, others)| (Some(last), others));
    let comments: Vec<String> = others.iter().chain(last).map(ToString::to_string).collect();
    fields.set("exec", Value::from(simple.words.clone()).commented(comments), None);
    if let Some(account) = &simple.user {
        let (user, group) =
            account.split_once(':').map_or((account.as_str(), None), |(user, group)| (user, Some(group)));
        fields.set("user", user, None);
        if let Some(group) = group {
            fields.set("group", group, None);
        }
    }
    for (key, value) in [("cwd", &simple.cwd), ("umask", &simple.umask)] {
        if let Some(value) = value {
            fields.set(key, value.as_str(), None);
        }
    }
    if !simple.env.is_empty() {
        let mut env = Vec::new();
        for (name, value) in &simple.env {
            env.set(name, value.as_str(), None);
        }
        fields.set("env", Value::Object(env), None);
    }
}
