//! The names of jobs, coprocesses and metrics, with their defaults (C3, C6, T2).

use std::borrow::Cow;

use crate::fields::{CoprocessFields, JobFields, MetricFields};

/// The name of a job; by default its program as written.
pub(crate) fn job_name(job: &JobFields) -> Option<Cow<'_, str>> {
    match &job.name {
        Some(given) => Some(given.value.as_str().into()),
        None => job.exec.as_ref().map(|exec| exec.value.program.text()),
    }
}

/// The name of a coprocess; by default its command.
pub(crate) fn coprocess_name(coprocess: &CoprocessFields) -> Option<String> {
    match &coprocess.name {
        Some(given) => Some(given.value.clone()),
        None => coprocess.command.as_ref().map(|command| command.value.line()),
    }
}

/// Namespace, subsystem and name of a metric. A missing part is empty.
pub(crate) fn metric_parts(metric: &MetricFields) -> [&str; 3] {
    [&metric.namespace, &metric.subsystem, &metric.name]
        .map(|given| given.as_ref().map_or("", |given| given.value.as_str()))
}

/// The full name of a metric: the parts that are not empty, joined by `_`.
pub(crate) fn metric_name(metric: &MetricFields) -> String {
    let parts = metric_parts(metric).into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<&str>>().join("_")
}
