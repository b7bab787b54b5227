//! The effects of `docker stop` and `docker kill` (L1, R1, S4, S7, S14, W3).

use std::time::Duration;

use super::engine::{Container, busybox};

#[test]
fn s4_docker_stop_returns_as_soon_as_the_jobs_have_exited() {
    // Both timeouts are so long that waiting for either fails the test.
    let config = "{ stopTimeout: 300, jobs: [
        { name: 'a', exec: 'sleep 1000' },
        { name: 'farewell', exec: 'echo goodbye', when: { source: 'a', once: 'stopping' } },
    ] }";
    let container = Container::start(config, &[], busybox());
    container.wait_for_log("a started");
    let took = container.stop(300);
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(container.exit_code(), "0");
    let log = container.logs();
    let position = |part: &str| log.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(position("goodbye") < position("a exited on SIGTERM"));
}

#[test]
fn s4_job_that_ignores_sigterm_is_killed_before_dockers_own_timeout() {
    // The default stop timeout is 5 s and Docker's is 10 s; here Docker gets more, because the machine may be busy.
    let deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
    let config = format!(
        "{{ jobs: [{{ name: 'a', exec: ['sh', '-c', {deaf:?}] }}, {{ name: 'b', exec: 'sleep 1000' }}] }}"
    );
    let container = Container::start(&config, &[], busybox());
    container.wait_for_log("deaf");
    container.stop(60);
    assert_eq!(container.exit_code(), "0", "137 would be SIGKILL by Docker");
    let log = container.logs();
    for part in ["b exited on SIGTERM", "stop timeout of ", "a exited on SIGKILL"] {
        assert!(log.contains(part), "{part}");
    }
}

#[test]
fn s14_docker_stop_lets_the_program_behind_a_shell_finish() {
    let app = "trap 'sleep 1; echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done";
    let shell = format!("sh -c {app:?} & wait");
    let config = format!("{{ stopTimeout: 300, jobs: [{{ name: 'app', exec: ['sh', '-c', {shell:?}] }}] }}");
    let container = Container::start(&config, &[], busybox());
    container.wait_for_log("up");
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
    let log = container.logs();
    for part in ["app waiting for the rest of its process group; at its exit that was ", "saved"] {
        assert!(log.contains(part), "{part}");
    }
}

#[test]
fn s7_without_a_file_signals_are_forwarded_to_the_program() {
    let script = "trap 'echo hup' HUP; trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    let container = Container::start_with_args(&[], busybox(), &["--", "sh", "-c", script]);
    container.wait_for_log("ready");
    container.kill("HUP");
    container.wait_for_log("hup");
    container.stop(300);
    assert_eq!(container.exit_code(), "3");
    assert!(container.logs().contains("bye"));
}

#[test]
fn w3_docker_kill_runs_the_jobs_triggered_by_the_signal() {
    let config = "{ jobs: [
        { name: 'main', exec: 'sleep 1000' },
        { name: 'at-hup', exec: 'echo hup came', when: { source: 'SIGHUP' } },
        { name: 'at-usr2', exec: 'echo usr2 came', when: { source: 'SIGUSR2' } },
    ] }";
    let container = Container::start(config, &[], busybox());
    container.wait_for_log("main started");
    container.kill("HUP");
    container.wait_for_log("hup came");
    container.kill("USR2");
    container.wait_for_log("usr2 came");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
}

#[test]
fn r1_docker_kill_hup_reloads_if_no_job_has_it_as_its_source() {
    let container = Container::start("{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }", &[], busybox());
    container.wait_for_log("main started");
    container.kill("HUP");
    container.wait_for_log("received SIGHUP, reloading the configuration");
    container.wait_for_log("kept 1 job");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
}

#[test]
fn l1_docker_kill_usr1_reopens_the_log_file() {
    let script = "while :; do echo tick; sleep 0.1; done";
    let config = format!(
        "{{ logging: {{ output: '/run/log' }}, jobs: [{{ name: 'main', exec: ['sh', '-c', {script:?}] }}] }}"
    );
    let container = Container::start(&config, &["--tmpfs", "/run"], busybox());
    let has_ticks = |file: &str| {
        let script = format!("until grep -q tick {file}; do sleep 0.1; done");
        container.shell(&script);
    };
    has_ticks("/run/log");
    container.shell("mv /run/log /run/old");
    container.kill("USR1");
    has_ticks("/run/log");
}
