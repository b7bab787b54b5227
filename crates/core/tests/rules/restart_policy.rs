//! W13, W14: after which runs a job is restarted, which of them succeed, and how often it is started.

use containerpilot_core::ids::JobIx;
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::Level;
use containerpilot_core::{Outcome, Request, State};

use super::harness::Harness;

const ENDED: fn(&str, &Harness) -> &'static str = |name, harness| harness.status(name).word();

/// A job with these fields, and one that keeps the supervisor running.
fn job(fields: &str) -> Harness {
    Harness::running(&format!("{{ name: 'a', exec: 'x', {fields} }}, {{ name: 'other', exec: 'x' }}"))
}

#[test]
fn w13_on_failure_a_success_completes_the_job() {
    let mut harness = job("restarts: 'unlimited', restartOn: 'failure'");
    harness.exit("a", 1);
    assert!(harness.has_process("a"));
    assert_eq!(harness.level_of("exited with code 1"), Some(Level::Warn));
    harness.exit("a", 0);
    assert!(!harness.has_process("a"));
    assert_eq!(ENDED("a", &harness), "complete");
}

#[test]
fn w13_on_success_a_failure_is_final() {
    let mut harness = job("restarts: 'unlimited', restartOn: 'success'");
    harness.exit("a", 0);
    assert!(harness.has_process("a"));
    harness.exit("a", 3);
    assert_eq!(ENDED("a", &harness), "failed");
    assert_eq!(harness.level_of("exited with code 3"), Some(Level::Error));
    harness.exit("other", 0);
    assert_eq!(harness.exit, Some(3));
}

#[test]
fn w13_a_failed_start_and_a_timeout_are_failures() {
    let mut harness = job("restarts: 2, restartOn: 'failure', timeout: '5s', successCodes: [0, 'KILL', 127]");
    harness.starts_succeed = false;
    harness.seconds(5);
    harness.take_output();
    harness.exit_on("a", 9);
    assert_eq!(harness.take_events(), ["a exitFailed"]);
    assert!(harness.has_process("a"));
    harness.fail_start("a", StartErrorKind::NotFound);
    assert_eq!(harness.take_events(), ["a exitFailed"]);
    assert_eq!(harness.status("a").state, State::Delaying);
}

#[test]
fn w13_success_codes_decide_events_outcome_and_exit_code() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', successCodes: [0, 3, 'TERM'], onFailure: 'shutdown' }");
    harness.take_output();
    harness.exit("a", 3);
    assert_eq!(harness.take_events()[0], "a exitSuccess");
    assert_eq!((ENDED("a", &harness), harness.exit), ("complete", Some(0)));
    assert_eq!(harness.level_of("exited with code 3"), Some(Level::Info));
    let overview = harness.core.job_overview(JobIx(0));
    assert_eq!((overview.runs.success, overview.runs.failure, overview.failed_runs), (1, 0, 0));
}

#[test]
fn w13_success_codes_replace_code_0() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', successCodes: [2] }");
    harness.take_output();
    harness.exit("a", 0);
    assert_eq!(harness.take_events()[0], "a exitFailed");
    assert_eq!((ENDED("a", &harness), harness.exit), ("failed", Some(1)), "a failure never exits with 0");
}

#[test]
fn w13_a_signal_is_not_the_code_that_a_shell_reports() {
    let events = |codes: &str, on_signal: bool| {
        let mut harness = job(&format!("successCodes: [{codes}]"));
        harness.take_output();
        match on_signal {
            true => harness.exit_on("a", 15),
            false => harness.exit("a", 143),
        }
        harness.take_events().remove(0)
    };
    assert_eq!(events("143", false), "a exitSuccess");
    assert_eq!(events("143", true), "a exitFailed");
    assert_eq!(events("'SIGTERM'", true), "a exitSuccess");
    assert_eq!(events("'SIGTERM'", false), "a exitFailed");
}

#[test]
fn w13_an_unhealthy_run_has_failed_with_any_code() {
    let mut harness = job(
        "restarts: 1, restartOn: 'failure', health: { exec: 'c', interval: 1, ttl: 5, onUnhealthy: 'restart' }",
    );
    harness.finish_check(true);
    harness.seconds(1);
    harness.take_output();
    harness.finish_check(false);
    assert!(harness.take_effects().contains(&"kill a 15".to_owned()));
    harness.exit("a", 0);
    assert!(harness.has_process("a"), "it is restarted, although it exited with code 0");
}

#[test]
fn w13_each_event_runs_a_job_again_after_a_success() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 1, restartOn: 'failure', when: { source: 'SIGUSR2' } }, \
         { name: 'other', exec: 'x' }",
    );
    harness.signal(12);
    harness.exit("a", 0);
    assert_eq!(harness.status("a").state, State::Waiting);
    harness.signal(12);
    harness.exit("a", 1);
    assert!(harness.has_process("a"));
}

#[test]
fn w14_more_starts_than_the_limit_are_a_crash_loop() {
    let mut harness =
        job("restarts: 'unlimited', restartBackoff: false, startLimit: { count: 3, within: '10s' }");
    for _ in 0..2 {
        harness.exit("a", 7);
        assert!(harness.has_process("a"));
    }
    harness.take_output();
    harness.exit("a", 7);
    assert_eq!(
        harness.take_output(),
        ["event a exitFailed", "event a crashLoop", "event a stopping", "event a stopped"]
    );
    assert_eq!(ENDED("a", &harness), "failed");
    assert_eq!(harness.level_of("crash loop: 3 starts within 10s, not starting again"), Some(Level::Error));
    assert_eq!(harness.exit, None, "the other job continues");
    let sentence = &harness.core.explain(JobIx(0), None).sentences()[0];
    assert_eq!(sentence, "a: failed: crash loop (3 starts within 10s), last run exited with code 7 0s ago");
    harness.exit("other", 0);
    assert_eq!(harness.exit, Some(7));
}

#[test]
fn w14_starts_that_are_long_ago_do_not_count() {
    let mut harness =
        job("restarts: 'unlimited', restartBackoff: false, startLimit: { count: 2, within: '10s' }");
    for _ in 0..5 {
        harness.seconds(5);
        harness.exit("a", 1);
        assert!(harness.has_process("a"), "two starts within 10s are allowed");
    }
    harness.seconds(4);
    harness.exit("a", 1);
    assert_eq!(ENDED("a", &harness), "failed");
}

#[test]
fn w14_a_crash_loop_can_shut_down() {
    let run = |code: u8| {
        let mut harness = job(
            "restarts: 'unlimited', startLimit: { count: 1, within: '10s', then: 'shutdown' }, stopSignal: 'INT'",
        );
        harness.exit("a", code);
        assert!(harness.has_process("other"));
        harness.exit_on("other", 15);
        (harness.exit, harness.last_entry.unwrap().message)
    };
    let words = "a is in a crash loop (1 start within 10s)";
    assert_eq!(run(4), (Some(4), format!("exiting with code 4: {words}")));
    // A program that exits at once and successfully is a crash loop, too.
    assert_eq!(run(0), (Some(1), format!("exiting with code 1: {words}")));
}

#[test]
fn w14_on_failure_is_for_a_crash_loop_too() {
    let mut harness =
        job("restarts: 'unlimited', onFailure: 'shutdown', startLimit: { count: 1, within: '10s' }");
    harness.exit("a", 4);
    harness.exit_on("other", 15);
    assert_eq!(harness.exit, Some(4));
}

#[test]
fn w14_a_job_can_wait_for_a_crash_loop() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 'unlimited', startLimit: { count: 1, within: '10s' } }, \
         { name: 'page', exec: 'x', when: { source: 'a', once: 'crashLoop' } }",
    );
    harness.exit("a", 1);
    assert!(harness.has_process("page"));
    harness.exit("page", 0);
    assert_eq!(harness.exit, Some(1));
}

#[test]
fn w14_a_start_by_hand_clears_the_record() {
    let mut harness =
        job("restarts: 'unlimited', restartBackoff: false, startLimit: { count: 2, within: '10s' }");
    harness.exit("a", 1);
    harness.exit("a", 1);
    assert_eq!(ENDED("a", &harness), "failed");
    harness.request(Request::Start(JobIx(0)));
    harness.exit("a", 1);
    assert!(harness.has_process("a"), "it has its starts again");
    harness.exit("a", 1);
    assert_eq!(ENDED("a", &harness), "failed");
}

#[test]
fn w14_events_count_and_a_delayed_start_is_judged_when_it_is_due() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: { source: 'SIGUSR2' }, startLimit: { count: 2, within: '10s' } }, \
         { name: 'other', exec: 'x' }",
    );
    for _ in 0..2 {
        harness.signal(12);
        harness.exit("a", 0);
    }
    harness.signal(12);
    assert_eq!(ENDED("a", &harness), "failed");
    let mut harness = job("restarts: 'unlimited', startLimit: { count: 2, within: '50ms' }");
    harness.exit("a", 1);
    harness.exit("a", 1);
    assert_eq!(harness.status("a").state, State::Delaying);
    harness.millis(100);
    assert!(harness.has_process("a"), "the first starts are longer ago when the delay has passed");
}

#[test]
fn w14_a_hook_runs_at_the_shutdown_beyond_its_limit() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, \
         { name: 'hook', exec: 'x', when: { source: 'a', each: 'stopping' }, startLimit: { count: 1, within: '1h' } }",
    );
    harness.request(Request::Restart(JobIx(0)));
    harness.exit("hook", 0);
    harness.exit_on("a", 15);
    harness.take_output();
    harness.signal(15);
    assert!(harness.take_output().contains(&"spawn hook".to_owned()));
    harness.exit("hook", 0);
    harness.exit_on("a", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w14_a_crash_loop_is_a_failure_for_reports() {
    let mut harness = job("restarts: 'unlimited', startLimit: { count: 1, within: '10s' }");
    harness.exit("a", 0);
    let overview = harness.core.job_overview(JobIx(0));
    assert_eq!(overview.outcome, Some(Outcome::Failed));
    assert_eq!(overview.restarts_total, 0, "the start that was refused is not a restart");
}
