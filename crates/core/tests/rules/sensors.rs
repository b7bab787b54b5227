//! T2: programs that measure a metric, as far as the core decides about them.

use std::time::Duration;

use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::Level;
use containerpilot_core::{Core, Input, Request, RequestId};

use crate::stage::{Stage, plan};

fn text(job: &str, metric: &str) -> String {
    format!(
        "{{ jobs: [{job}], telemetry: {{ port: 0, interfaces: 'eth0', metrics: [
             {{ name: 'load', type: 'gauge', {metric} }}] }} }}"
    )
}

const APP: &str = "{ name: 'app', exec: 'x' }";
const METRIC: &str = "exec: 'uptime', interval: 10, timeout: '3s'";

/// One whose log says what somebody reads who has not asked for details.
fn quiet() -> Stage {
    let mut stage = Stage::new(plan(&text(APP, METRIC)));
    let mut plan = stage.core.plan().clone();
    plan.logging.level = Level::Info;
    stage.core = Core::new(plan);
    stage
}

fn running() -> Stage {
    let mut stage = quiet();
    stage.input(Input::Ready);
    stage
}

fn log(stage: &mut Stage) -> Vec<String> {
    std::mem::take(&mut stage.log)
}

#[test]
fn t2_a_sensor_runs_at_startup_and_then_at_every_interval_and_nobody_reads_of_it() {
    let mut stage = running();
    let spawned = |stage: &mut Stage| stage.acts().contains(&"spawn sensor.load".to_owned());
    assert!(spawned(&mut stage));
    log(&mut stage);
    for _ in 0..5 {
        stage.exit("sensor.load", 0);
        stage.pass(Duration::from_millis(9_999));
        assert!(!spawned(&mut stage));
        stage.millis(1);
        assert!(spawned(&mut stage));
    }
    assert_eq!(log(&mut stage), [] as [&str; 0]);
}

#[test]
fn t2_a_failure_is_told_once_until_it_is_another() {
    let mut stage = running();
    log(&mut stage);
    let mut again = |fail: &dyn Fn(&mut Stage)| {
        fail(&mut stage);
        stage.seconds(10);
        log(&mut stage)
    };
    let fails = |code| move |stage: &mut Stage| stage.exit("sensor.load", code);
    assert_eq!(again(&fails(1)).len(), 1);
    assert!(again(&fails(1)).is_empty());
    assert_eq!(again(&fails(2)).len(), 1);
    assert!(again(&fails(0)).is_empty());
    assert_eq!(again(&fails(2)).len(), 1, "it was well in between");
}

#[test]
fn t2_a_program_that_is_not_there_is_told_once() {
    let mut stage = quiet();
    stage.willing = false;
    stage.input(Input::Ready);
    for turn in 0..3 {
        log(&mut stage);
        stage.fails_to_start("sensor.load", StartErrorKind::NotFound);
        assert_eq!(log(&mut stage).len(), usize::from(turn == 0));
        stage.seconds(10);
    }
    assert_eq!(stage.exit, None);
}

#[test]
fn p5_one_that_takes_too_long_is_killed_and_that_is_told_once() {
    let mut stage = running();
    for turn in 0..3 {
        stage.look();
        log(&mut stage);
        stage.millis(2_999);
        assert_eq!(stage.acts(), [] as [&str; 0]);
        stage.millis(1);
        assert_eq!(stage.acts(), ["kill sensor.load 9"]);
        stage.killed("sensor.load", 9);
        let told = log(&mut stage);
        let warned = told.iter().any(|line| line.contains("timeout after 3s"));
        assert_eq!((warned, told.is_empty()), (turn == 0, turn > 0), "{told:?}");
        stage.seconds(7);
    }
}

#[test]
fn w10_s5_a_sensor_neither_holds_the_supervisor_open_nor_speaks_for_it() {
    let mut stage = running();
    stage.exit("sensor.load", 7);
    stage.seconds(10);
    stage.look();
    stage.exit("app", 0);
    assert!(stage.acts().contains(&"kill sensor.load 15".to_owned()), "it is asked to end");
    stage.exit("sensor.load", 7);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s4_one_that_does_not_end_is_killed_with_the_rest() {
    let mut stage = Stage::new(plan(&text(APP, "exec: 'uptime', interval: 60")));
    stage.input(Input::Ready);
    stage.signal(15);
    stage.killed("app", 15);
    stage.look();
    stage.seconds(5);
    assert!(stage.acts().contains(&"kill sensor.load 9".to_owned()));
    stage.killed("sensor.load", 9);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn d3_a_sensor_is_not_in_the_catalog() {
    let mut stage = running();
    stage.exit("sensor.load", 0);
    assert!(!stage.look().iter().any(|line| line.starts_with("advertise sensor")));
}

#[test]
fn r3_a_reload_may_change_a_sensor_and_nothing_else() {
    let mut stage = running();
    stage.look();
    let other = plan(&text(APP, "exec: 'uptime -p', interval: 10, timeout: '3s'"));
    stage.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    assert_eq!(stage.acts(), ["kill sensor.load 15"]);
    stage.killed("sensor.load", 15);
    assert_eq!(stage.acts(), ["replanned", "spawn sensor.load"]);
    let none = plan(&text(APP, "help: 'now sent by a job'"));
    stage.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(none)) });
    assert_eq!(stage.acts(), ["kill sensor.load 15"]);
    stage.killed("sensor.load", 15);
    assert_eq!(stage.acts(), ["replanned"]);
}
