//! W19, W21: actions of the supervisor and queues of events in a simulation.

use super::support::{run, times};

/// A server, and a job with this action at SIGHUP.
fn act(action: &str) -> containerpilot_simulation::timeline::SimulationRun {
    let config = format!(
        "{{ jobs: [{{ name: 'web', exec: 'web', restarts: 'unlimited' }}, \
         {{ name: 'act', do: {action}, when: {{ source: 'SIGHUP' }} }}, \
         {{ name: 'after', exec: 'after', when: {{ source: 'act', each: 'exitSuccess' }} }}] }}"
    );
    run(&config, "{ happens: [{ at: 3, signal: 'HUP' }] }")
}

#[test]
fn w19_an_action_signals_a_program() {
    let run = act("{ signal: 'USR1', to: 'web' }");
    assert_eq!(times(&run, "web gets SIGUSR1"), [3_000]);
    assert_eq!(times(&run, "act exitSuccess"), [3_000]);
    assert_eq!(times(&run, "act starts"), [0; 0], "it has no process");
    assert_eq!(times(&run, "after starts"), [3_000]);
}

#[test]
fn w19_an_action_restarts_a_program() {
    let run = act("{ restart: 'web' }");
    assert_eq!(times(&run, "web gets SIGTERM").first(), Some(&3_000));
    assert_eq!(times(&run, "web starts").len(), 2);
}

#[test]
fn w19_an_action_sets_a_variable_and_another_reloads() {
    let run = act("{ setEnv: { LEVEL: 'debug', OLD: null } }");
    assert_eq!(times(&run, "after starts"), [3_000]);
    let run = act("{ reload: true }");
    assert_eq!(times(&run, "reloaded"), [3_000]);
    assert_eq!(times(&run, "web starts"), [0], "nothing has changed");
}

#[test]
fn w19_an_action_shuts_down_with_a_code() {
    let run = act("{ shutdown: 42 }");
    assert_eq!(times(&run, "web gets SIGTERM"), [3_000]);
    assert_eq!(run.exit.map(|exit| exit.1), Some(42));
}

#[test]
fn w21_a_queue_runs_the_job_for_every_event() {
    let config = |queue: &str| {
        format!(
            "{{ jobs: [{{ name: 'web', exec: 'web', restarts: 'unlimited' }}, \
             {{ name: 'job', exec: 'job', when: {{ source: 'SIGHUP'{queue} }} }}] }}"
        )
    };
    let world = "{ jobs: [{ name: 'job', runs: { lasts: 2 } }], happens: [{ at: 1, signal: 'HUP' }, \
                 { at: '1.1s', signal: 'HUP' }, { at: '1.2s', signal: 'HUP' }, { at: '1.3s', signal: 'HUP' }] }";
    assert_eq!(times(&run(&config(", queue: 'all'"), world), "job starts"), [1_000, 3_000, 5_000, 7_000]);
    assert_eq!(times(&run(&config(""), world), "job starts"), [1_000, 3_000]);
}
