//! T2: sensors.

use std::time::Duration;

use containerpilot_core::ids::RunId;
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::Level;
use containerpilot_core::{Core, Input, Request, RequestId};

use crate::harness::{Harness, plan};

fn text(job: &str, metric: &str) -> String {
    format!(
        "{{ jobs: [{job}], telemetry: {{ port: 0, interfaces: 'eth0', metrics: [
             {{ name: 'load', type: 'gauge', {metric} }}] }} }}"
    )
}

const APP: &str = "{ name: 'app', exec: 'x' }";
const METRIC: &str = "exec: 'uptime', interval: 10, timeout: '3s'";

/// With the default log level.
fn quiet() -> Harness {
    let mut harness = Harness::new(plan(&text(APP, METRIC)));
    let mut plan = harness.core.plan().clone();
    plan.logging.level = Level::Info;
    harness.core = Core::new(plan);
    harness
}

fn running() -> Harness {
    let mut harness = quiet();
    harness.input(Input::Ready);
    harness
}

fn log(harness: &mut Harness) -> Vec<String> {
    std::mem::take(&mut harness.log)
}

#[test]
fn t2_a_sensor_runs_at_startup_and_every_interval_without_log_entries() {
    let mut harness = running();
    let spawned = |harness: &mut Harness| harness.take_effects().contains(&"spawn sensor.load".to_owned());
    assert!(spawned(&mut harness));
    log(&mut harness);
    for _ in 0..5 {
        harness.exit("sensor.load", 0);
        harness.pass(Duration::from_millis(9_999));
        assert!(!spawned(&mut harness));
        harness.millis(1);
        assert!(spawned(&mut harness));
    }
    assert_eq!(log(&mut harness), [] as [&str; 0]);
}

#[test]
fn t2_a_repeated_failure_is_logged_once() {
    let mut harness = running();
    log(&mut harness);
    let mut again = |fail: &dyn Fn(&mut Harness)| {
        fail(&mut harness);
        harness.seconds(10);
        log(&mut harness)
    };
    let fails = |code| move |harness: &mut Harness| harness.exit("sensor.load", code);
    assert_eq!(again(&fails(1)).len(), 1);
    assert!(again(&fails(1)).is_empty());
    assert_eq!(again(&fails(2)).len(), 1);
    assert!(again(&fails(0)).is_empty());
    assert_eq!(again(&fails(2)).len(), 1, "a success in between resets it");
}

#[test]
fn t2_a_missing_program_is_logged_once() {
    let mut harness = quiet();
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.input(Input::Started { run: RunId(2), pid: 7 });
    for tick in 0..3 {
        log(&mut harness);
        harness.fail_start("sensor.load", StartErrorKind::NotFound);
        assert_eq!(log(&mut harness).len(), usize::from(tick == 0));
        harness.seconds(10);
    }
    assert_eq!(harness.exit, None);
}

#[test]
fn p5_a_sensor_that_times_out_is_killed_and_logged_once() {
    let mut harness = running();
    for tick in 0..3 {
        harness.take_output();
        log(&mut harness);
        harness.millis(2_999);
        assert_eq!(harness.take_effects(), [] as [&str; 0]);
        harness.millis(1);
        assert_eq!(harness.take_effects(), ["kill sensor.load 9"]);
        harness.exit_on("sensor.load", 9);
        let logged = log(&mut harness);
        let warned = logged.iter().any(|line| line.contains("timeout after 3s"));
        assert_eq!((warned, logged.is_empty()), (tick == 0, tick > 0), "{logged:?}");
        harness.seconds(7);
    }
}

#[test]
fn w10_s5_a_sensor_neither_keeps_the_supervisor_running_nor_sets_its_exit_code() {
    let mut harness = running();
    harness.exit("sensor.load", 7);
    harness.seconds(10);
    harness.take_output();
    harness.exit("app", 0);
    assert!(
        harness.take_effects().contains(&"kill sensor.load 15".to_owned()),
        "the stop signal comes first"
    );
    harness.exit("sensor.load", 7);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s4_a_sensor_that_does_not_exit_is_killed_when_the_stop_timeout_passes() {
    let mut harness = Harness::new(plan(&text(APP, "exec: 'uptime', interval: 60")));
    harness.input(Input::Ready);
    harness.signal(15);
    harness.exit_on("app", 15);
    harness.take_output();
    harness.seconds(5);
    assert!(harness.take_effects().contains(&"kill sensor.load 9".to_owned()));
    harness.exit_on("sensor.load", 9);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn d3_a_sensor_is_not_registered() {
    let mut harness = running();
    harness.exit("sensor.load", 0);
    assert!(!harness.take_output().iter().any(|line| line.starts_with("advertise sensor")));
}

#[test]
fn r3_a_reload_may_change_a_sensor_and_nothing_else() {
    let mut harness = running();
    harness.take_output();
    let other = plan(&text(APP, "exec: 'uptime -p', interval: 10, timeout: '3s'"));
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    assert_eq!(harness.take_effects(), ["kill sensor.load 15"]);
    harness.exit_on("sensor.load", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn sensor.load"]);
    let none = plan(&text(APP, "help: 'now sent by a job'"));
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(none)) });
    assert_eq!(harness.take_effects(), ["kill sensor.load 15"]);
    harness.exit_on("sensor.load", 15);
    assert_eq!(harness.take_effects(), ["plan replaced"]);
}
