//! The beginning and the end of the server.

use std::net::{Ipv6Addr, TcpListener};

use crate::client::Telemetry;
use crate::support::{As, Supervisor, children_of, until};

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn t1_a_port_in_use_ends_the_start_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = format!(
        "{{ control: {{ socket: '@/control' }}, jobs: [{{ name: 'a', exec: 'touch @/ran' }}],
            telemetry: {{ port: {}, interfaces: 'lo' }} }}",
        address.port()
    );
    let supervisor = Supervisor::start(As::Plain, &config);
    let (folder, stderr) = (supervisor.folder().to_owned(), supervisor.file("stderr"));
    // The folder goes with the supervisor.
    until("it says nothing", || std::fs::read_to_string(&stderr).is_ok_and(|text| text.ends_with('\n')));
    let words = supervisor.stderr();
    let expected = format!(
        "containerpilot: telemetry cannot listen on {address}: address already in use; stop the process that listens there, \
         or choose another `port` under `telemetry`\n"
    );
    assert_eq!(words, expected);
    let ran = std::path::Path::new(&folder).join("ran").exists();
    let socket = std::path::Path::new(&folder).join("control").exists();
    assert_eq!(supervisor.end().0, 1);
    assert!(!ran && !socket, "nothing was started, and nothing is left behind");
}

#[test]
fn e4_the_server_listens_before_the_startup() {
    let port = free_port();
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /livez HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; cat <&3"
    );
    let config = format!(
        "{{ control: {{ socket: '@/control' }}, jobs: [{{ name: 'a', exec: ['bash', '-c', \"{ask}\"] }}],
            telemetry: {{ port: {port}, interfaces: 'lo' }} }}"
    );
    let (code, log) = Supervisor::start(As::Plain, &config).end();
    assert!(code == 0 && log.contains("alive"), "{log}");
}

#[test]
fn t1_an_ipv6_address_is_served() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'static:::1' }",
    );
    assert!(served.address.is_ipv6());
    assert_eq!(served.get("/livez").2, "alive\n");
}

#[test]
fn w10_the_server_does_not_hold_the_supervisor_open() {
    let (code, log) = Supervisor::start(
        As::Plain,
        "{ control: { socket: '@/control' }, jobs: [{ name: 'a', exec: 'true' }],
           telemetry: { port: 0, interfaces: 'lo' } }",
    )
    .end();
    assert_eq!(code, 0, "{log}");
}

#[test]
fn p2_no_job_inherits_the_listener() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' }",
    );
    served.until_line("containerpilot_job_up{name=\"a\"} 1");
    let jobs = children_of(served.supervisor.pid());
    assert_eq!(jobs.len(), 1);
    for descriptor in std::fs::read_dir(format!("/proc/{}/fd", jobs[0])).unwrap() {
        let leads_to = std::fs::read_link(descriptor.unwrap().path()).unwrap_or_default();
        assert!(!leads_to.to_string_lossy().starts_with("socket:"), "{}", leads_to.display());
    }
}
