//! What jobs require, and after which jobs they stop (W18, S10).

use std::collections::BTreeSet;

use containerpilot_core::plan::RequiredSource;

use crate::default_names::job_name;
use crate::diagnostics::{Place, Severity};
use crate::fields::JobFields;
use crate::lower::required_name;
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports required names that do not exist.
    pub(super) fn required_names(&mut self) {
        for (fields, _) in self.pairs.clone() {
            for item in fields.requires.iter().flat_map(|given| &given.value) {
                if let Some(name) = required_name(item) {
                    self.required_name(item.place, name);
                }
            }
            for item in fields.stop_after.iter().flat_map(|given| &given.value) {
                if !self.names.jobs.contains_key(&item.value) {
                    let message = format!("unknown job `{}`", item.value);
                    self.unknown(Severity::Error, item.place, &item.value, &message);
                }
            }
        }
    }

    fn required_name(&mut self, place: Place, name: &str) {
        if name.is_empty() || self.names.jobs.contains_key(name) {
            return;
        }
        let watch = name.strip_prefix("watch.");
        if self.names.watches.contains(watch.unwrap_or(name)) {
            return;
        }
        let lock = name.strip_prefix("lock.");
        if lock.is_some_and(|lock| self.names.locks.contains(lock)) {
            return;
        }
        let file = name.strip_prefix("file.");
        if file.is_some_and(|file| self.names.files.contains(file)) {
            return;
        }
        let message = match (watch, file, lock) {
            (Some(name), ..) => format!("unknown watch `{name}`"),
            (_, Some(name), _) => format!("unknown file `{name}`"),
            (_, _, Some(name)) => format!("unknown lock `{name}`"),
            (None, None, None) => format!("unknown job or watch `{name}`"),
        };
        self.unknown(Severity::Error, place, name, &message);
    }

    /// S10: reports jobs that stop after each other in a ring. A ring of `requires` alone is reported as one that cannot
    /// start.
    pub(super) fn stop_rings(&mut self) {
        let first = self.stops_before();
        let mut done = BTreeSet::new();
        for start in 0..first.len() {
            let is_written = self.pairs.get(start).is_some_and(|(fields, _)| fields.stop_after.is_some());
            if !is_written || done.contains(&start) {
                continue;
            }
            if let Some(ring) = ring_from(start, &first) {
                done.extend(ring.iter().copied());
                self.report_stop_ring(&ring);
            }
        }
    }

    /// For each job, the jobs that end before it stops: those in its `stopAfter`, and those that require it.
    fn stops_before(&self) -> Vec<Vec<usize>> {
        let mut first = vec![Vec::new(); self.pairs.len()];
        let named = |name: &String| self.names.jobs.get(name).into_iter().flatten().copied();
        let mut add =
            |job: usize, before: usize| first.get_mut(job).into_iter().for_each(|list| list.push(before));
        for (nth, (_, job)) in self.pairs.iter().enumerate() {
            let Some(job) = job else { continue };
            job.stop_after.iter().flat_map(named).for_each(|other| add(nth, other));
            for requirement in &job.requires {
                if let RequiredSource::Job(name) = &requirement.source {
                    named(name).for_each(|required| add(required, nth));
                }
            }
        }
        first
    }

    fn report_stop_ring(&mut self, ring: &[usize]) {
        let pair = |nth: &usize| self.pairs.get(*nth).map(|(fields, _)| *fields);
        let name = |fields: &JobFields| job_name(fields).unwrap_or("?".into()).into_owned();
        let mut names: Vec<String> = ring.iter().filter_map(pair).map(name).collect();
        names.extend(names.first().cloned());
        let place = ring.first().and_then(pair).and_then(|fields| fields.stop_after.as_ref());
        let Some(place) = place.map(|given| given.key) else { return };
        let message = match names.as_slice() {
            [only, _] => format!("the job `{only}` cannot stop after itself"),
            _ => format!("these jobs cannot stop one after the other: {}", names.join(" after ")),
        };
        self.fault(place, message, "remove one of them from `stopAfter` or `requires`");
    }
}

/// A ring that leads from a job back to it.
fn ring_from(start: usize, next: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; next.len()];
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for to in next.get(at).into_iter().flatten().copied() {
            if to == start {
                let mut ring = vec![at];
                while let Some(from) =
                    ring.last().filter(|at| **at != start).and_then(|at| *before.get(*at)?)
                {
                    ring.push(from);
                }
                ring.reverse();
                return Some(ring);
            }
            if let Some(seen @ None) = before.get_mut(to) {
                *seen = Some(at);
                open.push(to);
            }
        }
    }
    None
}
