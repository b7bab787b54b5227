//! Coprocesses, as the manual of version 2 describes them (C6).

use std::fs;

use crate::support::supervisor::{Supervisor, modes};

/// A command that reports the signals it gets and keeps running until SIGTERM.
const REPORTS_SIGNALS: &str =
    "['@programs/on-signal.sh', 'HUP', 'echo got HUP', 'USR1', 'echo got USR1', 'TERM', 'echo bye; exit 0']";

#[test]
fn c6_coprocess_runs_beside_the_jobs_and_does_not_keep_the_supervisor_running() {
    for mode in modes() {
        let config = format!(
            "{{ jobs: [{{ name: 'app', exec: ['sh', '-c', 'read go < @/go; exit 5'] }}],
                coprocesses: [{{ name: 'helper', command: {REPORTS_SIGNALS}, restarts: 'unlimited' }}] }}"
        );
        let mut run = Supervisor::with_setup(mode, "mkfifo @/go", &config);
        run.wait_for_line("helper started");
        fs::write(run.file("go"), "\n").unwrap();
        run.wait_for_line("app exited with code 5");
        let (code, _) = run.wait();
        assert_eq!(code, 5, "the exit code is not that of the job");
    }
}

#[test]
fn c6_sighup_and_sigusr1_are_not_forwarded_to_a_coprocess() {
    for mode in modes() {
        let config = format!(
            "{{ jobs: [{{ name: 'app', exec: 'sleep 1000' }}],
                coprocesses: [{{ name: 'helper', command: {REPORTS_SIGNALS} }}] }}"
        );
        let mut run = Supervisor::start(mode, &config);
        run.wait_for_line(" ready");
        run.wait_for_lines("app started", 1);
        run.signal("-HUP");
        run.signal("-USR1");
        run.signal("-TERM");
        run.wait_for_line("bye");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(!log.contains("got HUP") && !log.contains("got USR1"));
    }
}

#[test]
fn c6_output_of_a_coprocess_is_logged() {
    let mut run = Supervisor::start(
        modes()[0],
        "{ logging: { format: 'json' }, jobs: [{ name: 'app', exec: 'sleep 1000' }],
           coprocesses: [{ name: 'helper', command: ['sh', '-c', 'echo out; echo err >&2; sleep 1000'] }] }",
    );
    for text in ["\"out\"", "\"err\""] {
        let line = run.wait_for_line(text);
        assert!(line.contains("helper"), "{line}");
    }
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn c6_coprocess_is_restarted_up_to_its_limit_and_never_ends_the_supervisor() {
    for mode in modes() {
        let mut run = Supervisor::start(
            mode,
            "{ jobs: [{ name: 'app', exec: 'sleep 1000' }],
               coprocesses: [{ name: 'twice', command: ['sh', '-c', 'echo one run; exit 3'], restarts: 1 },
                             { name: 'once', command: '/no/such/program' }] }",
        );
        run.wait_for_lines("twice started", 2);
        run.wait_for_line("twice failed");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!((code, log.matches("twice started").count()), (0, 2));
    }
}

#[test]
fn c6_coprocess_starts_after_pre_start_and_before_other_jobs() {
    for mode in modes() {
        let mut run = Supervisor::start(
            mode,
            "{ jobs: [{ name: 'preStart', exec: ['sh', '-c', 'echo first'] },
                      { name: 'app', exec: 'sleep 1000', when: { source: 'preStart', once: 'exitSuccess' } }],
               coprocesses: [{ name: 'helper', command: 'sleep 1000' }] }",
        );
        run.wait_for_line("app started");
        run.wait_for_lines("helper started", 1);
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}`"));
        assert!(at("preStart exited") < at("helper started"));
        // Both execute their programs at the same time; the process of the coprocess was created first.
        let pid = |name: &str| {
            let line =
                log.lines().find_map(|line| line.split_once(&format!("{name} started (pid "))).unwrap().1;
            line.split(')').next().unwrap().parse::<u32>().unwrap()
        };
        assert!(pid("helper") < pid("app"));
        assert!(at("app exited on") < at("helper exited on"), "it is stopped after the others");
    }
}
