//! A hostile Consul: the size and duration of its answers are bounded, and jobs are not affected (D1, D5, D7).

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::open_descriptors;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// A server that sends the same answer to every request.
struct Agent {
    address: String,
    requests: Arc<AtomicUsize>,
    /// The most bytes that one answer could send.
    max_written: Arc<AtomicUsize>,
}

impl Agent {
    fn new(answer: fn(&mut Counted) -> std::io::Result<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let agent = Self { address, requests: Arc::default(), max_written: Arc::default() };
        let (requests, max_written) = (Arc::clone(&agent.requests), Arc::clone(&agent.max_written));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (requests, max_written) = (Arc::clone(&requests), Arc::clone(&max_written));
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    requests.fetch_add(1, Ordering::SeqCst);
                    let mut counted = Counted { stream, written: 0 };
                    // Ends when the supervisor closes the connection.
                    let _ = answer(&mut counted);
                    max_written.fetch_max(counted.written, Ordering::SeqCst);
                });
            }
        });
        agent
    }
}

/// A connection that counts the bytes written to it.
struct Counted {
    stream: TcpStream,
    written: usize,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.stream.write(bytes)?;
        self.written += written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\n";

fn endless_head(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    loop {
        to.write_all(b"X-More: and more and more and more\r\n")?;
    }
}

fn endless_header(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"X-More: ")?;
    loop {
        to.write_all(&[b'x'; 4096])?;
    }
}

fn endless_interim_responses(to: &mut Counted) -> std::io::Result<()> {
    loop {
        to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
}

fn endless_chunks(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"Transfer-Encoding: chunked\r\n\r\n")?;
    let chunk = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
    loop {
        to.write_all(&chunk)?;
    }
}

fn endless_chunk_extension(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"Transfer-Encoding: chunked\r\n\r\n1;")?;
    loop {
        to.write_all(&[b'x'; 4096])?;
    }
}

fn huge_length(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"Content-Length: 1099511627776\r\n\r\n[")?;
    loop {
        to.write_all(&[b' '; 0x10000])?;
    }
}

fn complete_response(to: &mut Counted, body: &str) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    write!(to, "Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn many_lists(to: &mut Counted) -> std::io::Result<()> {
    complete_response(to, &format!("[{}[]]", "[],".repeat(2_700_000)))
}

fn many_instances(to: &mut Counted) -> std::io::Result<()> {
    complete_response(
        to,
        &format!("[{}0]", "{\"Service\":{\"ID\":\"a\",\"Address\":\"b\"}},".repeat(200_000)),
    )
}

fn deep_nesting(to: &mut Counted) -> std::io::Result<()> {
    complete_response(to, &"[".repeat(8_000_000))
}

/// One byte every 20 ms.
fn slow_body(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"Content-Length: 100000\r\n\r\n")?;
    loop {
        to.write_all(b" ")?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn slow_head(to: &mut Counted) -> std::io::Result<()> {
    for byte in HEAD.iter().cycle() {
        to.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The peak resident memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn config(address: &str, watches: usize) -> String {
    let watches: Vec<String> =
        (0..watches).map(|nth| format!("{{ name: 'db{nth}', interval: 1 }}")).collect();
    format!(
        "{{ consul: {{ address: '{address}', token: 'the-secret-token' }}, watches: [{}],
            jobs: [{{ name: 'main', exec: 'sleep 1000' }},
                   {{ name: 'tick', exec: 'echo tick', when: {{ source: 'SIGHUP' }} }}] }}",
        watches.join(",")
    )
}

/// Requires that the supervisor still handles events, that the job ran undisturbed, and that it exits with 0.
fn assert_unharmed(mut run: Supervisor) {
    let ticks = run.log_so_far().matches("tick started").count();
    run.signal("-HUP");
    run.wait_for_lines("tick started", ticks + 1);
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("main exited with") && !log.contains("the-secret-token"));
    assert!(log.matches("; retrying").count() <= 2);
}

#[test]
fn d5_endless_slow_and_huge_answers_of_consul_are_bounded() {
    type Answer = fn(&mut Counted) -> std::io::Result<()>;
    let answers: [(&str, Answer, &str); 11] = [
        ("endless head", endless_head, "is unreachable: "),
        ("endless header", endless_header, "is unreachable: "),
        ("endless interim responses", endless_interim_responses, "is unreachable: "),
        ("endless chunks", endless_chunks, "is unreachable: the response is longer than "),
        ("endless chunk extension", endless_chunk_extension, "is unreachable: "),
        ("huge length", huge_length, "is unreachable: the response is longer than "),
        ("many lists", many_lists, "is unavailable: the response is not a list of service instances"),
        ("many instances", many_instances, "is unavailable: the response has too many instances"),
        ("deep nesting", deep_nesting, "is unavailable: the response is not "),
        ("slow body", slow_body, "is unreachable: no response within"),
        ("slow head", slow_head, "is unreachable: "),
    ];
    std::thread::scope(|scope| {
        for (name, answer, words) in answers {
            scope.spawn(move || {
                let agent = Agent::new(answer);
                let mut run = Supervisor::start(Mode::Plain, &config(&agent.address, 1));
                run.wait_for_line(words);
                let requests = agent.requests.load(Ordering::SeqCst);
                wait_until("the request is retried", || agent.requests.load(Ordering::SeqCst) > requests);
                let kilobytes = peak_kib(run.pid());
                assert!(kilobytes < 64 * 1024, "{name}: {kilobytes} KiB");
                assert_unharmed(run);
            });
        }
    });
}

#[test]
fn d7_large_answers_to_many_watches_share_one_memory_limit() {
    let agent = Agent::new(endless_chunks);
    let mut run = Supervisor::start(Mode::Plain, &config(&agent.address, 100));
    run.wait_for_line("is unreachable");
    wait_until("150 requests were sent", || agent.requests.load(Ordering::SeqCst) > 150);
    let (kilobytes, open) = (peak_kib(run.pid()), open_descriptors(run.pid()));
    assert!(kilobytes < 128 * 1024, "{kilobytes} KiB");
    assert!(open < 200, "{open} descriptors");
    assert_unharmed(run);
}

#[test]
fn d13_d14_large_answers_to_keys_and_locks_are_bounded() {
    let key = "watches: [{ name: 'it', key: 'large', interval: 1 }],";
    let prefix = "watches: [{ name: 'it', prefix: 'large/', interval: 1 }],";
    let lock = "locks: [{ name: 'primary', ttl: '10s' }],";
    std::thread::scope(|scope| {
        type Answer = fn(&mut Counted) -> std::io::Result<()>;
        let answers: [Answer; 3] = [endless_chunks, huge_length, endless_chunks];
        for (asks, answer) in [key, prefix, lock].into_iter().zip(answers) {
            scope.spawn(move || {
                let agent = Agent::new(answer);
                let config = config(&agent.address, 0).replace("watches: [],", asks);
                let mut run = Supervisor::start(Mode::Plain, &config);
                run.wait_for_line("the response is longer than ");
                wait_until("the request is retried", || agent.requests.load(Ordering::SeqCst) > 2);
                let kilobytes = peak_kib(run.pid());
                assert!(kilobytes < 64 * 1024, "{asks}: {kilobytes} KiB");
                assert_unharmed(run);
            });
        }
    });
}

fn redirect(to: &mut Counted) -> std::io::Result<()> {
    // The test listens on another loopback address with the same port.
    let port = to.stream.local_addr()?.port();
    write!(
        to,
        "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.2:{port}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn d1_token_is_sent_to_the_configured_address_only() {
    let agent = Agent::new(redirect);
    let port = agent.address.rsplit(':').next().unwrap();
    let other = TcpListener::bind(format!("127.0.0.2:{port}")).unwrap();
    other.set_nonblocking(true).unwrap();
    let mut run = Supervisor::start(Mode::Plain, &config(&agent.address, 1));
    run.wait_for_line("is unavailable: status 307");
    let requests = agent.requests.load(Ordering::SeqCst);
    wait_until("the request is retried", || agent.requests.load(Ordering::SeqCst) > requests);
    assert!(other.accept().is_err(), "the redirect was followed");
    assert_unharmed(run);
}
