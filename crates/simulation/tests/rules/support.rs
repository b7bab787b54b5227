//! Small configurations and scenarios, and their results.

use containerpilot_config::diagnostics::Style;
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::Time;
use containerpilot_core::plan::Plan;
use containerpilot_simulation::expect::{Verdict, judge};
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::runner::simulate;
use containerpilot_simulation::scenario::Scenario;
use containerpilot_simulation::timeline::SimulationRun;
use std::collections::BTreeMap;

/// A service, a task before it, a job that waits for its health, and a stop hook.
pub(crate) const WEB: &str = r#"{ jobs: [
    { name: "setup", exec: "setup" },
    { name: "web", exec: "web", when: { source: "setup", once: "exitSuccess" }, restarts: "unlimited",
      health: { name: "alive", exec: "ok", interval: 5, ttl: 15 } },
    { name: "greet", exec: "greet", when: { source: "web", once: "healthy" } },
    { name: "bye", exec: "bye", when: { source: "web", once: "stopping" } },
] }"#;

/// The same service in Consul, and a job that watches it.
pub(crate) const CONSUL: &str = r#"{ consul: "localhost:8500", jobs: [
    { name: "web", exec: "web", port: 80, health: { exec: "ok", interval: 5, ttl: 15 } },
    { name: "seen", exec: "seen", when: { source: "watch.web", each: "changed" } },
], watches: [{ name: "web", interval: 5 }, { name: "db", interval: 5 }] }"#;

pub(crate) fn plan(text: &str) -> Plan {
    let host = StaticHost {
        addresses: vec![HostAddress { interface: "eth0".into(), ip: "10.0.0.7".parse().unwrap() }],
        hostname: "box".into(),
        ..StaticHost::default()
    };
    let input = ConfigFile { name: "app.json5".into(), text: text.into() };
    let loaded = load(vec![input], &host, Options { version: "1" });
    loaded.plan.unwrap_or_else(|| {
        panic!("{}", loaded.report.display(Style { faults_are_errors: true, colour: false }))
    })
}

pub(crate) fn scenario(config: &str, text: &str) -> Scenario {
    reloading(config, text, &[]).unwrap_or_else(|report| panic!("{report}"))
}

/// A scenario that may reload other configurations, or all its errors.
pub(crate) fn reloading(config: &str, text: &str, others: &[(&str, &str)]) -> Result<Scenario, String> {
    let others: BTreeMap<String, Result<Plan, String>> =
        others.iter().map(|(path, text)| ((*path).to_owned(), Ok(plan(text)))).collect();
    let draft = Draft::read(ConfigFile { name: "scenario.json5".into(), text: text.into() });
    draft
        .scenario(&plan(config), &others)
        .map_err(|report| report.display(Style { faults_are_errors: true, colour: false }).to_string())
}

pub(crate) fn run(config: &str, text: &str) -> SimulationRun {
    simulate(&plan(config), &scenario(config, text))
}

/// When entries of a name happened, in milliseconds.
pub(crate) fn times(run: &SimulationRun, name: &str) -> Vec<u64> {
    run.entries.iter().filter(|entry| entry.name() == name).map(|entry| millis(entry.at)).collect()
}

pub(crate) fn millis(at: Time) -> u64 {
    at.as_nanos() / 1_000_000
}

/// Checks the expectations of a scenario.
pub(crate) fn verdicts(config: &str, text: &str) -> Vec<Verdict> {
    let scenario = scenario(config, text);
    judge(&scenario, &simulate(&plan(config), &scenario))
}

/// Checks one expectation: whether it holds, and what happened.
pub(crate) fn verdict(config: &str, world: &str, expectation: &str) -> (bool, String) {
    let mut all = verdicts(config, &format!("{{ {world} expect: [{expectation}] }}"));
    assert_eq!(all.len(), 1);
    let verdict = all.remove(0);
    (verdict.holds, verdict.happened)
}
