//! What each field of a scenario does.

use containerpilot_simulation::runner::simulate;

use super::support::{CONSUL, WEB, millis, plan, reloading, run, times};

fn web(script: &str) -> containerpilot_simulation::timeline::SimulationRun {
    run(WEB, &format!("{{ jobs: [{{ name: 'web', {script} }}] }}"))
}

#[test]
fn x4_until_is_when_the_supervisor_is_stopped() {
    assert_eq!(times(&run(WEB, "{ until: '10m' }"), "shutdown"), [600_000]);
}

#[test]
fn x4_the_default_end_is_after_the_latest_time_in_the_scenario() {
    let run = run(WEB, "{ happens: [{ at: '2m', maintenance: true }] }");
    assert_eq!(times(&run, "shutdown"), [150_000]);
}

#[test]
fn x4_runs_are_used_in_order_and_the_last_is_repeated() {
    let run = web("runs: [{ lasts: 20 }, { lasts: 2 }, { lasts: 15 }]");
    // After the run of two seconds comes the first delay of W8.
    assert_eq!(times(&run, "web starts"), [1_000, 21_000, 23_100, 38_100, 53_100]);
}

#[test]
fn x4_exit_and_signal_set_how_a_run_exits() {
    let run = web("runs: [{ lasts: 20, exit: 3 }, { lasts: 5, signal: 'SEGV' }, {}]");
    let ends: Vec<String> =
        run.entries.iter().filter(|e| e.name() == "web exitFailed").map(|e| e.note.clone()).collect();
    assert_eq!(ends, ["code 3", "SIGSEGV", "SIGTERM"]);
}

#[test]
fn x4_a_run_with_an_exit_code_does_exit() {
    assert_eq!(times(&web("runs: [{ exit: 1 }, {}]"), "web exitFailed").first(), Some(&2_000));
}

#[test]
fn x4_p3_a_program_that_fails_to_start_is_a_failed_exit_with_a_shells_code() {
    let text = r#"{ jobs: [{ name: "a", exec: "a" }] }"#;
    let kinds = [
        ("notFound", 127),
        ("notExecutable", 126),
        ("noDescriptors", 125),
        ("noResources", 125),
        ("other", 125),
    ];
    for (fails, code) in kinds {
        let run = run(text, &format!("{{ jobs: [{{ name: 'a', runs: {{ fails: '{fails}' }} }}] }}"));
        assert_eq!(run.exit.map(|(_, code)| code), Some(code), "{fails}");
        assert_eq!(times(&run, "a starts"), [0; 0]);
    }
}

#[test]
fn x4_starts_in_delays_the_start() {
    assert_eq!(times(&web("runs: { startsIn: '2s' }"), "web starts"), [3_000]);
}

#[test]
fn p3_x4_a_start_that_never_ends_times_out() {
    let never = web("runs: { startsIn: 'never' }");
    assert_eq!(times(&never, "web starts"), [] as [u64; 0]);
    // Then it is restarted, with its back-off.
    assert_eq!(times(&never, "web exitFailed")[..3], [11_000, 21_000, 31_100]);
}

#[test]
fn x4_stops_in_and_stop_exit_set_how_it_reacts_to_a_stop() {
    let run = web("runs: { stopsIn: '3s', stopExit: 0 }");
    assert_eq!(times(&run, "web exitSuccess"), [64_000]);
}

#[test]
fn x4_s4_a_program_that_ignores_sigterm_is_killed_when_the_stop_timeout_passes() {
    let run = web("runs: { stopsIn: 'never' }");
    // 5 s after its stop signal, which follows the hook of 1 s.
    assert_eq!(times(&run, "web killed"), [66_000]);
    assert_eq!(run.killed.len(), 1);
}

#[test]
fn x4_healthy_after_counts_from_the_start_of_the_run() {
    // Checks come at 0, 100, 300, 700, 1500 and 3100 ms after the start (H3), and take 10 ms each.
    assert_eq!(times(&web("runs: { healthyAfter: '2s' }"), "web healthy"), [1_000 + 3_160]);
    assert_eq!(times(&web("runs: { healthyAfter: 'never' }"), "web healthy"), [0; 0]);
}

#[test]
fn x4_checks_sets_the_results_of_checks_for_a_while() {
    let run = web("checks: { from: '20s', to: '29s' }");
    assert_eq!(times(&run, "web unhealthy"), [21_010, 61_100]);
    assert_eq!(times(&run, "web healthy"), [1_010, 31_010]);
    assert_eq!(times(&run, "web checks fail").len(), 1);
}

#[test]
fn x4_p5_a_check_that_hangs_is_canceled_at_its_timeout() {
    let run = web("checks: { check: 'alive', from: '20s', to: '22s', answer: 'hang' }");
    assert_eq!(times(&run, "web unhealthy").first(), Some(&26_000));
}

#[test]
fn x4_takes_sets_how_long_a_check_takes() {
    assert_eq!(times(&web("checks: { answer: 'pass', takes: '2s' }"), "web healthy"), [3_000]);
}

#[test]
fn x4_the_last_check_result_that_applies_counts() {
    let run = web("checks: [{ answer: 'fail' }, { from: '10s', answer: 'pass' }]");
    assert!(times(&run, "web healthy").first().is_some_and(|at| *at >= 10_000));
}

#[test]
fn x4_e6_sees_sets_what_a_watch_sees() {
    let text = "{ watches: [{ name: 'db', sees: [{ at: 5, instances: 2 }, { at: 8, instances: 2, others: true }, { at: 9, instances: 0 }] }] }";
    let run = run(CONSUL, text);
    assert_eq!(times(&run, "watch.db changed"), [5_000, 8_000, 9_000]);
    assert_eq!(times(&run, "watch.db healthy"), [5_000, 8_000]);
    assert_eq!(times(&run, "watch.db unhealthy"), [9_000]);
}

#[test]
fn x4_signals_reach_the_supervisor_and_a_second_one_kills() {
    let text = "{ jobs: [{ name: 'web', runs: { stopsIn: 'never' } }], happens: [{ at: 20, signal: 'TERM' }, { at: 22, signal: 'INT' }] }";
    let run = run(WEB, text);
    assert_eq!(times(&run, "shutdown"), [20_000]);
    assert_eq!(times(&run, "web killed"), [22_000]);
    assert_eq!(run.exit.map(|(at, _)| millis(at)), Some(22_000));
}

#[test]
fn x4_w3_sighup_starts_the_job_that_waits_for_it() {
    let text =
        r#"{ jobs: [{ name: "a", exec: "a" }, { name: "h", exec: "h", when: { source: "SIGHUP" } }] }"#;
    let run = run(text, "{ happens: [{ at: 3, signal: 'HUP' }] }");
    assert_eq!(times(&run, "h starts"), [3_000]);
}

#[test]
fn x4_r1_sighup_reloads_the_configuration_if_no_job_waits_for_it() {
    let run = run(WEB, "{ happens: [{ at: 3, signal: 'HUP' }] }");
    assert_eq!(times(&run, "reloaded"), [3_000]);
    assert_eq!(times(&run, "web starts"), [1_000]);
}

#[test]
fn x4_d8_maintenance_starts_and_ends() {
    let run = run(CONSUL, "{ happens: [{ at: 10, maintenance: true }, { at: 20, maintenance: false }] }");
    assert_eq!(times(&run, "enterMaintenance"), [10_000]);
    assert_eq!(times(&run, "web deregistered").first(), Some(&10_005));
    assert_eq!(times(&run, "web advertised"), [15, 20_015]);
}

#[test]
fn x4_x2_jobs_are_started_stopped_restarted_and_signalled_by_hand() {
    let text = "{ jobs: [{ name: 'setup', runs: { lasts: 'never' } }], happens: [
        { at: 5, start: 'web' }, { at: 10, send: 'USR1', to: 'web' }, { at: 20, restart: 'web' }, { at: 30, stop: 'web' }] }";
    let run = run(WEB, text);
    assert_eq!(times(&run, "web gets SIGUSR1"), [10_000]);
    // A program without a handler is killed by SIGUSR1, and is restarted at once.
    assert_eq!(times(&run, "web starts"), [5_000, 10_100, 21_100]);
    assert_eq!(times(&run, "web stopped"), [21_100, 31_100]);
    assert_eq!(run.last.get("web").unwrap().word, "stopped");
}

#[test]
fn x4_r3_a_reload_restarts_changed_jobs_and_keeps_the_others() {
    let new = WEB
        .replace("exec: \"web\"", "exec: \"web --new\"")
        .replace("\"greet\", exec: \"greet\"", "\"greet2\", exec: \"greet\"");
    let scenario =
        reloading(WEB, "{ happens: [{ at: 10, reload: 'new.json5' }] }", &[("new.json5", &new)]).unwrap();
    let run = simulate(&plan(WEB), &scenario);
    assert_eq!(times(&run, "reloaded").len(), 1);
    assert_eq!(times(&run, "web starts").len(), 2);
    assert_eq!(times(&run, "greet2 starts").len(), 1);
    assert_eq!(times(&run, "setup starts"), [0]);
}

#[test]
fn x4_r5_a_reload_with_another_check_keeps_the_process() {
    let new = WEB.replace("interval: 5", "interval: 4");
    let scenario =
        reloading(WEB, "{ happens: [{ at: 10, reload: 'new.json5' }] }", &[("new.json5", &new)]).unwrap();
    let run = simulate(&plan(WEB), &scenario);
    assert_eq!(times(&run, "reloaded").len(), 1);
    assert_eq!(times(&run, "web starts").len(), 1);
    // It is stopped by the shutdown at the end.
    assert!(times(&run, "web unhealthy").iter().all(|at| *at >= 60_000));
}

#[test]
fn x4_d5_an_unreachable_catalog_delays_no_job_and_is_updated_afterwards() {
    let run = run(CONSUL, "{ catalog: { away: { to: '20s' } } }");
    assert_eq!(times(&run, "web healthy"), [10]);
    let advertised = times(&run, "web advertised");
    assert!(advertised.len() == 1 && (20_000..26_000).contains(&advertised[0]), "{advertised:?}");
    assert_eq!(times(&run, "catalog back"), [20_000]);
}

#[test]
fn x4_h6_a_service_without_heartbeats_becomes_critical_after_its_ttl() {
    let run = run(CONSUL, "{ catalog: { away: { from: '12s', to: '60s' } } }");
    assert_eq!(times(&run, "web advertised as critical").len(), 1);
    // Its watch keeps the last answer while the catalog is unreachable (D7).
    assert!(times(&run, "watch.web unhealthy").iter().all(|at| *at >= 60_000));
}

#[test]
fn x4_d5_a_lost_service_is_registered_again_at_its_next_heartbeat() {
    let run = run(CONSUL, "{ catalog: { forgets: { at: '12s', job: 'web' } } }");
    assert_eq!(times(&run, "web forgotten"), [12_000]);
    let again = times(&run, "web advertised");
    assert!(again.len() == 2 && (12_000..18_000).contains(&again[1]), "{again:?}");
}

#[test]
fn x4_every_start_has_its_cause() {
    let run = run(WEB, "{}");
    let start = run.entries.iter().find(|entry| entry.name() == "greet starts").unwrap();
    let mut chain = Vec::new();
    let mut next = start.cause;
    while let Some(entry) = next.and_then(|place| run.entries.get(place)) {
        chain.push(entry.name());
        next = entry.cause;
    }
    assert_eq!(chain, ["web healthy", "web starts", "setup exitSuccess", "setup starts", "startup"]);
}

#[test]
fn x4_w15_the_clock_of_the_scenario_decides_when_cron_runs() {
    let config = r#"{ jobs: [{ name: "a", exec: "a", when: { cron: "30 2 * * *", timezone: "Europe/Berlin" } },
                             { name: "hand", exec: "b", when: "manual" }] }"#;
    // 02:30 does not exist on this day.
    let spring = run(config, "{ at: '2026-03-29T00:59:00Z', until: '26h' }");
    assert_eq!(times(&spring, "a starts"), [60_000, 60_000 + 23 * 3_600_000 + 30 * 60_000]);
    assert_eq!(times(&run(config, "{ until: '2h' }"), "a starts"), [90 * 60_000], "2026-01-01T01:30:00Z");
    let set = "{ at: '2026-03-28T20:00:00Z', until: '2h', happens: [{ at: '1h', clock: '2026-03-29T08:00:00+02:00' }] }";
    assert_eq!(times(&run(config, set), "a starts"), [3_600_000], "made up once");
    let hand =
        run(config, "{ until: '5m', happens: [{ at: '1m', start: 'hand' }, { at: '2m', start: 'hand' }] }");
    assert_eq!(times(&hand, "hand starts"), [60_000, 120_000]);
    let wrong = reloading(config, "{ at: '2026-03-29' }", &[]).unwrap_err();
    assert!(wrong.contains("`at` must be a date and time since 1970 with an offset"), "{wrong}");
}

const LOCKED: &str = "{ consul: 'consul:8500', stopTimeout: 2, locks: [{ name: 'primary', ttl: '10s' }],
    jobs: [{ name: 'app', exec: 'app', restarts: 'unlimited', requires: ['lock.primary'] }] }";

#[test]
fn x4_d14_locks_are_acquired_and_lost() {
    let by_default = run(LOCKED, "{}");
    assert_eq!(times(&by_default, "app starts"), [1_000]);
    let lost = run(
        LOCKED,
        "{ locks: [{ name: 'primary', changes: [{ at: '2s' }, { at: '10s', held: false }, { at: '20s' }] }] }",
    );
    assert_eq!(times(&lost, "lock.primary acquired"), [2_000, 20_000]);
    assert_eq!(times(&lost, "lock.primary lost"), [10_000]);
    assert_eq!(times(&lost, "app starts").len(), 2);
}

#[test]
fn x4_d14_a_lock_is_given_up_while_consul_is_away() {
    let run = run(LOCKED, "{ catalog: { away: { from: '5s', to: '30s' } } }");
    // The TTL minus the stop time and a second.
    assert_eq!(times(&run, "lock.primary lost"), [11_990]);
    assert_eq!(times(&run, "lock.primary acquired"), [1_000, 30_000]);
}

#[test]
fn x4_b5_checks_of_a_run_count_from_its_start() {
    let run =
        web("runs: [{ lasts: '12s', checks: { from: '4s', to: '9s' } }, { checks: { check: 'alive' } }]");
    assert_eq!(times(&run, "web becameHealthy"), [1_010, 11_010]);
    assert_eq!(times(&run, "web becameUnhealthy").first(), Some(&6_010));
}

#[test]
fn x4_b5_a_program_goes_on_after_signals_that_it_ignores() {
    let text = "runs: [{ ignores: ['HUP', 'USR1'] }, {}] }], happens: [
        { at: 5, send: 'HUP', to: 'web' }, { at: 6, send: 'USR1', to: 'web' }, { at: 7, send: 'USR2', to: 'web' }";
    let run = run(WEB, &format!("{{ jobs: [{{ name: 'web', {text}] }}"));
    assert_eq!(times(&run, "web exitFailed").first(), Some(&7_100));
}

#[test]
fn x4_b5_a_variable_counts_after_a_reload() {
    let world = "{ happens: [{ at: 10, putenv: 'LEVEL=debug' }, { at: 20, signal: 'HUP' }, { at: 30, putenv: 'LEVEL' },
        { at: 40, signal: 'HUP' }] }";
    assert_eq!(times(&run(WEB, world), "web starts"), [1_000, 21_100, 41_100]);
}
