//! S11: drain programs, in virtual time.

use containerpilot_core::Input;
use containerpilot_core::plan::{Level, Status};

use crate::harness::Harness;

const WEB: &str = "{ name: 'web', exec: 'x', port: 80, drain: { exec: 'drain', timeout: '2s' }, \
     health: { interval: 10, ttl: 30 } }, { name: 'other', exec: 'x' }";
const NONE: [&str; 0] = [];

/// The job `web` is being drained.
fn draining() -> Harness {
    let mut harness = Harness::running(WEB);
    assert_eq!(
        harness.status("web").desired,
        containerpilot_core::effect::DesiredService::Present(Status::Passing)
    );
    harness.catalog_confirms = false;
    harness.take_output();
    harness.signal(15);
    assert!(!harness.take_effects().contains(&"drain web".to_owned()), "not before the deregistration");
    let web = harness.core.job_named("web").unwrap();
    harness.input(Input::Deregistered { job: web });
    assert_eq!(harness.take_effects(), ["drain web"]);
    harness
}

#[test]
fn s11_the_stop_signal_follows_the_exit_of_the_drain_program() {
    let mut harness = draining();
    harness.millis(500);
    assert_eq!(harness.take_effects(), NONE);
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), ["kill web 15"]);
    assert!(harness.log.iter().any(|line| line == "running its drain program, for at most 2s"));
    harness.exit("web", 0);
    assert_eq!(harness.status("web").word(), "stopped");
}

#[test]
fn s11_a_drain_program_that_fails_or_is_missing_does_not_hold_up_the_stop() {
    let mut harness = draining();
    harness.finish_check(false);
    assert_eq!(harness.take_effects(), ["kill web 15"]);
    assert_eq!(harness.level_of("drain program failed: "), Some(Level::Warn));
}

#[test]
fn s11_a_drain_program_that_hangs_is_killed_after_its_timeout() {
    let mut harness = draining();
    harness.millis(1_999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel check", "kill web 15"]);
    assert_eq!(harness.level_of("drain program timeout after 2s, stopping"), Some(Level::Warn));
    // Its exit comes too late to matter.
    harness.finish_check(false);
    assert_eq!(harness.take_effects(), NONE);
}

#[test]
fn s11_a_shutdown_bounds_a_drain_program_without_a_timeout() {
    let mut harness = Harness::running("{ name: 'db', exec: 'x', drain: { exec: 'drain' } }");
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["drain db"]);
    // S4: three quarters of the stop timeout of 5 s.
    harness.millis(3_749);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel check", "kill db 15"]);
    assert_eq!(harness.level_of("not waiting any longer for its drain program, stopping"), Some(Level::Warn));
}

#[test]
fn s11_a_stop_by_hand_waits_for_the_program_up_to_the_stop_timeout() {
    let mut harness =
        Harness::running("{ name: 'db', exec: 'x', drain: { exec: 'drain' } }, { name: 'b', exec: 'x' }");
    harness.take_output();
    let db = harness.core.job_named("db").unwrap();
    harness.request(containerpilot_core::request::Request::Stop(db));
    assert_eq!(harness.take_effects(), ["drain db"]);
    harness.millis(4_999);
    assert_eq!(harness.take_effects(), NONE);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel check", "kill db 15"]);
}

#[test]
fn s11_a_process_that_exits_needs_no_drain_program_any_more() {
    let mut harness = draining();
    harness.exit("web", 0);
    assert_eq!(harness.take_effects(), ["cancel check"]);
    assert_eq!(harness.status("web").word(), "stopped");
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), NONE);
}

#[test]
fn s11_a_second_stop_signal_kills_the_drain_program() {
    let mut harness = draining();
    harness.millis(200);
    harness.signal(15);
    let effects = harness.take_effects();
    assert!(
        effects.contains(&"cancel check".to_owned()) && effects.contains(&"kill web 9".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn s11_explain_says_that_the_program_runs() {
    let mut harness = draining();
    let web = harness.core.job_named("web").unwrap();
    let now = |harness: &Harness| harness.core.explain(web, None).summary;
    let text = now(&harness);
    assert!(text.contains("running its drain program"), "{text}");
    harness.finish_check(true);
    assert!(!now(&harness).contains("drain program"));
}
