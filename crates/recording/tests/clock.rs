//! B4: the time of day of each step, also when the system clock was set in the middle.

use std::time::Duration;

use containerpilot_core::plan::Plan;
use containerpilot_core::redaction::Redactor;
use containerpilot_core::{Core, Input, Time};
use containerpilot_recording::{Recording, Replay, StepRecorder};

#[test]
fn b4_a_clock_that_is_set_back_is_that_of_the_steps_that_follow() {
    let clock = |unix| Input::Clock { unix: Duration::from_millis(unix), asleep: Duration::ZERO };
    let steps = [
        (0, Input::Ready, 5_000_000),
        (10, Input::Tick, 5_000_010),
        (20, clock(4_000_000), 4_000_000),
        (25, Input::Tick, 4_000_005),
        (30, clock(9_000_000), 9_000_000),
        (31, Input::Tick, 9_000_001),
    ];
    let mut core = Core::new(Plan::single_program("app".into(), Vec::new()));
    let mut recorder = StepRecorder::new(1 << 20, "1.2.3".to_owned(), Redactor::open());
    for (millis, input, unix) in &steps {
        let now = Time::from_nanos(millis * 1_000_000);
        recorder.before_step(&core, now, || *unix, input).unwrap();
        let mut effects = Vec::new();
        core.step(now, input.clone(), &mut effects);
        recorder.after_step(&effects);
    }
    let bytes = recorder.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    let mut replay = Replay::new(&recording);
    for (_, _, unix) in &steps {
        assert_eq!(replay.next(Core::step).unwrap().unwrap().unix, *unix);
    }
}
