//! P9: other users than root, no capabilities, no list of users.

use crate::engine::{Container, busybox, scratch};

/// Who a job is, in the order of `id`.
const WHO: &str = "echo I am $(id -u) $(id -g) $(id -G)";

#[test]
fn p9_as_another_user_than_root_it_is_pid_1_all_the_same() {
    let config = format!(
        "{{ control: {{ socket: '/tmp/socket' }}, jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'who', exec: ['sh', '-c', '{WHO}'] }}, \
         {{ name: 'orphans', exec: ['sh', '-c', 'setsid sleep 0.5 & echo left'] }}] }}"
    );
    let container =
        Container::start(&config, &["--user", "1000:1000", "--tmpfs", "/tmp:mode=1777"], busybox());
    container.says("I am 1000 1000 1000");
    container.says("left");
    assert_eq!(container.shell("cat /proc/1/comm"), "containerpilot");
    container.shell("while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.2; done");
    container.shell("containerpilot ping");
    container.stop(300);
    assert_eq!(container.code(), "0");
}

#[test]
fn p9_who_is_not_root_cannot_become_another_user_and_is_told_so() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000', user: 'root' }] }";
    let container = Container::start(config, &["--user", "1000"], busybox());
    assert_eq!(container.code(), "125");
    let log = container.logs();
    assert!(
        log.contains("main could not be started") && log.contains("cannot switch to user `root`"),
        "{log}"
    );
    assert!(log.contains("EPERM (only root can switch users"), "{log}");
}

#[test]
fn p9_a_job_may_name_the_user_that_it_has_already() {
    let config = format!("{{ jobs: [{{ name: 'who', exec: ['sh', '-c', '{WHO}'], user: 'web' }}] }}");
    let container = Container::start(&config, &["--user", "1000:1000"], busybox());
    container.says("I am 1000 1000");
    assert_eq!(container.code(), "0");
}

#[test]
fn p9_users_come_from_the_images_own_files() {
    let config = format!(
        "{{ jobs: [{{ name: 'who', exec: ['sh', '-c', '{WHO}'], user: 'web' }}, \
         {{ name: 'number', exec: ['sh', '-c', '{WHO}'], user: 4711, group: 'logs' }}] }}"
    );
    let container = Container::start(&config, &[], busybox());
    container.says("I am 1000 1000 1000 77");
    container.says("I am 4711 77 77");
    assert_eq!(container.code(), "0");
}

#[test]
fn p9_an_image_without_a_list_of_users_takes_numbers() {
    let config = "{ jobs: [{ name: 'who', exec: '/bin/containerpilot -version', user: 1234, group: 5678 }] }";
    let container = Container::start(config, &[], scratch());
    container.says(" Version: ");
    assert_eq!(container.code(), "0");
    let config = "{ jobs: [{ name: 'who', exec: '/bin/containerpilot -version', user: 'web' }] }";
    let container = Container::start(config, &[], scratch());
    assert_eq!(container.code(), "1");
    assert!(container.logs().contains("`web`"), "{}", container.logs());
}

#[test]
fn p9_without_any_capability_it_supervises_and_only_cannot_change_users() {
    let config =
        "{ jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'other', exec: 'true', user: 'web' }] }";
    let container =
        Container::start(config, &["--cap-drop", "ALL", "--security-opt", "no-new-privileges"], busybox());
    let log = container.says("other could not be started");
    assert!(log.contains("EPERM (only root can switch users"), "{log}");
    container.says("main started");
    assert_eq!(
        container.shell("containerpilot ping && grep CapEff /proc/1/status"),
        "ok\nCapEff:\t0000000000000000"
    );
    container.stop(300);
    assert_eq!(container.code(), "0");
}
