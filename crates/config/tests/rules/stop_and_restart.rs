//! W13, W14, S8, S9: restart policies, start limits and stop signals.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::exit_status::ExitStatus;
use containerpilot_core::plan::{
    Escalation, EventPattern, OnStartLimit, Repeat, RestartOn, Signal, StartLimit, StopScope, Trigger,
};

use super::support::{errors, faults, host, job, job_errors, load_files, plan, shown};

const SECOND: Duration = Duration::from_secs(1);

fn job_faults(text: &str) -> Vec<String> {
    faults(&format!("{{ jobs: [{{ {text} }}] }}"))
}

fn job_shown(text: &str) -> String {
    shown(&load_files(&[&format!("{{ jobs: [{{ {text} }}] }}")], &host()))
}

#[test]
fn w13_restart_on_and_success_codes() {
    let usual = job("exec: 'x'");
    assert_eq!((usual.restart_on, usual.success_codes), (RestartOn::Exit, vec![]));
    for (text, expected) in
        [("exit", RestartOn::Exit), ("failure", RestartOn::Failure), ("success", RestartOn::Success)]
    {
        assert_eq!(job(&format!("exec: 'x', restarts: 1, restartOn: '{text}'")).restart_on, expected);
    }
    let codes = job("exec: 'x', successCodes: [0, 143, 'SIGTERM', 'int', '2', 2]").success_codes;
    let expected = [
        ExitStatus::Code(0),
        ExitStatus::Code(143),
        ExitStatus::Signal(Signal::TERM),
        ExitStatus::Signal(Signal::INT),
        ExitStatus::Code(2),
    ];
    assert_eq!(codes, expected);
    assert_eq!(job("exec: 'x', successCodes: [0]").success_codes, [], "the default needs no list");
}

#[test]
fn w13_broken_restart_policies() {
    for (bad, message, help) in [
        ("restartOn: 'on-failure'", "`restartOn` must be", "did you mean \"failure\"?"),
        ("restartOn: 'always'", "`restartOn` must be", "did you mean \"exit\"?"),
        ("successCodes: []", "`successCodes` is empty", "[0]"),
        ("successCodes: 0", "`successCodes` must be a list", "[ … ]"),
        ("successCodes: [256]", "must be from 0 to 255, not 256", ""),
        ("successCodes: [-1]", "must be from 0 to 255, not -1", ""),
        ("successCodes: ['SIGTREM']", "must contain exit codes and signals", "did you mean \"SIGTERM\"?"),
        ("successCodes: [{}]", "must contain exit codes and signals", "[0, 143, \"SIGTERM\"]"),
    ] {
        let text = format!("exec: 'x', restarts: 1, {bad}");
        assert_eq!(job_errors(&text).len(), 1, "{bad}");
        let shown = job_shown(&text);
        assert!(shown.contains(message) && shown.contains(help), "{shown}");
    }
}

#[test]
fn w13_a_policy_without_an_effect_is_a_fault() {
    assert_eq!(
        job_faults("exec: 'x', restartOn: 'failure'"),
        ["`restartOn` has no effect: the job has no restarts"]
    );
    assert_eq!(
        job_faults("exec: 'x', restartOn: 'failure', when: { interval: '1s' }"),
        ["`restartOn` has no effect: a periodic job runs at its next tick"]
    );
    assert_eq!(
        job_faults(
            "exec: 'x', name: 'a', restartOn: 'success', restarts: 1, \
             health: { exec: 'y', interval: 1, ttl: 5, onUnhealthy: 'restart' }"
        ),
        ["an unhealthy job has failed, so `onUnhealthy` never restarts it"]
    );
}

#[test]
fn w13_s5_an_end_that_can_come_is_no_fault() {
    let unlimited = |more: &str| job_faults(&format!("exec: 'x', restarts: 'unlimited', {more}"));
    for fine in [
        "restartOn: 'failure', onSuccess: 'shutdown'",
        "restartOn: 'success', onFailure: 'shutdown'",
        "onFailure: 'shutdown', startLimit: { count: 5, within: '1m' }",
    ] {
        assert_eq!(unlimited(fine), [""; 0], "{fine}");
    }
    for (wrong, why) in [
        ("onSuccess: 'shutdown'", "restarted without limit"),
        ("restartOn: 'exit', onSuccess: 'shutdown'", "restarted without limit"),
        ("restartOn: 'success', onSuccess: 'shutdown'", "restarted after each success"),
        ("restartOn: 'failure', onFailure: 'shutdown'", "restarted after each failure"),
        ("onSuccess: 'shutdown', startLimit: { count: 5, within: '1m' }", "restarted without limit"),
    ] {
        let faults = unlimited(wrong);
        assert!(faults.len() == 1 && faults[0].contains(why), "{wrong}: {faults:?}");
    }
}

#[test]
fn w14_the_start_limit() {
    assert_eq!(job("exec: 'x'").start_limit, None);
    let limit = job("exec: 'x', startLimit: { count: 5, within: '1m', then: 'shutdown' }").start_limit;
    assert_eq!(limit, Some(StartLimit { count: 5, within: 60 * SECOND, then: OnStartLimit::Shutdown }));
    let usual = job("exec: 'x', startLimit: { count: 1, within: 10 }").start_limit;
    assert_eq!(usual, Some(StartLimit { count: 1, within: 10 * SECOND, then: OnStartLimit::Fail }));
    for bad in [
        "{ count: 0, within: 1 }",
        "{ count: 1001, within: 1 }",
        "{ count: 1 }",
        "{ within: 1 }",
        "{ count: 1, within: 0 }",
        "{ count: 1, within: -1 }",
        "{ count: 1, within: 1, then: 'stop' }",
        "5",
    ] {
        assert_eq!(job_errors(&format!("exec: 'x', startLimit: {bad}")).len(), 1, "{bad}");
    }
}

#[test]
fn w14_a_limit_that_is_never_reached_is_a_fault() {
    let limit = "startLimit: { count: 5, within: '1m' }";
    assert_eq!(
        job_faults(&format!("exec: 'x', when: {{ interval: 1 }}, {limit}")),
        ["`startLimit` is never reached: the ticks of a periodic job are not counted"]
    );
    assert_eq!(
        job_faults(&format!("name: 'a', health: {{ tcp: 'x:1', interval: 1, ttl: 5 }}, {limit}")),
        ["`startLimit` is never reached: the job has no `exec`"]
    );
    let waits =
        "{ jobs: [{ name: 'a', exec: 'x' }, { exec: 'y', when: { source: 'a', once: 'crashLoop' } }] }";
    assert_eq!(faults(waits), ["the job `a` never sends `crashLoop`: it has no `startLimit`"]);
}

#[test]
fn s8_the_signals_that_shut_down() {
    assert_eq!(plan("{}").stop_on, [Signal::TERM, Signal::INT, Signal::QUIT]);
    assert_eq!(
        plan("{ stopOn: ['SIGTERM', 'winch', 'TERM', 34] }").stop_on,
        [Signal::TERM, Signal(28), Signal(34)]
    );
    for (bad, message) in [
        ("[]", "`stopOn` must have at least one signal"),
        ("'TERM'", "`stopOn` must be a list"),
        ("['KILL']", "`stopOn` cannot contain SIGKILL: a process cannot catch it"),
        ("['STOP']", "`stopOn` cannot contain SIGSTOP: a process cannot catch it"),
        ("['CHLD']", "`stopOn` cannot contain SIGCHLD: the kernel sends it at each exit of a child"),
        ("[33]", "`stopOn` cannot contain signal 33: the C library uses it"),
        ("['TREM']", "`stopOn` must be a signal"),
    ] {
        let errors = errors(&format!("{{ stopOn: {bad} }}"));
        assert!(errors.len() == 1 && errors[0].starts_with(message), "{errors:?}");
    }
    let two = load_files(&["{ stopOn: ['HUP'] }", "{ stopTimeout: 1 }"], &host());
    assert_eq!(two.plan.unwrap().stop_on, [Signal::HUP]);
    let two = load_files(&["{ stopOn: ['HUP'] }", "{ stopOn: ['INT'] }"], &host());
    assert_eq!(two.plan.unwrap().stop_on, [Signal::INT]);
}

#[test]
fn w3_s8_every_signal_that_can_be_caught_may_be_a_source() {
    for (name, number) in [("SIGWINCH", 28), ("SIGUSR1", 10), ("SIGRTMIN+1", 35), ("SIGHUP", 1)] {
        let event = EventPattern { source: Source::Signal(Signal(number)), code: Code::Signal };
        let text = format!("exec: 'x', when: {{ source: '{name}' }}");
        assert_eq!(job(&text).when.trigger, Trigger::Event { event, repeat: Repeat::Each }, "{name}");
    }
    let free = "{ stopOn: ['TERM'], jobs: [{ exec: 'x', when: { source: 'SIGINT' } }] }";
    assert_eq!(faults(free), [""; 0]);
}

#[test]
fn s8_a_signal_cannot_shut_down_and_be_a_source() {
    let both = "{ stopOn: ['TERM', 'WINCH'], jobs: [{ exec: 'x', when: { source: 'SIGWINCH' } }] }";
    assert_eq!(errors(both), ["SIGWINCH is in `stopOn`, so no job can wait for it"]);
    assert!(shown(&load_files(&[both], &host())).contains("once: \"shutdown\""));
    let any = "{ stopOn: ['WINCH'], jobs: [{ exec: 'x', when: { any: [{ source: 'SIGWINCH' }] } }] }";
    assert_eq!(errors(any).len(), 1);
    // 3.8 runs a file with such a source: by default, it is a fault.
    assert_eq!(job_faults("exec: 'x', when: { source: 'SIGTERM' }").len(), 1);
    assert!(job_shown("exec: 'x', when: { source: 'SIGTERM' }").contains("leave it out of `stopOn`"));
    for never in ["SIGKILL", "SIGSTOP", "SIGCHLD"] {
        assert_eq!(job_faults(&format!("exec: 'x', when: {{ source: '{never}' }}")).len(), 1, "{never}");
    }
}

#[test]
fn s9_escalations() {
    let stop = |text: &str| job(&format!("exec: 'x', stopSignal: {text}")).stop;
    let escalation = stop("['QUIT', '2s', 'TERM', 1, 'KILL']");
    assert_eq!(escalation.signal, Signal::QUIT);
    assert_eq!(escalation.escalation, [Escalation { after: 2 * SECOND, signal: Signal::TERM }]);
    assert_eq!(escalation.kill_after, Some(3 * SECOND));
    let without_kill = stop("['INT', '1s', 'TERM']");
    assert_eq!((without_kill.escalation.len(), without_kill.kill_after), (1, None));
    assert_eq!(stop("['INT']"), stop("'INT'"));
    assert_eq!(stop("['KILL']"), stop("'KILL'"));
    let kill_after = job("exec: 'x', stopSignal: ['INT', '1s', 'TERM'], killAfter: '3s'").stop;
    assert_eq!(kill_after.kill_after, Some(3 * SECOND));
    assert_eq!(job("exec: 'x'").stop.scope, StopScope::Group);
    assert_eq!(job("exec: 'x', stopScope: 'process'").stop.scope, StopScope::Process);
}

#[test]
fn s9_broken_escalations() {
    for (bad, message) in [
        ("stopSignal: []", "`stopSignal` is an empty list"),
        ("stopSignal: ['10s', 'TERM']", "`stopSignal` must be a signal"),
        ("stopSignal: ['TERM', '10s']", "`stopSignal` must end with a signal, not a duration"),
        ("stopSignal: ['TERM', 'QUIT']", "`stopSignal` must end with a signal"),
        ("stopSignal: ['TERM', 'QUIT', 'KILL']", "`stopSignal` needs a duration between two signals"),
        ("stopSignal: ['TERM', '1s', 'KILL', '1s', 'INT']", "nothing can follow SIGKILL in `stopSignal`"),
        ("stopSignal: ['KILL', '1s', 'INT']", "nothing can follow SIGKILL in `stopSignal`"),
        ("stopSignal: ['TERM', '0s', 'KILL']", "a duration in `stopSignal` must be at least 1ms"),
        ("stopSignal: ['TERM', 'soon', 'KILL']", "`stopSignal` must be a number of seconds or a duration"),
        ("stopSignal: { a: 1 }", "`stopSignal` must be a string"),
        ("killAfter: 0", "`killAfter` must be at least 1ms"),
        ("killAfter: '1s', stopSignal: ['TERM', '1s', 'KILL']", "`killAfter` beside a `stopSignal`"),
        ("killAfter: '1s', stopSignal: ['TERM', '2s', 'INT']", "SIGKILL would come before the last signal"),
        ("stopScope: 'all'", "`stopScope` must be \"group\" or \"process\""),
    ] {
        let errors = job_errors(&format!("exec: 'x', {bad}"));
        assert!(errors.len() == 1 && errors[0].starts_with(message), "{bad}: {errors:?}");
    }
}

#[test]
fn s9_a_stop_that_takes_longer_than_the_global_timeout_is_a_fault() {
    assert_eq!(
        job_faults("exec: 'x', killAfter: '1m'"),
        ["`killAfter` takes 1m0s, but SIGKILL comes after 5s"]
    );
    assert_eq!(
        job_faults("exec: 'x', stopSignal: ['QUIT', '10s', 'TERM', '5s', 'KILL']"),
        ["the escalation of `stopSignal` takes 15s, but SIGKILL comes after 5s"]
    );
    assert_eq!(job_faults("exec: 'x', stopSignal: ['QUIT', '10s', 'TERM']").len(), 1);
    let enough =
        "{ stopTimeout: 15, jobs: [{ exec: 'x', stopSignal: ['QUIT', '10s', 'TERM', '5s', 'KILL'] }] }";
    assert_eq!(faults(enough), [""; 0]);
}
