//! E1–E8, P7: events, and the variables they set.

use containerpilot_core::Input;
use containerpilot_core::event::Code;

use crate::harness::{Harness, plan};

#[test]
fn e2_events_caused_by_an_event_are_queued_behind_it() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'stopped' } }, \
         { name: 'c', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    harness.take_output();
    harness.exit("a", 0);
    assert_eq!(
        harness.take_output(),
        ["event a exitSuccess", "event a stopping", "event a stopped", "spawn c", "spawn b"]
    );
}

#[test]
fn e4_startup_is_sent_once() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.take_output();
    harness.input(Input::Ready);
    assert!(harness.take_output().is_empty());
}

#[test]
fn e6_a_watch_sends_changed_and_then_healthy_or_unhealthy() {
    let mut harness =
        Harness::new(plan("{ watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'a', exec: 'x' }] }"));
    harness.input(Input::Ready);
    harness.take_output();
    harness.instances(0);
    assert_eq!(harness.take_output(), [] as [&str; 0], "an empty first answer is no change");
    harness.instances(1);
    assert_eq!(harness.take_output(), ["event watch.db changed", "event watch.db healthy"]);
    harness.instances(1);
    assert_eq!(harness.take_output(), [] as [&str; 0]);
    harness.instances(3);
    assert_eq!(harness.take_output(), ["event watch.db changed", "event watch.db healthy"], "also if it was");
    harness.instances(0);
    assert_eq!(harness.take_output(), ["event watch.db changed", "event watch.db unhealthy"]);
}

#[test]
fn e8_stopped_means_that_the_job_is_complete() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }");
    harness.take_output();
    harness.exit("a", 0);
    assert_eq!(harness.take_events(), ["a exitSuccess"]);
    harness.exit("a", 0);
    assert_eq!(harness.take_events(), ["a exitSuccess", "a stopping", "a stopped", "global shutdown"]);
}

#[test]
fn x5_every_event_records_its_cause() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    harness.exit("a", 0);
    harness.exit("b", 3);
    let events: Vec<_> = harness.core.journal().events().copied().collect();
    let find = |origin: &str, code| {
        *events
            .iter()
            .find(|event| event.code == code && harness.core.origin_name(event.origin) == origin)
            .unwrap()
    };
    let (startup, a, b) =
        (find("global", Code::Startup), find("a", Code::ExitSuccess), find("b", Code::ExitFailed));
    assert_eq!((startup.cause, a.cause, b.cause), (None, Some(startup.id), Some(a.id)));
    assert!(
        harness.log.iter().any(|line| line == "event b exitFailed, run started by a exitSuccess"),
        "{:?}",
        harness.log
    );
}

#[test]
fn p7_a_process_has_variables_for_its_cause_and_the_other_jobs() {
    let mut harness = Harness::running(
        "{ name: 'my-db', exec: 'x', port: 5432, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { exec: '/opt/set.up.sh' }, \
         { name: 'after', exec: 'x', when: { source: '/opt/set.up.sh', once: 'exitFailed' } }",
    );
    let value = |harness: &Harness, name: &str| {
        let found = harness.environment.iter().rfind(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    assert_eq!(value(&harness, "CONTAINERPILOT_MY_DB_IP"), "10.0.0.1");
    harness.exit("/opt/set.up.sh", 7);
    assert_eq!(value(&harness, "CONTAINERPILOT_JOB"), "after");
    assert_eq!(value(&harness, "CONTAINERPILOT_EVENT"), "exitFailed");
    assert_eq!(value(&harness, "CONTAINERPILOT_EVENT_SOURCE"), "/opt/set.up.sh");
    assert_eq!(value(&harness, "CONTAINERPILOT_EXIT_CODE"), "7");
    assert_eq!(value(&harness, "CONTAINERPILOT_RESTARTS"), "0");
    assert!(!value(&harness, "CONTAINERPILOT_MY_DB_PID").is_empty());
    assert_eq!(value(&harness, "CONTAINERPILOT_SET_UP_PID"), "", "not running");
}

/// As 3.8 does for every job, also for one that has a name of its own.
#[test]
fn p7_pid_is_named_by_the_base_name_and_ip_by_the_whole_name() {
    let mut harness = Harness::running(
        "{ name: 'first', exec: 'x' }, { name: 'db.sh', exec: 'x' }, { name: '/usr/bin/app.sh', exec: 'y' }, \
         { name: 'my-web', exec: 'x', port: 80, health: { interval: 5, ttl: 15 } }, \
         { name: 'last', exec: 'x', when: { source: 'first', once: 'exitSuccess' } }",
    );
    harness.exit("first", 0);
    let names: Vec<&str> =
        harness.environment.iter().map(|(name, _)| name).filter(|name| name.ends_with(['D', 'P'])).collect();
    let expected =
        ["DB_PID", "APP_PID", "MY_WEB_IP", "MY_WEB_PID"].map(|name| format!("CONTAINERPILOT_{name}"));
    assert_eq!(names, expected);
}
