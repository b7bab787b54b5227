//! Values that jobs send.

use super::*;

fn metric(name: &str, kind: MetricKind) -> Metric {
    Metric { name: name.to_owned(), legacy_key: format!("__{name}"), help: format!("about {name}"), kind }
}

fn page(store: &mut Store, now: Duration) -> String {
    let mut page = MetricsPage::default();
    store.add_to(&mut page, now);
    page.text()
}

fn put(store: &mut Store, name: &str, value: &str) -> Result<(), ValueError> {
    let first = |mut errors: Vec<ValueError>| errors.remove(0);
    store.put_all(&[(name, value)], Duration::ZERO).map_err(first)
}

fn store() -> Store {
    let definitions = [
        metric("hits_total", MetricKind::Counter),
        metric("free", MetricKind::Gauge),
        metric("sizes", MetricKind::Histogram { buckets: vec![0.5, 1.0, 1_000_000.0] }),
        metric("delays", MetricKind::Summary),
    ];
    Store::new(&definitions, Duration::ZERO)
}

#[test]
fn t2_values_are_added_set_and_observed() {
    let mut store = store();
    for value in ["1", "2.5", " 1e3 ", "+0"] {
        for name in ["hits_total", "free", "sizes", "delays"] {
            put(&mut store, name, value).unwrap();
        }
    }
    let expected = "\
# HELP delays about delays
# TYPE delays summary
delays{quantile=\"0.5\"} 1
delays{quantile=\"0.9\"} 1000
delays{quantile=\"0.99\"} 1000
delays_sum 1003.5
delays_count 4
# HELP free about free
# TYPE free gauge
free 0
# HELP hits_total about hits_total
# TYPE hits_total counter
hits_total 1003.5
# HELP sizes about sizes
# TYPE sizes histogram
sizes_bucket{le=\"0.5\"} 1
sizes_bucket{le=\"1\"} 2
sizes_bucket{le=\"1e+06\"} 4
sizes_bucket{le=\"+Inf\"} 4
sizes_sum 1003.5
sizes_count 4
";
    assert_eq!(page(&mut store, Duration::ZERO), expected);
}

#[test]
fn t2_metrics_are_exposed_before_the_first_value() {
    let text = page(&mut store(), Duration::ZERO);
    for line in ["hits_total 0", "free 0", "sizes_count 0", "delays_count 0", "delays{quantile=\"0.5\"} NaN"]
    {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn t2_quantiles_cover_the_window_only() {
    let mut store = store();
    put(&mut store, "delays", "3").unwrap();
    assert!(page(&mut store, Duration::from_secs(400)).contains("delays{quantile=\"0.99\"} 3\n"));
    let later = page(&mut store, Duration::from_secs(601));
    assert!(later.contains("delays{quantile=\"0.99\"} NaN\n") && later.contains("delays_sum 3\n"), "{later}");
}

#[test]
fn t2_a_counter_never_decreases() {
    let mut store = store();
    put(&mut store, "hits_total", "2").unwrap();
    let refused = put(&mut store, "hits_total", "-1").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the metric `hits_total` is a counter: cannot add -1; use a gauge for values that go down"
    );
    assert!(page(&mut store, Duration::ZERO).contains("hits_total 2\n"));
    put(&mut store, "free", "-1").unwrap();
    put(&mut store, "sizes", "-1").unwrap();
}

#[test]
fn t2_values_that_are_not_finite_are_refused_except_by_gauges() {
    let mut store = store();
    for value in ["NaN", "+Inf", "-inf", "Infinity"] {
        for name in ["hits_total", "sizes", "delays"] {
            assert_eq!(put(&mut store, name, value), Err(ValueError::NotFinite { name: name.to_owned() }));
        }
        assert_eq!(put(&mut store, "free", value), Ok(()));
    }
    assert!(page(&mut store, Duration::ZERO).contains("free +Inf\n"));
}

#[test]
fn t2_a_value_that_is_not_a_number_is_refused_and_not_shown() {
    let mut store = store();
    for value in ["", "abc", "1,5", "true", "<nil>", "1 2", "0x10", "1e999", "hunter2"] {
        let refused = put(&mut store, "free", value).unwrap_err();
        assert_eq!(refused, ValueError::NotANumber { name: "free".to_owned() });
        assert!(value.is_empty() || !refused.to_string().contains(value) || value == "1 2", "{refused}");
    }
}

#[test]
fn t2_an_unknown_metric_is_refused_with_a_suggestion() {
    let mut store = store();
    let error = |name: &str, store: &mut Store| put(store, name, "1").unwrap_err().to_string();
    assert_eq!(error("hit_total", &mut store), "there is no metric `hit_total`; did you mean `hits_total`?");
    assert!(error("other_thing", &mut store).ends_with("add it to `telemetry.metrics` of the configuration"));
    let mut none = Store::default();
    assert!(error("a", &mut none).contains("the configuration defines none"));
}

#[test]
fn t2_the_name_of_3_8_is_accepted() {
    let mut store = store();
    put(&mut store, "__hits_total", "1").unwrap();
    assert!(page(&mut store, Duration::ZERO).contains("\nhits_total 1\n"));
}

#[test]
fn t2_one_invalid_value_refuses_them_all() {
    let mut store = store();
    let values = [("free", "1"), ("hits_total", "-1"), ("unknown", "1")];
    assert_eq!(store.put_all(&values, Duration::ZERO).unwrap_err().len(), 2);
    assert!(page(&mut store, Duration::ZERO).contains("\nfree 0\n"));
}

#[test]
fn r3_a_metric_with_the_same_definition_keeps_its_value() {
    let mut store = store();
    for name in ["hits_total", "free", "sizes", "delays"] {
        put(&mut store, name, "7").unwrap();
    }
    let mut other_help = metric("free", MetricKind::Gauge);
    other_help.help = "something else".to_owned();
    let definitions = [
        metric("hits_total", MetricKind::Counter),
        other_help,
        metric("sizes", MetricKind::Histogram { buckets: vec![1.0] }),
        metric("fresh", MetricKind::Counter),
    ];
    store.replace(&definitions, Duration::ZERO);
    let text = page(&mut store, Duration::ZERO);
    for line in ["hits_total 7", "# HELP free something else", "free 7", "sizes_count 0", "fresh 0"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("delays"), "{text}");
    assert!(put(&mut store, "__delays", "1").is_err());
    assert_eq!(put(&mut store, "__fresh", "1"), Ok(()));
}

#[test]
fn t2_the_later_of_two_metrics_with_one_name_wins() {
    let twice = [metric("a", MetricKind::Counter), metric("a", MetricKind::Gauge)];
    let mut store = Store::new(&twice, Duration::ZERO);
    put(&mut store, "a", "-3").unwrap();
    assert_eq!(page(&mut store, Duration::ZERO), "# HELP a about a\n# TYPE a gauge\na -3\n");
}
