//! A Consul that wants to harm: whatever it answers, and however long it takes, is bounded, and no job notices (D5, D7).

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::descriptors;
use crate::support::{As, Supervisor, until};

/// An agent that answers every request so; where it is, how often it was asked, and how much it got rid of at most.
struct Agent {
    address: String,
    asked: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Agent {
    fn new(answer: fn(&mut Counted) -> std::io::Result<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let agent = Self { address, asked: Arc::default(), most: Arc::default() };
        let (asked, most) = (Arc::clone(&agent.asked), Arc::clone(&agent.most));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (asked, most) = (Arc::clone(&asked), Arc::clone(&most));
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    asked.fetch_add(1, Ordering::SeqCst);
                    let mut counted = Counted { stream, written: 0 };
                    // Until the other side has enough.
                    let _ = answer(&mut counted);
                    most.fetch_max(counted.written, Ordering::SeqCst);
                });
            }
        });
        agent
    }
}

/// A connection, and how much was written to it.
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

fn one_endless_field(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"X-More: ")?;
    loop {
        to.write_all(&[b'x'; 4096])?;
    }
}

fn endless_preludes(to: &mut Counted) -> std::io::Result<()> {
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

fn whole(to: &mut Counted, body: &str) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    write!(to, "Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn many_lists(to: &mut Counted) -> std::io::Result<()> {
    whole(to, &format!("[{}[]]", "[],".repeat(2_700_000)))
}

fn many_instances(to: &mut Counted) -> std::io::Result<()> {
    whole(to, &format!("[{}0]", "{\"Service\":{\"ID\":\"a\",\"Address\":\"b\"}},".repeat(200_000)))
}

fn depth(to: &mut Counted) -> std::io::Result<()> {
    whole(to, &"[".repeat(8_000_000))
}

/// A byte, and a while later the next.
fn drip(to: &mut Counted) -> std::io::Result<()> {
    to.write_all(HEAD)?;
    to.write_all(b"Content-Length: 100000\r\n\r\n")?;
    loop {
        to.write_all(b" ")?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn dripping_head(to: &mut Counted) -> std::io::Result<()> {
    for byte in HEAD.iter().cycle() {
        to.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The most memory that a process ever had, in KiB.
fn peak(pid: u32) -> u64 {
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

/// The supervisor does its work, ends at once, and no job has noticed anything.
fn unharmed(mut run: Supervisor) {
    let ticks = run.seen().matches("tick started").count();
    run.signal("-HUP");
    run.lines("tick started", ticks + 1);
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("main exited with") && !log.contains("the-secret-token"), "{log}");
    assert!(log.matches("cannot be used").count() <= 2, "{log}");
}

#[test]
fn d5_endless_slow_and_monstrous_answers_of_consul_end_and_cost_little() {
    type Answer = fn(&mut Counted) -> std::io::Result<()>;
    let answers: [(&str, Answer, &str); 11] = [
        ("endless head", endless_head, "cannot be used: "),
        ("one endless field", one_endless_field, "cannot be used: "),
        ("endless preludes", endless_preludes, "cannot be used: "),
        ("endless chunks", endless_chunks, "cannot be used: its answer is too long"),
        ("endless extension of a chunk", endless_chunk_extension, "cannot be used: "),
        ("huge length", huge_length, "cannot be used: its answer is too long"),
        ("many lists", many_lists, "cannot be used: its answer holds something that is no instance"),
        ("many instances", many_instances, "cannot be used: its answer has more instances"),
        ("depth", depth, "cannot be used: its answer is no JSON"),
        ("drip", drip, "cannot be used: no answer within"),
        ("dripping head", dripping_head, "cannot be used: "),
    ];
    std::thread::scope(|scope| {
        for (name, answer, words) in answers {
            scope.spawn(move || {
                let agent = Agent::new(answer);
                let mut run = Supervisor::start(As::Plain, &config(&agent.address, 1));
                run.line(words);
                let asked = agent.asked.load(Ordering::SeqCst);
                until("it is not tried again", || agent.asked.load(Ordering::SeqCst) > asked);
                let kilobytes = peak(run.pid());
                assert!(kilobytes < 64 * 1024, "{name}: {kilobytes} KiB");
                unharmed(run);
            });
        }
    });
}

#[test]
fn d7_large_answers_to_many_watches_share_their_room() {
    let agent = Agent::new(endless_chunks);
    let mut run = Supervisor::start(As::Plain, &config(&agent.address, 100));
    run.line("cannot be used");
    until("it is not asked", || agent.asked.load(Ordering::SeqCst) > 150);
    let (kilobytes, open) = (peak(run.pid()), descriptors(run.pid()));
    assert!(kilobytes < 128 * 1024, "{kilobytes} KiB");
    assert!(open < 200, "{open} descriptors");
    unharmed(run);
}

fn elsewhere(to: &mut Counted) -> std::io::Result<()> {
    // Every address of the machine itself leads to the listener, which has the port that its own comes before.
    let port = to.stream.local_addr()?.port();
    write!(
        to,
        "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.2:{port}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn d1_a_token_is_sent_nowhere_but_to_the_address_that_was_written() {
    let agent = Agent::new(elsewhere);
    let port = agent.address.rsplit(':').next().unwrap();
    let other = TcpListener::bind(format!("127.0.0.2:{port}")).unwrap();
    other.set_nonblocking(true).unwrap();
    let mut run = Supervisor::start(As::Plain, &config(&agent.address, 1));
    run.line("cannot be used: status 307");
    let asked = agent.asked.load(Ordering::SeqCst);
    until("it is not tried again", || agent.asked.load(Ordering::SeqCst) > asked);
    assert!(other.accept().is_err(), "nobody follows a redirection");
    unharmed(run);
}
