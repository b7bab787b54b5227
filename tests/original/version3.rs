//! The 13 integration tests of ContainerPilot 3.8.0.

use std::fmt::Display;
use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::container::{
    execute, follow_route, init, lines, metric, page, passing, reload, restarts_once_after_each_reload,
    running, stop, wait_for_instances, wait_for_lines, wait_for_process, zombies,
};
use crate::support::config::Config;
use crate::support::consul::{Agent, own_address, service_id};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};

const LOGGING: &str = "logging: { level: 'DEBUG', format: 'text' }";
const AFTER_PRE_START: &str = "when: { source: 'preStart', once: 'exitSuccess' }";

/// A configuration with an agent.
fn with(consul: impl Display) -> Config {
    Config::new().consul(consul).keys(LOGGING)
}

/// A job with an address, healthy as soon as it runs.
fn service(ip: &str, port: u16, keys: &str) -> String {
    format!(
        "port: {port}, interfaces: 'static:{ip}', health: {{ exec: 'true', interval: 1, ttl: 30 }}, {keys}"
    )
}

/// The service `app` of most tests.
fn app() -> String {
    service("10.1.1.1", 8000, "exec: 'sleep 1111'")
}

/// A job that writes a line to a file at each change of a watch.
fn each_change(watch: &str, file: &str) -> String {
    format!(
        "when: {{ source: 'watch.{watch}', each: 'changed' }}, exec: ['sh', '-c', 'echo run >> @/{file}']"
    )
}

/// `test_config_reload`: one `-reload` loads the configuration again and the control socket serves afterwards; after 200 in a row
/// another one still succeeds.
///
/// 3.8 starts everything again, closes the socket meanwhile and lets reloads fail then; here unchanged jobs keep
/// running, and each request is answered when it is done (`reload-by-difference`, `reload-answers`).
#[test]
fn r1_r4_original_3_config_reload() {
    let agent = Agent::dev();
    let config = with(agent.address())
        .job("app", format!("{}, {AFTER_PRE_START}, tags: ['application']", app()))
        .job("preStart", "exec: ['sh', '-c', 'echo run >> @/prepared']")
        .job("on-change", each_change("app", "changes"))
        .keys("watches: [{ name: 'app', interval: 5, tag: 'application' }]")
        .keys(format!("telemetry: {{ port: 9090, interfaces: 'static:{}', metrics: [] }}", agent.ip));
    let mut run = Supervisor::start(init(), &config);
    wait_for_instances(&agent, "app", 1);
    wait_for_lines(&run, "changes", 1);
    let app = wait_for_process(&run, "1111");
    reload(&run);
    run.wait_for_line("reload");
    for _ in 0..200 {
        reload(&run);
    }
    reload(&run);
    assert!(execute(&run, &["-ping"]).status.success());
    assert_eq!(running(&run, "1111"), [app], "the job did not keep running");
    assert_eq!(lines(&run, "prepared"), 1, "a job that is complete and unchanged ran again");
    assert_eq!(passing(&agent, "app").len(), 1);
    stop(run);
}

/// `test_coprocess`: a job with `restarts: 1` runs again after its process was killed once, and not after the second time. A
/// reload with another argument runs it with that, and gives it its restart again.
#[test]
fn w6_r3_original_3_coprocess() {
    let agent = Agent::dev();
    let config = with(agent.address())
        .job("app", app())
        .job("beside", "exec: ['sh', '-c', 'while :; do sleep 0.1; done', 'first-words'], restarts: 1");
    let run = Supervisor::start(init(), &config);
    restarts_once_after_each_reload(run, reload);
}

/// `test_discovery_consul`: an application and a front end in two containers are each registered once and healthy, and the front
/// end gets a route to the application from its watch.
///
/// The front end of the original is nginx with consul-template; here a job writes the answer of Consul to a file.
#[test]
fn d4_d7_original_3_discovery_consul() {
    let agent = Agent::dev();
    let (consul, ip) = (agent.address(), agent.ip.as_str());
    let app = with(&consul)
        .job(
            "app",
            format!(
                "port: 8000, interfaces: 'static:{ip}', tags: ['application'], {AFTER_PRE_START},
                 exec: ['python3', '-m', 'http.server', '--bind', '{ip}', '--directory', '@/', '{{{{ .APP_PORT }}}}'],
                 health: {{ exec: 'curl --fail -s -o /dev/null http://{ip}:8000/',
                            interval: 1, timeout: '20s', ttl: 30 }}"
            ),
        )
        .job("preStart", format!("exec: 'curl --fail -s -o @/leader http://{consul}/v1/status/leader'"))
        .job("on-front", each_change("front", "fronts"))
        .job("on-app", each_change("app", "apps"))
        .keys("watches: [{ name: 'front', interval: 7 }, { name: 'app', interval: 5 }]");
    let route = format!("curl -s http://{consul}/v1/health/service/app?passing > @/new && mv @/new @/route");
    let front = with(&consul)
        .job("front", format!("{}, {AFTER_PRE_START}", service(ip, 80, "exec: 'sleep 1000'")))
        .job("preStart", "exec: ['sh', '-c', 'echo [] > @/route']")
        .job(
            "onChange",
            format!("when: {{ source: 'watch.app', each: 'changed' }}, exec: ['sh', '-c', '{route}']"),
        )
        .keys("watches: [{ name: 'app', interval: 1 }]");
    let app = Supervisor::with_setup(init(), "export APP_PORT=8000", &app);
    let front = Supervisor::start(init(), &front);
    wait_for_instances(&agent, "app", 1);
    wait_for_instances(&agent, "front", 1);
    follow_route(&front, "route", "app");
    wait_for_lines(&app, "fronts", 1);
    wait_for_lines(&app, "apps", 1);
    assert_eq!(passing(&agent, "app")[0]["Service"]["Tags"][0], "application");
    stop(app);
    stop(front);
}

/// `test_envvars`: a job that runs when another one is healthy finds its own address in `CONTAINERPILOT_TESTENVVAR_IP` and the
/// process of the other one in `CONTAINERPILOT_TESTPID_PID`, also if there is no Consul at the configured address.
#[test]
fn p7_d5_original_3_envvars() {
    let config = Config::new()
        .consul(format!("{}:8500", own_address()))
        .keys("logging: { level: 'DEBUG' }")
        .job("testpid", service("10.1.1.1", 8000, "exec: ['sh', '-c', 'echo pid $$; exec sleep 1000']"))
        .job(
            "testenvvar",
            service("10.2.2.2", 8500, "exec: 'env', when: { source: 'testpid', once: 'healthy' }"),
        );
    let mut run = Supervisor::start(init(), &config);
    let line = run.wait_for_line(" pid ");
    let pid = line.rsplit(' ').next().unwrap();
    run.wait_for_lines(" testenvvar exited with code 0", 1);
    let log = stop(run);
    assert!(log.contains(" CONTAINERPILOT_TESTENVVAR_IP=10.2.2.2"));
    assert!(log.lines().any(|line| line.ends_with(&format!(" CONTAINERPILOT_TESTPID_PID={pid}"))));
}

/// `test_logging`: with the level DEBUG and the format `text`, messages of the supervisor appear, lines of jobs and checks are
/// wrapped in entries, and those of raw jobs and checks are not.
///
/// 3.8 also logs the whole configuration, of which this one logs only the numbers of jobs and watches (`loaded-config`).
#[test]
fn l1_l2_original_3_logging() {
    let agent = Agent::dev();
    let checked = |port, check| {
        let health = format!("health: {{ {check}, interval: 1, ttl: 30 }}");
        format!("port: {port}, interfaces: 'static:10.1.1.1', exec: 'sleep 1000', {health}")
    };
    let config = with(agent.address())
        .job("job1", "exec: 'echo first job'")
        .job("job2", "exec: 'echo second job', logging: { raw: true }")
        .job("job3", checked(8000, "exec: 'echo third check', logging: { raw: true }"))
        .job("job4", checked(9000, "exec: 'echo fourth check'"));
    let mut run = Supervisor::start(init(), &config);
    // On a busy machine the others are registered before they have written anything.
    for text in ["first job", "second job"] {
        run.wait_for_lines(text, 1);
    }
    for name in ["job3", "job4"] {
        wait_for_instances(&agent, name, 1);
    }
    let log = stop(run);
    let has = |start: &str, words: &str| {
        assert!(log.lines().any(|line| line.starts_with(start) && line.contains(words)), "{words}");
    };
    has("time=", "level=debug msg=\"event global startup\"");
    has("time=", "msg=\"first job\" job=job1");
    has("second job", "");
    has("third check", "");
    has("time=", "msg=\"fourth check\" job=job4");
    has("time=", "level=debug msg=\"loaded config: jobs: 4, watches: 0\"");
}

/// `test_no_command`: a container without a Consul, with the path of the configuration in the environment, runs until it is
/// stopped, without a panic.
///
/// Its image gives the program its own path as an argument by mistake, which is ignored, as by 3.8 (`stray-words`).
#[test]
fn c1_x4_original_3_no_command() {
    let config = with(format!("{}:8500", own_address()))
        .job("app", format!("{}, {AFTER_PRE_START}", app()))
        .job("preStart", "exec: ['sh', '-c', 'echo waits for Consul; exec sleep 1000']");
    let setup = "export CONTAINERPILOT=@/config.json5; set -- \"$1\" \"$1\"";
    let mut run = Supervisor::with_setup(init(), setup, &config);
    run.wait_for_line("waits for Consul");
    assert!(run.stderr().contains("to run it, write `-- "), "{}", run.stderr());
    let log = stop(run);
    assert!(!log.contains("panic"));
}

/// `test_reap_zombies`: with checks and jobs that leave children behind, PID 1 has hardly a zombie at any time, and logs no
/// `no child processes`.
#[test]
fn p1_p4_original_3_reap_zombies() {
    let agent = Agent::dev();
    let config = Config::new()
        .consul(agent.address())
        .keys("stopTimeout: 1")
        .job(
            "zombies",
            "port: 8000, interfaces: 'static:10.1.1.1', exec: 'sleep 1111', health: { interval: '300ms', timeout: '20s',
             ttl: 30, exec: ['sh', '-c', 'echo run >> @/checks; sleep 0.1 & exec sleep 0.2'] }",
        )
        .job(
            "slow-zombies",
            "exec: ['sh', '-c', '(sleep 0.3 & sleep 0.3 & setsid sleep 0.3 &); echo run >> @/left; exec sleep 2222']",
        );
    let run = Supervisor::start(init(), &config);
    wait_for_instances(&agent, "zombies", 1);
    wait_for_lines(&run, "left", 1);
    wait_for_lines(&run, "checks", 8);
    wait_until("all orphans have exited and are reaped", || {
        running(&run, "sleep\u{0}0.3").is_empty() && zombies(&run) == 0
    });
    let log = stop(run);
    assert!(!log.contains("no child processes") && !log.contains("ECHILD"));
}

/// `test_reopen`: the log is a file with the lines of the jobs. After it was renamed it grows under its new name; after SIGUSR1
/// the lines go to a new file under the old name.
#[test]
fn l1_original_3_reopen() {
    let config = Config::new()
        .consul(format!("{}:8500", own_address()))
        .keys("logging: { level: 'DEBUG', format: 'text', output: '@/log' }")
        .job("app", "exec: \"echo 'hello'\", when: { interval: '200ms' }, timeout: '20s'");
    let run = Supervisor::start(init(), &config);
    let hellos = |name: &str| {
        let text = fs::read_to_string(run.file(name)).unwrap_or_default();
        text.lines().filter(|line| line.contains("'hello'")).count()
    };
    wait_until("the log has lines of the job", || hellos("log") > 0);
    fs::rename(run.file("log"), run.file("log.1")).unwrap();
    let before = hellos("log.1");
    wait_until("the renamed file grows", || hellos("log.1") > before);
    assert!(!run.file("log").exists());
    run.signal("-USR1");
    wait_until("the new file has lines of the job", || hellos("log") > 0);
    stop(run);
}

/// `test_sighup`: jobs with the sources SIGHUP and SIGUSR2 run at these signals, and the application keeps running and healthy.
#[test]
fn w3_original_3_sighup() {
    let agent = Agent::dev();
    let config = with(agent.address())
        .job("app", app())
        .job("on-hup", "exec: \"echo 'ran at SIGHUP'\", when: { source: 'SIGHUP' }")
        .job("on-usr2", "exec: \"echo 'ran at SIGUSR2'\", when: { source: 'SIGUSR2' }");
    let mut run = Supervisor::start(init(), &config);
    wait_for_instances(&agent, "app", 1);
    let app = wait_for_process(&run, "1111");
    run.signal("-HUP");
    run.wait_for_line("msg=\"'ran at SIGHUP'\"");
    run.signal("-USR2");
    run.wait_for_line("msg=\"'ran at SIGUSR2'\"");
    assert_eq!(running(&run, "1111"), [app]);
    assert_eq!(passing(&agent, "app").len(), 1);
    stop(run);
}

/// `test_sigterm`: SIGTERM runs the job at the application's `stopping` and the job at its `stopped`, and the application leaves
/// the catalog. (The script asks for one healthy instance at the end, with a check that passes for any number.)
///
/// 3.8 sends SIGTERM and deregisters afterwards; here it is the other way round (`out-before-the-signal`).
#[test]
fn s2_s3_original_3_sigterm() {
    let agent = Agent::dev();
    let config = with(agent.address())
        .keys("stopTimeout: 20")
        .job("app", app())
        .job("preStop", "exec: \"echo 'ran at stopping'\", when: { source: 'app', once: 'stopping' }")
        .job("postStop", "exec: \"echo 'ran at stopped'\", when: { source: 'app', once: 'stopped' }");
    let run = Supervisor::start(init(), &config);
    wait_for_instances(&agent, "app", 1);
    let log = stop(run);
    assert_eq!(agent.status("app"), None);
    let place = |words: &str| log.find(words).unwrap_or_else(|| panic!("no `{words}`"));
    let places =
        ["msg=\"'ran at stopping'\"", "msg=\"exited on SIGTERM", "msg=\"'ran at stopped'\""].map(place);
    assert!(places.is_sorted());
}

/// `test_tasks`: a periodic job with `restarts: "5"` runs six times. One that is faster than its interval and its timeout never
/// times out; one that is slower than its timeout times out each time, without a signal that it could catch. Without
/// `restarts` it runs until the end, once per interval.
#[test]
fn w4_p5_original_3_tasks() {
    let task = |name, seconds, more| {
        let script = format!(
            "trap 'echo INTERRUPTED >> @/{name}' INT TERM QUIT; echo run >> @/{name}; sleep {seconds} & wait"
        );
        format!("exec: ['sh', '-c', \"{script}\"], {more}")
    };
    let config = with(format!("{}:8500", own_address()))
        .job("task1", task("task1", "0.2", "when: { interval: '2s' }, restarts: '5'"))
        .job("task2", task("task2", "0.2", "when: { interval: '2s' }, restarts: '5', timeout: '2s'"))
        .job("task3", task("task3", "1000", "when: { interval: '2s' }, restarts: '5', timeout: '1s'"))
        .job("task4", task("task4", "0", "when: { interval: '1s' }"));
    let began = Instant::now();
    let mut run = Supervisor::start(init(), &config);
    run.wait_for_lines(" job=task3 ", 1);
    for name in ["task1", "task2", "task3"] {
        wait_until(&format!("{name} has ended"), || {
            let answer = execute(&run, &["status", "--format", "json"]).stdout;
            let status: Value = serde_json::from_slice(&answer).unwrap_or_default();
            let jobs = status["jobs"].as_array().cloned().unwrap_or_default();
            jobs.iter()
                .any(|job| job["name"] == name && (job["state"] == "complete" || job["state"] == "failed"))
        });
    }
    let text = |name: &str| fs::read_to_string(run.file(name)).unwrap();
    let texts = ["task1", "task2", "task3"].map(text);
    let (often, seconds) = (lines(&run, "task4"), began.elapsed().as_secs());
    let log = stop(run);
    assert_eq!(texts, ["run\n".repeat(6), "run\n".repeat(6), "run\n".repeat(6)]);
    let timeouts = ["task1", "task2", "task3"].map(|name| log.matches(&format!("{name} timeout")).count());
    assert_eq!(timeouts, [0, 0, 6]);
    assert!(often > 1 && often as u64 <= seconds + 2, "{often} runs in {seconds} s");
}

/// `test_telemetry`: a value that a job sends with `-putmetric` is on the page of metrics, beside those about events, requests to
/// the control socket and watches. The page of the status calls both services healthy. The telemetry server is a service in
/// Consul until the container is stopped.
#[test]
fn t1_t2_t3_original_3_telemetry() {
    let agent = Agent::dev();
    let address = format!("{}:9090", agent.ip);
    let put = format!(
        "exec: ['{}', '-putmetric', 'containerpilot_app_some_counter=42']",
        env!("CARGO_BIN_EXE_containerpilot")
    );
    let config = with(agent.address())
        .job("app", app())
        .job("sensor", format!("{put}, when: {{ interval: '1s' }}, timeout: '20s'"))
        .keys("watches: [{ name: 'elsewhere', interval: 1 }]")
        .keys(format!(
            "telemetry: {{ port: 9090, interfaces: ['static:{}'], metrics: [
                {{ namespace: 'containerpilot', subsystem: 'app', name: 'some_counter', help: 'Counts.', type: 'counter' }}] }}",
            agent.ip
        ));
    let run = Supervisor::start(init(), &config);
    let counter = || metric(&address, "containerpilot_app_some_counter").unwrap_or_default();
    wait_until("the value was sent", || counter() >= 42.0);
    assert!(counter() % 42.0 == 0.0, "{}", counter());
    for name in ["events", "control_http_requests", "watch_instances"] {
        // A watch has no value before Consul has answered.
        let line = format!("\ncontainerpilot_{name}{{");
        wait_until(name, || page(&address, "/metrics").is_some_and(|metrics| metrics.contains(&line)));
    }
    let statuses = || -> Vec<String> {
        let page: Value = serde_json::from_str(&page(&address, "/status").unwrap()).unwrap();
        let services = page["Services"].as_array().unwrap();
        services.iter().map(|one| one["Status"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("both services are healthy", || statuses() == ["healthy", "healthy"]);
    wait_for_instances(&agent, "containerpilot", 1);
    assert_eq!(passing(&agent, "containerpilot")[0]["Service"]["ID"], service_id("containerpilot"));
    stop(run);
    assert_eq!(agent.get("/v1/catalog/service/containerpilot"), Value::Array(vec![]));
}

/// `test_version_flag`: `-version` prints the version of the build.
///
/// 3.8 prints two lines; here there are three (`version-lines`).
#[test]
fn x3_original_3_version_flag() {
    let output = Command::new(env!("CARGO_BIN_EXE_containerpilot")).arg("-version").output_in_time().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.starts_with(concat!("Version: ", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    assert!(text.contains("\nGitHash: ") && text.contains("\nBuildDate: "), "{text}");
}
