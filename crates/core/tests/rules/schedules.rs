//! W15–W17: times of day, schedules that an event starts, and jobs that only a user starts.

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::Level;
use containerpilot_core::{Input, Outcome, Reply, Request, SkipReason, State};

use crate::harness::{Harness, plan};

const A: JobIx = JobIx(0);
const NONE: [&str; 0] = [];

/// Seconds since 1970.
fn unix(time: &str) -> u64 {
    time.parse::<jiff::Timestamp>().unwrap().as_second().try_into().unwrap()
}

fn set_clock(harness: &mut Harness, time: &str) {
    harness.input(Input::Clock { unix: Duration::from_secs(unix(time)), asleep: Duration::ZERO });
}

/// The jobs in the text after startup, at a time of the system clock.
fn running_at(time: &str, jobs: &str) -> Harness {
    let mut harness = Harness::jobs(jobs);
    set_clock(&mut harness, time);
    harness.input(Input::Ready);
    harness
}

/// The effects until so many seconds have passed.
fn after(harness: &mut Harness, seconds: u64) -> Vec<String> {
    harness.seconds(seconds);
    harness.take_effects()
}

#[test]
fn w15_a_job_runs_at_its_times_and_not_at_startup() {
    let mut harness =
        running_at("2026-11-16T02:59:30Z", "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }");
    assert_eq!(harness.take_effects(), NONE);
    assert_eq!(after(&mut harness, 29), NONE);
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
    assert_eq!(harness.fields_of("started").cause.as_deref(), Some("cron"));
    let event = harness.environment.iter().find(|(name, _)| *name == "CONTAINERPILOT_EVENT");
    assert_eq!(event, Some(("CONTAINERPILOT_EVENT", "startup")));
    harness.exit("a", 1);
    assert_eq!(harness.status("a").state, State::Waiting, "a failed run is no end");
    assert_eq!(after(&mut harness, 86_399), NONE);
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
}

#[test]
fn w15_the_time_zone_decides() {
    let job = "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } }";
    let mut harness = running_at("2026-11-16T01:59:59Z", job);
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
}

#[test]
fn w15_a_run_that_lasts_too_long_is_not_interrupted_and_the_time_is_skipped() {
    let mut harness =
        running_at("2026-11-16T02:59:00Z", "{ name: 'a', exec: 'x', when: { cron: '* * * * *' } }");
    assert_eq!(after(&mut harness, 60), ["spawn a"]);
    assert_eq!(after(&mut harness, 150), NONE);
    assert_eq!(
        harness.level_of("still running at 2026-11-16T03:02:00Z, skipped this run"),
        Some(Level::Warn)
    );
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), NONE, "missed times are not made up");
    assert_eq!(after(&mut harness, 30), ["spawn a"]);
}

#[test]
fn w15_restarts_limit_the_number_of_further_runs() {
    let job = "{ name: 'a', exec: 'x', restarts: 1, when: { cron: '* * * * *' } }";
    let mut harness = running_at("2026-11-16T03:00:00Z", job);
    for _ in 0..2 {
        assert_eq!(after(&mut harness, 60), ["spawn a"]);
        harness.exit("a", 0);
    }
    assert_eq!(harness.exit, Some(0), "the last run was the last work");
}

#[test]
fn w15_a_time_that_passed_while_the_machine_slept_is_made_up_once() {
    let mut harness =
        running_at("2026-11-16T02:30:00Z", "{ name: 'a', exec: 'x', when: { cron: '0 * * * *' } }");
    harness.seconds(60);
    // Its clock stood still for five hours.
    set_clock(&mut harness, "2026-11-16T07:45:00Z");
    assert_eq!(harness.take_effects(), ["spawn a"]);
    harness.exit("a", 0);
    assert_eq!(after(&mut harness, 15 * 60 - 1), NONE, "once");
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
}

#[test]
fn w15_a_clock_that_is_set_back_runs_no_time_twice() {
    let mut harness =
        running_at("2026-11-16T02:00:00Z", "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }");
    assert_eq!(after(&mut harness, 3_600), ["spawn a"]);
    harness.exit("a", 0);
    set_clock(&mut harness, "2026-11-16T02:59:00Z");
    assert_eq!(after(&mut harness, 86_400), NONE, "03:00 comes again and is no run");
    assert_eq!(after(&mut harness, 60), ["spawn a"], "on the next day it is");
}

#[test]
fn w15_a_clock_that_is_set_moves_the_next_time() {
    let mut harness =
        running_at("2026-11-16T02:00:00Z", "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }");
    set_clock(&mut harness, "2026-11-16T02:50:00Z");
    assert_eq!(after(&mut harness, 599), NONE);
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
    harness.exit("a", 0);
    // A clock that was years ahead at the start.
    let mut harness =
        running_at("2038-01-01T00:00:00Z", "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }");
    assert_eq!(after(&mut harness, 3 * 3_600), ["spawn a"]);
    harness.exit("a", 0);
    set_clock(&mut harness, "2026-11-16T02:59:00Z");
    assert_eq!(after(&mut harness, 60), ["spawn a"]);
}

#[test]
fn w15_r5_times_that_a_reload_adds_count_from_a_clock_that_was_set_back() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', restarts: N, when: { cron: '0 3 * * *' } }] }";
    let mut harness = Harness::new(plan(&text.replace('N', "0")));
    set_clock(&mut harness, "2038-01-01T00:00:00Z");
    harness.input(Input::Ready);
    assert_eq!(after(&mut harness, 3 * 3_600), ["spawn a"]);
    set_clock(&mut harness, "2026-11-16T02:59:00Z");
    harness.request(Request::Reload(Box::new(plan(&text.replace('N', "1")))));
    harness.exit("a", 0);
    harness.take_output();
    assert_eq!(after(&mut harness, 60), ["spawn a"]);
}

#[test]
fn w15_r5_times_that_a_reload_adds_after_a_clock_was_set_back_do_not_come_twice() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', restarts: N, when: { cron: '* * * * *' } }] }";
    let mut harness = Harness::new(plan(&text.replace('N', "0")));
    set_clock(&mut harness, "2026-11-16T02:00:30Z");
    harness.input(Input::Ready);
    set_clock(&mut harness, "2026-11-16T03:00:30Z");
    assert_eq!(harness.take_effects(), ["spawn a"], "the times of an hour are made up once");
    set_clock(&mut harness, "2026-11-16T02:59:30Z");
    harness.request(Request::Reload(Box::new(plan(&text.replace('N', "1")))));
    harness.exit("a", 0);
    harness.take_output();
    assert_eq!(after(&mut harness, 89), NONE, "03:00 comes again and is no run");
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
}

/// The only run was started by hand, so that there was no next time when the schedule started.
#[test]
fn w15_r5_times_that_a_reload_adds_count_from_the_start_of_the_schedule() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', restarts: N, when: { cron: '* * * * *' } }] }";
    let mut harness = Harness::new(plan(&text.replace('N', "0")));
    set_clock(&mut harness, "2026-11-16T02:50:00Z");
    harness.input(Input::Ready);
    harness.request(Request::Start(A));
    set_clock(&mut harness, "2026-11-16T03:00:10Z");
    harness.request(Request::Reload(Box::new(plan(&text.replace('N', "1")))));
    harness.exit("a", 0);
    harness.take_output();
    set_clock(&mut harness, "2026-11-16T02:59:50Z");
    assert_eq!(after(&mut harness, 69), NONE, "03:00 had come");
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
}

#[test]
fn w15_the_next_time_is_reported_in_utc_with_the_zone() {
    let job = "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } }";
    let harness = running_at("2026-11-16T01:00:00Z", job);
    let cron = harness.core.job_overview(A).cron.unwrap();
    assert_eq!((cron.text.as_str(), cron.zone.as_str()), ("0 3 * * *", "Europe/Berlin"));
    assert_eq!(cron.next, Some(unix("2026-11-16T02:00:00Z")));
    let explained = harness.core.explain(A, None).to_string();
    assert!(
        explained.contains("next run in 1h0m0s, at 2026-11-16T02:00:00Z (0 3 * * *, Europe/Berlin)"),
        "{explained}"
    );
}

#[test]
fn w15_a_reload_keeps_an_unchanged_schedule() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }EXTRA] }";
    let mut harness = Harness::new(plan(&text.replace("EXTRA", "")));
    set_clock(&mut harness, "2026-11-16T02:00:00Z");
    harness.input(Input::Ready);
    harness.seconds(60);
    let new = plan(&text.replace("EXTRA", ", { name: 'b', exec: 'x', when: { cron: '30 2 * * *' } }"));
    harness.request(Request::Reload(Box::new(new)));
    harness.take_output();
    assert_eq!(after(&mut harness, 29 * 60), ["spawn b"]);
    assert_eq!(after(&mut harness, 30 * 60), ["spawn a"]);
}

#[test]
fn w15_a_run_by_hand_leaves_the_times_as_they_are() {
    let mut harness =
        running_at("2026-11-16T02:00:00Z", "{ name: 'a', exec: 'x', when: { cron: '0 3 * * *' } }");
    harness.request(Request::Start(A));
    harness.exit("a", 0);
    harness.take_output();
    assert_eq!(after(&mut harness, 3_600), ["spawn a"]);
}

#[test]
fn w16_an_event_starts_an_interval() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: { interval: '10s', source: 'b', once: 'exitSuccess' } }, \
         { name: 'b', exec: 'x', restarts: 1, restartBackoff: false }",
    );
    assert_eq!(harness.take_effects(), ["spawn b"]);
    assert_eq!(after(&mut harness, 60), NONE);
    harness.exit("b", 0);
    assert_eq!(harness.take_effects(), ["spawn b", "spawn a"]);
    harness.exit("a", 0);
    harness.seconds(4);
    harness.exit("b", 0);
    harness.take_output();
    assert_eq!(after(&mut harness, 5), NONE, "the second event starts nothing");
    assert_eq!(after(&mut harness, 1), ["spawn a"]);
    harness.exit("a", 0);
    assert_eq!(harness.exit, None, "the schedule goes on without its source");
}

#[test]
fn w16_an_event_starts_a_cron_schedule() {
    let mut harness = running_at(
        "2026-11-16T02:59:00Z",
        "{ name: 'a', exec: 'x', when: { cron: '0 * * * *', source: 'b', once: 'exitSuccess', timeout: '2h' } }, \
         { name: 'b', exec: 'x' }",
    );
    harness.take_output();
    assert_eq!(after(&mut harness, 120), NONE, "03:00 was before the event");
    harness.exit("b", 0);
    assert_eq!(harness.status("a").state, State::Waiting);
    assert_eq!(harness.core.job_overview(A).waits_for.len(), 0);
    harness.take_output();
    assert_eq!(after(&mut harness, 59 * 60), ["spawn a"]);
    let event = harness.environment.iter().find(|(name, _)| *name == "CONTAINERPILOT_EVENT");
    assert_eq!(event, Some(("CONTAINERPILOT_EVENT", "exitSuccess")));
}

#[test]
fn w16_a_schedule_whose_event_does_not_come_gives_up() {
    let mut harness = running_at(
        "2026-11-16T02:59:00Z",
        "{ name: 'a', exec: 'x', when: { cron: '* * * * *', source: 'b', once: 'healthy', timeout: '90s' } }, \
         { name: 'b', exec: 'x', health: { exec: 'y', interval: 1000, ttl: 2000 } }",
    );
    harness.take_output();
    harness.seconds(90);
    assert_eq!(harness.status("a").state, State::Ended(Outcome::Skipped(SkipReason::StartTimeout)));
    // With an event that can no longer come it is skipped.
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: { interval: 5, source: 'b', once: 'exitSuccess' } }, \
         { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }",
    );
    harness.exit("b", 1);
    assert_eq!(harness.status("a").state, State::Ended(Outcome::Skipped(SkipReason::Unreachable)));
}

#[test]
fn w17_only_a_user_starts_a_manual_job_again_and_again() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', when: 'manual' }, { name: 'b', exec: 'x' }, \
         { name: 'c', exec: 'x', when: { source: 'a', each: 'exitSuccess' } }",
    );
    assert_eq!(harness.take_effects(), ["spawn b"]);
    assert_eq!(after(&mut harness, 3_600), NONE);
    let explained = harness.core.explain(A, None).to_string();
    assert!(explained.contains("a: manual: start it with `start a`"), "{explained}");
    for request in [Request::Start(A), Request::Start(A), Request::Restart(A)] {
        assert_eq!(harness.request(request), Reply::Done("starting".into()));
        assert_eq!(harness.take_effects(), ["spawn a"]);
        assert_eq!(harness.fields_of("started").cause.as_deref(), Some("start by hand"));
        harness.exit("a", 0);
        assert_eq!(harness.take_effects(), ["spawn c"]);
        harness.exit("c", 0);
        assert_eq!(harness.status("a").state, State::Waiting);
        harness.take_output();
    }
}

#[test]
fn w17_a_manual_job_holds_the_supervisor_open_only_while_it_runs() {
    let jobs = "{ name: 'a', exec: 'x', when: 'manual', restarts: 1 }, { name: 'b', exec: 'x' }";
    let mut harness = Harness::running(jobs);
    harness.exit("b", 0);
    assert_eq!(harness.exit, Some(0));
    assert_eq!(harness.status("a").state, State::Ended(Outcome::Skipped(SkipReason::Shutdown)));

    let mut harness = Harness::running(jobs);
    harness.request(Request::Start(A));
    harness.exit("b", 0);
    assert_eq!(harness.exit, None);
    harness.exit("a", 3);
    assert_eq!(harness.exit, None, "it is restarted");
    harness.exit("a", 3);
    assert_eq!(harness.exit, Some(0), "its failure is not that of the container");
}

#[test]
fn w17_a_supervisor_with_manual_jobs_only_stays() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: 'manual' }");
    assert_eq!(harness.core.deadlock(), None);
    harness.seconds(3_600);
    harness.request(Request::Start(A));
    harness.exit("a", 1);
    assert_eq!((harness.exit, harness.status("a").state), (None, State::Waiting));
    harness.signal(15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w17_the_end_of_a_manual_run_ends_the_container_if_the_job_says_so() {
    for (key, code, expected) in
        [("onFailure", 7, Some(7)), ("onFailure", 0, None), ("onSuccess", 0, Some(0))]
    {
        let job = format!(
            "{{ name: 'a', exec: 'x', when: 'manual', {key}: 'shutdown' }}, {{ name: 'b', exec: 'x' }}"
        );
        let mut harness = Harness::running(&job);
        harness.request(Request::Start(A));
        harness.exit("a", code);
        if expected.is_some() {
            harness.exit_on("b", 15);
        }
        assert_eq!(harness.exit, expected, "{key} {code}");
    }
}

#[test]
fn w16_w10_the_event_of_a_schedule_ends_its_start_timeout() {
    let mut harness = running_at(
        "2026-11-16T02:59:00Z",
        "{ name: 'a', exec: 'x', when: { cron: '0 4 * * *', source: 'SIGHUP', once: true, timeout: '90s' } }, \
         { name: 'late', exec: 'x', when: { source: 'a', once: 'timerExpired' } }, { name: 'b', exec: 'x' }",
    );
    harness.signal(1);
    assert_eq!(harness.status("late").state, State::Ended(Outcome::Skipped(SkipReason::Unreachable)));
    harness.seconds(90);
    assert_eq!(harness.status("a").state, State::Waiting);
}
