//! The values that jobs have sent (T2). Everything is told the time; nothing here has a clock.

use std::fmt;
use std::time::Duration;

use containerpilot_config::suggest;
use containerpilot_core::plan::{Metric, MetricKind};
use std::collections::BTreeMap;

use super::exposition::{Kind, Page, counted, number};
use super::summary::Summary;

/// The metrics of the plan, each with what it has come to.
#[derive(Debug, Default)]
pub(crate) struct Store {
    metrics: BTreeMap<String, Kept>,
    /// Full names by the names that 3.8 had for them.
    legacy: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Kept {
    defined: Metric,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Counter(f64),
    Gauge(f64),
    Histogram {
        /// How many values were in each bucket and above the one before; the last has no bound.
        counts: Vec<u64>,
        sum: f64,
    },
    Summary(Box<Summary>),
}

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// There is no such metric, and no metric at all if there is nothing to suggest from.
    Unknown {
        /// The name that was sent.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// Whether any metric is defined.
        any: bool,
    },
    /// It is not a number.
    NotANumber {
        /// The metric.
        name: String,
    },
    /// A counter was to go back.
    Negative {
        /// The metric.
        name: String,
        /// What was to be added.
        value: f64,
    },
    /// It is infinite, or Go's `NaN`, and would spoil every sum for ever.
    NotFinite {
        /// The metric.
        name: String,
    },
}

impl fmt::Display for Refusal {
    /// Shows the metric's name and never a text that was sent as its value, which may be anything (L5).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, any: false, .. } => write!(
                out,
                "there is no metric `{name}`: the configuration defines none; add it to `telemetry.metrics`"
            ),
            Self::Unknown { name, nearest: Some(near), .. } => {
                write!(out, "there is no metric `{name}`; did you mean `{near}`?")
            }
            Self::Unknown { name, .. } => {
                write!(out, "there is no metric `{name}`; add it to `telemetry.metrics` of the configuration")
            }
            Self::NotANumber { name } => {
                write!(out, "the value for the metric `{name}` is not a number; send for example 42 or 0.5")
            }
            Self::Negative { name, value } => write!(
                out,
                "the metric `{name}` is a counter, to which {} cannot be added; what goes down is a gauge",
                number(*value)
            ),
            Self::NotFinite { name } => {
                write!(out, "the metric `{name}` takes finite numbers only; a gauge takes others")
            }
        }
    }
}

impl Store {
    /// A store for the metrics of a plan.
    pub(crate) fn new(definitions: &[Metric], now: Duration) -> Self {
        let mut store = Self::default();
        store.replace(definitions, now);
        store
    }

    /// Takes other definitions. A metric that is defined as before keeps its value; a change of its help is none.
    pub(crate) fn replace(&mut self, definitions: &[Metric], now: Duration) {
        let mut before = std::mem::take(&mut self.metrics);
        self.legacy.clear();
        for defined in definitions {
            let kept = before.remove(&defined.name).filter(|kept| kept.defined.kind == defined.kind);
            let value = kept.map_or_else(|| Value::new(&defined.kind, now), |kept| kept.value);
            self.legacy.insert(defined.legacy_key.clone(), defined.name.clone());
            // Of two with one name the later counts, as in 3.8.
            self.metrics.insert(defined.name.clone(), Kept { defined: defined.clone(), value });
        }
    }

    /// Takes values as they were sent: all of them, or, if there is something wrong with any, none.
    pub(crate) fn put_all(&mut self, values: &[(&str, &str)], now: Duration) -> Result<(), Vec<Refusal>> {
        let (mut read, mut refused) = (Vec::with_capacity(values.len()), Vec::new());
        for (name, value) in values {
            match self.read(name, value) {
                Ok(one) => read.push(one),
                Err(refusal) => refused.push(refusal),
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        for (name, value) in read {
            if let Some(kept) = self.metrics.get_mut(&name) {
                kept.value.take(&kept.defined.kind, value, now);
            }
        }
        Ok(())
    }

    /// The full name and the number, if the metric can take it.
    fn read(&self, name: &str, value: &str) -> Result<(String, f64), Refusal> {
        let full = if self.metrics.contains_key(name) {
            Some(name)
        } else {
            self.legacy.get(name).map(String::as_str)
        };
        let Some((full, kept)) = full.and_then(|full| Some((full, self.metrics.get(full)?))) else {
            let nearest = suggest::nearest(name, self.metrics.keys().map(String::as_str)).map(str::to_owned);
            return Err(Refusal::Unknown { name: name.to_owned(), nearest, any: !self.metrics.is_empty() });
        };
        let name = full.to_owned();
        let Some(value) = parsed(value) else { return Err(Refusal::NotANumber { name }) };
        match kept.defined.kind {
            MetricKind::Gauge => {}
            _ if !value.is_finite() => return Err(Refusal::NotFinite { name }),
            MetricKind::Counter if value < 0.0 => return Err(Refusal::Negative { name, value }),
            MetricKind::Counter | MetricKind::Histogram { .. } | MetricKind::Summary => {}
        }
        Ok((name, value))
    }

    /// Puts every metric on a page.
    pub(super) fn show(&mut self, page: &mut Page, now: Duration) {
        for (name, kept) in self.metrics.iter_mut() {
            kept.show(name, page, now);
        }
    }
}

/// The number that a text stands for, as Go reads it: with blanks around it, `NaN`, `inf`. What is too large is none.
fn parsed(text: &str) -> Option<f64> {
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

    fn take(&mut self, kind: &MetricKind, value: f64, now: Duration) {
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

impl Kept {
    fn show(&mut self, name: &str, page: &mut Page, now: Duration) {
        let help = self.defined.help.as_str();
        match &mut self.value {
            Value::Counter(total) => page.single(name, help, Kind::Counter, Some(*total)),
            Value::Gauge(last) => page.single(name, help, Kind::Gauge, Some(*last)),
            Value::Histogram { counts, sum } => {
                let MetricKind::Histogram { buckets } = &self.defined.kind else { return };
                page.family(name, help, Kind::Histogram, |lines| {
                    let mut total = 0;
                    for (bound, count) in buckets.iter().copied().chain([f64::INFINITY]).zip(counts) {
                        total += *count;
                        lines.add("_bucket", &[("le", &number(bound))], counted(total));
                    }
                    lines.add("_sum", &[], *sum);
                    lines.add("_count", &[], counted(total));
                });
            }
            Value::Summary(summary) => {
                let quantiles = summary.quantiles(now);
                page.family(name, help, Kind::Summary, |lines| {
                    for (share, value) in quantiles {
                        lines.add("", &[("quantile", &number(share))], value);
                    }
                    lines.add("_sum", &[], summary.sum);
                    lines.add("_count", &[], counted(summary.count));
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
