//! `examples/worker-pool`.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Container;
use crate::support::deadline::{InTime, wait_until_within};
use crate::support::program::{Folder, out};
use crate::support::servers::{Server, server};
use crate::support::supervisor::wait_until;

/// The number of tasks.
const TASKS: usize = 200;

/// A redis that outlives the containers of its workers.
struct Redis {
    server: Server,
    child: Child,
    port: u16,
    _folder: Folder,
}

impl Redis {
    fn start() -> Option<Self> {
        let server = server("usr/bin/redis-server")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = Folder::new("worker-pool");
        let mut command = Command::new(&server.program);
        command.env("LD_LIBRARY_PATH", &server.libraries).args(["--port", &port.to_string(), "--save", ""]);
        command.args(["--bind", "127.0.0.1"]).arg("--dir").arg(&folder.0).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        let redis = Self { server, child, port, _folder: folder };
        wait_until("redis answers", || redis.ask(&["PING"]) == "PONG");
        Some(redis)
    }

    /// The answer to a command.
    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new(self.server.program.with_file_name("redis-cli"));
        command
            .env("LD_LIBRARY_PATH", &self.server.libraries)
            .args(["-p", &self.port.to_string()])
            .args(words);
        out(&command.output_in_time().unwrap()).trim().to_owned()
    }

    /// A container with workers, after a shell script.
    fn workers(&self, number: usize, script: &str) -> Option<Container> {
        let cli = Server { program: self.server.program.with_file_name("redis-cli"), ..self.server.clone() };
        let script = format!(
            "{}export REDIS=127.0.0.1:{} WORKERS={number}\n{script}",
            cli.link("redis-cli"),
            self.port
        );
        Container::in_network_of_host("worker-pool", &script)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn w20_s9_no_task_is_lost_or_done_twice_while_workers_come_and_go() {
    let Some(redis) = Redis::start() else { return };
    let Some(first) = redis.workers(2, "") else { return };
    for number in 0..TASKS {
        redis.ask(&["LPUSH", "tasks", &number.to_string()]);
    }
    let mut done: Vec<String> = Vec::new();
    let left = || redis.ask(&["LLEN", "tasks"]).parse::<usize>().unwrap();
    let some_are_done = || {
        let before = left();
        let what = || format!("more tasks are done than when {before} were left");
        wait_until_within(Duration::from_secs(60), what, || left() + 10 < before);
    };

    // More of them, fewer of them, and new ones.
    for number in [5, 1, 4] {
        some_are_done();
        assert!(first.pilot(&["scale", &format!("worker={number}")]).status.success());
    }
    assert!(first.pilot(&["restart", "--rolling", "worker"]).status.success());
    some_are_done();
    // The container is stopped, and another one goes on.
    first.supervisor.signal("-TERM");
    let (code, log) = first.supervisor.wait();
    assert_eq!((code, redis.ask(&["KEYS", "doing:*"]).as_str()), (0, ""));
    done.extend(tasks(&log));
    assert!(left() > 0, "the second container has nothing to do");
    let mut second = redis.workers(3, "").unwrap();
    second.supervisor.wait_for_lines("is done", TASKS - done.len());
    second.supervisor.signal("-TERM");
    let (code, log) = second.supervisor.wait();
    done.extend(tasks(&log));

    let mut times = BTreeMap::new();
    done.iter().for_each(|task| *times.entry(task.parse::<usize>().unwrap()).or_insert(0) += 1);
    assert!(times.keys().copied().eq(0..TASKS), "some are lost: {times:?}");
    assert!(times.values().all(|count| *count == 1), "some were done twice: {times:?}");
    assert_eq!((code, redis.ask(&["KEYS", "*"]).as_str()), (0, ""));
}

/// The tasks that are done according to a log.
fn tasks(log: &str) -> impl Iterator<Item = String> {
    log.lines().filter_map(|line| Some(line.split_once(" task ")?.1.strip_suffix(" is done")?.to_owned()))
}

#[test]
fn w8_a_worker_that_was_killed_puts_its_task_back() {
    let Some(redis) = Redis::start() else { return };
    let script = r"printf '#!/bin/sh\nuntil [ -e /run/go ]; do sleep 0.1; done; echo task $1 is done' > $CONTAINERPILOT_TEST/bin/task
        chmod +x $CONTAINERPILOT_TEST/bin/task";
    let Some(mut container) = redis.workers(1, script) else { return };
    // The first attempt is killed in the middle of the task.
    redis.ask(&["LPUSH", "tasks", "first"]);
    wait_until("the worker has the task", || redis.ask(&["KEYS", "doing:*"]).starts_with("doing:"));
    assert!(container.pilot(&["signal", "worker-1", "KILL"]).status.success());
    container.supervisor.wait_for_line("put a task back that was not finished");
    container.shell("touch /run/go");
    container.supervisor.wait_for_line("task first is done");
    wait_until("nothing is left", || redis.ask(&["KEYS", "*"]).is_empty());
    container.supervisor.signal("-TERM");
    assert_eq!(container.supervisor.wait().0, 0);
}
