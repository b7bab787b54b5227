//! X2, X5, D8: requests of users.

use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::{Answer, Instance, StartErrorKind};
use containerpilot_core::plan::Signal;
use containerpilot_core::plan::Status;
use containerpilot_core::report::status::{JobStatus, RunCounts};
use containerpilot_core::request::{JobReply, Refusal};
use containerpilot_core::state::journal::{Detail, EndReason};
use containerpilot_core::{Input, Reply, Request, RequestId};

use crate::harness::{Harness, plan};

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

fn refusal(reply: Reply) -> String {
    let Reply::Refused(refusal) = reply else { panic!("{reply:?}") };
    refusal.to_string()
}

#[test]
fn x2_impossible_requests_are_refused_with_a_reason() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }",
    );
    assert_eq!(refusal(harness.request(Request::Start(JobIx(7)))), "no such job");
    assert_eq!(refusal(harness.request(Request::Signal(JobIx(7), Signal(1)))), "no such job");
    assert_eq!(refusal(harness.request(Request::Signal(B, Signal(1)))), "not running");
    assert_eq!(harness.request(Request::Signal(A, Signal(1))), done("sent SIGHUP to process group 101"));
    harness.signal(15);
    assert_eq!(refusal(harness.request(Request::Start(B))), "the supervisor is shutting down");
    assert_eq!(refusal(harness.request(Request::Maintenance(true))), "the supervisor is shutting down");
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
    let app = harness.core.explain(JobIx(2), None).sentences();
    assert_eq!(
        app,
        [
            "app: waiting to start",
            "  waiting until db is healthy; db: running for 3s (pid 102), health unknown",
            "    check.db failed 3 times in a row: it failed",
        ]
    );
    let db = harness.core.explain(JobIx(1), None).sentences();
    assert_eq!(db.last().map(String::as_str), Some("started by setup exitSuccess, caused by startup"));
    let setup = harness.core.explain(JobIx(0), None);
    assert_eq!(setup.summary, "setup: complete, last run exited with code 0 3s ago");
}

#[test]
fn x5_a_failed_start_is_not_called_an_exit() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x', restarts: 2 }, { name: 'b', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    let why = "/bin/x: No such file or directory";
    let summary = |harness: &Harness, job| harness.core.explain(job, None).summary;
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
    assert_eq!(harness.core.explain(A, None).sentences()[1], "  6 failures in a row");
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
fn t4_ended_runs_are_counted_by_their_result() {
    let runs = |harness: &Harness| harness.core.job_overview(A).runs;
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', restarts: 9, restartBackoff: false, timeout: '5s' }");
    harness.exit("a", 0);
    harness.exit("a", 1);
    harness.seconds(5);
    harness.exit_on("a", 9);
    let counted = RunCounts { success: 1, failure: 1, timeout: 1, stopped: 0 };
    assert_eq!(runs(&harness), counted);
    assert_eq!(harness.core.job_overview(A).restarts_total, 3);
    // A process that ends on its stop signal has not failed; the totals outlive a generation.
    harness.request(Request::Stop(A));
    harness.exit_on("a", 15);
    assert_eq!(runs(&harness), RunCounts { stopped: 1, ..counted });
    harness.request(Request::Start(A));
    assert_eq!(runs(&harness), RunCounts { stopped: 1, ..counted });
    harness.fail_start("a", StartErrorKind::NotFound);
    assert_eq!(runs(&harness).failure, 2);
}

#[test]
fn t4_ticks_are_not_restarts() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', when: { interval: '10s' }, restarts: 3 }");
    for _ in 0..3 {
        harness.exit("a", 0);
        harness.seconds(10);
    }
    let overview = harness.core.job_overview(A);
    assert_eq!((overview.restarts_total, overview.restarts_left), (0, Some(0)), "but `restarts` limits them");
    assert_eq!(overview.runs.success, 3);
}

#[test]
fn t4_every_state_is_listed() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGHUP' } }");
    let mut seen = vec![harness.status("a").word(), harness.status("b").word()];
    harness.request(Request::Stop(A));
    seen.push(harness.status("a").word());
    harness.exit("a", 0);
    seen.push(harness.status("a").word());
    assert_eq!(seen, ["running", "waiting", "stopping", "stopped"]);
    assert!(seen.iter().all(|word| JobStatus::WORDS.contains(word)), "{seen:?}");
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
    assert!(harness.status("a").state.has_ended());
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
    let refused = Reply::Refused(Refusal::NoSuchJob);
    for job in [B, JobIx(7)] {
        for request in
            [Request::Start(job), Request::Stop(job), Request::Restart(job), Request::Signal(job, Signal(1))]
        {
            assert_eq!(harness.request(request), refused);
        }
    }
}

#[test]
fn x9_a_crash_loop_is_explained_with_its_exit_its_count_and_the_next_attempt() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 'unlimited' }");
    for _ in 0..3 {
        harness.exit("a", 3);
        harness.seconds(1);
    }
    harness.exit("a", 3);
    let sentences = |harness: &Harness| harness.core.explain(A, None).sentences();
    assert_eq!(
        sentences(&harness),
        [
            "a: exited with code 3, waiting to restart",
            "  restarting in 400ms",
            "  last run exited with code 3 0s ago, 4 failures in a row",
            "last run started by startup",
        ]
    );
    assert_eq!(harness.core.job_overview(A).failed_runs, 4);
    harness.seconds(1);
    harness.input(Input::Tick);
    assert_eq!(
        sentences(&harness)[1..],
        ["  previous run exited with code 3 1s ago, 4 failures in a row", "started by startup"]
    );
    harness.exit("a", 0);
    assert!(!sentences(&harness).iter().any(|line| line.contains("failed")), "{:?}", sentences(&harness));
    harness.seconds(1);
    harness.input(Input::Request { id: RequestId(1), request: Request::Stop(A) });
    harness.exit_on("a", 15);
    assert_eq!(harness.core.job_overview(A).failed_runs, 0, "a run that was stopped has not failed");
}

#[test]
fn x9_a_watch_is_explained_with_its_instances_and_the_jobs_it_starts() {
    let text =
        "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }, { name: 'mail', interval: 5 }],
        jobs: [{ name: 'app', exec: 'x', when: { source: 'watch.db', once: 'healthy' } },
               { name: 'reload', exec: 'x', when: { source: 'watch.db', each: 'changed' } }] }";
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    let sentences =
        |harness: &Harness, watch| harness.core.explain_watch(WatchIx(watch), None).unwrap().sentences;
    assert_eq!(
        sentences(&harness, 0),
        [
            "watch.db: no answer from the catalog yet",
            "  service db in Consul, polled at least every 5s",
            "  starts app when watch.db is healthy; app: waiting to start",
            "  starts reload each time watch.db changes; reload: waiting to start",
        ]
    );
    let instance =
        Instance { id: "db-1".into(), address: "10.0.0.9".into(), port: 5432, ..Instance::default() };
    harness.input(Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(vec![instance])) });
    harness.seconds(2);
    harness.input(Input::Tick);
    assert_eq!(
        sentences(&harness, 0)[..4],
        [
            "watch.db: 1 healthy instance",
            "  db-1 at 10.0.0.9 port 5432",
            "  service db in Consul, polled at least every 5s",
            "  last event: watch.db healthy, 2s ago",
        ]
    );
    assert_eq!(sentences(&harness, 1).last().unwrap(), "  no job waits for it");
    // D11: the catalog does not answer.
    let trouble = Trouble { since: harness.now, error: "Consul at localhost:8500 is unreachable".into() };
    harness.seconds(12);
    harness.input(Input::Tick);
    let first =
        |watch| harness.core.explain_watch(WatchIx(watch), Some(&trouble)).unwrap().sentences[0].clone();
    let stale = "watch.db: 1 healthy instance (as of 12s ago: Consul at localhost:8500 is unreachable)";
    assert_eq!(first(0), stale);
    assert_eq!(
        first(1),
        "watch.mail: no answer from the catalog yet: Consul at localhost:8500 is unreachable"
    );
    assert!(harness.core.explain_watch(WatchIx(2), None).is_none());
}

#[test]
fn x9_d11_a_job_that_waits_for_a_watch_is_explained_with_the_trouble_of_the_catalog() {
    let text = "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }],
        jobs: [{ name: 'app', exec: 'x', when: { source: 'watch.db', once: 'healthy' } }, { name: 'b', exec: 'x' }] }";
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    let sentences = |job| {
        let mut explanation = harness.core.explain(job, None);
        explanation.add_troubles(|watch| {
            assert_eq!(watch, "db");
            Some(Trouble { since: harness.now, error: "Consul at localhost:8500 is unreachable".into() })
        });
        explanation.sentences()
    };
    assert_eq!(
        sentences(A),
        [
            "app: waiting to start",
            "  waiting until watch.db is healthy (no answer yet)",
            "  Consul at localhost:8500 is unreachable",
        ]
    );
    assert!(!sentences(B).concat().contains("unreachable"));
}

#[test]
fn x9_a_watch_of_the_embedded_catalog_names_the_job_that_advertises_it() {
    let service = "port: 80, interfaces: 'static:10.0.0.1', health: { exec: 'c', interval: 5, ttl: 15 }";
    let text = format!(
        "{{ watches: [{{ name: 'db', interval: 5 }}, {{ name: 'nothing', interval: 5 }}],
            jobs: [{{ name: 'db', exec: 'x', {service} }}] }}"
    );
    let mut harness = Harness::new(plan(&text));
    harness.input(Input::Ready);
    let second = |harness: &Harness, watch| {
        harness.core.explain_watch(WatchIx(watch), None).unwrap().sentences[1].clone()
    };
    assert_eq!(second(&harness, 0), "  service db (10.0.0.1:80): not registered until its job is healthy");
    let nothing = "  the embedded catalog has only services of this container: no job advertises nothing";
    assert_eq!(second(&harness, 1), nothing);
    harness.finish_check(true);
    assert_eq!(second(&harness, 0), "  service db (10.0.0.1:80): advertised as passing");
}

#[test]
fn x9_d11_a_job_is_explained_with_its_service() {
    let service = "port: 80, interfaces: 'static:10.0.0.1', health: { exec: 'c', interval: 5, ttl: 15 }";
    let mut harness = Harness::running(&format!("{{ name: 'db', exec: 'x', {service} }}"));
    let last = |harness: &Harness, known: &Known| {
        harness.core.explain(A, Some(known)).waits.last().unwrap().sentence.clone()
    };
    let nothing = Known::default();
    assert_eq!(last(&harness, &nothing), "service db (10.0.0.1:80): not registered until its job is healthy");
    harness.finish_check(true);
    let words = "service db (10.0.0.1:80): wanted: passing; not confirmed by the catalog yet";
    assert_eq!(last(&harness, &nothing), words);
    let since = Some(harness.now);
    harness.seconds(3);
    harness.input(Input::Tick);
    let confirmed = Some(DesiredService::Present(Status::Passing));
    let known = Known { confirmed, since, ..Known::default() };
    assert_eq!(last(&harness, &known), "service db (10.0.0.1:80): passing in the catalog for 3s");
    let known = Known { confirmed: None, since, error: Some("refused".into()), ..Known::default() };
    let words = "service db (10.0.0.1:80): wanted: passing; not confirmed by the catalog for 3s: refused";
    assert_eq!(last(&harness, &known), words);
}

#[test]
fn x10_the_journal_has_starts_and_what_ended_a_run() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', restarts: 1, timeout: '2s' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }",
    );
    harness.exit("a", 1);
    harness.seconds(2);
    harness.exit_on("a", 9);
    harness.exit("b", 0);
    harness.input(Input::Request { id: RequestId(1), request: Request::Start(JobIx(1)) });
    harness.input(Input::Signal(Signal::TERM));
    harness.exit_on("c", 15);
    let name = |origin| harness.core.origin_name(origin);
    let starts: Vec<_> = harness.core.journal().starts().collect();
    let starts: Vec<_> = starts
        .iter()
        .map(|start| (name(start.origin), start.trigger.map(|id| id.0), start.restarts))
        .collect();
    let start = |job: &str, trigger, restarts| (job.to_owned(), trigger, restarts);
    assert_eq!(
        starts,
        [
            start("a", Some(1), 0),
            start("b", Some(1), 0),
            start("c", Some(1), 0),
            start("a", Some(1), 1),
            start("b", None, 0),
        ]
    );
    let exits = harness.core.journal().events().filter_map(|event| match event.detail {
        Detail::Exit { ended_by, .. } => Some((name(event.origin), ended_by.map(EndReason::name))),
        _ => None,
    });
    let exits: Vec<_> = exits.collect();
    let exit = |job: &str, reason| (job.to_owned(), reason);
    assert_eq!(
        exits,
        [exit("a", None), exit("a", Some("timeout")), exit("b", None), exit("c", Some("shutdown"))]
    );
}

#[test]
fn w22_a_group_is_stopped_in_one_step_before_any_event_that_follows() {
    let jobs = "{ name: 'a', exec: 'x', when: { source: 'SIGUSR2' } }, \
                { name: 'b', exec: 'x', when: { source: 'a', once: 'stopped' } }, { name: 'c', exec: 'x' }";
    let mut harness = Harness::running(jobs);
    harness.take_output();
    let reply = harness.request(Request::Several(vec![Request::Stop(A), Request::Stop(B)]));
    let stopped = |job: &str| JobReply { job: job.into(), result: Ok("stopped".into()) };
    assert_eq!(reply, Reply::Jobs(vec![stopped("a"), stopped("b")]));
    assert_eq!(harness.take_effects(), Vec::<String>::new(), "b was started by the stop of a");
    // One after the other, the event of the first comes in between.
    let mut harness = Harness::running(jobs);
    harness.take_output();
    harness.request(Request::Stop(A));
    harness.request(Request::Stop(B));
    assert_eq!(harness.take_effects(), ["spawn b", "kill b 15"]);
}

#[test]
fn w22_a_group_is_refused_if_every_job_of_it_refuses() {
    let done = |job: &str, result: Result<&str, Refusal>| JobReply {
        job: job.into(),
        result: result.map(Into::into),
    };
    let some = [done("a", Ok("sent SIGHUP")), done("b", Err(Refusal::NotRunning))];
    assert_eq!(JobReply::combined(&some), Ok("a: sent SIGHUP; b: not running".into()));
    let none = [done("a", Err(Refusal::NotRunning)), done("b", Err(Refusal::NotRunning))];
    assert_eq!(JobReply::combined(&none), Err(Refusal::EveryJob("a: not running; b: not running".into())));
}
