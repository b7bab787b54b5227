//! Signals that processes of the container send to PID 1 (S1, P1).

use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, modes};

#[test]
fn s1_s8_p1_only_sigterm_sigint_and_sigquit_end_pid_1() {
    if !modes().contains(&Mode::Pid1) {
        skip("creating a PID namespace is not permitted");
        return;
    }
    let config = "{ jobs: [{ name: 'sender', exec: '@programs/harmless-signals.sh' }, { name: 'main', exec: 'sleep 1000' },
        { name: 'next', exec: 'echo it goes on', when: { source: 'sender', once: 'exitSuccess' } }] }";
    let mut run = Supervisor::start(Mode::Pid1, config);
    run.wait_for_line("all are sent");
    run.wait_for_line("it goes on");
    // On a busy machine, the other two may be done before.
    run.wait_for_lines("main started", 1);
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("main exited with") && log.contains("main exited on SIGTERM"));
}
