//! Signals from inside the container to PID 1 (S1, P1).

use crate::support::{As, Supervisor, ways};

#[test]
fn s1_no_signal_but_those_that_mean_it_ends_pid_1() {
    if !ways().contains(&As::Init) {
        eprintln!("skipped: no right to make a namespace");
        return;
    }
    // SIGHUP, SIGUSR1 and SIGUSR2 have their meanings, and SIGTERM and SIGINT are asked to end it.
    let script = "for s in QUIT ILL TRAP ABRT BUS FPE KILL SEGV PIPE ALRM CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ \
        VTALRM PROF WINCH IO PWR SYS 34 40 64; do kill -$s 1; kill -$s 1; done; \
        i=0; while [ $i -lt 200 ]; do kill -CHLD 1; i=$((i+1)); done; echo all are sent";
    let config = format!(
        "{{ jobs: [{{ name: 'sender', exec: ['bash', '-c', '{script}'] }}, {{ name: 'main', exec: 'sleep 1000' }},
                   {{ name: 'next', exec: 'echo it goes on', when: {{ source: 'sender', once: 'exitSuccess' }} }}] }}"
    );
    let mut run = Supervisor::start(As::Init, &config);
    run.line("all are sent");
    run.line("it goes on");
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("main exited with") && log.contains("main exited on SIGTERM"), "{log}");
}
