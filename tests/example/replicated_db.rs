//! `examples/replicated-db`: the primary dies, is cut off, is stopped; there is never a second one, and no replicated write is lost.
//!
//! `FAILOVER_SECONDS=1800 make test-docker` goes on for that long, with more kinds of faults.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::compose::{Project, docker};
use super::redis_clients::{Accepted, Clients, Connection};
use super::wait_until;

/// What happens to the container with the primary, or to Consul.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// `docker stop`, and later `docker start`.
    Stop,
    /// `docker kill`, when one replica has missed confirmed writes; the other one cannot answer when that replica gets the lock.
    KillWithLaggingReplica,
    /// Its network is down until there is a new primary.
    Cut,
    /// `docker pause` until there is a new primary: its supervisor cannot stop anything in time.
    Pause,
    /// `docker kill`, and at once `docker start`.
    Kill,
    /// Redis is killed, and its supervisor restarts it.
    KillRedis,
    /// Consul loses its data, and with it the lock.
    RestartConsul,
}

/// The first three are those of a short run.
const FAULTS: [Fault; 7] = [
    Fault::Stop,
    Fault::KillWithLaggingReplica,
    Fault::Cut,
    Fault::Pause,
    Fault::Kill,
    Fault::KillRedis,
    Fault::RestartConsul,
];

struct Cluster {
    project: Project,
    clients: Clients,
    /// The address at which each container serves clients while it is the primary.
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    containers: Vec<String>,
    started: Instant,
}

impl Cluster {
    fn up() -> Self {
        let project = Project::up("replicated-db");
        let started = Instant::now();
        let containers = project.containers("db");
        assert_eq!(containers.len(), 3);
        let mut clients = Clients::default();
        let proxy = SocketAddr::from(([127, 0, 0, 1], project.port()));
        for number in 0..4 {
            clients.add(&format!("proxy-{number}"), true, move || proxy);
        }
        let addresses = Arc::new(Mutex::new(containers.iter().map(|container| address(container)).collect()));
        // Past the proxy: they would find a second primary that the proxy hides.
        for number in 0..containers.len() {
            let addresses: Arc<Mutex<Vec<SocketAddr>>> = Arc::clone(&addresses);
            clients.add(&format!("direct-{number}"), false, move || addresses.lock().unwrap()[number]);
        }
        let cluster = Self { project, clients, addresses, containers, started };
        cluster.wait_until_complete("at first");
        cluster.report("the first write", started, 0);
        cluster
    }

    fn proxy(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.project.port()))
    }

    /// Waits until the primary has two replicas that follow.
    fn wait_until_complete(&self, what: &str) {
        let info = || {
            let answers =
                Connection::open(self.proxy()).and_then(|mut proxy| proxy.send(&["INFO replication"]));
            answers.map_or_else(|error| error.to_string(), |answers| answers.concat())
        };
        wait_until(
            || format!("there are a primary and two replicas ({what}); the primary said {:?}", info()),
            || info().matches("state=online").count() == 2,
        );
    }

    /// The container with the lock.
    fn primary(&self) -> &str {
        self.containers.iter().find(|container| has_lock(container)).expect("a container has the lock")
    }

    /// Waits for the first replicated write of a new term, and prints how long it took.
    fn report(&self, what: &str, since: Instant, term: u64) {
        let first = || self.clients.first_after(since, term);
        wait_until(
            || format!("a new primary accepts writes after {what}; the logs were:\n{}", self.project.logs()),
            || first().is_some(),
        );
        let write = first().unwrap();
        let (at, took) = (since - self.started, write.answered - since);
        println!(
            "{what} at {at:.0?}: the primary of term {} has a replicated write after {took:.1?}",
            write.term
        );
    }

    /// Writes to an isolated primary, from inside its container, until there is a new one, and once more.
    fn write_inside(&self, container: &str, since: Instant, term: u64) -> Vec<Accepted> {
        let mut accepted = Vec::new();
        let mut is_last = false;
        while !is_last {
            assert!(
                since.elapsed() < super::TIMEOUT,
                "no new primary; the logs were:\n{}",
                self.project.logs()
            );
            is_last = self.clients.first_after(since, term).is_some();
            let sent = Instant::now();
            if cli(container, 6379, "set inside 1").trim() == "OK" {
                let key = "inside".to_owned();
                accepted.push(Accepted { key, term, sent, answered: Instant::now(), replicated: false });
            }
        }
        // Nor does redis itself accept writes, at the port that only the other containers use.
        let answer = cli(container, 6380, "set inside 2");
        assert!(answer.starts_with("NOREPLICAS"), "{answer}");
        accepted
    }

    /// Waits until clients have written for a while, so that a fault hits them.
    fn wait_for_writes(&self) {
        let count = || self.clients.accepted().iter().filter(|write| write.replicated).count();
        let enough = count() + 150;
        wait_until(|| format!("{enough} writes are replicated, not {}", count()), || count() >= enough);
    }

    /// Lets a fault happen, waits for the new primary, and repairs. Returns what was accepted by an isolated primary.
    fn fail(&self, fault: Fault) -> Vec<Accepted> {
        self.wait_for_writes();
        let primary = self.primary();
        let replicas: Vec<&String> =
            self.containers.iter().filter(|container| *container != primary).collect();
        if fault == Fault::KillWithLaggingReplica {
            self.project.set_network(replicas[0], "down");
            self.wait_for_writes();
        }
        let (mut since, mut term) = (Instant::now(), self.clients.term());
        let mut inside = Vec::new();
        let what = format!("{fault:?}");
        match fault {
            Fault::Stop => drop(docker(&["stop", primary])),
            Fault::KillWithLaggingReplica => {
                docker(&["kill", primary]);
                docker(&["pause", replicas[1]]);
                self.project.set_network(replicas[0], "up");
                wait_until(|| "the lagging replica has the lock".to_owned(), || has_lock(replicas[0]));
                docker(&["unpause", replicas[1]]);
            }
            Fault::Kill => drop((docker(&["kill", primary]), docker(&["start", primary]))),
            Fault::Cut => {
                self.project.set_network(primary, "down");
                inside = self.write_inside(primary, since, term);
            }
            Fault::Pause => drop(docker(&["pause", primary])),
            Fault::KillRedis => {
                docker(&["exec", primary, "containerpilot", "signal", "redis", "KILL"]);
                // It keeps the lock, and so its term.
                (since, term) = (Instant::now(), term - 1);
            }
            Fault::RestartConsul => self.project.restart_consul(primary),
        }
        self.report(&what, since, term);
        match fault {
            Fault::Stop | Fault::KillWithLaggingReplica => drop(docker(&["start", primary])),
            Fault::Cut => self.project.set_network(primary, "up"),
            Fault::Pause => drop(docker(&["unpause", primary])),
            Fault::Kill | Fault::KillRedis | Fault::RestartConsul => {}
        }
        *self.addresses.lock().unwrap() =
            self.containers.iter().map(|container| address(container)).collect();
        self.wait_until_complete(&what);
        inside
    }
}

fn has_lock(container: &str) -> bool {
    docker(&["exec", container, "containerpilot", "explain", "lock.primary"])
        .starts_with("lock.primary: held")
}

fn address(container: &str) -> SocketAddr {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let ip = docker(&["inspect", "--format", format, container]);
    // A container that is not running has none.
    SocketAddr::new(ip.trim().parse().unwrap_or([127, 0, 0, 1].into()), 6379)
}

/// Runs redis-cli in a container. An error, such as a refused connection, is an answer.
fn cli(container: &str, port: u16, command: &str) -> String {
    docker(&["exec", container, "sh", "-c", &format!("timeout 2 redis-cli -p {port} {command} 2>&1 || true")])
}

/// D14: no primary accepts a write that is sent after a newer primary has accepted one.
fn assert_one_primary_at_a_time(accepted: &[Accepted]) {
    let mut terms: Vec<u64> = accepted.iter().map(|write| write.term).collect();
    terms.sort_unstable();
    terms.dedup();
    for term in terms {
        let old = accepted.iter().filter(|write| write.term <= term).max_by_key(|write| write.sent);
        let new = accepted.iter().filter(|write| write.term > term).min_by_key(|write| write.answered);
        if let (Some(old), Some(new)) = (old, new) {
            assert!(old.sent <= new.answered, "two primaries: {old:?} after {new:?}");
        }
    }
}

#[test]
#[ignore = "slow: minutes of load, with the static binary"]
fn d14_one_primary_at_a_time_and_no_replicated_write_is_lost() {
    let seconds = std::env::var("FAILOVER_SECONDS").ok().map(|text| text.parse().unwrap());
    let mut cluster = Cluster::up();
    let mut inside = Vec::new();
    let started = Instant::now();
    for (count, fault) in FAULTS.into_iter().cycle().enumerate() {
        let enough = seconds.map_or(count == 3, |seconds| started.elapsed() > Duration::from_secs(seconds));
        if enough {
            break;
        }
        inside.extend(cluster.fail(fault));
    }
    cluster.clients.end();

    let accepted = cluster.clients.accepted();
    let replicated: Vec<&Accepted> = accepted.iter().filter(|write| write.replicated).collect();
    let mut reader = Connection::open(cluster.proxy()).unwrap();
    let mut read = |key: &str| reader.send(&[&format!("GET {key}")]).unwrap().pop().unwrap();
    let lost: Vec<&&Accepted> = replicated.iter().filter(|write| read(&write.key) != write.key).collect();
    let all = [accepted.clone(), inside.clone()].concat();
    println!(
        "{} writes replicated, {} lost; {} accepted past the proxy, {} inside an isolated container",
        replicated.len(),
        lost.len(),
        accepted.iter().filter(|write| write.key.starts_with("direct")).count(),
        inside.len(),
    );
    assert!(lost.is_empty(), "{lost:?}\n{}", cluster.project.logs());
    assert_one_primary_at_a_time(&all);
    assert!(replicated.len() > 500, "too few writes to prove anything");
}
