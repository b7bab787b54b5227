//! The values of configured metrics (T2). The caller passes the time.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_config::suggest;
use containerpilot_core::plan::{Metric, MetricKind};
use thiserror::Error;

use super::exposition::{ExpositionKind, MetricsPage, count_to_f64, number};
use super::summary::Summary;

/// The metrics of a plan and their values.
#[derive(Debug, Default)]
pub(crate) struct Store {
    metrics: BTreeMap<String, Entry>,
    /// Full names by 3.8's names.
    legacy: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Entry {
    definition: Metric,
    value: Value,
    /// When counting began.
    since: Duration,
}

#[derive(Debug)]
enum Value {
    Counter(f64),
    Gauge(f64),
    Histogram {
        /// Observations per bucket, not cumulated; the last bucket is unbounded.
        counts: Vec<u64>,
        sum: f64,
    },
    Summary(Box<Summary>),
}

/// Why a value is refused. The message shows the metric's name, never a text that was sent as its value (L5).
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum ValueError {
    #[error("there is no metric `{name}`: the configuration defines none; add it to `telemetry.metrics`")]
    NoMetrics { name: String },
    #[error("there is no metric `{name}`; {}", suggestion(nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("the value for the metric `{name}` is not a number; send for example 42 or 0.5")]
    NotANumber { name: String },
    #[error("the metric `{name}` is a counter: cannot add {}; use a gauge for values that go down", number(*value))]
    Negative { name: String, value: f64 },
    /// An infinite or undefined value would make the sum useless forever.
    #[error("the metric `{name}` accepts only finite numbers; use a gauge for others")]
    NotFinite { name: String },
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None => "add it to `telemetry.metrics` of the configuration".to_owned(),
    }
}

impl Store {
    pub(crate) fn new(definitions: &[Metric], now: Duration) -> Self {
        let mut store = Self::default();
        store.replace(definitions, now);
        store
    }

    /// Replaces the definitions. A metric of the same name and type keeps its value.
    pub(crate) fn replace(&mut self, definitions: &[Metric], now: Duration) {
        let mut before = std::mem::take(&mut self.metrics);
        self.legacy.clear();
        for definition in definitions {
            let kept =
                before.remove(&definition.name).filter(|entry| entry.definition.kind == definition.kind);
            let new = || (Value::new(&definition.kind, now), now);
            let (value, since) = kept.map_or_else(new, |entry| (entry.value, entry.since));
            self.legacy.insert(definition.legacy_key.clone(), definition.name.clone());
            // The later of two with the same name wins, as in 3.8.
            self.metrics
                .insert(definition.name.clone(), Entry { definition: definition.clone(), value, since });
        }
    }

    /// Records values. If one is invalid, none is recorded.
    pub(crate) fn put_all(&mut self, values: &[(&str, &str)], now: Duration) -> Result<(), Vec<ValueError>> {
        let (mut valid, mut errors) = (Vec::with_capacity(values.len()), Vec::new());
        for (name, value) in values {
            match self.parse(name, value) {
                Ok(one) => valid.push(one),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (name, value) in valid {
            if let Some(entry) = self.metrics.get_mut(&name) {
                entry.value.record(&entry.definition.kind, value, now);
            }
        }
        Ok(())
    }

    /// The full name and the number, if the metric accepts it.
    fn parse(&self, name: &str, value: &str) -> Result<(String, f64), ValueError> {
        let full = if self.metrics.contains_key(name) {
            Some(name)
        } else {
            self.legacy.get(name).map(String::as_str)
        };
        let Some((full, entry)) = full.and_then(|full| Some((full, self.metrics.get(full)?))) else {
            let name = name.to_owned();
            if self.metrics.is_empty() {
                return Err(ValueError::NoMetrics { name });
            }
            let nearest = suggest::nearest(&name, self.metrics.keys().map(String::as_str)).map(str::to_owned);
            return Err(ValueError::Unknown { name, nearest });
        };
        let name = full.to_owned();
        let Some(value) = parse_number(value) else { return Err(ValueError::NotANumber { name }) };
        match entry.definition.kind {
            MetricKind::Gauge => {}
            _ if !value.is_finite() => return Err(ValueError::NotFinite { name }),
            MetricKind::Counter if value < 0.0 => return Err(ValueError::Negative { name, value }),
            MetricKind::Counter | MetricKind::Histogram { .. } | MetricKind::Summary => {}
        }
        Ok((name, value))
    }

    pub(super) fn add_to(&mut self, page: &mut MetricsPage, now: Duration) {
        for (name, entry) in &mut self.metrics {
            entry.add_to(name, page, now);
        }
    }
}

/// Parses a number as Go does: with surrounding whitespace, `NaN` and `inf`. Numbers beyond the range of f64 are
/// invalid.
fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let value: f64 = text.parse().ok()?;
    let infinite = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    (value.is_finite() || value.is_nan() || infinite).then_some(value)
}

impl Value {
    fn new(kind: &MetricKind, now: Duration) -> Self {
        match kind {
            MetricKind::Counter => Self::Counter(0.0),
            MetricKind::Gauge => Self::Gauge(0.0),
            MetricKind::Histogram { buckets } => {
                Self::Histogram { counts: vec![0; buckets.len() + 1], sum: 0.0 }
            }
            MetricKind::Summary => Self::Summary(Box::new(Summary::new(now))),
        }
    }

    fn record(&mut self, kind: &MetricKind, value: f64, now: Duration) {
        match self {
            Self::Counter(total) => *total += value,
            Self::Gauge(last) => *last = value,
            Self::Histogram { counts, sum } => {
                let bounds =
                    if let MetricKind::Histogram { buckets } = kind { buckets.as_slice() } else { &[] };
                let bucket = bounds.partition_point(|bound| *bound < value);
                if let Some(count) = counts.get_mut(bucket) {
                    *count += 1;
                }
                *sum += value;
            }
            Self::Summary(summary) => summary.observe(value, now),
        }
    }
}

impl Entry {
    fn add_to(&mut self, name: &str, page: &mut MetricsPage, now: Duration) {
        let (help, since) = (self.definition.help.as_str(), self.since);
        match &mut self.value {
            Value::Counter(total) => page.family(name, help, ExpositionKind::Counter, |samples| {
                samples.add_since(since, "", &[], *total);
            }),
            Value::Gauge(last) => page.single(name, help, ExpositionKind::Gauge, Some(*last)),
            Value::Histogram { counts, sum } => {
                let MetricKind::Histogram { buckets } = &self.definition.kind else { return };
                page.family(name, help, ExpositionKind::Histogram, |samples| {
                    let mut total = 0;
                    for (bound, count) in buckets.iter().copied().chain([f64::INFINITY]).zip(counts) {
                        total += *count;
                        samples.add_since(since, "_bucket", &[("le", &number(bound))], count_to_f64(total));
                    }
                    samples.add_since(since, "_sum", &[], *sum);
                    samples.add_since(since, "_count", &[], count_to_f64(total));
                });
            }
            Value::Summary(summary) => {
                let quantiles = summary.quantiles(now);
                page.family(name, help, ExpositionKind::Summary, |samples| {
                    for (share, value) in quantiles {
                        samples.add_since(since, "", &[("quantile", &number(share))], value);
                    }
                    samples.add_since(since, "_sum", &[], summary.sum);
                    samples.add_since(since, "_count", &[], count_to_f64(summary.count));
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
