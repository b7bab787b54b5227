//! Exit codes and complete logs of containers, as Docker reports them (S5–S7, L3).

use super::engine::{Container, busybox, docker, scratch};

#[test]
fn s7_exit_code_of_the_program_is_that_of_the_container() {
    for (script, code) in [("exit 0", "0"), ("exit 7", "7"), ("kill -9 $$", "137")] {
        let container = Container::start_with_args(&[], busybox(), &["--", "sh", "-c", script]);
        assert_eq!(container.exit_code(), code, "{script}");
    }
    let container = Container::start_with_args(&[], scratch(), &["--", "/bin/nowhere"]);
    assert_eq!(container.exit_code(), "127");
}

#[test]
fn s5_exit_code_of_the_first_failed_job_is_that_of_the_container() {
    let config = "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'exit 9'] }, { name: 'b', exec: 'true' }] }";
    assert_eq!(Container::start(config, &[], busybox()).exit_code(), "9");
}

#[test]
fn s5_configuration_error_exits_with_1_as_pid_1_and_names_its_location() {
    let container = Container::start("{ jobs: [{ nane: 'a' }] }", &[], scratch());
    assert_eq!(container.exit_code(), "1");
    let log = container.logs();
    assert!(log.contains("/etc/containerpilot.json5:1:") && log.contains("nane"));
}

#[test]
fn s5_exit_code_after_docker_stop_is_0() {
    let container = Container::start("{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }", &[], busybox());
    container.wait_for_log("a started");
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
}

#[test]
fn s6_docker_logs_has_every_line_even_a_last_one_without_newline() {
    let script =
        "i=0; while [ $i -lt 20000 ]; do echo line $i of many; i=$((i+1)); done; printf 'the very last'";
    let config = format!("{{ jobs: [{{ name: 'a', exec: ['sh', '-c', {script:?}] }}] }}");
    let container = Container::start(&config, &[], busybox());
    assert_eq!(container.exit_code(), "0");
    let log = container.logs();
    let numbers: Vec<u32> = log
        .lines()
        .filter_map(|line| line.split("line ").nth(1)?.strip_suffix(" of many")?.parse().ok())
        .collect();
    assert!(numbers.iter().copied().eq(0..20_000), "{} lines", numbers.len());
    assert!(log.contains("the very last"));
    let last = log.trim_end().lines().last().unwrap();
    assert!(last.ends_with("exiting with code 0: all jobs that do work have ended"), "{last}");
}

#[test]
fn x3_image_with_only_the_binary_runs() {
    let version = docker(&["run", "--rm", scratch(), "-version"]);
    assert!(version.starts_with("Version: "), "{version}");
}
