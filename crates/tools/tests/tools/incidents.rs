//! From an incident to a test (B5): recordings of real supervisors as scenarios.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::deadline::InTime;
use crate::support::program::{code, command, containerpilot, err, out};
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};
use crate::tools;

/// `@/up` decides whether the app is healthy.
const CONFIG: &str = "{ control: { socket: '@/socket' }, stopTimeout: '5s', jobs: [
    { name: 'app', exec: 'sleep 1000', restarts: 'unlimited',
      health: [{ name: 'up', exec: 'test -e @/up', interval: '300ms', ttl: 10 },
               { name: 'always', exec: 'true', interval: '700ms' }] },
    { name: 'late', exec: 'sleep 1000', when: { source: 'app', once: 'healthy' } },
    { name: 'bad', exec: ['sh', '-c', 'sleep 0.03; exit 3'], restarts: 3, restartBackoff: false },
    { name: 'task', exec: ['sh', '-c', 'sleep 0.15'] },
    { name: 'next', exec: ['sh', '-c', 'trap \"exit 7\" TERM; while :; do sleep 0.01; done'],
      when: { source: 'task', once: 'exitSuccess' } },
    { name: 'told', exec: 'true', when: { source: 'SIGUSR2' } },
    { name: 'none', exec: '/nowhere/program' },
    { name: 'tick', exec: 'sleep 0.02', when: { interval: '700ms' } }],
  watches: [{ name: 'up', file: '@/up' }] }";

fn ask(run: &Supervisor, words: &[&str]) -> Output {
    Command::new(containerpilot())
        .args(words)
        .env("CONTAINERPILOT_SOCKET", run.file("socket"))
        .output_in_time()
        .unwrap()
}

fn run_tools(words: &[&str]) -> Output {
    command(tools(), words).env_remove("CONTAINERPILOT").output_in_time().unwrap()
}

fn path(run: &Supervisor, name: &str) -> String {
    run.file(name).to_str().unwrap().to_owned()
}

/// The events of a timeline, up to the end of a simulation: source, event and note.
fn events(output: &Output) -> Vec<String> {
    let others = ["starts", "gets", "killed", "asked", "checks fail", "warning", "reloaded", "exit"];
    let timeline: Value = serde_json::from_str(&out(output)).unwrap_or_else(|_| panic!("{}", err(output)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = timeline["timeline"].as_array().unwrap().iter();
    let all = all.take_while(|entry| !text(&entry["note"]).contains("the simulation ends"));
    let events = all.filter(|entry| !others.contains(&text(&entry["what"]).as_str()));
    events
        .map(|entry| format!("{} {} {}", text(&entry["source"]), text(&entry["what"]), text(&entry["note"])))
        .collect()
}

/// Lets much happen to a supervisor, and returns the path of its recording.
fn incident(run: &mut Supervisor) -> String {
    let shows = |run: &Supervisor, job: &str, words: &str| out(&ask(run, &["status", job])).contains(words);
    run.wait_for_line("bad failed");
    fs::write(run.file("up"), "first").unwrap();
    run.wait_for_line("late started");
    run.signal("-USR2");
    run.wait_for_line("told exited");
    assert_eq!(code(&ask(run, &["restart", "app"])), 0);
    run.wait_for_line("app started (pid");
    wait_until("app is healthy again", || shows(run, "app", " healthy"));
    fs::remove_file(run.file("up")).unwrap();
    wait_until("app is unhealthy", || shows(run, "app", " unhealthy"));
    fs::write(run.file("up"), "second").unwrap();
    wait_until("app is healthy at last", || shows(run, "app", " healthy"));
    assert_eq!(code(&ask(run, &["stop", "next"])), 0);
    run.wait_for_line("next stopped");
    assert_eq!(code(&ask(run, &["signal", "late", "KILL"])), 0);
    run.wait_for_line("late failed");
    let file = path(run, "incident.cprec");
    assert_eq!(code(&ask(run, &["record", "--out", &file])), 0);
    file
}

#[test]
fn b5_recording_of_a_real_supervisor_is_a_scenario_with_the_same_events() {
    for mode in modes() {
        let mut run = Supervisor::start(mode, CONFIG);
        let file = incident(&mut run);
        let (scenario, config) = (path(&run, "scenario.json5"), path(&run, "config.json5"));
        let written = run_tools(&["replay", &file, "--scenario", &scenario]);
        assert_eq!((code(&written), out(&written).as_str()), (0, ""), "{}", err(&written));
        let text = fs::read_to_string(&scenario).unwrap();
        assert_eq!(err(&written), "", "{text}");
        let recorded = events(&run_tools(&["replay", &file, "--format", "json"]));
        let simulated = run_tools(&["simulate", &config, &scenario, "--format", "json"]);
        assert_eq!(code(&simulated), 0, "{}\n{text}", err(&simulated));
        assert_eq!(events(&simulated), recorded, "{text}");
        for part in ["fails: \"notFound\" }", "stopExit: 7", "signal: \"SIGUSR2\"", "restart: \"app\""] {
            assert!(text.contains(part), "{part} is missing\n{text}");
        }
        // Nothing is overwritten.
        let again = run_tools(&["replay", &file, "--scenario", &scenario]);
        assert_eq!(code(&again), 2);
        assert!(err(&again).contains("exists, and --scenario overwrites nothing"), "{}", err(&again));
        assert_eq!(out(&run_tools(&["replay", &file, "--scenario", "-"])), text);
    }
}

#[test]
fn b5_another_configuration_is_played_with_the_recorded_world() {
    let mut run = Supervisor::start(Mode::Plain, CONFIG);
    let file = incident(&mut run);
    let other = path(&run, "other.json5");
    let text = CONFIG
        .replace("restarts: 3", "restarts: 5")
        .replace("{ name: 'task', exec: ['sh', '-c', 'sleep 0.15'] },", "{ name: 'cache', exec: 'cache' },")
        .replace(
            "when: { source: 'task', once: 'exitSuccess' } }",
            "when: { source: 'cache', once: 'exitSuccess' } }",
        )
        .replace("@/", &format!("{}/", Path::new(&file).parent().unwrap().display()));
    fs::write(&other, text).unwrap();
    let output = run_tools(&["replay", &file, "--with", &other]);
    let shown = out(&output);
    assert_eq!(code(&output), 0, "{}", err(&output));
    for line in [
        "assumed: job bad: runs 5 and later behave as run 4",
        "assumed: job cache is new: its program is assumed to succeed after 1s",
        "assumed: there is no job task: what its program did is left out",
    ] {
        assert!(shown.contains(line), "{line} is missing\n{shown}");
    }
    let place = |part: &str| shown.find(part).unwrap_or_else(|| panic!("{part} is missing\n{shown}"));
    assert!(place("assumed: ") < place("TIME"));
    let json = run_tools(&["replay", &file, "--with", &other, "--format", "json"]);
    assert_eq!(events(&json).iter().filter(|event| *event == "bad exitFailed code 3").count(), 6);
    assert!(err(&json).contains("assumed: job cache is new"), "{}", err(&json));
    // A part of it, in the time of the recording.
    let from =
        |time: &str| run_tools(&["replay", &file, "--with", &other, "--from", time, "--format", "json"]);
    let late = from("2100-01-01T00:00:00Z");
    assert_eq!(
        (code(&late), err(&late).contains("nothing happens then: the simulation is from 20")),
        (1, true)
    );
    assert_eq!(events(&from("2000-01-01T00:00:00Z")), events(&json));
    let broken = path(&run, "broken.json5");
    fs::write(&broken, "{ jobs: [{ name: 'a', exce: 'b' }] }").unwrap();
    let output = run_tools(&["replay", &file, "--with", &broken]);
    assert_eq!(code(&output), 2);
    let message = err(&output);
    assert!(message.contains("did you mean `exec`?") && message.contains("broken.json5:1:"), "{message}");
}

/// W22: the names of later replicas are not in the configuration.
#[test]
fn b5_replicas_that_were_added_later_do_what_they_did() {
    let config = "{ control: { socket: '@/socket' }, jobs: [{ name: 'keep', exec: 'sleep 1000' },
        { name: 'many', exec: ['sh', '-c', 'sleep 0.1; exit 3'], replicas: 1, restarts: 1, restartBackoff: false }] }";
    let run = Supervisor::start(Mode::Plain, config);
    let events_of = |text: &str| text.matches("\"source\":\"many-2\",\"code\":\"exitFailed\"").count();
    wait_until("it runs", || out(&ask(&run, &["status"])).contains("keep"));
    assert_eq!(code(&ask(&run, &["scale", "many=2"])), 0);
    wait_until("many-2 has failed", || events_of(&out(&ask(&run, &["events", "--format", "json"]))) == 2);
    let (file, config) = (path(&run, "i.cprec"), path(&run, "config.json5"));
    assert_eq!(code(&ask(&run, &["record", "--out", &file])), 0);
    let output = run_tools(&["replay", &file, "--with", &config, "--format", "json"]);
    assert!(!err(&output).contains("there is no job"), "{}", err(&output));
    let found = events(&output);
    assert_eq!(found.iter().filter(|event| *event == "many-2 exitFailed code 3").count(), 2, "{found:?}");
    let written = run_tools(&["replay", &file, "--scenario", "-"]);
    let text = out(&written);
    let minute = text.split("from ").nth(1).and_then(|rest| rest.get(..16)).unwrap_or_default();
    // The supervisor was not told the time: no job needs it.
    assert!(minute.starts_with("20") && text.contains(&format!("at: \"{minute}")), "{text}");
}

#[test]
fn b5_facts_that_break_a_sentence_are_shrunk() {
    let mut run = Supervisor::start(Mode::Plain, CONFIG);
    let file = incident(&mut run);
    let (scenario, config) = (path(&run, "shrunk.json5"), path(&run, "config.json5"));
    let kept = run_tools(&["replay", &file, "--shrink", "never late healthy"]);
    assert_eq!(code(&kept), 2, "{}", out(&kept));
    let kept = run_tools(&["replay", &file, "--shrink", "never app crashLoop"]);
    assert_eq!(code(&kept), 2, "{}", out(&kept));
    let kept = run_tools(&["replay", &file, "--shrink", "app healthy"]);
    assert_eq!(
        (code(&kept), out(&kept).starts_with("kept: app healthy: it happened at ")),
        (0, true),
        "{}",
        out(&kept)
    );
    let output = run_tools(&["replay", &file, "--shrink", "never bad exitFailed", "--scenario", &scenario]);
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert!(out(&output).starts_with("broken: never bad exitFailed: it happened at "), "{}", out(&output));
    let text = fs::read_to_string(&scenario).unwrap();
    assert!(text.contains("{ never: \"bad exitFailed\" }") && text.contains("exit: 3"), "{text}");
    for other in ["\"app\"", "\"tick\"", "\"next\"", "stop:", "SIGUSR2"] {
        assert!(!text.contains(other), "{other} is not needed\n{text}");
    }
    let simulated = run_tools(&["simulate", &config, &scenario]);
    assert_eq!(code(&simulated), 1, "{}", err(&simulated));
    assert!(out(&simulated).contains("FAILED never bad exitFailed"), "{}", out(&simulated));
    let printed = run_tools(&["replay", &file, "--shrink", "late starts once before 1ms"]);
    assert_eq!((code(&printed), out(&printed).starts_with("// broken: ")), (1, true), "{}", out(&printed));
}

#[test]
fn b5_contradictions_and_unknown_names_are_refused() {
    let mut run = Supervisor::start(Mode::Plain, CONFIG);
    run.wait_for_line("bad failed");
    let file = path(&run, "incident.cprec");
    assert_eq!(code(&ask(&run, &["record", "--out", &file])), 0);
    for (words, message) in [
        (&["--with", "x", "--shrink", "never bad starts"][..], "--with and --shrink cannot be combined"),
        (&["--with", "x", "--scenario", "y"], "--scenario and --with cannot be combined"),
        (&["--scenario", "y", "--at", "12:00", "graph"], "--scenario and --at cannot be combined"),
        (&["graph", "--shrink", "never bad starts"], "--shrink and --at cannot be combined"),
        (&["--scenario", "y", "--from", "12:00"], "--scenario and --from cannot be combined"),
        (&["--scenario", "y", "--out", "z"], "--scenario and --out cannot be combined"),
        (&["--shrink", "never bad starts", "--format", "json"], "--shrink and --format cannot be combined"),
        (&["--scenario", ""], "--scenario needs the name of a file"),
        (&["--with", "/nowhere.json5"], "/nowhere.json5"),
        (&["--shrink", "never bda starts"], "there is no job or watch `bda`; did you mean `bad`?"),
        (&["--shrink", "never bad explodes"], "`explodes` cannot happen to `bad`"),
        (&["--shrink", "bad starts many times"], "`many` is not a number"),
        (&["--shrink", "never"], "the sentence has no moment"),
        (&["--shrink", "bad is failed at noon"], "`noon` is not a duration"),
        (&["--shrink", "exit with 300"], "`300` is not an exit code"),
    ] {
        let output = run_tools(&[&["replay", &file][..], words].concat());
        assert_eq!(code(&output), 2, "{words:?}: {}", out(&output));
        assert!(err(&output).contains(message), "{words:?}: {}", err(&output));
    }
}
