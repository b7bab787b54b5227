use std::process::Command as Tool;
use std::thread;

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::effect::Exit;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::plan::Signal;
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_load::host;
use containerpilot_process::{proc, signals};
use containerpilot_test_support::isolated;

use super::*;

/// A decider made of a function.
struct Script<F>(Plan, F);

impl<F: FnMut(Input, &mut Vec<Effect>)> Decider for Script<F> {
    fn plan(&self) -> std::sync::Arc<Plan> {
        std::sync::Arc::new(self.0.clone())
    }

    fn step(&mut self, _: Time, input: Input, effects: &mut Vec<Effect>) {
        (self.1)(input, effects);
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

fn plan(text: &str) -> Plan {
    let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
    load(vec![input], &StaticHost::default(), Options { version: "0" }).plan.unwrap()
}

fn run(text: &str, script: impl FnMut(Input, &mut Vec<Effect>)) -> u8 {
    signals::block().unwrap();
    let runtime = Runtime::new(Script(plan(text), script), host::supervisor_environment(), None).unwrap();
    runtime.run()
}

fn signal_self(name: &str) {
    let me = std::process::id().to_string();
    assert!(Tool::new("kill").args([name, &me]).status().unwrap().success());
}

/// Waits until this many children are zombies.
fn await_zombies(count: usize) {
    let is_zombie = |pid: &i32| proc::Stat::read(*pid).is_some_and(|stat| stat.state == b'Z');
    while proc::all_children().unwrap_or_default().iter().filter(|pid| is_zombie(pid)).count() < count {
        thread::yield_now();
    }
}

fn exit(code: u8) -> Effect {
    Effect::Exit(Exit::at_once(code, &plan("{}"), Time::ZERO))
}

fn spawn(run: u64) -> Effect {
    Effect::Spawn { job: JobIx(0), run: RunId(run), environment: ProcessEnvironment::default() }
}

/// What an input reports about a run.
fn start_or_exit(input: &Input) -> Option<(&'static str, u64)> {
    match input {
        Input::Started { run, .. } => Some(("started", run.0)),
        Input::Exited { run, .. } => Some(("exited", run.0)),
        _ => None,
    }
}

isolated! {
    fn s1_signal_before_the_loop_is_not_lost() {
        signals::block().unwrap();
        signal_self("-HUP");
        let code = run("{ jobs: [{ name: 'a', exec: 'true' }] }", |input, effects| {
            if input == Input::Signal(Signal(1)) {
                effects.push(exit(5));
            }
        });
        assert_eq!(code, 5);
    }

    fn e3_start_of_a_run_is_reported_before_its_exit() {
        let mut seen = Vec::new();
        let code = run("{ jobs: [{ name: 'a', exec: 'true' }] }", |input, effects| {
            match &input {
                Input::Ready => effects.extend([spawn(1), spawn(2)]),
                Input::Exited { .. } if seen.len() == 4 => effects.push(exit(0)),
                _ => {}
            }
            seen.push(match input {
                Input::Started { run, .. } => ("started", run.0),
                Input::Exited { run, .. } => ("exited", run.0),
                _ => ("other", 0),
            });
        });
        assert_eq!(code, 0);
        for run in [1, 2] {
            let place = |what| seen.iter().position(|one| *one == (what, run));
            assert!(place("started").is_some() && place("started") < place("exited"), "{seen:?}");
        }
    }

    fn e3_start_is_reported_before_the_exit_in_the_same_iteration() {
        let mut seen = Vec::new();
        let code = run("{ jobs: [{ name: 'a', exec: 'true' }] }", |input, effects| {
            match &input {
                // All are pending before the next iteration.
                Input::Ready => ["-HUP", "-USR2", "-CHLD"].into_iter().for_each(signal_self),
                Input::Signal(Signal(1)) => effects.push(spawn(2)),
                // In the same iteration, before children are collected.
                Input::Signal(_) => await_zombies(1),
                Input::Exited { run: RunId(2), .. } => effects.push(exit(0)),
                _ => {}
            }
            seen.extend(start_or_exit(&input));
        });
        assert_eq!(code, 0);
        let place = |what| seen.iter().position(|one| *one == what);
        assert!(place(("started", 2)) < place(("exited", 2)) && place(("started", 2)).is_some(), "{seen:?}");
    }

    fn e3_start_that_another_exit_finds_is_reported_before_its_exit() {
        let (mut seen, mut exits) = (Vec::new(), 0);
        let code = run("{ jobs: [{ name: 'a', exec: 'true' }] }", |input, effects| {
            match &input {
                Input::Ready => ["-HUP", "-USR2", "-CHLD"].into_iter().for_each(signal_self),
                Input::Signal(Signal(1)) => effects.extend([spawn(1), spawn(2)]),
                // Both exits are collected in one iteration.
                Input::Signal(_) => await_zombies(2),
                Input::Exited { run: RunId(run), .. } => {
                    exits += 1;
                    // The time of the other start is over meanwhile.
                    effects.push(if exits == 2 { exit(0) } else { Effect::InspectStart { run: RunId(3 - run) } });
                }
                _ => {}
            }
            seen.extend(start_or_exit(&input));
        });
        assert_eq!(code, 0);
        for run in [1, 2] {
            let place = |what| seen.iter().position(|one| *one == (what, run));
            assert!(place("started").is_some() && place("started") < place("exited"), "{seen:?}");
        }
    }

    fn e7_job_that_keeps_failing_to_start_does_not_block_signals() {
        let mut failures = 0_u64;
        let code = run("{ jobs: [{ name: 'a', exec: '/no/such' }] }", |input, effects| match input {
            Input::Ready => effects.push(spawn(0)),
            Input::StartFailed { .. } => {
                failures += 1;
                if failures == 100 {
                    thread::spawn(|| signal_self("-TERM"));
                }
                effects.push(spawn(failures));
            }
            Input::Signal(Signal::TERM) => effects.push(exit(9)),
            _ => {}
        });
        assert_eq!(code, 9);
    }

    fn p1_panic_is_survived_and_the_event_is_passed_again() {
        let mut inputs = Vec::new();
        let code = run("{ jobs: [{ name: 'a', exec: 'true' }] }", |input, effects| {
            inputs.push(input.clone());
            match input {
                Input::Ready if inputs.len() == 1 => {
                    // Effects decided before the panic are carried out.
                    effects.push(spawn(1));
                    panic!("on purpose");
                }
                Input::Exited { .. } => effects.push(exit(3)),
                _ => {}
            }
        });
        assert_eq!(code, 3);
        assert_eq!(inputs[..2], [Input::Ready, Input::Ready]);
        assert!(matches!(inputs[2..], [Input::Started { .. }, Input::Exited { .. }]), "{inputs:?}");
    }

    fn e7_internal_error_during_shutdown_kills_all_jobs() {
        let code = run("{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }", |input, effects| match input {
            Input::Ready => effects.push(spawn(1)),
            Input::Started { .. } => signal_self("-TERM"),
            Input::Signal(_) => panic!("on purpose"),
            _ => {}
        });
        assert_eq!(code, decide::INTERNAL_ERROR_CODE);
    }
}

#[test]
fn w15_the_timer_of_the_clock_is_open_only_for_a_plan_with_cron() {
    let plan = |when: &str| plan(&format!("{{ jobs: [{{ name: 'a', exec: 'x', when: {{ {when} }} }}] }}"));
    let mut clock = SystemClock::default();
    clock.follow(&plan("interval: 1")).unwrap();
    assert_eq!((clock.poll_fd(), clock.change()), (-1, None));
    clock.follow(&plan("cron: '@daily'")).unwrap();
    assert!(clock.poll_fd() > 2);
    assert_eq!(clock.change(), None, "the clock was not set");
    clock.follow(&plan("interval: 1")).unwrap();
    assert_eq!(clock.poll_fd(), -1);
}
