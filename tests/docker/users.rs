//! Users other than root, no capabilities, no `/etc/passwd` (P9).

use super::engine::{Container, busybox, scratch};

/// Prints user id, group id and all groups.
const PRINT_IDS: &str = "echo I am $(id -u) $(id -g) $(id -G)";

#[test]
fn p9_supervisor_runs_as_pid_1_without_root() {
    let config = format!(
        "{{ control: {{ socket: '/tmp/socket' }}, jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'who', exec: ['sh', '-c', '{PRINT_IDS}'] }}, \
         {{ name: 'orphans', exec: ['sh', '-c', 'setsid sleep 0.5 & echo left'] }}] }}"
    );
    let container =
        Container::start(&config, &["--user", "1000:1000", "--tmpfs", "/tmp:mode=1777"], busybox());
    container.wait_for_log("I am 1000 1000 1000");
    container.wait_for_log("left");
    assert_eq!(container.shell("cat /proc/1/comm"), "containerpilot");
    container.shell("while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.2; done");
    container.shell("containerpilot ping");
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
}

#[test]
fn p9_switching_users_without_root_is_a_failed_start_with_a_message() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000', user: 'root' }] }";
    let container = Container::start(config, &["--user", "1000"], busybox());
    assert_eq!(container.exit_code(), "125");
    let log = container.logs();
    assert!(log.contains("main failed to start") && log.contains("cannot switch to user `root`"));
    assert!(log.contains("EPERM (only root can switch users"));
}

#[test]
fn p9_job_may_name_the_user_of_the_supervisor() {
    let config = format!("{{ jobs: [{{ name: 'who', exec: ['sh', '-c', '{PRINT_IDS}'], user: 'web' }}] }}");
    let container = Container::start(&config, &["--user", "1000:1000"], busybox());
    container.wait_for_log("I am 1000 1000");
    assert_eq!(container.exit_code(), "0");
}

#[test]
fn p9_user_names_come_from_the_files_of_the_image() {
    let config = format!(
        "{{ jobs: [{{ name: 'who', exec: ['sh', '-c', '{PRINT_IDS}'], user: 'web' }}, \
         {{ name: 'number', exec: ['sh', '-c', '{PRINT_IDS}'], user: 4711, group: 'logs' }}] }}"
    );
    let container = Container::start(&config, &[], busybox());
    container.wait_for_log("I am 1000 1000 1000 77");
    container.wait_for_log("I am 4711 77 77");
    assert_eq!(container.exit_code(), "0");
}

#[test]
fn p9_image_without_etc_passwd_accepts_numeric_users_only() {
    let config = "{ jobs: [{ name: 'who', exec: '/bin/containerpilot -version', user: 1234, group: 5678 }] }";
    let container = Container::start(config, &[], scratch());
    container.wait_for_log(" Version: ");
    assert_eq!(container.exit_code(), "0");
    let config = "{ jobs: [{ name: 'who', exec: '/bin/containerpilot -version', user: 'web' }] }";
    let container = Container::start(config, &[], scratch());
    assert_eq!(container.exit_code(), "1");
    assert!(container.logs().contains("`web`"), "{}", container.logs());
}

#[test]
fn p9_supervisor_without_capabilities_works_but_cannot_switch_users() {
    let config =
        "{ jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'other', exec: 'true', user: 'web' }] }";
    let container =
        Container::start(config, &["--cap-drop", "ALL", "--security-opt", "no-new-privileges"], busybox());
    let log = container.wait_for_log("other failed to start");
    assert!(log.contains("EPERM (the supervisor needs CAP_SETUID and CAP_SETGID, or remove `user`)"));
    container.wait_for_log("main started");
    assert_eq!(
        container.shell("containerpilot ping && grep CapEff /proc/1/status"),
        "ok\nCapEff:\t0000000000000000"
    );
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
}
