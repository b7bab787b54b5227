//! W18, S10: requirements, bound jobs, and the order of stops.

use containerpilot_core::plan::{RequiredSource, Requirement, Signal};
use containerpilot_core::request::Refusal;
use containerpilot_core::{Input, Outcome, Reply, Request, RequestId, SkipReason, State, StopStage};

use crate::harness::{Harness, plan};

const TERM: u8 = 15;

/// A server with a check, a server without one, and a job that runs once.
const DB: &str =
    "{ name: 'db', exec: 'x', restarts: 'unlimited', health: { exec: 'y', interval: 1, ttl: 5 } }";
const CACHE: &str = "{ name: 'cache', exec: 'x', restarts: 'unlimited' }";
const MIGRATE: &str = "{ name: 'migrate', exec: 'x' }";

fn with(jobs: &[&str]) -> Harness {
    Harness::running(&jobs.join(","))
}

fn spawned(harness: &mut Harness) -> Vec<String> {
    harness.take_output().iter().filter_map(|line| line.strip_prefix("spawn ")).map(str::to_owned).collect()
}

fn killed(harness: &mut Harness) -> Vec<String> {
    harness.take_output().iter().filter_map(|line| line.strip_prefix("kill ")).map(str::to_owned).collect()
}

fn start(harness: &mut Harness, name: &str) -> Reply {
    let job = harness.core.job_named(name).unwrap();
    harness.request(Request::Start(job))
}

fn stop(harness: &mut Harness, name: &str) -> Reply {
    let job = harness.core.job_named(name).unwrap();
    harness.request(Request::Stop(job))
}

#[test]
fn w18_a_job_starts_when_the_required_job_is_healthy() {
    let mut harness = with(&["{ name: 'app', exec: 'x', requires: ['db'] }", DB]);
    assert_eq!(spawned(&mut harness), ["db"]);
    assert!(harness.log.contains(&"waiting: it requires db, which is waiting to start".to_owned()));
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_jobs_with_the_same_requirement_start_in_the_order_of_the_configuration() {
    let job = |name: &str, more: &str| format!("{{ name: '{name}', exec: 'x', requires: ['db'] {more} }}");
    let jobs = [job("b", ""), DB.to_owned(), job("c", ", restarts: 'unlimited'"), job("a", ""), job("d", "")];
    let mut harness = Harness::running(&jobs.join(","));
    assert_eq!(spawned(&mut harness), ["db"]);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["b", "c", "a", "d"]);
}

#[test]
fn w18_a_job_starts_when_the_required_one_time_job_has_succeeded() {
    let mut harness = with(&["{ name: 'app', exec: 'x', requires: ['migrate'] }", MIGRATE]);
    assert_eq!(spawned(&mut harness), ["migrate"]);
    harness.exit("migrate", 0);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_a_job_that_is_restarted_has_not_succeeded() {
    let migrate = "{ name: 'migrate', exec: 'x', restarts: 1 }";
    let mut harness = with(&["{ name: 'app', exec: 'x', requires: ['migrate'] }", migrate]);
    harness.exit("migrate", 0);
    assert_eq!(spawned(&mut harness), ["migrate", "migrate"]);
    harness.exit("migrate", 0);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_a_job_starts_when_the_required_server_runs() {
    let mut harness = Harness::jobs(&format!("{{ name: 'app', exec: 'x', requires: ['cache'] }}, {CACHE}"));
    harness.starts_succeed = false;
    harness.input(containerpilot_core::Input::Ready);
    assert_eq!(spawned(&mut harness), ["cache"]);
    let mut harness = with(&["{ name: 'app', exec: 'x', requires: ['cache'] }", CACHE]);
    assert_eq!(spawned(&mut harness), ["cache", "app"]);
}

#[test]
fn w18_a_job_starts_when_the_required_watch_is_healthy() {
    let text = "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 1 }],
        jobs: [{ name: 'app', exec: 'x', requires: [{ source: 'watch.db', bind: true }] }] }";
    let mut harness = Harness::new(plan(text));
    harness.input(containerpilot_core::Input::Ready);
    harness.instances(0);
    assert_eq!(spawned(&mut harness), [""; 0]);
    harness.instances(1);
    assert_eq!(spawned(&mut harness), ["app"]);
    harness.instances(0);
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(spawned(&mut harness), [""; 0]);
    harness.instances(2);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_both_the_event_and_the_requirements_are_needed() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'migrate', once: 'exitSuccess' }, requires: ['db', 'cache'] }";
    let mut harness = with(&[DB, CACHE, MIGRATE, app]);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["db", "cache", "migrate"]);
    harness.exit("migrate", 0);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_an_event_is_kept_while_a_requirement_is_missing() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'SIGUSR2' }, requires: ['db'] }";
    let mut harness = with(&[DB, app]);
    harness.signal(12);
    harness.signal(12);
    assert_eq!(spawned(&mut harness), ["db"]);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["app"]);
    harness.exit("app", 0);
    assert_eq!(spawned(&mut harness), [""; 0], "several events start it once");
}

#[test]
fn w18_skipped_ticks_are_made_up_once() {
    let tick = "{ name: 'tick', exec: 'x', when: { interval: '10s' }, requires: ['aux'] }";
    let mut harness = with(&["{ name: 'aux', exec: 'x', when: { source: 'SIGUSR2' } }", tick]);
    harness.seconds(35);
    assert_eq!(spawned(&mut harness), [""; 0]);
    harness.signal(12);
    assert_eq!(spawned(&mut harness), ["aux", "tick"]);
    harness.exit("tick", 0);
    assert_eq!(spawned(&mut harness), [""; 0]);
    harness.seconds(5);
    assert_eq!(spawned(&mut harness), ["tick"], "the next tick is at its time");
    harness.exit("tick", 0);
    harness.exit("aux", 0);
    harness.seconds(25);
    harness.signal(12);
    assert_eq!(spawned(&mut harness), ["aux", "tick"]);
}

#[test]
fn w18_w4_a_tick_that_is_made_up_has_its_whole_timeout() {
    let tick = "{ name: 'tick', exec: 'x', when: { interval: '10s' }, requires: ['aux'] }";
    let mut harness = with(&["{ name: 'aux', exec: 'x', when: { source: 'SIGUSR2' } }", tick]);
    // The first time it is the startup that had to wait, then a tick.
    for _ in 0..2 {
        harness.seconds(19);
        harness.signal(12);
        assert_eq!(spawned(&mut harness), ["aux", "tick"]);
        harness.seconds(9);
        assert_eq!(killed(&mut harness), [""; 0], "the tick at 20 s does not end it");
        harness.exit("aux", 0);
        harness.exit("tick", 0);
        assert_eq!(spawned(&mut harness), [""; 0], "that tick is skipped");
        harness.seconds(2);
    }
    harness.seconds(9);
    harness.signal(12);
    harness.take_output();
    harness.seconds(10);
    assert_eq!(killed(&mut harness), ["tick 9"], "at its timeout");
    harness.seconds(1);
    harness.exit_on("tick", 9);
    assert_eq!(spawned(&mut harness), ["tick"], "a tick that comes while it is being killed is kept");
}

#[test]
fn w18_the_start_timeout_counts_until_the_start() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'cache', once: 'exitFailed', timeout: '5s' }, requires: ['db'] }";
    let mut harness = with(&[DB, CACHE, app]);
    harness.exit("cache", 1);
    harness.seconds(5);
    assert_eq!(harness.status("app").state, State::Ended(Outcome::Skipped(SkipReason::StartTimeout)));
}

#[test]
fn w18_a_restart_waits_for_its_requirement() {
    let app = "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: ['db'] }";
    let mut harness = with(&[DB, app]);
    harness.finish_check(true);
    harness.exit("db", 1);
    harness.take_output();
    assert!(harness.has_process("app"), "without `bind` it runs on");
    harness.exit("app", 1);
    assert_eq!(spawned(&mut harness), [""; 0]);
    assert_eq!(harness.status("app").state, State::Waiting);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["app"]);
    assert_eq!(harness.status("app").restarts, 1);
}

#[test]
fn w18_a_start_by_hand_says_what_is_missing() {
    let mut harness = with(&[DB, "{ name: 'app', exec: 'x', requires: ['db'] }"]);
    let reply = start(&mut harness, "app");
    let words = "starting, although it requires db, which is running but not yet healthy";
    assert_eq!(reply, Reply::Done(words.into()));
    assert!(harness.has_process("app"));
    let mut harness = with(&[DB, "{ name: 'app', exec: 'x', requires: [{ source: 'db', bind: true }] }"]);
    let reply = start(&mut harness, "app");
    assert_eq!(
        reply,
        Reply::Refused(Refusal::Unmet("it requires db, which is running but not yet healthy".into()))
    );
    assert!(!harness.has_process("app"));
}

/// `db`, healthy, and `app`, which runs and is bound to it.
fn bound() -> Harness {
    let app = "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: [{ source: 'db', bind: true }] }";
    let mut harness = with(&[DB, app]);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["db", "app"]);
    harness
}

#[test]
fn w18_a_bound_job_stops_when_its_source_exits_and_starts_again_when_it_is_back() {
    let mut harness = bound();
    harness.exit("db", 1);
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(spawned(&mut harness), [""; 0]);
    assert_eq!(harness.status("app").word(), "waiting");
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["app"]);
    assert_eq!(harness.status("app").restarts, 0);
    assert_eq!(harness.status("app").generation, 1);
}

#[test]
fn w18_a_bound_job_stops_when_its_source_is_unhealthy() {
    let mut harness = bound();
    harness.seconds(1);
    harness.finish_check(false);
    assert_eq!(killed(&mut harness), ["app 15"]);
    assert!(harness.log.contains(&"stopping: it requires db, which is running but unhealthy".to_owned()));
    // It is back before the job has stopped.
    harness.seconds(1);
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), [""; 0]);
    harness.exit_on("app", TERM);
    assert_eq!(spawned(&mut harness), ["app"]);
}

#[test]
fn w18_maintenance_does_not_stop_a_bound_job() {
    let mut harness = bound();
    harness.maintenance(true);
    harness.seconds(5);
    assert_eq!(killed(&mut harness), [""; 0]);
    harness.maintenance(false);
    harness.finish_check(true);
    assert_eq!(killed(&mut harness), [""; 0]);
    assert!(harness.has_process("app"));
}

#[test]
fn w18_a_job_that_is_bound_to_one_that_succeeded_stays() {
    let app =
        "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: [{ source: 'migrate', bind: true }] }";
    let mut harness = with(&[MIGRATE, app]);
    harness.exit("migrate", 0);
    assert_eq!(spawned(&mut harness), ["migrate", "app"]);
    start(&mut harness, "migrate");
    assert_eq!(killed(&mut harness), [""; 0]);
    harness.exit("migrate", 0);
    assert_eq!(killed(&mut harness), [""; 0]);
}

#[test]
fn w18_a_bound_job_of_a_flapping_source_backs_off() {
    let app =
        "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: [{ source: 'cache', bind: true }] }";
    let cache = "{ name: 'cache', exec: 'x', restarts: 'unlimited', restartBackoff: false }";
    let mut harness = with(&[app, cache]);
    let mut starts = 0;
    for _ in 0..100 {
        harness.exit("cache", 1);
        if harness.has_process("app") {
            harness.exit_on("app", TERM);
        }
        harness.millis(10);
        starts += spawned(&mut harness).iter().filter(|name| *name == "app").count();
    }
    assert!((2..8).contains(&starts), "{starts} starts in a second");
}

#[test]
fn w18_a_bound_job_holds_the_supervisor_open() {
    let app = "{ name: 'app', exec: 'x', requires: [{ source: 'aux', bind: true }] }";
    let aux = "{ name: 'aux', exec: 'x', when: { source: 'SIGUSR2' } }";
    let mut harness = with(&[aux, app]);
    harness.signal(12);
    assert_eq!(spawned(&mut harness), ["aux", "app"]);
    harness.exit("aux", 0);
    harness.exit_on("app", TERM);
    assert_eq!(harness.exit, None);
    harness.signal(12);
    assert_eq!(spawned(&mut harness), ["aux", "app"]);
    harness.exit("app", 0);
    assert_eq!(harness.status("app").word(), "complete");
}

#[test]
fn w18_a_requirement_that_can_never_hold_skips_the_job() {
    let mut harness = with(&[MIGRATE, "{ name: 'app', exec: 'x', requires: ['migrate'] }"]);
    harness.exit("migrate", 3);
    assert_eq!(harness.status("app").state, State::Ended(Outcome::Skipped(SkipReason::Unreachable)));
    assert!(harness.log.contains(&"will never run: it requires migrate, which has failed".to_owned()));
    assert_eq!(harness.exit, Some(3));
}

#[test]
fn w18_a_lost_requirement_skips_periodic_and_waiting_jobs() {
    let tick = "{ name: 'tick', exec: 'x', when: { interval: 1 }, requires: ['migrate'] }";
    let waits = "{ name: 'waits', exec: 'x', when: { source: 'SIGHUP' }, requires: ['tick'] }";
    let mut harness = with(&[MIGRATE, tick, waits]);
    harness.exit("migrate", 3);
    assert_eq!(harness.exit, Some(3));
}

#[test]
fn w18_a_bound_job_whose_source_is_lost_is_skipped() {
    let db = "{ name: 'db', exec: 'x', health: { exec: 'y', interval: 1, ttl: 5 } }";
    let app = "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: [{ source: 'db', bind: true }] }";
    let mut harness = with(&[db, app]);
    harness.finish_check(true);
    harness.exit("db", 4);
    harness.exit_on("app", TERM);
    assert!(harness.log.contains(&"will never run: it requires db, which has failed".to_owned()));
    assert_eq!(harness.exit, Some(4));
}

#[test]
fn w18_a_source_stopped_by_hand_may_come_back() {
    let mut harness = bound();
    stop(&mut harness, "db");
    harness.exit_on("app", TERM);
    harness.exit_on("db", TERM);
    assert_eq!(harness.exit, None);
    assert_eq!(harness.status("app").word(), "waiting");
    harness.take_output();
    start(&mut harness, "db");
    harness.finish_check(true);
    assert_eq!(spawned(&mut harness), ["db", "app"]);
}

#[test]
fn w18_jobs_that_require_each_other_do_not_hang() {
    let a = "{ name: 'a', exec: 'x', requires: ['b'] }";
    let b = "{ name: 'b', exec: 'x', requires: ['a'] }";
    let harness = with(&[a, b]);
    assert_eq!(harness.exit, Some(1), "no work has run");
    assert!(
        harness.log.iter().any(|line| line.starts_with("will never run: it requires")),
        "{:?}",
        harness.log
    );
}

#[test]
fn w18_a_user_can_stop_a_bound_job_that_waits() {
    let mut harness = bound();
    harness.exit("db", 1);
    stop(&mut harness, "app");
    harness.exit_on("app", TERM);
    harness.finish_check(true);
    assert_eq!(harness.status("app").word(), "stopped");
}

#[test]
fn w18_x5_explain_says_what_a_job_requires() {
    let app = "{ name: 'app', exec: 'x', requires: ['db'] }";
    let mut harness = with(&[DB, app]);
    let explain = |harness: &Harness, name: &str| {
        let job = harness.core.job_named(name).unwrap();
        harness.core.explain(job, None).sentences()
    };
    let sentences = explain(&harness, "app");
    assert_eq!(sentences[0], "app: waiting to start");
    assert_eq!(sentences[1], "  waiting for db, which is running but not yet healthy");
    harness.finish_check(true);
    harness.signal(TERM);
    let sentences = explain(&harness, "db");
    assert_eq!(sentences[0], "db: stopping: waiting for other jobs to end");
    assert!(sentences[1].starts_with("  waiting until app has ended; app: stopping"), "{sentences:?}");
}

#[test]
fn w18_x7_a_skipped_job_says_which_requirement_is_lost() {
    let mut harness = with(&[CACHE, MIGRATE, "{ name: 'app', exec: 'x', requires: ['migrate'] }"]);
    harness.exit("migrate", 3);
    let job = harness.core.job_named("app").unwrap();
    let overview = harness.core.job_overview(job);
    assert_eq!(overview.skip_reason.as_deref(), Some("it requires migrate, which has failed"));
}

#[test]
fn s10_a_job_stops_after_the_jobs_that_require_it() {
    let app = "{ name: 'app', exec: 'x', requires: ['db'] }";
    let mut harness = with(&[DB, app, CACHE]);
    harness.finish_check(true);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["app 15", "cache 15"]);
    assert_eq!(harness.status("db").stop_stage, Some(StopStage::Requirers));
    harness.exit_on("cache", TERM);
    assert_eq!(killed(&mut harness), [""; 0]);
    harness.exit_on("app", TERM);
    assert_eq!(killed(&mut harness), ["db 15"]);
    harness.exit_on("db", TERM);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s10_a_job_stops_after_those_in_its_stop_after() {
    let mut harness = with(&[
        "{ name: 'log', exec: 'x', stopAfter: ['a', 'b'] }",
        "{ name: 'a', exec: 'x' }",
        "{ name: 'b', exec: 'x' }",
    ]);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["a 15", "b 15"]);
    harness.exit_on("a", TERM);
    assert_eq!(killed(&mut harness), [""; 0]);
    harness.exit_on("b", TERM);
    assert_eq!(killed(&mut harness), ["log 15"]);
}

#[test]
fn s10_every_process_gets_its_stop_signal_within_the_budget() {
    let mut harness = with(&[
        "{ name: 'db', exec: 'x', restarts: 'unlimited' }",
        "{ name: 'app', exec: 'x', requires: ['db'] }",
    ]);
    harness.signal(TERM);
    harness.take_output();
    harness.seconds(5);
    assert_eq!(killed(&mut harness), ["db 15", "app 9"], "at the stop timeout of 5s");
    harness.seconds(5);
    assert_eq!(killed(&mut harness), ["db 9"]);
}

#[test]
fn s10_a_hook_keeps_what_it_requires() {
    let backup =
        "{ name: 'backup', exec: 'x', when: { source: 'app', once: 'stopped' }, requires: ['cache'] }";
    let mut harness = with(&[CACHE, "{ name: 'app', exec: 'x' }", backup]);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(harness.take_effects(), ["spawn backup"]);
    harness.exit("backup", 0);
    assert_eq!(killed(&mut harness), ["cache 15"]);
}

#[test]
fn s10_a_hook_of_the_required_job_does_not_deadlock() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'cache', once: 'stopped' }, requires: ['cache'] }";
    let mut harness = with(&[CACHE, hook]);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["cache 15"]);
    harness.exit_on("cache", TERM);
    assert_eq!(harness.exit, Some(0), "its requirement is gone, so it is skipped");
}

#[test]
fn s10_a_ring_of_stops_is_broken() {
    let mut harness =
        with(&["{ name: 'a', exec: 'x', stopAfter: ['b'] }", "{ name: 'b', exec: 'x', stopAfter: ['a'] }"]);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["b 15"]);
    harness.exit_on("b", TERM);
    assert_eq!(killed(&mut harness), ["a 15"]);
}

#[test]
fn s10_bound_jobs_stop_before_a_job_that_is_stopped_by_hand() {
    let mut harness = bound();
    stop(&mut harness, "db");
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(killed(&mut harness), ["db 15"]);
}

#[test]
fn s10_a_job_that_is_not_bound_runs_on_when_its_source_is_stopped() {
    let mut harness = with(&[CACHE, "{ name: 'app', exec: 'x', requires: ['cache'] }"]);
    stop(&mut harness, "cache");
    assert_eq!(killed(&mut harness), ["cache 15"]);
    assert!(harness.has_process("app"));
}

#[test]
fn s10_a_reload_stops_in_the_same_order() {
    let before = "{ jobs: [{ name: 'db', exec: 'x', restarts: 'unlimited' }, { name: 'app', exec: 'x', requires: ['db'] }] }";
    let mut harness = Harness::new(plan(before));
    harness.input(containerpilot_core::Input::Ready);
    harness.take_output();
    let after = "{ jobs: [{ name: 'db', exec: 'y', restarts: 'unlimited' }, { name: 'app', exec: 'y', requires: ['db'] }] }";
    harness.input(containerpilot_core::Input::Request {
        id: containerpilot_core::RequestId(1),
        request: Request::Reload(Box::new(plan(after))),
    });
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(killed(&mut harness), ["db 15"]);
    harness.exit_on("db", TERM);
    assert_eq!(spawned(&mut harness), ["db", "app"]);
}

#[test]
fn w18_a_reload_of_the_source_stops_and_starts_a_bound_job() {
    let text = |exec: &str| {
        format!(
            "{{ jobs: [{{ name: 'db', exec: '{exec}', restarts: 'unlimited' }},
            {{ name: 'app', exec: 'x', restarts: 'unlimited', requires: [{{ source: 'db', bind: true }}] }}] }}"
        )
    };
    let mut harness = Harness::new(plan(&text("x")));
    harness.input(containerpilot_core::Input::Ready);
    harness.take_output();
    harness.input(containerpilot_core::Input::Request {
        id: containerpilot_core::RequestId(1),
        request: Request::Reload(Box::new(plan(&text("y")))),
    });
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(killed(&mut harness), ["db 15"]);
    harness.exit_on("db", TERM);
    assert_eq!(spawned(&mut harness), ["db", "app"]);
    assert_eq!(Signal::TERM.0, TERM);
}

#[test]
fn w18_x7_a_delayed_start_that_a_shutdown_overtakes_is_skipped() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'migrate', once: 'stopped' }, requires: [{ source: 'cache', bind: true }] }";
    let cache = "{ name: 'cache', exec: 'x', restarts: 'unlimited', restartBackoff: false }";
    let mut harness = with(&[app, cache, MIGRATE]);
    harness.exit("migrate", 0);
    for _ in 0..2 {
        harness.exit("cache", 1);
        harness.exit_on("app", TERM);
    }
    assert_eq!(harness.status("app").state, State::Delaying, "a new generation, which has not run");
    harness.signal(TERM);
    harness.exit_on("cache", TERM);
    assert_eq!(harness.exit, Some(0));
    assert_eq!(harness.status("app").state, State::Ended(Outcome::Skipped(SkipReason::Shutdown)));
}

#[test]
fn w18_x7_of_jobs_that_require_each_other_one_that_can_run_waits() {
    let mut plan = plan(
        "{ jobs: [{ name: 'x', exec: 'x' }, { name: 'a', do: { setEnv: { A: '1' } }, restarts: 5 }, \
         { name: 'b', exec: 'x', when: { cron: '* * * * *', source: 'a', once: 'exitSuccess' }, requires: ['a'] }] }",
    );
    // `check` refuses such a ring.
    plan.jobs[1].requires = vec![Requirement { source: RequiredSource::Job("b".to_owned()), bind: false }];
    let mut harness = Harness::new(plan);
    let a = harness.core.job_named("a").unwrap();
    harness.input(Input::Request { id: RequestId(1), request: Request::Start(a) });
    harness.input(Input::Ready);
    assert_eq!((harness.status("a").word(), harness.status("b").word()), ("complete", "waiting"));
    harness.seconds(60);
    assert!(harness.has_process("b"));
}

#[test]
fn w18_a_job_waits_for_the_stop_hooks_of_one_that_has_succeeded() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'migrate', once: 'stopping' } }";
    let mut harness = with(&[MIGRATE, hook, "{ name: 'app', exec: 'x', requires: ['migrate'] }"]);
    harness.exit("migrate", 0);
    assert_eq!(harness.status("app").word(), "waiting");
    harness.exit("hook", 0);
    assert_eq!(spawned(&mut harness).last().map(String::as_str), Some("app"));
}

#[test]
fn w18_a_job_that_is_stopping_is_not_refused_for_a_requirement() {
    let app = "{ name: 'app', exec: 'x', requires: [{ source: 'cache', bind: true }] }";
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'app', once: 'stopping' } }";
    let mut harness = with(&[CACHE, app, hook]);
    stop(&mut harness, "app");
    harness.exit_on("app", TERM);
    stop(&mut harness, "cache");
    harness.exit_on("cache", TERM);
    assert_eq!(start(&mut harness, "app"), Reply::Done("stopping, will start again".into()));
}

#[test]
fn s10_a_job_does_not_wait_for_a_stop_hook_that_waits_for_it() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'app', once: 'stopped' } }";
    let mut harness = with(&["{ name: 'app', exec: 'x', stopAfter: ['hook'] }", hook]);
    harness.signal(TERM);
    assert_eq!(killed(&mut harness), ["app 15"]);
    harness.exit_on("app", TERM);
    assert_eq!(spawned(&mut harness).last().map(String::as_str), Some("hook"));
}

#[test]
fn w18_x5_a_required_job_that_has_succeeded_is_said_to_have() {
    let migrate = "{ name: 'migrate', exec: 'x', when: { source: 'SIGUSR2' } }";
    let setup = "{ name: 'setup', exec: 'x' }";
    let mut harness = with(&[setup, migrate, "{ name: 'app', exec: 'x', requires: ['setup', 'migrate'] }"]);
    harness.exit("setup", 0);
    let app = harness.core.job_overview(harness.core.job_named("app").unwrap());
    let states: Vec<&str> = app.requires.iter().map(|one| one.state.as_str()).collect();
    assert_eq!(states, ["has succeeded", "is waiting to start"]);
}
