//! The server over a real connection, with an event loop played by the test.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc;

use containerpilot_core::plan::{Metric, MetricKind};

use super::super::testing::TestCore;
use super::*;
use crate::messages::query::LoopQuery;
use crate::messages::{LoopMessage, LoopReceiver};

fn wanted(address: IpAddr, port: u16) -> plan::Telemetry {
    plan::Telemetry { address, port, tags: Vec::new(), metrics: Vec::new(), page: None }
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Served {
    net: Net,
    telemetry: Option<TelemetryServer>,
    metrics: Metrics,
    queries: QueryHandle,
    logged: mpsc::Receiver<String>,
    address: SocketAddr,
}

/// A server, and an event loop that replies from a core, if there is one.
fn served(address: IpAddr, core: Option<TestCore>) -> Served {
    let receiver = LoopReceiver::new().unwrap();
    let queries = QueryHandle::new(receiver.sender());
    let (log, logged) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let mut fds = [containerpilot_process::sys::poll_fd(
                receiver.waker().as_fd().as_raw_fd(),
                containerpilot_process::sys::POLLIN,
            )];
            let _ = containerpilot_process::sys::poll(&mut fds, None);
            for message in receiver.take() {
                match (message, &core) {
                    (LoopMessage::Query(LoopQuery::Overview(reply)), Some(core)) => {
                        let _ = reply.send(Arc::new(core.snapshot()));
                    }
                    (LoopMessage::Log(_, text), _) => drop(log.send(text)),
                    _ => {}
                }
            }
        }
    });
    let net = Net::start().unwrap();
    let metrics = Metrics::new(&[]);
    let telemetry =
        TelemetryServer::open(&wanted(address, 0), &net, metrics.clone(), queries.clone()).unwrap();
    let mut served =
        Served { net, telemetry: Some(telemetry), metrics, queries, logged, address: (LOCALHOST, 0).into() };
    served.address = served.logged_address();
    served
}

impl Served {
    fn next_log(&self) -> String {
        self.logged.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    fn logged_address(&self) -> SocketAddr {
        self.next_log().strip_prefix("telemetry: serving at ").unwrap().parse().unwrap()
    }

    fn follow(&mut self, wanted: Option<&plan::Telemetry>) {
        let current = self.telemetry.take();
        self.telemetry =
            TelemetryServer::follow(current, wanted, &self.net, self.metrics.clone(), self.queries.clone());
    }

    fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

fn core() -> TestCore {
    let mut core =
        TestCore::new("{ jobs: [{ name: 'a', exec: 'a', health: { exec: 'b', interval: 1, ttl: 5 } }] }");
    core.start();
    core
}

#[test]
fn t1_there_are_four_pages_and_no_other() {
    let served = served(LOCALHOST, Some(core()));
    let metrics = served.request("GET", "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{metrics}");
    assert!(metrics.contains("\ncontainerpilot_job_up{name=\"a\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\nprocess_open_fds "), "{metrics}");
    let status = served.request("GET", "/status?x=1");
    assert!(status.contains("content-type: application/json\r\n"), "{status}");
    assert!(status.contains("\"Jobs\":[{\"Name\":\"a\""), "{status}");
    assert!(served.request("GET", "/livez").ends_with("\r\n\r\nalive\n"));
    let ready = served.request("GET", "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.ends_with("a: not checked yet\n"), "{ready}");
    let other = served.request("GET", "/metrics/x");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    served.net.finish(std::time::Instant::now() + Duration::from_secs(30));
}

#[test]
fn t1_head_gets_a_response_without_a_body_and_other_methods_are_refused() {
    let served = served(LOCALHOST, Some(core()));
    let head = served.request("HEAD", "/livez");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let post = served.request("POST", "/metrics");
    assert!(post.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{post}");
    assert!(post.contains("allow: GET, HEAD\r\n"), "{post}");
}

#[test]
fn t1_livez_fails_if_the_event_loop_does_not_reply() {
    let served = served(LOCALHOST, None);
    let response = served.request("GET", "/livez");
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(response.ends_with("the supervisor did not answer within 5s\n"), "{response}");
}

#[test]
fn t1_an_ipv6_address_is_listened_on() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let served = served(IpAddr::V6(Ipv6Addr::LOCALHOST), Some(core()));
    assert!(served.address.is_ipv6());
    assert!(served.request("GET", "/livez").ends_with("alive\n"));
}

#[test]
fn t1_a_port_in_use_is_an_error_with_advice() {
    let taken = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let expected = format!(
        "telemetry cannot listen on {address}: address already in use; stop the process that listens there, or choose \
         another `port` under `telemetry`"
    );
    assert_eq!(listen(&wanted(LOCALHOST, address.port())).unwrap_err().to_string(), expected);
    let elsewhere = listen(&wanted(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9090)).unwrap_err().to_string();
    assert!(elsewhere.contains("192.0.2.1:9090") && elsewhere.contains("`interfaces`"), "{elsewhere}");
}

#[test]
fn t3_requests_to_the_control_socket_are_counted_by_route() {
    let served = served(LOCALHOST, Some(core()));
    served.metrics.count_control_request(200, "/v3/ping");
    served.metrics.count_control_request(200, "/v3/ping");
    let text = served.request("GET", "/metrics");
    let line = "containerpilot_control_http_requests{code=\"200\",path=\"/v3/ping\"} 2\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn r3_a_reload_keeps_the_server_and_the_values() {
    let mut served = served(LOCALHOST, Some(core()));
    let hits = || Metric {
        name: "hits_total".to_owned(),
        legacy_key: "__hits_total".to_owned(),
        help: String::new(),
        kind: MetricKind::Counter,
    };
    let plan = plan::Telemetry { metrics: vec![hits()], ..wanted(LOCALHOST, 0) };
    served.follow(Some(&plan));
    served.metrics.put_all(&[("hits_total", "3")]).unwrap();
    served.follow(Some(&plan));
    assert!(served.request("GET", "/metrics").contains("\nhits_total 3\n"));
    served.follow(None);
    containerpilot_test_support::until(|| TcpStream::connect(served.address).is_err());
}

#[test]
fn r3_a_reload_to_a_port_in_use_retries_until_it_is_free() {
    let mut served = served(LOCALHOST, Some(core()));
    let taken = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    served.follow(Some(&wanted(LOCALHOST, address.port())));
    let message = served.next_log();
    assert!(
        message.starts_with(&format!("telemetry cannot listen on {address}: address already in use")),
        "{message}"
    );
    drop(taken);
    assert_eq!(served.logged_address(), address);
    served.address = address;
    assert!(served.request("GET", "/livez").ends_with("alive\n"));
}
