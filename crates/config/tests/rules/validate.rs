//! C7: configurations that are valid but can never work.

use containerpilot_config::diagnostics::Severity;

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load_with_program};

use super::support::{faults, host, host_with, load_files, messages, shown};

fn jobs(text: &str) -> Vec<String> {
    faults(&format!("{{ jobs: [{text}] }}"))
}

/// The warnings of jobs that `check` accepts without --strict.
fn job_warnings(text: &str) -> Vec<String> {
    assert_eq!(jobs(text), [""; 0]);
    messages(&format!("{{ jobs: [{text}] }}"), Severity::Warning)
}

#[test]
fn c7_an_unknown_source() {
    assert_eq!(
        jobs("{ exec: 'x', when: { source: 'ghost', once: 'healthy' } }"),
        ["unknown job or watch `ghost`"]
    );
    let once = "{ exec: 'x', when: { source: 'watch.db', once: 'changed' } }";
    assert_eq!(jobs(once), ["unknown watch `db`"]);
    assert_eq!(jobs("{ exec: 'x', when: { any: [{ source: 'ghost', event: 'healthy' }] } }").len(), 1);
}

/// A container without a job that only reacts does its work.
#[test]
fn c7_a_reaction_to_an_unknown_watch_is_a_warning() {
    let jobs = "{ exec: 'x' }, { exec: 'y', when: { source: 'watch.db', each: 'changed' } }";
    assert!(job_warnings(jobs).contains(&"unknown watch `db`".to_owned()));
}

#[test]
fn c9_every_warning_of_a_strict_report_is_a_fault() {
    let text = "{ jobs: [{ exec: 'x' }, { exec: 'y', when: { source: 'watch.db', each: 'changed' } }] }";
    let report = load_files(&[text], &host()).report;
    let warnings = report.count(Severity::Warning);
    let strict = report.strict();
    assert_eq!((strict.count(Severity::Warning), strict.count(Severity::Fault)), (0, warnings));
    assert!(warnings > 0);
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
    let health = |health: &str| job_warnings(&format!("{{ name: 'a', exec: 'x', health: {health} }}"));
    assert_eq!(health("{ interval: 10, ttl: 10 }"), ["`ttl` must be longer than `interval`"]);
    assert!(health("{ interval: 10, ttl: 11 }").is_empty());
    assert_eq!(health("{ interval: 10, ttl: 30, heartbeat: 30 }"), ["`ttl` must be longer than `heartbeat`"]);
    assert!(health("{ interval: 60, ttl: 30, heartbeat: 10 }").is_empty(), "`heartbeat` replaces `interval`");
}

#[test]
fn c7_two_advertised_jobs_with_the_same_name() {
    let job = "{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 2 } }";
    let warnings = job_warnings(&format!("{job}, {job}"));
    assert_eq!(warnings.last().unwrap(), "two jobs with a `port` are named `web`");
    let without_port = job_warnings("{ name: 'a', exec: 'x' }, { name: 'a', exec: 'y' }");
    assert_eq!(without_port, ["two jobs are named `a`"]);
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
fn s16_a_log_file_that_cannot_be_written_is_a_warning() {
    let job = |file: &str| format!("{{ jobs: [{{ exec: 'sh', logging: {{ file: '{file}' }} }}] }}");
    let warnings = messages(&job("/missing/a.log"), Severity::Warning);
    assert_eq!(warnings, ["log file `/missing/a.log` cannot be written: not a directory"]);
    assert!(messages(&job("/var/log/a.log"), Severity::Warning).is_empty());
}

#[test]
fn p8_a_command_with_shell_syntax_is_a_warning() {
    let warnings = |exec: &str| messages(&format!("{{ jobs: [{{ exec: {exec} }}] }}"), Severity::Warning);
    for (exec, word) in [
        ("\"sh -c 'exit 7'\"", "'exit"),
        ("'sh -c \"exit\"'", "\"exit\""),
        ("'a && b'", "&&"),
        ("'a 2>&1 b'", "2>&1"),
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
    let typo = "{ jobs: [{ name: 'a', exec: 'x', when: { interval: '5s', timeout: 'soon' } }] }";
    assert_eq!(messages(typo, Severity::Error).len(), 1, "not a duration");
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

/// The warnings about jobs, which have no faults.
fn warnings(jobs: &str) -> Vec<String> {
    let text = format!("{{ jobs: [{jobs}] }}");
    assert_eq!(faults(&text), [""; 0]);
    messages(&text, Severity::Warning)
}

#[test]
fn c7_a_stop_timeout_without_a_hook_is_a_warning() {
    let app = "{ name: 'app', exec: 'x', stopTimeout: '10s' }";
    assert_eq!(warnings(app), ["`stopTimeout` has no effect: nothing waits for `app` to be `stopping`"]);
    for when in [
        "{ source: 'app', once: 'stopping' }",
        "{ source: 'app', each: 'stopping' }",
        "{ any: [{ source: 'app', event: 'stopping' }, { event: 'shutdown' }] }",
    ] {
        assert_eq!(
            warnings(&format!("{app}, {{ name: 'hook', exec: 'y', when: {when} }}")),
            [""; 0],
            "{when}"
        );
    }
    let other = "{ name: 'hook', exec: 'y', when: { source: 'app', once: 'stopped' } }";
    assert_eq!(warnings(&format!("{app}, {other}")).len(), 1, "nothing waits for this hook");
    let broken = format!("{{ jobs: [{app}, {{ exec: 'y', when: {{ source: 'app', once: 'stoping' }} }}] }}");
    assert_eq!(messages(&broken, Severity::Warning), [""; 0], "the invalid job is probably the hook");
}

#[test]
fn c7_a_completion_that_never_comes_is_a_fault() {
    let never = "never stops the container: the job is restarted without limit";
    for key in ["onSuccess", "onFailure"] {
        let job = |more: &str| jobs(&format!("{{ name: 'a', exec: 'x', {key}: 'shutdown', {more} }}"));
        assert_eq!(job("restarts: 'unlimited'"), [format!("`{key}` {never}")]);
        let periodic = format!("`{key}` never stops the container: a periodic job runs without limit");
        assert_eq!(job("when: { interval: '1s' }"), [periodic]);
        assert_eq!(job("restarts: 3"), [""; 0]);
        assert_eq!(job("when: { interval: '1s' }, restarts: 3"), [""; 0]);
    }
    assert_eq!(jobs("{ name: 'a', exec: 'x', onSuccess: 'continue', restarts: 'unlimited' }"), [""; 0]);
}

#[test]
fn c7_a_drain_that_a_shutdown_cuts_is_a_warning() {
    let app = |drain: &str| format!("{{ name: 'app', exec: 'x', drain: '{drain}' }}");
    assert_eq!(warnings(&app("4s")), ["a shutdown cuts the `drain` of 4s to 3.75s"]);
    let program =
        |more: &str| warnings(&format!("{{ name: 'app', exec: 'x', drain: {{ exec: 'y' {more} }} }}"));
    assert_eq!(program(", timeout: '4s'"), ["a shutdown cuts the `drain` of 4s to 3.75s"]);
    assert!(program("").is_empty() && program(", timeout: '3s'").is_empty());
    assert_eq!(warnings(&app("3750ms")), [""; 0]);
    let hook = "{ name: 'hook', exec: 'y', when: { source: 'app', once: 'stopping' } }";
    assert_eq!(
        warnings(&format!("{}, {hook}", app("5s"))),
        [""; 0],
        "with hooks it is the whole stop timeout"
    );
    assert_eq!(warnings(&format!("{}, {hook}", app("6s"))), ["a shutdown cuts the `drain` of 6s to 5s"]);
}

#[test]
fn c7_a_job_without_exec_and_health_is_a_warning() {
    assert_eq!(
        warnings("{ name: 'a' }"),
        ["the job `a` has neither `exec` nor `health`, so it does nothing"]
    );
    assert_eq!(warnings("{ name: 'a', health: { tcp: 'localhost:80', interval: 1, ttl: 2 } }"), [""; 0]);
}

#[test]
fn c7_a_split_script_is_a_warning() {
    let exec = |exec: &str| warnings(&format!("{{ exec: {exec} }}"));
    let expected = "`sh` runs only `echo`: the words after it are not a part of the script";
    for split in ["'sh -c echo hi'", "'/bin/sh -ec echo hi'", "['sh', '-c', 'echo', 'hi']"] {
        assert_eq!(exec(split), [expected], "{split}");
    }
    for whole in
        ["'sh -c date'", "['sh', '-c', 'echo $0', 'hi']", "['sh', '-c', '\"$@\"', 'sh', 'x']", "'sh x.sh hi'"]
    {
        assert_eq!(exec(whole), [""; 0], "{whole}");
    }
}

#[test]
fn c7_a_variable_that_no_shell_replaces_is_a_warning() {
    let exec = |exec: &str| warnings(&format!("{{ exec: {exec} }}"));
    for command in ["'app -p $PORT'", "['app', '--port=${PORT}']", "'$PORT/app'"] {
        assert_eq!(exec(command), ["`$PORT` is passed as it is: no shell replaces it"], "{command}");
    }
    for command in
        ["['sh', '-c', 'app $PORT']", "['gosu', 'app', '/bin/sh', '-c', 'x $A']", "'app ^a$ $1 $x'"]
    {
        assert_eq!(exec(command), [""; 0], "{command}");
    }
    let check = "{ exec: 'x', health: { exec: 'probe $PORT', interval: 1, ttl: 2 } }";
    assert_eq!(warnings(check).len(), 1);
}

#[test]
fn l5_a_dollar_in_a_secret_is_not_shown() {
    let host = super::support::host_with(&[("DB_PASSWORD", "ab$HIDDEN9")]);
    let shown = shown(&load_files(&["{ jobs: [{ exec: ['x', '{{ .DB_PASSWORD }}'] }] }"], &host));
    assert!(shown.contains("no shell replaces it") && !shown.contains("HIDDEN9"), "{shown}");
}

#[test]
fn c7_a_missing_interpreter_is_a_warning() {
    assert_eq!(warnings("{ exec: 'script' }"), ["interpreter `/bin/missing` of `script` not found"]);
    let shown = shown(&load_files(&["{ jobs: [{ exec: 'windows' }] }"], &host()));
    assert!(shown.contains("interpreter `/bin/sh\\r` of `windows` not found"), "{shown}");
    assert!(shown.contains("the script has Windows line endings"), "{shown}");
}

#[test]
fn c7_a_missing_directory_is_a_warning() {
    assert_eq!(warnings("{ exec: 'x', cwd: '/missing' }"), ["directory `/missing` not found"]);
    assert_eq!(warnings("{ exec: 'x', cwd: '/srv' }, { exec: 'y', cwd: '' }"), [""; 0]);
}

#[test]
fn c7_a_user_without_root_is_a_warning() {
    let host = StaticHost { unprivileged: true, ..host() };
    let found = |keys: &str| {
        let loaded = load_files(&[&format!("{{ jobs: [{{ exec: 'x', {keys} }}] }}")], &host);
        assert!(loaded.plan.is_some());
        let problems = loaded.report.problems().iter();
        problems.map(|one| (one.problem.severity, one.problem.message.clone())).collect::<Vec<_>>()
    };
    let warning = |to: &str| [(Severity::Warning, format!("no permission to switch to {to}"))];
    assert_eq!(found("user: 'app'"), warning("user `app`"));
    assert_eq!(found("user: 'app', group: 'www'"), warning("user `app`"));
    assert_eq!(found("group: 'www'"), warning("group `www`"));
    assert_eq!(found(""), []);
}

#[test]
fn c5_a_backslash_in_a_template_value_is_reported_but_not_changed() {
    let host = host_with(&[("PW", r"p\nw\z"), ("PLAIN", "x")]);
    let warnings = |value: &str| {
        let text = format!("{{ jobs: [{{ name: 'a', exec: ['x', {value}] }}] }}");
        let loaded = load_files(&[&text], &host);
        let argument = loaded.plan.as_ref().unwrap().jobs[0].exec.program().unwrap().arguments[0].clone();
        (loaded.report.count(Severity::Warning), argument.text().into_owned(), shown(&loaded))
    };
    for read in ["'{{ .PW }}'", "'{{ .PLAIN }}{{ .PW }}'", "'{{ with .PLAIN }}{{ $.PW }}{{ end }}'"] {
        let (count, argument, report) = warnings(read);
        assert_eq!((count, argument.replace("x", "").as_str()), (1, "p\nwz"), "{read}: {report}");
        assert!(!report.contains("rendered"), "the log does not show what may be a password: {report}");
    }
    let (_, _, report) = warnings("'{{ .PW }}'");
    assert!(report.contains("the value of PW contains a backslash, which is read as an escape"), "{report}");
    assert!(report.contains("write {{ js .PW }} to escape it"), "{report}");
    for kept in
        ["'{{ js .PW }}'", "'{{ .PW | js }}'", "{{ printf \"%q\" .PW }}", "'{{ $x := js .PW }}{{ $x }}'"]
    {
        let (count, argument, report) = warnings(kept);
        assert_eq!((count, argument.as_str()), (0, r"p\nw\z"), "{kept}: {report}");
    }
}

#[test]
fn c7_a_watch_of_a_service_that_is_not_in_the_embedded_catalog() {
    let warnings = |rest: &str, tag: &str| {
        let text = format!("{{ watches: [{{ name: 'db', interval: 1, tag: '{tag}' }}], {rest} }}");
        let all = messages(&text, Severity::Warning);
        all.into_iter().filter(|message| message.contains("never sees a service")).collect::<Vec<_>>()
    };
    let waits = "{ name: 'a', exec: 'x', when: { source: 'watch.db', once: 'healthy' } }";
    let db = "{ name: 'db', exec: 'y', port: 5, tags: ['one'], health: { interval: 1, ttl: 5 } }";
    let expected =
        "the watch `db` never sees a service: no job named `db` has a `port`, and there is no `consul`";
    assert_eq!(warnings(&format!("jobs: [{waits}]"), ""), [expected]);
    assert_eq!(
        warnings(&format!("jobs: [{waits}, {db}]"), "two"),
        [expected.replace("`port`", "`port` and the tag `two`")]
    );
    assert!(warnings(&format!("jobs: [{waits}, {db}]"), "one").is_empty());
    assert!(warnings(&format!("consul: 'c', jobs: [{waits}]"), "").is_empty());
}

#[test]
fn c7_a_configuration_without_jobs() {
    for text in [
        "{}",
        "{ jobs: [] }",
        "{ coprocesses: [{ name: 'a', command: 'x' }] }",
        "{ telemetry: { port: 9090 } }",
    ] {
        let warnings = messages(text, Severity::Warning);
        assert!(warnings.contains(&"the configuration has no jobs".to_owned()), "{text}: {warnings:?}");
    }
    assert!(messages("{ jobs: [{ name: 'a', exec: 'x' }] }", Severity::Warning).is_empty());
    // The program on the command line is a job.
    let input = ConfigFile { name: "0.json5".to_owned(), text: b"{}".to_vec() };
    let program = ["x".to_owned()];
    let loaded = load_with_program(vec![input], &host(), Options { version: "1" }, Some(&program));
    assert!(loaded.report.problems().is_empty());
}

#[test]
fn c7_all_words_for_a_shell_are_named() {
    let exec =
        |exec: &str| messages(&format!("{{ jobs: [{{ name: 'a', exec: {exec} }}] }}"), Severity::Warning);
    assert_eq!(
        exec("\"echo 'a b' && id; echo $HOME > x $(date) $HOME\""),
        [
            "`exec` is not run by a shell: `'a`, `&&`, `id;`, `$HOME`, `>` and `$(date)` are passed as arguments"
        ]
    );
    assert_eq!(
        exec("['echo', '$HOME:${PORT}', '$HOME']"),
        ["`$HOME` and `$PORT` are passed as they are: no shell replaces them"]
    );
}

#[test]
fn c5_every_bad_argument_is_reported() {
    let errors = messages("{ jobs: [{ name: 'a', exec: ['true', {}, null, [1]] }] }", Severity::Error);
    let found = ["an object", "null", "a list"];
    assert_eq!(errors, found.map(|found| format!("an argument in `exec` must be a string, not {found}")));
}

#[test]
fn c3_a_key_that_is_written_twice_is_a_warning_with_both_places() {
    let report = |text: &str| shown(&load_files(&[text], &host()));
    let twice = report(
        "{ jobs: [{ name: 'a', exec: 'x' }],\n  jobs: [{ name: 'b', Exec: 'x', env: { A: 1, A: 2 }, exec: 'y' }] }",
    );
    for (message, first, second) in [
        ("`jobs` is written twice, and the last one counts", "0.json5:1:3", "0.json5:2:3"),
        ("`exec` is written twice, and the last one counts", "0.json5:2:23", "0.json5:2:55"),
        ("`A` is written twice, and the last one counts", "0.json5:2:41", "0.json5:2:47"),
    ] {
        let place = format!("warning: {message}\n --> {first}\n");
        let help = format!("remove one of them; the other one is at {second}\n");
        assert!(twice.contains(&place) && twice.contains(&help), "{place}{help}{twice}");
    }
    assert_eq!(report("{ jobs: [{ name: 'a', exec: 'x', 'x-a': 1, 'x-a': 2 }] }"), "");
}

#[test]
fn c5_a_misspelled_key_beside_the_right_one_hides_no_unknown_source() {
    let both = |text: &str| {
        let loaded = load_files(&[text], &host());
        (loaded.report.count(Severity::Error), loaded.report.count(Severity::Fault))
    };
    let waits = "{ name: 'a', exec: 'x', when: { source: 'ghost', once: 'exitSuccess' } }";
    assert_eq!(both(&format!("{{ jobs: [{waits}], Jobs: [] }}")), (1, 1));
    // The source may be in what could not be read.
    assert_eq!(both(&format!("{{ jobs: [{waits}, 5] }}")), (1, 0));
    let watch = waits.replace("ghost", "watch.db").replace("exitSuccess", "healthy");
    assert_eq!(both(&format!("{{ jobs: [{watch}], Watches: [] }}")), (1, 0));
}

#[test]
fn d1_a_scheme_without_its_colon_is_no_address() {
    for address in ["http//x", "https//consul:8500", "unix//run/consul.sock", "http/x"] {
        let found = faults(&format!("{{ consul: '{address}', jobs: [{{ name: 'a', exec: 'x' }}] }}"));
        assert_eq!(found, [format!("invalid Consul address `{address}`")]);
    }
    for address in ["http", "http:8500/prefix", "http://http:8500", "consul/prefix"] {
        assert!(faults(&format!("{{ consul: '{address}', jobs: [{{ name: 'a', exec: 'x' }}] }}")).is_empty());
    }
}

#[test]
fn c5_misspelled_names_get_a_suggestion() {
    let report = |keys: &str| {
        shown(&load_files(&[&format!("{{ jobs: [{{ name: 'a', exec: 'x', {keys} }}] }}")], &host()))
    };
    for (keys, help) in [
        ("stopSignal: 'SIGTREM'", "did you mean \"SIGTERM\"?"),
        ("stopSignal: 'qiut'", "did you mean \"SIGQUIT\"?"),
        ("stopSignal: 'x'", "for example: \"SIGINT\""),
        ("when: { source: 'SIGTREM' }", "did you mean SIGTERM? write when: { once: \"shutdown\" }"),
        ("when: { source: 'SIGHPU' }", "did you mean \"SIGHUP\"?"),
        ("user: 'appp'", "did you mean \"app\"?"),
        ("group: 'wwww'", "did you mean \"www\"?"),
        ("user: 'someone'", "create it in the image"),
        ("when: { all: [{ source: 'a', once: 'exitSuccess' }] }", "did you mean `event`?"),
    ] {
        let shown = report(keys);
        assert!(shown.contains(help) && shown.matches("error: ").count() == 1, "{keys}: {shown}");
    }
    assert_eq!(report("user: 'appp', group: 'wwww'").matches("error: ").count(), 2);
}

#[test]
fn e1_a_job_whose_events_cannot_be_named_is_a_warning() {
    let named = |name: &str, rest: &str| {
        messages(&format!("{{ jobs: [{{ name: '{name}', exec: 'x' }}]{rest} }}"), Severity::Warning)
    };
    for (name, taken) in [
        ("global", "is the source of the supervisor's own events"),
        ("SIGHUP", "is a signal"),
        ("watch.db", "is the name of a watch"),
    ] {
        assert_eq!(
            named(name, ""),
            [format!("no job can wait for the job `{name}`: as a source, this {taken}")]
        );
    }
    let telemetry = ", telemetry: { port: 9090, interfaces: 'lo' }";
    assert_eq!(
        named("containerpilot", telemetry),
        ["the telemetry server is a job named `containerpilot`, too"]
    );
    assert!(named("containerpilot", "").is_empty() && named("SIGTERM", "").is_empty());
}

#[test]
fn p9_ids_and_variables_that_cannot_be_set_are_errors() {
    let errors =
        |keys: &str| messages(&format!("{{ jobs: [{{ name: 'a', exec: 'x', {keys} }}] }}"), Severity::Error);
    for id in ["99999999999", "4294967295"] {
        assert_eq!(errors(&format!("group: {id}")), [format!("`group` is too large: {id}")]);
    }
    assert!(errors("user: 4294967294").is_empty());
    for name in ["C D", "A\\n", " "] {
        let expected = "a name in `env` must not contain whitespace or a control character";
        assert_eq!(errors(&format!("env: {{ '{name}': 1 }}")), [expected]);
    }
    assert!(errors("env: { 'a.b-c': 1 }").is_empty());
}
