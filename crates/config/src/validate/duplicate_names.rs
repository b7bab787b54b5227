//! Names that are used twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decode::Spanned;
use crate::default_names::{coprocess_name, job_name};
use crate::diagnostics::Severity;
use crate::fields::{ConfigFields, JobFields};
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports names that are used twice.
    pub(super) fn duplicate_names(&mut self, fields: &ConfigFields) {
        let advertised = |job: &JobFields| job.port.as_ref().is_some_and(|port| port.value != 0);
        let given = self.pairs.iter().rev().filter(|(job, _)| job.name.is_some());
        let first: BTreeMap<Cow<'_, str>, &JobFields> =
            given.filter_map(|(job, _)| Some((job_name(job)?, *job))).collect();
        for (job, _) in self.pairs.clone() {
            let (Some(name), Some(place)) = (job_name(job), job.name.as_ref().map(|given| given.place))
            else {
                continue;
            };
            let Some(other) = first.get(&name).filter(|first| !std::ptr::eq(**first, job)) else { continue };
            if advertised(job) && advertised(other) {
                let message = format!("two jobs with a `port` are named `{name}`");
                self.fault(
                    place,
                    message,
                    "they would overwrite each other in the catalog: rename one of them",
                );
            } else {
                let message = format!("two jobs are named `{name}`");
                self.report(
                    Severity::Warning,
                    place,
                    message,
                    "a job that waits for one of them cannot tell them apart",
                );
            }
        }
        for one in fields.coprocesses.iter().flat_map(|given| &given.value) {
            if let Some(name) = coprocess_name(one).filter(|name| first.contains_key(name.as_str())) {
                let place = one.name.as_ref().map_or(one.place.first_byte(), |given| given.place);
                let message = format!("a job and a coprocess are both named `{name}`");
                let help = "a job that waits for one of them cannot tell them apart";
                self.report(Severity::Warning, place, message, help);
            }
        }
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches: Vec<&Spanned<String>> = watches.filter_map(|watch| watch.name.as_ref()).collect();
        let first: BTreeMap<&str, &Spanned<String>> =
            watches.iter().rev().map(|name| (name.value.as_str(), *name)).collect();
        for name in watches {
            if first.get(name.value.as_str()).is_some_and(|first| !std::ptr::eq(*first, name)) {
                let message = format!("two watches are named `{}`", name.value);
                self.report(
                    Severity::Warning,
                    name.place,
                    message,
                    "a job that waits for one of them cannot tell them apart",
                );
            }
        }
    }
}
