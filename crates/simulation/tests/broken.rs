//! Broken scenarios and their complete error messages. `BLESS=1` rewrites the messages.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use containerpilot_config::diagnostics::Style;
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::plan::Plan;
use containerpilot_simulation::read::Draft;
use std::collections::BTreeMap;

/// The configuration of all of them.
const CONFIG: &str = r#"{ jobs: [
    { name: "setup", exec: "setup" },
    { name: "web", exec: "web", when: { source: "setup", once: "exitSuccess" }, port: 80,
      health: { name: "alive", exec: "ok", interval: 5, ttl: 15 } },
    { name: "elsewhere", port: 81, health: { exec: "ok", interval: 5, ttl: 15 } },
], watches: [{ name: "db", interval: 5 }] }"#;

fn plan() -> Plan {
    let host = StaticHost {
        addresses: vec![HostAddress { interface: "eth0".into(), ip: "10.0.0.7".parse().unwrap() }],
        hostname: "box".into(),
        ..StaticHost::default()
    };
    let input = ConfigFile { name: "app.json5".into(), text: CONFIG.into() };
    load(vec![input], &host, Options { version: "1" }).plan.unwrap()
}

fn report(name: &str, text: Vec<u8>) -> Option<String> {
    let others: BTreeMap<String, Result<Plan, String>> =
        [("broken.json5".to_owned(), Err("the configuration has errors".to_owned()))].into();
    let draft = Draft::read(ConfigFile { name: name.to_owned(), text });
    let report = draft.scenario(&plan(), &others).err()?;
    Some(report.display(Style { faults_are_errors: true, colour: false }).to_string())
}

#[test]
fn c5_every_broken_scenario_gets_its_complete_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut tried = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json5") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = report(name, fs::read(&path).unwrap()).unwrap_or_else(|| panic!("{name} is not broken"));
        let kept = path.with_extension("txt");
        if bless {
            fs::write(&kept, &found).unwrap();
        }
        assert_eq!(fs::read_to_string(&kept).unwrap_or_default(), found, "{name}");
        tried += 1;
    }
    assert!(tried > 4);
}

#[test]
fn c5_no_text_makes_the_parser_panic() {
    for text in ["", "null", "[]", "1", "{", "{ jobs: null, expect: [null] }", "{ jobs: [[]] }", "\u{0}"] {
        // It is valid, or it gets a message; it never panics.
        let _ = report("strange.json5", text.as_bytes().to_vec());
    }
    assert!(
        report("large.json5", vec![b' '; 9 << 20]).is_some_and(|report| report.contains("larger than 8 MiB"))
    );
    assert_eq!(report("empty.json5", b"{}".to_vec()), None);
}
