//! Memory limit, process limit and read-only root filesystem (P3, X1).

use super::engine::{Container, busybox};

/// Allocates more memory than the limit: `dd` fills its buffer before it writes.
const HOG: &str = "dd if=/dev/zero of=/dev/null bs=200M count=1";

#[test]
fn p3_oom_kill_of_a_job_is_logged_and_the_supervisor_survives() {
    let config = format!(
        "{{ jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'hog', exec: '{HOG}', restarts: 1 }}, \
         {{ name: 'shell', exec: ['sh', '-c', '{HOG}; exit $?'], when: {{ source: 'hog', once: 'stopped' }} }}] }}"
    );
    let container = Container::start(&config, &["--memory", "64m", "--memory-swap", "64m"], busybox());
    let log = container.wait_for_log("shell exited with code 137");
    let hog = |line: &&str| line.contains("hog exited on SIGKILL");
    let names_oom =
        |line: &str| line.contains("out of memory: the kernel killed a process of this container");
    assert_eq!(log.lines().filter(hog).count(), 2);
    assert!(log.lines().filter(hog).all(names_oom));
    assert!(log.lines().any(|line| line.contains("shell exited with code 137") && names_oom(line)));
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
    // Another SIGKILL is not reported as an OOM kill. The container exits with the job and may take the shell of this
    // `exec` with it, so only the exit code of the container is checked.
    container.exec(&["/bin/sh", "-c", "kill -9 $(grep -ls '^sleep$' /proc/[0-9]*/comm | cut -d/ -f3)"]);
    assert_eq!(container.exit_code(), "137");
    let log = container.logs();
    let main = log.lines().find(|line| line.contains("main exited on SIGKILL")).unwrap();
    assert!(!main.contains("memory"), "{main}");
}

#[test]
fn p3_failed_fork_is_a_failed_start_and_not_the_end() {
    // The supervisor's own two or three threads count, too.
    let sleepers: Vec<String> =
        (0..12).map(|number| format!("{{ name: 's{number}', exec: 'sleep 1000' }}")).collect();
    let config = format!(
        "{{ stopTimeout: 300, jobs: [{}, {{ name: 'later', exec: 'echo there is room again', restarts: 'unlimited', \
         restartBackoff: {{ max: '100ms' }} }}] }}",
        sleepers.join(", ")
    );
    let container = Container::start(&config, &["--pids-limit", "10"], busybox());
    container.wait_for_log(
        "failed to start: sleep: cannot create a process: Try again (the process limit is reached)",
    );
    // Its entry follows when its program was executed, which may be later.
    container.wait_for_log("s0 started");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
}

#[test]
fn x1_read_only_root_works_with_a_writable_directory_for_the_socket() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";
    let container = Container::start(config, &["--read-only", "--tmpfs", "/run"], busybox());
    container.wait_for_log("main started");
    let status = String::from_utf8(container.exec(&["/bin/containerpilot", "status"]).stdout).unwrap();
    assert!(status.contains("main") && status.contains("running"), "{status}");
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
    assert!(!container.logs().contains("no control socket"));
}

#[test]
fn x1_jobs_run_without_a_control_socket_on_a_read_only_root() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";
    let container = Container::start(config, &["--read-only"], busybox());
    let log = container.wait_for_log("main started");
    assert!(log.contains("no control socket") && log.contains("read-only file system"));
    container.stop(300);
    assert_eq!(container.exit_code(), "0");
}
