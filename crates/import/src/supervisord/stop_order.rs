//! The order and the time of the stops.

use std::collections::BTreeMap;
use std::time::Duration;

use super::program::{Converted, MAX_SECONDS};
use crate::document::{Document, Fields};

/// The maximum length of all `stopAfter` together.
const MAX_STOP_AFTER: usize = 1 << 20;

/// `stopAfter` of the jobs, and the time for all of them: supervisord stops the programs with the highest priority
/// first, and waits for them.
pub(super) fn stop_order(converted: &[Converted], document: &mut Document) {
    let mut levels: BTreeMap<i64, Vec<&Converted>> = BTreeMap::new();
    for program in converted {
        levels.entry(program.priority).or_default().push(program);
    }
    let slowest =
        |level: &Vec<&Converted>| level.iter().map(|program| program.stop_seconds).max().unwrap_or(0);
    let total = levels.values().map(slowest).fold(0, u64::saturating_add);
    let total = total.min(MAX_SECONDS);
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
