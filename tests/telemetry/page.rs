//! The live page of the telemetry server (T5), read by clients that are no browsers. `tests/page` looks at it with one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::idle::wait_until_idle_for;
use crate::support::supervisor::wait_until;
use crate::support::telemetry_client::{Response, Telemetry, read_response, request};

const ONE_JOB: &str = "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' }";

/// A request with further header lines.
fn with_headers(address: SocketAddr, path: &str, headers: &str) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
    read_response(stream)
}

/// A viewer: the stream of events, without reading it.
fn viewer(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /page/events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream
}

/// Reads a stream of events until a line contains `text`.
fn read_until(reader: &mut BufReader<TcpStream>, text: &str) -> String {
    let mut seen = String::new();
    loop {
        let mut line = Vec::new();
        assert_ne!(
            reader.read_until(b'\n', &mut line).unwrap(),
            0,
            "the stream ended without `{text}`:\n{seen}"
        );
        let line = String::from_utf8(line).unwrap();
        seen += &line;
        if line.contains(text) {
            return seen;
        }
    }
}

#[test]
fn t5_page_is_there_by_default_read_only_and_with_strict_headers() {
    let served = Telemetry::start(ONE_JOB);
    let (code, head, body) = served.get("/");
    assert!(code == 200 && head.contains("content-type: text/html; charset=utf-8"), "{head}");
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    assert!(body.starts_with("<!doctype html>") && body.trim_end().ends_with("</html>"), "{body}");
    for header in [
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header} is not in\n{head}");
    }
    for path in ["/page/state", "/page/jobs/a", "/page/jobs/nothing", "/page/jobs/%ff"] {
        let (_, head, _) = served.get(path);
        assert!(
            head.contains("content-security-policy: default-src 'none'; frame-ancestors 'none'"),
            "{head}"
        );
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(!head.contains("access-control-"), "{head}");
    }
    for path in ["/", "/page/state", "/page/events", "/page/jobs/a"] {
        let (code, head, _) = request(served.address, "POST", path);
        assert!(code == 405 && head.contains("allow: get, head"), "{path}: {head}");
        let (code, _, body) = request(served.address, "HEAD", path);
        assert!(code == 200 && body.is_empty(), "{path}: {code} {body}");
    }
    assert_eq!(served.get("/page/jobs/nothing").0, 404);
    assert_eq!(served.get("/page/jobs/%ff").0, 400);
    assert_eq!(served.get("/page/nothing").0, 404);
}

#[test]
fn t5_page_is_compressed_and_a_client_that_cannot_read_it_is_told() {
    let served = Telemetry::start(ONE_JOB);
    let (code, compressed, body) = request(served.address, "HEAD", "/");
    assert!(code == 200 && compressed.contains("content-encoding: gzip") && body.is_empty(), "{compressed}");
    let length = |head: &str| -> usize {
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap()
    };
    assert_eq!(length(&compressed), length(&served.get("/").1));
    for headers in ["", "Accept-Encoding: identity\r\n", "Accept-Encoding: br, gzip;q=0\r\n"] {
        let (code, head, body) = with_headers(served.address, "/", &format!("Host: a\r\n{headers}"));
        assert!(code == 406 && body.contains("`curl --compressed`"), "{headers}: {head}\n{body}");
        assert!(head.contains("vary: accept-encoding") && !head.contains("content-encoding"), "{head}");
        assert_eq!(with_headers(served.address, "/page/state", &format!("Host: a\r\n{headers}")).0, 200);
    }
}

#[test]
fn t5_page_that_is_switched_off_is_not_there() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo', page: false }",
    );
    for path in ["/", "/page/state", "/page/events", "/page/jobs/a"] {
        assert_eq!(served.get(path).0, 404, "{path}");
    }
    assert_eq!(served.get("/livez").0, 200);
}

/// Secrets in every place where a configuration, a process or a message can have them.
const SECRETS: &str = r#"
    consul: { address: '127.0.0.1:1', token: 'hunter2' },
    jobs: [
        { name: 'web', exec: ['sh', '-c', 'echo hunter2; echo hunter2 >&2; sleep 1000', 'hunter2'], env: { DB_PASSWORD: 'hunter2' },
          health: { exec: ['sh', '-c', 'echo hunter2; exit 1', 'hunter2'], interval: '50ms', ttl: 10 } },
        { name: 'failed', exec: ['sh', '-c', 'echo hunter2; exit 3'] },
        { name: 'typo', exec: ['/no/such/server --token=hunter2'], restarts: 3 },
        { name: 'probed', exec: 'sleep 1000', health: { http: 'http://127.0.0.1:1/?token=hunter2', interval: '50ms', ttl: 10 } },
        { name: 'waits', exec: 'sleep 1000', requires: ['watch.site'] },
        { name: 'tells', exec: ['sh', '-c', 'printf "READY=1\nSTATUS=hunter2" | socat - "ABSTRACT-SENDTO:${NOTIFY_SOCKET#@}" 2>/dev/null; sleep 1000'], ready: 'notify' },
    ],
    coprocesses: [{ command: ['sleep', '1000', 'hunter2'] }],
    watches: [{ name: 'site', http: 'http://127.0.0.1:1/?token=hunter2', interval: '50ms' }],
"#;

/// All pages, and the beginning of the stream.
fn all_pages(served: &Telemetry) -> String {
    let mut stream = BufReader::new(viewer(served.address));
    read_until(&mut stream, "event: complete");
    let mut all = read_until(&mut stream, "data: ");
    for path in [
        "/",
        "/page/state",
        "/page/jobs/web",
        "/page/jobs/failed",
        "/page/jobs/typo",
        "/page/jobs/probed",
        "/page/jobs/waits",
        "/page/jobs/tells",
        "/page/jobs/sleep",
        "/page/watches/site",
    ] {
        let (_, head, body) = served.get(path);
        all += &format!("{path}\n{head}\n\n{body}\n");
    }
    all
}

#[test]
fn t5_l5_page_shows_no_value_argument_or_output() {
    let served = Telemetry::start(&format!("{SECRETS} telemetry: {{ port: 0, interfaces: 'lo' }}"));
    wait_until("everything has failed", || {
        let all = all_pages(&served);
        all.contains("\"unhealthy\"") && all.contains("failed to start") && all.contains("check.web failed")
    });
    let all = all_pages(&served);
    assert!(!all.contains("hunter2"), "{all}");
    assert!(
        !all.contains("/no/such/server") && !all.contains("\"lines\"") && !all.contains("\"command\""),
        "{all}"
    );
    assert!(all.contains("\"name\":\"sleep\""), "the coprocess has the name of its program: {all}");
}

#[test]
fn t5_page_shows_arguments_and_output_if_configured() {
    let served = Telemetry::start(&format!(
        "{SECRETS} telemetry: {{ port: 0, interfaces: 'lo', page: {{ arguments: true, logs: true }} }}"
    ));
    wait_until("the output is there", || {
        let (_, _, web) = served.get("/page/jobs/web");
        web.contains("\"command\":\"sh -c echo hunter2")
            && web.contains("\"lines\":[\"hunter2\",\"hunter2\"]")
    });
    wait_until("the reason of the failed start is there", || {
        served.get("/page/jobs/typo").2.contains("/no/such/server --token=hunter2")
    });
    let (_, _, state) = served.get("/page/state");
    assert!(!state.contains("DB_PASSWORD") && !served.get("/page/jobs/web").2.contains("DB_PASSWORD"));
}

#[test]
fn t5_stream_has_the_present_state_and_then_changes_with_their_causes() {
    let served = Telemetry::start(
        "jobs: [
            { name: 'db', exec: ['sh', '-c', 'sleep 1000'], restarts: 'unlimited', restartBackoff: false },
            { name: 'after', exec: 'true', when: { source: 'db', each: 'stopped' } },
        ],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    let mut reader = BufReader::new(viewer(served.address));
    let head = read_until(&mut reader, "event: complete");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("text/event-stream"), "{head}");
    let state = read_until(&mut reader, "\"records\":[");
    assert!(state.contains("\"from\":0,\"to\":1,\"label\":\"each stopped\",\"line\":\"each\""), "{state}");
    assert!(state.contains("\"code\":\"startup\""), "{state}");
    assert_eq!(served.control("POST", "/v3/jobs/db/stop", "").0, 200);
    let change = read_until(&mut reader, "\"source\":\"after\",\"code\":\"start\"");
    assert!(change.contains("event: change"), "{change}");
    let stopped =
        change.contains("\"state\":\"stopped\"") && change.contains("\"source\":\"db\",\"code\":\"stopped\"");
    assert!(stopped, "{change}");
    // One that connects now gets the present state.
    let mut again = BufReader::new(viewer(served.address));
    read_until(&mut again, "\"state\":\"stopped\"");
}

#[test]
fn t5_viewers_are_limited_and_others_are_still_served() {
    let served = Telemetry::start(ONE_JOB);
    let mut viewers: Vec<BufReader<TcpStream>> =
        (0..16).map(|_| BufReader::new(viewer(served.address))).collect();
    for viewer in &mut viewers {
        read_until(viewer, "event: complete");
    }
    let mut refused = String::new();
    BufReader::new(viewer(served.address)).read_line(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    for path in ["/", "/page/state", "/page/jobs/a", "/metrics", "/livez"] {
        assert_eq!(served.get(path).0, 200, "{path}");
    }
    drop(viewers);
    wait_until("a new viewer is served", || {
        let mut line = String::new();
        BufReader::new(viewer(served.address))
            .read_line(&mut line)
            .is_ok_and(|_| line.starts_with("HTTP/1.1 200 "))
    });
}

#[test]
fn t5_e7_viewers_that_do_not_read_hold_nothing_up_and_cost_little_memory() {
    let jobs: Vec<String> =
        (0..200).map(|nth| format!("{{ name: 'job-{nth}', exec: 'sleep 1000' }}")).collect();
    let served = Telemetry::start(&format!(
        "jobs: [{}, {{ name: 'tick', exec: 'true', when: {{ interval: '20ms' }} }}], telemetry: {{ port: 0, interfaces: 'lo' }}",
        jobs.join(", ")
    ));
    let silent: Vec<TcpStream> = (0..16).map(|_| viewer(served.address)).collect();
    let runs = || -> u64 {
        let page = served.metrics();
        let line = page.lines().find_map(|line| {
            line.strip_prefix("containerpilot_job_runs_total{name=\"tick\",result=\"success\"} ")
        });
        line.unwrap().parse().unwrap()
    };
    let before = runs();
    wait_until("a hundred ticks", || runs() >= before + 100);
    let memory = std::fs::read_to_string(format!("/proc/{}/status", served.supervisor.pid())).unwrap();
    let memory = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = memory.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 100_000, "{kilobytes} kB");
    drop(silent);
}

#[test]
fn t5_public_names_of_others_and_other_sites_are_refused() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }],
         telemetry: { port: 0, interfaces: 'lo', page: { hosts: ['pilot.example.com'] } }",
    );
    let get = |path: &str, headers: &str| with_headers(served.address, path, headers);
    for path in ["/", "/page/state", "/page/events", "/page/jobs/a"] {
        let (code, _, body) = get(path, "Host: rebound.example.net:9090\r\n");
        assert!(code == 421 && body.contains("`hosts`") && !body.contains("\"a\""), "{path}: {code} {body}");
    }
    assert_eq!(get("/page/state", "Host: pilot.example.com\r\n").0, 200);
    assert_eq!(get("/page/state", "Host: 127.0.0.1:9090\r\n").0, 200);
    for path in ["/metrics", "/status"] {
        assert_eq!(get(path, "Host: rebound.example.net\r\n").0, 421, "{path}");
        assert_eq!(get(path, "Host: pilot.example.com:9090\r\n").0, 200, "{path}");
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(get(path, "Host: rebound.example.net\r\n").0, 200, "{path}");
    }
    for site in ["cross-site", "same-site"] {
        let headers = format!("Host: a\r\nSec-Fetch-Site: {site}\r\n");
        assert_eq!(get("/page/events", &headers).0, 403);
        assert_eq!(get("/page/jobs/a", &headers).0, 403);
        let headers = format!("{headers}Accept-Encoding: gzip\r\n");
        assert_eq!(get("/", &headers).0, 200, "a link to the page works");
    }
    assert_eq!(get("/page/state", "Host: a\r\nSec-Fetch-Site: same-origin\r\n").0, 200);
}

#[test]
fn t5_without_hosts_metrics_are_served_under_any_name() {
    let served = Telemetry::start(ONE_JOB);
    for (path, expected) in [("/metrics", 200), ("/status", 200), ("/page/state", 421)] {
        let (code, ..) = with_headers(served.address, path, "Host: scraped.example.net\r\n");
        assert_eq!(code, expected, "{path}");
    }
}

#[test]
fn t5_r3_reload_switches_the_page_off_and_ends_its_streams() {
    let served = Telemetry::start(ONE_JOB);
    let mut reader = BufReader::new(viewer(served.address));
    read_until(&mut reader, "event: complete");
    let config = served.supervisor.file("config.json5");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("interfaces: 'lo'", "interfaces: 'lo', page: false")).unwrap();
    assert_eq!(served.control("POST", "/v3/reload", "").0, 200);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(served.get("/").0, 404);
    assert_eq!(served.get("/livez").0, 200);
}

#[test]
fn t5_idle_page_wakes_nothing_up_also_after_a_viewer_has_left() {
    let served = Telemetry::start(ONE_JOB);
    let mut reader = BufReader::new(viewer(served.address));
    read_until(&mut reader, "event: complete");
    drop(reader);
    // The telemetry job has its own heartbeat every five seconds.
    wait_until_idle_for(Duration::from_secs(2), served.supervisor.pid());
}
