//! The throughput of the control socket, and its cost for the supervisor.
//!
//! `cargo bench --bench control` starts the release binary and prints: requests per second; the time from the exit of one job
//! to the start of the next that waits for it, without requests, with clients that send requests all the time, and with as
//! many unrelated busy threads (the cost of sharing the machine); and the size and time of the status of 1,000 jobs.
#![expect(clippy::unwrap_used, reason = "a benchmark stops at what it does not expect")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(3);
const CLIENTS: usize = 8;
const ROUNDS: usize = 200;

fn main() {
    requests();
    reaction();
    large_status();
}

/// A supervisor with its own folder; `@/` in the configuration is that folder.
struct Pilot {
    child: Child,
    folder: PathBuf,
}

impl Pilot {
    fn start(config: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("containerpilot-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config.json5");
        fs::write(&file, config.replace("@/", &format!("{}/", folder.display()))).unwrap();
        for fifo in ["one", "two"] {
            let _ = fs::remove_file(folder.join(fifo));
            assert!(Command::new("mkfifo").arg(folder.join(fifo)).status().unwrap().success());
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
        command.arg("-config").arg(file).env("CONTAINERPILOT_SOCKET", folder.join("socket"));
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let pilot = Self { child, folder };
        while UnixStream::connect(pilot.socket()).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        pilot
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A persistent connection.
struct Client(BufReader<UnixStream>);

impl Client {
    fn new(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    /// Sends a request and returns the size of the response body.
    fn get(&mut self, path: &str) -> usize {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            self.0.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" || line.is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
        length
    }
}

/// Sends requests from many threads; returns the rate per second.
fn rate(clients: usize, send: impl Fn(&mut Option<Client>) + Sync) -> f64 {
    let end = Instant::now() + TIME;
    let counts = std::thread::scope(|scope| {
        let one = || {
            let (mut client, mut count) = (None, 0_u32);
            while Instant::now() < end {
                send(&mut client);
                count += 1;
            }
            count
        };
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>()
    });
    f64::from(counts) / TIME.as_secs_f64()
}

fn requests() {
    let jobs: String = (0..10).map(|nth| format!("{{ name: 'job{nth}', exec: 'sleep 1000' }},")).collect();
    let pilot = Pilot::start(&format!("{{ jobs: [{jobs}] }}"));
    let socket = pilot.socket();
    for path in ["/v3/ping", "/v3/status"] {
        for clients in [1, CLIENTS] {
            let kept = rate(clients, |client| {
                client.get_or_insert_with(|| Client::new(&socket)).get(path);
            });
            let new = rate(clients, |_| {
                Client::new(&socket).get(path);
            });
            println!("{path}, {clients} clients: {kept:.0} requests/s, {new:.0}/s with a connection each");
        }
    }
}

/// The sorted times from the exit of the first job to the start of the second.
fn reactions(pilot: &Pilot) -> Vec<Duration> {
    let (one, two) = (pilot.folder.join("one"), pilot.folder.join("two"));
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            // Opening waits for the job; closing makes it exit.
            let gate = fs::OpenOptions::new().write(true).open(&one).unwrap();
            let started = Instant::now();
            drop(gate);
            fs::File::open(&two).unwrap().read_to_end(&mut Vec::new()).unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn reaction() {
    let pilot = Pilot::start(
        "{ logging: { level: 'ERROR' }, jobs: [
            { name: 'first', exec: 'cat @/one', restarts: 'unlimited', restartBackoff: false },
            { name: 'second', exec: 'cp /dev/null @/two', when: { source: 'first', each: 'exitSuccess' } },
        ] }",
    );
    let socket = pilot.socket();
    let show = |what: &str, times: &[Duration]| {
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        println!("exit to next start, {what}: median {:?}, p95 {:?}", at(50), at(95));
    };
    show("no requests", &reactions(&pilot));
    let stop = AtomicBool::new(false);
    let with = |busy: &(dyn Fn() + Sync)| {
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(busy);
            }
            let times = reactions(&pilot);
            stop.store(true, Ordering::Relaxed);
            times
        })
    };
    let asking = with(&|| {
        let mut client = Client::new(&socket);
        while !stop.load(Ordering::Relaxed) {
            client.get("/v3/status");
        }
    });
    show("8 clients request the status all the time", &asking);
    let elsewhere = with(&|| {
        let (mut left, mut right) = UnixStream::pair().unwrap();
        let mut bytes = [0; 512];
        while !stop.load(Ordering::Relaxed) {
            left.write_all(&bytes).unwrap();
            right.read_exact(&mut bytes).unwrap();
        }
    });
    show("8 unrelated busy threads", &elsewhere);
}

fn large_status() {
    let jobs: String = (0..1000)
        .map(|nth| {
            format!(
                "{{ name: 'job{nth}', exec: 'sleep 1000', when: {{ source: 'gate', once: 'exitSuccess' }},
                    health: {{ exec: 'true', interval: 10, ttl: 30 }} }},"
            )
        })
        .collect();
    let pilot = Pilot::start(&format!("{{ jobs: [{{ name: 'gate', exec: 'sleep 1000' }}, {jobs}] }}"));
    let mut client = Client::new(&pilot.socket());
    let mut size = 0;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            size = client.get("/v3/status");
            started.elapsed()
        })
        .collect();
    times.sort();
    println!("status of 1,000 jobs: {size} bytes, median {:?}, best {:?}", times[ROUNDS / 2], times[0]);
}
