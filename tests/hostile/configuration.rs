//! Configurations that never end, and command lines that are not text (C1, R2, S7).

use std::fs;
use std::time::{Duration, Instant};

use super::fixture::{Hostile, as_init_and_child, request, waits_in};
use crate::support::supervisor::{Supervisor, modes, wait_until};

const JOBS: &str = "jobs: [{ name: 'main', exec: 'sleep 1000' }]";

/// Whether a thread of a process waits for a writer of a FIFO.
fn waits_for_fifo(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let threads = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    threads.map(|thread| waits_in(pid, thread)).any(|wait| wait.contains("partner") || wait.contains("fifo"))
}

#[test]
fn c1_s1_sigterm_is_obeyed_while_the_configuration_is_a_fifo_without_a_writer() {
    as_init_and_child(|rank| {
        let script = "mkfifo @/config.fifo; set -- \"$1\" -config @/config.fifo";
        let mut hostile = Hostile::unanswered(rank, script, 1, JOBS);
        wait_until("it waits for the FIFO or refuses it", || {
            hostile.has_exited() || waits_for_fifo(hostile.pid)
        });
        if !hostile.has_exited() {
            hostile.stops();
        }
    });
}

#[test]
fn r2_configuration_that_is_a_fifo_blocks_no_later_reload() {
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 1, JOBS);
        let file = hostile.run.file("config.json5");
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        hostile.send(1);
        // A supervisor that refuses FIFOs never waits.
        let limit = Instant::now() + Duration::from_secs(1);
        wait_until("the reload waits for the FIFO", || waits_for_fifo(hostile.pid) || Instant::now() > limit);
        fs::rename(&file, hostile.run.file("old")).unwrap();
        hostile.rewrite("jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'new', exec: 'sleep 1000' }]");
        wait_until("a later reload is done", || {
            hostile.send(1);
            let status = request(&hostile.socket(), "GET", "/v3/status").unwrap();
            status.contains("\"new\"")
        });
        hostile.stops();
    });
}

#[test]
fn r2_s4_sigterm_is_obeyed_while_a_reload_waits_for_a_fifo() {
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 1, JOBS);
        let file = hostile.run.file("config.json5");
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        hostile.send(1);
        hostile.stops();
    });
}

#[test]
fn p9_users_and_groups_that_are_a_fifo_are_a_failed_start_and_block_nothing() {
    as_init_and_child(|rank| {
        let script = "mkfifo @/users; for file in passwd group; do mount --bind @/users /etc/$file; done";
        let jobs =
            "jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'user', exec: 'sleep 1000', user: 65534 }]";
        let mut hostile = Hostile::with_setup(rank, script, 1, jobs);
        hostile.await_job("user", "has failed", |job| job["state"] == "failed");
        hostile.stops();
    });
}

#[test]
fn s7_arguments_of_the_program_may_be_any_bytes() {
    for mode in modes() {
        let script = "set -- \"$@\" \"$(printf 'a\\377\\376b')\"";
        let args = ["--", "sh", "-c", "printf '%s' \"$1\" | od -An -tx1", "sh"];
        let (code, output) = Supervisor::with_setup_and_args(mode, script, &args).wait();
        assert_eq!((code, output.trim()), (0, "61 ff fe 62"), "{mode:?}");
    }
}

#[test]
fn s7_path_of_the_program_may_be_any_bytes() {
    for mode in modes() {
        let script = "folder=$(mktemp -d); program=$(printf '%s/a\\377b' \"$folder\"); \
                      printf '#!/bin/sh\\nrm -r \"${0%%/*}\"; echo fine\\n' > \"$program\"; chmod 755 \"$program\"; \
                      set -- \"$@\" \"$program\"; [ \"$1\" ] || rm -r \"$folder\"";
        let (code, output) = Supervisor::with_setup_and_args(mode, script, &["--"]).wait();
        assert_eq!((code, output.trim()), (0, "fine"), "{mode:?}");
    }
}
