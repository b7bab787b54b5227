//! The pages of the manual that the program writes itself. `BLESS=1` writes them anew.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::path::Path;
use std::process::Command;

fn printed(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_containerpilot")).arg(command).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "docs/{name} is out of date: write it with `make docs`, and look at the difference"
    );
}

#[test]
fn the_reference_is_what_the_table_of_fields_says() {
    compare("reference.md", &containerpilot_config::reference::markdown());
}

#[test]
fn the_reference_of_scenarios_is_what_their_table_says() {
    compare("scenario.md", &containerpilot_simulation::reference::markdown());
}

#[test]
fn the_manual_page_is_what_the_program_prints() {
    compare("containerpilot.1", &printed("man"));
}

#[test]
fn the_schema_is_what_the_program_prints() {
    compare("schema.json", &printed("schema"));
}
