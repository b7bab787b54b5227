//! `status`, `explain`, `health`, `wait`.

use std::time::{Duration, Instant};

use super::{TIMEOUT, command, decode, json, run_command, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::idle::wait_until_idle_for;
use crate::support::skip::skip;

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
    assert!(shown.contains("\nWATCH  KIND     FOUND\ndb     service  10.0.0.1:5432\n"), "{shown}");
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
    assert_eq!(decode(&names.output_in_time().unwrap()).1, "setup\ndb\ngate\napp\nbehind\noops\n");
    assert_eq!(run_err(&it, &["status", "dbb"]), "there is no job `dbb`; did you mean `db`?");
}

#[test]
fn x4_status_uses_colours_and_wraps_notes_on_a_terminal_only() {
    let it = supervisor(WEB);
    wait(&it, "db", "healthy");
    let on_terminal = |before: &str| {
        let pilot = env!("CARGO_BIN_EXE_containerpilot");
        let line = format!("stty cols 60; {before} {pilot} status -socket {}", it.file("socket").display());
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").env("TERM", "xterm");
        decode(&script.output_in_time().unwrap()).1
    };
    let shown = on_terminal("");
    assert!(shown.contains("\u{1b}[32mrunning\u{1b}[0m"), "{shown}");
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains("waiting until gate is healthy (running)"), "{shown}");
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
    assert!(why.ends_with("started by setup exitSuccess, caused by startup\n"), "{why}");
    let whole = json(&run_ok(&it, &["explain", "db", "--format", "json"]));
    assert_eq!(whole["causes"][0]["source"], "setup");
    assert!(run_err(&it, &["explain", "beihnd"]).contains("`behind`"));
}

#[test]
fn x9_explain_of_a_crash_loop_shows_exit_count_next_attempt_and_output() {
    let it = supervisor(
        "{ jobs: [{ name: 'app', exec: ['sh', '-c', 'echo no database; exit 7'], restarts: 'unlimited',
                    restartBackoff: { initial: '1m', max: '1m' } },
                  { name: 'cron', exec: ['sh', '-c', 'kill -9 $$'], when: { interval: '1h' } },
                  { name: 'stay', exec: 'sleep 1000' }] }",
    );
    let explain = |job: &str| run_ok(&it, &["explain", job]);
    wait(&it, "stay", "running");
    crate::support::supervisor::wait_until("it has failed twice", || {
        explain("app").contains("2 failures in a row")
    });
    crate::support::supervisor::wait_until("the output is kept", || explain("app").contains("no database"));
    let why = explain("app");
    let lines: Vec<&str> = why.lines().collect();
    assert_eq!(lines[0], "app: exited with code 7, waiting to restart", "{why}");
    assert!(lines[1].starts_with("  restarting in "), "{why}");
    assert!(
        lines[2].starts_with("  last run exited with code 7 ") && lines[2].ends_with(", 2 failures in a row"),
        "{why}"
    );
    assert_eq!(
        lines[3..],
        ["last run started by startup", "last lines of its last run:", "  no database"],
        "{why}"
    );
    let whole = json(&run_ok(&it, &["explain", "app", "--format", "json"]));
    assert_eq!((&whole["job"]["failedRuns"], &whole["output"][0]), (&2.into(), &"no database".into()));
    crate::support::supervisor::wait_until("the periodic job has failed", || {
        explain("cron").contains("SIGKILL")
    });
    assert!(explain("cron").contains("\n  last run exited on SIGKILL "), "{}", explain("cron"));
    let status = run_ok(&it, &["status"]);
    let cron = status.lines().find(|line| line.starts_with("cron")).unwrap();
    assert!(cron.contains(" last run exited on SIGKILL "), "{status}");
}

#[test]
fn x9_explain_knows_watches_and_services() {
    let it = supervisor(WEB);
    wait(&it, "db", "healthy");
    let explain = |name: &str| run_ok(&it, &["explain", name]);
    crate::support::supervisor::wait_until("the watch sees it", || {
        explain("watch.db").contains("1 healthy instance")
    });
    let why = explain("watch.db");
    assert!(why.contains(" at 10.0.0.1 port 5432\n"), "{why}");
    assert!(why.contains("\n  service db (10.0.0.1:5432): advertised as passing\n"), "{why}");
    assert!(
        why.contains("\n  last event: watch.db healthy, ") && why.ends_with("\n  no job waits for it\n"),
        "{why}"
    );
    assert_eq!(json(&run_ok(&it, &["explain", "watch.db", "-format", "json"]))["watch"]["name"], "db");
    let service = explain("service.db");
    assert!(service.starts_with("db: running") && service.contains("passing in the catalog"), "{service}");
    assert_eq!(run_err(&it, &["explain", "watch.bd"]), "there is no watch `bd`; did you mean `watch.db`?");
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
        why.contains("healthy: app: not checked yet") || why.contains("healthy: app: unhealthy"),
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
    assert_eq!(
        run_err(&it, &["wait", "app", "running", "--timeout", "50ms"]),
        "timed out: app is waiting until gate is healthy (running)"
    );
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
    crate::support::supervisor::wait_until("all `wait` commands are connected", || {
        let streams = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let socket = it.file("socket");
        streams.lines().filter(|line| line.ends_with(socket.to_str().unwrap())).count() > 4
    });
    std::fs::write(it.file("go"), "").unwrap();
    let ends: Vec<_> = waiting.into_iter().map(|child| decode(&child.output_in_time().unwrap())).collect();
    assert_eq!(ends.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), [0, 0, 0, 1], "{ends:?}");
    assert_eq!(it.wait().0, 4);
}

#[test]
fn x7_a_job_that_never_ran_is_skipped_and_never_called_complete() {
    let it = supervisor(
        "{ jobs: [{ name: 'setup', exec: ['sh', '-c', 'exit 3'] },
                  { name: 'app', exec: 'true', when: { source: 'setup', once: 'exitSuccess' } },
                  { name: 'late', exec: 'true', when: { source: 'other', once: 'exitSuccess', timeout: '100ms' } },
                  { name: 'other', exec: 'sleep 1000' }] }",
    );
    wait(&it, "app", "skipped");
    wait(&it, "late", "skipped");
    let why = "`setup exitSuccess` can no longer happen";
    assert_eq!(
        run_err(&it, &["wait", "app", "complete"]),
        format!("app was skipped, so it will not become complete: {why}")
    );
    assert_eq!(
        run_err(&it, &["wait", "setup", "complete", "--timeout", "60s"]),
        "setup has failed, so it will not become complete"
    );
    let status = run_ok(&it, &["status"]);
    let line = |job: &str| status.lines().find(|line| line.starts_with(job)).unwrap().to_owned();
    assert!(line("app").contains("skipped") && line("app").ends_with(why), "{status}");
    assert!(line("late").ends_with("other did not exit successfully within 100ms"), "{status}");
    let job = json(&run_ok(&it, &["status", "app", "--format", "json"]));
    assert_eq!((&job["state"], &job["reason"]), (&"skipped".into(), &why.into()));
    let explained = run_ok(&it, &["explain", "app"]);
    assert!(explained.starts_with(&format!("app: skipped: {why}\n  setup: failed, last run")), "{explained}");
    let events = run_ok(&it, &["events"]);
    assert!(events.contains("app stopped, skipped: its event can no longer happen"), "{events}");
    assert!(events.contains("setup stopped, failed"), "{events}");
    it.signal("-TERM");
    let (_, log) = it.wait();
    assert!(log.contains("setup failed") && log.contains("app skipped"));
    assert!(!log.contains("complete"));
}

#[test]
fn x8_wait_after_restart_waits_for_the_new_process() {
    let it = supervisor(
        "{ jobs: [{ name: 'app', exec: 'sleep 1000', drain: '1s', health: { exec: 'true', interval: 1, ttl: 5 } },
                  { name: 'bare', exec: 'sleep 1000', drain: '1s' }] }",
    );
    let pid = |job: &str| json(&run_ok(&it, &["status", job, "--format", "json"]))["pid"].clone();
    for (job, state) in [("app", "healthy"), ("bare", "running")] {
        wait(&it, job, state);
        let before = pid(job);
        run_ok(&it, &["restart", job]);
        if job == "app" {
            assert_eq!(run_err(&it, &["health", "app"]), "app is stopping");
        }
        wait(&it, job, state);
        let after = pid(job);
        assert!(after.is_u64() && after != before, "{before} {after}");
    }
}

#[test]
fn x4_wait_for_all_succeeds_when_the_supervisor_exits_because_all_is_complete() {
    let it = supervisor(
        "{ jobs: [{ name: 'one', exec: ['sh', '-c', 'while ! test -e @/go; do sleep 0.05; done'] },
                  { name: 'two', exec: 'true', when: { source: 'one', once: 'exitSuccess' } },
                  { name: 'hup', exec: 'true', when: { source: 'SIGHUP' } }] }",
    );
    wait(&it, "one", "running");
    let mut command = command(&it, &["wait", "--all", "complete"]);
    let waiting =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    crate::support::supervisor::wait_until("`wait` is connected", || {
        let streams = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let socket = it.file("socket");
        streams.lines().filter(|line| line.ends_with(socket.to_str().unwrap())).count() > 1
    });
    // It has read the status, and now sleeps until an event or until it asks again after a second.
    wait_until_idle_for(Duration::from_millis(500), waiting.id());
    std::fs::write(it.file("go"), "").unwrap();
    assert_eq!(decode(&waiting.output_in_time().unwrap()), (0, String::new(), String::new()));
    assert_eq!(it.wait().0, 0);
}

#[test]
fn x9_status_says_how_the_last_run_of_a_periodic_job_failed() {
    let it =
        supervisor("{ jobs: [{ name: 'tidy', exec: ['sh', '-c', 'exit 7'], when: { interval: '1s' } }] }");
    let job = || json(&run_ok(&it, &["status", "tidy", "--format", "json"]));
    wait(&it, "tidy", "waiting");
    crate::support::supervisor::wait_until("two runs have failed", || job()["failedRuns"].as_u64() > Some(1));
    assert_eq!(job()["lastExit"]["code"], 7);
    let status = run_ok(&it, &["status"]);
    assert!(
        status.contains("last run exited with code 7") && status.contains("failures in a row"),
        "{status}"
    );
}

#[test]
fn x6_refused_command_says_which_user_is_allowed() {
    if !crate::support::supervisor::is_root() {
        skip("needs root");
        return;
    }
    let it = supervisor("{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
    wait(&it, "a", "running");
    // Other users may not be able to read the build directory, so the binary is copied. A copy written by this process
    // could be busy (ETXTBSY), because its children inherit the open file.
    let copy = it.file("pilot");
    let copied = std::process::Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_containerpilot"))
        .arg(&copy)
        .status_in_time();
    assert!(copied.unwrap().success());
    let mut nobody = std::process::Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    nobody.args(["ping", "-socket"]).arg(it.file("socket"));
    let (code, _, err) = decode(&nobody.output_in_time().unwrap());
    assert_eq!(code, 1);
    assert!(
        err.contains("user 65534 may not use")
            && err.contains("belongs to user 0 and group 0 with mode 0600"),
        "{err}"
    );
    let (code, ..) = run_command(&it, &["ping"]);
    assert_eq!(code, 0);
}

#[test]
fn w10_health_says_that_nothing_can_happen_any_more() {
    let mut run = supervisor(
        "{ jobs: [{ name: 'a', exec: 'true', when: { source: 'b', once: 'stopped' } },
                  { name: 'b', exec: 'true', when: { source: 'a', once: 'stopped' } }] }",
    );
    let why = "nothing can happen any more: a waits for b stopped, b waits for a stopped";
    run.wait_for_line(why);
    assert_eq!(run_err(&run, &["health"]), why);
    assert_eq!(run_ok(&run, &["start", "a"]).lines().count(), 1);
}
