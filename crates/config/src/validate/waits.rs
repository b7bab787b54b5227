//! The names that can send events, and the events that jobs wait for.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_core::plan::{EventPattern, FirstTick, Job, ReplicaGroup, Trigger};
use containerpilot_core::{inserted, sort_by};

use crate::decode::Spanned;
use crate::default_names::{coprocess_name, job_name};
use crate::diagnostics::Place;
use crate::fields::{ConditionFields, ConfigFields, JobFields, WhenFields};
use crate::lower::TELEMETRY_JOB;

/// The names of all sources of events.
pub(super) struct Names {
    pub(super) jobs: BTreeMap<String, Vec<usize>>,
    pub(super) watches: BTreeSet<String>,
    pub(super) locks: BTreeSet<String>,
    pub(super) files: BTreeSet<String>,
}

impl Names {
    pub(super) fn new(fields: &ConfigFields) -> Self {
        let jobs = fields.jobs.iter().flat_map(|given| &given.value).enumerate();
        // A replica is a source, too (W20).
        let replicas = |name: &str, job: &JobFields| {
            let count = job.replicas.as_ref().map_or(0, |given| u16::try_from(given.value).unwrap_or(0));
            (1..=count).map(|number| ReplicaGroup::name_of(name, number)).collect::<Vec<_>>()
        };
        let jobs = jobs.filter_map(|(nth, job)| Some((job_name(job)?.into_owned(), nth, job)));
        let jobs = jobs.flat_map(|(name, nth, job)| {
            let replicas = replicas(&name, job).into_iter();
            std::iter::once(name).chain(replicas).map(move |name| (name, Some(nth)))
        });
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches =
            inserted(watches.filter_map(|watch| watch.name.as_ref()).map(|given| given.value.clone()));
        let files = fields.files.iter().flat_map(|given| &given.value);
        let files = inserted(files.filter_map(|file| file.name.as_ref()).map(|given| given.value.clone()));
        // A coprocess sends the events of a job, but has no index in the list of jobs.
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value).filter_map(coprocess_name);
        let telemetry = fields.telemetry.iter().map(|_| TELEMETRY_JOB.to_owned());
        let all =
            containerpilot_core::grouped(jobs.chain(coprocesses.chain(telemetry).map(|name| (name, None))));
        let jobs = inserted(all.into_iter().map(|(name, jobs)| (name, jobs.into_iter().flatten().collect())));
        let locks = fields.locks.iter().flat_map(|given| &given.value);
        let locks = inserted(locks.filter_map(|lock| lock.name.as_ref()).map(|given| given.value.clone()));
        Self { jobs, watches, files, locks }
    }

    pub(super) fn all(&self) -> Vec<String> {
        let watches = self.watches.iter().map(|name| format!("watch.{name}"));
        let files = self.files.iter().map(|name| format!("file.{name}"));
        let locks = self.locks.iter().map(|name| format!("lock.{name}"));
        let mut all: Vec<String> =
            self.jobs.keys().cloned().chain(watches).chain(files).chain(locks).collect();
        sort_by(&mut all, Ord::cmp);
        all
    }
}

/// An event that a job waits for, with the places of its source and its name.
pub(super) struct Wait<'a> {
    pub(super) event: &'a EventPattern,
    pub(super) source: Place,
    pub(super) code: Place,
}

/// The events that a job waits for.
pub(super) fn waits<'a>(fields: &'a JobFields, job: &'a Job) -> Vec<Wait<'a>> {
    let Some(given) = &fields.when else { return Vec::new() };
    let Some(when) = given.value.object() else { return Vec::new() };
    let together = |conditions: &'a [EventPattern], given: Option<&'a Spanned<Vec<_>>>| {
        let fields = given.map(|given| given.value.as_slice()).unwrap_or_default();
        conditions
            .iter()
            .zip(fields)
            .map(|(event, fields): (_, &ConditionFields)| {
                let here = fields.place.first_byte();
                let source = fields.source.as_ref().map_or(here, |given| given.place);
                let code = fields.event.as_ref().map_or(here, |given| given.place);
                Wait { event, source, code }
            })
            .collect()
    };
    match &job.when.trigger {
        Trigger::Event { event, .. }
        | Trigger::Interval { first: FirstTick::AtEvent(event), .. }
        | Trigger::Cron { after: Some(event), .. } => {
            let code = event_place(when).unwrap_or(given.key);
            let source = when.source.as_ref().map_or(code, |given| given.place);
            vec![Wait { event, source, code }]
        }
        Trigger::All { conditions, .. } => together(conditions, when.all.as_ref()),
        Trigger::Any { conditions, .. } => together(conditions, when.any.as_ref()),
        Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => Vec::new(),
    }
}

pub(super) fn event_place(when: &WhenFields) -> Option<Place> {
    let once = when.once.as_ref().map(|given| given.place);
    let each = when.each.as_ref().map(|given| given.place);
    once.or(each).or(when.event.as_ref().map(|given| given.place))
}
