//! Replicas, `scale` and rolling restarts (W20), and reloads that keep the process (R5).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{TIMEOUT, command, decode, json, run_command, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};

const WEB: &str = "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo $CONTAINERPILOT_REPLICA on $CONTAINERPILOT_PORT; exec sleep 1000'], \
    replicas: 3, port: '18000-18003', interfaces: 'static:127.0.0.1', health: { exec: 'true', interval: 1, ttl: 5 } }] }";

/// The pids of all replicas by name.
fn pids(supervisor: &Supervisor) -> BTreeMap<String, u64> {
    let jobs = json(&run_ok(supervisor, &["status", "web", "--format", "json"]));
    let jobs = jobs.as_array().unwrap().iter();
    jobs.map(|job| (job["name"].as_str().unwrap().to_owned(), job["pid"].as_u64().unwrap_or(0))).collect()
}

/// Like `run_ok`, for a command that warns about a service that is advertised only inside the container.
fn run_with_warning(supervisor: &Supervisor, args: &[&str]) -> String {
    let (code, out, err) = run_command(supervisor, args);
    assert_eq!((code, err.matches("warning: ").count()), (0, 1), "{args:?}: {err}");
    assert!(err.starts_with("warning: without `consul`"), "{args:?}: {err}");
    out
}

#[test]
fn w20_commands_act_on_all_replicas() {
    let supervisor = supervisor(WEB);
    wait(&supervisor, "web", "healthy");
    assert_eq!(pids(&supervisor).len(), 3);
    let table = run_ok(&supervisor, &["status", "web"]);
    assert!(["web-1", "web-2", "web-3"].iter().all(|name| table.contains(name)), "{table}");
    let logs = run_ok(&supervisor, &["logs", "web"]);
    assert!(logs.contains("1 on 18000") && logs.contains("3 on 18002"), "{logs}");
    assert!(run_ok(&supervisor, &["explain", "web"]).contains("web-2"));
    let done = run_ok(&supervisor, &["stop", "web"]);
    assert!(done.contains("web-1: stopping") && done.contains("web-3: stopping"), "{done}");
    wait(&supervisor, "web", "stopped");
    run_ok(&supervisor, &["start", "web"]);
    wait(&supervisor, "web", "healthy");
    assert!(run_ok(&supervisor, &["health", "web"]).contains("web-1 is healthy"));
}

#[test]
fn w20_scale_changes_the_number_and_keeps_the_other_processes() {
    let supervisor = supervisor(WEB);
    wait(&supervisor, "web", "healthy");
    let before = pids(&supervisor);
    assert_eq!(run_ok(&supervisor, &["scale", "web=4"]), "web: 4 replicas; started web-4\n");
    wait(&supervisor, "web", "healthy");
    assert_eq!(run_ok(&supervisor, &["scale", "web=2"]), "web: 2 replicas; stopped web-3, web-4\n");
    let after = pids(&supervisor);
    assert_eq!(after.len(), 2);
    assert!(after.iter().all(|(name, pid)| before.get(name) == Some(pid)), "{before:?} {after:?}");
    let refused = run_err(&supervisor, &["scale", "web=5"]);
    assert!(refused.ends_with("at most 4 replicas: the ports are 18000 to 18003"), "{refused}");
    let (code, _, err) = run_command(&supervisor, &["scale", "web"]);
    assert_eq!(code, 2, "{err}");
    // A reload keeps it, as long as `replicas` is unchanged.
    assert!(run_with_warning(&supervisor, &["reload"]).contains("nothing changed"));
    assert_eq!(pids(&supervisor), after);
}

#[test]
fn w20_a_rolling_restart_replaces_every_process() {
    let supervisor = supervisor(WEB);
    wait(&supervisor, "web", "healthy");
    let before = pids(&supervisor);
    let done = run_ok(&supervisor, &["restart", "--rolling", "web"]);
    assert_eq!(done, "web: restarted web-1, web-2, web-3, one at a time\n");
    let after = pids(&supervisor);
    assert!(after.iter().all(|(name, pid)| before.get(name) != Some(pid)), "{before:?} {after:?}");
}

/// A rolling restart that does not end before its job is released.
const HELD: &str = "{ jobs: [{ name: 'web', exec: 'sleep 1000', replicas: 2, groups: ['all'], \
    health: { exec: 'test ! -e @/held', interval: 1, ttl: 5 } }] }";

/// Starts a supervisor whose replicas do not become healthy after a restart.
fn held() -> Supervisor {
    let supervisor = supervisor(HELD);
    wait(&supervisor, "web", "healthy");
    fs::write(supervisor.file("held"), "").unwrap();
    supervisor
}

#[test]
#[ignore = "slow: longer than the timeout of 20 s for other requests"]
fn w20_a_rolling_restart_that_takes_long_is_awaited_to_its_end() {
    let (succeeds, fails, raw) = (held(), held(), held());
    let start = |supervisor: &Supervisor, name: &str| {
        let before = pids(supervisor);
        let mut command = command(supervisor, &["restart", "--rolling", name]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("web-1 is restarted", || pids(supervisor)["web-1"] != before["web-1"]);
        child
    };
    let (first, second) = (start(&succeeds, "web"), start(&fails, "@all"));
    let mut stream = UnixStream::connect(raw.file("socket")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(b"POST /v3/jobs/web/restart?rolling=true HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    // The response of this request begins after those of the others.
    assert_eq!(lines.next().unwrap(), "HTTP/1.0 202 Accepted");
    for supervisor in [&succeeds, &raw] {
        fs::remove_file(supervisor.file("held")).unwrap();
    }
    run_ok(&fails, &["stop", "web-1"]);
    let body = lines.last().unwrap();
    let expected = "restarted web-1, web-2, one at a time";
    assert_eq!(json(&body), serde_json::json!({ "job": "web", "message": expected, "done": true }));
    let done = decode(&first.output_in_time().unwrap());
    assert_eq!(done, (0, format!("web: {expected}\n"), String::new()));
    let failed = decode(&second.output_in_time().unwrap());
    let expected = "containerpilot: @all: web-1 has ended; not restarted: web-2\n";
    assert_eq!(failed, (1, String::new(), expected.to_owned()));
}

#[test]
fn w20_logs_and_explanations_over_http_are_those_of_one_replica() {
    let supervisor = supervisor(WEB);
    wait(&supervisor, "web", "healthy");
    for endpoint in ["logs", "explain"] {
        let mut stream = UnixStream::connect(supervisor.file("socket")).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        write!(stream, "GET /v3/jobs/web/{endpoint} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 409 "), "{answer}");
        assert!(answer.contains("`web` has 3 replicas: use `web-1` to `web-3`"), "{answer}");
    }
}

#[test]
fn r5_a_changed_tag_does_not_cost_the_process() {
    let supervisor = supervisor(WEB);
    wait(&supervisor, "web", "healthy");
    let before = pids(&supervisor);
    let file = supervisor.file("config.json5");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("replicas: 3", "replicas: 3, tags: ['new'], restarts: 5")).unwrap();
    let preview = run_with_warning(&supervisor, &["check", "--diff"]);
    assert!(preview.contains("adjust     web-1, web-2, web-3"), "{preview}");
    let done = run_with_warning(&supervisor, &["reload"]);
    assert!(done.contains("adjusted   web-1, web-2, web-3"), "{done}");
    assert_eq!(pids(&supervisor), before);
}

/// Sends one request, and returns true if it was answered with 200.
fn succeeds(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let mut answer = String::new();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

#[test]
fn w20_no_request_behind_nginx_fails_during_a_rolling_restart() {
    let nginx =
        Command::new("scripts/nginx").current_dir(env!("CARGO_MANIFEST_DIR")).output_in_time().unwrap();
    let nginx = Path::new(env!("CARGO_MANIFEST_DIR")).join(String::from_utf8(nginx.stdout).unwrap().trim());
    let (nginx, first) = (nginx.display(), 20_000 + u16::try_from(std::process::id() % 20_000).unwrap());
    let proxy = first + 3;
    let settings = "daemon off; pid nginx.pid; error_log stderr; events {}";
    let temporary =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {name};"));
    let http = format!("access_log off; {}", temporary.join(" "));
    let servers: String =
        (first..proxy).map(|port| format!("server 127.0.0.1:{port} max_fails=0;")).collect();
    let start = |folder: &str, server: &str| {
        format!(
            "mkdir -p @/{folder} && cd @/{folder} && echo '{settings} http {{ {http} {server} }}' > conf && \
             exec {nginx} -p @/{folder}/ -e stderr -c @/{folder}/conf"
        )
    };
    let app = start(
        "$CONTAINERPILOT_REPLICA",
        "server { listen 127.0.0.1:$CONTAINERPILOT_PORT; location / { return 200 ok; } }",
    );
    let front = start(
        "proxy",
        &format!(
            "upstream web {{ {servers} }} server {{ listen 127.0.0.1:{proxy}; location / {{ proxy_pass http://web; }} }}"
        ),
    );
    let supervisor = supervisor(&format!(
        "{{ jobs: [
            {{ name: 'web', exec: ['sh', '-c', {app:?}], replicas: 3, port: '{first}-{last}', interfaces: 'static:127.0.0.1', \
               stopSignal: 'SIGQUIT', health: {{ tcp: '127.0.0.1:$CONTAINERPILOT_PORT', interval: 1, ttl: 5 }} }},
            {{ name: 'proxy', exec: ['sh', '-c', {front:?}], when: {{ source: 'web', once: 'healthy' }}, \
               health: {{ tcp: '127.0.0.1:{proxy}', interval: 1, ttl: 5 }} }} ] }}",
        last = proxy - 1
    ));
    wait(&supervisor, "proxy", "healthy");
    let before = pids(&supervisor);
    let done = AtomicBool::new(false);
    let (sent, failed) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut sent, mut failed) = (0, 0);
            while !done.load(Ordering::Acquire) {
                sent += 1;
                failed += u32::from(!succeeds(proxy));
            }
            (sent, failed)
        });
        run_ok(&supervisor, &["restart", "--rolling", "web"]);
        done.store(true, Ordering::Release);
        client.join().unwrap()
    });
    let after = pids(&supervisor);
    assert!(after.iter().all(|(name, pid)| before.get(name) != Some(pid)), "{before:?} {after:?}");
    assert!(sent > 0 && failed == 0, "{failed} of {sent} requests failed\n{}", supervisor.log_so_far());
}
