//! H1–H9, E5, D4, D8, T1, X2: health checks, registration, and the health of the container.

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::Level;
use containerpilot_core::{Input, Request, Time};

use crate::harness::{Harness, plan};

const WEB: &str = "{ name: 'web', exec: 'x', port: 80, restarts: 'unlimited', restartBackoff: false, \
                   health: { exec: 'c', interval: 10, ttl: 30, timeout: '3s' } }";

#[test]
fn h3_the_first_check_runs_at_once_and_retries_back_off_until_one_passes() {
    let mut harness = Harness::running(WEB);
    assert_eq!(harness.take_effects(), ["spawn web", "check check.web"]);
    let mut delays = Vec::new();
    for _ in 0..9 {
        let before = harness.now;
        harness.finish_check(false);
        while harness.running_checks() == 0 {
            harness.now = harness.core.next_deadline().unwrap();
            harness.input(Input::Tick);
        }
        delays.push(harness.now.since(before).as_millis());
    }
    assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    harness.take_output();
    harness.finish_check(true);
    assert_eq!(
        harness.take_output(),
        ["event web healthy", "event web becameHealthy", "advertise web passing"]
    );
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["check check.web"], "and then every interval");
}

#[test]
fn h3_failures_before_the_first_pass_are_not_reported_in_the_first_interval() {
    let mut harness = Harness::running(WEB);
    harness.take_output();
    while harness.now.as_nanos() < 10_000_000_000 {
        if harness.running_checks() > 0 {
            harness.finish_check(false);
        }
        harness.now = harness.core.next_deadline().unwrap();
        harness.input(Input::Tick);
    }
    assert!(harness.take_events().is_empty(), "no event for ten seconds");
    harness.finish_check(false);
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
}

#[test]
fn h3_a_check_that_the_supervisor_cannot_run_says_nothing_about_the_job() {
    let mut harness = Harness::running(WEB);
    // It counts neither as a failure nor as a success, and is tried again as after one.
    for delay in [100, 200, 400] {
        harness.cannot_check();
        let next = harness.core.next_deadline().unwrap();
        assert_eq!(next.since(harness.now).as_millis(), delay);
        harness.now = next;
        harness.input(Input::Tick);
    }
    harness.finish_check(true);
    harness.take_output();
    let before = harness.log.len();
    for _ in 0..5 {
        harness.seconds(10);
        harness.cannot_check();
    }
    assert_eq!(harness.take_output(), ["check check.web"; 5], "no event, and no heartbeat");
    let why = "check.web could not check: c: cannot create a pipe: Too many open files";
    assert_eq!(harness.log[before..], [why; 5]);
    let warnings = harness.levels[before..].iter().filter(|level| **level == Level::Warn).count();
    assert_eq!(warnings, 1, "{:?}", &harness.levels[before..]);
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
}

#[test]
fn e5_changes_of_health_are_events_and_repeats_only_if_a_job_runs_each_time() {
    let mut harness = Harness::running(WEB);
    harness.finish_check(true);
    harness.take_output();
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.take_output(), ["check check.web", "heartbeat web"]);
    for _ in 0..3 {
        harness.seconds(10);
        harness.finish_check(false);
    }
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"]);
}

#[test]
fn e5_healthy_and_unhealthy_are_sent_at_every_result_to_jobs_that_run_each_time() {
    for when in ["source: 'web', each: 'CODE'", "any: [{ source: 'web', event: 'CODE' }], each: true"] {
        for (passes, code) in [(true, "healthy"), (false, "unhealthy")] {
            let when = when.replace("CODE", code);
            let mut harness = Harness::running(&format!(
                "{{ name: 'web', exec: 'x', health: {{ exec: 'c', interval: 10, ttl: 30 }} }},
                 {{ name: 'beat', exec: 'x', when: {{ {when} }} }}"
            ));
            harness.finish_check(true);
            if !passes {
                harness.seconds(10);
                harness.finish_check(false);
            }
            harness.exit("beat", 0);
            harness.take_output();
            for _ in 0..3 {
                harness.seconds(10);
                harness.finish_check(passes);
                let output = harness.take_output();
                assert!(
                    output.contains(&format!("event web {code}"))
                        && output.contains(&"spawn beat".to_owned())
                );
                assert!(!output.iter().any(|line| line.contains("became")), "{output:?}");
                harness.exit("beat", 0);
                harness.take_output();
            }
        }
    }
}

#[test]
fn e5_a_job_that_waits_for_a_change_runs_once_per_change() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 10, ttl: 30 } },
         { name: 'up', exec: 'x', when: { source: 'web', each: 'becameHealthy' } },
         { name: 'down', exec: 'x', when: { source: 'web', each: 'becameUnhealthy' } }",
    );
    harness.take_output();
    for (passes, started) in [(true, "up"), (true, ""), (false, "down"), (false, ""), (true, "up")] {
        harness.finish_check(passes);
        let output = harness.take_effects();
        let spawned: Vec<&str> = output.iter().filter_map(|line| line.strip_prefix("spawn ")).collect();
        assert_eq!(spawned.join(" "), started);
        if !started.is_empty() {
            harness.exit(started, 0);
        }
        harness.seconds(10);
    }
}

#[test]
fn e5_a_job_without_a_probe_repeats_healthy_at_its_interval_if_a_job_runs_each_time() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', health: { interval: 10, ttl: 30 } },
         { name: 'beat', exec: 'x', when: { source: 'web', each: 'healthy' } }",
    );
    harness.exit("beat", 0);
    harness.take_output();
    harness.seconds(10);
    assert!(harness.has_process("beat"));
}

#[test]
fn h2_all_checks_must_pass() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', health: [{ name: 'one', exec: 'c', interval: 10, ttl: 30 }, { name: 'two', exec: 'd', interval: 10 }] }",
    );
    harness.take_output();
    harness.finish_check(true);
    assert_eq!(harness.take_events(), [] as [&str; 0]);
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"]);
    harness.seconds(10);
    harness.finish_check(true);
    harness.finish_check(false);
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
    assert_eq!(harness.status("web").healthy, Some(false));
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.status("web").healthy, Some(false), "the other one still fails");
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"]);
}

#[test]
fn h5_a_check_that_times_out_says_what_it_connected_to() {
    for (check, message) in [
        ("http: 'http://127.0.0.1:1/x'", "GET http://127.0.0.1:1/x: no response within 3s"),
        ("tcp: 'db:5432'", "db port 5432: no connection within 3s"),
        ("exec: 'c'", "timeout after 3s"),
    ] {
        let mut harness = Harness::running(&WEB.replace("exec: 'c'", check));
        harness.seconds(3);
        let overview = harness.core.job_overview(harness.core.job_named("web").unwrap());
        let result = overview.checks[0].last.as_ref().map(|last| last.result.clone());
        assert_eq!(result, Some(Err(message.to_owned())));
    }
}

#[test]
fn p5_a_check_that_times_out_has_failed_and_never_runs_twice() {
    let mut harness = Harness::running(WEB);
    harness.finish_check(true);
    harness.seconds(10);
    harness.take_output();
    harness.seconds(3);
    assert_eq!(
        harness.take_output(),
        ["event web unhealthy", "event web becameUnhealthy", "cancel check", "advertise web critical"]
    );
    assert!(harness.log.iter().any(|line| line == "check.web timeout after 3s: '[]'"), "{:?}", harness.log);
    harness.seconds(60);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "H4: the first one has not finished");
    harness.finish_check(false);
    assert_eq!(harness.take_effects(), ["check check.web"], "it was due");
}

#[test]
fn h7_the_health_is_unknown_after_the_process_exits() {
    let mut harness = Harness::running(WEB);
    harness.finish_check(true);
    harness.take_output();
    harness.exit("web", 1);
    assert_eq!(
        harness.take_output(),
        [
            "event web exitFailed",
            "event web unhealthy",
            "event web becameUnhealthy",
            "advertise web critical",
            "spawn web",
            "check check.web"
        ]
    );
    assert_eq!(harness.status("web").healthy, None);
    harness.finish_check(true);
    assert_eq!(
        harness.take_output(),
        ["event web healthy", "event web becameHealthy", "advertise web passing"]
    );
}

#[test]
fn h8_failures_in_a_row_restart_the_job() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', restarts: 1, health: { exec: 'c', interval: 10, ttl: 30, failures: 3, onUnhealthy: 'restart' } }",
    );
    harness.finish_check(true);
    harness.take_output();
    for _ in 0..2 {
        harness.seconds(10);
        harness.finish_check(false);
        assert_eq!(harness.take_events(), [] as [&str; 0]);
    }
    harness.seconds(10);
    harness.take_output();
    harness.finish_check(false);
    assert_eq!(harness.take_output(), ["event web unhealthy", "event web becameUnhealthy", "kill web 15"]);
    harness.seconds(5);
    assert!(harness.take_effects().contains(&"kill web 9".to_owned()), "it did not exit");
    harness.exit_on("web", 9);
    assert!(harness.has_process("web"));
    assert_eq!(harness.status("web").restarts, 1);
}

#[test]
fn h8_t4_a_run_that_is_ended_by_failed_checks_has_failed_with_any_exit_code() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', restarts: 9, restartBackoff: false, health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } }",
    );
    let counts = |harness: &Harness| {
        let web = harness.core.job_overview(JobIx(0));
        (web.runs.failure, web.runs.success, web.runs.stopped, web.failed_runs)
    };
    let fail = |harness: &mut Harness| {
        harness.finish_check(true);
        harness.seconds(10);
        harness.finish_check(false);
    };
    for round in 1..=3 {
        fail(&mut harness);
        harness.exit("web", 0);
        assert_eq!(counts(&harness), (round, 0, 0, round));
    }
    let explained = harness.core.explain(JobIx(0), None).to_string();
    assert!(explained.contains("previous run exited with code 0 after failed checks"), "{explained}");
    // A job that is stopped meanwhile has not failed, and neither has one that exits by itself.
    fail(&mut harness);
    harness.request(Request::Stop(JobIx(0)));
    harness.exit("web", 0);
    assert_eq!(counts(&harness), (3, 1, 0, 0));
    harness.request(Request::Start(JobIx(0)));
    harness.exit("web", 0);
    assert_eq!(counts(&harness), (3, 2, 0, 0));
}

#[test]
fn h8_s5_an_unhealthy_run_that_exits_with_0_does_not_change_the_exit_code() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', restarts: 1, restartBackoff: false, health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } }",
    );
    harness.finish_check(true);
    harness.seconds(10);
    harness.finish_check(false);
    harness.exit("web", 0);
    harness.exit("web", 0);
    assert_eq!(harness.take_effects().last().map(String::as_str), Some("exit 0"));
}

#[test]
fn d4_a_service_with_an_initial_status_is_registered_at_start() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, initial_status: 'warning', health: { exec: 'c', interval: 10, ttl: 30 } }",
    );
    assert_eq!(harness.take_effects(), ["advertise web warning", "spawn web", "check check.web"]);
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), ["advertise web passing"]);
}

#[test]
fn d4_h6_a_service_that_is_passing_from_the_start_has_a_heartbeat_when_it_is_healthy() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, initial_status: 'passing',
           health: { exec: 'c', interval: 10, ttl: 30, heartbeat: 20 } }",
    );
    harness.take_output();
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), ["heartbeat web"], "its status may have expired in the catalog");
    harness.seconds(20);
    assert!(harness.take_effects().contains(&"heartbeat web".to_owned()));
}

#[test]
fn d4_d8_a_service_with_an_initial_status_is_registered_while_its_job_waits() {
    let mut harness = Harness::running(
        "{ name: 'setup', exec: 'x' }, { name: 'web', exec: 'x', port: 80, initial_status: 'warning', \
           health: { exec: 'c', interval: 10, ttl: 30 }, when: { source: 'setup', once: 'exitSuccess' } }",
    );
    assert_eq!(harness.take_effects(), ["advertise web warning", "spawn setup"]);
    harness.maintenance(true);
    assert_eq!(harness.take_effects(), ["advertise web absent"]);
    harness.maintenance(false);
    assert_eq!(harness.take_effects(), ["advertise web warning"]);
    harness.exit("setup", 1);
    assert_eq!(harness.take_effects(), ["advertise web absent", "exit 1"], "it will never run");
}

#[test]
fn h6_heartbeats_may_have_their_own_interval() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 60, ttl: 30, heartbeat: 10 } }",
    );
    harness.finish_check(true);
    harness.take_output();
    harness.seconds(30);
    assert_eq!(harness.take_effects(), ["heartbeat web", "heartbeat web", "heartbeat web"]);
}

#[test]
fn h1_without_a_probe_a_job_is_healthy_while_it_runs_and_needs_no_timer() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', health: { interval: 5, ttl: 15 } }");
    assert_eq!(harness.take_events(), ["global startup", "a healthy", "a becameHealthy"]);
    assert_eq!(harness.core.next_deadline(), None, "no timer is needed");
}

#[test]
fn d8_maintenance_deregisters_services_and_suspends_checks_until_it_ends() {
    let mut harness = Harness::running(WEB);
    harness.finish_check(true);
    harness.take_output();
    harness.maintenance(true);
    assert_eq!(harness.take_output(), ["event global enterMaintenance", "advertise web absent"]);
    harness.maintenance(true);
    harness.seconds(100);
    assert_eq!(harness.take_output(), [] as [&str; 0], "idempotent, and no check");
    harness.maintenance(false);
    assert_eq!(harness.take_output(), ["event global exitMaintenance", "check check.web"]);
    harness.finish_check(true);
    assert_eq!(
        harness.take_output(),
        ["event web healthy", "event web becameHealthy", "advertise web passing"]
    );
}

#[test]
fn h8_an_unhealthy_job_without_restarts_left_keeps_running_with_one_warning() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 1, health: { exec: 'c', interval: 5, ttl: 15, onUnhealthy: 'restart' } }",
    );
    for round in 0..2 {
        harness.finish_check(true);
        harness.seconds(5);
        harness.take_output();
        harness.finish_check(false);
        if round == 0 {
            assert_eq!(harness.take_effects(), ["kill a 15"]);
            harness.exit_on("a", 15);
        }
    }
    assert_eq!(harness.take_effects(), [] as [&str; 0], "no signal without restarts left");
    harness.seconds(5);
    harness.finish_check(false);
    let warnings = harness.log.iter().filter(|line| line.contains("no restarts left")).count();
    assert_eq!(warnings, 1);
}

const TWO_WITH_CHECKS: &str = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 10, ttl: 30 } },
    { name: 'later', exec: 'x', when: { source: 'web', once: 'healthy' }, health: { exec: 'c', interval: 10, ttl: 30 } },
    { name: 'plain', exec: 'x' },
    { name: 'backup', exec: 'x', when: { source: 'SIGHUP' }, health: { exec: 'c', interval: 10, ttl: 30 } }";

#[test]
fn t1_ready_means_healthy_and_neither_starting_nor_stopping_nor_in_maintenance() {
    let mut harness = Harness::jobs(TWO_WITH_CHECKS);
    let not_ready = |harness: &Harness| harness.core.overview().not_ready();
    assert_eq!(not_ready(&harness)[0], "the supervisor is starting");
    harness.input(Input::Ready);
    assert_eq!(not_ready(&harness), ["web: not checked yet", "later: waiting to start"]);
    harness.finish_check(true);
    harness.finish_check(true);
    assert_eq!(not_ready(&harness), [] as [&str; 0]);
    harness.seconds(10);
    harness.finish_check(false);
    harness.finish_check(true);
    assert_eq!(not_ready(&harness), ["web: unhealthy"]);
    harness.maintenance(true);
    assert_eq!(not_ready(&harness), ["in maintenance mode"]);
    harness.maintenance(false);
    harness.finish_check(true);
    harness.finish_check(true);
    assert_eq!(not_ready(&harness), [] as [&str; 0]);
    harness.exit("later", 1);
    assert_eq!(not_ready(&harness), ["later: failed"]);
    harness.signal(15);
    assert_eq!(not_ready(&harness)[0], "the supervisor is stopping");
}

#[test]
fn x2_container_is_healthy_while_all_jobs_that_should_run_pass_their_checks() {
    let mut harness = Harness::jobs(TWO_WITH_CHECKS);
    let health = |harness: &Harness| {
        let overview = harness.core.overview();
        let health = overview.health();
        let jobs: Vec<String> = health.jobs.iter().map(|job| job.name.clone()).collect();
        (health.healthy, health.reason.clone(), jobs.join(" "))
    };
    let is = |healthy, reason: &str, jobs: &str| (healthy, reason.to_owned(), jobs.to_owned());
    assert_eq!(health(&harness), is(false, "the supervisor is starting", "web later"));
    harness.input(Input::Ready);
    let reason = "0 of 2 jobs with checks are healthy: web: not checked yet, later: waiting to start";
    assert_eq!(health(&harness), is(false, reason, "web later"));
    harness.finish_check(true);
    let reason = "1 of 2 jobs with checks are healthy: later: not checked yet";
    assert_eq!(health(&harness), is(false, reason, "web later"));
    harness.finish_check(true);
    assert_eq!(health(&harness), is(true, "2 of 2 jobs with checks are healthy", "web later"));
    harness.maintenance(true);
    assert_eq!(health(&harness), is(true, "in maintenance mode: checks are suspended", "web later"));
    harness.maintenance(false);
    harness.finish_check(true);
    harness.finish_check(true);
    harness.exit("later", 1);
    let reason = "1 of 2 jobs with checks are healthy: later: failed";
    assert_eq!(health(&harness), is(false, reason, "web later"), "it has failed");
    harness.exit("web", 0);
    harness.signal(15);
    assert_eq!(health(&harness), is(false, "the supervisor is stopping", "later"));
    let idle = Harness::running("{ name: 'plain', exec: 'x' }");
    assert_eq!(health(&idle), is(true, "no job has to pass a check now", ""));
}

#[test]
fn h15_health_has_the_verdict_and_the_reasons_of_readyz() {
    let check = "health: { exec: 'c', interval: 10, ttl: 30 }";
    let text = format!(
        "{{ telemetry: {{}}, jobs: [{{ name: 'db', exec: 'x' }}, {{ name: 'web', exec: 'x', {check}, \
           when: {{ source: 'db', once: 'exitSuccess' }} }}] }}"
    );
    let mut harness = Harness::new(plan(&text));
    harness.input(Input::TelemetryListens(Ok(())));
    harness.input(Input::Ready);
    let verdict = |harness: &Harness| {
        let overview = harness.core.overview();
        let (health, not_ready) = (overview.health(), overview.not_ready());
        assert_eq!(health.healthy, not_ready.is_empty(), "{}", health.reason);
        assert!(not_ready.iter().all(|reason| health.reason.contains(reason)), "{}", health.reason);
        (health.healthy, health.reason.clone())
    };
    let waiting = "0 of 1 job with checks is healthy: web: waiting to start";
    assert_eq!(verdict(&harness), (false, waiting.to_owned()), "the telemetry server does not count");
    harness.exit("db", 1);
    assert_eq!(harness.exit, Some(1), "its work can never run");
    let mut harness = Harness::running(&format!(
        "{{ name: 'a', exec: 'x' }}, {{ name: 'web', exec: 'x', {check}, when: {{ source: 'ghost', once: 'healthy' }} }}"
    ));
    assert_eq!(
        verdict(&harness),
        (false, "0 of 1 job with checks is healthy: web: can never start".to_owned())
    );
    harness.maintenance(true);
    assert!(harness.core.overview().health().healthy && !harness.core.overview().not_ready().is_empty());
}

#[test]
fn h6_passed_checks_are_no_heartbeats_if_these_have_their_own_interval() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 1, ttl: 30, heartbeat: 10 } }",
    );
    harness.finish_check(true);
    harness.take_output();
    for _ in 0..5 {
        harness.seconds(1);
        harness.finish_check(true);
    }
    assert!(!harness.take_effects().contains(&"heartbeat web".to_owned()));
}

#[test]
fn p7_checks_of_a_restarted_process_have_its_variables() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 'unlimited', health: { exec: 'c', interval: 1, ttl: 5 } }",
    );
    for restarts in ["0", "1", "2"] {
        let variables = &harness.check_environment;
        let found = variables.iter().find(|(name, _)| *name == "CONTAINERPILOT_RESTARTS");
        assert_eq!(found, Some(("CONTAINERPILOT_RESTARTS", restarts)));
        harness.finish_check(true);
        harness.exit("a", 1);
        harness.seconds(1);
    }
}

const SUSPICION: &str = "after it became healthy (does another process answer its check?)";

/// A job with this in its check, after startup.
fn checked(keys: &str) -> Harness {
    let health = format!("health: {{ exec: 'c', interval: 10, ttl: 30, {keys} }}");
    let mut harness = Harness::running(&format!("{{ name: 'web', exec: 'x', restarts: 9, {health} }}"));
    harness.take_output();
    harness
}

#[test]
fn h9_a_job_is_healthy_after_so_many_successes_in_a_row() {
    let mut harness = checked("successes: 3");
    for passed in [true, true, false, true, true] {
        harness.finish_check(passed);
        assert_ne!(harness.status("web").healthy, Some(true));
        harness.seconds(10);
    }
    harness.finish_check(true);
    assert_eq!(harness.status("web").healthy, Some(true));
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(false));
    for healthy in [false, false, true] {
        harness.seconds(10);
        harness.finish_check(true);
        assert_eq!(harness.status("web").healthy, Some(healthy), "again as many as before");
    }
}

#[test]
fn h9_a_job_that_is_healthy_while_it_runs_needs_one_success() {
    let text = "{ name: 'web', exec: 'x', health: { interval: 10, ttl: 30, successes: 3 } }";
    assert_eq!(Harness::running(text).status("web").healthy, Some(true));
}

#[test]
fn h9_failures_in_the_start_period_do_not_count() {
    let mut harness = checked("startPeriod: '25s', failures: 2, onUnhealthy: 'restart'");
    harness.finish_check(true);
    for _ in 0..2 {
        harness.seconds(10);
        harness.finish_check(false);
    }
    assert_eq!(harness.status("web").healthy, Some(true), "20 s after the start");
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(true), "the first failure that counts");
    harness.take_output();
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(false));
    assert!(harness.take_effects().contains(&"kill web 15".into()));
    harness.exit_on("web", 15);
    harness.finish_check(true);
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(true), "each process has its start period");
}

#[test]
fn h9_a_slow_start_is_not_unhealthy() {
    let mut harness = checked("startPeriod: '1m', onUnhealthy: 'restart'");
    while harness.now < Time::ZERO + Duration::from_secs(59) {
        harness.finish_check(false);
        let next = harness.core.next_deadline().unwrap();
        harness.pass(next.since(harness.now));
    }
    let events = harness.take_output();
    assert!(!events.contains(&"event web unhealthy".into()) && !events.contains(&"kill web 15".into()));
    harness.seconds(1);
    harness.finish_check(false);
    assert_eq!(harness.status("web").healthy, Some(false));
}

#[test]
fn h9_an_exit_soon_after_the_job_became_healthy_is_suspicious() {
    let mut harness = checked("");
    harness.finish_check(true);
    harness.millis(3);
    harness.exit("web", 1);
    assert!(
        harness.log.contains(&format!("exited with code 1 after 3ms, 3ms {SUSPICION}")),
        "{:?}",
        harness.log
    );
    let suspicions = |harness: &Harness| harness.log.iter().filter(|one| one.contains(SUSPICION)).count();
    // Not after a second, not while it is stopped, and not if it is healthy just because it runs.
    harness.finish_check(true);
    harness.seconds(1);
    harness.exit("web", 1);
    harness.millis(100);
    harness.finish_check(true);
    harness.signal(15);
    harness.exit_on("web", 15);
    assert_eq!(suspicions(&harness), 1);
    let mut harness = Harness::running("{ name: 'web', exec: 'x', health: { interval: 10, ttl: 30 } }");
    harness.exit("web", 1);
    assert_eq!(suspicions(&harness), 0);
}

#[test]
fn h8_an_unhealthy_run_of_a_job_that_stops_is_not_replaced() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', restarts: 9, health: { exec: 'c', interval: 10, ttl: 30, onUnhealthy: 'restart' } },
         { name: 'hook', exec: 'x', when: { source: 'web', once: 'stopping' } }",
    );
    harness.finish_check(true);
    harness.request(Request::Stop(JobIx(0)));
    harness.take_output();
    harness.seconds(10);
    harness.finish_check(false);
    let output = harness.take_output();
    assert!(output.contains(&"event web becameUnhealthy".to_owned()), "{output:?}");
    assert!(!output.contains(&"kill web 15".to_owned()), "its hook has not ended");
    assert!(!harness.log.iter().any(|line| line.contains("restarting")), "{:?}", harness.log);
}
