//! Fuzz target: any bytes as a scenario. No panic, no hang; a valid scenario is simulated for a while and its
//! expectations are checked.

use std::time::Duration;

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::plan::Plan;
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::{expect, runner};
use std::collections::BTreeMap;

/// A configuration with one job of every kind.
const CONFIG: &str = r#"{ consul: "localhost:8500", jobs: [
    { name: "setup", exec: "setup" },
    { name: "web", exec: "web", when: { source: "setup", once: "exitSuccess", timeout: "30s" }, restarts: 3, port: 80,
      interfaces: ["static:10.0.0.1"], health: { name: "alive", exec: "ok", interval: 5, ttl: 15 } },
    { name: "seen", exec: "seen", when: { source: "watch.web", each: "changed" } },
    { name: "cron", exec: "cron", when: { interval: "5s" } },
    { name: "bye", exec: "bye", when: { source: "web", once: "stopping" } },
], watches: [{ name: "web", interval: 5 }, { name: "db", interval: 5 }] }"#;

pub(crate) fn run(text: &[u8]) {
    let plan = |text: &[u8]| {
        let input = ConfigFile { name: "app.json5".into(), text: text.to_vec() };
        load(vec![input], &super::decode::host(), Options { version: "0" }).plan
    };
    let Some(plan) = plan(CONFIG.as_bytes()) else { panic!("the configuration is wrong") };
    let draft = Draft::read(ConfigFile { name: "scenario.json5".into(), text: text.to_vec() });
    let others: BTreeMap<String, Result<Plan, String>> =
        draft.reloads().into_iter().map(|path| (path, Ok(plan.clone()))).collect();
    match draft.scenario(&plan, &others) {
        Ok(mut scenario) => {
            scenario.until = Some(scenario.end().min(Duration::from_secs(60)));
            let run = runner::simulate(&plan, &scenario);
            assert!(run.exit.is_some() || run.abort.is_some(), "the simulation ends");
            assert_eq!(expect::judge(&scenario, &run).len(), scenario.expectations.len());
        }
        Err(report) => {
            assert!(report.count(Severity::Error) > 0);
            let shown = report.display(Style { faults_are_errors: true, colour: false }).to_string();
            assert!(!shown.is_empty());
        }
    }
}
