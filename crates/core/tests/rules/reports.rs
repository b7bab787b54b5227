//! X5, X9, X10: what `explain`, `status` and `events` say.

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::Level;
use containerpilot_core::report::status::Cause;
use containerpilot_core::{Input, Request};

use crate::harness::Harness;

const A: JobIx = JobIx(0);
const B: JobIx = JobIx(1);

const HOOKED: &str = "{ name: 'a', exec: 'x', health: { exec: 'c', interval: 10, ttl: 30 }, restarts: 'unlimited' }, \
                      { name: 'b', exec: 'x', when: { source: 'a', once: 'stopped' } }, \
                      { name: 'c', exec: 'x' }";

fn explain(harness: &mut Harness, job: JobIx) -> Vec<String> {
    harness.input(Input::Tick);
    harness.core.explain(job, None).sentences()
}

/// Each event with the number of its cause.
fn caused(harness: &Harness) -> Vec<(String, Option<u64>)> {
    let name = |origin| harness.core.origin_name(origin);
    let events = harness.core.journal().events();
    events
        .map(|event| (format!("{} {}", name(event.origin), event.code), event.cause.map(|id| id.0)))
        .collect()
}

#[test]
fn x10_w4_a_run_at_a_tick_is_started_by_its_interval() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: { interval: '10s' } }");
    assert_eq!(explain(&mut harness, A).last().unwrap(), "started by startup");
    harness.exit("a", 0);
    harness.request(Request::Start(A));
    assert_eq!(explain(&mut harness, A).last().unwrap(), "started by hand");
    harness.exit("a", 0);
    harness.seconds(10);
    assert_eq!(explain(&mut harness, A).last().unwrap(), "started by its interval");
    assert_eq!(harness.log.last().unwrap(), "started (pid 103), cause: interval");
    harness.exit("a", 0);
    assert_eq!(explain(&mut harness, A).last().unwrap(), "last run started by its interval");
    let starts = harness.core.journal().starts();
    let starts: Vec<_> = starts.map(|start| (start.trigger.map(|id| id.0), start.tick)).collect();
    assert_eq!(starts, [(Some(1), false), (None, false), (None, true)]);
}

#[test]
fn x10_w15_a_run_at_a_time_of_day_is_started_by_its_schedule() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: { cron: '* * * * *' } }");
    let last = explain(&mut harness, A).last().unwrap().clone();
    assert!(last.contains("next run in"), "it has not run: {last}");
    harness.seconds(60);
    assert_eq!(explain(&mut harness, A).last().unwrap(), "started by its schedule");
    harness.exit("a", 0);
    assert_eq!(explain(&mut harness, A).last().unwrap(), "last run started by its schedule");
}

#[test]
fn p7_w4_a_tick_keeps_the_variables_of_the_first_event() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: { interval: '10s' } }");
    harness.exit("a", 0);
    harness.seconds(10);
    assert!(matches!(harness.core.job_overview(A).cause, Some(Cause::Tick(Some(_)))));
    let event = ("CONTAINERPILOT_EVENT", "startup");
    assert!(harness.environment.iter().any(|variable| variable == event));
}

#[test]
fn x10_the_event_that_started_a_run_is_not_the_cause_of_its_stop() {
    let mut harness = Harness::running(HOOKED);
    harness.finish_check(true);
    harness.request(Request::Stop(A));
    harness.exit_on("a", 15);
    let events = caused(&harness);
    let cause = |event: &str| events.iter().rfind(|(name, _)| name == event).unwrap().1;
    assert_eq!(cause("a exitFailed"), Some(1), "what started the run");
    assert_eq!((cause("a unhealthy"), cause("a stopping"), cause("a stopped")), (None, None, None));
    assert_eq!(explain(&mut harness, B).last().unwrap(), "started by a stopped");
}

#[test]
fn x10_an_exit_by_itself_is_the_cause_of_what_follows() {
    let mut harness = Harness::running(HOOKED);
    harness.finish_check(true);
    harness.seconds(5);
    harness.exit("a", 1);
    let events = caused(&harness);
    let exit = events.iter().position(|(name, _)| name == "a exitFailed").unwrap() as u64 + 1;
    let unhealthy = events.iter().rfind(|(name, _)| name == "a unhealthy").unwrap();
    assert_eq!(unhealthy.1, Some(exit));
}

#[test]
fn x10_a_ring_of_causes_is_listed_once() {
    let any =
        "any: [{ source: 'global', event: 'startup' }, { source: 'a', event: 'exitFailed' }], each: true";
    let mut harness = Harness::running(&format!("{{ name: 'a', exec: 'x', when: {{ {any} }} }}"));
    for _ in 0..4 {
        harness.exit("a", 1);
        harness.seconds(1);
    }
    assert_eq!(explain(&mut harness, A).last().unwrap(), "started by a exitFailed");
}

#[test]
fn w12_x5_a_job_whose_conditions_are_all_met_waits_until_one_is_met_again() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: { all: [{ source: 'b', event: 'healthy' }, \
                                               { source: 'global', event: 'startup' }], each: true } }, \
         { name: 'b', exec: 'x', health: { exec: 'c', interval: 10, ttl: 30 } }",
    );
    harness.finish_check(true);
    harness.exit("a", 0);
    assert_eq!(
        explain(&mut harness, A)[1..4],
        [
            "  condition met: b is healthy",
            "  condition met: the supervisor has started",
            "  all conditions are met; it runs again when one has ended and is met again",
        ]
    );
}

#[test]
fn s2_s15_a_hook_that_hangs_does_not_block_a_stop_by_hand() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'stopping' } }",
    );
    harness.request(Request::Stop(A));
    harness.take_output();
    harness.millis(299_999);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill b 9"], "five minutes, without a `timeout` of its own");
    harness.exit_on("b", 9);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
}

#[test]
fn h9_an_exit_after_a_signal_of_the_supervisor_is_not_suspicious() {
    let suspicion = "(does another process answer its check?)";
    let job = "{ name: 'a', exec: 'x', restarts: 'unlimited', health: { exec: 'c', interval: 10, ttl: 30 } }";
    let mut harness = Harness::running(job);
    harness.finish_check(true);
    harness.request(Request::Signal(A, containerpilot_core::plan::Signal::HUP));
    harness.exit_on("a", 1);
    assert!(!harness.log.iter().any(|line| line.contains(suspicion)), "{:?}", harness.log);
    harness.finish_check(true);
    harness.exit("a", 1);
    assert!(harness.log.iter().any(|line| line.contains(suspicion)), "{:?}", harness.log);
    let lines = explain(&mut harness, A);
    assert!(lines.iter().any(|line| line.contains(suspicion)), "{lines:?}");
}

#[test]
fn p5_x9_a_timeout_is_named_as_such() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '2s' }, { name: 'b', exec: 'x' }");
    harness.seconds(2);
    harness.exit_on("a", 9);
    assert_eq!(explain(&mut harness, A)[0], "a: failed, last run timed out (SIGKILL) 0s ago");
}

#[test]
fn l7_a_check_that_hangs_is_a_warning_once() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', health: { exec: 'c', interval: 10, timeout: '1s', ttl: 30, failures: 9 } }",
    );
    harness.finish_check(true);
    for level in [Level::Warn, Level::Debug, Level::Debug] {
        harness.seconds(11);
        assert_eq!(harness.level_of("check.a timeout after 1s"), Some(level));
        harness.finish_check(false);
    }
    let lines = explain(&mut harness, A);
    assert_eq!(lines[1], "  check.a failed (3 of 9 failures): timeout after 1s");
}

#[test]
fn w4_x5_the_next_tick_of_a_job_that_runs_is_no_run() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', timeout: 'never', when: { interval: '10s' } }");
    assert_eq!(explain(&mut harness, A)[1], "  next tick in 10s");
    harness.exit("a", 0);
    assert_eq!(explain(&mut harness, A)[1], "  next run in 10s");
}

#[test]
fn w12_x5_several_conditions_are_joined() {
    let other = "{ name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }, { name: 'd', exec: 'x' }";
    let when = |when: &str| format!("{{ name: 'a', exec: 'x', when: {{ {when} }} }}, {other}");
    let events = "[{ source: 'b', event: 'exitFailed' }, { source: 'c', event: 'exitFailed' }, \
                   { source: 'd', event: 'exitFailed' }]";
    for (key, word) in [("any", "or"), ("all", "and")] {
        let mut harness = Harness::running(&when(&format!("{key}: {events}, timeout: '1m'")));
        let lines = explain(&mut harness, A);
        assert!(lines[2].starts_with("  waiting until b fails; b: running"), "{lines:?}");
        assert!(lines[3].starts_with(&format!("  {word} until c fails; c: running")), "{lines:?}");
        harness.exit("b", 0);
        let lines = explain(&mut harness, A);
        let first = match key {
            "any" => "  waiting until c fails; c: running",
            _ => "  waiting until b fails, which can no longer happen; b: complete",
        };
        assert!(lines[2].starts_with(first), "{lines:?}");
    }
}

#[test]
fn w5_x7_a_job_that_gave_up_names_the_conditions_that_were_not_met() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: { all: [{ source: 'b', event: 'healthy' }, \
                                               { source: 'c', event: 'exitSuccess' }], timeout: '2s' } }, \
         { name: 'b', exec: 'x', health: { exec: 'c', interval: 10, ttl: 30 } }, { name: 'c', exec: 'x' }",
    );
    harness.seconds(1);
    harness.exit("c", 0);
    harness.seconds(1);
    assert_eq!(explain(&mut harness, A)[0], "a: skipped: b was not healthy within 2s");
    harness.finish_check(true);
    assert_eq!(
        explain(&mut harness, A)[0],
        "a: skipped: b was not healthy within 2s",
        "later changes do not count"
    );
}

#[test]
fn x5_a_job_that_has_run_waits_for_the_next_event() {
    let mut harness = Harness::running(HOOKED);
    harness.request(Request::Stop(A));
    harness.exit_on("a", 15);
    harness.exit("b", 0);
    let lines = explain(&mut harness, B);
    assert!(lines[1].starts_with("  waiting until a has stopped again; a: stopped by hand"), "{lines:?}");
}

#[test]
fn x9_failed_checks_are_named_as_what_ended_the_previous_run() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 'unlimited', health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } }",
    );
    harness.finish_check(true);
    harness.seconds(10);
    harness.finish_check(false);
    harness.exit_on("a", 15);
    harness.seconds(1);
    let lines = explain(&mut harness, A);
    assert!(
        lines.contains(&"  previous run exited on SIGTERM after failed checks 1s ago".to_owned()),
        "{lines:?}"
    );
}
