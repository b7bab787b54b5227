//! What is asked by hand (X2, X5, D8), and what becomes of it.

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::Signal;
use containerpilot_core::{Input, Reply, Request, RequestId};

use crate::stage::Stage;

const A: JobIx = JobIx(0);
const B: JobIx = JobIx(1);

fn done(text: &str) -> Reply {
    Reply::Done(text.into())
}

#[test]
fn x2_a_job_that_is_complete_begins_a_new_life_with_all_its_restarts() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }, { name: 'b', exec: 'x' }",
    );
    stage.exit("a", 1);
    stage.exit("a", 1);
    assert_eq!(stage.status("a").word(), "failed");
    stage.look();
    assert_eq!(stage.command(Request::Start(A)), done("started"));
    assert_eq!(stage.command(Request::Start(A)), done("already running (pid 104)"));
    stage.exit("a", 0);
    stage.exit("a", 0);
    assert_eq!(stage.acts(), ["spawn a", "spawn a"]);
    assert_eq!((stage.status("a").word(), stage.status("a").generation), ("complete", 1));
}

#[test]
fn x2_a_job_stopped_by_hand_stays_so_and_holds_the_supervisor_open() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    stage.look();
    assert_eq!(stage.command(Request::Stop(A)), done("stopping"));
    assert_eq!(stage.look(), ["event a stopping", "kill a 15"]);
    stage.killed("a", 15);
    assert_eq!(stage.look(), ["event a exitFailed", "event a stopped"]);
    assert_eq!((stage.status("a").word(), stage.exit), ("stopped", None));
    assert_eq!(stage.command(Request::Stop(A)), done("not running"));
    stage.seconds(1_000);
    assert_eq!(stage.command(Request::Start(A)), done("started"));
    stage.signal(15);
    stage.killed("a", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn x2_a_job_that_does_not_stop_is_killed_after_the_stop_time() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    stage.command(Request::Restart(A));
    stage.look();
    stage.seconds(5);
    assert_eq!(stage.acts(), ["kill a 9"]);
    stage.killed("a", 9);
    assert_eq!(stage.acts(), ["spawn a"]);
}

#[test]
fn x2_a_restart_runs_the_hooks_every_time() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }",
    );
    for _ in 0..3 {
        stage.look();
        assert_eq!(stage.command(Request::Restart(A)), done("stopping, will start again"));
        assert_eq!(stage.acts(), ["spawn hook"], "the hook comes first");
        stage.exit("hook", 0);
        assert_eq!(stage.acts(), ["kill a 15"]);
        stage.killed("a", 15);
        assert_eq!(stage.acts(), ["spawn a"]);
    }
    stage.signal(15);
    assert_eq!(stage.acts(), ["spawn hook"], "and at the end");
}

#[test]
fn x2_a_hook_that_is_complete_lives_again_with_its_job() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }, \
         { name: 'other', exec: 'x' }",
    );
    stage.exit("a", 0);
    stage.exit("hook", 0);
    assert_eq!(stage.status("hook").word(), "complete");
    stage.command(Request::Start(A));
    assert_eq!(stage.status("hook").word(), "waiting");
    stage.look();
    stage.exit("a", 0);
    assert_eq!(stage.acts(), ["spawn hook"]);
}

#[test]
fn x2_a_job_that_waits_runs_at_once_and_its_event_does_not_run_it_again() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    stage.command(Request::Start(B));
    stage.look();
    stage.exit("a", 0);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    stage.exit("b", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn x2_a_start_during_a_stop_follows_it_and_a_stop_takes_it_back() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    stage.command(Request::Stop(A));
    assert_eq!(stage.command(Request::Start(A)), done("stopping, will start again"));
    assert_eq!(stage.command(Request::Stop(A)), done("already stopping"));
    stage.look();
    stage.killed("a", 15);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    assert_eq!(stage.status("a").word(), "stopped");
}

#[test]
fn x2_who_waits_for_a_job_stopped_by_hand_does_not_give_up_hope() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    stage.command(Request::Stop(A));
    stage.killed("a", 15);
    assert_eq!(stage.status("b").word(), "waiting");
    stage.command(Request::Start(A));
    stage.exit("a", 0);
    assert!(stage.has_process("b"));
}

#[test]
fn x2_what_cannot_be_done_is_refused_in_words() {
    let refused = |text: &str| Reply::Refused(text.into());
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    assert_eq!(stage.command(Request::Start(JobIx(7))), refused("no such job"));
    assert_eq!(stage.command(Request::Signal(B, Signal(1))), refused("no process"));
    assert_eq!(stage.command(Request::Signal(A, Signal(1))), done("sent SIGHUP to process group 101"));
    stage.signal(15);
    assert_eq!(stage.command(Request::Start(B)), refused("the supervisor is shutting down"));
    assert_eq!(stage.command(Request::Maintenance(true)), refused("the supervisor is shutting down"));
}

#[test]
fn x2_what_is_asked_before_the_startup_is_answered_after_it() {
    let mut stage = Stage::jobs("{ name: 'a', exec: 'x' }");
    stage.input(Input::Request { id: RequestId(1), request: Request::Stop(A) });
    assert_eq!(stage.answers, []);
    stage.input(Input::Ready);
    assert_eq!(stage.answers, [done("stopping")]);
}

#[test]
fn d8_maintenance_says_whether_it_was_news() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    for (on, news) in [(true, true), (true, false), (false, true), (false, false)] {
        assert_eq!(stage.command(Request::Maintenance(on)), Reply::Updated(news));
    }
}

#[test]
fn p7_variables_set_by_hand_are_seen_by_every_process_from_then_on() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 'unlimited', restartBackoff: false }");
    stage.command(Request::SetVariables(vec![
        ("K".into(), Some("v".into())),
        ("OLD".into(), None),
        ("EMPTY".into(), Some(String::new())),
    ]));
    stage.exit("a", 0);
    let environment = stage.environment.clone();
    assert!(environment.iter().any(|pair| pair == ("K", "v")));
    assert_eq!(environment.jobs.unset().collect::<Vec<_>>(), ["EMPTY", "OLD"]);
}

#[test]
fn x5_an_explanation_says_what_is_waited_for_and_why_that_has_not_come() {
    let mut stage = Stage::running(
        "{ name: 'setup', exec: 'x' }, \
         { name: 'db', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 }, when: { source: 'setup', once: 'exitSuccess' } }, \
         { name: 'app', exec: 'x', when: { source: 'db', once: 'healthy' } }",
    );
    stage.exit("setup", 0);
    for _ in 0..3 {
        stage.checked(false);
        stage.seconds(1);
    }
    stage.input(Input::Tick);
    let app = stage.core.explain(JobIx(2)).sentences();
    assert_eq!(
        app,
        [
            "app waits to be started",
            "  it waits for db healthy; db runs as pid 102 for 3s, and it is not known yet whether it is healthy",
            "    its check check.db has failed 3 times in a row: it failed",
        ]
    );
    let db = stage.core.explain(JobIx(1)).sentences();
    assert_eq!(
        db.last().map(String::as_str),
        Some("it was started by setup exitSuccess, which came from global startup")
    );
    let setup = stage.core.explain(JobIx(0));
    assert_eq!(setup.summary, "setup is complete: its last run exited with code 0 3s ago");
}

#[test]
fn x2_the_overview_knows_deadlines_checks_and_events() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x', restarts: 3, health: { exec: 'c', interval: 5, ttl: 15 } }, \
         { name: 'b', exec: 'x', when: { interval: '10s' }, timeout: 'never' }",
    );
    stage.checked(true);
    stage.exit("a", 1);
    stage.exit("a", 1);
    let overview = stage.core.overview();
    let (a, b) = (&overview.jobs[0], &overview.jobs[1]);
    assert_eq!((a.status.word(), a.restarts_left, a.restarts_total), ("restarting", Some(2), 1));
    assert_eq!(a.deadlines.iter().map(|deadline| deadline.what.name()).collect::<Vec<_>>(), ["restart"]);
    assert_eq!(b.deadlines.iter().map(|deadline| deadline.what.name()).collect::<Vec<_>>(), ["turn"]);
    let exits = overview.events.iter().find(|count| count.source == "a" && count.code.name() == "exitFailed");
    assert_eq!(exits.map(|count| count.count), Some(2));
}

#[test]
fn s2_who_is_stopped_by_hand_does_not_wait_for_a_hook_that_only_checks() {
    let hook = "{ name: 'probe', port: 80, health: { exec: 'c', interval: 5, ttl: 15 }, \
                when: { source: 'a', once: 'stopping' } }";
    let mut stage =
        Stage::running(&format!("{{ name: 'work', exec: 'x' }}, {{ name: 'a', exec: 'x' }}, {hook}"));
    stage.look();
    // W11: that is never complete by itself, and whoever comes again would wait for it for ever.
    stage.input(Input::Request { id: RequestId(1), request: Request::Stop(JobIx(1)) });
    assert_eq!(stage.acts(), ["check check.probe", "kill a 15"]);
}
