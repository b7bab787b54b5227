//! W20: replicas and the events of their group.

use containerpilot_core::ids::JobIx;
use containerpilot_core::{Input, Reply, Request, RequestId, State};

use crate::harness::{Harness, plan};

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
    let variables = |environment: &containerpilot_core::variables::ProcessEnvironment| {
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

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn scale(harness: &mut Harness, count: u16) {
    harness.input(Input::Request { id: RequestId(9), request: Request::Scale("web".into(), count) });
}

#[test]
fn w20_scale_starts_and_stops_replicas_and_keeps_the_others() {
    let mut harness = Harness::running(WEB);
    (0..3).for_each(|_| harness.finish_check(true));
    let pid = harness.status("web-1").pid;
    harness.take_output();
    scale(&mut harness, 5);
    assert_eq!(harness.take_effects()[..3], ["plan replaced", "spawn web-4", "spawn web-5"]);
    let Some(Reply::Reloaded(changes)) = harness.replies.pop() else { panic!("no reply") };
    assert_eq!(changes.started, names(&["web-4", "web-5"]));
    assert_eq!(changes.kept, names(&["web-1", "web-2", "web-3"]));
    scale(&mut harness, 1);
    assert!(harness.replies.is_empty(), "not before they have stopped");
    for name in ["web-2", "web-3", "web-4", "web-5"] {
        harness.exit_on(name, 15);
    }
    let Some(Reply::Reloaded(changes)) = harness.replies.pop() else { panic!("no reply") };
    assert_eq!(changes.stopped, names(&["web-2", "web-3", "web-4", "web-5"]));
    assert_eq!(harness.status("web-1").pid, pid);
    scale(&mut harness, 11);
    let expected = "at most 10 replicas: the ports are 8000 to 8009";
    assert_eq!(refusal(&harness), expected);
}

#[test]
fn w20_a_reload_keeps_the_scale_while_replicas_is_unchanged() {
    let mut harness = Harness::running(WEB);
    scale(&mut harness, 4);
    harness.replies.clear();
    let reload = |harness: &mut Harness, jobs: &str| {
        let mut plan = plan(&format!("{{ jobs: [{jobs}] }}"));
        plan.logging.level = containerpilot_core::plan::Level::Debug;
        harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(plan)) });
    };
    reload(&mut harness, WEB);
    let Some(Reply::Reloaded(changes)) = harness.replies.pop() else { panic!("no reply") };
    assert_eq!(changes.kept.len(), 4);
    reload(&mut harness, &WEB.replace("replicas: 3", "replicas: 2"));
    harness.exit_on("web-3", 15);
    harness.exit_on("web-4", 15);
    let Some(Reply::Reloaded(changes)) = harness.replies.pop() else { panic!("no reply") };
    assert_eq!((changes.kept.len(), changes.stopped.len()), (2, 2));
}

#[test]
fn w20_a_group_becomes_healthy_when_the_last_unhealthy_replica_is_removed() {
    let mut harness = with(WEB, "{ source: 'web', once: 'healthy' }");
    harness.finish_check(true);
    harness.finish_check(true);
    scale(&mut harness, 2);
    assert!(!has_run(&mut harness));
    harness.exit_on("web-3", 15);
    assert!(has_run(&mut harness));
}

#[test]
fn w20_w7_an_event_that_a_reload_causes_counts_once() {
    let jobs = |health: &str| {
        format!(
            "{{ name: 'web', exec: 'x', replicas: 1, health: {{ {health} interval: 5, ttl: 15 }} }}, \
             {{ name: 'b', exec: 'y', when: {{ source: 'web', each: 'healthy' }} }}"
        )
    };
    let mut harness = Harness::running(&jobs("exec: 'c',"));
    let new = plan(&format!("{{ jobs: [{}] }}", jobs("")));
    harness.request(Request::Reload(Box::new(new)));
    assert!(has_run(&mut harness));
    harness.exit("b", 0);
    assert!(!has_run(&mut harness));
}

/// The words of the only reply, which refuses.
fn refusal(harness: &Harness) -> String {
    let [Reply::Refused(refusal)] = harness.replies.as_slice() else { panic!("{:?}", harness.replies) };
    refusal.to_string()
}

fn rolling(harness: &mut Harness) {
    let jobs = (0..3).map(JobIx).collect();
    harness.input(Input::Request { id: RequestId(9), request: Request::RollingRestart(jobs) });
}

#[test]
fn w20_a_rolling_restart_restarts_one_at_a_time() {
    let mut harness = Harness::running(WEB);
    (0..3).for_each(|_| harness.finish_check(true));
    harness.take_output();
    rolling(&mut harness);
    for (nth, name) in ["web-1", "web-2", "web-3"].into_iter().enumerate() {
        let stops = harness.take_effects();
        assert!(stops.contains(&format!("kill {name} 15")), "{stops:?}");
        assert_eq!(stops.iter().filter(|effect| effect.starts_with("kill")).count(), 1);
        harness.exit_on(name, 15);
        assert!(harness.take_effects().contains(&format!("spawn {name}")));
        assert!(harness.replies.is_empty());
        while harness.running_checks() > 0 && harness.status(name).healthy != Some(true) {
            harness.finish_check(true);
        }
        assert_eq!(harness.status(name).generation, 1, "{nth}");
    }
    assert_eq!(harness.replies, [Reply::Done("restarted web-1, web-2, web-3, one at a time".into())]);
}

#[test]
fn w20_a_rolling_restart_stops_at_a_replica_that_does_not_become_healthy() {
    let mut harness = Harness::running(WEB);
    (0..3).for_each(|_| harness.finish_check(true));
    rolling(&mut harness);
    harness.exit_on("web-1", 15);
    harness.take_output();
    for _ in 0..80 {
        harness.seconds(1);
        while harness.running_checks() > 0 {
            harness.finish_check(harness.status("web-1").healthy == Some(true));
        }
    }
    let expected = "web-1 did not become healthy within 1m10s; not restarted: web-2, web-3";
    assert_eq!(refusal(&harness), expected);
    assert!(!harness.take_effects().iter().any(|effect| effect.starts_with("kill web-2")));
}

#[test]
fn w20_x2_a_replica_that_is_stopped_before_its_turn_stays_stopped() {
    let mut harness = Harness::running(WEB);
    (0..3).for_each(|_| harness.finish_check(true));
    rolling(&mut harness);
    for nth in [1, 2] {
        harness.request(Request::Stop(JobIx(nth)));
    }
    for name in ["web-2", "web-3", "web-1"] {
        harness.exit_on(name, 15);
    }
    harness.replies.clear();
    while harness.running_checks() > 0 && harness.status("web-1").healthy != Some(true) {
        harness.finish_check(true);
    }
    assert_eq!(harness.replies, [Reply::Done("restarted web-1, one at a time".into())]);
    assert_eq!((harness.status("web-2").word(), harness.status("web-3").word()), ("stopped", "stopped"));
}

#[test]
fn w20_a_rolling_restart_ends_with_a_shutdown() {
    let mut harness = Harness::running(WEB);
    rolling(&mut harness);
    harness.signal(15);
    assert!(
        matches!(harness.replies.as_slice(), [Reply::Refused(why)] if why.to_string().contains("shutting down"))
    );
}

#[test]
fn w20_explain_lists_the_replicas_that_a_job_waits_for() {
    let mut harness = with(WEB, "{ source: 'web', once: 'healthy' }");
    harness.finish_check(true);
    let b = JobIx(3);
    let lines = harness.core.explain(b, None).sentences();
    assert_eq!(lines[1], "  waiting until web is healthy (1 of 3 replicas; 3 running)");
    assert!(lines[2].starts_with("    web-2: running"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("    web-3: running")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("web-1")), "{lines:?}");
    assert_eq!(harness.core.awaited(b)[0].state, "1 of 3 replicas; 3 running");
}

#[test]
fn w18_explain_names_the_replica_that_is_missing() {
    let jobs = format!("{WEB}, {{ name: 'b', exec: 'y', requires: ['web'] }}");
    let mut harness = Harness::running(&jobs);
    harness.finish_check(true);
    let lines = harness.core.explain(JobIx(3), None).sentences();
    let expected =
        "  waiting for web, which has 1 of 3 replicas, web-2 is running but not yet healthy".to_owned();
    assert!(lines.contains(&expected), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("    web-3: running")), "{lines:?}");
}

#[test]
fn w20_replicas_that_stop_together_are_one_event_of_their_group() {
    let two =
        "{ name: 'a', exec: 'x', replicas: 2, when: { source: 'SIGUSR2' } }, { name: 'server', exec: 'x' }";
    let mut harness = with(two, "{ source: 'a', each: 'stopped' }");
    harness.request(Request::Several(vec![Request::Stop(JobIx(0)), Request::Stop(JobIx(1))]));
    assert!(has_run(&mut harness));
    harness.exit("b", 0);
    assert!(!has_run(&mut harness));
}
