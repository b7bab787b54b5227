//! W1–W14: when a job runs.

use std::time::Duration;

use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::{Input, Request, RequestId, State};

use crate::harness::{Harness, plan};

#[test]
fn w1_without_when_a_job_runs_once_at_startup() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    assert!(harness.take_output().is_empty(), "nothing runs before startup");
    harness.input(Input::Ready);
    assert_eq!(harness.take_output(), ["event global startup", "spawn a"]);
    harness.exit("a", 0);
    assert_eq!(
        harness.take_output(),
        ["event a exitSuccess", "event a stopping", "event a stopped", "event global shutdown", "exit 0"]
    );
}

#[test]
fn w2_once_runs_at_the_first_event_and_each_at_every_event() {
    let mut harness = Harness::running(
        "{ name: 'src', exec: 'x', restarts: 'unlimited', restartBackoff: false }, \
         { name: 'once', exec: 'x', when: { source: 'src', once: 'exitSuccess' } }, \
         { name: 'each', exec: 'x', when: { source: 'src', each: 'exitSuccess' } }",
    );
    harness.take_output();
    harness.exit("src", 0);
    assert_eq!(harness.take_effects(), ["spawn src", "spawn once", "spawn each"]);
    harness.exit("once", 0);
    harness.exit("each", 0);
    harness.take_output();
    harness.exit("src", 0);
    assert_eq!(harness.take_effects(), ["spawn src", "spawn each"]);
    harness.exit("src", 1);
    assert_eq!(harness.take_effects(), ["spawn src"], "other events are ignored");
}

#[test]
fn w3_every_signal_runs_the_job() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }",
    );
    harness.take_output();
    for _ in 0..3 {
        harness.signal(1);
        assert_eq!(harness.take_output(), ["event SIGHUP signal", "spawn hup"]);
        harness.exit("hup", 0);
        harness.take_output();
    }
    harness.signal(12);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
}

#[test]
fn w4_a_periodic_job_runs_at_startup_and_at_every_interval_without_drift() {
    let mut harness = Harness::running("{ name: 'tick', exec: 'x', when: { interval: '10s' } }");
    assert_eq!(harness.take_effects(), ["spawn tick"]);
    for _ in 0..5 {
        harness.millis(2_345);
        harness.exit("tick", 0);
        harness.take_output();
        harness.millis(7_654);
        assert_eq!(harness.take_effects(), [] as [&str; 0], "not before the tick");
        harness.millis(1);
        assert_eq!(harness.take_effects(), ["spawn tick"]);
    }
}

#[test]
fn w4_restarts_limit_the_number_of_further_runs() {
    let mut harness = Harness::running("{ name: 'tick', exec: 'x', when: { interval: '1s' }, restarts: 2 }");
    for _ in 0..3 {
        assert!(harness.has_process("tick"));
        harness.exit("tick", 0);
        harness.seconds(1);
    }
    assert_eq!(harness.exit, Some(0));
    let spawns = harness.take_output().iter().filter(|line| *line == "spawn tick").count();
    assert_eq!(spawns, 3);
}

#[test]
fn w4_a_run_that_lasts_until_the_next_tick_has_timed_out() {
    let mut harness = Harness::running("{ name: 'tick', exec: 'x', when: { interval: '10s' } }");
    harness.take_output();
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["kill tick 9"]);
    harness.exit_on("tick", 9);
    assert_eq!(harness.take_output(), ["event tick exitFailed", "spawn tick"]);
    assert!(
        harness.log.iter().any(|line| line == "tick timeout after 10s: '[]', still running at its next tick"),
        "{:?}",
        harness.log
    );
}

#[test]
fn w4_with_a_longer_timeout_the_tick_is_skipped() {
    for timeout in ["'25s'", "'never'"] {
        let mut harness = Harness::running(&format!(
            "{{ name: 'tick', exec: 'x', timeout: {timeout}, when: {{ interval: '10s' }} }}"
        ));
        harness.take_output();
        harness.seconds(24);
        assert_eq!(harness.take_effects(), [] as [&str; 0]);
        harness.exit("tick", 0);
        harness.take_output();
        harness.seconds(5);
        assert_eq!(harness.take_effects(), [] as [&str; 0]);
        harness.seconds(1);
        assert_eq!(harness.take_effects(), ["spawn tick"], "the next tick is at 30 s");
    }
}

#[test]
fn w4_a_run_by_hand_between_two_ticks_has_its_whole_timeout() {
    let mut harness = Harness::running("{ name: 'tick', exec: 'x', when: { interval: '10s' } }");
    harness.exit("tick", 0);
    harness.seconds(9);
    harness.request(Request::Start(harness.core.job_named("tick").unwrap()));
    harness.take_output();
    harness.seconds(9);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "the tick at 10 s is skipped");
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill tick 9"]);
    harness.exit_on("tick", 9);
    harness.take_output();
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["spawn tick"]);
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["kill tick 9"], "the next run is that of its tick");
}

#[test]
fn w4_ticks_missed_during_a_pause_are_skipped() {
    let mut harness = Harness::running("{ name: 'tick', exec: 'x', when: { interval: '1s' } }");
    harness.exit("tick", 0);
    harness.take_output();
    // The supervisor was paused for an hour (SIGSTOP): one step, much later.
    harness.now = harness.now + std::time::Duration::from_millis(3_600_500);
    harness.input(Input::Tick);
    assert_eq!(harness.take_effects(), ["spawn tick"]);
    harness.exit("tick", 0);
    harness.take_output();
    harness.millis(499);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["spawn tick"]);
}

#[test]
fn w5_a_job_that_is_not_started_in_time_gives_up() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x', health: { exec: 'c', interval: 5, ttl: 10 } }, \
         { name: 'late', exec: 'x', when: { source: 'main', once: 'healthy', timeout: '60s' } }",
    );
    harness.take_output();
    harness.seconds(59);
    assert!(!harness.take_events().iter().any(|event| event.starts_with("late")));
    harness.seconds(1);
    let events: Vec<_> =
        harness.take_events().into_iter().filter(|event| event.starts_with("late")).collect();
    assert_eq!(events, ["late timerExpired", "late stopping", "late stopped"]);
}

#[test]
fn w5_the_start_timeout_ends_when_the_job_starts() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: { once: 'startup', timeout: '5s' } }");
    harness.take_output();
    harness.seconds(60);
    assert!(harness.take_output().is_empty());
}

#[test]
fn w6_restarts_after_success_and_failure_alike() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 2, restartBackoff: false }");
    for code in [0, 1] {
        harness.exit("a", code);
        assert!(harness.has_process("a"));
    }
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w7_one_event_is_kept_while_the_job_runs() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }",
    );
    harness.take_output();
    for _ in 0..5 {
        harness.signal(1);
    }
    assert_eq!(harness.take_effects(), ["spawn hup"]);
    harness.exit("hup", 0);
    assert_eq!(harness.take_effects(), ["spawn hup"], "nothing is lost");
    harness.exit("hup", 0);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "and only one is kept");
}

#[test]
fn w8_restarts_back_off_and_a_long_run_resets_the_delay() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    let mut delays = Vec::new();
    for _ in 0..10 {
        harness.take_output();
        let before = harness.now;
        harness.exit("a", 1);
        while !harness.has_process("a") {
            harness.now = harness.core.next_deadline().unwrap();
            harness.input(Input::Tick);
        }
        delays.push(harness.now.since(before).as_millis());
    }
    assert_eq!(delays, [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    harness.seconds(11);
    harness.take_output();
    harness.exit("a", 1);
    assert_eq!(harness.take_effects(), ["spawn a"], "a run of more than 10 s resets the delay");
}

#[test]
fn w8_without_back_off_there_is_no_delay() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited', restartBackoff: false }");
    for _ in 0..100 {
        harness.exit("a", 1);
        assert!(harness.has_process("a"));
    }
    assert_eq!(harness.core.next_deadline(), None);
}

#[test]
fn w8_a_program_that_cannot_be_started_backs_off_too() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    harness.starts_succeed = false;
    harness.exit("a", 1);
    harness.fail_start("a", StartErrorKind::NotFound);
    assert!(!harness.has_process("a"));
    harness.millis(100);
    assert!(harness.has_process("a"));
}

#[test]
fn w9_a_complete_job_never_runs_again() {
    let mut harness = Harness::running(
        "{ name: 'src', exec: 'x', restarts: 'unlimited', restartBackoff: false }, \
         { name: 'a', exec: 'x', when: { source: 'src', once: 'exitSuccess' } }",
    );
    harness.exit("src", 0);
    harness.exit("a", 0);
    assert!(harness.status("a").state.has_ended());
    for _ in 0..3 {
        harness.exit("src", 0);
        assert!(!harness.has_process("a"));
    }
}

#[test]
fn w10_jobs_that_only_react_do_not_keep_the_supervisor_running() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }, \
         { name: 'maint', exec: 'x', when: { each: 'enterMaintenance' } }",
    );
    assert!(!harness.log.iter().any(|line| line.contains("no job does work")), "{:?}", harness.log);
    harness.exit("main", 0);
    assert_eq!(harness.exit, Some(0));
    let said = "ended, shutting down (this does not keep the container running: hup, maint)";
    assert!(harness.log.iter().any(|line| line.ends_with(said)), "{:?}", harness.log);
}

#[test]
fn w10_the_log_says_what_is_served_without_work() {
    let watches = "consul: 'c', watches: [{ name: 'db', interval: 5 }]";
    let telemetry = "telemetry: {}";
    for (keys, ends, said) in [
        (
            watches,
            true,
            "there are no jobs, shutting down (this does not keep the container running: watch.db)",
        ),
        ("", true, "there are no jobs, shutting down"),
        (telemetry, false, "no job does work; this keeps the container running: telemetry"),
    ] {
        let mut harness = Harness::new(plan(&format!("{{ {keys} }}")));
        harness.input(Input::Ready);
        assert!(harness.log.iter().any(|line| line.ends_with(said)), "{keys}: {:?}", harness.log);
        assert_eq!(harness.exit, ends.then_some(0), "{keys}");
    }
    let reacts: Vec<String> =
        (0..8).map(|n| format!("{{ name: 'j{n}', exec: 'x', when: {{ source: 'SIGHUP' }} }}")).collect();
    let harness = Harness::running(&reacts.join(", "));
    let said = "this keeps the container running: j0, j1, j2, j3, j4, and 3 more";
    assert!(harness.log.iter().any(|line| line.ends_with(said)), "{:?}", harness.log);
}

#[test]
fn w10_jobs_that_only_react_keep_it_running_if_there_are_no_others() {
    let mut harness = Harness::running("{ name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }");
    assert_eq!(harness.exit, None);
    harness.signal(1);
    harness.exit("hup", 0);
    assert_eq!(harness.exit, None);
}

#[test]
fn w10_unreachable_jobs_are_completed_with_a_warning() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed' } }, \
         { name: 'c', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }",
    );
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
    let warned =
        |name: &str| harness.log.iter().filter(|line| line.contains(&format!("never run: `{name} "))).count();
    assert_eq!((warned("a"), warned("b")), (1, 1), "{:?}", harness.log);
}

#[test]
fn w10_a_job_that_waits_for_an_unknown_source_is_unreachable() {
    let harness = Harness::running(
        "{ name: 'b', exec: 'x', when: { source: 'ghost', once: 'healthy' } }, { name: 'n', exec: 'x', when: {} }",
    );
    assert_eq!(harness.exit, Some(1));
}

#[test]
fn s5_a_container_whose_work_never_ran_has_failed() {
    let never = "{ name: 'web', exec: 'x', when: { source: 'ghost', once: 'healthy' } }";
    let late = "{ name: 'web', exec: 'x', when: { source: 'watch.db', once: 'healthy', timeout: '2s' } }";
    let hook = "{ name: 'bye', exec: 'x', when: { once: 'shutdown' } }";
    let said = |harness: &Harness, why: &str| {
        let last = format!("exiting with code 1: no job has run: web was skipped: {why}");
        let entry = harness.last_entry.as_ref().map(|entry| entry.message.as_str());
        assert_eq!((harness.exit, entry), (Some(1), Some(last.as_str())));
    };
    said(&Harness::running(never), "its event can no longer happen");
    let text = format!("{{ consul: 'c', watches: [{{ name: 'db', interval: 1 }}], jobs: [{late}, {hook}] }}");
    let mut harness = Harness::new(plan(&text));
    harness.input(Input::Ready);
    harness.seconds(2);
    harness.exit("bye", 0);
    said(&harness, "not started within its `when.timeout`");
    // Other work has run.
    let mut harness = Harness::running(&format!("{never}, {{ name: 'a', exec: 'x' }}"));
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
    // It has run before it was skipped.
    let bound = "{ name: 'web', exec: 'x', requires: [{ source: 'db', bind: true }] }, \
                 { name: 'db', exec: 'x', restarts: 1, health: { exec: 'c', interval: 1, ttl: 5 } }";
    let mut harness = Harness::running(bound);
    harness.finish_check(true);
    harness.exit("db", 0);
    harness.exit_on("web", 15);
    harness.exit("db", 0);
    assert_eq!(harness.exit, Some(0), "{:?}", harness.log);
}

#[test]
fn w10_the_telemetry_job_does_not_keep_the_supervisor_running() {
    let mut harness = Harness::new(plan("{ telemetry: {}, jobs: [{ name: 'a', exec: 'x' }] }"));
    harness.input(Input::Ready);
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w11_a_job_without_exec_is_never_complete_by_itself() {
    let mut harness =
        Harness::running("{ name: 'web', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } }");
    assert_eq!(harness.take_effects(), ["check check.web"]);
    harness.finish_check(true);
    assert_eq!(
        harness.take_output(),
        ["event web healthy", "event web becameHealthy", "advertise web passing"]
    );
    harness.seconds(1_000);
    assert_eq!(harness.exit, None);
    harness.signal(15);
    assert!(harness.exit.is_some());
}

#[test]
fn w12_all_runs_when_every_condition_holds_and_healthy_can_end() {
    let mut harness = Harness::new(plan(
        "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'setup', exec: 'x' }, \
           { name: 'a', exec: 'x', when: { all: [{ source: 'setup', event: 'exitSuccess' }, { source: 'watch.db', event: 'healthy' }], each: true } }] }",
    ));
    harness.input(Input::Ready);
    harness.instances(1);
    harness.instances(0);
    harness.exit("setup", 0);
    assert!(!harness.has_process("a"), "the database is no longer healthy");
    harness.instances(2);
    assert!(harness.has_process("a"));
    harness.exit("a", 0);
    harness.instances(0);
    harness.instances(1);
    assert!(harness.has_process("a"), "each time they start to hold");
}

#[test]
fn w12_any_runs_at_any_of_the_events() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { any: [{ source: 'SIGHUP' }, { source: 'SIGUSR2' }], each: true } }",
    );
    for signal in [12, 1] {
        harness.signal(signal);
        assert!(harness.has_process("a"));
        harness.exit("a", 0);
    }
}

#[test]
fn w6_each_event_starts_a_job_with_all_restarts() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', restarts: 1, restartBackoff: false, when: { source: 'SIGHUP' } }",
    );
    for _ in 0..3 {
        harness.take_output();
        harness.signal(1);
        harness.exit("a", 1);
        harness.exit("a", 1);
        assert_eq!(harness.take_effects(), ["spawn a", "spawn a"]);
    }
}

#[test]
fn w7_w8_an_event_during_the_restart_delay_uses_no_restart() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', restarts: 2, when: { source: 'SIGHUP' } }",
    );
    harness.signal(1);
    harness.exit("a", 1);
    harness.exit("a", 1);
    assert!(!harness.has_process("a"), "the second restart is delayed");
    harness.signal(1);
    assert!(harness.has_process("a"), "an event starts it at once");
    assert_eq!(harness.status("a").restarts, 0);
    for _ in 0..2 {
        harness.exit("a", 1);
        harness.seconds(10);
        assert!(harness.has_process("a"));
    }
    harness.exit("a", 1);
    harness.seconds(10);
    assert!(!harness.has_process("a"));
}

#[test]
fn w10_jobs_that_wait_only_for_each_other_are_completed() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }, \
         { name: 'b', exec: 'x', when: { source: 'c', once: 'healthy' }, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { name: 'c', exec: 'x', when: { source: 'a', once: 'exitSuccess' }, health: { exec: 'd', interval: 5, ttl: 15 } }, \
         { name: 'd', exec: 'x', when: { source: 'main', once: 'exitFailed' } }",
    );
    let warning = |job: &str, event: &str| format!("will never run: `{job} {event}` can no longer happen");
    for (job, event) in [("b", "exitSuccess"), ("c", "healthy"), ("a", "exitSuccess")] {
        assert!(harness.log.contains(&warning(job, event)), "{:?}", harness.log);
    }
    assert!(!harness.log.contains(&warning("main", "exitFailed")));
    harness.exit("main", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w10_a_cycle_that_another_job_can_start_is_reachable() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { any: [{ source: 'b', event: 'exitSuccess' }, { source: 'SIGHUP' }], each: true } }, \
         { name: 'b', exec: 'x', when: { source: 'a', each: 'exitSuccess' } }",
    );
    harness.signal(1);
    harness.exit("a", 0);
    assert!(harness.has_process("b"));
}

#[test]
fn w10_a_watch_without_advertisers_is_unreachable() {
    let jobs = "jobs: [{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'watch.db', once: 'healthy' } }] }";
    let mut harness = Harness::new(plan(&format!("{{ watches: [{{ name: 'db', interval: 5 }}], {jobs}")));
    harness.input(Input::Ready);
    assert_eq!(harness.status("a").word(), "skipped");
    let consul = format!("{{ consul: 'localhost:8500', watches: [{{ name: 'db', interval: 5 }}], {jobs}");
    let mut harness = Harness::new(plan(&consul));
    harness.input(Input::Ready);
    assert_eq!(harness.status("a").word(), "waiting", "any instance may appear in Consul");
}

#[test]
fn w10_a_watch_is_reachable_while_its_service_can_appear() {
    let mut harness = Harness::new(plan(
        "{ watches: [{ name: 'db', interval: 5 }], jobs: [{ name: 'setup', exec: 'x' }, \
           { name: 'db', exec: 'x', port: 80, health: { exec: 'c', interval: 5, ttl: 15 }, when: { source: 'setup', once: 'exitSuccess' } }, \
           { name: 'a', exec: 'x', when: { source: 'watch.db', each: 'unhealthy' } }] }",
    ));
    harness.input(Input::Ready);
    harness.exit("setup", 0);
    harness.finish_check(true);
    harness.instances(1);
    harness.exit("db", 0);
    assert_eq!(harness.status("a").word(), "waiting", "the catalog has not reported it as gone");
    harness.instances(0);
    assert!(harness.has_process("a"));
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w5_w10_a_job_with_a_start_timeout_waits_for_it_and_sends_timer_expired() {
    let mut harness = Harness::running(
        "{ name: 'setup', exec: 'x' }, \
         { name: 'a', exec: 'x', when: { source: 'setup', once: 'exitSuccess', timeout: '5s' } }, \
         { name: 'fallback', exec: 'x', when: { source: 'a', once: 'timerExpired' } }",
    );
    harness.exit("setup", 1);
    harness.seconds(4);
    assert!(!harness.has_process("fallback"));
    harness.seconds(1);
    assert!(harness.has_process("fallback"));
}

#[test]
fn w3_a_signal_during_a_shutdown_is_not_an_event() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGHUP' } }");
    harness.signal(15);
    harness.take_output();
    harness.signal(1);
    assert_eq!(harness.take_output(), [] as [&str; 0]);
}

#[test]
fn w7_p3_events_during_a_start_that_times_out_lead_to_one_further_run() {
    let mut harness =
        Harness::jobs("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGHUP' } }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.input(Input::Started { run: RunId(1), pid: 7 });
    harness.signal(1);
    harness.signal(1);
    harness.take_output();
    // The third one comes in the same step as the timeout, before it.
    harness.now = harness.now + Duration::from_secs(10);
    harness.signal(1);
    assert_eq!(harness.take_effects(), ["cancel b", "spawn b"]);
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["cancel b"]);
}

#[test]
fn w8_restarts_are_counted_in_the_log() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    harness.exit("a", 1);
    harness.exit("a", 1);
    harness.seconds(1);
    harness.exit("a", 1);
    let attempts: Vec<&str> =
        harness.log.iter().filter(|line| line.contains("attempt")).map(String::as_str).collect();
    assert_eq!(
        attempts,
        ["restarting (attempt 1)", "restarting in 100ms (attempt 2)", "restarting in 200ms (attempt 3)"]
    );
}

#[test]
fn w1_the_log_names_no_cause_for_a_start_at_startup() {
    let harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGUSR2' } }");
    assert!(harness.log.iter().any(|line| line == "started (pid 101)"), "{:?}", harness.log);
}

/// How often jobs start within a minute if every run fails at once.
fn starts_in_a_minute(jobs: &str) -> usize {
    let mut harness = Harness::running(&format!("{{ name: 'keep', exec: 'x' }}, {jobs}"));
    let end = harness.now + Duration::from_secs(60);
    loop {
        let names: Vec<String> =
            ["a", "b"].iter().filter(|name| harness.has_process(name)).map(|name| (*name).into()).collect();
        if let Some(name) = names.first() {
            harness.exit(name, 1);
            continue;
        }
        match harness.core.next_deadline().filter(|next| *next <= end) {
            Some(next) => harness.pass(next.since(harness.now)),
            None => break,
        }
        assert!(harness.output.len() < 10_000, "it starts without end");
    }
    harness.take_effects().iter().filter(|line| **line == "spawn a").count()
}

#[test]
fn w14_a_job_that_triggers_itself_is_spaced_by_its_backoff() {
    let startup = "{ source: 'global', event: 'startup' }";
    let itself = format!(
        "{{ name: 'a', exec: 'x', when: {{ any: [{startup}, {{ source: 'a', event: 'exitFailed' }}], each: true }}"
    );
    // At once, at once, and then after 0.1 s, 0.2 s … 6.4 s, and every 10 s.
    let expected = 2 + 7 + 4;
    assert_eq!(starts_in_a_minute(&format!("{itself} }}")), expected);
    assert_eq!(starts_in_a_minute(&format!("{itself}, restarts: 1 }}")), expected, "restarts count, too");
    let ring = format!(
        "{{ name: 'a', exec: 'x', when: {{ any: [{startup}, {{ source: 'b', event: 'exitFailed' }}], each: true }} }},
         {{ name: 'b', exec: 'x', when: {{ source: 'a', each: 'exitFailed' }} }}"
    );
    let starts = starts_in_a_minute(&ring);
    assert!((5..=expected).contains(&starts), "{starts}");
}

#[test]
fn w14_an_event_of_another_job_starts_it_at_once() {
    let text = "{ name: 'keep', exec: 'x' }, { name: 'a', exec: 'x', when: { any: [
        { source: 'SIGHUP' }, { source: 'a', event: 'exitFailed' }], each: true } }";
    let mut harness = Harness::running(text);
    harness.signal(1);
    harness.exit("a", 1);
    harness.exit("a", 1);
    assert_eq!(harness.status("a").state, State::Delaying);
    assert!(harness.log.contains(&"triggered by its own events, starting in 100ms".into()));
    harness.signal(1);
    assert!(harness.has_process("a"));
    harness.exit("a", 0);
    harness.seconds(60);
    assert!(!harness.has_process("a"), "the event in the delay was served by that run");
}

/// The warnings that nothing can happen any more.
fn deadlocks(harness: &Harness) -> Vec<&String> {
    harness.log.iter().filter(|message| message.starts_with("nothing can happen")).collect()
}

#[test]
fn w10_jobs_that_wait_for_each_other_to_stop_are_reported_once() {
    let jobs = "{ name: 'a', exec: 'x', when: { source: 'b', once: 'stopped' } },
        { name: 'b', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    let mut harness = Harness::running(jobs);
    let why = "nothing can happen any more: a waits for b stopped, b waits for a stopping";
    assert_eq!(deadlocks(&harness), [&format!("{why}; change `when` of one of them")]);
    assert_eq!(harness.core.next_deadline(), None, "it does not wake up for that");
    let overview = harness.core.overview();
    assert_eq!((overview.health().healthy, overview.health().reason), (false, why.into()));
    assert_eq!(overview.not_ready(), [why]);
    harness.seconds(600);
    assert_eq!(deadlocks(&harness).len(), 1);
    // A command makes something happen.
    harness.request(Request::Start(JobIx(0)));
    assert!(harness.core.overview().health().healthy);
    harness.exit("a", 0);
    harness.exit("b", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w10_nothing_is_reported_while_something_can_happen() {
    let waits = "{ name: 'a', exec: 'x', when: { source: 'web', once: 'stopped' } }";
    let others = [
        "{ name: 'web', exec: 'x' }",
        "{ name: 'web', exec: 'x', when: { interval: '1h' } }",
        "{ name: 'web', exec: 'x', when: { source: 'SIGHUP' } }",
        "{ name: 'web', exec: 'x', when: { once: 'enterMaintenance' } }",
        "{ name: 'web', exec: 'x', when: { once: 'shutdown' } }",
        "{ name: 'web', exec: 'x', when: { source: 'a', once: 'stopped', timeout: '1h' } }",
        "{ name: 'web', port: 80, health: { tcp: 'h:1', interval: 1, ttl: 5 } }",
    ];
    for other in others {
        let mut harness = Harness::running(&format!("{waits}, {other}"));
        harness.seconds(1);
        assert!(deadlocks(&harness).is_empty() && harness.core.deadlock().is_none(), "{other}");
    }
    let mut harness = Harness::running(&format!("{waits}, {}", others[0]));
    harness.request(Request::Stop(JobIx(1)));
    assert!(harness.core.deadlock().is_none(), "{:?}", harness.log);
}

#[test]
fn w9_the_stop_of_a_job_without_a_process_comes_after_its_hooks() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'SIGUSR2', timeout: '1s' } },
         { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } },
         { name: 'after', exec: 'x', when: { source: 'a', once: 'stopped' } }",
    );
    harness.seconds(1);
    assert_eq!(harness.status("after").word(), "waiting");
    harness.exit("hook", 0);
    assert!(harness.has_process("after"), "{:?}", harness.log);
}

#[test]
fn w10_nothing_is_reported_during_a_reload() {
    let text = |coprocess: &str| {
        format!(
            "{{ jobs: [{{ name: 'a', exec: 'x', when: {{ source: 'b', once: 'stopped' }} }},
                      {{ name: 'b', exec: 'x', when: {{ source: 'a', once: 'stopping' }} }}],
               coprocesses: [{{ name: 'c', command: '{coprocess}' }}] }}"
        )
    };
    let mut harness = Harness::new(plan(&text("x")));
    harness.input(Input::Ready);
    assert!(harness.core.deadlock().is_some());
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(plan(&text("y")))) });
    assert!(harness.core.deadlock().is_none(), "the coprocess stops");
    harness.exit("c", 0);
    assert!(harness.core.deadlock().is_some());
}
