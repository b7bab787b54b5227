//! D14: locks, and the jobs that require them.

use std::time::Duration;

use containerpilot_core::ids::LockIx;
use containerpilot_core::lock_report::{LockReport, LockWait};
use containerpilot_core::{Input, Reply, Request, RequestId, Time};

use crate::harness::{Harness, plan};

const TTL: u64 = 20;
const APP: &str = "{ name: 'app', exec: 'x', restarts: 'unlimited', requires: ['lock.primary'] }";

fn text(jobs: &str) -> String {
    format!("{{ consul: 'consul:8500', locks: [{{ name: 'primary', ttl: '{TTL}s' }}], jobs: [{jobs}] }}")
}

fn harness(jobs: &str) -> Harness {
    let mut harness = Harness::new(plan(&text(jobs)));
    harness.input(Input::Ready);
    harness
}

/// Consul has confirmed the lock with a request that was sent now.
fn hold(harness: &mut Harness, fencing: u64) {
    let until = harness.now + Duration::from_secs(TTL);
    report(harness, LockReport::Held { fencing, until });
}

fn report(harness: &mut Harness, report: LockReport) {
    harness.input(Input::Lock { lock: LockIx(0), report });
}

fn holder(jobs: &str) -> Harness {
    let mut harness = harness(jobs);
    hold(&mut harness, 7);
    harness.take_output();
    harness
}

fn variable(harness: &Harness) -> Option<String> {
    let mut all = harness.environment.iter();
    all.find(|(name, _)| *name == "CONTAINERPILOT_LOCK_PRIMARY").map(|(_, value)| value.to_owned())
}

#[test]
fn d14_a_job_that_requires_a_lock_starts_when_it_is_acquired() {
    let mut harness = harness(APP);
    assert_eq!(harness.take_effects(), [""; 0]);
    assert!(harness.log.contains(
        &"waiting: it requires lock.primary, which is not held: Consul has not answered yet".to_owned()
    ));
    report(&mut harness, LockReport::NotHeld(LockWait::Taken(Some("web-1".into()))));
    assert_eq!(harness.take_output(), [""; 0]);
    hold(&mut harness, 7);
    assert_eq!(harness.take_output(), ["event lock.primary acquired", "spawn app"]);
    assert_eq!(variable(&harness).as_deref(), Some("7"));
}

#[test]
fn d14_a_holder_without_answers_stops_its_job_a_stop_time_before_the_ttl() {
    let mut harness = holder(APP);
    harness.seconds(13);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["event lock.primary lost", "event app stopping", "kill app 15"]);
    // Five seconds after the stop signal, and a second before the TTL.
    harness.millis(4_990);
    assert_eq!(harness.take_output(), ["kill app 9"]);
    harness.exit_on("app", 9);
    assert!(!harness.has_process("app"));
    hold(&mut harness, 8);
    harness.seconds(1);
    let started = harness.take_output();
    assert!(started.ends_with(&["event lock.primary acquired".into(), "spawn app".into()]), "{started:?}");
}

#[test]
fn d14_each_answer_counts_from_the_time_its_request_was_sent() {
    let mut harness = holder(APP);
    harness.seconds(10);
    let sent = harness.now;
    harness.seconds(3);
    report(&mut harness, LockReport::Held { fencing: 7, until: sent + Duration::from_secs(TTL) });
    harness.seconds(10);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.seconds(1);
    assert!(harness.take_output().contains(&"kill app 15".to_owned()));
    // Too late to start anything.
    harness.exit("app", 0);
    let until = harness.now + Duration::from_secs(6);
    report(&mut harness, LockReport::Held { fencing: 7, until });
    assert!(!harness.take_output().contains(&"spawn app".to_owned()));
}

#[test]
fn d14_a_job_that_stops_too_slowly_is_killed_before_the_ttl_ends() {
    // `check` reports that this does not fit.
    let mut harness =
        holder("{ name: 'app', exec: 'x', restarts: 'unlimited', requires: ['lock.primary'], drain: '1m' }");
    harness.seconds(6);
    assert_eq!(harness.take_output(), ["event lock.primary lost", "event app stopping"]);
    harness.seconds(12);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["kill app 9"]);
}

#[test]
fn d14_a_supervisor_that_was_frozen_kills_its_job_before_anything_else() {
    let mut harness =
        holder(&format!("{APP}, {{ name: 'other', exec: 'x', when: {{ source: 'SIGUSR2' }} }}"));
    harness.now = harness.now + Duration::from_secs(60);
    harness.signal(12);
    let output = harness.take_effects();
    assert_eq!(output, ["kill app 15", "kill app 9", "spawn other"]);
}

#[test]
fn d14_an_exit_that_a_frozen_supervisor_reads_first_starts_nothing() {
    let mut harness = holder(APP);
    harness.now = harness.now + Duration::from_secs(60);
    harness.exit("app", 0);
    assert!(!harness.take_effects().contains(&"spawn app".to_owned()));
    assert!(!harness.has_process("app"));
}

#[test]
fn d14_time_asleep_counts() {
    let mut harness = holder(APP);
    harness.seconds(1);
    let asleep = Duration::from_secs(60);
    harness.input(Input::Clock { unix: Duration::ZERO, asleep });
    assert_eq!(harness.take_effects(), ["kill app 15", "kill app 9"]);
    harness.exit_on("app", 9);
    // The clock of the lock is ahead of the core's from now on.
    let until = harness.now + asleep + Duration::from_secs(TTL);
    report(&mut harness, LockReport::Held { fencing: 8, until });
    harness.seconds(1);
    assert!(harness.has_process("app"));
    harness.seconds(14);
    assert!(harness.take_output().contains(&"kill app 15".to_owned()));
}

#[test]
fn d14_a_lock_that_another_has_taken_kills_the_job_at_once() {
    let mut harness = holder(APP);
    report(&mut harness, LockReport::NotHeld(LockWait::Taken(None)));
    let output = harness.take_output();
    assert_eq!(output.first().map(String::as_str), Some("event lock.primary lost"));
    assert!(output.contains(&"kill app 9".to_owned()), "{output:?}");
    assert!(harness.log.contains(&"lock.primary lost: held by another session".to_owned()));
}

#[test]
fn d14_a_lost_session_leaves_the_job_its_stop_time() {
    let mut harness = holder(APP);
    harness.seconds(1);
    report(&mut harness, LockReport::NotHeld(LockWait::SessionInvalidated));
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.exit("app", 0);
    assert_eq!(harness.take_effects(), [""; 0]);
}

#[test]
fn d14_a_lock_that_is_taken_while_its_job_stops_kills_the_job_at_once() {
    let mut harness = holder(APP);
    harness.seconds(1);
    report(&mut harness, LockReport::NotHeld(LockWait::SessionInvalidated));
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    report(&mut harness, LockReport::NotHeld(LockWait::Unknown));
    assert_eq!(harness.take_effects(), [""; 0]);
    report(&mut harness, LockReport::NotHeld(LockWait::Taken(None)));
    assert_eq!(harness.take_effects(), ["kill app 9"]);
}

#[test]
fn d14_a_lock_is_released_when_its_jobs_have_ended() {
    let mut harness = holder(&format!("{APP}, {{ name: 'slow', exec: 'x' }}"));
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill app 15", "kill slow 15"]);
    harness.exit("app", 0);
    assert_eq!(harness.take_effects(), ["release primary"]);
    harness.exit("slow", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn d14_the_ttl_also_ends_in_a_shutdown() {
    let mut harness = holder(
        "{ name: 'app', exec: 'x', requires: ['lock.primary'] },
         { name: 'hook', exec: 'x', when: { source: 'app', once: 'stopping' } }",
    );
    harness.seconds(6);
    harness.signal(15);
    harness.take_output();
    harness.now = harness.now + Duration::from_secs(14);
    harness.input(Input::Tick);
    assert_eq!(harness.take_effects().first().map(String::as_str), Some("kill app 9"));
}

#[test]
fn d14_without_consul_a_lock_is_acquired_at_startup() {
    let local = text(APP).replace("consul: 'consul:8500', ", "");
    let mut harness = Harness::new(plan(&local));
    let unix = Duration::from_secs(1_700_000_000);
    harness.input(Input::Clock { unix, asleep: Duration::ZERO });
    harness.input(Input::Ready);
    assert_eq!(harness.take_output(), ["event global startup", "event lock.primary acquired", "spawn app"]);
    assert_eq!(variable(&harness).as_deref(), Some("1700000000"));
    harness.seconds(3600);
    assert_eq!(harness.take_output(), [""; 0]);
    // Its number also grows within a second.
    for (ttl, fencing) in [("30s", "1700003600"), ("40s", "1700003601"), ("50s", "1700003602")] {
        let other = local.replace("20s", ttl);
        let request = Request::Reload(Box::new(plan(&other)));
        harness.input(Input::Request { id: RequestId(9), request });
        harness.exit("app", 0);
        assert!(harness.take_output().contains(&"spawn app".to_owned()));
        assert_eq!(variable(&harness).as_deref(), Some(fencing));
    }
}

#[test]
fn d14_w9_a_local_lock_is_never_lost() {
    let jobs = "{ name: 'main', exec: 'x' },
        { name: 'down', exec: 'x', when: { source: 'lock.primary', once: 'lost' } }";
    assert_eq!(harness(jobs).status("down").word(), "waiting");
    let mut local = Harness::new(plan(&text(jobs).replace("consul: 'consul:8500', ", "")));
    local.input(Input::Ready);
    assert_eq!(local.status("down").word(), "skipped");
}

#[test]
fn d14_a_reload_keeps_an_unchanged_lock() {
    let mut harness = holder(APP);
    let two = text(&format!("{{ name: 'other', exec: 'x' }}, {APP}"))
        .replace("locks: [", "locks: [{ name: 'second' }, ");
    assert!(matches!(harness.request(Request::Reload(Box::new(plan(&two)))), Reply::Reloaded(_)));
    let output = harness.take_output();
    assert!(!output.iter().any(|line| line.contains("app")), "{output:?}");
    // It is still given up in time.
    harness.seconds(14);
    assert!(harness.take_output().contains(&"kill app 15".to_owned()));
}

#[test]
fn d14_a_reload_stops_the_jobs_of_a_changed_lock_before_it_is_released() {
    let mut harness = holder(APP);
    let other = text(APP).replace("20s", "30s");
    let request = Request::Reload(Box::new(plan(&other)));
    harness.input(Input::Request { id: RequestId(9), request });
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.exit("app", 0);
    assert_eq!(harness.take_effects(), ["plan replaced"]);
    hold(&mut harness, 9);
    assert_eq!(harness.take_effects(), ["spawn app"]);
}

#[test]
fn d14_jobs_can_follow_the_events_of_a_lock() {
    let mut harness = harness(
        "{ name: 'up', exec: 'x', when: { source: 'lock.primary', each: 'acquired' } },
         { name: 'down', exec: 'x', when: { source: 'lock.primary', each: 'lost' } },
         { name: 'all', exec: 'x', when: { all: [{ source: 'lock.primary', event: 'acquired' },
                                                { source: 'SIGUSR2' }], each: true } }",
    );
    hold(&mut harness, 1);
    harness.exit("up", 0);
    report(&mut harness, LockReport::NotHeld(LockWait::SessionInvalidated));
    assert_eq!(harness.take_effects(), ["spawn up", "spawn down"]);
    harness.signal(12);
    assert_eq!(harness.take_effects(), [""; 0], "the lock was lost");
    harness.exit("down", 0);
    hold(&mut harness, 2);
    assert_eq!(harness.take_effects(), ["spawn up", "spawn all"]);
}

#[test]
fn d14_the_status_tells_who_has_the_lock() {
    let mut harness = harness(APP);
    report(&mut harness, LockReport::NotHeld(LockWait::Taken(Some("web-1".into()))));
    let lock = harness.core.overview().locks.remove(0);
    assert_eq!(lock.key.as_deref(), Some("containerpilot/locks/primary"));
    assert_eq!((lock.fencing, lock.waiting.as_deref()), (None, Some("held by web-1")));
    harness.seconds(5);
    hold(&mut harness, 3);
    let lock = harness.core.overview().locks.remove(0);
    assert_eq!((lock.fencing, lock.waiting), (Some(3), None));
    assert_eq!(lock.since, Some(Time::ZERO + Duration::from_secs(5)));
    assert!(lock.gives_up_at.is_some());
}
