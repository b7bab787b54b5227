//! P3: little memory, few processes, a root that cannot be written.

use crate::engine::{Container, busybox};

/// It wants more memory than there is. `dd` fills its buffer before it writes.
const HOG: &str = "dd if=/dev/zero of=/dev/null bs=200M count=1";

#[test]
fn p3_a_job_that_memory_runs_out_for_is_killed_and_the_supervisor_lives_and_says_so() {
    let config = format!(
        "{{ jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {{ name: 'hog', exec: '{HOG}', restarts: 1 }}, \
         {{ name: 'shell', exec: ['sh', '-c', '{HOG}; exit $?'], when: {{ source: 'hog', once: 'stopped' }} }}] }}"
    );
    let container = Container::start(&config, &["--memory", "64m", "--memory-swap", "64m"], busybox());
    let log = container.says("shell exited with code 137");
    let hog = |line: &&str| line.contains("hog was ended by signal 9");
    let told = |line: &str| line.contains("memory ran out, and the kernel ended a process of this container");
    assert_eq!(log.lines().filter(hog).count(), 2, "{log}");
    assert!(log.lines().filter(hog).all(told), "{log}");
    assert!(log.lines().any(|line| line.contains("shell exited with code 137") && told(line)), "{log}");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
    // One that is killed by somebody else is not put down to it. With the job the container ends, and with the container
    // the shell, which may still be about to say how it went: only the container's own end counts.
    container.exec(&["/bin/sh", "-c", "kill -9 $(grep -ls '^sleep$' /proc/[0-9]*/comm | cut -d/ -f3)"]);
    assert_eq!(container.code(), "137");
    let log = container.logs();
    let main = log.lines().find(|line| line.contains("main was ended by signal 9")).unwrap();
    assert!(!main.contains("memory"), "{main}");
}

#[test]
fn p3_a_fork_that_fails_is_a_failed_start_and_no_more() {
    // The supervisor has two or three threads of these.
    let sleepers: Vec<String> =
        (0..12).map(|number| format!("{{ name: 's{number}', exec: 'sleep 1000' }}")).collect();
    let config = format!(
        "{{ stopTimeout: 300, jobs: [{}, {{ name: 'later', exec: 'echo there is room again', restarts: 'unlimited', \
         restartBackoff: {{ max: '100ms' }} }}] }}",
        sleepers.join(", ")
    );
    let container = Container::start(&config, &["--pids-limit", "10"], busybox());
    let log = container.says(
        "could not be started: sleep: cannot create a process: Try again (the process limit is reached)",
    );
    assert!(log.contains("s0 started"), "{log}");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
    container.stop(300);
    assert_eq!(container.code(), "0");
}

#[test]
fn x1_a_read_only_root_needs_only_a_place_for_the_socket() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";
    let container = Container::start(config, &["--read-only", "--tmpfs", "/run"], busybox());
    container.says("main started");
    let status = String::from_utf8(container.exec(&["/bin/containerpilot", "status"]).stdout).unwrap();
    assert!(status.contains("main") && status.contains("running"), "{status}");
    container.stop(300);
    assert_eq!(container.code(), "0");
    assert!(!container.logs().contains("no control socket"));
}

#[test]
fn x1_without_any_place_for_the_socket_the_jobs_run_all_the_same() {
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";
    let container = Container::start(config, &["--read-only"], busybox());
    let log = container.says("main started");
    assert!(log.contains("no control socket") && log.contains("Read-only file system"), "{log}");
    container.stop(300);
    assert_eq!(container.code(), "0");
}
