//! C7: configurations that are valid but can never work.

use containerpilot_config::diagnostics::Severity;

use crate::support::{faults, host, load_files, messages, shown};

fn jobs(text: &str) -> Vec<String> {
    faults(&format!("{{ jobs: [{text}] }}"))
}

#[test]
fn c7_an_unknown_source() {
    assert_eq!(
        jobs("{ exec: 'x', when: { source: 'ghost', once: 'healthy' } }"),
        ["unknown job or watch `ghost`"]
    );
    assert_eq!(jobs("{ exec: 'x', when: { source: 'watch.db', each: 'changed' } }"), ["unknown watch `db`"]);
    assert_eq!(jobs("{ exec: 'x', when: { any: [{ source: 'ghost', event: 'healthy' }] } }").len(), 1);
}

#[test]
fn c7_an_event_its_source_never_sends() {
    let from = |event: &str| {
        jobs(&format!(
            "{{ name: 'b', exec: 'y' }}, {{ name: 'a', exec: 'x', when: {{ source: 'b', once: '{event}' }} }}"
        ))
    };
    for never in
        ["healthy", "unhealthy", "changed", "startup", "shutdown", "timerExpired", "enterMaintenance"]
    {
        assert_eq!(from(never).len(), 1, "{never}");
        assert!(
            from(never)[0].starts_with(&format!("the job `b` never sends `{never}`")),
            "{:?}",
            from(never)
        );
    }
    for sent in ["exitSuccess", "exitFailed", "stopping", "stopped"] {
        assert!(from(sent).is_empty(), "{sent}");
    }
    let watch = |event: &str| {
        faults(&format!(
            "{{ watches: [{{ name: 'db', interval: 1 }}], jobs: [{{ exec: 'x', when: {{ source: 'watch.db', once: '{event}' }} }}] }}"
        ))
    };
    assert_eq!(watch("exitSuccess"), ["a watch never sends `exitSuccess`"]);
    assert!(watch("changed").is_empty() && watch("healthy").is_empty());
}

#[test]
fn c7_an_event_that_needs_a_source() {
    assert_eq!(jobs("{ exec: 'x', when: { once: 'exitSuccess' } }").len(), 1);
    assert!(jobs("{ exec: 'x', when: { once: 'shutdown' } }").is_empty());
    assert!(jobs("{ exec: 'x', when: { source: 'global', once: 'enterMaintenance' } }").is_empty());
}

#[test]
fn c7_a_when_without_an_event() {
    for when in [
        "{}",
        "{ source: 'b' }",
        "{ source: 'SIGTERM' }",
        "{ each: 'SIGHUP' }",
        "{ once: 'quit' }",
        "{ timeout: 5 }",
    ] {
        assert_eq!(
            jobs(&format!("{{ name: 'b', exec: 'y' }}, {{ name: 'a', exec: 'x', when: {when} }}")).len(),
            1,
            "{when}"
        );
    }
}

#[test]
fn c7_jobs_that_wait_for_each_other() {
    let circle = "{ name: 'a', exec: 'x', when: { source: 'c', once: 'exitSuccess' } }, \
                  { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed' } }, \
                  { name: 'c', exec: 'x', when: { source: 'b', each: 'exitSuccess' } }, \
                  { name: 'd', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }";
    assert_eq!(jobs(circle), ["these jobs wait for each other and can never run: a → c → b → a"]);
    let alone = jobs("{ name: 'a', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }");
    assert_eq!(alone, ["the job `a` waits for itself, so it can never run"]);
}

#[test]
fn c7_no_cycle_where_one_of_them_can_start() {
    // A job sends `stopping` even if it never ran.
    let hook = "{ name: 'a', exec: 'x', when: { source: 'b', once: 'stopping' } }, \
                { name: 'b', exec: 'x', when: { source: 'c', once: 'exitSuccess' } }, { name: 'c', exec: 'x' }";
    assert!(jobs(hook).is_empty());
    let any = "{ name: 'a', exec: 'x', when: { any: [{ source: 'b', event: 'exitSuccess' }, { event: 'startup' }] } }, \
               { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }";
    assert!(jobs(any).is_empty());
    let all = any.replace("any", "all");
    assert_eq!(jobs(&all).len(), 1);
}

#[test]
fn c7_a_long_chain_is_checked_in_linear_time() {
    // In this order, a naive search compares every pair of 20,000 jobs.
    let mut text = String::new();
    for nth in (1..20_000).rev() {
        text += &format!(
            "{{ name: 'j{nth}', exec: 'x', when: {{ source: 'j{}', once: 'exitSuccess' }} }},",
            nth - 1
        );
    }
    assert!(jobs(&format!("{text} {{ name: 'j0', exec: 'x' }}")).is_empty());
    let circle = jobs(&format!(
        "{text} {{ name: 'j0', exec: 'x', when: {{ source: 'j19999', once: 'exitSuccess' }} }}"
    ));
    assert_eq!(circle.len(), 1);
}

#[test]
fn c7_a_ttl_not_longer_than_its_interval() {
    let health = |health: &str| jobs(&format!("{{ name: 'a', exec: 'x', health: {health} }}"));
    assert_eq!(health("{ interval: 10, ttl: 10 }"), ["`ttl` must be longer than `interval`"]);
    assert!(health("{ interval: 10, ttl: 11 }").is_empty());
    assert_eq!(health("{ interval: 10, ttl: 30, heartbeat: 30 }"), ["`ttl` must be longer than `heartbeat`"]);
    assert!(health("{ interval: 60, ttl: 30, heartbeat: 10 }").is_empty(), "`heartbeat` replaces `interval`");
}

#[test]
fn c7_two_advertised_jobs_with_the_same_name() {
    let job = "{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 2 } }";
    assert_eq!(jobs(&format!("{job}, {job}")), ["two jobs with a `port` are named `web`"]);
    assert!(jobs("{ name: 'a', exec: 'x' }, { name: 'a', exec: 'y' }").is_empty(), "only a warning");
}

#[test]
fn c7_a_missing_program_is_a_warning() {
    let text = "{ jobs: [{ exec: 'missing x' }, { exec: '/bin/missing' }, { exec: 'locked' }, \
                { exec: 'sh', health: { exec: 'missing', interval: 1, ttl: 2 } }, { exec: 'missing', cwd: '/x' }] }";
    assert!(faults(text).is_empty());
    let warnings = messages(text, Severity::Warning);
    assert_eq!(
        warnings,
        [
            "program `missing` not found in PATH",
            "program `/bin/missing` not found",
            "`locked` is not executable",
            "program `missing` not found in PATH"
        ]
    );
}

#[test]
fn p8_a_command_with_shell_syntax_is_a_warning() {
    let warnings = |exec: &str| messages(&format!("{{ jobs: [{{ exec: {exec} }}] }}"), Severity::Warning);
    for (exec, word) in [
        ("\"sh -c 'exit 7'\"", "'exit"),
        ("'sh -c \"exit\"'", "\"exit\""),
        ("'a && b'", "&&"),
        ("'a 2>&1 | b'", "2>&1"),
        ("'a > b'", ">"),
    ] {
        let expected = format!("`exec` is not run by a shell: `{word}` is passed as an argument");
        assert_eq!(warnings(exec), [expected], "{exec}");
    }
    for exec in ["\"it's a&b x|y\"", "['sh', '-c', \"'a' && b\"]", "'|'"] {
        assert_eq!(warnings(exec), [""; 0], "{exec}");
    }
}

#[test]
fn c5_a_misspelled_event_is_not_also_reported_as_missing() {
    let text =
        "{ jobs: [{ name: 'b', exec: 'y' }, { exec: 'x', when: { source: 'b', once: 'exitSucess' } }] }";
    assert_eq!(
        messages(text, Severity::Error),
        ["`once` must be the name of an event, not the string \"exitSucess\""]
    );
    assert_eq!(messages(text, Severity::Fault), [""; 0]);
}

#[test]
fn c7_a_key_without_effect_is_a_warning() {
    let warnings = |when: &str| {
        let text = format!("{{ jobs: [{{ name: 'a', exec: 'x', when: {when} }}] }}");
        assert!(faults(&text).is_empty());
        messages(&text, Severity::Warning)
    };
    assert_eq!(warnings("{ interval: '5s', source: 'zzz' }"), ["`source` has no effect with `interval`"]);
    assert_eq!(warnings("{ interval: '5s', timeout: 3 }"), ["`timeout` has no effect with `interval`"]);
    assert_eq!(
        warnings("{ source: 'SIGHUP', once: 'healthy' }"),
        ["`once` has no effect with the source SIGHUP"]
    );
    assert_eq!(
        warnings("{ source: 'a', any: [{ source: 'SIGUSR2', event: 'healthy' }] }"),
        ["`source` has no effect with `any`", "`event` has no effect with the source SIGUSR2"]
    );
    assert!(warnings("{ interval: '5s' }").is_empty() && warnings("{ source: 'SIGHUP' }").is_empty());
}

#[test]
fn c7_a_missing_program_is_named_with_its_user() {
    let text = "{ jobs: [{ name: 'app', exec: '/etc', health: { exec: 'missing', interval: 1, ttl: 2 } }], \
                coprocesses: [{ name: 'c', command: '/bin/missing' }] }";
    let shown = shown(&load_files(&[text], &host()));
    for words in [
        "`/etc` is a directory, not a program",
        "the check will fail unless the program exists when it runs",
        "the coprocess will fail unless the program exists when it runs",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    assert!(!shown.contains("chmod"), "{shown}");
}
