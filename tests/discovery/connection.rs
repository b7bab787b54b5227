//! Connections to Consul: ACL tokens, TLS certificates, unix sockets (D1, L5).

use std::fs;

use serde_json::{Value, json};

use super::fake_agent::{Behaviour, FakeAgent};
use super::pilot::{Pilot, config, count};
use crate::support::certificates::certificates;
use crate::support::consul::{Agent, folder};
use crate::support::deadline::InTime;
use crate::support::program::{command, containerpilot, err};
use crate::support::supervisor::{Mode, Supervisor};

const MANAGEMENT_TOKEN: &str = "11111111-2222-3333-4444-555555555555";
const WRONG_TOKEN: &str = "99999999-8888-7777-6666-555555555555";

/// An agent that permits nothing without a token.
pub(crate) fn with_acls() -> Agent {
    let settings = json!({ "acl": { "enabled": true, "default_policy": "deny", "tokens": { "master": MANAGEMENT_TOKEN } } });
    let mut agent = Agent::prepared(&["-dev"], &settings);
    agent.token = Some(MANAGEMENT_TOKEN.to_owned());
    agent.start();
    agent.wait_for_leader();
    // The token is created shortly after the leader election.
    crate::support::supervisor::wait_until("the token is accepted", || {
        agent.try_get("/v1/acl/tokens").is_some()
    });
    agent
}

#[test]
fn d1_l5_token_is_sent_and_a_wrong_one_is_reported_once_and_never_logged() {
    let agent = with_acls();
    let watch = "watches: [{ name: 'web', interval: 1 }]";
    // A token in the environment.
    let script = format!("export CONSUL_HTTP_TOKEN={MANAGEMENT_TOKEN}");
    let good = Pilot::with_setup(Mode::Plain, &script, &config("5s").consul(agent.address()).keys(watch));
    agent.wait_for_status("web", Some("passing"));
    let log = good.assert_unharmed();
    assert!(!log.contains("Consul") && !log.contains(MANAGEMENT_TOKEN));

    // A token file, which is read again after Consul has refused its token.
    let file = folder().join("token");
    fs::write(&file, format!("{WRONG_TOKEN}\n")).unwrap();
    let consul = format!("{{ address: '{}', tokenfile: '{}' }}", agent.address(), file.display());
    let mut pilot = Pilot::start(&config("5s").keys(format!("consul: {}", consul)).keys(watch));
    pilot.wait_for_job();
    let refused = pilot.run.wait_for_line(" refused service web: status 403: ");
    let source = format!("(with the token of the file {} from the key `consul.tokenfile`)", file.display());
    assert!(refused.contains(&source), "{refused}");
    pilot.run.wait_for_lines("web healthy", 1);
    assert_eq!(agent.status("web"), None);
    fs::write(&file, format!("{MANAGEMENT_TOKEN}\n")).unwrap();
    agent.wait_for_status("web", Some("passing"));
    pilot.run.wait_for_lines(" accepts service web again", 1);
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, " refused service web"), 1);
    assert!(!log.contains(MANAGEMENT_TOKEN) && !log.contains(WRONG_TOKEN));
    assert_eq!(agent.status("web"), None);
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn d1_l5_refused_token_is_described_and_never_shown() {
    let agent = FakeAgent::new(Behaviour::Responds(403, "Permission denied"));
    for (script, consul, source) in [
        ("", format!("'{}'", agent.address), "(no token was sent: set CONSUL_HTTP_TOKEN, or "),
        (
            "",
            format!("{{ address: '{}', token: '{WRONG_TOKEN}' }}", agent.address),
            "(with the token of the key `consul.token`)",
        ),
        (
            &format!("export CONSUL_HTTP_TOKEN={WRONG_TOKEN}"),
            format!("'{}'", agent.address),
            "(with the token of the variable CONSUL_HTTP_TOKEN)",
        ),
    ] {
        let mut pilot =
            Pilot::with_setup(Mode::Plain, script, &config("5s").keys(format!("consul: {}", consul)));
        let refused = pilot.run.wait_for_line(" refused service web: status 403: Permission denied ");
        assert!(refused.contains(source), "{refused}");
        let log = pilot.assert_unharmed();
        assert!(!log.contains(WRONG_TOKEN));
    }
}

#[test]
fn d1_https_to_a_plain_port_says_what_to_do() {
    let agent = Agent::dev();
    let mut pilot = Pilot::start(&config("5s").consul(format!("https://{}", agent.address())));
    pilot
        .run
        .wait_for_line("is unreachable: TLS handshake failed: that port does not speak TLS, try http://");
    pilot.assert_unharmed();
}

#[test]
fn d1_https_verifies_the_server_and_sends_a_client_certificate() {
    let mut agent = Agent::prepared(&["-dev"], &json!({}));
    let folder = agent.folder().to_owned();
    certificates(&folder, &agent.ip);
    let file = |name: &str| folder.join(name).display().to_string();
    let settings = json!({
        "ports": { "https": 8501 }, "verify_incoming_https": true,
        "ca_file": file("ca.pem"), "cert_file": file("server.pem"), "key_file": file("server.key"),
    });
    fs::write(folder.join("agent.json"), settings.to_string()).unwrap();
    agent.start();
    agent.wait_for_leader();
    let consul = |tls: &str| format!("{{ address: 'https://{}:8501', tls: {{ {tls} }} }}", agent.ip);
    let own = format!("clientcert: '{}', clientkey: '{}'", file("client.pem"), file("client.key"));
    let trusted = format!("cafile: '{}'", file("ca.pem"));
    let registers = |tls: &str| {
        let pilot = Pilot::start(
            &config("5s")
                .keys(format!("consul: {}", consul(tls)))
                .keys("watches: [{ name: 'web', interval: 1 }]"),
        );
        agent.wait_for_status("web", Some("passing"));
        let log = pilot.assert_unharmed();
        assert!(!log.contains("Consul"));
        assert_eq!(agent.status("web"), None);
    };
    registers(&format!("{own}, {trusted}"));
    registers(&format!("{own}, capath: '{}'", file("cas")));
    registers(&format!("{own}, {trusted}, servername: 'server.dc1.consul'"));
    registers(&format!("{own}, verify: false"));
    let refused = |tls: &str, words: &str| {
        let mut pilot = Pilot::start(&config("5s").keys(format!("consul: {}", consul(tls))));
        pilot.wait_for_job();
        assert!(pilot.run.wait_for_line("is unreachable").contains(words), "{}", pilot.run.log_so_far());
        assert_eq!(agent.status("web"), None);
        pilot.assert_unharmed();
    };
    // The server's certificate must be signed by a trusted authority and match its name.
    refused(&format!("{own}, cafile: '{}'", file("client.pem")), "invalid peer certificate");
    refused(&format!("{own}, {trusted}, servername: 'another.example'"), "not valid for name");
    // The server refuses a client without a certificate.
    refused(&trusted, "ertificate");
}

#[test]
fn d1_client_key_that_does_not_fit_is_an_error_at_the_start_and_at_a_reload() {
    let folder = folder();
    certificates(&folder, "127.0.0.1");
    let with_key = |key: &str| {
        let folder = folder.display();
        let tls =
            format!("clientcert: '{folder}/client.pem', clientkey: '{folder}/{key}.key', verify: false");
        format!(
            "{{ control: {{ socket: '{folder}/socket' }}, jobs: [{{ name: 'a', exec: 'sleep 60' }}],
               consul: {{ address: 'https://127.0.0.1:1', tls: {{ {tls} }} }} }}"
        )
    };
    let words = "server.key does not belong to the client certificate ";
    let file = folder.join("pilot.json5").display().to_string();
    fs::write(&file, with_key("server")).unwrap();
    let run = |args: &[&str]| {
        let output = command(containerpilot(), args).output_in_time().unwrap();
        (output.status.code(), err(&output))
    };
    for args in [&["-config", file.as_str()][..], &["check", &file]] {
        let (code, error) = run(args);
        assert!(code == Some(1) && error.contains(words), "{args:?}: {code:?} {error}");
    }
    let json = command(containerpilot(), &["check", "--format", "json", &file]).output_in_time().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ok"], false, "{json}");
    fs::write(&file, with_key("client")).unwrap();
    let mut pilot = Supervisor::with_args(Mode::Plain, &["-config", &file]);
    pilot.wait_for_line("a started");
    fs::write(&file, with_key("server")).unwrap();
    let (code, error) = run(&["reload", "-config", &file]);
    assert!(code == Some(1) && error.contains(words) && error.contains("nothing was changed"), "{error}");
    pilot.signal("-TERM");
    assert_eq!(pilot.wait().0, 0);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn d1_consul_is_reached_over_a_unix_socket() {
    let mut agent = Agent::prepared(&["-dev"], &json!({}));
    let socket = agent.folder().join("http.socket");
    // The agent also listens on TCP, which the test itself uses.
    let settings = json!({ "addresses": { "http": format!("{} unix://{}", agent.ip, socket.display()) } });
    fs::write(agent.folder().join("agent.json"), settings.to_string()).unwrap();
    agent.start();
    agent.wait_for_leader();
    let consul = format!("'unix://{}'", socket.display());
    let pilot = Pilot::start(
        &config("5s").keys(format!("consul: {}", consul)).keys("watches: [{ name: 'web', interval: 1 }]"),
    );
    agent.wait_for_status("web", Some("passing"));
    let log = pilot.assert_unharmed();
    assert!(!log.contains("Consul"));
    assert_eq!(agent.status("web"), None);
}
