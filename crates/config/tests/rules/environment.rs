//! Environment variables, secrets and privileges of processes (P10, P11, P13).

use std::collections::BTreeMap;

use containerpilot_config::diagnostics::Severity;
use containerpilot_config::host::StaticHost;
use containerpilot_core::plan::Capabilities;

use super::support::*;

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn files() -> StaticHost {
    let contents = [
        ("/top.env", "A=file\nB=file\n"),
        ("/job.env", "B=job file\nC=job file"),
        ("/bad.env", "A=1\nhunter2"),
    ];
    let contents = contents.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    StaticHost { contents: contents.into(), ..host() }
}

fn errors_on(text: &str, host: &StaticHost) -> Vec<String> {
    let loaded = load_files(&[text], host);
    assert!(loaded.plan.is_none(), "{text}");
    let problems = loaded.report.problems().iter().map(|one| &one.problem);
    problems.filter(|one| one.severity == Severity::Error).map(|one| one.message.clone()).collect()
}

#[test]
fn p10_env_wins_over_env_file_and_a_job_over_the_top_level() {
    let plan = plan_on(
        "{ envFile: '/top.env', env: { A: 'top' }, coprocesses: [{ command: 'c' }], jobs: [
            { exec: 'a', envFile: ['/job.env', { path: '/missing.env', optional: true }], env: { C: 1 } },
            { exec: 'b' } ],
          telemetry: { metrics: [{ name: 'm', type: 'gauge', exec: 's', interval: 1 }], port: 0 } }",
        &files(),
    );
    let shared = variables(&[("A", "top"), ("B", "file")]);
    for job in plan.jobs.iter().filter(|job| job.exec.is_some()) {
        assert_eq!(*job.process.shared_env, shared, "{}", job.name);
    }
    assert_eq!(plan.jobs.iter().filter(|job| job.exec.is_some()).count(), 4);
    assert_eq!(*plan.process.shared_env, shared);
    assert_eq!(plan.jobs[1].process.env, variables(&[("B", "job file"), ("C", "1")]));
    assert_eq!(plan.jobs[2].process.env, variables(&[]));
}

#[test]
fn p10_problems_of_a_file_have_its_path_and_line_and_no_content() {
    let job = |key: &str| format!("{{ jobs: [{{ exec: 'a', {key} }}] }}");
    assert_eq!(errors_on(&job("envFile: '/bad.env'"), &files()), ["/bad.env:2: expected NAME=value"]);
    assert_eq!(
        errors_on(&job("envFile: { path: '/none', optional: false }"), &files()),
        ["cannot read `/none`: no such file or directory"]
    );
    assert_eq!(errors_on(&job("envFile: { optional: true }"), &files()), ["`envFile` needs `path`"]);
    assert_eq!(
        errors_on(&job("envFile: ['/top.env', 7]"), &files()),
        ["`envFile` must be a path or an object, not the number 7"]
    );
}

#[test]
fn p10_changed_file_is_a_changed_job() {
    let text = "{ envFile: '/top.env', jobs: [{ exec: 'a', envFile: '/job.env' }] }";
    let plan = plan_on(text, &files());
    for path in ["/top.env", "/job.env"] {
        let mut changed = files();
        changed.contents.insert(path.to_owned(), b"B=other".to_vec());
        assert_ne!(plan_on(text, &changed).jobs, plan.jobs);
    }
    assert_eq!(plan_on(text, &files()), plan);
}

#[test]
fn p10_later_file_replaces_the_top_level_variables() {
    let loaded = load_files(&["{ env: { A: 1 }, jobs: [{ exec: 'a' }] }", "{ env: { B: 2 } }"], &host());
    assert_eq!(*loaded.plan.unwrap().process.shared_env, variables(&[("B", "2")]));
}

#[test]
fn p11_secrets_of_a_job_and_of_the_top_level() {
    let plan = plan(
        "{ secrets: { A: { file: '/a' }, B: { file: '/b' }, C: { file: '/c' } },
           jobs: [{ exec: 'a', env: { A: 'plain' }, secrets: { B: { file: '/own' } } }, { exec: 'b' }] }",
    );
    assert_eq!(plan.jobs[0].process.secrets, variables(&[("B", "/own"), ("C", "/c")]));
    assert_eq!(plan.jobs[1].process.secrets, variables(&[("A", "/a"), ("B", "/b"), ("C", "/c")]));
}

#[test]
fn p11_wrong_secrets_are_refused_and_not_shown() {
    let text = |secrets: &str| job_errors(&format!("exec: 'a', env: {{ A: 1 }}, secrets: {secrets}"));
    assert_eq!(text("{ A: { file: '/a' } }"), ["`A` is in both `env` and `secrets`"]);
    assert_eq!(text("{ B: 'hunter2' }"), ["a secret in `secrets` must be an object, not a string"]);
    assert_eq!(text("{ B: {} }"), ["a secret needs `file`"]);
    assert_eq!(text("{ 'B C': { file: '/a' } }").len(), 1);
    assert_eq!(text("{ B: { path: '/a' } }").len(), 2, "an unknown key, and none of the required one");
    let shown = shown(&load_files(&["{ jobs: [{ exec: 'a', secrets: { B: 'hunter2' } }] }"], &host()));
    assert!(shown.contains("for example: secrets"), "{shown}");
}

#[test]
fn p13_nice_oom_score_and_capabilities() {
    let process =
        job("exec: 'a', nice: -5, oomScoreAdj: 500, capabilities: ['net_bind_service', 'CAP_CHOWN']").process;
    assert_eq!((process.nice, process.oom_score_adj), (Some(-5), Some(500)));
    assert_eq!(process.capabilities, Some(Capabilities(1 << 10 | 1)));
    assert_eq!(job("exec: 'a', capabilities: []").process.capabilities, Some(Capabilities(0)));
    assert_eq!(job("exec: 'a'").process.capabilities, None);
    for bad in ["nice: 20", "nice: -21", "oomScoreAdj: 1001", "oomScoreAdj: -1001", "capabilities: 'CHOWN'"] {
        assert_eq!(job_errors(&format!("exec: 'a', {bad}")).len(), 1, "{bad}");
    }
    let loaded = load_files(&["{ jobs: [{ exec: 'a', capabilities: ['NET_BIND_SERVICES'] }] }"], &host());
    let shown = shown(&loaded);
    assert!(shown.contains("unknown capability `NET_BIND_SERVICES` in `capabilities`"), "{shown}");
    assert!(shown.contains("did you mean \"NET_BIND_SERVICE\"?"), "{shown}");
}

fn warnings(job: &str) -> Vec<String> {
    messages(&format!("{{ jobs: [{{ {job} }}] }}"), Severity::Warning)
}

#[test]
fn p11_raw_output_of_a_job_with_secrets_is_a_warning() {
    let raw = "`raw` output is not redacted: secrets that the process prints are shown";
    // X16
    let missing = "cannot read the secret `/a`: no such file or directory";
    let secrets = "secrets: { A: { file: '/a' } }";
    assert_eq!(warnings(&format!("exec: 'a', {secrets}, logging: {{ raw: true }}")), [missing, raw]);
    let check = "health: { exec: 'b', interval: 1, ttl: 5, logging: { raw: true } }";
    assert_eq!(warnings(&format!("exec: 'a', {secrets}, {check}")), [missing, raw]);
    assert!(warnings("exec: 'a', logging: { raw: true }").is_empty());
}

#[test]
fn p11_argument_that_looks_like_a_secret_is_a_warning_without_it() {
    let warning = "an argument looks like a secret: every process can read it";
    for exec in
        ["'a --password=hunter2'", "['a', '--db-token', 'hunter2']", "['sh', '-c', 'PASSWORD=hunter2 a']"]
    {
        assert_eq!(warnings(&format!("exec: {exec}")), [warning], "{exec}");
        let shown = shown(&load_files(&[&format!("{{ jobs: [{{ exec: {exec} }}] }}")], &host()));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for exec in
        ["'a --password-file=/run/x'", "'a --token /run/x'", "['a', '--secret-name', 'x']", "'a -v token'"]
    {
        assert!(warnings(&format!("exec: {exec}")).is_empty(), "{exec}");
    }
}

#[test]
fn p13_setting_that_the_supervisor_has_no_privilege_for_is_a_warning() {
    let text = "{ jobs: [{ exec: 'a', nice: -1, oomScoreAdj: -1, capabilities: ['CHOWN'] }, { exec: 'b', nice: 1, oomScoreAdj: 1 }] }";
    let warnings = |unprivileged: bool| -> Vec<String> {
        let loaded = load_files(&[text], &StaticHost { unprivileged, ..host() });
        assert!(loaded.plan.is_some());
        loaded.report.problems().iter().map(|one| one.problem.message.clone()).collect()
    };
    assert!(warnings(false).is_empty());
    assert_eq!(
        warnings(true),
        [
            "the supervisor cannot set a negative `nice`: SYS_NICE is missing",
            "the supervisor cannot set a negative `oomScoreAdj`: SYS_RESOURCE is missing",
            "the supervisor cannot drop capabilities: SETPCAP is missing",
            "the supervisor cannot keep a capability that it does not have: CHOWN is missing",
        ]
    );
}
