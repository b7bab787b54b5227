//! Fuzz target: any bytes as a configuration in one or two files. No panic, no hang; a plan or an error.

use std::net::IpAddr;

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, Options, load};

/// A typical host.
pub(crate) fn host() -> StaticHost {
    let address = |interface: &str, ip: IpAddr| HostAddress { interface: interface.into(), ip };
    StaticHost {
        environment: [(b"A".to_vec(), b"one,two".to_vec())].into(),
        addresses: vec![
            address("lo", [127, 0, 0, 1].into()),
            address("eth0", [10, 0, 0, 1].into()),
            address("eth0", [0xfe80, 0, 0, 0, 0, 0, 0, 1].into()),
        ],
        hostname: "host".into(),
        ..StaticHost::default()
    }
}

pub(crate) fn run(text: &[u8]) {
    let host = host();
    // A NUL separates two files, to test merging.
    let inputs = text.splitn(2, |byte| *byte == 0).enumerate();
    let inputs =
        inputs.map(|(nth, part)| ConfigFile { name: format!("{nth}.json5"), text: part.to_vec() }).collect();
    let loaded = load(inputs, &host, Options { version: "0" });
    let errors = loaded.report.count(Severity::Error);
    assert_eq!(loaded.plan.is_none(), errors > 0, "there is a plan exactly if there is no error");
    let shown = loaded.report.display(Style { faults_are_errors: true, colour: false }).to_string();
    assert_eq!(shown.is_empty(), loaded.report.problems().is_empty());
    for located in loaded.report.problems() {
        if let Some(at) = &located.location {
            assert!(at.line >= 1 && at.column >= 1);
        }
        // An unexplained problem has no location and requests a bug report.
        let unexplained = located.location.is_none()
            && located.problem.help.as_ref().is_some_and(|help| help.contains("defect"));
        assert!(!unexplained, "{shown}");
    }
}
