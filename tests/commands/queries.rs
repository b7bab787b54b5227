//! `status`, `explain`, `health`, `wait`.

use std::time::Instant;

use super::{TIMEOUT, command, decode, json, run_command, run_err, run_ok, supervisor, wait};

const WEB: &str = "{ jobs: [
    { name: 'setup', exec: 'true' },
    { name: 'db', exec: 'sleep 1000', restarts: 'unlimited', when: { source: 'setup', once: 'exitSuccess' },
      port: 5432, interfaces: 'static:10.0.0.1', health: { exec: 'true', interval: 1, ttl: 5 } },
    { name: 'gate', exec: 'sleep 1000', health: { exec: 'test -e @/open', interval: 1, ttl: 5 } },
    { name: 'app', exec: 'sleep 1000', when: { source: 'gate', once: 'healthy' } },
    { name: 'behind', exec: 'sleep 1000', when: { source: 'app', once: 'exitSuccess' } },
    { name: 'oops', exec: ['sh', '-c', 'exit 3'] },
  ], watches: [{ name: 'db', interval: 5 }] }";

#[test]
fn x4_status_shows_state_health_pid_and_pending_conditions() {
    let it = supervisor(WEB);
    wait(&it, "db", "healthy");
    wait(&it, "oops", "failed");
    wait(&it, "gate", "running");
    let shown = run_ok(&it, &["status"]);
    let line = |name: &str| {
        let line = shown.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name} in {shown}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("setup")[1], "complete");
    assert_eq!(line("db")[1..3], ["running", "healthy"]);
    assert!(line("db")[3].parse::<u32>().unwrap() > 1);
    assert_eq!(line("app")[1..].join(" "), "waiting - 0 waiting until gate is healthy (running)");
    assert!(line("oops").join(" ").contains("failed - 0 exited with code 3 "), "{shown}");
    assert!(shown.contains("\nWATCH  HEALTHY INSTANCES\ndb     10.0.0.1:5432\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "colours without a terminal:\n{shown}");
    let whole = json(&run_ok(&it, &["status", "--format", "json"]));
    assert_eq!((&whole["phase"], &whole["jobs"][1]["health"]), (&"running".into(), &"healthy".into()));
    let one = run_ok(&it, &["status", "db"]);
    assert!(one.starts_with("db: running, healthy\n  process    pid "), "{one}");
    assert!(one.contains("\n  started by setup exitSuccess\n  restarts   0, without limit\n"), "{one}");
    assert!(one.contains("\n  check      check.db: passed "), "{one}");
    assert_eq!(json(&run_ok(&it, &["status", "db", "-format=json"]))["name"], "db");
    assert!(run_ok(&it, &["status", "watch.db"]).starts_with("watch.db: 1 healthy\n"));
    let mut names = std::process::Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    names.args(["completions", "jobs"]).env("CONTAINERPILOT", it.file("config.json5"));
    assert_eq!(decode(&names.output().unwrap()).1, "setup\ndb\ngate\napp\nbehind\noops\n");
    assert_eq!(run_err(&it, &["status", "dbb"]), "there is no job `dbb`; did you mean `db`?");
}

#[test]
fn x4_status_uses_colours_and_truncates_lines_on_a_terminal_only() {
    let it = supervisor(WEB);
    wait(&it, "db", "healthy");
    let on_terminal = |before: &str| {
        let pilot = env!("CARGO_BIN_EXE_containerpilot");
        let line = format!("stty cols 60; {before} {pilot} status -socket {}", it.file("socket").display());
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").env("TERM", "xterm");
        decode(&script.output().unwrap()).1
    };
    let shown = on_terminal("");
    assert!(shown.contains("\u{1b}[32mrunning\u{1b}[0m"), "{shown}");
    assert!(shown.lines().any(|line| line.trim_end().ends_with('…')), "{shown}");
    let shown = on_terminal("NO_COLOR=1");
    assert!(shown.contains("running   healthy") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 60), "{shown}");
}

#[test]
fn x5_explain_shows_pending_conditions_and_the_chain_of_causes() {
    let it = supervisor(WEB);
    wait(&it, "db", "healthy");
    wait(&it, "gate", "running");
    let why = run_ok(&it, &["explain", "behind"]);
    let lines: Vec<&str> = why.lines().collect();
    assert_eq!(lines[0], "behind: waiting to start");
    assert_eq!(lines[1], "  waiting until app exits successfully; app: waiting to start");
    assert!(lines[2].starts_with("    waiting until gate is healthy; gate: "), "{why}");
    let why = run_ok(&it, &["explain", "db"]);
    assert!(why.ends_with("triggered by setup exitSuccess, caused by startup\n"), "{why}");
    let whole = json(&run_ok(&it, &["explain", "db", "--format", "json"]));
    assert_eq!(whole["causes"][0]["source"], "setup");
    assert!(run_err(&it, &["explain", "beihnd"]).contains("`behind`"));
}

#[test]
fn x4_health_is_an_exit_code_and_one_line_of_output() {
    let it = supervisor(
        "{ jobs: [{ name: 'app', exec: 'sleep 1000', health: { exec: 'test -e @/well', interval: 1, ttl: 5 } },
                  { name: 'plain', exec: 'sleep 1000' },
                  { name: 'later', exec: 'true', when: { source: 'SIGHUP' }, health: { exec: 'true', interval: 1, ttl: 5 } }] }",
    );
    wait(&it, "plain", "running");
    wait(&it, "app", "running");
    let why = run_err(&it, &["health"]);
    assert!(
        why.contains("app is running, health unknown") || why.contains("app is running but unhealthy"),
        "{why}"
    );
    assert!(run_err(&it, &["health", "app"]).starts_with("app "));
    assert_eq!(run_ok(&it, &["health", "plain"]), "plain is running; it has no checks\n");
    assert_eq!(run_err(&it, &["health", "later"]), "later is waiting");
    std::fs::write(it.file("well"), "").unwrap();
    wait(&it, "app", "healthy");
    assert_eq!(run_ok(&it, &["health", "app"]), "app is healthy\n");
    assert_eq!(run_ok(&it, &["health", "--timeout", "30s"]).lines().count(), 1);
}

#[test]
fn x4_wait_ends_when_the_state_is_reached_impossible_or_timed_out() {
    let it = supervisor(WEB);
    let begun = Instant::now();
    wait(&it, "db", "healthy");
    run_ok(&it, &["wait", "setup", "oops", "stopped", "--timeout", "60s"]);
    assert_eq!(run_err(&it, &["wait", "app", "running", "--timeout", "50ms"]), "timed out: app is waiting");
    wait(&it, "oops", "failed");
    assert_eq!(
        run_err(&it, &["wait", "oops", "complete"]),
        "oops has failed, so it will not become complete"
    );
    assert_eq!(run_err(&it, &["wait", "app", "healthy"]), "app has no checks, so it is never healthy");
    assert!(run_err(&it, &["wait", "nobody", "healthy"]).starts_with("there is no job `nobody`"));
    std::fs::write(it.file("open"), "").unwrap();
    run_ok(&it, &["wait", "--all", "healthy", "--timeout", "60s"]);
    wait(&it, "app", "running");
    assert!(begun.elapsed() < TIMEOUT);
}

#[test]
fn x4_wait_reports_the_last_state_when_the_supervisor_exits() {
    let it = supervisor(
        "{ jobs: [{ name: 'good', exec: ['sh', '-c', 'while ! test -e @/go; do sleep 0.05; done'] },
                  { name: 'bad', exec: ['sh', '-c', 'while ! test -e @/go; do sleep 0.05; done; exit 4'] }] }",
    );
    wait(&it, "good", "running");
    wait(&it, "bad", "running");
    let waiting: Vec<_> = [["good", "complete"], ["bad", "failed"], ["good", "stopped"], ["good", "failed"]]
        .iter()
        .map(|[job, state]| {
            let mut command = command(&it, &["wait", job, state]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Every `wait` must be connected before the jobs exit.
    super::supervisor::wait_until("all `wait` commands are connected", || {
        let streams = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let socket = it.file("socket");
        streams.lines().filter(|line| line.ends_with(socket.to_str().unwrap())).count() > 4
    });
    std::fs::write(it.file("go"), "").unwrap();
    let ends: Vec<_> = waiting.into_iter().map(|child| decode(&child.wait_with_output().unwrap())).collect();
    assert_eq!(ends.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), [0, 0, 0, 1], "{ends:?}");
    assert_eq!(it.wait().0, 4);
}

#[test]
fn x6_refused_command_says_which_user_is_allowed() {
    if !super::supervisor::is_root() {
        return;
    }
    let it = supervisor("{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
    wait(&it, "a", "running");
    // Other users may not be able to read the build directory, so the binary is copied. A copy written by this process
    // could be busy (ETXTBSY), because its children inherit the open file.
    let copy = it.file("pilot");
    let copied =
        std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_containerpilot")).arg(&copy).status();
    assert!(copied.unwrap().success());
    let mut nobody = std::process::Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    nobody.args(["ping", "-socket"]).arg(it.file("socket"));
    let (code, _, err) = decode(&nobody.output().unwrap());
    assert_eq!(code, 1);
    assert!(
        err.contains("user 65534 may not use")
            && err.contains("belongs to user 0 and group 0 with mode 0600"),
        "{err}"
    );
    let (code, ..) = run_command(&it, &["ping"]);
    assert_eq!(code, 0);
}
