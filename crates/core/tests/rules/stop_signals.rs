//! S8, S9: which signals stop the supervisor and the jobs, and which are events.

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Level, Signal, StopScope};
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::{Effect, Input, Request, RequestId};

use super::harness::{Harness, plan};

fn running(text: &str) -> Harness {
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    harness.take_output();
    harness
}

#[test]
fn s8_stop_on_names_the_signals_that_shut_down() {
    let mut harness = running("{ stopOn: ['WINCH', 'HUP'], jobs: [{ name: 'a', exec: 'x' }] }");
    for other in [15, 2, 3] {
        harness.signal(other);
    }
    assert_eq!(harness.take_output(), [""; 0]);
    assert!(
        harness.log.contains(&"received SIGTERM, ignored; the stop signals are SIGWINCH and SIGHUP".into())
    );
    harness.signal(28);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.signal(1);
    assert_eq!(harness.take_effects(), ["kill a 9"], "another signal is the second one");
    let plan = plan("{ stopOn: ['WINCH', 'HUP'] }");
    assert!(!reloads_at(&plan, Signal::HUP), "a stop signal does not reload");
}

#[test]
fn w3_s8_any_signal_may_be_a_source() {
    let mut harness = running(
        "{ stopOn: ['TERM'], jobs: [{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGINT' } }, \
         { name: 'c', exec: 'x', when: { any: [{ source: 'SIGWINCH' }, { source: 'SIGUSR1' }], each: true } }] }",
    );
    harness.signal(2);
    assert_eq!(harness.take_output(), ["event SIGINT signal", "spawn b"]);
    harness.signal(28);
    assert_eq!(harness.take_output(), ["event SIGWINCH signal", "spawn c"]);
    harness.exit("c", 0);
    harness.take_output();
    harness.signal(10);
    assert_eq!(harness.take_output(), ["event SIGUSR1 signal", "spawn c"]);
}

#[test]
fn s9_kill_after_is_shorter_than_the_stop_timeout() {
    let mut harness =
        running("{ jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'b', exec: 'x' }] }");
    harness.signal(15);
    harness.take_output();
    harness.millis(1_999);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.millis(1);
    assert_eq!(harness.take_output(), ["kill a 9"]);
    assert_eq!(harness.level_of("did not exit within 2s, sending SIGKILL"), Some(Level::Warn));
    harness.exit_on("a", 9);
    harness.take_output();
    harness.seconds(3);
    assert_eq!(harness.take_output(), ["kill b 9"], "the others have the global stop timeout");
}

#[test]
fn s9_the_global_stop_timeout_bounds_every_stop() {
    let mut harness =
        running("{ jobs: [{ name: 'a', exec: 'x', stopSignal: ['INT', '4s', 'TERM', '4s', 'KILL'] }] }");
    harness.request(Request::Stop(JobIx(0)));
    assert_eq!(harness.take_effects(), ["kill a 2"]);
    harness.seconds(4);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
}

#[test]
fn s9_an_escalation_sends_one_signal_after_the_other() {
    let mut harness = running(
        "{ stopTimeout: 20, jobs: [{ name: 'a', exec: 'x', stopSignal: ['QUIT', '10s', 'TERM', '5s', 'KILL'] }] }",
    );
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 3"]);
    let sentences = |harness: &Harness| harness.core.explain(JobIx(0), None).sentences();
    assert_eq!(
        sentences(&harness)[..2],
        ["a: stopping: sent SIGQUIT", "  next stop signal in 10s unless it exits"]
    );
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    assert_eq!(harness.level_of("did not exit within 10s, sending SIGTERM"), Some(Level::Warn));
    assert_eq!(sentences(&harness)[..2], ["a: stopping: sent SIGTERM", "  SIGKILL in 5s unless it exits"]);
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    assert!(harness.log.contains(&"did not exit within 15s, sending SIGKILL".into()));
    harness.exit_on("a", 9);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s9_an_escalation_ends_with_the_process() {
    let mut harness = running(
        "{ stopTimeout: 20, jobs: [{ name: 'a', exec: 'x', stopSignal: ['QUIT', '2s', 'TERM'] }, { exec: 'y' }] }",
    );
    harness.request(Request::Restart(JobIx(0)));
    assert_eq!(harness.take_effects(), ["kill a 3"]);
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), ["spawn a"]);
    harness.seconds(30);
    assert_eq!(harness.take_effects(), [""; 0]);
}

#[test]
fn s9_a_list_without_kill_ends_at_kill_after_or_the_stop_timeout() {
    let kill_at = |more: &str| {
        let mut harness = running(&format!(
            "{{ jobs: [{{ name: 'a', exec: 'x', stopSignal: ['INT', '1s', 'TERM'] {more} }}, {{ exec: 'y' }}] }}"
        ));
        harness.request(Request::Stop(JobIx(0)));
        let start = harness.now;
        while harness.has_process("a") && !harness.output.contains(&"kill a 9".to_owned()) {
            harness.millis(500);
        }
        harness.now.since(start).as_millis()
    };
    assert_eq!(kill_at(""), 5_000);
    assert_eq!(kill_at(", killAfter: '3s'"), 3_000);
}

#[test]
fn s9_an_unhealthy_job_is_stopped_in_the_same_way() {
    let mut harness = running(
        "{ jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited', stopSignal: ['INT', '1s', 'TERM'], killAfter: '3s', \
         health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } }] }",
    );
    harness.finish_check(true);
    harness.seconds(10);
    harness.take_output();
    harness.finish_check(false);
    assert!(harness.take_effects().contains(&"kill a 2".to_owned()));
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    harness.exit_on("a", 9);
    assert!(harness.has_process("a"));
}

#[test]
fn s9_a_stop_during_an_unhealthy_restart_begins_again() {
    let mut harness = running(
        "{ jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited', stopSignal: ['INT', '1s', 'TERM'], \
         health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } }] }",
    );
    harness.finish_check(true);
    harness.seconds(10);
    harness.finish_check(false);
    harness.seconds(1);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 2"]);
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
}

#[test]
fn s9_the_scope_is_for_the_stop_signals_only() {
    let plan = plan(
        "{ jobs: [{ name: 'a', exec: 'x', stopScope: 'process', stopSignal: ['INT', '1s', 'TERM'] }, { name: 'b', exec: 'y' }] }",
    );
    let mut core = containerpilot_core::Core::new(plan);
    let mut now = containerpilot_core::Time::ZERO;
    let mut step = |input: Input, seconds: u64| {
        now = now + std::time::Duration::from_secs(seconds);
        let mut effects = Vec::new();
        core.step(now, input, &mut effects);
        effects
    };
    let mut runs = Vec::new();
    for effect in step(Input::Ready, 0) {
        if let Effect::Spawn { run, .. } = effect {
            runs.push(run);
        }
    }
    for run in runs {
        step(Input::Started { run, pid: 1 }, 0);
    }
    let kills = |effects: Vec<Effect>| {
        let kill = |effect| match effect {
            Effect::Kill { run, signal, scope, .. } => Some((run.0, signal, scope)),
            _ => None,
        };
        effects.into_iter().filter_map(kill).collect::<Vec<_>>()
    };
    let by_hand = Input::Request { id: RequestId(1), request: Request::Signal(JobIx(0), Signal::USR1) };
    assert_eq!(kills(step(by_hand, 0)), [(1, Signal::USR1, StopScope::Group)]);
    let stop = Input::Signal(Signal::TERM);
    let expected = [(1, Signal::INT, StopScope::Process), (2, Signal::TERM, StopScope::Group)];
    assert_eq!(kills(step(stop, 0)), expected);
    assert_eq!(kills(step(Input::Tick, 1)), [(1, Signal::TERM, StopScope::Process)]);
    let expected = [(1, Signal::KILL, StopScope::Group), (2, Signal::KILL, StopScope::Group)];
    assert_eq!(kills(step(Input::Tick, 4)), expected);
}

#[test]
fn s9_r5_a_stop_goes_on_when_a_reload_shortens_its_escalation() {
    let jobs = |signals: &str| {
        format!(
            "{{ jobs: [{{ name: 'a', exec: 'x', restarts: 'unlimited', stopSignal: {signals}, \
             health: {{ exec: 'y', interval: 1, ttl: 5, onUnhealthy: 'restart' }} }}] }}"
        )
    };
    let mut harness = running(&jobs("['INT', '1s', 'TERM', '1s', 'KILL']"));
    harness.finish_check(true);
    harness.seconds(1);
    harness.finish_check(false);
    assert!(harness.take_effects().contains(&"kill a 2".to_owned()));
    let reload = Request::Reload(Box::new(plan(&jobs("'INT'"))));
    harness.input(Input::Request { id: RequestId(1), request: reload });
    harness.seconds(4);
    assert!(!harness.take_effects().iter().any(|effect| effect.starts_with("kill")));
    harness.seconds(2);
    assert!(harness.take_effects().contains(&"kill a 9".to_owned()));
}
