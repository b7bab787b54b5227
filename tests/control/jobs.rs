//! Status of the supervisor, and control of single jobs (X2, X4, X5).

use serde_json::json;

use crate::support::http_client::Pilot;
use crate::support::supervisor::wait_until;

#[test]
fn x2_status_shows_every_job_and_watch() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'web', exec: 'sleep 1000', port: 8000, interfaces: 'static:10.1.2.3',
              health: { exec: 'true', interval: 1, ttl: 5 } },
            { name: 'bad', exec: ['sh', '-c', 'exit 3'] },
            { name: 'late', exec: 'true', when: { source: 'web', once: 'exitFailed' } },
        ], watches: [{ name: 'web', interval: 1 }, { name: 'elsewhere', interval: 1 }] }",
    );
    wait_until("web is healthy", || pilot.job("web")["health"] == "healthy");
    pilot.wait_for_state("bad", "failed");
    let status = pilot.get("/v3/status").json();
    assert_eq!((&status["phase"], &status["maintenance"]), (&json!("running"), &json!(false)));
    assert_eq!(status["pid"], pilot.supervisor.pid());
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    let web = pilot.job("web");
    assert!(web["pid"].as_i64().unwrap() > 1 && web["uptimeSeconds"].as_f64().unwrap() >= 0.0);
    assert_eq!((&web["service"], &web["restartsLeft"]), (&json!("passing"), &json!(0)));
    assert_eq!(web["checks"][0]["passed"], true);
    assert_eq!(web["cause"]["code"], "startup");
    let bad = pilot.job("bad");
    assert_eq!(bad["lastExit"], json!({ "code": 3, "signal": null }));
    assert_eq!((&bad["pid"], &bad["health"]), (&json!(null), &json!("none")));
    let late = pilot.job("late");
    assert_eq!(late["state"], "waiting");
    let expected = json!({ "source": "web", "code": "exitFailed", "holds": false, "possible": true, "seen": false, "state": "running" });
    assert_eq!(late["waitsFor"][0], expected);
    let instance = &status["watches"][0]["instances"][0];
    assert_eq!((&instance["address"], &instance["port"]), (&json!("10.1.2.3"), &json!(8000)));
    let started = status["events"].as_array().unwrap().iter();
    assert!(started.clone().any(|event| event["code"] == "startup" && event["count"] == 1));
}

#[test]
fn x5_explain_shows_the_chain_of_unmet_conditions() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'db', exec: 'sleep 1000', when: { source: 'main', once: 'exitSuccess' } },
            { name: 'app', exec: 'true', when: { source: 'db', once: 'exitFailed' } },
            { name: 'main', exec: 'sleep 1000' },
        ] }",
    );
    pilot.wait_for_state("main", "running");
    let explained = pilot.get("/v3/jobs/app/explain").json();
    assert_eq!(explained["job"]["name"], "app");
    let sentences: Vec<_> =
        explained["sentences"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let [_, first, second, ..] = sentences[..] else { panic!("{sentences:#?}") };
    assert!(first.starts_with("  waiting until db fails; db: waiting to start"), "{sentences:#?}");
    assert!(second.starts_with("    waiting until main exits successfully; main: running"), "{sentences:#?}");
    let main = pilot.get("/v3/jobs/main/explain").json();
    assert_eq!(main["causes"][0]["code"], "startup");
    assert!(main["sentences"].to_string().contains("started by startup"), "{main}");
}

#[test]
fn x2_job_can_be_started_signalled_and_stopped() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'hand', exec: ['@programs/on-signal.sh', 'USR1', 'echo got it'],
              when: { source: 'main', once: 'exitFailed' } },
        ] }",
    );
    let refused = pilot.post("/v3/jobs/hand/signal", r#"{"signal": "SIGUSR1"}"#);
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("not running"), "{refused:?}");
    let started = pilot.post("/v3/jobs/hand/start", "");
    assert_eq!((started.status, &started.json()["job"]), (200, &json!("hand")));
    pilot.supervisor.wait_for_line("ready");
    assert_eq!(pilot.post("/v3/jobs/hand/start", "").status, 200, "starting a running job is not an error");
    let sent = pilot.post("/v3/jobs/hand/signal", r#"{"signal": "USR1"}"#);
    assert_eq!(sent.status, 200, "{sent:?}");
    pilot.supervisor.wait_for_line("got it");
    assert_eq!(pilot.post("/v3/jobs/hand/signal", r#"{"signal": 10}"#).status, 200);
    pilot.supervisor.wait_for_lines("got it", 2);
    assert_eq!(pilot.post("/v3/jobs/hand/signal", r#"{"signal": "SIGNOPE"}"#).status, 400);
    assert_eq!(pilot.post("/v3/jobs/hand/signal", "{}").status, 422);
    assert_eq!(pilot.post("/v3/jobs/hand/stop", "").status, 200);
    pilot.wait_for_state("hand", "stopped");
    assert_eq!(pilot.job("main")["state"], "running");
    pilot.supervisor.wait_for_line("control: user ");
}

#[test]
fn x2_unknown_job_is_404_with_the_nearest_name() {
    let pilot = Pilot::start("{ jobs: [{ name: 'server', exec: 'sleep 1000' }] }");
    for path in ["start", "stop", "restart"] {
        let answer = pilot.post(&format!("/v3/jobs/sevrer/{path}"), "");
        assert_eq!(answer.status, 404);
        assert!(answer.body.contains("did you mean `server`?"), "{answer:?}");
    }
    assert_eq!(pilot.post("/v3/jobs/other/signal", r#"{"signal": 1}"#).status, 404);
    assert_eq!(pilot.get("/v3/jobs/other/logs").status, 404);
    assert_eq!(pilot.get("/v3/jobs/other/explain").status, 404);
}

#[test]
fn x2_job_names_in_paths_are_percent_decoded_and_equal_names_are_numbered() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'a b/ü', exec: 'sleep 1000' },
            { name: 'twin', exec: 'sleep 1000' },
            { name: 'twin', exec: 'sleep 1000', when: { source: 'SIGHUP' } },
        ] }",
    );
    assert_eq!(pilot.get("/v3/jobs/a%20b%2F%C3%BC/explain").json()["job"]["name"], "a b/ü");
    assert_eq!(pilot.get("/v3/jobs/a%/explain").status, 400);
    let unclear = pilot.post("/v3/jobs/twin/stop", "");
    assert_eq!(unclear.status, 409);
    assert!(unclear.body.contains("use `twin:1` or `twin:2`"), "{unclear:?}");
    assert_eq!(pilot.post("/v3/jobs/twin:2/start", "").status, 200);
    wait_until("the second job runs", || {
        let status = pilot.get("/v3/status").json();
        status["jobs"][2]["state"] == "running"
    });
    assert_eq!(pilot.get("/v3/jobs/twin/logs").status, 200, "jobs of the same name share their log");
}

#[test]
fn x4_health_is_200_or_503_by_the_health_of_all_running_jobs() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'web', exec: 'sleep 1000', health: { exec: 'test -e @/good', interval: 1, ttl: 5 } },
            { name: 'later', exec: 'true', health: { exec: 'false', interval: 1, ttl: 5 }, when: { source: 'SIGHUP' } },
            { name: 'plain', exec: 'sleep 1000' },
        ] }",
    );
    let answer = pilot.get("/v3/health");
    assert_eq!((answer.status, &answer.json()["healthy"]), (503, &json!(false)), "{answer:?}");
    std::fs::write(pilot.supervisor.file("good"), "").unwrap();
    wait_until("the health is 200", || pilot.get("/v3/health").status == 200);
    let answer = pilot.get("/v3/health").json();
    assert_eq!(answer["jobs"], json!([{ "name": "web", "state": "running", "health": "healthy" }]));
    std::fs::remove_file(pilot.supervisor.file("good")).unwrap();
    wait_until("the health is 503", || pilot.get("/v3/health").status == 503);
    assert_eq!(pilot.post("/v3/maintenance/enable", "").status, 200);
    assert_eq!(pilot.get("/v3/health").status, 200, "maintenance counts as healthy");
}

#[test]
fn w17_manual_job_runs_only_by_hand_and_again_and_again() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'dump', exec: ['sh', '-c', 'echo x >> @/dumps; exit 3'], when: 'manual' },
            { name: 'nightly', exec: 'true', when: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } },
        ] }",
    );
    pilot.wait_for_state("main", "running");
    for runs in 1..=3 {
        let dump = pilot.job("dump");
        assert_eq!((&dump["state"], &dump["manual"]), (&json!("waiting"), &json!(true)));
        pilot.post("/v3/jobs/dump/start", "");
        wait_until("the run has ended", || pilot.job("dump")["runs"]["failure"] == runs);
        pilot.wait_for_state("dump", "waiting");
    }
    assert_eq!(pilot.supervisor.size("dumps"), 6);
    let explained = pilot.get("/v3/jobs/dump/explain").json();
    assert_eq!(explained["sentences"][0], "dump: manual: start it with `start dump`");
    let schedule = pilot.job("nightly")["schedule"].clone();
    assert_eq!((&schedule["cron"], &schedule["timezone"]), (&json!("0 3 * * *"), &json!("Europe/Berlin")));
    assert!(schedule["next"].as_str().is_some_and(|next| next.ends_with(":00:00Z")), "{schedule}");
}
