//! C6: coprocesses, each sentence that version 2's manual said of them.

use crate::support::{Supervisor, ways};

/// A script that says what it gets, and goes on.
const STUBBORN: &str = "trap 'echo got HUP' HUP; trap 'echo got USR1' USR1; trap 'echo bye; exit 0' TERM; echo up; \
     while :; do sleep 0.02; done";

#[test]
fn c6_it_remains_running_alongside_and_does_not_hold_the_supervisor() {
    for how in ways() {
        let config = format!(
            "{{ jobs: [{{ name: 'app', exec: ['sh', '-c', 'exit 5'] }}],
                coprocesses: [{{ name: 'helper', command: ['sh', '-c', \"{STUBBORN}\"], restarts: 'unlimited' }}] }}"
        );
        let mut run = Supervisor::start(how, &config);
        run.line("helper started");
        run.line("app exited with code 5");
        let (code, log) = run.end();
        assert_eq!(code, 5, "the job's end is the end, with its code\n{log}");
    }
}

#[test]
fn c6_sighup_and_sigusr1_are_not_passed_to_it() {
    for how in ways() {
        let config = format!(
            "{{ jobs: [{{ name: 'app', exec: 'sleep 1000' }}],
                coprocesses: [{{ name: 'helper', command: ['sh', '-c', \"{STUBBORN}\"] }}] }}"
        );
        let mut run = Supervisor::start(how, &config);
        run.line(" up");
        run.lines("app started", 1);
        run.signal("-HUP");
        run.signal("-USR1");
        run.signal("-TERM");
        run.line("bye");
        let (code, log) = run.end();
        assert_eq!(code, 0);
        assert!(!log.contains("got HUP") && !log.contains("got USR1"), "{log}");
    }
}

#[test]
fn c6_its_output_goes_through_the_log() {
    let mut run = Supervisor::start(
        ways()[0],
        "{ logging: { format: 'json' }, jobs: [{ name: 'app', exec: 'sleep 1000' }],
           coprocesses: [{ name: 'helper', command: ['sh', '-c', 'echo out; echo err >&2; sleep 1000'] }] }",
    );
    for text in ["\"out\"", "\"err\""] {
        let line = run.line(text);
        assert!(line.contains("helper"), "{line}");
    }
    run.signal("-TERM");
    assert_eq!(run.end().0, 0);
}

#[test]
fn c6_it_is_restarted_as_often_as_it_may_be_and_does_not_end_the_supervisor() {
    for how in ways() {
        let mut run = Supervisor::start(
            how,
            "{ jobs: [{ name: 'app', exec: 'sleep 1000' }],
               coprocesses: [{ name: 'twice', command: ['sh', '-c', 'echo one run; exit 3'], restarts: 1 },
                             { name: 'once', command: '/no/such/program' }] }",
        );
        run.lines("twice started", 2);
        run.line("twice complete");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!((code, log.matches("twice started").count()), (0, 2), "{log}");
    }
}

#[test]
fn c6_it_starts_right_after_the_exit_of_pre_start_and_before_the_rest() {
    for how in ways() {
        let mut run = Supervisor::start(
            how,
            "{ jobs: [{ name: 'preStart', exec: ['sh', '-c', 'echo first'] },
                      { name: 'app', exec: 'sleep 1000', when: { source: 'preStart', once: 'exitSuccess' } }],
               coprocesses: [{ name: 'helper', command: 'sleep 1000' }] }",
        );
        run.line("app started");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0);
        let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}` in\n{log}"));
        assert!(at("preStart exited") < at("helper started"));
        assert!(at("helper started") < at("app started"));
        assert!(at("app exited on") < at("helper exited on"), "it is stopped after the others\n{log}");
    }
}
