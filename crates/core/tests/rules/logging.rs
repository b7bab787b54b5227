//! Levels and fields of log entries (L7), and the last one (S12).

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Level, Plan, Signal, Word};
use containerpilot_core::{Input, Request};

use crate::harness::{Harness, plan};

const FAILED: &str = "exited with code 3";

#[test]
fn l7_a_run_that_is_not_repeated_is_an_error_and_one_that_is_restarted_a_warning() {
    for (keys, level) in [
        ("", Level::Error),
        ("restarts: 1", Level::Warn),
        ("restarts: 'unlimited'", Level::Warn),
        ("when: { interval: '5s' }, restarts: 'unlimited'", Level::Warn),
        ("when: { source: 'b', each: 'exitFailed' }", Level::Error),
    ] {
        let mut harness =
            Harness::running(&format!("{{ name: 'a', exec: 'x', {keys} }}, {{ name: 'b', exec: 'y' }}"));
        if keys.contains("each") {
            harness.exit("b", 1);
        }
        harness.exit("a", 3);
        assert_eq!(harness.level_of(FAILED), Some(level), "{keys}");
    }
}

#[test]
fn l7_the_last_restart_that_fails_is_an_error() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1 }");
    harness.exit("a", 3);
    assert_eq!(harness.level_of(FAILED), Some(Level::Warn));
    harness.exit("a", 3);
    assert_eq!(harness.level_of(FAILED), Some(Level::Error));
}

#[test]
fn l7_an_event_that_waits_for_the_end_of_a_run_makes_its_failure_a_warning() {
    let job = "{ name: 'a', exec: 'x', when: { source: 'SIGHUP' } }, { name: 'b', exec: 'y' }";
    let mut harness = Harness::running(job);
    harness.signal(1);
    harness.signal(1);
    harness.exit("a", 3);
    assert_eq!(harness.level_of(FAILED), Some(Level::Warn));
    harness.exit("a", 3);
    assert_eq!(harness.level_of(FAILED), Some(Level::Error));
}

#[test]
fn l7_a_success_and_an_exit_after_the_stop_signal_are_info() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1 }, { name: 'b', exec: 'y' }");
    harness.exit("a", 0);
    assert_eq!(harness.level_of("exited with code 0"), Some(Level::Info));
    harness.request(Request::Stop(JobIx(1)));
    harness.exit_on("b", 15);
    assert_eq!(harness.level_of("exited on SIGTERM"), Some(Level::Info));
}

#[test]
fn l7_the_failure_of_a_program_without_a_file_is_its_exit_code() {
    let mut harness = Harness::new(Plan::single_program(Word::from("x"), Vec::new()));
    harness.input(Input::Ready);
    harness.exit("x", 3);
    assert_eq!(harness.level_of(FAILED), Some(Level::Info));
    assert_eq!(harness.last_entry.unwrap().level, Level::Info);
}

#[test]
fn l7_what_happened_is_in_fields() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1 }");
    let fields = harness.fields_of("started");
    assert_eq!((fields.event.name(), fields.pid), ("started", Some(101)));
    assert_eq!(fields.cause.as_deref(), Some("global startup"));
    harness.seconds(2);
    harness.exit("a", 3);
    let fields = harness.fields_of(FAILED);
    assert_eq!((fields.event.name(), fields.pid), ("exitFailed", Some(101)));
    assert_eq!((fields.code, fields.signal), (Some(3), None));
    assert_eq!(fields.duration, Some(Duration::from_secs(2)));
    harness.exit_on("a", 11);
    let fields = harness.fields_of("exited on SIGSEGV");
    assert_eq!((fields.code, fields.signal), (None, Some(Signal(11))));
    assert_eq!(harness.fields_of("restarting").event.name(), "restarting");
    assert_eq!(harness.fields_of("have ended, shutting").event.name(), "shutdown");
}

#[test]
fn l7_a_run_that_timed_out_says_so() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    harness.seconds(2);
    let fields = harness.fields_of("timeout after 2s");
    assert_eq!((fields.event.name(), fields.duration), ("timeout", Some(Duration::from_secs(2))));
    harness.exit_on("a", 9);
    assert_eq!(harness.fields_of("exited on SIGKILL").cause.as_deref(), Some("timeout"));
}

const CHECKED: &str = "{ name: 'a', exec: 'x', health: { exec: 'c', interval: 10, ttl: 25, failures: 3 } }";

#[test]
fn l7_the_first_failed_check_in_a_row_is_a_warning() {
    let mut harness = Harness::running(CHECKED);
    harness.finish_check(true);
    for level in [Level::Warn, Level::Debug] {
        harness.seconds(10);
        harness.finish_check(false);
        assert_eq!(harness.level_of("check.a failed: it failed"), Some(level));
    }
    let fields = harness.fields_of("check.a failed");
    assert_eq!((fields.event.name(), fields.check.as_deref()), ("checkFailed", Some("check.a")));
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.level_of("unhealthy: check.a"), Some(Level::Warn));
    assert_eq!(harness.level_of("check.a failed"), Some(Level::Debug), "`unhealthy` says it");
    harness.seconds(10);
    harness.finish_check(true);
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.level_of("check.a failed"), Some(Level::Warn), "again the first");
}

#[test]
fn l7_failed_checks_of_a_job_that_is_starting_are_not_warnings() {
    let mut harness = Harness::running(CHECKED);
    harness.finish_check(false);
    assert_eq!(harness.level_of("check.a failed"), Some(Level::Debug));
}

/// The last entry of the log.
fn last(harness: &Harness) -> (Level, String, String) {
    let entry = harness.last_entry.clone().unwrap();
    assert_eq!((entry.fields.event.name(), entry.fields.code), ("exiting", harness.exit));
    (entry.level, entry.message, entry.fields.cause.unwrap_or_default().into())
}

#[test]
fn s12_the_last_entry_is_the_exit_code_and_its_reason() {
    let exits = |text: &str, end: &dyn Fn(&mut Harness)| {
        let mut harness = Harness::new(plan(&format!("{{ jobs: [{text}] }}")));
        harness.input(Input::Ready);
        end(&mut harness);
        let (level, message, cause) = last(&harness);
        format!("{level:?} {message} [{cause}]")
    };
    let one = "{ name: 'a', exec: 'x' }";
    assert_eq!(
        exits(one, &|harness| harness.exit("a", 0)),
        "Info exiting with code 0: all jobs that do work have ended [complete]"
    );
    assert_eq!(
        exits(one, &|harness| harness.exit("a", 41)),
        "Error exiting with code 41: a exited with code 41 [a exitFailed]"
    );
    assert_eq!(
        exits(one, &|harness| harness.exit_on("a", 9)),
        "Error exiting with code 137: a exited on SIGKILL [a exitFailed]"
    );
    let stopped = |harness: &mut Harness| {
        harness.signal(15);
        harness.exit_on("a", 15);
    };
    assert_eq!(exits(one, &stopped), "Info exiting with code 0: received SIGTERM [SIGTERM]");
    let timeout = "{ name: 'a', exec: 'x', timeout: '1s' }";
    let timed_out = |harness: &mut Harness| {
        harness.seconds(1);
        harness.exit_on("a", 9);
    };
    assert_eq!(exits(timeout, &timed_out), "Error exiting with code 137: a timed out [a exitFailed]");
    let decides =
        |key: &str| format!("{{ name: 'a', exec: 'x', {key}: 'shutdown' }}, {{ name: 'b', exec: 'y' }}");
    let ends = |code| {
        move |harness: &mut Harness| {
            harness.exit("a", code);
            harness.exit_on("b", 15);
        }
    };
    assert_eq!(
        exits(&decides("onFailure"), &ends(7)),
        "Error exiting with code 7: a exited with code 7 [a exitFailed]"
    );
    assert_eq!(
        exits(&decides("onSuccess"), &ends(0)),
        "Info exiting with code 0: a completed [a exitSuccess]"
    );
}
