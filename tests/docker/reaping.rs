//! P1: orphans, as PID 1 and beside another init.

use std::time::Duration;

use crate::engine::{Container, busybox};

/// A hundred orphans that end after their parent has.
const ORPHANS: &str = "i=0; while [ $i -lt 100 ]; do setsid sleep 1 & i=$((i+1)); done; echo left";

fn none_is_a_zombie(options: &[&str]) -> Container {
    let config = format!(
        "{{ stopTimeout: 300, jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'breeder', exec: ['sh', '-c', {ORPHANS:?}] }}] }}"
    );
    let container = Container::start(&config, options, busybox());
    container.says("left");
    // Until all have ended, and been collected: nothing is left but the supervisor, its job, and the asking shell.
    container.shell("while grep -qs sleep /proc/[0-9]*/comm && [ \"$(grep -ls '^sleep$' /proc/[0-9]*/comm | wc -l)\" -gt 1 ]; do sleep 0.2; done");
    container.shell("while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.2; done");
    container
}

#[test]
fn p1_as_pid_1_it_collects_every_orphan() {
    let container = none_is_a_zombie(&[]);
    assert_eq!(container.shell("cat /proc/1/comm"), "containerpilot");
}

#[test]
fn p1_beside_dockers_own_init_it_does_the_same_and_is_stopped_the_same() {
    if crate::engine::ask(&["info", "--format", "{{.InitBinary}}"]).stdout.trim_ascii().is_empty() {
        panic!("this engine has no init");
    }
    let container = none_is_a_zombie(&["--init"]);
    assert_ne!(container.shell("cat /proc/1/comm"), "containerpilot");
    // Its orphans are its own, and not that init's.
    let took = container.stop(300);
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(container.code(), "0");
    assert!(container.logs().contains("main exited on SIGTERM"));
}
