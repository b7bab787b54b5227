//! A real collector (rotel, see scripts/collector). It reads what containerpilot sends and passes it on to the collector of the tests, so
//! that each value has been read and written by it.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::collector::{Collector, attribute, text};
use crate::support::certificates::certificates;
use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, folder, wait_until};

/// A server that is killed at the end of its test.
struct Server(Child);

impl Server {
    /// Starts it, and waits until it accepts connections.
    fn start(command: &mut Command, address: SocketAddr) -> Self {
        let server = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        wait_until("the server accepts connections", || TcpStream::connect(address).is_ok());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path that a script prints.
fn program(script: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    let output = Command::new(&script).stderr(Stdio::inherit()).output_in_time().unwrap();
    assert!(output.status.success(), "{} failed", script.display());
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    let listeners: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// Starts a real collector that passes everything on to `next`.
fn before(next: &Collector) -> (Server, SocketAddr) {
    let [http, grpc] = free_addresses();
    let mut command = Command::new(program("collector"));
    command.args([
        "start",
        "--otlp-http-endpoint",
        &http.to_string(),
        "--otlp-grpc-endpoint",
        &grpc.to_string(),
    ]);
    command.args([
        "--exporter",
        "otlp",
        "--otlp-exporter-protocol",
        "http",
        "--otlp-exporter-compression",
        "none",
    ]);
    command.args(["--otlp-exporter-endpoint", &format!("http://{}", next.address)]);
    (Server::start(&mut command, http), http)
}

const JOBS: &str = "[
    { name: 'migrate', exec: ['sh', '-c', 'echo migrated'] },
    { name: 'web', exec: ['sh', '-c', 'echo from web >&2; exec sleep 1000'],
      when: { source: 'migrate', once: 'exitSuccess' }, health: { exec: 'true', interval: 1, ttl: 10 } },
]";

/// Requires that the parents of the spans, the attributes of the records and the values of the metrics have arrived.
fn assert_arrived(collector: &Collector) {
    let root = collector.wait_for_span("container");
    let web = collector.wait_for_span("run web");
    let check = collector.wait_for_span("check check.web");
    assert!(root.parent_span_id.is_empty());
    assert_eq!((&web.trace_id, &web.parent_span_id), (&root.trace_id, &root.span_id));
    assert_eq!(check.parent_span_id, web.span_id);
    assert_eq!(web.links[0].span_id, collector.wait_for_span("run migrate").span_id);

    wait_until("the records arrive", || {
        collector.records().iter().any(|record| text(record).contains("exiting"))
    });
    let records = collector.records();
    for (wanted, job, stream) in [("migrated", "migrate", "stdout"), ("from web", "web", "stderr")] {
        let found: Vec<_> = records.iter().filter(|record| text(record) == wanted).collect();
        let [record] = found[..] else { panic!("`{wanted}` {} times", found.len()) };
        assert_eq!(attribute(&record.attributes, "containerpilot.job").as_deref(), Some(job));
        assert_eq!(attribute(&record.attributes, "log.iostream").as_deref(), Some(stream));
        assert_eq!(record.span_id, collector.wait_for_span(&format!("run {job}")).span_id);
    }

    let has = |name: &str| {
        let metrics = collector.metrics();
        metrics.iter().any(|(_, metrics)| metrics.iter().any(|metric| metric.name == name))
    };
    wait_until("the metrics arrive", || has("containerpilot_job_up"));
    let (resource, _) = collector.metrics().remove(0);
    assert_eq!(attribute(&resource.attributes, "service.name").as_deref(), Some("shop"));
}

#[test]
fn t6_a_real_collector_reads_spans_records_and_metrics() {
    let collector = Collector::accepting();
    let (_server, address) = before(&collector);
    let mut supervisor = Supervisor::start(
        Mode::Plain,
        &format!(
            "{{ otlp: {{ endpoint: 'http://{address}', resource: {{ 'service.name': 'shop' }} }}, jobs: {JOBS} }}"
        ),
    );
    supervisor.wait_for_lines("web healthy", 1);
    supervisor.wait_for_lines("from web", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert!(
        code == 0 && !log.contains("otlp: cannot send") && !log.contains("otlp: the collector"),
        "exit code {code}"
    );
    assert_arrived(&collector);
}

#[test]
fn t6_https_verifies_the_collector_and_sends_a_client_certificate() {
    let collector = Collector::accepting();
    let (_server, plain) = before(&collector);
    let [tls] = free_addresses();
    let folder = folder();
    certificates(&folder, "127.0.0.1");
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {name}; "))
        .concat();
    let settings = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}} http {{ access_log off; {temporary}
         server {{ listen {tls} ssl; ssl_certificate server.pem; ssl_certificate_key server.key;
                  ssl_client_certificate ca.pem; ssl_verify_client on; location / {{ proxy_pass http://{plain}; }} }} }}"
    );
    fs::write(folder.join("nginx.conf"), settings).unwrap();
    let mut nginx = Command::new(program("nginx"));
    nginx.arg("-p").arg(&folder).args(["-e", "stderr", "-c", "nginx.conf"]).stderr(Stdio::null());
    let _proxy = Server::start(&mut nginx, tls);
    let run = |settings: &str| {
        Supervisor::start(
            Mode::Plain,
            &format!(
                "{{ otlp: {{ endpoint: 'https://{tls}', timeout: '5s', resource: {{ 'service.name': 'shop' }}, \
                   tls: {{ {settings} }} }}, jobs: {JOBS} }}"
            ),
        )
    };
    let file = |name: &str| folder.join(name).display().to_string();
    let trusted = format!("cafile: '{}'", file("ca.pem"));
    let own = format!("clientcert: '{}', clientkey: '{}'", file("client.pem"), file("client.key"));

    for (settings, words) in [
        (own.clone(), "TLS handshake failed: invalid peer certificate: UnknownIssuer: name the certificate"),
        (trusted.clone(), "status 400 Bad Request"),
    ] {
        let mut supervisor = run(&settings);
        supervisor.wait_for_line(words);
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
    }
    assert!(collector.spans().is_empty() && collector.records().is_empty(), "nothing arrives by these");

    let mut supervisor = run(&format!("{trusted}, {own}"));
    supervisor.wait_for_lines("web healthy", 1);
    supervisor.wait_for_lines("from web", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert!(code == 0 && !log.contains("otlp: cannot send"), "exit code {code}");
    assert_arrived(&collector);
    fs::remove_dir_all(folder).unwrap();
}
