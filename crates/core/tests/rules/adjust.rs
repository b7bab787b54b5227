//! R5: a reload that changes a job without its process.

use containerpilot_core::Reply;

use crate::harness::Harness;
use crate::reload::reload;

fn adjusted(harness: &Harness) -> Vec<String> {
    match harness.replies.last() {
        Some(Reply::Reloaded(changes)) => changes.adjusted.clone(),
        other => panic!("{other:?}"),
    }
}

const R5: &str =
    "{ name: 'web', exec: 'x', port: 80, tags: ['t'], health: { exec: 'c', interval: 5, ttl: 15 } }";

#[test]
fn r5_what_does_not_concern_the_process_is_changed_in_place() {
    for (from, to) in [
        ("tags: ['t']", "tags: ['u']"),
        ("tags: ['t']", "meta: { k: 'v' }"),
        ("tags: ['t']", "tags: ['t'], restarts: 3"),
        ("tags: ['t']", "tags: ['t'], restartBackoff: false"),
        ("tags: ['t']", "tags: ['t'], onFailure: 'shutdown', onSuccess: 'shutdown'"),
        ("tags: ['t']", "tags: ['t'], drain: '2s', stopTimeout: '3s', stopSignal: 'INT'"),
        ("tags: ['t']", "tags: ['t'], logging: { raw: true }"),
        ("tags: ['t']", "tags: ['t'], groups: ['g']"),
        ("interval: 5", "interval: 6"),
        ("exec: 'c'", "exec: 'd'"),
        ("ttl: 15", "ttl: 20"),
    ] {
        let mut harness = Harness::running(R5);
        harness.finish_check(true);
        let status = harness.status("web");
        harness.take_output();
        reload(&mut harness, &R5.replace(from, to));
        assert_eq!(adjusted(&harness), ["web"], "{to}");
        let output = harness.take_output();
        assert!(
            !output.iter().any(|line| line.starts_with("kill") || line.starts_with("event")),
            "{output:?}"
        );
        assert_eq!(
            (harness.status("web").pid, harness.status("web").healthy),
            (status.pid, Some(true)),
            "{to}"
        );
    }
}

#[test]
fn r5_what_concerns_the_process_restarts_it() {
    for (from, to) in [
        ("exec: 'x'", "exec: 'y'"),
        ("port: 80", "port: 81"),
        ("tags: ['t']", "tags: ['t'], env: { A: '1' }"),
        ("tags: ['t']", "tags: ['t'], timeout: '1h'"),
        ("tags: ['t']", "tags: ['t'], when: { source: 'SIGUSR2' }"),
    ] {
        let mut harness = Harness::running(R5);
        reload(&mut harness, &R5.replace(from, to));
        assert!(harness.take_effects().contains(&"kill web 15".to_owned()), "{to}");
    }
}

#[test]
fn r5_a_changed_service_is_registered_again() {
    let mut harness = Harness::running(R5);
    harness.finish_check(true);
    harness.take_output();
    reload(&mut harness, &R5.replace("'t'", "'u'"));
    assert_eq!(harness.take_effects(), ["plan replaced", "advertise web passing"]);
    reload(&mut harness, &R5.replace("'t'", "'u'"));
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
}

#[test]
fn r5_a_job_stays_healthy_until_its_new_checks_fail() {
    let mut harness = Harness::running(R5);
    harness.finish_check(true);
    harness.seconds(5);
    assert_eq!(harness.running_checks(), 1);
    harness.take_output();
    reload(&mut harness, &R5.replace("exec: 'c'", "exec: 'd'"));
    assert!(harness.take_effects().iter().any(|effect| effect.starts_with("cancel")));
    assert_eq!(harness.status("web").healthy, Some(true));
    // The canceled check ends, and its result does not count.
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(true));
    assert_eq!(harness.take_events(), [] as [&str; 0]);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(false));
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
}

#[test]
fn r5_new_checks_of_a_job_without_checks_start_at_once() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    reload(&mut harness, "{ name: 'a', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }");
    assert_eq!(adjusted(&harness), ["a"]);
    harness.finish_check(true);
    assert_eq!(harness.status("a").healthy, Some(true));
    reload(&mut harness, "{ name: 'a', exec: 'x' }");
    assert!(
        harness.take_effects().contains(&"kill a 15".to_owned()),
        "its health could not be told any more"
    );
}

#[test]
fn r5_a_new_restart_policy_counts_at_the_next_exit() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }");
    reload(&mut harness, "{ name: 'a', exec: 'x', restarts: 1 }, { name: 'b', exec: 'x' }");
    harness.take_output();
    harness.exit("a", 1);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn r5_w4_a_new_number_of_ticks_counts_during_the_last_run() {
    let job = |restarts: u8| {
        format!(
            "{{ name: 'a', exec: 'x', timeout: '1m', restarts: {restarts}, when: {{ interval: '10s' }} }}"
        )
    };
    let mut harness = Harness::running(&job(0));
    harness.seconds(12);
    reload(&mut harness, &job(2));
    harness.exit("a", 0);
    harness.take_output();
    harness.seconds(8);
    assert_eq!(harness.take_effects(), ["spawn a"], "the next tick is a multiple of the interval");
    // One that was cancelled before.
    let mut harness = Harness::running(&job(5));
    reload(&mut harness, &job(0));
    harness.seconds(5);
    reload(&mut harness, &job(5));
    harness.exit("a", 0);
    harness.take_output();
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn r5_w4_a_job_with_fewer_ticks_than_it_had_is_complete() {
    let job = |restarts: u8| {
        format!(
            "{{ name: 'a', exec: 'x', restarts: {restarts}, when: {{ interval: '10s' }} }}, {{ name: 'b', exec: 'x' }}"
        )
    };
    let mut harness = Harness::running(&job(5));
    harness.exit("a", 0);
    harness.seconds(10);
    harness.exit("a", 0);
    reload(&mut harness, &job(1));
    assert_eq!(harness.status("a").word(), "complete");
    // During a run, it is the last one.
    let mut harness = Harness::running(&job(5));
    reload(&mut harness, &job(0));
    assert_eq!(harness.status("a").word(), "running");
    harness.exit("a", 0);
    assert_eq!(harness.status("a").word(), "complete");
}

#[test]
fn r5_d4_a_service_that_has_got_an_initial_status_is_registered() {
    let job = |more: &str| {
        R5.replace("tags: ['t']", more).replace("exec: 'x'", "exec: 'x', when: { source: 'SIGUSR2' }")
    };
    let mut harness = Harness::running(&job("tags: []"));
    harness.take_output();
    reload(&mut harness, &job("initial_status: 'critical'"));
    assert_eq!(harness.take_effects(), ["plan replaced", "advertise web critical"]);
    // One that is unhealthy.
    let job = |more: &str| R5.replace("tags: ['t']", more);
    let mut harness = Harness::running(&job("tags: []"));
    for _ in 0..20 {
        harness.finish_check(false);
        harness.seconds(5);
    }
    harness.take_output();
    reload(&mut harness, &job("initial_status: 'warning'"));
    assert!(harness.take_effects().contains(&"advertise web critical".to_owned()));
}

#[test]
fn r5_s9_a_changed_escalation_does_not_put_off_sigkill() {
    let job = |signals: &str| {
        format!(
            "{{ name: 'a', exec: 'x', stopSignal: {signals}, killAfter: '4s' }}, {{ name: 'b', exec: 'x' }}"
        )
    };
    let mut harness = Harness::running(&job("['QUIT', '2s', 'TERM']"));
    harness.request(containerpilot_core::Request::Stop(containerpilot_core::ids::JobIx::at(0)));
    harness.seconds(1);
    reload(&mut harness, &job("['QUIT', '100ms', 'TERM']"));
    harness.take_output();
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill a 15", "kill a 9"], "4s after the stop signal");
}

#[test]
fn r5_h8_an_unhealthy_job_that_has_got_restarts_is_restarted() {
    let health = "health: { exec: 'c', interval: 1, ttl: 15, onUnhealthy: 'restart' }";
    let job = |restarts: u8| format!("{{ name: 'a', exec: 'x', restarts: {restarts}, {health} }}");
    let mut harness = Harness::running(&job(0));
    for passes in [true, false, true] {
        harness.finish_check(passes);
        harness.seconds(1);
    }
    assert!(!harness.take_effects().contains(&"kill a 15".to_owned()), "it has no restarts left");
    reload(&mut harness, &job(1));
    harness.finish_check(false);
    assert!(harness.take_effects().contains(&"kill a 15".to_owned()));
}
