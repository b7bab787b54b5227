//! Who asks, and what they are told.

use std::fs;

use serde_json::json;

use crate::client::{Pilot, ask};
use crate::support::{As, Supervisor, until};
use crate::{done, reload, reload_to, rewrite, run};

const A: &str = "{ name: 'a', exec: 'sleep 1000' }";

fn plain() -> Pilot {
    let pilot = Pilot::start(&format!("{{ jobs: [{A}] }}"));
    pilot.await_state("a", "running");
    pilot
}

#[test]
fn r2_with_an_error_nothing_changes_and_the_caller_gets_the_diagnostics() {
    let mut pilot = plain();
    let pid = pilot.job("a")["pid"].clone();
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
    pilot.supervisor.line("reload: the configuration has errors, so nothing was changed");
    pilot.supervisor.line("config.json5:2:");
    pilot.supervisor.line("config.json5:3:");
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("did you mean `exec`?") && err.contains('^'), "{err}");
    let (code, _, err) = run(&pilot, &["-reload"]);
    assert_eq!(code, 1);
    assert!(err.contains("-reload: failed to run subcommand: ") && err.contains("did you mean"), "{err}");
    fs::remove_file(pilot.supervisor.file("config.json5")).unwrap();
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 422);
    assert!(
        answer.body.contains("config.json5 cannot be read") && answer.body.contains("nothing was changed"),
        "{answer:?}"
    );
    pilot.supervisor.line("cannot be read");
    assert_eq!((&pilot.job("a")["pid"], &pilot.job("a")["state"]), (&pid, &json!("running")));
}

#[test]
fn c7_what_can_never_work_is_only_warned_about() {
    let mut pilot = plain();
    let answer = reload_to(
        &pilot,
        &format!(
            "{{ jobs: [{A}, {{ name: 'b', exec: 'true', when: {{ source: 'nobody', once: 'healthy' }} }}] }}"
        ),
    );
    assert_eq!(done(&answer), "a||b|");
    assert!(answer["warnings"].as_str().unwrap().contains("nobody"), "{answer}");
    pilot.supervisor.line("reload: ");
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!((code, out.as_str()), (0, "reloaded: nothing has changed\n  kept       a, b\n"), "{err}");
    assert!(err.contains("nobody"), "{err}");
}

#[test]
fn r2_a_file_is_rendered_with_what_putenv_has_set() {
    let pilot = Pilot::start("{ jobs: [{ name: 'a', exec: 'sleep {{ .SECONDS | default \"1000\" }}' }] }");
    pilot.await_state("a", "running");
    assert_eq!(done(&reload(&pilot)), "a|||");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": \"1001\"}").status, 200);
    assert_eq!(done(&reload(&pilot)), "|a||");
    pilot.await_state("a", "running");
    let pid = pilot.job("a")["pid"].clone();
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(words, b"sleep\x001001\0");
    assert_eq!(done(&reload(&pilot)), "a|||", "it stays set");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": null}").status, 200);
    assert_eq!(done(&reload(&pilot)), "|a||");
}

#[test]
fn r1_sighup_reloads_unless_a_job_waits_for_it() {
    let mut pilot = plain();
    rewrite(
        &pilot,
        &format!("{{ jobs: [{A}, {{ name: 'hup', exec: 'touch @/hup', when: {{ source: 'SIGHUP' }} }}] }}"),
    );
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.line("reload: started hup; kept 1 job");
    // From now on it is the job's.
    rewrite(&pilot, "{ jobs: [] }");
    pilot.supervisor.signal("-HUP");
    until("the job does not run", || pilot.supervisor.file("hup").exists());
    assert_eq!(pilot.job("a")["state"], "running");
    assert_eq!(pilot.supervisor.seen().matches("reload: ").count(), 1);
}

#[test]
fn r2_sighup_with_an_error_is_told_in_the_log() {
    let mut pilot = plain();
    rewrite(&pilot, "{ jobs: [");
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.line("reload: the configuration has errors, so nothing was changed");
    assert_eq!(pilot.job("a")["state"], "running");
}

#[test]
fn c8_sighup_reloads_a_version_2_file() {
    let mut supervisor = Supervisor::start(
        As::Plain,
        "{ preStart: 'true', services: [], tasks: [{ name: 'tick', command: 'sleep 1000', frequency: '1h', timeout: '1h' }] }",
    );
    supervisor.line("tick started");
    let file = supervisor.file("config.json5");
    fs::write(
        file,
        "{ preStart: 'true', services: [], tasks: [{ name: 'tick', command: 'sleep 1001', frequency: '1h', timeout: '1h' }] }",
    )
    .unwrap();
    supervisor.signal("-HUP");
    supervisor.line("reload: restarted tick");
}

#[test]
fn r4_a_hundred_at_once_are_all_answered_and_leave_nothing() {
    let pilot = plain();
    let pid = pilot.job("a")["pid"].clone();
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", pilot.supervisor.pid())).unwrap().count();
    let threads = || fs::read_dir(format!("/proc/{}/task", pilot.supervisor.pid())).unwrap().count();
    reload(&pilot);
    let before = (descriptors(), threads());
    rewrite(&pilot, &format!("{{ jobs: [{A}, {{ name: 'b', exec: 'sleep 1000' }}] }}"));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..100).map(|_| scope.spawn(|| ask(&pilot.socket, "POST", "/v3/reload", ""))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(["a||b|", "a,b|||"].contains(&done(&answer.json()).as_str()), "{answer:?}");
    }
    assert!(answers.iter().any(|answer| done(&answer.json()) == "a||b|"));
    pilot.await_state("b", "running");
    assert_eq!(pilot.job("a")["pid"], pid);
    until("something is left over", || descriptors() <= before.0 + 3 && threads() <= before.1);
}

#[test]
fn r4_reloads_that_contradict_each_other_end_with_the_last() {
    let pilot = plain();
    for round in 0..20 {
        rewrite(&pilot, &format!("{{ jobs: [{A}, {{ name: 'b', exec: 'sleep {}' }}] }}", 1000 + round));
        pilot.supervisor.signal("-HUP");
    }
    rewrite(&pilot, &format!("{{ jobs: [{A}, {{ name: 'c', exec: 'sleep 1000' }}] }}"));
    reload(&pilot);
    pilot.await_state("c", "running");
    let status = pilot.get("/v3/status").json();
    let names: Vec<_> = status["jobs"].as_array().unwrap().iter().map(|job| job["name"].clone()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn r4_during_the_shutdown_a_reload_is_refused() {
    let pilot = Pilot::start(
        "{ stopTimeout: 60, jobs: [{ name: 'a', exec: ['sh', '-c', 'trap \"\" TERM; touch @/ready; while ! test -e @/go; do sleep 0.1; done'] }] }",
    );
    until("it is not ready", || pilot.supervisor.file("ready").exists());
    pilot.supervisor.signal("-TERM");
    pilot.await_state("a", "stopping");
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("shutting down"), "{answer:?}");
    pilot.supervisor.signal("-HUP");
    fs::write(pilot.supervisor.file("go"), "").unwrap();
    let (code, log) = pilot.supervisor.end();
    assert_eq!(code, 0, "{log}");
}

#[test]
fn e4_at_the_very_start_a_reload_waits_for_its_turn() {
    let mut pilot = Pilot::unawaited(&format!("{{ jobs: [{A}] }}"));
    until("there is no socket", || pilot.socket.exists());
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.line("reload: kept 1 job");
    pilot.await_state("a", "running");
}

#[test]
fn r1_the_command_says_what_it_did_and_check_diff_what_it_would_do() {
    let pilot = plain();
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
    assert_eq!(pilot.get("/v3/status").json()["jobs"].as_array().unwrap().len(), 1, "it only looked");
    let (code, out, err) = run(&pilot, &["reload"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "reloaded\n  restarted  a\n  started    b\n  changed    logging\n", "")
    );
    let (_, out, _) = run(&pilot, &["reload", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&value["dryRun"], done(&value).as_str()), (&json!(false), "a,b|||"));
    let (code, out, _) = run(&pilot, &["check", "--diff"]);
    assert_eq!((code, out.as_str()), (0, "a reload would change nothing\n  keep       a, b\n"));
    let (code, out, err) = run(&pilot, &["-reload"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""), "3.8 says nothing either");
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
fn x4_without_a_supervisor_check_diff_says_so() {
    let pilot = plain();
    pilot.supervisor.signal("-KILL");
    until("it still answers", || std::os::unix::net::UnixStream::connect(&pilot.socket).is_err());
    let (code, out, err) = run(&pilot, &["check", "--diff"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no supervisor answers"), "{err}");
}

#[test]
fn r2_what_came_from_standard_input_is_rendered_anew() {
    let text = "{ jobs: [{ name: 'a', exec: 'sleep {{ .SECONDS | default \"1000\" }}' }] }";
    let supervisor = Supervisor::fed(As::Plain, text, &["-config", "-"]);
    let socket = supervisor.file("socket");
    let pilot = Pilot { supervisor, socket };
    until("there is no socket", || pilot.socket.exists());
    pilot.await_state("a", "running");
    assert_eq!(done(&reload(&pilot)), "a|||");
    assert_eq!(pilot.post("/v3/environ", "{\"SECONDS\": \"1001\"}").status, 200);
    assert_eq!(done(&reload(&pilot)), "|a||");
}
