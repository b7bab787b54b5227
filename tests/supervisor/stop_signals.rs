//! Restart policies and stop signals (W13, W14, S8, S9).

use super::stopping::stop_when_ready;
use crate::support::supervisor::{Supervisor, modes};

#[test]
fn w13_a_success_by_its_code_completes_a_job_that_is_restarted_on_failure() {
    let config =
        "{ jobs: [{ name: 'a', restarts: 'unlimited', restartOn: 'failure', successCodes: [0, 3, 'SIGUSR1'],
        exec: ['sh', '-c', 'if [ \"$CONTAINERPILOT_RESTARTS\" = 2 ]; then kill -USR1 $$; fi; exit 4'] }] }";
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 0);
        assert_eq!(log.matches("a exited with code 4").count(), 2);
        assert_eq!(log.matches("a exited on SIGUSR1").count(), 1);
    }
}

#[test]
fn w14_a_crash_loop_ends_the_container_with_the_code_of_the_job() {
    let config = "{ jobs: [{ name: 'a', restarts: 'unlimited', exec: ['sh', '-c', 'exit 6'],
        startLimit: { count: 3, within: '10m', then: 'shutdown' } }, { name: 'b', exec: 'sleep 1000' }] }";
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 6);
        assert_eq!(log.matches("a started").count(), 3);
        assert!(log.contains("crash loop: 3 starts within 10m0s, not starting again"));
    }
}

#[test]
fn s8_stop_on_is_the_signal_of_the_image_and_others_run_jobs() {
    let config = "{ stopOn: ['WINCH'], jobs: [{ name: 'a', exec: 'sleep 1000' },
        { name: 'b', exec: 'echo quit arrived', when: { source: 'SIGQUIT' } }] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line(" a started");
        run.signal("-TERM");
        run.wait_for_line("received SIGTERM, ignored; the stop signal is SIGWINCH");
        run.signal("-QUIT");
        run.wait_for_line("quit arrived");
        run.signal("-WINCH");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(log.contains("received SIGWINCH, shutting down"));
    }
}

#[test]
fn s9_an_escalation_ends_with_sigkill() {
    let config =
        "{ stopTimeout: 300, jobs: [{ name: 'a', stopSignal: ['INT', '200ms', 'TERM', '200ms', 'KILL'],
        exec: ['@programs/on-signal.sh', 'INT', 'echo got INT', 'TERM', 'echo got TERM'] }] }";
    for mode in modes() {
        let log = stop_when_ready(mode, config);
        for line in ["got INT", "did not exit within 200ms, sending SIGTERM", "got TERM", "exited on SIGKILL"]
        {
            assert!(log.contains(line), "no `{line}`");
        }
        assert!(log.contains("did not exit within 400ms, sending SIGKILL"));
    }
}

#[test]
fn s9_the_stop_signal_is_for_the_process_alone() {
    // The child would print before it exits, if it got the signal, too. A shell ignores SIGINT in the background, but not SIGHUP.
    let config = "{ stopTimeout: 300, jobs: [{ name: 'a', stopSignal: 'HUP', stopScope: 'process', exec: '@programs/parent-and-child.sh' }] }";
    for mode in modes() {
        let log = stop_when_ready(mode, config);
        assert!(log.contains("parent got HUP") && !log.contains("child got HUP"));
    }
}
