//! `examples/under-init`.

use super::Container;
use crate::support::servers::unpacked;
use crate::support::supervisor::{child_pids, child_states, state, wait_until};

/// Runs the recipe under an init, and stops it with a signal to the init.
fn runs_under(init: &str, signal: &str) {
    let script = format!("set -- {} -- \"$@\"", unpacked(init, &format!("usr/bin/{init}")).display());
    let Some(mut container) = Container::start("under-init", &script) else { return };
    let run = &mut container.supervisor;
    run.wait_for_line("serving");
    // PID 1 is the init, and the supervisor is its only child.
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let first = run.pid();
    assert_eq!(name(first).trim(), init);
    let [supervisor] = child_pids(first)[..] else { panic!("{:?}", child_pids(first)) };
    assert_eq!(name(supervisor).trim(), "containerpilot");

    // Orphans become its children, and it reaps them: the same process is an orphan, and then it is gone.
    let orphans =
        || child_pids(supervisor).into_iter().filter(|pid| name(*pid).trim() == "sleep").collect::<Vec<_>>();
    for _ in 0..3 {
        let mut orphan = None;
        wait_until("the supervisor has an orphan", || {
            orphan = orphans().first().copied();
            orphan.is_some()
        });
        wait_until("it is reaped", || state(orphan.unwrap()).is_none());
        assert_eq!(child_pids(first), [supervisor], "the init gets no orphan");
    }
    wait_until("no zombie is left", || !child_states(supervisor).contains(&'Z'));

    run.signal("-USR2");
    run.wait_for_line("the platform has asked for a dump");
    run.signal(signal);
    run.wait_for_line("finishing");
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("server exited with code 0"));
}

#[test]
fn p1_s1_orphans_are_reaped_and_signals_arrive_under_tini() {
    // As `docker run --init` does.
    runs_under("tini", "-TERM");
}

#[test]
fn p1_s1_orphans_are_reaped_and_signals_arrive_under_dumb_init() {
    // The signal of Fly.io.
    runs_under("dumb-init", "-INT");
}
