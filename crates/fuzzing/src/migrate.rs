//! Fuzz target: any bytes as a ContainerPilot 2 file. The result is a valid version 3 file, or the problems of the old
//! one.

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::migrate::{self, MigrateError};
use containerpilot_config::{ConfigFile, Options, load};

pub(crate) fn run(text: &[u8]) {
    let host = super::decode::host();
    let options = Options { version: "0" };
    let input = ConfigFile { name: "old.json".to_owned(), text: text.to_vec() };
    let program = ["server".to_owned(), "--port=80".to_owned()];
    match migrate::migrate(input, &host, options, text.len().is_multiple_of(2).then_some(&program[..])) {
        Ok(migrated) => {
            let again = ConfigFile { name: "new.json5".to_owned(), text: migrated.text.into_bytes() };
            assert_eq!(load(vec![again], &host, options).report.count(Severity::Error), 0);
        }
        Err(MigrateError::NotLegacy) => {}
        Err(MigrateError::Invalid(report)) => {
            let shown = report.display(Style { faults_are_errors: false, colour: false }).to_string();
            assert!(report.count(Severity::Error) > 0, "{shown}");
            assert!(!shown.contains("this is a defect"), "{shown}");
        }
    }
}
