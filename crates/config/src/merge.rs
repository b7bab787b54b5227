//! Merges several files (C1). Of two elements with the same name, and of two values of any other key, the later one counts.

use std::borrow::Cow;

use crate::decode::Spanned;
use crate::default_names::{coprocess_name, job_name, metric_name};
use crate::fields::{ConfigFields, TelemetryFields};
use crate::values::value_of;

/// Merges a later file into the earlier ones.
pub(crate) fn merge(earlier: &mut ConfigFields, later: ConfigFields) {
    merge_lists(&mut earlier.jobs, later.jobs, |job| job_name(job).map(Cow::into_owned));
    merge_lists(&mut earlier.watches, later.watches, |watch| value_of(&watch.name));
    merge_lists(&mut earlier.locks, later.locks, |lock| value_of(&lock.name));
    merge_lists(&mut earlier.files, later.files, |file| value_of(&file.name));
    merge_lists(&mut earlier.coprocesses, later.coprocesses, coprocess_name);
    match (&mut earlier.telemetry, later.telemetry) {
        (Some(earlier), Some(later)) => merge_telemetry(&mut earlier.value, later.value),
        (slot, Some(later)) => *slot = Some(later),
        (_, None) => {}
    }
    replace(&mut earlier.otlp, later.otlp);
    replace(&mut earlier.consul, later.consul);
    replace(&mut earlier.defaults, later.defaults);
    replace(&mut earlier.logging, later.logging);
    replace(&mut earlier.record, later.record);
    replace(&mut earlier.control, later.control);
    replace(&mut earlier.stop_timeout, later.stop_timeout);
    replace(&mut earlier.env, later.env);
    replace(&mut earlier.env_file, later.env_file);
    replace(&mut earlier.secrets, later.secrets);
    replace(&mut earlier.stop_on, later.stop_on);
}

/// Merges telemetry key by key, because its metrics are merged by name.
fn merge_telemetry(earlier: &mut TelemetryFields, later: TelemetryFields) {
    merge_lists(&mut earlier.metrics, later.metrics, |metric| {
        Some(metric_name(metric)).filter(|name| !name.is_empty())
    });
    replace(&mut earlier.port, later.port);
    replace(&mut earlier.interfaces, later.interfaces);
    replace(&mut earlier.tags, later.tags);
}

fn replace<T>(earlier: &mut Option<Spanned<T>>, later: Option<Spanned<T>>) {
    if later.as_ref().is_some_and(|later| later.written) {
        *earlier = later;
    }
}

/// Merges two lists. An element replaces the earlier ones with the same name at their position. Names may repeat within one
/// file, so only elements of earlier files are replaced.
fn merge_lists<T>(
    earlier: &mut Option<Spanned<Vec<T>>>,
    later: Option<Spanned<Vec<T>>>,
    name: fn(&T) -> Option<String>,
) {
    let Some(later) = later else { return };
    let Some(earlier) = earlier else {
        *earlier = Some(later);
        return;
    };
    let names = |list: &[T]| list.iter().map(name).collect::<Vec<Option<String>>>();
    let order = merged_order(names(&earlier.value), names(&later.value));
    let all = std::mem::take(&mut earlier.value).into_iter().chain(later.value);
    let mut all: Vec<Option<T>> = all.map(Some).collect();
    earlier.value = order.into_iter().filter_map(|nth| all.get_mut(nth)?.take()).collect();
}

/// The order of the merged list by name. The indices of the later list continue those of the earlier one.
fn merged_order(earlier: Vec<Option<String>>, later: Vec<Option<String>>) -> Vec<usize> {
    let count = earlier.len();
    let mut slots: Vec<Option<usize>> = (0..count).map(Some).collect();
    let named = earlier.into_iter().enumerate().filter_map(|(at, name)| Some((name?, at)));
    let mut known = containerpilot_core::grouped(named);
    for (nth, name) in (count..).zip(later) {
        let replaced = name.and_then(|name| known.get_mut(&name)).map(std::mem::take).unwrap_or_default();
        let mut places = replaced.into_iter();
        let first = places.next();
        for at in places {
            if let Some(slot) = slots.get_mut(at) {
                *slot = None;
            }
        }
        match first.and_then(|at| slots.get_mut(at)) {
            Some(slot) => *slot = Some(nth),
            None => slots.push(Some(nth)),
        }
    }
    slots.into_iter().flatten().collect()
}
