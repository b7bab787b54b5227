//! S14: a run that the supervisor ends is over when nothing is left of it.

use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::Remains;
use containerpilot_core::plan::{Level, Signal};
use containerpilot_core::{Input, Request};

use super::harness::{Harness, plan};

const JOB: JobIx = JobIx(0);

fn running(text: &str) -> Harness {
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    harness.take_output();
    harness
}

fn gone(harness: &mut Harness, run: RunId) {
    harness.input(Input::OrphansGone { run });
}

#[test]
fn s14_shutdown_waits_for_the_rest_of_the_group() {
    let mut harness = running("{ stopTimeout: 20, jobs: [{ name: 'a', exec: 'x' }] }");
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    let run = harness.exit_with_orphans("a");
    assert_eq!(harness.take_output(), ["event a exitSuccess"], "the exit is that of the job's own process");
    harness.millis(99);
    let message = "waiting for the rest of its process group; at its exit that was sleep (7)";
    assert_eq!(harness.level_of(message), None, "most exit together");
    harness.millis(1);
    assert_eq!(harness.level_of(message), Some(Level::Info));
    harness.seconds(15);
    assert_eq!(harness.take_output(), [""; 0], "it has the rest of its time");
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), ["event a stopped", "exit 0"]);
}

#[test]
fn s14_rest_of_the_group_is_killed_at_the_stop_timeout_that_counts_from_the_stop_signal() {
    let mut harness =
        running("{ jobs: [{ name: 'a', exec: 'x', killAfter: '3s' }, { name: 'b', exec: 'x' }] }");
    harness.signal(15);
    harness.take_output();
    harness.seconds(2);
    let run = harness.exit_with_orphans("a");
    harness.take_output();
    harness.millis(999);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.millis(1);
    assert_eq!(harness.take_output(), ["kill rest 9"]);
    let message = "other processes did not exit within 3s, sending SIGKILL";
    assert_eq!(harness.level_of(message), Some(Level::Warn));
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), ["event a stopped"]);
    harness.exit("b", 0);
    assert_eq!(harness.take_output(), ["event b exitSuccess", "event b stopped", "exit 0"]);
}

#[test]
fn s14_next_signals_go_to_the_rest_of_the_group() {
    let mut harness =
        running("{ jobs: [{ name: 'a', exec: 'x', stopSignal: ['INT', '2s', 'TERM', '2s', 'KILL'] }] }");
    harness.request(Request::Stop(JOB));
    assert_eq!(harness.take_effects(), ["kill a 2"]);
    let run = harness.exit_with_orphans("a");
    harness.take_output();
    harness.seconds(2);
    assert_eq!(harness.take_output(), ["kill rest 15"]);
    harness.seconds(2);
    assert_eq!(harness.take_output(), ["kill rest 9"]);
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), ["event a stopped"]);
}

#[test]
fn s14_restart_by_hand_starts_when_the_group_is_gone() {
    let mut harness = running("{ jobs: [{ name: 'a', exec: 'x' }] }");
    harness.request(Request::Restart(JOB));
    harness.take_output();
    let run = harness.exit_with_orphans("a");
    harness.seconds(3);
    assert_eq!(harness.take_effects(), [""; 0]);
    gone(&mut harness, run);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn s14_h8_unhealthy_job_starts_again_when_the_group_is_gone() {
    let mut harness = running(
        "{ jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited', \
         health: { exec: 'y', interval: 1, ttl: 5, onUnhealthy: 'restart' } }] }",
    );
    harness.seconds(1);
    harness.finish_check(false);
    assert!(harness.take_effects().contains(&"kill a 15".to_owned()));
    let run = harness.exit_with_orphans("a");
    harness.take_output();
    harness.seconds(4);
    assert_eq!(harness.take_effects(), [""; 0]);
    assert_eq!(harness.status("a").word(), "stopping");
    // A shutdown does not send the stop signal again.
    harness.signal(15);
    assert_eq!(harness.take_effects(), [""; 0]);
    gone(&mut harness, run);
    assert!(harness.take_output().contains(&"exit 0".to_owned()));
}

#[test]
fn s14_daemons_have_the_time_of_their_run() {
    let mut harness = running("{ stopTimeout: 5, jobs: [{ name: 'a', exec: 'x' }] }");
    harness.signal(15);
    harness.take_output();
    harness.seconds(1);
    let run = harness.exit_leaving("a", Remains::Unknown);
    assert_eq!(harness.take_output(), ["event a exitSuccess"]);
    for _ in 0..2 {
        harness.input(Input::OrphansFound { run });
    }
    let message = "left processes outside of its process group, sent SIGTERM";
    assert_eq!(harness.log.iter().filter(|entry| *entry == message).count(), 1);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.millis(3_999);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.millis(1);
    assert_eq!(harness.take_output(), ["kill rest 9"]);
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), ["event a stopped", "exit 0"]);
}

#[test]
fn p4_warning_about_processes_that_are_left_names_their_job_also_after_later_runs() {
    let message = "left processes outside of its process group";
    let mut harness =
        running("{ jobs: [{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', restarts: 'unlimited' }] }");
    let earlier = harness.exit_leaving("a", Remains::Unknown);
    harness.seconds(10);
    harness.start("a");
    let last = harness.exit_leaving("a", Remains::Unknown);
    harness.input(Input::OrphansFound { run: earlier });
    assert_eq!(harness.job_of(message).as_deref(), Some("a"));
    // The job is removed by a reload.
    harness.request(Request::Reload(Box::new(plan("{ jobs: [{ name: 'main', exec: 'x' }] }"))));
    harness.input(Input::OrphansFound { run: last });
    assert_eq!(harness.log.last().unwrap(), &format!("a {message}, sent SIGTERM"));
    // Of a run that nobody remembers, the entry says at least that.
    harness.input(Input::OrphansFound { run: RunId(9_999) });
    assert_eq!(harness.log.last().unwrap(), &format!("an earlier run {message}, sent SIGTERM"));
}

#[test]
fn s14_p4_job_that_exits_by_itself_does_not_wait() {
    let mut harness = running("{ jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited' }] }");
    let run = harness.exit_with_orphans("a");
    assert_eq!(harness.take_effects(), ["spawn a"]);
    gone(&mut harness, run);
    harness.seconds(60);
    assert_eq!(harness.take_output(), [""; 0], "nothing is left to kill");
}

#[test]
fn s14_process_that_exits_while_it_drains_leaves_its_rest_the_stop_timeout() {
    let mut harness = running("{ jobs: [{ name: 'a', exec: 'x', drain: '3s' }] }");
    harness.request(Request::Stop(JOB));
    harness.take_output();
    harness.seconds(1);
    let run = harness.exit_with_orphans("a");
    assert_eq!(harness.take_output(), ["event a exitSuccess"]);
    harness.millis(4_999);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.millis(1);
    assert_eq!(harness.take_output(), ["kill rest 9"]);
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), ["event a stopped"]);
}

#[test]
fn s14_p6_rest_that_sigkill_does_not_end_is_abandoned() {
    let mut harness = running("{ jobs: [{ name: 'a', exec: 'x' }] }");
    harness.request(Request::Restart(JOB));
    let run = harness.exit_with_orphans("a");
    harness.seconds(5);
    assert!(harness.take_effects().contains(&"kill rest 9".to_owned()));
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill orphans", "spawn a"]);
    let message = "other processes did not exit within 2s after SIGKILL, abandoning them";
    assert_eq!(harness.level_of(message), Some(Level::Warn));
    gone(&mut harness, run);
    assert_eq!(harness.take_output(), [""; 0]);
}

#[test]
fn s14_s1_second_signal_kills_the_rest_and_does_not_wait_for_ever() {
    let mut harness = running("{ stopTimeout: 60, jobs: [{ name: 'a', exec: 'x' }] }");
    harness.signal(15);
    harness.exit_with_orphans("a");
    harness.take_output();
    harness.seconds(1);
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill rest 9"]);
    harness.millis(400);
    assert!(harness.take_output().contains(&"exit 0".to_owned()));
}

#[test]
fn s14_request_about_a_job_that_is_outlived() {
    let mut harness = running("{ jobs: [{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }] }");
    harness.request(Request::Stop(JOB));
    let run = harness.exit_with_orphans("a");
    let why = harness.core.explain(JOB, None).to_string();
    assert!(why.contains("its process has exited, waiting for the other processes of its run"), "{why}");
    harness.take_output();
    harness.request(Request::Signal(JOB, Signal::HUP));
    assert_eq!(harness.take_effects(), ["kill rest 1"]);
    harness.request(Request::Start(JOB));
    assert_eq!(harness.take_effects(), [""; 0], "as for any job that stops");
    gone(&mut harness, run);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}
