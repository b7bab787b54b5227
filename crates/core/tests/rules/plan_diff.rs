//! R1, R3, C6: the plan diff, and what requests a reload.

use containerpilot_core::plan::diff::Changes;
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::rules::signals::{reloads_at, reopens_log};
use containerpilot_core::{Core, Input, Reply, Request, RequestId};

use crate::harness::{Harness, plan};

fn jobs(jobs: &str) -> Plan {
    plan(&format!("{{ jobs: [{jobs}] }}"))
}

fn changes(old: &Plan, new: &Plan) -> Changes {
    Core::new(old.clone()).changes(new)
}

#[test]
fn r3_the_dry_run_reports_what_the_reload_does() {
    let old = "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'b', exec: 'y' }, { name: 'd', exec: 'x' }";
    let new = "{ name: 'c', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'a', exec: 'y' }";
    let expected = Changes {
        kept: vec!["b".into()],
        restarted: vec!["a".into()],
        started: vec!["c".into()],
        stopped: vec!["b".into(), "d".into()],
        ..Changes::default()
    };
    assert_eq!(changes(&jobs(old), &jobs(new)), expected);
    // The reload itself, without duplicate names.
    let (old, new) = (
        "{ name: 'a', exec: 'x' }, { name: 'd', exec: 'x' }",
        "{ name: 'c', exec: 'x' }, { name: 'a', exec: 'y' }",
    );
    let expected = changes(&jobs(old), &jobs(new));
    let mut harness = Harness::running(old);
    let request = Request::Reload(Box::new(jobs(new)));
    harness.input(Input::Request { id: RequestId(1), request });
    harness.exit_on("a", 15);
    harness.exit_on("d", 15);
    assert_eq!(harness.replies, [Reply::Reloaded(expected)]);
}

#[test]
fn r1_sighup_reloads_unless_a_job_waits_for_it() {
    let plain = jobs("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGUSR2' } }");
    assert!(reloads_at(&plain, Signal::HUP));
    assert!(!reloads_at(&plain, Signal::USR1));
    let waiting = jobs("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'SIGHUP' } }");
    assert!(!reloads_at(&waiting, Signal::HUP));
    assert!(!reloads_at(&Plan { pass_signals: true, ..plain }, Signal::HUP), "forwarded");
}

#[test]
fn c6_a_reload_restarts_every_coprocess() {
    let text = "{ jobs: [{ name: 'a', exec: 'x' }], coprocesses: [{ name: 'co', command: 'y' }] }";
    let expected = Changes { kept: vec!["a".into()], restarted: vec!["co".into()], ..Changes::default() };
    assert_eq!(changes(&plan(text), &plan(text)), expected);
}

#[test]
fn l1_sigusr1_reopens_the_log() {
    assert!(reopens_log(Signal::USR1));
    assert!(!reopens_log(Signal::USR2));
}
