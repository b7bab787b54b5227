//! S1, S4, W3, R1, L1: what `docker stop` and `docker kill` mean.

use std::time::Duration;

use crate::engine::{Container, busybox};

#[test]
fn s4_docker_stop_is_over_as_soon_as_the_jobs_are() {
    // Who waits for either time is found out.
    let config = "{ stopTimeout: 300, jobs: [
        { name: 'a', exec: 'sleep 1000' },
        { name: 'farewell', exec: 'echo goodbye', when: { source: 'a', once: 'stopping' } },
    ] }";
    let container = Container::start(config, &[], busybox());
    container.says("a started");
    let took = container.stop(300);
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(container.code(), "0");
    let log = container.logs();
    let place = |part: &str| log.find(part).unwrap_or_else(|| panic!("{part}: {log}"));
    assert!(place("goodbye") < place("a was ended by signal 15"), "{log}");
}

#[test]
fn s4_a_job_that_does_not_listen_is_killed_before_docker_would_kill_everything() {
    // The default stop time is five seconds, and Docker's patience ten: here it has more, as the machine may be busy.
    let deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
    let config = format!(
        "{{ jobs: [{{ name: 'a', exec: ['sh', '-c', {deaf:?}] }}, {{ name: 'b', exec: 'sleep 1000' }}] }}"
    );
    let container = Container::start(&config, &[], busybox());
    container.says("deaf");
    container.stop(60);
    assert_eq!(container.code(), "0", "137 would be Docker's own SIGKILL");
    let log = container.logs();
    for part in ["b was ended by signal 15", "the stop time has passed", "a was ended by signal 9"] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn s7_alone_with_a_program_every_signal_goes_on_to_it() {
    let script = "trap 'echo hup' HUP; trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    let container = Container::running(&[], busybox(), &["--", "sh", "-c", script]);
    container.says("ready");
    container.kill("HUP");
    container.says("hup");
    container.stop(300);
    assert_eq!(container.code(), "3");
    assert!(container.logs().contains("bye"));
}

#[test]
fn w3_docker_kill_runs_the_jobs_that_wait_for_the_signal() {
    let config = "{ jobs: [
        { name: 'main', exec: 'sleep 1000' },
        { name: 'at-hup', exec: 'echo hup came', when: { source: 'SIGHUP' } },
        { name: 'at-usr2', exec: 'echo usr2 came', when: { source: 'SIGUSR2' } },
    ] }";
    let container = Container::start(config, &[], busybox());
    container.says("main started");
    container.kill("HUP");
    container.says("hup came");
    container.kill("USR2");
    container.says("usr2 came");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
}

#[test]
fn r1_docker_kill_hup_reloads_where_no_job_waits_for_it() {
    let container = Container::start("{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }", &[], busybox());
    container.says("main started");
    container.kill("HUP");
    container.says("received SIGHUP, reloading the configuration");
    container.says("kept 1 job");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
}

#[test]
fn l1_docker_kill_usr1_opens_the_log_file_anew() {
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
