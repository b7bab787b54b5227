//! X2, X5, D8: requests of users.

use containerpilot_core::ids::JobIx;
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::Signal;
use containerpilot_core::{Input, Reply, Request, RequestId, State};

use crate::harness::Harness;

const A: JobIx = JobIx(0);
const B: JobIx = JobIx(1);

fn done(text: &str) -> Reply {
    Reply::Done(text.into())
}

#[test]
fn x2_starting_a_complete_job_creates_a_generation_with_all_restarts() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }, { name: 'b', exec: 'x' }",
    );
    harness.exit("a", 1);
    harness.exit("a", 1);
    assert_eq!(harness.status("a").word(), "failed");
    harness.take_output();
    assert_eq!(harness.request(Request::Start(A)), done("starting"));
    assert_eq!(harness.request(Request::Start(A)), done("already running (pid 104)"));
    harness.exit("a", 0);
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), ["spawn a", "spawn a"]);
    assert_eq!((harness.status("a").word(), harness.status("a").generation), ("complete", 1));
}

#[test]
fn x2_a_job_stopped_by_hand_stays_stopped_and_keeps_the_supervisor_running() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    harness.take_output();
    assert_eq!(harness.request(Request::Stop(A)), done("stopping"));
    assert_eq!(harness.take_output(), ["event a stopping", "kill a 15"]);
    harness.exit_on("a", 15);
    assert_eq!(harness.take_output(), ["event a exitFailed", "event a stopped"]);
    assert_eq!((harness.status("a").word(), harness.exit), ("stopped", None));
    assert_eq!(harness.request(Request::Stop(A)), done("not running"));
    harness.seconds(1_000);
    assert_eq!(harness.request(Request::Start(A)), done("starting"));
    harness.signal(15);
    harness.exit_on("a", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn x2_a_job_that_does_not_stop_is_killed_after_the_stop_timeout() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.request(Request::Restart(A));
    harness.take_output();
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    harness.exit_on("a", 9);
    assert_eq!(harness.take_effects(), ["spawn a"]);
}

#[test]
fn x2_every_restart_runs_the_stop_hooks() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }",
    );
    for _ in 0..3 {
        harness.take_output();
        assert_eq!(harness.request(Request::Restart(A)), done("stopping, will start again"));
        assert_eq!(harness.take_effects(), ["spawn hook"], "the hook runs first");
        harness.exit("hook", 0);
        assert_eq!(harness.take_effects(), ["kill a 15"]);
        harness.exit_on("a", 15);
        assert_eq!(harness.take_effects(), ["spawn a"]);
    }
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["spawn hook"], "and at shutdown");
}

#[test]
fn x2_a_complete_hook_gets_a_new_generation_with_its_job() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }, \
         { name: 'other', exec: 'x' }",
    );
    harness.exit("a", 0);
    harness.exit("hook", 0);
    assert_eq!(harness.status("hook").word(), "complete");
    harness.request(Request::Start(A));
    assert_eq!(harness.status("hook").word(), "waiting");
    harness.take_output();
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), ["spawn hook"]);
}

#[test]
fn x2_starting_a_waiting_job_counts_as_its_trigger() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    harness.request(Request::Start(B));
    assert_eq!(harness.log.last().unwrap(), "started (pid 102), cause: start by hand");
    harness.take_output();
    harness.exit("a", 0);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.exit("b", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn x2_a_start_during_a_stop_is_deferred_and_a_stop_cancels_it() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.request(Request::Stop(A));
    assert_eq!(harness.request(Request::Start(A)), done("stopping, will start again"));
    assert_eq!(harness.request(Request::Stop(A)), done("already stopping"));
    harness.take_output();
    harness.exit_on("a", 15);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    assert_eq!(harness.status("a").word(), "stopped");
}

#[test]
fn x2_jobs_that_wait_for_a_job_stopped_by_hand_stay_reachable() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    harness.request(Request::Stop(A));
    harness.exit_on("a", 15);
    assert_eq!(harness.status("b").word(), "waiting");
    harness.request(Request::Start(A));
    harness.exit("a", 0);
    assert!(harness.has_process("b"));
}

#[test]
fn x2_impossible_requests_are_refused_with_a_reason() {
    let refused = |text: &str| Reply::Refused(text.into());
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    assert_eq!(harness.request(Request::Start(JobIx(7))), refused("no such job"));
    assert_eq!(harness.request(Request::Signal(JobIx(7), Signal(1))), refused("no such job"));
    assert_eq!(harness.request(Request::Signal(B, Signal(1))), refused("not running"));
    assert_eq!(harness.request(Request::Signal(A, Signal(1))), done("sent SIGHUP to process group 101"));
    harness.signal(15);
    assert_eq!(harness.request(Request::Start(B)), refused("the supervisor is shutting down"));
    assert_eq!(harness.request(Request::Maintenance(true)), refused("the supervisor is shutting down"));
}

#[test]
fn x2_requests_before_startup_are_answered_after_it() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.input(Input::Request { id: RequestId(1), request: Request::Stop(A) });
    assert_eq!(harness.replies, []);
    harness.input(Input::Ready);
    assert_eq!(harness.replies, [done("stopping")]);
}

#[test]
fn d8_the_reply_reports_whether_maintenance_mode_changed() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    for (on, news) in [(true, true), (true, false), (false, true), (false, false)] {
        assert_eq!(harness.request(Request::Maintenance(on)), Reply::Updated(news));
    }
}

#[test]
fn p7_every_process_started_after_putenv_has_its_variables() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited', restartBackoff: false }");
    harness.request(Request::SetVariables(vec![
        ("K".into(), Some("v".into())),
        ("OLD".into(), None),
        ("EMPTY".into(), Some(String::new())),
    ]));
    harness.exit("a", 0);
    let environment = harness.environment.clone();
    assert!(environment.iter().any(|pair| pair == ("K", "v")));
    assert_eq!(environment.jobs.unset().collect::<Vec<_>>(), ["EMPTY", "OLD"]);
}

#[test]
fn x5_an_explanation_shows_the_unmet_conditions_of_a_job() {
    let mut harness = Harness::running(
        "{ name: 'setup', exec: 'x' }, \
         { name: 'db', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 }, when: { source: 'setup', once: 'exitSuccess' } }, \
         { name: 'app', exec: 'x', when: { source: 'db', once: 'healthy' } }",
    );
    harness.exit("setup", 0);
    for _ in 0..3 {
        harness.finish_check(false);
        harness.seconds(1);
    }
    harness.input(Input::Tick);
    let app = harness.core.explain(JobIx(2)).sentences();
    assert_eq!(
        app,
        [
            "app: waiting to start",
            "  waiting until db is healthy; db: running for 3s (pid 102), health unknown",
            "    check.db failed 3 times in a row: it failed",
        ]
    );
    let db = harness.core.explain(JobIx(1)).sentences();
    assert_eq!(db.last().map(String::as_str), Some("triggered by setup exitSuccess, caused by startup"));
    let setup = harness.core.explain(JobIx(0));
    assert_eq!(setup.summary, "setup: complete, last run exited with code 0 3s ago");
}

#[test]
fn x5_a_failed_start_is_not_called_an_exit() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x', restarts: 2 }, { name: 'b', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    let why = "/bin/x: No such file or directory";
    let summary = |harness: &Harness, job| harness.core.explain(job).summary;
    harness.fail_start("a", StartErrorKind::NotFound);
    harness.fail_start("a", StartErrorKind::NotFound);
    assert_eq!(summary(&harness, A), format!("a: failed to start ({why}), waiting to restart"));
    harness.seconds(1);
    harness.fail_start("a", StartErrorKind::NotFound);
    harness.seconds(2);
    harness.input(Input::Tick);
    assert_eq!(summary(&harness, A), format!("a: failed to start 2s ago: {why}"));
    assert_eq!(harness.core.job_overview(A).start_error.as_deref(), Some(why));
    harness.starts_succeed = true;
    harness.request(Request::Start(A));
    for _ in 0..3 {
        harness.exit("a", 1);
        harness.seconds(1);
    }
    harness.input(Input::Tick);
    assert_eq!(summary(&harness, A), "a: failed, last run exited with code 1 1s ago");
    assert_eq!(harness.core.job_overview(A).start_error, None);
}

#[test]
fn x2_the_overview_contains_deadlines_checks_and_event_counts() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 3, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { name: 'b', exec: 'x', when: { interval: '10s' }, timeout: 'never' }",
    );
    harness.finish_check(true);
    harness.exit("a", 1);
    harness.exit("a", 1);
    let overview = harness.core.overview();
    let (a, b) = (&overview.jobs[0], &overview.jobs[1]);
    assert_eq!((a.status.word(), a.restarts_left, a.restarts_total), ("restarting", Some(2), 1));
    assert_eq!(a.deadlines.iter().map(|deadline| deadline.what.name()).collect::<Vec<_>>(), ["restart"]);
    assert_eq!(b.deadlines.iter().map(|deadline| deadline.what.name()).collect::<Vec<_>>(), ["tick"]);
    let exits = overview.events.iter().find(|count| count.source == "a" && count.code.name() == "exitFailed");
    assert_eq!(exits.map(|count| count.count), Some(2));
}

#[test]
fn s2_a_job_stopped_by_hand_does_not_wait_for_a_hook_without_a_process() {
    let hook = "{ name: 'probe', port: 80, health: { exec: 'c', interval: 5, ttl: 15 }, \
                when: { source: 'a', once: 'stopping' } }";
    let mut harness =
        Harness::running(&format!("{{ name: 'work', exec: 'x' }}, {{ name: 'a', exec: 'x' }}, {hook}"));
    harness.take_output();
    // W11: the hook never completes by itself, so a job that may start again would wait without end.
    harness.input(Input::Request { id: RequestId(1), request: Request::Stop(JobIx(1)) });
    assert_eq!(harness.take_effects(), ["check check.probe", "kill a 15"]);
}

#[test]
fn x2_a_process_that_sigkill_does_not_end_does_not_block_a_restart_or_a_stop() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'y' }");
    harness.take_output();
    harness.request(Request::Restart(A));
    harness.seconds(7);
    assert_eq!(harness.take_effects(), ["kill a 15", "kill a 9", "abandon a", "spawn a"]);
    harness.request(Request::Stop(A));
    harness.seconds(7);
    assert_eq!(harness.take_effects(), ["kill a 15", "kill a 9", "abandon a"]);
    assert_eq!(harness.status("a").state, State::Complete);
}

#[test]
fn x5_an_event_of_a_complete_job_is_awaited_but_not_possible() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x', when: { any: \
         [{ source: 'a', event: 'exitFailed' }, { source: 'b', event: 'exitFailed' }] } }",
    );
    harness.exit("a", 0);
    let possible: Vec<_> = harness.core.awaited(JobIx(2)).iter().map(|awaited| awaited.possible).collect();
    assert_eq!(possible, [false, true]);
    harness.exit("b", 1);
    assert_eq!(harness.log.last().unwrap(), "started (pid 103), cause: b exitFailed");
}

#[test]
fn x2_a_job_that_does_not_exist_is_refused() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    let refused = Reply::Refused("no such job".into());
    for job in [B, JobIx(7)] {
        for request in
            [Request::Start(job), Request::Stop(job), Request::Restart(job), Request::Signal(job, Signal(1))]
        {
            assert_eq!(harness.request(request), refused);
        }
    }
}
