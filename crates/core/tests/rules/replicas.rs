//! W20: replicas and the events of their group.

use containerpilot_core::State;

use crate::harness::Harness;

const WEB: &str =
    "{ name: 'web', exec: 'x', replicas: 3, port: '8000-8009', health: { exec: 'c', interval: 5, ttl: 15 } }";

fn with(jobs: &str, when: &str) -> Harness {
    let mut harness = Harness::running(&format!("{jobs}, {{ name: 'b', exec: 'y', when: {when} }}"));
    harness.take_output();
    harness
}

fn has_run(harness: &mut Harness) -> bool {
    harness.take_effects().contains(&"spawn b".to_owned())
}

#[test]
fn w20_replicas_know_their_number_and_port() {
    let mut harness = Harness::running(WEB);
    let variables = |environment: &containerpilot_core::variables::Environment| {
        let all = environment.iter().map(|(name, value)| format!("{name}={value}"));
        all.filter(|one| one.contains("_REPLICA") || one.contains("_PORT")).collect::<Vec<_>>()
    };
    let expected = ["CONTAINERPILOT_REPLICA=3", "CONTAINERPILOT_PORT=8002"];
    assert_eq!(variables(&harness.environment), expected);
    assert_eq!(variables(&harness.check_environment), expected);
    assert_eq!(harness.take_effects().iter().filter(|effect| effect.starts_with("spawn web-")).count(), 3);
}

#[test]
fn w20_a_group_is_healthy_when_all_replicas_are() {
    for code in ["healthy", "becameHealthy"] {
        let mut harness = with(WEB, &format!("{{ source: 'web', once: '{code}' }}"));
        harness.finish_check(true);
        harness.finish_check(true);
        assert!(!has_run(&mut harness), "one of three is not healthy");
        harness.finish_check(true);
        assert!(has_run(&mut harness), "{code}");
    }
}

#[test]
fn w20_a_group_is_unhealthy_when_one_replica_is() {
    let mut harness = with(WEB, "{ source: 'web', once: 'unhealthy' }");
    (0..3).for_each(|_| harness.finish_check(true));
    assert!(!has_run(&mut harness));
    harness.exit("web-2", 1);
    assert!(has_run(&mut harness));
}

#[test]
fn w20_one_replica_is_a_source_of_its_own() {
    let mut harness = with(WEB, "{ source: 'web-2', once: 'healthy' }");
    harness.finish_check(true);
    assert!(!has_run(&mut harness));
    harness.finish_check(true);
    assert!(has_run(&mut harness));
}

#[test]
fn w20_a_group_exits_successfully_when_all_replicas_have() {
    let three = "{ name: 'a', exec: 'x', replicas: 3 }";
    let mut harness = with(three, "{ source: 'a', once: 'exitSuccess' }");
    harness.exit("a-3", 0);
    harness.exit("a-1", 0);
    assert!(!has_run(&mut harness));
    harness.exit("a-2", 0);
    assert!(has_run(&mut harness));
}

#[test]
fn w20_a_group_fails_when_one_replica_does_and_cannot_succeed_any_more() {
    let three = "{ name: 'a', exec: 'x', replicas: 3 }";
    let mut harness = with(
        &format!("{three}, {{ name: 'c', exec: 'z', when: {{ source: 'a', once: 'exitSuccess' }} }}"),
        "{ source: 'a', once: 'exitFailed' }",
    );
    harness.exit("a-1", 0);
    assert!(!has_run(&mut harness));
    harness.exit("a-2", 7);
    assert!(has_run(&mut harness));
    assert!(matches!(harness.status("c").state, State::Ended(_)), "W10: a-2 does not run again");
}

#[test]
fn w20_a_group_has_stopped_when_all_replicas_have() {
    let two = "{ name: 'a', exec: 'x', replicas: 2 }, { name: 'server', exec: 'x' }";
    let mut harness = with(two, "{ source: 'a', once: 'stopped' }");
    harness.exit("a-1", 0);
    assert!(!has_run(&mut harness));
    harness.exit("a-2", 1);
    assert!(has_run(&mut harness));
}

#[test]
fn w12_a_group_holds_while_all_replicas_are_healthy() {
    let other = format!("{WEB}, {{ name: 'db', exec: 'x', restarts: 1 }}");
    let mut harness = with(
        &other,
        "{ all: [{ source: 'web', event: 'healthy' }, { source: 'db', event: 'exitSuccess' }] }",
    );
    (0..3).for_each(|_| harness.finish_check(true));
    assert!(!has_run(&mut harness));
    harness.exit("web-1", 0);
    harness.exit("db", 0);
    assert!(!has_run(&mut harness), "web-1 is no longer healthy");
}

#[test]
fn w20_an_event_of_a_replica_that_is_awaited_twice_starts_one_run() {
    let two = "{ name: 'a', exec: 'x', replicas: 2 }";
    let when =
        "{ any: [{ source: 'a', event: 'exitFailed' }, { source: 'a-1', event: 'exitFailed' }], each: true }";
    let mut harness = with(two, when);
    harness.exit("a-1", 1);
    assert!(has_run(&mut harness));
    harness.exit("b", 0);
    assert!(!has_run(&mut harness));
}

#[test]
fn s2_a_hook_of_a_group_is_awaited_by_each_replica() {
    let two = "{ name: 'a', exec: 'x', replicas: 2 }";
    let mut harness = with(two, "{ source: 'a', once: 'stopping' }");
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["spawn b"]);
    harness.exit("b", 0);
    let mut stopped = harness.take_effects();
    stopped.sort();
    assert_eq!(stopped, ["kill a-1 15", "kill a-2 15"]);
}

#[test]
fn w18_a_required_group_is_there_when_all_replicas_are() {
    let jobs = format!("{WEB}, {{ name: 'b', exec: 'y', requires: [{{ source: 'web', bind: true }}] }}");
    let mut harness = Harness::running(&jobs);
    harness.take_output();
    harness.finish_check(true);
    harness.finish_check(true);
    assert!(!has_run(&mut harness));
    harness.finish_check(true);
    assert!(has_run(&mut harness));
    harness.exit("web-2", 1);
    assert!(harness.take_effects().contains(&"kill b 15".to_owned()), "one of them is gone");
}
