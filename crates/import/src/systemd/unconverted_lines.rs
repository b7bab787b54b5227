//! Nothing of the units is lost: a line that the new file mentions nowhere becomes a comment of its job.

use super::unit::Unit;
use super::unit_graph::UnitGraph;
use crate::document::{Document, Job, Value};
use crate::files::SourceLine;

impl UnitGraph {
    /// Adds the lines that the new file does not mention yet: to their job, or to the list of what is not needed.
    pub(super) fn mention_all_lines(&self, document: &mut Document) {
        let mentioned = document.mentioned();
        let lines = |unit: &Unit| -> Vec<SourceLine> {
            let places = unit.entries.iter().map(|entry| entry.place.clone());
            places.filter(|place| !mentioned.contains(&place.to_string())).collect()
        };
        let mut timers: Vec<(&String, Vec<SourceLine>)> = Vec::new();
        for unit in self.order.iter().filter_map(|name| self.units.get(name)) {
            if unit.name.ends_with(".timer")
                && let Some(job) = self.jobs.get(&unit.timed_service())
            {
                timers.push((job, lines(unit)));
            } else if unit.name.ends_with(".target") {
                for place in lines(unit) {
                    document.not_needed(&place, "a target is a group of jobs here");
                }
            }
        }
        for (name, job) in &self.jobs {
            let Some(unit) = self.units.get(name) else { continue };
            let of_timers = timers.iter().filter(|(of, _)| *of == job).flat_map(|(_, lines)| lines.clone());
            let lines: Vec<SourceLine> = lines(unit).into_iter().chain(of_timers).collect();
            if let Some(job) = document.jobs.iter_mut().find(|found| found.name == *job) {
                comment(job, lines, &unit.top);
            }
        }
    }
}

/// Adds lines to a job: the first one, or the first line of its file, above the name, and the others below it.
fn comment(job: &mut Job, lines: Vec<SourceLine>, top: &SourceLine) {
    let mut lines = lines.into_iter();
    job.from = lines.next().or_else(|| Some(top.clone()));
    let Some(first) = job.fields.first_mut() else { return };
    let mut comments: Vec<String> = lines.chain(first.from.take()).map(|place| place.to_string()).collect();
    first.value = match std::mem::replace(&mut first.value, Value::Null) {
        Value::Commented(more, inner) => {
            comments.extend(more);
            inner.commented(comments)
        }
        value => value.commented(comments),
    };
}
