//! Processes, descriptors, CPU and file sizes that run out (P1–P3, S4).

use std::fs;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::fixture::{Hostile, Rank, as_init_and_child, own_address, own_user, permitted};
use crate::support::config::Config;
use crate::support::deadline::holds_within;
use crate::support::http_request;
use crate::support::skip::skip;
use crate::support::supervisor::{cpu_ticks, wait_until};

#[test]
fn p1_s4_fork_bomb_within_a_process_limit_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        // A user of its own, because the limit counts all processes of the user on the machine.
        let bomb = format!("exec: ['@/hostile', 'bomb'], user: {}, limits: {{ nproc: 40 }}", own_user());
        let config = Config::new()
            .job("bomb", bomb)
            .job("other", "exec: '/bin/true', restarts: 'unlimited', restartBackoff: false");
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.await_ready(1);
        hostile.await_job("other", "is started 50 times", |job| job["restarts"].as_u64() > Some(50));
        hostile.stops();
    });
}

/// A control group with a limit of processes; removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(limit: u32) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("hostile-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].into_iter().find_map(|root| {
            let group = Self(PathBuf::from(root).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join("pids.max"), limit.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel may take a moment to remove the last process.
        holds_within(Duration::from_secs(5), || !self.0.exists() || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn p3_s4_container_without_a_free_process_still_answers_and_stops() {
    as_init_and_child(|rank| {
        let Some(group) = Cgroup::new(60) else {
            skip("no control group with a limit of processes can be made");
            return;
        };
        // After the control socket has answered: its thread is a process, too, and is started when it is needed.
        let config = "jobs: [{ name: 'fill', exec: ['@/hostile', 'fill'], user: 'nobody', when: { source: 'SIGUSR2' } },
            { name: 'tick', exec: '/bin/true', when: { interval: '100ms' } }]";
        let script = format!("echo $$ > {}/cgroup.procs", group.0.display());
        let mut hostile = Hostile::with_setup(rank, &script, 1, config);
        hostile.send(12);
        hostile.await_ready(1);
        hostile.await_job("tick", "is tried again", |job| job["runs"]["failure"].as_u64() > Some(3));
        hostile.stops();
    });
}

#[test]
fn e7_s4_spinning_jobs_of_the_highest_priority_hold_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 1, "jobs: [{ name: 'spin', exec: ['@/hostile', 'spin'] }]");
        hostile.await_ready(2);
        hostile.stops();
    });
}

/// A job that is started by SIGUSR2.
const LATE: &str = "{ name: 'late', exec: '/bin/true', when: { source: 'SIGUSR2' } }";

/// Requires that another job can be started and that the supervisor has descriptors left.
fn assert_descriptors_left(hostile: &Hostile) {
    let open = fs::read_dir(format!("/proc/{}/fd", hostile.pid)).unwrap().count();
    hostile.send(12);
    wait_until("another job is started", || !hostile.job("late")["lastExit"].is_null());
    let exit = hostile.job("late")["lastExit"].clone();
    assert_eq!(exit["code"], 0, "{open} descriptors are open; {exit}");
}

#[test]
fn p3_l4_output_kept_open_by_setsid_processes_does_not_use_up_descriptors() {
    as_init_and_child(|rank| {
        let config = format!(
            "jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {LATE}, {{ name: 'a', user: 'nobody',
                exec: ['@/hostile', 'keep-pipes'], restarts: 100, restartBackoff: false }}]"
        );
        let mut hostile = Hostile::with_setup(rank, "ulimit -n 128", 1, &config);
        hostile.await_job("a", "has run 101 times", |job| {
            job["state"] == "complete" || job["state"] == "failed"
        });
        assert_descriptors_left(&hostile);
        hostile.stops();
    });
}

#[test]
fn p3_l4_output_passed_to_another_job_does_not_use_up_descriptors() {
    as_init_and_child(|rank| {
        let config = format!(
            "jobs: [{LATE}, {{ name: 'receiver', user: 'nobody', exec: ['@/hostile', 'receive', '@/own/socket'] }},
                {{ name: 'a', user: 'nobody', exec: ['@/hostile', 'send', '@/own/socket'], restarts: 'unlimited',
                   restartBackoff: {{ initial: '5ms', max: '5ms' }} }}]"
        );
        let mut hostile = Hostile::with_setup(rank, "ulimit -n 128", 1, &config);
        hostile.await_ready(1);
        hostile.await_job("a", "has run 100 times", |job| job["restarts"].as_u64() > Some(100));
        hostile.post("/v3/jobs/a/stop");
        assert_descriptors_left(&hostile);
        hostile.stops();
    });
}

#[test]
fn l4_log_file_at_its_size_limit_does_not_end_the_supervisor() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'a', exec: ['@/hostile', 'write', '100'] }, { name: 'main', exec: 'sleep 1000' }]";
        // A write beyond the limit raises SIGXFSZ.
        let mut hostile = Hostile::with_setup(rank, "ulimit -f 4", 1, config);
        wait_until("the file has reached its limit", || hostile.run.size("log") >= 2048);
        hostile.await_state("main", "running");
        hostile.stops();
    });
}

#[test]
fn p2_no_descriptor_reaches_a_job_without_close_range_and_proc() {
    as_init_and_child(|rank| {
        let script =
            "exec 7</etc/passwd; mount -t tmpfs none /proc; set -- @/hostile without close_range \"$@\"";
        let config = "jobs: [{ name: 'a', exec: ['@/hostile', 'descriptors'], user: 'nobody' }]";
        let mut hostile = Hostile::with_setup(rank, script, 1, config);
        hostile.await_ready(1);
        let log = hostile.log();
        let open: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once(" open ")?.1)).collect();
        assert_eq!(open, ["0.", "1.", "2."]);
        hostile.stops();
    });
}

#[test]
fn e7_ppoll_that_keeps_failing_is_no_busy_loop() {
    if !permitted() {
        return;
    }
    let script = "set -- @/hostile without ppoll \"$@\"";
    let mut hostile =
        Hostile::unanswered(Rank::Child, script, 1, "jobs: [{ name: 'a', exec: 'sleep 1000' }]");
    wait_until("the log is open", || hostile.run.size("log") > 0);
    let (before, began) = (cpu_ticks(hostile.pid), Instant::now());
    wait_until("two seconds have passed", || began.elapsed() > Duration::from_secs(2));
    let used = cpu_ticks(hostile.pid) - before;
    assert!(used < 50, "it used {used} hundredths of a second of CPU time within 2 s");
    hostile.stops();
}

/// A Consul agent that accepts everything; counts the registrations.
fn agreeable_agent() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((own_address(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let registered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&registered);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Ok(Some(request)) = http_request::next(&mut reader) {
                    if request.path.contains("/service/register") {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
                }
            });
        }
    });
    (address, registered)
}

fn anonymous_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn d5_r4_memory_does_not_grow_with_the_number_of_service_names_ever_used() {
    if !permitted() {
        return;
    }
    const AT_ONCE: usize = 100;
    let (agent, registered) = agreeable_agent();
    let config = |round: usize| {
        let health = format!("health: {{ tcp: '{agent}', interval: 1, timeout: '5s', ttl: 60 }}");
        Config::new().consul(agent).job("main", "exec: 'sleep 1000'").jobs(
            (0..AT_ONCE).map(|n| format!("service-{round}-{n}")),
            format!("port: 80, interfaces: 'lo', {health}"),
        )
    };
    let mut hostile = Hostile::start(Rank::Init, 1, &config(0));
    let mut measured = Vec::new();
    for round in 1..=15 {
        wait_until("all services are registered", || registered.load(Ordering::SeqCst) >= round * AT_ONCE);
        measured.push(anonymous_kib(hostile.pid));
        hostile.rewrite(&config(round));
        hostile.send(1);
    }
    // A thousand names later.
    let (first, last) = (measured[4], measured[14]);
    assert!(last < first + 2048, "1000 further names cost {} KiB: {measured:?}", last - first);
    hostile.stops();
}
