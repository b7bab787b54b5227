//! D14: a lock in a cluster of three Consul servers, each on a machine of its own, with a supervisor beside it.
//!
//! The job that requires the lock writes its fencing number to a shared resource every 50 ms. It also takes a lock of the kernel, which
//! tells exactly whether it runs twice.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::cluster::leader;
use super::network::{Machine, in_own_network};
use crate::support::consul::{Agent, folder};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, child_pids, wait_until};

/// The TTL of the locks, in seconds.
const TTL: f64 = 10.0;

/// Seconds on the clock that the job writes.
fn now() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Three machines with a Consul server each. The last one is the leader at first.
struct Cluster {
    // Dropped before the machines.
    servers: Vec<Agent>,
    machines: Vec<Machine>,
}

impl Cluster {
    fn start() -> Self {
        let settings = json!({ "performance": { "raft_multiplier": 1 }, "log_level": "warn" });
        let mut machines: Vec<Machine> = (1..=3).map(Machine::new).collect();
        let addresses: Vec<String> = machines.iter().map(Machine::address).collect();
        let server = |machine: &Machine| {
            let options = ["-server", "-bootstrap-expect=3"];
            let mut server = Agent::prepared_at(machine.address(), &options, &settings);
            server.wrapper = machine.wrapper();
            server.join(&addresses);
            server.start();
            server
        };
        let mut servers: Vec<Agent> = machines.iter().map(server).collect();
        wait_until("there is a leader", || servers.iter().all(|server| leader(server).is_some()));
        let first = leader(&servers[0]).unwrap();
        servers.sort_by_key(|server| server.ip == first);
        machines.sort_by_key(|machine| machine.address() == first);
        Self { servers, machines }
    }

    /// A resource whose lock was released. A key that does not exist would be left alone for a TTL.
    fn resource(&self, name: &'static str) -> Resource {
        self.servers[0].put(&format!("/v1/kv/{name}"), &json!({ "Released": true }));
        Resource { name, folder: folder() }
    }

    /// A supervisor on a machine, whose job writes to the resource. It talks to the server on its machine.
    fn contender(&self, machine: usize, resource: &Resource) -> Supervisor {
        let (name, file) = (resource.name, resource.folder.join("writes").display().to_string());
        let wrapper = self.machines[machine].wrapper().join(" ");
        let config = format!(
            "{{ consul: '{}', stopTimeout: 3, control: {{ socket: '@/control' }},
                locks: [{{ name: 'primary', key: '{name}', ttl: '10s' }}],
                jobs: [{{ name: 'app', restarts: 'unlimited', requires: ['lock.primary'], 
                    exec: '@programs/holds-lock.sh {file} {machine}' }}] }}",
            self.servers[machine].address()
        );
        Supervisor::with_setup(Mode::Plain, &format!("set -- {wrapper} \"$@\""), &config)
    }
}

/// What the lock protects: it refuses a number that is lower than the highest it has seen.
struct Resource {
    name: &'static str,
    folder: PathBuf,
}

#[derive(Debug)]
struct Write {
    number: u64,
    machine: usize,
    at: f64,
    is_accepted: bool,
}

impl Resource {
    fn writes(&self) -> Vec<Write> {
        let text = fs::read_to_string(self.folder.join("writes")).unwrap_or_default();
        let mut highest = 0;
        let parsed = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [number, machine, at] = words[..] else { return None };
            let number = number.parse().ok()?;
            highest = highest.max(number);
            let (machine, at) = (machine.parse().ok()?, at.parse().ok()?);
            Some(Write { number, machine, at, is_accepted: number == highest })
        });
        parsed.collect()
    }

    /// Waits until the job on this machine has written something that was accepted, after a time.
    fn wait_for_write(&self, machine: usize, after: f64) {
        wait_until(&format!("machine {machine} writes to {}", self.name), || {
            self.writes().iter().any(|one| one.machine == machine && one.is_accepted && one.at > after)
        });
    }

    fn last_write(&self, machine: usize) -> f64 {
        self.writes().iter().filter(|one| one.machine == machine).map(|one| one.at).fold(0.0, f64::max)
    }

    fn overlaps(&self) -> usize {
        fs::read_to_string(self.folder.join("writes.overlaps")).unwrap_or_default().lines().count()
    }

    /// Requires that each number has one holder, and returns the machines that had the lock, in order of their numbers.
    fn holders(&self) -> Vec<usize> {
        let mut holders: Vec<(u64, usize)> =
            self.writes().iter().map(|one| (one.number, one.machine)).collect();
        holders.sort_unstable();
        holders.dedup();
        let is_unique = holders.windows(2).all(|two| two[0].0 < two[1].0);
        assert!(is_unique && holders.iter().all(|(number, _)| *number > 0), "{holders:?}");
        holders.into_iter().map(|(_, machine)| machine).collect()
    }

    /// Requires that the job never ran twice, that numbers only grew, and that these machines had the lock in turn.
    fn assert_never_shared(&self, holders: &[usize]) {
        assert_eq!(self.overlaps(), 0, "the job ran twice");
        let refused: Vec<Write> = self.writes().into_iter().filter(|one| !one.is_accepted).collect();
        assert!(refused.is_empty(), "{refused:?}");
        let mut found = self.holders();
        // A holder that loses the lock for a moment may get it back.
        found.dedup();
        assert_eq!(found, holders);
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn stop(supervisor: Supervisor) -> f64 {
    let stopping = now();
    supervisor.signal("-TERM");
    assert_eq!(supervisor.wait().0, 0);
    stopping
}

#[test]
fn d14_the_death_of_the_raft_leader_does_not_share_a_lock() {
    in_own_network(|| {
        let mut cluster = Cluster::start();
        let resource = cluster.resource("locks/leader");
        let holder = cluster.contender(0, &resource);
        resource.wait_for_write(0, 0.0);
        let mut other = cluster.contender(1, &resource);
        other.wait_for_line("which is not held");
        let old = cluster.servers[2].ip.clone();
        cluster.servers[2].kill();
        let killed = now();
        wait_until("there is a new leader", || {
            cluster.servers[..2].iter().all(|server| leader(server).is_some_and(|ip| ip != old))
        });
        // Without an answer of the new leader, the job would be stopped by now.
        wait_until("the lock is used", || resource.writes().last().is_some_and(|one| one.at > killed + TTL));
        let stopping = stop(holder);
        resource.wait_for_write(1, stopping);
        let taken = resource.writes().iter().find(|one| one.machine == 1).unwrap().at;
        assert!(taken - stopping < TTL, "it took {} s", taken - stopping);
        stop(other);
        resource.assert_never_shared(&[0, 1]);
    });
}

#[test]
#[ignore = "slow: waits for TTLs of 10 s"]
fn d14_a_holder_without_a_network_stops_its_job_before_another_gets_the_lock() {
    in_own_network(|| {
        let cluster = Cluster::start();
        let resource = cluster.resource("locks/network");
        // The worst place: its server is the leader, and goes on as if it still were.
        let mut holder = cluster.contender(2, &resource);
        resource.wait_for_write(2, 0.0);
        let other = cluster.contender(0, &resource);
        cluster.machines[2].connect(false);
        let cut = now();
        resource.wait_for_write(0, cut);
        let last = resource.last_write(2);
        assert!(last - cut < TTL, "it wrote for {} s", last - cut);
        holder.wait_for_line("lock.primary given up");
        cluster.machines[2].connect(true);
        // It sees that the lock is held, and gets it back when it is released.
        let explain = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
            let command = command.args(["explain", "lock.primary", "--socket"]).arg(holder.file("control"));
            String::from_utf8(command.output_in_time().unwrap().stdout).unwrap()
        };
        wait_until("the network works again", || explain().contains("held by"));
        let stopping = stop(other);
        resource.wait_for_write(2, stopping);
        stop(holder);
        resource.assert_never_shared(&[2, 0, 2]);
    });
}

#[test]
#[ignore = "slow: waits for TTLs of 10 s"]
fn d14_a_frozen_holder_is_refused_by_its_fencing_number_and_killed_when_it_wakes() {
    in_own_network(|| {
        let cluster = Cluster::start();
        // A supervisor alone is frozen, and a whole container.
        let scenes = [false, true].map(|is_job_frozen| {
            let resource = cluster.resource(if is_job_frozen { "locks/both" } else { "locks/alone" });
            let mut frozen = cluster.contender(0, &resource);
            resource.wait_for_write(0, 0.0);
            // The job can write before its supervisor has read that its program was executed.
            frozen.wait_for_line("app started");
            let other = cluster.contender(1, &resource);
            let jobs = if is_job_frozen { child_pids(frozen.pid()) } else { vec![] };
            frozen.signal("-STOP");
            signal_groups("-STOP", &jobs);
            (resource, frozen, other, jobs)
        });
        for (resource, ..) in &scenes {
            resource.wait_for_write(1, 0.0);
        }
        for (resource, mut frozen, other, jobs) in scenes {
            if jobs.is_empty() {
                wait_until("the old holder is refused", || {
                    resource.writes().iter().any(|one| one.machine == 0 && !one.is_accepted)
                });
            }
            signal_groups("-CONT", &jobs);
            let woken = now();
            frozen.signal("-CONT");
            frozen.wait_for_line("sending SIGKILL: another supervisor may get lock.primary");
            frozen.wait_for_line("app exited on SIG");
            let (ended, last) = (now(), resource.last_write(0));
            assert!(ended - woken < 5.0, "it was killed {} s after it woke up", ended - woken);
            resource.wait_for_write(1, ended);
            let stopping = stop(other);
            resource.wait_for_write(0, stopping);
            stop(frozen);
            assert_eq!(resource.overlaps(), 1, "the kernel does not tell that the job ran twice");
            assert_eq!(resource.holders(), [0, 1, 0]);
            let writes = resource.writes();
            let refused: Vec<&Write> = writes.iter().filter(|one| !one.is_accepted).collect();
            assert!(refused.iter().all(|one| one.machine == 0 && one.at <= last), "{refused:?}");
        }
    });
}

/// Sends a signal to process groups; each has the pid of its first process.
fn signal_groups(signal: &str, groups: &[u32]) {
    for group in groups {
        let mut command = Command::new("kill");
        assert!(command.args([signal, "--", &format!("-{group}")]).status_in_time().unwrap().success());
    }
}
