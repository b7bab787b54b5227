//! What this crate writes is read by the messages that are generated from OpenTelemetry's official definitions (T6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use containerpilot_core::Time;
use containerpilot_core::ids::{EventId, RunId};
use containerpilot_core::plan::Level;
use containerpilot_otlp::{
    AttributeValue as Value, CollectorAnswer, Ids, LineEncoder, LogRecord, MAX_BODY, Metric, NumberPoint,
    Points, Resource, SpanEvent, SpanKey, TraceSpan, read_answer, read_status_message, write_metric,
    write_request,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::{span, status};
use prost::Message;

fn resource() -> Resource {
    let attributes = [
        ("service.name".to_owned(), Value::Text("shop".into())),
        ("process.pid".to_owned(), Value::Int(-7)),
        ("empty".to_owned(), Value::Text(String::new())),
        ("ratio".to_owned(), Value::Double(0.5)),
        ("off".to_owned(), Value::Flag(false)),
    ];
    Resource::new(&attributes, "containerpilot", "5.0.0")
}

/// An attribute, readable.
fn shown(attributes: &[KeyValue]) -> Vec<String> {
    let value = |pair: &KeyValue| match pair.value.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => format!("{text:?}"),
        any_value::Value::BoolValue(flag) => flag.to_string(),
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::DoubleValue(number) => format!("{number:?}"),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|pair| format!("{}={}", pair.key, value(pair))).collect()
}

#[test]
fn t6_spans_are_read_by_the_official_definitions() {
    let ids = Ids::new([1, 2]);
    let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
    let written = TraceSpan {
        key: SpanKey::Run(RunId(3)),
        parent: Some(SpanKey::Root),
        name: "run web".into(),
        start: at(1),
        end: at(5),
        attributes: vec![("containerpilot.job", "web".into()), ("process.exit.code", Value::Int(0))],
        events: vec![SpanEvent { at: at(2), name: "signal", attributes: vec![("a", Value::Flag(true))] }],
        dropped_events: 9,
        links: vec![SpanKey::Event(EventId(4))],
        failure: Some("exit code 1".into()),
    };
    let mut items = Vec::new();
    written.write(&mut items, &ids, |time| time.as_nanos() + 1);
    let root = TraceSpan { key: SpanKey::Root, parent: None, failure: None, ..written };
    root.write(&mut items, &ids, |time| time.as_nanos() + 1);
    let request = ExportTraceServiceRequest::decode(&*write_request(&resource(), &items)).unwrap();
    let [of_resource] = request.resource_spans.try_into().unwrap();
    let attributes = shown(&of_resource.resource.unwrap().attributes);
    assert_eq!(
        attributes,
        ["service.name=\"shop\"", "process.pid=-7", "empty=\"\"", "ratio=0.5", "off=false"]
    );
    let [of_scope] = of_resource.scope_spans.try_into().unwrap();
    let scope = of_scope.scope.unwrap();
    assert_eq!((&*scope.name, &*scope.version), ("containerpilot", "5.0.0"));
    let [run, root] = of_scope.spans.try_into().unwrap();
    assert_eq!(run.trace_id, ids.trace().0);
    assert_eq!(run.span_id, ids.span(SpanKey::Run(RunId(3))).0);
    assert_eq!((run.parent_span_id, &root.span_id), (ids.span(SpanKey::Root).0.to_vec(), &root.span_id));
    assert_eq!((&*run.name, run.kind), ("run web", span::SpanKind::Internal as i32));
    assert_eq!((run.start_time_unix_nano, run.end_time_unix_nano), (1_000_000_001, 5_000_000_001));
    assert_eq!(shown(&run.attributes), ["containerpilot.job=\"web\"", "process.exit.code=0"]);
    assert_eq!((run.events[0].time_unix_nano, &*run.events[0].name), (2_000_000_001, "signal"));
    assert_eq!((shown(&run.events[0].attributes), run.dropped_events_count), (vec!["a=true".into()], 9));
    assert_eq!(run.links[0].trace_id, ids.trace().0);
    assert_eq!(run.links[0].span_id, ids.span(SpanKey::Event(EventId(4))).0);
    let failed = run.status.unwrap();
    assert_eq!((failed.code, &*failed.message), (status::StatusCode::Error as i32, "exit code 1"));
    assert_eq!((root.parent_span_id, root.status, root.flags), (vec![], None, 1));
}

#[test]
fn t6_log_records_are_read_by_the_official_definitions() {
    let ids = Ids::new([5, 6]);
    let attributes = [("containerpilot.job", Value::from("web")), ("process.pid", Value::Int(7))];
    let span = Some((ids.trace(), ids.span(SpanKey::Root)));
    let record = LogRecord { level: Level::Warn, attributes: &attributes, span };
    let encoder = LineEncoder::new(&record);
    let long = "é".repeat(MAX_BODY);
    let texts: [&[u8]; 5] = [b"hello", b"", b"not \xff utf-8", &[b'x'; 300], long.as_bytes()];
    let mut items = Vec::new();
    for (nth, text) in (1..).zip(texts) {
        encoder.write(&mut items, nth, text);
    }
    let own = LogRecord { level: Level::Info, attributes: &[], span: None };
    LineEncoder::new(&own).write(&mut items, 9, b"own");
    let request = ExportLogsServiceRequest::decode(&*write_request(&resource(), &items)).unwrap();
    let records = &request.resource_logs[0].scope_logs[0].log_records;
    let bodies: Vec<String> = records
        .iter()
        .map(|record| match record.body.clone().unwrap().value.unwrap() {
            any_value::Value::StringValue(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies[..3], ["hello", "", "not \u{fffd} utf-8"]);
    assert_eq!((bodies[3].len(), bodies[4].len(), &*bodies[5]), (300, MAX_BODY, "own"));
    assert!(bodies[4].chars().all(|letter| letter == 'é'), "cut between characters");
    let first = &records[0];
    assert_eq!((first.time_unix_nano, first.observed_time_unix_nano), (1, 1));
    assert_eq!((first.severity_number, &*first.severity_text), (13, "warning"));
    assert_eq!(shown(&first.attributes), ["containerpilot.job=\"web\"", "process.pid=7"]);
    assert_eq!((&*first.trace_id, &*first.span_id), (&ids.trace().0[..], &ids.span(SpanKey::Root).0[..]));
    assert_eq!(
        shown(&records[4].attributes).last().unwrap(),
        &format!("containerpilot.length={}", long.len())
    );
    let last = &records[5];
    assert_eq!((last.severity_number, last.trace_id.len(), last.attributes.len()), (9, 0, 0));
}

#[test]
fn t6_a_text_is_cut_before_an_incomplete_character_only() {
    let record = LogRecord { level: Level::Info, attributes: &[], span: None };
    let encoder = LineEncoder::new(&record);
    for (before, letter) in [(1, "é"), (1, "€"), (2, "€"), (1, "𝄞"), (3, "𝄞"), (4, "𝄞"), (0, "\u{7f}")]
    {
        let text = format!("{}{letter}{}", "x".repeat(MAX_BODY - before), "y".repeat(9));
        let mut items = Vec::new();
        encoder.write(&mut items, 1, text.as_bytes());
        let request = ExportLogsServiceRequest::decode(&*write_request(&resource(), &items)).unwrap();
        let body = request.resource_logs[0].scope_logs[0].log_records[0].body.clone().unwrap().value.unwrap();
        let any_value::Value::StringValue(body) = body else { panic!("{body:?}") };
        assert!(text.starts_with(&body) && body.len() > MAX_BODY - 4, "{before} {letter} {}", body.len());
    }
}

#[test]
fn t6_metrics_are_read_by_the_official_definitions() {
    let number = |value| NumberPoint { labels: vec![("name".into(), "web".into())], since: 5, value };
    let metrics = [
        ("a_seconds_total", Points::Counter(vec![number(2.5), number(0.0)])),
        ("b_bytes", Points::Gauge(vec![NumberPoint { since: 0, ..number(-1.0) }])),
        ("c", Points::Histogram { since: 5, bounds: vec![0.5, 1.0], counts: vec![1, 0, 2], sum: 7.5 }),
        (
            "d",
            Points::Summary { since: 5, quantiles: vec![(0.5, 3.0), (0.9, f64::NAN)], count: 4, sum: 12.0 },
        ),
    ];
    let mut items = Vec::new();
    for (name, points) in metrics {
        write_metric(&mut items, &Metric { name, help: "Help.", points }, 99);
    }
    let request = ExportMetricsServiceRequest::decode(&*write_request(&resource(), &items)).unwrap();
    let metrics = request.resource_metrics[0].scope_metrics[0].metrics.clone();
    let heads: Vec<_> =
        metrics.iter().map(|metric| (&*metric.name, &*metric.description, &*metric.unit)).collect();
    let expected = [("a_seconds_total", "s"), ("b_bytes", "By"), ("c", ""), ("d", "")];
    assert_eq!(heads, expected.map(|(name, unit)| (name, "Help.", unit)));
    let [counter, gauge, histogram, summary] =
        <[_; 4]>::try_from(metrics).unwrap().map(|metric| metric.data.unwrap());
    let metric::Data::Sum(sum) = counter else { panic!("{counter:?}") };
    let cumulative = AggregationTemporality::Cumulative as i32;
    assert!(sum.is_monotonic && sum.aggregation_temporality == cumulative);
    let point = &sum.data_points[0];
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (5, 99));
    assert_eq!(shown(&point.attributes), ["name=\"web\""]);
    let values: Vec<_> = sum.data_points.iter().map(|point| point.value).collect();
    let double = |value| Some(number_data_point::Value::AsDouble(value));
    assert_eq!(values, [double(2.5), double(0.0)], "zero is a value");
    let metric::Data::Gauge(gauge) = gauge else { panic!("{gauge:?}") };
    assert_eq!((gauge.data_points[0].start_time_unix_nano, gauge.data_points[0].value), (0, double(-1.0)));
    let metric::Data::Histogram(histogram) = histogram else { panic!("{histogram:?}") };
    let point = &histogram.data_points[0];
    assert_eq!(histogram.aggregation_temporality, cumulative);
    assert_eq!((point.count, point.sum, &*point.bucket_counts), (3, Some(7.5), &[1, 0, 2][..]));
    assert_eq!((&*point.explicit_bounds, point.start_time_unix_nano), (&[0.5, 1.0][..], 5));
    let metric::Data::Summary(summary) = summary else { panic!("{summary:?}") };
    let point = &summary.data_points[0];
    let quantiles: Vec<_> = point.quantile_values.iter().map(|one| (one.quantile, one.value)).collect();
    assert_eq!((point.count, point.sum, quantiles), (4, 12.0, vec![(0.5, 3.0)]));
}

#[test]
fn t6_partial_success_of_every_kind_is_understood() {
    let why = "too \u{7}old".to_owned();
    let logs = ExportLogsPartialSuccess { rejected_log_records: 3, error_message: why.clone() };
    let spans = ExportTracePartialSuccess { rejected_spans: 3, error_message: why.clone() };
    let points = ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: why };
    let bodies = [
        ExportLogsServiceResponse { partial_success: Some(logs) }.encode_to_vec(),
        ExportTraceServiceResponse { partial_success: Some(spans) }.encode_to_vec(),
        ExportMetricsServiceResponse { partial_success: Some(points) }.encode_to_vec(),
    ];
    for body in bodies {
        assert_eq!(read_answer(&body), CollectorAnswer { rejected: 3, message: "too  old".into() });
    }
    for body in [&[][..], b"{}", b"<html>", &[0xff; 40], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        assert_eq!(read_answer(body), CollectorAnswer::default(), "{body:?}");
        assert_eq!(read_status_message(body), "", "{body:?}");
    }
    // google.rpc.Status { code: 3, message: "no such tenant" }
    let status = [&[8, 3, 0x12, 14][..], b"no such tenant"].concat();
    assert_eq!(read_status_message(&status), "no such tenant");
}
