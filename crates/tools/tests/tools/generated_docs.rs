//! The generated pages of the manual are up to date. `BLESS=1` rewrites them.

use std::process::Command;

use containerpilot_manual::contents::{Contents, Page};
use containerpilot_manual::llms;

use crate::support::deadline::InTime;
use crate::support::program::repository;
use crate::tools;

fn output_of(command: &str) -> String {
    let output = Command::new(tools()).arg(command).output_in_time().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn compare(name: &str, generated: &str) {
    let path = repository().join("docs").join(name);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == generated, "docs/{name} is out of date: run `make docs` and review the difference");
}

#[test]
fn reference_page_matches_the_table_of_fields() {
    compare("reference.md", &containerpilot_config::reference::markdown());
}

#[test]
fn scenario_page_matches_its_table_of_fields() {
    compare("scenario.md", &containerpilot_simulation::reference::markdown());
}

#[test]
fn llms_txt_matches_the_table_of_contents() {
    let text = std::fs::read_to_string(repository().join("docs/README.md")).unwrap();
    let target = |page: &Page| match page.path.strip_prefix("docs/") {
        Some(path) => path.to_owned(),
        None => format!("../{}", page.path),
    };
    compare("llms.txt", &llms::txt(&Contents::parse(&text), target));
}

#[test]
fn man_page_matches_the_output_of_man() {
    compare("containerpilot.1", &output_of("man"));
}

#[test]
fn schema_file_matches_the_output_of_schema() {
    compare("schema.json", &output_of("schema"));
}
