//! The jobs of the services, with what they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::converter::{Converted, Converter};
use super::service_type::ServiceType;
use super::unit_graph::{Trigger, UnitGraph};
use crate::conditions::{at_shutdown, on, or_failed};
use crate::depends_on;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::files::SourceLine;

impl UnitGraph {
    /// Adds all jobs to the new file.
    pub(super) fn emit(&mut self, document: &mut Document) {
        let mut stop_time = Duration::ZERO;
        self.triggered = self.triggers.keys().cloned().collect();
        let needed: BTreeSet<String> = self.needs.values().flatten().map(|need| need.on.clone()).collect();
        for (user, after) in &self.after {
            for other in after.keys() {
                self.users.entry(other.clone()).or_default().push(user.clone());
            }
        }
        let order: Vec<String> =
            self.order.iter().filter(|name| self.jobs.contains_key(*name)).cloned().collect();
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (target, members) in &self.members {
            for member in members {
                let group = target.trim_end_matches(".target").to_owned();
                groups.entry(member.clone()).or_default().push(group);
            }
        }
        for name in order {
            let (Some(unit), Some(job)) = (self.units.get(&name).cloned(), self.jobs.get(&name).cloned())
            else {
                continue;
            };
            let alone = self.jobs.len() == 1;
            let converter = Converter { unit: &unit, name: &job, alone, document };
            let mut converted = converter.convert();
            stop_time = stop_time.max(converted.stop_time.unwrap_or_default());
            let mut triggers = self.triggers.remove(&name).unwrap_or_default();
            let boot = self.boot.contains(&name);
            let merge = !boot && triggers.len() == 1 && converted.fields.get("restarts").is_none();
            let delays: Vec<Job> = triggers.iter_mut().filter_map(|trigger| trigger.delay.take()).collect();
            let first_when = if let Some(trigger) = triggers.pop_if(|_| merge) {
                Some((trigger.when, Some(trigger.place)))
            } else if boot {
                self.wait(&name, &mut converted, document);
                None
            } else {
                let note = match triggers.is_empty() {
                    true => vec![
                        "it is not enabled, and no unit that starts with the container wants it".to_owned(),
                    ],
                    false => Vec::new(),
                };
                Some((Value::from("manual").commented(note), None))
            };
            self.require(&name, &mut converted, document);
            let post = !unit.all("Service", "ExecStartPost").is_empty();
            let once = converted.fields.get("restarts").is_none() && converted.fields.get("ready").is_none();
            if ServiceType::of(&unit) == ServiceType::Simple && once && (post || needed.contains(&name)) {
                // Without a check, those that require a job that is not restarted would wait for its end.
                let health = vec![Field::new("interval", 10_u64), Field::new("ttl", 30_u64)];
                let note = vec!["it is healthy while it runs, for those that require it".to_owned()];
                converted.fields.set("health", Value::Object(health).commented(note), None);
            }
            let start = converted.before.first().map_or(job.clone(), |first| first.name.clone());
            let mut after_chain = None;
            if let Some((when, place)) = first_when {
                after_chain = chain(&mut converted, when, place.as_ref());
            }
            if let Some(previous) = after_chain {
                // Only an action can start a server again and again.
                let when = on(&previous, "each", "exitSuccess");
                triggers.push(Trigger {
                    when,
                    place: unit.top.clone(),
                    delay: None,
                    target: Some(job.clone()),
                });
            }
            if let Some(groups) = groups.get(&name) {
                let valid = groups.iter().map(|group| group.replace(['@', '.', ':', '\\'], "-"));
                converted.fields.set("groups", valid.collect::<Vec<_>>(), None);
            }
            let stopped = on(&job, "once", "stopped");
            let posts = converted.after.iter().filter(|hook| hook.fields.get("when") == Some(&stopped));
            self.last_hooks.insert(name.clone(), posts.map(|job| job.name.clone()).collect());
            self.shutdown_hooks.push((name.clone(), std::mem::take(&mut converted.at_shutdown)));
            let Converted { before, fields, after, .. } = converted;
            document.jobs.extend(delays.into_iter().chain(before));
            document.jobs.push(Job { name: job.clone(), from: None, fields });
            document.jobs.extend(after);
            for trigger in triggers {
                let mut fields = Vec::new();
                let target = trigger.target.as_ref().unwrap_or(if boot { &job } else { &start });
                fields.set("do", Value::Object(vec![Field::new("start", target.as_str())]), None);
                fields.set("when", trigger.when, Some(&trigger.place));
                let name = document.free_name(&format!("{job}-start"));
                document.jobs.push(Job { name, from: None, fields });
            }
        }
        self.at_shutdown(document);
        if stop_time > depends_on::STOP_TIMEOUT {
            document.top.set("stopTimeout", stop_time, None);
        }
    }

    /// `After=` without `Requires=`: waits for the start of the others, also if it fails.
    fn wait(&self, name: &str, converted: &mut Converted, document: &mut Document) {
        let hard: BTreeSet<&str> =
            self.needs.get(name).into_iter().flatten().map(|need| need.on.as_str()).collect();
        let mut waits: Vec<(String, &'static str, &SourceLine)> = Vec::new();
        for (other, place) in self.after.get(name).into_iter().flatten() {
            if hard.contains(other.as_str()) || !self.boot.contains(other) {
                continue;
            }
            let Some((unit, job)) = self.units.get(other).zip(self.jobs.get(other)) else { continue };
            match ServiceType::of(unit) {
                ServiceType::Simple => {}
                ServiceType::Notify => waits.push((job.clone(), "ready", place)),
                ServiceType::Oneshot => waits.push((job.clone(), "exitSuccess", place)),
            }
        }
        match waits.as_slice() {
            [] => {}
            [(job, event, place)] => {
                converted.fields.set("when", or_failed(job, event), Some(place));
            }
            [(_, _, first), others @ ..] => {
                let all: Vec<Value> = waits.iter().map(|(job, event, _)| on(job, "event", event)).collect();
                let mut comments: Vec<String> =
                    others.iter().map(|(_, _, place)| place.to_string()).collect();
                comments.retain(|line| *line != first.to_string());
                comments.dedup();
                let when = Value::Object(vec![Field::new("all", all)]).commented(comments);
                converted.fields.set("when", when, Some(first));
                document.inexact(first, "of several jobs that it comes after, all must succeed here; systemd starts it also after a failure");
            }
        }
    }

    /// `requires`, and `stopAfter` for the order of the stop.
    fn require(&self, name: &str, converted: &mut Converted, document: &mut Document) {
        let (mut first, mut comments) = (None, Vec::new());
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut requires: Vec<Value> = Vec::new();
        if let Some(last) = converted.before.last() {
            requires.push(last.name.as_str().into());
        }
        for need in self.needs.get(name).into_iter().flatten() {
            let Some(job) = self.jobs.get(&need.on) else { continue };
            if !self.boot.contains(&need.on) && self.triggered.contains(&need.on) {
                for place in &need.places {
                    document.inexact(place, format!("`{}` runs at its own times", need.on));
                }
                continue;
            }
            let lines = need.places.iter().map(ToString::to_string);
            let mut lines: Vec<String> = lines.filter(|line| seen.insert(line.clone())).collect();
            if first.is_none() {
                first = need.places.first();
                comments = lines.drain(..).skip(1).collect();
            }
            let source = match need.bind {
                true => Value::Object(vec![Field::new("source", job.as_str()), Field::new("bind", true)]),
                false => job.as_str().into(),
            };
            requires.push(source.commented(lines));
        }
        if !requires.is_empty() {
            // The first job before the service waits for the others, too.
            let others: Vec<Value> = requires.iter().skip(converted.before.len().min(1)).cloned().collect();
            if let Some(earliest) = converted.before.first_mut().filter(|_| !others.is_empty()) {
                earliest.fields.set("requires", Value::List(others.iter().map(plain).collect()), None);
            }
            converted.fields.set("requires", Value::List(requires).commented(comments), first);
        }
        if let Some(earliest) = converted.before.first_mut()
            && let Some(when) = converted.fields.get("when").cloned()
        {
            // The jobs before the service wait for the others in its place.
            earliest.fields.set("when", plain(&when), None);
            converted.fields.retain(|field| field.key != "when");
        }
        let waiting = self.users.get(name).into_iter().flatten().filter(|other| {
            let need = self.needs.get(*other).is_some_and(|needs| needs.iter().any(|need| need.on == name));
            !need && self.boot.contains(*other)
        });
        let later: Vec<String> = waiting.filter_map(|other| self.jobs.get(other).cloned()).collect();
        let lives = self.units.get(name).is_some_and(|unit| ServiceType::of(unit) != ServiceType::Oneshot);
        if !later.is_empty() && lives && self.boot.contains(name) {
            converted.fields.set("stopAfter", later, None);
        }
    }

    /// `ExecStop=` of a oneshot that remains: at the shutdown, after those that come after it, and before those that it comes after.
    fn at_shutdown(&self, document: &mut Document) {
        let hooks: BTreeMap<&String, &String> =
            self.shutdown_hooks.iter().filter_map(|(name, hooks)| Some((name, hooks.last()?))).collect();
        let mut users: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (user, after) in self.after.iter().filter(|(user, _)| self.boot.contains(*user)) {
            let posts = self.last_hooks.get(user).filter(|posts| !posts.is_empty()).cloned();
            let last = hooks.get(user).map(|hook| vec![(*hook).clone()]).or(posts);
            let last = last.or_else(|| Some(vec![self.jobs.get(user)?.clone()])).unwrap_or_default();
            for other in after.keys() {
                users.entry(other).or_default().extend(last.iter().cloned());
            }
        }
        let mut when: BTreeMap<&String, Value> = BTreeMap::new();
        let mut stop_after: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (name, hooks) in &self.shutdown_hooks {
            let mut previous: Option<&String> = None;
            for hook in hooks {
                let users = users.get(name).cloned().unwrap_or_default();
                let value = match previous.replace(hook) {
                    Some(previous) => on(previous, "once", "stopped"),
                    None => at_shutdown(&users),
                };
                when.insert(hook, value);
            }
            let lives = |other: &&String| {
                self.boot.contains(*other)
                    && self
                        .units
                        .get(*other)
                        .is_some_and(|unit| ServiceType::of(unit) != ServiceType::Oneshot)
            };
            for other in self.after.get(name).into_iter().flat_map(|after| after.keys()).filter(lives) {
                if let (Some(job), Some(hook)) = (self.jobs.get(other), hooks.last()) {
                    stop_after.entry(job).or_default().push(hook.clone());
                }
            }
        }
        for job in &mut document.jobs {
            if let Some(when) = when.remove(&job.name) {
                job.fields.set("when", when, None);
            }
            if let Some(hooks) = stop_after.remove(&job.name) {
                let mut all = match job.fields.get("stopAfter") {
                    Some(Value::List(items)) => items.clone(),
                    _ => Vec::new(),
                };
                all.extend(hooks.into_iter().map(Value::from));
                job.fields.set("stopAfter", Value::List(all), None);
            }
        }
    }
}

/// Starts a service that does not start with the container: `when` starts the first of its jobs, and each starts the next one.
/// Returns the last job before the service if an action must start the service after it.
fn chain(converted: &mut Converted, when: Value, place: Option<&SourceLine>) -> Option<String> {
    let server = converted.fields.get("restarts").is_some();
    let names: Vec<String> = converted.before.iter().map(|job| job.name.clone()).collect();
    let mut next = Some((when, place));
    let before = converted.before.iter_mut().map(|job| &mut job.fields);
    for (index, fields) in before.chain(std::iter::once(&mut converted.fields)).enumerate() {
        let previous = index.checked_sub(1).and_then(|at| names.get(at));
        if let Some(previous) = previous
            && let Some(required) = fields.iter_mut().find(|field| field.key == "requires")
            && let Value::List(items) = uncommented(&mut required.value)
        {
            items.retain(|item| plain(item) != Value::from(previous.as_str()));
        }
        fields.retain(|field| field.key != "requires" || plain(&field.value) != Value::List(Vec::new()));
        match (next.take(), previous) {
            (Some((when, place)), _) => fields.set("when", when, place),
            (None, Some(_)) if server && index == names.len() => fields.set("when", "manual", None),
            (None, Some(previous)) => fields.set("when", on(previous, "each", "exitSuccess"), None),
            (None, None) => {}
        }
    }
    names.last().filter(|_| server).cloned()
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Commented(_, inner) => plain(inner),
        other => other.clone(),
    }
}

fn uncommented(value: &mut Value) -> &mut Value {
    match value {
        Value::Commented(_, inner) => uncommented(inner),
        other => other,
    }
}
