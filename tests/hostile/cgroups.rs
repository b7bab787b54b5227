//! Processes that nothing but their cgroup tells about: daemons that clear their environment, and fork bombs (P4).

use std::process::Command;

use super::fixture::{Hostile, Rank, as_init_and_child, own_user};
use crate::support::deadline::InTime;
use crate::support::delegated::Delegated;
use crate::support::program::{Folder, code, containerpilot, err};
use crate::support::skip::skip;
use crate::support::supervisor::wait_until;

/// Runs a test with a delegated cgroup, with the supervisor as PID 1 and not. Skips it where there is none.
fn in_cgroup(test: impl Fn(Rank, &Delegated) + Sync) {
    as_init_and_child(|rank| match Delegated::new() {
        Some(group) => test(rank, &group),
        None => skip("no cgroup v2 with cgroup.kill can be made here"),
    });
}

/// A job that leaves a daemon without the environment of the job, which ignores SIGTERM, and exits.
const HIDDEN_DAEMON: &str =
    "{ name: 'a', exec: ['env', '-i', '@/hostile', 'daemon', 'double', 'exit'], user: 'nobody' }";
const MAIN: &str = "{ name: 'main', exec: 'sleep 1000' }";
const DEBUG: &str = "logging: { output: '@/log', level: 'debug' }";

/// Requires that the hidden daemon ends with its job and that no cgroup is left behind.
fn ends_with_its_job(rank: Rank, group: &Delegated, script: &str) {
    let config = format!("{DEBUG}, jobs: [{HIDDEN_DAEMON}, {MAIN}]");
    let mut hostile = Hostile::with_setup(rank, script, 1, &config);
    hostile.await_job("a", "is complete", |job| job["state"] == "complete");
    wait_until("the daemon is killed", || hostile.hostile_processes().is_empty());
    assert_eq!(hostile.job("main")["state"], "running");
    hostile.await_log("each run has a cgroup of its own in");
    hostile.await_log("left processes outside of its process group, sent SIGTERM");
    hostile.stops();
    group.assert_empty();
}

#[test]
fn p4_daemon_that_clears_its_environment_ends_with_its_job_in_a_delegated_cgroup() {
    in_cgroup(|rank, group| ends_with_its_job(rank, group, &group.enter()));
}

#[test]
fn p4_cgroups_are_used_where_clone3_is_not_permitted() {
    in_cgroup(|rank, group| {
        ends_with_its_job(rank, group, &format!("{}; set -- @/hostile without clone3 \"$@\"", group.enter()));
    });
}

#[test]
fn p4_cgroups_are_used_in_a_cgroup_namespace() {
    in_cgroup(|rank, group| {
        // As in a container: the own cgroup is the root of what is mounted.
        let mount = format!("umount -l {0} && mount -t cgroup2 none {0} && exec \"$@\"", group.mount);
        let script = format!("{}; set -- unshare --cgroup sh -c '{mount}' sh \"$@\"", group.enter());
        ends_with_its_job(rank, group, &script);
    });
}

/// Requires that the hidden daemon lives until the supervisor exits.
fn ends_with_the_supervisor(rank: Rank, script: &str, reason: &str) {
    // `b` leaves a daemon that is found by its environment.
    let config = format!(
        "{DEBUG}, jobs: [{HIDDEN_DAEMON}, {MAIN}, {{ name: 'b', exec: ['@/hostile', 'daemon', 'double', 'exit'],
            user: 'nobody', when: {{ source: 'a', once: 'exitSuccess' }} }}]"
    );
    let mut hostile = Hostile::with_setup(rank, script, 1, &config);
    hostile.await_log("runs have no cgroups of their own: ");
    hostile.await_log(reason);
    hostile.await_job("b", "is complete", |job| job["state"] == "complete");
    wait_until("one daemon is killed", || hostile.hostile_processes().len() <= 1);
    assert_eq!(hostile.hostile_processes().len(), 1);
    hostile.stops();
}

#[test]
fn p4_s4_read_only_cgroup_file_system_changes_nothing() {
    in_cgroup(|rank, group| {
        let script = format!("{}; mount -o remount,bind,ro {}", group.enter(), group.mount);
        ends_with_the_supervisor(rank, &script, "read-only file system");
        group.assert_empty();
    });
}

#[test]
fn p4_s4_supervisor_without_a_cgroup_of_its_own_changes_nothing() {
    as_init_and_child(|rank| {
        ends_with_the_supervisor(rank, "umount -l -a -t cgroup2", "the own cgroup v2 is not mounted");
    });
}

/// The exit code and the messages of `check`, after a shell command in a mount namespace of its own.
fn check(script: &str, options: &[&str], config: &str) -> (i32, String) {
    let folder = Folder::new("check-locks");
    let file = folder.file("a.json5", config);
    let script = format!("{script} && exec \"$@\"");
    let mut line = Command::new("unshare");
    line.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]).arg(containerpilot());
    let output = line.arg("check").args(options).arg(file).output_in_time().unwrap();
    (code(&output), err(&output))
}

#[test]
fn d14_check_warns_of_locks_where_runs_have_no_cgroups() {
    let lock = "{ consul: 'localhost:8500', locks: [{ name: 'primary', key: 'service/app/leader' }],
        jobs: [{ name: 'app', exec: 'true', when: { source: 'lock.primary', once: 'acquired' } }] }";
    let without = "umount -l -a -t cgroup2";
    for options in [&[][..], &["--strict"]] {
        let (code, text) = check(without, options, lock);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("warning: where runs have no cgroups, a process that leaves"), "{text}");
        assert!(text.contains("here they have none: the own cgroup v2 is not mounted"), "{text}");
    }
    assert_eq!(check(without, &[], "{ jobs: [{ name: 'app', exec: 'true' }] }"), (0, String::new()));
    match Delegated::new() {
        Some(group) => assert_eq!(check(&group.enter(), &[], lock), (0, String::new())),
        None => skip("no cgroup v2 with cgroup.kill can be made here"),
    }
}

/// A job that forks without end in sessions of its own, without the environment of the job.
fn hidden_bomb(more: &str) -> String {
    // A user of its own, because the limit counts all processes of the user on the machine.
    format!(
        "{{ name: 'bomb', exec: ['env', '-i', '@/hostile', 'bomb'], user: {}, limits: {{ nproc: 40 }}{more} }}",
        own_user()
    )
}

#[test]
fn p4_x2_fork_bomb_that_leaves_its_group_and_environment_ends_with_one_stop() {
    in_cgroup(|rank, group| {
        let config = format!("jobs: [{}, {MAIN}]", hidden_bomb(""));
        let mut hostile = Hostile::with_setup(rank, &group.enter(), 1, &config);
        hostile.await_ready(1);
        wait_until("it has grown", || hostile.hostile_processes().len() > 20);
        hostile.post("/v3/jobs/bomb/stop");
        wait_until("no process is left", || hostile.hostile_processes().is_empty());
        assert_eq!(hostile.job("main")["state"], "running");
        hostile.stops();
        group.assert_empty();
    });
}

#[test]
fn p4_p5_fork_bomb_that_leaves_its_group_and_environment_ends_at_its_timeout() {
    in_cgroup(|rank, group| {
        let config = format!("jobs: [{}, {MAIN}]", hidden_bomb(", timeout: '1s'"));
        let mut hostile = Hostile::with_setup(rank, &group.enter(), 1, &config);
        hostile.await_ready(1);
        // At its process limit it may exit before its timeout.
        hostile.await_job("bomb", "has ended", |job| job["state"] == "failed" || job["state"] == "complete");
        wait_until("no process is left", || hostile.hostile_processes().is_empty());
        hostile.stops();
        group.assert_empty();
    });
}

#[test]
fn p3_p4_job_of_root_that_changes_the_cgroups_breaks_no_start() {
    in_cgroup(|rank, group| {
        // It leaves its cgroup, removes it, and takes the names of the next ones.
        let script = "cd $0/containerpilot-*-0 && echo 0 > ../cgroup.procs && rmdir */; mkdir 3 4 5; echo ready; exec sleep 1000";
        let config = format!(
            "jobs: [{{ name: 'a', exec: ['sh', '-c', '{script}', '{}'] }}, {MAIN},
                {{ name: 'late', exec: ['@/hostile', 'leave-group'], timeout: '200ms', restarts: 'unlimited' }}]",
            group.directory.display()
        );
        let mut hostile = Hostile::with_setup(rank, &group.enter(), 1, &config);
        hostile.await_ready(5);
        hostile.stops();
        group.assert_empty();
    });
}
