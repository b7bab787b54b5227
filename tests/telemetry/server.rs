//! Start and stop of the telemetry server.

use std::net::{Ipv6Addr, TcpListener};

use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, child_pids, wait_until};
use crate::support::telemetry_client::Telemetry;

/// A port that is free at the time of the call.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn t1_port_in_use_is_an_error_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = format!(
        "{{ control: {{ socket: '@/control' }}, jobs: [{{ name: 'a', exec: 'touch @/ran' }}],
            telemetry: {{ port: {}, interfaces: 'lo' }} }}",
        address.port()
    );
    let supervisor = Supervisor::start(Mode::Plain, &config);
    let (folder, stderr) = (supervisor.folder().to_owned(), supervisor.file("stderr"));
    // Read before the directory is removed with the supervisor.
    wait_until("the error is written", || {
        std::fs::read_to_string(&stderr).is_ok_and(|text| text.ends_with('\n'))
    });
    let words = supervisor.stderr();
    let expected = format!(
        "containerpilot: telemetry cannot listen on {address}: address already in use; stop the process that listens there, \
         or choose another `port` under `telemetry`\n"
    );
    assert_eq!(words, expected);
    let ran = std::path::Path::new(&folder).join("ran").exists();
    let socket = std::path::Path::new(&folder).join("control").exists();
    assert_eq!(supervisor.wait().0, 1);
    assert!(!ran && !socket, "a job was started or the control socket was left behind");
}

#[test]
fn e4_telemetry_listens_before_startup() {
    let port = free_port();
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /livez HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; cat <&3"
    );
    let config = format!(
        "{{ control: {{ socket: '@/control' }}, jobs: [{{ name: 'a', exec: ['bash', '-c', \"{ask}\"] }}],
            telemetry: {{ port: {port}, interfaces: 'lo' }} }}"
    );
    let (code, log) = Supervisor::start(Mode::Plain, &config).wait();
    assert!(code == 0 && log.contains("alive"), "exit code {code}");
}

#[test]
fn t1_telemetry_listens_on_an_ipv6_address() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        skip("this machine has no IPv6");
        return;
    }
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'static:::1' }",
    );
    assert!(served.address.is_ipv6());
    assert_eq!(served.get("/livez").2, "alive\n");
}

#[test]
fn w10_telemetry_server_does_not_keep_the_supervisor_running() {
    let (code, _) = Supervisor::start(
        Mode::Plain,
        "{ control: { socket: '@/control' }, jobs: [{ name: 'a', exec: 'true' }],
           telemetry: { port: 0, interfaces: 'lo' } }",
    )
    .wait();
    assert_eq!(code, 0);
}

#[test]
fn p2_no_job_inherits_the_telemetry_socket() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' }",
    );
    served.wait_for_line("containerpilot_job_up{name=\"a\"} 1");
    let jobs = child_pids(served.supervisor.pid());
    assert_eq!(jobs.len(), 1);
    for descriptor in std::fs::read_dir(format!("/proc/{}/fd", jobs[0])).unwrap() {
        let target = std::fs::read_link(descriptor.unwrap().path()).unwrap_or_default();
        assert!(!target.to_string_lossy().starts_with("socket:"), "{}", target.display());
    }
}
