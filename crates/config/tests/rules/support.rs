//! Helpers that load small configurations.

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::host::{ProgramState, StaticHost};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load};
use containerpilot_core::plan::{Job, Plan};

/// A host with two interfaces, two users, no directory `/missing`, and no program called `missing` or `locked`.
pub(crate) fn host() -> StaticHost {
    let address =
        |interface: &str, ip: &str| HostAddress { interface: interface.into(), ip: ip.parse().unwrap() };
    StaticHost {
        addresses: vec![address("lo", "127.0.0.1"), address("eth0", "10.0.0.7"), address("eth0", "fe80::7")],
        hostname: "box".into(),
        programs: [
            ("missing".to_owned(), ProgramState::Missing),
            ("/bin/missing".to_owned(), ProgramState::Missing),
            ("locked".to_owned(), ProgramState::NotExecutable),
            ("/etc".to_owned(), ProgramState::Directory),
            ("script".to_owned(), ProgramState::NoInterpreter("/bin/missing".to_owned())),
            ("windows".to_owned(), ProgramState::NoInterpreter("/bin/sh\r".to_owned())),
        ]
        .into(),
        not_directories: ["/missing".to_owned()].into(),
        accounts: ["app".to_owned(), "www".to_owned()].into(),
        ..StaticHost::default()
    }
}

/// The same host with environment variables.
pub(crate) fn host_with(variables: &[(&str, &str)]) -> StaticHost {
    let environment =
        variables.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    StaticHost { environment: environment.collect(), ..host() }
}

/// Loads files.
pub(crate) fn load_files(files: &[&str], host: &StaticHost) -> LoadedConfig {
    let inputs = files
        .iter()
        .enumerate()
        .map(|(nth, text)| ConfigFile { name: format!("{nth}.json5"), text: (*text).into() });
    load(inputs.collect(), host, Options { version: "1.2.3" })
}

/// The plan of a configuration without errors.
pub(crate) fn plan(text: &str) -> Plan {
    plan_on(text, &host())
}

/// The plan of a configuration without errors, on a host.
pub(crate) fn plan_on(text: &str, host: &StaticHost) -> Plan {
    let loaded = load_files(&[text], host);
    loaded.plan.unwrap_or_else(|| panic!("{}", shown(&load_files(&[text], host))))
}

/// The job of a configuration without errors; the text is the content of its braces.
pub(crate) fn job(text: &str) -> Job {
    plan(&format!("{{ jobs: [{{ {text} }}] }}")).jobs.remove(0)
}

/// The displayed report.
pub(crate) fn shown(loaded: &LoadedConfig) -> String {
    loaded.report.display(Style { faults_are_errors: true, colour: false }).to_string()
}

/// The messages of one severity.
pub(crate) fn messages(text: &str, severity: Severity) -> Vec<String> {
    let loaded = load_files(&[text], &host());
    let problems = loaded.report.problems().iter().map(|one| &one.problem);
    problems.filter(|problem| problem.severity == severity).map(|problem| problem.message.clone()).collect()
}

/// The errors of a configuration.
pub(crate) fn errors(text: &str) -> Vec<String> {
    messages(text, Severity::Error)
}

/// The faults of a configuration, which must load.
pub(crate) fn faults(text: &str) -> Vec<String> {
    assert!(load_files(&[text], &host()).plan.is_some(), "{:?}", errors(text));
    messages(text, Severity::Fault)
}

/// The errors of a job; the text is the content of its braces.
pub(crate) fn job_errors(text: &str) -> Vec<String> {
    errors(&format!("{{ jobs: [{{ {text} }}] }}"))
}
