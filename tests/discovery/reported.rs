//! What `status`, `explain`, the JSON and the metrics say about the catalog is what the catalog has confirmed (D11).

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fake_agent::{Behaviour, FakeAgent};
use super::pilot::{Pilot, WEB, config, settings};
use crate::support::consul::{Agent, http, own_address, service_id};
use crate::support::deadline::InTime;
use crate::support::supervisor::wait_until;

/// A supervisor with the job `web`, whose metrics are served at `telemetry`.
struct Reported {
    pilot: Pilot,
    telemetry: String,
}

impl Reported {
    fn start(consul: &str) -> Self {
        let ip = own_address();
        let more = format!(
            "watches: [{{ name: 'db', interval: 1 }}], telemetry: {{ port: 9090, interfaces: 'static:{ip}' }}"
        );
        let pilot = Pilot::start(&config("5s").consul(consul).keys(&more));
        wait_until("the control socket accepts connections", || {
            UnixStream::connect(pilot.run.file("control")).is_ok()
        });
        Self { pilot, telemetry: format!("{ip}:9090") }
    }

    fn command(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
        command.args(args).arg("--socket").arg(self.pilot.run.file("control"));
        let output = command.output_in_time().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn has_metric(&self, line: &str) -> bool {
        let page = http(&self.telemetry, "GET", "/metrics", None, "");
        page.is_ok_and(|(_, page)| page.lines().any(|one| one == line))
    }

    /// Waits until the catalog has confirmed that `web` is passing, and everything says so.
    fn wait_until_passing(&self) {
        wait_until("web is confirmed", || {
            self.command(&["status", "web"]).contains("passing in the catalog for ")
        });
        assert!(
            self.command(&["explain", "web"])
                .contains("  service web (10.1.2.3:8080): passing in the catalog for ")
        );
        let job: Value = serde_json::from_str(&self.command(&["status", "web", "--format", "json"])).unwrap();
        assert_eq!((&job["service"], &job["catalog"]["confirmed"]), (&"passing".into(), &"passing".into()));
        assert!(job["catalog"]["since"].is_string() && job["catalog"]["error"].is_null(), "{job}");
        wait_until("the metrics say so", || {
            self.has_metric("containerpilot_catalog_up 1")
                && self.has_metric("containerpilot_service_registered{name=\"web\"} 1")
        });
    }

    /// Waits until nothing says any longer that `web` is passing, but everything says `error`. The trouble of the catalog is
    /// that of the service or watch that has it longest, and begins with `catalog_error`.
    fn wait_until_unknown(&self, catalog_error: &str, error: &str) {
        wait_until("the error is shown", || self.command(&["status", "web"]).contains(error));
        let wanted = "wanted: passing; not confirmed by the catalog for ";
        for text in [self.command(&["status", "web"]), self.command(&["explain", "web"])] {
            assert!(
                text.contains(wanted) && text.contains(error) && !text.contains("in the catalog"),
                "{text}"
            );
        }
        let overview = self.command(&["status"]);
        assert!(overview.lines().nth(1).unwrap().starts_with(catalog_error), "{overview}");
        let status: Value = serde_json::from_str(&self.command(&["status", "--format", "json"])).unwrap();
        assert_eq!((&status["catalog"]["kind"], &status["catalog"]["up"]), (&"consul".into(), &false.into()));
        let entry = &status["jobs"][0]["catalog"];
        assert_eq!(
            (&entry["wanted"], &entry["confirmed"]),
            (&"passing".into(), &"unknown".into()),
            "{entry}"
        );
        assert!(entry["since"].is_string() && entry["error"].as_str().unwrap().contains(error), "{entry}");
        // A page may be made from a snapshot that is a moment old.
        wait_until("the metrics say so", || {
            self.has_metric("containerpilot_catalog_up 0")
                && self.has_metric("containerpilot_service_registered{name=\"web\"} 0")
        });
    }
}

#[test]
fn d11_dead_consul_is_never_shown_as_passing() {
    let mut agent = Agent::dev();
    let reported = Reported::start(&agent.address());
    reported.wait_until_passing();
    agent.kill();
    let error = format!("Consul at {} is unreachable: ", agent.address());
    reported.wait_until_unknown(&error, &error);
    agent.start();
    reported.wait_until_passing();
    let log = reported.pilot.assert_unharmed();
    assert!(log.contains("; retrying") && log.contains("is available again"));
}

#[test]
fn d5_d11_restarted_consul_is_told_at_once_and_shown_as_unknown_until_then() {
    let mut agent = Agent::dev();
    // The checks are so slow that only the answer to the watch can be the reason to register again.
    let config = settings()
        .consul(agent.address())
        .keys("watches: [{ name: 'db', interval: 1 }]")
        .job("web", format!("{WEB}, health: {{ exec: 'true', interval: 300, ttl: 1000 }}"));
    let mut pilot = Pilot::start(&config);
    agent.wait_for_status("web", Some("passing"));
    let entry = |pilot: &Pilot| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
        command.args(["status", "web", "--format", "json", "--socket"]).arg(pilot.run.file("control"));
        let job: Value = serde_json::from_slice(&command.output_in_time().unwrap().stdout).unwrap();
        job["catalog"].clone()
    };
    wait_until("web is confirmed", || entry(&pilot)["confirmed"] == "passing");
    let before = entry(&pilot)["since"].as_str().unwrap().to_owned();
    agent.kill();
    pilot.run.wait_for_line("is unreachable");
    assert_eq!(entry(&pilot)["confirmed"], "unknown");
    let since = entry(&pilot)["since"].as_str().unwrap().to_owned();
    let began = Instant::now();
    agent.start();
    wait_until("web is confirmed again", || {
        let entry = entry(&pilot);
        assert!(entry["confirmed"] != "unknown" || entry["since"] == *since, "{entry} {since}");
        // What is said is true: the agent has the service when it is called passing.
        entry["confirmed"] == "passing" && {
            let check = format!("service:{}", service_id("web"));
            assert_eq!(agent.get("/v1/agent/checks")[check]["Status"], "passing");
            true
        }
    });
    assert!(began.elapsed() < Duration::from_secs(100), "it waited for a check");
    let again = entry(&pilot)["since"].as_str().unwrap().to_owned();
    assert!(before < since && since < again, "{before} {since} {again}");
    pilot.assert_unharmed();
}

#[test]
fn d11_refusing_consul_is_never_shown_as_passing() {
    let agent = FakeAgent::new(Behaviour::Responds(403, "Permission denied"));
    let reported = Reported::start(&agent.address);
    let refused = format!("Consul at {} refused ", agent.address);
    let error = format!("{refused}service web: status 403: Permission denied");
    reported.wait_until_unknown(&refused, &error);
    // Accepted, and refused again.
    agent.change_to(Behaviour::Correct);
    reported.wait_until_passing();
    agent.change_to(Behaviour::Responds(403, "Permission denied"));
    reported.wait_until_unknown(&refused, &error);
    reported.pilot.assert_unharmed();
}

#[test]
fn x9_d11_watch_without_an_answer_says_why() {
    let agent = FakeAgent::new(Behaviour::Garbage);
    let ip = own_address();
    let more = format!(
        "watches: [{{ name: 'db', interval: 1 }}], telemetry: {{ port: 9090, interfaces: 'static:{ip}' }}"
    );
    let text = config("5s")
        .consul(&agent.address)
        .keys(&more)
        .job("app", "exec: 'true', when: { source: 'watch.db', once: 'healthy' }");
    let mut pilot = Pilot::start(&text);
    pilot.run.wait_for_line("is unreachable: the response is not HTTP");
    let reported = Reported { pilot, telemetry: format!("{ip}:9090") };
    let error = format!("Consul at {} is unreachable: the response is not HTTP", agent.address);
    let expected = format!("watch.db: no answer from the catalog yet: {error}");
    wait_until("the watch says why", || reported.command(&["explain", "watch.db"]).contains(&expected));
    let app = reported.command(&["explain", "app"]);
    assert!(
        app.contains("waiting until watch.db is healthy (no answer yet)") && app.contains(&error),
        "{app}"
    );
    wait_until("the metrics say so", || reported.has_metric("containerpilot_catalog_up 0"));
    assert!(!reported.has_metric("containerpilot_watch_instances{service=\"db\"} 0"));
    agent.change_to(Behaviour::Correct);
    wait_until("the number is known", || {
        reported.has_metric("containerpilot_watch_instances{service=\"db\"} 0")
    });
    agent.change_to(Behaviour::Garbage);
    wait_until("the watch says that its answer is old", || {
        let text = reported.command(&["explain", "watch.db"]);
        text.contains("watch.db: no healthy instances (as of ") && text.contains(&error)
    });
    reported.pilot.assert_unharmed();
}

#[test]
fn d5_consul_that_comes_back_and_refuses_is_not_called_available() {
    let agent = FakeAgent::new(Behaviour::Silent);
    let mut reported = Reported::start(&agent.address);
    reported.pilot.run.wait_for_line("is unreachable");
    agent.change_to(Behaviour::Responds(403, "Permission denied"));
    let line = reported.pilot.run.wait_for_line("answers again, but refuses ");
    wait_until("the service and the watch are refused", || {
        reported.command(&["status"]).lines().nth(1).unwrap().contains(" more)")
    });
    let log = reported.pilot.assert_unharmed();
    assert!(!log.contains("is available again"), "{line}");
}
