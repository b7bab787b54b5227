//! Processes (P1–P4, P9).

use crate::support::config::Config;
use crate::support::skip::skip;
use crate::support::supervisor::{Supervisor, child_pids, child_states, is_root, modes, state, wait_until};

#[test]
fn p1_orphans_are_reaped_and_the_process_name_is_containerpilot() {
    for mode in modes() {
        let script = "i=0; while [ $i -lt 300 ]; do (sleep 0.1 &); i=$((i+1)); done; echo made; sleep 1000";
        let mut run = Supervisor::start(
            mode,
            &format!("{{ jobs: [{{ name: 'a', exec: ['sh', '-c', '{script}'] }}] }}"),
        );
        run.wait_for_line("made");
        let pid = run.pid();
        wait_until("the orphans are reaped", || child_states(pid).len() == 1);
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!(name.trim(), "containerpilot");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn p1_p3_every_one_of_a_hundred_simultaneous_exits_is_reported() {
    for mode in modes() {
        let job = |config: Config, n| config.job(format!("j{n}"), format!("exec: ['sh', '-c', 'exit {n}']"));
        let run = Supervisor::start(mode, &(0..100).fold(Config::new(), job));
        let (_, log) = run.wait();
        for n in 0..100 {
            let word = format!(" j{n} exited with code {n} ");
            assert!(log.contains(&word), "{word}");
        }
    }
}

#[test]
fn p3_program_that_cannot_be_started_is_named_and_other_jobs_run() {
    for mode in modes() {
        let run = Supervisor::start(
            mode,
            "{ jobs: [{ name: 'a', exec: '/no/such' }, { name: 'b', exec: ['sh', '-c', 'echo on; exit 0'] }] }",
        );
        let (code, log) = run.wait();
        assert!(log.contains("/no/such: No such file or directory"));
        assert!(log.contains("on"));
        assert_eq!(code, 127);
    }
}

#[test]
fn p4_grandchild_that_keeps_the_output_open_does_not_delay_the_exit() {
    for mode in modes() {
        let config = "{ stopTimeout: 1, jobs: [
            { name: 'a', exec: ['sh', '-c', 'trap \"\" TERM; sleep 1000 & printf last'], restarts: 0 },
            { name: 'b', exec: 'sleep 1000', when: { source: 'a', once: 'exitSuccess' } } ] }";
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line(" b started");
        let pid = run.pid();
        wait_until("the orphaned process group is killed", || child_states(pid).len() == 1);
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(log.contains("last"));
    }
}

#[test]
fn p4_daemons_of_a_job_and_of_its_checks_end_with_the_run() {
    for mode in modes() {
        let config = "{ stopTimeout: 1, jobs: [
            { name: 'a', exec: ['sh', '-c', 'trap \"\" TERM; setsid @/daemon a & until test -e @/a; do sleep 0.01; done'] },
            { name: 'web', exec: ['sh', '-c', 'until test -e @/end; do sleep 0.05; done'],
              health: { exec: ['sh', '-c', 'test -e @/web || { setsid @/daemon web & until test -e @/web; do sleep 0.01; done; }'],
                        interval: 1, ttl: 5 } },
            { name: 'main', exec: 'sleep 1000' } ] }";
        let daemon = "printf '#!/bin/sh\ntouch @/$1; exec sleep 1000\n' > @/daemon; chmod +x @/daemon";
        let mut run = Supervisor::with_setup(mode, daemon, config);
        run.wait_for_line(" main started");
        let pid = run.pid();
        wait_until("the check has left a daemon", || run.file("web").exists());
        // `web`, `main` and the daemon of the check.
        wait_until("the daemon of the job is killed", || child_states(pid).len() == 3);
        std::fs::write(run.file("end"), "").unwrap();
        wait_until("the daemon of the check ends", || child_states(pid).len() == 1);
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        for job in ["a", "web"] {
            let warning = format!("{job} left processes outside of its process group, sent SIGTERM");
            assert!(log.contains(&warning), "no `{warning}`");
        }
    }
}

#[test]
fn p9_job_runs_as_its_user_in_its_directory() {
    if !is_root() {
        skip("needs root to switch users");
        return;
    }
    let config =
        "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'echo \"$(id -un) $(pwd) $K $HOME\"'], user: 'daemon',
        cwd: '/usr', env: { K: 'v' } }] }";
    for mode in modes() {
        assert!(Supervisor::start(mode, config).wait().1.contains("daemon /usr v /usr/sbin"));
    }
}

#[test]
fn p1_s1_job_can_stop_the_supervisor_with_kill_term() {
    for mode in modes() {
        let script = "kill -TERM $CONTAINERPILOT_PID; exec sleep 1000";
        let config = format!("{{ jobs: [{{ name: 'a', exec: ['sh', '-c', '{script}'] }}] }}");
        let (code, log) = Supervisor::start(mode, &config).wait();
        assert_eq!(code, 0);
        assert!(log.contains("received SIGTERM, shutting down"));
    }
}

#[test]
fn p1_s4_no_process_of_a_jobs_group_outlives_the_supervisor() {
    let config = "{ stopTimeout: 1, jobs: [{ name: 'a', exec: ['sh', '-c',
        'trap \"\" TERM; sh -c \"echo child \\\\$\\\\$; while :; do sleep 0.05; done\" & wait; sleep 1000'] }] }"
        .replace("',\n        '", "', '");
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        run.wait_for_line("child ");
        let job = child_pids(run.pid())[0];
        let child = child_pids(job)[0];
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
        wait_until("the child is gone", || !matches!(state(child), Some('S' | 'R')));
    }
}
