//! The control socket and telemetry while connections, threads and descriptors run out, and checks by name (X1, T1, H5).

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::fixture::{Hostile, Rank, as_init_and_child, own_address, own_user, permitted, request};
use crate::support::config::Config;
use crate::support::deadline::InTime;
use crate::support::supervisor::{child_pids, wait_until};

fn livez(address: (Ipv4Addr, u16)) -> Result<String, std::io::Error> {
    get(address, "/livez")
}

fn send(address: (Ipv4Addr, u16), path: &str) -> Result<TcpStream, std::io::Error> {
    let mut stream = TcpStream::connect_timeout(&address.into(), Duration::from_secs(1))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}

/// The answer to a request, if it comes within the second that a probe of Kubernetes waits by default, or a little
/// later.
fn get(address: (Ipv4Addr, u16), path: &str) -> Result<String, std::io::Error> {
    let mut stream = send(address, path)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// `/livez` is answered in time beside 300 connections that have sent only these bytes.
fn livez_beside_300_connections(sent: &[&str]) {
    as_init_and_child(|rank| {
        let address = (own_address(), 9090);
        let config = Config::new()
            .keys(format!("telemetry: {{ port: 9090, interfaces: 'static:{}' }}", address.0))
            .job("main", "exec: 'sleep 1000'");
        let mut hostile = Hostile::start(rank, 1, &config);
        wait_until("telemetry is served", || livez(address).is_ok());
        for bytes in sent {
            let connect = |_| {
                let mut stream = TcpStream::connect_timeout(&address.into(), Duration::from_secs(1)).ok()?;
                stream.write_all(bytes.as_bytes()).ok()?;
                Some(stream)
            };
            let open: Vec<_> = (0..300).map(connect).collect();
            // As often as a probe of Kubernetes is allowed to fail.
            let answers: Vec<_> = (0..3).map(|_| livez(address)).collect();
            let in_time =
                |answer: &Result<String, _>| answer.as_ref().is_ok_and(|text| text.contains(" 200 "));
            assert!(answers.iter().all(in_time), "{bytes:?}: {answers:?}");
            drop(open);
        }
        hostile.stops();
    });
}

#[test]
fn t1_livez_is_answered_beside_300_silent_connections() {
    livez_beside_300_connections(&[""]);
}

#[test]
fn t1_livez_is_answered_beside_300_connections_that_stop_halfway() {
    livez_beside_300_connections(&[
        "GET /livez HTTP/1.1\r\nHost: a\r\n",
        "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
        "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n",
    ]);
}

#[test]
fn t1_livez_and_readyz_are_answered_beside_300_clients_that_ask_for_explanations() {
    as_init_and_child(|rank| {
        let address = (own_address(), 9090);
        let config = Config::new()
            .keys(format!("telemetry: {{ port: 9090, interfaces: 'static:{}', page: {{}} }}", address.0))
            .job("main", "exec: 'sleep 1000'");
        let mut hostile = Hostile::start(rank, 1, &config);
        wait_until("telemetry is served", || get(address, "/livez").is_ok());
        for _ in 0..3 {
            let mut clients: Vec<TcpStream> =
                (0..300).map(|_| send(address, "/page/jobs/main").unwrap()).collect();
            // A probe of Kubernetes is allowed to fail three times.
            let answered = |path: &str| {
                let answers: Vec<_> = (0..3).map(|_| get(address, path)).collect();
                let in_time =
                    |answer: &Result<String, _>| answer.as_ref().is_ok_and(|text| text.contains(" 200 "));
                assert!(answers.iter().any(in_time), "{path}: {answers:?}");
            };
            answered("/livez");
            answered("/readyz");
            let mut explained = 0;
            for client in &mut clients {
                let mut answer = String::new();
                client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                client.read_to_string(&mut answer).unwrap();
                let is_refused = answer.contains(" 503 ") && answer.contains("retry-after: 1");
                assert!(answer.contains(" 200 ") || is_refused, "{answer}");
                explained += usize::from(!is_refused);
            }
            assert!((1..300).contains(&explained), "{explained} of 300 explanations");
        }
        hostile.stops();
    });
}

#[test]
fn x1_ping_is_answered_beside_300_silent_connections() {
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 1, "jobs: [{ name: 'main', exec: 'sleep 1000' }]");
        let mut silent = Vec::new();
        wait_until("300 connections are open", || {
            silent.extend(UnixStream::connect(hostile.socket()));
            silent.len() >= 300
        });
        for _ in 0..3 {
            request(&hostile.socket(), "GET", "/v3/ping").unwrap();
        }
        hostile.stops();
    });
}

/// The first connection comes while `exhausted` holds; then `relieve` is called, and the next one is answered.
fn first_connection_fails(
    rank: Rank,
    script: &str,
    exhausted: impl Fn(&Hostile) -> bool,
    relieve: impl Fn(&Hostile),
) {
    // Some are restarted: they use what was free only during the start of the others.
    let restarts = |n: usize| match n {
        0..4 => "restarts: 'unlimited', restartBackoff: { initial: '50ms', max: '50ms' }",
        _ => "restarts: 0",
    };
    let job = |config: Config, n| config.job(format!("j{n}"), format!("exec: 'sleep 1000', {}", restarts(n)));
    let config = (0..40).rev().fold(Config::new(), job).job("main", "exec: 'sleep 1000'");
    let mut hostile = Hostile::unanswered(rank, script, 1, &config);
    wait_until("the resource is used up", || exhausted(&hostile));
    let first = UnixStream::connect(hostile.socket()).unwrap();
    (&first).write_all(b"GET /v3/ping HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // The loop has seen the connection when it has become idle again.
    first.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let _ = (&first).read(&mut [0; 64]);
    relieve(&hostile);
    wait_until("the control socket answers", || request(&hostile.socket(), "GET", "/v3/ping").is_ok());
    hostile.stops();
}

/// Sets the soft limit of open descriptors of the supervisor.
fn limit_descriptors(hostile: &Hostile, count: usize) {
    let (pid, limit) = (hostile.pid.to_string(), format!("--nofile={count}:4096"));
    assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status_in_time().unwrap().success());
}

/// Lets no descriptor below the first free one be had.
fn exhaust_descriptors(hostile: &Hostile) {
    let is_free = |fd: &usize| !fs::exists(format!("/proc/{}/fd/{fd}", hostile.pid)).unwrap();
    limit_descriptors(hostile, (0..).find(is_free).unwrap());
}

#[test]
fn h3_checks_without_a_free_descriptor_make_no_job_unhealthy() {
    as_init_and_child(|rank| {
        let listener = TcpListener::bind((own_address(), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let _ = connection.read(&mut [0; 1024]);
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        });
        let jobs = [
            ("program", "exec: '/bin/true'".to_owned()),
            ("tcp", format!("tcp: '{address}'")),
            ("http", format!("http: 'http://{address}/'")),
            ("body", format!("http: {{ url: 'http://{address}/', body: 'ok' }}")),
        ];
        let keys = |check| {
            format!("exec: 'sleep 1000', health: {{ {check}, interval: '100ms', timeout: '30s', ttl: 10 }}")
        };
        let config = jobs.iter().fold(Config::new(), |config, (name, check)| config.job(name, keys(check)));
        // Its control socket closes connections while there are no descriptors.
        let mut hostile = Hostile::unanswered(rank, "ulimit -n 4096", 1, &config);
        for (name, _) in &jobs {
            hostile.await_log(&format!("{name} healthy"));
        }
        for (name, _) in &jobs {
            let entry = format!("check.{name} could not check: ");
            wait_until(&entry, || {
                // Again and again: what was open may have been closed.
                exhaust_descriptors(&hostile);
                hostile.log().contains(&entry)
            });
        }
        limit_descriptors(&hostile, 4096);
        for (name, _) in &jobs {
            hostile.await_job(name, "passes again", |job| job["checks"][0]["passed"] == true);
            assert_eq!(hostile.job(name)["health"], "healthy");
        }
        let log = hostile.log();
        assert!(!log.contains("unhealthy"));
        hostile.stops();
    });
}

#[test]
fn x1_first_connection_without_a_free_descriptor_does_not_close_the_control_socket() {
    as_init_and_child(|rank| {
        let exhausted = |hostile: &Hostile| {
            let all_started = hostile.log().matches("started (pid").count() >= 41;
            if all_started {
                exhaust_descriptors(hostile);
            }
            all_started
        };
        first_connection_fails(rank, "ulimit -n 4096", exhausted, |hostile| limit_descriptors(hostile, 4096));
    });
}

#[test]
fn x1_first_connection_without_a_free_thread_does_not_close_the_control_socket() {
    as_init_and_child(|rank| {
        let user = own_user();
        // The limit does not apply to root. The binary is opened first, because the user may have no access to its path.
        let script = format!(
            "chown {user} @/; exec 9<\"$1\"; shift; set -- setpriv --reuid {user} --clear-groups /proc/self/fd/9 \"$@\"; prlimit --nproc=20 --pid $$"
        );
        let count = |hostile: &Hostile| threads(hostile.pid) + child_pids(hostile.pid).len();
        let kill_half = |hostile: &Hostile| {
            let sleepers = child_pids(hostile.pid);
            for sleeper in &sleepers[..sleepers.len() / 2] {
                let pid = nix::unistd::Pid::from_raw(i32::try_from(*sleeper).unwrap());
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
            }
        };
        first_connection_fails(rank, &script, |hostile| count(hostile) >= 20, kill_half);
    });
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

/// A hundred checks by name for some seconds, with a name server that never answers. Returns how many queries it got, and the
/// most threads that the supervisor had.
fn checks_by_name(name: impl Fn(usize) -> String) -> (usize, usize) {
    let server = own_address();
    let silent = UdpSocket::bind((server, 53)).unwrap();
    silent.set_nonblocking(true).unwrap();
    let script =
        format!("echo nameserver {server} > @/resolv.conf; mount --bind @/resolv.conf /etc/resolv.conf");
    let check = |n| format!("http: 'http://{}:8000/', interval: 1, timeout: '500ms', ttl: 60", name(n));
    let job = |config: Config, n| {
        config.job(format!("service{n}"), format!("port: 80, interfaces: 'lo', health: {{ {} }}", check(n)))
    };
    let config = (0..100).fold(Config::new().job("main", "exec: 'sleep 1000'"), job);
    let mut hostile = Hostile::with_setup(Rank::Child, &script, 1, &config);
    let began = Instant::now();
    let (mut queries, mut most_threads) = (0, 0);
    wait_until("the checks have failed for some seconds", || {
        queries += std::iter::from_fn(|| silent.recv(&mut [0; 512]).ok()).count();
        most_threads = most_threads.max(threads(hostile.pid));
        began.elapsed() > Duration::from_secs(4)
    });
    assert!(!hostile.job("service99")["checks"][0]["message"].is_null(), "{}", hostile.job("service99"));
    hostile.stops();
    (queries, most_threads)
}

#[test]
fn h5_checks_of_one_name_share_a_look_up() {
    if permitted() {
        let (queries, threads) = checks_by_name(|_| "silent.test".to_owned());
        assert!((1..50).contains(&queries) && threads <= 4, "{queries} queries, {threads} threads");
    }
}

#[test]
fn h5_checks_of_many_names_use_no_threads() {
    if permitted() {
        let (queries, threads) = checks_by_name(|n| format!("silent{n}.test"));
        assert!(queries >= 100 && threads <= 4, "{queries} queries, {threads} threads");
    }
}
