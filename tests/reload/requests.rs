//! Requests for a reload, by the control socket, the command line and SIGHUP, and their results.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use super::{finish, reload, reload_to, rewrite, run, spawn, summary};
use crate::support::config::Config;
use crate::support::http_client::{Pilot, request};
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// A configuration with the job `a`.
fn a() -> Config {
    Config::new().job("a", "exec: 'sleep 1000'")
}

fn start_one_job() -> Pilot {
    let pilot = Pilot::start(&a());
    pilot.wait_for_state("a", "running");
    pilot
}

#[test]
fn r2_configuration_error_changes_nothing_and_is_returned_to_the_client() {
    let mut pilot = start_one_job();
    let pid = pilot.pid_of("a");
    rewrite(
        &pilot,
        "{ jobs: [\n  { name: 'a', exce: 'sleep 1' },\n  { name: 'b', exec: 'x', restarts: -1 },\n] }",
    );
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 422);
    for text in
        ["config.json5", "unknown key `exce`", "did you mean `exec`?", "restarts", "^", "nothing was changed"]
    {
        assert!(answer.body.contains(text), "{text}: {}", answer.body);
    }
    pilot.supervisor.wait_for_line("reload: the configuration has errors, so nothing was changed");
    pilot.supervisor.wait_for_line("config.json5:2:");
    pilot.supervisor.wait_for_line("config.json5:3:");
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("did you mean `exec`?") && err.contains('^'), "{err}");
    let (code, out, err) = run(&pilot, &["reload", "--format", "json"]);
    let printed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1, "{err}");
    assert!(printed["error"].as_str().unwrap().contains("unknown key `exce`"), "{out}");
    let (code, _, err) = run(&pilot, &["-reload"]);
    assert_eq!(code, 1);
    assert!(err.contains("-reload: failed to run subcommand: ") && err.contains("did you mean"), "{err}");
    fs::remove_file(pilot.supervisor.file("config.json5")).unwrap();
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 422);
    assert!(
        answer.body.contains("config.json5: no such file") && answer.body.contains("nothing was changed"),
        "{answer:?}"
    );
    pilot.supervisor.wait_for_line("cannot read ");
    assert_eq!((&pilot.job("a")["pid"], &pilot.job("a")["state"]), (&pid, &json!("running")));
}

#[test]
fn c7_job_that_can_never_run_is_a_warning() {
    let mut pilot = start_one_job();
    let answer =
        reload_to(&pilot, &a().job("b", "exec: 'true', when: { source: 'nobody', once: 'healthy' }"));
    assert_eq!(summary(&answer), "a||b|");
    assert!(answer["warnings"].as_str().unwrap().contains("nobody"), "{answer}");
    pilot.supervisor.wait_for_line("reload: ");
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!((code, out.as_str()), (0, "reloaded: nothing changed\n  kept       a, b\n"), "{err}");
    assert!(err.contains("nobody"), "{err}");
}

#[test]
fn r3_a_changed_job_that_waits_is_not_called_restarted() {
    let mut pilot = start_one_job();
    let waiting = "{ jobs: [{ name: 'a', exec: 'sleep 1000', when: { source: 'SIGUSR2' } }, { name: 'b', exec: 'sleep 1000' }] }";
    rewrite(&pilot, waiting);
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!((code, out.as_str()), (0, "reloaded\n  waiting    a\n  started    b\n"), "{err}");
    pilot.supervisor.wait_for_line("reload: changed, waiting: a; started b; kept 0 jobs");
    assert_eq!(pilot.job("a")["state"], "waiting");
}

#[test]
fn r3_many_jobs_are_counted_and_named_on_request() {
    let names = || (0..30).map(|nth| format!("job-{nth}"));
    let jobs = |exec: &str| a().jobs(names(), format!("exec: '{exec}', when: {{ source: 'SIGUSR2' }}"));
    let mut pilot = Pilot::start(&jobs("true"));
    pilot.wait_for_state("a", "running");
    let (_, out, _) = run(&pilot, &["reload"]);
    assert_eq!(out, "reloaded: nothing changed\n  kept       31 jobs (-v prints their names)\n");
    rewrite(&pilot, &jobs("false"));
    let (_, out, _) = run(&pilot, &["check", "--diff", "-v"]);
    assert!(out.contains("  restart    job-0, job-1, ") && out.contains(", job-29\n"), "{out}");
    let (_, out, _) = run(&pilot, &["reload"]);
    assert_eq!(out, "reloaded\n  waiting    30 jobs (-v prints their names)\n  kept       a\n");
    pilot.supervisor.wait_for_line("reload: changed, waiting: 30 jobs; kept 1 job");
}

/// The words and levels of 3.8, which scripts look for. The reload test of 3.8 counts them.
#[test]
fn x1_log_has_the_words_of_3_8() {
    let config = |level: &str| {
        let consul = "consul: { address: 'localhost:1', token: 'hunter2' }";
        a().keys(consul).keys(format!("logging: {{ level: '{level}' }}"))
    };
    for (level, counts) in [("DEBUG", [2, 1, 2]), ("INFO", [2, 0, 0])] {
        let pilot = Pilot::start(&config(level));
        pilot.wait_for_state("a", "running");
        reload(&pilot);
        let socket = pilot.supervisor.file("socket");
        pilot.supervisor.signal("-TERM");
        let (_, log) = pilot.supervisor.wait();
        let words = [
            format!("control: serving at {}", socket.display()),
            "control: reloaded app via control plane".to_owned(),
            "loaded config: jobs: 1, watches: 0".to_owned(),
        ];
        assert_eq!(words.map(|words| log.matches(&words).count()), counts);
        assert!(!log.contains("hunter2"));
    }
}

#[test]
fn r2_file_is_rendered_with_variables_set_by_putenv() {
    let pilot = Pilot::start("{ jobs: [{ name: 'a', exec: 'sleep {{ .SECONDS | default \"1000\" }}' }] }");
    pilot.wait_for_state("a", "running");
    assert_eq!(summary(&reload(&pilot)), "a|||");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": \"1001\"}").status, 200);
    assert_eq!(summary(&reload(&pilot)), "|a||");
    let pid = pilot.pid_of("a");
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(words, b"sleep\x001001\0");
    assert_eq!(summary(&reload(&pilot)), "a|||", "the variable is lost after a reload");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": null}").status, 200);
    assert_eq!(summary(&reload(&pilot)), "|a||");
}

#[test]
fn r1_sighup_reloads_unless_a_job_has_it_as_its_source() {
    let mut pilot = start_one_job();
    rewrite(&pilot, &a().job("hup", "exec: 'touch @/hup', when: { source: 'SIGHUP' }"));
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("reload: started hup; kept 1 job");
    // From now on SIGHUP starts that job instead.
    rewrite(&pilot, "{ jobs: [] }");
    pilot.supervisor.signal("-HUP");
    wait_until("the job runs", || pilot.supervisor.file("hup").exists());
    assert_eq!(pilot.job("a")["state"], "running");
    assert_eq!(pilot.supervisor.log_so_far().matches("reload: ").count(), 1);
}

#[test]
fn r2_configuration_error_after_sighup_is_logged() {
    let mut pilot = start_one_job();
    rewrite(&pilot, "{ jobs: [");
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("reload: the configuration has errors, so nothing was changed");
    assert_eq!(pilot.job("a")["state"], "running");
}

#[test]
fn c8_sighup_reloads_a_version_2_file() {
    let mut supervisor = Supervisor::start(
        Mode::Plain,
        "{ preStart: 'true', services: [], tasks: [{ name: 'tick', command: 'sleep 1000', frequency: '1h', timeout: '1h' }] }",
    );
    supervisor.wait_for_line("preStart complete");
    let file = supervisor.file("config.json5");
    fs::write(
        file,
        "{ preStart: 'true', services: [], tasks: [{ name: 'tick', command: 'sleep 1001', frequency: '1h', timeout: '1h' }] }",
    )
    .unwrap();
    supervisor.signal("-HUP");
    // A task waits for its first interval.
    supervisor.wait_for_line("reload: changed, waiting: tick");
}

#[test]
fn r4_hundred_concurrent_reloads_are_all_answered_and_leak_nothing() {
    let pilot = start_one_job();
    let pid = pilot.pid_of("a");
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", pilot.supervisor.pid())).unwrap().count();
    let threads = || fs::read_dir(format!("/proc/{}/task", pilot.supervisor.pid())).unwrap().count();
    reload(&pilot);
    let before = (descriptors(), threads());
    rewrite(&pilot, &a().job("b", "exec: 'sleep 1000'"));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..100).map(|_| scope.spawn(|| request(&pilot.socket, "POST", "/v3/reload", ""))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(["a||b|", "a,b|||"].contains(&summary(&answer.json()).as_str()), "{answer:?}");
    }
    assert!(answers.iter().any(|answer| summary(&answer.json()) == "a||b|"));
    pilot.wait_for_state("b", "running");
    assert_eq!(pilot.job("a")["pid"], pid);
    wait_until("threads and descriptors are released", || {
        descriptors() <= before.0 + 3 && threads() <= before.1
    });
}

#[test]
fn r4_last_of_many_different_reloads_wins() {
    let pilot = start_one_job();
    for round in 0..20 {
        rewrite(&pilot, &a().job("b", format!("exec: 'sleep {}'", 1000 + round)));
        pilot.supervisor.signal("-HUP");
    }
    rewrite(&pilot, &a().job("c", "exec: 'sleep 1000'"));
    reload(&pilot);
    pilot.wait_for_state("c", "running");
    let status = pilot.get("/v3/status").json();
    let names: Vec<_> = status["jobs"].as_array().unwrap().iter().map(|job| job["name"].clone()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn r4_reload_during_shutdown_is_refused() {
    let pilot = Pilot::start(
        "{ stopTimeout: 60, jobs: [{ name: 'a', exec: ['sh', '-c', 'trap \"\" TERM; touch @/ready; while ! test -e @/go; do sleep 0.1; done'] }] }",
    );
    wait_until("the job is ready", || pilot.supervisor.file("ready").exists());
    pilot.supervisor.signal("-TERM");
    pilot.wait_for_state("a", "stopping");
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("shutting down"), "{answer:?}");
    pilot.supervisor.signal("-HUP");
    fs::write(pilot.supervisor.file("go"), "").unwrap();
    assert_eq!(pilot.supervisor.wait().0, 0);
}

#[test]
fn e4_reload_during_the_start_waits_for_the_startup() {
    let mut pilot = Pilot::start_without_waiting(&a());
    wait_until("the control socket exists", || pilot.socket.exists());
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("reload: kept 1 job");
    pilot.wait_for_state("a", "running");
}

#[test]
fn r1_reload_prints_what_it_did_and_check_diff_what_it_would_do() {
    let pilot = start_one_job();
    rewrite(
        &pilot,
        "{ jobs: [{ name: 'a', exec: 'sleep 1001' }, { name: 'b', exec: 'sleep 1000' }], logging: { level: 'DEBUG' } }",
    );
    let (code, out, err) = run(&pilot, &["check", "--diff"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "a reload would\n  restart    a\n  start      b\n  change     logging\n", "")
    );
    let (code, out, _) = run(&pilot, &["check", "-diff", "-format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["dryRun"], &value["restarted"]), (0, &json!(true), &json!(["a"])));
    assert_eq!(
        pilot.get("/v3/status").json()["jobs"].as_array().unwrap().len(),
        1,
        "check --diff has changed something"
    );
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "reloaded\n  restarted  a\n  started    b\n  changed    logging\n", "")
    );
    let (_, out, _) = run(&pilot, &["reload", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&value["dryRun"], summary(&value).as_str()), (&json!(false), "a,b|||"));
    let (code, out, _) = run(&pilot, &["check", "--diff"]);
    assert_eq!((code, out.as_str()), (0, "a reload would change nothing\n  keep       a, b\n"));
    let (code, out, err) = run(&pilot, &["-reload"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""), "3.8 prints nothing");
    rewrite(&pilot, "{ jobs: [{");
    let (code, out, err) = run(&pilot, &["check", "--diff"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains('^'), "{err}");
    let (code, _, err) = run(&pilot, &["check", "--diff", "/etc/other"]);
    assert_eq!(code, 2, "{err}");
    let answer = pilot.post("/v3/reload?dry-run=perhaps", "");
    assert_eq!(answer.status, 400, "{answer:?}");
}

#[test]
fn x4_check_diff_without_a_supervisor_fails_with_a_message() {
    let pilot = start_one_job();
    pilot.supervisor.signal("-KILL");
    wait_until("it no longer accepts connections", || UnixStream::connect(&pilot.socket).is_err());
    let (code, out, err) = run(&pilot, &["check", "--diff"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no supervisor answers"), "{err}");
}

#[test]
fn r2_configuration_from_stdin_is_rendered_again() {
    let text = "{ jobs: [{ name: 'a', exec: 'sleep {{ .SECONDS | default \"1000\" }}' }] }";
    let supervisor = Supervisor::with_stdin(Mode::Plain, text, &["-config", "-"]);
    let socket = supervisor.file("socket");
    let pilot = Pilot { supervisor, socket };
    wait_until("the control socket exists", || pilot.socket.exists());
    pilot.wait_for_state("a", "running");
    assert_eq!(summary(&reload(&pilot)), "a|||");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": \"1001\"}").status, 200);
    assert_eq!(summary(&reload(&pilot)), "|a||");
}

#[test]
#[ignore = "slow: longer than the timeout of 20 s for other requests"]
fn r3_a_reload_that_takes_long_is_awaited_to_its_end() {
    let stubborn =
        r#"exec: ["sh", "-c", "trap '' TERM; echo ready; until test -e @/go; do sleep 0.05; done"]"#;
    let without = || a().keys("stopTimeout: 100");
    let config = without().job("old", stubborn);
    let start = || {
        let mut pilot = Pilot::start(&config);
        pilot.supervisor.wait_for_line("ready");
        rewrite(&pilot, &without());
        pilot
    };
    let (done, refused) = (start(), start());
    let command = spawn(&done, &["reload"]);
    let json = spawn(&done, &["reload", "--format", "json"]);
    let flag = spawn(&done, &["-reload"]);
    let failed = spawn(&refused, &["reload"]);
    // Each of them has its connection before the next request, which is answered later.
    for pilot in [&done, &refused] {
        wait_until("the old job stops", || pilot.job("old")["state"] == "stopping");
    }
    let mut stream = UnixStream::connect(&refused.socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    stream.write_all(b"POST /v3/reload HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "HTTP/1.0 202 Accepted");
    refused.supervisor.signal("-TERM");
    let why = "the supervisor is shutting down";
    assert_eq!(lines.last().unwrap(), format!("{{\"message\":\"{why}\"}}"));
    for pilot in [&done, &refused] {
        fs::write(pilot.supervisor.file("go"), "").unwrap();
    }
    let expected = "reloaded\n  removed    old\n  kept       a\n";
    assert_eq!(finish(command), (0, expected.to_owned(), String::new()));
    let (code, out, _) = finish(json);
    assert_eq!((code, summary(&serde_json::from_str(&out).unwrap())), (0, "a|||old".to_owned()));
    assert_eq!(finish(flag), (0, String::new(), String::new()));
    assert_eq!(finish(failed), (1, String::new(), format!("containerpilot: {why}\n")));
    done.supervisor.signal("-TERM");
    assert_eq!((done.supervisor.wait().0, refused.supervisor.wait().0), (0, 0));
}
