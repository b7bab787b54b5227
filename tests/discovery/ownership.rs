//! Services apart from their jobs, and ids that several supervisors want (D10).

use serde_json::json;

use super::fake_agent::{Behaviour, FakeAgent};
use super::pilot::count;
use crate::support::consul::{Agent, service_id};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// A supervisor with the job `web` at this port.
fn web(consul: &str, port: u16, ttl: &str, service: &str) -> Supervisor {
    web_at(consul, "10.1.2.3", port, ttl, service)
}

/// A supervisor with the job `web`, which is healthy until there is a file `sick`.
fn web_at(consul: &str, address: &str, port: u16, ttl: &str, service: &str) -> Supervisor {
    Supervisor::start(
        Mode::Plain,
        &format!(
            "{{ consul: {consul}, control: {{ socket: '@/control' }}, jobs: [
            {{ name: 'web', port: {port}, interfaces: 'static:{address}', exec: 'sleep 1000', service: {{ {service} }},
               health: {{ exec: 'test ! -e @/sick', interval: '250ms', timeout: '10s', ttl: '{ttl}' }} }} ] }}"
        ),
    )
}

fn consul(agent: &Agent) -> String {
    format!("'{}'", agent.address())
}

/// The port under which the service is registered.
fn port(agent: &Agent, id: &str) -> Option<u64> {
    agent.get("/v1/agent/services")[id]["Port"].as_u64()
}

/// The output of a command; empty if it fails.
fn command(run: &Supervisor, args: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    let output = command.args(args).arg("--socket").arg(run.file("control")).output_in_time().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn stop(run: Supervisor) -> String {
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    log
}

#[test]
fn d10_several_jobs_of_one_container_are_instances_of_one_service() {
    let agent = Agent::dev();
    let jobs = "jobs: [
        { name: 'a', port: 8001, exec: 'sleep 1000', service: { name: 'web', address: '10.1.2.4', taggedAddresses: { wan: '198.51.100.7:80' } },
          meta: { zone: 'x' }, health: { interval: 1, ttl: 30 } },
        { name: 'b', port: 8002, interfaces: 'static:10.1.2.3', exec: 'sleep 1000', service: { name: 'web', id: 'web-b' },
          health: { interval: 1, ttl: 30 } },
        { name: 'c', port: 8003, interfaces: 'static:10.1.2.3', exec: 'sleep 1000', replicas: 1, service: { name: 'web' },
          health: { interval: 1, ttl: 30 } },
        { name: 'seen', exec: 'true', when: { source: 'watch.web', each: 'changed' } } ],
        watches: [{ name: 'web', interval: 1 }]";
    let consul = Supervisor::start(Mode::Plain, &format!("{{ consul: {}, {jobs} }}", consul(&agent)));
    let all = || agent.get("/v1/health/service/web?passing=1").as_array().unwrap().len() == 3;
    wait_until("three instances are passing", all);
    let services = agent.get("/v1/agent/services");
    let a = &services[service_id("a")];
    assert_eq!(
        (&a["Service"], &a["Address"], &a["Port"]),
        (&json!("web"), &json!("10.1.2.4"), &json!(8001)),
        "{a}"
    );
    assert_eq!(a["TaggedAddresses"]["wan"], json!({ "Address": "198.51.100.7", "Port": 80 }), "{a}");
    let mark = |id: &str| services[id]["Meta"]["containerpilot-instance"].as_str().unwrap().to_owned();
    assert_eq!(a["Meta"]["zone"], "x", "{a}");
    assert_eq!(mark(&service_id("a")), mark("web-b"));
    assert_eq!(services[service_id("c-1")]["Port"], 8003, "{services}");
    stop(consul);
    assert_eq!(agent.get("/v1/agent/services"), json!({}));

    // The embedded catalog has them, too.
    let embedded =
        Supervisor::start(Mode::Plain, &format!("{{ control: {{ socket: '@/control' }}, {jobs} }}"));
    wait_until("the watch sees all of them", || {
        let seen = command(&embedded, &["explain", "watch.web"]);
        ["10.1.2.4 port 8001", "10.1.2.3 port 8002", "10.1.2.3 port 8003"]
            .iter()
            .all(|one| seen.contains(one))
    });
    stop(embedded);
}

#[test]
fn d10_an_id_of_a_living_supervisor_is_reported_and_not_fought_over() {
    let agent = Agent::dev();
    let id = service_id("web");
    let first = web(&consul(&agent), 8001, "5s", "");
    agent.wait_for_status("web", Some("passing"));
    let mut second = web(&consul(&agent), 8002, "5s", "");
    let line = second.wait_for_line("service web is not registered: another supervisor (instance ");
    assert!(
        line.contains(&format!(
            "has registered the id {id}; waiting until it leaves or its TTL expires; retrying"
        )),
        "{line}"
    );
    for words in [&["explain", "web"][..], &["status", "web"], &["status"]] {
        let shown = command(&second, words);
        assert!(
            shown.contains("another supervisor (instance ") && shown.contains("waiting until"),
            "{shown}"
        );
    }
    // It stays as it is for longer than a TTL.
    let began = std::time::Instant::now();
    wait_until("a TTL has passed", || {
        assert_eq!(port(&agent, &id), Some(8001));
        began.elapsed() > std::time::Duration::from_secs(7)
    });
    // A third one with an id of its own is registered.
    let third = web(&consul(&agent), 8003, "5s", "id: 'web-third'");
    wait_until("the third one is registered", || port(&agent, "web-third") == Some(8003));
    stop(third);
    assert_eq!(port(&agent, &id), Some(8001), "another id is not touched");

    // The first one leaves: the second one follows.
    let log = stop(first);
    assert_eq!(count(&log, "another supervisor"), 0);
    second.wait_for_line("service web: no other supervisor holds its id any more");
    wait_until("the second one is registered", || port(&agent, &id) == Some(8002));
    let log = stop(second);
    assert_eq!(count(&log, "another supervisor"), 1);
    assert_eq!(agent.get("/v1/agent/services"), json!({}));
}

#[test]
fn d10_what_a_crashed_supervisor_has_registered_is_taken_over() {
    let agent = Agent::dev();
    let id = service_id("web");
    // The same address and port: at once, although its TTL is an hour.
    let crashed = web(&consul(&agent), 8001, "1h", "");
    agent.wait_for_status("web", Some("passing"));
    let mark = || agent.get("/v1/agent/services")[&id]["Meta"]["containerpilot-instance"].clone();
    let before = mark();
    crashed.signal("-KILL");
    crashed.wait();
    let successor = web(&consul(&agent), 8001, "2s", "");
    wait_until("it is registered by the successor", || mark() != before && mark() != json!(null));
    // Another port: when the TTL has expired.
    successor.signal("-KILL");
    successor.wait();
    let other = web(&consul(&agent), 8002, "2s", "");
    wait_until("it is taken over", || port(&agent, &id) == Some(8002));
    agent.wait_for_status("web", Some("passing"));
    stop(other);
    assert_eq!(agent.get("/v1/agent/services"), json!({}));
}

#[test]
fn d10_a_predecessor_with_another_address_or_a_critical_check_is_replaced_at_once() {
    let mut agent = Agent::prepared(&["-dev"], &json!({}));
    let id = service_id("web");
    agent.rename(id.strip_prefix("web-").unwrap());
    agent.start();
    agent.wait_for_leader();
    // The agent has the name of this host, and no interface has that address any more.
    let crashed = web_at(&consul(&agent), "10.1.2.9", 8001, "1h", "");
    agent.wait_for_status("web", Some("passing"));
    crashed.signal("-KILL");
    crashed.wait();
    let second = web(&consul(&agent), 8002, "1h", "");
    wait_until("it is taken over", || port(&agent, &id) == Some(8002));
    // The same address, but critical.
    std::fs::write(second.file("sick"), "").unwrap();
    agent.wait_for_status("web", Some("critical"));
    second.signal("-KILL");
    second.wait();
    let third = web(&consul(&agent), 8003, "1h", "");
    wait_until("it is taken over", || port(&agent, &id) == Some(8003));
    agent.wait_for_status("web", Some("passing"));
    let log = stop(third);
    assert_eq!(count(&log, "another supervisor"), 0);
    assert_eq!(agent.get("/v1/agent/services"), json!({}));
}

#[test]
fn d10_an_id_that_cannot_be_looked_up_is_not_taken_for_free() {
    for status in [429, 500, 503] {
        let agent = FakeAgent::new(Behaviour::NoLookUps(status));
        let mut run = web(&format!("'{}'", agent.address), 8001, "30s", "");
        run.wait_for_line("no leader");
        assert!(!agent.has(&service_id("web")), "registered although the look-up failed with {status}");
        agent.change_to(Behaviour::Correct);
        wait_until("it is registered", || agent.has(&service_id("web")));
        stop(run);
    }
}
