//! Processes that cannot be started on this host because of their directory or user (C7).

use containerpilot_core::plan::{Job, Principal};

use crate::diagnostics::Severity;
use crate::fields::JobFields;
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about directories that do not exist, and about users that the supervisor cannot switch to.
    pub(super) fn processes(&mut self) {
        for (fields, job) in self.pairs.clone() {
            let Some(job) = job else { continue };
            if let Some(given) = fields.cwd.as_ref().filter(|given| !given.value.is_empty())
                && !self.host.is_directory(&given.value)
            {
                let message = format!("directory `{}` not found", given.value);
                let help = "the job will fail unless the directory exists when it runs";
                self.report(Severity::Warning, given.place, message, help);
            }
            self.switched_user(fields, job);
        }
    }

    /// P9: only a privileged supervisor can switch users and groups.
    fn switched_user(&mut self, fields: &JobFields, job: &Job) {
        let (key, given) = match (&fields.user, &fields.group) {
            (Some(user), _) => ("user", user),
            (None, Some(group)) => ("group", group),
            (None, None) => return,
        };
        if !self.host.can_switch_to(&job.process) {
            let name = match &given.value {
                Principal::Name(name) => name.clone(),
                Principal::Id(id) => id.to_string(),
            };
            let message = format!("no permission to switch to {key} `{name}`");
            let help =
                format!("run the supervisor as root (with CAP_SETUID and CAP_SETGID), or remove `{key}`");
            self.report(Severity::Warning, given.place, message, help);
        }
    }
}
