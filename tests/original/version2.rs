//! The 13 integration tests of ContainerPilot 2.7.8. Its files are JSON, the program follows on the command line, and the
//! configuration is named by the environment.

use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::container::{
    follow_route, init, lines, metric, restarts_once_after_each_reload, running, stop, wait_for_instances,
    wait_for_lines, wait_for_process, zombies,
};
use crate::support::consul::{Agent, own_address};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};

/// Starts it as the images do: with the configuration in `CONTAINERPILOT`, and with `program` on the command line.
fn start(program: &str, config: &str) -> Supervisor {
    let setup = format!("export CONTAINERPILOT=file://@/config.json5 APP_PORT=8000; set -- \"$1\" {program}");
    Supervisor::with_setup(init(), &setup, config)
}

/// The service `app` of a configuration, with the check `check`.
fn service(check: &str) -> String {
    format!(
        r#"{{ "name": "app", "port": 8000, "interfaces": "static:10.1.1.1", "health": "{check}", "poll": 1, "ttl": 30,
            "tags": ["application"] }}"#
    )
}

/// `test_coprocess`: a coprocess with `restarts: 1` runs again after it was killed once, and not after the second time. A reload by
/// SIGHUP runs it with its new argument, and gives it its restart again.
#[test]
fn c6_c8_original_2_coprocess() {
    let agent = Agent::dev();
    let config = format!(
        r#"{{ "consul": "{}", "logging": {{ "level": "DEBUG", "format": "text" }}, "services": [{}],
            "coprocesses": [{{ "name": "beside", "restarts": 1,
                "command": ["sh", "-c", "while :; do sleep 0.1; done", "first-words"] }}] }}"#,
        agent.address(),
        service("true")
    );
    let run = start("sleep 1111", &config);
    restarts_once_after_each_reload(run, |run| run.signal("-HUP"));
}

/// `test_discovery_consul`: an application and a front end are each registered once and healthy, and the front end gets a route to
/// the application from its backend.
///
/// The front end of the original is nginx with consul-template; here `onChange` writes the answer of Consul to a file.
#[test]
fn c8_d7_original_2_discovery_consul() {
    let agent = Agent::dev();
    let (consul, ip) = (agent.address(), agent.ip.as_str());
    let app = format!(
        r#"{{ "consul": "{consul}", "preStart": "curl --fail -s -o @/leader http://{consul}/v1/status/leader",
            "services": [{{ "name": "app", "port": 8000, "interfaces": "static:{ip}", "tags": ["application"],
                "health": "curl --fail -s -o /dev/null http://{ip}:8000/", "poll": 1, "timeout": "20s", "ttl": 30 }}],
            "backends": [{{ "name": "front", "poll": 7, "onChange": ["sh", "-c", "echo run >> @/fronts"] }},
                {{ "name": "app", "poll": 5, "tag": "application", "onChange": ["sh", "-c", "echo run >> @/apps"] }}] }}"#
    );
    let front = format!(
        r#"{{ "consul": "{consul}", "preStart": ["sh", "-c", "echo [] > @/route"],
            "services": [{{ "name": "front", "port": 80, "interfaces": "static:{ip}", "health": "true", "poll": 1, "ttl": 30 }}],
            "backends": [{{ "name": "app", "poll": 1, "onChange":
                ["sh", "-c", "curl -s http://{consul}/v1/health/service/app?passing > @/new && mv @/new @/route"] }}] }}"#
    );
    let app =
        start(&format!("python3 -m http.server --bind {ip} --directory @/ '{{{{ .APP_PORT }}}}'"), &app);
    let front = start("sleep 1111", &front);
    wait_for_instances(&agent, "app", 1);
    wait_for_instances(&agent, "front", 1);
    follow_route(&front, "route", "app");
    wait_for_lines(&app, "fronts", 1);
    wait_for_lines(&app, "apps", 1);
    stop(app);
    stop(front);
}

/// Not among the original tests: scripts and dashboards of version 2 look for the check by the id of its service.
#[test]
fn c8_d3_the_check_of_a_version_2_service_has_the_id_of_the_service() {
    let agent = Agent::dev();
    let config = format!(r#"{{ "consul": "{}", "services": [{}] }}"#, agent.address(), service("true"));
    let run = start("sleep 1111", &config);
    wait_for_instances(&agent, "app", 1);
    let checks = agent.get("/v1/agent/checks");
    let names: Vec<&String> = checks.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 1, "{checks}");
    let check = &checks[names[0]];
    assert!(names[0].starts_with("app-") && check["ServiceID"] == *names[0], "{checks}");
    assert_eq!((&check["Name"], &check["Type"]), (&check["CheckID"], &"ttl".into()), "{checks}");
    stop(run);
    assert_eq!(agent.get("/v1/agent/checks"), serde_json::json!({}));
}

/// `test_discovery_etcd`: the same with etcd as the catalog.
///
/// Here etcd is refused, with a message that names Consul (`etcd`).
#[test]
fn c8_d1_original_2_discovery_etcd() {
    let config = format!(
        r#"{{ "etcd": {{ "endpoints": "http://{}:4001", "prefix": "/containerpilot" }}, "services": [{}] }}"#,
        own_address(),
        service("true")
    );
    let run = start("sleep 1111", &config);
    wait_until("the error is complete", || run.stderr().contains("nothing was started"));
    let error = run.stderr();
    assert!(error.contains("`etcd` is not supported") && error.contains("use Consul"), "{error}");
    assert_eq!(run.wait().0, 1);
}

/// `test_envvars`, in the environment: the program has the address of a service in `CONTAINERPILOT_APP_IP`, and its
/// arguments are templates.
///
/// The catalog of the original test is etcd, and the program too; here it is Consul, without an agent.
#[test]
fn c8_p7_original_2_envvars() {
    let config = format!(r#"{{ "consul": "{}:8500", "services": [{}] }}"#, own_address(), service("true"));
    let program = r#"sh -c 'echo "$@" $CONTAINERPILOT_APP_IP; exec sleep 1000' x 'port {{ .APP_PORT }}'"#;
    let mut run = start(program, &config);
    run.wait_for_line("port 8000 10.1.1.1");
    stop(run);
}

/// `test_envvars`, in the arguments: the addresses of services are variables of their templates too.
#[test]
fn c8_p7_original_2_envvars_in_arguments() {
    let config = format!(r#"{{ "consul": "{}:8500", "services": [{}] }}"#, own_address(), service("true"));
    let program = r#"sh -c 'echo "$@"; exec sleep 1000' x 'http://{{ .CONTAINERPILOT_APP_IP }}:2379'"#;
    let mut run = start(program, &config);
    run.wait_for_line("http://10.1.1.1:2379");
    stop(run);
}

/// `test_logging`: at the level DEBUG the log has what was loaded.
///
/// Here other messages of that level are in the log, but not the configuration (`loaded-config`).
#[test]
fn c8_l1_original_2_logging() {
    let config = format!(
        r#"{{ "consul": "{}:8500", "logging": {{ "level": "DEBUG", "format": "text" }}, "services": [{}] }}"#,
        own_address(),
        service("true")
    );
    let mut run = start("sleep 1111", &config);
    run.wait_for_line("level=debug msg=\"event global startup\"");
    stop(run);
}

/// `test_no_command`: a container without a Consul, with one argument more for its program, runs until it is stopped, without a
/// panic: `preStart` waits for Consul.
#[test]
fn c8_s1_original_2_no_command() {
    let config = format!(
        r#"{{ "consul": "{}:8500", "preStart": ["sh", "-c", "echo waits for Consul; exec sleep 2222"], "services": [{}] }}"#,
        own_address(),
        service("true")
    );
    let mut run = start("sleep 1111 \"$1\"", &config);
    run.wait_for_line("waits for Consul");
    assert_eq!(running(&run, "1111"), [0; 0], "the program did not wait for preStart");
    let log = stop(run);
    assert!(!log.contains("panic") && !log.contains("app started"));
}

/// `test_reap_zombies`: with checks that leave children behind, PID 1 has hardly a zombie at any time.
#[test]
fn c8_p1_original_2_reap_zombies() {
    let agent = Agent::dev();
    let config = format!(
        r#"{{ "consul": "{}", "services": [{{ "name": "zombies", "port": 8000, "interfaces": "static:10.1.1.1",
            "health": ["sh", "-c", "echo run >> @/checks; sleep 0.3 & exec sleep 0.2"],
            "poll": 1, "timeout": "20s", "ttl": 30 }}] }}"#,
        agent.address()
    );
    let run = start("sleep 1111", &config);
    wait_for_instances(&agent, "zombies", 1);
    wait_for_lines(&run, "checks", 4);
    wait_until("all orphans have exited and are reaped", || {
        running(&run, "sleep\u{0}0.3").is_empty() && zombies(&run) == 0
    });
    stop(run);
}

/// `test_sighup_deadlock`: 300 SIGHUPs in a row, with pauses of a few milliseconds, do not stop the heartbeats: the service is still healthy
/// when its TTL is over.
#[test]
fn c8_r4_original_2_sighup_deadlock() {
    let agent = Agent::dev();
    let config = format!(
        r#"{{ "consul": "{}", "services": [{{ "name": "app", "port": 8000, "interfaces": "static:10.1.1.1", "poll": 1, "ttl": 5,
            "health": ["sh", "-c", "echo run >> @/checks"] }}],
            "backends": [{{ "name": "elsewhere", "poll": 7, "onChange": "true" }}] }}"#,
        agent.address()
    );
    let run = start("sleep 1111", &config);
    wait_for_instances(&agent, "app", 1);
    let app = wait_for_process(&run, "1111");
    for _ in 0..300 {
        run.signal("-HUP");
    }
    // Checks run every second, so that more of them than the TTL has seconds take longer than it.
    wait_for_lines(&run, "checks", lines(&run, "checks") + 7);
    wait_for_instances(&agent, "app", 1);
    assert_eq!(running(&run, "1111"), [app], "the program did not keep running");
    stop(run);
}

/// `test_sighup_prestart`: `preStart` corrects the check in the configuration and sends SIGHUP; the service becomes healthy.
#[test]
fn c8_r1_original_2_sighup_prestart() {
    let agent = Agent::dev();
    let config = format!(
        r#"{{ "consul": "{}", "services": [{}],
            "preStart": ["sh", "-c", "echo run >> @/prepared; sed -i s/fal''se/true/ @/config.json5; kill -HUP $CONTAINERPILOT_PID"] }}"#,
        agent.address(),
        service("false")
    );
    let run = start("sleep 1111", &config);
    wait_for_instances(&agent, "app", 1);
    wait_for_process(&run, "1111");
    assert_eq!(lines(&run, "prepared"), 1);
    stop(run);
}

/// `test_sigusr1_prestart`, which 2.7.8 has without running it: `preStart` sends SIGUSR1, which begins maintenance; another SIGUSR1 ends
/// it, and the service becomes healthy.
#[test]
fn c8_d8_original_2_sigusr1_prestart() {
    let agent = Agent::dev();
    let config = format!(
        r#"{{ "consul": "{}", "logging": {{ "level": "DEBUG" }}, "services": [{}],
            "preStart": ["sh", "-c", "kill -USR1 $CONTAINERPILOT_PID"] }}"#,
        agent.address(),
        service("true")
    );
    let mut run = start("sleep 1111", &config);
    run.wait_for_line("enterMaintenance");
    wait_for_process(&run, "1111");
    assert_eq!(agent.status("app"), None);
    run.signal("-USR1");
    wait_for_instances(&agent, "app", 1);
    stop(run);
}

/// `test_sigterm`: at SIGTERM a healthy service leaves the catalog.
#[test]
fn c8_s2_original_2_sigterm() {
    let agent = Agent::dev();
    let config = format!(r#"{{ "consul": "{}", "services": [{}] }}"#, agent.address(), service("true"));
    let run = start("sleep 1111", &config);
    wait_for_instances(&agent, "app", 1);
    stop(run);
    assert_eq!(agent.status("app"), None);
}

/// `test_tasks`: a task runs once per `frequency`. One that is faster never times out; one that is slower, without `timeout`, times
/// out after its frequency; one with a shorter `timeout` times out after that, each time.
#[test]
fn c8_w4_original_2_tasks() {
    let task = |name: &str, seconds: &str, more: &str| {
        format!(
            r#"{{ "name": "{name}", "command": ["sh", "-c", "echo run >> @/{name}; sleep {seconds} & wait"], "frequency": {more} }}"#
        )
    };
    let config = format!(
        r#"{{ "consul": "{}:8500", "tasks": [{}, {}, {}] }}"#,
        own_address(),
        task("task1", "0.2", r#""2s""#),
        task("task2", "1000", r#""1500ms""#),
        task("task3", "1000", r#""2s", "timeout": "1s""#)
    );
    let began = Instant::now();
    let run = start("sleep 1111", &config);
    for name in ["task1", "task2", "task3"] {
        wait_for_lines(&run, name, 3);
    }
    let runs = ["task1", "task2", "task3"].map(|name| lines(&run, name));
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    let log = stop(run);
    assert!(runs[0] <= seconds / 2 + 1 && runs[1] <= seconds * 2 / 3 + 1, "{runs:?} in {seconds} s");
    let timeouts = |words: &str| log.matches(words).count();
    assert_eq!(timeouts("task1 timeout"), 0);
    // The last run may be stopped before its timeout.
    assert!((2..=runs[1]).contains(&timeouts("task2 timeout after 1.5s")));
    assert!((2..=runs[2]).contains(&timeouts("task3 timeout after 1s")));
}

/// `test_telemetry`: the number that a sensor prints is the value of its metric, and the telemetry server is a service in Consul until
/// the container is stopped.
#[test]
fn c8_t2_original_2_telemetry() {
    let agent = Agent::dev();
    let address = format!("{}:9090", agent.ip);
    let config = format!(
        r#"{{ "consul": "{}", "services": [{}], "telemetry": {{ "port": 9090, "interfaces": ["static:{}"], "sensors": [
            {{ "namespace": "containerpilot", "subsystem": "app", "name": "some_counter", "help": "Counts.", "type": "counter",
               "poll": 1, "check": ["sh", "-c", "echo 42"] }}] }} }}"#,
        agent.address(),
        service("true"),
        agent.ip
    );
    let run = start("sleep 1111", &config);
    let counter = || metric(&address, "containerpilot_app_some_counter").unwrap_or_default();
    wait_until("the value is there", || counter() >= 42.0);
    assert!(counter() % 42.0 == 0.0, "{}", counter());
    wait_for_instances(&agent, "containerpilot", 1);
    stop(run);
    assert_eq!(agent.get("/v1/catalog/service/containerpilot"), Value::Array(vec![]));
}

/// `test_version_flag`: `-version` prints the version of the build. The configuration that the environment names is not read.
#[test]
fn c8_x3_original_2_version_flag() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    let output =
        command.arg("-version").env("CONTAINERPILOT", "file:///no/such/file.json").output_in_time().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with(concat!("Version: ", env!("CARGO_PKG_VERSION"))), "{text}");
}
