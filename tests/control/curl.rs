//! curl as the client of the control socket.

use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::http_client::Pilot;

fn curl(pilot: &Pilot, args: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "30", "--unix-socket"]).arg(&pilot.socket);
    let output = command.args(args).output_in_time().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn x1_curl_works_as_a_client() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'show', exec: ['sh', '-c', 'echo \"A=$A.\"'], when: { source: 'SIGHUP' } },
        ] }",
    );
    assert_eq!(curl(&pilot, &["http://localhost/v3/ping"]), "\n");
    let code = ["-o", "/dev/null", "-w", "%{http_code}"];
    let status_of = |args: &[&str]| curl(&pilot, &[&code[..], args].concat());
    assert_eq!(status_of(&["-XPOST", "-d", r#"{"A": "1"}"#, "http://localhost/v3/environ"]), "200");
    assert_eq!(status_of(&["-XPOST", "-d", "A=1", "http://localhost/v3/environ"]), "422");
    assert_eq!(status_of(&["http://localhost/v3/environ"]), "405");
    assert_eq!(status_of(&["-XPOST", "http://localhost/v3/jobs/mian/stop"]), "404");
    let updated = curl(&pilot, &["-XPOST", "http://localhost/v3/maintenance/enable"]);
    assert_eq!(updated, "{\"updated\":true}\n");
    let status: serde_json::Value =
        serde_json::from_str(&curl(&pilot, &["http://localhost/v3/status"])).unwrap();
    assert_eq!(status["jobs"][0]["name"], "main");
    // For bodies above 1 MiB curl sends `Expect: 100-continue`.
    let large = pilot.supervisor.file("large");
    std::fs::write(&large, vec![b' '; 2 << 20]).unwrap();
    let body = format!("@{}", large.display());
    assert_eq!(status_of(&["--data-binary", &body, "http://localhost/v3/environ"]), "413");
    let stream = curl(&pilot, &["-N", "--max-time", "1", "http://localhost/v3/events"]);
    assert!(stream.contains("\"code\":\"startup\"") && stream.contains("enterMaintenance"), "{stream}");
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("A=1.");
    // Several requests on one connection.
    let ping = "http://localhost/v3/ping";
    let both = curl(&pilot, &["-v", "-H", "connection: keep-alive", ping, ping]);
    assert!(both.contains("Re-using existing connection") || both.contains("Reusing existing"), "{both}");
}
