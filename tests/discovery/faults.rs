//! A Consul that is away, slow or wrong never stops, delays or restarts a job, and is caught up with afterwards (D5).

use std::fs;
use std::time::{Duration, Instant};

use crate::agent::{Agent, own_address, service_id};
use crate::impostor::{Impostor, Manner};
use crate::pilot::{Pilot, config, count};
use crate::support::{As, until, ways};

const WATCH: &str = "watches: [{ name: 'db', interval: 1 }]";

#[test]
fn d5_an_agent_that_is_killed_and_comes_back_without_its_data_has_the_service_within_a_heartbeat() {
    let mut agent = Agent::dev();
    let mut pilot = Pilot::start(&config(&format!("'{}'", agent.address()), "5s", WATCH));
    agent.until_status("web", Some("passing"));
    for times in 1..=2 {
        agent.kill();
        pilot.run.lines("cannot be used", times);
        agent.start();
        agent.wait_for_leader();
        agent.until_status("web", Some("passing"));
        pilot.run.lines("can be used again", times);
    }
    let log = pilot.unharmed();
    // Once for each change, however often it was tried.
    assert_eq!((count(&log, "cannot be used"), count(&log, "can be used again")), (2, 2), "{log}");
}

#[test]
fn d5_a_service_that_somebody_took_out_comes_back_with_the_next_heartbeat() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config(&format!("'{}'", agent.address()), "5s", "watches: []"));
    agent.until_status("web", Some("passing"));
    for _ in 0..3 {
        agent.deregister(&service_id("web"));
        agent.until_status("web", Some("passing"));
    }
    // A critical one, too, although there are no heartbeats for it.
    fs::write(pilot.run.file("ill"), "").unwrap();
    agent.until_status("web", Some("critical"));
    agent.deregister(&service_id("web"));
    agent.until_status("web", Some("critical"));
    let log = pilot.unharmed();
    assert_eq!(count(&log, "Consul"), 0, "{log}");
}

#[test]
fn d5_an_agent_that_is_frozen_for_longer_than_the_ttl() {
    let agent = Agent::dev();
    agent.register("db", "db-1", 5432, &[]);
    let config = config(&format!("'{}'", agent.address()), "2s", WATCH).replace(
        "}], watches",
        "}, { name: 'seen', exec: ['sh', '-c', 'echo x >> @/seen'], when: { source: 'watch.db', each: 'changed' } }], watches",
    );
    let mut pilot = Pilot::start(&config);
    agent.until_status("web", Some("passing"));
    until("the watch sees nothing", || pilot.run.size("seen") == 2);
    agent.signal("-STOP");
    let frozen = Instant::now();
    pilot.run.line("cannot be used");
    until("the TTL does not pass", || frozen.elapsed() > Duration::from_secs(3));
    // Meanwhile the supervisor does its work: it sees that the job is ill, and well again.
    fs::write(pilot.run.file("ill"), "").unwrap();
    pilot.run.line("web is unhealthy");
    fs::remove_file(pilot.run.file("ill")).unwrap();
    pilot.run.line("web is healthy");
    agent.signal("-CONT");
    pilot.run.line("can be used again");
    agent.until_status("web", Some("passing"));
    // D7: while it was away the last answer counted.
    assert_eq!(pilot.run.size("seen"), 2);
    let log = pilot.unharmed();
    assert_eq!(count(&log, "cannot be used"), 1, "{log}");
    agent.until_status("web", None);
}

#[test]
fn s2_an_agent_that_is_frozen_does_not_hold_a_stop() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config(&format!("'{}'", agent.address()), "1h", WATCH));
    agent.until_status("web", Some("passing"));
    agent.signal("-STOP");
    let log = pilot.unharmed();
    assert!(log.contains("does not wait any longer for the catalog"), "{log}");
    agent.signal("-CONT");
}

/// A job beside something that is no agent, until it becomes one.
fn beside(manner: Manner, words: &str) {
    let impostor = Impostor::new(manner);
    let consul = format!("{{ address: '{}', token: 'the-secret-token' }}", impostor.address);
    let mut pilot = Pilot::start(&config(&consul, "2s", WATCH));
    pilot.started();
    pilot.run.lines("web is healthy", 1);
    pilot.run.lines(words, 1);
    // It is tried again, and not in a loop.
    let asked = impostor.asked();
    until("it is not tried again", || impostor.asked() > asked + 2);
    let (before, began) = (impostor.asked(), Instant::now());
    until("time does not pass", || began.elapsed() > Duration::from_secs(1));
    let asked = impostor.asked() - before;
    assert!(asked < 60, "{asked} requests in {:?}", began.elapsed());
    impostor.becomes(Manner::Good);
    until("it is not registered", || impostor.has(&service_id("web")));
    let back =
        if words.contains("refuses service") { "takes service web again" } else { "can be used again" };
    pilot.run.lines(back, 1);
    let log = pilot.unharmed();
    assert!(!impostor.has(&service_id("web")), "{log}");
    assert_eq!(count(&log, words), 1, "{manner:?}: {log}");
    assert!(!log.contains("the-secret-token"), "{log}");
}

#[test]
fn d5_a_listener_that_accepts_and_never_answers() {
    beside(Manner::Silent, "cannot be used: no answer within");
}

#[test]
fn d5_one_that_answers_500() {
    beside(Manner::Says(500, "No cluster leader"), "cannot be used: status 500: No cluster leader");
}

#[test]
fn d5_one_that_answers_403_and_shows_the_token() {
    beside(
        Manner::Says(403, "Permission denied for the-secret-token"),
        "Consul refuses service web: status 403: Permission denied for (hidden)",
    );
}

#[test]
fn d5_one_that_answers_garbage() {
    beside(Manner::Garbage, "cannot be used: invalid HTTP");
}

#[test]
fn d5_one_that_answers_half_a_body() {
    beside(Manner::HalfABody, "cannot be used: ");
}

#[test]
fn d7_one_that_answers_with_a_page_and_one_that_never_blocks() {
    let impostor = Impostor::new(Manner::NoJson);
    let watch = "watches: [{ name: 'db', interval: 10 }]";
    let mut pilot = Pilot::start(&config(&format!("'{}'", impostor.address), "1h", watch));
    pilot.run.line("cannot be used: its answer is no JSON");
    impostor.becomes(Manner::Good);
    pilot.run.line("can be used again");
    // An index of 0 and no blocking: the watch slows down by itself.
    let (before, began) = (impostor.asked(), Instant::now());
    until("time does not pass", || began.elapsed() > Duration::from_secs(2));
    let asked = impostor.asked() - before;
    assert!(asked < 40, "{asked} requests in {:?}", began.elapsed());
    pilot.unharmed();
}

#[test]
fn d5_an_address_that_does_not_resolve_and_then_does() {
    if !ways().contains(&As::Init) {
        return;
    }
    let agent = Agent::dev();
    // Names of our own, and nobody else to ask.
    let script = "cp /etc/hosts @/hosts; echo nameserver 127.0.0.254 > @/resolv; echo options timeout:1 attempts:1 >> @/resolv;
        mount --bind @/hosts /etc/hosts && mount --bind @/resolv /etc/resolv.conf || exit 9";
    let mut pilot = Pilot::behind(As::Init, script, &config("'consul.example:8500'", "5s", WATCH));
    pilot.started();
    pilot.run.line("cannot be used: the name consul.example c");
    let hosts = pilot.run.file("hosts");
    let known = fs::read_to_string(&hosts).unwrap();
    fs::write(&hosts, format!("{known}\n{} consul.example\n", agent.ip)).unwrap();
    pilot.run.line("can be used again");
    agent.until_status("web", Some("passing"));
    let log = pilot.unharmed();
    assert_eq!(count(&log, "cannot be used"), 1, "{log}");
}

#[test]
fn d5_nobody_is_there_at_all() {
    let pilot = Pilot::start(&config(&format!("'{}:8500'", own_address()), "5s", WATCH));
    pilot.started();
    let mut pilot = pilot;
    assert!(pilot.run.line("cannot be used").contains("Connection refused"), "{}", pilot.run.seen());
    let asked = Instant::now();
    let log = pilot.unharmed();
    assert!(asked.elapsed() < Duration::from_secs(5), "it took {:?}", asked.elapsed());
    assert_eq!(count(&log, "cannot be used"), 1, "{log}");
}

#[cfg(debug_assertions)]
#[test]
fn d5_a_panic_of_ours_while_speaking_to_consul_is_made_good() {
    let agent = Agent::dev();
    for mishap in ["service:1", "service:2", "watch:1", "watch:2"] {
        let watched = "watches: [{ name: 'web', interval: 1 }]";
        let text = config(&format!("'{}'", agent.address()), "10s", watched);
        let mut pilot = Pilot::behind(As::Plain, &format!("export CONTAINERPILOT_FAILPOINT={mishap}"), &text);
        pilot.started();
        pilot.run.line("src/mishap.rs:");
        agent.until_status("web", Some("passing"));
        let log = pilot.unharmed();
        assert!(log.contains("on its network thread: on purpose"), "{log}");
        agent.until_status("web", None);
    }
}
