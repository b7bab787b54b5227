//! C6: coprocesses, as far as the core decides about them.

use containerpilot_core::Input;
use containerpilot_core::input::StartErrorKind;

use crate::stage::{Stage, plan};

fn running(text: &str) -> Stage {
    let mut stage = Stage::new(plan(text));
    stage.input(Input::Ready);
    stage
}

#[test]
fn c6_without_pre_start_coprocesses_start_before_every_other_job_and_before_health_checks() {
    let mut stage = running(
        "{ jobs: [{ name: 'tick', exec: 'x', when: { interval: 60 } },
                  { name: 'elsewhere', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } },
                  { name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'one', command: 'a' }, { name: 'two', command: 'b' }] }",
    );
    let acts = stage.acts();
    assert_eq!(acts, ["spawn one", "spawn two", "spawn tick", "check check.elsewhere", "spawn app"]);
}

#[test]
fn c6_with_pre_start_they_start_when_it_has_exited_and_before_what_waits_for_it() {
    for code in [0, 3] {
        let mut stage = running(
            "{ jobs: [{ name: 'preStart', exec: 'x' },
                      { name: 'app', exec: 'x', when: { source: 'preStart', once: 'exitSuccess' } }],
               coprocesses: [{ name: 'co', command: 'a' }] }",
        );
        assert_eq!(stage.acts(), ["spawn preStart"]);
        stage.exit("preStart", code);
        let acts = stage.acts();
        assert_eq!(acts.first().map(String::as_str), Some("spawn co"), "preStart exits with {code}");
        assert_eq!(acts.contains(&"spawn app".to_owned()), code == 0);
    }
}

#[test]
fn c6_the_second_exit_of_pre_start_starts_nothing_again() {
    let mut stage = running(
        "{ jobs: [{ name: 'preStart', exec: 'x', restarts: 1 }, { name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    stage.exit("preStart", 1);
    stage.exit("co", 0);
    stage.exit("preStart", 0);
    let starts = stage.acts().iter().filter(|act| *act == "spawn co").count();
    assert_eq!(starts, 1);
}

#[test]
fn c6_restarts_are_never_a_number_or_unlimited() {
    for (restarts, runs) in [("'never'", 1), ("0", 1), ("1", 2), ("3", 4), ("'unlimited'", 20)] {
        let mut stage = running(&format!(
            "{{ jobs: [{{ name: 'app', exec: 'x' }}],
                coprocesses: [{{ name: 'co', command: 'a', restarts: {restarts} }}] }}"
        ));
        for _ in 0..20 {
            if stage.has_process("co") {
                stage.exit("co", 1);
            }
            stage.seconds(11);
        }
        let starts = stage.acts().iter().filter(|act| *act == "spawn co").count();
        assert!(starts >= runs && (restarts == "'unlimited'" || starts == runs), "{restarts}: {starts}");
        assert_eq!(stage.exit, None, "it never ends the supervisor");
    }
}

#[test]
fn c6_w10_a_coprocess_does_not_hold_the_supervisor_open() {
    let mut stage = running(
        "{ jobs: [{ name: 'app', exec: 'x' }],
           coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    stage.exit("app", 0);
    assert!(stage.acts().contains(&"kill co 15".to_owned()));
    stage.killed("co", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn c6_s5_the_failure_of_a_coprocess_is_not_that_of_the_container() {
    let text = "{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a' }] }";
    let mut stage = running(text);
    stage.exit("co", 9);
    stage.exit("app", 0);
    assert_eq!(stage.exit, Some(0));
    let mut stage = running(text);
    stage.fails_to_start("co", StartErrorKind::NotFound);
    stage.exit("app", 4);
    assert_eq!(stage.exit, Some(4), "the job's own failure still counts");
}

#[test]
fn c6_a_coprocess_is_stopped_when_the_others_are_done() {
    let mut stage = running(
        "{ jobs: [{ name: 'app', exec: 'x' }, { name: 'bye', exec: 'x', when: { source: 'app', once: 'stopped' } }],
           coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), ["kill app 15"]);
    stage.killed("app", 15);
    assert_eq!(stage.acts(), ["spawn bye"], "its hooks may still need the coprocess");
    stage.exit("bye", 0);
    assert_eq!(stage.acts(), ["kill co 15"]);
    stage.killed("co", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn c6_a_coprocess_that_ends_during_the_shutdown_is_not_restarted() {
    let mut stage = running(
        "{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a', restarts: 'unlimited' }] }",
    );
    stage.signal(15);
    stage.look();
    stage.exit("co", 0);
    stage.seconds(1);
    assert_eq!(stage.acts(), [""; 0]);
    stage.killed("app", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn c6_whoever_waits_for_the_end_of_a_coprocess_does_not_keep_it() {
    let mut stage = running(
        "{ jobs: [{ name: 'app', exec: 'x' }, { name: 'after', exec: 'x', when: { source: 'co', once: 'stopped' } }],
           coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    stage.signal(15);
    stage.killed("app", 15);
    stage.look();
    stage.killed("co", 15);
    assert_eq!(stage.acts(), ["spawn after"]);
    stage.exit("after", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn c6_s4_what_is_left_of_coprocesses_is_killed_with_the_rest() {
    let mut stage = running(
        "{ stopTimeout: 3, jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ name: 'co', command: 'a' }] }",
    );
    stage.signal(15);
    stage.look();
    stage.seconds(3);
    assert_eq!(stage.acts(), ["kill co 9", "kill app 9"]);
}

#[test]
fn c6_sighup_and_sigusr1_are_not_passed_on() {
    let mut stage = running("{ jobs: [{ name: 'app', exec: 'x' }], coprocesses: [{ command: 'a' }] }");
    stage.look();
    stage.signal(1);
    stage.signal(10);
    assert_eq!(stage.acts(), [""; 0]);
}

#[test]
fn w10_coprocesses_alone_are_all_there_is_to_do() {
    let mut stage = running("{ coprocesses: [{ name: 'co', command: 'a' }] }");
    stage.exit("co", 7);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn c8_sigusr1_toggles_maintenance_where_the_plan_says_so() {
    let service = "{ jobs: [{ name: 'db', port: 1, health: { exec: 'c', interval: 5, ttl: 15 } }] }";
    let mut stage = running(service);
    stage.checked(true);
    stage.look();
    stage.signal(10);
    assert_eq!(stage.look(), [""; 0], "in a version 3 file it means nothing to the core");
    let mut old = plan(service);
    old.toggle_maintenance = true;
    let mut stage = Stage::new(old);
    stage.input(Input::Ready);
    stage.checked(true);
    stage.look();
    stage.signal(10);
    assert_eq!(stage.look(), ["event global enterMaintenance", "advertise db absent"]);
    stage.signal(10);
    assert_eq!(stage.events().first().map(String::as_str), Some("global exitMaintenance"));
}
