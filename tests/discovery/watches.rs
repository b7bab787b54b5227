//! Watches, which use blocking queries (D7, E6), and two supervisors that watch each other.

use std::time::{Duration, Instant};

use super::pilot::{Pilot, WEB, config, settings};
use crate::support::config::Config;
use crate::support::consul::{Agent, http};
use crate::support::deadline::InTime;
use crate::support::supervisor::wait_until;

const CODES: [&str; 3] = ["changed", "healthy", "unhealthy"];

/// Adds jobs that record the events of a watch in a file.
fn recording(config: Config, watch: &str) -> Config {
    CODES.into_iter().fold(config, |config, code| {
        let when = format!("when: {{ source: 'watch.{watch}', each: '{code}' }}");
        config.job(
            format!("on-{watch}-{code}"),
            format!("exec: ['sh', '-c', 'echo {code} >> @/{watch}.events'], {when}"),
        )
    })
}

/// How often a watch has sent `changed`, `healthy` and `unhealthy`.
fn event_counts(pilot: &Pilot, watch: &str) -> [usize; 3] {
    let text = std::fs::read_to_string(pilot.run.file(&format!("{watch}.events"))).unwrap_or_default();
    CODES.map(|code| text.lines().filter(|line| *line == code).count())
}

fn wait_for_counts(pilot: &Pilot, watch: &str, expected: [usize; 3]) {
    wait_until(&format!("{watch} has sent {expected:?}; it was {:?}", event_counts(pilot, watch)), || {
        event_counts(pilot, watch) == expected
    });
}

#[test]
fn d16_while_nothing_changes_only_the_index_is_queried_and_the_next_change_is_seen() {
    let agent = Agent::dev();
    let config = config("1h").consul(agent.address()).keys("watches: [{ name: 'db', interval: 2 }]");
    let pilot = Pilot::start(&recording(config, "db"));
    // In development mode the agent logs every request.
    let index_queries = || {
        let log = std::fs::read_to_string(agent.folder().join("log")).unwrap();
        log.lines()
            .filter(|line| line.contains("/v1/health/service/db?") && line.contains("&filter="))
            .count()
    };
    wait_until("the index alone is queried", || index_queries() > 0);
    agent.register("db", "db-1", 5432, &[]);
    wait_for_counts(&pilot, "db", [1, 1, 0]);
    agent.deregister("db-1");
    wait_for_counts(&pilot, "db", [2, 1, 1]);
    pilot.assert_unharmed();
}

#[test]
fn e6_d7_watch_sees_every_change_of_healthy_instances_before_its_interval() {
    let agent = Agent::dev();
    // Several changes within an interval may be seen as one (D16).
    let more = "watches: [{ name: 'db', interval: 1 }, { name: 'tagged', interval: 600, tag: 'primary' },
                   { name: 'far', interval: 600, dc: 'dc1' }]";
    let config = config("1h").consul(agent.address()).keys(more);
    let pilot = Pilot::start(&["db", "tagged", "far"].into_iter().fold(config, recording));
    pilot.wait_for_job();
    agent.wait_for_status("web", Some("passing"));
    let began = Instant::now();
    // `tag` filters the instances, and `dc` selects the data centre.
    agent.register("tagged", "tagged-1", 1, &["replica"]);
    agent.register("far", "far-1", 1, &[]);
    wait_for_counts(&pilot, "far", [1, 1, 0]);
    agent.register("tagged", "tagged-2", 1, &["primary"]);
    wait_for_counts(&pilot, "tagged", [1, 1, 0]);
    assert!(began.elapsed() < Duration::from_secs(300), "the watch has waited for its interval");
    agent.register("db", "db-1", 5432, &[]);
    wait_for_counts(&pilot, "db", [1, 1, 0]);
    agent.register("db", "db-2", 5432, &[]);
    wait_for_counts(&pilot, "db", [2, 2, 0]);
    // A changed port is a change.
    agent.register("db", "db-2", 5433, &[]);
    wait_for_counts(&pilot, "db", [3, 3, 0]);
    agent.deregister("db-1");
    wait_for_counts(&pilot, "db", [4, 4, 0]);
    agent.deregister("db-2");
    wait_for_counts(&pilot, "db", [5, 4, 1]);
    pilot.assert_unharmed();
}

#[test]
fn d12_addresses_come_with_the_event() {
    let agent = Agent::dev();
    let name = "$CONTAINERPILOT_WATCH_DB";
    let print = format!("echo {name} +{name}_ADDED -{name}_REMOVED >> @/db.seen");
    let config = config("1h").consul(agent.address()).keys("watches: [{ name: 'db', interval: 1 }]");
    let job = format!("exec: ['sh', '-c', '{print}'], when: {{ source: 'watch.db', each: 'changed' }}");
    let pilot = Pilot::start(&config.job("seen", job));
    let lines = || std::fs::read_to_string(pilot.run.file("db.seen")).unwrap_or_default();
    let wait_for = |last: &str| {
        wait_until(&format!("`{last}` is the last line"), || lines().lines().last() == Some(last));
    };
    agent.register("db", "db-1", 5432, &[]);
    wait_for("10.7.7.7:5432 +10.7.7.7:5432 -");
    agent.register("db", "db-2", 5433, &[]);
    wait_for("10.7.7.7:5432,10.7.7.7:5433 +10.7.7.7:5433 -");
    agent.deregister("db-1");
    wait_for("10.7.7.7:5433 + -10.7.7.7:5432");
    pilot.assert_unharmed();
}

#[test]
fn d13_keys_and_prefixes_are_followed_by_blocking_queries() {
    let agent = Agent::dev();
    let watches = "watches: [{ name: 'one', key: 'app/one', interval: 60 }, { name: 'all', prefix: 'app/', interval: 1 }]";
    let config = config("1h").consul(agent.address()).keys(watches);
    let events = ["one", "all"].into_iter().flat_map(|watch| CODES.map(|code| (watch, code)));
    let config = events.fold(config, |config, (watch, code)| {
        let name = format!("$CONTAINERPILOT_WATCH_{}", watch.to_uppercase());
        let exec = format!("exec: ['sh', '-c', 'echo {code} {name} >> @/{watch}.seen']");
        config.job(
            format!("{watch}-{code}"),
            format!("{exec}, when: {{ source: 'watch.{watch}', each: '{code}' }}"),
        )
    });
    let pilot = Pilot::start(&config);
    pilot.wait_for_job();
    let wait_for = |watch: &str, expected: &[&str]| {
        let file = pilot.run.file(&format!("{watch}.seen"));
        let sorted = || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
            lines.sort_unstable();
            lines
        };
        wait_until(&format!("{watch} has recorded {expected:?}, not {:?}", sorted()), || {
            sorted() == expected
        });
        std::fs::write(&file, "").unwrap();
    };
    agent.put("/v1/kv/app/one", &1.into());
    wait_for("one", &["changed 1", "healthy 1"]);
    wait_for("all", &["changed one", "healthy one"]);
    agent.put("/v1/kv/app/sub/two", &"x".into());
    wait_for("all", &["changed one,sub/two"]);
    agent.put("/v1/kv/app/one", &2.into());
    wait_for("one", &["changed 2"]);
    wait_for("all", &["changed one,sub/two"]);
    // The largest value that Consul accepts is too long for a variable, but not for a watch.
    agent.put("/v1/kv/app/one", &"x".repeat(512 * 1024 - 2).into());
    wait_for("one", &["changed"]);
    wait_for("all", &["changed one,sub/two"]);
    http(&agent.address(), "DELETE", "/v1/kv/app/?recurse", None, "").unwrap();
    wait_for("one", &["changed", "unhealthy"]);
    wait_for("all", &["changed", "unhealthy"]);
    pilot.assert_unharmed();
}

#[test]
fn e6_first_answer_is_a_change_only_if_it_is_not_empty() {
    let agent = Agent::dev();
    agent.register("db", "db-1", 5432, &[]);
    let config = config("1h")
        .consul(agent.address())
        .keys("watches: [{ name: 'db', interval: 1 }, { name: 'empty', interval: 1 }]");
    let pilot = Pilot::start(&["db", "empty"].into_iter().fold(config, recording));
    wait_for_counts(&pilot, "db", [1, 1, 0]);
    // By then `db` has been queried several times without a change.
    agent.register("empty", "empty-1", 1, &[]);
    wait_for_counts(&pilot, "empty", [1, 1, 0]);
    assert_eq!(event_counts(&pilot, "db"), [1, 1, 0]);
    pilot.assert_unharmed();
}

#[test]
fn d7_two_supervisors_watch_each_other_and_one_sees_the_other_die() {
    let agent = Agent::dev();
    let one = |name: &str, other: &str| {
        let config = settings()
            .consul(agent.address())
            .keys(format!("watches: [{{ name: '{other}', interval: 10 }}]"))
            .job(
                name,
                format!("{WEB}, health: {{ exec: 'true', interval: '200ms', ttl: 3, timeout: '20s' }}"),
            );
        Pilot::start(&recording(config, other))
    };
    let (left, right) = (one("left", "right"), one("right", "left"));
    wait_for_counts(&left, "right", [1, 1, 0]);
    wait_for_counts(&right, "left", [1, 1, 0]);
    // After SIGKILL it cannot deregister: its TTL expires, and the other one sees that.
    right.run.signal("-KILL");
    wait_for_counts(&left, "right", [2, 1, 1]);
    // Its job survives it here; a container would end with its PID 1.
    for pid in right.pids() {
        assert!(std::process::Command::new("kill").arg(pid.to_string()).status_in_time().unwrap().success());
    }
    drop(right);
    // It comes back as the same instance.
    let right = one("right", "left");
    wait_for_counts(&left, "right", [3, 2, 1]);
    for (pilot, name) in [(right, "right"), (left, "left")] {
        assert_eq!(pilot.pids().len(), 1, "{name} was restarted");
        pilot.run.signal("-TERM");
        assert_eq!(pilot.run.wait().0, 0);
        assert_eq!(agent.status(name), None);
    }
}

#[test]
fn d7_d16_thousand_watches_share_threads_and_stay_within_consuls_connection_limit() {
    let agent = Agent::dev();
    let watches: Vec<String> =
        (0..1_000).map(|nth| format!("{{ name: 'service-{nth}', interval: 10 }}")).collect();
    let config = settings()
        .consul(agent.address())
        .keys(format!("watches: [{}]", watches.join(", ")))
        .job("web", format!("{WEB}, health: {{ exec: 'true', interval: 1, ttl: 30, timeout: '20s' }}"));
    let pilot = Pilot::start(&["service-7", "service-993"].into_iter().fold(config, recording));
    pilot.wait_for_job();
    // A registration does not wait for the queries (D16).
    agent.wait_for_status("web", Some("passing"));
    agent.register("service-7", "a", 1, &[]);
    agent.register("service-993", "b", 1, &[]);
    wait_for_counts(&pilot, "service-7", [1, 1, 0]);
    wait_for_counts(&pilot, "service-993", [1, 1, 0]);
    agent.deregister("a");
    agent.deregister("b");
    wait_for_counts(&pilot, "service-7", [2, 1, 1]);
    wait_for_counts(&pilot, "service-993", [2, 1, 1]);
    let pid = pilot.run.pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    assert!(threads < 10, "{threads} threads");
    assert!(files < 180, "{files} descriptors");
    let log = pilot.assert_unharmed();
    assert!(!log.contains("Consul"));
    assert_eq!(agent.status("web"), None);
}
