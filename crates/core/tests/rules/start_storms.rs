//! P14: at most 64 processes are being started at a time.

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::input::{RenderedText, StartErrorKind};
use containerpilot_core::plan::Signal;
use containerpilot_core::report::status::ReportedState;
use containerpilot_core::request::{Refusal, Reply, Request};
use containerpilot_core::{Effect, Input, Outcome, SkipReason, State};

use crate::files::{plan_with, tested};
use crate::harness::{Harness, plan};

/// Jobs `j0` to `jN` that start at startup, after which no process has executed its program. `more` is added to each.
fn storm(jobs: usize, more: &str) -> Harness {
    let jobs: Vec<String> = (0..jobs).map(|nth| format!("{{ name: 'j{nth}', exec: 'x', {more} }}")).collect();
    let mut harness = Harness::jobs(&jobs.join(","));
    harness.starts_succeed = false;
    harness
}

/// The same with another bound, after startup.
fn small_storm(jobs: usize, most: usize) -> Harness {
    let mut harness = storm(jobs, "");
    harness.core.set_most_starts(most);
    harness.input(Input::Ready);
    harness
}

/// The jobs that were started since the last call.
fn spawned(harness: &mut Harness) -> Vec<String> {
    let output = harness.take_output();
    output.iter().filter_map(|line| line.strip_prefix("spawn ")).map(str::to_owned).collect()
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|nth| format!("j{nth}")).collect()
}

fn explain(harness: &Harness, job: u32) -> (String, Vec<String>) {
    let explanation = harness.core.explain(JobIx(job), None);
    (explanation.summary, explanation.waits.into_iter().map(|reason| reason.sentence).collect())
}

#[test]
fn p14_of_many_starts_64_are_in_progress_and_the_others_follow_in_order() {
    let mut harness = storm(1_000, "");
    harness.input(Input::Ready);
    assert_eq!(spawned(&mut harness), names(0..64));
    assert_eq!(harness.status("j64").state, State::Queued);
    for nth in 0..936 {
        // Whichever starts makes room for the next.
        let done = if nth % 2 == 0 { nth } else { nth ^ 2 };
        match nth % 3 {
            0 => harness.fail_start(&format!("j{done}"), StartErrorKind::NotFound),
            _ => harness.start(&format!("j{done}")),
        }
        assert_eq!(spawned(&mut harness), names(nth + 64..nth + 65));
    }
    assert!(!harness.core.starts_wait());
}

#[test]
fn p14_a_start_that_has_hung_for_a_second_keeps_no_other_waiting() {
    let mut harness = small_storm(5, 2);
    assert_eq!(spawned(&mut harness), names(0..2));
    harness.millis(400);
    harness.start("j0");
    assert_eq!(spawned(&mut harness), names(2..3));
    harness.millis(599);
    assert_eq!(spawned(&mut harness), names(0..0));
    harness.millis(1);
    assert_eq!(spawned(&mut harness), names(3..4), "j1 hangs");
    harness.millis(399);
    assert_eq!(spawned(&mut harness), names(0..0));
    harness.millis(1);
    assert_eq!(spawned(&mut harness), names(4..5), "j2 hangs");
    // It does not make room a second time.
    harness.start("j1");
    assert!(harness.status("j1").pid.is_some());
}

#[test]
fn p14_the_time_of_a_start_counts_from_the_creation_of_its_process() {
    let mut harness = small_storm(2, 1);
    harness.millis(999);
    assert_eq!(spawned(&mut harness), names(0..1));
    harness.millis(1);
    assert_eq!(spawned(&mut harness), names(1..2));
    harness.millis(8_999);
    assert_eq!(harness.status("j0").state, State::Starting);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel j0"]);
    harness.millis(999);
    assert_eq!(harness.status("j1").state, State::Starting);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel j1", "exit 125"]);
    assert!(
        harness.log.iter().any(|line| line.contains("did not reach exec within 10s")),
        "{:?}",
        harness.log
    );
}

#[test]
fn p14_what_a_process_has_reported_is_read_before_its_time_is_judged() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    (harness.starts_succeed, harness.is_late) = (false, true);
    harness.input(Input::Ready);
    harness.seconds(60);
    assert_eq!(harness.status("a").state, State::Running);
    assert_eq!(harness.take_effects(), ["spawn a"]);
    // An answer that comes after the start changes nothing.
    let run = harness.status("a").run.unwrap();
    harness.input(Input::StartDelayed { run });
    assert_eq!(harness.take_effects(), [] as [&str; 0], "it had no processor, and gets its time again");
    harness.millis(9_999);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    harness.input(Input::StartPending { run });
    assert_eq!(harness.status("a").state, State::Running);
}

#[test]
fn p14_a_start_that_is_stopped_before_its_turn_never_happens() {
    let mut harness = small_storm(3, 1);
    harness.take_output();
    let stopped = harness.request(Request::Stop(JobIx(1)));
    assert_eq!(stopped, Reply::Done("stopped".into()));
    assert_eq!(harness.take_output(), ["event j1 stopping", "event j1 stopped"]);
    assert_eq!(harness.status("j1").state, State::Ended(Outcome::Stopped));
    harness.start("j0");
    assert_eq!(spawned(&mut harness), names(2..3));
    // It loses its place in the order.
    harness.request(Request::Stop(JobIx(2)));
    let mut harness = small_storm(4, 1);
    harness.take_output();
    harness.request(Request::Stop(JobIx(1)));
    harness.request(Request::Start(JobIx(1)));
    harness.take_output();
    for job in ["j0", "j2", "j3"] {
        harness.start(job);
    }
    assert_eq!(spawned(&mut harness), ["j2", "j3", "j1"]);
}

#[test]
fn p14_a_job_that_waits_for_its_turn_is_already_starting() {
    let mut harness = small_storm(2, 1);
    for request in [Request::Start(JobIx(1)), Request::Restart(JobIx(1))] {
        assert_eq!(harness.request(request), Reply::Done("already starting".into()));
    }
    let signal = harness.request(Request::Signal(JobIx(1), Signal::TERM));
    assert_eq!(signal, Reply::Refused(Refusal::NotRunning));
    assert_eq!(harness.status("j1").reported(), ReportedState::Starting);
    let (summary, waits) = explain(&harness, 1);
    assert_eq!(summary, "j1: waiting for its turn to start");
    assert_eq!(waits, ["1 process is being started; it is next"]);
}

#[test]
fn p14_explain_says_how_many_starts_come_first() {
    let harness = small_storm(5, 2);
    assert_eq!(explain(&harness, 3).1, ["2 processes are being started; 1 other start comes first"]);
    assert_eq!(explain(&harness, 4).1, ["2 processes are being started; 2 other starts come first"]);
    assert_eq!(explain(&harness, 0).0, "j0: starting");
}

#[test]
fn p14_a_shutdown_drops_the_starts_that_wait() {
    let mut harness = small_storm(3, 1);
    harness.take_output();
    harness.signal(15);
    let skipped = State::Ended(Outcome::Skipped(SkipReason::Shutdown));
    assert_eq!([harness.status("j1").state, harness.status("j2").state], [skipped; 2]);
    assert_eq!(harness.take_effects(), ["kill j0 15"]);
    harness.fail_start("j0", StartErrorKind::Killed(Signal::TERM));
    assert!(harness.take_effects().iter().any(|line| line.starts_with("exit")));
}

#[test]
fn p14_s3_hooks_of_a_shutdown_wait_for_their_turn() {
    let hook = |name| format!("{{ name: '{name}', exec: 'x', when: {{ source: 'app', once: 'stopping' }} }}");
    let mut harness =
        Harness::jobs(&format!("{{ name: 'app', exec: 'x' }}, {}, {}", hook("one"), hook("two")));
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.starts_succeed = false;
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["spawn one"]);
    assert_eq!(harness.status("two").state, State::Queued);
    harness.start("one");
    assert_eq!(harness.take_effects(), ["spawn two"]);
    harness.exit("one", 0);
    assert!(harness.take_effects().is_empty(), "the job waits for both hooks");
    harness.start("two");
    harness.exit("two", 0);
    assert_eq!(harness.take_effects(), ["kill app 15"]);
}

#[test]
fn p14_s4_hooks_that_wait_when_their_time_is_over_do_not_run() {
    let hook = |name| format!("{{ name: '{name}', exec: 'x', when: {{ source: 'app', once: 'stopping' }} }}");
    let mut harness =
        Harness::jobs(&format!("{{ name: 'app', exec: 'x' }}, {}, {}", hook("one"), hook("two")));
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.starts_succeed = false;
    harness.signal(15);
    harness.take_output();
    // `one` never starts, so that `two` has its turn after a second, in which a third would wait.
    harness.millis(999);
    harness.signal(15);
    harness.signal(15);
    let effects = harness.take_effects();
    assert!(!effects.iter().any(|line| line.starts_with("spawn")), "{effects:?}");
    assert!(harness.status("two").state.has_ended());
}

#[test]
fn p14_s3_a_hook_that_waits_for_another_reason_runs_for_its_stop_event_only() {
    let mut harness = Harness::jobs(
        "{ name: 'app', exec: 'x' }, { name: 'busy', exec: 'x', when: { source: 'SIGHUP' } },
         { name: 'hook', exec: 'x', when: { any: [{ source: 'SIGHUP' }, { source: 'app', event: 'stopping' }],
           each: true } }",
    );
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.starts_succeed = false;
    harness.signal(1);
    assert_eq!(harness.status("hook").state, State::Queued);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill busy 15"]);
    harness.fail_start("busy", StartErrorKind::Killed(Signal::TERM));
    assert_eq!(harness.take_effects(), ["spawn hook"]);
    let is_stop_event = |variable| variable == ("CONTAINERPILOT_EVENT", "stopping");
    assert!(harness.environment.iter().any(is_stop_event));
    harness.start("hook");
    harness.exit("hook", 0);
    assert_eq!(harness.take_effects(), ["kill app 15"]);
}

#[test]
fn p14_a_reload_drops_the_start_of_a_job_that_it_changes() {
    let mut harness = small_storm(3, 1);
    harness.take_output();
    let new = "{ jobs: [{ name: 'j2', exec: 'x' }, { name: 'j0', exec: 'x' }, { name: 'j1', exec: 'y' }] }";
    harness.request(Request::Reload(Box::new(plan(new))));
    // `j2` keeps its place, under its new number; `j1` starts again, behind it.
    assert_eq!(harness.status("j2").state, State::Queued);
    harness.take_output();
    harness.start("j0");
    harness.start("j2");
    assert_eq!(spawned(&mut harness), ["j2", "j1"]);
}

#[test]
fn p14_w7_an_event_for_a_job_that_waits_for_its_turn_starts_the_run_after_it() {
    let mut harness =
        Harness::jobs("{ name: 'busy', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'SIGHUP' } }");
    harness.core.set_most_starts(1);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.signal(1);
    harness.signal(1);
    assert_eq!(harness.status("a").state, State::Queued);
    harness.take_output();
    harness.start("busy");
    harness.start("a");
    assert_eq!(spawned(&mut harness), ["a"]);
    harness.exit("a", 0);
    assert_eq!(spawned(&mut harness), ["a"]);
}

#[test]
fn p14_w4_a_tick_that_finds_the_job_waiting_for_its_turn_is_skipped() {
    let mut harness =
        Harness::jobs("{ name: 'a', exec: 'x', when: { interval: '400ms' } }, { name: 'busy', exec: 'x' }");
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.exit("a", 0);
    harness.starts_succeed = false;
    harness.exit("busy", 0);
    harness.take_output();
    harness.millis(400);
    harness.start("a");
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn p14_a_restart_waits_for_its_turn_and_keeps_its_count() {
    let mut harness = Harness::jobs(
        "{ name: 'a', exec: 'x', restarts: 2, restartBackoff: false }, { name: 'b', exec: 'x' }",
    );
    harness.core.set_most_starts(1);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.start("a");
    harness.take_output();
    harness.exit("a", 1);
    assert_eq!((harness.status("a").state, harness.status("a").restarts), (State::Queued, 1));
    assert!(harness.take_effects().is_empty());
    harness.start("b");
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn p14_p7_a_start_that_has_waited_has_the_pids_of_its_decision_and_what_was_set_since() {
    let pids = |harness: &Harness| {
        let names = harness.environment.iter().map(|(name, _)| name.to_owned());
        names.filter(|name| name.ends_with("_PID")).collect::<Vec<_>>()
    };
    let mut harness = small_storm(4, 1);
    harness.start("j0");
    assert_eq!((spawned(&mut harness), pids(&harness)), (names(0..2), vec![]));
    harness.request(Request::SetVariables(vec![("COLOUR".into(), Some("red".into()))]));
    harness.start("j1");
    assert!(harness.environment.iter().any(|variable| variable == ("COLOUR", "red")));
    assert_eq!(pids(&harness), ["CONTAINERPILOT_J0_PID", "CONTAINERPILOT_J1_PID"]);
}

#[test]
fn p14_a_failed_start_makes_room_for_the_restart_that_follows_from_it() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x', restarts: 2, restartBackoff: false }");
    harness.core.set_most_starts(1);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.fail_start("a", StartErrorKind::NotFound);
    assert_eq!(harness.take_effects(), ["spawn a", "spawn a"]);
    assert_eq!(harness.status("a").state, State::Starting);
}

#[test]
fn p14_w18_a_job_whose_bound_source_is_gone_loses_its_turn() {
    let mut harness = Harness::jobs(
        "{ name: 'db', exec: 'x', restarts: 'unlimited' },
         { name: 'busy', exec: 'x' }, { name: 'app', exec: 'x', requires: [{ source: 'db', bind: true }] }",
    );
    harness.core.set_most_starts(1);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.start("db");
    assert_eq!(harness.take_effects(), ["spawn db", "spawn busy"]);
    assert_eq!(harness.status("app").state, State::Queued);
    harness.exit("db", 1);
    assert_eq!(harness.status("app").state, State::Waiting, "a new generation, which has not run");
    harness.take_output();
    harness.start("busy");
    assert_eq!(spawned(&mut harness), ["db"], "its first restart has no delay");
}

#[test]
fn p14_checks_come_before_jobs_and_their_time_counts_from_the_creation_of_their_process() {
    let check = "health: { exec: 'c', interval: 5, ttl: 10, timeout: '500ms' }";
    let mut harness = Harness::jobs(&format!(
        "{{ name: 'app', exec: 'x', {check} }}, {{ name: 'j1', exec: 'x' }}, {{ name: 'j2', exec: 'x' }}"
    ));
    harness.core.set_most_starts(1);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.take_output();
    harness.start("app");
    assert_eq!(harness.take_effects(), ["check check.app"], "before j1 and j2");
    assert_eq!(harness.status("j1").state, State::Queued);
    // The program of the check was executed, so that j1 need not wait for its end.
    harness.started_check();
    assert_eq!(harness.take_effects(), ["spawn j1"]);
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), Vec::<String>::new());
    // The next check is due while j2 waits: j1 makes room for it first.
    harness.pass(Duration::from_millis(900));
    harness.start("j1");
    assert_eq!(harness.take_effects(), ["spawn j2"]);
    harness.pass(Duration::from_millis(4_100));
    assert_eq!(harness.take_effects(), ["check check.app"], "j2 hangs and keeps nobody waiting");
}

#[test]
fn p14_a_check_that_waits_for_its_turn_has_no_timeout_and_is_dropped_with_its_job() {
    let check = "health: { exec: 'c', interval: 1, ttl: 10, timeout: '500ms' }";
    let mut harness = Harness::jobs(&format!(
        "{{ name: 'app', exec: 'x', {check} }}, {{ name: 'late', exec: 'x', when: {{ source: 'SIGHUP' }} }}"
    ));
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.finish_check(true);
    harness.starts_succeed = false;
    harness.millis(999);
    harness.take_output();
    harness.signal(1);
    harness.millis(600);
    assert_eq!(harness.take_effects(), ["spawn late"], "the check waits");
    assert!(harness.status("app").health() == Some(true));
    harness.millis(399);
    assert_eq!(harness.take_effects(), Vec::<String>::new());
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["check check.app"], "late hangs");
    harness.millis(499);
    assert_eq!(harness.take_effects(), Vec::<String>::new());
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel check"]);
}

#[test]
fn p14_a_check_whose_job_stops_before_its_turn_is_not_cancelled_but_forgotten() {
    let check = "health: { exec: 'c', interval: 1, ttl: 10 }";
    let mut harness = Harness::jobs(&format!(
        "{{ name: 'app', exec: 'x', {check} }}, {{ name: 'late', exec: 'x', when: {{ source: 'SIGHUP' }} }}"
    ));
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.finish_check(true);
    harness.starts_succeed = false;
    harness.millis(999);
    harness.signal(1);
    harness.millis(1);
    harness.take_output();
    harness.request(Request::Stop(JobIx(0)));
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.exit("app", 0);
    harness.seconds(5);
    assert!(!harness.take_effects().iter().any(|line| line.starts_with("check")));
}

#[test]
fn p14_a_drain_program_waits_for_its_turn() {
    let mut harness = Harness::jobs(
        "{ name: 'app', exec: 'x', drain: { exec: 'd', timeout: '900ms' } },
         { name: 'late', exec: 'x', when: { source: 'SIGHUP', each: true } }",
    );
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.starts_succeed = false;
    harness.signal(1);
    harness.take_output();
    harness.request(Request::Stop(JobIx(0)));
    assert_eq!(harness.take_effects(), Vec::<String>::new());
    harness.start("late");
    assert_eq!(harness.take_effects(), ["drain app"]);
    harness.exit("late", 0);
    harness.millis(900);
    assert_eq!(harness.take_effects(), ["cancel check", "kill app 15"]);
    // Time that passes before its turn is a part of the drain time, and a program without a turn need not be cancelled.
    harness.exit("app", 0);
    harness.finish_check(false);
    harness.starts_succeed = true;
    harness.request(Request::Start(JobIx(0)));
    harness.starts_succeed = false;
    harness.signal(1);
    harness.take_output();
    harness.request(Request::Stop(JobIx(0)));
    harness.millis(900);
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.start("late");
    assert_eq!(harness.take_effects(), Vec::<String>::new());
}

#[test]
fn p14_the_test_of_a_file_waits_for_its_turn() {
    let mut harness = Harness::new(plan_with(tested()));
    harness.core.set_most_starts(1);
    harness.input(Input::Ready);
    harness.starts_succeed = false;
    harness.request(Request::Start(JobIx(1)));
    harness.instances(1);
    harness.take_output();
    harness.rendered(Ok(RenderedText::New));
    assert_eq!(harness.take_effects(), Vec::<String>::new());
    harness.start("hup");
    assert_eq!(harness.take_effects(), ["test f"]);
    harness.finish_check(true);
    assert_eq!(harness.take_effects(), ["install"]);
}

#[test]
fn p14_a_process_that_had_no_processor_gets_its_time_again() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    let run = harness.status("a").run.unwrap();
    harness.now = harness.now + Duration::from_secs(10);
    let mut effects = Vec::new();
    harness.core.step(harness.now, Input::Tick, &mut effects);
    assert!(matches!(effects[..], [Effect::InspectStart { .. }]), "{effects:?}");
    harness.input(Input::StartDelayed { run });
    harness.millis(9_999);
    assert_eq!(harness.status("a").state, State::Starting);
    harness.millis(1);
    assert_ne!(harness.status("a").state, State::Starting);
}
