//! P5, P8, P9, W1–W12, S1–S5, H1–H8, L1, X1: the plan of every field.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Backoff, Command, Drain, EventPattern, HttpProbe, HttpTarget, Level, Limit, LimitedResource,
    OnCompletion, OnUnhealthy, Output, Principal, Probe, Repeat, Restarts, Signal, StatusRange, Trigger,
};

use super::support::{errors, job, job_errors, plan};

fn event(source: Source, code: Code) -> EventPattern {
    EventPattern { source, code }
}

fn trigger(when: &str) -> Trigger {
    job(&format!("name: 'a', exec: 'x', when: {when}")).when.trigger
}

#[test]
fn w1_without_when_a_job_runs_once_at_startup() {
    let startup = Trigger::Event { event: event(Source::Global, Code::Startup), repeat: Repeat::Once };
    assert_eq!(job("exec: 'x'").when.trigger, startup);
    assert_eq!(trigger("{ once: 'startup' }"), startup);
    assert_eq!(trigger("{ event: 'startup' }"), startup);
}

#[test]
fn w2_once_and_each_exclude_each_other() {
    let from = |source: &str, code, repeat| Trigger::Event {
        event: event(Source::Job(source.into()), code),
        repeat,
    };
    assert_eq!(trigger("{ source: 'b', once: 'healthy' }"), from("b", Code::Healthy, Repeat::Once));
    assert_eq!(trigger("{ source: 'b', each: 'exitFailed' }"), from("b", Code::ExitFailed, Repeat::Each));
    for both in [
        "{ once: 'startup', each: 'shutdown' }",
        "{ interval: 1, once: 'startup' }",
        "{ interval: 1, each: 'startup' }",
        "{ event: 'startup', once: 'startup' }",
        "{ all: [{ event: 'startup' }], any: [{ event: 'startup' }] }",
        "{ all: [{ event: 'startup' }], interval: 1 }",
    ] {
        assert_eq!(job_errors(&format!("name: 'a', exec: 'x', when: {both}")).len(), 1, "{both}");
    }
}

#[test]
fn w3_a_signal_starts_the_job_every_time() {
    for when in [
        "{ source: 'SIGUSR2' }",
        "{ source: 'SIGUSR2', once: 'healthy' }",
        "{ source: 'SIGUSR2', each: 'stopped' }",
    ] {
        let expected = event(Source::Signal(Signal::USR2), Code::Signal);
        assert_eq!(trigger(when), Trigger::Event { event: expected, repeat: Repeat::Each }, "{when}");
    }
}

#[test]
fn w4_an_interval_is_at_least_1_ms_and_unlimited() {
    let job = job("name: 'a', exec: 'x', when: { interval: '1ms' }");
    assert_eq!(job.when.trigger, Trigger::every(Duration::from_millis(1)));
    assert_eq!((job.restarts, job.timeout), (Restarts::Unlimited, Some(Duration::from_millis(1))));
    assert_eq!(job_errors("name: 'a', exec: 'x', when: { interval: '999us' }").len(), 1);
}

#[test]
fn w5_the_timeout_of_waiting() {
    let job = job("name: 'a', exec: 'x', when: { once: 'shutdown', timeout: 60 }");
    assert_eq!(job.when.timeout, Some(Duration::from_secs(60)));
}

#[test]
fn w6_restarts() {
    let restarts = |text: &str| job(&format!("exec: 'x', restarts: {text}")).restarts;
    for (text, limit) in [("'never'", 0), ("0", 0), ("3", 3), ("'3'", 3), ("'03'", 3), ("1.9", 1)] {
        assert_eq!(restarts(text), Restarts::Limited(limit), "{text}");
    }
    assert_eq!(restarts("'unlimited'"), Restarts::Unlimited);
    for bad in ["'always'", "-1", "true", "''", "[]", "'UNLIMITED'"] {
        assert_eq!(job_errors(&format!("exec: 'x', restarts: {bad}")).len(), 1, "{bad}");
    }
    let each = "exec: 'x', restarts: 'unlimited', when: { source: 'b', each: 'healthy' }";
    assert_eq!(job_errors(each).len(), 1);
}

#[test]
fn w8_backoff() {
    let backoff = |text: &str| job(&format!("exec: 'x' {text}")).backoff;
    let time = Duration::from_millis;
    let usual = Backoff { initial: time(100), max: time(10_000), reset: time(10_000) };
    assert_eq!(usual, Backoff::DEFAULT);
    assert_eq!(backoff(""), Some(usual));
    assert_eq!(backoff(", restartBackoff: { max: '1m' }"), Some(Backoff { max: time(60_000), ..usual }));
    assert_eq!(backoff(", restartBackoff: true"), Some(usual));
    assert_eq!(backoff(", restartBackoff: false"), None);
    assert_eq!(job_errors("exec: 'x', restartBackoff: { initial: '20s' }").len(), 1);
    assert_eq!(job_errors("exec: 'x', restartBackoff: 'on'").len(), 1);
}

#[test]
fn w12_all_and_any() {
    let conditions = "[{ source: 'b', event: 'healthy' }, { source: 'SIGHUP' }, { event: 'startup' }]";
    let expected = vec![
        event(Source::Job("b".into()), Code::Healthy),
        event(Source::Signal(Signal::HUP), Code::Signal),
        event(Source::Global, Code::Startup),
    ];
    assert_eq!(
        trigger(&format!("{{ all: {conditions} }}")),
        Trigger::All { conditions: expected.clone(), repeat: Repeat::Once }
    );
    assert_eq!(
        trigger(&format!("{{ any: {conditions}, each: true }}")),
        Trigger::Any { conditions: expected, repeat: Repeat::Each }
    );
    for bad in [
        "{ all: [] }",
        "{ any: [{ source: 'b' }] }",
        "{ any: [{ event: 'startup' }], each: 'healthy' }",
        "{ each: true }",
    ] {
        assert_eq!(job_errors(&format!("name: 'a', exec: 'x', when: {bad}")).len(), 1, "{bad}");
    }
}

#[test]
fn e1_a_source_can_be_the_name_of_a_watch() {
    let text = "{ jobs: [{ name: 'a', exec: 'x', when: { source: 'db', once: 'healthy' } }], watches: [{ name: 'db', interval: 1 }] }";
    let expected =
        Trigger::Event { event: event(Source::Watch("db".into()), Code::Healthy), repeat: Repeat::Once };
    assert_eq!(plan(text).jobs[0].when.trigger, expected);
    let both = text
        .replace("watches", "'x-y': 1, watches")
        .replace("jobs: [", "jobs: [{ name: 'db', exec: 'y', health: { interval: 1, ttl: 2 } }, ");
    let expected =
        Trigger::Event { event: event(Source::Job("db".into()), Code::Healthy), repeat: Repeat::Once };
    assert_eq!(plan(&both).jobs[1].when.trigger, expected);
}

#[test]
fn p5_timeouts() {
    let timeout = |text: &str| job(&format!("name: 'a', exec: 'x', {text}")).timeout;
    assert_eq!(timeout("timeout: '2s'"), Some(Duration::from_secs(2)));
    assert_eq!(timeout("timeout: 'never', when: { interval: 5 }"), None);
    assert_eq!(timeout("timeout: '', when: { interval: 5 }"), Some(Duration::from_secs(5)));
    assert_eq!(job_errors("exec: 'x', timeout: '0'").len(), 1);
}

#[test]
fn p8_a_string_is_split_at_spaces_and_a_list_is_not() {
    let words = |text: &str| {
        let Command { program, arguments } =
            job(&format!("name: 'a', exec: {text}")).exec.program().cloned().unwrap();
        [vec![program], arguments].concat()
    };
    assert_eq!(words(r#""echo 'a b' && true""#), ["echo", "'a", "b'", "&&", "true"]);
    assert_eq!(words("'  a   b  '"), ["a", "b"]);
    assert_eq!(
        words("['sleep', 10, 1000000, 0.5, true, '', 'a b']"),
        ["sleep", "10", "1000000", "0.5", "true", "", "a b"]
    );
    for bad in ["''", "' '", "[]", "['']", "5", "{}", "true", "['a', null]", "['a', ['b']]", "'a\\0b'"] {
        assert_eq!(job_errors(&format!("name: 'a', exec: {bad}")).len(), 1, "{bad}");
    }
}

#[test]
fn p9_user_environment_and_limits_of_a_process() {
    let process = job(
        "exec: 'x', user: 'app', group: 33, cwd: '/srv', env: { A: 1, B: 'two' }, umask: '027', noNewPrivileges: true, \
         limits: { nofile: 1024, core: 'unlimited', nproc: [10, '20'] }",
    )
    .process;
    assert_eq!((process.user, process.group), (Some(Principal::Name("app".into())), Some(Principal::Id(33))));
    assert_eq!(
        (process.cwd.as_deref(), process.umask, process.no_new_privileges),
        (Some("/srv"), Some(0o027), true)
    );
    assert_eq!(process.env, [("A".into(), "1".into()), ("B".into(), "two".into())].into());
    let limit = |resource, soft, hard| Limit { resource, soft, hard };
    assert_eq!(
        process.limits,
        [
            limit(LimitedResource::Nofile, Some(1024), Some(1024)),
            limit(LimitedResource::Core, None, None),
            limit(LimitedResource::Nproc, Some(10), Some(20))
        ]
    );
    for bad in [
        "user: 'nobody-here'",
        "group: 'nobody-here'",
        "user: ''",
        "umask: 22",
        "umask: '8'",
        "umask: '7777'",
        "limits: { files: 1 }",
        "limits: { nofile: 'x' }",
        "limits: { nofile: [2, 1] }",
        "limits: { nofile: [1] }",
        "env: { 'A=B': 1 }",
        "env: 'A=1'",
        "noNewPrivileges: 'yes'",
    ] {
        assert_eq!(job_errors(&format!("exec: 'x', {bad}")).len(), 1, "{bad}");
    }
}

#[test]
fn s11_drain_may_be_a_program() {
    let drain = |text: &str| job(&format!("exec: 'x', drain: {text}")).stop.drain;
    let program = Command { program: "drain".into(), arguments: vec!["now".into()] };
    let until = |timeout| Drain::Until { program: program.clone(), timeout };
    assert_eq!(drain("{ exec: 'drain now', timeout: '2s' }"), until(Some(Duration::from_secs(2))));
    assert_eq!(drain("{ exec: ['drain', 'now'] }"), until(None));
    assert_eq!(drain("3"), Drain::For(Duration::from_secs(3)));
    let replicas = super::support::plan(
        "{ jobs: [{ name: 'a', exec: 'x', replicas: 2, drain: { exec: 'drain $CONTAINERPILOT_REPLICA' } }] }",
    );
    assert_eq!(replicas.jobs[1].stop.drain.program().unwrap().arguments, ["2"]);
    for (bad, message) in [
        ("{}", "`drain` needs `exec`"),
        ("{ timeout: '1s' }", "`drain` needs `exec`"),
        ("{ exec: 'x', timeout: 0 }", "`timeout` must be at least 1ms"),
        ("{ exec: 'x', timeout: 'soon' }", "timeout"),
        ("{ exec: '' }", "exec"),
        ("['x']", "`drain` must be a duration, not a list"),
    ] {
        let errors = job_errors(&format!("exec: 'x', drain: {bad}"));
        assert!(errors.len() == 1 && errors[0].contains(message), "{bad}: {errors:?}");
    }
}

#[test]
fn s2_signal_timeout_and_drain_of_a_stop() {
    let stop = job("exec: 'x', stopTimeout: '9s', stopSignal: 'SIGQUIT', drain: '3s'").stop;
    assert_eq!(
        (stop.hook_timeout, stop.signal, stop.drain),
        (Some(Duration::from_secs(9)), Signal(3), Drain::For(Duration::from_secs(3)))
    );
    let usual = job("exec: 'x'").stop;
    assert_eq!((usual.hook_timeout, usual.signal, usual.drain), (None, Signal::TERM, Drain::NONE));
    for (text, number) in [("'int'", 2), ("'SIGRTMIN+3'", 37), ("10", 10)] {
        assert_eq!(job(&format!("exec: 'x', stopSignal: {text}")).stop.signal, Signal(number));
    }
    for bad in ["'SIGNOPE'", "0", "65", "''"] {
        assert_eq!(job_errors(&format!("exec: 'x', stopSignal: {bad}")).len(), 1, "{bad}");
    }
}

#[test]
fn s4_the_global_stop_timeout() {
    let time = |text: &str| plan(&format!("{{ stopTimeout: {text} }}")).stop_timeout.as_millis();
    for (text, expected) in
        [("0", 5_000), ("30", 30_000), ("'30'", 30_000), ("'1m'", 60_000), ("'250ms'", 250), ("-1", 0)]
    {
        assert_eq!(time(text), expected, "{text}");
    }
    assert_eq!(plan("{}").stop_timeout.as_secs(), 5);
    for bad in ["''", "'soon'", "[5]", "{}", "1e300", "NaN"] {
        assert_eq!(errors(&format!("{{ stopTimeout: {bad} }}")).len(), 1, "{bad}");
    }
}

#[test]
fn s5_shutdown_on_failure_or_success() {
    let job = job("exec: 'x', onFailure: 'shutdown', onSuccess: 'continue'");
    assert_eq!((job.on_failure, job.on_success), (OnCompletion::Shutdown, OnCompletion::Continue));
    assert_eq!(job_errors("exec: 'x', onFailure: 'restart'").len(), 1);
}

#[test]
fn h1_a_check_with_its_defaults() {
    let health =
        job("name: 'web', exec: 'x', health: { exec: 'check it', interval: 10, ttl: 30 }").health.unwrap();
    let check = &health.checks[0];
    assert_eq!((check.name.as_str(), check.timeout.as_secs(), check.failures), ("check.web", 10, 1));
    assert_eq!(check.probe, Probe::Exec(Command { program: "check".into(), arguments: vec!["it".into()] }));
    for none in ["0", "'0s'", "'-1s'"] {
        let text = format!(
            "name: 'web', exec: 'x', health: {{ exec: 'c', interval: 10, ttl: 30, timeout: {none} }}"
        );
        assert_eq!(job(&text).health.unwrap().checks[0].timeout.as_secs(), 10, "{none}");
    }
    for bad in [
        "{}",
        "{ ttl: 5 }",
        "{ interval: 0, ttl: 5 }",
        "{ interval: 5, ttl: -1 }",
        "{ interval: '1us', ttl: 5 }",
        "[]",
        "'x'",
    ] {
        assert!(!job_errors(&format!("name: 'web', exec: 'x', health: {bad}")).is_empty(), "{bad}");
    }
}

#[test]
fn h2_a_list_of_checks() {
    let health = job(
        "name: 'web', exec: 'x', health: [{ name: 'port', tcp: '127.0.0.1:80', interval: 1, ttl: 5 }, { exec: 'y', interval: 2 }]",
    )
    .health
    .unwrap();
    let names: Vec<_> = health.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!((names, health.ttl.as_secs()), (vec!["port", "check.web.2"], 5));
}

#[test]
fn h14_ttl_is_three_intervals_but_at_least_ten_seconds() {
    let ttl = |health: &str| job(&format!("name: 'web', exec: 'x', health: {health}")).health.unwrap().ttl;
    for (health, seconds) in [
        ("{ interval: 5 }", 15),
        ("{ interval: 1 }", 10),
        ("{ interval: '1h' }", 3 * 3600),
        ("[{ interval: 1 }, { interval: 20 }]", 60),
        ("[{ interval: 1, ttl: 2 }, { interval: 20 }]", 2),
    ] {
        assert_eq!(ttl(health).as_secs(), seconds, "{health}");
    }
    // The longest interval that can be written has one, too.
    assert!(!job_errors("name: 'web', exec: 'x', health: { interval: 5, ttl: 0 }").is_empty());
}

#[test]
fn h5_http_and_tcp() {
    let probe = |text: &str| {
        job(&format!("exec: 'x', health: {{ {text}, interval: 1, ttl: 2 }}"))
            .health
            .unwrap()
            .checks
            .remove(0)
            .probe
    };
    let http = |host: &str, port, path: &str| {
        Probe::Http(HttpProbe::get(HttpTarget { https: false, host: host.into(), port, path: path.into() }))
    };
    assert_eq!(probe("http: 'http://127.0.0.1:8000/health?a=1#x'"), http("127.0.0.1", 8000, "/health?a=1"));
    assert_eq!(probe("http: 'http://localhost'"), http("localhost", 80, "/"));
    assert_eq!(probe("http: 'http://[::1]:9/'"), http("::1", 9, "/"));
    assert_eq!(probe("tcp: '[::1]:5432'"), Probe::Tcp { host: "::1".into(), port: 5432 });
    for bad in [
        "http: 'unix:///x'",
        "http: 'x'",
        "http: 5",
        "http: ['http://x']",
        "http: 'http://'",
        "http: 'http://a b/'",
        "http: 'http://x:0/'",
        "tcp: 'x'",
        "tcp: ':80'",
        "tcp: '::1:80'",
        "tcp: 'x:99999'",
        "exec: 'x', tcp: 'x:80'",
    ] {
        assert_eq!(
            job_errors(&format!("exec: 'x', health: {{ {bad}, interval: 1, ttl: 2 }}")).len(),
            1,
            "{bad}"
        );
    }
}

#[test]
fn h10_a_request_with_method_headers_status_and_body() {
    let probe = |text: &str| {
        let health = format!("exec: 'x', health: {{ http: {{ {text} }}, interval: 1, ttl: 2 }}");
        let Probe::Http(probe) = job(&health).health.unwrap().checks.remove(0).probe else {
            panic!("{text}")
        };
        probe
    };
    let full = probe(
        "url: 'https://[::1]/a', method: 'post', headers: { Accept: 'a/b', X: 1 }, status: [200, '5xx', '404', 200], body: '^ok$'",
    );
    assert_eq!(full.to_string(), "POST https://[::1]:443/a");
    assert_eq!(full.headers, [("Accept".into(), "a/b".into()), ("X".into(), "1".into())]);
    assert_eq!(full.status, [StatusRange::Code(200), StatusRange::Class(5), StatusRange::Code(404)]);
    assert_eq!((full.body.as_deref(), full.ca_file), (Some("^ok$"), None));
    let plain = probe("url: 'http://x/'");
    assert_eq!(plain, HttpProbe::get(plain.target.clone()));

    for (bad, message) in [
        ("", "`http` needs `url`"),
        ("url: 'ftp://x'", "`url` must be a URL that starts with http:// or https://"),
        ("url: 'http://x', method: 'FETCH'", "`method` must be \"GET\", \"HEAD\""),
        ("url: 'http://x', status: [99]", "`status` must contain codes from 100 to 599"),
        ("url: 'http://x', status: ['6xx']", "not the string \"6xx\""),
        ("url: 'http://x', status: ['2x']", "not the string \"2x\""),
        ("url: 'http://x', status: [200.5]", "not the number 200.5"),
        ("url: 'http://x', status: []", "`status` is empty, so that no response could be a success"),
        ("url: 'http://x', status: 200", "`status` must be a list, not the number 200"),
        ("url: 'http://x', body: '('", "`body` is not a regular expression: "),
        ("url: 'http://x', body: 'a', method: 'HEAD'", "the response to HEAD has no body"),
        (r"url: 'http://x', headers: { A: 'b\nC: d' }", "the header `A` contains a newline"),
        ("url: 'http://x', headers: { 'A:': 'b' }", "`A:` in `headers` is not a valid name of a header"),
        ("url: 'http://x', headers: { a: 'b', A: 'c' }", "`A` in `headers` is written twice"),
        ("url: 'http://x', headers: { Connection: 'b' }", "`Connection` in `headers` cannot be set"),
        ("url: 'http://x', headers: ['a']", "`headers` must be an object, not a list"),
        ("url: 'https://x', cafile: '/no/such'", "cannot read `/no/such`: no such file or directory"),
        ("url: 'http://x', cafile: '/no/such'", "`cafile` needs a URL with https://"),
    ] {
        let errors = job_errors(&format!("exec: 'x', health: {{ http: {{ {bad} }}, interval: 1, ttl: 2 }}"));
        assert!(errors.len() == 1 && errors[0].contains(message), "{bad}: {errors:?}");
    }
    let many = (0..65).map(|nth| format!("h{nth}: 1")).collect::<Vec<_>>().join(", ");
    let errors = job_errors(&format!(
        "exec: 'x', health: {{ http: {{ url: 'http://x', headers: {{ {many} }} }}, interval: 1, ttl: 2 }}"
    ));
    assert_eq!(errors, ["`headers` has more than 64 headers or 8 KiB"]);
}

#[test]
fn h6_h8_heartbeat_failures_and_restart() {
    let health =
        job("exec: 'x', health: { interval: 1, ttl: 9, heartbeat: 3, failures: 4, onUnhealthy: 'restart' }")
            .health
            .unwrap();
    assert_eq!((health.heartbeat.unwrap().as_secs(), health.checks[0].failures), (3, 4));
    assert_eq!(health.on_unhealthy, OnUnhealthy::Restart);
    for bad in ["heartbeat: 0", "failures: 0", "onUnhealthy: 'explode'"] {
        assert_eq!(
            job_errors(&format!("exec: 'x', health: {{ interval: 1, ttl: 9, {bad} }}")).len(),
            1,
            "{bad}"
        );
    }
}

#[test]
fn l1_l2_logging() {
    let logging = plan("{ logging: { level: 'WARNING', output: '/var/log/cp.log' } }").logging;
    assert_eq!((logging.level, logging.output), (Level::Warn, Output::File("/var/log/cp.log".into())));
    assert_eq!(errors("{ logging: { level: 'trace' } }").len(), 1);
    assert!(job("exec: 'x', logging: { raw: 'true' }").output.is_raw());
}

#[test]
fn b1_b2_record() {
    use containerpilot_core::plan::{LogFile, Record};
    let file = |path: &str, max_size: u64, keep| {
        Some(LogFile { path: path.into(), max_size: std::num::NonZeroU64::new(max_size), keep })
    };
    let record = |text: &str| plan(&format!("{{ {text} jobs: [{{ exec: 'x' }}] }}")).record;
    assert_eq!(record(""), Record { memory: 256 << 10, file: None });
    assert_eq!(record("record: { memory: 0 },"), Record { memory: 0, file: None });
    assert_eq!(
        record("record: { memory: '1MB', file: '/r' },"),
        Record { memory: 1 << 20, file: file("/r", 10 << 20, 5) }
    );
    assert_eq!(record("record: { file: '/a/r', maxSize: 0, keep: 0 },").file, file("/a/r", 0, 0));
    for (wrong, message) in [
        ("memory: 1000", "`memory` must be at least 128KB"),
        ("memory: '1GB'", "`memory` must be at most 32MB"),
        ("file: '/r', maxSize: 1000", "`maxSize` must be at least 128KB"),
        ("file: 'r'", "`file` must be the absolute path of a file, not `r`"),
        ("file: '/r/'", "`file` must be the absolute path of a file, not `/r/`"),
        ("maxSize: '1MB'", "`maxSize` needs `file`"),
        ("keep: 2", "`keep` needs `file`"),
        ("memory: 0, file: '/r'", "`file` needs `memory`: what is recorded is there first"),
    ] {
        let found = errors(&format!("{{ record: {{ {wrong} }}, jobs: [{{ exec: 'x' }}] }}"));
        assert_eq!(found, [message], "{wrong}");
    }
    let two = "{ record: { file: '/r' }, jobs: [{ name: 'a', exec: 'x', logging: { file: '/r' } }] }";
    assert_eq!(errors(two), ["`/r` is the file of the recording, too"]);
    let old = "{ record: { file: '/r' }, jobs: [{ name: 'a', exec: 'x', logging: { file: '/r.5' } }] }";
    assert_eq!(errors(old), ["`/r.5` is the name of an old file of the recording"]);
}

#[test]
fn l8_logging_of_a_job() {
    use containerpilot_core::plan::{JobLogging, JobOutput, LogFile};
    let output = |logging: &str| job(&format!("exec: 'x', logging: {logging}")).output;
    assert_eq!(job("exec: 'x'").output, JobOutput::default());
    assert_eq!(output("{}"), JobOutput::default());
    let file = |path: &str, max_size: u64, keep| {
        Some(LogFile { path: path.into(), max_size: std::num::NonZeroU64::new(max_size), keep })
    };
    let logged = |file| JobOutput::Logged(JobLogging { file, ..JobLogging::default() });
    assert_eq!(output("{ file: '/a' }"), logged(file("/a", 10 << 20, 5)));
    assert_eq!(output("{ file: '/a', maxSize: '1GB', keep: 0 }"), logged(file("/a", 1 << 30, 0)));
    assert_eq!(output("{ file: '/a', maxSize: 0 }"), logged(file("/a", 0, 5)));
    let JobOutput::Logged(logging) = output("{ stderr: 'WARN', join: '^\\\\s' }") else { panic!("raw") };
    assert_eq!((logging.stderr, logging.join.as_deref()), (Level::Warn, Some("^\\s")));
    let jobs = plan("{ jobs: [{ name: 'a', exec: 'x', replicas: 2, logging: { file: '/${CONTAINERPILOT_REPLICA}.log' } }] }").jobs;
    let paths: Vec<_> =
        jobs.iter().filter_map(|job| job.output.file()).map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["/1.log", "/2.log"]);
    // A clash that only the replicas have.
    let clash =
        "{ jobs: [{ name: 'a', exec: 'x', replicas: 2, logging: { file: '/${CONTAINERPILOT_REPLICA}.log' } },
                          { name: 'b', exec: 'x', logging: { file: '/2.log' } }] }";
    assert_eq!(errors(clash).len(), 1);
}

#[test]
fn x1_the_control_socket_comes_from_the_file_or_the_environment() {
    use containerpilot_config::{ConfigFile, Options, load};
    let control = |text: &str, variable: &str| {
        let mut host = super::support::host();
        host.environment.insert(b"CONTAINERPILOT_SOCKET".to_vec(), variable.as_bytes().to_vec());
        let input = ConfigFile { name: "a".into(), text: text.into() };
        load(vec![input], &host, Options { version: "" }).plan.map(|plan| plan.control)
    };
    let at = |text: &str, variable: &str| {
        control(text, variable).map(|control| (control.socket, control.required))
    };
    let default = "/var/run/containerpilot.socket";
    assert_eq!(at("{}", ""), Some((default.to_owned(), false)));
    assert_eq!(at("{ control: { mode: '0600' } }", ""), Some((default.to_owned(), false)));
    assert_eq!(at("{ control: { socket: '' } }", ""), Some((default.to_owned(), false)));
    assert_eq!(at("{}", "/tmp/a"), Some(("/tmp/a".to_owned(), true)));
    assert_eq!(at("{ control: { socket: '/tmp/b' } }", "/tmp/a"), Some(("/tmp/b".to_owned(), true)));
    assert_eq!(at("{}", &"x".repeat(107)), Some(("x".repeat(107), true)));
    assert_eq!(at("{}", &"x".repeat(108)), None);
    let open = control("{ control: { mode: '0660', group: 7 } }", "").unwrap();
    assert_eq!((open.mode, open.group), (0o660, Some(Principal::Id(7))));
    let loaded = super::support::load_files(&["{ control: { group: 7 } }"], &super::support::host());
    assert!(super::support::shown(&loaded).contains("so `group` has no effect"));
}

#[test]
fn h9_successes_and_start_period() {
    let check = |keys: &str| {
        let text = format!("exec: 'x', health: {{ exec: 'c', interval: 1, ttl: 9, {keys} }}");
        let check = job(&text).health.unwrap().checks.remove(0);
        (check.successes, check.start_period.as_secs())
    };
    assert_eq!(check(""), (1, 0));
    assert_eq!(check("successes: 3, startPeriod: '1m'"), (3, 60));
}
