//! What a reload would do, without doing it; and what makes a definition the same (R3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::event::{Source, UserSignal};
use crate::grouped;
use crate::plan::{Job, Plan, Role, Signal};
use crate::rules::reload::Changes;

/// Whether a job goes on with another definition: it is the same. Coprocesses begin anew at every reload (C6).
pub(crate) fn goes_on(old: &Job, new: &Job) -> bool {
    old.role != Role::Coprocess && old == new
}

/// What a reload from one plan to another does to jobs, as long as nobody has stopped or started any by hand.
#[must_use]
pub fn changes(old: &Plan, new: &Plan) -> Changes {
    // Of several with one name, the first with the first: they are taken from the end.
    let mut places = grouped(old.jobs.iter().rev().map(|job| (job.name.as_str(), job)));
    let mut changes = Changes::default();
    for job in &new.jobs {
        let list = match places.get_mut(job.name.as_str()).and_then(Vec::pop) {
            None => &mut changes.started,
            Some(before) if goes_on(before, job) => &mut changes.kept,
            Some(_) => &mut changes.restarted,
        };
        list.push(job.name.clone());
    }
    // In the order of the old plan.
    let mut left: BTreeMap<&str, usize> = places.into_iter().map(|(name, jobs)| (name, jobs.len())).collect();
    for job in &old.jobs {
        if let Some(count) = left.get_mut(job.name.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            changes.stopped.push(job.name.clone());
        }
    }
    changes
}

/// Whether a signal asks for a reload: SIGHUP, unless a job waits for it, or all signals are passed on (R1, S7).
#[must_use]
pub fn reloads_at(plan: &Plan, signal: Signal) -> bool {
    let waits = |job: &Job| {
        job.when.patterns().iter().any(|pattern| match pattern.source {
            Source::Signal(UserSignal::Hup) => true,
            Source::Signal(_) | Source::Global | Source::Job(_) | Source::Watch(_) => false,
        })
    };
    signal == Signal::HUP && !plan.pass_signals && !plan.jobs.iter().any(waits)
}
