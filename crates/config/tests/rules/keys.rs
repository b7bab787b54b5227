//! C3, C4: keys and values.

use containerpilot_config::decode::Section;
use containerpilot_config::decode::{DefaultValue, SectionInfo, Shape};
use containerpilot_config::fields::ConfigFields;

use super::support::{errors, host, job, job_errors, load_files, plan, shown};

#[test]
fn c4_an_unknown_key_is_an_error_with_a_suggestion_at_every_level() {
    for (text, key, near) in [
        ("{ loging: {} }", "loging", "logging"),
        ("{ jobs: [{ name: 'a', exce: 'x' }] }", "exce", "exec"),
        ("{ jobs: [{ name: 'a', when: { intreval: 1 } }] }", "intreval", "interval"),
        ("{ jobs: [{ name: 'a', health: { inteval: 1, interval: 1, ttl: 2 } }] }", "inteval", "interval"),
        ("{ jobs: [{ name: 'a', logging: { rwa: true } }] }", "rwa", "raw"),
        ("{ watches: [{ name: 'db', interval: 1, tga: 'x' }] }", "tga", "tag"),
        ("{ telemetry: { prot: 1 } }", "prot", "port"),
        ("{ telemetry: { metrics: [{ name: 'a', tpye: 'gauge', type: 'gauge' }] } }", "tpye", "type"),
        ("{ consul: { addres: 'x' } }", "addres", "address"),
        ("{ consul: { tls: { cafiel: 'x' } } }", "cafiel", "cafile"),
        ("{ control: { sokcet: 'x' } }", "sokcet", "socket"),
        ("{ Consul: 'x' }", "Consul", "consul"),
    ] {
        let loaded = load_files(&[text], &host());
        let shown = shown(&loaded);
        assert!(loaded.plan.is_none(), "{text}");
        assert!(shown.contains(&format!("unknown key `{key}`")), "{shown}");
        assert!(shown.contains(&format!("did you mean `{near}`?")), "{shown}");
    }
}

#[test]
fn c4_an_unknown_key_without_a_similar_one_lists_all_keys() {
    let loaded = load_files(&["{ consul: { qqqqqq: 1 } }"], &host());
    assert!(
        shown(&loaded).contains("`consul` has these keys: address, scheme, token, tokenfile, tls"),
        "{}",
        shown(&loaded)
    );
}

#[test]
fn c4_notes_and_the_schema_are_ignored_at_every_level() {
    let text = r#"{ $schema: "s", "x-note": 1, jobs: [{ name: "a", exec: "x", "x-owner": {}, $schema: 1,
        when: { "X-why": [], once: "startup" } }] }"#;
    assert_eq!(plan(text).jobs.len(), 1);
}

#[test]
fn c3_keys_of_sections_are_case_insensitive() {
    let job = job(r#"NAME: "a", Exec: "x", RESTARTS: 3, When: { Source: "SIGHUP" }"#);
    assert_eq!(job.name, "a");
}

#[test]
fn c3_of_duplicate_keys_the_last_one_counts() {
    assert_eq!(job("name: 'a', exec: 'x', name: 'b'").name, "b");
}

#[test]
fn c3_digits_in_a_string_are_decimal() {
    assert_eq!(plan("{ stopTimeout: '010' }").stop_timeout.as_secs(), 10);
    assert_eq!(plan("{ stopTimeout: '0x10' }").stop_timeout.as_secs(), 16);
}

#[test]
fn c3_durations_are_accepted_where_3_8_has_seconds() {
    let job = job("name: 'a', exec: 'x', health: { interval: '1m30s', ttl: '5m' }");
    let health = job.health.unwrap();
    assert_eq!((health.checks[0].interval.as_secs(), health.ttl.as_secs()), (90, 300));
    assert_eq!(plan("{ stopTimeout: '1m' }").stop_timeout.as_secs(), 60);
}

#[test]
fn c3_a_job_without_a_name_is_named_after_its_program() {
    assert_eq!(job("exec: '/bin/app --flag'").name, "/bin/app");
    assert_eq!(job_errors("restarts: 3"), ["a job needs `name` or `exec`"]);
    assert_eq!(job_errors("name: '', exec: 'x'"), ["`name` is empty"]);
}

#[test]
fn c3_a_value_that_is_not_a_list_is_an_error() {
    for key in ["jobs", "watches"] {
        for value in ["{}", "'x'", "5", "true", "{ name: 'db', interval: 5 }"] {
            let errors = errors(&format!("{{ {key}: {value} }}"));
            assert!(
                errors.iter().any(|error| error.contains("must be a list")),
                "{key}: {value}: {errors:?}"
            );
        }
    }
}

#[test]
fn c5_all_errors_are_reported_at_once() {
    let text = r#"{
        loging: {},
        stopTimeout: "soon",
        jobs: [
          { name: "a", exec: [], restarts: "x" },
          { name: "B", exec: "x", port: 1, health: { interval: 1, ttl: 2 } },
          { name: "c", exec: "x", when: { once: "nope" } },
        ],
        watches: [{ name: "d" }],
      }"#;
    assert_eq!(errors(text).len(), 8, "{:#?}", errors(text));
}

#[test]
fn c5_syntax_errors_and_unknown_keys_are_reported_together() {
    let errors = errors("{ jobs: [{ name: 'a' exec: 'x' }], loging: {} }");
    assert_eq!(errors.len(), 2, "{errors:#?}");
}

/// Calls a function on every section of the table.
fn each_section(info: &'static SectionInfo, call: &mut dyn FnMut(&'static SectionInfo)) {
    call(info);
    for field in info.fields {
        match field.shape {
            Shape::Object(inner)
            | Shape::List(inner)
            | Shape::OneOrMany(inner)
            | Shape::ObjectOrBool(inner)
            | Shape::ObjectOrText(inner)
            | Shape::ObjectOrWord(inner, _) => each_section(inner, call),
            _ => {}
        }
    }
}

#[test]
fn c3_every_default_of_the_table_can_be_written_explicitly() {
    // Explicit defaults at the top level and in a job do not change the plan.
    let written = |info: &SectionInfo| {
        let rows = info.fields.iter().filter_map(|field| match field.default {
            DefaultValue::Is(text) => Some(format!("{}: {text}", field.key)),
            _ => None,
        });
        rows.collect::<Vec<_>>().join(", ")
    };
    let mut of_job = String::new();
    each_section(&ConfigFields::INFO, &mut |info| {
        if info.name == "a job" {
            of_job = written(info);
        }
    });
    assert!(of_job.contains("stopSignal"), "{of_job}");
    let long = format!("{{ {}, jobs: [{{ exec: 'x', {of_job} }}] }}", written(&ConfigFields::INFO));
    assert_eq!(plan(&long), plan("{ jobs: [{ exec: 'x' }] }"));
}

#[test]
fn c4_every_row_of_the_table_has_help_and_a_rule() {
    let mut rows = 0;
    each_section(&ConfigFields::INFO, &mut |info| {
        for field in info.fields {
            rows += 1;
            assert!(field.help.ends_with('.') && !field.rules.is_empty(), "{} of {}", field.key, info.name);
        }
    });
    assert!(rows > 70);
}

#[test]
fn c5_a_string_instead_of_a_list_of_objects_is_an_error() {
    let loaded = super::support::load_files(&["{ watches: 'db' }"], &super::support::host());
    let shown = super::support::shown(&loaded);
    assert!(shown.contains("`watches` must be a list, not the string \"db\""), "{shown}");
    assert!(shown.contains("put it in brackets: watches: [ { … } ]"), "{shown}");
}

#[test]
fn c5_an_action_without_output_is_shown_where_a_value_is_missing() {
    let shown =
        |text: &str| super::support::shown(&super::support::load_files(&[text], &super::support::host()));
    let missing = shown("{ jobs: [{ exec: 'x', port: {{ .PORT }}, restarts: 1 }] }");
    assert!(missing.contains(":1:29\n"), "{missing}");
    assert!(missing.contains("^^^^^^^^^^^\n  = rendered: (empty)\n"), "{missing}");
    let same_line = shown("{ stopTimeout:{{ .GRACE }} }");
    assert!(same_line.contains("rendered: (empty)"), "{same_line}");
    for other in [
        "{ jobs: [{ exec: 'x' {{/* a note */}} restarts: 1 }] }",
        "{ jobs: [{ exec: 'x' {{ if .A }}, port: 1{{ end }} restarts: 1 }] }",
        "{ jobs: [{ exec: 'x' {{ $n := 1 }} restarts: 1 }] }",
        "{ jobs: [{ exec: 'x' restarts: 1 }], {{ .NOTHING }} }",
    ] {
        assert!(!shown(other).contains("rendered"), "{}", shown(other));
    }
}

#[test]
fn x4_the_control_socket_is_found_in_an_invalid_file() {
    use containerpilot_config::{ConfigFile, control_socket};
    let socket = |texts: &[&str]| {
        let inputs =
            texts.iter().map(|text| ConfigFile { name: "a".to_owned(), text: text.as_bytes().to_vec() });
        let found = control_socket(inputs.collect(), &[("RUN".into(), "/run".into())].into_iter().collect());
        (found.path, found.certain)
    };
    let usual = |certain| ("/var/run/containerpilot.socket".to_owned(), certain);
    assert_eq!(socket(&["{}"]), usual(true));
    assert_eq!(socket(&["{ control: { mode: 8 }, jobs: 7 }"]), usual(false));
    let found = ("/run/x.socket".to_owned(), true);
    assert_eq!(socket(&["{ control: { socket: '{{ .RUN }}/x.socket' } }"]), found);
    assert_eq!(
        socket(&["{ nope: 1, jobs: [{ exce: 2 }], control: { socket: '/run/x.socket' }, b: @ }"]),
        found
    );
    assert_eq!(socket(&["{ control: { socket: '/a' } }", "{ control: { Socket: '/run/x.socket' } }"]), found);
    let variable = || [("CONTAINERPILOT_SOCKET".into(), "/run/y.socket".into())].into_iter().collect();
    let input = |text: &str| vec![ConfigFile { name: "a".to_owned(), text: text.as_bytes().to_vec() }];
    assert_eq!(control_socket(input("{}"), &variable()).path, "/run/y.socket");
    assert_eq!(control_socket(input("{{ if }}"), &variable()).path, "/run/y.socket");
    assert_eq!(control_socket(input("{ control: { socket: '/a' } }"), &variable()).path, "/a");
    for broken in ["{{ if }}", "[", "", "{ jobs: ["] {
        assert_eq!(socket(&[broken]), usual(false), "{broken}");
    }
}
