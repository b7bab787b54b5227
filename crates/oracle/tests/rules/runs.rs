//! Runs, triggers, health and the catalog.

use std::time::Duration;

use containerpilot_core::effect::{DesiredService, Effect};
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{JobIx, RunId, WatchIx};
use containerpilot_core::input::{Answer, ExitStatus, Input, Instance, Remains};
use containerpilot_core::plan::{
    Drain, EventPattern, Exec, OnUnhealthy, Plan, Probe, Repeat, Restarts, Signal, Status, Trigger, Watch,
    WatchKind,
};
use containerpilot_core::request::{Request, RequestId};
use containerpilot_oracle::random::{consul, plain_job, plain_plan, service};
use containerpilot_simulation::world::pid_of;

use super::support::{
    TERM, TestCore, check, event, exec, exits, killed, maintenance, spawned, with_health, with_trigger,
};

#[test]
fn p3_p5_a_process_whose_exit_is_reported_late_is_neither_killed_nor_timed_out() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(100));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.exited(150, 1, 0);
    assert!(killed(&effects).is_empty());
    assert_eq!(core.count(Code::ExitSuccess), 1);
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p4_an_orphaned_process_group_does_not_outlive_the_supervisor() {
    let mut core = TestCore::new(vec![plain_job("a")]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.at(
        10,
        Input::Exited {
            run: RunId(1),
            status: ExitStatus::Code(0),
            remains: Remains::Group("sleep (7)".into()),
        },
    );
    assert!(effects.contains(&Effect::KillOrphans { run: RunId(1) }));
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p5_w4_a_run_that_dies_slowly_is_killed_once_and_counts_as_one_tick() {
    let mut job = with_trigger("a", Trigger::every(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Limited(4);
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(100, Input::Tick)), [9]);
    assert!(killed(&core.at(200, Input::Tick)).is_empty());
    assert!(killed(&core.at(300, Input::Tick)).is_empty());
    assert_eq!(core.core.status(JobIx(0)).restarts, 1);
    assert_eq!(spawned(&core.exited(310, 1, 137)), 1);
}

#[test]
fn p5_s4_a_run_killed_by_the_shutdown_is_not_killed_again_at_its_timeout() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(5_200));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(10, TERM)), [15]);
    assert_eq!(killed(&core.at(5_010, Input::Tick)), [9]);
    assert!(killed(&core.at(5_300, Input::Tick)).is_empty());
    assert_eq!(exits(&core.at(5_410, Input::Tick)), Some(0));
}

#[test]
fn e7_inputs_before_the_startup_take_effect_after_it() {
    let source = Source::Watch("db".into());
    let trigger =
        Trigger::Event { event: EventPattern { source, code: Code::Healthy }, repeat: Repeat::Once };
    let watch = Watch {
        name: "db".into(),
        interval: Duration::from_secs(1),
        kind: WatchKind::Service { tag: None, dc: None },
    };
    let hup = EventPattern { source: Source::Signal(Signal::HUP), code: Code::Signal };
    let reload = with_trigger("b", Trigger::Event { event: hup, repeat: Repeat::Each });
    let plan = Plan {
        watches: vec![watch],
        catalog: consul(),
        ..plain_plan(vec![with_trigger("a", trigger), reload])
    };
    let mut core = TestCore::of(plan);
    let one = Instance { id: "db-1".into(), address: "10.0.0.1".into(), port: 5432, ..Instance::default() };
    core.at(0, Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(vec![one])) });
    core.at(0, Input::Signal(Signal(1)));
    assert_eq!(spawned(&core.at(1, Input::Ready)), 2);
    let codes: Vec<Code> = core.core.journal().events().map(|event| event.code).collect();
    assert_eq!(codes, [Code::Startup, Code::Changed, Code::Healthy, Code::Signal]);
}

#[test]
fn d8_maintenance_before_the_startup_keeps_services_out_of_the_catalog() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", Some(Status::Passing)));
    let mut core = TestCore::new(vec![job]);
    core.at(0, maintenance(true));
    core.at(1, Input::Ready);
    assert_eq!(core.count(Code::EnterMaintenance), 1);
    assert!(core.started(1).is_empty());
    let effects = core.at(2, maintenance(false));
    let present = Effect::Advertise { job: JobIx(0), desired: DesiredService::Present(Status::Passing) };
    assert!(effects.contains(&present));
}

#[test]
fn w7_an_event_named_twice_runs_a_job_once() {
    let twice = vec![event("global", Code::Startup), event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::Any { conditions: twice, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.exited(10, 1, 0);
    assert_eq!((spawned(&effects), exits(&effects)), (0, Some(0)));
}

#[test]
fn w12_unhealthy_resets_a_healthy_condition_before_the_trigger_is_evaluated() {
    let source = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    let conditions = vec![event("a", Code::Unhealthy), event("a", Code::Healthy)];
    let waits = with_trigger("b", Trigger::All { conditions, repeat: Repeat::Once });
    let mut core = TestCore::new(vec![source, waits]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    core.at(1_000, Input::Tick);
    assert_eq!(spawned(&core.checked(1_010, 2, false)), 0, "it is not healthy");
    core.at(2_000, Input::Tick);
    assert_eq!(spawned(&core.checked(2_010, 3, true)), 1, "it was unhealthy and is healthy again");
}

#[test]
fn w10_a_job_whose_conditions_cannot_hold_again_completes() {
    let conditions = vec![event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::All { conditions, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(exits(&core.exited(10, 1, 0)), Some(0));
}

#[test]
fn h2_a_new_run_starts_with_unknown_health() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let job = with_health(job, vec![check(Probe::Running), check(exec())], OnUnhealthy::Report);
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    assert_eq!(core.core.status(JobIx(0)).healthy, Some(true));
    core.exited(20, 1, 0);
    core.started(2);
    assert_eq!(core.core.status(JobIx(0)).healthy, None);
    core.checked(30, 2, true);
    assert_eq!(core.core.status(JobIx(0)).healthy, Some(true));
}

#[test]
fn h7_a_complete_job_without_a_process_is_not_healthy() {
    let mut elsewhere = plain_job("a");
    elsewhere.exec = Exec::Nothing;
    let mut core = TestCore::new(vec![with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report)]);
    core.at(0, Input::Ready);
    core.checked(10, 1, true);
    assert_eq!(exits(&core.at(20, TERM)), Some(0));
    assert_eq!(core.core.status(JobIx(0)).healthy, None);
    assert_eq!(core.count(Code::Unhealthy), 1);
}

#[test]
fn h8_a_job_that_flaps_while_it_stops_gets_one_sigterm_and_is_killed_in_time() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![with_health(job, vec![check(exec())], OnUnhealthy::Restart)]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(0, 1, true);
    let mut signals = Vec::new();
    for (second, run) in (1..=12).zip(2..) {
        signals
            .extend(killed(&core.at(second * 1_000, Input::Tick)).into_iter().map(|signal| (second, signal)));
        let passes = second % 2 == 0;
        signals.extend(
            killed(&core.checked(second * 1_000, run, passes)).into_iter().map(|signal| (second, signal)),
        );
    }
    assert_eq!(signals, [(1, 15), (6, 9)]);
}

#[test]
fn w4_a_run_that_started_after_a_missed_tick_is_not_killed_for_it() {
    let mut job = with_trigger("a", Trigger::every(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.exited(10, 1, 0);
    assert_eq!(spawned(&core.at(100, Input::Tick)), 1);
    let late = core.at(250, Input::Started { run: RunId(2), pid: pid_of(RunId(2)) });
    assert!(killed(&late).is_empty(), "the tick was due at 200 ms, and the run started at 250 ms");
}

#[test]
fn w4_x2_a_manual_run_between_two_ticks_has_its_whole_timeout() {
    let mut job = with_trigger("a", Trigger::every(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.exited(10, 1, 0);
    let start = Input::Request { id: RequestId(1), request: Request::Start(JobIx(0)) };
    assert_eq!(spawned(&core.at(20, start)), 1);
    core.started(2);
    assert!(killed(&core.at(100, Input::Tick)).is_empty(), "this tick is skipped");
    assert_eq!(killed(&core.at(120, Input::Tick)), [9]);
    assert_eq!(spawned(&core.exited(130, 2, 137)), 0);
    assert_eq!(spawned(&core.at(200, Input::Tick)), 1);
}

#[test]
fn d8_h7_maintenance_does_not_suppress_unhealthy_of_a_stopping_job() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.stop.drain = Drain::For(Duration::from_secs(1));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    core.at(20, Input::Request { id: RequestId(1), request: Request::Stop(JobIx(0)) });
    core.at(30, maintenance(true));
    core.exited(40, 1, 0);
    assert_eq!(core.count(Code::Unhealthy), 1);
}
