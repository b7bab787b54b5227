//! The server over a real connection, with a loop that a test plays.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc;

use containerpilot_core::plan::{Metric, MetricKind};

use super::super::testing::Stage;
use super::*;
use crate::runtime::channel::{LoopMessage, LoopReceiver};
use crate::runtime::query::Query;

fn wanted(address: IpAddr, port: u16) -> plan::Telemetry {
    plan::Telemetry { address, port, tags: Vec::new(), metrics: Vec::new() }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Served {
    net: Net,
    telemetry: Option<Telemetry>,
    metrics: Metrics,
    desk: QueryHandle,
    said: mpsc::Receiver<String>,
    address: SocketAddr,
}

/// A server, and a loop that answers from a stage, if there is one.
fn served(address: IpAddr, stage: Option<Stage>) -> Served {
    let receiver = LoopReceiver::new().unwrap();
    let desk = QueryHandle::new(receiver.sender());
    let (say, said) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let mut fds =
                [crate::process::sys::poll_fd(receiver.as_fd().as_raw_fd(), crate::process::sys::POLLIN)];
            let _ = crate::process::sys::poll(&mut fds, None);
            for news in receiver.take() {
                match (news, &stage) {
                    (LoopMessage::Query(Query::Overview(asker)), Some(stage)) => {
                        let _ = asker.send(Arc::new(stage.snapshot()));
                    }
                    (LoopMessage::Log(_, words), _) => drop(say.send(words)),
                    _ => {}
                }
            }
        }
    });
    let net = Net::start().unwrap();
    let metrics = Metrics::new(&[]);
    let telemetry = Telemetry::open(&wanted(address, 0), &net, metrics.clone(), desk.clone()).unwrap();
    let mut served =
        Served { net, telemetry: Some(telemetry), metrics, desk, said, address: (HERE, 0).into() };
    served.address = served.where_it_serves();
    served
}

impl Served {
    fn said(&self) -> String {
        self.said.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    fn where_it_serves(&self) -> SocketAddr {
        self.said().strip_prefix("telemetry: serving at ").unwrap().parse().unwrap()
    }

    fn follow(&mut self, wanted: Option<&plan::Telemetry>) {
        let now = self.telemetry.take();
        self.telemetry = Telemetry::follow(now, wanted, &self.net, self.metrics.clone(), self.desk.clone());
    }

    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

fn stage() -> Stage {
    let mut stage =
        Stage::new("{ jobs: [{ name: 'a', exec: 'a', health: { exec: 'b', interval: 1, ttl: 5 } }] }");
    stage.begin();
    stage
}

#[test]
fn t1_the_four_pages_are_there_and_no_other() {
    let served = served(HERE, Some(stage()));
    let metrics = served.ask("GET", "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{metrics}");
    assert!(metrics.contains("\ncontainerpilot_job_up{name=\"a\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\nprocess_open_fds "), "{metrics}");
    let status = served.ask("GET", "/status?x=1");
    assert!(status.contains("content-type: application/json\r\n"), "{status}");
    assert!(status.contains("\"Jobs\":[{\"Name\":\"a\""), "{status}");
    assert!(served.ask("GET", "/livez").ends_with("\r\n\r\nalive\n"));
    let ready = served.ask("GET", "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.ends_with("a: is not known to be healthy yet\n"), "{ready}");
    let other = served.ask("GET", "/metrics/x");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    served.net.finish(std::time::Instant::now() + Duration::from_secs(30));
}

#[test]
fn t1_head_is_answered_without_a_body_and_other_methods_are_refused() {
    let served = served(HERE, Some(stage()));
    let head = served.ask("HEAD", "/livez");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let post = served.ask("POST", "/metrics");
    assert!(post.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{post}");
    assert!(post.contains("allow: GET, HEAD\r\n"), "{post}");
}

#[test]
fn t1_a_loop_that_does_not_answer_is_not_alive() {
    let served = served(HERE, None);
    let answer = served.ask("GET", "/livez");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("the supervisor did not answer within 5 s\n"), "{answer}");
}

#[test]
fn t1_an_ipv6_address_is_listened_on() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let served = served(IpAddr::V6(Ipv6Addr::LOCALHOST), Some(stage()));
    assert!(served.address.is_ipv6());
    assert!(served.ask("GET", "/livez").ends_with("alive\n"));
}

#[test]
fn t1_a_port_in_use_is_an_error_that_says_what_to_do() {
    let taken = TcpListener::bind((HERE, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let expected = format!(
        "telemetry cannot listen on {address}: Address already in use; stop whatever listens there, or choose another \
         `port` under `telemetry`"
    );
    assert_eq!(listen(&wanted(HERE, address.port())).unwrap_err(), expected);
    let elsewhere = listen(&wanted(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9090)).unwrap_err();
    assert!(elsewhere.contains("192.0.2.1:9090") && elsewhere.contains("`interfaces`"), "{elsewhere}");
}

#[test]
fn t3_requests_to_the_control_socket_are_counted_by_route() {
    let served = served(HERE, Some(stage()));
    served.metrics.control_request(200, "/v3/ping");
    served.metrics.control_request(200, "/v3/ping");
    let text = served.ask("GET", "/metrics");
    let line = "containerpilot_control_http_requests{code=\"200\",path=\"/v3/ping\"} 2\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn r3_a_reload_leaves_the_server_where_it_is_and_what_was_counted() {
    let mut served = served(HERE, Some(stage()));
    let hits = || Metric {
        name: "hits_total".to_owned(),
        legacy_key: "__hits_total".to_owned(),
        help: String::new(),
        kind: MetricKind::Counter,
    };
    let plan = plan::Telemetry { metrics: vec![hits()], ..wanted(HERE, 0) };
    served.follow(Some(&plan));
    served.metrics.put_all(&[("hits_total", "3")]).unwrap();
    served.follow(Some(&plan));
    assert!(served.ask("GET", "/metrics").contains("\nhits_total 3\n"));
    served.follow(None);
    crate::test_support::until(|| TcpStream::connect(served.address).is_err());
}

#[test]
fn r3_a_reload_to_a_port_in_use_waits_for_it() {
    let mut served = served(HERE, Some(stage()));
    let taken = TcpListener::bind((HERE, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    served.follow(Some(&wanted(HERE, address.port())));
    let words = served.said();
    assert!(
        words.starts_with(&format!("telemetry cannot listen on {address}: Address already in use")),
        "{words}"
    );
    drop(taken);
    assert_eq!(served.where_it_serves(), address);
    served.address = address;
    assert!(served.ask("GET", "/livez").ends_with("alive\n"));
}
