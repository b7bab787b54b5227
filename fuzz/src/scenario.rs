//! Any bytes as a scenario for a configuration: a rehearsal that ends, or what is wrong with the file.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_config::diagnose::{Severity, Style};
use containerpilot_config::{Input, Options, load};
use containerpilot_rehearsal::read::Draft;
use containerpilot_rehearsal::{expect, player};

const CONFIG: &str = "{ consul: 'localhost:8500', watches: [{ name: 'db', interval: 5 }], jobs: [
    { name: 'setup', exec: 'setup' },
    { name: 'app', exec: 'app', port: 80, restarts: 'unlimited', when: { source: 'setup', once: 'exitSuccess' },
      health: { exec: 'check', interval: 1, ttl: 5 } },
    { name: 'tick', exec: 'tick', when: { interval: '10s' } },
    { name: 'late', exec: 'late', when: { source: 'watch.db', each: 'changed' } },
    { name: 'bye', exec: 'bye', when: { source: 'app', once: 'stopping' } } ] }";

/// Whatever the bytes are.
pub(crate) fn run(text: &[u8]) {
    let input = Input { name: "config.json5".to_owned(), text: CONFIG.into() };
    let Some(plan) = load(vec![input], &super::decode::host(), Options { version: "0" }).plan else {
        panic!("the configuration is good");
    };
    let draft = Draft::read(Input { name: "scenario.json5".to_owned(), text: text.to_vec() });
    let others: BTreeMap<_, _> = draft
        .reloads()
        .into_iter()
        .enumerate()
        .map(|(nth, path)| (path, if nth == 0 { Ok(plan.clone()) } else { Err("it has errors".to_owned()) }))
        .collect();
    match draft.scenario(&plan, &others) {
        Ok(mut scenario) => {
            // What it says is one thing; a fuzzer has no time for a thousand years.
            scenario.until = Some(scenario.until.unwrap_or(Duration::MAX).min(Duration::from_secs(60)));
            let course = player::play(&plan, &scenario);
            assert_eq!(expect::judge(&scenario, &course).len(), scenario.expectations.len());
        }
        Err(report) => {
            assert!(report.count(Severity::Error) > 0);
            assert!(!report.display(Style { faults_are_errors: true, colour: false }).to_string().is_empty());
        }
    }
}
