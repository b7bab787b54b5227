//! W13, W14, S8, S9, S11 in a simulation.

use super::support::verdict;

#[test]
fn w13_a_scenario_plays_success_codes_and_restarts_on_failure() {
    let config = "{ jobs: [{ name: 'a', exec: 'a', restarts: 'unlimited', restartOn: 'failure', successCodes: [3] }, \
                  { name: 'b', exec: 'b', restarts: 'unlimited' }] }";
    let world = "jobs: [{ name: 'a', runs: [{ lasts: 1, exit: 0 }, { lasts: 1, exit: 3 }] }],";
    for expectation in [
        "{ see: 'a exitFailed', times: 1 }",
        "{ see: 'a exitSuccess', times: 1 }",
        "{ see: 'a starts', times: 2 }",
        "{ see: 'a stopped', before: '5s' }",
    ] {
        let (holds, happened) = verdict(config, world, expectation);
        assert!(holds, "{expectation}: {happened}");
    }
}

#[test]
fn w14_a_scenario_sees_a_crash_loop() {
    let config = "{ jobs: [{ name: 'a', exec: 'a', restarts: 'unlimited', startLimit: { count: 4, within: '1m' } }, \
                  { name: 'b', exec: 'b', restarts: 'unlimited' }] }";
    let world = "jobs: [{ name: 'a', runs: { lasts: 0, exit: 1 } }],";
    for expectation in ["{ see: 'a starts', times: 4 }", "{ see: 'a crashLoop', before: 'a stopped' }"] {
        let (holds, happened) = verdict(config, world, expectation);
        assert!(holds, "{expectation}: {happened}");
    }
}

#[test]
fn s8_a_simulation_ends_with_a_signal_of_stop_on() {
    let config = "{ stopOn: ['WINCH'], jobs: [{ name: 'a', exec: 'a', restarts: 'unlimited' }, \
                  { name: 'b', exec: 'b', when: { source: 'SIGTERM' } }] }";
    assert!(verdict(config, "happens: [{ at: 3, signal: 'TERM' }],", "{ see: 'b starts', after: '3s' }").0);
    assert!(verdict(config, "", "{ see: 'exit', within: '2s', of: 'shutdown' }").0);
}

#[test]
fn s9_a_scenario_plays_kill_after() {
    let config = "{ stopTimeout: 20, jobs: [{ name: 'a', exec: 'a', stopSignal: ['INT', '2s', 'TERM'], killAfter: '5s' }] }";
    let world = "jobs: [{ name: 'a', runs: { lasts: 'never', stopsIn: 'never' } }], happens: [{ at: 10, signal: 'TERM' }],";
    let (holds, happened) = verdict(config, world, "{ see: 'a killed', after: '14s', before: '16s' }");
    assert!(holds, "{happened}");
}

#[test]
fn s11_a_scenario_plays_drain_programs() {
    let config =
        "{ stopTimeout: 20, jobs: [{ name: 'a', exec: 'a', drain: { exec: 'drain', timeout: '5s' } }] }";
    let world = |run: &str| {
        format!(
            "jobs: [{{ name: 'a', runs: {{ lasts: 'never', {run} }} }}], happens: [{{ at: 10, signal: 'TERM' }}],"
        )
    };
    for (run, expectation) in [
        ("stopsIn: 0", "{ see: 'a stopped', after: '10050ms', before: '10500ms' }"),
        ("drain: '3s', stopsIn: 0", "{ see: 'a stopped', after: '12900ms', before: '13500ms' }"),
        (
            "drain: '3s', drainExit: 1, stopsIn: 0",
            "{ see: 'a stopped', after: '12900ms', before: '13500ms' }",
        ),
        ("drain: 'never', stopsIn: 0", "{ see: 'a stopped', after: '14900ms', before: '15500ms' }"),
    ] {
        let (holds, happened) = verdict(config, &world(run), expectation);
        assert!(holds, "{run}, {expectation}: {happened}");
    }
}
