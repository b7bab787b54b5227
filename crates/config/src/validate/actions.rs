//! Targets of actions that do not exist, and names that look like groups (W19, W22).

use std::collections::BTreeSet;

use containerpilot_core::inserted;
use containerpilot_core::plan::{Action, Job, Restarts, Target};

use crate::decode::Spanned;
use crate::default_names::job_name;
use crate::diagnostics::Severity;
use crate::fields::JobFields;
use crate::lower::TELEMETRY_JOB;
use crate::suggest;
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports actions whose target does not exist or is the job itself.
    pub(super) fn actions(&mut self) {
        let groups = self.pairs.iter().filter_map(|(fields, _)| fields.groups.as_ref());
        let groups: BTreeSet<String> = inserted(groups.flat_map(|given| given.value.iter().cloned()));
        for (fields, job) in self.pairs.clone() {
            self.group_as_name(fields);
            let Some(action) = fields.action.as_ref().map(|given| &given.value) else { continue };
            let targets = [&action.to, &action.start, &action.stop, &action.restart];
            for given in targets.into_iter().flatten() {
                self.target(given, fields, &groups);
            }
            if let Some(job) = job {
                self.repeated_shutdown(fields, job);
            }
        }
    }

    fn target(&mut self, given: &Spanned<String>, fields: &JobFields, groups: &BTreeSet<String>) {
        let name = given.value.as_str();
        let known: Vec<String> = match Target::named(name) {
            Target::Group(group) if groups.contains(&group) => return,
            Target::Group(_) => groups.iter().map(|group| format!("@{group}")).collect(),
            Target::Job(_)
                if name == TELEMETRY_JOB && self.names.jobs.get(name).is_some_and(Vec::is_empty) =>
            {
                let message = "the telemetry job is part of the supervisor".to_owned();
                return self.report(Severity::Error, given.place, message, "name another job");
            }
            Target::Job(_) if job_name(fields).as_deref() == Some(name) => {
                let message = format!("`{name}` cannot act on itself: it has no process");
                return self.report(Severity::Error, given.place, message, "name another job");
            }
            Target::Job(_) if self.names.jobs.contains_key(name) => return,
            Target::Job(_) => self.names.jobs.keys().cloned().collect(),
        };
        if self.names_incomplete {
            return;
        }
        let is_group = name.starts_with('@');
        let kind = if is_group { "group" } else { "job" };
        let help = match suggest::nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if !is_group && groups.contains(name) => format!("`{name}` is a group: write \"@{name}\""),
            None if is_group && known.is_empty() => "no job has `groups`".to_owned(),
            None if known.len() > 20 => format!("it must be the name of a {kind}"),
            None => format!("the {kind}s are {}", known.join(", ")),
        };
        self.report(Severity::Error, given.place, format!("unknown {kind} `{name}`"), help);
    }

    /// A command takes a name with `@` for a group.
    fn group_as_name(&mut self, fields: &JobFields) {
        let Some(name) = job_name(fields).filter(|name| name.starts_with('@')) else { return };
        let place = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
        let message = format!("no command can name the job `{name}`: as a target, this is a group");
        self.report(Severity::Warning, place, message, "rename the job");
    }

    /// A container that shuts down needs no restarts.
    fn repeated_shutdown(&mut self, fields: &JobFields, job: &Job) {
        if let (Some(Action::Shutdown(_)), Some(given)) = (job.exec.action(), &fields.restarts)
            && job.restarts != Restarts::Limited(0)
            && fields.place.contains(given.key)
        {
            let message = "`restarts` has no effect with `do: { shutdown: … }`".to_owned();
            self.report(Severity::Warning, given.key, message, "remove it");
        }
    }
}
