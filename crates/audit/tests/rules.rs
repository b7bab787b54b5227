//! X14: every finding, with a deployment that is right and one that is wrong.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

use containerpilot_audit::model::Container;
use containerpilot_audit::{AuditError, Configuration, Finding, Invocation, audit, choose, read};
use containerpilot_config::diagnostics::Severity;
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load};
use containerpilot_import::files::Text;

/// A pod with one container; `%POD%` and `%C%` are replaced by keys of both.
const POD: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
%POD%
      containers:
        - name: web
          image: web:1
          ports:
            - name: http
              containerPort: 8080
            - name: telemetry
              containerPort: 9090
%C%
";

const SERVICE: &str = "services:\n  web:\n    image: web\n%C%\n";

const NOMAD: &str = "job \"web\" {\n  group \"g\" {\n    network {\n      port \"http\" { to = 8080 }\n      port \"any\" {}\n    }\n    \
                     task \"t\" {\n      driver = \"docker\"\n      config { image = \"web\" }\n%C%\n    }\n  }\n}\n";

/// Lines at an indentation.
fn lines(text: &str, indent: usize) -> String {
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect()
}

fn pod(spec: &str, container: &str) -> (&'static str, String) {
    let text = POD.replace("%POD%\n", &lines(spec, 6)).replace("%C%\n", &lines(container, 10));
    ("pod.yaml", text)
}

fn compose(keys: &str) -> (&'static str, String) {
    ("compose.yaml", SERVICE.replace("%C%\n", &lines(keys, 4)))
}

fn nomad(keys: &str) -> (&'static str, String) {
    ("job.nomad.hcl", NOMAD.replace("%C%\n", &lines(keys, 6)))
}

fn image(instructions: &str) -> (&'static str, String) {
    ("Dockerfile", format!("FROM debian:12\n{instructions}\n"))
}

fn containers(path: &str, text: &str) -> Vec<Container> {
    read(&Text::new(path, text)).unwrap_or_else(|error| panic!("{error}"))
}

/// A small copy of the command line.
fn command_line(words: &[String]) -> Result<Invocation, String> {
    let flag = words.iter().find(|word| word.starts_with('-') && *word != "-socket");
    if let Some(flag) = flag {
        return Err(format!("unknown flag {flag}"));
    }
    let socket = words.iter().position(|word| word == "-socket").and_then(|at| words.get(at + 1)).cloned();
    let rest: Vec<String> =
        words.iter().filter(|word| *word != "-socket" && Some(*word) != socket.as_ref()).cloned().collect();
    let (command, arguments) =
        rest.split_first().map_or(("run", &[][..]), |(first, rest)| (first.as_str(), rest));
    match command {
        "run" | "health" | "ping" | "wait" | "maintenance" => {
            Ok(Invocation { command: command.to_owned(), arguments: arguments.to_vec(), socket })
        }
        other => Err(format!("unknown command `{other}`")),
    }
}

fn findings(config: &str, (path, text): (&str, String)) -> Vec<Finding> {
    let host = StaticHost {
        addresses: vec![
            HostAddress { interface: "eth0".into(), ip: "10.0.0.1".parse().unwrap() },
            HostAddress { interface: "lo".into(), ip: "127.0.0.1".parse().unwrap() },
        ],
        accounts: ["app".to_owned(), "redis".to_owned()].into(),
        ..StaticHost::default()
    };
    let input = ConfigFile { name: "app.json5".into(), text: config.into() };
    let LoadedConfig { plan, report } = load(vec![input], &host, Options { version: "0" });
    let problems: Vec<String> = report.problems().iter().map(|one| one.problem.message.clone()).collect();
    let plan = plan.unwrap_or_else(|| panic!("{problems:?}"));
    let files = report.into_files();
    let containers = containers(path, &text);
    let container = choose(&containers, None).unwrap_or_else(|error| panic!("{error}"));
    audit(Configuration { plan: &plan, files: &files, command_line: &command_line }, container)
}

/// Asserts that a deployment has one finding, on this line of text, with these words.
fn finds(config: &str, deployment: (&'static str, String), severity: Severity, line: &str, words: &[&str]) {
    let text = deployment.1.clone();
    let found = findings(config, deployment);
    let [finding] = found.as_slice() else { panic!("{text}\n{found:#?}") };
    let at = text.lines().nth(finding.line - 1).unwrap().trim();
    assert!(at.starts_with(line), "line {}: {at}\n{finding:#?}", finding.line);
    assert_eq!(finding.severity, severity, "{finding:#?}");
    let all = format!("{} {}", finding.message, finding.help);
    for word in words {
        assert!(all.contains(word), "{word}: {all}");
    }
}

fn passes(config: &str, deployment: (&'static str, String)) {
    let text = deployment.1.clone();
    assert_eq!(findings(config, deployment), [], "{text}");
}

use Severity::{Fault, Warning};

const SERVER: &str = "{ jobs: [{ name: 'app', exec: 'app', restarts: 'unlimited', port: 8080, health: { http: 'http://localhost:8080/', interval: 5, ttl: 15 } }], \
     telemetry: { port: 9090, interfaces: 'eth0' } }";

#[test]
fn x14_the_stop_must_fit_into_the_grace_period() {
    // 15 s for the job, one for the catalog, one for the exit.
    let config = "{ stopTimeout: '40s', jobs: [{ name: 'app', exec: 'x' }] }";
    finds(
        config,
        pod("", ""),
        Fault,
        "- name: web",
        &["killed 30s (the default)", "up to 41s", "terminationGracePeriodSeconds: 41"],
    );
    passes(config, pod("terminationGracePeriodSeconds: 41", ""));
    let hook = "lifecycle:\n  preStop:\n    sleep:\n      seconds: 5";
    finds(
        config,
        pod("terminationGracePeriodSeconds: 41", hook),
        Fault,
        "terminationGracePeriodSeconds: 41",
        &[
            "killed 41s after its stop begins, of which the preStop hook takes 5s and leaves 36s, but the stop takes up to 41s",
            "app gets SIGTERM at once and SIGKILL 40s later",
            "terminationGracePeriodSeconds: 46",
        ],
    );
    let command = "lifecycle:\n  preStop:\n    exec:\n      command: [sh, -c, sleep 5]";
    finds(
        config,
        pod("terminationGracePeriodSeconds: 45", command),
        Fault,
        "terminationGracePeriodSeconds",
        &["5s"],
    );
    passes(config, pod("terminationGracePeriodSeconds: 46", command));

    let hooks = "{ jobs: [{ name: 'app', exec: 'x' }, { name: 'bye', exec: 'y', timeout: '3s', when: { source: 'app', once: 'stopping' } }] }";
    finds(
        hooks,
        compose("stop_grace_period: 8s"),
        Fault,
        "stop_grace_period",
        &["up to 9s", "bye runs at once, for up to 3s, then app gets SIGTERM after 3s"],
    );
    passes(hooks, compose("stop_grace_period: 9s"));
    passes(hooks, compose("stop_grace_period: ${GRACE:-1s}"));
    passes(hooks, compose(""));

    let default = "{ jobs: [{ name: 'app', exec: 'x' }] }";
    finds(
        default,
        nomad(""),
        Fault,
        "task \"t\"",
        &["the task is killed 5s (the default)", "kill_timeout = \"6s\""],
    );
    passes(default, nomad("kill_timeout = \"6s\""));
    passes(default, nomad("kill_timeout = var.timeout"));
    finds(config, nomad("kill_timeout = \"60s\""), Warning, "kill_timeout", &["max_kill_timeout = \"41s\""]);
}

#[test]
fn x14_times_and_sizes_that_kubernetes_refuses() {
    let config = "{ stopTimeout: '40s', jobs: [{ name: 'app', exec: 'x' }] }";
    for (value, words) in [
        ("60.5", "`60.5` is not a whole number"),
        ("\"60\"", "`60` is a text, not a number"),
        ("60s", "`60s` is a text, not a number"),
    ] {
        let deployment = pod(&format!("terminationGracePeriodSeconds: {value}"), "");
        finds(config, deployment, Fault, "terminationGracePeriodSeconds", &[words, "the API server refuses"]);
    }
    for value in ["60.0", "6e1", "\"{{ .Values.grace }}\""] {
        passes(config, pod(&format!("terminationGracePeriodSeconds: {value}"), ""));
    }
    // A negative number is accepted, and counts as one second.
    let found = findings(config, pod("terminationGracePeriodSeconds: -5", ""));
    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    assert!(
        matches!(messages.as_slice(), [killed, negative]
            if killed.starts_with("the pod is killed 1s after") && negative.contains("counts as 1 second")),
        "{messages:?}"
    );
    let probe = |seconds: &str| {
        format!(
            "livenessProbe:\n  httpGet: {{ path: /livez, port: telemetry }}\n  terminationGracePeriodSeconds: {seconds}"
        )
    };
    finds(SERVER, pod("", &probe("0")), Fault, "terminationGracePeriodSeconds", &["must be 1 or more"]);
    let sleep = |seconds: &str| format!("lifecycle:\n  preStop:\n    sleep: {{ seconds: {seconds} }}");
    finds(SERVER, pod("", &sleep("\"5\"")), Fault, "sleep", &["`5` is a text"]);
    let memory = |size: &str| format!("resources:\n  limits:\n    memory: {size}");
    for size in ["lots", "64MB", "-1"] {
        finds(SERVER, pod("", &memory(size)), Fault, "memory", &["is not a quantity of memory", "256Mi"]);
    }
    for size in ["1Gi", "128974848", "1.5e9", "1P"] {
        passes(SERVER, pod("", &memory(size)));
    }
}

#[test]
fn x14_kill_timeout_of_nomad_needs_a_unit() {
    let config = "{ jobs: [{ name: 'app', exec: 'x' }] }";
    let line = "kill_timeout";
    finds(config, nomad("kill_timeout = 5"), Fault, line, &["`5` is 5 nanoseconds", "write `\"5s\"`"]);
    finds(config, nomad("kill_timeout = \"5\""), Fault, line, &["`5` is not a time", "Nomad refuses"]);
    passes(config, nomad("kill_timeout = 6000000000"));
}

#[test]
fn x14_a_finding_names_the_place_in_the_configuration() {
    let config = "{\n  stopTimeout: '40s',\n  jobs: [{ name: 'app', exec: 'x' }] }";
    let found = findings(config, pod("", ""));
    let place = found[0].config.unwrap();
    assert_eq!(&config[place.span.range()], "stopTimeout");
    let config = "{ stopTimeout: '60s', jobs: [{ name: 'app', exec: 'x', killAfter: '50s' }] }";
    let place = findings(config, pod("", ""))[0].config.unwrap();
    assert_eq!(&config[place.span.range()], "killAfter");
}

#[test]
fn x14_a_liveness_probe_may_have_its_own_grace_period() {
    let probe = |seconds: u32| {
        format!(
            "livenessProbe:\n  httpGet: {{ path: /livez, port: telemetry }}\n  terminationGracePeriodSeconds: {seconds}"
        )
    };
    passes(SERVER, pod("", &probe(10)));
    finds(
        SERVER,
        pod("", &probe(3)),
        Warning,
        "terminationGracePeriodSeconds: 3",
        &["killed within 3s", "up to 6s"],
    );
}

fn http(kind: &str, path: &str, port: &str) -> String {
    format!("{kind}:\n  httpGet:\n    path: {path}\n    port: {port}")
}

#[test]
fn x14_http_probes_ask_for_what_is_served() {
    for (kind, path, port) in [
        ("livenessProbe", "/livez", "9090"),
        ("readinessProbe", "/readyz", "telemetry"),
        ("startupProbe", "/readyz?x=1", "telemetry"),
        ("readinessProbe", "/any/path", "http"),
        ("livenessProbe", "/metrics", "9090"),
    ] {
        passes(SERVER, pod("", &http(kind, path, port)));
    }
    finds(
        SERVER,
        pod("", &http("readinessProbe", "/healthz", "9090")),
        Fault,
        "readinessProbe",
        &["404", "use /readyz"],
    );
    finds(
        SERVER,
        pod("", &http("livenessProbe", "/healthz", "9090")),
        Fault,
        "livenessProbe",
        &["404", "use /livez"],
    );
    finds(
        SERVER,
        pod("", &http("livenessProbe", "/readyz", "9090")),
        Fault,
        "livenessProbe",
        &["maintenance mode", "use /livez"],
    );
    finds(
        SERVER,
        pod("", &http("readinessProbe", "/readyz", "9191")),
        Fault,
        "readinessProbe",
        &["listens on 9090"],
    );
    finds(
        SERVER,
        pod("", &http("readinessProbe", "/readyz", "metrics")),
        Fault,
        "readinessProbe",
        &["no port of the container"],
    );
    finds(
        SERVER,
        pod("", &http("readinessProbe", "/x", "8081")),
        Warning,
        "readinessProbe",
        &["no job of the configuration", "8080, 9090"],
    );
    let https = "livenessProbe:\n  httpGet: { path: /livez, port: 9090, scheme: HTTPS }";
    finds(SERVER, pod("", https), Fault, "livenessProbe", &["HTTP only"]);
    // Another host, and a job that may listen anywhere.
    passes(SERVER, pod("", "livenessProbe:\n  httpGet: { path: /x, port: 1, host: example.org }"));
    passes(
        "{ jobs: [{ name: 'app', exec: 'x', restarts: 'unlimited' }] }",
        pod("", &http("readinessProbe", "/x", "8081")),
    );
    passes(
        "{ jobs: [{ name: 'app', exec: 'x -p 8081', restarts: 'unlimited' }] }",
        pod("", &http("livenessProbe", "/livez", "8081")),
    );
    finds(
        "{ jobs: [{ name: 'app', exec: 'x', restarts: 'unlimited' }] }",
        pod("", &http("livenessProbe", "/livez", "9090")),
        Fault,
        "livenessProbe",
        &["no `telemetry`", "telemetry: { port: 9090 }"],
    );
}

#[test]
fn x14_telemetry_on_loopback_is_not_reached_from_outside_and_the_other_way_round() {
    let loopback = SERVER.replace("'eth0'", "'lo'");
    finds(
        &loopback,
        pod("", &http("livenessProbe", "/livez", "9090")),
        Fault,
        "livenessProbe",
        &["127.0.0.1:9090 only"],
    );
    finds(
        &loopback,
        pod("", "readinessProbe:\n  tcpSocket: { port: 9090 }"),
        Fault,
        "readinessProbe",
        &["127.0.0.1:9090 only"],
    );
    let curl = "healthcheck:\n  test: [CMD, curl, -f, 'http://localhost:9090/readyz']";
    passes(&loopback, compose(curl));
    finds(SERVER, compose(curl), Fault, "test:", &["connects to localhost", "containerpilot health"]);
    let shell = "healthcheck:\n  test: wget -q -O- localhost:9090/healthz || exit 1";
    finds(&loopback, compose(shell), Fault, "test:", &["404", "use /readyz"]);
    passes(SERVER, compose("healthcheck:\n  test: [CMD-SHELL, 'curl -f http://127.0.0.1:8080/ || exit 1']"));
}

#[test]
fn x14_tcp_and_grpc_probes() {
    passes(SERVER, pod("", "livenessProbe:\n  tcpSocket:\n    port: http"));
    finds(
        SERVER,
        pod("", "livenessProbe:\n  tcpSocket:\n    port: 81"),
        Warning,
        "livenessProbe",
        &["connects to port 81"],
    );
    finds(SERVER, pod("", "livenessProbe:\n  grpc:\n    port: 9090"), Fault, "livenessProbe", &["gRPC"]);
    passes(SERVER, pod("", "livenessProbe:\n  grpc:\n    port: 8080"));
}

fn exec(kind: &str, command: &str) -> String {
    format!("{kind}:\n  exec:\n    command: [{command}]")
}

#[test]
fn x14_probes_that_run_containerpilot() {
    passes(SERVER, pod("", &exec("readinessProbe", "/bin/containerpilot, health")));
    passes(SERVER, pod("", &exec("readinessProbe", "containerpilot, health, app")));
    passes(SERVER, pod("", &exec("livenessProbe", "containerpilot, ping")));
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot, health, apq")),
        Fault,
        "readinessProbe",
        &["no job `apq`", "did you mean `app`?"],
    );
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot, wait, web, healthy")),
        Fault,
        "readinessProbe",
        &["no job `web`"],
    );
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot, health, -quiet")),
        Fault,
        "readinessProbe",
        &["unknown flag -quiet"],
    );
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot, healthy")),
        Fault,
        "readinessProbe",
        &["unknown command"],
    );
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot")),
        Fault,
        "readinessProbe",
        &["second supervisor"],
    );
    finds(
        SERVER,
        pod("", &exec("livenessProbe", "containerpilot, health")),
        Warning,
        "livenessProbe",
        &["any job is unhealthy", "ping"],
    );
    finds(
        SERVER,
        pod("", &exec("readinessProbe", "containerpilot, health, -socket, /tmp/x")),
        Fault,
        "readinessProbe",
        &["/var/run/containerpilot.socket, not /tmp/x"],
    );
    finds(
        SERVER,
        pod("", "lifecycle:\n  preStop:\n    exec:\n      command: [containerpilot, maintenence, enable]"),
        Fault,
        "command:",
        &["the hook", "unknown command"],
    );
}

#[test]
fn x14_checks_of_nomad() {
    let check = |lines: &str| {
        nomad(&format!(
            "kill_timeout = \"10s\"\nservice {{\n  port = \"http\"\n  check {{\n{lines}\n  }}\n}}"
        ))
    };
    passes(SERVER, check("type = \"http\"\npath = \"/x\""));
    passes(SERVER, check("type = \"http\"\npath = \"/readyz\"\nport = \"any\""));
    passes(SERVER, check("type = \"script\"\ncommand = \"containerpilot\"\nargs = [\"health\"]"));
    finds(
        SERVER,
        check("type = \"script\"\ncommand = \"containerpilot\"\nargs = [\"health\", \"x\"]"),
        Fault,
        "check {",
        &["no job `x`"],
    );
    finds(SERVER, check("type = \"tcp\"\nport = \"81\""), Warning, "check {", &["connects to port 81"]);
    let wrong = "type = \"http\"\npath = \"/x\"\nport = \"htp\"";
    finds(SERVER, check(wrong), Fault, "check {", &["port `htp`", "`network`", "correct the label"]);
    passes(SERVER, check("type = \"http\"\npath = \"/x\"\nport = \"${var.port}\""));
    let (path, text) = check(wrong);
    passes(SERVER, (path, text.replace("port \"any\" {}", "dynamic \"port\" {}")));
    let (path, text) =
        check(&format!("{wrong}\n  }}\n}}\nresources {{\n  network {{\n    port \"htp\" {{}}"));
    passes(SERVER, (path, text));
    let restart =
        "type = \"script\"\ncommand = \"containerpilot\"\nargs = [\"health\"]\ncheck_restart { limit = 3 }";
    finds(SERVER, check(restart), Warning, "check {", &["the task is restarted"]);
}

#[test]
fn x14_the_stop_signal_must_shut_down() {
    passes(SERVER, compose("stop_signal: SIGQUIT"));
    passes(SERVER, compose("stop_signal: 15"));
    finds(
        SERVER,
        compose("stop_signal: SIGHUP"),
        Fault,
        "stop_signal",
        &["reloads the configuration", "SIGTERM, SIGINT, SIGQUIT"],
    );
    finds(SERVER, compose("stop_signal: USR1"), Fault, "stop_signal", &["reopens the log file"]);
    finds(SERVER, compose("stop_signal: SIGWINCH"), Fault, "stop_signal", &["is ignored"]);
    finds(SERVER, compose("stop_signal: KILL"), Fault, "stop_signal", &["ends everything at once"]);
    finds(SERVER, compose("stop_signal: SIGFOO"), Fault, "stop_signal", &["`SIGFOO` is not a signal"]);
    let config = "{ stopOn: ['TERM'], jobs: [{ name: 'app', exec: 'x' }, { name: 'quit', exec: 'y', when: { source: 'SIGQUIT' } }] }";
    finds(config, pod("", "lifecycle:\n  stopSignal: SIGQUIT"), Fault, "stopSignal", &["runs the job quit"]);
    passes(config, nomad("kill_timeout = \"10s\""));
    finds(
        config,
        nomad("kill_timeout = \"10s\"\nkill_signal = \"SIGINT\""),
        Fault,
        "kill_signal",
        &["is ignored"],
    );
    // Nomad sends SIGINT to what is not a container.
    let (path, text) = nomad("kill_timeout = \"10s\"");
    finds(
        config,
        (path, text.replace("\"docker\"", "\"exec\"")),
        Fault,
        "task",
        &["the default stop signal, SIGINT, is ignored"],
    );
    let config = "{ stopOn: ['QUIT'], jobs: [{ name: 'app', exec: 'x' }] }";
    finds(config, compose(""), Warning, "web:", &["SIGTERM, is ignored"]);
}

#[test]
fn x14_memory_limits_of_jobs_fit_into_that_of_the_container() {
    let config = "{ jobs: [{ name: 'a', exec: 'x', limits: { as: 67108864 } }, { name: 'b', exec: 'x', limits: { as: 100663296 } }] }";
    let limit = |size: &str| pod("", &format!("resources:\n  limits:\n    memory: {size}"));
    passes(config, limit("160Mi"));
    passes("{ jobs: [{ name: 'a', exec: 'x' }] }", limit("1Mi"));
    passes(config, pod("", ""));
    finds(
        config,
        limit("128Mi"),
        Warning,
        "memory: 128Mi",
        &["128 MiB", "160 MiB together (a 64 MiB, b 96 MiB)"],
    );
    finds(config, compose("mem_limit: 128m"), Warning, "mem_limit", &["160 MiB"]);
    finds(
        config,
        compose("deploy:\n  resources:\n    limits:\n      memory: 128M"),
        Warning,
        "memory",
        &["160 MiB"],
    );
    passes(config, nomad("kill_timeout = \"10s\"\nresources {\n  memory = 100\n  memory_max = 200\n}"));
    finds(
        config,
        nomad("kill_timeout = \"10s\"\nresources {\n  memory = 100\n}"),
        Warning,
        "memory",
        &["100 MiB"],
    );
}

#[test]
fn x14_a_task_must_end_and_a_service_must_not() {
    let job = |restarts: &str| {
        let text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: { name: nightly }\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          \
                    restartPolicy: Never\n          containers:\n            - name: web\n              image: web\n";
        let config = format!("{{ jobs: [{{ name: 'app', exec: 'x'{restarts} }}] }}");
        (config, ("job.yaml", text.to_owned()))
    };
    let (config, deployment) = job("");
    passes(&config, deployment);
    let (config, deployment) = job(", restarts: 'unlimited'");
    finds(
        &config,
        deployment,
        Fault,
        "restartPolicy",
        &["CronJob/nightly is expected to end", "app never completes"],
    );
    let (config, deployment) = job(", restarts: 'unlimited', restartOn: 'failure'");
    passes(&config, deployment);
    let once = "{ jobs: [{ name: 'once', exec: 'x', onSuccess: 'shutdown' }] }";
    finds(
        once,
        pod("", ""),
        Fault,
        "- name: web",
        &["runs once and then ends the container", "CrashLoopBackOff"],
    );
    finds(once, compose("restart: always"), Fault, "restart: always", &["on-failure"]);
    passes(once, compose("restart: on-failure"));
    let endless = "{ jobs: [{ name: 'app', exec: 'x', restarts: 'unlimited' }] }";
    let hook = |sidecar: &str| {
        nomad(&format!("kill_timeout = \"10s\"\nlifecycle {{\n  hook = \"prestart\"{sidecar}\n}}"))
    };
    finds(endless, hook(""), Fault, "lifecycle", &["is expected to end"]);
    passes(endless, hook("\n  sidecar = true"));
    finds(once, nomad("kill_timeout = \"10s\""), Fault, "task", &["type = \"batch\""]);
}

#[test]
fn x14_the_command_must_start_containerpilot() {
    passes(SERVER, pod("", "command: [/bin/containerpilot]"));
    passes(SERVER, pod("", "command: [/docker-entrypoint.sh]"));
    passes(SERVER, pod("", "command: [tini, --, containerpilot]"));
    passes(SERVER, compose("command: /bin/containerpilot"));
    finds(
        SERVER,
        compose("command: containerpilot serve"),
        Fault,
        "command",
        &["`command` is not a valid", "`serve`"],
    );
    passes(SERVER, compose("command: nginx"));
    passes(SERVER, pod("", "command: [sh, -c, 'setup && exec containerpilot']"));
    finds(
        SERVER,
        pod("", "command: [/bin/server, --port, '80']"),
        Fault,
        "command",
        &["server is started, and containerpilot is not"],
    );
    finds(SERVER, pod("", "command: [sh, -c, nginx]"), Fault, "command", &["containerpilot is not"]);
    finds(
        SERVER,
        pod("", "command: [containerpilot, -confg, x]"),
        Fault,
        "command",
        &["unknown flag -confg"],
    );
    finds(
        SERVER,
        compose("entrypoint: containerpilot serve"),
        Fault,
        "entrypoint",
        &["unknown command `serve`"],
    );
    finds(
        SERVER,
        pod("", "command: [sh, -c, 'containerpilot; sleep 1']"),
        Warning,
        "command",
        &["may stay PID 1", "exec containerpilot"],
    );
}

#[test]
fn x14_another_pid_1() {
    finds(SERVER, compose("init: true"), Warning, "init: true", &["another init process"]);
    passes(SERVER, compose("init: false"));
    finds(SERVER, pod("shareProcessNamespace: true", ""), Warning, "shareProcessNamespace", &["not PID 1"]);
    let hook = "lifecycle:\n  postStart:\n    exec:\n      command: [kill, -HUP, '1']";
    passes(SERVER, pod("", hook));
    finds(SERVER, pod("shareProcessNamespace: true", hook), Fault, "command:", &["does not reach it"]);
    let (path, text) = nomad("kill_timeout = \"10s\"");
    let text = text.replace("config {", "config {\n init = true\n");
    finds(SERVER, (path, text), Warning, "init", &["another init"]);
}

#[test]
fn x14_users_that_cannot_be_switched_to() {
    let config = "{ jobs: [{ name: 'app', exec: 'x', user: 1001 }] }";
    let user = |lines: &str| pod("", &format!("securityContext:\n{}", lines.trim_end()));
    passes(config, user("  runAsUser: 1001"));
    passes(config, user("  runAsUser: 0"));
    finds(
        config,
        user("  runAsUser: 1000"),
        Fault,
        "runAsUser",
        &["runs as user 1000", "app cannot run as 1001"],
    );
    finds(config, pod("securityContext:\n  runAsUser: 1000", ""), Fault, "runAsUser", &["1001"]);
    finds(config, user("  runAsNonRoot: true"), Warning, "runAsNonRoot", &["unless that is the same user"]);
    finds(config, compose("user: '1000:1000'"), Fault, "user", &["1001"]);
    finds(config, user("  capabilities:\n    drop: [ALL]"), Fault, "drop", &["CAP_SETUID"]);
    passes(config, user("  capabilities:\n    drop: [ALL]\n    add: [SETUID, SETGID]"));
    passes(
        "{ jobs: [{ name: 'app', exec: 'x' }] }",
        user("  runAsNonRoot: true\n  capabilities:\n    drop: [ALL]"),
    );
    finds(
        "{ jobs: [{ name: 'app', exec: 'x', user: 'redis' }] }",
        user("  runAsUser: 999"),
        Warning,
        "runAsUser",
        &["redis"],
    );
}

#[test]
fn x14_a_read_only_root_needs_mounts_for_what_is_written() {
    let root = "securityContext:\n  readOnlyRootFilesystem: true";
    let mount = |path: &str| format!("{root}\nvolumeMounts:\n  - name: run\n    mountPath: {path}");
    let volume = "volumes:\n  - name: run\n    emptyDir: {}";
    finds(SERVER, pod("", root), Warning, "readOnlyRootFilesystem", &["commands such as `status`"]);
    passes(SERVER, pod(volume, &mount("/run")));
    passes(SERVER, pod(volume, &mount("/var/run")));
    let map = "volumes:\n  - name: run\n    configMap: { name: x }";
    finds(SERVER, pod(map, &mount("/run")), Warning, "readOnlyRootFilesystem", &["no writable mount"]);
    let probe = format!("{root}\n{}", exec("readinessProbe", "containerpilot, health"));
    finds(SERVER, pod("", &probe), Fault, "readOnlyRootFilesystem", &["probes that use it always fail"]);
    let explicit = "{ control: { socket: '/sock/cp' }, jobs: [{ name: 'app', exec: 'x' }] }";
    finds(explicit, compose("read_only: true\ntmpfs: /run"), Fault, "read_only", &["does not start"]);
    passes(explicit, compose("read_only: true\ntmpfs: [/sock]"));
    passes(explicit, compose("read_only: true\nvolumes: ['data:/sock']"));
    finds(
        explicit,
        compose("read_only: true\nvolumes: ['data:/sock:ro']"),
        Fault,
        "read_only",
        &["does not start"],
    );
    let files = "{ files: [{ name: 'cfg', template: 'x', to: '/etc/app.cfg' }], logging: { output: '/var/log/cp.log' }, jobs: [{ name: 'app', exec: 'x' }] }";
    let found = findings(files, compose("read_only: true\ntmpfs: /run"));
    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    assert!(messages[0].contains("the file cfg is never rendered"), "{messages:?}");
    assert!(messages[1].contains("the log file /var/log/cp.log"), "{messages:?}");
    assert_eq!(found.len(), 2);
    let recorded = "{ record: { file: '/data/rec' }, jobs: [{ name: 'app', exec: 'x' }] }";
    let recorded_to = |mount: &str| compose(&format!("read_only: true\ntmpfs: [/run{mount}]"));
    finds(
        recorded,
        recorded_to(""),
        Fault,
        "read_only",
        &["the recording /data/rec is on no writable mount"],
    );
    passes(recorded, recorded_to(", /data"));
    // Without a read-only root: a user that cannot write to /var/run.
    let user =
        format!("securityContext:\n  runAsUser: 1000\n{}", exec("readinessProbe", "containerpilot, health"));
    finds(SERVER, pod("", &user), Warning, "runAsUser", &["can probably not create its control socket"]);
}

#[test]
fn x14_the_termination_message_is_where_it_is_written() {
    passes(SERVER, pod("", "terminationMessagePath: /dev/termination-log"));
    finds(
        SERVER,
        pod("", "terminationMessagePath: /tmp/x"),
        Warning,
        "terminationMessagePath",
        &["/dev/termination-log"],
    );
}

#[test]
fn x14_the_container_that_runs_the_configuration_is_found() {
    let two = |extra: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{ name: p }}\nspec:\n  containers:\n    - name: a\n      image: a\n{extra}    - name: b\n      image: b\n  \
             initContainers:\n    - name: side\n      restartPolicy: Always\n      image: registry:5000/x\n---\nkind: Service\napiVersion: v1\n"
        )
    };
    let chosen = |text: &str, name: Option<&str>| {
        choose(&containers("p.yaml", text), name)
            .map(|one| one.name.clone())
            .map_err(|error| error.to_string())
    };
    let error = chosen(&two(""), None).unwrap_err();
    assert!(error.contains("--container: Pod/p/a; Pod/p/b; Pod/p/side"), "{error}");
    assert_eq!(chosen(&two(""), Some("b")).unwrap(), "b");
    assert_eq!(chosen(&two(""), Some("Pod/p/side")).unwrap(), "side");
    assert!(chosen(&two(""), Some("c")).unwrap_err().contains("has no container `c`"));
    for extra in [
        "      command: [/bin/containerpilot]\n",
        "      args: [-config, /etc/containerpilot.json5]\n",
        "      env: [{ name: CONTAINERPILOT, value: /x }]\n",
        "      volumeMounts: [{ name: x, mountPath: /etc/containerpilot.json5 }]\n",
        "      readinessProbe: { exec: { command: [containerpilot, health] } }\n",
    ] {
        assert_eq!(chosen(&two(extra), None).unwrap(), "a", "{extra}");
    }
    let image = two("").replace("registry:5000/x", "registry:5000/my-containerpilot:1.2");
    assert_eq!(chosen(&image, None).unwrap(), "side");
}

#[test]
fn x14_jobs_of_nomad_in_json() {
    let text = r#"{ "Job": { "ID": "web", "Type": "batch", "TaskGroups": [ { "Name": "g",
        "Networks": [ { "DynamicPorts": [ { "Label": "http", "To": 81 } ] } ],
        "Tasks": [ { "Name": "t", "Driver": "docker",
          "Config": { "image": "web", "init": true },
          "Env": { "A": "1" },
          "KillTimeout": 3000000000,
          "KillSignal": "SIGHUP",
          "Services": [ { "PortLabel": "http", "Checks": [ { "Type": "tcp", "PortLabel": "http" } ] } ],
          "Resources": { "MemoryMB": 32, "MemoryMaxMB": 0 } } ] } ] } }"#;
    let all = containers("job.json", text);
    assert_eq!((all[0].name.as_str(), all[0].parent.as_str()), ("t", "job web, group g"));
    assert_eq!(all[0].env, [("A".to_owned(), "1".to_owned())]);
    let found = findings(SERVER, ("job.json", text.to_owned()));
    let at: Vec<(usize, &str)> =
        found.iter().map(|one| (one.line, one.message.split(' ').next().unwrap())).collect();
    assert_eq!(at, [(1, "job"), (4, "`init"), (6, "the"), (7, "`KillSignal`,"), (8, "check")], "{found:#?}");
    assert!(found[2].help.contains("set `\"KillTimeout\": 6000000000` (nanoseconds) or more"), "{found:#?}");
    let text = text.replace("3000000000", "5");
    let found = findings(SERVER, ("job.json", text));
    assert!(found[2].help.contains("`30000000000` for 30 seconds"), "{found:#?}");
}

#[test]
fn x14_the_stop_signal_of_an_image_must_shut_down() {
    passes(SERVER, image(""));
    passes(SERVER, image("STOPSIGNAL 15"));
    passes(SERVER, image("STOPSIGNAL SIGQUIT"));
    passes(SERVER, image("ARG SIGNAL\nSTOPSIGNAL $SIGNAL"));
    let ignored = "`STOPSIGNAL`, SIGWINCH, is ignored; SIGKILL follows";
    let help = "set `STOPSIGNAL` to one of SIGTERM, SIGINT, SIGQUIT, or add SIGWINCH to `stopOn`";
    finds(SERVER, image("stopsignal SIGWINCH"), Fault, "stopsignal", &[ignored, help]);
    finds(SERVER, image("STOPSIGNAL SIGFOO"), Fault, "STOPSIGNAL", &["`SIGFOO` is not a signal"]);
    // The default, unless the base of the image has another one.
    let config = "{ stopOn: ['INT'], jobs: [{ name: 'app', exec: 'x' }] }";
    finds(config, image(""), Warning, "FROM", &["the default stop signal, SIGTERM, is ignored"]);
    passes(config, image("STOPSIGNAL INT"));
}

#[test]
fn x14_an_image_with_very_many_stages_is_read_in_linear_time() {
    use std::fmt::Write as _;
    let began = std::time::Instant::now();
    let mut text = "FROM base AS s0\n".to_owned();
    for nth in 1..20_000 {
        write!(text, "FROM s{} AS s{nth}\nENV V{nth}=1\nCMD [\"a\"]\n", nth - 1).unwrap();
    }
    text.push_str("STOPSIGNAL SIGHUP\n");
    let found = findings(SERVER, ("Dockerfile", text));
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!found.is_empty());
}

#[test]
fn x14_an_image_is_the_last_stage_and_the_stages_that_it_is_based_on() {
    let file = "# syntax=docker/dockerfile:1\nARG TAG=12\nFROM debian:$TAG AS base\nSTOPSIGNAL SIGHUP\nENTRYPOINT [\"nginx\"]\n\
                CMD [\"-g\", \"daemon off;\"]\nFROM rust AS build\nENTRYPOINT [\"cargo\"]\nRUN <<EOF\nSTOPSIGNAL SIGUSR1\nEOF\nFROM Base\n";
    let found = findings(SERVER, ("Containerfile", format!("{file}ENTRYPOINT [\"containerpilot\"]\n")));
    let [finding] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(finding.line, 4, "its CMD is gone with the ENTRYPOINT: {finding:#?}");
    let found = findings(SERVER, ("Dockerfile.web", file.to_owned()));
    assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [4, 5], "{found:#?}");
    let message = "`ENTRYPOINT` is that of another program: nginx is started, and containerpilot is not";
    assert_eq!(found[1].message, message);
    // A file without a telling name, such as standard input.
    finds(SERVER, ("-", "FROM x\nSTOPSIGNAL HUP\n".to_owned()), Fault, "STOPSIGNAL", &["reloads"]);
}

#[test]
fn x14_commands_users_and_health_checks_of_an_image() {
    passes(SERVER, image("CMD [\"nginx\"]"));
    passes(SERVER, image("ENTRYPOINT [\"/docker-entrypoint.sh\"]\nCMD [\"containerpilot\"]"));
    finds(
        SERVER,
        image("ENTRYPOINT [\"containerpilot\"]\nCMD [\"nginx\"]"),
        Fault,
        "ENTRYPOINT",
        &["unknown command `nginx`"],
    );
    // In the form of a shell, CMD is not used.
    passes(SERVER, image("ENTRYPOINT containerpilot\nCMD nginx"));
    let shell = "ENTRYPOINT mkdir -p /data && \\\n  containerpilot";
    finds(SERVER, image(shell), Warning, "ENTRYPOINT", &["a shell starts containerpilot and may stay PID 1"]);
    passes(SERVER, image("HEALTHCHECK --interval=5s CMD containerpilot health app"));
    passes(SERVER, image("HEALTHCHECK CMD containerpilot health wrong\nHEALTHCHECK NONE"));
    let wrong = "HEALTHCHECK --interval=5s CMD [\"containerpilot\", \"health\", \"wrong\"]";
    finds(SERVER, image(wrong), Fault, "HEALTHCHECK", &["HEALTHCHECK runs", "no job `wrong`"]);
    let config = "{ jobs: [{ name: 'app', exec: 'x', user: 1001 }] }";
    finds(config, image("USER 1000:1000"), Fault, "USER", &["app cannot run as 1001"]);
    finds(config, image("USER web"), Warning, "USER", &["unless that is the same user"]);
    passes(config, image("USER web\nUSER root"));
    passes(config, image("USER $USER"));
    finds(config, image("ENV ID=1000\nUSER $ID"), Fault, "USER", &["app cannot run as 1001"]);
    // The build can set another one.
    passes(config, image("ARG ID=1000\nUSER $ID"));
    passes(SERVER, image("ENTRYPOINT [\"nginx\"]\nENTRYPOINT [ ]\nCMD [\"containerpilot\"]"));
    let env = |text: &str| containers("Dockerfile", &image(text).1).remove(0).env;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        env("ENV A=1 B=\"two words\" \\\n  C=$A\nENV D d e"),
        [pair("A", "1"), pair("B", "two words"), pair("D", "d e")]
    );
}

#[test]
fn x14_other_files_are_refused_with_a_reason() {
    let error = |path: &str, text: &str| {
        let error = read(&Text::new(path, text)).unwrap_err();
        assert!(!matches!(error, AuditError::Several(_)));
        error.to_string()
    };
    assert!(error("x.yaml", "a: 1").contains("x.yaml is no manifest of Kubernetes"));
    assert!(error("x.yaml", "").contains("is no manifest"));
    let objects = "kind: Service\napiVersion: v1\n---\nkind: Rollout\napiVersion: argoproj.io/v1alpha1\n";
    let objects = error("x.yaml", objects);
    assert!(objects.contains("has no containers: it has `kind: Rollout`, `kind: Service`"), "{objects}");
    assert!(objects.contains("Deployment, StatefulSet"), "{objects}");
    let template = error("x.yaml", "a: 1\nx: {{ .Values.grace }}\n");
    assert!(template.starts_with("x.yaml:2: ") && template.contains("`helm template`"), "{template}");
    let line = error("x.hcl", "job \"a\" {\n  x = \"1\" y = 2\n}\n");
    assert!(line.starts_with("x.hcl:2: a new line must begin here"), "{line}");
    assert!(error("x.yaml", "a: [1").starts_with("x.yaml:"));
    assert_eq!(error("x.hcl", "job \"a\" {\n"), "x.hcl:2: a block is not closed: add `}`");
    assert!(error("x.hcl", "job \"a\" {\n  dynamic \"group\" {}\n}\n").contains("no job with a task"));
    assert!(error("x.json", "{\"Job\": {}}").contains("is no manifest"));
    assert_eq!(error("Dockerfile", "FROM x\nSTOP INT\n"), "Dockerfile:2: unknown instruction 'STOP'");
    assert_eq!(error("web.Dockerfile", ""), "web.Dockerfile:1: expected at least one FROM instruction");
}
