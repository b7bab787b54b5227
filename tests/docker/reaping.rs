//! Reaping of orphans as PID 1 and below another init (P1).

use std::time::Duration;

use super::engine::{Container, busybox};

/// Leaves a hundred orphans that exit after their parent.
const ORPHANS: &str = "i=0; while [ $i -lt 100 ]; do setsid sleep 1 & i=$((i+1)); done; echo left";

fn start_and_wait_until_orphans_are_reaped(options: &[&str]) -> Container {
    let config = format!(
        "{{ stopTimeout: 300, jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'breeder', exec: ['sh', '-c', {ORPHANS:?}] }}] }}"
    );
    let container = Container::start(&config, options, busybox());
    container.wait_for_log("left");
    // First until all orphans have exited and only the job's own `sleep` is left, then until no zombie is left.
    container.shell("while grep -qs sleep /proc/[0-9]*/comm && [ \"$(grep -ls '^sleep$' /proc/[0-9]*/comm | wc -l)\" -gt 1 ]; do sleep 0.2; done");
    container.shell("while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.2; done");
    container
}

#[test]
fn p1_every_orphan_is_reaped_as_pid_1() {
    let container = start_and_wait_until_orphans_are_reaped(&[]);
    assert_eq!(container.shell("cat /proc/1/comm"), "containerpilot");
}

#[test]
fn p1_every_orphan_is_reaped_below_docker_init() {
    if super::engine::try_docker(&["info", "--format", "{{.InitBinary}}"]).stdout.trim_ascii().is_empty() {
        panic!("this engine has no init");
    }
    let container = start_and_wait_until_orphans_are_reaped(&["--init"]);
    assert_ne!(container.shell("cat /proc/1/comm"), "containerpilot");
    let took = container.stop(300);
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(container.exit_code(), "0");
    assert!(container.logs().contains("main exited on SIGTERM"));
}
