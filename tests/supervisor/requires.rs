//! Requirements and the order of stops (W18, S10).

use std::fs;

use crate::support::config::Config;
use crate::support::supervisor::{Mode, Supervisor, modes};

/// `db` is healthy while the file `up` exists, and `app` is bound to it.
const BOUND: &str = "{ jobs: [
    { name: 'db', exec: 'sleep 1000', restarts: 'unlimited',
      health: { exec: 'test -e @/up', interval: '100ms', timeout: '10s', ttl: 15 } },
    { name: 'app', exec: 'sleep 1000', restarts: 'unlimited', requires: [{ source: 'db', bind: true }] }] }";

#[test]
fn w18_a_bound_job_runs_only_while_its_source_is_healthy() {
    for mode in modes() {
        let mut run = Supervisor::start(mode, BOUND);
        run.wait_for_line("app waiting: it requires db");
        for _ in 0..2 {
            std::fs::write(run.file("up"), "").unwrap();
            run.wait_for_line(" app started");
            std::fs::remove_file(run.file("up")).unwrap();
            run.wait_for_line("stopping: it requires db, which is running but unhealthy");
            run.wait_for_line("app exited on SIGTERM");
        }
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn w18_jobs_with_the_same_requirement_start_in_the_order_of_the_configuration() {
    // In a namespace of its own, pids rise.
    if !modes().contains(&Mode::Pid1) {
        return;
    }
    let names = ["f", "c", "a", "e", "b", "d"];
    let config = Config::new().jobs(names, "exec: 'sleep 1000', requires: ['db']").job("db", "exec: 'true'");
    let mut run = Supervisor::start(Mode::Pid1, &config);
    let pid = |name: &str| -> u32 {
        // The executions of programs end, and are logged, in any order.
        run.wait_for_lines(&format!(" {name} started"), 1);
        let log = run.log_so_far();
        let (_, line) = log.split_once(&format!(" {name} started (pid ")).unwrap();
        line.split(')').next().unwrap().parse().unwrap()
    };
    let pids: Vec<u32> = names.into_iter().map(pid).collect();
    assert!(pids.is_sorted(), "{names:?}: {pids:?}");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn s10_a_required_job_stops_after_the_jobs_that_require_it() {
    for mode in modes() {
        let config = "{ stopTimeout: 60, jobs: [
            { name: 'db', exec: 'sleep 1000', restarts: 'unlimited' },
            { name: 'app', exec: ['sh', '-c', 'trap : TERM; echo ready; until test -e @/go; do sleep 0.05; done; echo bye'],
              requires: ['db'] }] }";
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("ready");
        run.signal("-TERM");
        run.wait_for_line("app stopping: sent SIGTERM");
        fs::write(run.file("go"), "").unwrap();
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}`"));
        assert!(at("bye") < at("db exited on SIGTERM"));
        assert!(at("app exited with code 0") < at("db stopping: sent SIGTERM"));
    }
}
