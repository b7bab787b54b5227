//! Metrics, with cumulative temporality: every value counts from its start time.

use crate::span::{AttributeValue, write_attribute};
use crate::wire::Message;

/// A metric and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric<'a> {
    /// Its name.
    pub name: &'a str,
    /// The help text.
    pub help: &'a str,
    /// The values.
    pub points: Points,
}

/// The values of a metric, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Points {
    /// A sum that only grows.
    Counter(Vec<NumberPoint>),
    /// The last values.
    Gauge(Vec<NumberPoint>),
    /// Counts in buckets.
    Histogram {
        /// When counting began.
        since: u64,
        /// The upper bounds of all buckets but the last, which has none.
        bounds: Vec<f64>,
        /// The number of values in each bucket.
        counts: Vec<u64>,
        /// The sum of all values.
        sum: f64,
    },
    /// Quantiles.
    Summary {
        /// When counting began.
        since: u64,
        /// Shares and values. A value that is not a number is left out.
        quantiles: Vec<(f64, f64)>,
        /// The number of all values.
        count: u64,
        /// The sum of all values.
        sum: f64,
    },
}

/// A number with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberPoint {
    /// Names and values.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// When counting began, in nanoseconds since 1970; for a gauge 0.
    pub since: u64,
    /// The number.
    pub value: f64,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u64 = 2;

/// Writes a metric, as read at this time, as an item of a request.
pub fn write_metric(out: &mut Vec<u8>, metric: &Metric<'_>, now: u64) {
    Message(out).message(2, |fields| {
        fields.text(1, metric.name);
        fields.text(2, metric.help);
        fields.text(3, unit(metric.name));
        match &metric.points {
            Points::Gauge(numbers) => fields.message(5, |gauge| write_numbers(gauge, numbers, now)),
            Points::Counter(numbers) => fields.message(7, |sum| {
                write_numbers(sum, numbers, now);
                sum.int(2, CUMULATIVE);
                sum.int(3, 1);
            }),
            Points::Histogram { since, bounds, counts, sum } => fields.message(9, |histogram| {
                histogram.message(1, |point| {
                    point.fixed64(2, *since);
                    point.fixed64(3, now);
                    point.fixed64(4, counts.iter().sum());
                    point.double(5, *sum);
                    point.packed(6, counts.iter().map(|count| count.to_le_bytes()));
                    point.packed(7, bounds.iter().map(|bound| bound.to_le_bytes()));
                });
                histogram.int(2, CUMULATIVE);
            }),
            Points::Summary { since, quantiles, count, sum } => fields.message(11, |summary| {
                summary.message(1, |point| {
                    point.fixed64(2, *since);
                    point.fixed64(3, now);
                    point.fixed64(4, *count);
                    point.double(5, *sum);
                    for (share, value) in quantiles.iter().filter(|(_, value)| !value.is_nan()) {
                        point.message(6, |quantile| {
                            quantile.double(1, *share);
                            quantile.double(2, *value);
                        });
                    }
                });
            }),
        }
    });
}

fn write_numbers(to: &mut Message<'_>, numbers: &[NumberPoint], now: u64) {
    for NumberPoint { labels, since, value } in numbers {
        to.message(1, |point| {
            point.fixed64(2, *since);
            point.fixed64(3, now);
            point.double(4, *value);
            for (name, value) in labels {
                write_attribute(point, 7, name, &AttributeValue::from(&**value));
            }
        });
    }
}

/// The unit that the name of a metric tells, as Prometheus recommends.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match () {
        () if name.ends_with("_seconds") => "s",
        () if name.ends_with("_bytes") => "By",
        () => "",
    }
}
