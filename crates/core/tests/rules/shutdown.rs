//! S4, S15: one budget for the whole shutdown, in which hooks have a time of their own.

use std::time::Duration;

use containerpilot_core::effect::ExitDeadlines;
use containerpilot_core::plan::Level;
use containerpilot_core::{Input, Phase, Time};

use crate::harness::{Harness, plan};

/// Jobs with a stop timeout of 4 s, after startup.
fn running(jobs: &str) -> Harness {
    let mut harness = Harness::new(plan(&format!("{{ stopTimeout: 4, jobs: [{jobs}] }}")));
    harness.input(Input::Ready);
    harness.take_output();
    harness
}

const NONE: [&str; 0] = [];
const DB: &str = "{ name: 'db', exec: 'x' }";
const HOOK: &str = "{ name: 'hook', exec: 'x', timeout: '4s', when: { source: 'db', once: 'stopping' } }";
/// It has five minutes.
const UNLIMITED: &str = "{ name: 'hook', exec: 'x', when: { source: 'db', once: 'stopping' } }";
const SERVICE: &str = "name: 'web', exec: 'x', port: 80, initial_status: 'passing', health: { exec: 'c', interval: 60, ttl: 90 }";

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn s4_s15_slow_hook_does_not_cost_the_process_its_stop_signal() {
    for (hook, time) in [(HOOK, 4_000), (UNLIMITED, 300_000)] {
        let mut harness = running(&format!("{DB}, {hook}"));
        harness.signal(15);
        assert_eq!(harness.take_effects(), ["spawn hook"]);
        harness.millis(time - 1);
        assert_eq!(harness.take_effects(), NONE);
        harness.millis(1);
        assert_eq!(harness.take_effects(), ["kill hook 9"]);
        assert_eq!(harness.log.iter().filter(|entry| entry.starts_with("hook timeout after ")).count(), 1);
        harness.exit_on("hook", 9);
        assert_eq!(harness.take_effects(), ["kill db 15"]);
        harness.millis(3_999);
        assert_eq!(harness.take_effects(), NONE, "the process has the stop timeout, too");
        harness.millis(1);
        assert_eq!(harness.take_effects(), ["kill db 9"]);
        harness.exit_on("db", 9);
        assert_eq!(harness.exit, Some(0));
    }
}

#[test]
fn s4_every_process_has_the_stop_timeout_from_its_stop_signal() {
    let mut harness = running(&format!("{DB}, {HOOK}, {{ name: 'other', exec: 'x' }}"));
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill other 15", "spawn hook"]);
    harness.seconds(1);
    harness.exit("hook", 0);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill other 9"]);
    harness.exit_on("other", 9);
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill db 9"]);
}

#[test]
fn s15_job_has_its_own_time_while_another_waits_for_its_hook() {
    let mut harness = running(&format!("{{ name: 'other', exec: 'x' }}, {DB}, {UNLIMITED}"));
    harness.signal(15);
    harness.take_output();
    harness.seconds(4);
    assert_eq!(harness.take_effects(), ["kill other 9"]);
    harness.exit_on("other", 9);
    harness.seconds(60);
    harness.exit("hook", 0);
    assert_eq!(harness.take_effects(), ["kill db 15"], "it is asked to stop, too");
}

#[test]
fn s15_hook_after_the_stop_runs_although_the_stop_was_slow() {
    let late = "{ name: 'late', exec: 'x', timeout: '2s', when: { source: 'db', once: 'stopped' } }";
    let mut harness = running(&format!("{DB}, {HOOK}, {late}"));
    harness.signal(15);
    harness.seconds(3);
    harness.exit("hook", 0);
    harness.take_output();
    harness.seconds(4);
    assert_eq!(harness.take_effects(), ["kill db 9"]);
    harness.exit_on("db", 9);
    assert_eq!(harness.take_effects(), ["spawn late"], "also of one that had to be killed");
    harness.millis(1_999);
    assert_eq!(harness.take_effects(), NONE, "its time counts from its own start");
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill late 9"]);
    harness.exit_on("late", 9);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s15_hook_that_is_not_run_is_a_warning() {
    let late = "{ name: 'late', exec: 'x', when: { source: 'db', once: 'stopped' } }";
    let mut harness = running(&format!("{DB}, {HOOK}, {late}"));
    harness.signal(15);
    harness.seconds(1);
    harness.signal(15);
    assert_eq!(harness.level_of("not run: everything is killed"), Some(Level::Warn));
    assert_eq!(harness.job_of("not run: everything is killed").as_deref(), Some("late"));
}

#[test]
fn s15_a_hook_after_the_stop_is_killed_too() {
    for event in ["source: 'db', once: 'stopped'", "once: 'shutdown'"] {
        let hook = format!("{{ name: 'hook', exec: 'x', when: {{ {event} }} }}");
        let mut harness = running(&format!("{DB}, {hook}"));
        harness.signal(15);
        harness.exit("db", 0);
        harness.take_output();
        harness.seconds(299);
        assert_eq!(harness.take_effects(), NONE);
        harness.seconds(1);
        assert_eq!(harness.take_effects(), ["kill hook 9"]);
        harness.exit_on("hook", 9);
        assert_eq!(harness.exit, Some(0));
    }
}

#[test]
fn s2_s15_the_stop_timeout_of_a_job_bounds_its_wait_and_not_its_hook() {
    let mut harness = running(&format!("{{ name: 'db', exec: 'x', stopTimeout: '2s' }}, {UNLIMITED}"));
    harness.signal(15);
    harness.take_output();
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    assert!(harness.log.contains(&"stop hooks not complete after 2s, stopping anyway".into()));
    harness.exit("db", 0);
    harness.take_output();
    harness.seconds(200);
    assert_eq!((harness.take_effects(), harness.exit), (vec![], None), "the hook has its own time");
    harness.exit("hook", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s4_a_drain_without_hooks_ends_early_enough_for_the_stop_signal() {
    let mut harness = running("{ name: 'db', exec: 'x', drain: '1h' }");
    harness.signal(15);
    harness.millis(2_999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    harness.millis(999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill db 9"]);
}

#[test]
fn s4_a_drain_that_fits_is_not_shortened() {
    let mut harness = running("{ name: 'db', exec: 'x', drain: '2999ms' }");
    harness.signal(15);
    harness.millis(2_998);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    assert_eq!(harness.core.phase(), Phase::Stopping);
}

#[test]
fn s4_a_drain_with_hooks_ends_with_the_budget() {
    let mut harness = running(&format!("{{ name: 'db', exec: 'x', drain: '1h' }}, {HOOK}"));
    harness.signal(15);
    harness.exit("hook", 0);
    harness.take_output();
    harness.millis(7_999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    harness.seconds(4);
    assert_eq!(harness.take_effects(), ["kill db 9"]);
}

#[test]
fn s4_a_process_that_cannot_be_killed_does_not_block_the_exit() {
    let mut harness = running(DB);
    harness.signal(15);
    harness.millis(4_399);
    assert_eq!(harness.exit, None);
    harness.millis(1);
    assert_eq!(harness.exit, Some(0));
    let mut harness = running(&format!("{DB}, {HOOK}"));
    harness.signal(15);
    harness.millis(11_999);
    assert_eq!(harness.exit, None);
    harness.millis(401);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s4_a_silent_catalog_does_not_extend_the_budget() {
    let mut harness = running(&format!("{{ {SERVICE} }}"));
    harness.catalog_confirms = false;
    harness.signal(15);
    harness.seconds(1);
    assert!(harness.take_effects().contains(&"kill web 15".into()));
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill web 9"]);
    harness.millis(400);
    let bounds = harness.exit_deadlines.unwrap();
    let expected = ExitDeadlines {
        descendants: millis(4_450),
        deregister: millis(4_500),
        log: millis(4_700),
        export: millis(4_750),
        connections: millis(4_750),
    };
    assert_eq!(bounds, expected);
}

#[test]
fn s4_s6_catalog_and_log_have_the_rest_of_the_budget() {
    let mut harness = running(DB);
    harness.signal(15);
    harness.exit("db", 0);
    let expected = ExitDeadlines {
        descendants: millis(1_000),
        deregister: millis(1_000),
        log: millis(4_700),
        // T6: a collector that does not answer delays a fast shutdown by a second only.
        export: millis(1_000),
        connections: millis(4_750),
    };
    assert_eq!(harness.exit_deadlines, Some(expected));
    let mut harness = running(&format!("{DB}, {HOOK}"));
    harness.signal(15);
    harness.exit("hook", 0);
    harness.exit("db", 0);
    assert_eq!(harness.exit_deadlines.unwrap().log, millis(8_700), "without the time of the hook");
}

#[test]
fn s4_s6_a_late_supervisor_still_has_time_for_the_log() {
    let mut harness = running(DB);
    harness.signal(15);
    harness.seconds(3);
    harness.now = millis(60_000);
    harness.input(Input::Tick);
    assert_eq!(harness.take_effects(), ["kill db 15", "kill db 9"]);
    harness.now = millis(120_000);
    harness.input(Input::Tick);
    assert_eq!(harness.exit, Some(0));
    assert_eq!(harness.exit_deadlines.unwrap().log, millis(120_200));
}

#[test]
fn s4_a_suspended_supervisor_gives_a_process_time_after_its_stop_signal() {
    let mut harness = running(&format!("{DB}, {HOOK}"));
    harness.signal(15);
    harness.take_output();
    harness.now = millis(60_000);
    harness.input(Input::Tick);
    assert_eq!(harness.take_effects(), ["kill hook 9", "kill db 15"]);
    harness.millis(999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill db 9", "kill hook 9"]);
}

#[test]
fn s1_s4_a_second_signal_ends_the_budget() {
    let mut harness = running(&format!("{DB}, {HOOK}"));
    harness.signal(15);
    harness.seconds(1);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill db 9", "kill hook 9"]);
    harness.millis(400);
    assert_eq!(harness.exit, Some(0));
    assert_eq!(harness.exit_deadlines.unwrap().log, millis(1_700));
}

#[test]
fn s1_s4_a_second_signal_kills_after_the_hooks_too() {
    let mut harness = running(&format!("{DB}, {HOOK}"));
    harness.signal(15);
    harness.seconds(5);
    harness.exit_on("hook", 9);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill db 9"]);
}

#[test]
fn s2_s4_a_stop_by_hand_keeps_its_own_time() {
    let mut harness = running(&format!("{DB}, {{ name: 'other', exec: 'x' }}, {HOOK}"));
    harness.request(containerpilot_core::Request::Stop(containerpilot_core::ids::JobIx(1)));
    assert_eq!(harness.take_effects(), ["kill other 15"]);
    harness.seconds(1);
    harness.signal(15);
    harness.take_output();
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill other 9"], "4 s after its own stop signal");
}

#[test]
fn s4_a_stop_timeout_of_zero_asks_and_kills_at_once() {
    let mut plan = plan(&format!("{{ jobs: [{DB}] }}"));
    plan.stop_timeout = Duration::ZERO;
    let mut harness = Harness::new(plan);
    harness.input(Input::Ready);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill db 15", "kill db 9"]);
}
