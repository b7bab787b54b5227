//! Stops, shutdowns, reloads and commands.

use std::time::Duration;

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, Remains};
use containerpilot_core::plan::{
    Drain, Exec, OnCompletion, OnUnhealthy, Plan, Repeat, Role, Signal, Status, StopScope, Trigger,
};
use containerpilot_core::request::Request;
use containerpilot_core::{Phase, State};
use containerpilot_oracle::random::{plain_job, plain_plan, service};

use super::support::{
    TERM, TestCore, by_hand, check, coprocess, event, exec, exits, killed, reload, reload_answers, spawned,
    when, with_health, with_trigger,
};

#[test]
fn s2_a_process_stopped_before_it_has_started_is_neither_registered_nor_checked() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", None));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    let effects = core.at(1, TERM);
    assert_eq!(
        effects,
        [Effect::Kill {
            run: RunId(1),
            signal: Signal::TERM,
            scope: StopScope::Group,
            reason: KillReason::Stop
        }]
    );
    assert_eq!(core.started(1), []);
}

#[test]
fn s2_a_job_waits_for_the_hook_of_its_hook() {
    let hook = when("hook", "a", Code::Stopping, Repeat::Once);
    let hooks_hook = when("hook2", "hook", Code::Stopping, Repeat::Once);
    let mut core = TestCore::new(vec![plain_job("a"), hook, hooks_hook]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(spawned(&core.at(10, TERM)), 1);
    core.started(2);
    assert_eq!(spawned(&core.exited(20, 2, 0)), 1);
    core.started(3);
    assert_eq!(core.state(1), State::Waiting);
    assert!(killed(&core.exited(30, 3, 0)).contains(&15), "only when the hook of the hook is done");
    assert!(core.state(1).has_ended());
}

#[test]
fn s4_hooks_that_wait_for_each_other_do_not_wait_for_the_stop_timeout() {
    let one = when("one", "two", Code::Stopping, Repeat::Once);
    let two = when("two", "one", Code::Stopping, Repeat::Once);
    let mut core = TestCore::new(vec![plain_job("a"), one, two]);
    core.at(0, Input::Ready);
    core.started(1);
    core.at(10, TERM);
    assert_eq!(spawned(&core.exited(20, 1, 0)), 1, "the cycle is broken");
    core.started(2);
    assert_eq!(exits(&core.exited(30, 2, 0)), Some(0));
}

#[test]
fn s3_a_stop_event_while_a_hook_runs_is_not_lost() {
    let any = vec![event("a", Code::Stopping), event("b", Code::Stopping)];
    let hook = with_trigger("hook", Trigger::Any { conditions: any, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![plain_job("a"), plain_job("b"), hook]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    assert_eq!(spawned(&core.exited(10, 1, 0)), 1);
    core.started(3);
    assert_eq!(spawned(&core.at(20, TERM)), 0);
    assert_eq!(spawned(&core.exited(30, 3, 0)), 1, "for the stopping of b");
    core.started(4);
    assert_eq!(killed(&core.exited(40, 4, 0)), [15]);
    assert_eq!(exits(&core.exited(50, 2, 0)), Some(0));
}

#[test]
fn s3_a_job_without_a_program_does_not_start_during_a_shutdown() {
    let mut elsewhere = when("elsewhere", "global", Code::Shutdown, Repeat::Once);
    elsewhere.exec = Exec::Nothing;
    elsewhere.service = Some(service("elsewhere", Some(Status::Passing)));
    let elsewhere = with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report);
    let mut core = TestCore::new(vec![plain_job("a"), elsewhere]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(10, TERM)), [15]);
    assert!(core.state(1).has_ended());
    assert_eq!(core.count(Code::Healthy), 0);
}

#[test]
fn s7_signals_before_the_process_has_started_are_forwarded_in_order() {
    let mut main = plain_job("main");
    main.role = Role::Main;
    (main.on_failure, main.on_success) = (OnCompletion::Shutdown, OnCompletion::Shutdown);
    let mut core = TestCore::of(Plan { pass_signals: true, ..plain_plan(vec![main]) });
    assert!(killed(&core.at(0, Input::Signal(Signal(10)))).is_empty(), "there is no process");
    assert_eq!(killed(&core.at(1, Input::Ready)), [10]);
    assert_eq!(killed(&core.at(2, TERM)), [15]);
    assert_eq!(killed(&core.at(3, Input::Signal(Signal(1)))), [1]);
    core.started(1);
    let effects = core.at(
        4,
        Input::Exited { run: RunId(1), status: ExitStatus::Signal(Signal::TERM), remains: Remains::Nothing },
    );
    assert_eq!((exits(&effects), core.core.phase()), (Some(143), Phase::Exited));
}

#[test]
fn x1_c6_pending_reloads_are_refused_when_the_supervisor_stops() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent")]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    let (first, second) = (reload(&core, 1), reload(&core, 2));
    let effects = core.at(10, first);
    assert_eq!((killed(&effects), reload_answers(&effects)), (vec![15], (0, 0)));
    assert_eq!(reload_answers(&core.at(20, second)), (0, 0), "the coprocess ignores the signal");
    assert_eq!(reload_answers(&core.at(30, TERM)), (0, 2));
}

#[test]
fn r3_a_coprocess_that_drains_too_long_is_killed_for_the_reload() {
    let mut agent = coprocess("agent");
    agent.stop.drain = Drain::For(Duration::from_secs(60));
    let mut core = TestCore::new(vec![plain_job("a"), agent]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    let reload = reload(&core, 1);
    core.at(10, reload);
    assert!(killed(&core.at(5_009, Input::Tick)).is_empty());
    assert_eq!(killed(&core.at(5_010, Input::Tick)), [9]);
    let effects = core.exited(5_020, 1, 137);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (1, (1, 0)));
}

#[test]
fn e3_an_unreachable_job_stops_before_a_reload_starts_its_next_generation() {
    let unreachable = when("unreachable", "missing", Code::Stopping, Repeat::Once);
    let hook = when("hook", "unreachable", Code::Stopping, Repeat::Each);
    let mut core = TestCore::new(vec![coprocess("agent"), unreachable, hook]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    core.exited(5, 1, 0);
    let reload = reload(&core, 1);
    assert_eq!(reload_answers(&core.at(10, reload)), (0, 0));
    assert_eq!((core.count(Code::Stopping), core.count(Code::Stopped)), (2, 1), "its hook still runs");
    // S15: it is killed after five minutes, and abandoned two seconds later.
    assert_eq!(killed(&core.at(300_000, Input::Tick)), [9]);
    let effects = core.at(302_000, Input::Tick);
    assert_eq!(reload_answers(&effects), (1, 0));
    let codes: Vec<Code> = core.core.journal().events().map(|event| event.code).skip(5).collect();
    // The end of the hook, and then that of the job.
    assert_eq!(codes[..4], [Code::ExitFailed, Code::Stopping, Code::Stopped, Code::Stopped]);
    assert_eq!(codes[4..6], [Code::Startup, Code::Stopping]);
}

#[test]
fn r3_p3_a_start_that_does_not_end_is_given_up_for_a_reload() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent")]);
    core.at(0, Input::Ready);
    core.started(2);
    let reload = reload(&core, 1);
    core.at(10, reload);
    let effects = core.at(5_010, Input::Tick);
    assert!(effects.contains(&Effect::CancelStart { run: RunId(1) }), "{effects:?}");
    assert_eq!((spawned(&effects), reload_answers(&effects)), (1, (1, 0)), "nothing is waited for");
}

#[test]
fn r3_x2_a_manual_restart_waits_for_the_reload_that_restarts_the_job() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent"), coprocess("slow")]);
    core.at(0, Input::Ready);
    for run in 1..=3 {
        core.started(run);
    }
    let (restart, reload) = (by_hand(Request::Restart(JobIx(1))), reload(&core, 2));
    core.at(10, restart);
    core.at(10, reload);
    assert_eq!(spawned(&core.exited(20, 1, 0)), 0, "it would be stopped again at once");
    let effects = core.exited(30, 2, 0);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (2, (1, 0)));
}

#[test]
fn x2_an_empty_job_completes_in_one_step_each_time_it_is_started() {
    let mut empty = with_trigger("empty", Trigger::Never);
    empty.exec = Exec::Nothing;
    let mut core = TestCore::new(vec![plain_job("a"), empty]);
    core.at(0, by_hand(Request::Start(JobIx(1))));
    core.at(0, by_hand(Request::Start(JobIx(1))));
    core.at(1, Input::Ready);
    assert_eq!((core.count(Code::Stopping), core.count(Code::Stopped)), (2, 2));
    assert_eq!((core.state(1).has_ended(), core.core.status(JobIx(1)).generation), (true, 1));
}
