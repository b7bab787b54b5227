//! The command `simulate`: its files, output formats and exit codes (X4, X6).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::support::deadline::InTime;
use crate::support::deadline::wait_until_within;
use crate::support::program::{containerpilot, repository};
use crate::tools;

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("simulate").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn example(name: &str) -> String {
    format!("{}/examples/{name}", repository().display())
}

/// Runs `simulate`; returns exit code, standard output and standard error.
fn simulate(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(tools());
    let Output { status, stdout, stderr } =
        command.arg("simulate").args(arguments).env_remove("CONTAINERPILOT").output_in_time().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const QUICKSTART: &str = "quickstart.json5";

#[test]
fn x4_expectations_of_every_example_scenario_hold() {
    let files = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut found = files(Path::new(&example("")));
    found.extend(found.clone().iter().filter(|path| path.is_dir()).flat_map(|folder| files(folder)));
    let mut tried = 0;
    for scenario in found {
        let scenario = scenario.to_str().unwrap();
        let Some(config) = scenario.strip_suffix(".scenario.json5") else { continue };
        let (code, stdout, stderr) = simulate(&[&format!("{config}.json5"), scenario]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{scenario}\n{stdout}");
        assert!(stdout.contains("expectations are met"), "{stdout}");
        tried += 1;
    }
    assert!(tried > 1);
}

#[test]
fn x6_exit_code_tells_whether_all_expectations_hold() {
    let folder = folder("codes");
    let config = example(QUICKSTART);
    let wrong = file(&folder, "wrong.json5", "{ expect: [{ exit: 3 }] }");
    assert_eq!(simulate(&[&config]).0, Some(0));
    assert_eq!(simulate(&[&config, &wrong]).0, Some(1));
    let (code, stdout, stderr) = simulate(&[&config, &file(&folder, "bad.json5", "{ expct: [] }")]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("did you mean `expect`?"), "{stderr}");
    assert!(!stderr.contains("containerpilot help"), "{stderr}");
    for arguments in
        [&["/nonexistent.json5"][..], &[&config, "/nonexistent.json5"], &[&config, "--format", "png"]]
    {
        assert_eq!(simulate(arguments).0, Some(2), "{arguments:?}");
    }
    assert_eq!(simulate(&[&config, &wrong, "more"]).0, Some(2));
    let broken = file(&folder, "broken-config.json5", "{ jobs: 1 }");
    let (code, _, stderr) = simulate(&[&broken]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("so there is nothing to simulate"), "{stderr}");
}

#[test]
fn x4_argument_beside_config_is_the_scenario() {
    let (code, stdout, _) =
        simulate(&["-config", &example(QUICKSTART), &example("quickstart.scenario.json5")]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("all 7 expectations are met"), "{stdout}");
}

#[test]
fn x4_programs_and_users_need_not_exist() {
    let folder = folder("elsewhere");
    let config = file(
        &folder,
        "a.json5",
        r#"{ jobs: [{ name: "a", exec: "/no/such/program", user: "nobody-knows" }] }"#,
    );
    let (code, stdout, stderr) = simulate(&[&config]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
}

#[test]
fn x4_json_output_has_a_stable_structure() {
    let arguments = [&*example(QUICKSTART), &example("quickstart.scenario.json5"), "--format", "json"];
    let (code, stdout, _) = simulate(&arguments);
    assert_eq!(code, Some(0));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&answer), ["end", "exit", "expectations", "jobs", "ok", "timeline"]);
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["exit"]["code"], 0);
    let timeline = answer["timeline"].as_array().unwrap();
    for (nth, entry) in timeline.iter().enumerate() {
        assert_eq!(entry["id"], nth);
        assert!(entry["cause"].as_u64().is_none_or(|cause| cause < nth as u64), "{entry}");
        assert!(
            entry["at"].is_number() && entry["source"].is_string() && entry["what"].is_string(),
            "{entry}"
        );
    }
    let start =
        timeline.iter().find(|entry| entry["source"] == "server" && entry["what"] == "starts").unwrap();
    let cause = &timeline[usize::try_from(start["cause"].as_u64().unwrap()).unwrap()];
    assert_eq!((&cause["source"], &cause["what"]), (&"setup".into(), &"exitSuccess".into()));
    let job = &answer["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "server").unwrap();
    assert_eq!(keys(job), ["explanation", "healthy", "name", "phases", "runs", "state"]);
    let expectation = &answer["expectations"][0];
    assert_eq!(keys(expectation), ["because", "expected", "happened", "ok"]);
}

#[test]
fn x4_svg_has_a_lane_for_each_job_and_is_well_formed() {
    let folder = folder("picture");
    let out = folder.join("a.svg");
    let arguments = [
        &*example(QUICKSTART),
        &example("quickstart.scenario.json5"),
        "--format",
        "svg",
        "--out",
        out.to_str().unwrap(),
    ];
    assert_eq!(simulate(&arguments).0, Some(0));
    let picture = std::fs::read_to_string(&out).unwrap();
    for job in ["setup", "server", "greeter", "ticker", "farewell"] {
        assert!(picture.contains(&format!(">{job}</text>")), "{job}");
    }
    assert!(picture.contains("prefers-color-scheme:dark"));
    assert!(picture.contains("setup exitSuccess starts server"));
    for tag in ["g", "svg", "text", "title", "style", "marker"] {
        let (open, close) =
            (picture.matches(&format!("<{tag}")).count(), picture.matches(&format!("</{tag}>")).count());
        assert_eq!(open, close, "{tag}");
    }
}

#[test]
fn x4_picture_of_the_manual_is_current() {
    let folder = folder("manual-picture");
    let out = folder.join("a.svg");
    let scenario = example("quickstart.scenario.json5");
    let arguments = [&*example(QUICKSTART), &scenario, "--format", "svg", "--out", out.to_str().unwrap()];
    assert_eq!(simulate(&arguments).0, Some(0));
    let drawn = std::fs::read_to_string(&out).unwrap();
    let page = repository().join("docs/pictures/simulate.svg");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &drawn).unwrap();
    }
    assert!(std::fs::read_to_string(page).unwrap() == drawn, "run BLESS=1 cargo test --test tools simulate");
}

#[test]
fn x4_frequent_events_are_summarised_unless_full() {
    let some = simulate(&[&example(QUICKSTART)]).1;
    let all = simulate(&[&example(QUICKSTART), "--full"]).1;
    assert!(some.contains("not shown (use --full): ticker exitSuccess"), "{some}");
    assert!(!all.contains("not shown"), "{all}");
    // A marker stands in place of the omitted lines: both outputs agree up to it.
    let gap = some.lines().position(|line| line.starts_with('…')).unwrap();
    assert!(some.lines().nth(gap).unwrap().ends_with(" not shown"), "{some}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let same = some.lines().zip(all.lines()).take_while(|(one, other)| words(one) == words(other)).count();
    assert_eq!(same, gap, "{some}");
    let counted = some
        .lines()
        .filter(|line| line.starts_with('…'))
        .map(|line| words(line)[1].parse::<usize>().unwrap());
    let table = |text: &str| text.lines().filter(|line| line.starts_with("00:")).count();
    assert_eq!(counted.sum::<usize>(), table(&all) - table(&some), "{some}");
    assert!(all.lines().count() > some.lines().count());
}

#[test]
fn x4_reload_reads_files_relative_to_the_scenario() {
    let folder = folder("reload");
    let config = file(&folder, "a.json5", r#"{ jobs: [{ name: "a", exec: "a" }] }"#);
    file(&folder, "b.json5", r#"{ jobs: [{ name: "a", exec: "a" }, { name: "b", exec: "b" }] }"#);
    let text = "{ happens: [{ at: 5, reload: 'b.json5' }], expect: [{ see: 'b starts', after: 'reloaded' }, { see: 'a starts', times: 1 }] }";
    let (code, stdout, _) = simulate(&[&config, &file(&folder, "s.json5", text)]);
    assert_eq!(code, Some(0), "{stdout}");
    let (code, _, stderr) =
        simulate(&[&config, &file(&folder, "t.json5", "{ happens: [{ at: 5, reload: 'c.json5' }] }")]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("`c.json5` cannot be loaded"), "{stderr}");
}

#[test]
fn x4_explore_finds_a_dependency_cycle_and_the_seed_that_shows_it() {
    let folder = folder("ring");
    let health = "health: { exec: 'true', interval: 5, ttl: 15 }";
    let text = format!(
        "{{ jobs: [{{ name: 'a', exec: 'a', when: {{ source: 'b', once: 'healthy' }}, {health} }},
                   {{ name: 'b', exec: 'b', when: {{ source: 'a', once: 'healthy' }}, {health} }},
                   {{ name: 'c', exec: 'c' }}] }}"
    );
    let config = file(&folder, "ring.json5", &text);
    let (code, stdout, _) = simulate(&[&config, "--explore", "50"]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("PROBLEM a waits forever  --seed 1.0"), "{stdout}");
    assert!(stdout.contains("without any fault"), "{stdout}");
    let (_, stdout, _) = simulate(&[&config, "--seed", "1.0"]);
    assert!(stdout.contains("will never run"), "{stdout}");
    let (_, stdout, _) = simulate(&[&config, "--explore", "50", "--format", "json"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&answer["ok"], &answer["findings"][0]["seed"]), (&false.into(), &"1.0".into()));
}

#[test]
fn x4_explore_finds_a_stop_that_takes_too_long() {
    let folder = folder("slow");
    let config = file(
        &folder,
        "slow.json5",
        r#"{ stopTimeout: "5s", jobs: [{ name: "web", exec: "web", port: 80, interfaces: ["static:10.0.0.1"], drain: "10s",
             health: { exec: "ok", interval: 5, ttl: 15 } }] }"#,
    );
    let (code, stdout, _) = simulate(&[&config, "--explore", "20"]);
    assert_eq!(code, Some(1), "{stdout}");
    let words = "web is stopped before its hooks and drain are complete: the stop timeout passed";
    assert!(stdout.contains(words), "{stdout}");
}

#[test]
fn x4_explore_finds_no_problem_in_a_sound_configuration() {
    let (code, stdout, _) = simulate(&[&example(QUICKSTART), "--explore", "200"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("200 variations tried: no problems"), "{stdout}");
}

/// W17: without a scenario, no user starts the job.
#[test]
fn x4_w17_explore_has_no_problem_with_a_job_that_a_user_starts() {
    let folder = folder("manual");
    let text = "{ jobs: [{ name: 'a', exec: 'a' }, { name: 'b', exec: 'b', when: 'manual' }] }";
    let (code, stdout, _) = simulate(&[&file(&folder, "manual.json5", text), "--explore", "20"]);
    assert_eq!(code, Some(0), "{stdout}");
}

/// The events of jobs, without those of the ticker, whose timing differs between simulation and real run.
fn order(events: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let events = events.filter(|(source, _)| source != "ticker" && !source.is_empty() && source != "global");
    events.map(|(source, code)| format!("{source} {code}")).collect()
}

#[test]
fn x4_simulation_has_the_same_order_of_events_as_a_real_run() {
    let folder = folder("real");
    // The real run logs every event at level debug.
    let log = folder.join("log");
    let mut real = Command::new(containerpilot())
        .args(["-config", &example(QUICKSTART)])
        .env("FOLDER", folder.join("world"))
        .env("LOG_LEVEL", "debug")
        .env(
            "CONTAINERPILOT_SOCKET",
            std::env::temp_dir().join(format!("simulate-{}.socket", std::process::id())),
        )
        .stdout(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let log_so_far = || std::fs::read_to_string(&log).unwrap();
    let what = || format!("greeter is stopped; the log was:\n{}", log_so_far());
    wait_until_within(Duration::from_secs(60), what, || {
        assert!(real.try_wait().unwrap().is_none(), "the supervisor has exited");
        log_so_far().contains("event greeter stopped")
    });
    assert!(Command::new("kill").arg(real.id().to_string()).status_in_time().unwrap().success());
    assert!(real.status_in_time().unwrap().success());
    let log = std::fs::read_to_string(&log).unwrap();
    let logged = log.lines().filter_map(|line| line.split_once("event ")).filter_map(|(_, event)| {
        let (event, _) = event.split_once(',').unwrap_or((event, ""));
        let (source, code) = event.trim().rsplit_once(' ')?;
        Some((source.to_owned(), code.to_owned()))
    });
    let real = order(logged);
    // The simulation, with run times like those of the example's programs.
    let text =
        "{ jobs: [{ name: 'setup', runs: { lasts: '10ms' } }, { name: 'greeter', runs: { lasts: '10ms' } },
        { name: 'farewell', runs: { lasts: '10ms' } }], happens: [{ at: 3, signal: 'TERM' }] }";
    let scenario = file(&folder, "s.json5", text);
    let (_, stdout, _) = simulate(&[&example(QUICKSTART), &scenario, "--format", "json"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let health = ["healthy", "unhealthy", "becameHealthy", "becameUnhealthy"];
    let codes = [&["exitSuccess", "exitFailed", "stopping", "stopped"][..], &health].concat();
    let events = answer["timeline"].as_array().unwrap().iter().filter_map(|entry| {
        let (source, what) = (entry["source"].as_str()?, entry["what"].as_str()?);
        codes.contains(&what).then(|| (source.to_owned(), what.to_owned()))
    });
    assert_eq!(order(events), real);
}

#[test]
fn p10_p11_files_of_the_target_machine_need_not_exist_here() {
    let folder = folder("environment");
    let config = "{ envFile: '/none/a.env', secrets: { A: { file: '/none/a' } },
        jobs: [{ name: 'a', exec: 'a', nice: -5, oomScoreAdj: -500, capabilities: ['CHOWN'] }] }";
    let config = file(&folder, "config.json5", config);
    let (code, stdout, stderr) = simulate(&[&config]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("starts"), "{stdout}");
    // A mistake in a file that does exist is found.
    let variables = file(&folder, "a.env", "A=1\nB\n");
    let config = file(&folder, "broken.json5", &format!("{{ envFile: '{variables}', jobs: [] }}"));
    let (code, _, stderr) = simulate(&[&config]);
    assert_ne!(code, Some(0));
    assert!(stderr.contains("a.env:2: expected NAME=value"), "{stderr}");
}

#[test]
fn x4_the_time_of_a_simulation_does_not_grow_with_the_square_of_the_jobs() {
    let folder = folder("many");
    let job = |nth: usize| {
        let ports = format!("{}-{}", nth * 1_000, nth * 1_000 + 999);
        format!(
            "{{ name: 'job{nth}', exec: 'sleep 1000', replicas: 1000, port: '{ports}', interfaces: 'static:10.0.0.1',
               health: {{ exec: 'true', interval: 10, ttl: 30 }} }}"
        )
    };
    let jobs: Vec<String> = (1..=20).map(job).collect();
    let config = format!("{{ consul: 'localhost:8500', jobs: [{}] }}", jobs.join(", "));
    // The deadline of the test is the bound: with the square it would take ten times as long.
    let (code, stdout, stderr) = simulate(&[&file(&folder, "a.json5", &config)]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("job20-1000"), "all replicas are simulated");
}
