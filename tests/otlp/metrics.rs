//! The same numbers as on the page `/metrics`.

use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};

use super::collector::{Collector, attribute};
use crate::support::supervisor::{Mode, Supervisor, wait_until};

#[test]
fn t6_metrics_are_sent_at_an_interval_and_at_the_end() {
    let collector = Collector::accepting();
    let mut supervisor = Supervisor::with_setup(
        Mode::Plain,
        "export OTEL_SERVICE_NAME=shop OTEL_RESOURCE_ATTRIBUTES='deployment.environment=a%20b,team=x' \
         OTEL_EXPORTER_OTLP_HEADERS=x-key=%74oken",
        &collector
            .config("logs: false, traces: false, interval: '1s', resource: { team: 'mine' }")
            .keys(
                "telemetry: { port: 0, interfaces: 'lo', metrics: [
                    { name: 'orders', type: 'counter', exec: ['echo', '2'], interval: 1000 },
                    { name: 'sizes', type: 'histogram', buckets: [1, 5], exec: ['echo', '3'], interval: 1000 },
                    { name: 'times', type: 'summary', exec: ['echo', '4'], interval: 1000 } ] }",
            )
            .job("fails", "exec: ['sh', '-c', 'exit 7']")
            .job("stays", "exec: 'sleep 1000'"),
    );
    supervisor.wait_for_line("fails exited");
    wait_until("metrics arrive twice", || collector.metrics().len() > 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert!(!log.contains("token"));
    assert_eq!(code, 0);
    let all = collector.metrics();
    let (resource, last) = all.last().unwrap();
    let given = |key: &str| attribute(&resource.attributes, key);
    assert_eq!(given("service.name").as_deref(), Some("shop"));
    assert_eq!(given("team").as_deref(), Some("mine"), "the file wins");
    assert_eq!(given("deployment.environment").as_deref(), Some("a b"));
    for key in ["service.instance.id", "host.name", "process.pid", "telemetry.sdk.version"] {
        assert!(given(key).is_some_and(|value| !value.is_empty()), "{key}");
    }
    assert_eq!(given("telemetry.sdk.name").as_deref(), Some("containerpilot"));
    let request = &collector.recorded("/v1/metrics")[0];
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    assert_eq!(request.headers["x-key"], "token");
    let data = |name: &str| last.iter().find(|metric| metric.name == name).unwrap().data.clone().unwrap();
    let metric::Data::Sum(events) = data("containerpilot_events") else { panic!("not a sum") };
    assert!(events.is_monotonic && events.aggregation_temporality == 2);
    let failed = events.data_points.iter().find(|point| {
        let label = |key: &str| attribute(&point.attributes, key).unwrap();
        label("code") == "ExitFailed" && label("source") == "fails"
    });
    let failed = failed.unwrap();
    assert_eq!(failed.value, Some(number_data_point::Value::AsDouble(1.0)));
    assert!(0 < failed.start_time_unix_nano && failed.start_time_unix_nano < failed.time_unix_nano);
    let metric::Data::Gauge(up) = data("containerpilot_job_up") else { panic!("not a gauge") };
    assert!(up.data_points.iter().all(|point| point.value == Some(number_data_point::Value::AsDouble(0.0))));
    let metric::Data::Sum(orders) = data("orders") else { panic!("not a sum") };
    assert_eq!(orders.data_points[0].value, Some(number_data_point::Value::AsDouble(2.0)));
    let metric::Data::Histogram(sizes) = data("sizes") else { panic!("not a histogram") };
    let point = &sizes.data_points[0];
    assert_eq!((&*point.bucket_counts, &*point.explicit_bounds), (&[0, 1, 0][..], &[1.0, 5.0][..]));
    let metric::Data::Summary(times) = data("times") else { panic!("not a summary") };
    assert_eq!((times.data_points[0].count, times.data_points[0].sum), (1, 4.0));
    assert_eq!(times.data_points[0].quantile_values.len(), 3);
    let metric::Data::Sum(items) = data("containerpilot_otlp_items_total") else { panic!("not a sum") };
    let sent =
        items.data_points.iter().find(|point| attribute(&point.attributes, "result").unwrap() == "sent");
    assert!(matches!(sent.unwrap().value, Some(number_data_point::Value::AsDouble(1.0..))));
}
