//! Fuzz target: any bytes as the output of a sensor and as a value for a metric. Every line of the page stays one line
//! and ends with a number. Also as a path and as a host name of the live page.

use std::time::Duration;

use containerpilot_core::plan::{Metric, MetricKind};

use super::exposition::MetricsPage;
use super::store::Store;

/// Each line is a value.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let kinds = [
        ("counter", MetricKind::Counter),
        ("gauge", MetricKind::Gauge),
        ("histogram", MetricKind::Histogram { buckets: vec![0.1, 1.0, 10.0] }),
        ("summary", MetricKind::Summary),
    ];
    let help = text.lines().next().unwrap_or_default();
    let metric = |(name, kind): (&str, MetricKind)| Metric {
        name: name.to_owned(),
        legacy_key: format!("__{name}"),
        help: help.to_owned(),
        kind,
    };
    let definitions = kinds.map(metric);
    text.lines().for_each(super::page::fuzz);
    let mut store = Store::new(&definitions, Duration::ZERO);
    for (nth, line) in text.lines().enumerate() {
        let now = Duration::from_secs(nth as u64 * 10);
        for name in ["counter", "gauge", "histogram", "summary", "__gauge", line] {
            if let Err(refusals) = store.put_all(&[(name, line)], now) {
                assert_eq!(refusals.len(), 1);
            }
        }
        let mut page = MetricsPage::default();
        store.add_to(&mut page, now);
        for shown in page.text().lines().filter(|shown| !shown.starts_with("# ")) {
            let value = shown.rsplit(' ').next().unwrap_or_default().replace("Inf", "inf");
            assert!(value.parse::<f64>().is_ok(), "{shown:?}");
        }
    }
}
