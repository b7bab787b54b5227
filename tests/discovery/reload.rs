//! Reload with Consul: unchanged services stay registered (R3).

use super::pilot::{Pilot, WEB, health};
use crate::support::consul::Agent;
use crate::support::supervisor::wait_until;

fn reload(pilot: &Pilot, config: &str) -> String {
    pilot.run.rewrite(config);
    let answer = pilot.post("/v3/reload");
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn config(agent: &Agent, jobs: &str, more: &str) -> String {
    let web = format!("{{ {WEB}, {} }}", health("15s"));
    let jobs = jobs.replace("WEB", &web);
    format!(
        "{{ consul: '{}', stopTimeout: 20, control: {{ socket: '@/control' }}, jobs: [{jobs}], {more} }}",
        agent.address()
    )
}

fn service(name: &str, argument: u32) -> String {
    format!(
        "{{ name: '{name}', port: 81, interfaces: 'static:10.1.2.4', exec: 'sleep {argument}',
            health: {{ exec: 'true', interval: '250ms', timeout: '20s', ttl: '15s' }} }}"
    )
}

#[test]
fn r3_unchanged_service_stays_registered_without_a_gap() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config(
        &agent,
        &format!("{}, {}, WEB", service("gone", 1), service("other", 1000)),
        "",
    ));
    pilot.wait_for_job();
    for name in ["web", "other"] {
        agent.wait_for_status(name, Some("passing"));
    }
    let create_index =
        |name: &str| agent.get(&format!("/v1/catalog/service/{name}"))[0]["CreateIndex"].clone();
    let (web, other) = (create_index("web"), create_index("other"));
    let jobs = format!("WEB, {}, {}", service("other", 1001), service("new", 1000));
    let answer = reload(&pilot, &config(&agent, &jobs, ""));
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
            "{{ name: 'on-{name}', exec: ['sh', '-c', 'echo x >> @/{name}'], when: {{ source: 'watch.{name}', each: 'changed' }} }}"
        )
    };
    let watch = |name: &str| format!("{{ name: '{name}', interval: 1 }}");
    let pilot =
        Pilot::start(&config(&agent, &format!("WEB, {}", on("db")), &format!("watches: [{}]", watch("db"))));
    pilot.wait_for_job();
    wait_until("the watch sees the instance", || pilot.run.size("db") > 0);
    let both = format!("watches: [{}, {}]", watch("cache"), watch("db"));
    reload(&pilot, &config(&agent, &format!("{}, {}, WEB", on("cache"), on("db")), &both));
    wait_until("the new watch sees the instance", || pilot.run.size("cache") > 0);
    let before = pilot.run.size("db");
    agent.register("db", "db-2", 5433, &[]);
    wait_until("the kept watch sees the second instance", || pilot.run.size("db") > before);
    pilot.assert_unharmed();
}

#[test]
fn r3_services_move_to_the_new_consul_address() {
    let (first, second) = (Agent::dev(), Agent::dev());
    let pilot = Pilot::start(&config(&first, "WEB", ""));
    pilot.wait_for_job();
    first.wait_for_status("web", Some("passing"));
    let answer = reload(&pilot, &config(&second, "WEB", ""));
    assert!(answer.contains("\"settings\":[\"consul\"]"), "{answer}");
    second.wait_for_status("web", Some("passing"));
    first.wait_for_status("web", None);
    pilot.assert_unharmed();
    second.wait_for_status("web", None);
}
