//! W1–W12: when a job runs.

use containerpilot_core::State;
use containerpilot_core::input::StartErrorKind;

use crate::stage::{Stage, plan};

#[test]
fn w1_without_when_at_startup_once() {
    let mut stage = Stage::jobs("{ name: 'a', exec: 'x' }");
    assert!(stage.look().is_empty(), "nothing runs before startup");
    stage.input(containerpilot_core::Input::Ready);
    assert_eq!(stage.look(), ["event global startup", "spawn a"]);
    stage.exit("a", 0);
    assert_eq!(
        stage.look(),
        ["event a exitSuccess", "event a stopping", "event a stopped", "event global shutdown", "exit 0"]
    );
}

#[test]
fn w2_once_counts_the_first_time_only_and_each_every_time() {
    let mut stage = Stage::running(
        "{ name: 'src', exec: 'x', restarts: 'unlimited', restartBackoff: false }, \
         { name: 'once', exec: 'x', when: { source: 'src', once: 'exitSuccess' } }, \
         { name: 'each', exec: 'x', when: { source: 'src', each: 'exitSuccess' } }",
    );
    stage.look();
    stage.exit("src", 0);
    assert_eq!(stage.acts(), ["spawn src", "spawn once", "spawn each"]);
    stage.exit("once", 0);
    stage.exit("each", 0);
    stage.look();
    stage.exit("src", 0);
    assert_eq!(stage.acts(), ["spawn src", "spawn each"]);
    stage.exit("src", 1);
    assert_eq!(stage.acts(), ["spawn src"], "another event means nothing");
}

#[test]
fn w3_a_signal_runs_it_every_time() {
    let mut stage =
        Stage::running("{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }");
    stage.look();
    for _ in 0..3 {
        stage.signal(1);
        assert_eq!(stage.look(), ["event SIGHUP signal", "spawn hup"]);
        stage.exit("hup", 0);
        stage.look();
    }
    stage.signal(12);
    assert_eq!(stage.acts(), [] as [&str; 0]);
}

#[test]
fn w4_a_periodic_job_runs_at_startup_and_at_every_interval_without_drift() {
    let mut stage = Stage::running("{ name: 'tick', exec: 'x', when: { interval: '10s' } }");
    assert_eq!(stage.acts(), ["spawn tick"]);
    for _ in 0..5 {
        stage.millis(2_345);
        stage.exit("tick", 0);
        stage.look();
        stage.millis(7_654);
        assert_eq!(stage.acts(), [] as [&str; 0], "not before its turn");
        stage.millis(1);
        assert_eq!(stage.acts(), ["spawn tick"]);
    }
}

#[test]
fn w4_restarts_bound_the_number_of_further_runs() {
    let mut stage = Stage::running("{ name: 'tick', exec: 'x', when: { interval: '1s' }, restarts: 2 }");
    for _ in 0..3 {
        assert!(stage.has_process("tick"));
        stage.exit("tick", 0);
        stage.seconds(1);
    }
    assert_eq!(stage.exit, Some(0));
    let spawns = stage.look().iter().filter(|line| *line == "spawn tick").count();
    assert_eq!(spawns, 3);
}

#[test]
fn w4_a_run_that_still_goes_on_has_met_its_timeout_and_its_turn_follows() {
    let mut stage = Stage::running("{ name: 'tick', exec: 'x', when: { interval: '10s' } }");
    stage.look();
    stage.seconds(10);
    assert_eq!(stage.acts(), ["kill tick 9"]);
    stage.killed("tick", 9);
    assert_eq!(stage.look(), ["event tick exitFailed", "spawn tick"]);
    assert!(stage.log.iter().any(|line| line == "tick timeout after 10s"), "{:?}", stage.log);
}

#[test]
fn w4_with_a_longer_timeout_the_turn_is_skipped_and_not_made_up() {
    for timeout in ["'25s'", "'never'"] {
        let mut stage = Stage::running(&format!(
            "{{ name: 'tick', exec: 'x', timeout: {timeout}, when: {{ interval: '10s' }} }}"
        ));
        stage.look();
        stage.seconds(24);
        assert_eq!(stage.acts(), [] as [&str; 0]);
        stage.exit("tick", 0);
        stage.look();
        stage.seconds(5);
        assert_eq!(stage.acts(), [] as [&str; 0]);
        stage.seconds(1);
        assert_eq!(stage.acts(), ["spawn tick"], "at 30 s, its next turn");
    }
}

#[test]
fn w4_after_a_long_pause_missed_turns_are_not_made_up() {
    let mut stage = Stage::running("{ name: 'tick', exec: 'x', when: { interval: '1s' } }");
    stage.exit("tick", 0);
    stage.look();
    // The supervisor was stopped for an hour (SIGSTOP): one step, much later.
    stage.now = stage.now + std::time::Duration::from_millis(3_600_500);
    stage.input(containerpilot_core::Input::Tick);
    assert_eq!(stage.acts(), ["spawn tick"]);
    stage.exit("tick", 0);
    stage.look();
    stage.millis(499);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    stage.millis(1);
    assert_eq!(stage.acts(), ["spawn tick"]);
}

#[test]
fn w5_a_job_that_is_not_started_in_time_gives_up() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x', health: { exec: 'c', interval: 5, ttl: 10 } }, \
         { name: 'late', exec: 'x', when: { source: 'main', once: 'healthy', timeout: '60s' } }",
    );
    stage.look();
    stage.seconds(59);
    assert!(!stage.events().iter().any(|event| event.starts_with("late")));
    stage.seconds(1);
    let events: Vec<_> = stage.events().into_iter().filter(|event| event.starts_with("late")).collect();
    assert_eq!(events, ["late timerExpired", "late stopping", "late stopped"]);
}

#[test]
fn w5_once_started_the_timeout_means_nothing() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', when: { once: 'startup', timeout: '5s' } }");
    stage.look();
    stage.seconds(60);
    assert!(stage.look().is_empty());
}

#[test]
fn w6_restarts_after_success_and_failure_alike() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 2, restartBackoff: false }");
    for code in [0, 1] {
        stage.exit("a", code);
        assert!(stage.has_process("a"));
    }
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w7_an_event_while_it_runs_is_remembered_once() {
    let mut stage =
        Stage::running("{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }");
    stage.look();
    for _ in 0..5 {
        stage.signal(1);
    }
    assert_eq!(stage.acts(), ["spawn hup"]);
    stage.exit("hup", 0);
    assert_eq!(stage.acts(), ["spawn hup"], "nothing is lost");
    stage.exit("hup", 0);
    assert_eq!(stage.acts(), [] as [&str; 0], "and nothing piles up");
}

#[test]
fn w8_restarts_back_off_and_a_long_run_starts_anew() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    let mut delays = Vec::new();
    for _ in 0..10 {
        stage.look();
        let before = stage.now;
        stage.exit("a", 1);
        while !stage.has_process("a") {
            stage.now = stage.core.next_deadline().unwrap();
            stage.input(containerpilot_core::Input::Tick);
        }
        delays.push(stage.now.since(before).as_millis());
    }
    assert_eq!(delays, [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    stage.seconds(11);
    stage.look();
    stage.exit("a", 1);
    assert_eq!(stage.acts(), ["spawn a"], "after a run of more than 10 s the first restart is at once again");
}

#[test]
fn w8_without_back_off_there_is_no_delay() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 'unlimited', restartBackoff: false }");
    for _ in 0..100 {
        stage.exit("a", 1);
        assert!(stage.has_process("a"));
    }
    assert_eq!(stage.core.next_deadline(), None);
}

#[test]
fn w8_a_program_that_cannot_be_started_backs_off_too() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    stage.willing = false;
    stage.exit("a", 1);
    stage.fails_to_start("a", StartErrorKind::NotFound);
    assert!(!stage.has_process("a"));
    stage.millis(100);
    assert!(stage.has_process("a"));
}

#[test]
fn w9_a_complete_job_never_runs_again() {
    let mut stage = Stage::running(
        "{ name: 'src', exec: 'x', restarts: 'unlimited', restartBackoff: false }, \
         { name: 'a', exec: 'x', when: { source: 'src', once: 'exitSuccess' } }",
    );
    stage.exit("src", 0);
    stage.exit("a", 0);
    assert_eq!(stage.status("a").state, State::Complete);
    for _ in 0..3 {
        stage.exit("src", 0);
        assert!(!stage.has_process("a"));
    }
}

#[test]
fn w10_jobs_that_only_react_do_not_hold_it_open() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }, \
         { name: 'maint', exec: 'x', when: { each: 'enterMaintenance' } }",
    );
    stage.exit("main", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w10_unless_there_is_nothing_else() {
    let mut stage = Stage::running("{ name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }");
    assert_eq!(stage.exit, None);
    stage.signal(1);
    stage.exit("hup", 0);
    assert_eq!(stage.exit, None);
}

#[test]
fn w10_whoever_waits_for_what_can_never_come_is_completed_with_a_warning() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed' } }, \
         { name: 'c', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }",
    );
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
    let warned =
        |name: &str| stage.log.iter().filter(|line| line.contains(&format!("never run: `{name} "))).count();
    assert_eq!((warned("a"), warned("b")), (1, 1), "{:?}", stage.log);
}

#[test]
fn w10_a_source_that_does_not_exist_is_not_waited_for() {
    let stage = Stage::running(
        "{ name: 'b', exec: 'x', when: { source: 'ghost', once: 'healthy' } }, { name: 'n', exec: 'x', when: {} }",
    );
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w10_the_telemetry_job_does_not_hold_it_open() {
    let mut stage = Stage::new(plan("{ telemetry: {}, jobs: [{ name: 'a', exec: 'x' }] }"));
    stage.input(containerpilot_core::Input::Ready);
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w11_a_job_without_exec_is_never_complete_by_itself() {
    let mut stage = Stage::running("{ name: 'web', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } }");
    assert_eq!(stage.acts(), ["check check.web"]);
    stage.checked(true);
    assert_eq!(stage.look(), ["event web healthy", "advertise web passing"]);
    stage.seconds(1_000);
    assert_eq!(stage.exit, None);
    stage.signal(15);
    assert!(stage.exit.is_some());
}

#[test]
fn w12_all_holds_when_everything_has_been_seen_and_healthy_is_true_while_healthy() {
    let mut stage = Stage::new(plan(
        "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'setup', exec: 'x' }, \
           { name: 'a', exec: 'x', when: { all: [{ source: 'setup', event: 'exitSuccess' }, { source: 'watch.db', event: 'healthy' }], each: true } }] }",
    ));
    stage.input(containerpilot_core::Input::Ready);
    stage.instances(1);
    stage.instances(0);
    stage.exit("setup", 0);
    assert!(!stage.has_process("a"), "the database was healthy, but is not any more");
    stage.instances(2);
    assert!(stage.has_process("a"));
    stage.exit("a", 0);
    stage.instances(0);
    stage.instances(1);
    assert!(stage.has_process("a"), "each time they come to hold");
}

#[test]
fn w12_any_runs_at_any_of_them() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { any: [{ source: 'SIGHUP' }, { source: 'SIGUSR2' }], each: true } }",
    );
    for signal in [12, 1] {
        stage.signal(signal);
        assert!(stage.has_process("a"));
        stage.exit("a", 0);
    }
}

#[test]
fn w6_each_event_brings_its_own_restarts() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', restarts: 1, restartBackoff: false, when: { source: 'SIGHUP' } }",
    );
    for _ in 0..3 {
        stage.look();
        stage.signal(1);
        stage.exit("a", 1);
        stage.exit("a", 1);
        assert_eq!(stage.acts(), ["spawn a", "spawn a"]);
    }
}

#[test]
fn w7_w8_an_event_in_a_delay_takes_no_restart_from_the_job() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', restarts: 2, when: { source: 'SIGHUP' } }",
    );
    stage.signal(1);
    stage.exit("a", 1);
    stage.exit("a", 1);
    assert!(!stage.has_process("a"), "the second restart is delayed");
    stage.signal(1);
    assert!(stage.has_process("a"), "an event need not wait");
    assert_eq!(stage.status("a").restarts, 0);
    for _ in 0..2 {
        stage.exit("a", 1);
        stage.seconds(10);
        assert!(stage.has_process("a"));
    }
    stage.exit("a", 1);
    stage.seconds(10);
    assert!(!stage.has_process("a"));
}

#[test]
fn w10_jobs_that_wait_only_for_one_another_are_completed() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }, \
         { name: 'b', exec: 'x', when: { source: 'c', once: 'healthy' }, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { name: 'c', exec: 'x', when: { source: 'a', once: 'exitSuccess' }, health: { exec: 'd', interval: 5, ttl: 15 } }, \
         { name: 'd', exec: 'x', when: { source: 'main', once: 'exitFailed' } }",
    );
    let told = |job: &str, event: &str| format!("will never run: `{job} {event}` can no longer happen");
    for (job, event) in [("b", "exitSuccess"), ("c", "healthy"), ("a", "exitSuccess")] {
        assert!(stage.log.contains(&told(job, event)), "{:?}", stage.log);
    }
    assert!(!stage.log.contains(&told("main", "exitFailed")));
    stage.exit("main", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w10_a_ring_that_somebody_outside_can_open_is_left_alone() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { any: [{ source: 'b', event: 'exitSuccess' }, { source: 'SIGHUP' }], each: true } }, \
         { name: 'b', exec: 'x', when: { source: 'a', each: 'exitSuccess' } }",
    );
    stage.signal(1);
    stage.exit("a", 0);
    assert!(stage.has_process("b"));
}

#[test]
fn w10_a_watch_that_nobody_here_can_answer_is_not_waited_for() {
    let jobs = "jobs: [{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'watch.db', once: 'healthy' } }] }";
    let mut stage = Stage::new(plan(&format!("{{ watches: [{{ name: 'db', interval: 5 }}], {jobs}")));
    stage.input(containerpilot_core::Input::Ready);
    assert_eq!(stage.status("a").word(), "complete");
    let consul = format!("{{ consul: 'localhost:8500', watches: [{{ name: 'db', interval: 5 }}], {jobs}");
    let mut stage = Stage::new(plan(&consul));
    stage.input(containerpilot_core::Input::Ready);
    assert_eq!(stage.status("a").word(), "waiting", "nobody knows what Consul holds");
}

#[test]
fn w10_a_watch_is_waited_for_as_long_as_its_service_can_come() {
    let mut stage = Stage::new(plan(
        "{ watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'setup', exec: 'x' }, \
           { name: 'db', exec: 'x', port: 80, health: { exec: 'c', interval: 5, ttl: 15 }, when: { source: 'setup', once: 'exitSuccess' } }, \
           { name: 'a', exec: 'x', when: { source: 'watch.db', each: 'unhealthy' } }] }",
    ));
    stage.input(containerpilot_core::Input::Ready);
    stage.exit("setup", 0);
    stage.checked(true);
    stage.instances(1);
    stage.exit("db", 0);
    assert_eq!(stage.status("a").word(), "waiting", "the catalog has not said yet that it is gone");
    stage.instances(0);
    assert!(stage.has_process("a"));
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn w5_w10_a_job_with_a_time_to_be_started_gives_up_then_and_says_so() {
    let mut stage = Stage::running(
        "{ name: 'setup', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { source: 'setup', once: 'exitSuccess', timeout: '5s' } }, \
         { name: 'fallback', exec: 'x', when: { source: 'a', once: 'timerExpired' } }",
    );
    stage.exit("setup", 1);
    stage.seconds(4);
    assert!(!stage.has_process("fallback"));
    stage.seconds(1);
    assert!(stage.has_process("fallback"));
}
