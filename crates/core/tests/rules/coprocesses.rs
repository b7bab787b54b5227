//! C6: coprocesses.

use containerpilot_core::Input;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::{EventPattern, FirstTick, Trigger};
use containerpilot_core::request::Request;

use crate::harness::{Harness, plan};

fn running(text: &str) -> Harness {
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    harness
}

#[test]
fn c6_without_pre_start_coprocesses_start_before_every_other_job_and_before_health_checks() {
    let mut harness = running(
        "{ jobs: [{ name: 'tick', exec: 'x', when: { interval: 60 } },
                  { name: 'elsewhere', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } },
                  { name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'one', command: 'a' }, { name: 'two', command: 'b' }] }",
    );
    let acts = harness.take_effects();
    assert_eq!(acts, ["spawn one", "spawn two", "spawn tick", "check check.elsewhere", "spawn app"]);
}

#[test]
fn c6_with_pre_start_coprocesses_start_when_it_has_exited() {
    for code in [0, 3] {
        let mut harness = running(
            "{ jobs: [{ name: 'preStart', exec: 'x' },
                      { name: 'app', exec: 'x', when: { source: 'preStart', once: 'exitSuccess' } }],
               coprocesses: [{ name: 'co', command: 'a' }] }",
        );
        assert_eq!(harness.take_effects(), ["spawn preStart"]);
        harness.exit("preStart", code);
        let acts = harness.take_effects();
        assert_eq!(acts.first().map(String::as_str), Some("spawn co"), "preStart exits with {code}");
        assert_eq!(acts.contains(&"spawn app".to_owned()), code == 0);
    }
}

#[test]
fn c6_the_second_exit_of_pre_start_starts_nothing() {
    let mut harness = running(
        "{ jobs: [{ name: 'preStart', exec: 'x', restarts: 1 }, { name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    harness.exit("preStart", 1);
    harness.exit("co", 0);
    harness.exit("preStart", 0);
    let starts = harness.take_effects().iter().filter(|act| *act == "spawn co").count();
    assert_eq!(starts, 1);
}

#[test]
fn c6_restarts_are_never_a_number_or_unlimited() {
    for (restarts, runs) in [("'never'", 1), ("0", 1), ("1", 2), ("3", 4), ("'unlimited'", 20)] {
        let mut harness = running(&format!(
            "{{ jobs: [{{ name: 'app', exec: 'x' }}],
                coprocesses: [{{ name: 'co', command: 'a', restarts: {restarts} }}] }}"
        ));
        for _ in 0..20 {
            if harness.has_process("co") {
                harness.exit("co", 1);
            }
            harness.seconds(11);
        }
        let starts = harness.take_effects().iter().filter(|act| *act == "spawn co").count();
        assert!(starts >= runs && (restarts == "'unlimited'" || starts == runs), "{restarts}: {starts}");
        assert_eq!(harness.exit, None, "it never stops the supervisor");
    }
}

#[test]
fn c6_w10_a_coprocess_does_not_keep_the_supervisor_running() {
    let mut harness = running(
        "{ jobs: [{ name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    harness.exit("app", 0);
    assert!(harness.take_effects().contains(&"kill co 15".to_owned()));
    harness.exit_on("co", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c6_s5_a_failed_coprocess_does_not_change_the_exit_code() {
    let text = "{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a' }] }";
    let mut harness = running(text);
    harness.exit("co", 9);
    harness.exit("app", 0);
    assert_eq!(harness.exit, Some(0));
    let mut harness = running(text);
    harness.fail_start("co", StartErrorKind::NotFound);
    harness.exit("app", 4);
    assert_eq!(harness.exit, Some(4), "the job's own failure still counts");
}

#[test]
fn c6_coprocesses_stop_after_all_other_jobs() {
    let mut harness = running(
        "{ jobs: [{ name: 'app', exec: 'x' }, { name: 'bye', exec: 'x', when: { source: 'app', once: 'stopped' } }],
           coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.exit_on("app", 15);
    assert_eq!(harness.take_effects(), ["spawn bye"], "its hooks may still need the coprocess");
    harness.exit("bye", 0);
    assert_eq!(harness.take_effects(), ["kill co 15"]);
    harness.exit_on("co", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c6_a_coprocess_that_exits_during_a_shutdown_is_not_restarted() {
    let mut harness = running(
        "{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    harness.signal(15);
    harness.take_output();
    harness.exit("co", 0);
    harness.seconds(1);
    assert_eq!(harness.take_effects(), [""; 0]);
    harness.exit_on("app", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c6_a_stop_hook_of_a_coprocess_does_not_keep_it_running() {
    let mut harness = running(
        "{ jobs: [{ name: 'app', exec: 'x' }, { name: 'after', exec: 'x', when: { source: 'co', once: 'stopped' } }],
           coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    harness.signal(15);
    harness.exit_on("app", 15);
    harness.take_output();
    harness.exit_on("co", 15);
    assert_eq!(harness.take_effects(), ["spawn after"]);
    harness.exit("after", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c6_s4_coprocesses_get_their_stop_signal_when_the_stop_timeout_passes() {
    let mut harness = running(
        "{ stopTimeout: 3, jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    harness.signal(15);
    assert!(harness.take_effects().ends_with(&["kill app 15".into()]), "the coprocess goes on");
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill co 15", "kill app 9"]);
    assert!(harness.log.contains(&"not waiting any longer for other jobs, stopping".into()));
    harness.exit_on("app", 9);
    harness.seconds(3);
    assert_eq!(harness.take_effects(), ["kill co 9"]);
    harness.millis(400);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c6_sighup_and_sigusr1_are_not_forwarded_to_coprocesses() {
    let mut harness = running("{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ command: 'a' }] }");
    harness.take_output();
    harness.signal(1);
    harness.signal(10);
    assert_eq!(harness.take_effects(), [""; 0]);
}

#[test]
fn w10_coprocesses_alone_keep_the_supervisor_running() {
    let mut harness = running("{ coprocesses: [{ name: 'co', command: 'a' }] }");
    harness.exit("co", 7);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn c8_sigusr1_toggles_maintenance_if_the_plan_enables_it() {
    let service = "{ jobs: [{ name: 'db', port: 1, health: { exec: 'c', interval: 5, ttl: 15 } }] }";
    let mut harness = running(service);
    harness.finish_check(true);
    harness.take_output();
    harness.signal(10);
    assert_eq!(harness.take_output(), [""; 0], "the core ignores it in a version 3 file");
    let mut old = plan(service);
    old.legacy_maintenance = true;
    let mut harness = Harness::new(old);
    harness.input(Input::Ready);
    harness.finish_check(true);
    harness.take_output();
    harness.signal(10);
    assert_eq!(harness.take_output(), ["event global enterMaintenance", "advertise db absent"]);
    harness.signal(10);
    assert_eq!(harness.take_events().first().map(String::as_str), Some("global exitMaintenance"));
}

/// A plan with the maintenance mode of ContainerPilot 2.
fn legacy(text: &str) -> Harness {
    let mut old = plan(text);
    old.legacy_maintenance = true;
    Harness::new(old)
}

#[test]
fn c8_d8_maintenance_pauses_periodic_jobs_of_version_2() {
    let text = "{ jobs: [{ name: 'task', exec: 'x', restarts: 2, when: { interval: '10s' } }] }";
    let mut harness = legacy(text);
    harness.input(Input::Ready);
    harness.maintenance(true);
    assert_eq!(harness.take_effects(), ["spawn task"], "a run goes on");
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["kill task 9"], "up to its timeout");
    harness.exit_on("task", 9);
    harness.seconds(95);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    assert_eq!(
        harness.core.explain(JobIx(0), None).sentences()[0],
        "task: waiting for the end of maintenance mode"
    );
    harness.maintenance(false);
    for _ in 0..2 {
        assert_eq!(harness.take_effects(), [] as [&str; 0], "not before the tick");
        harness.seconds(5);
        assert_eq!(harness.take_effects(), ["spawn task"]);
        harness.exit("task", 0);
        harness.seconds(5);
    }
    assert_eq!(harness.exit, Some(0), "skipped ticks are not counted");
    let mut harness = Harness::new(plan(text));
    harness.input(Input::Ready);
    harness.exit("task", 0);
    harness.maintenance(true);
    harness.seconds(10);
    assert!(harness.has_process("task"), "a version 3 file");
}

#[test]
fn c8_d8_a_task_that_starts_in_maintenance_runs_first_after_it() {
    for by_hand in [false, true] {
        let mut harness =
            legacy("{ jobs: [{ name: 'task', exec: 'x', restarts: 0, when: { interval: '10s' } }] }");
        harness.maintenance(true);
        harness.input(Input::Ready);
        harness.seconds(25);
        assert_eq!(harness.take_effects(), [] as [&str; 0]);
        if by_hand {
            harness.request(Request::Start(JobIx(0)));
        } else {
            harness.maintenance(false);
            harness.seconds(5);
        }
        assert_eq!(harness.take_effects(), ["spawn task"]);
        harness.exit("task", 0);
        assert_eq!(harness.exit, Some(0), "it has had its only run");
    }
}

#[test]
fn c8_d8_a_tick_that_waits_for_an_exit_does_not_start_in_maintenance() {
    let mut harness = legacy("{ jobs: [{ name: 'task', exec: 'x', when: { interval: '10s' } }] }");
    harness.input(Input::Ready);
    harness.seconds(10);
    harness.maintenance(true);
    assert_eq!(harness.take_effects(), ["spawn task", "kill task 9"]);
    harness.exit_on("task", 9);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
}

#[test]
fn c8_d8_maintenance_holds_the_events_of_watches_of_version_2() {
    let mut harness = legacy(
        "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }],
           jobs: [{ name: 'main', exec: 'x' },
                  { name: 'onChange', exec: 'x', when: { source: 'watch.db', each: 'changed' } }] }",
    );
    harness.input(Input::Ready);
    harness.instances(1);
    harness.exit("onChange", 0);
    harness.take_output();
    harness.maintenance(true);
    for count in [2, 0, 3] {
        harness.instances(count);
    }
    assert_eq!(harness.take_output(), ["event global enterMaintenance"]);
    harness.maintenance(false);
    assert_eq!(
        harness.take_output(),
        [
            "event global exitMaintenance",
            "event watch.db changed",
            "event watch.db healthy",
            "spawn onChange"
        ]
    );
    harness.exit("onChange", 0);
    harness.maintenance(true);
    harness.instances(0);
    harness.instances(3);
    harness.take_output();
    harness.maintenance(false);
    assert_eq!(harness.take_output(), ["event global exitMaintenance"], "nothing has changed");
}

/// Tasks of a job that count their ticks from an event.
fn with_later_ticks(text: &str, event: EventPattern) -> Harness {
    let mut plan = plan(text);
    for job in &mut plan.jobs {
        if let Trigger::Interval { first, .. } = &mut job.when.trigger {
            *first = FirstTick::IntervalAfter(event.clone());
        }
    }
    Harness::new(plan)
}

const SETUP_AND_TASK: &str = "{ jobs: [{ name: 'main', exec: 'x' }, { name: 'setup', exec: 'x' },
    { name: 'task', exec: 'x', restarts: 1, when: { interval: '10s' } }] }";

#[test]
fn c8_w4_a_task_runs_first_one_interval_after_its_event() {
    let event = EventPattern { source: Source::Job("setup".into()), code: Code::ExitSuccess };
    let mut harness = with_later_ticks(SETUP_AND_TASK, event);
    harness.input(Input::Ready);
    harness.take_output();
    harness.seconds(33);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "it waits for setup");
    let waits = harness.core.explain(JobIx(2), None).sentences();
    assert_eq!(waits[0], "task: waiting to start");
    assert!(waits[1].contains("waiting until setup exits successfully"), "{waits:?}");
    harness.exit("setup", 0);
    for _ in 0..2 {
        harness.millis(9_999);
        assert_eq!(harness.take_effects(), [] as [&str; 0], "not before the tick");
        harness.millis(1);
        assert_eq!(harness.take_effects(), ["spawn task"]);
        harness.exit("task", 0);
    }
    assert!(harness.status("task").state.has_ended(), "one run and one restart");
}

#[test]
fn c8_w10_a_task_whose_event_cannot_come_is_skipped() {
    let event = EventPattern { source: Source::Job("setup".into()), code: Code::ExitSuccess };
    let mut harness = with_later_ticks(SETUP_AND_TASK, event);
    harness.input(Input::Ready);
    harness.exit("setup", 1);
    assert!(harness.status("task").state.has_ended());
    harness.exit("main", 0);
    assert!(harness.exit.is_some());
}

#[test]
fn c8_w4_a_task_without_pre_start_counts_from_the_startup() {
    let event = EventPattern { source: Source::Global, code: Code::Startup };
    let mut harness = with_later_ticks(SETUP_AND_TASK, event);
    harness.input(Input::Ready);
    harness.take_output();
    harness.seconds(10);
    assert_eq!(harness.take_effects(), ["spawn task"]);
}

#[test]
fn c6_s10_a_ring_with_a_coprocess_does_not_stop_another_coprocess_early() {
    let mut harness = running(
        "{ jobs: [{ name: 'app', exec: 'x', stopAfter: ['agent'] }],
           coprocesses: [{ name: 'co', command: 'a' }, { name: 'agent', command: 'a' }] }",
    );
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill agent 15"], "app stops after it");
    harness.exit_on("agent", 15);
    assert_eq!(harness.take_effects(), ["kill app 15"]);
    harness.exit_on("app", 15);
    assert_eq!(harness.take_effects(), ["kill co 15"]);
    harness.exit_on("co", 15);
    assert_eq!(harness.exit, Some(0));
}
