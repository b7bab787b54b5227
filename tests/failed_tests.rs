//! What a test that fails prints. Each case is this test again in a process of its own, which fails on purpose.

use crate::support::failure::{CASE, in_own_process};
use crate::support::supervisor::{Mode, Stdout, Supervisor, modes, wait_until};

const JOB: &str =
    "jobs: [{ name: 'a', exec: ['sh', '-c', 'echo from the job; touch @/done; exec sleep 1000'] }]";

/// Starts a supervisor, and fails without waiting for its log.
fn fail(mode: Mode, output: Stdout, config: &str) {
    let run = Supervisor::with_stdout(mode, output, &format!("{{ {config} }}"));
    wait_until("the job has written", || run.file("done").exists());
    panic!("on purpose");
}

fn run_case(case: &str) {
    match case {
        "plain" => fail(Mode::Plain, Stdout::Read, JOB),
        "PID 1" => fail(Mode::Pid1, Stdout::Read, JOB),
        "its output is not read" => fail(Mode::Plain, Stdout::Unread, JOB),
        "log file" => fail(Mode::Plain, Stdout::Closed, &format!("logging: {{ output: '@/log' }}, {JOB}")),
        "refuses its configuration" => {
            assert_eq!(Supervisor::start(Mode::Plain, "{ jobs: [{ from the job: 'job=a' }] }").wait().0, 0);
        }
        "has exited" | "passes" => {
            let config = "{ jobs: [{ name: 'a', exec: 'echo from the job' }] }";
            let (code, _) = Supervisor::start(Mode::Plain, config).wait();
            assert_eq!(code, if case == "passes" { 0 } else { 1 });
        }
        other => panic!("no case `{other}`"),
    }
}

fn case(name: &str) -> (i32, String) {
    in_own_process("failed_tests::a_failed_test_prints_the_log_of_its_supervisor", name)
}

#[test]
fn a_failed_test_prints_the_log_of_its_supervisor() {
    if let Ok(name) = std::env::var(CASE) {
        return run_case(&name);
    }
    let mut cases = vec!["plain", "its output is not read", "log file", "has exited"];
    if modes().contains(&Mode::Pid1) {
        cases.push("PID 1");
    }
    for name in cases {
        let (code, printed) = case(name);
        assert!(
            code == 101 && printed.matches("from the job").count() == 1,
            "{name}: exit code {code}:\n{printed}"
        );
    }
    let (code, printed) = case("refuses its configuration");
    assert!(code == 101 && printed.contains("config.json5:1:"), "exit code {code}:\n{printed}");
    let (code, printed) = case("passes");
    assert!(code == 0 && !printed.contains("from the job"), "exit code {code}:\n{printed}");
}
