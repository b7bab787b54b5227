//! Names that are used twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use containerpilot_core::inserted;
use containerpilot_core::plan::Signal;

use crate::decode::Spanned;
use crate::default_names::{coprocess_name, job_name};
use crate::diagnostics::Severity;
use crate::fields::{ConfigFields, JobFields};
use crate::lower::TELEMETRY_JOB;
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about jobs whose events cannot be named, or are mixed up with others (E1).
    pub(super) fn reserved_names(&mut self, fields: &ConfigFields) {
        for (job, _) in self.pairs.clone() {
            let (Some(name), place) = (job_name(job), job.name.as_ref().map(|given| given.place)) else {
                continue;
            };
            let taken = match &*name {
                "global" => "is the source of the supervisor's own events",
                name if self.is_signal_source(name) => "is a signal",
                name if name.starts_with("watch.") => "is the name of a watch",
                name if name.starts_with("lock.") => "is the name of a lock",
                TELEMETRY_JOB if fields.telemetry.is_some() => {
                    let message = format!("the telemetry server is a job named `{name}`, too");
                    let help = "a job that waits for one of them cannot tell them apart: rename the job";
                    self.report(Severity::Warning, place.unwrap_or(job.place.first_byte()), message, help);
                    continue;
                }
                _ => continue,
            };
            let message = format!("no job can wait for the job `{name}`: as a source, this {taken}");
            self.report(
                Severity::Warning,
                place.unwrap_or(job.place.first_byte()),
                message,
                "rename the job",
            );
        }
    }

    /// Returns true for a signal that may be a source (W3, S8).
    fn is_signal_source(&self, name: &str) -> bool {
        let signal = Signal::from_full_name(name).filter(|signal| signal.can_be_received());
        signal.is_some_and(|signal| !self.stop_on.contains(&signal))
    }

    /// Reports names that are used twice.
    pub(super) fn duplicate_names(&mut self, fields: &ConfigFields) {
        let advertised = |job: &JobFields| job.port.as_ref().is_some_and(|port| port.value.first != 0);
        let given = self.pairs.iter().rev().filter(|(job, _)| job.name.is_some());
        let first: BTreeMap<Cow<'_, str>, &JobFields> =
            inserted(given.filter_map(|(job, _)| Some((job_name(job)?, *job))));
        for (job, _) in self.pairs.clone() {
            let (Some(name), Some(place)) = (job_name(job), job.name.as_ref().map(|given| given.place))
            else {
                continue;
            };
            let Some(other) = first.get(&name).filter(|first| !std::ptr::eq(**first, job)) else { continue };
            let (message, help) = if advertised(job) && advertised(other) {
                let help = "they overwrite each other in the catalog: rename one of them";
                (format!("two jobs with a `port` are named `{name}`"), help)
            } else {
                let help = "a job that waits for one of them cannot tell them apart";
                (format!("two jobs are named `{name}`"), help)
            };
            self.report(Severity::Warning, place, message, help);
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
            inserted(watches.iter().rev().map(|name| (name.value.as_str(), *name)));
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
