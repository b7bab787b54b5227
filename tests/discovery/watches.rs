//! Watches by blocking queries (D7, E6), and two containers that find each other.

use std::time::{Duration, Instant};

use crate::consul::Agent;
use crate::pilot::{Pilot, config};
use crate::supervisor::until;

/// Jobs that write down what a watch says.
fn told(watch: &str) -> String {
    let job = |code: &str| {
        format!(
            "{{ name: 'on-{watch}-{code}', exec: ['sh', '-c', 'echo {code} >> @/{watch}.told'], when: {{ source: 'watch.{watch}', each: '{code}' }} }}"
        )
    };
    format!("{}, {}, {}", job("changed"), job("healthy"), job("unhealthy"))
}

/// What a watch has said, in order of codes.
fn heard(pilot: &Pilot, watch: &str) -> [usize; 3] {
    let text = std::fs::read_to_string(pilot.run.file(&format!("{watch}.told"))).unwrap_or_default();
    ["changed", "healthy", "unhealthy"].map(|code| text.lines().filter(|line| *line == code).count())
}

fn until_heard(pilot: &Pilot, watch: &str, expected: [usize; 3]) {
    until(&format!("{watch} said {:?}, not {expected:?}", heard(pilot, watch)), || {
        heard(pilot, watch) == expected
    });
}

#[test]
fn e6_a_watch_sees_every_change_of_the_healthy_instances_long_before_its_interval() {
    let agent = Agent::dev();
    let more = "watches: [{ name: 'db', interval: 600 }, { name: 'tagged', interval: 600, tag: 'primary' },
                   { name: 'far', interval: 600, dc: 'dc1' }],";
    let config = config(&format!("'{}'", agent.address()), "1h", more);
    let jobs = format!("}}, {}, {}, {}], watches", told("db"), told("tagged"), told("far"));
    let pilot = Pilot::start(&config.replace("}], watches", &jobs));
    pilot.started();
    agent.until_status("web", Some("passing"));
    let began = Instant::now();
    agent.register("db", "db-1", 5432, &[]);
    until_heard(&pilot, "db", [1, 1, 0]);
    agent.register("db", "db-2", 5432, &[]);
    until_heard(&pilot, "db", [2, 1, 0]);
    // Another port is another instance.
    agent.register("db", "db-2", 5433, &[]);
    until_heard(&pilot, "db", [3, 1, 0]);
    agent.deregister("db-1");
    until_heard(&pilot, "db", [4, 1, 0]);
    agent.deregister("db-2");
    until_heard(&pilot, "db", [5, 1, 1]);
    assert!(began.elapsed() < Duration::from_secs(300), "long before the interval");
    // Only what has the tag counts; and the data centre is asked that was named.
    agent.register("tagged", "tagged-1", 1, &["replica"]);
    agent.register("far", "far-1", 1, &[]);
    until_heard(&pilot, "far", [1, 1, 0]);
    agent.register("tagged", "tagged-2", 1, &["primary"]);
    until_heard(&pilot, "tagged", [1, 1, 0]);
    pilot.unharmed();
}

#[test]
fn e6_the_first_answer_counts_if_there_is_something_in_it() {
    let agent = Agent::dev();
    agent.register("db", "db-1", 5432, &[]);
    let config = config(
        &format!("'{}'", agent.address()),
        "1h",
        "watches: [{ name: 'db', interval: 1 }, { name: 'nobody', interval: 1 }],",
    );
    let jobs = format!("}}, {}, {}], watches", told("db"), told("nobody"));
    let pilot = Pilot::start(&config.replace("}], watches", &jobs));
    until_heard(&pilot, "db", [1, 1, 0]);
    // Some looks later nothing has changed.
    agent.register("nobody", "nobody-1", 1, &[]);
    until_heard(&pilot, "nobody", [1, 1, 0]);
    assert_eq!(heard(&pilot, "db"), [1, 1, 0]);
    pilot.unharmed();
}

#[test]
fn d7_two_containers_find_each_other_and_one_sees_the_other_die() {
    let agent = Agent::dev();
    let one = |name: &str, other: &str| {
        let config = format!(
            "{{ consul: '{}', stopTimeout: 20, control: {{ socket: '@/control' }}, watches: [{{ name: '{other}', interval: 10 }}], jobs: [
                {{ name: '{name}', port: 80, interfaces: 'static:10.1.2.3', health: {{ exec: 'true', interval: '200ms', ttl: 3, timeout: '20s' }},
                   exec: ['sh', '-c', 'echo $$ >> @/web.pids; exec sleep 1000'] }}, {} ] }}",
            agent.address(),
            told(other)
        );
        Pilot::start(&config)
    };
    let (left, right) = (one("left", "right"), one("right", "left"));
    until_heard(&left, "right", [1, 1, 0]);
    until_heard(&right, "left", [1, 1, 0]);
    // It dies without a word: the TTL runs out, and the other one is told.
    right.run.signal("-KILL");
    until_heard(&left, "right", [2, 1, 1]);
    // Nobody takes its process away with it; that is its container's business.
    for pid in right.pids() {
        assert!(std::process::Command::new("kill").arg(pid.to_string()).status().unwrap().success());
    }
    drop(right);
    // It comes back, as the same instance.
    let right = one("right", "left");
    until_heard(&left, "right", [3, 2, 1]);
    for (pilot, name) in [(right, "right"), (left, "left")] {
        assert_eq!(pilot.pids().len(), 1, "{name} was restarted");
        pilot.run.signal("-TERM");
        assert_eq!(pilot.run.end().0, 0);
        assert_eq!(agent.status(name), None);
    }
}

#[test]
fn d7_a_thousand_watches_have_no_thread_each_and_not_more_connections_than_consul_takes() {
    let agent = Agent::dev();
    let watches: Vec<String> =
        (0..1_000).map(|nth| format!("{{ name: 'service-{nth}', interval: 10 }}")).collect();
    let config = format!(
        "{{ consul: '{}', stopTimeout: 20, control: {{ socket: '@/control' }}, watches: [{}], jobs: [
            {{ name: 'web', exec: ['sh', '-c', 'echo $$ >> @/web.pids; exec sleep 1000'] }}, {}, {} ] }}",
        agent.address(),
        watches.join(", "),
        told("service-7"),
        told("service-993")
    );
    let pilot = Pilot::start(&config);
    pilot.started();
    agent.register("service-7", "a", 1, &[]);
    agent.register("service-993", "b", 1, &[]);
    until_heard(&pilot, "service-7", [1, 1, 0]);
    until_heard(&pilot, "service-993", [1, 1, 0]);
    agent.deregister("a");
    agent.deregister("b");
    until_heard(&pilot, "service-7", [2, 1, 1]);
    until_heard(&pilot, "service-993", [2, 1, 1]);
    let pid = pilot.run.pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    assert!(threads < 10, "{threads} threads");
    assert!(files < 180, "{files} descriptors");
    let log = pilot.unharmed();
    assert!(!log.contains("Consul"), "{log}");
}
