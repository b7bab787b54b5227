//! Redis clients that write without a pause and record what was accepted.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A write that a primary has accepted, and from when to when that took.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) key: String,
    /// The term of that primary: it grows with each election.
    pub(crate) term: u64,
    pub(crate) sent: Instant,
    pub(crate) answered: Instant,
    /// `WAIT 1` has confirmed that a replica has it, too.
    pub(crate) replicated: bool,
}

/// A connection that sends inline commands.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends commands at once; returns their answers. An answer that is an error is an error here.
    pub(crate) fn send(&mut self, commands: &[&str]) -> io::Result<Vec<String>> {
        self.0.get_mut().write_all((commands.join("\r\n") + "\r\n").as_bytes())?;
        commands.iter().map(|_| self.answer()).collect()
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let text = line.get(1..).unwrap_or_default().trim_end().to_owned();
        match line.chars().next() {
            Some('+' | ':') => Ok(text),
            Some('$') if text == "-1" => Ok(String::new()),
            Some('$') => {
                let length: usize = text.parse().map_err(io::Error::other)?;
                let mut bytes = vec![0; length + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(length);
                String::from_utf8(bytes).map_err(io::Error::other)
            }
            _ => Err(io::Error::other(format!("answered {line:?}"))),
        }
    }
}

type Record = Arc<Mutex<Vec<Accepted>>>;

/// Where a client connects to next.
type Target = Box<dyn Fn() -> SocketAddr + Send>;

#[derive(Default)]
pub(crate) struct Clients {
    accepted: Record,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Adds a client whose keys begin with `name`. With `wait`, its writes are to be replicated.
    pub(crate) fn add(&mut self, name: &str, wait: bool, target: impl Fn() -> SocketAddr + Send + 'static) {
        let (name, record, end) = (name.to_owned(), Arc::clone(&self.accepted), Arc::clone(&self.end));
        let target: Target = Box::new(target);
        self.threads.push(std::thread::spawn(move || {
            let mut connection = None;
            let mut number = 0_u32;
            while !end.load(Ordering::Relaxed) {
                number += 1;
                let result = match connection.take() {
                    Some(connection) => Ok(connection),
                    None => Connection::open(target()),
                };
                let written = result.and_then(|mut connection| {
                    let write = write(&mut connection, format!("{name}:{number}"), wait)?;
                    Ok((connection, write))
                });
                if let Ok((kept, write)) = written {
                    connection = Some(kept);
                    record.lock().unwrap().push(write);
                }
                // The pace of the client.
                std::thread::sleep(Duration::from_millis(20));
            }
        }));
    }

    pub(crate) fn accepted(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap().clone()
    }

    /// The first replicated write that was sent after `time` in a term after `term`.
    pub(crate) fn first_after(&self, time: Instant, term: u64) -> Option<Accepted> {
        let accepted = self.accepted.lock().unwrap();
        accepted.iter().find(|write| write.replicated && write.sent > time && write.term > term).cloned()
    }

    /// The newest term in which a write was replicated.
    pub(crate) fn term(&self) -> u64 {
        self.accepted
            .lock()
            .unwrap()
            .iter()
            .filter(|write| write.replicated)
            .map(|write| write.term)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn end(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn write(connection: &mut Connection, key: String, wait: bool) -> io::Result<Accepted> {
    let sent = Instant::now();
    let set = format!("SET {key} {key}");
    let mut commands = vec!["HGET containerpilot term", set.as_str()];
    if wait {
        commands.push("WAIT 1 1000");
    }
    let answers = connection.send(&commands)?;
    let term = answers[0].parse().map_err(io::Error::other)?;
    let replicated = answers.get(2).is_some_and(|replicas| replicas != "0");
    Ok(Accepted { key, term, sent, answered: Instant::now(), replicated })
}
