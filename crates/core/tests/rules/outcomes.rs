//! How jobs end, and what is said about it (X7, X8, X9).

use containerpilot_core::ids::JobIx;
use containerpilot_core::state::journal::Detail;
use containerpilot_core::{Input, Outcome, Request, SkipReason};

use super::harness::Harness;

/// How the jobs ended, by their `stopped` events.
fn outcomes(harness: &Harness) -> Vec<(String, &'static str)> {
    let events = harness.core.journal().events();
    let ended = events.filter_map(|event| match event.detail {
        Detail::Ended(outcome) => Some((harness.core.origin_name(event.origin), outcome.name())),
        _ => None,
    });
    ended.collect()
}

fn sentences(harness: &Harness, job: u32) -> Vec<String> {
    harness.core.explain(JobIx(job), None).sentences()
}

#[test]
fn x7_a_job_whose_source_failed_is_skipped_with_the_reason() {
    let mut harness = Harness::running(
        "{ name: 'setup', exec: 'x' }, { name: 'app', exec: 'x', when: { source: 'setup', once: 'exitSuccess' } }, \
         { name: 'other', exec: 'x' }",
    );
    harness.exit("setup", 3);
    harness.input(Input::Tick);
    assert_eq!((harness.status("setup").word(), harness.status("app").word()), ("failed", "skipped"));
    let app = harness.core.job_overview(JobIx(1));
    assert_eq!(app.outcome, Some(Outcome::Skipped(SkipReason::Unreachable)));
    assert_eq!(app.skip_reason.as_deref(), Some("`setup exitSuccess` can no longer happen"));
    assert_eq!(
        sentences(&harness, 1),
        [
            "app: skipped: `setup exitSuccess` can no longer happen",
            "  setup: failed, last run exited with code 3 0s ago"
        ]
    );
    assert_eq!(outcomes(&harness), [("setup".into(), "failed"), ("app".into(), "skipped")]);
    let said: Vec<_> =
        harness.log.iter().filter(|line| matches!(line.as_str(), "failed" | "skipped")).collect();
    assert_eq!(said, ["failed", "skipped"]);
    assert!(!harness.log.iter().any(|line| line.contains("complete")), "{:?}", harness.log);
}

#[test]
fn x7_a_source_that_does_not_exist_is_named() {
    let reason = |when: &str| {
        let jobs = format!(
            "{{ name: 'main', exec: 'x' }}, {{ name: 'done', exec: 'x' }}, {{ name: 'app', exec: 'x', when: {{ {when} }} }}"
        );
        let mut harness = Harness::running(&jobs);
        harness.exit("done", 1);
        harness.core.job_overview(JobIx(2)).skip_reason.unwrap()
    };
    let job = "`setpu exitSuccess` cannot happen: there is no job `setpu`";
    assert_eq!(reason("source: 'setpu', once: 'exitSuccess'"), job);
    let watch = "`watch.db healthy` cannot happen: there is no watch `db`";
    assert_eq!(reason("source: 'watch.db', once: 'healthy'"), watch);
    let file = "`file.conf changed` cannot happen: there is no file `conf`";
    assert_eq!(reason("source: 'file.conf', once: 'changed'"), file);
    let lock = "`lock.primary acquired` cannot happen: there is no lock `primary`";
    assert_eq!(reason("source: 'lock.primary', once: 'acquired'"), lock);
    let any = "any: [{ source: 'done', event: 'exitSuccess' }, { source: 'setpu', event: 'exitSuccess' }]";
    assert_eq!(reason(any), format!("{job}; `done exitSuccess` can no longer happen"));
}

#[test]
fn x7_of_several_conditions_the_reason_names_the_one_that_is_lost() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, \
         { name: 'c', exec: 'x', when: { all: [{ source: 'a', event: 'exitSuccess' }, \
           { source: 'b', event: 'exitSuccess' }] } }, { name: 'other', exec: 'x' }",
    );
    harness.exit("a", 0);
    harness.exit("b", 1);
    let c = harness.core.job_overview(JobIx(2));
    assert_eq!(c.skip_reason.as_deref(), Some("`b exitSuccess` can no longer happen"));
}

#[test]
fn x7_a_job_whose_start_timeout_passed_is_skipped() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, \
         { name: 'late', exec: 'x', when: { source: 'a', once: 'exitSuccess', timeout: '2s' } }",
    );
    harness.seconds(2);
    assert_eq!(harness.status("late").word(), "skipped");
    assert_eq!(sentences(&harness, 1)[0], "late: skipped: a did not exit successfully within 2s");
}

#[test]
fn x7_a_shutdown_stops_what_ran_and_skips_what_did_not() {
    let mut harness = Harness::running(
        "{ name: 'server', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'server', once: 'stopping' } }, \
         { name: 'bad', exec: 'x', when: { source: 'server', once: 'stopping' } }, \
         { name: 'hup', exec: 'x', when: { source: 'SIGHUP' } }, { name: 'done', exec: 'x' }",
    );
    harness.exit("done", 0);
    harness.signal(15);
    harness.exit("hook", 0);
    harness.exit("bad", 4);
    harness.exit_on("server", 15);
    let mut ended = outcomes(&harness);
    ended.sort();
    let expected = [("bad", "failed"), ("done", "complete"), ("hook", "complete"), ("hup", "skipped")];
    assert_eq!(ended[..4], expected.map(|(name, outcome)| (name.to_owned(), outcome)));
    assert_eq!(ended[4], ("server".to_owned(), "stopped"));
    assert_eq!(harness.exit, Some(0), "S5: a shutdown by signal");
}

#[test]
fn x7_the_outcome_of_a_job_that_waits_for_its_hooks_is_certain() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }, \
         { name: 'other', exec: 'x' }",
    );
    harness.exit("a", 1);
    let a = harness.core.job_overview(JobIx(0));
    assert_eq!((a.status.word(), a.outcome), ("stopping", Some(Outcome::Failed)));
    harness.request(Request::Start(JobIx(0)));
    assert_eq!(harness.core.job_overview(JobIx(0)).outcome, None, "it will run again");
}

const CHECKED: &str = "{ name: 'a', exec: 'x', drain: '3s', health: { exec: 'c', interval: 5, ttl: 15 } }, \
                       { name: 'other', exec: 'x' }";

#[test]
fn x7_a_job_that_is_stopping_is_not_healthy() {
    let mut harness = Harness::running(CHECKED);
    harness.finish_check(true);
    assert!(harness.core.overview().health().healthy);
    harness.request(Request::Stop(JobIx(0)));
    let overview = harness.core.overview();
    assert_eq!((harness.status("a").word(), harness.status("a").health()), ("stopping", None));
    assert!(!overview.health().healthy);
    assert_eq!(overview.not_ready(), ["a: stopping"]);
}

#[test]
fn x8_after_a_restart_only_the_new_process_is_running_and_healthy() {
    let mut harness = Harness::running(CHECKED);
    harness.finish_check(true);
    harness.request(Request::Restart(JobIx(0)));
    assert_eq!((harness.status("a").word(), harness.status("a").health()), ("stopping", None), "it drains");
    harness.seconds(3);
    assert_eq!((harness.status("a").word(), harness.status("a").health()), ("stopping", None));
    harness.exit_on("a", 15);
    assert_eq!((harness.status("a").word(), harness.status("a").health()), ("running", None));
    harness.finish_check(true);
    assert_eq!(harness.status("a").health(), Some(true));
}

#[test]
fn x8_a_job_that_a_reload_replaces_is_restarting_until_the_reload_is_done() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }");
    let new = super::harness::plan("{ jobs: [{ name: 'a', exec: 'y' }, { name: 'b', exec: 'y' }] }");
    let id = containerpilot_core::RequestId(9);
    harness.input(Input::Request { id, request: Request::Reload(Box::new(new)) });
    harness.exit_on("a", 15);
    harness.exit_on("c", 15);
    assert_eq!((harness.status("a").word(), harness.status("b").word()), ("restarting", "stopping"));
    assert_eq!(harness.status("c").word(), "stopped", "it is removed");
    harness.exit_on("b", 15);
    assert_eq!(harness.status("a").word(), "running");
}

#[test]
fn x9_failed_runs_in_a_row_are_counted() {
    let mut harness = Harness::running("{ name: 'tidy', exec: 'x', when: { interval: '10s' } }");
    let failed = |harness: &Harness| harness.core.job_overview(JobIx(0)).failed_runs;
    for expected in 1..=3 {
        harness.exit("tidy", 7);
        assert_eq!((harness.status("tidy").word(), failed(&harness)), ("waiting", expected));
        harness.seconds(10);
    }
    harness.exit("tidy", 0);
    assert_eq!(failed(&harness), 0);
}

#[test]
fn x7_only_the_events_that_cannot_come_are_named() {
    let all = "all: [{ source: 'a', event: 'exitSuccess' }, { source: 'SIGUSR2' }]";
    let mut harness = Harness::running(&format!(
        "{{ name: 'main', exec: 'x' }}, {{ name: 'a', exec: 'x' }}, {{ name: 'app', exec: 'x', when: {{ {all} }} }}"
    ));
    harness.exit("a", 1);
    let reason = harness.core.job_overview(JobIx(2)).skip_reason;
    assert_eq!(reason.as_deref(), Some("`a exitSuccess` can no longer happen"));
}
