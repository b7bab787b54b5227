//! C1: merging of several files.

use containerpilot_core::plan::{Catalog, Format, Level, Role, Word};

use super::support::{host, load_files, shown};

fn words((name, program): (&str, &str)) -> (Word, Word) {
    (name.into(), program.into())
}

#[test]
fn c1_jobs_are_merged_by_name_and_a_later_one_replaces_an_earlier_one() {
    let first = r#"{ jobs: [{ name: "a", exec: "one" }, { name: "b", exec: "two" }], watches: [{ name: "db", interval: 1 }] }"#;
    let second = r#"{ jobs: [{ name: "a", exec: "three" }, { exec: "four" }], watches: [{ name: "db", interval: 9 }, { name: "mq", interval: 1 }] }"#;
    let plan = load_files(&[first, second], &host()).plan.unwrap();
    let jobs: Vec<(Word, Word)> = plan
        .jobs
        .iter()
        .map(|job| (job.name.clone().into(), job.exec.program().unwrap().program.clone()))
        .collect();
    assert_eq!(jobs, [("a", "three"), ("b", "two"), ("four", "four")].map(words));
    let watches: Vec<_> = plan.watches.iter().map(|watch| (&*watch.name, watch.interval.as_secs())).collect();
    assert_eq!(watches, [("db", 9), ("mq", 1)]);
}

#[test]
fn c1_of_other_keys_the_later_one_counts() {
    let first = r#"{ consul: "one:8500", stopTimeout: 7, logging: { level: "debug", format: "json" } }"#;
    let second = r#"{ consul: "two:8500", logging: { level: "error" } }"#;
    let plan = load_files(&[first, second], &host()).plan.unwrap();
    let Catalog::Consul(consul) = plan.catalog else { panic!() };
    assert_eq!(format!("{:?}", consul.address), r#"Network("two:8500")"#);
    assert_eq!(plan.stop_timeout.as_secs(), 7, "a file without the key does not change it");
    assert_eq!((plan.logging.level, plan.logging.format), (Level::Error, Format::Default));
}

#[test]
fn c1_metrics_and_coprocesses_are_merged_by_name() {
    let first = r#"{ coprocesses: [{ name: "x", command: "one" }],
        telemetry: { port: 1234, metrics: [{ name: "a", type: "gauge" }, { name: "b", type: "gauge" }] } }"#;
    let second = r#"{ coprocesses: [{ name: "x", command: "two" }, { command: "three" }],
        telemetry: { tags: ["t"], metrics: [{ name: "a", type: "counter" }] } }"#;
    let plan = load_files(&[first, second], &host()).plan.unwrap();
    let coprocesses: Vec<(Word, Word)> = plan
        .jobs
        .iter()
        .filter(|job| job.role == Role::Coprocess)
        .map(|job| (job.name.clone().into(), job.exec.program().unwrap().program.clone()))
        .collect();
    assert_eq!(coprocesses, [("x", "two"), ("three", "three")].map(words));
    let telemetry = plan.telemetry.unwrap();
    assert_eq!((telemetry.port, telemetry.tags), (1234, vec!["t".to_owned(), "1.2.3".to_owned()]));
    let kinds: Vec<_> =
        telemetry.metrics.iter().map(|metric| format!("{} {:?}", metric.name, metric.kind)).collect();
    assert_eq!(kinds, ["a Counter", "b Gauge"]);
}

#[test]
fn c5_each_error_has_its_own_file() {
    let loaded = load_files(&["{ jobs: [{ name: 'a', exce: 1 }] }", "{ jbos: [] }", "{ a b }"], &host());
    let text = shown(&loaded);
    assert!(loaded.plan.is_none());
    for place in ["0.json5:1:23", "1.json5:1:3", "2.json5:1:"] {
        assert!(text.contains(place), "{text}");
    }
}

#[test]
fn c1_a_name_can_repeat_within_a_file() {
    let plan = load_files(&["{ jobs: [{ name: 'a', exec: 'x' }, { name: 'a', exec: 'y' }] }"], &host())
        .plan
        .unwrap();
    assert_eq!(plan.jobs.len(), 2);
}
