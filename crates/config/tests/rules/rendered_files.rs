//! D15: rendered files.

use std::time::Duration;

use containerpilot_config::host::StaticHost;
use containerpilot_core::event::Source;
use containerpilot_core::plan::{Principal, RequiredSource, Trigger};

use super::support::{errors, faults, host, load_files, plan, plan_on, shown};

/// A file with a watch, a secret, and these fields of a rendered file.
fn with_file(fields: &str) -> String {
    format!(
        "{{ watches: [{{ name: 'app', interval: 1 }}], secrets: {{ TOKEN: {{ file: '/run/token' }} }},
            files: [{{ name: 'f', {fields} }}], jobs: [{{ name: 'a', exec: 'x' }}] }}"
    )
}

fn with_templates() -> StaticHost {
    let template = |text: &str| text.as_bytes().to_vec();
    let contents = [
        ("/t/good".to_owned(), template("{{ range watch \"app\" }}{{ .Address }}{{ end }}")),
        ("/t/bad".to_owned(), template("one\n  {{ watch \"ap\" }}\n{{ watch .X }}\n")),
        ("/t/typo".to_owned(), template("one\n  {{ watch \"ap\" }}\n")),
        ("/t/large".to_owned(), vec![b'x'; 1024 * 1024 + 1]),
    ];
    StaticHost { contents: contents.into(), files: ["/run/token".to_owned()].into(), ..host() }
}

fn problems(fields: &str) -> String {
    shown(&load_files(&[&with_file(fields)], &with_templates()))
}

#[test]
fn d15_defaults_and_all_fields() {
    let file = plan_on(&with_file("from: '/t/good', to: '/etc/f'"), &with_templates()).files.remove(0);
    assert_eq!((file.name.as_str(), file.to.as_str(), file.mode), ("f", "/etc/f", 0o644));
    assert_eq!((file.watches.as_slice(), file.template_name.as_str()), (&["app".to_owned()][..], "/t/good"));
    assert_eq!((file.debounce, &file.test, &file.user), (Duration::ZERO, &None, &None));
    assert_eq!(file.longest_delay(), Duration::ZERO);
    let all = "template: 'x{{`{{ secret \"TOKEN\" }}`}}', to: 'f', mode: '0600', user: 'app', group: 7,
               test: 'check it', timeout: '3s', debounce: '2s'";
    let file = plan_on(&with_file(all), &with_templates()).files.remove(0);
    assert_eq!(file.template.as_deref(), Some(&b"x{{ secret \"TOKEN\" }}"[..]));
    assert_eq!(file.secrets["TOKEN"], "/run/token");
    assert_eq!((file.mode, file.user), (0o600, Some(Principal::Name("app".into()))));
    assert_eq!((file.group, file.debounce), (Some(Principal::Id(7)), Duration::from_secs(2)));
    assert_eq!(file.test.unwrap().timeout, Duration::from_secs(3));
}

#[test]
fn d15_errors_of_a_template_are_shown_at_their_place_in_it() {
    let shown = problems("from: '/t/bad', to: '/etc/f'");
    assert!(shown.contains("/t/bad:3:10"), "{shown}");
    assert!(shown.contains("`watch` needs a name in quotes"), "{shown}");
    let shown = problems("from: '/t/typo', to: '/etc/f'");
    assert!(shown.contains("unknown watch `ap`") && shown.contains("/t/typo:2:12"), "{shown}");
    assert!(shown.contains("did you mean \"app\"?"), "{shown}");
    let shown = problems("template: '{{`a\\n{{ .X | nothing }}`}}', to: '/etc/f'");
    assert!(shown.contains("template:2:9: unknown function `nothing`"), "{shown}");
    // Without the backquotes it is the configuration that does not know the function.
    let shown = problems("template: '{{ watch \"app\" }}', to: '/etc/f'");
    assert!(shown.contains("`watch` works only in the template of a rendered file"), "{shown}");
}

#[test]
fn d15_nonsense_is_refused() {
    for (fields, message) in [
        ("to: '/etc/f'", "a file needs `from` or `template`"),
        ("from: '/t/good', template: 'x', to: '/etc/f'", "`template` beside `from`"),
        ("template: 'x'", "a file needs `to`"),
        ("template: 'x', to: '/etc/'", "`to` must be the path of a file"),
        ("template: 'x', to: '/etc/..'", "`to` must be the path of a file"),
        ("from: '/t/none', to: '/etc/f'", "cannot read `/t/none`: no such file or directory"),
        ("from: '/t/large', to: '/etc/f'", "`/t/large` is larger than 1024 KiB"),
        ("template: 'x', to: 'f', debounce: '-1s'", "`debounce` cannot be negative"),
        ("template: 'x', to: 'f', test: 'y', timeout: 0", "`timeout` must be at least 1ms"),
        ("template: 'x', to: 'f', user: 'nobody-here'", "unknown user `nobody-here`"),
        ("template: '{{`{{ secret \"TOKN\" }}`}}', to: 'f'", "is not one of `secrets`"),
        ("template: 'x', to: 'f', test: 'missing'", "program `missing` not found in PATH"),
        ("template: 'x', to: 'f', timeout: '1s'", "`timeout` has no effect without `test`"),
        ("template: '{{`{{ secret \"TOKEN\" }}`}}', to: 'f'", "every user can read this file with a secret"),
    ] {
        let shown = problems(fields);
        assert!(shown.contains(message), "{fields}: {shown}");
    }
    let two = |other: &str| {
        errors(&format!(
            "{{ files: [{{ name: 'f', template: 'x', to: 'f' }}, {other}], jobs: [{{ exec: 'x' }}] }}"
        ))
    };
    assert_eq!(two("{ name: 'f', template: 'x', to: 'g' }"), ["two files are named `f`"]);
    assert_eq!(two("{ name: 'g', template: 'x', to: 'f' }"), ["two files are written to `f`"]);
    assert_eq!(two("{ name: 'a b', template: 'x', to: 'g' }"), ["`a b` is not a valid name of a file"]);
}

#[test]
fn d15_a_file_is_a_source_and_can_be_required() {
    let file = "files: [{ name: 'f', template: 'x', to: 'f' }]";
    let jobs = "jobs: [{ name: 'a', exec: 'x', requires: ['file.f'] },
                       { name: 'b', exec: 'x', when: { source: 'file.f', each: 'failed' } }]";
    let plan = plan(&format!("{{ {file}, {jobs} }}"));
    assert_eq!(plan.jobs[0].requires[0].source, RequiredSource::File("f".into()));
    let Trigger::Event { event, .. } = &plan.jobs[1].when.trigger else { panic!("not an event") };
    assert_eq!(event.source, Source::File("f".into()));
    // A job of that name is that job.
    let named = plan_of_job_named_like_a_file();
    assert_eq!(named, RequiredSource::Job("file.f".into()));
    let with =
        |job: &str| format!("{{ {file}, jobs: [{{ name: 'a', exec: 'x' }}, {{ exec: 'y', {job} }}] }}");
    assert_eq!(errors(&with("requires: ['file.g']")), ["unknown file `g`"]);
    assert_eq!(faults(&with("when: { source: 'file.g', each: 'changed' }")), ["unknown file `g`"]);
    assert_eq!(
        faults(&with("when: { source: 'file.f', once: 'healthy' }")),
        ["a file never sends `healthy`"]
    );
    let of_a_job = faults(&with("when: { source: 'a', once: 'failed' }"));
    assert!(of_a_job[0].contains("`failed`"), "{of_a_job:?}");
}

fn plan_of_job_named_like_a_file() -> RequiredSource {
    let mut plan =
        plan("{ jobs: [{ name: 'file.f', exec: 'x' }, { name: 'b', exec: 'y', requires: ['file.f'] }] }");
    plan.jobs.remove(1).requires.remove(0).source
}

#[test]
fn d15_keys_are_watched_without_a_name_in_the_configuration() {
    let with = |consul: &str, template: &str| {
        format!(
            "{{ {consul} files: [{{ name: 'f', template: '{{{{`{template}`}}}}', to: 'f' }}], jobs: [{{ exec: 'x' }}] }}"
        )
    };
    let template =
        "{{ key \"a/b\" }}{{ keyOrDefault \"a/b\" \"x\" }}{{ range keys \"a/\" }}{{ .Key }}{{ end }}";
    let plan = plan(&with("consul: 'localhost:8500',", template));
    assert_eq!(plan.files[0].watches, ["key:a/b", "keys:a/"]);
    let watched: Vec<String> = plan.watches.iter().map(containerpilot_core::plan::Watch::target).collect();
    assert_eq!(watched, ["key a/b", "keys below a/"]);
    assert!(plan.watches.iter().all(containerpilot_core::plan::Watch::is_internal));
    assert!(errors(&with("", template))[0].ends_with("keys need Consul"));
    assert!(
        errors(&with("consul: 'x:1',", "{{ key \"/a\" }}"))[0].ends_with("`/a` is not the name of a key")
    );
}
