//! A fleet whose supervisors watch their own service: every registration answers the queries of all of them (D16).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::config::Config;
use crate::support::consul::Agent;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

const SIZE: usize = 60;
/// The `interval` of the watches, in seconds.
const INTERVAL: u64 = 5;
/// How long all services may take until they are passing. It takes about a second on two CPUs.
const PATIENCE: Duration = Duration::from_secs(30);

fn start(agent: &Agent, number: usize) -> Supervisor {
    let service = format!(
        "port: {}, interfaces: 'static:10.1.2.3', service: {{ id: 'app-{number}' }},
         health: {{ exec: 'true', interval: {INTERVAL}, ttl: 15, timeout: 20 }}",
        8_000 + number,
    );
    let config = Config::new()
        .consul(agent.address())
        .keys("control: { socket: '@/control' }")
        .keys(format!("watches: [{{ name: 'app', interval: {INTERVAL} }}]"))
        .job("app", format!("exec: 'sleep 1000', {service}"));
    Supervisor::start(Mode::Plain, &config)
}

/// How many services of the fleet are passing.
fn passing(agent: &Agent) -> usize {
    let checks = agent.try_get("/v1/health/checks/app").unwrap_or_default();
    let is_passing = |check: &&serde_json::Value| check["Status"] == "passing";
    checks.as_array().map_or(0, |checks| checks.iter().filter(is_passing).count())
}

fn wait_for_all(agent: &Agent) {
    let began = Instant::now();
    wait_until(&format!("all {SIZE} services are passing"), || passing(agent) >= SIZE);
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
}

/// How many queries of watches the agent has answered. In development mode it logs every request.
fn queries(agent: &Agent) -> usize {
    let log = std::fs::read_to_string(agent.folder().join("log")).unwrap();
    log.lines()
        .filter(|line| line.contains("Request finished") && line.contains("/v1/health/service/app?"))
        .count()
}

#[test]
#[ignore = "slow: 60 supervisors, and 10 s of changes"]
fn d16_a_fleet_that_watches_itself_is_passing_soon_stays_so_in_a_storm_and_comes_back() {
    // An agent accepts 200 connections from one address by default.
    let mut agent = Agent::dev_with(&json!({ "limits": { "http_max_conns_per_client": 10_000 } }));
    let mut fleet: Vec<Supervisor> = (0..SIZE).map(|number| start(&agent, number)).collect();
    wait_for_all(&agent);

    // Ten changes a second, which all of them watch.
    let (before, began, mut changes) = (queries(&agent), Instant::now(), 0);
    wait_until("ten seconds have passed", || {
        if began.elapsed() >= Duration::from_millis(100) * changes {
            changes += 1;
            agent.register("app", "other", 1_000 + changes as u16, &[]);
            let count = passing(&agent);
            assert!(
                count >= SIZE,
                "{count} are passing after {changes} changes: heartbeats wait for queries"
            );
        }
        began.elapsed() > Duration::from_secs(10)
    });
    let (asked, took) = (queries(&agent) - before, began.elapsed());
    // As often as polling, at most one more in a minute, and a burst of five.
    let polls = took.as_secs_f64() / INTERVAL as f64;
    let most = SIZE * (polls + took.as_secs_f64() / 60.0 + 5.0).ceil() as usize;
    assert!(asked <= most, "{asked} queries for {changes} changes, and not {most}");
    assert!(asked >= SIZE, "{asked} queries for {changes} changes");

    agent.kill();
    for supervisor in &mut fleet {
        supervisor.wait_for_line("is unreachable");
    }
    agent.start();
    wait_for_all(&agent);
    for supervisor in fleet {
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
    }
    assert_eq!(agent.status("app"), None);
}
