//! Collectors that are away, slow, hostile or refuse: jobs, log and shutdown do not notice.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;

use super::collector::{Behaviour, Collector};
use crate::support::config::Config;
use crate::support::idle::wait_until_idle_for;
use crate::support::supervisor::{Mode, Supervisor};

/// Traces to an address, and a job that makes a span now and then.
fn config(address: impl std::fmt::Display) -> Config {
    Config::new()
        .keys(format!(
            "otlp: {{ endpoint: 'http://{address}', logs: false, metrics: false, timeout: '1s',
                      headers: {{ authorization: 'Bearer s3cret-token' }} }}"
        ))
        .job("tick", "exec: 'true', when: { interval: '100ms' }")
        .job("stays", "exec: 'sleep 1000'")
}

/// An address at which nothing listens.
fn free_address() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Ends it, and requires that no secret is in the log.
fn end(supervisor: Supervisor) -> (Duration, String) {
    let before = Instant::now();
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("s3cret"));
    (before.elapsed(), log)
}

#[test]
fn t6_collector_that_is_away_at_the_start_gets_everything_when_it_comes() {
    let address = free_address();
    let mut supervisor = Supervisor::start(Mode::Plain, &config(address));
    supervisor.wait_for_line("otlp: cannot send spans to http://");
    let collector = Collector::on(TcpListener::bind(address).unwrap(), Behaviour::Accept(Vec::new()));
    supervisor.wait_for_line("otlp: sending spans to http://");
    collector.wait_for_span("startup");
    let (_, log) = end(supervisor);
    assert_eq!(log.matches("otlp: cannot send").count(), 1);
    assert!(log.contains("works again after") && !log.contains("dropped meanwhile"));
    collector.wait_for_span("container");
    assert_eq!(collector.recorded("/v1/traces")[0].headers["authorization"], "Bearer s3cret-token");
}

#[test]
fn t6_export_without_anything_to_send_wakes_nothing_up() {
    let collector = Collector::accepting();
    let config = collector.config("interval: '10m'").job("stays", "exec: 'sleep 1000'");
    let supervisor = Supervisor::start(Mode::Plain, &config);
    collector.wait_for_span("start stays");
    wait_until_idle_for(Duration::from_secs(3), supervisor.pid());
    end(supervisor);
}

#[test]
fn t6_collector_that_goes_away_is_said_once_and_once_when_it_is_back() {
    let collector = Collector::accepting();
    let mut supervisor = Supervisor::start(Mode::Plain, &config(collector.address));
    collector.wait_for_span("startup");
    collector.behave(Behaviour::Close);
    let line = supervisor.wait_for_line("otlp: cannot send spans");
    assert!(line.contains("the connection was closed before the response was complete; retrying"), "{line}");
    collector.behave(Behaviour::Refuse("503 Service Unavailable", "Retry-After: 1\r\n", Vec::new()));
    let before = collector.recorded("/v1/traces").len();
    crate::support::supervisor::wait_until("it is asked again", || {
        collector.recorded("/v1/traces").len() > before
    });
    collector.behave(Behaviour::Refuse("429 Too Many Requests", "", Vec::new()));
    let before = collector.recorded("/v1/traces").len();
    crate::support::supervisor::wait_until("it is asked again", || {
        collector.recorded("/v1/traces").len() > before
    });
    collector.behave(Behaviour::Accept(Vec::new()));
    supervisor.wait_for_line("works again after");
    let (_, log) = end(supervisor);
    assert_eq!(log.matches("otlp: ").count(), 2);
}

#[test]
fn t6_a_refused_request_is_not_repeated_and_shows_no_secret() {
    let collector = Collector::start(Behaviour::Refuse(
        "401 Unauthorized",
        "Content-Type: text/plain\r\n",
        b"wrong credentials: Bearer s3cret-token\nmore".to_vec(),
    ));
    let mut supervisor = Supervisor::start(Mode::Plain, &config(collector.address));
    let line = supervisor.wait_for_line("which are dropped");
    let reason = "spans, which are dropped: status 401 Unauthorized: wrong credentials: ***";
    assert!(line.ends_with(reason), "{line}");
    let first = collector.recorded("/v1/traces")[0].body.clone();
    crate::support::supervisor::wait_until("others are sent", || collector.recorded("/v1/traces").len() > 2);
    let same = collector.recorded("/v1/traces").into_iter().filter(|request| request.body == first).count();
    assert_eq!(same, 1);
    let partial = ExportTracePartialSuccess { rejected_spans: 2, error_message: "too \u{1b}[31mold".into() };
    let answer = ExportTraceServiceResponse { partial_success: Some(partial) };
    collector.behave(Behaviour::Accept(answer.encode_to_vec()));
    let line = supervisor.wait_for_line("rejected 2 of ");
    assert!(line.ends_with(" spans: too  [31mold"), "{line}");
    end(supervisor);
}

#[test]
fn t6_a_hanging_slow_or_dead_collector_delays_the_exit_by_a_second_at_most() {
    let hanging = Collector::start(Behaviour::Hang);
    let slow = Collector::start(Behaviour::Slow(Duration::from_secs(30)));
    let huge = Collector::start(Behaviour::Huge);
    // A listener that accepts nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [hanging.address, slow.address, huge.address, free_address(), deaf.local_addr().unwrap()];
    for address in addresses {
        let mut supervisor = Supervisor::start(Mode::Plain, &config(address));
        supervisor.wait_for_line("tick exited");
        if [hanging.address, slow.address].contains(&address) {
            supervisor.wait_for_line("no response within 1s; retrying");
        }
        let (took, _) = end(supervisor);
        // `sleep` ends at once; the bound is a second, the rest is for a busy machine. Every collector takes longer.
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

#[test]
fn t6_a_huge_answer_is_not_read_and_the_next_request_is_sent() {
    let collector = Collector::start(Behaviour::Huge);
    let supervisor = Supervisor::start(Mode::Plain, &config(collector.address));
    crate::support::supervisor::wait_until("three requests", || collector.recorded("/v1/traces").len() > 2);
    let (_, log) = end(supervisor);
    assert!(!log.contains("otlp:"), "it was accepted");
}

#[test]
#[cfg(any(debug_assertions, feature = "failpoints"))]
fn t6_p1_panic_in_the_export_is_survived_and_the_next_spans_are_sent() {
    for failpoint in ["spans:1", "spans:5", "export:1", "export:2"] {
        let collector = Collector::accepting();
        let setup = format!("export CONTAINERPILOT_FAILPOINT={failpoint}");
        let mut supervisor = Supervisor::with_setup(Mode::Plain, &setup, &config(collector.address));
        supervisor.wait_for_line("failpoints.rs:");
        let before = collector.spans().len();
        crate::support::supervisor::wait_until("spans arrive after the panic", || {
            collector.spans().len() > before
        });
        let (_, log) = end(supervisor);
        assert_eq!(log.matches("on purpose").count(), 1);
        collector.wait_for_span("container");
    }
}
