//! H1–H8, E5, D4, D8: health, and what the catalog is told.

use containerpilot_core::Input;

use crate::stage::Stage;

const WEB: &str = "{ name: 'web', exec: 'x', port: 80, restarts: 'unlimited', restartBackoff: false, \
                   health: { exec: 'c', interval: 10, ttl: 30, timeout: '3s' } }";

#[test]
fn h3_the_first_check_is_at_once_and_then_at_a_growing_pace_until_it_succeeds() {
    let mut stage = Stage::running(WEB);
    assert_eq!(stage.acts(), ["spawn web", "check check.web"]);
    let mut delays = Vec::new();
    for _ in 0..9 {
        let before = stage.now;
        stage.checked(false);
        while stage.checks_going() == 0 {
            stage.now = stage.core.next_deadline().unwrap();
            stage.input(Input::Tick);
        }
        delays.push(stage.now.since(before).as_millis());
    }
    assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    stage.look();
    stage.checked(true);
    assert_eq!(stage.look(), ["event web healthy", "advertise web passing"]);
    stage.seconds(10);
    assert_eq!(stage.acts(), ["check check.web"], "and then every interval");
}

#[test]
fn h3_failures_before_the_first_success_are_not_reported_for_the_first_interval() {
    let mut stage = Stage::running(WEB);
    stage.look();
    while stage.now.as_nanos() < 10_000_000_000 {
        if stage.checks_going() > 0 {
            stage.checked(false);
        }
        stage.now = stage.core.next_deadline().unwrap();
        stage.input(Input::Tick);
    }
    assert!(stage.events().is_empty(), "silence for ten seconds");
    stage.checked(false);
    assert_eq!(stage.events(), ["web unhealthy"]);
}

#[test]
fn e5_healthy_marks_a_change_and_unhealthy_every_failure() {
    let mut stage = Stage::running(WEB);
    stage.checked(true);
    stage.look();
    stage.seconds(10);
    stage.checked(true);
    assert_eq!(stage.look(), ["check check.web", "heartbeat web"]);
    for _ in 0..3 {
        stage.seconds(10);
        stage.checked(false);
    }
    assert_eq!(stage.events(), ["web unhealthy", "web unhealthy", "web unhealthy"]);
    stage.seconds(10);
    stage.checked(true);
    assert_eq!(stage.events(), ["web healthy"]);
}

#[test]
fn h2_all_checks_must_pass() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', health: [{ name: 'one', exec: 'c', interval: 10, ttl: 30 }, { name: 'two', exec: 'd', interval: 10 }] }",
    );
    stage.look();
    stage.checked(true);
    assert_eq!(stage.events(), [] as [&str; 0]);
    stage.checked(true);
    assert_eq!(stage.events(), ["web healthy"]);
    stage.seconds(10);
    stage.checked(true);
    stage.checked(false);
    assert_eq!(stage.events(), ["web unhealthy"]);
    assert_eq!(stage.status("web").healthy, Some(false));
    stage.seconds(10);
    stage.checked(true);
    assert_eq!(stage.status("web").healthy, Some(false), "the other one still fails");
    stage.checked(true);
    assert_eq!(stage.events(), ["web healthy"]);
}

#[test]
fn p5_a_check_that_takes_too_long_has_failed_and_never_runs_twice() {
    let mut stage = Stage::running(WEB);
    stage.checked(true);
    stage.seconds(10);
    stage.look();
    stage.seconds(3);
    assert_eq!(stage.look(), ["event web unhealthy", "cancel check", "advertise web critical"]);
    assert!(stage.log.iter().any(|line| line == "check.web timeout after 3s"), "{:?}", stage.log);
    stage.seconds(60);
    assert_eq!(stage.acts(), [] as [&str; 0], "H4: it has not ended yet");
    stage.checked(false);
    assert_eq!(stage.acts(), ["check check.web"], "its turn had come");
}

#[test]
fn h7_when_the_process_exits_the_health_is_unknown_again() {
    let mut stage = Stage::running(WEB);
    stage.checked(true);
    stage.look();
    stage.exit("web", 1);
    assert_eq!(
        stage.look(),
        [
            "event web exitFailed",
            "event web unhealthy",
            "advertise web critical",
            "spawn web",
            "check check.web"
        ]
    );
    assert_eq!(stage.status("web").healthy, None);
    stage.checked(true);
    assert_eq!(stage.look(), ["event web healthy", "advertise web passing"]);
}

#[test]
fn h8_so_many_failures_in_a_row_and_then_a_restart() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', restarts: 1, health: { exec: 'c', interval: 10, ttl: 30, failures: 3, onUnhealthy: 'restart' } }",
    );
    stage.checked(true);
    stage.look();
    for _ in 0..2 {
        stage.seconds(10);
        stage.checked(false);
        assert_eq!(stage.events(), [] as [&str; 0]);
    }
    stage.seconds(10);
    stage.look();
    stage.checked(false);
    assert_eq!(stage.look(), ["event web unhealthy", "kill web 15"]);
    stage.seconds(5);
    assert!(stage.acts().contains(&"kill web 9".to_owned()), "it did not end");
    stage.killed("web", 9);
    assert!(stage.has_process("web"));
    assert_eq!(stage.status("web").restarts, 1);
}

#[test]
fn d4_with_an_initial_status_it_is_registered_at_once() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', port: 80, initial_status: 'warning', health: { exec: 'c', interval: 10, ttl: 30 } }",
    );
    assert_eq!(stage.acts(), ["spawn web", "advertise web warning", "check check.web"]);
    stage.checked(true);
    assert_eq!(stage.acts(), ["advertise web passing"]);
}

#[test]
fn h6_a_heartbeat_may_have_a_pace_of_its_own() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 60, ttl: 30, heartbeat: 10 } }",
    );
    stage.checked(true);
    stage.look();
    stage.seconds(30);
    assert_eq!(stage.acts(), ["heartbeat web", "heartbeat web", "heartbeat web"]);
}

#[test]
fn h1_without_a_probe_a_job_is_healthy_while_it_runs_and_costs_no_wake_up() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', health: { interval: 5, ttl: 15 } }");
    assert_eq!(stage.events(), ["global startup", "a healthy"]);
    assert_eq!(stage.core.next_deadline(), None, "nobody wants to hear of it");
}

#[test]
fn d8_in_maintenance_services_leave_and_checks_stop_and_both_come_back() {
    let mut stage = Stage::running(WEB);
    stage.checked(true);
    stage.look();
    stage.maintenance(true);
    assert_eq!(stage.look(), ["event global enterMaintenance", "advertise web absent"]);
    stage.maintenance(true);
    stage.seconds(100);
    assert_eq!(stage.look(), [] as [&str; 0], "idempotent, and no check");
    stage.maintenance(false);
    assert_eq!(stage.look(), ["event global exitMaintenance", "check check.web"]);
    stage.checked(true);
    assert_eq!(stage.look(), ["event web healthy", "advertise web passing"]);
}

#[test]
fn h8_an_unhealthy_job_without_restarts_left_goes_on_and_the_log_says_so_once() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x', restarts: 1, health: { exec: 'c', interval: 5, ttl: 15, onUnhealthy: 'restart' } }",
    );
    for round in 0..2 {
        stage.checked(true);
        stage.seconds(5);
        stage.look();
        stage.checked(false);
        if round == 0 {
            assert_eq!(stage.acts(), ["kill a 15"]);
            stage.killed("a", 15);
        }
    }
    assert_eq!(stage.acts(), [] as [&str; 0], "it would never come back");
    stage.seconds(5);
    stage.checked(false);
    let told = stage.log.iter().filter(|line| line.contains("no restarts left")).count();
    assert_eq!(told, 1);
}
