//! A Consul that is down, slow or wrong never stops, delays or restarts a job, and is synchronised afterwards (D5).

use std::fs;
use std::time::{Duration, Instant};

use super::fake_agent::{Behaviour, FakeAgent};
use super::pilot::{Pilot, config, count};
use crate::support::consul::{Agent, own_address, service_id};
use crate::support::supervisor::{Mode, modes, wait_until};

const WATCH: &str = "watches: [{ name: 'db', interval: 1 }]";
/// The keys of a job that notes each change of the watch.
pub(crate) const SEEN: &str =
    "exec: ['sh', '-c', 'echo x >> @/seen'], when: { source: 'watch.db', each: 'changed' }";

#[test]
fn d5_service_is_registered_again_after_the_agent_lost_its_data() {
    let mut agent = Agent::dev();
    let mut pilot = Pilot::start(&config("5s").consul(agent.address()).keys(WATCH));
    agent.wait_for_status("web", Some("passing"));
    for times in 1..=2 {
        agent.kill();
        pilot.run.wait_for_lines("; retrying", times);
        agent.start();
        agent.wait_for_leader();
        agent.wait_for_status("web", Some("passing"));
        pilot.run.wait_for_lines("is available again", times);
    }
    let log = pilot.assert_unharmed();
    // One log entry per change of state, not per attempt.
    assert_eq!((count(&log, "; retrying"), count(&log, "is available again")), (2, 2));
}

#[test]
fn d5_deregistered_service_is_registered_again_at_the_next_heartbeat() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config("5s").consul(agent.address()));
    agent.wait_for_status("web", Some("passing"));
    for _ in 0..3 {
        agent.deregister(&service_id("web"));
        agent.wait_for_status("web", Some("passing"));
    }
    // Also a critical service, which has no heartbeats.
    fs::write(pilot.run.file("ill"), "").unwrap();
    agent.wait_for_status("web", Some("critical"));
    agent.deregister(&service_id("web"));
    agent.wait_for_status("web", Some("critical"));
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "Consul"), 0);
    assert_eq!(count(&log, "Service registered: web"), 1, "an agent that forgets does not fill the log");
}

#[test]
fn d5_d7_frozen_agent_does_not_affect_jobs_or_watches() {
    let agent = Agent::dev();
    agent.register("db", "db-1", 5432, &[]);
    let config = config("2s").consul(agent.address()).keys(WATCH).job("seen", SEEN);
    let mut pilot = Pilot::start(&config);
    agent.wait_for_status("web", Some("passing"));
    wait_until("the watch sees the instance", || pilot.run.size("seen") == 2);
    agent.signal("-STOP");
    let frozen = Instant::now();
    pilot.run.wait_for_line("; retrying");
    wait_until("the TTL has passed", || frozen.elapsed() > Duration::from_secs(3));
    // Meanwhile the supervisor still checks the job.
    fs::write(pilot.run.file("ill"), "").unwrap();
    pilot.run.wait_for_line("web unhealthy");
    fs::remove_file(pilot.run.file("ill")).unwrap();
    pilot.run.wait_for_line("web healthy");
    agent.signal("-CONT");
    pilot.run.wait_for_line("is available again");
    agent.wait_for_status("web", Some("passing"));
    // D7: the watch kept its last answer.
    assert_eq!(pilot.run.size("seen"), 2);
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "; retrying"), 1);
    agent.wait_for_status("web", None);
}

#[test]
fn s2_frozen_agent_does_not_block_a_stop() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config("1h").consul(agent.address()).keys(WATCH));
    agent.wait_for_status("web", Some("passing"));
    agent.signal("-STOP");
    let log = pilot.assert_unharmed();
    assert!(log.contains("deregistration not confirmed"));
    agent.signal("-CONT");
}

/// Requires at most so many requests in a second, whatever a busy machine made of that second.
fn assert_rate(requests: usize, most: f64, since: Instant) {
    let elapsed = since.elapsed();
    assert!((requests as f64) < most * elapsed.as_secs_f64(), "{requests} requests in {elapsed:?}");
}

/// Runs a job against a misbehaving agent, requires the log message `words`, and lets the agent become correct.
fn recovers_from(behaviour: Behaviour, words: &str) {
    let agent = FakeAgent::new(behaviour);
    let consul = format!("{{ address: '{}', token: 'the-secret-token' }}", agent.address);
    let mut pilot = Pilot::start(&config("2s").keys(format!("consul: {}", consul)).keys(WATCH));
    pilot.wait_for_job();
    pilot.run.wait_for_lines("web healthy", 1);
    pilot.run.wait_for_lines(words, 1);
    // Requests are retried, but not in a busy loop.
    let requests = agent.requests();
    wait_until("requests are retried", || agent.requests() > requests + 2);
    let (before, began) = (agent.requests(), Instant::now());
    wait_until("a second has passed", || began.elapsed() > Duration::from_secs(1));
    assert_rate(agent.requests() - before, 60.0, began);
    agent.change_to(Behaviour::Correct);
    wait_until("the service is registered", || agent.has(&service_id("web")));
    let back =
        if words.contains("refused service") { "accepts service web again" } else { "is available again" };
    pilot.run.wait_for_lines(back, 1);
    let log = pilot.assert_unharmed();
    assert!(!agent.has(&service_id("web")));
    assert_eq!(count(&log, words), 1, "{behaviour:?}");
    assert!(!log.contains("the-secret-token"));
}

#[test]
fn d5_agent_that_accepts_and_never_responds() {
    recovers_from(Behaviour::Silent, "is unreachable: no response within");
}

#[test]
fn d5_agent_that_responds_with_500() {
    recovers_from(
        Behaviour::Responds(500, "No cluster leader"),
        "is unavailable: status 500: No cluster leader",
    );
}

#[test]
fn d5_l5_agent_that_responds_with_403_and_echoes_the_token() {
    recovers_from(
        Behaviour::Responds(403, "Permission denied for the-secret-token"),
        " refused service web: status 403: Permission denied for (hidden)",
    );
}

#[test]
fn d5_agent_that_responds_with_garbage() {
    recovers_from(Behaviour::Garbage, "is unreachable: the response is not HTTP");
}

#[test]
fn d5_agent_that_closes_the_connection_in_the_body() {
    recovers_from(Behaviour::HalfABody, "is unreachable: ");
}

#[test]
fn d7_watch_of_an_agent_that_sends_html_or_never_blocks() {
    let agent = FakeAgent::new(Behaviour::NotJson);
    let watch = "watches: [{ name: 'db', interval: 10 }]";
    let mut pilot = Pilot::start(&config("1h").consul(&agent.address).keys(watch));
    pilot.run.wait_for_line("is unavailable: the response is not valid JSON");
    agent.change_to(Behaviour::Correct);
    pilot.run.wait_for_line("is available again");
    // Index 0 and no blocking query: the watch slows down by itself.
    let (before, began) = (agent.requests(), Instant::now());
    wait_until("two seconds have passed", || began.elapsed() > Duration::from_secs(2));
    assert_rate(agent.requests() - before, 20.0, began);
    pilot.assert_unharmed();
}

#[test]
fn d5_consul_address_that_resolves_only_later() {
    if !modes().contains(&Mode::Pid1) {
        return;
    }
    let agent = Agent::dev();
    // Its own hosts file, and a name server that does not exist.
    let script = "cp /etc/hosts @/hosts; echo nameserver 127.0.0.254 > @/resolv; echo options timeout:1 attempts:1 >> @/resolv;
        mount --bind @/hosts /etc/hosts && mount --bind @/resolv /etc/resolv.conf || exit 9";
    let mut pilot =
        Pilot::with_setup(Mode::Pid1, script, &config("5s").consul("consul.example:8500").keys(WATCH));
    pilot.wait_for_job();
    pilot.run.wait_for_line("is unreachable: cannot resolve consul.example: ");
    let hosts = pilot.run.file("hosts");
    let known = fs::read_to_string(&hosts).unwrap();
    fs::write(&hosts, format!("{known}\n{} consul.example\n", agent.ip)).unwrap();
    pilot.run.wait_for_line("is available again");
    agent.wait_for_status("web", Some("passing"));
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "; retrying"), 1);
}

#[test]
fn d5_no_process_listens_at_the_consul_address() {
    let pilot = Pilot::start(&config("5s").consul(format!("{}:8500", own_address())).keys(WATCH));
    pilot.wait_for_job();
    let mut pilot = pilot;
    assert!(
        pilot.run.wait_for_line("; retrying").contains("connection refused"),
        "{}",
        pilot.run.log_so_far()
    );
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "; retrying"), 1);
}

#[cfg(debug_assertions)]
#[test]
fn d5_panic_while_talking_to_consul_is_recovered() {
    let agent = Agent::dev();
    for failpoint in ["service:1", "service:2", "watch:1", "watch:2"] {
        let watched = "watches: [{ name: 'web', interval: 1 }]";
        let text = config("10s").consul(agent.address()).keys(watched);
        let mut pilot =
            Pilot::with_setup(Mode::Plain, &format!("export CONTAINERPILOT_FAILPOINT={failpoint}"), &text);
        pilot.wait_for_job();
        pilot.run.wait_for_line("failpoints.rs:");
        agent.wait_for_status("web", Some("passing"));
        let log = pilot.assert_unharmed();
        assert!(log.contains("on the network thread: on purpose"));
        agent.wait_for_status("web", None);
    }
}
