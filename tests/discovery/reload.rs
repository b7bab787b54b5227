//! Reload with Consul: unchanged services stay registered (R3).

use super::pilot::{Pilot, WEB, config, health, settings};
use crate::support::consul::Agent;
use crate::support::supervisor::wait_until;

fn reload(pilot: &Pilot, config: &str) -> String {
    pilot.run.rewrite(config);
    let answer = pilot.post("/v3/reload");
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// The keys of a job that is a service.
fn service(argument: u32) -> String {
    format!(
        "port: 81, interfaces: 'static:10.1.2.4', exec: 'sleep {argument}',
         health: {{ exec: 'true', interval: '250ms', timeout: '20s', ttl: '15s' }}"
    )
}

#[test]
fn r3_unchanged_service_stays_registered_without_a_gap() {
    let agent = Agent::dev();
    let web = format!("{WEB}, {}", health("15s"));
    let config = || settings().consul(agent.address());
    let pilot = Pilot::start(&config().job("gone", service(1)).job("other", service(1000)).job("web", &web));
    let changed = config().job("web", &web).job("other", service(1001)).job("new", service(1000));
    pilot.wait_for_job();
    for name in ["web", "other"] {
        agent.wait_for_status(name, Some("passing"));
    }
    let create_index =
        |name: &str| agent.get(&format!("/v1/catalog/service/{name}"))[0]["CreateIndex"].clone();
    let (web, other) = (create_index("web"), create_index("other"));
    let answer = reload(&pilot, &changed);
    assert!(answer.contains("\"kept\":[\"web\"]"), "{answer}");
    agent.wait_for_status("gone", None);
    agent.wait_for_status("new", Some("passing"));
    agent.wait_for_status("other", Some("passing"));
    assert_eq!(create_index("web"), web, "the unchanged service was registered again");
    assert_ne!(create_index("other"), other, "the changed service was not registered again");
    // The kept job has a new index in the plan; it can still be stopped and is deregistered.
    pilot.post("/v3/jobs/web/stop");
    agent.wait_for_status("web", None);
    assert_eq!(pilot.pids().len(), 1);
}

#[test]
fn r3_kept_watches_continue_when_their_position_in_the_file_changes() {
    let agent = Agent::dev();
    agent.register("db", "db-1", 5432, &[]);
    agent.register("cache", "cache-1", 6379, &[]);
    let on = |name: &str| {
        format!(
            "exec: ['sh', '-c', 'echo x >> @/{name}'], when: {{ source: 'watch.{name}', each: 'changed' }}"
        )
    };
    let web = format!("{WEB}, {}", health("15s"));
    let config = |watches: &str| settings().consul(agent.address()).keys(format!("watches: [{watches}]"));
    let db = "{ name: 'db', interval: 1 }";
    let pilot = Pilot::start(&config(db).job("web", &web).job("on-db", on("db")));
    pilot.wait_for_job();
    wait_until("the watch sees the instance", || pilot.run.size("db") > 0);
    let both = config(&format!("{{ name: 'cache', interval: 1 }}, {db}"));
    reload(&pilot, &both.job("on-cache", on("cache")).job("on-db", on("db")).job("web", &web));
    wait_until("the new watch sees the instance", || pilot.run.size("cache") > 0);
    let before = pilot.run.size("db");
    agent.register("db", "db-2", 5433, &[]);
    wait_until("the kept watch sees the second instance", || pilot.run.size("db") > before);
    pilot.assert_unharmed();
}

#[test]
fn r3_services_move_to_the_new_consul_address() {
    let (first, second) = (Agent::dev(), Agent::dev());
    let pilot = Pilot::start(&config("15s").consul(first.address()));
    pilot.wait_for_job();
    first.wait_for_status("web", Some("passing"));
    let answer = reload(&pilot, &config("15s").consul(second.address()));
    assert!(answer.contains("\"settings\":[\"consul\"]"), "{answer}");
    second.wait_for_status("web", Some("passing"));
    first.wait_for_status("web", None);
    pilot.assert_unharmed();
    second.wait_for_status("web", None);
}
