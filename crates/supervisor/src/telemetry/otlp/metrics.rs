//! The page of metrics as OTLP metrics: the same names, labels and numbers.

use std::time::{Duration, SystemTime};

use containerpilot_core::Time;
use containerpilot_otlp::{Batch, Metric, NumberPoint, Points, write_metric};
use containerpilot_views::snapshot::Snapshot;

use super::super::exposition::{ExpositionKind, Family, MetricsPage, Sample};
use super::unix_nanos;

/// All metrics of a page, as read now.
pub(super) fn batch(page: &MetricsPage, snapshot: &Snapshot) -> Batch {
    let start = snapshot.clock.at(Time::ZERO);
    let now = unix_nanos(SystemTime::now());
    let mut batch = Batch::default();
    for (name, family) in page.families() {
        let metric = Metric { name, help: &family.help, points: points(family, start) };
        write_metric(&mut batch.bytes, &metric, now);
        batch.items += 1;
    }
    batch
}

fn points(family: &Family, start: SystemTime) -> Points {
    let since = |since: Duration| unix_nanos(start + since);
    let numbers = |is_sum: bool| {
        let number = |sample: &Sample| NumberPoint {
            labels: sample.labels.clone(),
            since: if is_sum { since(sample.since) } else { 0 },
            value: sample.value,
        };
        family.samples.iter().map(number).collect()
    };
    let of_suffix =
        |suffix: &'static str| family.samples.iter().filter(move |sample| sample.suffix == suffix);
    let value = |suffix| of_suffix(suffix).map(|sample| sample.value).next().unwrap_or_default();
    // The number in the only label: the bound of a bucket, or the share of a quantile.
    let label = |sample: &Sample| sample.labels.first().and_then(|(_, text)| text.parse::<f64>().ok());
    let began = since(family.samples.first().map_or(Duration::ZERO, |sample| sample.since));
    match family.kind {
        // The untyped ones are counters of 3.8.
        ExpositionKind::Counter | ExpositionKind::Untyped => Points::Counter(numbers(true)),
        ExpositionKind::Gauge => Points::Gauge(numbers(false)),
        ExpositionKind::Histogram => {
            let mut below = 0;
            let counts = of_suffix("_bucket").map(|bucket| {
                let total = whole(bucket.value);
                total.saturating_sub(std::mem::replace(&mut below, total))
            });
            let counts = counts.collect();
            let bounds = of_suffix("_bucket").filter_map(label).filter(|bound| bound.is_finite()).collect();
            Points::Histogram { since: began, bounds, counts, sum: value("_sum") }
        }
        ExpositionKind::Summary => Points::Summary {
            since: began,
            quantiles: of_suffix("").filter_map(|sample| Some((label(sample)?, sample.value))).collect(),
            count: whole(value("_count")),
            sum: value("_sum"),
        },
    }
}

/// A count, which the page has as a number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a count")]
fn whole(count: f64) -> u64 {
    count as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_buckets_are_not_cumulated_and_quantiles_keep_their_shares() {
        let mut page = MetricsPage::default();
        let since = Duration::from_secs(5);
        page.family("h", "", ExpositionKind::Histogram, |samples| {
            for (bound, total) in [("0.5", 1.0), ("1e+06", 1.0), ("+Inf", 4.0)] {
                samples.add_since(since, "_bucket", &[("le", bound)], total);
            }
            samples.add_since(since, "_sum", &[], 7.0);
            samples.add_since(since, "_count", &[], 4.0);
        });
        page.family("s", "", ExpositionKind::Summary, |samples| {
            samples.add("", &[("quantile", "0.5")], 3.0);
            samples.add("_sum", &[], 6.0);
            samples.add("_count", &[], 2.0);
        });
        page.family("u", "", ExpositionKind::Untyped, |samples| samples.add("", &[("code", "200")], 2.0));
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let all: Vec<Points> = page.families().map(|(_, family)| points(family, start)).collect();
        let bounds = vec![0.5, 1e6];
        let histogram = Points::Histogram { since: 6_000_000_000, bounds, counts: vec![1, 0, 3], sum: 7.0 };
        let summary =
            Points::Summary { since: 1_000_000_000, quantiles: vec![(0.5, 3.0)], count: 2, sum: 6.0 };
        let labels = vec![("code".into(), "200".into())];
        let counter = Points::Counter(vec![NumberPoint { labels, since: 1_000_000_000, value: 2.0 }]);
        assert_eq!(all, [histogram, summary, counter]);
    }
}
