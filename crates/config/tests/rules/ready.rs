//! H11, H12: the plan of `ready` and `watchdog`.

use std::time::Duration;

use containerpilot_core::plan::{OnUnhealthy, Probe, Ready};

use super::support::{faults, job, job_errors};

#[test]
fn h11_three_ways_to_be_ready() {
    let ready = |text: &str| job(&format!("name: 'web', exec: 'x', ready: {text}")).ready.unwrap();
    assert_eq!(ready("'notify'"), Ready::Notify { watchdog: None });
    assert_eq!(ready("'notify', watchdog: '30s'"), Ready::Notify { watchdog: Some(Duration::from_secs(30)) });
    assert_eq!(ready("{ fd: 3 }"), Ready::Descriptor(3));
    assert_eq!(ready("{ fd: 1023 }"), Ready::Descriptor(1023));
    assert_eq!(ready(r"{ line: '^listening on port \\d+' }"), Ready::Line(r"^listening on port \d+".into()));
    for bad in [
        "ready: 'socket'",
        "ready: ''",
        "ready: 3",
        "ready: {}",
        "ready: { fd: 2 }",
        "ready: { fd: 1024 }",
        "ready: { fd: 3, line: 'x' }",
        "ready: { line: '' }",
        "ready: { line: '(' }",
        r"ready: { line: '(a{100}){100}' }",
        "ready: { line: 'x' }, logging: { raw: true }",
        "watchdog: '30s'",
        "ready: { fd: 3 }, watchdog: '30s'",
        "ready: 'notify', watchdog: 0",
        "ready: 'notify', watchdog: 'soon'",
    ] {
        assert_eq!(job_errors(&format!("name: 'web', exec: 'x', {bad}")).len(), 1, "{bad}");
    }
    let errors = job_errors("name: 'web', ready: 'notify', health: { tcp: 'x:1', interval: 1, ttl: 2 }");
    assert_eq!(errors.len(), 1, "nothing can be ready without a process");
}

#[test]
fn h11_a_job_with_ready_has_a_check_for_it() {
    let health =
        |text: &str| job(&format!("name: 'web', exec: 'x', ready: {{ fd: 3 }} {text}")).health.unwrap();
    let alone = health("");
    assert_eq!((alone.checks.len(), alone.ttl.as_secs()), (1, 30));
    let check = &alone.checks[0];
    assert_eq!((check.name.as_str(), &check.probe, check.failures), ("ready.web", &Probe::Ready, 1));
    assert_eq!(alone.on_unhealthy, OnUnhealthy::Report);

    let beside = health(", health: { tcp: 'x:1', interval: 2, ttl: 9, failures: 3 }");
    let checks: Vec<_> = beside.checks.iter().map(|check| (check.name.as_str(), check.failures)).collect();
    assert_eq!(checks, [("check.web", 3), ("ready.web", 1)]);
    assert_eq!(beside.ttl.as_secs(), 9);

    let own = health(", health: [{ tcp: 'x:1', interval: 2 }, { interval: 5, ttl: 9, failures: 3 }]");
    assert_eq!(own.checks.len(), 2, "a check without exec, http and tcp is the one for readiness");
    assert_eq!((&own.checks[1].probe, own.checks[1].failures), (&Probe::Ready, 3));
    assert!(
        job("name: 'web', exec: 'x', port: 80, ready: 'notify'").service.is_some(),
        "health is not needed"
    );
}

#[test]
fn h11_only_a_job_with_ready_sends_it() {
    let waits = "{ name: 'app', exec: 'x', when: { source: 'db', once: 'ready' } }";
    let found = faults(&format!("{{ jobs: [{{ name: 'db', exec: 'x' }}, {waits}] }}"));
    assert_eq!(found, ["the job `db` never sends `ready`: it has no `ready`"]);
    let ready = "{ name: 'db', exec: 'x', ready: { fd: 3 } }";
    assert!(faults(&format!("{{ jobs: [{ready}, {waits}] }}")).is_empty());
    let healthy = waits.replace("'ready'", "'healthy'");
    assert!(faults(&format!("{{ jobs: [{ready}, {healthy}] }}")).is_empty(), "it is healthy while ready");
}
