//! H1–H8, E5, D4, D8, T1, X2: health checks, registration, and the health of the container.

use containerpilot_core::Input;

use crate::harness::Harness;

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
    assert_eq!(harness.take_output(), ["event web healthy", "advertise web passing"]);
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
    assert_eq!(harness.take_events(), ["web unhealthy"]);
}

#[test]
fn e5_healthy_is_sent_on_change_and_unhealthy_at_every_failure() {
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
    assert_eq!(harness.take_events(), ["web unhealthy", "web unhealthy", "web unhealthy"]);
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy"]);
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
    assert_eq!(harness.take_events(), ["web healthy"]);
    harness.seconds(10);
    harness.finish_check(true);
    harness.finish_check(false);
    assert_eq!(harness.take_events(), ["web unhealthy"]);
    assert_eq!(harness.status("web").healthy, Some(false));
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.status("web").healthy, Some(false), "the other one still fails");
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy"]);
}

#[test]
fn p5_a_check_that_times_out_has_failed_and_never_runs_twice() {
    let mut harness = Harness::running(WEB);
    harness.finish_check(true);
    harness.seconds(10);
    harness.take_output();
    harness.seconds(3);
    assert_eq!(harness.take_output(), ["event web unhealthy", "cancel check", "advertise web critical"]);
    assert!(harness.log.iter().any(|line| line == "check.web timeout after 3s"), "{:?}", harness.log);
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
            "advertise web critical",
            "spawn web",
            "check check.web"
        ]
    );
    assert_eq!(harness.status("web").healthy, None);
    harness.finish_check(true);
    assert_eq!(harness.take_output(), ["event web healthy", "advertise web passing"]);
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
    assert_eq!(harness.take_output(), ["event web unhealthy", "kill web 15"]);
    harness.seconds(5);
    assert!(harness.take_effects().contains(&"kill web 9".to_owned()), "it did not exit");
    harness.exit_on("web", 9);
    assert!(harness.has_process("web"));
    assert_eq!(harness.status("web").restarts, 1);
}

#[test]
fn d4_a_service_with_an_initial_status_is_registered_at_start() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, initial_status: 'warning', health: { exec: 'c', interval: 10, ttl: 30 } }",
    );
    assert_eq!(harness.take_effects(), ["spawn web", "advertise web warning", "check check.web"]);
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), ["advertise web passing"]);
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
    assert_eq!(harness.take_events(), ["global startup", "a healthy"]);
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
    assert_eq!(harness.take_output(), ["event web healthy", "advertise web passing"]);
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
    assert_eq!(not_ready(&harness)[0], "in maintenance mode");
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
    assert_eq!(health(&harness), is(false, "the supervisor is starting", ""));
    harness.input(Input::Ready);
    assert_eq!(health(&harness), is(false, "0 of 1 jobs with checks are healthy", "web"));
    harness.finish_check(true);
    assert_eq!(health(&harness), is(false, "1 of 2 jobs with checks are healthy", "web later"));
    harness.finish_check(true);
    assert_eq!(health(&harness), is(true, "2 of 2 jobs with checks are healthy", "web later"));
    harness.maintenance(true);
    assert_eq!(health(&harness), is(true, "in maintenance mode: checks are suspended", "web later"));
    harness.maintenance(false);
    harness.finish_check(true);
    harness.finish_check(true);
    harness.exit("later", 1);
    assert_eq!(
        health(&harness),
        is(false, "1 of 2 jobs with checks are healthy", "web later"),
        "it has failed"
    );
    harness.exit("web", 0);
    harness.signal(15);
    assert_eq!(health(&harness), is(false, "the supervisor is stopping", "later"));
    let idle = Harness::running("{ name: 'plain', exec: 'x' }");
    assert_eq!(health(&idle), is(true, "no job has to pass a check now", ""));
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
