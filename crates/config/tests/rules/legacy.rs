//! C8: ContainerPilot 2 files and their migration.

use std::time::Duration;

use containerpilot_config::diagnostics::{Severity, Style};
use containerpilot_config::file_version::Version;
use containerpilot_config::host::StaticHost;
use containerpilot_config::migrate::{MigrateError, migrate};
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load_with_program, version};
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, Command, EventPattern, Exec, FirstTick, Job, MetricKind, OnCompletion, Output, Plan, Probe,
    Repeat, Restarts, Role, Signal, Trigger, WatchKind,
};

use super::support::{errors, faults, host, host_with, load_files, messages, plan, shown};

pub(crate) const OPTIONS: Options<'static> = Options { version: "1.2.3" };

fn words(program: &[&str]) -> Vec<String> {
    program.iter().map(|word| (*word).to_owned()).collect()
}

fn input(text: &str) -> ConfigFile {
    ConfigFile { name: "old.json".into(), text: text.into() }
}

fn loaded(text: &str, program: &[&str], host: &StaticHost) -> LoadedConfig {
    let words = words(program);
    let program = (!words.is_empty()).then_some(words.as_slice());
    load_with_program(vec![input(text)], host, OPTIONS, program)
}

/// The plan of a version 2 file with the main program `nginx`.
fn old(text: &str) -> Plan {
    let loaded = loaded(text, &["nginx", "-g", "daemon off;"], &host());
    let report = shown(&loaded);
    let plan = loaded.plan.unwrap_or_else(|| panic!("{report}"));
    assert!(plan.legacy_maintenance, "a version 2 file");
    plan
}

fn named(plan: &Plan, name: &str) -> Job {
    let found = plan.jobs.iter().find(|job| job.name == name);
    found.cloned().unwrap_or_else(|| panic!("no job `{name}` in {:?}", plan.jobs))
}

fn once(source: &str, code: Code) -> Trigger {
    let event = EventPattern { source: Source::Job(source.into()), code };
    Trigger::Event { event, repeat: Repeat::Once }
}

fn after_startup(every: Duration) -> Trigger {
    let event = EventPattern { source: Source::Global, code: Code::Startup };
    Trigger::Interval { every, first: FirstTick::IntervalAfter(event) }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    Command { program: program.into(), arguments: arguments.iter().map(|word| (*word).into()).collect() }
}

#[test]
fn c8_the_keys_determine_the_version() {
    for (text, expected) in [
        ("{ services: [] }", Version::Two),
        ("{ backends: [] }", Version::Two),
        ("{ tasks: [] }", Version::Two),
        ("{ consul: 'a', preStart: 'x' }", Version::Two),
        ("{ onStart: 'x' }", Version::Two),
        ("{ preStop: 'x' }", Version::Two),
        ("{ postStop: 'x' }", Version::Two),
        ("{ etcd: {} }", Version::Two),
        ("{ telemetry: { sensors: [] } }", Version::Two),
        ("{ telemetry: { metrics: [] } }", Version::Three),
        ("{ consul: 'a', coprocesses: [], logging: {}, stopTimeout: 5 }", Version::Three),
        ("{ jobs: [], telemetry: { sensors: [] } }", Version::Three),
        ("{ Services: [] }", Version::Three),
        ("{ sevices: [] }", Version::Three),
        ("{ jobs: [], tasks: [] }", Version::Three),
        ("{ {{ if .X }}services: []{{ end }} }", Version::Three),
        ("not json5 at all", Version::Three),
        ("{{ broken", Version::Three),
    ] {
        assert_eq!(version(&[input(text)], &host().environment), expected, "{text}");
    }
}

#[test]
fn c8_a_misspelled_key_does_not_make_a_version_2_file() {
    let loaded = load_files(&["{ servces: [] }"], &host());
    let said = shown(&loaded);
    assert!(said.contains("did you mean `services`, of ContainerPilot 2?"), "{said}");
    let loaded = load_files(&["{ job: [] }"], &host());
    assert!(shown(&loaded).contains("did you mean `jobs`?"), "{}", shown(&loaded));
}

#[test]
fn c8_keys_of_both_versions_cannot_be_combined() {
    let mixed = "{ jobs: [{ exec: 'x' }], tasks: [{ command: 'y', frequency: '1s' }] }";
    assert_eq!(
        errors(mixed),
        ["`tasks` is a key of ContainerPilot 2 and cannot be combined with `jobs` of version 3"]
    );
    let mixed = "{ watches: [], services: [], preStart: 'x' }";
    assert_eq!(errors(mixed).len(), 2, "each of them is reported");
}

#[test]
fn c8_a_version_2_file_cannot_be_combined_with_other_files() {
    let files = ["{ services: [] }", "{ jobs: [] }"];
    let loaded = load_files(&files, &host());
    assert!(loaded.plan.is_none());
    assert!(shown(&loaded).contains("a ContainerPilot 2 file cannot be combined with other files"));
}

#[test]
fn c8_the_container_exits_with_the_code_of_the_main_program() {
    let plan = old("{ services: [] }");
    assert_eq!(plan.jobs.len(), 1);
    let main = &plan.jobs[0];
    assert_eq!((main.role, main.name.as_str()), (Role::Main, "app"));
    assert_eq!(main.exec, Exec::Program(command("nginx", &["-g", "daemon off;"])));
    assert_eq!((main.on_success, main.on_failure), (OnCompletion::Shutdown, OnCompletion::Shutdown));
    assert!(main.output.is_raw(), "its output is passed through");
    assert_eq!(main.restarts, Restarts::Limited(0));
    let taken = old("{ services: [{ name: 'app', port: 1, poll: 1, ttl: 2 }], tasks: [] }");
    assert_eq!(named(&taken, "main").role, Role::Main, "a service is named `app`");
}

#[test]
fn c8_the_arguments_of_the_program_are_templates() {
    let host = host_with(&[("PORT", "8080")]);
    let exec = |words: &[&str]| {
        loaded("{ services: [] }", words, &host).plan.unwrap().jobs.remove(0).exec.program().cloned().unwrap()
    };
    assert_eq!(exec(&["x", "-p", "{{ .PORT }}"]), command("x", &["-p", "8080"]));
    assert_eq!(
        exec(&["x", "{{ .PORT }}", "{{"]),
        command("x", &["{{ .PORT }}", "{{"]),
        "unrendered, because one is not a valid template"
    );
}

#[test]
fn c8_p7_the_arguments_of_the_program_have_the_addresses_of_services() {
    let text = "{ services: [{ name: 'my-app', port: 1, poll: 1, ttl: 2, interfaces: 'static:10.1.1.1' },
        { name: 'node_exporter', port: 2, poll: 1, ttl: 2, interfaces: ['none', 'static:10.1.1.2'] }],
        telemetry: { interfaces: 'static:10.1.1.3', sensors: [] } }";
    let program = [
        "etcd",
        "http://{{ .CONTAINERPILOT_MY_APP_IP }}:{{ .PORT }}",
        "{{ .CONTAINERPILOT_NODE_EXPORTER_IP }}",
        "{{ .CONTAINERPILOT_CONTAINERPILOT_IP }}",
        "{{ .PORT }}",
    ];
    let host = host_with(&[("PORT", "81"), ("CONTAINERPILOT_MY_APP_IP", "the old one")]);
    let exec = named(&loaded(text, &program, &host).plan.unwrap(), "app").exec.program().cloned().unwrap();
    assert_eq!(exec, command("etcd", &["http://10.1.1.1:81", "10.1.1.2", "10.1.1.3", "81"]));
    let migrated = migrate(input(text), &host, OPTIONS, Some(&words(&program))).unwrap();
    assert!(
        migrated.text.contains(r#"["etcd", "http://10.1.1.1:81", "10.1.1.2", "10.1.1.3", "{{ .PORT }}"]"#)
    );
    assert!(migrated.notes.iter().any(|note| note.starts_with("The addresses of services in the arguments")));
}

#[test]
fn c8_without_a_program_everything_else_runs() {
    let text = "{ preStop: 'bye', postStop: 'x', services: [{ name: 'db', port: 1, poll: 1, ttl: 2 }] }";
    let loaded = loaded(text, &[], &host());
    let plan = loaded.plan.as_ref().unwrap();
    let names: Vec<_> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["db", "preStop"]);
    let event = EventPattern { source: Source::Global, code: Code::Shutdown };
    assert_eq!(named(plan, "preStop").when.trigger, Trigger::Event { event, repeat: Repeat::Once });
    assert!(shown(&loaded).contains("`postStop` runs after the main program"));
}

#[test]
fn c8_services_are_checked_and_advertised_without_a_program() {
    let plan = old("{ consul: 'consul:8500', services: [
           { name: 'web', port: 80, health: 'curl -f http://localhost/', poll: 10, ttl: 25, timeout: '3s',
             tags: ['a', 'b'], interfaces: 'eth0:inet6', consul: { deregisterCriticalServiceAfter: '90m' } },
           { name: 'always', port: '8080', poll: 5, ttl: 15 }] }");
    let web = named(&plan, "web");
    assert!(web.exec.is_none());
    let health = web.health.unwrap();
    let check = &health.checks[0];
    assert_eq!(check.probe, Probe::Exec(command("curl", &["-f", "http://localhost/"])));
    let seconds = [check.interval, health.ttl, check.timeout].map(|time| time.as_secs());
    assert_eq!(seconds, [10, 25, 3]);
    let service = web.service.unwrap();
    assert_eq!((service.port, service.tags, service.id.as_str()), (80, words(&["a", "b"]), "web-box"));
    assert_eq!(service.address.to_string(), "fe80::7");
    assert_eq!(service.deregister_critical_after, Some(Duration::from_secs(5400)));
    let always = named(&plan, "always").health.unwrap().checks.remove(0);
    assert_eq!((always.probe, always.timeout.as_secs()), (Probe::Running, 5));
    assert!(matches!(plan.catalog, Catalog::Consul(_)));
}

#[test]
fn c8_backends_are_watches_with_a_job_for_changes() {
    let plan = old(
        "{ backends: [{ name: 'db', poll: 7, onChange: ['reload', 'x y'], tag: 'main', timeout: '9s' }] }",
    );
    let watch = &plan.watches[0];
    assert_eq!((watch.name.as_str(), watch.interval.as_secs()), ("db", 7));
    assert_eq!(watch.kind, WatchKind::Service { tag: Some("main".into()), dc: None });
    let job = named(&plan, "onChange-db");
    let event = EventPattern { source: Source::Watch("db".into()), code: Code::Changed };
    assert_eq!(job.when.trigger, Trigger::Event { event, repeat: Repeat::Each });
    assert_eq!(
        (job.exec, job.timeout),
        (Exec::Program(command("reload", &["x y"])), Some(Duration::from_secs(9)))
    );
}

#[test]
fn c8_tasks_are_periodic_jobs() {
    let plan = old("{ tasks: [{ name: 'backup', command: 'b', frequency: '1500ms', timeout: '100ms' },
                   { command: ['c', 'd e'], frequency: '10' }] }");
    let (first, second) = (named(&plan, "backup"), named(&plan, "c d e"));
    let startup = EventPattern { source: Source::Global, code: Code::Startup };
    let after = |every, event| Trigger::Interval { every, first: FirstTick::IntervalAfter(event) };
    assert_eq!(first.when.trigger, after(Duration::from_millis(1500), startup));
    let waits = old("{ preStart: 'a', tasks: [{ name: 'backup', command: 'b', frequency: '1s' }] }");
    let exited = EventPattern { source: Source::Job("preStart".into()), code: Code::ExitSuccess };
    assert_eq!(named(&waits, "backup").when.trigger, after(Duration::from_secs(1), exited));
    assert_eq!(first.timeout, Some(Duration::from_millis(100)));
    assert_eq!((second.timeout, second.restarts), (Some(Duration::from_secs(10)), Restarts::Unlimited));
}

#[test]
fn c8_everything_waits_for_pre_start_and_its_failure_stops_the_container() {
    let plan = old("{ preStart: '/bin/setup now', services: [{ name: 'db', port: 1, poll: 1, ttl: 2 }],
           coprocesses: [{ command: 'agent' }] }");
    let hook = named(&plan, "preStart");
    assert_eq!(
        (hook.exec.clone(), hook.on_failure),
        (Exec::Program(command("/bin/setup", &["now"])), OnCompletion::Shutdown)
    );
    for name in ["app", "db"] {
        assert_eq!(named(&plan, name).when.trigger, once("preStart", Code::ExitSuccess));
    }
    assert!(matches!(named(&plan, "agent").when.trigger, Trigger::Any { .. }));
    assert_eq!(old("{ preStart: ['a', 'b c'] }").jobs[0].exec, Exec::Program(command("a", &["b c"])));
}

#[test]
fn c8_on_start_is_the_old_name_of_pre_start() {
    for text in ["{ onStart: 'setup now' }", "{ preStart: null, onStart: 'setup now' }"] {
        let plan = old(text);
        assert_eq!(plan, old("{ preStart: 'setup now' }"), "{text}");
        assert_eq!(messages(text, Severity::Warning)[0], "`onStart` runs as `preStart`");
        let migrated = migrate(input(text), &host(), OPTIONS, Some(&words(&["nginx"]))).unwrap();
        assert!(migrated.text.contains(r#"name: "preStart""#), "{}", migrated.text);
    }
    let both = "{ onStart: 'old', preStart: 'new' }";
    assert_eq!(old(both), old("{ preStart: 'new' }"));
    assert_eq!(messages(both, Severity::Warning)[0], "`onStart` is ignored, because there is a `preStart`");
    assert_eq!(old("{ onStart: null, services: [] }"), old("{ services: [] }"));
    assert_eq!(errors("{ onStart: '' }").len(), 1, "the error has the name in the file");
    assert!(errors("{ onStart: '' }")[0].starts_with("`onStart` has no program"));
}

#[test]
fn c8_pre_stop_and_post_stop_belong_to_the_program() {
    let plan = old("{ preStop: 'a', postStop: 'b' }");
    assert_eq!(named(&plan, "preStop").when.trigger, once("app", Code::Stopping));
    assert_eq!(named(&plan, "postStop").when.trigger, once("app", Code::Stopped));
    let plan = old("{ preStart: 'x', preStop: 'a', postStop: 'b' }");
    for (name, code) in [("preStop", Code::Stopping), ("postStop", Code::Stopped)] {
        let Trigger::All { conditions, .. } = named(&plan, name).when.trigger else { panic!("{name}") };
        let event = |source: &str, code| EventPattern { source: Source::Job(source.into()), code };
        assert_eq!(conditions, [event("preStart", Code::ExitSuccess), event("app", code)]);
    }
}

#[test]
fn c8_s15_hooks_have_a_time_of_their_own() {
    let times = |text: &str| {
        let plan = old(text);
        let main = named(&plan, "app");
        (plan.stop_timeout.as_secs(), main.stop.hook_timeout, main.stop.signal)
    };
    assert_eq!(times("{ services: [] }"), (5, None, Signal::TERM));
    assert_eq!(times("{ services: [], stopTimeout: 7 }"), (7, None, Signal::TERM));
    assert_eq!(times("{ services: [], stopTimeout: 0 }"), (5, None, Signal::TERM));
    assert_eq!(times("{ preStop: 'x', postStop: 'y', stopTimeout: '3' }"), (3, None, Signal::TERM));
    assert_eq!(times("{ services: [], stopTimeout: -1 }"), (5, None, Signal::KILL), "it is killed at once");
    let five_minutes = Some(std::time::Duration::from_secs(300));
    assert_eq!(named(&old("{ preStop: 'x' }"), "preStop").hook_time(), five_minutes);
}

#[test]
fn c8_telemetry_and_its_sensors() {
    let plan = old(
        "{ telemetry: { port: 9999, tags: ['t'], sensors: [
             { namespace: 'my', subsystem: 'app', name: 'load', help: 'h', type: 'gauge', poll: 5, check: ['s', 'x'] },
             { name: 'n', type: 'counter', poll: 2, check: 't', timeout: '1s' }] } }",
    );
    let sensors: Vec<&Job> = plan.jobs.iter().filter(|job| matches!(job.role, Role::Sensor(_))).collect();
    let telemetry = plan.telemetry.as_ref().unwrap();
    assert_eq!((telemetry.port, telemetry.metrics.len()), (9999, 2));
    assert_eq!(
        (&*telemetry.metrics[0].name, &telemetry.metrics[0].kind),
        ("my_app_load", &MetricKind::Gauge)
    );
    let [load, count] = sensors[..] else { panic!("there are {} sensors", sensors.len()) };
    assert_eq!((load.name.as_str(), load.role), ("sensor.my_app_load", Role::Sensor(0)));
    assert_eq!(load.exec, Exec::Program(command("s", &["x"])));
    let five = Duration::from_secs(5);
    assert_eq!((&load.when.trigger, load.timeout), (&after_startup(five), Some(five)));
    assert!(load.service.is_none() && load.health.is_none());
    assert_eq!((count.role, count.timeout), (Role::Sensor(1), Some(Duration::from_secs(1))));
}

#[test]
fn t2_a_metric_can_have_a_program_that_measures_it() {
    let metric =
        |text: &str| format!("{{ telemetry: {{ metrics: [{{ name: 'm', type: 'gauge', {text} }}] }} }}");
    let with = plan(&metric("exec: 'a b', interval: '1m'"));
    assert_eq!(named(&with, "sensor.m").timeout, Some(Duration::from_mins(1)));
    assert_eq!(plan(&metric("help: 'h'")).jobs.len(), 1, "the job of the server");
    assert_eq!(errors(&metric("exec: 'a'")), ["a metric needs `interval`"]);
    assert_eq!(errors(&metric("interval: 5")), ["`interval` of a metric has no effect without `exec`"]);
}

#[test]
fn c8_logging_and_consul_are_those_of_version_3() {
    let plan =
        old("{ services: [], logging: { level: 'DEBUG', output: 'stderr' }, consul: { address: 'c:1' } }");
    assert_eq!(plan.logging.output, Output::Stderr);
    assert!(matches!(old("{ services: [] }").catalog, Catalog::Embedded));
}

#[test]
fn c8_errors_mention_the_keys_of_version_2() {
    for (text, message) in [
        ("services: [{ name: 'a b', port: 1, poll: 1, ttl: 2 }]", "`a b` is not a valid service name"),
        ("services: [{ port: 1, poll: 1, ttl: 2 }]", "a service needs `name`"),
        ("services: [{ name: 'ab', poll: 1, ttl: 2 }]", "a service needs `port`"),
        ("services: [{ name: 'ab', port: 0, poll: 1, ttl: 2 }]", "`port` must be an integer from 1 to 65535"),
        ("services: [{ name: 'ab', port: 1, ttl: 2 }]", "a service needs `poll`"),
        ("services: [{ name: 'ab', port: 1, poll: 0, ttl: 2 }]", "`poll` must be at least 1ms"),
        ("services: [{ name: 'ab', port: 1, poll: 1 }]", "a service needs `ttl`"),
        ("backends: [{ name: 'ab', poll: 1 }]", "a backend needs `onChange`"),
        ("backends: [{ name: 'a_b', poll: 1, onChange: 'x' }]", "`a_b` is not a valid service name"),
        ("tasks: [{ command: 'x' }]", "a task needs `frequency`"),
        ("tasks: [{ frequency: '1s' }]", "a task needs `command`"),
        ("tasks: [{ command: 'x', frequency: '1us' }]", "`frequency` must be at least 1ms"),
        ("telemetry: { sensors: [{ name: 'a', type: 'gauge', poll: 1 }] }", "a sensor needs `check`"),
        ("services: [], etcd: {}", "`etcd` is not supported"),
        ("services: [], coprocesses: [{}]", "a coprocess needs `command`"),
        ("services: [], preStart: ''", "`preStart` has no program"),
        ("services: [], stopTimout: 3", "unknown key `stopTimout` in a ContainerPilot 2 configuration"),
        ("services: [{ name: 'ab', port: 1, interval: 1, ttl: 2 }]", "unknown key `interval` in a service"),
    ] {
        let errors = errors(&format!("{{ {text} }}"));
        assert!(errors.iter().any(|error| error.starts_with(message)), "{text}: {errors:?}");
        assert!(errors.len() == 1, "{text}: {errors:?}");
    }
    let ttl = "{ services: [{ name: 'ab', port: 1, poll: 5, ttl: 5 }] }";
    assert_eq!(faults(ttl), ["`ttl` must be longer than `poll`"]);
}

#[test]
fn c8_underscores_in_service_names_become_dashes() {
    let text = "{ services: [{ name: 'node_exporter', port: 9100, poll: 5, ttl: 15 }] }";
    assert_eq!(messages(text, Severity::Warning)[0], "`node_exporter` is not a valid service name");
    assert_eq!(named(&old(text), "node-exporter").service.unwrap().name, "node-exporter");
}

#[test]
fn c8_migrate_keeps_template_actions() {
    let text = "{ consul: '{{ .CONSUL }}:8500', preStart: 'a', services: [{{ if .X }}{ name: 'db', port: {{ .PORT }},
                  poll: 1, ttl: 2 }{{ end }}] }";
    let host = host_with(&[("CONSUL", "c"), ("X", "1"), ("PORT", "81")]);
    let migrated = migrate(input(text), &host, OPTIONS, Some(&words(&["nginx"]))).unwrap();
    assert!(migrated.text.contains("consul: '{{ .CONSUL }}:8500'"), "{}", migrated.text);
    assert!(migrated.text.contains("port: {{ .PORT }},"), "{}", migrated.text);
    assert!(migrated.notes.iter().any(|note| note.contains("line 1: if .X")), "{:?}", migrated.notes);
    for note in &migrated.notes {
        let first = note.split(' ').next().unwrap();
        assert!(migrated.text.contains(&format!("// - {first}")), "the file contains the note: {note}");
    }
}

#[test]
fn c8_d8_migrate_notes_that_maintenance_mode_pauses_nothing() {
    let noted = |text: &str| {
        let migrated = migrate(input(text), &host(), OPTIONS, None).unwrap();
        migrated.notes.iter().any(|note| note.starts_with("Maintenance mode does not pause"))
    };
    assert!(noted("{ tasks: [{ command: 'x', frequency: '1s' }] }"));
    assert!(noted("{ backends: [{ name: 'db', poll: 1, onChange: 'x' }] }"));
    assert!(noted("{ telemetry: { sensors: [{ name: 'a', type: 'gauge', poll: 1, check: 'x' }] } }"));
    assert!(!noted("{ preStart: 'x', tasks: [] }"));
}

#[test]
fn c8_migrate_notes_a_missing_main_program() {
    let migrated = migrate(input("{ services: [], postStop: 'x' }"), &host(), OPTIONS, None).unwrap();
    assert!(migrated.notes[0].starts_with("The main program is not in this file."));
    assert!(migrated.notes.iter().any(|note| note.starts_with("postStop is missing")));
}

#[test]
fn c8_migrate_evaluates_actions_that_depend_on_a_loop() {
    // The variables of a loop do not exist outside of it.
    let text = r#"{ "tasks": [{{ range $i, $n := split " " "a b" }}{{ if $i }},{{ end }}
        { "name": "{{ $n }}", "command": "run {{ $n }}", "frequency": "1m" }{{ end }}] }"#;
    let migrated = migrate(input(text), &host(), OPTIONS, None).unwrap();
    assert!(migrated.text.contains(r#"exec: "run a""#), "{}", migrated.text);
    assert!(!migrated.text.contains("{{"), "{}", migrated.text);
}

#[test]
fn c8_migrate_rejects_version_3_and_invalid_files() {
    let refused = migrate(input("{ jobs: [] }"), &host(), OPTIONS, None);
    assert!(matches!(refused, Err(MigrateError::NotLegacy)));
    for broken in ["{ services: [{}] }", "{ services: ", "{{ .X"] {
        let refused = migrate(input(broken), &host(), OPTIONS, None);
        assert!(matches!(refused, Err(MigrateError::Invalid(_))), "{broken}: {refused:?}");
    }
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn pick(&mut self, from: &[&str]) -> String {
        let at = usize::try_from(self.next(from.len() as u64)).unwrap();
        from[at].to_owned()
    }

    /// Adds a member with probability 1/2.
    fn maybe(&mut self, out: &mut Vec<String>, key: &str, values: &[&str]) {
        if self.next(2) == 0 {
            let value = self.pick(values);
            out.push(format!("\"{key}\": {value}"));
        }
    }

    fn list(&mut self, mut one: impl FnMut(&mut Self, u64) -> Vec<String>) -> String {
        let objects: Vec<String> =
            (0..self.next(3)).map(|nth| format!("{{ {} }}", one(self, nth).join(", "))).collect();
        let gap = if self.next(4) == 0 { "{{ if .YES }}{{ end }}" } else { "" };
        format!("[{gap}{}]", objects.join(", "))
    }

    fn file(&mut self) -> String {
        const COMMANDS: [&str; 6] = [
            "\"/bin/x\"",
            "\"x a  b 'c d'\"",
            "[\"x\", \"a b\", 3, true]",
            "\"{{ .TOOL }} --join={{ .CONSUL }}\"",
            "[\"{{ .TOOL }}\", \"{{ if .NO }}a{{ else }}b\\\"{{ .CONSUL }}\\\"{{ end }}\"]",
            "['ä{\\u007b', \"back\\\\slash\\n\"]",
        ];
        const SECONDS: [&str; 4] = ["10", "\"10\"", "{{ .TEN }}", "\"{{ .TEN }}s\""];
        let mut top = vec![format!(
            "\"services\": {}",
            self.list(|random, nth| {
                let mut one = vec![format!("\"name\": \"service-{nth}\""), "\"ttl\": 30".to_owned()];
                one.push(format!("\"port\": {}", random.pick(&["80", "\"443\"", "{{ .TEN }}"])));
                one.push(format!("\"poll\": {}", random.pick(&SECONDS)));
                random.maybe(&mut one, "health", &COMMANDS);
                random.maybe(&mut one, "timeout", &["\"3s\"", "5"]);
                random.maybe(&mut one, "tags", &["[]", "[\"a\", \"{{ .CONSUL }}\"]"]);
                random.maybe(&mut one, "interfaces", &["\"eth0\"", "[\"none\", \"inet\"]", "[]"]);
                random.maybe(&mut one, "consul", &["{ \"enableTagOverride\": true }", "{}"]);
                one
            })
        )];
        let backends = self.list(|random, nth| {
            let mut one = vec![format!("\"name\": \"{{{{ .CONSUL }}}}-{nth}\"")];
            one.push(format!("\"poll\": {}", random.pick(&SECONDS)));
            one.push(format!("\"onChange\": {}", random.pick(&COMMANDS)));
            random.maybe(&mut one, "tag", &["\"t\"", "\"\""]);
            random.maybe(&mut one, "timeout", &["\"3s\""]);
            one
        });
        let tasks = self.list(|random, nth| {
            let mut one = vec![format!("\"command\": {}", random.pick(&COMMANDS))];
            one.push(format!("\"frequency\": {}", random.pick(&["\"5m\"", "1", "\"{{ .TEN }}ms\""])));
            random.maybe(&mut one, "name", &[&format!("\"task {nth}\""), "\"\""]);
            random.maybe(&mut one, "timeout", &["\"1ms\"", "9"]);
            one
        });
        let coprocesses = self.list(|random, _| {
            let mut one = vec![format!("\"command\": {}", random.pick(&COMMANDS))];
            random.maybe(&mut one, "restarts", &["\"unlimited\"", "\"never\"", "3"]);
            random.maybe(&mut one, "name", &["\"beside\""]);
            one
        });
        let sensors = self.list(|random, nth| {
            let mut one = vec![format!("\"name\": \"sensor_{nth}\""), "\"type\": \"gauge\"".to_owned()];
            one.push(format!("\"check\": {}", random.pick(&COMMANDS)));
            one.push(format!("\"poll\": {}", random.pick(&SECONDS)));
            random.maybe(&mut one, "help", &["\"{{ .CONSUL }} it\""]);
            one
        });
        for (key, list) in [("backends", backends), ("tasks", tasks), ("coprocesses", coprocesses)] {
            if self.next(3) > 0 {
                top.push(format!("\"{key}\": {list}"));
            }
        }
        if self.next(2) == 0 {
            top.push(format!("\"telemetry\": {{ \"port\": 9091, \"sensors\": {sensors} }}"));
        }
        for hook in ["preStart", "preStop", "postStop"] {
            self.maybe(&mut top, hook, &COMMANDS);
        }
        self.maybe(&mut top, "stopTimeout", &["5", "-1", "\"12\"", "0", "{{ .TEN }}", "null"]);
        self.maybe(&mut top, "consul", &["\"{{ .CONSUL }}:8500\"", "{ \"address\": \"a:1\" }"]);
        self.maybe(&mut top, "logging", &["{ \"level\": \"{{ .LEVEL }}\" }", "{}"]);
        format!("{{ {} }}", top.join(",\n  "))
    }
}

#[test]
fn c8_every_version_2_file_migrates_to_the_same_plan() {
    let host =
        host_with(&[("CONSUL", "consul"), ("TOOL", "tool"), ("TEN", "10"), ("LEVEL", "DEBUG"), ("YES", "1")]);
    let (mut kept, count) = (0, 400);
    for seed in 0..count {
        let mut random = Random(seed);
        let text = random.file();
        let program = words(&["{{ .TOOL }}", "it's", "\"{{ .TEN }}\"", "a {{ .TEN }}"]);
        let program = (random.next(2) == 0).then_some(program.as_slice());
        // `migrate` compares the plans itself and fails if they differ.
        let migrated = migrate(input(&text), &host, OPTIONS, program).unwrap_or_else(|error| match error {
            MigrateError::Invalid(report) => {
                panic!(
                    "seed {seed}:\n{text}\n{}",
                    report.display(Style { faults_are_errors: true, colour: false })
                )
            }
            MigrateError::NotLegacy => panic!("seed {seed} is not a version 2 file:\n{text}"),
        });
        kept += usize::from(migrated.text.contains("{{ .CONSUL }}"));
        let again = load_files(&[&migrated.text], &host).plan.unwrap();
        let before = load_with_program(vec![input(&text)], &host, OPTIONS, program).plan.unwrap();
        assert_eq!(again.jobs.len(), before.jobs.len(), "seed {seed}");
        assert_eq!((&again.watches, &again.telemetry), (&before.watches, &before.telemetry), "seed {seed}");
        assert_eq!(
            (again.stop_timeout, &again.catalog),
            (before.stop_timeout, &before.catalog),
            "seed {seed}"
        );
        for (again, mut before) in again.jobs.into_iter().zip(before.jobs) {
            before.role = if before.role == Role::Main { Role::User } else { before.role };
            // The notes say that the first run is at startup.
            if let Trigger::Interval { first, .. } = &mut before.when.trigger {
                assert!(matches!(first, FirstTick::IntervalAfter(_)), "seed {seed}");
                *first = FirstTick::AtStartup;
                let noted = |note: &String| note.starts_with("Tasks and sensors also run at startup");
                assert!(migrated.notes.iter().any(noted), "seed {seed}");
            }
            if let Some(service) = &mut before.service {
                let noted = |note: &String| note.starts_with("The check of a service has the id");
                assert!(service.legacy_check && migrated.notes.iter().any(noted), "seed {seed}");
                service.legacy_check = false;
            }
            assert_eq!(again, before, "seed {seed}");
        }
    }
    assert!(kept > 200, "template actions are kept only in {kept} of {count}");
}
