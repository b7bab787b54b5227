//! The OpenTelemetry collector (T6).

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;
use containerpilot_core::plan::{Otlp, Plan};

use super::support::{errors, host_with, load_files, messages, plan, plan_on};

fn plan_with(text: &str, variables: &[(&str, &str)]) -> Plan {
    plan_on(text, &host_with(variables))
}

fn messages_with(variable: (&str, &str), severity: Severity) -> Vec<String> {
    let loaded = load_files(&["{ otlp: {}, jobs: [{ exec: 'a' }] }"], &host_with(&[variable]));
    let problems = loaded.report.problems().iter().map(|one| &one.problem);
    problems.filter(|problem| problem.severity == severity).map(|problem| problem.message.clone()).collect()
}

fn otlp(fields: &str) -> Otlp {
    plan(&format!("{{ otlp: {{ {fields} }} }}")).otlp.unwrap()
}

#[test]
fn t6_without_the_key_nothing_is_exported() {
    assert_eq!(plan("{}").otlp, None);
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")];
    assert_eq!(plan_with("{}", &variables).otlp, None);
}

#[test]
fn t6_defaults_are_those_of_opentelemetry() {
    let all = otlp("");
    assert_eq!(all.url("logs").to_string(), "http://localhost:4318/v1/logs");
    assert!(all.logs && all.traces && all.metrics && all.headers.is_empty() && all.tls.is_none());
    assert_eq!((all.timeout, all.interval), (Duration::from_secs(10), Duration::from_secs(60)));
    assert_eq!(all.resource["service.name"], "containerpilot");
    let some = otlp("endpoint: 'https://c:1/a/', logs: false, interval: '5s', timeout: '2s'");
    assert_eq!(some.url("traces").to_string(), "https://c:1/a/v1/traces");
    assert!(!some.logs && some.traces && some.tls.unwrap().verify);
    assert_eq!((some.timeout, some.interval), (Duration::from_secs(2), Duration::from_secs(5)));
}

#[test]
fn t6_variables_count_where_the_file_says_nothing() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/x/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key = a%3Db , x=y"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes,team=a"),
        ("OTEL_SERVICE_NAME", "shop"),
    ];
    let found = plan_with("{ otlp: {} }", &variables).otlp.unwrap();
    assert_eq!(found.url("metrics").to_string(), "http://collector:4318/x/v1/metrics");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(found.headers, [pair("api-key", "a=b"), pair("x", "y")]);
    assert_eq!((&*found.resource["service.name"], &*found.resource["team"]), ("shop", "a"));
    let text = "{ otlp: { endpoint: 'http://c:1', headers: { k: 'v' },
        resource: { 'service.name': 'mine' } } }";
    let found = plan_with(text, &variables).otlp.unwrap();
    assert_eq!((&*found.endpoint.host, found.headers), ("c", vec![pair("k", "v")]));
    assert_eq!((&*found.resource["service.name"], &*found.resource["team"]), ("mine", "a"));
}

#[test]
fn t6_wrong_variables_are_reported_without_their_values() {
    for (name, value, severity) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2@c", Severity::Error),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/?key=hunter2", Severity::Error),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2", Severity::Error),
        ("OTEL_EXPORTER_OTLP_HEADERS", "host=hunter2", Severity::Error),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%0a", Severity::Error),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=hunter2%xx", Severity::Warning),
    ] {
        let found = messages_with((name, value), severity);
        assert_eq!(found.len(), 1, "{name}={value}: {found:?}");
        assert!(found[0].contains(name) && !found[0].contains("hunter2"), "{found:?}");
    }
}

#[test]
fn t6_what_cannot_work_is_found() {
    for wrong in [
        "endpoint: 'collector:4318'",
        "endpoint: 'grpc://collector:4317'",
        "endpoint: 'http://c:0'",
        "endpoint: 'http://c/?a=b'",
        "endpoint: 'http://c/v1/logs'",
        "endpoint: 'http://c', tls: {}",
        "endpoint: 'https://c', tls: { cafile: '/no/such/file' }",
        "headers: { 'content-type': 'x' }",
        "headers: { 'content-length': '1' }",
        "headers: { 'a b': '1' }",
        "interval: '500ms'",
        "timeout: 0",
        "logs: 'perhaps'",
        "resource: 'x'",
        "spans: true",
    ] {
        assert_eq!(errors(&format!("{{ otlp: {{ {wrong} }} }}")).len(), 1, "{wrong}");
    }
    let nothing = "{ otlp: { logs: false, traces: false, metrics: false } }";
    assert_eq!(messages(nothing, Severity::Fault), ["`otlp` exports nothing"]);
    let grpc = messages("{ otlp: { endpoint: 'http://c:4317' }, jobs: [{ exec: 'a' }] }", Severity::Warning);
    assert_eq!(grpc, ["port 4317 is usually that of OTLP over gRPC"]);
}

#[test]
fn l5_headers_are_not_shown() {
    let found = otlp("headers: { authorization: 'Bearer hunter2' }");
    let shown = format!("{found:?}");
    assert!(shown.contains("authorization") && !shown.contains("hunter2"), "{shown}");
}
