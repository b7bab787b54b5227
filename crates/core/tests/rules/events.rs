//! E1–E8, P7: events and what they carry.

use containerpilot_core::Input;
use containerpilot_core::event::Code;

use crate::stage::{Stage, plan};

#[test]
fn e2_what_an_event_causes_is_queued_behind_it() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'stopped' } }, \
         { name: 'c', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    stage.look();
    stage.exit("a", 0);
    assert_eq!(
        stage.look(),
        ["event a exitSuccess", "event a stopping", "event a stopped", "spawn c", "spawn b"]
    );
}

#[test]
fn e4_startup_comes_once() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    stage.look();
    stage.input(Input::Ready);
    assert!(stage.look().is_empty());
}

#[test]
fn e6_a_watch_sends_changed_and_then_what_changed() {
    let mut stage =
        Stage::new(plan("{ watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'a', exec: 'x' }] }"));
    stage.input(Input::Ready);
    stage.look();
    stage.instances(0);
    assert_eq!(stage.look(), [] as [&str; 0], "a first answer that is empty is no change");
    stage.instances(1);
    assert_eq!(stage.look(), ["event watch.db changed", "event watch.db healthy"]);
    stage.instances(1);
    assert_eq!(stage.look(), [] as [&str; 0]);
    stage.instances(3);
    assert_eq!(stage.look(), ["event watch.db changed"]);
    stage.instances(0);
    assert_eq!(stage.look(), ["event watch.db changed", "event watch.db unhealthy"]);
}

#[test]
fn e8_stopped_means_that_the_job_is_finished() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }");
    stage.look();
    stage.exit("a", 0);
    assert_eq!(stage.events(), ["a exitSuccess"]);
    stage.exit("a", 0);
    assert_eq!(stage.events(), ["a exitSuccess", "a stopping", "a stopped", "global shutdown"]);
}

#[test]
fn x5_every_event_knows_its_cause() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    stage.exit("a", 0);
    stage.exit("b", 3);
    let events: Vec<_> = stage.core.journal().events().copied().collect();
    let find = |origin: &str, code| {
        *events
            .iter()
            .find(|event| event.code == code && stage.core.origin_name(event.origin) == origin)
            .unwrap()
    };
    let (startup, a, b) =
        (find("global", Code::Startup), find("a", Code::ExitSuccess), find("b", Code::ExitFailed));
    assert_eq!((startup.cause, a.cause, b.cause), (None, Some(startup.id), Some(a.id)));
    assert!(
        stage.log.iter().any(|line| line == "event b exitFailed, cause: a exitSuccess"),
        "{:?}",
        stage.log
    );
}

#[test]
fn p7_a_process_knows_why_it_runs_and_where_the_others_are() {
    let mut stage = Stage::running(
        "{ name: 'my-db', exec: 'x', port: 5432, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { exec: '/opt/set.up.sh' }, \
         { name: 'after', exec: 'x', when: { source: '/opt/set.up.sh', once: 'exitFailed' } }",
    );
    let value = |stage: &Stage, name: &str| {
        let found = stage.environment.iter().rfind(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    assert_eq!(value(&stage, "CONTAINERPILOT_MY_DB_IP"), "10.0.0.1");
    stage.exit("/opt/set.up.sh", 7);
    assert_eq!(value(&stage, "CONTAINERPILOT_JOB"), "after");
    assert_eq!(value(&stage, "CONTAINERPILOT_EVENT"), "exitFailed");
    assert_eq!(value(&stage, "CONTAINERPILOT_EVENT_SOURCE"), "/opt/set.up.sh");
    assert_eq!(value(&stage, "CONTAINERPILOT_EXIT_CODE"), "7");
    assert_eq!(value(&stage, "CONTAINERPILOT_RESTARTS"), "0");
    assert!(!value(&stage, "CONTAINERPILOT_MY_DB_PID").is_empty());
    assert_eq!(value(&stage, "CONTAINERPILOT_SET_UP_PID"), "", "it does not run any more");
}
