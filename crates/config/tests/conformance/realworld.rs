//! Configuration files of public repositories, with 3.8's verdict on each.

use std::path::PathBuf;

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::migrate::migrate;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load, load_with_program};
use serde_json::Value;

use super::harness::{environment, say, text};

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/realworld");
    std::env::var_os("REALWORLD_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

/// A host as the index describes it: `lo` and `eth0`, both with IPv4 and IPv6.
fn host(case: &Value) -> StaticHost {
    let address =
        |interface: &str, ip: &str| HostAddress { interface: interface.into(), ip: ip.parse().unwrap() };
    StaticHost {
        environment: environment(case),
        addresses: vec![
            address("lo", "127.0.0.1"),
            address("lo", "::1"),
            address("eth0", "10.1.0.5"),
            address("eth0", "fe80::5"),
        ],
        hostname: "host".into(),
        ..StaticHost::default()
    }
}

fn loaded(case: &Value) -> LoadedConfig {
    let name = text(case, "file").to_owned();
    let path = folder().join(&name);
    let source = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    load(vec![ConfigFile { name, text: source }], &host(case), Options { version: "test" })
}

fn index() -> Value {
    let path = folder().join("index.json");
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn c3_every_public_file_gets_the_verdict_of_3_8() {
    let (mut passed, mut failed) = (0, 0);
    let style = Style { faults_are_errors: true, colour: false };
    for case in index()["v3"].as_array().into_iter().flatten() {
        let LoadedConfig { plan, report } = loaded(case);
        let errors_have_places = report
            .problems()
            .iter()
            .filter(|one| one.problem.severity == Severity::Error)
            .all(|one| one.location.is_some());
        if plan.is_some() == (case["loads"] == Value::Bool(true)) && errors_have_places {
            passed += 1;
        } else {
            failed += 1;
            println!(
                "    FAILED {}: loads {}\n{}",
                text(case, "file"),
                plan.is_some(),
                report.display(style)
            );
        }
        let faults = report.problems().iter().filter(|one| one.problem.severity == Severity::Fault);
        // Files that run in production: `check` rejects none of them without --strict (C7).
        for fault in faults {
            failed += 1;
            println!("    {}: never works: {}", text(case, "file"), fault.problem.message);
        }
    }
    say(&format!("realworld: {passed} passed, {failed} failed"));
    assert_eq!(failed, 0);
}

/// What an image's start script does with a file that is a template for `sed` and not for containerpilot.
fn after_sed(source: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(source).unwrap();
    let words = [("[consul]", "consul:8500"), ("[loglevel]", "info"), ("[poll]", "5"), ("[ttl]", "20")];
    words.iter().fold(text, |text, (word, value)| text.replace(word, value)).into_bytes()
}

#[test]
fn c8_every_public_version_2_file_loads_and_migrates() {
    let variables =
        ["CONSUL_AGENT", "ACME_DOMAIN", "CONSUL", "LOG_LEVEL", "BACKEND", "ES_SERVICE_NAME", "CONSUL_URL"];
    let program = ["/bin/app".to_owned(), "--port".to_owned(), "{{ .CONSUL }}".to_owned()];
    let options = Options { version: "test" };
    let mut files = 0;
    for case in index()["v2"].as_array().into_iter().flatten() {
        let name = text(case, "file").to_owned();
        let source = after_sed(std::fs::read(folder().join(&name)).unwrap());
        // With the variables that switch parts on, and without them.
        for switched in [true, false] {
            let mut host = host(case);
            for name in variables.iter().skip(if switched { 0 } else { 2 }) {
                let value = if *name == "LOG_LEVEL" { "DEBUG" } else { "my-svc" };
                host.environment.insert(name.as_bytes().to_vec(), value.as_bytes().to_vec());
            }
            let input = ConfigFile { name: name.clone(), text: source.clone() };
            let LoadedConfig { plan, report } =
                load_with_program(vec![input.clone()], &host, options, Some(&program));
            let style = Style { faults_are_errors: false, colour: false };
            assert!(plan.is_some(), "{name}\n{}", report.display(style));
            assert_eq!(report.count(Severity::Fault), 0, "{name}\n{}", report.display(style));
            // It prints only what it has found to mean the same.
            for program in [Some(program.as_slice()), None] {
                let migrated = migrate(input.clone(), &host, options, program);
                assert!(migrated.is_ok(), "{name}: {migrated:?}");
            }
        }
        files += 1;
    }
    assert!(files >= 17);
    say(&format!("realworld, version 2: {files} files load and migrate"));
}
