//! Paths on file systems that do not answer (P15).

use containerpilot_config::diagnostics::Severity;
use containerpilot_config::host::StaticHost;
use containerpilot_core::plan::Catalog;

use super::support::{host, load_files, shown};

/// A host on which nothing below `/dead` answers.
fn dead(paths: &[&str]) -> StaticHost {
    StaticHost { unanswered: paths.iter().map(|path| format!("/dead/{path}")).collect(), ..host() }
}

#[test]
fn p15_directory_and_programs_without_an_answer_are_warnings_at_their_places() {
    let text = "{\n  jobs: [\n    { name: 'a', exec: '/dead/a', cwd: '/dead/cwd' },\n    \
                { name: 'b', exec: 'x', health: { exec: '/dead/check', interval: 1, ttl: 5 } },\n  ]\n}";
    let loaded = load_files(&[text], &dead(&["a", "cwd", "check"]));
    assert_eq!(loaded.plan.as_ref().unwrap().jobs.len(), 2);
    assert_eq!(loaded.report.count(Severity::Warning), 3);
    let shown = shown(&loaded);
    for (message, place, help) in [
        ("program `/dead/a` could not be examined within 1s", "0.json5:3:24", "the job will fail"),
        ("directory `/dead/cwd` could not be examined within 1s", "0.json5:3:40", "the job will fail"),
        ("program `/dead/check` could not be examined within 1s", "0.json5:4:45", "the check will fail"),
    ] {
        assert!(
            shown.contains(message) && shown.contains(place) && shown.contains(help),
            "{message}\n{shown}"
        );
    }
    assert!(shown.contains("check its file system"), "{shown}");
}

#[test]
fn p15_paths_that_answer_are_reported_beside_one_that_does_not() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', cwd: '/dead/cwd' }, { name: 'b', exec: 'missing' }] }";
    let loaded = load_files(&[text], &dead(&["cwd"]));
    let shown = shown(&loaded);
    assert!(shown.contains("program `missing` not found in PATH"), "{shown}");
    assert!(shown.contains("directory `/dead/cwd` could not be examined"), "{shown}");
}

#[test]
fn p15_certificates_without_an_answer_are_warnings_and_stay_in_the_plan() {
    let text = "{ consul: { address: 'localhost', scheme: 'https', tls: { cafile: '/dead/ca' } }, \
                  jobs: [{ name: 'web', exec: 'x', health: \
                    { http: { url: 'https://localhost/', cafile: '/dead/own' }, interval: 1, ttl: 5 } }] }";
    let loaded = load_files(&[text], &dead(&["ca", "own"]));
    let shown = shown(&loaded);
    assert_eq!(loaded.report.count(Severity::Warning), 2, "{shown}");
    assert!(shown.contains("`/dead/ca` could not be examined within 1s"), "{shown}");
    assert!(shown.contains("`/dead/own` could not be examined within 1s"), "{shown}");
    let plan = loaded.plan.unwrap_or_else(|| panic!("{shown}"));
    let Catalog::Consul(consul) = plan.catalog else { panic!("no Consul") };
    assert_eq!(consul.tls.ca_file.as_deref(), Some("/dead/ca"));
    // One that answers must be readable, as ever.
    let loaded = load_files(&[text], &dead(&["ca"]));
    assert!(loaded.plan.is_none());
    assert_eq!(loaded.report.count(Severity::Error), 1);
}

#[test]
fn p15_template_without_an_answer_is_a_warning_and_only_its_file_cannot_be_rendered() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', requires: ['file.late'] }], files: [\n\
                { name: 'late', from: '/dead/template', to: '/etc/late' },\n\
                { name: 'good', from: '/good', to: '/etc/good' }] }";
    let contents = [("/good".to_owned(), b"x".to_vec())].into();
    let loaded = load_files(&[text], &StaticHost { contents, ..dead(&["template"]) });
    let shown = shown(&loaded);
    assert!(shown.contains("`/dead/template` could not be read within 1s"), "{shown}");
    assert!(shown.contains("0.json5:2:23"), "{shown}");
    let plan = loaded.plan.unwrap_or_else(|| panic!("{shown}"));
    let templates: Vec<_> = plan.files.iter().map(|file| file.template.as_deref()).collect();
    assert_eq!(templates, [None, Some(&b"x"[..])]);
}
